"""When each send of a schedule starts and arrives, and whether links and limits can carry it.

The times are those that `ccl.schedule` defines. Over a link under a shared limit that binds (it
is below the sum of its links) a link cannot count on its full bandwidth, so there the bytes of a
send are spread evenly over its epochs: it must be held when its epoch begins and leaves when its
last epoch ends; the limit and the link itself are then kept in every epoch, and so over any window
of epochs. A link under a limit that is below its own bandwidth has the limit's.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ccl.errors import ScheduleError
from ccl.problem import Problem
from ccl.schedule import Schedule, Send
from ccl.topology import Link, Topology
from ccl.verify.trees import Route, trees

TOLERANCE = 1e-9
"""The only tolerance: of times as a share of the whole duration, of amounts as a share of a chunk
and of loads as a share of a limit."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A send with its times in µs: when it must be held, and when it is there."""

    send: Send
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class _Hop:
    """One link of a way or tree; `offset` is µs from the common start until it is held.

    `beta` is that of the link or of the tightest limit that it is under, in µs per byte.
    """

    link: Link
    beta: float
    offset: float
    limited: bool


@dataclass(frozen=True, slots=True)
class _Way:
    """The links that one transmission holds, each once, and what they mean for its sends.

    Of each send: which of the links it waits for, the µs after the common start at which it
    leaves its device, and the µs of alphas from the common start until it is there.
    """

    hops: tuple[_Hop, ...]
    own: tuple[tuple[int, ...], ...]
    lags: tuple[float, ...]
    latencies: tuple[float, ...]
    limited: bool


