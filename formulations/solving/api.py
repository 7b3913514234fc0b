"""Solving a problem here (`solve`), in a child process (`start`), or only measuring it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from ccl.bound import Bound
from ccl.errors import ProblemError, ScheduleError
from ccl.options import make_options, option_fields, plain
from ccl.problem import Problem
from ccl.result import ModelSize, Result, Stop
from formulations.core.preparing import clock, listening
from formulations.core.registry import Formulation, available, formulation
from formulations.solvers import shut_out

if TYPE_CHECKING:
    from ccl.plans import Schedule
    from formulations.core.run import Progress, Run
    from formulations.jobs.solve_job import SolveJob

SOLVER = "HIGHS"
"""The solver that comes along."""

GRACE = 0.8
"""Share of the seconds after which a solve is ended, until which its first plan may come."""


Proofs = Callable[..., tuple[Bound, ...]]
"""Returns the bounds of one problem by ``quick`` and ``whole_chunks``, as `initial_bounds`."""

DEFAULT = "auto"
"""The formulation that nobody has to choose."""


def solve(
    problem: Problem,
    formulation: str = DEFAULT,
    *,
    options: Mapping[str, Any] | None = None,
    time_limit: float | None = None,
    gap: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    solver: str = SOLVER,
    begin_with: Schedule | None = None,
) -> Result:
    """Solve `problem` in this process, or apart where OR-tools has been loaded here before HiGHS.

    Parameters
    ----------
    problem
        What to solve.
    formulation
        Name of the formulation; `available` lists them.
    options
        Its options by name, those of `option_fields(formulation.options)`.
    time_limit
        Seconds for everything; at the limit the best plan so far is returned, or a first one soon
        after.
    gap
        Stop when the makespan is within this share above the lower bound.
    progress
        Called with every news, as often as there is any.
    solver
        Name of a solver that CVXPY knows.
    begin_with
        A plan of `problem`, for formulations that can begin with one: it stays the best until a
        better one is found.

    Raises
    ------
    ProblemError
        If the formulation is unknown, refuses the problem or the plan, or an option is wrong.
    ScheduleError
        If the plan to begin with does not solve the problem.
    Infeasible
        If no plan exists under the options.
    LimitReached
        If the time limit came before the first plan.
    """
    chosen = _chosen(problem, formulation, begins=begin_with is not None)
    made = make_options(chosen.options, options or {})
    if shut_out():
        job = start(
            problem,
            formulation,
            options=options,
            time_limit=time_limit,
            gap=gap,
            solver=solver,
            begin_with=begin_with,
        )
        return _followed(job, progress)
    return solved(
        problem,
        chosen,
        made,
        time_limit=time_limit,
        gap=gap,
        progress=progress,
        solver=solver,
        begin_with=begin_with,
    )


def start(
    problem: Problem,
    formulation: str = DEFAULT,
    *,
    options: Mapping[str, Any] | None = None,
    time_limit: float | None = None,
    gap: float | None = None,
    solver: str = SOLVER,
    begin_with: Schedule | None = None,
    memory: float | None = None,
) -> SolveJob:
    """Solve `problem` in a child process, as `solve` does; see `SolveJob`.

    Parameters
    ----------
    problem, formulation, options, time_limit, gap, solver, begin_with
        As for `solve`; a solver that does not stop at its limit is ended.
    memory
        Bytes that the solve may take, by default 80 % of this machine's. What takes more is
        ended, and its best plan so far is the result.

    Raises
    ------
    ProblemError
        If the formulation is unknown, refuses the problem or an option is wrong.
    """
    chosen = _chosen(problem, formulation, begins=begin_with is not None)
    make_options(chosen.options, options or {})
    from formulations.jobs.solve_job import SolveJob  # noqa: PLC0415

    return SolveJob(
        problem,
        chosen.name,
        options=dict(options or {}),
        time_limit=time_limit,
        gap=gap,
        solver=solver,
        begin_with=begin_with,
        memory=memory,
    )


def measure(
    problem: Problem, formulation: str = DEFAULT, *, options: Mapping[str, Any] | None = None
) -> ModelSize | None:
    """Estimate the size of the model of `problem`, without building it or loading a solver.

    Where the horizon is left to the formulation, it is the smallest that simple bounds allow, so
    that the model may become larger.

    Returns
    -------
        Its size, or None where the formulation has no model or does not know.

    Raises
    ------
    ProblemError
        If the formulation is unknown, refuses the problem or an option is wrong.
    """
    chosen = _chosen(problem, formulation)
    made = make_options(chosen.options, options or {})
    found = None if chosen.estimate is None else chosen.estimate(problem, made)
    return None if found is None else found.size


def solved(  # noqa: PLR0913  those of `formulations.solve`
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
    known: Callable[[], float] = lambda: inf,
) -> Result:
    """Run a formulation that takes `problem` with options that are `made`.

    Parameters
    ----------
    problem, chosen, made
        What is solved, how, and with which options.
    bounds
        What proves bounds of `problem`, where something remembers them; else `initial_bounds`.
    time_limit, gap, progress, solver, begin_with
        As for `formulations.solve`, with its errors.
    known
        Says of how many µs the best plan is that somebody else has.
    """
    from formulations.bounds import initial_bounds  # noqa: PLC0415  menus need no bounds
    from formulations.core.run import Run  # noqa: PLC0415  it replays, which takes numpy
    from formulations.jobs.child import patience  # noqa: PLC0415  who solves here begins no process

    begin, whole, ended = clock(), chosen.keeps_chunks(problem), patience(time_limit)
    _check(solver)
    run = Run(
        problem=problem,
        formulation=chosen.name,
        options=plain({row.name: getattr(made, row.name) for row in option_fields(chosen.options)}),
        solver=solver,
        bounds=(bounds or partial(initial_bounds, problem))(quick=chosen.quick, whole_chunks=whole),
        time_limit=time_limit,
        grace=inf if ended is None else GRACE * ended,
        gap=gap,
        progress=progress,
        start=begin_with,
        known=known,
        whole=whole,
        begin=begin,
    )
    return _answered(run, chosen, made)


def _answered(run: Run, chosen: Formulation, made: Any) -> Result:
    """Let a formulation answer, and drop a plan of its own that breaks a rule."""
    from formulations.solving.windows import answer  # noqa: PLC0415  it replays, which takes numpy

    try:
        with listening(run.report):
            return answer(chosen, run, made)
    except ScheduleError as error:
        if run.start is not None:  # a plan that was looked at before it was offered
            raise
        run.drop(error)
        return run.finish(Stop.CONSTRUCTED)


def _check(solver: str) -> None:
    """Refuse a solver that is not there, before anything is computed."""
    if solver != SOLVER:
        from formulations.solvers.cvxpy_highs import Backend  # noqa: PLC0415  it loads the solver

        Backend(solver=solver).check()


def _followed(job: SolveJob, progress: Callable[[Progress], None] | None) -> Result:
    """Pass on the news of a job and return its result; it ends when nobody listens any more."""
    try:
        for news in job:
            if progress is not None:
                progress(news)
        return job.result()
    finally:
        job.cancel()


def _chosen(problem: Problem, name: str, *, begins: bool = False) -> Formulation:
    chosen = formulation(name)
    reason = chosen.why_not(problem)
    if reason is not None:
        raise ProblemError(
            f"{chosen.name} cannot take {problem.collective.kind} on {problem.topology}: {reason}"
        )
    if begins and not chosen.takes_start:
        able = ", ".join(each.name for each in available() if each.takes_start)
        raise ProblemError(f"{chosen.name} cannot begin with a given plan; choose from {able}")
    return chosen
