"""Replay of a schedule: the order of the sends stays, the epochs go.

A send starts when its links are free of the sends before it and what it carries has come:

* of a whole chunk, the arrival that the schedule relies on;
* of a reduced chunk, every contribution that the schedule has there before the send starts;
* of a part of a chunk, as many of the parts in order of arrival as make up what has left so far
  and leaves now;
* from a device that cannot store, everything that the schedule forwards in the same epoch. Such
  a device keeps the order of the plan and so may queue at its exits, as real switches do.

All of these are there by the time at which the schedule starts the send, so the replay starts
no send later than the schedule does.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ccl.problem import Problem
from ccl.schedule import Schedule, Send
from ccl.timeline import Timeline, Transfer

_SAME_MOMENT = 1e-9
"""Times closer than this share of the duration are one moment."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One link of a way: its number, µs per byte, alpha, alphas before it and from it on."""

    link: int
    ends: tuple[str, str]
    beta: float
    alpha: float
    offset: float
    rest: float


@dataclass(frozen=True, slots=True)
class Job:
    """A send to be replayed, with its way, its bytes and its times in the schedule in µs."""

    send: Send
    hops: tuple[Hop, ...]
    nbytes: float
    start: float
    end: float


def replay_schedule(problem: Problem, schedule: Schedule) -> Timeline:
    """Replay a schedule; its shared limits, where they bind, slow transfers down."""
    jobs = plan_jobs(problem, schedule)
    needs = plan_needs(problem, schedule, jobs)
    transfers, ends = _replay(jobs, needs, links=len(problem.topology.links))
    return Timeline(transfers, makespan=last_needed(problem, jobs, ends))


def plan_jobs(problem: Problem, schedule: Schedule) -> list[Job]:
    """Return the sends in the order in which they are given to their links."""
    sizes = [chunk.size for chunk in problem.collective.chunks]
    free = [0.0] * len(problem.topology.links)
    ways: dict[tuple[str, tuple[str, ...], str], tuple[Hop, ...]] = {}
    jobs = []
    for send in sorted(schedule.sends, key=lambda send: send.epoch):
        key = send.src, send.via, send.dst
        hops = ways.get(key)
        if hops is None:
            hops = ways[key] = _hops(problem, send)
        nbytes = sizes[send.chunk] * send.fraction
        start = send.epoch * schedule.epoch_duration
        for hop in hops:
            start = max(start, free[hop.link] - hop.offset)
        end = 0.0
        for hop in hops:
            left = start + nbytes * hop.beta
            free[hop.link] = left + hop.offset
            end = max(end, left)
        jobs.append(Job(send, hops, nbytes, start, end + hops[0].rest))
    return jobs


def _hops(problem: Problem, send: Send) -> tuple[Hop, ...]:
    topology = problem.topology
    links = [topology.link(*ends) for ends in send.hops]
    alphas = [link.alpha for link in links]
    return tuple(
        Hop(
            topology.link_index[link.ends],
            link.ends,
            link.beta,
            link.alpha,
            sum(alphas[:i]),
            sum(alphas[i:]),
        )
        for i, link in enumerate(links)
    )


def plan_needs(problem: Problem, schedule: Schedule, jobs: Sequence[Job]) -> list[list[int]]:
    """Return for each job the jobs that must have arrived before it starts."""
    arrivals: defaultdict[tuple[int, str], list[tuple[float, int]]] = defaultdict(list)
    departures: defaultdict[tuple[int, str], list[tuple[float, int]]] = defaultdict(list)
    for i, job in enumerate(jobs):
        arrivals[job.send.chunk, job.send.dst].append((job.end, i))
        departures[job.send.chunk, job.send.src].append((job.start, i))
    needs: list[list[int]] = [[] for _ in jobs]
    stores = {each.name: each.stores for each in problem.topology.devices}
    slack = _SAME_MOMENT * schedule.duration
    for (number, device), leaving in departures.items():
        came = sorted(arrivals.get((number, device), ()))
        if not came:
            continue
        leaving.sort()
        chunk = problem.collective.chunks[number]
        if not stores[device]:
            _forwarded(needs, jobs, came=came, leaving=leaving, epoch=schedule.epoch_duration)
        elif chunk.reduced:
            for start, i in leaving:
                needs[i] = [j for end, j in came if end <= start + slack]
        else:
            rank = problem.topology.rank.get(device)
            held = 1.0 if rank in chunk.holders else 0.0
            _in_order(needs, jobs, came=came, leaving=leaving, held=held)
    return needs


