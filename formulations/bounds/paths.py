"""The longest of the quickest ways: no chunk arrives before its quickest way allows.

Plans that split chunks: a byte takes at least the sum of latencies of its way, so the makespan is
at least the least such sum from a holder to a destination; from the farthest holder where
contributions are added, since each of them must arrive.

Plans that never split a chunk of n bytes: a device that stores sends it on only when it has all
of it, so each stretch between two of these takes the sum of its latencies plus n times the beta
of its slowest link; devices in between that cannot store let it through as it comes, which is
the quickest that they can do. In the graph searched, a device that cannot store appears once for
every slowest link so far, and a stretch pays for its bytes when it ends. It appears once more for
a chunk whose last byte has just come in from elsewhere, which pays for latencies alone from there
to the end of the stretch; no edge leads there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import igraph
import numpy as np

from ccl.bound import Bound, Path
from formulations.bounds.cuts import Network
from formulations.bounds.demand import Floats

_PASSING = -1
"""In place of the slowest link so far: its last byte has just come in."""


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

        The first are the devices themselves; of those that cannot store, as passing.
        """
        devices = self.network.problem.topology.devices
        levels = range(len(self._betas)) if self.nbytes else range(1)
        plain = [(number, _PASSING) for number in range(len(devices))]
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
        topology = self.network.problem.topology
        stores = [each.stores for each in topology.devices]
        number = {vertex: i for i, vertex in enumerate(self.vertices)}
        rank = {beta: i if self.nbytes else 0 for i, beta in enumerate(self._betas)}
        edges: list[tuple[int, int]] = []
        costs: list[float] = []
        for (src, dst), link in zip(self.network.ends.tolist(), topology.links, strict=True):
            levels = [_PASSING] if stores[src] else range(_PASSING, len(set(rank.values())))
            for before in levels:
                passing = before == _PASSING and not stores[src]
                slowest = before if passing else max(before, rank[link.beta])
                paid = self.nbytes * self._betas[slowest] if stores[dst] and not passing else 0.0
                edges.append(
                    (number[src, before], number[dst, _PASSING if stores[dst] else slowest])
                )
                costs.append(link.alpha + paid)
        return igraph.Graph(n=len(number), edges=edges, directed=True), costs

    @cached_property
    def arrivals(self) -> Floats:
        """(ranks, devices): µs from a rank until a chunk is at a device.

        All of it at a device that stores, its first byte at another.
        """
        found = self._distances("out")
        devices = len(self.network.problem.topology.devices)
        earliest = found[:, :devices]
        for vertex, (number, _) in enumerate(self.vertices[devices:], start=devices):
            np.minimum(earliest[:, number], found[:, vertex], out=earliest[:, number])
        return earliest

    @cached_property
    def remains(self) -> Floats:
        """(ranks, devices): µs to a rank from when the last byte of a chunk is at a device."""
        devices = len(self.network.problem.topology.devices)
        return self._distances("in")[:, :devices]

    def shown(self, start: int, stop: int) -> Path:
        """Return a quickest way from rank to rank."""
        graph, costs = self.graph
        src, dst = int(self.network.gpus[start]), int(self.network.gpus[stop])
        way = graph.get_shortest_path(src, dst, weights=costs)
        devices = self.network.problem.topology.devices
        return Path(tuple(devices[self.vertices[each][0]].name for each in way))

    @cached_property
    def _betas(self) -> tuple[float, ...]:
        return tuple(sorted({each.beta for each in self.network.problem.topology.links}))

    def _distances(self, mode: str) -> Floats:
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
    for holders, destinations, reduced in needed:
        ways = took[np.ix_(holders, destinations)]
        ends = ways.argmax(axis=0) if reduced else ways.argmin(axis=0)
        arrivals = ways[ends, np.arange(len(destinations))]
        last = int(arrivals.argmax())
        found.append((float(arrivals[last]), holders[ends[last]], destinations[last]))
    return found
