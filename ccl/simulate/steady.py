"""Replay of forests and flows: they give the path of the data, so they are cut into parts.

Every chunk is cut into parts, which take the trees or paths in proportion to their weights. A
link sends of the parts that are there the one that is furthest behind: part i of n of a chunk
has the rank (i + 1/2) / n, so that all chunks and trees move on together, and a device passes a
part on when all of it has come. The more parts, the closer to the steady state. An all-reduce is
cut where its in-trees and its out-trees are (`ccl.tree_embedding`).

Many parts take the same path, so what waits for what is stored once for each path (`Parts`). Where
nothing but the links limits the parts, a loop of its own sends them, with the result of the engine:
an idle link takes of the parts that are ready the first in order.

A symmetric forest is replayed on one link of each orbit (`Orbits`). Let H be the group of the
forest, J the jobs of its representatives (a crossing of a link by a part) and h j the image of a
job j under an element h, on the link h l(j). All jobs are the h j, each once, since H leaves no GPU
and so no root in its place. Look for times with which every h j starts when j does.

* On a link l the jobs are, for each j whose link is in the orbit of l, the h j with h l(j) = l: as
  many as there are elements that leave l in its place, s(l) in number, the same for all of an
  orbit. These start together; let them be sent one after the other, s(l) bytes for each of one,
  and passed on when all of them have been sent.
* So l serves one bundle for each j on its orbit, and bundles must not overlap. The same holds on
  every link of the orbit, for the same j: it is enough to keep them apart on one of them.
* What a job waits for is in its own tree, so h j waits for the images under the same h of what j
  waits for: it holds for all h when it holds for the representatives.
* The links of an orbit send at one rate at every moment, so a limit with the same number k of
  links of each of its orbits lets through what a limit of a k-th does on one link of each.

Hence a replay of J on a topology with one link for each orbit, jobs of s(l) times their bytes and
these limits is a replay of the whole forest, and ends when that does. Where s(l) is 1, as on every
link that begins or ends at a GPU, each link of it serves whatever is ready and furthest behind, of
jobs that are equally far behind those of the first representative first. Where the links of a
limit are not as said, the forest has to be written out.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ccl.plans import Flow, Forest, paths
from ccl.problem import Problem
from ccl.simulate.engine import Engine, Job
from ccl.simulate.routes import SlowTimes
from ccl.symmetry import Symmetry
from ccl.timeline import Slices, Timeline, Transfers
from ccl.topology import SharedLimit, Topology, binding_limits
from ccl.tree_embedding import link_orbits, routes


@dataclass(frozen=True)
class Orbits:
    """One link for each orbit.

    Parameters
    ----------
    topology
        With these links alone, and limits on them.
    number
        (links,): number of the link there that stands for each.
    bundle
        (links,): s of the docstring.
    names
        Ends of the link that stands for each, by ends.
    images
        Order of the group.
    """

    topology: Topology
    number: np.ndarray
    bundle: np.ndarray
    names: dict[tuple[str, str], tuple[str, str]]
    images: int

    def of(self, links: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return for each link the number of the one that stands for it, and its s."""
        at = list(links)
        return tuple(self.number[at].tolist()), tuple(self.bundle[at].tolist())

    def annotated(self, timeline: Timeline) -> Timeline:
        """Return the timeline of representatives with what it stands for."""
        return replace(timeline, images=self.images, orbits=self.names)


def orbits_of(topology: Topology, symmetry: Symmetry) -> Orbits | None:
    """Return the orbits of links, or None where limits do not allow it."""
    first = link_orbits(symmetry)
    kept, number = np.unique(first, return_inverse=True)
    limits: dict[frozenset[int], SharedLimit] = {}
    ends = [link.ends for link in topology.links]
    for limit in binding_limits(topology):
        members, counts = np.unique(
            first[[topology.link_index[each] for each in limit.links]], return_counts=True
        )
        if len(set(counts.tolist())) > 1:
            return None
        reduced = SharedLimit(
            limit.name,
            tuple(ends[place] for place in members.tolist()),
            limit.bandwidth / int(counts[0]),
        )
        known = limits.setdefault(frozenset(members.tolist()), reduced)
        if known.bandwidth > reduced.bandwidth:
            limits[frozenset(members.tolist())] = reduced
    links = tuple(topology.links[place] for place in kept.tolist())
    return Orbits(
        topology=Topology(topology.name, topology.devices, links, tuple(limits.values())),
        number=number.ravel(),
        bundle=symmetry.order // np.bincount(first)[first],
        names=dict(zip(ends, (ends[place] for place in first.tolist()), strict=True)),
        images=symmetry.order,
    )


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

    def add(self, route: Track, nbytes: float) -> None:
        """Add a part of so many bytes."""
        base = len(self.link)
        self.link += route.links
        self.nbytes += [nbytes * many for many in route.many]
        self._waits += route.waits
        self._then += route.then
        self._base += [base] * len(route.links)

    def send(self, topology: Topology, slow: SlowTimes | None) -> None:
        """Send everything over the links of a topology."""
        self.start = [0.0] * len(self.link)
        self.sent = [0.0] * len(self.link)
        if not binding_limits(topology):
            self._freely(topology, slow)
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

    def _freely(self, topology: Topology, slow: SlowTimes | None) -> None:
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
                full = self.nbytes[job] * betas[link]
                begin, sent = (now, now + full) if slow is None else slow.sending(link, now, full)
                self.start[job], self.sent[job] = begin, sent
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


