"""Event-driven replay: links that serve jobs, and shared limits that slow them down.

A link serves one job at a time: of the jobs that are ready the one of lowest rank, or, in order,
always the next in rank. Links under a limit that binds, and links that have less bandwidth for a
time, get their rates anew at every event: in order of rank each job takes what its link and its
limits still have. Where a schedule promises a link some bytes in an epoch, the link is sure of
that rate first, so that no job ahead of its time can make another late.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ccl.simulate.slow import SlowTimes
from ccl.topology import SharedLimit, Topology

_SAME_RATE = 1e-9
"""A limit within this share of the sum of its links never slows anything."""

_NOTHING = 1e-12
"""Rates below this share of a link's bandwidth are rounding errors."""

_LEFT = 1e-10
"""Likewise bytes below this share of a job; they must not wait for a rate when an epoch ends."""


@dataclass(slots=True)
class Job:
    """Bytes to be sent over one link.

    Parameters
    ----------
    link
        Number of the link.
    nbytes
        Bytes.
    waits
        How many triggers it waits for before it is ready.
    on_start, on_end
        ``(job, delay)``: jobs that it triggers so many µs after it starts, or after its last
        byte has left the link.
    epoch
        Epoch from which on it may claim what its link is promised.
    release
        µs before which it must not start.
    start, sent
        When it was sent, in µs: what a replay finds out.
    """

    link: int
    nbytes: float
    waits: int = 0
    on_start: list[tuple[int, float]] = field(default_factory=list)
    on_end: list[tuple[int, float]] = field(default_factory=list)
    epoch: int = 0
    release: float = 0.0
    start: float = math.nan
    sent: float = math.nan


@dataclass(frozen=True, slots=True)
class Promises:
    """Bytes per µs that each link is sure of, by (link, epoch); `epoch_duration` is in µs."""

    rates: Mapping[tuple[int, int], float]
    epoch_duration: float
    horizon: int

    def changes(self) -> list[int]:
        """Return the epochs, but the first, with which a link may be sure of another rate."""
        epochs = {epoch for _, epoch in self.rates}
        later = {epoch + 1 for epoch in epochs}
        return sorted(epoch for epoch in epochs | later if 0 < epoch < self.horizon)


def binding(topology: Topology) -> tuple[SharedLimit, ...]:
    """Return the limits that are below the sum of their links: the others never slow anything."""
    return tuple(
        limit
        for limit in topology.limits
        if limit.bandwidth
        < sum(topology.link(*ends).bandwidth for ends in limit.links) * (1 - _SAME_RATE)
    )


