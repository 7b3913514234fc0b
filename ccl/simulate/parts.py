"""Parts that follow one another over links, each sent as soon as a link gets to it.

Many parts take the same ways, so what waits for what is kept once for each way. Where nothing but
the links limits the parts, a loop of its own sends them, with the result of the engine: an idle
link takes of the parts that are ready the first in order.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from ccl.simulate.engine import Engine, Job, binding
from ccl.simulate.slow import SlowTimes
from ccl.topology import Topology


@dataclass(frozen=True, slots=True)
class Track:
    """The crossings of a part: the number of the link of each, and what waits for what.

    Parameters
    ----------
    links
        Numbers of links, one for each crossing.
    many
        For each crossing how often it is sent there: 1, or more for a bundle of images.
    waits
        For each crossing how many others it waits for.
    then
        For each crossing the places of those that wait for it.
    """

    links: tuple[int, ...]
    many: tuple[int, ...]
    waits: tuple[int, ...]
    then: tuple[tuple[int, ...], ...]


def track(
    links: tuple[int, ...], many: tuple[int, ...], after: tuple[tuple[int, ...], ...]
) -> Track:
    """Turn round what each crossing waits for."""
    then: list[list[int]] = [[] for _ in links]
    for place, earlier in enumerate(after):
        for each in earlier:
            then[each].append(place)
    return Track(links, many, tuple(map(len, after)), tuple(map(tuple, then)))


@dataclass
class Parts:
    """All crossings of all parts, those of earlier parts first; one entry each.

    Parameters
    ----------
    link
        Number of its link.
    nbytes
        Bytes.
    start, sent
        µs, once they have been sent.
    """

    link: list[int] = field(default_factory=list)
    nbytes: list[float] = field(default_factory=list)
    start: list[float] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    _waits: list[int] = field(default_factory=list)
    _then: list[tuple[int, ...]] = field(default_factory=list)
    _base: list[int] = field(default_factory=list)

    def add(self, way: Track, nbytes: float) -> None:
        """Add a part of so many bytes."""
        base = len(self.link)
        self.link += way.links
        self.nbytes += [nbytes * many for many in way.many]
        self._waits += way.waits
        self._then += way.then
        self._base += [base] * len(way.links)

    def send(self, topology: Topology, slow: SlowTimes | None) -> None:
        """Send everything over the links of a topology."""
        self.start = [0.0] * len(self.link)
        self.sent = [0.0] * len(self.link)
        if slow is None and not binding(topology):
            self._freely(topology)
            return
        alphas = [link.alpha for link in topology.links]
        jobs = [
            Job(link, nbytes, waits)
            for link, nbytes, waits in zip(self.link, self.nbytes, self._waits, strict=True)
        ]
        for job, then, base in zip(jobs, self._then, self._base, strict=True):
            job.on_end = [(base + place, alphas[job.link]) for place in then]
        Engine(topology, jobs, in_order=False, slow=slow).run()
        self.start = [job.start for job in jobs]
        self.sent = [job.sent for job in jobs]

    def _freely(self, topology: Topology) -> None:
        """Send everything where no limit binds: event 2 j is that j has arrived, 2 j + 1 sent."""
        ready = _Ready(self.link, len(topology.links))
        betas, alphas = _speeds(topology)
        then = self._then
        events: list[tuple[float, int]] = []
        for job, count in enumerate(self._waits):
            if not count:
                ready.put(job)
        now = 0.0
        while True:
            for job in ready.chosen():
                link = self.link[job]
                self.start[job] = now
                sent = self.sent[job] = now + self.nbytes[job] * betas[link]
                heapq.heappush(events, (sent, 2 * job + 1))
                if then[job]:
                    heapq.heappush(events, (sent + alphas[link], 2 * job))
            if not events:
                return
            now = events[0][0]
            while events and events[0][0] == now:
                job, sent_now = divmod(heapq.heappop(events)[1], 2)
                if sent_now:
                    ready.free(self.link[job])
                else:
                    self._arrived(job, ready)

    def _arrived(self, job: int, ready: _Ready) -> None:
        """Let those go that wait for a crossing, and for nothing else."""
        base, waits = self._base[job], self._waits
        for place in self._then[job]:
            waits[base + place] -= 1
            if not waits[base + place]:
                ready.put(base + place)


class _Ready:
    """Jobs that may be sent, by link, and the links that are idle."""

    def __init__(self, link: Sequence[int], links: int) -> None:
        self._link = link
        self._jobs: list[list[int]] = [[] for _ in range(links)]
        self._busy = [False] * links
        self._touched: set[int] = set()

    def put(self, job: int) -> None:
        """Let a job wait for its link."""
        link = self._link[job]
        heapq.heappush(self._jobs[link], job)
        if not self._busy[link]:
            self._touched.add(link)

    def free(self, link: int) -> None:
        """Let a link take another job."""
        self._busy[link] = False
        if self._jobs[link]:
            self._touched.add(link)

    def chosen(self) -> list[int]:
        """Return the first job of each idle link that has one, which it begins now."""
        found = []
        for link in self._touched:
            self._busy[link] = True
            found.append(heapq.heappop(self._jobs[link]))
        self._touched.clear()
        return found


def _speeds(topology: Topology) -> tuple[list[float], list[float]]:
    return [link.beta for link in topology.links], [link.alpha for link in topology.links]
