"""Orders of the ranks in which a form's neighbours are joined by ways as fast as can be.

A form names pairs of places that exchange most. An order is searched depth first in which a way
over at most devices that cannot store joins every one of them; ways slower than a threshold are
left out, from the fastest threshold down, and at each the shortest ways are tried alone first. No
claim is made that no better order exists; where none is found within `TRIES` steps there is None,
and forms fall back on the order of ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from ccl.topology import Topology
from formulations.engines.closed_forms.routing import Joined, nearest

TRIES = 100_000
"""Steps of a search, after which it is given up."""


def by_rank(topology: Topology) -> np.ndarray:
    """Return the order of ranks as they are."""
    return np.arange(len(topology.ranks))


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
    count = len(topology.ranks)
    wanted = Joined.of(count if places is None else places, pairs)
    for ways in nearest(topology):
        order = fitted(ways, wanted)
        if order is not None:
            used = set(order)
            return np.array([*order, *(rank for rank in range(count) if rank not in used)])
    return None


def fitted(
    ways: Joined, wanted: Joined, *, allowed: list[int] | None = None, tries: int = TRIES
) -> list[int] | None:
    """Return the rank at each place such that whatever is wanted of places is joined, or None.

    The search is depth first; place i takes the first rank after that of place i - 1 that fits,
    of those that bits in `allowed` leave it.
    """
    if _hopeless(ways, wanted):
        return None
    fits = _fits(ways, wanted)
    order: list[int] = []
    pending: list[int] = []
    free = (1 << ways.count) - 1
    for _ in range(tries):
        place = len(order)
        if place == wanted.count:
            return order
        if len(pending) == place:
            left = free if allowed is None else free & allowed[place]
            pending.append(fits(order, left))
        # First what comes after the last rank, then what comes before it.
        begin = order[-1] + 1 if order else 0
        left = (pending[place] >> begin << begin) or pending[place]
        if left:
            first = left & -left
            pending[place] ^= first
            free ^= first
            order.append(first.bit_length() - 1)
        elif not order:
            return None
        else:
            pending.pop()
            free |= 1 << order.pop()
    return None


def _fits(ways: Joined, wanted: Joined) -> Callable[[list[int], int], int]:
    """Return what says which ranks, as bits, fit the place after those that are taken."""
    needed: list[list[tuple[int, list[int]]]] = [[] for _ in range(wanted.count)]
    for src, row in enumerate(wanted.out):
        left = row
        while left:
            dst = (left & -left).bit_length() - 1
            left &= left - 1
            needed[max(src, dst)].append((min(src, dst), ways.out if src < dst else ways.into))

    def fits(order: list[int], free: int) -> int:
        for other, near in needed[len(order)]:
            free &= near[order[other]]
        return free

    return fits


def _hopeless(ways: Joined, wanted: Joined) -> bool:
    """Say whether counting neighbours or reaching all of them rules every order out."""
    if wanted.count < ways.count:
        return False
    for has, asks in ((ways.out, wanted.out), (ways.into, wanted.into)):
        many, least = (sorted(map(int.bit_count, each)) for each in (has, asks))
        if any(one < other for one, other in zip(many, least, strict=True)):
            return True
    return wanted.strong and not ways.strong
