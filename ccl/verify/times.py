"""Times of a schedule: starts and arrivals of sends, and loads of links and limits in every epoch.

The times (`Clock`) are those that `ccl.plans` defines. Over a link under a shared limit that binds
(it is below the sum of its links) a link cannot count on its full bandwidth, so there the bytes of
a send are spread evenly over its epochs: it must be held when its epoch begins and leaves when its
last epoch ends; the limit and the link itself are then respected in every epoch, and so over any
window of epochs. A link under a limit that is below its own bandwidth has the limit's. Links with
windows of less bandwidth (`Windows`) are treated likewise; in an epoch that a window overlaps they
have its share.

`Loads` finds out whether limits, and links that are limited, carry what a schedule gives them in
every epoch. A send over many epochs is one entry however many these are: what a limit carries is
followed from where it changes to where it changes next.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ccl.errors import ScheduleError
from ccl.plans import Floats, Integers, Order, Schedule, Send
from ccl.problem import Problem, Window
from ccl.topology import Link
from ccl.verify.order import TOLERANCE, Stay, find_trees, occupy_limited, occupy_unlimited


class Windows:
    """The share of its bandwidth that each link has in each epoch."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self._tau = schedule.epoch_duration
        self._horizon = schedule.horizon
        self.links: defaultdict[Ends, list[Window]] = defaultdict(list)
        for window in problem.windows:
            for ends in window.links:
                self.links[ends].append(window)
        self._shares: dict[tuple[Ends, int], float] = {}

    def share(self, ends: Ends, epoch: int) -> float:
        """Return the least share of the windows that overlap an epoch, or 1."""
        key = ends, epoch
        if key not in self._shares:
            begin, end = epoch * self._tau, (epoch + 1) * self._tau
            self._shares[key] = min(
                (
                    window.share
                    for window in self.links.get(ends, ())
                    if window.begin < end * (1 - TOLERANCE) and window.end > begin + TOLERANCE * end
                ),
                default=1.0,
            )
        return self._shares[key]

    def changes(self, ends: Ends) -> list[int]:
        """Return the epochs that may have another share than those before them."""
        windows = self.links.get(ends, ())
        moments = {moment for each in windows for moment in (each.begin, each.end)}
        near = {math.floor(moment / self._tau) + k for moment in moments for k in range(-1, 3)}
        return sorted(epoch for epoch in near if 0 <= epoch < self._horizon)

    def epochs(self, link: Link, nbytes: float, least: int, *, first: int) -> int:
        """Count the epochs from `first` on of which each can carry an equal part of so many bytes.

        They are the fewest, from `least` on; `least` where no number suffices.
        """
        capacity = link.bandwidth * 1e3 * self._tau * (1 + TOLERANCE)
        changes = [epoch for epoch in self.changes(link.ends) if epoch > first]
        slowest = 1.0
        # From one change to the next the slowest epoch stays the same.
        for begin, end in pairwise((first, *changes, self._horizon)):
            slowest = min(slowest, self.share(link.ends, begin))
            if not slowest:
                break
            count = max(least, begin + 1 - first, math.ceil(nbytes / (slowest * capacity)))
            if first + count <= end:
                return count
        return least


Ends = tuple[str, str]


class Cap(NamedTuple):
    """A limit by its name: links, how many bytes pass in an epoch, and whether windows count."""

    name: str
    links: Sequence[Ends]
    capacity: float
    slowed: bool


class Excess(NamedTuple):
    """An epoch in which a limit carries too much: bytes, and how many fit."""

    epoch: int
    name: str
    total: float
    capacity: float


class Loads:
    """Bytes that links carry in each epoch."""

    def __init__(self) -> None:
        self._spread: defaultdict[Ends, list[tuple[int, int, float]]] = defaultdict(list)

    def add(self, ends: Ends, *, first: int, epochs: int, nbytes: float) -> None:
        """Spread bytes over a link evenly over epochs."""
        self._spread[ends].append((first, first + epochs, nbytes / epochs))

    def links(self) -> Iterable[Ends]:
        """Return the ends of all links that carry something."""
        return self._spread

    def excess(self, cap: Cap, windows: Windows) -> Excess | None:
        """Return the first epoch in which a limit carries too much."""
        rows = [row for ends in cap.links for row in self._spread.get(ends, ())]
        if not rows:
            return None
        begins, ends, share = (np.array(column) for column in zip(*rows, strict=True))
        moments = np.unique(np.concatenate([begins, ends]))
        if cap.slowed:
            changes = np.array(windows.changes(cap.links[0]), dtype=np.int64)
            inside = (changes > moments[0]) & (changes < moments[-1])
            moments = np.union1d(moments, changes[inside])
        more = np.zeros(len(moments))
        np.add.at(more, np.searchsorted(moments, begins), share)
        np.subtract.at(more, np.searchsorted(moments, ends), share)
        total = np.cumsum(more)
        capacity = np.full(len(moments), cap.capacity)
        if cap.slowed:
            capacity *= [windows.share(cap.links[0], epoch) for epoch in moments.tolist()]
        # What sums of many numbers are off by is no load.
        wrong = np.flatnonzero(total > capacity * (1 + TOLERANCE) + 1e-12 * float(total.max()))
        if not wrong.size:
            return None
        first = int(wrong[0])
        return Excess(int(moments[first]), cap.name, float(total[first]), float(capacity[first]))


