"""Child process of a comparison: one request with many cells, one line for every event.

The request names the problem, methods, sizes and those cells that are still to be solved. Events
are ``bound`` of a size, ``begin`` of a cell, its ``progress``, its ``row``, and ``error`` where
nothing can be compared. A plan that is not the last goes along with its progress once a second at
most, so that little is lost when the process is ended.

A cell that takes longer than the parent's patience is ended from outside Python, whatever holds
its interpreter, and the process with it; the parent begins another for the cells that are left.

`compare` solves in this process, one method after the other: bounds of a problem are proved once
for all.
"""

from __future__ import annotations

import faulthandler
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import IO

from ccl.bound import Bound
from ccl.collective import CollectiveKind, make_collective
from ccl.errors import CclError, ProblemError, SolveError
from ccl.options import make_options
from ccl.problem import Problem
from ccl.serialization.topoloom import bound_to_json, problem_from_json, result_to_json
from ccl.topology import Topology, device, duplex
from formulations.analyses.comparison.table import Comparison, Method, News, Question, Row, question
from formulations.bounds import initial_bounds, timed_bounds
from formulations.core.preparing import wait
from formulations.core.registry import formulation
from formulations.core.run import Progress
from formulations.jobs.child import Speaker, error_event, until_abandoned
from formulations.solving.api import Proofs, solved

SECONDS = 2.0
"""For the common bound's cuts in time, for each size."""

WARM = 1e6
"""Bytes of what is solved before the first row of a method."""


def compare(
    problem: Problem,
    formulations: Iterable[str | Method] | None = None,
    *,
    sizes: Iterable[float] | None = None,
    time_limit: float | None = None,
    progress: Callable[[News], None] | None = None,
) -> Comparison:
    """Solve `problem` with several methods at several sizes, one after the other.

    Every plan is verified and replayed; gaps are to one bound for each size. Seconds of solves
    leave out the bounds, which are proved once for all methods, and loading what they need.
    `start_comparison` does the same in a child process, where a solver that does not stop can be
    ended.

    Parameters
    ----------
    problem
        What is solved; of its collective the size is replaced (`resized`).
    formulations
        Names, ``name:option=value,option=value`` or methods; by default every formulation that
        takes the problem, constructions first and ``auto`` last.
    sizes
        Bytes of the whole buffer; by default `SIZES`.
    time_limit
        Seconds for each solve; at the limit the best plan so far counts.
    progress
        Called with every news.

    Returns
    -------
        A row for every method and size. One that a method refuses, or for which it finds no plan,
        says why.

    Raises
    ------
    ProblemError
        If a formulation or an option does not exist, nothing is to be compared, or nothing has
        to move.
    """
    request = question(problem, formulations, sizes=sizes, time_limit=time_limit)
    proofs = [cache(partial(initial_bounds, each)) for each in request.problems]
    bounds = tuple(map(common_bound, request.problems, proofs))
    rows: list[Row] = []
    for which, place in request.cells:
        news = News(len(rows), len(request.cells), request.methods[which], request.sizes[place])
        if progress is not None:
            progress(news)
        if place == 0:
            warm_up(request.methods[which], problem.collective.kind)
        row = row_of(
            request.problems[place],
            request.methods[which],
            size=request.sizes[place],
            proofs=proofs[place],
            time_limit=time_limit,
            progress=None if progress is None else partial(_passed_on, progress, news),
        )
        rows.append(row)
        if progress is not None:
            progress(replace(news, done=len(rows), row=row))
    return Comparison(request.problem, request.methods, request.sizes, bounds, tuple(rows))


def common_bound(problem: Problem, proofs: Proofs) -> Bound:
    """Return the largest bound that holds for every plan of a problem."""
    known = proofs(quick=False, whole_chunks=False)
    timed = timed_bounds(problem, known=known, seconds=SECONDS)
    return max((*timed, *known[:1]), key=lambda each: each.makespan)


