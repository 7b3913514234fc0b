"""Task of the tree search: a cluster as trees see it, demands of one root, rows that look alike.

A group H that leaves no GPU in its place takes each root to |H| roots, so one of each orbit is
enough: the others take the images of its trees. If trees of the representatives weigh w(T), each
link of an orbit i carries |H| / |i| times what those trees put on the links of i together, so one
row for each orbit is exact and nothing is averaged (the same for shared limits).

A tree (on a `Side`) branches at devices that copy. Data crosses all others as it came: they are
relays, and a path over them from one vertex to the next is the cheapest for the prices of the day.
A tree must reach the ranks that want its data; other vertices, such as memory, switches that copy
and ranks that want nothing, are reached where that is cheaper
(`formulations.engines.tree_columns.price`).

Reductions are read backwards: in-trees are out-trees of the reversed cluster, in which what adds
is what copies. Links keep their numbers.

`refusal` says in words what no forest can hold; it loads neither a solver nor a compiler.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ccl.problem import Problem
from ccl.symmetry import Symmetry, symmetry_of
from ccl.topology import Topology
from ccl.tree_embedding import exact
from formulations.engines.epoch_grid.relay_paths import let_through
from formulations.engines.kernels import arborescence
from formulations.engines.kernels.arborescence import Adjacency
from formulations.engines.steady_state import Demands, Group, demands_of, graph_of, moving
from formulations.engines.steady_state import refusal as no_groups

Floats = np.ndarray
"""An array of floating-point numbers."""

Ints = np.ndarray
"""An array of integers."""


@dataclass(frozen=True, eq=False)
class Column:
    """A tree, as links.

    Parameters
    ----------
    root
        Vertex.
    parents
        Of each vertex, -1 at the root and where the tree does not go, shape (vertices,).
    links
        Links of the paths into the vertices, one vertex after the other.
    first
        Where those of each vertex begin, shape (vertices + 1,).
    """

    root: int
    parents: Ints
    links: Ints
    first: Ints

    @cached_property
    def key(self) -> tuple[int, bytes]:
        """Equal for equal trees."""
        order = np.repeat(np.arange(len(self.parents)), np.diff(self.first))
        return self.root, order.astype(np.int32).tobytes() + self.links.tobytes()

    def links_to(self, vertex: int) -> list[int]:
        """Return the links of the path into a vertex, in order."""
        found: list[int] = self.links[self.first[vertex] : self.first[vertex + 1]].tolist()
        return found

    @cached_property
    def order(self) -> list[int]:
        """Vertices that have a parent, parents first."""
        children: dict[int, list[int]] = {}
        for vertex, parent in enumerate(self.parents.tolist()):
            children.setdefault(parent, []).append(vertex)
        found, front = [], [self.root]
        while front:
            front = [vertex for parent in front for vertex in children.get(parent, [])]
            found += front
        return found


class Priced:
    """The cheapest paths at some prices.

    Parameters
    ----------
    side
        Of which cluster.
    length
        Price of each link for one byte, positive, shape (links,).
    """

    def __init__(self, side: Side, length: Floats) -> None:
        self.side, self.length = side, length
        self.costs, self._near, self._before = arborescence.closure(side.adjacency, length)
        if side.pairs is not None:
            # Vertices are ranks, targets first.
            alone = np.full(self.costs.shape, arborescence.FAR)
            here, there, link = side.adjacency.direct
            np.minimum.at(alone, (there, here), length[link])
            self.costs = np.where(side.pairs, self.costs, alone)

    def cost(self, parents: Ints) -> Floats:
        """Return what trees cost; parents are those of each, shape (trees, vertices)."""
        vertices = np.arange(parents.shape[1])
        into = np.where(parents >= 0, self.costs[vertices, np.maximum(parents, 0)], 0.0)
        return np.asarray(into.sum(axis=1))

    def cheapest(self, members: Ints, roots: Ints) -> Ints:
        """Return the parents of a cheapest tree over `members` of each root, (roots, vertices)."""
        return np.asarray(arborescence.arborescences(self.costs, members, roots))

    def shallow(self, members: Ints, roots: Ints, *, steps: Floats) -> Ints:
        """Return the parents of trees that trade `steps` for a hop of depth, (roots, vertices)."""
        return np.asarray(arborescence.shallow(self.costs, members, roots, steps, ROUNDS))

    def breadth(self, roots: Ints) -> Ints:
        """Return the parents of the cheapest trees of least depth, (roots, vertices)."""
        return np.asarray(arborescence.breadth(self.costs, roots))

    def column(self, root: int, parents: Ints) -> Column:
        """Write a tree out as links."""
        links, first = arborescence.unfold(
            self.side.adjacency, self.length, self.costs, self._near, self._before, parents
        )
        return Column(root, parents, links, first)


ROUNDS = 2
"""How often a shallow tree is sought again, its depths in hand."""


@dataclass(frozen=True, eq=False)
class Side:
    """A cluster, or its reversal.

    Parameters
    ----------
    topology
        As data crosses it, for a reduction the reversed one.
    reduces
        Whether it is the reversal.
    pairs
        Between which ranks data may cross relays, both ways, shape (ranks, ranks); None for all.
        Then every vertex is a rank (`formulations.engines.tree_columns.directed`).
    """

    topology: Topology
    reduces: bool
    pairs: np.ndarray | None = None

    @cached_property
    def vertices(self) -> Ints:
        """Numbers of the devices that copy."""
        return np.flatnonzero([each.copies for each in self.topology.devices])

    @cached_property
    def ranks(self) -> Ints:
        """Vertex of each rank, shape (ranks,)."""
        place = np.full(len(self.topology.devices), -1)
        place[self.vertices] = np.arange(len(self.vertices))
        return place[[self.topology.index[name] for name in self.topology.ranks]]

    @cached_property
    def adjacency(self) -> Adjacency:
        """Links between vertices and relays."""
        graph = graph_of(self.topology)
        copies = graph.copies
        place = np.empty(len(copies), dtype=np.int64)
        place[copies] = np.arange(copies.sum())
        place[~copies] = np.arange((~copies).sum())
        src, dst = place[graph.src], place[graph.dst]
        many, others = int(copies.sum()), int((~copies).sum())
        kind = copies[graph.src] * 2 + copies[graph.dst]
        direct, out, into, on = (np.flatnonzero(kind == k) for k in (3, 2, 1, 0))
        return Adjacency(
            np.array([src[direct], dst[direct], direct]),
            *_listed(src, dst, out, many),
            *_listed(dst, src, into, many),
            *_listed(src, dst, on, others),
        )

    @cached_property
    def fits(self) -> Callable[[Sequence[int]], bool]:
        """Says whether shared limits let data over some links at once."""
        return let_through(self.topology)

    def priced(self, length: Floats) -> Priced:
        """Return the cheapest paths at the prices of links."""
        return Priced(self, length)

    def spans(self, root: int, ranks: Sequence[int]) -> Ints:
        """Return the vertices that a tree must reach, the root among them, sorted."""
        return np.unique(self.ranks[[root, *ranks]])


def side_of(topology: Topology, *, reduces: bool, pairs: np.ndarray | None = None) -> Side:
    """Return a cluster as out-trees see it, or its reversal."""
    return Side(topology.reversed() if reduces else topology, reduces, pairs)


def _listed(by: Ints, other: Ints, links: Ints, many: int) -> tuple[Ints, Ints]:
    """Return where the links of each begin, and the other end and number of each, (2, any)."""
    order = links[np.argsort(by[links], kind="stable")]
    first = np.concatenate([[0], np.cumsum(np.bincount(by[order], minlength=many))])
    return first.astype(np.int64), np.array([other[order], order], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Demand:
    """Data of one root, or of all roots that the group takes it to.

    Parameters
    ----------
    side
        Place of its side.
    root
        Rank.
    others
        Ranks that its trees must reach.
    nbytes
        Of each root. Where the root is free, of all data, divided by the order of the group: its
        trees weigh what share of the data the roots of the orbit take.
    partner
        Place of the other half of an all-reduce, whose trees weigh as much in all; else None.
    """

    side: int
    root: int
    others: tuple[int, ...]
    nbytes: Fraction
    partner: int | None = None


@dataclass(frozen=True, eq=False)
class Rows:
    """Capacities of links that look alike, and of shared limits that do.

    Parameters
    ----------
    fold
        How often each row counts each link, whole numbers, shape (rows, links).
    rates
        GB/s of each row: what all its links carry together for one root of each orbit.
    links
        How many rows are of links; the others are of shared limits.
    """

    fold: sparse.csr_array
    rates: tuple[Fraction, ...]
    links: int

    @cached_property
    def speeds(self) -> np.ndarray:
        """`rates` in bytes per µs, as floating-point numbers."""
        return np.array([float(each) * 1e3 for each in self.rates])


@dataclass(frozen=True, eq=False)
class Task:
    """What trees are sought for.

    Parameters
    ----------
    problem
        Whose.
    symmetry
        The group H.
    sides
        The cluster, its reversal, or both.
    demands
        Those of representatives; the halves of an all-reduce one after the other.
    """

    problem: Problem
    symmetry: Symmetry
    sides: tuple[Side, ...]
    demands: tuple[Demand, ...]

    @cached_property
    def rows(self) -> Rows:
        """One for each orbit of links, then one for each orbit of shared limits."""
        return _rows(self.problem.topology, self.symmetry)

    def each_price(self, prices: Floats) -> Floats:
        """Return the prices of rows for a byte on each link, then in each shared limit."""
        rows, topology = self.rows, self.problem.topology
        each = prices / rows.speeds
        # Every link is in one row of links.
        own = rows.fold[: rows.links].T @ each[: rows.links]
        limits = [rows.links + label for label in limit_orbits(topology, self.symmetry)]
        return np.concatenate([own, each[limits]])

    @cached_property
    def leaders(self) -> list[int]:
        """The smallest rank of each orbit."""
        return _leaders(self.symmetry)

    @cached_property
    def nbytes(self) -> np.ndarray:
        """Bytes of each demand, shape (demands,)."""
        return np.array([float(each.nbytes) for each in self.demands])

    @cached_property
    def paired(self) -> Ints:
        """Places of the first halves of all-reduces."""
        return np.array(
            [
                place
                for place, each in enumerate(self.demands)
                if each.partner is not None and each.partner > place
            ],
            dtype=np.int64,
        )

    @cached_property
    def of_side(self) -> list[list[int]]:
        """Places of the demands of each side."""
        found: list[list[int]] = [[] for _ in self.sides]
        for place, demand in enumerate(self.demands):
            found[demand.side].append(place)
        return found

    @cached_property
    def alike(self) -> list[tuple[Ints, list[int]]]:
        """Places of demands of one side that reach the same vertices, and these."""
        found: dict[tuple[int, bytes], tuple[Ints, list[int]]] = {}
        for place, demand in enumerate(self.demands):
            members = self.sides[demand.side].spans(demand.root, demand.others)
            found.setdefault((demand.side, members.tobytes()), (members, []))[1].append(place)
        return list(found.values())

    def counts(self, column: Column) -> Ints:
        """Return how often each row counts a tree, shape (rows,)."""
        fold = self.rows.fold
        return np.asarray(fold @ np.bincount(column.links, minlength=fold.shape[1]))


def task_of(problem: Problem, *, symmetric: bool = True, pairs: np.ndarray | None = None) -> Task:
    """Return what trees of a problem are sought for.

    Parameters
    ----------
    problem
        One that `formulations.engines.steady_state.refusal` does not refuse.
    symmetric
        Whether roots that look alike are one.
    pairs
        Between which ranks trees may cross relays, shape (ranks, ranks); None for all.
    """
    topology, demands = problem.topology, demands_of(problem)
    group = _group_of(topology, demands) if symmetric else _trivial(topology)
    reduces = [False] * bool(demands.spreads or demands.free)
    reduces += [True] * bool(demands.sums or demands.free)
    sides = tuple(side_of(topology, reduces=each, pairs=pairs) for each in reduces)
    leaders, nbytes = set(_leaders(group)), _nbytes(problem)
    needs = [
        Demand(reduces.index(down), each.root, each.others, nbytes[down, each.root, each.others])
        for groups, down in ((demands.spreads, False), (demands.sums, True))
        for each in groups
        if each.root in leaders
    ]
    every = range(len(topology.ranks))
    if demands.free:
        share = nbytes[True, -1, ()] / group.order
        for root in sorted(leaders):
            others = tuple(rank for rank in every if rank != root)
            place = len(needs)
            needs += [
                Demand(reduces.index(True), root, others, share, place + 1),
                Demand(reduces.index(False), root, others, share, place),
            ]
    return Task(problem, group, sides, tuple(needs))


def _nbytes(problem: Problem) -> defaultdict[tuple[bool, int, tuple[int, ...]], Fraction]:
    """Return the exact bytes by whether they are added up, root and others; -1 is a free root."""
    found: defaultdict[tuple[bool, int, tuple[int, ...]], Fraction] = defaultdict(Fraction)
    for chunk in moving(problem):
        ends, others = chunk.holders, chunk.destinations
        if chunk.reduced:
            ends, others = others, ends
        key = (chunk.reduced, ends[0], tuple(sorted({*others} - {ends[0]})))
        free = chunk.reduced and len(ends) > 1
        found[(True, -1, ()) if free else key] += exact(chunk.size)
    return found


def _trivial(topology: Topology) -> Symmetry:
    return Symmetry(topology, np.arange(len(topology.devices))[None, :])


def _leaders(group: Symmetry) -> list[int]:
    """Return the smallest rank of each orbit."""
    first = group.ranks.min(axis=0)
    return np.flatnonzero(first == np.arange(len(first))).tolist()


def _group_of(topology: Topology, demands: Demands) -> Symmetry:
    """Return a group that takes demands to equal demands."""
    group = symmetry_of(topology)
    for groups in (demands.spreads, demands.sums):
        if groups and not _alike(groups, len(topology.ranks)):
            moved = [group.ranks[place] for place in group.generators]
            known = {_sign(each, None) for each in groups}
            if any(_sign(each, ranks) not in known for ranks in moved for each in groups):
                return _trivial(topology)
    return group


def _alike(groups: Sequence[Group], ranks: int) -> bool:
    """Return whether every rank has as much for every other."""
    return len(groups) == ranks and all(
        len(each.others) == ranks - 1 and each.nbytes == groups[0].nbytes for each in groups
    )


def _sign(group: Group, ranks: Ints | None) -> tuple[int, tuple[int, ...], float]:
    if ranks is None:
        return group.root, group.others, group.nbytes
    others = tuple(sorted(ranks[list(group.others)].tolist()))
    return int(ranks[group.root]), others, group.nbytes


def _rows(topology: Topology, group: Symmetry) -> Rows:
    first = group.orbits(group.links)
    leaders, row, size = np.unique(first, return_inverse=True, return_counts=True)
    many, links = len(leaders), len(topology.links)
    own = sparse.coo_array(
        (np.ones(links, dtype=np.int64), (row.ravel(), np.arange(links))), shape=(many, links)
    ).tocsr()
    rates = [
        exact(topology.links[leader].bandwidth) * length / group.order
        for leader, length in zip(leaders.tolist(), size.tolist(), strict=True)
    ]
    if not topology.limits:
        return Rows(sparse.csr_array(own), tuple(rates), many)
    labels = limit_orbits(topology, group)
    index = topology.link_index
    places = [
        (label, index[ends])
        for label, limit in zip(labels, topology.limits, strict=True)
        for ends in limit.links
    ]
    row, link = np.array(places).T
    shape = (max(labels) + 1, links)
    ones = np.ones(len(places), dtype=np.int64)
    shared = sparse.coo_array((ones, (row, link)), shape=shape).tocsr()
    for label, size in enumerate(np.bincount(labels).tolist()):
        limit = topology.limits[labels.index(label)]
        rates.append(exact(limit.bandwidth) * size / group.order)
    return Rows(sparse.csr_array(sparse.vstack([own, shared])), tuple(rates), many)


def limit_orbits(topology: Topology, group: Symmetry) -> list[int]:
    """Return the number of the orbit of each shared limit."""
    index = topology.link_index
    sets = [np.array([index[ends] for ends in limit.links]) for limit in topology.limits]
    place = {
        (limit.bandwidth, tuple(sorted(links.tolist()))): number
        for number, (limit, links) in enumerate(zip(topology.limits, sets, strict=True))
    }
    # One that is there twice is one orbit with its twin.
    joined = [
        (number, place[limit.bandwidth, tuple(sorted(moved[links].tolist()))])
        for moved in [np.arange(len(topology.links)), *group.links[list(group.generators)]]
        for number, (limit, links) in enumerate(zip(topology.limits, sets, strict=True))
    ]
    if not joined:
        return []
    at = np.array(joined).T
    square = sparse.coo_array((np.ones(len(joined)), at), shape=(len(sets), len(sets)))
    labels: list[int] = connected_components(square, directed=False)[1].tolist()
    return labels


LARGEST = 4096
"""Most GPUs for which a table of all pairs is stored."""


def refusal(problem: Problem) -> str | None:
    """Explain why no forest is sought for a problem, or None."""
    reason = no_groups(problem)
    if reason is not None:
        return reason
    demands, topology = demands_of(problem), problem.topology
    if bool(demands.spreads) + bool(demands.sums) + bool(demands.free) != 1:
        return "data that spreads and data that is added up together are not one forest"
    groups = (*demands.spreads, *demands.sums)
    if len({each.root for each in groups}) < len(groups):
        return "a rank has different data for different ranks, and its trees take all of it to all"
    if len(topology.ranks) > LARGEST:
        return f"it has {len(topology.ranks)} GPUs, and here a table of all pairs is stored"
    for reduces, asked in ((False, not demands.sums), (True, not demands.spreads)):
        reason = _no_tree(topology, reduces=reduces) if asked else None
        if reason is not None:
            return reason
    for device in topology.devices:
        if device.buffer_bytes is not None:
            return f"{device.name} has a limited buffer, and a steady state knows no stores"
    return None


def _no_tree(topology: Topology, *, reduces: bool) -> str | None:
    """Return which GPU cannot be inside of a tree, or None."""
    for each in topology.devices:
        if each.kind == "gpu" and not (each.reduces if reduces else each.copies):
            what = "reduce" if reduces else "copy"
            return f"{each.name} cannot {what}, and here every GPU does"
    return None
