"""Grids: which shape the links between GPUs have, and rings and rows along its dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from ccl.topology import Topology

MOST_SIDES = 6
"""Dimensions of a grid that is looked for."""


@dataclass(frozen=True)
class Grid:
    """GPUs in rows, numbered with the last coordinate fastest.

    Parameters
    ----------
    shape
        Sides, each 2 or more.
    closed
        Whether the rows of each dimension are closed to rings; those of two GPUs are not.
    """

    shape: tuple[int, ...]
    closed: tuple[bool, ...]

    def stride(self, axis: int) -> int:
        """Return how many ranks lie between neighbours of a dimension."""
        return prod(self.shape[axis + 1 :])

    def at(self, ranks: np.ndarray, axis: int) -> np.ndarray:
        """Return one coordinate of ranks, the same shape."""
        return np.asarray(ranks // self.stride(axis) % self.shape[axis])

    def moved(self, ranks: np.ndarray, axis: int, to: np.ndarray) -> np.ndarray:
        """Return the ranks with another coordinate, the same shape."""
        return np.asarray(ranks + (to - self.at(ranks, axis)) * self.stride(axis))

    def __str__(self) -> str:
        return "×".join(map(str, self.shape))


def grid_of(topology: Topology) -> Grid | None:
    """Return the grid of two dimensions or more that the links between GPUs make, or None.

    Every GPU must be joined with its neighbours both ways and with nobody else. Of several shapes
    it is the one with the fewest dimensions.
    """
    rank = topology.rank
    pairs = {
        (rank[each.src], rank[each.dst])
        for each in topology.links
        if each.src in rank and each.dst in rank
    }
    if any(pair[::-1] not in pairs for pair in pairs):
        return None
    joined = frozenset((src, dst) for src, dst in pairs if src < dst)
    shapes = sorted(_shapes(len(rank), MOST_SIDES), key=len)
    found = (_fitting(shape, joined) for shape in shapes if len(shape) > 1)
    return next((grid for grid in found if grid is not None), None)


def _shapes(count: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield all sides of 2 or more whose product is `count`."""
    if count > 1 and most:
        yield (count,)
        for side in range(2, count // 2 + 1):
            if count % side == 0:
                for rest in _shapes(count // side, most - 1):
                    yield side, *rest


def _fitting(shape: tuple[int, ...], joined: frozenset[tuple[int, int]]) -> Grid | None:
    """Return the grid of a shape whose neighbours are exactly those joined, or None."""
    grid = Grid(shape, (False,) * len(shape))
    if any((0, grid.stride(axis)) not in joined for axis in range(len(shape))):
        return None
    ranks = np.arange(prod(shape))
    left = set(joined)
    closed = []
    for axis, side in enumerate(shape):
        at, stride = grid.at(ranks, axis), grid.stride(axis)
        inner = ranks[at < side - 1]
        rows = set(zip(inner.tolist(), (inner + stride).tolist(), strict=True))
        if not rows <= left:
            return None
        left -= rows
        begin = ranks[at == 0]
        ends = set(zip(begin.tolist(), (begin + (side - 1) * stride).tolist(), strict=True))
        closed.append(side > 2 and ends <= left)
        left -= ends
    return None if left else Grid(shape, tuple(closed))
