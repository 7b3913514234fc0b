"""The shortest plan in continuous time, by constraint programming: who sends what to whom, when.

For each chunk c and each path o from a device u to a device v that store (a link, or several over
devices that do not) a literal ``x[c, o]``; for each chunk and device its arrival ``A[c, v]``; the
makespan M. Times are whole ticks, of which all times are multiples or which are so short that
rounding is nothing (``formulations.engines.cp_sat.instance`` has the rule and its proof). With
``d[c, o]`` the latency of the path plus the slowest transmission of the chunk on it:

    minimise    M
    subject to  sum of x[c, o] into v = 1            for every v that needs c and lacks it
                sum of x[c, o] into v <= 1           for every other v
                A[c, v] >= A[c, u] + d[c, o]         if x[c, o], or u has c at the beginning
                M >= A[c, v]                         for every v that needs c
                no two intervals of a link overlap   each begins A[c, v] - d[c, o] plus the alphas
                                                     before the link and lasts bytes * beta

and, so that the solver sees more: paths that leave a chunk no time to come from its holder, or to
go on to who needs it before the best plan ends, are left out; what a link carries fits between
the earliest start and the makespan less the shortest path on; chunks that may change places come
in order. Transfers of a chunk that part at devices that copy share one interval on their path
there.

The same program for one chunk of each orbit, with links merged by orbit, finds the best symmetric
plan first (``formulations.engines.list_scheduling.multistart``): that proves nothing for other
plans. The program of the whole problem proves a bound where every path is one link. Over switches a
plan might let a chunk wait, which transfers do not: there a second program, in which every link of
a path has a moment of its own, proves the bound (``formulations.engines.cp_sat.worker``). List
scheduling gives the plan to begin with, reductions are planned backwards, and sums for several
ranks in two steps (``formulations.engines.list_scheduling.search``).

OR-tools' CP-SAT runs in a process of its own, as it cannot be loaded beside HiGHS.
"""

from dataclasses import dataclass

from ccl.collective import COLLECTIVES
from ccl.options import option
from ccl.problem import Problem
from ccl.result import Result
from formulations.core.refusals import no_limits, no_stores
from formulations.core.registry import Formulation
from formulations.core.run import Run
from formulations.engines.epoch_grid.epochs import ProofOptions
from formulations.engines.reverse_time import adding, halves, irreversible

PASSES = 300
"""Passes of list scheduling before each search."""


@dataclass(frozen=True, kw_only=True)
class Options(ProofOptions):
    """The form of constraint programming."""

    seconds: float = option(
        60.0,
        "Time",
        "For all searches together, where no shorter time limit is set",
        unit="s",
        min=0.1,
    )
    symmetry: bool = option(True, "Symmetry", "Look for plans that look the same all around first")
    workers: int = option(
        1,
        "Workers",
        "Threads of the solver; with one the same question has the same answer",
        min=1,
        max=64,
    )
    seed: int = option(0, "Seed", "Of the random numbers", min=0)


def refuses(problem: Problem) -> str | None:
    """Leave limits to other formulations."""
    if (reason := no_stores(problem)) is not None:
        return reason
    if (reason := no_limits(problem)) is not None:
        return f"{reason}, and here each link is held for itself"
    return irreversible(problem)


def run(run: Run, options: Options) -> Result:
    """Search until the best plan is proved or time is over.

    Raises
    ------
    Infeasible
        If no paths lead where chunks have to be.
    """
    from formulations.engines.cp_sat.search import Client  # noqa: PLC0415  it loads numba
    from formulations.engines.list_scheduling.search import answer  # noqa: PLC0415

    problem = run.problem
    head, tail = halves(problem.collective) if problem.collective.reduces else (None, None)
    until = run.seconds + options.seconds
    if run.time_limit is not None:
        until = min(until, run.time_limit)
    closer = Client(
        run,
        options.seed,
        PASSES,
        options.symmetry,
        workers=options.workers,
        until=until,
        # A sum for several is added up, then spread alone and behind it.
        stops=options.stop_at_proof,
        sides=3 if head is not None and tail is not None else 1,
        sole=not problem.collective.reduces or (tail is None and adding(problem) is problem),
    )
    answer(closer)
    return run.end(closer.stop)


FORMULATION = Formulation(
    name="cp-sat",
    title="Constraint programming in continuous time",
    reference="Laborie et al., Constraints 23, 2018 (intervals); the model is our own",
    collectives=frozenset(COLLECTIVES),
    options=Options,
    refuses=refuses,
    run=run,
    model="cp",
)
