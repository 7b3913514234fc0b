"""Methods beside one another, each given the same seconds.

``auto`` must not lose to any other: a line for each question says what it found, by which method,
what is proved of it, and the best of all others. Every solve has a process of its own; `auto` has
the machine to itself, of the others there are two at a time. Where `auto` is within the share
that counts (`WORSE`) of a bound for every plan none can be ahead by more, and they are not asked.
Answers are kept in a file as they come, so that a run of hours can be gone on with.

``compare`` has every formulation on six clusters, three collectives and four sizes, against one
bound each. A cell is the makespan in µs of a plan that was verified and replayed, and how far it is
above the largest bound that holds for every plan; the fastest of a size has a star. What is empty
or left out says why below its table. Exact methods show what they reach in a few seconds, not what
they could prove in an hour (``python -m benchmarks schedules``).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from benchmarks.measuring import output, progress, said, table
from benchmarks.random_problems import random_problem
from ccl import text
from ccl.collective import CollectiveKind, make_collective
from ccl.errors import CclError
from ccl.problem import Problem
from ccl.result import Status
from ccl.serialization.quantity import format_size, parse_size
from formulations import DEFAULT, available, start
from formulations.analyses.comparison import Comparison, Method, parse_methods, start_comparison
from gallery import catalog, open_cluster
from widgets.words import fastest_words, missing_words

AUTO_KINDS: tuple[CollectiveKind, ...] = (
    "all-gather",
    "all-reduce",
    "reduce-scatter",
    "all-to-all",
)
AUTO_SIZES = "1KB,1MB,1GB"

WORSE = 0.005
"""Share by which `auto` may be behind another method."""

AT_ONCE = 2
"""Other methods that are asked, or tables that are filled, at a time: each uses one core."""

Row = dict[str, Any]


def auto(
    cluster: Annotated[list[str] | None, typer.Option(help="Only these; may be repeated.")] = None,
    *,
    collective: Annotated[list[str] | None, typer.Option(help="Only these kinds.")] = None,
    sizes: Annotated[str, typer.Option(help="Joined by commas.")] = AUTO_SIZES,
    seconds: Annotated[float, typer.Option(help="For each solve.")] = 20.0,
    keep: Annotated[Path | None, typer.Option(help="A file of answers to go on with.")] = None,
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
        asked = _questions(names, collective or list(AUTO_KINDS), sizes)
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
        for kind in AUTO_KINDS:
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

    def get(self, question: str, method: str) -> Row | None:
        return self._rows.get((question, method))

    def add(self, row: Row) -> None:
        self._rows[row["question"], row["method"]] = row
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row) + "\n")


def _rows(name: str, problem: Problem, known: _Known, seconds: float) -> Iterator[Row]:
    """Yield what `auto` comes to, then each other method that takes the problem."""
    collective = problem.collective
    question = f"{name} {collective.kind} {collective.size:g} {seconds:g}"

    def row(method: str) -> Row:
        made = known.get(question, method)
        if made is None:
            made = {"question": question, "method": method} | _solved(problem, method, seconds)
            known.add(made)
        return made

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
