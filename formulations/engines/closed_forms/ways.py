"""Ways between any two GPUs: moves that join them, or a chain of moves over devices that store.

Two GPUs may be joined by several moves over different switches; a message takes the one on which
it is there first. Where none joins them the chunk goes the quickest chain, and each device on it
keeps a copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from ccl.errors import Infeasible
from formulations.engines.epoch_grid.arcs import no_way
from formulations.engines.list_scheduling.routes import Moves


@dataclass(frozen=True)
class Ways:
    """Moves sorted by the devices that they join.

    Parameters
    ----------
    moves
        All of them.
    nbytes
        Bytes of the chunk that decides which chain is the quickest.
    """

    moves: Moves
    nbytes: float

    @property
    def _devices(self) -> int:
        return len(self.moves.topology.devices)

    @cached_property
    def order(self) -> np.ndarray:
        """Moves sorted by source, destination and delay, shape (moves,)."""
        moves = self.moves
        return np.lexsort((moves.delay(self.nbytes), moves.dst, moves.src))

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Keys of the pairs of devices that moves join, and where the moves of each begin."""
        moves = self.moves
        keys = (moves.src * self._devices + moves.dst)[self.order]
        return np.unique(keys, return_index=True)

    @property
    def pairs(self) -> np.ndarray:
        """Where the moves of each pair of devices begin in `order`, shape (pairs + 1,)."""
        return np.append(self._pairs[1], len(self.order))

    def joined(self, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
        """Return the number of each pair of devices among `pairs`, -1 where no move joins them."""
        keys = self._pairs[0]
        asked = src * self._devices + dst
        found = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        return np.where(keys[found] == asked, found, -1)

    def chains(self, src: np.ndarray, dst: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs along the way of each two devices, flat and where each one begins.

        Raises
        ------
        Infeasible
            If no way leads from one to the other.
        """
        direct = self.joined(src, dst)
        apart = np.flatnonzero(direct < 0)
        if not len(apart):
            return direct, np.arange(len(direct) + 1)
        asked, back = np.unique(np.stack([src[apart], dst[apart]]), axis=1, return_inverse=True)
        found = self._quickest(asked)
        chains = [np.array([pair]) for pair in direct.tolist()]
        for turn, number in zip(apart.tolist(), np.ravel(back).tolist(), strict=True):
            chains[turn] = found[number]
        first = np.cumsum([0, *map(len, chains)])
        return np.concatenate(chains), first

    def _quickest(self, asked: np.ndarray) -> list[np.ndarray]:
        """Return the chain of pairs for each column of sources and destinations."""
        moves, count = self.moves, self._devices
        best = self.order[self._pairs[1]]
        weights = np.maximum(moves.delay(self.nbytes)[best], np.finfo(float).tiny)
        graph = sparse.csr_array((weights, (moves.src[best], moves.dst[best])), shape=(count,) * 2)
        sources, which = np.unique(asked[0], return_inverse=True)
        far, before = csgraph.dijkstra(graph, indices=sources, return_predecessors=True)
        chains = []
        for row, dst in zip(which.tolist(), asked[1].tolist(), strict=True):
            if not np.isfinite(far[row, dst]):
                raise Infeasible(no_way(moves.topology.devices[dst].name))
            stops = [dst]
            while stops[-1] != sources[row]:
                stops.append(int(before[row, stops[-1]]))
            ends = np.array(stops[::-1])
            chains.append(self.joined(ends[:-1], ends[1:]))
        return chains
