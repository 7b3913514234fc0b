"""Replay of a schedule: every link keeps the order of its sends, and no send waits for an epoch."""

from __future__ import annotations

from collections.abc import Sequence

from ccl.problem import Problem
from ccl.schedule import Schedule
from ccl.simulate.engine import binding
from ccl.simulate.limited import replay_limited
from ccl.simulate.plan import Planned, needs_of, plan_sends
from ccl.timeline import Timeline, Transfer


def replay_schedule(problem: Problem, schedule: Schedule) -> Timeline:
    """Replay a schedule.

    A send starts when its links are free, each at its own offset, and what it carries is there.
    No send starts later than the schedule starts it; where shared limits bind, this holds for
    its epoch, and not for sends that cross several links at once.
    """
    limits = binding(problem.topology)
    planned = plan_sends(problem, schedule, limits)
    needs = needs_of(problem, schedule, planned)
    if limits:
        transfers, arrivals = replay_limited(problem, schedule, planned=planned, needs=needs)
    else:
        transfers, arrivals = _replay(planned, needs, links=len(problem.topology.links))
    transfers.sort(key=lambda transfer: transfer.start)
    return Timeline(tuple(transfers), makespan=_last_needed(problem, planned, arrivals))


def _replay(
    planned: Sequence[Planned], needs: Sequence[Sequence[int]], *, links: int
) -> tuple[list[Transfer], list[float]]:
    """Start each send as early as its links and needs allow; return transfers and arrivals."""
    before = _before(planned, links)
    free = [0.0] * links
    arrivals: list[float | None] = [None] * len(planned)
    transfers: list[Transfer] = []
    opened: set[int] = set()
    for first in sorted(range(len(planned)), key=lambda i: planned[i].start):
        # Nearly always what is waited for has its times already; only sends over several links
        # can start before one that goes first on a link of theirs. What is opened twice waits
        # for itself and is let go.
        waiting = [first]
        while waiting:
            i = waiting.pop()
            if arrivals[i] is not None:
                continue
            pending = [j for j in (*needs[i], *before[i]) if arrivals[j] is None]
            if pending and i not in opened:
                opened.add(i)
                waiting += [i, *pending]
                continue
            start = max((arrivals[j] or 0.0 for j in needs[i]), default=0.0)
            for hop in planned[i].hops:
                start = max(start, free[hop.link] - hop.offset)
            arrivals[i] = _cross(planned[i], start, free=free, transfers=transfers)
    return transfers, [arrival or 0.0 for arrival in arrivals]


def _before(planned: Sequence[Planned], links: int) -> list[list[int]]:
    """Return for each send the one before it on each of its links."""
    last: list[int | None] = [None] * links
    before: list[list[int]] = []
    for i, each in enumerate(planned):
        found = (last[hop.link] for hop in each.hops)
        before.append([j for j in found if j is not None])
        for hop in each.hops:
            last[hop.link] = i
    return before


def _cross(each: Planned, start: float, *, free: list[float], transfers: list[Transfer]) -> float:
    """Let a send cross its links from `start` on; return when it is there, in µs."""
    longest = 0.0
    for hop in each.hops:
        begin = start + hop.offset
        busy = each.nbytes * hop.beta
        sent = free[hop.link] = begin + busy
        longest = max(longest, busy)
        src, dst = hop.ends
        end, send = sent + hop.alpha, each.send
        transfers.append(Transfer(send.chunk, src, dst, begin, sent, end, each.nbytes, send.epoch))
    return start + longest + each.hops[0].rest


def _last_needed(problem: Problem, planned: Sequence[Planned], arrivals: Sequence[float]) -> float:
    """Return when the last send that brings something to its destination is there, in µs."""
    ranks, chunks = problem.topology.ranks, problem.collective.chunks
    wanted = [{ranks[rank] for rank in chunk.destinations} for chunk in chunks]
    return max(
        (
            arrival
            for each, arrival in zip(planned, arrivals, strict=True)
            if each.send.dst in wanted[each.send.chunk]
        ),
        default=0.0,
    )
