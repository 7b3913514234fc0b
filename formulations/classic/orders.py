"""Orders of the ranks in which a form's neighbours are joined by ways as fast as can be.

A form names pairs of places that exchange most. An order is searched depth first in which a way
over at most devices that cannot store joins every one of them; ways slower than a threshold are
left out, from the fastest threshold down. No claim is made that no better order exists; where
none is found within `TRIES` steps there is None, and forms fall back on the order of ranks.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from ccl.topology import Topology
from formulations.hops import ways

TRIES = 100_000
"""Steps of a search, after which it is given up."""


def by_rank(topology: Topology) -> np.ndarray:
    """Return the order of ranks as they are."""
    return np.arange(len(topology.ranks))


def speeds(topology: Topology) -> np.ndarray:
    """Return GB/s of the fastest way from rank to rank, 0 where none joins them directly.

    Shape (ranks, ranks); a way's speed is that of its slowest link.
    """
    count = len(topology.ranks)
    found = np.zeros((count, count))
    for route in ways(topology):
        if route[0] in topology.rank and route[-1] in topology.rank:
            ends = topology.rank[route[0]], topology.rank[route[-1]]
            speed = min(topology.link(*pair).bandwidth for pair in pairwise(route))
            found[ends] = max(found[ends], speed)
    return found


def arranged(
    topology: Topology, pairs: Iterable[tuple[int, int]], *, places: int | None = None
) -> np.ndarray | None:
    """Return an order in which each pair of places (src, dst) is joined, or None.

    Parameters
    ----------
    topology
        Whose ranks are ordered.
    pairs
        Places that must be joined, in that direction.
    places
        How many there are; by default as many as ranks. Ranks left over come last.
    """
    count = len(topology.ranks) if places is None else places
    needed: list[list[tuple[int, bool]]] = [[] for _ in range(count)]
    for src, dst in pairs:
        first, last = min(src, dst), max(src, dst)
        needed[last].append((first, src == first))
    speed = speeds(topology)
    for least in np.unique(speed[speed > 0])[::-1]:
        order = _found(speed >= least, needed)
        if order is not None:
            rest = [rank for rank in range(len(topology.ranks)) if rank not in set(order)]
            return np.array([*order, *rest])
    return None


def _found(joined: np.ndarray, needed: list[list[tuple[int, bool]]]) -> list[int] | None:
    """Search depth first; place i takes the first rank after that of place i - 1 that fits."""
    count = len(joined)
    both = joined, joined.T
    order: list[int] = []
    used = np.zeros(count, dtype=bool)
    pending: list[list[int]] = []
    for _ in range(TRIES):
        place = len(order)
        if place == len(needed):
            return order
        if len(pending) == place:
            fits = ~used
            for other, forward in needed[place]:
                fits = fits & both[0 if forward else 1][order[other]]
            begin = order[-1] + 1 if order else 0
            following = np.roll(np.arange(count), -begin)
            pending.append(following[fits[following]][::-1].tolist())
        if pending[place]:
            order.append(pending[place].pop())
            used[order[-1]] = True
        elif not order:
            return None
        else:
            pending.pop()
            used[order.pop()] = False
    return None
