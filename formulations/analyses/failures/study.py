"""Failure analysis (N-1): the cost of every single loss and of every straggler, one of each class.

A class is of parts that symmetries exchange. `failures` solves what a loss leaves, `surviving` and
`replayed` find out what becomes of today's plan when a part of its cluster is gone or slow, and
`stragglers` lets a part lag. Reference for the factors: TE-CCL (SIGCOMM 2024), section 5.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from time import monotonic
from typing import Generic, TypedDict, TypeVar, Unpack

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from ccl.errors import Infeasible, ProblemError, SolveError
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import Plan, Result
from ccl.simulate import simulate
from ccl.timeline import link_utilisation
from ccl.topology import Topology
from ccl.verify import verify
from formulations.analyses.best_rate import Optimum, optimum
from formulations.analyses.failures import degradation, nouns
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
        """Return a plan, or None and the reason."""
        seconds = None if self.until is None else max(0.0, self.until - monotonic()) / self.left
        self.left -= 1
        if seconds == 0:
            return None, "the time limit is reached before it was its turn"
        try:
            return solve(problem, self.formulation, time_limit=seconds), ""
        except SolveError as error:
            return None, str(error)


def surviving(today: Result, left: Topology, problem: Problem | None) -> nouns.Survival:
    """Describe how much of today's plan is left.

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
    # A plan for other ranks than there are now is no answer.
    runs = problem is not None and _answered(today, problem) and not crossing and share == 0
    makespan = replayed(today, problem) if runs and problem is not None else None
    return nouns.Survival(makespan, share, crossing, len(sends))


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
    # The plan may have cut the chunks that were requested.
    answered = problem.cut_into(len(today.problem.collective.chunks))
    verify(answered, plan)
    return simulate(answered, plan).makespan


def _answered(today: Result, problem: Problem) -> bool:
    """Return whether the plan answers a problem, its chunks cut further or as they are."""
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


AUTO = "auto"

_Row = TypeVar("_Row", nouns.Failure, nouns.Straggler)


def failures(
    problem: Problem,
    *,
    losing: Collection[str] = nouns.PARTS,
    schedule: bool = False,
    time_limit: float | None = None,
    formulation: str = AUTO,
    both: bool = True,
) -> nouns.Failures:
    """Compute the cost of every single failure.

    Of each class of parts that symmetries exchange one stands for all: the best steady state
    without it is found and proved. A link that is lost is one physical link with both of its
    directions; of parallel links one is lost. A device is lost with its links, a host with all
    that it holds. When GPUs are lost, the collective runs over the ranks that are left, with the
    same size as nccl-tests defines it (`restrict_collective`).

    Parameters
    ----------
    problem
        A cluster and what runs on it.
    losing
        Kinds of parts, of `formulations.analyses.failures.nouns.PARTS`.
    schedule
        Whether a verified plan is made for today and after every loss, and the rows report how much
        of today's plan a loss leaves.
    time_limit
        Seconds for all plans together; what is not reached has none.
    formulation
        How plans are found.
    both
        Whether a link is lost in both directions, else in one.

    Raises
    ------
    ProblemError
        If a kind is unknown, fluid models cannot say the problem, or links have windows.
    """
    study = Study(
        problem,
        losing=losing,
        schedule=schedule,
        time_limit=time_limit,
        formulation=formulation,
        both=both,
    )
    return study.so_far(tuple(study.rows()))


class Plans(TypedDict, total=False):
    """Whether plans are made of what is left, by which formulation, and in how many s together."""

    schedule: bool
    formulation: str
    time_limit: float | None


class _PartStudy(ABC, Generic[_Row]):
    """A row for each part of a cluster, as soon as it is there."""

    def __init__(
        self,
        problem: Problem,
        kinds: Collection[str],
        *,
        both: bool = True,
        schedule: bool = False,
        formulation: str = AUTO,
        time_limit: float | None = None,
    ) -> None:
        refuse_windows(problem)
        self.problem = problem
        self.today: Optimum = optimum(problem)
        """The best steady state with everything in place and nothing lagging."""
        self.parts = nouns.parts_of(problem, kinds, both=both, latencies=schedule)
        """What is lost or lags, one row each."""
        self.result: Result | None = None
        """Today's plan, once `rows` has begun; None where none is requested or found."""
        until = None if time_limit is None else monotonic() + time_limit
        planner = Planner(formulation, until, len(self.parts) + 1)
        self._planner = planner if schedule else None

    def rows(self) -> Iterator[_Row]:
        """Yield a row for each of `parts`."""
        if self._planner is not None:
            self.result, _ = self._planner.solved(self.problem)
        for part in self.parts:
            yield self._row(part)

    @abstractmethod
    def _row(self, part: nouns.Part) -> _Row: ...


