"""A comparison in a child process that dies with its parent, cell after cell, and as plain JSON.

One process solves all cells, as loading solvers takes as long as many a solve. One that ends in
the middle of a cell, because its solver requested too much memory, failed or did not stop, costs
that cell alone: another goes on with the cells after it.

`comparison_from_json` reads what `comparison_to_json` has written; every plan of it is verified and
replayed again. Results are those of ``topoloom/1`` without the problem, which stands once for all
sizes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

import msgspec

from ccl.bound import Bound
from ccl.errors import CclError, FormatError, SolveError
from ccl.problem import Problem
from ccl.result import PROOF_TOLERANCE, Result, Stop
from ccl.serialization import topoloom, wire
from formulations.analyses.comparison import table
from formulations.core.run import Progress
from formulations.jobs.child import Child, checked, error_in, patience
from formulations.jobs.solve_job import PROCESS, progress_in

ENDED = "Timeout ("
"""What Python writes when its watchdog ends the process."""


def start_comparison(
    problem: Problem,
    formulations: Iterable[str | table.Method] | None = None,
    *,
    sizes: Iterable[float] | None = None,
    time_limit: float | None = None,
    memory: float | None = None,
) -> ComparisonJob:
    """Solve in a child process, as `compare` does; see `ComparisonJob`.

    Parameters
    ----------
    problem, formulations, sizes, time_limit
        As for `compare`.
    memory
        Bytes that each solve may take, as for `formulations.start`.

    Raises
    ------
    ProblemError
        If a formulation or an option does not exist or nothing is to be compared.
    """
    request = table.question(problem, formulations, sizes=sizes, time_limit=time_limit)
    return ComparisonJob(request, patience=patience(time_limit), memory=checked(memory))


class ComparisonJob:
    """A running comparison; iterate over it for its news.

    Parameters
    ----------
    request
        What is compared; `start_comparison` makes it.
    patience
        Seconds after which a solve is ended that did not stop at its limit, or None.
    memory
        Bytes that each solve may take, or None.
    """

    def __init__(
        self, request: table.Question, *, patience: float | None = None, memory: float | None = None
    ) -> None:
        self.request = request
        self.patience = patience
        self.memory = memory
        self.rows: list[table.Row] = []
        """Those that are there, in the order of cells."""
        self.cancelled = False
        self._bounds: list[Bound] = []
        self._now: int | None = None
        self._best: Result | None = None
        self._failed = False
        self._lock = threading.Lock()
        self._child = self._started()

    @property
    def running(self) -> bool:
        """Whether a solver's process is there."""
        return self._child.running

    @property
    def pid(self) -> int:
        """Number of the solver's process."""
        return self._child.pid

    def __iter__(self) -> Iterator[table.News]:
        """Yield news until every cell has its row or the comparison is cancelled.

        Raises
        ------
        CclError
            If nothing has to be sent, or the process ends before the first cell.
        """
        while not self._child.closed:
            for event in self._child:
                news = self._read(event)
                if news is not None:
                    yield news
            yield from self._ended()

    def comparison(self) -> table.Comparison:
        """Return what there is: rows that are missing were not reached."""
        bounds, request = tuple(self._bounds), self.request
        return table.Comparison(
            request.problem, request.methods, request.sizes[: len(bounds)], bounds, tuple(self.rows)
        )

    def result(self) -> table.Comparison:
        """Wait for the end and return the comparison; errors as iterating.

        Whoever interrupts it ends the process as well.
        """
        try:
            for _ in self:
                pass
        finally:
            self.cancel()
        return self.comparison()

    def cancel(self) -> None:
        """Stop at once; rows stay, and so does the best reported plan of the running cell.

        Does nothing when it has ended.
        """
        with self._lock:
            # Between two processes none is running, and the next must not begin.
            if not self._failed and len(self.rows) < len(self.request.cells):
                self.cancelled = True
            if self._child.running:
                self._child.kill()

    def _started(self) -> Child:
        """Start a process with the bounds and cells that are left."""
        request, child = self.request, Child("formulations.analyses.comparison", memory=self.memory)
        child.ask(
            {
                "problem": topoloom.problem_to_json(request.problem),
                "methods": [[each.formulation, dict(each.options)] for each in request.methods],
                "sizes": request.sizes,
                "time_limit": request.time_limit,
                "patience": self.patience,
                "bounds": list(range(len(self._bounds), len(request.sizes))),
                "cells": list(range(len(self.rows), len(request.cells))),
            }
        )
        return child

    def _read(self, event: Mapping[str, Any]) -> table.News | None:
        what = event["event"]
        if what == "error":
            self._failed = True
            self._child.kill()
            self._child.close()
            raise error_in(event)
        if what == "bound":
            size = self.request.sizes[event["size"]]
            told = topoloom.shaped(event["bound"], wire.BoundJson, "bound")
            self._bounds.append(topoloom.bound_of(told))
            return table.News(0, len(self.request.cells), None, size)
        if what == "begin":
            self._now, self._best = event["cell"], None
            return self._news()
        result, unread = self._own(event["result"])
        if what == "row":
            return self._add(result, unread or event["why_not"])
        self._best = result or self._best
        return self._news(progress=progress_in(event, result))

    def _own(self, value: Any) -> tuple[Result | None, str]:
        """Return a result, verified here too, with the problem that all of its size share.

        Else why it has no plan: a plan that fails its check costs one cell, like a solver that
        dies.
        """
        assert self._now is not None
        _, place = self.request.cells[self._now]
        if value is None:
            return None, ""
        try:
            return table.sharing(topoloom.result_from_json(value), self.request.problems[place]), ""
        except CclError as error:
            return None, f"its result is not one: {error}"

    def _add(self, result: Result | None, why_not: str) -> table.News:
        assert self._now is not None
        which, place = self.request.cells[self._now]
        row = table.Row(self.request.methods[which], self.request.sizes[place], result, why_not)
        self.rows.append(row)
        news = self._news(row=row)
        self._now = self._best = None
        return news

    def _news(self, progress: Progress | None = None, row: table.Row | None = None) -> table.News:
        assert self._now is not None
        which, place = self.request.cells[self._now]
        method, size = self.request.methods[which], self.request.sizes[place]
        return table.News(len(self.rows), len(self.request.cells), method, size, progress, row)

    def _ended(self) -> Iterator[table.News]:
        """Give the cell in which the process ended its row, and go on with those after it."""
        why, starved = self._child.last_words(PROCESS), self._child.starved
        late = any(line.startswith(ENDED) for line in self._child.errors())
        self._child.close()
        if self.cancelled:
            if self._now is not None and self._best is not None:
                yield self._add(replace(self._best, stop=Stop.CANCELLED), "")
            return
        if len(self.rows) == len(self.request.cells):
            return
        if self._now is None:
            self._failed = True
            raise SolveError(why)
        if late:
            yield self._overran()
        elif starved and self._best is not None:
            log = (*self._best.log, why)
            yield self._add(replace(self._best, stop=Stop.MEMORY, log=log), "")
        else:
            yield self._add(None, why)
        self._go_on()

    def _go_on(self) -> None:
        """Begin another process for the cells that are left, unless it was cancelled meanwhile."""
        with self._lock:
            if not self.cancelled and len(self.rows) < len(self.request.cells):
                self._child = self._started()

    def _overran(self) -> table.News:
        """Return the row of a solver that did not stop: its best plan, if it reported one."""
        if self._best is not None:
            return self._add(replace(self._best, stop=Stop.TIME_LIMIT), "")
        limit = self.request.time_limit
        request = "" if limit is None else f", though {limit:g} s were allowed"
        why = f"it found no schedule and was ended, as it did not stop within {self.patience:g} s"
        return self._add(None, why + request)


