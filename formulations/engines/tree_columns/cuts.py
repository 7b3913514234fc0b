"""Search for the best cut: trees once, then numbers of pieces from the best one on to both sides.

Many small pieces come close to the best rate, few large ones are quick to fill and to drain the
trees; where shares of trees are twelfths, 24 pieces lose nothing and 16 do. So about each of a few
numbers the one is taken whose rounding costs least.

There are several kinds of plans for one number: with the weights of the linear program in several
styles, for all-reduce in two halves or undirected. They take turns, and one that is far behind
waits until the others have tried everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

import numpy as np

from ccl.errors import ScheduleError
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import PROOF_TOLERANCE
from ccl.symmetry import Symmetry
from ccl.topology import Topology, binding_limits
from formulations.core.preparing import clock, interpreting, ready
from formulations.core.run import Run
from formulations.engines.epoch_grid.relay_paths import let_through
from formulations.engines.list_scheduling.reordering import Pass
from formulations.engines.tree_columns import CROSSINGS, SENDS
from formulations.engines.tree_columns.exchanges import Beginning, Exchange, exchanged
from formulations.engines.tree_columns.heads_tails import Cut, HeadsAndTails, Near, Weights
from formulations.engines.tree_columns.patterns import Pattern
from formulations.engines.tree_columns.pieces import Jobs, Pieces, images_apart
from formulations.engines.tree_columns.routes import Routes
from formulations.engines.tree_columns.task import Task

AS_WRITTEN = 3_000
"""Crossings at most where searches are as they are written, while they are being compiled."""

COUNTS = (1, 2, 4, 8, 16, 24, 48, 96, 192)
"""Pieces of a shard that are tried, about."""

BEGIN = 24
"""The first of them."""

FIRST = 12_000
"""Crossings of all pieces together above which a number of pieces is not the first."""

WORTH = 2e-3
"""By what share of the best plan the linear program must promise a better one."""

MOST_WORK = 30_000_000
"""Sends and waits together that would take two gigabytes. If hundreds of GPUs send to all others
directly, each of what spreads a sum waits for all that it is made of."""

BEHIND = 1.05
"""How far behind the best a family of plans waits for the others."""

FAR, RISING = 1.2, 1.3
"""How far behind the best a kind of plans waits for the others; and one that began with few pieces
and is better with more."""

FAVOUR = 3
"""How many times as many pieces are tried of the best kind."""

SOON_SHARE, TURNS_SHARE = 0.25, 0.5
"""Of the time, after which plans are changed piece by piece where weights promise more: for a while
if the best is among them, and until none gains."""

LATENCY = 0.15
"""Share that latency takes of what is proved, from which on trees matter as much as pieces."""

TRIED, CHANGED = 4, 250
"""Plans that are changed piece by piece at most, of about so many crossings for each second."""

NAMED = 4.5
"""How often longer verifying takes where sends name ranks, as long as none was timed."""

USUAL = 1e-5
"""Seconds that verifying takes for each send, as long as none was timed: plans of more than five
thousand took 6 to 16 µs."""

LEARNING, SLIGHTLY, LONGEST = 0.12, 0.3, 0.8
"""Share of the time left that verifying the first plan may take, after which that is known; that
verifying names may take for a slight gain; and verifying any plan where another is known."""

OVERTAKING = 1.06
"""How far behind the best a plan over switches is replayed: it may be quicker than passes say."""

PATIENCE, CHANGING, MUCH = 1.0, 5.0, 0.03
"""How often longer than verifying a plan takes it waits for a better one; while pieces take other
trees, which makes better ones all the time; and the share from which on a gain waits no longer."""


@dataclass
class Limits:
    """When to stop, and the best plan that is not verified yet.

    Verifying and replaying a plan of many sends takes longer than finding the next one. So only
    the first is verified at once, if nobody else has a plan, and what meets the bound; of the
    others the best, when that took a share of the time since, and at the end.

    Parameters
    ----------
    deadline
        On the clock of `formulations.core.preparing`.
    run
        Takes the plans.
    """

    deadline: float
    run: Run
    waiting: Waiting | None = field(default=None, init=False)
    since: float | None = field(default=None, init=False)
    begun: float = field(default_factory=clock, init=False)
    rates: dict[bool, float] = field(default_factory=dict, init=False)
    named: set[bool] = field(default_factory=set, init=False)
    changing: dict[object, Exchange] = field(default_factory=dict, init=False)
    exchanged: float = field(default=0.0, init=False)  # the share at which that was begun last

    @property
    def left(self) -> float:
        """Seconds, but for what verifying the plan that waits takes."""
        return max(0.0, self.deadline - clock() - self._expected)

    def reached(self) -> bool:
        """Return whether to stop: a plan is good enough, or the time is over."""
        return self.run.enough or self.run.over() or self.left == 0

    def beaten(self, time: float, share: float = 1e-9) -> bool:
        """Return whether what takes so many µs is not better than the best, by a share of it."""
        return time >= self._least * (1 - share)

    @property
    def _least(self) -> float:
        """µs of the best plan, verified or not."""
        return self.known if self.waiting is None else min(self.known, self.waiting.time)

    def keep(self, found: Beginning) -> None:
        """Keep a plan whose pieces may take other trees: the quickest of its kind."""
        if found.small and not self.shared:
            own = Exchange(found)
            known = self.changing.setdefault(found.kind, own)
            self.changing[found.kind] = min(known, own, key=lambda each: each.least)

    def exchange_in_time(self) -> None:
        """Change the quickest plans piece by piece, if it is time and worth it.

        Where latency counts little, more pieces gain more.
        """
        share = (clock() - self.begun) / max(self.deadline - self.begun, 1e-9)
        able = self._changeable if self.run.latency >= LATENCY else []
        if able and self.exchanged < TURNS_SHARE <= share:
            self.exchanged = TURNS_SHARE
            self.exchange()
        best = any(each.least <= self._least * (1 + WORTH) for each in able)
        if best and self.exchanged < SOON_SHARE <= share:
            self.exchanged = SOON_SHARE
            self.exchange(briefly=True)

    @property
    def _changeable(self) -> list[Exchange]:
        """Those of which not too few changes fit into the time, nor fewer crossings than that."""
        worth = [each for each in self.changing.values() if each.worth(self._least)]
        fits = np.log(max(self.left, 1.0) * CHANGED)
        return sorted(worth, key=lambda each: abs(np.log(len(each.begun.plan[0])) - fits))[:TRIED]

    def exchange(self, *, briefly: bool = False) -> None:
        """Offer plans whose pieces take other trees, where that is worth it and time is left."""
        unsure = self.since is None or self._expected > self.left
        if unsure and self._changeable:
            self.verify(now=True)  # how long that takes is known then
        able = self._changeable
        if able and not self.reached():
            exchanged(
                able,
                offer=self._changed,
                left=lambda: self.left,
                over=self.reached,
                briefly=briefly,
            )

    def _changed(self, jobs: Jobs, cut: Cut, plan: Pass) -> None:
        slight = float(plan[1].max()) > self.known * (1 - MUCH)
        self.offer(jobs, cut, plan, patience=CHANGING if slight else PATIENCE)

    @property
    def known(self) -> float:
        """µs of the best plan that is verified, here or elsewhere; infinite before the first."""
        return self.run.best_known()

    def offer(
        self,
        jobs: Jobs,
        cut: Cut,
        plan: Pass,
        *,
        routes: Routes | None = None,
        overtaking: bool = False,
        patience: float = PATIENCE,
    ) -> float:
        """Offer a plan to the run, unless there is a better one; return its µs.

        With `overtaking` one that is hardly behind is replayed: passes give a link to what sets out
        first, though something that sets out later, from nearby, may be there before.
        """
        time = float(plan[1].max())
        doubted = overtaking and self._doubted(time, jobs)
        if self.beaten(time) and not doubted:
            return time
        bare = jobs.terms is not None and cut.staged not in self.named
        found = Waiting(time, jobs, cut, plan[0], routes or cut.model.routes, bare)
        if self.shared or doubted:
            time = self.run.replay(found.schedule(self.run.problem))
            if self.beaten(time):
                return time
        self.waiting = replace(found, time=time)
        self.verify(now=self.run.merit is not None or self._good(time), patience=patience)
        return time

    def _doubted(self, time: float, jobs: Jobs) -> bool:
        """Return whether a plan of so many µs might be the best, and is soon replayed."""
        takes = self._takes(jobs, bare=False)
        return time < OVERTAKING * self._least and takes <= LEARNING * (self.deadline - clock())

    def _good(self, time: float) -> bool:
        """Return whether so many µs are close enough to the bound."""
        close = 1 + max(self.run.gap or 0.0, PROOF_TOLERANCE)
        return time <= close * self.run.proof.makespan

    @cached_property
    def shared(self) -> bool:
        """Whether limits bind that links share, which passes do not know."""
        return bool(binding_limits(self.run.problem.topology))

    def verify(self, *, now: bool, patience: float = PATIENCE) -> None:
        """Let the run verify the plan that waits, if it is time."""
        waiting, run, begin = self.waiting, self.run, clock()
        if waiting is not None and waiting.time >= self.known:
            waiting = self.waiting = None
        if waiting is None or not (now or self._patient(begin, patience)):
            return
        run.met(waiting.cut.model.size)
        self.waiting = None
        if waiting.bare:
            self._without_terms(waiting)
        else:
            run.offer(waiting.schedule(run.problem))
        named, end = waiting.jobs.terms is not None and not waiting.bare, clock()
        self.rates[named] = (end - begin) / waiting.jobs.effort
        refused = waiting.bare and waiting.cut.staged in self.named
        if not refused:
            self.since = end
        if (now or refused) and (run.best is None or not run.over()):
            self.verify(now=now)

    def _patient(self, now: float, patience: float) -> bool:
        """Return whether what waits has waited long enough for a better one."""
        if self.since is None:
            soon = self._expected <= LEARNING * (self.deadline - now)
            if soon or self.known == inf:
                return True
        since = self.begun if self.since is None else self.since
        return now - since >= patience * self._expected

    def _without_terms(self, waiting: Waiting) -> None:
        """Offer a plan that names terms without them; it waits if it is quicker with them.

        Trees that are stars need no names: the sum of all may go to where a part of it came from.
        Once they are needed, or a plan is much slower without, they will be again: in stages, or
        along trees alone. Verifying names takes long, and what they gain a little has to be soon.
        """
        named = replace(waiting, bare=False)
        bare = replace(named, jobs=replace(waiting.jobs, terms=None))
        try:
            self.run.offer(bare.schedule(self.run.problem), doubted=True)
        except ScheduleError:
            self.named.add(waiting.cut.staged)
        good = self._good(waiting.time)
        share = 1.0 if good or not self.beaten(waiting.time, MUCH) else SLIGHTLY
        soon = self._takes(named.jobs, bare=False) < share * (self.deadline - clock())
        worth = not self.beaten(waiting.time, 1e-9 if good else WORTH)
        if worth and (soon or self.known == inf):
            self.named.add(waiting.cut.staged)
            self.waiting = named

    def too_many(self, jobs: Jobs) -> bool:
        """Return whether they are too many to be written down, or to be verified beside a plan."""
        if jobs.work > MOST_WORK:
            return True
        if self.known == inf and self.waiting is None:
            return False
        if self._too_long(jobs) and not self.rates:
            self.verify(now=True)  # what waits tells how long it takes
        return self._too_long(jobs)

    def _too_long(self, jobs: Jobs) -> bool:
        return LONGEST * (self.deadline - clock()) < self._takes(jobs, bare=not self.named)

    @property
    def _expected(self) -> float:
        """Seconds that verifying the plan that waits takes."""
        waiting = self.waiting
        return 0.0 if waiting is None else self._takes(waiting.jobs, bare=waiting.bare)

    def _takes(self, jobs: Jobs, *, bare: bool) -> float:
        """Return the seconds that verifying takes, first without names where it has any.

        As long as none was timed only that counts: then it is known whether names take too long.
        """
        once = self.rates.get(False, USUAL)
        if jobs.terms is None or (bare and not self.rates):
            return once * jobs.effort
        return (self.rates.get(True, NAMED * once) + once * bare) * jobs.effort


@dataclass(frozen=True)
class Waiting:
    """A plan that is not verified yet: its µs, what it is made of, and whether names may go."""

    time: float
    jobs: Jobs
    cut: Cut
    start: np.ndarray
    routes: Routes
    bare: bool

    def schedule(self, question: Problem) -> Schedule:
        """Return it as a schedule of a question, whose chunks it cuts into its pieces."""
        pieces = question.cut_into(self.cut.parts * len(question.collective.chunks))
        return self.jobs.schedule(pieces, self.routes, self.start, cut=self.cut.parts > 1)


@dataclass
class Kind:
    """Plans of one kind, by their numbers of pieces.

    Parameters
    ----------
    family
        Kinds of one family differ in their weights alone.
    attempt
        Offers a plan of so many pieces and returns its µs, infinite where there is none.
    left
        Numbers that are still to be tried.
    found
        µs of those that were.
    """

    family: int
    attempt: Callable[[int], float]
    left: list[int]
    found: dict[int, float] = field(default_factory=dict)

    @property
    def best(self) -> float:
        """µs of the best."""
        return min(self.found.values(), default=inf)

    @property
    def rises(self) -> bool:
        """Whether it began with few pieces, and more of them have been better so far."""
        tried = list(self.found)
        return bool(tried) and tried[-1] < BEGIN and self.found[tried[-1]] == self.best

    def step(self, first: int) -> None:
        """Try the number that is nearest to the best, or the first.

        Of two as near the smaller comes first, which takes less time, unless more have been better.
        """
        known = sorted([*self.left, *self.found])
        here = known.index(min(self.found, key=self.found.__getitem__, default=first))

        def order(number: int) -> tuple[int, int]:
            far = abs(known.index(number) - here)
            return far, -number if far == 1 and self.rises else number

        chosen = min(self.left, key=order)
        self.left.remove(chosen)
        self.found[chosen] = self.attempt(chosen)


def by_turns(kinds: Sequence[Kind], first: int, limits: Limits) -> None:
    """Let kinds of plans take turns, the best more often, families that are far behind last.

    Every family has a first turn. Where only few pieces could be tried first, the best kind of each
    goes on to more before others follow. One plan is made whether or not there is time left, unless
    there is one elsewhere.
    """
    while any(each.left for each in kinds):
        limits.verify(now=limits.left == 0)  # it may take less time than expected
        least = min(each.best for each in kinds)
        if least < inf or limits.known < inf:
            limits.exchange_in_time()
            if limits.reached():
                break
        able, alike = [each for each in kinds if each.left], least * (1 + 1e-9)
        order = [
            (
                _level(each, kinds, least),
                (sum(each.found) or first) / (FAVOUR if each.best <= alike else 1),
                place,
            )
            for place, each in enumerate(able)
        ]
        able[min(order)[-1]].step(first)
    limits.exchange()
    limits.verify(now=True)


def _level(kind: Kind, kinds: Sequence[Kind], least: float) -> int:
    """Return 0 for a family's first turn, 1 where few pieces rise, 2 for what is near, or 3."""
    family = [each for each in kinds if each.family == kind.family]
    if not any(each.found for each in family):
        return 0
    best = min(each.best for each in family)
    if kind.rises and kind.best == best <= RISING * least:
        return 1
    near = best <= BEHIND * least and (not kind.found or kind.best <= FAR * least)
    return 2 if near else 3


