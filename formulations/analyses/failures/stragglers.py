"""What every straggler costs, one of each class that symmetries exchange.

Reference for the factors: TE-CCL (SIGCOMM 2024), section 5.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from time import monotonic

from ccl.degradation import straggling
from ccl.problem import Problem
from ccl.result import Result
from ccl.topology import Topology
from formulations.analyses.best_rate import Optimum, optimum
from formulations.analyses.failures.nouns import Straggler, Stragglers
from formulations.analyses.failures.parts import PARTS, Part, parts_of
from formulations.analyses.failures.replays import Planner, replayed
from formulations.analyses.failures.study import AUTO, refuse_windows


def stragglers(
    problem: Problem,
    *,
    alpha: float = 1.0,
    beta: float = 2.0,
    lagging: Collection[str] = PARTS,
    schedule: bool = False,
    time_limit: float | None = None,
    formulation: str = AUTO,
) -> Stragglers:
    """Say what every single straggler costs, and with plans what re-planning wins.

    Parameters
    ----------
    problem
        A cluster and what runs on it.
    alpha, beta
        Factors of the latency and of the time per byte of all links of what lags; of parallel
        links one lags, and data spreads over all of them as their bandwidths allow.
    lagging
        Kinds of parts, of `formulations.analyses.failures.parts.PARTS`.
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
    rows = tuple(study.rows())
    return study.so_far(rows)


class LagStudy:
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
        lagging: Collection[str] = PARTS,
        schedule: bool = False,
        time_limit: float | None = None,
        formulation: str = AUTO,
    ) -> None:
        refuse_windows(problem)
        straggling(problem.topology, (), alpha=alpha, beta=beta)  # it refuses what is no factor
        self.problem = problem
        self.alpha, self.beta = alpha, beta
        self.today: Optimum = optimum(problem)
        """The best steady state with nothing lagging."""
        self.parts: tuple[Part, ...] = parts_of(problem, lagging, latencies=schedule)
        """What lags, one row each."""
        self.result: Result | None = None
        """Today's plan, once `rows` has begun; None where none is asked for or found."""
        until = None if time_limit is None else monotonic() + time_limit
        self._planner = Planner(formulation, until, len(self.parts) + 1) if schedule else None

    def rows(self) -> Iterator[Straggler]:
        """Yield a row for each of `parts`."""
        if self._planner is not None:
            self.result, _ = self._planner.solved(self.problem)
        for part in self.parts:
            yield self._row(part)

    def so_far(self, rows: Collection[Straggler]) -> Stragglers:
        """Return some of the rows as a table of its own."""
        return Stragglers(self.problem, self.alpha, self.beta, self.today, tuple(rows), self.result)

    def _row(self, part: Part) -> Straggler:
        slow = slowed(self.problem.topology, part, alpha=self.alpha, beta=self.beta)
        problem = replace(self.problem, topology=slow)
        best = optimum(problem)
        result, why = None, ""
        if self._planner is not None:
            result, why = self._planner.solved(problem)
        return Straggler(
            part=part,
            topology=slow,
            problem=problem,
            optimum=best,
            lost=1 - best.algbw / self.today.algbw,
            replayed=None if self.result is None else replayed(self.result, problem),
            result=result,
            why=why,
        )


def slowed(topology: Topology, part: Part, *, alpha: float, beta: float) -> Topology:
    """Return a cluster in which the one that stands for a part lags."""
    if part.kind == "link":
        src, dst = part.names
        ends = [each for each in ((src, dst), (dst, src)) if each in topology.link_index]
        # The others carry on: n links of which one takes beta times as long for a byte.
        together = part.parallel / (part.parallel - 1 + 1 / beta)
        return straggling(topology, ends, alpha=alpha, beta=together)
    if part.kind == "host":
        [host] = part.names
        held = [each.name for each in topology.devices if each.host == host]
        return straggling(topology, held, alpha=alpha, beta=beta)
    return straggling(topology, part.names, alpha=alpha, beta=beta)