FORMAT = "topoloom-comparison/1"


class _MethodJson(msgspec.Struct, forbid_unknown_fields=True):
    formulation: str
    options: dict[str, Any]


class _RowJson(msgspec.Struct, forbid_unknown_fields=True):
    """A row; method and size by their places.

    Its plan answers the problem with every chunk in so many `parts`.
    """

    method: int
    size: int
    result: dict[str, Any] | None
    why_not: str
    parts: int = 1


class _ComparisonJson(msgspec.Struct, forbid_unknown_fields=True):
    format: Literal["topoloom-comparison/1"]
    problem: wire.ProblemJson
    methods: list[_MethodJson]
    sizes: list[float]
    bounds: list[wire.BoundJson]
    rows: list[_RowJson]


def comparison_to_json(comparison: table.Comparison) -> dict[str, Any]:
    """Return a comparison as plain JSON values."""
    places = {str(each): place for place, each in enumerate(comparison.methods)}
    return {
        "format": FORMAT,
        "problem": topoloom.problem_to_json(comparison.problem),
        "methods": [
            {"formulation": each.formulation, "options": dict(each.options)}
            for each in comparison.methods
        ],
        "sizes": list(comparison.sizes),
        "bounds": [topoloom.bound_to_json(each) for each in comparison.bounds],
        "rows": [
            {
                "method": places[str(each.method)],
                "size": comparison.sizes.index(each.size),
                "result": None if each.result is None else _without_problem(each.result),
                "why_not": each.why_not,
                **_parts(each, len(comparison.problem.collective.chunks)),
            }
            for each in comparison.rows
        ],
    }


