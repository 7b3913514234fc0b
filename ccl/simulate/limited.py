"""Replay of a schedule whose links share limits: transfers slow one another down."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ccl.problem import Problem
from ccl.schedule import Schedule
from ccl.simulate.engine import Engine, Job, Promises
from ccl.simulate.plan import Crossing, Plan, held_back
from ccl.simulate.slow import SlowTimes, Spans
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
    last, where limits leave it more than its share. A link keeps the order of what it sends, so
    that nothing that starts early, into a window of less bandwidth even, ends later for it.
    """
    jobs: list[Job] = []
    first: list[int] = []
    for each in plan.crossings:
        first.append(len(jobs))
        epoch, nbytes = each.send.epoch, each.way.nbytes
        for hop in each.way.hops:
            job = Job(hop.link, nbytes, epoch=epoch)
            job.follows = [(first[-1] + k, each.way.hops[k].alpha) for k in hop.after]
            jobs.append(job)
    for start, release in zip(first, held_back(problem, plan), strict=True):
        jobs[start].release = release
    for (leaving, member), those in zip(plan.of, needs, strict=True):
        way = plan.crossings[leaving].way
        if member and not way.joins:
            continue  # it leaves with the first, which waits for the same
        head = first[leaving] + way.own[member][0]
        for j in those:
            crossing, arriving = plan.of[j]
            brought = plan.crossings[crossing].way
            last = brought.own[arriving][-1]
            jobs[first[crossing] + last].on_end.append((head, brought.hops[last].alpha))
            jobs[head].waits += 1
    slow = SlowTimes(problem) if problem.windows else None
    promises = _promises(problem, schedule, plan.crossings)
    Engine(problem.topology, jobs, in_order=True, promises=promises, slow=slow).run()
    return _results(plan, jobs)


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
            ends.append(job.sent + hop.alpha)
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
    spans = Spans(problem, schedule)
    spread = []
    for each in crossings:
        if not each.way.limited:
            continue
        epoch, held = each.send.epoch, spans.held(each.way, each.send.epoch)
        for hop, later, many in zip(each.way.hops, held.first, held.epochs, strict=True):
            if hop.limited:
                rate = each.way.nbytes / many / schedule.epoch_duration
                spread.append((hop.link, epoch + later, epoch + later + many, rate))
    return Promises(spread, schedule.epoch_duration)
