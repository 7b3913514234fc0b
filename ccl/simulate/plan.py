"""What a schedule says about order: when it means each send to go, and what each waits for.

The replay keeps this and forgets the epochs. A send waits for

* of a whole chunk, the arrival that the schedule relies on;
* of a reduced chunk, every contribution that the schedule has there before the send starts;
* of a part of a chunk, as many of the parts in order of arrival as make up what has left so far
  and leaves now;
* from a device that cannot store, everything that the schedule sends on in the same epoch. Such
  a device keeps the order of the plan and so may queue at its exits, as real switches do.

All of these are there by the time at which the schedule starts the send.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ccl.problem import Problem
from ccl.schedule import Schedule, Send
from ccl.simulate.ways import Way, Ways, together
from ccl.timeline import Transfer
from ccl.topology import SharedLimit

SAME_MOMENT = 1e-9
"""Times closer than this share of the duration are one moment; likewise shares of a chunk."""

_Moments = list[tuple[float, int]]
"""Times in µs, each with the place of a send."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """A transmission: one send, or several that cross links together.

    Parameters
    ----------
    way
        Its links.
    nbytes
        Bytes that it carries over each.
    sends
        Places in the plan of its sends.
    send
        The first of them.
    """

    way: Way
    nbytes: float
    sends: tuple[int, ...]
    send: Send


@dataclass(frozen=True, slots=True)
class Planned:
    """A send, and when the schedule starts it and has it there, in µs.

    Parameters
    ----------
    send
        The send.
    crossing, member
        Place of its transmission, and its own place in that.
    start, end
        When it leaves its device and when it has arrived, by the schedule.
    duration
        How many µs after the common start of the transmission it is there, when nothing slows it
        down.
    """

    send: Send
    crossing: int
    member: int
    start: float
    end: float
    duration: float


@dataclass(frozen=True, slots=True)
class Plan:
    """Transmissions in the order in which they are given to their links, and all sends.

    `starts` are the common starts of the transmissions by the schedule, in µs.
    """

    crossings: Sequence[Crossing]
    starts: Sequence[float]
    sends: Sequence[Planned]


def held_back(problem: Problem, plan: Plan) -> list[float]:
    """Return the µs before which each transmission must not start.

    What a limited buffer is to receive comes no earlier than the schedule says, since room for it
    is made by what the schedule lets leave before; everything else may start at once.
    """
    full = {
        each.name
        for each in problem.topology.devices
        if each.stores and each.buffer_bytes is not None
    }
    return [
        start if any(plan.sends[place].send.dst in full for place in each.sends) else 0.0
        for each, start in zip(plan.crossings, plan.starts, strict=True)
    ]


def plan_sends(problem: Problem, schedule: Schedule, limits: Sequence[SharedLimit]) -> Plan:
    """Return what crosses links, in the order in which it is given to them.

    Over links under `limits` a send takes the whole of its epochs, as in `ccl.verify`.
    """
    caps: dict[tuple[str, str], float] = {}
    for limit in limits:
        for ends in limit.links:
            caps[ends] = min(limit.bandwidth, caps.get(ends, limit.bandwidth))
    sizes = [chunk.size for chunk in problem.collective.chunks]
    free = [0.0] * len(problem.topology.links)
    ways = Ways(problem, caps)
    sends = sorted(schedule.sends, key=lambda send: send.epoch)
    crossings: list[Crossing] = []
    starts: list[float] = []
    planned: dict[int, Planned] = {}
    for group, joins in together(problem, sends):
        send = sends[group[0]]
        routes = tuple((sends[i].src, *sends[i].via, sends[i].dst) for i in group)
        way = ways.of(routes, joins=joins)
        nbytes = sizes[send.chunk] * send.fraction
        start, left = _given(schedule, send.epoch, way=way, nbytes=nbytes, free=free)
        for member, i in enumerate(group):
            brings = way.brings(member)
            latency = way.latency[member]
            planned[i] = Planned(
                sends[i],
                len(crossings),
                member,
                start + way.lags[member],
                max(left[k] for k in brings) + latency,
                max(nbytes * way.hops[k].beta for k in brings) + latency,
            )
        crossings.append(Crossing(way, nbytes, group, send))
        starts.append(start)
    return Plan(crossings, starts, [planned[i] for i in range(len(sends))])


def _given(
    schedule: Schedule, epoch: int, *, way: Way, nbytes: float, free: list[float]
) -> tuple[float, list[float]]:
    """Give links to a transmission; return its start, and when it has left each link."""
    tau = schedule.epoch_duration
    begin = start = epoch * tau
    for hop in way.hops:
        start = max(start, free[hop.link] - hop.offset)
    left = []
    held = start
    for hop in way.hops:
        busy = nbytes * hop.beta
        free[hop.link] = start + busy + hop.offset
        if hop.limited:
            left.append(begin + epochs_of(schedule, busy) * tau)
            held = begin
        else:
            left.append(start + busy)
    return held, left


def epochs_of(schedule: Schedule, busy: float) -> int:
    """Count the epochs that a transmission of `busy` µs needs when it starts with one."""
    return max(1, math.ceil(busy / schedule.epoch_duration - SAME_MOMENT))


def needs_of(problem: Problem, schedule: Schedule, planned: Sequence[Planned]) -> list[list[int]]:
    """Return for each send the places of those that must have arrived before it starts."""
    arrivals: defaultdict[tuple[int, str], _Moments] = defaultdict(list)
    for i, each in enumerate(planned):
        arrivals[each.send.chunk, each.send.dst].append((each.end, i))
    whole = {number for number, chunk in enumerate(problem.collective.chunks) if not chunk.reduced}
    whole -= {each.send.chunk for each in planned if each.send.fraction < 1}
    stores = {each.name: each.stores for each in problem.topology.devices}
    departures: defaultdict[tuple[int, str], _Moments] = defaultdict(list)
    needs: list[list[int]] = [[] for _ in planned]
    for i, each in enumerate(planned):
        key = each.send.chunk, each.send.src
        if key not in arrivals:
            continue
        if key[0] in whole and stores[key[1]]:
            needs[i] = [min(arrivals[key])[1]]
        else:
            departures[key].append((each.start, i))
    slack = SAME_MOMENT * schedule.duration
    for (number, device), leaving in departures.items():
        came = sorted(arrivals[number, device])
        chunk = problem.collective.chunks[number]
        if not stores[device]:
            _forwarded(needs, planned, came=came, leaving=leaving, schedule=schedule)
        elif chunk.reduced:
            for start, i in leaving:
                needs[i] = [j for end, j in came if end <= start + slack]
        else:
            held = float(problem.topology.rank.get(device) in chunk.holders)
            _in_order(needs, planned, came=came, leaving=sorted(leaving), held=held)
    # No slack may make two sends wait for each other.
    return [
        [j for j in those if planned[j].start < planned[i].start] for i, those in enumerate(needs)
    ]


def _forwarded(
    needs: list[list[int]],
    planned: Sequence[Planned],
    *,
    came: _Moments,
    leaving: _Moments,
    schedule: Schedule,
) -> None:
    """Wait for all that a device which cannot store sends on in the same epoch."""
    slack = SAME_MOMENT * schedule.duration
    by_epoch: defaultdict[int, list[int]] = defaultdict(list)
    for end, j in came:
        by_epoch[math.ceil((end - slack) / schedule.epoch_duration)].append(j)
    for _, i in leaving:
        needs[i] = by_epoch[planned[i].send.epoch]


def _in_order(
    needs: list[list[int]],
    planned: Sequence[Planned],
    *,
    came: _Moments,
    leaving: _Moments,
    held: float,
) -> None:
    """Wait for as much, in order of arrival, as has left so far and leaves now."""
    waited: list[int] = []
    queue = iter(came)
    left = 0.0
    for _, i in leaving:
        left += planned[i].send.fraction
        while held < left - SAME_MOMENT and (found := next(queue, None)) is not None:
            held += planned[found[1]].send.fraction
            waited.append(found[1])
        needs[i] = waited[:]


def crossed(
    crossing: Crossing, times: Sequence[tuple[float, float]], arrivals: list[float]
) -> list[Transfer]:
    """Return the transfers of a transmission, and note when its sends are there.

    `times` has for each of its links when its first byte entered it and its last byte had left
    it, in µs. The last byte of a sum is there when that of each of its parts is.
    """
    send, way = crossing.send, crossing.way
    transfers: list[Transfer] = []
    ends: list[float] = []
    for hop, (begin, sent) in zip(way.hops, times, strict=True):
        end = max([sent, *(ends[k] for k in hop.after)]) + hop.alpha
        ends.append(end)
        src, dst = hop.ends
        transfers.append(
            Transfer(send.chunk, src, dst, begin, sent, end, crossing.nbytes, send.epoch)
        )
    for place, own in zip(crossing.sends, way.own, strict=True):
        arrivals[place] = ends[own[-1]]
    return transfers
