"""The default on every cluster of the gallery, beside its bounds and beside every other method.

``gallery`` prints how far the plan of ``auto`` is above the largest bound that holds for any plan,
for each cluster and size, and the medians.

``auto`` must not lose to any other method: a line for each question says what it found, by which
method, what is proved of it, and the best of all others. Every solve has a process of its own;
`auto` has the machine to itself, of the others there are two at a time. Where `auto` is within the
share that counts (`WORSE`) of a bound for every plan none can be ahead by more, and they are not
asked.

Answers are kept in a file as they come, so that a run of hours can be gone on with.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from statistics import median
from typing import Annotated, Any

import typer

from benchmarks.measuring import output, said, table
from benchmarks.random_problems import random_problem
from ccl import text
from ccl.collective import CollectiveKind, make_collective
from ccl.errors import CclError
from ccl.problem import Problem
from ccl.result import Status
from ccl.serialization.quantity import format_size, parse_size
from formulations import DEFAULT, available, start
from gallery import catalog, open_cluster

KINDS: tuple[CollectiveKind, ...] = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all")
"""What ``auto`` asks; ``gallery`` asks the first two."""

AUTO_SIZES = "1KB,1MB,1GB"
GALLERY_SIZES = "1KB,16KB,64KB,256KB,1MB,16MB,1GB"

WORSE = 0.005
"""Share by which `auto` may be behind another method."""

AT_ONCE = 2
"""Other methods that are asked at a time: each uses one core."""

Row = dict[str, Any]

ClusterOption = Annotated[list[str] | None, typer.Option(help="Only these; may be repeated.")]
KindOption = Annotated[list[str] | None, typer.Option(help="Only these kinds.")]
SizesOption = Annotated[str, typer.Option(help="Joined by commas.")]
SecondsOption = Annotated[float, typer.Option(help="For each solve.")]
KeepOption = Annotated[Path | None, typer.Option(help="A file of answers to go on with.")]


def gallery(
    cluster: ClusterOption = None,
    *,
    collective: KindOption = None,
    sizes: SizesOption = GALLERY_SIZES,
    seconds: SecondsOption = 8.0,
    keep: KeepOption = None,
) -> None:
    """Print what `auto` finds on every cluster, and how far it is above its bound."""
    console = output()
    known = _Known(keep)
    names = cluster or [each.name for each in catalog()]
    for kind in collective or KINDS[:2]:
        heads = ("cluster", *sizes.split(","))
        made = table(f"{kind}: auto, µs, and % above the bound for every plan", heads)
        gaps: dict[float, list[float]] = {}
        for name in names:
            cells = []
            for _, problem in _questions([name], [kind], sizes):
                row = known.answer(name, problem, DEFAULT, seconds)
                console.print(*_line(name, problem, [row])[:7], sep="  ")
                cells.append(_gap(row))
                if row["makespan"] is not None:
                    gaps.setdefault(problem.collective.size, []).append(_above(row))
            if cells:
                made.add_row(name, *cells)
        console.print(made)
        each = ", ".join(f"{format_size(size)} {median(of):.2f}" for size, of in gaps.items())
        if every := [gap for of in gaps.values() for gap in of]:
            console.print(f"{kind}: median gap {median(every):.2f} % of {len(every)}; {each}")


def _above(row: Row) -> float:
    """Return how many percent a plan is above its bound; bounds of nothing are reached."""
    return 100 * (float(row["makespan"]) / float(row["bound"]) - 1) if row["bound"] else 0.0


def _gap(row: Row) -> str:
    found = row["makespan"] is not None
    return f"{row['makespan']:.5g} ({_above(row):.1f})" if found else text.NONE


def auto(
    cluster: ClusterOption = None,
    *,
    collective: KindOption = None,
    sizes: SizesOption = AUTO_SIZES,
    seconds: SecondsOption = 20.0,
    keep: KeepOption = None,
    random: Annotated[int, typer.Option(help="So many random problems, no clusters.")] = 0,
    sample: Annotated[int, typer.Option(help="So many of the clusters' questions; 0: all.")] = 0,
    seed: Annotated[int, typer.Option(help="The first random problem; or of the sample.")] = 0,
) -> None:
    """Print what `auto` finds and what the best of all other methods does."""
    names = cluster or [each.name for each in catalog()]
    if random:
        asked: Iterator[tuple[str, Problem]] = (
            (f"random {number}", random_problem(number)) for number in range(seed, seed + random)
        )
    else:
        asked = _questions(names, collective or list(KINDS), sizes)
    if sample:
        asked = iter(Random(seed).sample(tuple(asked), sample))
    console = output()
    ours = ("cluster", "collective", "size", "auto µs", "found by", "status", "bound µs")
    made = table("auto beside the others", (*ours, "best other µs", "by", "auto / other"))
    known = _Known(keep)
    worst, behind, questions = 0.0, 0, 0
    for name, problem in asked:
        rows = [row for row in _rows(name, problem, known, seconds) if row["makespan"] is not None]
        line = _line(name, problem, rows)
        console.print(*line, sep="  ")
        made.add_row(*line)
        ratio = _ratio(rows)
        if ratio is not None:
            questions += 1
            worst, behind = max(worst, ratio - 1), behind + (ratio > 1 + WORSE)
    console.print(made)
    console.print(
        f"{questions} questions, {seconds:g} s each: auto is behind by more than {WORSE:.1%} in "
        f"{behind}; at worst {worst:.2%}; as asked: {said(not behind)}"
    )


def _questions(names: list[str], kinds: list[str], sizes: str) -> Iterator[tuple[str, Problem]]:
    for name in names:
        topology = open_cluster(name)
        for kind in KINDS:
            for size in map(parse_size, sizes.split(",")) if kind in kinds else ():
                try:
                    yield name, Problem(topology, make_collective(kind, len(topology.ranks), size))
                except CclError:
                    break  # one-way clusters have no way for some


class _Known:
    """Answers by question and method, kept in a file of lines where there is one."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._rows: dict[tuple[str, str], Row] = {}
        if file is not None and file.exists():
            for line in file.read_text("utf-8").splitlines():
                row = json.loads(line)
                self._rows[row["question"], row["method"]] = row

    def answer(self, name: str, problem: Problem, method: str, seconds: float) -> Row:
        """Return what a method comes to on a question, asked once."""
        kind, size = problem.collective.kind, problem.collective.size
        question = f"{name} {kind} {size:g} {seconds:g}"
        row = self._rows.get((question, method))
        if row is None:
            row = {"question": question, "method": method} | _solved(problem, method, seconds)
            self._rows[question, method] = row
            if self._file is not None:
                with self._file.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(row) + "\n")
        return row


