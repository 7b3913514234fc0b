"""The runner of the benchmarks: rows, whole solves of them, seconds, tables and parts.

Seconds are those of whole solves on a clock on the wall: bounds, search, verification and replay,
and the last verification and replay of what is handed over. Every solve gets a problem of its
own, so that nothing is remembered from the one before.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from ccl.collective import CollectiveKind, make_collective
from ccl.errors import CclError
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.quantity import parse_size
from formulations import solve
from gallery import open_cluster

GB = 1e9
"""Bytes."""

WIDTH = 160
"""Characters of a line."""

WARM_UP = "1MB"
"""Size of the solve before all others, which loads solvers and compiled functions."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What a row has to reach: µs, gap as a share of the bound, seconds; at most."""

    makespan: float = math.inf
    gap: float = math.inf
    seconds: float = math.inf


@dataclass(frozen=True, kw_only=True)
class Request:
    """One row.

    Parameters
    ----------
    cluster, kind, size, chunks
        What is solved; the cluster by its name in the gallery.
    formulation, options, time_limit
        How, with seconds at most.
    published
        Texts for the columns of published figures.
    goal
        What it has to reach, or None where nothing was asked for.
    """

    cluster: str
    size: str
    kind: CollectiveKind = "all-gather"
    chunks: int = 1
    formulation: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)
    time_limit: float | None = None
    published: tuple[str, ...] = ()
    goal: Goal | None = None

    @property
    def problem(self) -> Problem:
        """A new problem, which remembers nothing."""
        topology = open_cluster(self.cluster)
        made = make_collective(self.kind, len(topology.ranks), parse_size(self.size))
        # Papers' linear programs split the chunks that they count; the default would too.
        fixed = self.formulation == "auto" and self.chunks > 1
        return Problem(topology, replace(made.cut(self.chunks), whole=fixed))

    def __str__(self) -> str:
        chunks = f" in {self.chunks} chunks" if self.chunks > 1 else ""
        return f"{self.kind} {self.cluster} {self.size}{chunks} {self.formulation}"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How all rows are run.

    Parameters
    ----------
    repeat
        Solves of each row.
    time_limit
        Seconds instead of the rows' own, or None.
    only
        Rows whose text has this in it are run.
    """

    repeat: int = 3
    time_limit: float | None = None
    only: str = ""

    def chosen(self, rows: Iterable[Request]) -> list[Request]:
        """Return the rows that are run, with their limits."""
        return [
            row if self.time_limit is None else replace(row, time_limit=self.time_limit)
            for row in rows
            if self.only in str(row)
        ]


@dataclass(frozen=True)
class Measured:
    """What a row came to.

    Parameters
    ----------
    asked
        The row.
    result
        That of the middle makespan, or None where one solve found no plan.
    seconds
        Median of the whole solves.
    failure
        Why there is none.
    """

    asked: Request
    result: Result | None
    seconds: float
    failure: str = ""

    @property
    def makespan(self) -> float:
        """µs; infinite without a plan."""
        return math.inf if self.result is None else self.result.makespan

    @property
    def reached(self) -> bool | None:
        """Whether it is what was asked for; None where nothing was."""
        goal, result = self.asked.goal, self.result
        if goal is None:
            return None
        return (
            result is not None
            and result.makespan <= goal.makespan * (1 + 1e-9)
            and result.gap <= goal.gap
            and self.seconds <= goal.seconds
        )


def measured(asked: Request, settings: Settings) -> Measured:
    """Solve a row as often as asked for."""
    seconds: list[float] = []
    results: list[Result] = []
    for _ in range(settings.repeat):
        problem = asked.problem
        begin = time.perf_counter()
        try:
            found = solve(
                problem, asked.formulation, options=asked.options, time_limit=asked.time_limit
            )
        except CclError as error:
            return Measured(asked, None, time.perf_counter() - begin, str(error))
        seconds.append(time.perf_counter() - begin)
        results.append(found)
    middle = sorted(results, key=lambda each: each.makespan)[len(results) // 2]
    done = Measured(asked, middle, statistics.median(seconds))
    progress(f"{asked}: {middle.makespan:.6g} µs, {middle.gap:.2%}, {done.seconds:.2f} s")
    return done


def progress(*words: object) -> None:
    """Say on the error output what is done: a part takes minutes, its table comes at the end."""
    Console(stderr=True, highlight=False).print(*words, style="dim")


def warm_up(row: Request) -> None:
    """Solve once what is like `row`: nobody waits twice for what the first solve loads."""
    measured(replace(row, size=WARM_UP, goal=None), Settings(repeat=1))


def figures(done: Measured) -> list[str]:
    """Return makespan, bound, its kind, gap, who found it and seconds as texts."""
    result = done.result
    if result is None:
        return ["none", "", "", "", done.failure, f"{done.seconds:.2f}"]
    return [
        f"{result.makespan:.7g}",
        f"{result.bound.makespan:.7g}",
        result.bound.kind,
        f"{result.gap:.2%}",
        result.found_by or result.formulation,
        f"{done.seconds:.2f}",
    ]


FIGURES = ("makespan µs", "bound µs", "by", "gap", "found by", "s")
"""Headings of `figures`."""


def table(title: str, ours: Sequence[str], published: Sequence[str] = ()) -> Table:
    """Return a table with headings for what was asked and measured, and for published figures."""
    made = Table(title=title)
    for heading in ours:
        made.add_column(heading, justify="right")
    for heading in published:
        made.add_column(heading, justify="right", style="dim")
    return made


def filled(
    title: str, rows: Sequence[Request], settings: Settings, *, published: Sequence[str] = ()
) -> Table:
    """Measure `rows` and return their table, with how many came to what was asked for."""
    made = table(title, ("cluster", "size", *FIGURES, "as asked"), published)
    reached = []
    for row in rows:
        done = measured(row, settings)
        reached.append(done.reached)
        told = "" if done.reached is None else said(done.reached)
        made.add_row(row.cluster, row.size, *figures(done), told, *row.published)
    asked = [each for each in reached if each is not None]
    if asked:
        made.caption = f"as asked: {sum(asked)} of {len(asked)} rows"
    return made


def said(true: bool) -> str:
    """Return a truth as a word."""
    return "yes" if true else "no"


PartArgument = Annotated[str, typer.Argument(help="One part, or all of them.")]

T = TypeVar("T")


def parts_named(part: str, parts: Mapping[str, T]) -> Iterator[T]:
    """Yield one part of a benchmark, or all of them.

    Raises
    ------
    typer.BadParameter
        If there is no such part.
    """
    if part != "all" and part not in parts:
        raise typer.BadParameter(
            f"there is no part {part!r}; choose all or one of {', '.join(parts)}"
        )
    return iter(parts.values()) if part == "all" else iter((parts[part],))


def output() -> Console:
    """Return where tables and what is said of them are printed."""
    return Console(width=WIDTH, highlight=False)


def show(tables: Iterable[Table]) -> None:
    """Print tables as they come, but those that no row was chosen for."""
    console = output()
    for each in tables:
        if each.row_count:
            console.print(each)


@dataclass(frozen=True, slots=True)
class Seconds:
    """Medians: on the wall's clock, and of the processor, which a busy machine does not stretch."""

    wall: float
    processor: float

    def __str__(self) -> str:
        return f"{self.wall:.3g}"


def median_of(repeat: int, act: Callable[[], T]) -> tuple[T, Seconds]:
    """Return what `act` returns at last, and the medians of the seconds it takes."""
    walls, processors = [], []
    for _ in range(repeat):
        begin, work = time.perf_counter(), time.process_time()
        found = act()
        walls.append(time.perf_counter() - begin)
        processors.append(time.process_time() - work)
    return found, Seconds(statistics.median(walls), statistics.median(processors))
