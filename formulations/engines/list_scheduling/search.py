"""List scheduling of any collective: symmetric plans first, reductions backwards, sums in two.

A collective without sums is planned as it is. A sum to one rank is planned as the time-reversed
spreading on reversed links (`formulations.engines.reverse_time`) and read backwards. A sum that
several ranks want is added up first and spread from there; the spreading begins chunk by chunk as
soon as its sum is there, and link by link as soon as the adding up is done with it, so the two
overlap.

Each of these is planned for representatives under the largest group of automorphisms first, then
under the largest that moves all links as well, then without symmetry.

One trial of matching links with chunks is `formulations.engines.kernels.dispatch`; the best plan of
all trials counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import ClassVar

import numpy as np

from ccl.collective import Collective
from ccl.errors import Infeasible
from ccl.problem import Problem
from ccl.symmetry import Symmetry, symmetry_of
from ccl.topology import binding_limits
from formulations.bounds import initial_bounds
from formulations.core.run import Run
from formulations.engines.epoch_grid.relay_paths import no_path
from formulations.engines.kernels.arrays import State, Work, begin, stopping
from formulations.engines.kernels.dispatch import Rules, match
from formulations.engines.list_scheduling.multistart import Quotient, Task, net_of, passes, quotient
from formulations.engines.list_scheduling.reordering import reordered
from formulations.engines.list_scheduling.timed import (
    TimedTransfers,
    Transfers,
    backwards,
    ends,
    in_epochs,
    one_after,
    reverse_transfers,
    sizes_of,
    transfers_of,
)
from formulations.engines.reverse_time import Half, adding, halves

LARGE = 20_000
"""Transfers of a plan above which only the best of each search is verified and replayed."""

VERIFYING = 2e-5
"""Seconds that verifying and replaying a plan takes for each of its transfers, about."""

WORK = 40_000_000
"""Steps that all passes of one search may come to, some ten seconds."""

HUGE = 10 * WORK
"""Steps of one pass above which none is made where others find a plan."""

PARTING = 8
"""How often a test takes longer where transmissions part: many wait for one and look round."""

PACE = 6_000_000
"""Steps in a second, to be within a time limit."""

MOST_PLACES = 60_000_000
"""Pairs of a chunk and a device above which no plan is sought without symmetry if there is one."""

MET = 1e-9
"""A makespan within this share of the goal meets it."""


Turned = tuple[Symmetry, np.ndarray]
"""A group, and what its generators make of the chunks of a collective."""


@dataclass(frozen=True)
class Side:
    """A collective without sums on a topology, as arrays.

    Parameters
    ----------
    transfers
        What can be sent.
    collective
        What has to be.
    """

    transfers: Transfers
    collective: Collective

    @cached_property
    def nbytes(self) -> np.ndarray:
        """Bytes of each chunk."""
        return sizes_of(self.collective)

    def task(self, *, after: After | None = None, of: np.ndarray | None = None) -> Task:
        """Return what has to be done from the beginning, or after something else.

        Parameters
        ----------
        after
            What was planned before.
        of
            Numbers of the chunks that it is about, all by default.
        """
        topology = self.transfers.topology
        numbers = np.arange(len(self.nbytes)) if of is None else of
        place = np.array([topology.index[name] for name in topology.ranks])
        shape = len(numbers), len(topology.devices)
        there = np.full(shape, np.inf)
        wants = np.zeros(shape, dtype=bool)
        done = np.zeros(len(self.nbytes)) if after is None else after.done
        chunks = [self.collective.chunks[number] for number in numbers.tolist()]
        for row, (number, chunk) in enumerate(zip(numbers.tolist(), chunks, strict=True)):
            there[row, place[list(chunk.holders)]] = done[number]
            wants[row, place[list(chunk.destinations)]] = True
        links = len(topology.links)
        return Task(
            transfers=self.transfers,
            nbytes=self.nbytes[numbers],
            there=there,
            wants=wants,
            free=np.zeros(links) if after is None else after.free,
            resource=np.arange(links),
            rank=np.array([chunk.priority for chunk in chunks], dtype=float),
        )

    @property
    def steps(self) -> float:
        """About how often a pass tests whether a transfer helps a destination."""
        wanted = [len(chunk.destinations) for chunk in self.collective.chunks]
        return _steps(self.transfers, np.array(wanted, dtype=float))

    @property
    def places(self) -> int:
        """Pairs of a chunk and a device."""
        return len(self.nbytes) * len(self.transfers.topology.devices)

    def reduced(self, *, after: After | None = None) -> Iterator[Quotient]:
        """Yield what symmetry leaves of the task, the smallest first."""
        for symmetry, turned in self._symmetries():
            if after is not None and not np.allclose(after.done[turned], after.done, rtol=1e-9):
                continue
            found = quotient(lambda of: self.task(after=after, of=of), symmetry, turned)
            if found is not None:
                yield found

    def _symmetries(self) -> Iterator[Turned]:
        """Yield groups that leave the collective as it is, the second where the first won't do."""
        if self._free is not None:
            yield self._free
        if self._apart is not None:
            yield self._apart

    @cached_property
    def _free(self) -> Turned | None:
        """The largest group that leaves no GPU in its place."""
        return self._turned(symmetry_of(self.transfers.topology))

    @cached_property
    def _apart(self) -> Turned | None:
        """One that leaves no link in its place either, if that is another."""
        symmetry = symmetry_of(self.transfers.topology, links=True)
        same = self._free is not None and self._free[0].order == symmetry.order
        return None if same else self._turned(symmetry)

    def _turned(self, symmetry: Symmetry) -> Turned | None:
        turned = symmetry.turned(self.collective) if symmetry.order > 1 else None
        return None if turned is None else (symmetry, turned)


