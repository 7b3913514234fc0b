"""The fluid steady state: the graph of rates and the demands of a collective on it.

A `FluidGraph` is what fluid models are written on, as arrays. A vertex is a device, perhaps with a
tag. Three graphs come from one topology:

* `graph_of`: the topology itself, a vertex per device and an edge per link;
* `without_copies`: a device that may not copy becomes one vertex for each copying device that data
  can reach from it next, (v, u) for u, so that what is in flight to two of them is counted twice
  (thesis, section 3.1, "formulation via duplicate vertices"). On it the rule "usage is the largest
  flow" holds everywhere;
* `in_steps`: T + 1 layers; an edge takes one step, and who stores may wait (section 3.1,
  "time-expanded networks").

They can be put on top of one another in that order. Whatever the graph, its capacity rows are
those of the topology, in the same order: a row for each link, then one for each shared limit. So
models of the cluster and of its reversal (reductions) can be added up row by row. Permutations of
devices act on all of them (`FluidGraph.moved`): tags move with what they name.

`Demands` are what flows in a fluid model: groups of equal demands. Chunks that have the same origin
and the same destinations are one `Group`, whose bytes add up. A reduced chunk is a group too, of
the reversed cluster: its sum is made at its destination of what comes from all holders, so reversed
it spreads from there (thesis, section 3.2). A sum that everybody wants (all-reduce) has no root of
its own: the model may choose. Chunks that are in place are left out.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from scipy import sparse

from ccl.collective import Chunk
from ccl.problem import Problem
from ccl.topology import Topology

Ints = np.ndarray
"""An array of integers."""

NOWHERE = -1
"""The tag of a vertex that has none, and the link of an edge that only waits."""


@dataclass(frozen=True, eq=False)
class FluidGraph:
    """Vertices, edges and capacity rows.

    Parameters
    ----------
    topology
        Where it comes from.
    device
        Number of the device of each vertex, shape (vertices,).
    toward
        Number of the copying device that a duplicate stands for, else `NOWHERE`.
    step
        Layer of each vertex, 0 where there are no steps.
    src, dst
        Vertices that each edge leaves and enters, shape (edges,). No two edges have both in common.
    link
        Number of the link of each edge; `NOWHERE` where data waits.
    steps
        T, or 0 where there are no steps.
    """

    topology: Topology
    device: Ints
    toward: Ints
    step: Ints
    src: Ints
    dst: Ints
    link: Ints
    steps: int = 0

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return len(self.device)

    @property
    def edges(self) -> int:
        """Number of edges."""
        return len(self.src)

    @cached_property
    def origins(self) -> Ints:
        """Vertex where the data of each rank is at the start, shape (ranks,)."""
        return self._of_ranks(0)

    @cached_property
    def goals(self) -> Ints:
        """Vertex where each rank has what it received at the end, shape (ranks,)."""
        return self._of_ranks(self.steps)

    @cached_property
    def copies(self) -> np.ndarray:
        """Whether each vertex may send on more than it received, shape (vertices,)."""
        able = np.array([each.copies for each in self.topology.devices], dtype=bool)
        return np.asarray(able[self.device])

    @cached_property
    def rates(self) -> np.ndarray:
        """GB/s of each capacity row, shape (rows,): links, then shared limits."""
        return row_bandwidths(self.topology)

    @cached_property
    def rows(self) -> sparse.csr_array:
        """Which edges each capacity row sums up, shape (rows, edges), of zeros and ones."""
        carrying = np.flatnonzero(self.link >= 0)
        own = sparse.coo_array(
            (np.ones(len(carrying)), (self.link[carrying], carrying)),
            shape=(len(self.topology.links), self.edges),
        ).tocsr()
        place = self.topology.link_index
        members = [[place[ends] for ends in each.links] for each in self.topology.limits]
        if not members:
            return sparse.csr_array(own)
        number = np.repeat(np.arange(len(members)), [len(each) for each in members])
        links = np.concatenate([np.array(each, dtype=np.int64) for each in members])
        shape = (len(members), len(self.topology.links))
        chosen = sparse.coo_array((np.ones(len(links)), (number, links)), shape=shape).tocsr()
        return sparse.csr_array(sparse.vstack([own, chosen @ own]))

    @cached_property
    def incidence(self) -> sparse.csr_array:
        """What comes in minus what goes out at each vertex, shape (vertices, edges)."""
        numbers = np.arange(self.edges)
        ones = np.ones(self.edges)
        entries = np.concatenate([ones, -ones])
        place = np.concatenate([self.dst, self.src]), np.concatenate([numbers, numbers])
        return sparse.coo_array((entries, place), shape=(self.vertices, self.edges)).tocsr()

    def costs(self, per_link: np.ndarray) -> np.ndarray:
        """Return the cost of each edge from that of each link; waiting costs nothing."""
        return np.where(self.link >= 0, per_link[np.maximum(self.link, 0)], 0.0)

    def moved(self, devices: Ints) -> tuple[Ints, Ints]:
        """Return where a permutation of the devices takes each vertex and each edge.

        Parameters
        ----------
        devices
            An automorphism of the topology, shape (devices,).
        """
        moving = np.append(devices != np.arange(len(devices)), [False])  # the last for `NOWHERE`
        new = np.flatnonzero(moving[self.device] | moving[self.toward])
        toward = np.append(devices, [NOWHERE])[self.toward[new]]
        vertices = np.arange(self.vertices)
        vertices[new] = _found(
            self._keys, self._key(devices[self.device[new]], toward, self.step[new])
        )
        src, dst = vertices[self.src], vertices[self.dst]
        other = np.flatnonzero((src != self.src) | (dst != self.dst))
        edges = np.arange(self.edges)
        edges[other] = _found(self._codes, src[other] * self.vertices + dst[other])
        return vertices, edges

    @cached_property
    def _keys(self) -> tuple[Ints, Ints]:
        return _sorted(self._key(self.device, self.toward, self.step))

    @cached_property
    def _codes(self) -> tuple[Ints, Ints]:
        return _sorted(self.src * self.vertices + self.dst)

    def _key(self, device: Ints, toward: Ints, step: Ints) -> Ints:
        many = len(self.topology.devices)
        return np.asarray((step * (many + 1) + toward + 1) * many + device)

    def _of_ranks(self, step: int) -> Ints:
        gpus = np.array([self.topology.index[name] for name in self.topology.ranks], dtype=np.int64)
        bare = np.full(len(gpus), NOWHERE)
        return _found(self._keys, self._key(gpus, bare, np.full(len(gpus), step)))


Vertex = TypeVar("Vertex", int, str)


def breadth_first(
    start: Vertex, onwards: Callable[[Vertex], Iterable[Vertex]]
) -> dict[Vertex, Vertex]:
    """Return from where each vertex is reached first, in the order in which they are reached."""
    came, queue = {start: start}, [start]
    for vertex in queue:
        for each in onwards(vertex):
            if each not in came:
                came[each] = vertex
                queue.append(each)
    return came


def row_bandwidths(topology: Topology) -> np.ndarray:
    """Return GB/s of each link, then of each shared limit, shape (rows,)."""
    own = [each.bandwidth for each in topology.links]
    return np.array(own + [each.bandwidth for each in topology.limits], dtype=float)


def graph_of(topology: Topology) -> FluidGraph:
    """Return the graph of a topology: a vertex per device, an edge per link, in their order."""
    many = len(topology.devices)
    return FluidGraph(
        topology=topology,
        device=np.arange(many),
        toward=np.full(many, NOWHERE),
        step=np.zeros(many, dtype=np.int64),
        src=topology.ends[0],
        dst=topology.ends[1],
        link=np.arange(len(topology.links)),
    )


def without_copies(graph: FluidGraph, *, only: np.ndarray | None = None) -> FluidGraph:
    """Return the graph in which devices that may not copy have a vertex for each next stop.

    Parameters
    ----------
    graph
        One without tags or steps.
    only
        Which vertices are duplicated, shape (vertices,); by default all that may not copy. What
        may not copy and is not duplicated is then taken for one that may: a relaxation.
    """
    split = ~graph.copies if only is None else only & ~graph.copies
    whole = np.flatnonzero(~split)
    twin, toward = _next_stops(graph, split)
    bare = np.full(len(whole), NOWHERE)
    device, tag = np.concatenate([whole, twin]), np.concatenate([bare, toward])
    width = graph.vertices + 1
    made = _sorted(device * width + tag + 1)
    # An edge into a split vertex has a copy for each stop that this leads to, others have one.
    many = np.where(split, np.bincount(twin, minlength=graph.vertices), 1)
    first = np.where(split, len(whole) + np.searchsorted(twin, np.arange(graph.vertices)), 0)
    first[whole] = np.arange(len(whole))
    edge = np.repeat(np.arange(graph.edges), many[graph.dst])
    begin = np.cumsum(many[graph.dst]) - many[graph.dst]
    dst = first[graph.dst[edge]] + np.arange(len(edge)) - begin[edge]
    stop = np.where(split[graph.dst[edge]], tag[dst], graph.dst[edge])
    leaves = graph.src[edge]
    src = _found(made, leaves * width + np.where(split[leaves], stop, NOWHERE) + 1)
    return replace(
        graph,
        device=graph.device[device],
        toward=np.where(tag >= 0, graph.device[np.maximum(tag, 0)], NOWHERE),
        step=np.zeros(len(device), dtype=np.int64),
        src=src,
        dst=dst,
        link=graph.link[edge],
    )


def in_steps(graph: FluidGraph, steps: int | None) -> FluidGraph:
    """Return `steps` + 1 layers of a graph; every edge leads to the next layer.

    Parameters
    ----------
    graph
        One without steps.
    steps
        T, 1 or more.
    """
    if steps is None:
        return graph
    many = graph.vertices
    stores = np.array([each.stores for each in graph.topology.devices], dtype=bool)
    waits = np.flatnonzero(stores[graph.device])
    src = np.concatenate([graph.src, waits])
    dst = np.concatenate([graph.dst, waits])
    link = np.concatenate([graph.link, np.full(len(waits), NOWHERE)])
    layer = np.repeat(np.arange(steps), len(src))
    return replace(
        graph,
        device=np.tile(graph.device, steps + 1),
        toward=np.tile(graph.toward, steps + 1),
        step=np.repeat(np.arange(steps + 1), many),
        src=np.tile(src, steps) + layer * many,
        dst=np.tile(dst, steps) + (layer + 1) * many,
        link=np.tile(link, steps),
        steps=steps,
    )


def balanced(topology: Topology, names: set[str], *, classes: np.ndarray | None = None) -> bool:
    """Test that devices let out as much as in, over the links of each class if there are any."""
    inside = np.array([each.name in names for each in topology.devices])
    src, dst = topology.ends
    bandwidth = np.fromiter((each.bandwidth for each in topology.links), float, len(src))
    number = np.zeros(len(src), dtype=np.int64) if classes is None else classes
    net = np.zeros((int(number.max(initial=0)) + 1, len(inside)))
    np.add.at(net, (number, dst), bandwidth)
    np.add.at(net, (number, src), -bandwidth)
    return bool((np.abs(net[:, inside]) <= 1e-9 * bandwidth.max(initial=0.0)).all())


def _next_stops(graph: FluidGraph, split: np.ndarray) -> tuple[Ints, Ints]:
    """Return every pair of a split vertex and a whole one that it reaches over split ones."""
    links = sparse.csr_array(
        (np.ones(graph.edges, dtype=bool), (graph.src, graph.dst)),
        shape=(graph.vertices, graph.vertices),
    )
    out = sparse.diags_array(split, dtype=bool) @ links
    ahead = sparse.csr_array(out @ sparse.diags_array(~split, dtype=bool))
    through = out @ sparse.diags_array(split, dtype=bool)
    # Products and sums of truths are truths: nothing is counted, so nothing overflows.
    while True:
        further = sparse.csr_array(ahead + through @ ahead)
        if further.nnz == ahead.nnz:
            pairs = np.argwhere(ahead.toarray())
            return pairs[:, 0], pairs[:, 1]
        ahead = further


def _sorted(keys: Ints) -> tuple[Ints, Ints]:
    order = np.argsort(keys)
    return keys[order], order


def _found(known: tuple[Ints, Ints], keys: Ints) -> Ints:
    """Return where each key is; all of them are known."""
    inside, order = known
    place = np.searchsorted(inside, keys)
    assert (inside[np.minimum(place, len(inside) - 1)] == keys).all()
    return np.asarray(order[place])


@dataclass(frozen=True, slots=True)
class Group:
    """Data that goes from one rank to others, or in a reduction comes from them.

    Parameters
    ----------
    root
        Rank that has it, or that wants the sum.
    others
        Ranks that want it, or that contribute; the root is not among them.
    nbytes
        Bytes.
    """

    root: int
    others: tuple[int, ...]
    nbytes: float


@dataclass(frozen=True)
class Demands:
    """All demands of a problem.

    Parameters
    ----------
    spreads
        Groups that leave their roots.
    sums
        Groups that are added up in flight to their roots.
    free
        Bytes that are added up and go to everybody, whose roots are free.
    """

    spreads: tuple[Group, ...]
    sums: tuple[Group, ...]
    free: float

    @property
    def only_pairs(self) -> bool:
        """Whether every group has one other rank, so that nothing is ever copied or added."""
        groups = (*self.spreads, *self.sums)
        return not self.free and all(len(each.others) == 1 for each in groups)


def demands_of(problem: Problem) -> Demands:
    """Return the groups of a problem; call `refusal` first."""
    spreads: defaultdict[tuple[int, tuple[int, ...]], float] = defaultdict(float)
    sums: defaultdict[tuple[int, tuple[int, ...]], float] = defaultdict(float)
    free = 0.0
    for chunk in moving(problem):
        if not chunk.reduced:
            spreads[_group(chunk.holders, chunk.destinations)] += chunk.size
        elif len(chunk.destinations) == 1:
            sums[_group(chunk.destinations, chunk.holders)] += chunk.size
        else:
            free += chunk.size
    return Demands(_groups(spreads), _groups(sums), free)


def only_pairs(problem: Problem) -> bool:
    """Return whether the data has one source and one goal, as `Demands.only_pairs` of it says."""
    return all(
        len(each.holders) == len(each.destinations) == 1
        or (not each.reduced and len(_group(each.holders, each.destinations)[1]) <= 1)
        or (len(each.destinations) == 1 and len(_group(each.destinations, each.holders)[1]) <= 1)
        for each in moving(problem)
    )


def moving(problem: Problem) -> list[Chunk]:
    """Return the chunks of which something has to be sent."""
    return [each for each in problem.collective.chunks if not each.in_place]


def refusal(problem: Problem) -> str | None:
    """Describe which chunk no group can hold, or None."""
    ranks = problem.topology.ranks
    every = len(ranks)
    for number, chunk in enumerate(problem.collective.chunks):
        if chunk.in_place:
            continue
        if not chunk.reduced and len(chunk.holders) > 1:
            return (
                f"chunk {number} is held by {len(chunk.holders)} ranks at the start; "
                "fluid models take data from one rank"
            )
        if chunk.reduced and not _rooted(chunk, every):
            return (
                f"chunk {number} adds up {len(chunk.holders)} of {every} ranks for "
                f"{len(chunk.destinations)}; fluid models add up for one rank, or all for all"
            )
    return None


def _rooted(chunk: Chunk, every: int) -> bool:
    return len(chunk.destinations) == 1 or len(chunk.destinations) == len(chunk.holders) == every


def _group(roots: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    if len(others) == 1:  # as in an all-to-all, which has thousands of them
        return roots[0], others if others[0] != roots[0] else ()
    return roots[0], tuple(sorted(set(others) - {roots[0]}))


def _groups(found: defaultdict[tuple[int, tuple[int, ...]], float]) -> tuple[Group, ...]:
    return tuple(Group(root, others, size) for (root, others), size in found.items() if others)
