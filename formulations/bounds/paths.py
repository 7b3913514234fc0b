"""Bounds by quickest paths, and by two cuts that chunks must leave one after the other.

No chunk arrives before its quickest path allows (`path_bound`).

Plans that split chunks: a byte takes at least the sum of latencies of its path, so the makespan is
at least the least such sum from a holder to a destination; from the farthest holder where
contributions are added, since each of them must arrive.

Plans that never split a chunk of n bytes: a device that stores sends it on only when it has all
of it, so each segment between two of these takes the sum of its latencies plus n times the beta
of its slowest link; devices in between that cannot store let it through as it comes, which is
the quickest that they can do. In the graph searched, a device that cannot store appears once for
every slowest link so far, and a segment pays for its bytes when it ends.

On a link of such a segment a chunk begins to cross no earlier than its first byte can be there,
however slow the links before are. From when it begins to cross a link, it takes at least the
latencies and n times the beta of the slowest link from this one on to have it all where it is
stored next. So three times are known of links (`QuickestPaths`): from a rank to the beginning on a
link, from the beginning on one link to that on another, and from there until a rank has it.

Two cuts (`Stages`): let S be a set of devices inside a larger set R, and let every chunk of some
set C come from inside S and have to get out of R. On the chain of sends that brings it, the last
hop that leaves R is the last hop that leaves S, or comes after it: what has left S for good may
still be inside R, never the reverse. So with the machines of `formulations.bounds.demand`

* the chunks of C begin to leave S for good over the links f that leave S. Their releases are the
  µs in which they can be at f, and the first, second, ... of them begins no earlier than a curve
  c_1 <= c_2 <= ... says;
* each then begins to leave R for good over some link e that leaves R, no earlier than `lag(f, e)`
  after it began on f (the second of the three times; nothing if f is e). So at e they are jobs
  released at c_j + the least lag of all f. Chunks that have to get out of R and do not come from
  inside S are more jobs there, released when they can be at e;
* and T is no earlier than when the last of all these begins, plus the quickest path over e and on
  to where it must be.

Heads, lags and tails depend on job and link. What is least over jobs is taken as that of the link,
and what every link requires of a job beyond this as the release of the job, which is never too
much.

The same chain read backwards in time leaves the destinations over the same links: there c_j says
how long before T the chunk that begins last, last but one, ... on a link into S begins. The lag is
again that between two beginnings, so the argument is the same, with heads for tails. It is what
counts for scatter, for reductions and for whatever else is narrow where it starts.

Nothing is said on how chunks move otherwise: copies, cut-through, relays outside of R and back, and
several links in either cut change none of the steps above.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ccl.bound import Bound, Path
from ccl.symmetry.graphs import igraph
from formulations.bounds.cuts import Network
from formulations.bounds.demand import Floats, Kinds, Mask, curve, last, slots

_STORED = -1
"""In place of the slowest link so far: all of the chunk is there."""


@dataclass(frozen=True)
class QuickestPaths:
    """Quickest paths for a chunk of `nbytes`, or for a single byte if 0.

    Parameters
    ----------
    network
        Whose devices and links there are.
    nbytes
        Bytes of the chunk, never split.
    """

    network: Network
    nbytes: float

    @cached_property
    def vertices(self) -> tuple[tuple[int, int], ...]:
        """Device and slowest link so far (its rank among betas) of each vertex.

        The first are the devices themselves, whether or not they can have all of it.
        """
        devices = self.network.problem.topology.devices
        levels = range(len(self._betas)) if self.nbytes else range(1)
        plain = [(number, _STORED) for number in range(len(devices))]
        held = [
            (number, level)
            for number, each in enumerate(devices)
            if not each.stores
            for level in levels
        ]
        return (*plain, *held)

    @cached_property
    def graph(self) -> tuple[igraph.Graph, list[float]]:
        """The graph to search and the µs of its edges."""
        network = self.network
        stores = [each.stores for each in network.problem.topology.devices]
        edges: list[tuple[int, int]] = []
        costs: list[float] = []
        levels = range(len(self._betas)) if self.nbytes else range(1)
        for (src, dst), own, alpha in zip(
            network.ends.tolist(), self._level.tolist(), network.alpha.tolist(), strict=True
        ):
            for before in [_STORED] if stores[src] else levels:
                slowest = max(before, own)
                paid = self.nbytes * self._betas[slowest] if stores[dst] else 0.0
                edges.append(
                    (
                        self._number[src, before],
                        self._number[dst, _STORED if stores[dst] else slowest],
                    )
                )
                costs.append(alpha + paid)
        return igraph.Graph(n=len(self.vertices), edges=edges, directed=True), costs

    @cached_property
    def arrivals(self) -> Floats:
        """(ranks, devices): µs from a rank until a chunk is at a device.

        All of it at a device that stores, its first byte at another.
        """
        return self._earliest(self._distances("out"))

    def brings(self, links: np.ndarray) -> Floats:
        """Return (ranks, links): least µs from when a chunk begins to cross a link to a rank.

        Its last byte is paid for at the slowest link until the next device that stores.
        """
        vertices, costs = self._behind(links)
        return np.asarray(self._to_ranks[:, vertices] + costs)

    def follows(self, links: np.ndarray) -> Floats:
        """Return (ranks, links): least µs from when a chunk has left a link until a rank has it."""
        devices = self.network.problem.topology.devices
        heads = self.network.ends[links, 1]
        stores = np.array([devices[i].stores for i in heads], dtype=bool)
        paid = self.nbytes * 1e-3 / self.network.bandwidth[links]
        passing = self.network.alpha[links] + self.network.latency_to[:, heads]
        return np.asarray(np.where(stores, self.brings(links) - paid, passing))

    def begins(self, links: np.ndarray) -> Floats:
        """Return (ranks, links): least µs from a rank to when a chunk begins to cross a link."""
        return np.asarray(self.arrivals[:, self.network.ends[links, 0]])

    def between(self, first: np.ndarray, then: np.ndarray) -> Floats:
        """Return (first, then): least µs from when a chunk begins to cross a link to the other.

        Nothing where both are the same link.
        """
        vertices, costs = self._behind(first)
        new = [each for each in np.unique(vertices).tolist() if each not in self._onwards]
        if new:
            graph, weights = self.graph
            found = np.asarray(graph.distances(new, weights=weights), dtype=float)
            self._onwards.update(zip(new, self._earliest(found), strict=True))
        tails = self.network.ends[then, 0]
        took = np.array([self._onwards[each][tails] for each in vertices.tolist()])
        return np.where(first[:, None] == then, 0.0, took + costs[:, None])

    def _behind(self, links: np.ndarray) -> tuple[np.ndarray, Floats]:
        """Return (links,): the vertex after a link, and the µs from its beginning to there."""
        devices = self.network.problem.topology.devices
        heads = self.network.ends[links, 1]
        stores = np.array([devices[i].stores for i in heads], dtype=bool)
        vertices = [
            self._number[int(head), _STORED if kept else int(level)]
            for head, kept, level in zip(heads, stores, self._level[links], strict=True)
        ]
        paid = np.where(stores, self.nbytes * 1e-3 / self.network.bandwidth[links], 0.0)
        return np.array(vertices, dtype=np.int64), self.network.alpha[links] + paid

    def _earliest(self, times: Floats) -> Floats:
        """Return (starts, devices) from (starts, vertices): the least of those of a device."""
        devices = len(self.network.problem.topology.devices)
        earliest = times[:, :devices].copy()
        for vertex, (number, _) in enumerate(self.vertices[devices:], start=devices):
            np.minimum(earliest[:, number], times[:, vertex], out=earliest[:, number])
        return earliest

    def example(self, start: int, stop: int) -> Path:
        """Return a quickest path from rank to rank."""
        graph, costs = self.graph
        src, dst = int(self.network.gpus[start]), int(self.network.gpus[stop])
        path = graph.get_shortest_path(src, dst, weights=costs)
        devices = self.network.problem.topology.devices
        return Path(tuple(devices[self.vertices[each][0]].name for each in path))

    @cached_property
    def _number(self) -> dict[tuple[int, int], int]:
        return {vertex: i for i, vertex in enumerate(self.vertices)}

    @cached_property
    def _betas(self) -> tuple[float, ...]:
        """µs a byte, every one that there is."""
        return tuple(np.unique(1e-3 / self.network.bandwidth).tolist())

    @cached_property
    def _level(self) -> np.ndarray:
        """(links,): the place of the beta of each link among all, zero for a single byte."""
        if not self.nbytes:
            return np.zeros(len(self.network.bandwidth), dtype=np.int64)
        return np.searchsorted(self._betas, 1e-3 / self.network.bandwidth)

    @cached_property
    def _onwards(self) -> dict[int, Floats]:
        """(devices,): µs from some vertices, as far as they were requested."""
        return {}

    @cached_property
    def _to_ranks(self) -> Floats:
        return self._distances("in")

    def _distances(self, mode: str) -> Floats:
        """Return (ranks, vertices): µs from each rank or to each rank."""
        graph, costs = self.graph
        found = graph.distances(self.network.gpus.tolist(), weights=costs, mode=mode)
        return np.asarray(found, dtype=float).reshape(len(self.network.gpus), -1)


def path_bound(network: Network, *, whole_chunks: bool) -> Bound | None:
    """Return the bound of the longest quickest path, or None if no path takes any time."""
    best, worst = 0.0, (0, 0)
    chunks = network.problem.collective.chunks
    slowest = None
    for nbytes in sorted({each.size for each in chunks}) if whole_chunks else [0.0]:
        quickest = QuickestPaths(network, nbytes)
        for makespan, start, stop in _slowest(network, quickest.arrivals[:, network.gpus], nbytes):
            if makespan > best:
                best, worst, slowest = makespan, (start, stop), quickest
    if slowest is None:
        return None
    return Bound(
        best,
        "path",
        slowest.example(*worst),
        "the quickest path of a whole chunk" if whole_chunks else "latencies of the shortest path",
        whole_chunks,
    )


def _slowest(network: Network, took: Floats, nbytes: float) -> list[tuple[float, int, int]]:
    """Return µs, holder and destination of the slowest of all pairs and of each kind of chunk."""
    found = []
    needed = {
        (chunk.holders, chunk.destinations, chunk.reduced)
        for chunk in network.problem.collective.chunks
        if chunk.size == nbytes or not nbytes
    }
    pairs = sorted((*one, *other) for one, other, _ in needed if len(one) == len(other) == 1)
    if pairs:
        # One holder and one destination each, of which an all-to-all has thousands.
        starts, stops = np.array(pairs).T
        arrivals = took[starts, stops]
        last = int(arrivals.argmax())
        found.append((float(arrivals[last]), *pairs[last]))
    for holders, destinations, reduced in needed:
        if len(holders) == len(destinations) == 1:
            continue
        quickest = took[np.ix_(holders, destinations)]
        ends = quickest.argmax(axis=0) if reduced else quickest.argmin(axis=0)
        arrivals = quickest[ends, np.arange(len(destinations))]
        last = int(arrivals.argmax())
        found.append((float(arrivals[last]), holders[ends[last]], destinations[last]))
    return found


_COPIES = 3_000_000
"""Most copies that are looked at one by one."""


@dataclass(frozen=True)
class Direction:
    """Chunks as they leave sets of devices, forwards or backwards in time.

    Parameters
    ----------
    network
        Whose devices and links there are.
    paths
        Of the chunks.
    kinds
        The chunks; turned, if it is backwards.
    backwards
        Whether time is read backwards: then chunks leave a set over the links that enter it.
    """

    network: Network
    quickest: QuickestPaths
    kinds: Kinds
    backwards: bool

    def links(self, inside: Mask) -> np.ndarray:
        """Return the numbers of the links over which chunks leave a set."""
        return self.network.crossing(~inside if self.backwards else inside)

    def opens(self, links: np.ndarray) -> Floats:
        """Return (ranks, links): µs from a start to a link."""
        return self.quickest.brings(links) if self.backwards else self.quickest.begins(links)

    def closes(self, links: np.ndarray) -> Floats:
        """Return (ranks, links): µs from a link to a stop."""
        return self.quickest.begins(links) if self.backwards else self.quickest.brings(links)

    def lag(self, first: np.ndarray, then: np.ndarray) -> Floats:
        """Return (first, then): µs from one link to another."""
        if self.backwards:
            return self.quickest.between(then, first).T
        return self.quickest.between(first, then)

    @cached_property
    def parting(self) -> Mask:
        """(devices,): where one transmission can become several, in the direction of time."""
        devices = self.network.problem.topology.devices
        return np.array(
            [each.stores or (each.reduces if self.backwards else each.copies) for each in devices]
        )

    def entering(self, around: Mask) -> np.ndarray:
        """Return the links by which the last segments to the GPUs of a set enter it."""
        src, dst = self.network.ends[:, ::-1].T if self.backwards else self.network.ends.T
        gpus = np.zeros(len(around), dtype=bool)
        gpus[self.network.gpus] = True
        useful = around[dst] & (gpus | ~self.parting)[dst]
        return np.flatnonzero(useful & (~around | self.parting)[src])

    def pace(self, links: np.ndarray) -> Floats:
        """Return (links,): µs for which a chunk is on each."""
        return np.asarray(self.quickest.nbytes * 1e-3 / self.network.bandwidth[links])


@dataclass(frozen=True)
class Jobs:
    """Groups of jobs before some machines.

    Parameters
    ----------
    releases
        For each group its releases in order, in µs.
    offsets
        (groups, machines): µs from the release of a job to when it can begin on a machine.
    """

    releases: tuple[Floats, ...]
    offsets: Floats

    def curve(self, pace: Floats) -> Floats:
        """Return when jobs begin at the earliest, in order."""
        released, given = self._split(self.offsets.min(axis=0), pace)
        return curve(released, given)

    def last(self, pace: Floats, tails: Floats) -> float:
        """Return when the last job, of the first group or of all, is where it must be.

        `tails` are, for each group and machine, the µs that this takes from when a job begins.
        """
        own, least = self.offsets[0], self.offsets.min(axis=0)
        first = Jobs(self.releases[:1], self.offsets[:1])
        proved = last(*first._split(own, pace, tails=tails[0]))
        if len(self.releases) == 1:
            return proved
        for opens in (least, np.where(np.isfinite(own), own, least)):
            proved = max(proved, last(*self._split(opens, pace, tails=tails.min(axis=0))))
        return proved

    def _split(
        self, opens: Floats, pace: Floats, *, tails: Floats | float = 0.0
    ) -> tuple[Floats, Floats]:
        """Return releases in order, and slots with their tails, when machines open at `opens`.

        This may be anything, if finite wherever any group can go: a job of a group is as if
        released by what the machine that suits it best requires of it beyond that.
        """
        used = np.isfinite(opens)
        extra = (self.offsets[:, used] - opens[used]).min(axis=1)
        each = [own + more for own, more in zip(self.releases, extra, strict=True)]
        released = np.sort(np.concatenate(each))
        return released, slots(opens + tails, pace, count=len(released))


class Stages:
    """The two-stage bounds of one direction."""

    def __init__(self, direction: Direction) -> None:
        self._is = direction
        self._gpus = direction.network.gpus

    def makespan(self, inner: Mask, outer: Mask) -> float:
        """Return the µs that two sets prove, the first inside the second; 0 if nothing."""
        whole = self._is
        near, far = inner[self._gpus], outer[self._gpus]
        leaving = whole.kinds.leaving(far)
        through = leaving & whole.kinds.coming(near)
        if not through.any():
            return 0.0
        first, then = whole.links(inner), whole.links(outer)
        passing, others = whole.kinds.chosen(through), whole.kinds.chosen(leaving & ~through)
        closes = whole.closes(then)
        lag = whole.lag(first, then).min(axis=0)
        direct = others.opening(whole.opens(then), far)
        tails = np.vstack([passing.closing(closes, far).min(axis=0), others.closing(closes, far)])
        jobs = Jobs(
            (self.curve(passing, near, first), *(np.zeros(count) for count in others.counts)),
            np.vstack([lag, direct]),
        )
        return jobs.last(whole.pace(then), tails)

    def curve(self, kinds: Kinds, inside: Mask, links: np.ndarray) -> Floats:
        """Return when the chunks begin to leave a set, in order."""
        offsets = kinds.opening(self._is.opens(links), inside)
        jobs = Jobs(tuple(np.zeros(count) for count in kinds.counts), offsets)
        return jobs.curve(self._is.pace(links))

    def spread(self, around: Mask) -> float:
        """Return the µs that the copies made inside a set prove; 0 if nothing."""
        whole = self._is
        parts = whole.parting
        stops = around[self._gpus]
        links = whole.entering(around)
        pairs = whole.kinds.copies(stops)
        coming = whole.kinds.coming(~stops) & (pairs > 0)
        own = ~coming & (pairs > 0)
        if not coming.any() or parts[around].all() or pairs @ whole.kinds.counts > _COPIES:
            return 0.0
        outside = whole.links(~around)
        passing, others = whole.kinds.chosen(coming), whole.kinds.chosen(own)
        closes = whole.closes(links)[stops].min(axis=0)
        lag = whole.lag(outside, links).min(axis=0)
        # All copies of a chunk are released with it; the fewest of any chunk count.
        done = np.repeat(self.curve(passing, ~stops, outside), int(pairs[coming].min()))
        direct = _nearest(whole.opens(links), others.starts)
        many = others.counts * pairs[own]
        jobs = Jobs((done, *(np.zeros(count) for count in many)), np.vstack([lag, direct]))
        return jobs.last(whole.pace(links), closes[None, :])


def _nearest(times: Floats, ranks: Mask) -> Floats:
    """Return (kinds, links) from (ranks, links): times of the nearest of some ranks."""
    found = [times[each].min(axis=0) for each in ranks]
    return np.array(found).reshape(len(ranks), times.shape[1])
