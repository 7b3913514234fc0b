"""Replay of a schedule whose links share limits: transfers slow one another down."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from ccl.problem import Problem
from ccl.schedule import Schedule
from ccl.simulate.engine import Engine, Job, Promises
from ccl.simulate.plan import SAME_MOMENT, Planned, epochs_of
from ccl.timeline import Transfer


def replay_limited(
    problem: Problem,
    schedule: Schedule,
    *,
    planned: Sequence[Planned],
    needs: Sequence[Sequence[int]],
) -> tuple[list[Transfer], list[float]]:
    """Return transfers and the arrival of each send, in µs.

    Each link is sure of the rate that carries in an epoch what the schedule gives it there; what
    the limits have left goes to the transfers in the order of the schedule.
    """
    jobs: list[Job] = []
    first: list[int] = []
    for each in planned:
        first.append(len(jobs))
        jobs += [Job(hop.link, each.nbytes, epoch=each.send.epoch) for hop in each.hops]
        head = jobs[first[-1]]
        for k, hop in enumerate(each.hops[1:], 1):
            head.on_start.append((first[-1] + k, hop.offset))
            jobs[first[-1] + k].waits = 1
    for i, those in enumerate(needs):
        for j in those:
            for k, hop in enumerate(planned[j].hops):
                jobs[first[j] + k].on_end.append((first[i], hop.rest))
                jobs[first[i]].waits += 1
    promises = _promises(schedule, planned)
    Engine(problem.topology, jobs, in_order=True, promises=promises).run()
    return _results(planned, jobs)


def _results(planned: Sequence[Planned], jobs: Sequence[Job]) -> tuple[list[Transfer], list[float]]:
    transfers, arrivals = [], []
    done = iter(jobs)
    for each in planned:
        send, end = each.send, 0.0
        for hop in each.hops:
            job = next(done)
            # Every wait is for what the schedule has before, so none is for ever.
            assert not math.isnan(job.sent)
            end = max(end, job.sent) + hop.alpha
            src, dst = hop.ends
            transfers.append(
                Transfer(send.chunk, src, dst, job.start, job.sent, end, each.nbytes, send.epoch)
            )
        arrivals.append(end)
    return transfers, arrivals


def _promises(schedule: Schedule, planned: Sequence[Planned]) -> Promises:
    """Spread the bytes of each send over a link under a limit evenly over its epochs."""
    epoch_duration = schedule.epoch_duration
    rates: defaultdict[tuple[int, int], float] = defaultdict(float)
    for each in planned:
        for hop in each.hops:
            if hop.limited:
                late = math.floor(hop.offset / epoch_duration + SAME_MOMENT)
                epochs = epochs_of(schedule, each.nbytes * hop.beta)
                for k in range(each.send.epoch + late, each.send.epoch + late + epochs):
                    rates[hop.link, k] += each.nbytes / epochs / epoch_duration
    return Promises(rates, epoch_duration, schedule.horizon)
