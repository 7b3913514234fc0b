"""Replay of a schedule whose links share limits: transfers slow one another down."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice

from ccl.problem import Problem
from ccl.schedule import Schedule
from ccl.simulate.engine import Engine, Job, Promises
from ccl.simulate.plan import SAME_MOMENT, Crossing, Plan, crossed, epochs_of, held_back
from ccl.simulate.ways import Way
from ccl.timeline import Transfer


def replay_limited(
    problem: Problem,
    schedule: Schedule,
    *,
    plan: Plan,
    needs: Sequence[Sequence[int]],
) -> tuple[list[Transfer], list[float]]:
    """Return transfers and the arrival of each send, in µs.

    Each link is sure of the rate that carries in an epoch what the schedule gives it there; what
    the limits have left goes to the transfers in the order of the schedule. What goes to a device
    with a limited buffer starts no earlier than its epoch, but may be there before the end of its
    last, where limits leave it more than its share.
    """
    jobs: list[Job] = []
    first: list[int] = []
    for each in plan.crossings:
        first.append(len(jobs))
        jobs += [Job(hop.link, each.nbytes, epoch=each.send.epoch) for hop in each.way.hops]
        _follow(jobs, each.way, base=first[-1])
    for start, release in zip(first, held_back(problem, plan), strict=True):
        jobs[start].release = release
    for i, those in enumerate(needs):
        needing = plan.sends[i]
        way = plan.crossings[needing.crossing].way
        if needing.member and not way.joins:
            continue  # it leaves with the first, which waits for the same
        head = first[needing.crossing] + way.own[needing.member][0]
        for j in those:
            needed = plan.sends[j]
            way = plan.crossings[needed.crossing].way
            for k in way.brings(needed.member):
                rest = way.latency[needed.member] - way.hops[k].offset
                jobs[first[needed.crossing] + k].on_end.append((head, rest))
                jobs[head].waits += 1
    promises = _promises(schedule, plan.crossings)
    Engine(problem.topology, jobs, in_order=True, promises=promises).run()
    return _results(plan, jobs)


def _follow(jobs: list[Job], way: Way, *, base: int) -> None:
    """Let every link of a way wait for the first bytes that it takes on."""
    for k, hop in enumerate(way.hops):
        jobs[base + k].waits = len(hop.after)
        for before in hop.after:
            jobs[base + before].on_start.append((base + k, way.hops[before].alpha))


def _results(plan: Plan, jobs: Sequence[Job]) -> tuple[list[Transfer], list[float]]:
    transfers = []
    arrivals = [0.0] * len(plan.sends)
    done = iter(jobs)
    for each in plan.crossings:
        times = [(job.start, job.sent) for job in islice(done, len(each.way.hops))]
        # Every wait is for what the schedule has before, so none is for ever.
        assert not any(math.isnan(sent) for _, sent in times)
        transfers += crossed(each, times, arrivals)
    return transfers, arrivals


def _promises(schedule: Schedule, crossings: Sequence[Crossing]) -> Promises:
    """Spread the bytes of each send over a link under a limit evenly over its epochs."""
    epoch_duration = schedule.epoch_duration
    rates: defaultdict[tuple[int, int], float] = defaultdict(float)
    for each in crossings:
        for hop in each.way.hops:
            if hop.limited:
                late = math.floor(hop.offset / epoch_duration + SAME_MOMENT)
                epochs = epochs_of(schedule, each.nbytes * hop.beta)
                for k in range(each.send.epoch + late, each.send.epoch + late + epochs):
                    rates[hop.link, k] += each.nbytes / epochs / epoch_duration
    return Promises(rates, epoch_duration, schedule.horizon)
