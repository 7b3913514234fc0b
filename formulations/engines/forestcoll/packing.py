"""Connections between GPUs filled with spanning trees, as many of each root as it gives out.

Trees grow by arcs that leave room for all other trees (`formulations.engines.kernels.packing`), all
copies of one at once: every tree its first level, every tree its second and so on, so that none
takes what another needs to stay shallow; then each by itself, by the arc nearest to its root. Where
an arc suits some copies only, these go on and the others are grown later. Shallowest trees are
NP-hard to find; these are not, but none is deep without need.

Source: Bérczi and Frank, Packing arborescences, 2010, after Schrijver; ForestColl, appendix C.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from formulations.engines.forestcoll.splitting import Connections, Load
from formulations.engines.kernels.packing import Graph, Partial, grow

_PLACES = 8
"""For copies left behind; there is room for more when they are needed."""

_DEEPEST = 8
"""Levels that all trees reach together; what few trees still lack then, each gets by itself."""

_NUMBERS = 2**25
"""Most numbers that say where the units of all trees start: 256 MB."""


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
        self.left = load.trees[self.gpus]
        self.row = np.full(len(self.gpus), -1)
        self.row[rank[network.sinks]] = np.arange(len(network.sinks))
        self.partial = self._places(0)

    def _places(self, count: int) -> Partial:
        many, sinks, arcs = len(self.gpus), len(self.graph.room), len(self.graph.head)
        return Partial(
            copies=np.zeros(count, dtype=np.int64),
            reached=np.zeros((count, many), dtype=bool),
            depth=np.zeros((count, many), dtype=np.int64),
            parent=np.full((count, many), -1, dtype=np.int64),
            blocked=np.zeros((count, arcs), dtype=bool),
            starts=np.zeros((sinks, many, count), dtype=np.int64),
        )

    def _wider(self) -> None:
        """Make twice as many places for partial trees."""
        old = self.partial
        count = len(old.copies)
        self.partial = self._places(2 * count)
        for before, after in zip(old[:-1], self.partial[:-1], strict=True):
            after[:count] = before
        self.partial.starts[:, :, :count] = old.starts

    def trees(self, stop: Callable[[int, int], None] | None) -> Iterator[Packed]:
        """Yield all trees."""
        roots = np.flatnonzero(self.left)
        together = max(1, _NUMBERS // (len(self.gpus) * len(self.graph.room)))
        for first in range(0, len(roots), together):
            group = roots[first : first + together].tolist()
            self.partial = self._places(len(group) + _PLACES)
            for place, root in enumerate(group):
                self._begin(place, root)
            for tree, deepest in self._turns(len(group)):
                yield from self._grown(tree, deepest)
                if stop is not None:
                    stop(len(roots) - int((self.left > 0).sum()), len(roots))

    def _turns(self, many: int) -> Iterator[tuple[int, int]]:
        """Yield which tree is grown next and how deep: all trees a level, then one by one."""
        for deepest in range(1, _DEEPEST + 1):
            yield from ((tree, deepest) for tree in range(many) if self.partial.copies[tree])
        while self.partial.copies.any():
            yield int(np.flatnonzero(self.partial.copies)[-1]), 0

    def _begin(self, place: int, root: int) -> None:
        partial = self.partial
        partial.copies[place] = self.left[root]
        partial.reached[place, root] = True
        partial.starts[:, root, place] = self.left[root]
        if self.row[root] >= 0:
            partial.starts[self.row[root], root, place] = 0

    def _grown(self, tree: int, deepest: int) -> Iterator[Packed]:
        if not grow(self.graph, self.partial, tree, self.row, deepest):
            self._wider()
            return
        partial = self.partial
        if not partial.reached[tree].all():
            return
        root = int(np.flatnonzero(partial.parent[tree] < 0)[0])
        order = np.argsort(partial.depth[tree], kind="stable")[1:]
        parents = self.tail[partial.parent[tree][order]]
        edges = zip(self.gpus[parents].tolist(), self.gpus[order].tolist(), strict=True)
        copies = int(partial.copies[tree])
        self.left[root] -= copies
        partial.copies[tree] = 0
        partial.starts[:, :, tree] = 0
        yield Packed(int(self.gpus[root]), tuple(edges), copies)
