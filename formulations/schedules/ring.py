"""Rings: every GPU passes on what it receives, around a cycle of GPUs.

All-gather (Chan et al., Concurrency and Computation 2007; Thakur et al., IJHPCA 2005): in step t
= 0 .. n-2 the GPU at place i of the ring sends the shard that came from place i - t to place
i + 1. On links all alike it takes (n-1) (alpha + size / n * beta). Reduce-scatter is its mirror,
all-reduce both in turn, broadcast passes the root's chunks along the ring.

Decision: the ring is a cycle through all GPUs that holds the slowest link as fast as can be; two
GPUs are neighbours where a link or a way over devices that cannot store joins them. It is found
by a search over hops from fast to slow, with the drawing's order of ranks first; no claim is made
that no better ring exists. With c chunks per shard every link passes chunk after chunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from ccl.problem import Problem
from ccl.result import Result, Stop
from ccl.topology import Topology
from formulations.demand import demand
from formulations.epochs import EpochGrid
from formulations.hops import link_hops, ways
from formulations.mirror import no_mirror, search
from formulations.place import place
from formulations.registry import Formulation
from formulations.run import Run

TRIES = 200_000
"""Steps of the search for a ring, after which it is given up."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """A ring has no options."""


def refuses(problem: Problem) -> str | None:
    """Refuse where the GPUs lie on no cycle."""
    if any(device.buffer_bytes is not None for device in problem.topology.devices):
        return "it has limited buffers, and a ring keeps all it receives"
    if ring_of(problem.topology) is None:
        return "no ring through all GPUs was found in it"
    if not all(device.copies for device in problem.topology.devices if device.stores):
        return "a GPU in it cannot copy, and a ring keeps what it passes on"
    return no_mirror(problem)


def run(run: Run, options: Options) -> Result:
    """Pass every chunk along the ring."""
    return search(run, options, _find)


def _find(run: Run, _: Options) -> Stop:
    problem = run.problem
    ring = ring_of(problem.topology)
    assert ring is not None
    order = [route[0] for route in ring]
    at = {problem.topology.rank[name]: i for i, name in enumerate(order)}
    slowest = max(
        sum(
            problem.topology.link(*ends).transfer_time(problem.collective.chunk_size)
            for ends in pairwise(route)
        )
        for route in ring
    )
    tau = run.epoch_duration or slowest
    size = problem.collective.chunk_size
    hops = link_hops(EpochGrid(problem.topology, size, tau, mirrored=run.mirrored))
    moves = []
    for number, chunk in enumerate(problem.collective.chunks):
        start = at[chunk.holders[0]]
        many = max((at[rank] - start) % len(ring) for rank in chunk.destinations)
        moves += [(step, number, ring[(start + step) % len(ring)]) for step in range(many)]
    moves.sort(key=lambda move: move[:2])
    run.offer(place([(chunk, route) for _, chunk, route in moves], hops, demand(problem)))
    return Stop.CONSTRUCTED


def ring_of(topology: Topology) -> list[tuple[str, ...]] | None:
    """Return the routes of a ring through all GPUs, the slowest hop as fast as could be found."""
    if len(topology.ranks) < 2:
        return None
    routes: dict[tuple[str, str], tuple[str, ...]] = {}
    speed: dict[tuple[str, str], float] = {}
    for route in ways(topology):
        ends = route[0], route[-1]
        bandwidth = min(topology.link(*pair).bandwidth for pair in pairwise(route))
        if bandwidth > speed.get(ends, 0.0):
            routes[ends], speed[ends] = route, bandwidth
    for least in sorted(set(speed.values()), reverse=True):
        cycle = _cycle(topology.ranks, {ends for ends in speed if speed[ends] >= least})
        if cycle is not None:
            pairs = zip(cycle, (*cycle[1:], cycle[0]), strict=True)
            return [routes[pair] for pair in pairs]
    return None


def _cycle(ranks: tuple[str, ...], joined: set[tuple[str, str]]) -> tuple[str, ...] | None:
    """Search a cycle through all ranks depth first, neighbours by rank after the last one."""
    count = len(ranks)
    onwards = {
        name: [
            ranks[(i + step) % count]
            for step in range(1, count)
            if (name, ranks[(i + step) % count]) in joined
        ]
        for i, name in enumerate(ranks)
    }
    if not all(onwards.values()):
        return None
    path, seen = [ranks[0]], {ranks[0]}
    pending = [iter(onwards[ranks[0]])]
    for _ in range(TRIES):
        if not pending:
            return None
        if len(path) == count and (path[-1], ranks[0]) in joined:
            return tuple(path)
        following = next((name for name in pending[-1] if name not in seen), None)
        if following is None:
            pending.pop()
            seen.discard(path.pop())
        else:
            path.append(following)
            seen.add(following)
            pending.append(iter(onwards[following]))
    return None


FORMULATION = Formulation(
    name="ring",
    title="Ring",
    reference="Thakur, Rabenseifner, Gropp, IJHPCA 2005; Chan et al. 2007",
    collectives=frozenset({"all-gather", "reduce-scatter", "all-reduce", "broadcast", "reduce"}),
    options=Options,
    refuses=refuses,
    run=run,
    mathematics=__doc__ or "",
)