def most_crossings(order: int) -> int:
    """Return how many crossings there may be with so many images of each, they included."""
    if interpreting() and not ready():
        return AS_WRITTEN
    return max(CROSSINGS, min(SENDS, CROSSINGS * order))


def modelled(
    task: Task, patterns: Sequence[Pattern], *, nbytes: np.ndarray, pieces: int, limits: Limits
) -> HeadsAndTails:
    """Return the linear program of weights, the paths of the patterns having numbers."""
    routes = Routes(task.problem.topology)
    for each in patterns:
        for links in each.routes:
            routes.number(links)
    backend = limits.run.backend
    return HeadsAndTails(task, patterns, routes, nbytes=nbytes, pieces=pieces, backend=backend)


class Plans:
    """Plans along trees of one pool: weights by the number of pieces, and each cut but once."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._weights: dict[int, tuple[HeadsAndTails, Weights]] = {}
        self._known: dict[object, float] = {}

    def weighted(
        self, parts: int, made: Callable[[int], HeadsAndTails], *, least: float
    ) -> tuple[HeadsAndTails, Weights]:
        """Return the linear program for chunks in so many parts, and its best weights."""
        if parts not in self._weights:
            model = made(parts)
            self._weights[parts] = model, model.best(least)
        return self._weights[parts]

    def offered(
        self, near: Near, symmetry: Symmetry, pieces_of: Callable[[Cut, Symmetry | None], Pieces]
    ) -> float:
        """Offer the plan of the best cut, unless its weights promise none; return its µs."""
        limits = self.limits
        if limits.beaten(near.weights.time, WORTH):
            return near.weights.time
        cut = min(near.options(), key=lambda each: each.excess)
        return self.ordered(cut, symmetry, pieces_of, promised=near.weights.time)

    def ordered(
        self,
        cut: Cut,
        symmetry: Symmetry,
        pieces_of: Callable[[Cut, Symmetry | None], Pieces],
        *,
        promised: float,
    ) -> float:
        """Offer the plan of a cut in the best order, once; return its µs."""
        limits = self.limits
        if cut.key not in self._known:
            pieces = pieces_of(cut, images_apart(symmetry, cut.used))
            jobs, goal = pieces.named(*cut.pieces), limits.run.proof.makespan
            # Images of too few may stand for others.
            if len(jobs) > CROSSINGS or limits.too_many(jobs):
                self._known[cut.key] = inf
                return inf
            plan = jobs.best(cut.model.routes.transfers, goal=goal, over=limits.reached)
            limits.keep(Beginning(plan, pieces, cut, promised))
            self._known[cut.key] = limits.offer(jobs, cut, plan)
        return self._known[cut.key]


def able_at_once(topology: Topology, patterns: Iterable[Pattern]) -> list[Pattern]:
    """Return the patterns whose routes shared limits let a piece cross at once, all of its links.

    What parts or joins and is too much for a limit would cross one path after the other.
    """
    fits = let_through(topology)
    return [each for each in patterns if all(map(fits, each.routes))]