class Engine:
    """Runs jobs whose place in the list is their rank."""

    def __init__(
        self,
        topology: Topology,
        jobs: Sequence[Job],
        *,
        in_order: bool,
        promises: Promises | None = None,
        slow: SlowTimes | None = None,
    ) -> None:
        self._jobs = jobs
        self._betas = [link.beta for link in topology.links]
        self._limits = binding(topology)
        self._caps: dict[int, list[int]] = {}
        for i, limit in enumerate(self._limits):
            for ends in limit.links:
                self._caps.setdefault(topology.link_index[ends], []).append(i)
        self._slow = slow
        if slow is not None:
            for link in slow.of:
                self._caps.setdefault(link, [])
        self._promises = promises
        self._events: list[tuple[float, int, int]] = []
        self._ready: list[list[int]] = [[] for _ in topology.links]
        self._turns: list[list[int]] | None = None
        if in_order:
            self._turns = [[] for _ in topology.links]
            for i in reversed(range(len(jobs))):
                self._turns[jobs[i].link].append(i)
        self._serving: list[int | None] = [None] * len(topology.links)
        # Of each job under a limit: bytes left, rate in bytes per µs, and when that was so.
        self._left: dict[int, float] = {}
        self._rate: dict[int, float] = {}
        self._since = 0.0
        self._version = [0] * len(jobs)

    def run(self) -> None:
        """Send all jobs; their `start` and `sent` are set afterwards."""
        for i, job in enumerate(self._jobs):
            if job.release > 0:
                job.waits += 1
                self._push(job.release, i, -1)
            elif not job.waits:
                self._push(0.0, i, -1)
        if self._promises is not None:
            for epoch in self._promises.changes():
                self._push(epoch * self._promises.epoch_duration, -1, 0)
        if self._slow is not None:
            for moment in self._slow.moments():
                self._push(moment, -1, 0)
        while self._events:
            self._step(self._events[0][0])

    def _push(self, time: float, job: int, version: int) -> None:
        """Note an event: -1 triggers the job, a version ends it if it is still that one."""
        heapq.heappush(self._events, (time, job, version))

    def _step(self, now: float) -> None:
        """Handle everything that happens at one moment, then let links choose."""
        touched: set[int] = set()
        while self._events and self._events[0][0] == now:
            _, i, version = heapq.heappop(self._events)
            if i < 0:
                touched.update(self._caps)
            elif version < 0:
                job = self._jobs[i]
                job.waits -= 1
                if job.waits <= 0:
                    heapq.heappush(self._ready[job.link], i)
                    touched.add(job.link)
            elif version == self._version[i]:
                self._finish(i, now)
                touched.add(self._jobs[i].link)
        for link in touched:
            if self._serving[link] is None:
                self._choose(link, now)
        if not touched.isdisjoint(self._caps):
            self._share(now)

    def _finish(self, i: int, now: float) -> None:
        job = self._jobs[i]
        job.sent = now
        self._serving[job.link] = None
        if i in self._rate:
            self._run_down(now)
            del self._left[i], self._rate[i]
            for j, delay in job.on_end:
                self._push(now + delay, j, -1)

    def _choose(self, link: int, now: float) -> None:
        """Let an idle link take its next job, if that is ready."""
        ready = self._ready[link]
        if not ready:
            return
        if self._turns is not None:
            if self._turns[link][-1] != ready[0]:
                return
            self._turns[link].pop()
        i = self._serving[link] = heapq.heappop(ready)
        job = self._jobs[i]
        if link in self._caps:
            self._run_down(now)
            self._left[i], self._rate[i] = job.nbytes, 0.0
            return
        self._begin(i, now)
        sent = now + job.nbytes * self._betas[link]
        self._push(sent, i, self._version[i])
        for j, delay in job.on_end:
            self._push(sent + delay, j, -1)

    def _begin(self, i: int, now: float) -> None:
        self._jobs[i].start = now
        for j, delay in self._jobs[i].on_start:
            self._push(now + delay, j, -1)

    def _run_down(self, now: float) -> None:
        """Count what was sent under limits since the last time."""
        if now > self._since:
            for i, rate in self._rate.items():
                self._left[i] -= rate * (now - self._since)
        self._since = now

    def _share(self, now: float) -> None:
        """Give every job under a limit its rate, in bytes per µs, from now on."""
        self._run_down(now)
        room = [limit.bandwidth * 1e3 for limit in self._limits]
        rates = dict.fromkeys(sorted(self._rate), 0.0)
        for claim in (self._promised(now), None):
            for i in rates:
                link = self._jobs[i].link
                most = self._speed(link, now) - rates[i]
                if claim is not None:
                    most = min(most, claim.get(i, 0.0))
                more = min([most, *(room[cap] for cap in self._caps[link])])
                if more * self._betas[link] > _NOTHING:
                    rates[i] += more
                    for cap in self._caps[link]:
                        room[cap] -= more
        for i, rate in rates.items():
            if rate != self._rate[i]:
                self._set_rate(i, rate, now)

    def _speed(self, link: int, now: float) -> float:
        """Return the bytes per µs that a link has from now on, whatever its limits."""
        share = 1.0 if self._slow is None else self._slow.at(link, now)
        return share / self._betas[link]

    def _set_rate(self, i: int, rate: float, now: float) -> None:
        """Let a job go on at another rate, and note when it will be done."""
        self._rate[i] = rate
        self._version[i] += 1
        if self._left[i] <= _LEFT * self._jobs[i].nbytes:
            self._push(now, i, self._version[i])
        elif rate > 0:
            if math.isnan(self._jobs[i].start):
                self._begin(i, now)
            self._push(now + self._left[i] / rate, i, self._version[i])

    def _promised(self, now: float) -> dict[int, float]:
        """Return the rate that each job is sure of now."""
        if self._promises is None:
            return {}
        epoch = math.floor(now / self._promises.epoch_duration + _NOTHING)
        return {
            i: self._promises.rates.get((self._jobs[i].link, epoch), 0.0)
            for i in self._rate
            if self._jobs[i].epoch <= epoch
        }
