"""How a schedule is found and how a bound is proved.

>>> from formulations import solve
>>> from gallery import open_cluster
>>> from ccl.collective import all_gather
>>> from ccl.problem import Problem
>>> problem = Problem(open_cluster("dgx-1v"), all_gather(8, 1e6))
>>> solve(problem).makespan  # doctest: +SKIP

Importing this package loads no solver; a formulation loads its own when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ccl.errors import ProblemError
from ccl.options import OptionField, make_options, option_fields
from ccl.problem import Problem
from ccl.result import ModelSize, Result
from formulations.core.registry import Formulation, available, formulation
from formulations.core.solving import SOLVER, solved
from formulations.solvers.clash import shut_out

if TYPE_CHECKING:
    from ccl.schedule import Schedule
    from formulations.analyses.chunk_counts import pareto, sweep_counts
    from formulations.analyses.comparison import compare, start_comparison
    from formulations.analyses.expansion.front import cost_front
    from formulations.analyses.expansion.upgrade import cheapest_upgrade
    from formulations.analyses.explanation.explanation import explain
    from formulations.analyses.explanation.pricing import prices
    from formulations.analyses.failures.stragglers import stragglers
    from formulations.analyses.failures.study import failures
    from formulations.analyses.sensitivity.curve import rate_curve
    from formulations.analyses.sensitivity.sensitivity import sensitivity
    from formulations.campaigns.sweeps.running import sweep
    from formulations.core.run import Progress
    from formulations.jobs.solve_job import SolveJob

__all__ = [
    "Formulation",
    "OptionField",
    "available",
    "cheapest_upgrade",
    "compare",
    "cost_front",
    "explain",
    "failures",
    "formulation",
    "measure",
    "option_fields",
    "pareto",
    "prices",
    "rate_curve",
    "sensitivity",
    "solve",
    "start",
    "start_comparison",
    "stragglers",
    "sweep",
    "sweep_counts",
]

_LATER = {
    "cheapest_upgrade": "formulations.analyses.expansion.upgrade",
    "compare": "formulations.analyses.comparison",
    "cost_front": "formulations.analyses.expansion.front",
    "explain": "formulations.analyses.explanation.explanation",
    "failures": "formulations.analyses.failures.study",
    "pareto": "formulations.analyses.chunk_counts",
    "prices": "formulations.analyses.explanation.pricing",
    "rate_curve": "formulations.analyses.sensitivity.curve",
    "sensitivity": "formulations.analyses.sensitivity.sensitivity",
    "start_comparison": "formulations.analyses.comparison",
    "stragglers": "formulations.analyses.failures.stragglers",
    "sweep": "formulations.campaigns.sweeps.running",
    "sweep_counts": "formulations.analyses.chunk_counts",
}

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
        Seconds for everything; the best plan so far is kept.
    gap
        Stop when the makespan is within this share above the lower bound.
    progress
        Called with every news, as often as there is any.
    solver
        Name of a solver that CVXPY knows.
    begin_with
        A plan of `problem`, for formulations that can begin with one: it is kept until a better
        one is found.

    Raises
    ------
    ProblemError
        If the formulation is unknown, refuses the problem or the plan, or an option is wrong.
    ScheduleError
        If the plan to begin with is none of the problem.
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
    problem: Problem,
    formulation: str = DEFAULT,
    *,
    options: Mapping[str, Any] | None = None,
) -> ModelSize | None:
    """Say how large the model of `problem` would be, without building it or loading a solver.

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
    found = None if chosen.anatomy is None else chosen.anatomy(problem, made)
    return None if found is None else found.size


def _followed(job: SolveJob, progress: Callable[[Progress], None] | None) -> Result:
    """Pass on the news of a job and return its result; it ends when nobody listens any more."""
    try:
        for news in job:
            if progress is not None:
                progress(news)
        return job.result()
    finally:
        job.cancel()


def __getattr__(name: str) -> Any:
    """Return what needs `solve` itself, once it is there."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def _chosen(problem: Problem, name: str, *, begins: bool = False) -> Formulation:
    chosen = formulation(name)
    reason = chosen.why_not(problem)
    if reason is not None:
        msg = f"{chosen.name} cannot take {problem.collective.kind} on {problem.topology}: {reason}"
        raise ProblemError(msg)
    if begins and not chosen.takes_start:
        able = ", ".join(each.name for each in available() if each.takes_start)
        msg = f"{chosen.name} cannot begin with a given plan; choose from {able}"
        raise ProblemError(msg)
    return chosen