@dataclass(frozen=True)
class After:
    """What was planned before: when each chunk's sum is there, and each link is free, in µs."""

    done: np.ndarray
    free: np.ndarray


@dataclass
class Offers:
    """Takes plans in continuous time and offers them as schedules.

    Of large plans only the last is offered, as verifying and replaying them takes long.

    Parameters
    ----------
    run
        Where they are offered.
    transfers
        What they are made of.
    improves
        Whether they are put into a better order first.
    held
        A large plan that has not been offered yet.
    """

    run: Run
    transfers: Transfers
    improves: bool = True
    held: TimedTransfers | None = None

    def take(self, plan: TimedTransfers) -> bool:
        """Take a plan; return whether what was offered so far is good enough."""
        if len(plan) > LARGE:
            self.held = plan
            return False
        return self._offered(plan)

    def _offered(self, plan: TimedTransfers) -> bool:
        """Offer a plan, in a better order if that is wanted."""
        run, problem = self.run, self.run.problem
        if self.improves:
            after = VERIFYING * len(plan)
            plan = reordered(
                self.transfers,
                plan,
                sizes_of(problem.collective),
                goal=run.proof.makespan,
                over=lambda: run.expired or (run.left is not None and run.left < after),
            )
        return run.offer(in_epochs(problem, self.transfers, plan))

    def last(self) -> None:
        """Offer what is still held, unless a better plan is known elsewhere."""
        plan, self.held = self.held, None
        if plan is not None:
            stop = ends(self.transfers, plan, sizes_of(self.run.problem.collective))
            if float(stop.max()) < self.run.best_known():
                self.run.report("verifying and replaying the plan")
                self._offered(plan)


@dataclass(frozen=True)
class Finder:
    """Passes for one side after the other.

    Parameters
    ----------
    run
        Gives limits and hears news.
    seed
        Of the random numbers.
    passes
        Passes for each symmetry; fewer where they come to too much work.
    symmetry
        Whether symmetric plans are looked for.
    """

    improves: ClassVar[bool] = True
    """Whether its plans are put into a better order."""

    run: Run
    seed: int
    passes: int
    symmetry: bool

    def needless(self) -> bool:
        """Whether it is time to stop, and there is a plan, here or elsewhere."""
        return self.run.best_known() < np.inf and self.run.expired

    def plans(
        self,
        side: Side,
        *,
        goal: float,
        found: Callable[[TimedTransfers], bool],
        after: After | None = None,
        final: bool = True,
    ) -> None:
        """Hand over plans, each better than those before, until one is good enough.

        If they are `final`, they also have to be better than what the run has already.
        """
        symmetric = self.symmetry and not binding_limits(side.transfers.topology)
        reduced = side.reduced(after=after) if symmetric else iter(())
        known = self.run.best if final else None
        best = np.inf if known is None else known.makespan
        if best <= goal * (1 + MET) or self.needless():
            return
        settling = 0.0

        def left() -> float:
            return self.run.remaining - settling

        for number, each in enumerate(chain(reduced, (None,))):
            if self.needless() or (settling and (self.run.over() or left() < 0)):
                return
            most = WORK if best < np.inf else HUGE if self.run.grace < np.inf else np.inf
            if _work(side, each) > most:
                continue
            what = "without symmetry" if each is None else f"by a symmetry of {len(each.chunks)}"
            self.run.report(f"list scheduling {what}")
            task = side.task(after=after) if each is None else each.task
            tried = self._passes(each, task, turn=number, goal=goal, limit=best, left=left)
            for plan, makespan in tried:
                best, settling = makespan, VERIFYING * len(plan)
                # Before the next task is made, which may be a large one.
                if found(plan) or best <= goal * (1 + MET):
                    return

    def _passes(
        self,
        each: Quotient | None,
        task: Task,
        *,
        turn: int,
        goal: float,
        limit: float,
        left: Callable[[], float],
    ) -> Iterator[tuple[TimedTransfers, float]]:
        found = passes(
            task,
            seed=self.seed + turn,
            most=self.passes,
            steps=WORK if self.run.left is None else min(WORK, self.run.left * PACE),
            goal=goal,
            limit=limit,
            over=lambda: self.run.over() or left() < 0,
            left=left,
            first=lambda: self.run.grace - self.run.seconds,
        )
        for plan, makespan in found:
            yield (plan if each is None else each.lifted(plan)), makespan


