"""Connections between GPUs filled with spanning trees, as many of each root as it gives out.

One tree at a time is grown from its root, all copies of it at once, always by the arc nearest to
the root that leaves room for all other trees (`formulations.compiled.packing`); where that is so
for some copies only, these go on and the others are grown later. No tree is shallowest that way,
which would be NP-hard to ask for, but none is deep without need.

Source: Bérczi and Frank, Packing arborescences, 2010, after Schrijver; ForestColl, appendix C.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from formulations.compiled.packing import Graph, Partial, grow
from formulations.forest.splitting import Connections, Load

_PLACES = 8
"""Partial trees at first; there is room for more when they are needed."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Copies of one tree.

    Parameters
    ----------
    root
        Number of the device at its root.
    edges
        Pairs of devices, parents first.
    copies
        How many.
    """

    root: int
    edges: tuple[tuple[int, int], ...]
    copies: int


def pack(
    load: Load, found: Connections, *, stop: Callable[[int, int], None] | None = None
) -> list[Packed]:
    """Return trees that reach every GPU, as many as each root has.

    Parameters
    ----------
    load
        Trees of each root.
    found
        Connections into which they fit; they are used up.
    stop
        Called with the number of roots that are done and of all, after each; may raise.
    """
    return list(_Packing(load, found).trees(stop))


class _Packing:
    """The trees while they grow; GPUs are numbered by rank."""

    def __init__(self, load: Load, found: Connections) -> None:
        network = load.network
        self.gpus = network.gpus
        rank = np.full(len(load.trees), -1)
        rank[self.gpus] = np.arange(len(self.gpus))
        tail, head = rank[found.tail], rank[found.head]
        order = np.lexsort((head, tail))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        self.graph = Graph(
            first=np.searchsorted(tail[order], np.arange(len(self.gpus) + 1)).astype(np.int64),
            head=head[order].astype(np.int64),
            rev=place[found.rev[order]],
            capacity=found.capacity[order],
            room=np.ascontiguousarray(found.room[:, order]),
        )
        self.tail = tail[order]
        self.copies = load.trees[self.gpus]
        self.row = np.full(len(self.gpus), -1)
        self.row[rank[network.sinks]] = np.arange(len(network.sinks))
        self.partial = self._places(_PLACES)

    def _places(self, count: int) -> Partial:
        many, sinks, arcs = len(self.gpus), len(self.graph.room), len(self.graph.head)
        return Partial(
            copies=np.zeros(count, dtype=np.int64),
            reached=np.zeros((count, many), dtype=bool),
            depth=np.zeros((count, many), dtype=np.int64),
            parent=np.full((count, many), -1, dtype=np.int64),
            blocked=np.zeros((count, arcs), dtype=bool),
            starts=np.zeros((count, sinks, many), dtype=np.int64),
        )

    def _wider(self) -> None:
        """Make twice as many places for partial trees."""
        old = self.partial
        self.partial = self._places(2 * len(old.copies))
        for before, after in zip(old, self.partial, strict=True):
            after[: len(before)] = before

    def trees(self, stop: Callable[[int, int], None] | None) -> Iterator[Packed]:
        """Yield all trees."""
        roots = np.flatnonzero(self.copies).tolist()
        for number, root in enumerate(roots):
            self._begin(root)
            while self.partial.copies.any():
                yield from self._grown(root, int(np.flatnonzero(self.partial.copies)[-1]))
            if stop is not None:
                stop(number + 1, len(roots))

    def _begin(self, root: int) -> None:
        partial = self.partial
        partial.copies[0] = self.copies[root]
        partial.reached[0] = False
        partial.reached[0, root] = True
        partial.depth[0] = 0
        partial.parent[0] = -1
        partial.blocked[0] = False
        partial.starts[0] = 0
        partial.starts[0, :, root] = self.copies[root]
        if self.row[root] >= 0:
            partial.starts[0, self.row[root], root] = 0

    def _grown(self, root: int, tree: int) -> Iterator[Packed]:
        if not grow(self.graph, self.partial, tree, self.row):
            self._wider()
            return
        partial = self.partial
        order = np.argsort(partial.depth[tree], kind="stable")[1:]
        parents = self.tail[partial.parent[tree][order]]
        edges = zip(self.gpus[parents].tolist(), self.gpus[order].tolist(), strict=True)
        yield Packed(int(self.gpus[root]), tuple(edges), int(partial.copies[tree]))
        partial.copies[tree] = 0
        partial.starts[tree] = 0
