"""`auto` beside every other method, each given the same seconds: it must not lose to any.

A line for each question: what `auto` found, by which method, what is proved of it, and the best of
all others. Every solve has a process of its own; `auto` has the machine to itself, of the others
there are two at a time. Where `auto` is "optimal" for every plan none can be ahead, and they are
not asked. Answers are kept in a file as they come, so that a run of hours can be gone on with.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ccl import text
from ccl.collective import CollectiveKind, make_collective
from ccl.errors import CclError
from ccl.problem import Problem
from ccl.result import Status
from ccl.serialization.quantity import format_size, parse_size
from formulations import DEFAULT, available, start
from gallery import catalog, open_cluster

KINDS: tuple[CollectiveKind, ...] = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all")
SIZES = "1KB,1MB,1GB"

WORSE = 0.005
"""Share by which `auto` may be behind another method."""

AT_ONCE = 2
"""Other methods that are asked at a time: each uses one core."""

Row = dict[str, Any]


def main(
    cluster: Annotated[list[str] | None, typer.Option(help="Only these; may be repeated.")] = None,
    *,
    collective: Annotated[list[str] | None, typer.Option(help="Only these kinds.")] = None,
    sizes: Annotated[str, typer.Option(help="Joined by commas.")] = SIZES,
    seconds: Annotated[float, typer.Option(help="For each solve.")] = 20.0,
    keep: Annotated[Path | None, typer.Option(help="A file of answers to go on with.")] = None,
) -> None:
    """Print what `auto` finds and what the best of all other methods does."""
    names = cluster or [each.name for each in catalog()]
    console = Console(width=150)
    table = Table("cluster", "collective", "size", "auto µs", "found by", "status", "bound µs")
    for heading in ("best other µs", "by", "auto / other"):
        table.add_column(heading, justify="right")
    known = _Known(keep)
    worst, behind, questions = 0.0, 0, 0
    for name, problem in _questions(names, collective or list(KINDS), sizes):
        rows = [row for row in _rows(name, problem, known, seconds) if row["makespan"] is not None]
        line = _line(name, problem, rows)
        console.print(*line, sep="  ")
        table.add_row(*line)
        ratio = _ratio(rows)
        if ratio is not None:
            questions += 1
            worst, behind = max(worst, ratio - 1), behind + (ratio > 1 + WORSE)
    console.print(table)
    console.print(
        f"{questions} questions, {seconds:g} s each: auto is behind by more than {WORSE:.1%} in "
        f"{behind}; at worst {worst:.2%}; as asked: {'no' if behind else 'yes'}"
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
    if auto.get("status") == Status.OPTIMAL:
        return
    others = [each.name for each in available() if each.why_not(problem) is None]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        yield from threads.map(row, (name for name in others if name != DEFAULT))


def _solved(problem: Problem, method: str, seconds: float) -> Row:
    job = start(problem, formulation=method, time_limit=seconds)
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


def _others(rows: list[Row]) -> Row | None:
    others = [row for row in rows if row["method"] != DEFAULT]
    return min(others, key=lambda row: float(row["makespan"]), default=None)


def _auto(rows: list[Row]) -> Row | None:
    return next((row for row in rows if row["method"] == DEFAULT), None)


def _ratio(rows: list[Row]) -> float | None:
    """Return the makespan of `auto` over the best of the others; infinite where it has none."""
    auto, best = _auto(rows), _others(rows)
    if best is None:
        return 1.0 if auto is not None and auto["status"] == Status.OPTIMAL else None
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
