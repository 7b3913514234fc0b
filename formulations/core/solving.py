"""One formulation, checked and with its options, on one problem."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ccl.bound import Bound
from ccl.errors import ScheduleError
from ccl.options import option_fields, plain
from ccl.problem import Problem
from ccl.result import Result, Stop
from formulations.core.preparing import clock, listening
from formulations.core.registry import Formulation

if TYPE_CHECKING:
    from ccl.schedule import Schedule
    from formulations.core.run import Progress

SOLVER = "HIGHS"
"""The solver that comes along."""


Proofs = Callable[..., tuple[Bound, ...]]
"""What returns bounds by ``quick`` and ``whole_chunks``, as `proved` does for one problem."""


def proved(problem: Problem, *, quick: bool, whole_chunks: bool) -> tuple[Bound, ...]:
    """Return the lower bounds with which a solve begins, the largest first.

    Parameters
    ----------
    problem
        What they are about.
    quick
        Whether only those that need no solver.
    whole_chunks
        Whether plans that split chunks may be left out.
    """
    from formulations.bounds import lower_bounds, quick_bounds  # noqa: PLC0415  until it is asked

    return (quick_bounds if quick else lower_bounds)(problem, whole_chunks=whole_chunks)


def solved(
    problem: Problem,
    chosen: Formulation,
    made: Any,
    *,
    bounds: Proofs | None = None,
    time_limit: float | None = None,
    gap: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    solver: str = SOLVER,
    begin_with: Schedule | None = None,
) -> Result:
    """Run a formulation that takes `problem` with options that are `made`.

    Parameters
    ----------
    problem, chosen, made
        What is solved, how, and with which options.
    bounds
        What proves bounds of `problem`, where something remembers them; else `proved`.
    time_limit, gap, progress, solver, begin_with
        As for `formulations.solve`, and so are its errors.
    """
    from formulations.core.run import Run  # noqa: PLC0415  it replays, which takes numpy

    begin = clock()
    proofs = partial(proved, problem) if bounds is None else bounds
    _check(solver)
    run = Run(
        problem=problem,
        formulation=chosen.name,
        options=plain({row.name: getattr(made, row.name) for row in option_fields(chosen.options)}),
        solver=solver,
        bounds=proofs(quick=chosen.quick, whole_chunks=chosen.keeps_chunks(problem)),
        time_limit=time_limit,
        gap=gap,
        progress=progress,
        start=begin_with,
        whole=chosen.keeps_chunks(problem),
        begin=begin,
    )
    try:
        with listening(run.report):
            return chosen.answer(run, made)
    except ScheduleError as error:
        if begin_with is not None:
            raise
        # Of a plan that was looked at before it was offered.
        run.drop(error)
        return run.finish(Stop.CONSTRUCTED)


def _check(solver: str) -> None:
    """Refuse a solver that is not there, before anything is computed."""
    if solver != SOLVER:
        from formulations.solvers.cvxpy_highs import Backend  # noqa: PLC0415  it loads the solver

        Backend(solver=solver).check()
