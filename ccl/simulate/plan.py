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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ccl.problem import Problem
from ccl.schedule import Schedule, Send
from ccl.topology import SharedLimit

SAME_MOMENT = 1e-9
"""Times closer than this share of the duration are one moment; likewise shares of a chunk."""

_Moments = list[tuple[float, int]]
"""Times in µs, each with the place of a send."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One link of a way.

    Parameters
    ----------
    link, ends
        Its number and its ends.
    beta, alpha
        Its µs per byte, of the tightest limit that it is under where that is more, and its
        latency in µs.
    offset, rest
        µs of alphas before it, and from it on to the end of the way.
    limited
        Whether it is under a shared limit that binds.
    """

    link: int
    ends: tuple[str, str]
    beta: float
    alpha: float
    offset: float
    rest: float
    limited: bool


@dataclass(frozen=True, slots=True)
class Planned:
    """A send with its way, its bytes, and when the schedule starts it and has it there, in µs.

    `duration` is how many µs after its start it is there, when nothing slows it down.
    """

    send: Send
    hops: tuple[Hop, ...]
    nbytes: float
    start: float
    end: float
    duration: float


def plan_sends(
    problem: Problem, schedule: Schedule, limits: Sequence[SharedLimit]
) -> list[Planned]:
    """Return the sends in the order in which they are given to their links.

    Over links under `limits` a send takes the whole of its epochs, as in `ccl.verify`.
    """
    caps: dict[tuple[str, str], float] = {}
    for limit in limits:
        for ends in limit.links:
            caps[ends] = min(limit.bandwidth, caps.get(ends, limit.bandwidth))
    sizes = [chunk.size for chunk in problem.collective.chunks]
    free = [0.0] * len(problem.topology.links)
    ways: dict[tuple[str, tuple[str, ...], str], tuple[Hop, ...]] = {}
    tau = schedule.epoch_duration
    planned = []
    for send in sorted(schedule.sends, key=lambda send: send.epoch):
        key = send.src, send.via, send.dst
        hops = ways.get(key)
        if hops is None:
            hops = ways[key] = _hops(problem, send, caps)
        nbytes = sizes[send.chunk] * send.fraction
        begin = start = send.epoch * tau
        for hop in hops:
            start = max(start, free[hop.link] - hop.offset)
        left = longest = 0.0
        held = start
        for hop in hops:
            busy = nbytes * hop.beta
            longest = max(longest, busy)
            free[hop.link] = start + busy + hop.offset
            if hop.limited:
                left = max(left, begin + epochs_of(schedule, busy) * tau)
                held = begin
            else:
                left = max(left, start + busy)
        rest = hops[0].rest
        planned.append(Planned(send, hops, nbytes, held, left + rest, longest + rest))
    return planned


def epochs_of(schedule: Schedule, busy: float) -> int:
    """Count the epochs that a transmission of `busy` µs needs when it starts with one."""
    return max(1, math.ceil(busy / schedule.epoch_duration - SAME_MOMENT))


def _hops(problem: Problem, send: Send, caps: Mapping[tuple[str, str], float]) -> tuple[Hop, ...]:
    topology = problem.topology
    links = [topology.link(*ends) for ends in send.hops]
    alphas = [link.alpha for link in links]
    return tuple(
        Hop(
            link=topology.link_index[link.ends],
            ends=link.ends,
            beta=1e-3 / min(link.bandwidth, caps.get(link.ends, link.bandwidth)),
            alpha=link.alpha,
            offset=sum(alphas[:i]),
            rest=sum(alphas[i:]),
            limited=link.ends in caps,
        )
        for i, link in enumerate(links)
    )


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