_PARTS = 64
_CROSSINGS = 50_000
_MOST_CROSSINGS = 300_000

_GAIN = 0.01
"""Share of the makespan that a doubling of the parts must have gained to justify another."""


@dataclass(frozen=True, slots=True)
class _Route:
    """A tree or path of a share of a chunk: its links, and for each the places it waits for."""

    chunk: int
    share: float
    links: tuple[int, ...]
    after: tuple[tuple[int, ...], ...]


def replay_forest(problem: Problem, forest: Forest, *, chunks: int | None) -> Timeline:
    """Replay a forest with `chunks` parts of each chunk; images follow their trees."""
    orbits = None
    if forest.symmetry is not None:
        orbits = None if problem.windows else orbits_of(problem.topology, forest.symmetry)
        if orbits is None:
            forest = forest.unfolded(problem.topology)
    found = [
        _Route(route.chunk, float(route.share), route.links, route.after)
        for route in routes(problem, forest)
    ]
    return _replay(problem, found, chunks=chunks, orbits=orbits)


def replay_flow(problem: Problem, flow: Flow, *, chunks: int | None) -> Timeline:
    """Replay a flow, taken apart into paths, with `chunks` parts of each chunk."""
    index = problem.topology.link_index
    found = []
    for number, taken in paths(problem, flow):
        whole = sum(share for share, _ in taken)
        for share, path in taken:
            links = tuple(index[ends] for ends in itertools.pairwise(path))
            after = ((), *((place,) for place in range(len(links) - 1)))
            found.append(_Route(number, share / whole, links, after[: len(links)]))
    return _replay(problem, found, chunks=chunks)


def _replay(
    problem: Problem, found: Sequence[_Route], *, chunks: int | None, orbits: Orbits | None = None
) -> Timeline:
    """Cut the chunks into parts and send them over their routes."""
    if chunks is not None:
        return _in_parts(problem, found, chunks=chunks, orbits=orbits)
    crossings = max(1.0, sum(route.share * len(route.links) for route in found))
    chunks = max(1, min(_PARTS, int(_CROSSINGS / crossings)))
    before = best = _in_parts(problem, found, chunks=max(1, chunks // 2), orbits=orbits)
    if chunks > 1:
        best = _in_parts(problem, found, chunks=chunks, orbits=orbits)
    # The time to fill and drain routes shrinks as parts do.
    while (
        best.makespan < before.makespan * (1 - _GAIN) and 2 * chunks * crossings < _MOST_CROSSINGS
    ):
        chunks *= 2
        before, best = best, _in_parts(problem, found, chunks=chunks, orbits=orbits)
    return before if before.makespan < best.makespan else best


def _in_parts(
    problem: Problem, found: Sequence[_Route], *, chunks: int, orbits: Orbits | None
) -> Timeline:
    """Replay with about so many parts of each chunk."""
    cut: list[tuple[float, _Route, float, Track]] = []
    sizes = [each.size for each in problem.collective.chunks]
    for route in found:
        count = max(1, round(route.share * chunks))
        nbytes = sizes[route.chunk] * route.share / count
        own = _track(route, orbits)
        cut += [((i + 0.5) / count, route, nbytes, own) for i in range(count)]
    cut.sort(key=lambda part: part[0])
    parts = Parts()
    for _, _, nbytes, own in cut:
        parts.add(own, nbytes)
    slow = SlowTimes(problem) if problem.windows else None
    parts.send(problem.topology if orbits is None else orbits.topology, slow)
    crossed = ((route.chunk, link) for _, route, _, _ in cut for link in route.links)
    after = _after(route for _, route, _, _ in cut)
    timeline = _timeline(problem, parts, crossed=crossed, after=after, chunks=chunks)
    return timeline if orbits is None else orbits.annotated(timeline)


def _track(route: _Route, orbits: Orbits | None) -> Track:
    """Return the links that a route takes, those that stand for its own where there are orbits."""
    if orbits is None:
        return track(route.links, (1,) * len(route.links), route.after)
    return track(*orbits.of(route.links), route.after)


def _after(cut: Iterable[_Route]) -> list[tuple[int, ...]]:
    """Return for each crossing of each part the places of those that it waits for."""
    found: list[tuple[int, ...]] = []
    for route in cut:
        base = len(found)
        found += [tuple([base + place for place in those]) for those in route.after]
    return found


def _timeline(
    problem: Problem,
    parts: Parts,
    *,
    crossed: Iterable[tuple[int, int]],
    after: Sequence[tuple[int, ...]],
    chunks: int,
) -> Timeline:
    links, topology = problem.topology.links, problem.topology
    chunk, link = (np.array(column, dtype=np.int64) for column in zip(*crossed, strict=True))
    start, sent, nbytes = map(np.array, (parts.start, parts.sent, parts.nbytes))
    end = sent + np.array([each.alpha for each in links])[link]
    rank = [topology.rank.get(each.dst, -1) for each in links]
    wanted = [frozenset(each.destinations) for each in problem.collective.chunks]
    needed = [rank[i] in wanted[of] for of, i in zip(chunk.tolist(), link.tolist(), strict=True)]
    ends, epoch = [each.ends for each in links], np.full(len(link), -1)
    transfers = Transfers(ends, link, chunk, start, sent, end, nbytes, epoch)
    placed, moved = transfers.by_start(Slices.of(after))
    return Timeline(placed, float(end[needed].max(initial=0.0)), chunks, after=moved)
