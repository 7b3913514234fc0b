"""Replay of a schedule: every link keeps the order of its sends, and no send waits for an epoch."""

from __future__ import annotations

from collections.abc import Sequence

from ccl.problem import Problem
from ccl.schedule import Schedule
from ccl.simulate.engine import binding
from ccl.simulate.limited import replay_limited
from ccl.simulate.plan import SAME_MOMENT, Plan, Planned, crossed, held_back, needs_of, plan_sends
from ccl.timeline import Timeline, Transfer

_MOST_PASSES = 50


def replay_schedule(problem: Problem, schedule: Schedule) -> Timeline:
    """Replay a schedule.

    A send starts when its links are free, each at its own offset, and what it carries is there.
    What goes to a device with a limited buffer starts when the schedule starts it, no earlier.
    No send starts later than the schedule starts it; where shared limits bind, this holds for
    its epoch, and not for sends that cross several links at once.
    """
    limits = binding(problem.topology)
    plan = plan_sends(problem, schedule, limits)
    needs = needs_of(problem, schedule, plan.sends)
    if limits:
        transfers, arrivals = replay_limited(problem, schedule, plan=plan, needs=needs)
    else:
        slack = SAME_MOMENT * schedule.duration
        waits = _waits(plan, needs, links=len(problem.topology.links))
        starts = _starts(plan, waits, held_back(problem, plan), slack=slack)
        transfers, arrivals = _cross(plan, starts)
    transfers.sort(key=lambda transfer: transfer.start)
    return Timeline(tuple(transfers), makespan=_last_needed(problem, plan.sends, arrivals))


def _waits(
    plan: Plan, needs: Sequence[Sequence[int]], *, links: int
) -> list[list[tuple[int, float]]]:
    """Return for each transmission the others it starts after, and at least how many µs after."""
    last: list[tuple[int, float] | None] = [None] * links
    waits = []
    for i, each in enumerate(plan.crossings):
        after = []
        for member, place in enumerate(each.sends):
            lag = each.way.lags[member]
            for j in needs[place]:
                needed = plan.sends[j]
                after.append((needed.crossing, needed.duration - lag))
        for hop in each.way.hops:
            before = last[hop.link]
            if before is not None:
                after.append((before[0], before[1] - hop.offset))
            last[hop.link] = i, hop.offset + each.nbytes * hop.beta
        waits.append(after)
    return waits


def _starts(
    plan: Plan,
    waits: Sequence[Sequence[tuple[int, float]]],
    earliest: Sequence[float],
    *,
    slack: float,
) -> list[float]:
    """Start everything as early as it can, in µs, and not before `earliest`.

    In the order in which the schedule starts the sends, all that one waits for has moved before
    it, save where one over several links starts before one that goes first on its second link.
    Then another pass may move it further; after each pass the starts are possible ones.
    """
    starts = list(plan.starts)
    order = sorted(range(len(starts)), key=starts.__getitem__)
    passes = _MOST_PASSES if any(len(each.way.hops) > 1 for each in plan.crossings) else 1
    for _ in range(passes):
        moved = 0.0
        for i in order:
            start = earliest[i]
            for j, later in waits[i]:
                start = max(start, starts[j] + later)
            moved = max(moved, starts[i] - start)
            starts[i] = start
        if moved <= slack:
            break
    return starts


def _cross(plan: Plan, starts: Sequence[float]) -> tuple[list[Transfer], list[float]]:
    """Let all cross their links from their starts on; return transfers and arrivals in µs."""
    transfers = []
    arrivals = [0.0] * len(plan.sends)
    for each, start in zip(plan.crossings, starts, strict=True):
        times = []
        for hop in each.way.hops:
            begin = start + hop.offset
            times.append((begin, begin + each.nbytes * hop.beta))
        transfers += crossed(each, times, arrivals)
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
