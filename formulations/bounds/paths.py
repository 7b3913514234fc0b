"""The longest of the quickest ways: no chunk arrives before its quickest way allows.

Plans that split chunks: a byte takes at least the sum of latencies of its way, so the makespan is
at least the least such sum from a holder to a destination; from the farthest holder where
contributions are added, since each of them must arrive.

Plans that never split a chunk of n bytes: a device that stores sends it on only when it has all
of it, so each stretch between two of these takes the sum of its latencies plus n times the beta
of its slowest link; devices in between that cannot store let it through as it comes, which is
the quickest that they can do. In the graph searched, a device that cannot store appears once for
every slowest link so far, and a stretch pays for its bytes when it ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import igraph
import numpy as np

from ccl.bound import Bound, Path
from formulations.bounds.cuts import Network
from formulations.bounds.demand import Floats


@dataclass(frozen=True)
class Ways:
    """Quickest ways between GPUs for a chunk of `nbytes`, or for its first byte if 0."""

    network: Network
    nbytes: float

    def graph(self) -> tuple[igraph.Graph, Floats, np.ndarray]:
        """Return the graph to search, the µs of its edges and the device of its vertices.

        The first vertices are the devices themselves.
        """
        topology = self.network.problem.topology
        stores = [each.stores for each in topology.devices]
        betas = sorted({each.beta for each in topology.links})
        level = {beta: i for i, beta in enumerate(betas)}
        vertex: dict[tuple[int, int], int] = {}
        device_of = list(range(len(stores)))

        def place(device: int, slowest: int) -> int:
            if stores[device]:
                return device
            if (device, slowest) not in vertex:
                vertex[device, slowest] = len(device_of)
                device_of.append(device)
            return vertex[device, slowest]

        edges: list[tuple[int, int]] = []
        costs: list[float] = []
        for (src, dst), link in zip(self.network.ends.tolist(), topology.links, strict=True):
            own = level[link.beta]
            for before in (-1,) if stores[src] else range(len(betas)):
                slowest = max(own, before)
                paid = self.nbytes * betas[slowest] if stores[dst] else 0.0
                edges.append((place(src, before), place(dst, slowest)))
                costs.append(link.alpha + paid)
        graph = igraph.Graph(n=len(device_of), edges=edges, directed=True)
        return graph, np.array(costs), np.array(device_of)

    def between(self, starts: np.ndarray, stops: np.ndarray) -> Floats:
        """Return (starts, stops): µs from each of some ranks to each of others."""
        graph, costs, _ = self.graph()
        gpus = self.network.gpus
        found = graph.distances(gpus[starts].tolist(), gpus[stops].tolist(), weights=costs.tolist())
        return np.asarray(found, dtype=float)

    def shown(self, start: int, stop: int) -> Path:
        """Return a quickest way from rank to rank."""
        graph, costs, device_of = self.graph()
        src, dst = int(self.network.gpus[start]), int(self.network.gpus[stop])
        way = graph.get_shortest_path(src, dst, weights=costs.tolist())
        devices = self.network.problem.topology.devices
        return Path(tuple(devices[device_of[each]].name for each in way))


def path_bound(network: Network, *, whole_chunks: bool) -> Bound | None:
    """Return the bound of the longest quickest way, or None if no way takes any time."""
    best, worst = 0.0, (0, 0, 0.0)
    chunks = network.problem.collective.chunks
    for nbytes in sorted({each.size for each in chunks}) if whole_chunks else [0.0]:
        every = np.arange(len(network.gpus))
        took = Ways(network, nbytes).between(every, every) if nbytes else _latencies(network)
        for makespan, start, stop in _slowest(network, took, nbytes):
            if makespan > best:
                best, worst = makespan, (start, stop, nbytes)
    if best == 0.0:
        return None
    start, stop, nbytes = worst
    return Bound(
        best,
        "path",
        Ways(network, nbytes).shown(start, stop),
        "the quickest way of a whole chunk" if whole_chunks else "latencies of the shortest way",
        whole_chunks,
    )


def _latencies(network: Network) -> Floats:
    return np.asarray(network.latency[:, network.gpus])


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
