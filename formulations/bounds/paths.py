"""The longest of the quickest ways: no chunk arrives before its quickest way allows.

Plans that split chunks: a byte takes at least the sum of latencies of its way, so the makespan is
at least the least such sum from a holder to a destination; from the farthest holder where
contributions are added, since each of them must arrive.

Plans that never split a chunk of n bytes: a device that stores sends it on only when it has all
of it, so each stretch between two of these takes the sum of its latencies plus n times the beta
of its slowest link; devices in between that cannot store let it through as it comes, which is
the quickest that they can do. In the graph searched, a device that cannot store appears once for
every slowest link so far, and a stretch pays for its bytes when it ends.

On a link of such a stretch a chunk begins to cross no earlier than its first byte can be there,
however slow the links before are. From when it begins to cross a link, it takes at least the
latencies and n times the beta of the slowest link from this one on to have it all where it is
stored next. So three times are known of links: from a rank to the beginning on a link, from the
beginning on one link to that on another, and from there until a rank has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import igraph
import numpy as np

from ccl.bound import Bound, Path
from formulations.bounds.cuts import Network
from formulations.bounds.demand import Floats

_STORED = -1
"""In place of the slowest link so far: all of the chunk is there."""


@dataclass(frozen=True)
class Ways:
    """Quickest ways for a chunk of `nbytes`, or for a single byte if 0.

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

    def shown(self, start: int, stop: int) -> Path:
        """Return a quickest way from rank to rank."""
        graph, costs = self.graph
        src, dst = int(self.network.gpus[start]), int(self.network.gpus[stop])
        way = graph.get_shortest_path(src, dst, weights=costs)
        devices = self.network.problem.topology.devices
        return Path(tuple(devices[self.vertices[each][0]].name for each in way))

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
        """(devices,): µs from some vertices, as far as they were asked for."""
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
    """Return the bound of the longest quickest way, or None if no way takes any time."""
    best, worst = 0.0, (0, 0)
    chunks = network.problem.collective.chunks
    slowest = None
    for nbytes in sorted({each.size for each in chunks}) if whole_chunks else [0.0]:
        ways = Ways(network, nbytes)
        for makespan, start, stop in _slowest(network, ways.arrivals[:, network.gpus], nbytes):
            if makespan > best:
                best, worst, slowest = makespan, (start, stop), ways
    if slowest is None:
        return None
    return Bound(
        best,
        "path",
        slowest.shown(*worst),
        "the quickest way of a whole chunk" if whole_chunks else "latencies of the shortest way",
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
        ways = took[np.ix_(holders, destinations)]
        ends = ways.argmax(axis=0) if reduced else ways.argmin(axis=0)
        arrivals = ways[ends, np.arange(len(destinations))]
        last = int(arrivals.argmax())
        found.append((float(arrivals[last]), holders[ends[last]], destinations[last]))
    return found
