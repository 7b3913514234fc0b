"""A cluster as trees see it: vertices where they may branch, relays between them, cheapest trees.

A tree branches at devices that copy. Data crosses all others as it came: they are relays, and a
way over them from one vertex to the next is the cheapest for the prices of the day. A tree must
reach the ranks that want its data; other vertices, such as memory, switches that copy and ranks
that want nothing, are reached where that is cheaper (`formulations.engines.tree_columns.steiner`).

Reductions are read backwards: in-trees are out-trees of the reversed cluster, in which what adds
is what copies. Links keep their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ccl.topology import Topology
from formulations.engines.kernels import arborescence, relays
from formulations.engines.kernels.relays import Ways
from formulations.engines.steady_state.graph import graph_of

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
        Links of the ways into the vertices, one vertex after the other.
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

    def way(self, vertex: int) -> list[int]:
        """Return the links of the way into a vertex, in order."""
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
    """The cheapest ways at some prices.

    Parameters
    ----------
    side
        Of which cluster.
    length
        Price of each link for one byte, positive, shape (links,).
    """

    def __init__(self, side: Side, length: Floats) -> None:
        self.side, self.length = side, length
        self.costs, self._near, self._before = relays.closure(side.ways, length)

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
        links, first = relays.unfold(
            self.side.ways, self.length, self.costs, self._near, self._before, parents
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
    """

    topology: Topology
    reduces: bool

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
    def ways(self) -> Ways:
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
        return Ways(
            np.array([src[direct], dst[direct], direct]),
            *_listed(src, dst, out, many),
            *_listed(dst, src, into, many),
            *_listed(src, dst, on, others),
        )

    def priced(self, length: Floats) -> Priced:
        """Return the cheapest ways at the prices of links."""
        return Priced(self, length)

    def spans(self, root: int, ranks: Sequence[int]) -> Ints:
        """Return the vertices that a tree must reach, the root among them, sorted."""
        return np.unique(self.ranks[[root, *ranks]])


def side_of(topology: Topology, *, reduces: bool) -> Side:
    """Return a cluster as out-trees see it, or its reversal."""
    return Side(topology.reversed() if reduces else topology, reduces)


def _listed(by: Ints, other: Ints, links: Ints, many: int) -> tuple[Ints, Ints]:
    """Return where the links of each begin, and the other end and number of each, (2, any)."""
    order = links[np.argsort(by[links], kind="stable")]
    first = np.concatenate([[0], np.cumsum(np.bincount(by[order], minlength=many))])
    return first.astype(np.int64), np.array([other[order], order], dtype=np.int64)
