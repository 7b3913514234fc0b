"""Exchanges: one piece after the other takes another tree, while the plan hardly gets slower.

Weights of trees say how much each carries, and a whole number of pieces of each is put into order
afterwards. What links then wait for one another the weights do not know: where latency counts, the
best order of the best weights takes a third longer than they promise. So the pieces of a plan are
changed one by one, by chance: most often one of those that are there last gets another tree, of the
pool or like its own but for one device, which hangs on another; of up to four such the one whose
links have least to send. What starts when in the plan stays as the order of all others, the new one
begins at any time that leaves it enough, and passes put all of them right. What is not slower is
the next plan, and at first what is a little slower, too, less and less: simulated annealing
(Kirkpatrick, Gelatt and Vecchi, Science 220, 1983) with thresholds drawn from an exponential
distribution.

Images of a piece under a group change with it. Where they stand for one another only paths count on
which they still meet on no link.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np

from formulations.core.preparing import clock
from formulations.engines.list_scheduling.reordering import Pass
from formulations.engines.tree_columns.heads_tails import Cut
from formulations.engines.tree_columns.patterns import Direction, Pattern, along_tree
from formulations.engines.tree_columns.pieces import Jobs, Pieces, routes_apart
from formulations.engines.tree_columns.routes import Ends, Links, ends_of

MOST, EVERY = 30_000, 400_000
"""Crossings of the pieces of a plan, and with all of their images, above which one pass, or writing
them down, takes too long to try hundreds."""

FAR = 1.15
"""How far behind the quickest plan one may be, to be changed."""

LATE = 0.999
"""Share of the makespan from which on arrivals are the last ones."""

SWAY = 1e-3
"""By what share of it a plan may get slower at first, on average."""

HOPELESS = 1.02
"""How often longer the first order of a changed plan may take, for more passes."""

ANY = 0.3
"""Share of changes that any piece has, not only one of the last."""

LIKE, DRAWN = 0.4, 4
"""Share of trees by chance that are like the one before; and of how many at most, by chance too,
that one is taken whose links have least to send."""

TURNS: dict[Direction, tuple[int, ...]] = {"out": (1,), "in": (-1,), "undirected": (1, -1)}
"""Whether data goes from a device to what hangs on it, the other way, or both."""

ROUNDS = 2
"""Pairs of passes over each changed plan, while they gain."""

TRIALS, BRIEF = 0.4, 0.15
"""Share of the time for all plans, before the one that has become the quickest goes on; and where
none does."""

STALLED = (400, 1_200, 3_600)
"""Changes in a row that make a plan no quicker, after which others have their turn, by rounds."""

IDLE = 0.1
"""Share of the time that makes a plan no quicker, after which others have their turn at first."""

GAIN = 1e-9
"""µs, or seconds, that count as none."""


@dataclass(frozen=True, eq=False)
class Beginning:
    """A plan to change.

    Parameters
    ----------
    plan
        Starts and arrivals.
    pieces
        What pieces along any pattern do.
    cut
        Which pieces there are.
    promised
        µs that the weights which they come from promise.
    """

    plan: Pass
    pieces: Pieces
    cut: Cut
    promised: float

    @property
    def time(self) -> float:
        """Its µs."""
        return float(self.plan[1].max())

    @property
    def small(self) -> bool:
        """Whether it has few crossings enough."""
        own, group = len(self.plan[0]), self.pieces.group
        return own <= MOST and own * (1 if group is None else group.order) <= EVERY

    @property
    def kind(self) -> object:
        """The same for plans of about as many crossings, all in stages or all along trees."""
        return len(self.plan[0]).bit_length(), self.cut.pieces[0][0].staged

    @cached_property
    def routes(self) -> set[Links]:
        """What pieces may cross."""
        found = {links for each in self.cut.model.patterns for links in each.routes}
        group = self.pieces.group
        return found if group is None else routes_apart(self.pieces.whole, group, found)

    @cached_property
    def others(self) -> list[list[Pattern]]:
        """The patterns of the pool that pieces of each demand may take."""
        model = self.cut.model
        found: list[list[Pattern]] = [[] for _ in range(int(model.demand.max()) + 1)]
        able = (model.alone < self.time) | (self.cut.many > 0)
        for place in np.flatnonzero(able).tolist():
            pattern = model.patterns[place]
            if self.routes >= {*pattern.routes}:
                found[pattern.demand].append(pattern)
        return found

    @cached_property
    def paths(self) -> dict[Ends, Links]:
        """A path that pieces may cross, between any two devices that one joins."""
        topology, found = self.cut.model.routes.topology, dict[Ends, Links]()
        for pattern in chain.from_iterable(self.others):
            if pattern.direction is not None:
                found |= {ends_of(topology, links): links for links in pattern.routes}
        return found


def hung(pattern: Pattern, begun: Beginning, dice: np.random.Generator) -> Pattern | None:
    """Return a tree of which a device, with all that hangs on it, hangs on another, by chance.

    None where it is no tree of paths, or there is nothing else to hang that on.
    """
    if pattern.direction is None:
        return None
    topology, turns = begun.cut.model.routes.topology, TURNS[pattern.direction]
    crossings = {ends_of(topology, links): links for links in pattern.routes}
    starts = zip((start for start, _ in crossings), pattern.ranks or (), strict=False)
    rank = {start: own for start, own in starts if own is not None}
    old, device = _turned([*crossings][int(dice.integers(len(crossings)))], turns[0])
    below = _beyond(crossings, old, device)
    able = [
        each
        for each in {end for ends in crossings for end in ends} - below
        if all(_turned((each, device), turn) in begun.paths for turn in turns)
    ]
    if not able:
        return None
    new = able[int(dice.integers(len(able)))]
    for turn in turns:
        ends = _turned((new, device), turn)
        del crossings[_turned((old, device), turn)]
        crossings[ends] = begun.paths[ends]
    return along_tree(crossings, pattern.direction, demand=pattern.demand, rank=rank or None)


def _turned(ends: Ends, turn: int) -> Ends:
    return ends if turn > 0 else (ends[1], ends[0])


def _beyond(crossings: Iterable[Ends], old: int, device: int) -> set[int]:
    """Return what hangs on a device of a tree that hangs on an old one, and these two."""
    near: defaultdict[int, set[int]] = defaultdict(set)
    for one, other in crossings:
        near[one].add(other)
        near[other].add(one)
    found, ahead = {old, device}, [device]
    while ahead:
        more = near[ahead.pop()] - found
        found |= more
        ahead += more
    return found


def _crowded(plan: Pass) -> float:
    """Return its µs, and a little more the more crossings are the last ones.

    Where several are, changing one makes no plan quicker, and yet is the way to one.
    """
    time = float(plan[1].max())
    return time * (1 + float((plan[1] >= LATE * time).mean()))


class Exchange:
    """A plan that changes piece by piece.

    Parameters
    ----------
    begun
        The first.
    """

    def __init__(self, begun: Beginning) -> None:
        self.begun, self.cut, self._pieces = begun, begun.cut, begun.pieces
        self._dice = np.random.default_rng(0)
        self._patterns, self._turns = begun.cut.pieces
        self._begins = begun.pieces.begins(self._patterns)
        self._plan, self._time, self.least = begun.plan, begun.time, begun.time
        self._crowded, self.stalled = _crowded(begun.plan), 0
        self._loads = self._loaded()

    def worth(self, known: float) -> bool:
        """Return whether changing it may pay off, where a plan of so many µs is known."""
        return self.least < FAR * known and min(known, self.least) > self.begun.promised

    def changed(self, heat: float) -> tuple[Jobs, Pass] | None:
        """Give one piece another tree, once; return the plan if none was as quick.

        A plan may get slower by `heat` on average, as a share of it.
        """
        dice, pieces, begins, (start, stop) = self._dice, self._pieces, self._begins, self._plan
        self.stalled += 1
        last = np.flatnonzero(stop >= (0.0 if dice.random() < ANY else LATE * self._time))
        place = int(np.searchsorted(begins, dice.choice(last), side="right")) - 1
        patterns = [*self._patterns]
        patterns[place] = self._other(patterns[place])
        part = pieces.part(patterns[place])
        free = max(0.0, self._time - float((part.head + part.tail).max()))
        own = part.head + dice.random() * free
        order = np.concatenate([start[: begins[place]], own, start[begins[place + 1] :]])
        jobs = pieces.jobs(patterns, self._turns)
        plan = self._ordered(jobs, order)
        time = float(plan[1].max())
        crowded = _crowded(plan)
        if crowded <= self._crowded * (1 + heat * dice.exponential()):
            self._plan, self._time, self._patterns, self._crowded = plan, time, patterns, crowded
            self._begins, self._loads = pieces.begins(patterns), self._loaded()
        if time >= self.least - GAIN:
            return None
        self.least, self.stalled = time, 0
        return replace(jobs, terms=pieces.terms(patterns)), plan

    def _other(self, pattern: Pattern) -> Pattern:
        """Return, of a few trees, the one whose links have least to send."""
        few = [self._drawn(pattern) for _ in range(1 + int(self._dice.integers(DRAWN)))]
        return min(few, key=lambda each: float(self._loads[self._pieces.part(each).route].sum()))

    def _drawn(self, pattern: Pattern) -> Pattern:
        """Return a tree like this one, or one of the pool."""
        near = hung(pattern, self.begun, self._dice) if self._dice.random() < LIKE else None
        if near is not None:
            return near
        pool = self.begun.others[pattern.demand]
        return pool[int(self._dice.integers(len(pool)))]

    def _loaded(self) -> np.ndarray:
        """Return how long the fullest link of each path takes for a byte of all, shape (paths,)."""
        transfers, group = self.cut.model.routes.transfers, self._pieces.group
        link = transfers.link if group is None else group.links.min(axis=0)[transfers.link]
        route = np.concatenate([self._pieces.part(each).route for each in self._patterns])
        many = np.bincount(route, minlength=len(transfers))
        loads = np.bincount(link, many[transfers.of_link] * transfers.beta)
        return np.maximum.reduceat(loads[link], transfers.first[:-1])

    def _ordered(self, jobs: Jobs, order: np.ndarray) -> Pass:
        """Return the plan in about this order, put right by passes where it is not hopeless."""
        passes = jobs.passes(self.cut.model.routes.transfers)
        found = passes.forward(order)
        for _ in range(ROUNDS):
            time = float(found[1].max())
            if time > HOPELESS * self._time:
                break
            again = passes.forward(-passes.backward(-found[1])[1])
            if again[1].max() >= time - GAIN:
                break
            found = again
        return found


def exchanged(
    exchanges: Sequence[Exchange],
    *,
    offer: Callable[[Jobs, Cut, Pass], object],
    left: Callable[[], float],
    over: Callable[[], bool],
    briefly: bool = False,
) -> None:
    """Offer plans whose pieces take other trees, each quicker than those before.

    Every plan is changed for a while, then that which has become the quickest, and when nothing
    makes that one quicker the others; then all once more, with more patience.

    Parameters
    ----------
    exchanges
        Plans to change.
    offer
        Takes what is quicker.
    left
        Seconds that are left.
    over
        Whether to stop.
    briefly
        Whether each is only changed for a little while.
    """
    start, span = clock(), max(left(), GAIN)

    def goes_on(exchange: Exchange, until: float, stalled: int) -> None:
        gained = 0.0
        while exchange.stalled < stalled and not over():
            done = (clock() - start) / span
            gained = gained or done
            if done >= until or done - gained > IDLE * stalled / STALLED[0]:
                break
            found = exchange.changed(SWAY * max(0.0, 1 - done))
            if found is not None:
                gained = done
                offer(found[0], exchange.cut, found[1])

    for turn, each in enumerate(exchanges, start=1):
        goes_on(each, turn * (BRIEF if briefly else TRIALS) / len(exchanges), STALLED[0])
    for stalled in () if briefly else STALLED:
        for each in sorted(exchanges, key=lambda each: each.least):
            goes_on(each, np.inf, stalled)
