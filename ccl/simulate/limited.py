"""Replay of a schedule whose links share limits: transfers slow one another down."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from ccl.problem import Problem
from ccl.schedule import Schedule
from ccl.simulate.engine import Engine, Job, Promises
from ccl.simulate.plan import Crossing, Plan, held_back
from ccl.simulate.slow import SAME_MOMENT, SlowTimes, Spans
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
    last, where limits leave it more than its share. With windows of less bandwidth nothing starts
    before its epoch, where it might slip into one.
    """
    jobs: list[Job] = []
    first: list[int] = []
    for each in plan.crossings:
        first.append(len(jobs))
        epoch, nbytes = each.send.epoch, each.way.nbytes
        jobs += [Job(hop.link, nbytes, epoch=epoch) for hop in each.way.hops]
        _follow(jobs, each.way, base=first[-1])
    for start, each, release in zip(first, plan.crossings, held_back(problem, plan), strict=True):
        jobs[start].release = release
        if problem.windows:
            for k, hop in enumerate(each.way.hops):
                if not hop.after:
                    begin = each.send.epoch * schedule.epoch_duration + hop.offset
                    jobs[start + k].release = max(release, begin)
    for (leaving, member), those in zip(plan.of, needs, strict=True):
        way = plan.crossings[leaving].way
        if member and not way.joins:
            continue  # it leaves with the first, which waits for the same
        head = first[leaving] + way.own[member][0]
        for j in those:
            crossing, arriving = plan.of[j]
            brought = plan.crossings[crossing].way
            for k in brought.brings(arriving):
                rest = brought.latency[arriving] - brought.hops[k].offset
                jobs[first[crossing] + k].on_end.append((head, rest))
                jobs[head].waits += 1
    slow = SlowTimes(problem) if problem.windows else None
    promises = _promises(problem, schedule, plan.crossings)
    Engine(problem.topology, jobs, in_order=True, promises=promises, slow=slow).run()
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
    for way, places, send in plan.crossings:
        ends: list[float] = []
        for hop in way.hops:
            job = next(done)
            # Every wait is for what the schedule has before, so none is for ever.
            assert not math.isnan(job.sent)
            # The last byte of a sum is there when that of each of its parts is.
            ends.append(max([job.sent, *(ends[k] for k in hop.after)]) + hop.alpha)
            src, dst = hop.ends
            end, epoch = ends[-1], send.epoch
            transfers.append(
                Transfer(send.chunk, src, dst, job.start, job.sent, end, way.nbytes, epoch)
            )
        for place, own in zip(places, way.own, strict=True):
            arrivals[place] = ends[own[-1]]
    return transfers, arrivals


def _promises(problem: Problem, schedule: Schedule, crossings: Sequence[Crossing]) -> Promises:
    """Spread the bytes of each send over a link under a limit evenly over its epochs."""
    epoch_duration = schedule.epoch_duration
    spans = Spans(problem, schedule)
    rates: defaultdict[tuple[int, int], float] = defaultdict(float)
    for each in crossings:
        for hop in each.way.hops:
            if hop.limited:
                first = each.send.epoch + math.floor(hop.offset / epoch_duration + SAME_MOMENT)
                epochs = spans.epochs(hop, each.way.nbytes, first)
                for k in range(first, first + epochs):
                    rates[hop.link, k] += each.way.nbytes / epochs / epoch_duration
    return Promises(rates, epoch_duration, schedule.horizon)