def _work(side: Side, each: Quotient | None) -> float:
    """Return the steps of a pass, infinite where its arrays would take too much room."""
    if each is not None:
        return _steps(each.task.transfers, each.task.wants.sum(axis=1).astype(float))
    return side.steps if side.places <= MOST_PLACES else np.inf


def _steps(transfers: Transfers, wanted: np.ndarray) -> float:
    """Estimate how often a pass tests whether a transfer helps a destination.

    `wanted` is how many devices want each chunk.
    """
    degree = len(transfers) / max(1, len(np.unique(transfers.src)))
    parts = any(each.copies and not each.stores for each in transfers.topology.devices)
    return float((wanted**2).sum() * degree) * (PARTING if parts else 1)


def search(run: Run, *, seed: int, passes: int, symmetry: bool) -> None:
    """Offer list schedules of any collective to a run."""
    answer(Finder(run, seed, passes, symmetry))


def answer(finder: Finder) -> None:
    """Offer the plans of a finder, put together from its sides, to its run."""
    run = finder.run
    collective = run.problem.collective
    if not collective.reduces:
        transfers = transfers_of(run.problem.topology)
        offers = Offers(run, transfers, finder.improves)
        side = Side(transfers, collective)
        finder.plans(side, goal=run.bounds[0].makespan, found=offers.take)
    else:
        transfers = transfers_of(adding(run.problem).topology)
        offers = Offers(run, transfers, finder.improves)
        head, tail = halves(collective)
        added = (
            None if head is None else _added(finder, transfers, head, offers, alone=tail is None)
        )
        if tail is not None and (head is None or added is not None):
            _spread(finder, transfers, tail, offers, added=added)
    offers.last()


def _added(
    finder: Finder, transfers: Transfers, head: Half, offers: Offers, *, alone: bool
) -> TimedTransfers | None:
    """Plan what adds up, backwards; offer it if that is all, and return the best plan."""
    run, best = finder.run, None
    back = reverse_transfers(transfers_of(transfers.topology.reversed()))
    numbers = np.array(head.numbers)
    side = Side(back, head.collective.reversed())

    def keep(plan: TimedTransfers) -> bool:
        nonlocal best
        turned, _ = backwards(transfers, back, plan, side.nbytes)
        best = replace(turned, chunk=numbers[turned.chunk])
        return alone and offers.take(best)

    goal = run.bounds[0].makespan if alone else _least(transfers, head.collective)
    finder.plans(side, goal=goal, found=keep, final=alone)
    return best


def _spread(
    finder: Finder,
    transfers: Transfers,
    tail: Half,
    offers: Offers,
    *,
    added: TimedTransfers | None,
) -> None:
    """Plan what spreads, as it would be alone and put behind, then among what adds up."""
    run, best = finder.run, None
    numbers = np.array(tail.numbers)
    side = Side(transfers, tail.collective)

    def keep(plan: TimedTransfers) -> bool:
        nonlocal best
        best = replace(plan, chunk=numbers[plan.chunk])
        return False

    def join(plan: TimedTransfers) -> bool:
        return offers.take(one_after(added, replace(plan, chunk=numbers[plan.chunk])))

    after = None
    if added is not None:
        sizes = sizes_of(run.problem.collective)
        stop = float(ends(transfers, added, sizes).max())
        finder.plans(side, goal=_least(transfers, tail.collective), found=keep, final=False)
        if best is not None and offers.take(
            one_after(added, replace(best, start=best.start + stop))
        ):
            return
        after = _after(transfers, added, tail, sizes)
    finder.plans(side, goal=run.bounds[0].makespan, found=join, after=after)


