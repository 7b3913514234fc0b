"""Trials of matching links with chunks, with and without symmetry; the best plan counts.

`formulations.engines.kernels.matching` is one trial. `formulations.engines.list_scheduling.search`
puts reductions and all-reduces together from what is found here, as it does for list scheduling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ccl.errors import Infeasible
from formulations.core.shared_limits import binding
from formulations.engines.epoch_grid.arcs import no_way
from formulations.engines.kernels.arrays import State, Work, begin
from formulations.engines.kernels.matching import Rules, match
from formulations.engines.list_scheduling.multistart import Task, net_of
from formulations.engines.list_scheduling.search import MET, After, Finder, Side
from formulations.engines.list_scheduling.timed import TimedMoves

WORK = 20_000_000
"""Moves and chunks that all trials of one search may look at, a few seconds."""

SAME = 1e-9
"""Durations within this share of the longest are the same."""


@dataclass(frozen=True)
class Matcher(Finder):
    """Trials for one side after the other; `passes` are trials for each symmetry.

    Parameters
    ----------
    rarest
        Whether what fewest devices have goes first.
    wait
        Chance that a slower link lets its turn pass, in every other trial.
    """

    rarest: bool = True
    wait: float = 0.0

    def plans(
        self,
        side: Side,
        *,
        goal: float,
        found: Callable[[TimedMoves], bool],
        after: After | None = None,
        final: bool = True,
    ) -> None:
        """Hand over plans, each better than those before, until one is good enough.

        If they are `final`, they also have to be better than what the run has already.
        """
        task = side.task(after=after)
        symmetric = self.symmetry and not binding(side.moves.topology)
        known = self.run.best if final else None
        best = np.inf if known is None else known.makespan
        for each in [*(side.reduced(task) if symmetric else []), None]:
            if best <= goal * (1 + MET) or (best < np.inf and self.run.expired):
                return
            what = "without symmetry" if each is None else f"by a symmetry of {len(each.chunks)}"
            self.run.report(f"matching {what}")
            for plan, makespan in self._trials(
                task if each is None else each.task, best, whole=each is None
            ):
                best = makespan
                if found(plan if each is None else each.lifted(plan)):
                    return
                if best <= goal * (1 + MET):
                    return

    def _trials(
        self, task: Task, limit: float, *, whole: bool
    ) -> Iterator[tuple[TimedMoves, float]]:
        """Yield each plan that is better than those before, with its makespan in µs.

        What symmetry leaves of a task may have no plan: a way over two links that it exchanges
        would need one of them twice at a time.

        Raises
        ------
        Infeasible
            If no ways lead where chunks of the `whole` task have to be.
        """
        net = net_of(task)
        sizes, kind = np.unique(task.nbytes, return_inverse=True)
        work = Work(task.nbytes, kind.ravel(), task.rank, task.there, task.wants, task.free)
        delay = task.moves.delay(float(sizes[-1]))
        scale, spent = float(delay.max()), 0.0
        pace = np.unique(np.round(delay / scale / SAME), return_inverse=True)[1].ravel()
        for turn in range(self.passes):
            if spent > WORK or (turn and self.run.expired):
                return
            rules = Rules(
                seed=(self.seed + 1) * 1_000_003 + turn,
                pace=pace,
                rarest=self.rarest,
                wait=self.wait if turn % 2 else 0.0,
                step=float(delay.min()),
                limit=limit,
                scale=scale,
            )
            state = begin(net, work)
            makespan = match(net, work, rules, state)
            spent += float(state.tally[4])
            if not turn and limit == np.inf and makespan == np.inf:
                if whole:
                    raise Infeasible(no_way(_missed(task, state)))
                return
            if makespan < limit * (1 - SAME):
                limit = makespan
                yield _sent(state), makespan


def _missed(task: Task, state: State) -> str:
    """Return the name of a device that wants a chunk and never had it."""
    lacking = np.argwhere(task.wants & ~np.isfinite(state.there))
    return task.moves.topology.devices[int(lacking[0][1])].name


def _sent(state: State) -> TimedMoves:
    many = int(state.tally[0])
    return TimedMoves(state.move[:many], state.chunk[:many], state.start[:many], state.group[:many])
