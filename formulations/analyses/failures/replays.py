"""What becomes of today's plan when a part of its cluster is gone or slow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic

from ccl.errors import SolveError
from ccl.metrics import link_utilisation
from ccl.problem import Problem
from ccl.result import Plan, Result
from ccl.schedule import Schedule
from ccl.simulate import simulate
from ccl.topology import Topology
from ccl.verify import verify
from formulations.analyses.failures.nouns import Survival
from formulations.solving.api import solve


@dataclass
class Planner:
    """Solves one problem after another within one limit of time.

    Parameters
    ----------
    formulation
        Name of the formulation.
    until
        Moment of `time.monotonic` at which all must be done, or None.
    left
        How many are to be solved still; each has an equal share of the time that is left.
    """

    formulation: str
    until: float | None
    left: int

    def solved(self, problem: Problem) -> tuple[Result | None, str]:
        """Return a plan, or None and why there is none."""
        seconds = None if self.until is None else max(0.0, self.until - monotonic()) / self.left
        self.left -= 1
        if seconds == 0:
            return None, "the time limit is reached before it was its turn"
        try:
            return solve(problem, self.formulation, time_limit=seconds), ""
        except SolveError as error:
            return None, str(error)


def surviving(today: Result, left: Topology, problem: Problem | None) -> Survival:
    """Say how much of today's plan is left.

    Parameters
    ----------
    today
        The plan with everything in place.
    left
        The cluster without what is lost.
    problem
        The collective there, None where it can run no more.
    """
    gone = {each.ends for each in today.problem.topology.links} - left.link_index.keys()
    use = link_utilisation(today.problem, today.timeline)
    carried = {link.ends: use[link.ends] * link.bandwidth for link in today.problem.topology.links}
    share = sum(carried[each] for each in gone) / (sum(carried.values()) or 1.0)
    sends = today.plan.sends if isinstance(today.plan, Schedule) else ()
    crossing = tuple(each for each in sends if not gone.isdisjoint(each.hops))
    # A plan for other ranks than there are now is none.
    runs = problem is not None and _answered(today, problem) and not crossing and share == 0
    makespan = replayed(today, problem) if runs and problem is not None else None
    return Survival(makespan, share, crossing, len(sends))


def replayed(today: Result, problem: Problem) -> float:
    """Return the µs that today's plan takes on a cluster with the same links, some of them slower.

    The plan keeps the order of its sends. Its epochs grow with what has become slowest, so that it
    is a plan of the slower cluster, which is verified; the replay forgets them again.

    Parameters
    ----------
    today
        The plan with everything as it should be.
    problem
        The same collective on the slower cluster.
    """
    plan = slower(today.plan, today.problem.topology, problem.topology)
    # The plan may have cut the chunks that were asked for.
    answered = problem.cut_into(len(today.problem.collective.chunks))
    verify(answered, plan)
    return simulate(answered, plan).makespan


def _answered(today: Result, problem: Problem) -> bool:
    """Say whether the plan answers a problem, its chunks cut further or as they are."""
    cut = problem.cut_into(len(today.problem.collective.chunks))
    return cut.collective == today.problem.collective


def slower(plan: Plan, before: Topology, after: Topology) -> Plan:
    """Return a plan whose epochs are longer by as much as the slowest link has become slower."""
    if not isinstance(plan, Schedule):
        return plan
    factors = [1.0]
    for ends in {ends for send in plan.sends for ends in send.hops}:
        old, new = before.link(*ends), after.link(*ends)
        factors += [new.beta / old.beta, new.alpha / old.alpha if old.alpha else 1.0]
    return replace(plan, epoch_duration=plan.epoch_duration * max(factors))