class Clock:
    """Exact times of all sends, in the order in which the schedule gives them to the links."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
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
        self._ways: dict[tuple[bool, tuple[Route, ...]], _Way] = {}
        self.slack = TOLERANCE * schedule.duration
        self.overload: ScheduleError | None = None
        self._ordered = sorted(schedule.sends, key=lambda send: send.epoch)
        self.trees = trees(problem, self._ordered)
        self.sends: Sequence[Timed] = self._run()

    def _transmissions(self) -> Iterator[tuple[tuple[int, ...], _Way]]:
        """Yield the places of the sends that cross together, and their way, turn by turn."""
        for i, send in enumerate(self._ordered):
            tree = self.trees.get(i)
            if tree is None:
                yield (i,), self._way((send,), joins=False)
            elif tree.turn == i:
                sends = tuple(self._ordered[place] for place in tree.places)
                yield tree.places, self._way(sends, joins=tree.joins)

    def _run(self) -> list[Timed]:
        """Give each send its times, and keep the first that its links cannot carry."""
        free: defaultdict[tuple[str, str], float] = defaultdict(float)
        timed: dict[int, Timed] = {}
        for places, way in self._transmissions():
            send = self._ordered[places[0]]
            begin = send.epoch * self._schedule.epoch_duration
            last = max(way.hops, key=lambda hop: free[hop.link.ends] - hop.offset)
            start = max(begin, free[last.link.ends] - last.offset)
            nbytes = self._nbytes(send)
            left = []
            for hop in way.hops:
                busy = nbytes * hop.beta
                deadline = begin + self._epochs(busy) * self._schedule.epoch_duration
                if start + busy > deadline + self.slack and self.overload is None:
                    self.overload = self._overloaded(places, link=last.link)
                free[hop.link.ends] = start + hop.offset + busy
                left.append(deadline if hop.limited else start + busy)
            if way.limited:
                start = begin
            for k, place in enumerate(places):
                end = max(left[number] for number in way.own[k]) + way.latencies[k]
                timed[place] = Timed(self._ordered[place], start + way.lags[k], end)
        return [timed[place] for place in range(len(timed))]

    def _nbytes(self, send: Send) -> float:
        return self._problem.collective.chunks[send.chunk].size * send.fraction

    def _epochs(self, busy: float) -> int:
        """Count the epochs that a transmission of `busy` µs needs when it starts with one."""
        return max(1, math.ceil(busy / self._schedule.epoch_duration - TOLERANCE))

    def _way(self, sends: tuple[Send, ...], *, joins: bool) -> _Way:
        routes = tuple((send.src, *send.via, send.dst) for send in sends)
        key = joins, routes
        if key not in self._ways:
            self._ways[key] = self._laid(routes, joins=joins)
        return self._ways[key]

    def _laid(self, routes: tuple[Route, ...], *, joins: bool) -> _Way:
        """Lay out a way, or several that part or join."""
        link = self._problem.topology.link
        ways = [[link(*ends) for ends in pairwise(route)] for route in routes]
        alphas = [sum(each.alpha for each in links) for links in ways]
        longest = max(alphas)
        lags = [longest - alpha if joins else 0.0 for alpha in alphas]
        hops: dict[tuple[str, str], _Hop] = {}
        own = []
        for links, lag in zip(ways, lags, strict=True):
            for i, each in enumerate(links):
                limits = self._limited[each.ends]
                offset = lag + sum(before.alpha for before in links[:i])
                beta = max([each.beta, *(1e-3 / bandwidth for bandwidth in limits)])
                hops.setdefault(each.ends, _Hop(each, beta, offset, bool(limits)))
        number = {ends: i for i, ends in enumerate(hops)}
        every = tuple(range(len(hops)))
        own = [every if joins else tuple(number[each.ends] for each in links) for links in ways]
        return _Way(
            tuple(hops.values()),
            tuple(own),
            tuple(lags),
            tuple([longest] * len(ways) if joins else alphas),
            any(hop.limited for hop in hops.values()),
        )

    def _overloaded(self, late: tuple[int, ...], *, link: Link) -> ScheduleError:
        """Make the error for the first transmission that does not leave in time."""
        send = self._ordered[late[0]]
        rivals = [
            places
            for places, way in self._transmissions()
            if self._ordered[places[0]].epoch == send.epoch
            and any(hop.link.ends == link.ends for hop in way.hops)
        ]
        time = send.epoch * self._schedule.epoch_duration
        msg = (
            f"epoch {send.epoch}: link {link} has {len(rivals)} sends and only "
            f"{rivals.index(late)} fit, so {send} does not leave in time; send it in another epoch"
        )
        return ScheduleError(msg, where=str(link), time=time, epoch=send.epoch)

    def excess(self) -> ScheduleError | None:
        """Return the first epoch in which a limit or a link under one carries too much."""
        loads = self._loads()
        caps = [(limit.name, limit.links, limit.bandwidth) for limit in self._limits]
        for ends in loads:
            link = self._problem.topology.link(*ends)
            caps.append((str(link), (ends,), link.bandwidth))
        found = []
        for name, links, bandwidth in caps:
            room = bandwidth * 1e3 * self._schedule.epoch_duration
            totals: defaultdict[int, float] = defaultdict(float)
            for ends in links:
                for epoch, load in loads.get(ends, {}).items():
                    totals[epoch] += load
            over = [epoch for epoch, total in totals.items() if total > room * (1 + TOLERANCE)]
            if over:
                first = min(over)
                found.append((first, name, totals[first], room))
        if not found:
            return None
        epoch, name, total, room = min(found)
        msg = (
            f"epoch {epoch}: {name} carries {total:g} bytes, spread over the epochs of each send, "
            f"and its limit is {room:g} in an epoch; move a send to another epoch"
        )
        time = epoch * self._schedule.epoch_duration
        return ScheduleError(msg, where=name, time=time, epoch=epoch)

    def _loads(self) -> dict[tuple[str, str], defaultdict[int, float]]:
        """Sum up the bytes of each limited link in each epoch."""
        loads: defaultdict[tuple[str, str], defaultdict[int, float]] = defaultdict(
            lambda: defaultdict(float)
        )
        for places, way in self._transmissions():
            if not way.limited:
                continue
            send = self._ordered[places[0]]
            nbytes = self._nbytes(send)
            for hop in way.hops:
                if not hop.limited:
                    continue
                late = math.floor(hop.offset / self._schedule.epoch_duration + TOLERANCE)
                epochs = self._epochs(nbytes * hop.beta)
                for epoch in range(send.epoch + late, send.epoch + late + epochs):
                    loads[hop.link.ends][epoch] += nbytes / epochs
        return loads


def check_ways(problem: Problem, schedule: Schedule) -> None:
    """Refuse sends that name what is not there, stop inside a way, or split what is whole.

    Raises
    ------
    ScheduleError
        At the first such send.
    """
    topology, chunks = problem.topology, problem.collective.chunks
    fine: set[tuple[str, tuple[str, ...], str]] = set()
    for send in sorted(schedule.sends, key=lambda send: send.epoch):
        broken = None
        if not 0 <= send.chunk < len(chunks):
            broken = send.src, f"there is no such chunk; they go from 0 to {len(chunks) - 1}"
        elif (send.src, send.via, send.dst) not in fine:
            broken = _way_broken(topology, send)
            fine.add((send.src, send.via, send.dst))
        if broken is None and send.fraction < 1:
            chunk = chunks[send.chunk]
            if chunk.reduced or len(chunk.destinations) > 1:
                broken = send.src, f"only {send.fraction:g} of it is sent; send the whole chunk"
        if broken is not None:
            where, what = broken
            time = send.epoch * schedule.epoch_duration
            msg = f"epoch {send.epoch}: {send}: {what}"
            raise ScheduleError(msg, where=where, time=time, epoch=send.epoch)


def _way_broken(topology: Topology, send: Send) -> tuple[str, str] | None:
    """Say where and why the devices of a send are not a way, or None."""
    for src, dst in send.hops:
        if (src, dst) not in topology.link_index:
            return f"{src}->{dst}", f"{topology} has no link {src}->{dst}; use links that exist"
    if len(set(send.hops)) < len(send.hops):
        return send.src, "it crosses a link twice; leave out the loop"
    for name in send.via:
        if topology.device(name).stores:
            return name, f"{name} stores what it receives; make it two sends"
    return None
