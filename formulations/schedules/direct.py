"""Direct: every holder sends each chunk straight to each of its destinations.

Where no link joins two GPUs, the chunk takes the quickest way over other devices, and a GPU on
the way that has it already sends it on. Chunks leave in turn: the GPU of rank i sends first to
rank i + 1, then to i + 2, and so on, so that no two begin with the same destination (the pairwise
exchange of an all-to-all; Thakur et al., IJHPCA 2005). On a star of links all alike it takes
(n-1) size / n * beta plus the latency of one way. Reductions are the mirror: every contribution
goes straight to where it is added.
"""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx

from ccl.collective import COLLECTIVES
from ccl.problem import Problem
from ccl.result import Result, Stop
from ccl.topology import Topology
from formulations.demand import demand
from formulations.epochs import EpochGrid, longest_hop
from formulations.hops import link_hops
from formulations.mirror import no_mirror, search
from formulations.place import place
from formulations.registry import Formulation
from formulations.run import Run


@dataclass(frozen=True, kw_only=True)
class Options:
    """There is nothing to choose."""


def refuses(problem: Problem) -> str | None:
    """Leave limited buffers and sums of unequal chunks to other formulations."""
    for device in problem.topology.devices:
        if device.buffer_bytes is not None:
            return f"{device.name} has a limited buffer, and here buffers are unlimited"
        if device.stores and not device.copies:
            return f"{device.name} stores and cannot copy, and here all that stores copies"
    collective = problem.collective
    if collective.reduces and len({chunk.size for chunk in collective.chunks}) > 1:
        return "its chunks differ in size, and here the halves of a reduction share one epoch"
    return no_mirror(problem)


def run(run: Run, options: Options) -> Result:
    """Send every chunk on its quickest way."""
    return search(run, options, _find)


def _find(run: Run, _: Options) -> Stop:
    problem = run.problem
    topology, collective = problem.topology, problem.collective
    size, ranks = collective.chunk_size, len(topology.ranks)
    quickest = _quickest(topology, size)
    # A whole hop of the largest chunk, so that smaller ones take as many epochs as it.
    tau = run.epoch_duration or longest_hop(topology, size)
    hops = link_hops(EpochGrid(topology, size, tau, mirrored=run.mirrored))
    moves = []
    for number, chunk in enumerate(collective.chunks):
        for rank in chunk.destinations:
            if rank in chunk.holders:
                continue
            name = topology.ranks[rank]
            near = [each for each in chunk.holders if name in quickest[topology.ranks[each]]]
            turn, holder = min(((rank - each) % ranks, each) for each in near)
            way = quickest[topology.ranks[holder]][name]
            moves.append((turn, number, tuple(way)))
    moves.sort()
    run.offer(place([(chunk, way) for _, chunk, way in moves], hops, demand(problem)))
    return Stop.CONSTRUCTED


def _quickest(topology: Topology, size: float) -> dict[str, dict[str, list[str]]]:
    """Return the ways between devices that take a chunk of `size` bytes the shortest time."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(topology.index)
    for link in topology.links:
        graph.add_edge(link.src, link.dst, weight=link.transfer_time(size))
    return dict(nx.all_pairs_dijkstra_path(graph))


FORMULATION = Formulation(
    name="direct",
    title="Direct",
    reference="Thakur, Rabenseifner, Gropp, IJHPCA 2005 (pairwise exchange)",
    collectives=frozenset(COLLECTIVES),
    options=Options,
    refuses=refuses,
    run=run,
    mathematics=__doc__ or "",
)
