"""When each send of a schedule starts and arrives, and whether links and limits can carry it.

The times are those that `ccl.schedule` defines. Over a link under a shared limit that binds (it
is below the sum of its links) a link cannot count on its full bandwidth, so there the bytes of a
send are spread evenly over its epochs: it must be held when its epoch begins and leaves when its
last epoch ends; the limit and the link itself are then kept in every epoch, and so over any window
of epochs. A link under a limit that is below its own bandwidth has the limit's. Links with windows
of less bandwidth are treated likewise; in an epoch that a window overlaps they have its share.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ccl.errors import ScheduleError
from ccl.problem import Problem
from ccl.schedule import Schedule, Send
from ccl.topology import Link
from ccl.verify.order import TOLERANCE, Order, Route
from ccl.verify.trees import trees
from ccl.verify.windows import Windows


class Timed(NamedTuple):
    """A send with its times in µs: when it must be held, and when it is there."""

    send: Send
    start: float
    end: float


class _Hop(NamedTuple):
    """One link that a transmission holds, by its number; everything in µs.

    It holds the link from `offset` after its start, for `busy`, which is at the full bandwidth of
    the link or of the tightest limit that it is under, and has left it `room` after the beginning
    of its epoch at the latest, which is that of so many epochs; on a link that is limited, then
    and not before.
    """

    link: int
    offset: float
    busy: float
    epochs: int
    room: float
    limited: bool


@dataclass(frozen=True, slots=True)
class _Crossing:
    """What a transmission of so many bytes does with its way; it holds each link once.

    `spare` is how many µs after the beginning of its epoch it can start at the latest. Of each
    send: which of the hops it waits for, how many µs after the common start it leaves its device,
    its alphas in µs, and where no limit binds, how many µs after the common start it is there.
    """

    nbytes: float
    hops: tuple[_Hop, ...]
    limited: bool
    spare: float
    own: tuple[tuple[int, ...], ...]
    lags: tuple[float, ...]
    latencies: tuple[float, ...]
    took: tuple[float, ...]


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
        self.slack = TOLERANCE * schedule.duration
        self.overload: ScheduleError | None = None
        self.trees = trees(problem, order)
        self.starts = [0.0] * len(order.sends)
        self.ends = [0.0] * len(order.sends)
        self._run()
        self.sends: Sequence[Timed] = list(map(Timed, order.sends, self.starts, self.ends))

    def _transmissions(self) -> Iterator[tuple[int, tuple[int, ...], _Crossing]]:
        """Yield, turn by turn, the epoch, the places of the sends that cross together, and how."""
        sizes = [chunk.size for chunk in self._problem.collective.chunks]
        in_tree = self.trees
        alone: dict[tuple[int, float, int], _Crossing] = {}
        together: dict[tuple[bool, tuple[int, ...], float, int], _Crossing] = {}
        # With windows the same way is another in another epoch.
        constant = not self._problem.windows
        for i, (send, way) in enumerate(zip(self._order.sends, self._order.way, strict=True)):
            nbytes = sizes[send.chunk] * send.fraction
            if i not in in_tree:
                one = way, nbytes, 0 if constant else send.epoch
                crossing = alone.get(one)
                if crossing is None:
                    crossing = self._laid((way,), nbytes, one[2], joins=False)
                    alone[one] = crossing
                yield send.epoch, (i,), crossing
                continue
            tree = in_tree[i]
            if tree.turn == i:
                ways = tuple([self._order.way[place] for place in tree.places])
                key = tree.joins, ways, nbytes, 0 if constant else send.epoch
                if key not in together:
                    together[key] = self._laid(ways, nbytes, key[3], joins=tree.joins)
                yield send.epoch, tree.places, together[key]

    def _run(self) -> None:
        """Give each send its times, and keep the first that its links cannot carry."""
        free = [0.0] * len(self._problem.topology.links)
        tau = self._schedule.epoch_duration
        for epoch, places, crossing in self._transmissions():
            start = begin = epoch * tau
            for hop in crossing.hops:
                start = max(start, free[hop.link] - hop.offset)
            if start > begin + crossing.spare + self.slack and self.overload is None:
                self.overload = self._overloaded(places, crossing, free)
            for hop in crossing.hops:
                free[hop.link] = start + hop.offset + hop.busy
            if crossing.limited:
                self._spread(places, crossing, begin=begin, start=start)
                continue
            for place, lag, took in zip(places, crossing.lags, crossing.took, strict=True):
                self.starts[place] = start + lag
                self.ends[place] = start + took

    def _spread(
        self, places: tuple[int, ...], crossing: _Crossing, *, begin: float, start: float
    ) -> None:
        """Give times to what crosses a link under a limit that binds."""
        left = [begin + hop.room if hop.limited else start + hop.busy for hop in crossing.hops]
        for place, own, lag, latency in zip(
            places, crossing.own, crossing.lags, crossing.latencies, strict=True
        ):
            self.starts[place] = begin + lag
            self.ends[place] = max(left[number] for number in own) + latency

    def _laid(self, ways: tuple[int, ...], nbytes: float, epoch: int, *, joins: bool) -> _Crossing:
        """Lay out a way, or several that part or join, for so many bytes and an epoch."""
        topology = self._problem.topology
        routes = [[topology.link(*ends) for ends in pairwise(self._route(way))] for way in ways]
        alphas = [sum(link.alpha for link in links) for links in routes]
        longest = max(alphas)
        lags = [longest - alpha if joins else 0.0 for alpha in alphas]
        hops: dict[tuple[str, str], _Hop] = {}
        for links, lag in zip(routes, lags, strict=True):
            offset = lag
            for link in links:
                if link.ends not in hops:
                    hops[link.ends] = self._hop(link, nbytes, epoch, offset=offset)
                offset += link.alpha
        number_of = {ends: i for i, ends in enumerate(hops)}
        every = tuple(range(len(hops)))
        held = tuple(hops.values())
        own = [every if joins else tuple(number_of[e.ends] for e in links) for links in routes]
        latencies = [longest] * len(ways) if joins else alphas
        return _Crossing(
            nbytes=nbytes,
            hops=held,
            limited=any(hop.limited for hop in held),
            spare=min(hop.room - hop.busy for hop in held),
            own=tuple(own),
            lags=tuple(lags),
            latencies=tuple(latencies),
            took=tuple(
                max(held[number].busy for number in those) + latency
                for those, latency in zip(own, latencies, strict=True)
            ),
        )

    def _hop(self, link: Link, nbytes: float, epoch: int, *, offset: float) -> _Hop:
        """Make a hop that begins so many µs after a transmission of an epoch."""
        limits = self._limited.get(link.ends, [])
        tau = self._schedule.epoch_duration
        busy = nbytes * max([link.beta, *(1e-3 / each for each in limits)])
        epochs = max(1, math.ceil(busy / tau - TOLERANCE))
        slowed = link.ends in self._windows.links
        if slowed:
            first = epoch + math.floor(offset / tau + TOLERANCE)
            epochs = self._windows.epochs(link, nbytes, epochs, first=first)
        number = self._problem.topology.link_index[link.ends]
        return _Hop(number, offset, busy, epochs, epochs * tau, slowed or bool(limits))

    def _route(self, way: int) -> Route:
        return self._order.routes[way]

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
        loads = self._loads()
        tau = self._schedule.epoch_duration
        caps = [(limit.name, limit.links, limit.bandwidth, False) for limit in self._limits]
        for ends in loads:
            link = self._problem.topology.link(*ends)
            caps.append((str(link), (ends,), link.bandwidth, ends in self._windows.links))
        found = []
        for name, links, bandwidth, slowed in caps:
            totals: defaultdict[int, float] = defaultdict(float)
            for ends in links:
                for epoch, load in loads.get(ends, {}).items():
                    totals[epoch] += load
            for epoch, total in totals.items():
                share = self._windows.share(links[0], epoch) if slowed else 1.0
                room = bandwidth * 1e3 * tau * share
                if total > room * (1 + TOLERANCE):
                    found.append((epoch, name, total, room))
        if not found:
            return None
        epoch, name, total, room = min(found)
        msg = (
            f"epoch {epoch}: {name} carries {total:g} bytes, spread over the epochs of each send, "
            f"and its limit is {room:g} in an epoch; move a send to another epoch"
        )
        time = epoch * tau
        return ScheduleError(msg, where=name, time=time, epoch=epoch)

    def _loads(self) -> dict[tuple[str, str], defaultdict[int, float]]:
        """Sum up the bytes of each limited link in each epoch."""
        loads: defaultdict[tuple[str, str], defaultdict[int, float]] = defaultdict(
            lambda: defaultdict(float)
        )
        if not self._limits and not self._problem.windows:
            return loads
        tau = self._schedule.epoch_duration
        for first, _, crossing in self._transmissions():
            for hop in crossing.hops:
                if hop.limited:
                    late = first + math.floor(hop.offset / tau + TOLERANCE)
                    ends = self._problem.topology.links[hop.link].ends
                    for epoch in range(late, late + hop.epochs):
                        loads[ends][epoch] += crossing.nbytes / hop.epochs
        return loads