class Timed(NamedTuple):
    """A send with its times in µs: when it must be held, and when it is there."""

    send: Send
    start: float
    end: float


class _Hop(NamedTuple):
    """One link that a transmission holds, by its number; everything in µs.

    It holds the link from `offset` after its start, for `busy`, which is at the full bandwidth of
    the link or of the tightest limit that it is under, and has left it `slot` after the
    beginning of its epoch at the latest. Where it is limited it is spread over so many `epochs`
    from the one that is `first` after its own.
    """

    link: int
    offset: float
    busy: float
    slot: float
    first: int
    epochs: int


@dataclass(frozen=True, slots=True)
class _Crossing:
    """The occupation of a path by a transmission of so many bytes; it holds each link once.

    `spare` is how many µs after the beginning of its epoch it can start at the latest. Of each
    send: how many µs after the common start it leaves its device and is there when no limit slows
    it down, and how many after the beginning of its epoch it is there where one may.
    """

    nbytes: float
    hops: tuple[_Hop, ...]
    limited: bool
    spare: float
    lags: tuple[float, ...]
    took: tuple[float, ...]
    spread: tuple[float, ...]


class Clock:
    """Exact times of all sends, in the order in which the schedule gives them to the links."""

    def __init__(self, problem: Problem, schedule: Schedule, order: Order) -> None:
        self._problem = problem
        self._schedule = schedule
        self._limits = [
            limit
            for limit in problem.topology.limits
            if limit.bandwidth
            < sum(problem.topology.link(*ends).bandwidth for ends in limit.links) * (1 - TOLERANCE)
        ]
        self._limited: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        for limit in self._limits:
            for ends in limit.links:
                self._limited[ends].append(limit.bandwidth)
        self._windows = Windows(problem, schedule)
        self._order = order
        self._known: dict[tuple[float, tuple[tuple[float, float], ...]], _Crossing] = {}
        self.slack = TOLERANCE * schedule.duration
        self.overload: ScheduleError | None = None
        self.trees = find_trees(problem, order)
        self._turns, self._kinds, self._crossings = self._laid_out()
        self.starts, self.ends = self._run()

    @cached_property
    def sends(self) -> Sequence[Timed]:
        """The sends with their times, in order."""
        return list(map(Timed, self._order.sends, self.starts.tolist(), self.ends.tolist()))

    def _laid_out(self) -> tuple[Integers, Integers, Sequence[_Crossing]]:
        """Return the send in whose place each transmission is, and which crossing it is."""
        order, chunks = self._order, self._problem.collective.chunks
        sizes = np.array([chunk.size for chunk in chunks], dtype=np.float64)
        amounts, amount = np.unique(sizes[order.chunks] * order.fractions, return_inverse=True)
        # With windows the same path takes another time in another epoch.
        constant = not self._problem.windows
        epochs = np.zeros(len(order), dtype=np.int64) if constant else order.epochs
        by_itself = np.ones(len(order), dtype=bool)
        by_itself[list(self.trees)] = False
        alone = np.flatnonzero(by_itself)
        columns = np.stack([each[alone] for each in (order.route_of, amount, epochs)])
        once, which = _distinct(columns)
        crossings = [
            self._laid_alone(path, float(amounts[nbytes]), epoch)
            for path, nbytes, epoch in once.T.tolist()
        ]
        kinds = np.zeros(len(order), dtype=np.int64)
        kinds[alone] = which
        known: dict[tuple[bool, tuple[int, ...], int, int], int] = {}
        for tree in {tree.turn: tree for tree in self.trees.values()}.values():
            place = tree.turn
            paths = tuple(order.route_of[list(tree.places)].tolist())
            key = tree.joins, paths, int(amount[place]), int(epochs[place])
            if key not in known:
                known[key] = len(crossings)
                nbytes = float(amounts[key[2]])
                crossings.append(self._laid(paths, nbytes, key[3], joins=tree.joins))
            kinds[place] = known[key]
            by_itself[place] = True
        turns = np.flatnonzero(by_itself)
        return turns, kinds[turns], crossings

    def _transmissions(self) -> Iterator[tuple[int, tuple[int, ...], _Crossing]]:
        """Yield, turn by turn, the epoch, the places of the sends that cross together, and how."""
        for place, kind in zip(self._turns.tolist(), self._kinds.tolist(), strict=True):
            yield self._order.sends[place].epoch, self._places(place), self._crossings[kind]

    def _places(self, turn: int) -> tuple[int, ...]:
        """Return the sends of a transmission."""
        return self.trees[turn].places if turn in self.trees else (turn,)

    def _run(self) -> tuple[Floats, Floats]:
        """Return when each send starts and is there; keep the first that its links cannot carry."""
        free = [0.0] * len(self._problem.topology.links)
        epochs = self._order.epochs[self._turns].astype(np.float64)
        begins = epochs * self._schedule.epoch_duration
        hops = [
            [(hop.link, hop.offset, hop.offset + hop.busy) for hop in each.hops]
            for each in self._crossings
        ]
        spare = [each.spare + self.slack for each in self._crossings]
        began = begins.tolist()
        for i, kind in enumerate(self._kinds.tolist()):
            start = begin = began[i]
            for link, offset, _ in hops[kind]:
                if (soonest := free[link] - offset) > start:
                    start = soonest
            if start > begin + spare[kind] and self.overload is None:
                turn = int(self._turns[i])
                self.overload = self._overloaded(self._places(turn), self._crossings[kind], free)
            for link, _, until in hops[kind]:
                free[link] = start + until
            began[i] = start
        return self._times(begins, np.array(began))

    def _times(self, begins: Floats, began: Floats) -> tuple[Floats, Floats]:
        """Return when sends start and are there, by when their epochs and transmissions begin."""
        limited = np.array([each.limited for each in self._crossings], dtype=bool)[self._kinds]
        lags, took, spread = (
            np.array([getattr(each, name)[0] for each in self._crossings])[self._kinds]
            for name in ("lags", "took", "spread")
        )
        # Over limited links it leaves with its epoch, and may be as late as its last.
        since = np.where(limited, begins, began)
        starts, ends = np.zeros(len(self._order)), np.zeros(len(self._order))
        starts[self._turns] = since + lags
        ends[self._turns] = np.maximum(began + took, begins + spread)
        for i in np.flatnonzero(np.isin(self._turns, list(self.trees))).tolist():
            crossing, places = self._crossings[self._kinds[i]], self._places(int(self._turns[i]))
            starts[list(places)] = since[i] + np.array(crossing.lags)
            ends[list(places)] = np.maximum(
                began[i] + np.array(crossing.took), begins[i] + np.array(crossing.spread)
            )
        return starts, ends

    def _laid_alone(self, path: int, nbytes: float, epoch: int) -> _Crossing:
        """Lay out a path; of many few differ in more than the names of their links."""
        topology = self._problem.topology
        links = [topology.link(*ends) for ends in pairwise(self._order.routes[path])]
        if any(each.ends in self._limited or each.ends in self._windows.links for each in links):
            return self._laid((path,), nbytes, epoch, joins=False)
        alike = nbytes, tuple([(each.alpha, each.bandwidth) for each in links])
        known = self._known.get(alike)
        if known is None:
            known = self._known[alike] = self._laid((path,), nbytes, epoch, joins=False)
        hops = [
            hop._replace(link=topology.link_index[each.ends])
            for hop, each in zip(known.hops, links, strict=True)
        ]
        return replace(known, hops=tuple(hops))

    def _laid(self, paths: tuple[int, ...], nbytes: float, epoch: int, *, joins: bool) -> _Crossing:
        """Lay out a path, or several that part or join, for so many bytes and an epoch."""
        topology, tau = self._problem.topology, self._schedule.epoch_duration
        routes = [[topology.link(*ends) for ends in pairwise(self._order.routes[i])] for i in paths]
        busy = {link.ends: self._busy(link, nbytes) for links in routes for link in links}
        slowed = any(ends in self._limited or ends in self._windows.links for ends in busy)
        alphas = [sum(link.alpha for link in links) for links in routes]
        lags = [max(alphas) - alpha if joins else 0.0 for alpha in alphas]
        if slowed:
            epochs = self._epochs(nbytes, epoch)
            free, stays = (
                occupy_limited(routes, busy, lags=lags, tau=tau, epochs=epochs, whole=whole)
                for whole in (False, True)
            )
        else:
            free = stays = occupy_unlimited(routes, busy, joins=joins)
            lags = [free[links[0].ends].lead + free[links[0].ends].wait for links in routes]
        hops = tuple(self._hop(stay) for stay in stays.values())
        ends = [links[-1].ends for links in routes]
        return _Crossing(
            nbytes=nbytes,
            hops=hops,
            limited=slowed,
            spare=min(hop.slot - hop.busy for hop in hops),
            lags=tuple(lags),
            took=tuple(_arrival(free[each]) for each in ends),
            spread=tuple(_arrival(stays[each]) if slowed else 0.0 for each in ends),
        )

    def _busy(self, link: Link, nbytes: float) -> float:
        limits = self._limited.get(link.ends, [])
        return nbytes * max([link.beta, *(1e-3 / each for each in limits)])

    def _epochs(self, nbytes: float, epoch: int) -> Callable[[Link, int, int], int | None]:
        """Return what counts the epochs of so many bytes on a link, for a send of an epoch."""

        def count(link: Link, first: int, least: int) -> int | None:
            if link.ends in self._windows.links:
                return self._windows.epochs(link, nbytes, least, first=epoch + first)
            return least if link.ends in self._limited else None

        return count

    def _hop(self, stay: Stay) -> _Hop:
        tau = self._schedule.epoch_duration
        slot = max(1, math.ceil(stay.busy / tau - TOLERANCE)) * tau
        if stay.link.ends in self._windows.links:
            slot = stay.epochs * tau
        number = self._problem.topology.link_index[stay.link.ends]
        return _Hop(number, stay.lead + stay.wait, stay.busy, slot, stay.first, stay.epochs)

    def _overloaded(
        self, late: tuple[int, ...], crossing: _Crossing, free: Sequence[float]
    ) -> ScheduleError:
        """Make the error for the first transmission that does not leave in time."""
        send = self._order.sends[late[0]]
        last = max(crossing.hops, key=lambda hop: free[hop.link] - hop.offset).link
        rivals = [
            places
            for epoch, places, other in self._transmissions()
            if epoch == send.epoch and any(hop.link == last for hop in other.hops)
        ]
        link = str(self._problem.topology.links[last])
        time = send.epoch * self._schedule.epoch_duration
        msg = (
            f"epoch {send.epoch}: link {link} has {len(rivals)} sends and only "
            f"{rivals.index(late)} fit, so {send} does not leave in time; send it in another epoch"
        )
        return ScheduleError(msg, where=link, time=time, epoch=send.epoch)

    def excess(self) -> ScheduleError | None:
        """Return the first epoch in which a limit or a link under one carries too much."""
        if not self._limits and not self._problem.windows:
            return None
        loads = self._loads()
        topology, tau = self._problem.topology, self._schedule.epoch_duration
        caps = [
            Cap(limit.name, limit.links, limit.bandwidth * 1e3 * tau, slowed=False)
            for limit in self._limits
        ]
        for ends in loads.links():
            link, slowed = topology.link(*ends), ends in self._windows.links
            caps.append(Cap(str(link), (ends,), link.bandwidth * 1e3 * tau, slowed))
        found = [over for cap in caps if (over := loads.excess(cap, self._windows)) is not None]
        if not found:
            return None
        epoch, name, total, capacity = min(found)
        msg = (
            f"epoch {epoch}: {name} carries {total:g} bytes, spread over the epochs of each send, "
            f"and its limit is {capacity:g} in an epoch; move a send to another epoch"
        )
        time = epoch * tau
        return ScheduleError(msg, where=name, time=time, epoch=epoch)

    def _loads(self) -> Loads:
        """Sum up the bytes of each limited link."""
        loads, links = Loads(), self._problem.topology.links
        for epoch, _, crossing in self._transmissions():
            for hop in crossing.hops:
                if hop.epochs:
                    loads.add(
                        links[hop.link].ends,
                        first=epoch + hop.first,
                        epochs=hop.epochs,
                        nbytes=crossing.nbytes,
                    )
        return loads


def _distinct(columns: Integers) -> tuple[Integers, Integers]:
    """Return different columns of a table, and which of them each column is."""
    order = np.lexsort(columns)
    new = np.ones(columns.shape[1], dtype=bool)
    new[1:] = (columns[:, order[1:]] != columns[:, order[:-1]]).any(axis=0)
    which = np.empty(columns.shape[1], dtype=np.int64)
    which[order] = np.cumsum(new) - 1
    return columns[:, order[new]], which


def _arrival(stay: Stay) -> float:
    """Return the µs until the last byte has crossed a link, latency included."""
    return stay.lead + stay.until + stay.link.alpha