def comparison_from_json(value: Any) -> table.Comparison:
    """Read a comparison; each plan is verified and replayed again.

    Raises
    ------
    FormatError
        If the shape is wrong, or a plan beats a bound.
    ProblemError
        If it has the shape of a comparison and its problem is invalid.
    ScheduleError
        If a plan breaks a rule of its problem.
    """
    shape = topoloom.shaped(value, _ComparisonJson, "comparison")
    methods = tuple(table.Method(each.formulation, each.options) for each in shape.methods)
    sizes = tuple(shape.sizes)
    if sizes != tuple(sorted(set(sizes))) or not sizes or sizes[0] <= 0:
        raise FormatError(f"comparison, at sizes: {list(sizes)}; give positive ones, ascending")
    if len(shape.bounds) != len(sizes):
        raise FormatError(
            f"comparison, at bounds: there are {len(shape.bounds)} for {len(sizes)} sizes"
        )
    problems = table.Question(topoloom.problem_of(shape.problem), methods, sizes).problems
    bounds = tuple(topoloom.bound_of(each) for each in shape.bounds)
    for place, bound in enumerate(bounds):
        _check_names(place, bound, problems[place])
    rows = []
    for number, each in enumerate(shape.rows):
        if not (0 <= each.method < len(methods) and 0 <= each.size < len(sizes)):
            msg = f"comparison, at rows[{number}]: there is no method {each.method} or size "
            msg += f"{each.size}; both are places in their lists"
            raise FormatError(msg)
        result = _result(each.result, problems[each.size], parts=each.parts)
        if result is not None:
            _check_beaten(number, result, bounds[each.size])
        rows.append(table.Row(methods[each.method], sizes[each.size], result, each.why_not))
    return table.Comparison(problems[0], methods, sizes, bounds, tuple(rows))


def _parts(row: table.Row, chunks: int) -> dict[str, int]:
    """Return into how many parts the chunks that were requested are cut, where they are."""
    many = 0 if row.result is None else len(row.result.problem.collective.chunks)
    return {"parts": many // chunks} if many > chunks else {}


def _without_problem(result: Result) -> dict[str, Any]:
    value = topoloom.result_to_json(result)
    del value["problem"]
    return value


def _result(value: dict[str, Any] | None, problem: Problem, *, parts: int) -> Result | None:
    if value is None:
        return None
    if parts != 1:
        problem = replace(problem, collective=problem.collective.cut(parts))
    return table.sharing(
        topoloom.result_from_json({**value, "problem": topoloom.problem_to_json(problem)}), problem
    )


def _check_names(place: int, bound: Bound, problem: Problem) -> None:
    for name in topoloom.witness_devices(bound):
        if name not in problem.topology.index:
            raise FormatError(
                f"comparison, at bounds[{place}]: its witness names {name!r}, which is not a "
                f"device of {problem.topology}; compare again"
            )


def _check_beaten(number: int, result: Result, bound: Bound) -> None:
    if bound.makespan > result.makespan * (1 + PROOF_TOLERANCE):
        raise FormatError(
            f"comparison, at rows[{number}]: nothing is faster than {bound.makespan:g} µs, and "
            f"the plan, verified, takes {result.makespan:g} µs; compare again"
        )
