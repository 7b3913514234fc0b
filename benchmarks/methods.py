"""Methods beside one another, each given the same seconds.

``compare`` has every formulation on six clusters, three collectives and four sizes, against one
bound each. A cell is the makespan in µs of a plan that was verified and replayed, and how far it is
above the largest bound that holds for every plan; the fastest of a size has a star. What is empty
or left out says why below its table. Exact methods show what they reach in a few seconds, not what
they could prove in an hour (``python -m benchmarks schedules``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from benchmarks.measuring import output, progress
from ccl import text
from ccl.collective import CollectiveKind, make_collective
from ccl.problem import Problem
from ccl.serialization.quantity import format_size, parse_size
from formulations import available
from formulations.analyses.comparison import Comparison, Method, parse_methods, start_comparison
from gallery import open_cluster
from widgets.words import fastest_words, missing_words

CLUSTERS = (
    "dgx-1v",
    "ndv2:hosts=2",
    "dgx-a100:hosts=2",
    "mi250:hosts=2",
    "torus:shape=4x4",
    "fat-tree",
)
KINDS: tuple[CollectiveKind, ...] = ("all-gather", "all-to-all", "all-reduce")
SIZES = "16KB,1MB,64MB,1GB"

AT_ONCE = 2
"""Tables that are filled at a time: a solve uses one core, but `auto`'s."""

LIMIT = 1.5
"""Seconds for each solve: all tables take less than 15 minutes on two cores."""


@dataclass(frozen=True, slots=True)
class Part:
    """One table: a collective on a cluster, and the seconds it took."""

    cluster: str
    kind: CollectiveKind
    found: Comparison
    seconds: float


def compare(
    cluster: Annotated[list[str] | None, typer.Option(help="Only these; may be repeated.")] = None,
    *,
    collective: Annotated[list[str] | None, typer.Option(help="Only these kinds.")] = None,
    sizes: Annotated[str, typer.Option(help="Joined by commas.")] = SIZES,
    formulations: Annotated[
        str | None, typer.Option(help="Joined by commas; by default all that take it.")
    ] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds for each solve.")] = LIMIT,
    at_once: Annotated[
        int, typer.Option(min=1, help="Tables filled at the same time; with 1, seconds are better.")
    ] = AT_ONCE,
) -> None:
    """Print makespans and gaps to one bound of all formulations, side by side."""
    kinds = [each for each in KINDS if collective is None or each in collective]
    if not kinds:
        raise typer.BadParameter(
            f"there is no collective {', '.join(collective or ())}; choose of {', '.join(KINDS)}"
        )
    methods = None if formulations is None else parse_methods(formulations)
    nbytes = tuple(map(parse_size, sizes.split(",")))
    asked = [(each, kind) for each in cluster or CLUSTERS for kind in kinds]
    console = output()
    begin = time.perf_counter()

    def solved(which: tuple[str, CollectiveKind]) -> Part:
        return _part(*which, methods=methods, sizes=nbytes, time_limit=time_limit)

    with ThreadPoolExecutor(at_once) as pool:
        for part in pool.map(solved, asked):
            console.print(_table(part))
            for sentence in _below(part.found):
                console.print(Text(sentence))
            console.print()
    console.print(f"{text.seconds(time.perf_counter() - begin)} in all")


def _part(
    cluster: str,
    kind: CollectiveKind,
    *,
    methods: tuple[Method, ...] | None,
    sizes: tuple[float, ...],
    time_limit: float,
) -> Part:
    topology = open_cluster(cluster)
    problem = Problem(topology, make_collective(kind, len(topology.ranks), sizes[0]))
    begin = time.perf_counter()
    found = start_comparison(problem, methods, sizes=sizes, time_limit=time_limit).result()
    seconds = time.perf_counter() - begin
    progress(f"{kind} {cluster}: {seconds:.1f} s")
    return Part(cluster, kind, found, seconds)


def _table(part: Part) -> Table:
    """Return the makespans and gaps; seconds are those of all sizes, variables the most of any."""
    found = part.found
    made = Table(title=f"{part.kind}, {part.cluster}, {part.seconds:.0f} s")
    made.add_column("method")
    for size in found.sizes:
        made.add_column(f"{format_size(size)} µs", justify="right")
        made.add_column("gap", justify="right", style="dim")
    made.add_column("solve s", justify="right")
    made.add_column("variables", justify="right")
    bounds = [cell for each in found.bounds for cell in (f"{each.makespan:.6g}", "")]
    made.add_row("bound", *bounds, "", "", style="bold")
    for method in found.methods:
        made.add_row(str(method), *_cells(found, method), *_cost(found, method))
    return made


def _cells(found: Comparison, method: Method) -> Iterator[str]:
    """Yield the makespan and the gap of a method at each size."""
    for size in found.sizes:
        row = found.row(method, size)
        if row is None or row.result is None:
            yield from ("–", "")
            continue
        star = "*" if row is found.best(size) else ""
        yield from (f"{star}{row.result.makespan:.6g}", text.share(found.gap(row)))


def _cost(found: Comparison, method: Method) -> tuple[str, str]:
    """Return the seconds of a method and the variables of its largest model."""
    rows = (found.row(method, size) for size in found.sizes)
    results = [row.result for row in rows if row is not None and row.result is not None]
    if not results:
        return "", ""
    variables = max(0 if each.size is None else each.size.variables for each in results)
    seconds = sum(each.solve_time for each in results)
    return f"{seconds:.2f}", f"{variables:,}" if variables else "–"


def _below(found: Comparison) -> Iterator[str]:
    """Yield what proves the bounds, who is the fastest where, and who has no schedule or row."""
    proofs = dict.fromkeys(f"{each.kind}: {each.reference}" for each in found.bounds)
    yield f"bounds by {'; '.join(proofs)}"
    yield from fastest_words(found)
    yield from missing_words(found)
    asked = {each.formulation for each in found.methods}
    for each in available():
        if each.name not in asked and found.problem.collective.kind in each.collectives:
            yield f"{each.name} is not in it: {each.why_not(found.problem) or 'not asked for'}"