class Study(_PartStudy[nouns.Failure]):
    """The same, row by row: `rows` yields each as soon as it is there, and may be left early.

    Parameters
    ----------
    problem, losing, schedule, time_limit, formulation, both
        As for `failures`.

    Raises
    ------
    ProblemError
        As for `failures`.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        losing: Collection[str] = nouns.PARTS,
        both: bool = True,
        **plans: Unpack[Plans],
    ) -> None:
        self.both = both
        super().__init__(problem, losing, both=both, **plans)

    def so_far(self, rows: Collection[nouns.Failure]) -> nouns.Failures:
        """Return some of the rows as a table of its own."""
        return nouns.Failures(self.problem, self.today, tuple(rows), self.result)

    def _row(self, part: nouns.Part) -> nouns.Failure:
        left = without(self.problem.topology, part, both=self.both)
        problem, best, why = _what_is_left(self.problem, left)
        result = None
        if problem is not None and self._planner is not None:
            result, why = self._planner.solved(problem)
        elif self._planner is not None:
            self._planner.left -= 1
        return nouns.Failure(
            part=part,
            topology=left,
            problem=problem,
            optimum=best,
            lost=1.0 if best is None else 1 - best.algbw / self.today.algbw,
            cut_off=() if problem is not None else unreachable(self.problem, left),
            why=why,
            result=result,
            survival=None if self.result is None else surviving(self.result, left, problem),
        )


def without(topology: Topology, part: nouns.Part, *, both: bool = True) -> Topology:
    """Return a cluster without the one that stands for a part."""
    if part.kind == "link":
        return degradation.without_link(topology, *part.names, both=both)
    if part.kind == "host":
        return degradation.without_host(topology, *part.names)
    return degradation.without_devices(topology, part.names)


def _what_is_left(problem: Problem, left: Topology) -> tuple[Problem | None, Optimum | None, str]:
    """Return the problem that is left with its optimum, or twice None and the reason."""
    if len(left.ranks) < 2 <= len(problem.topology.ranks):
        only = f"only {left.ranks[0]} is left" if left.ranks else "no GPU is left"
        return None, None, f"{only}, and a collective needs two"
    try:
        made = degradation.degrade_problem(problem, left)
        return made, optimum(made), ""
    except (ProblemError, Infeasible) as error:
        return None, None, str(error)


def unreachable(problem: Problem, left: Topology) -> tuple[str, ...]:
    """Return the names of ranks that are there and have lost the others.

    The others are those that the root of the collective still reaches or is reached from; without
    a root, the most ranks that reach one another, of equally many those with the lowest rank.
    """
    root = _root(problem)
    if not left.ranks or (root is not None and root not in left.index):
        return ()
    gpus = np.array([left.index[name] for name in left.ranks])
    many = len(left.devices)
    links = sparse.csr_array((np.ones(len(left.links)), tuple(left.ends)), shape=(many, many))
    if root is None:
        part = csgraph.connected_components(links, connection="strong")[1][gpus]
        numbers, first, counts = np.unique(part, return_index=True, return_counts=True)
        most = max(range(len(numbers)), key=lambda i: (counts[i], -first[i]))
        there = part == numbers[most]
    else:
        turned = problem.collective.kind in ("reduce", "gather")
        graph = links.T.tocsr() if turned else links
        order = csgraph.breadth_first_order(graph, left.index[root], return_predecessors=False)
        there = np.isin(gpus, order)
    return tuple(name for name, fine in zip(left.ranks, there.tolist(), strict=True) if not fine)


def _root(problem: Problem) -> str | None:
    """Return the name of the rank that all data comes from or goes to, or None."""
    collective = problem.collective
    if collective.kind not in ("broadcast", "scatter", "reduce", "gather"):
        return None
    first = collective.chunks[0]
    ends = first.destinations if collective.kind in ("reduce", "gather") else first.holders
    return problem.topology.ranks[ends[0]]


def refuse_windows(problem: Problem) -> None:
    """Refuse links that have less bandwidth for a time.

    Raises
    ------
    ProblemError
        If there are any.
    """
    if problem.windows:
        raise ProblemError(
            f"{problem.topology} has links with less bandwidth for a time, and so no steady state "
            "to compare with; leave out its windows"
        )


def stragglers(
    problem: Problem,
    *,
    alpha: float = 1.0,
    beta: float = 2.0,
    lagging: Collection[str] = nouns.PARTS,
    schedule: bool = False,
    time_limit: float | None = None,
    formulation: str = AUTO,
) -> nouns.Stragglers:
    """Compute the cost of every single straggler, and with plans the gain of re-planning.

    Parameters
    ----------
    problem
        A cluster and what runs on it.
    alpha, beta
        Factors of the latency and of the time per byte of all links of what lags; of parallel
        links one lags, and data spreads over all of them as their bandwidths allow.
    lagging
        Kinds of parts, of `formulations.analyses.failures.nouns.PARTS`.
    schedule
        Whether a verified plan is made for today and for every straggler, and today's is replayed
        on the slowed cluster.
    time_limit
        Seconds for all plans together; what is not reached has none.
    formulation
        How plans are found.

    Raises
    ------
    ProblemError
        If a kind is unknown, a factor is not positive, fluid models cannot say the problem, or
        links have windows.
    """
    study = LagStudy(
        problem,
        alpha=alpha,
        beta=beta,
        lagging=lagging,
        schedule=schedule,
        time_limit=time_limit,
        formulation=formulation,
    )
    return study.so_far(tuple(study.rows()))


class LagStudy(_PartStudy[nouns.Straggler]):
    """The same, row by row: `rows` yields each as soon as it is there, and may be left early.

    Parameters
    ----------
    problem, alpha, beta, lagging, schedule, time_limit, formulation
        As for `stragglers`.

    Raises
    ------
    ProblemError
        As for `stragglers`.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        alpha: float = 1.0,
        beta: float = 2.0,
        lagging: Collection[str] = nouns.PARTS,
        **plans: Unpack[Plans],
    ) -> None:
        # It refuses what is no factor.
        degradation.add_stragglers(problem.topology, (), alpha=alpha, beta=beta)
        self.alpha, self.beta = alpha, beta
        super().__init__(problem, lagging, **plans)

    def so_far(self, rows: Collection[nouns.Straggler]) -> nouns.Stragglers:
        """Return some of the rows as a table of its own."""
        return nouns.Stragglers(
            self.problem, self.alpha, self.beta, self.today, tuple(rows), self.result
        )

    def _row(self, part: nouns.Part) -> nouns.Straggler:
        slow = slowed(self.problem.topology, part, alpha=self.alpha, beta=self.beta)
        problem = replace(self.problem, topology=slow)
        best = optimum(problem)
        result, why = None, ""
        if self._planner is not None:
            result, why = self._planner.solved(problem)
        return nouns.Straggler(
            part=part,
            topology=slow,
            problem=problem,
            optimum=best,
            lost=1 - best.algbw / self.today.algbw,
            replayed=None if self.result is None else replayed(self.result, problem),
            result=result,
            why=why,
        )


def slowed(topology: Topology, part: nouns.Part, *, alpha: float, beta: float) -> Topology:
    """Return a cluster in which the one that stands for a part lags."""
    if part.kind == "link":
        src, dst = part.names
        ends = [each for each in ((src, dst), (dst, src)) if each in topology.link_index]
        # The others carry on: n links of which one takes beta times as long for a byte.
        together = part.parallel / (part.parallel - 1 + 1 / beta)
        return degradation.add_stragglers(topology, ends, alpha=alpha, beta=together)
    if part.kind == "host":
        [host] = part.names
        held = [each.name for each in topology.devices if each.host == host]
        return degradation.add_stragglers(topology, held, alpha=alpha, beta=beta)
    return degradation.add_stragglers(topology, part.names, alpha=alpha, beta=beta)
