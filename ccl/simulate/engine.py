"""Event-driven replay: links that serve jobs, and shared limits that slow them down.

A link serves one job at a time: of the jobs that are ready the one of lowest rank, or, in order,
always the next in rank. Links under a limit that binds, and links that have less bandwidth for a
time, get their rates anew at every event: in order of rank each job takes what its link and its
limits still have. Where a schedule promises a link some bytes in an epoch, the link is sure of
that rate first, so that no job ahead of its time can make another late.

A job may take on the bytes of others before all of them are there (`ccl.plans.Send.via`).
Where all rates are known it waits until it can send without a pause. Else it follows: no byte of
it leaves before it has come, so that without a backlog it is as slow as what it follows, and holds
its link until the last has left. What it is promised and cannot use goes to no other, else jobs
that follow one another would take turns at a limit for ever.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from ccl.simulate.routes import SlowTimes
from ccl.topology import Topology, binding_limits

_NOTHING = 1e-12
"""What is left of a bandwidth, or of what comes, and below this share of it is a rounding error."""

_LEFT = 1e-10
"""Likewise bytes below this share of a job; they must not wait for a rate when an epoch ends."""

_NEWS = -(1 << 62)
"""Version of the first event; among simultaneous ones those reported first come first."""


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
    follows
        ``(job, alpha)``: jobs whose bytes it takes on, each of them so many µs after it left.
    on_end
        ``(job, delay)``: jobs that it triggers so many µs after its last byte has left the link.
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
    follows: list[tuple[int, float]] = field(default_factory=list)
    on_end: list[tuple[int, float]] = field(default_factory=list)
    epoch: int = 0
    release: float = 0.0
    start: float = math.nan
    sent: float = math.nan


class Promises:
    """Bytes per µs that each link is sure of.

    Parameters
    ----------
    spread
        Links, each with the epoch from which on and the one until which it has a rate, and that
        rate; those of one link add up.
    epoch_duration
        µs.
    """

    def __init__(
        self, spread: Iterable[tuple[int, int, int, float]], epoch_duration: float
    ) -> None:
        self.epoch_duration = epoch_duration
        steps: defaultdict[int, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
        for link, begin, end, rate in spread:
            steps[link][begin] += rate
            steps[link][end] -= rate
        # Epochs are stored where the rate changes: there may be more of them than there is memory.
        self._since = {link: sorted(those) for link, those in steps.items()}
        self._rates = {
            link: list(accumulate(steps[link][epoch] for epoch in since))
            for link, since in self._since.items()
        }

    def rate(self, link: int, epoch: int) -> float:
        """Return what a link is sure of in an epoch."""
        place = bisect_right(self._since.get(link, ()), epoch) - 1
        return self._rates[link][place] if place >= 0 else 0.0

    def changes(self) -> list[int]:
        """Return the epochs, but the first, with which a link may be sure of another rate."""
        return sorted({epoch for since in self._since.values() for epoch in since if epoch > 0})


class _Inflow:
    """What has come to a job from each of those that it follows, and how fast more comes."""

    def __init__(self, sources: int) -> None:
        self.came = [0.0] * sources
        self.rate = [0.0] * sources
        self._all = [False] * sources
        self._since = 0.0

    def change(self, source: int, rate: float, now: float) -> None:
        """Let bytes come at another rate from now on; less than none says that all have come."""
        self._run(now)
        self.rate[source] = max(0.0, rate)
        self._all[source] |= rate < 0

    def open(self, now: float) -> list[tuple[float, float]]:
        """Return what has come and at which rate more does, of each from which more does."""
        self._run(now)
        return [
            (came, rate)
            for came, rate, done in zip(self.came, self.rate, self._all, strict=True)
            if not done
        ]

    def all_came(self) -> bool:
        """Return whether no more bytes come."""
        return all(self._all)

    def _run(self, now: float) -> None:
        for source, rate in enumerate(self.rate):
            self.came[source] += rate * (now - self._since)
        self._since = now


def _rest(whole: float, used: float) -> float:
    """Return what is left of a rate, none where that could be a rounding error."""
    return whole - used if used < whole * (1 - _NOTHING) else 0.0


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
        self._limits = binding_limits(topology)
        self._rooms = [limit.bandwidth * 1e3 for limit in self._limits]
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
        # Of each job that has a rate of its own: bytes left, bytes per µs, and when that was so.
        self._left: dict[int, float] = {}
        self._rate: dict[int, float] = {}
        self._since = 0.0
        self._version = [0] * len(jobs)
        self._follow()

    def _follow(self) -> None:
        """Find which jobs have rates of their own, and who follows whom."""
        self._rated = [job.link in self._caps for job in self._jobs]
        self._followers: defaultdict[int, list[tuple[int, int, float]]] = defaultdict(list)
        self._inflow: dict[int, _Inflow] = {}
        self._news: list[tuple[int, float]] = []
        self._stale: set[int] = set()
        # Jobs come after those that they follow.
        for i, job in enumerate(self._jobs):
            self._rated[i] |= any(self._rated[before] for before, _ in job.follows)
            job.waits += len(job.follows)
            for source, (before, alpha) in enumerate(job.follows):
                self._followers[before].append((i, source, alpha))
            if job.follows and self._rated[i]:
                self._inflow[i] = _Inflow(len(job.follows))
        self._shared = {
            job.link for job, rated in zip(self._jobs, self._rated, strict=True) if rated
        }

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
        """Note an event: -1 triggers the job, a version ends it if it is still that one.

        Less than -1 is news of what comes to it.
        """
        heapq.heappush(self._events, (time, job, version))

    def _step(self, now: float) -> None:
        """Handle everything that happens at one moment, then let links choose."""
        touched: set[int] = set()
        while self._events and self._events[0][0] == now:
            _, i, version = heapq.heappop(self._events)
            if i < 0:
                touched.update(self._shared)
            elif version < -1:
                self._inflow[i].change(*self._news[version - _NEWS], now)
                self._stale.add(i)
                touched.add(self._jobs[i].link)
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
        if not touched.isdisjoint(self._shared):
            self._share(now)

    def _finish(self, i: int, now: float) -> None:
        job = self._jobs[i]
        if i in self._rate:
            self._run_down(now)
            if i in self._inflow and not (self._sent(i) and self._inflow[i].all_came()):
                self._stale.add(i)  # its backlog is at an end, it is not
                return
            del self._left[i], self._rate[i]
            for j, delay in job.on_end:
                self._push(now + delay, j, -1)
            self._tell(i, now, -1.0)
        job.sent = now
        self._serving[job.link] = None

    def _tell(self, i: int, now: float, rate: float) -> None:
        """Notify those that follow a job of the rate at which its bytes come from now on."""
        for j, source, alpha in self._followers.get(i, ()):
            if j in self._inflow:
                self._push(now + alpha, j, _NEWS + len(self._news))
                self._news.append((source, rate))

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
        if self._rated[i]:
            self._run_down(now)
            self._left[i], self._rate[i] = job.nbytes, 0.0
            return
        self._begin(i, now)
        sent = now + job.nbytes * self._betas[link]
        self._push(sent, i, self._version[i])
        for j, delay in job.on_end:
            self._push(sent + delay, j, -1)
        self._tell(i, now, 1 / self._betas[link])
        self._tell(i, sent, -1.0)

    def _begin(self, i: int, now: float) -> None:
        job = self._jobs[i]
        job.start = now
        for j, _, alpha in self._followers.get(i, ()):
            wait = 0.0
            if not self._rated[j]:
                # Faster, it waits until it can send without a pause.
                faster = self._betas[job.link] - self._betas[self._jobs[j].link]
                wait = max(0.0, job.nbytes * faster)
            self._push(now + alpha + wait, j, -1)

    def _run_down(self, now: float) -> None:
        """Count what was sent under limits since the last time."""
        if now > self._since:
            for i, rate in self._rate.items():
                self._left[i] -= rate * (now - self._since)
        self._since = now

    def _share(self, now: float) -> None:
        """Give every job with a rate of its own that rate, in bytes per µs, from now on."""
        self._run_down(now)
        ended = {i for i in self._left if self._sent(i)}
        rates = dict.fromkeys(sorted(self._rate), 0.0)
        coming = {i: self._coming(i, now) for i in rates if i in self._inflow}
        used = [0.0] * len(self._rooms)
        for claim in (self._promised(now), None):
            for i in rates:
                if i not in ended:
                    self._give(i, now, rates, used=used, most=(coming.get(i, math.inf), claim))
        for i, rate in rates.items():
            if rate != self._rate[i] or i in self._stale or i in ended:
                self._set_rate(i, rate, now)
        self._stale.clear()

    def _give(
        self,
        i: int,
        now: float,
        rates: dict[int, float],
        *,
        used: list[float],
        most: tuple[float, dict[int, float] | None],
    ) -> None:
        """Give a job what its link and limits have left, no more than comes to it or it claims."""
        link, (coming, claim) = self._jobs[i].link, most
        caps = self._caps.get(link, ())
        more = _rest(self._speed(link, now), rates[i])
        for cap in caps:
            more = min(more, _rest(self._rooms[cap], used[cap]))
        if claim is not None:
            more = min(more, claim.get(i, 0.0))
        taken = more
        more = min(more, _rest(coming, rates[i]))
        rates[i] += more
        for cap in caps:
            used[cap] += more if claim is None else taken

    def _coming(self, i: int, now: float) -> float:
        """Return the rate that a job cannot exceed, as it has sent on all that has come."""
        slow = [rate for backlog, rate in self._backlogs(i, now) if not backlog]
        return min(slow, default=math.inf)

    def _backlogs(self, i: int, now: float) -> list[tuple[float, float]]:
        """Return what has come to a job and not been sent on, and at which rate more comes.

        That of each that it follows and from which more comes.
        """
        nbytes = self._jobs[i].nbytes
        sent = nbytes - self._left[i]
        # A backlog that is gone in less than a moment is negligible.
        least = max(_LEFT * nbytes, math.ulp(now) / self._betas[self._jobs[i].link])
        return [
            (came - sent if came - sent > least else 0.0, rate)
            for came, rate in self._inflow[i].open(now)
        ]

    def _sent(self, i: int) -> bool:
        """Return whether next to nothing of a job with a rate of its own is left."""
        return self._left[i] <= _LEFT * self._jobs[i].nbytes

    def _speed(self, link: int, now: float) -> float:
        """Return the bytes per µs that a link has from now on, whatever its limits."""
        share = 1.0 if self._slow is None else self._slow.at(link, now)
        return share / self._betas[link]

    def _set_rate(self, i: int, rate: float, now: float) -> None:
        """Let a job go on at another rate, and note when it will be done."""
        if rate != self._rate[i]:
            self._tell(i, now, rate)
        self._rate[i] = rate
        self._version[i] += 1
        left = self._left[i]
        if self._sent(i):
            # It holds its link until all has come that it takes on, however that was counted.
            if i not in self._inflow or self._inflow[i].all_came():
                self._push(now, i, self._version[i])
        elif rate > 0:
            if math.isnan(self._jobs[i].start):
                self._begin(i, now)
            moment = left / rate
            if i in self._inflow:
                for backlog, comes in self._backlogs(i, now):
                    if backlog and rate > comes:
                        moment = min(moment, backlog / (rate - comes))
            # What ends in less time than a clock can resolve ends later too, or it would for ever.
            later = max(now + moment, math.nextafter(now, math.inf))
            self._push(later, i, self._version[i])

    def _promised(self, now: float) -> dict[int, float]:
        """Return the rate that each job is sure of now."""
        if self._promises is None:
            return {}
        epoch = math.floor(now / self._promises.epoch_duration + _NOTHING)
        return {
            i: self._promises.rate(self._jobs[i].link, epoch)
            for i in self._rate
            if self._jobs[i].epoch <= epoch
        }
