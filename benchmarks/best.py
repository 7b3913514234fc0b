"""The best plan at every size: `auto` beside prototypes, published methods and the bound.

``best`` asks `auto` for each row of a table of clusters, sizes and both of all-gather and
all-reduce, with the seconds that the table grants. A row is reached where the makespan is at most
the asked share above the bound that the table has. Beside it stands the best of what others
publish for any size: rings, trees, doubling, direct and hierarchical constructions, TACOS and
ForestColl's trees.
"""

from __future__ import annotations

import csv
import statistics
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.measuring import output, said, table
from ccl.collective import CollectiveKind, make_collective
from ccl.errors import SolveError
from ccl.problem import Problem
from ccl.serialization.quantity import parse_size
from formulations import available, solve
from gallery import open_cluster

ROWS = Path(__file__).parents[1] / "tests" / "golden" / "best_plans.csv"

PUBLISHED = (
    "ring",
    "bidirectional-ring",
    "multi-ring",
    "tree",
    "double-binary-tree",
    "recursive-doubling",
    "halving-doubling",
    "hierarchical",
    "direct",
    "tacos",
    "forestcoll",
)
"""Methods that others publish, as we have them."""

SECONDS = 3.0
"""For each of them."""


def best(
    cluster: Annotated[list[str] | None, typer.Option(help="Only these; may be repeated.")] = None,
    *,
    collective: Annotated[str | None, typer.Option(help="Only this kind.")] = None,
    size: Annotated[list[str] | None, typer.Option(help="Only these sizes.")] = None,
    seconds: Annotated[float | None, typer.Option(help="For each, not the table's.")] = None,
    others: Annotated[bool, typer.Option(help="Ask what others publish too.")] = True,
) -> None:
    """Print `auto` at every size beside prototypes, published methods and the bound."""
    console = output()
    heads = ("cluster", "collective", "size", "auto µs", "found by", "bound µs", "gap %", "s")
    known = ("prototype µs", "asked %", "published µs")
    made = table("the best plan at every size", heads, known)
    gaps: dict[str, list[float]] = {}
    missed = 0
    for row in rows(cluster, collective, size):
        limit = seconds or float(row["seconds"])
        found = solve(problem_of(row), time_limit=limit)
        published = _published(row) if others else ""
        bound = max(found.bound.makespan, float(row["bound_us"]))
        gap = 100 * (found.makespan / bound - 1)
        gaps.setdefault(row["collective"], []).append(gap)
        missed += gap > float(row["ask_percent"])
        cells = [row["cluster"], row["collective"], row["size"], f"{found.makespan:.5g}"]
        cells += [found.found_by, f"{bound:.5g}", f"{gap:.2f}", f"{found.solve_time:.1f}"]
        cells += [row["best_us"], row["ask_percent"], published]
        console.print(*cells, sep="  ")
        made.add_row(*cells)
    console.print(made)
    for kind, each in gaps.items():
        console.print(f"{kind}: median gap {statistics.median(each):.2f} % of {len(each)} rows")
    console.print(f"{missed} above what is asked; as asked: {said(not missed)}")


def rows(
    clusters: list[str] | None = None, collective: str | None = None, sizes: list[str] | None = None
) -> list[dict[str, str]]:
    """Return rows of the table, by the names of its columns."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        return [
            row
            for row in csv.DictReader(file)
            if clusters is None or row["cluster"] in clusters
            if collective in (None, row["collective"])
            if sizes is None or row["size"] in sizes
        ]


def problem_of(row: dict[str, str]) -> Problem:
    """Return what a row asks."""
    topology = open_cluster(row["cluster"])
    ranks, size = len(topology.ranks), parse_size(row["size"])
    kind: CollectiveKind = "all-gather" if row["collective"] == "all-gather" else "all-reduce"
    return Problem(topology, make_collective(kind, ranks, size))


def _published(row: dict[str, str]) -> str:
    """Return the best of what others publish, with its name."""
    problem = problem_of(row)
    found = []
    for each in available():
        if each.name in PUBLISHED and each.why_not(problem) is None:
            try:
                found.append((solve(problem, each.name, time_limit=SECONDS).makespan, each.name))
            except SolveError:
                continue
    if not found:
        return "none"
    makespan, name = min(found)
    return f"{makespan:.5g} {name}"
