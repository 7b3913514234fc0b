"""N-1: what every single loss costs, one of each class that symmetries exchange."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from time import monotonic

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from ccl.degradation import on_what_is_left, without_devices, without_host, without_link
from ccl.errors import Infeasible, ProblemError
from ccl.problem import Problem
from ccl.result import Result
from ccl.topology import Topology
from formulations.analyses.best_rate import Optimum, optimum
from formulations.analyses.failures.nouns import Failures, Loss
from formulations.analyses.failures.parts import PARTS, Part, parts_of
from formulations.analyses.failures.replays import Planner, surviving

AUTO = "auto"


def failures(
    problem: Problem,
    *,
    losing: Collection[str] = PARTS,
    schedule: bool = False,
    time_limit: float | None = None,
    formulation: str = AUTO,
    both: bool = True,
) -> Failures:
    """Say what every single loss costs.

    Of each class of parts that symmetries exchange one stands for all: the best steady state
    without it is found and proved. A link that is lost is one physical link with both of its
    directions; of parallel links one is lost. A device is lost with its links, a host with all
    that it holds. When GPUs are lost, the collective runs over the ranks that are left, with the
    same size as nccl-tests defines it (`ccl.degradation.remaining`).

    Parameters
    ----------
    problem
        A cluster and what runs on it.
    losing
        Kinds of parts, of `formulations.analyses.failures.parts.PARTS`.
    schedule
        Whether a verified plan is made for today and after every loss, and it is told how much of
        today's plan a loss leaves.
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
    rows = tuple(study.rows())
    return Failures(problem, study.today, rows, study.result)


class Study:
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
        losing: Collection[str] = PARTS,
        schedule: bool = False,
        time_limit: float | None = None,
        formulation: str = AUTO,
        both: bool = True,
    ) -> None:
        refuse_windows(problem)
        self.problem = problem
        self.both = both
        self.today: Optimum = optimum(problem)
        """The best steady state with everything in place."""
        self.parts: tuple[Part, ...] = parts_of(problem, losing, both=both, latencies=schedule)
        """What is lost, one row each."""
        self.result: Result | None = None
        """Today's plan, once `rows` has begun; None where none is asked for or found."""
        until = None if time_limit is None else monotonic() + time_limit
        self._planner = Planner(formulation, until, len(self.parts) + 1) if schedule else None

    def rows(self) -> Iterator[Loss]:
        """Yield a row for each of `parts`."""
        if self._planner is not None:
            self.result, _ = self._planner.solved(self.problem)
        for part in self.parts:
            yield self._row(part)

    def so_far(self, rows: Collection[Loss]) -> Failures:
        """Return some of the rows as a table of its own."""
        return Failures(self.problem, self.today, tuple(rows), self.result)

    def _row(self, part: Part) -> Loss:
        left = without(self.problem.topology, part, both=self.both)
        problem, best, why = _what_is_left(self.problem, left)
        result = None
        if problem is not None and self._planner is not None:
            result, why = self._planner.solved(problem)
        elif self._planner is not None:
            self._planner.left -= 1
        return Loss(
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


def without(topology: Topology, part: Part, *, both: bool = True) -> Topology:
    """Return a cluster without the one that stands for a part."""
    if part.kind == "link":
        return without_link(topology, *part.names, both=both)
    if part.kind == "host":
        return without_host(topology, *part.names)
    return without_devices(topology, part.names)


def _what_is_left(problem: Problem, left: Topology) -> tuple[Problem | None, Optimum | None, str]:
    """Return the problem that is left with its optimum, or twice None and why there is none."""
    if len(left.ranks) < 2 <= len(problem.topology.ranks):
        only = f"only {left.ranks[0]} is left" if left.ranks else "no GPU is left"
        return None, None, f"{only}, and a collective needs two"
    try:
        made = on_what_is_left(problem, left)
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
        msg = (
            f"{problem.topology} has links with less bandwidth for a time, and so no steady state "
            "to compare with; leave out its windows"
        )
        raise ProblemError(msg)