def _forwarded(
    needs: list[list[int]],
    jobs: Sequence[Job],
    *,
    came: list[tuple[float, int]],
    leaving: list[tuple[float, int]],
    epoch: float,
) -> None:
    """Wait for all that the schedule lets a device which cannot store send out in that epoch."""
    by_epoch: defaultdict[int, list[int]] = defaultdict(list)
    for end, j in came:
        by_epoch[math.ceil(end / epoch * (1 - _SAME_MOMENT))].append(j)
    for _, i in leaving:
        needs[i] = by_epoch[jobs[i].send.epoch]


def _in_order(
    needs: list[list[int]],
    jobs: Sequence[Job],
    *,
    came: list[tuple[float, int]],
    leaving: list[tuple[float, int]],
    held: float,
) -> None:
    """Wait for as much, in order of arrival, as leaves; a whole chunk comes once and is copied."""
    whole = all(jobs[i].send.fraction == 1 for _, i in (*came, *leaving))
    waited: list[int] = []
    queue = iter(came)
    left = 0.0
    for _, i in leaving:
        left = 1.0 if whole else left + jobs[i].send.fraction
        while held < left - _SAME_MOMENT:
            found = next(queue, None)
            if found is None:
                break
            held += jobs[found[1]].send.fraction
            waited.append(found[1])
        needs[i] = waited[:]


def _replay(
    jobs: Sequence[Job], needs: Sequence[Sequence[int]], *, links: int
) -> tuple[tuple[Transfer, ...], list[float]]:
    """Start each job as early as its links and needs allow; return transfers and arrivals."""
    before = _before(jobs, links)
    free = [0.0] * links
    ends: list[float | None] = [None] * len(jobs)
    transfers: list[Transfer] = []
    for first in sorted(range(len(jobs)), key=lambda i: jobs[i].start):
        waiting = [first]
        while waiting:
            i = waiting[-1]
            if ends[i] is not None:
                waiting.pop()
                continue
            pending = [j for j in (*needs[i], *before[i]) if ends[j] is None]
            if pending:
                waiting.extend(pending)
                continue
            waiting.pop()
            job = jobs[i]
            start = max((ends[j] or 0.0 for j in needs[i]), default=0.0)
            for hop in job.hops:
                start = max(start, free[hop.link] - hop.offset)
            ends[i] = _cross(job, start, free=free, transfers=transfers)
    transfers.sort(key=lambda transfer: transfer.start)
    return tuple(transfers), [end or 0.0 for end in ends]


def _before(jobs: Sequence[Job], links: int) -> list[list[int]]:
    """Return for each job the one before it on each of its links."""
    last: list[int | None] = [None] * links
    before: list[list[int]] = []
    for i, job in enumerate(jobs):
        found = (last[hop.link] for hop in job.hops)
        before.append([j for j in found if j is not None])
        for hop in job.hops:
            last[hop.link] = i
    return before


def _cross(job: Job, start: float, *, free: list[float], transfers: list[Transfer]) -> float:
    """Let a job cross its links from `start` on; return when it is there, in µs."""
    longest = 0.0
    for hop in job.hops:
        begin = start + hop.offset
        busy = job.nbytes * hop.beta
        sent = free[hop.link] = begin + busy
        longest = max(longest, busy)
        src, dst = hop.ends
        transfers.append(
            Transfer(
                job.send.chunk,
                src,
                dst,
                begin,
                sent,
                sent + hop.alpha,
                job.nbytes,
                job.send.epoch,
            )
        )
    return start + longest + job.hops[0].rest


def last_needed(problem: Problem, jobs: Sequence[Job], ends: Sequence[float]) -> float:
    """Return when the last job that brings something to its destination is there, in µs."""
    topology = problem.topology
    wanted = [
        {topology.ranks[rank] for rank in chunk.destinations} for chunk in problem.collective.chunks
    ]
    return max(
        (
            end
            for job, end in zip(jobs, ends, strict=True)
            if job.send.dst in wanted[job.send.chunk]
        ),
        default=0.0,
    )
