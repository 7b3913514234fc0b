"""Replay of a schedule: every link keeps the order of its sends, and no send waits for an epoch."""

from __future__ import annotations

from collections.abc import Sequence

from ccl.problem import Problem
from ccl.schedule import Schedule
from ccl.simulate.engine import binding
from ccl.simulate.limited import replay_limited
from ccl.simulate.plan import SAME_MOMENT, Planned, needs_of, plan_sends
from ccl.timeline import Timeline, Transfer

_MOST_PASSES = 50


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
        slack = SAME_MOMENT * schedule.duration
        starts = _starts(planned, _waits(planned, needs, links=len(problem.topology.links)), slack)
        transfers, arrivals = _cross(planned, starts)
    transfers.sort(key=lambda transfer: transfer.start)
    return Timeline(tuple(transfers), makespan=_last_needed(problem, planned, arrivals))


def _waits(
    planned: Sequence[Planned], needs: Sequence[Sequence[int]], *, links: int
) -> list[list[tuple[int, float]]]:
    """Return for each send the others that it starts after, and at least how many µs after."""
    last: list[tuple[int, float] | None] = [None] * links
    waits = []
    for i, each in enumerate(planned):
        after = [(j, planned[j].duration) for j in needs[i]]
        for hop in each.hops:
            before = last[hop.link]
            if before is not None:
                after.append((before[0], before[1] - hop.offset))
            last[hop.link] = i, hop.offset + each.nbytes * hop.beta
        waits.append(after)
    return waits


def _starts(
    planned: Sequence[Planned], waits: Sequence[Sequence[tuple[int, float]]], slack: float
) -> list[float]:
    """Start everything as early as it can, in µs.

    In the order in which the schedule starts the sends, all that one waits for has moved before
    it, save where one over several links starts before one that goes first on its second link.
    Then another pass may move it further; after each pass the starts are possible ones.
    """
    starts = [each.start for each in planned]
    order = sorted(range(len(planned)), key=starts.__getitem__)
    passes = _MOST_PASSES if any(len(each.hops) > 1 for each in planned) else 1
    for _ in range(passes):
        moved = 0.0
        for i in order:
            start = 0.0
            for j, later in waits[i]:
                start = max(start, starts[j] + later)
            moved = max(moved, starts[i] - start)
            starts[i] = start
        if moved <= slack:
            break
    return starts


def _cross(
    planned: Sequence[Planned], starts: Sequence[float]
) -> tuple[list[Transfer], list[float]]:
    """Let each send cross its links from its start on; return transfers and arrivals in µs."""
    transfers, arrivals = [], []
    for each, start in zip(planned, starts, strict=True):
        send, end = each.send, 0.0
        for hop in each.hops:
            begin = start + hop.offset
            sent = begin + each.nbytes * hop.beta
            end = max(end, sent) + hop.alpha
            src, dst = hop.ends
            transfers.append(
                Transfer(send.chunk, src, dst, begin, sent, end, each.nbytes, send.epoch)
            )
        arrivals.append(end)
    return transfers, arrivals


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