def _least(transfers: Transfers, collective: Collective) -> float:
    """Return a lower bound in µs on a part."""
    problem = Problem(transfers.topology, collective)
    return initial_bounds(problem, quick=False, whole_chunks=True)[0].makespan


def _after(transfers: Transfers, added: TimedTransfers, tail: Half, sizes: np.ndarray) -> After:
    """Return when each chunk of the tail can begin and each link is free."""
    there = ends(transfers, added, sizes)
    done = np.zeros(len(sizes))
    np.maximum.at(done, added.chunk, there)
    free = np.zeros(len(transfers.topology.links))
    crossed = np.diff(transfers.first)[added.transfer]
    which = np.repeat(np.arange(len(added)), crossed)
    base = np.repeat(transfers.first[added.transfer] - (np.cumsum(crossed) - crossed), crossed)
    place = base + np.arange(len(which))
    nbytes = sizes[added.chunk][which]
    held = transfers.drag[place] + transfers.beta[place]
    gone = added.start[which] + transfers.lead[place] + nbytes * held
    np.maximum.at(free, transfers.link[place], gone)
    return After(done[np.array(tail.numbers)], free)


MATCH_WORK = 20_000_000
"""Transfers and chunks that all trials of one search may look at, a few seconds."""

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

    improves: ClassVar[bool] = False
    """They stay as the paper has them."""

    rarest: bool = True
    wait: float = 0.0

    def plans(
        self,
        side: Side,
        *,
        goal: float,
        found: Callable[[TimedTransfers], bool],
        after: After | None = None,
        final: bool = True,
    ) -> None:
        """Hand over plans, each better than those before, until one is good enough.

        If they are `final`, they also have to be better than what the run has already.
        """
        symmetric = self.symmetry and not binding_limits(side.transfers.topology)
        known = self.run.best if final else None
        best = np.inf if known is None else known.makespan
        for each in [*(side.reduced(after=after) if symmetric else []), None]:
            if best <= goal * (1 + MET) or (best < np.inf and self.run.expired):
                return
            what = "without symmetry" if each is None else f"by a symmetry of {len(each.chunks)}"
            self.run.report(f"matching {what}")
            task = side.task(after=after) if each is None else each.task
            for plan, makespan in self._trials(task, best, whole=each is None):
                best = makespan
                if found(plan if each is None else each.lifted(plan)):
                    return
                if best <= goal * (1 + MET):
                    return

    def _trials(
        self, task: Task, limit: float, *, whole: bool
    ) -> Iterator[tuple[TimedTransfers, float]]:
        """Yield each plan that is better than those before, with its makespan in µs.

        What symmetry leaves of a task may have no plan: a path over two links that it exchanges
        would need one of them twice at a time.

        Raises
        ------
        Infeasible
            If no paths lead where chunks of the `whole` task have to be.
        """
        net, run = net_of(task), self.run
        sizes, kind = np.unique(task.nbytes, return_inverse=True)
        work = Work(task.nbytes, kind.ravel(), task.rank, task.there, task.wants, task.free)
        delay = task.transfers.delay(float(sizes[-1]))
        scale, spent = task.transfers.scale(sizes), 0.0
        pace = np.unique(np.round(delay / scale / SAME), return_inverse=True)[1].ravel()
        first = stopping(lambda: run.grace - run.seconds)
        with stopping(lambda: run.remaining) as late, first as lost:
            for turn in range(self.passes):
                if spent > MATCH_WORK or (turn and run.expired):
                    return
                rules = Rules(
                    seed=(self.seed + 1) * 1_000_003 + turn,
                    pace=pace,
                    rarest=self.rarest,
                    wait=self.wait if turn % 2 else 0.0,
                    step=float(delay.min()),
                    limit=limit,
                    scale=scale,
                    stop=lost if limit == np.inf else late,
                )
                state = begin(net, work)
                makespan = match(net, work, rules, state)
                spent += float(state.tally[4])
                if not turn and limit == np.inf and makespan == np.inf:
                    if whole and not lost[0]:
                        raise Infeasible(no_path(_missed(task, state)))
                    return
                if makespan < limit * (1 - SAME):
                    limit = makespan
                    yield TimedTransfers.of(state), makespan


def _missed(task: Task, state: State) -> str:
    """Return the name of a device that wants a chunk and never had it."""
    lacking = np.argwhere(task.wants & ~np.isfinite(state.there))
    return task.transfers.topology.devices[int(lacking[0][1])].name