def warm_up(method: Method, kind: CollectiveKind) -> None:
    """Solve what is small, so that loading a solver is not counted as seconds of the first row.

    Parameters
    ----------
    method
        Who is loaded; it may refuse.
    kind
        What it is going to solve; a custom demand is made one of pairs.
    """
    pair = Topology(
        "pair",
        (device("gpu", "g0"), device("gpu", "g1")),
        tuple(duplex("g0", "g1", bandwidth=50.0, alpha=0.7)),
    )
    made = make_collective("all-to-all" if kind == "custom" else kind, 2, WARM)
    problem = Problem(pair, made)
    proofs = cache(partial(initial_bounds, problem))
    row_of(problem, method, size=WARM, proofs=proofs, time_limit=1.0)


def row_of(
    problem: Problem,
    method: Method,
    *,
    size: float,
    proofs: Proofs,
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Row:
    """Solve one cell; its row says why there is no result, and any other error is a bug.

    Parameters
    ----------
    problem, method, size
        Who solves what, at how many bytes.
    proofs
        Returns the bounds of `problem` and remembers them.
    time_limit, progress
        As for `formulations.solve`.
    """
    chosen = formulation(method.formulation)
    refused = chosen.why_not(problem)
    if refused is not None:
        return Row(method, size, None, refused)
    made = make_options(chosen.options, method.options)
    # The first method to need them is not charged for their seconds.
    proofs(quick=chosen.quick, whole_chunks=chosen.keeps_chunks(problem))
    try:
        result = solved(
            problem, chosen, made, bounds=proofs, time_limit=time_limit, progress=progress
        )
    except (ProblemError, SolveError) as error:
        return Row(method, size, None, str(error))
    return Row(method, size, result)


def _passed_on(report: Callable[[News], None], news: News, progress: Progress) -> None:
    report(replace(news, progress=progress))


PLANS = 1.0
"""Seconds between two plans of one cell that are not its last."""


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Solve the cells that the one request in `requests` names; the body of the child process."""
    content = json.loads(requests.readline())
    threading.Thread(target=until_abandoned, args=(requests,), daemon=True).start()
    speak = CellSpeaker(answers)
    request = Question(
        problem_from_json(content["problem"]),
        tuple(Method(*each) for each in content["methods"]),
        tuple(content["sizes"]),
        content["time_limit"],
    )
    proofs: list[Proofs] = [cache(partial(initial_bounds, each)) for each in request.problems]
    try:
        for place in content["bounds"]:
            bound = common_bound(request.problems[place], proofs[place])
            speak.line({"event": "bound", "size": place, "bound": bound_to_json(bound)})
    except CclError as error:
        speak.line(error_event(error))
        return
    # No cell's time, and nobody's patience, goes into compiling.
    wait()
    warm: set[int] = set()
    for cell in content["cells"]:
        which, _ = request.cells[cell]
        speak.begin(cell)
        if which not in warm:
            warm.add(which)
            with _watched(content["patience"]):
                warm_up(request.methods[which], request.problem.collective.kind)
        with _watched(content["patience"]):
            _solve(request, cell, proofs=proofs, speak=speak)


@contextmanager
def _watched(seconds: float | None) -> Iterator[None]:
    """End the process when the block takes longer."""
    if seconds is not None:
        faulthandler.dump_traceback_later(seconds, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def _solve(request: Question, cell: int, *, proofs: list[Proofs], speak: CellSpeaker) -> None:
    """Solve one cell and report its row."""
    which, place = request.cells[cell]
    row = row_of(
        request.problems[place],
        request.methods[which],
        size=request.sizes[place],
        proofs=proofs[place],
        time_limit=request.time_limit,
        progress=speak.progress,
    )
    result = None if row.result is None else result_to_json(row.result)
    speak.line({"event": "row", "result": result, "why_not": row.why_not})


class CellSpeaker(Speaker):
    """Reports cells, and once a second at most a plan that is not the last."""

    plan = 0.0

    def begin(self, cell: int) -> None:
        """Report that a cell begins."""
        self.plan = time.monotonic()
        self.line({"event": "begin", "cell": cell})

    def progress(self, news: Progress) -> None:
        """Report how the running cell stands."""
        now = time.monotonic()
        kept = news.result if now - self.plan >= PLANS else None
        if kept is not None:
            self.plan = now
        self.report(news, None if kept is None else result_to_json(kept))