def _rows(name: str, problem: Problem, known: _Known, seconds: float) -> Iterator[Row]:
    """Yield what `auto` comes to, then each other method that takes the problem."""

    def row(method: str) -> Row:
        return known.answer(name, problem, method, seconds)

    auto = row(DEFAULT)
    yield auto
    if _nobody_ahead(auto):
        return
    others = [each.name for each in available() if each.why_not(problem) is None]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        yield from threads.map(row, (name for name in others if name != DEFAULT))


def _solved(problem: Problem, method: str, seconds: float) -> Row:
    try:
        job = start(problem, formulation=method, time_limit=seconds)
    except CclError as error:
        return {"makespan": None, "why": str(error)}  # nothing can solve it
    try:
        result = job.result()
    except CclError as error:
        return {"makespan": None, "why": str(error)}
    finally:
        job.cancel()
    return {
        "makespan": result.makespan,
        "found_by": result.found_by or method,
        "status": result.verdict,
        "bound": result.bound.makespan,
    }


def _nobody_ahead(auto: Row) -> bool:
    """Whether a bound for every plan says that no method can be ahead by more than counts."""
    if auto["makespan"] is None:
        return False
    near = float(auto["makespan"]) <= float(auto["bound"]) * (1 + WORSE)
    return near or auto["status"] == Status.OPTIMAL


def _others(rows: list[Row]) -> Row | None:
    others = [row for row in rows if row["method"] != DEFAULT]
    return min(others, key=lambda row: float(row["makespan"]), default=None)


def _auto(rows: list[Row]) -> Row | None:
    return next((row for row in rows if row["method"] == DEFAULT), None)


def _ratio(rows: list[Row]) -> float | None:
    """Return the makespan of `auto` over the best of the others; infinite where it has none."""
    auto, best = _auto(rows), _others(rows)
    if best is None:
        return 1.0 if auto is not None and _nobody_ahead(auto) else None
    return float("inf") if auto is None else auto["makespan"] / best["makespan"]


def _line(name: str, problem: Problem, rows: list[Row]) -> list[str]:
    auto, best, ratio = _auto(rows), _others(rows), _ratio(rows)
    nothing = text.NONE
    return [
        name,
        problem.collective.kind,
        format_size(problem.collective.size),
        nothing if auto is None else f"{auto['makespan']:.6g}",
        nothing if auto is None else auto["found_by"],
        nothing if auto is None else auto["status"],
        nothing if auto is None else f"{auto['bound']:.6g}",
        nothing if best is None else f"{best['makespan']:.6g}",
        nothing if best is None else best["method"],
        nothing if ratio is None else f"{ratio:.4f}",
    ]
