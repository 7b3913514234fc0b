"""Which sends of a schedule cross their links together: multicasts, and sums on the way.

`ccl.schedule` says when they do; here it is read off the devices of their ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ccl.problem import Problem
from ccl.schedule import Send
from ccl.verify.order import Order, Route


@dataclass(frozen=True, slots=True)
class Tree:
    """Sends that are one transmission.

    Parameters
    ----------
    places
        Where they are in the order of the schedule, two or more.
    joins
        Whether they run together, as a sum does, rather than part.
    turn
        The place of the whole: of a multicast that of its first send, of a sum that of its last.
    """

    places: tuple[int, ...]
    joins: bool
    turn: int


def trees(problem: Problem, order: Order) -> dict[int, Tree]:
    """Return the tree of each send that is in one, by its place in the order."""
    found: dict[int, Tree] = {}
    chunks = problem.collective.chunks
    for joins in (False, True):
        taken = np.zeros(len(order.sends), dtype=bool)
        taken[list(found)] = True
        taken |= np.isin(order.chunks, list(order.split))
        if joins:
            reduced = np.array([chunk.reduced for chunk in chunks], dtype=bool)
            taken |= ~reduced[order.chunks]
        turned = [route[::-1] if joins else route for route in order.routes]
        able = {
            each.name
            for each in problem.topology.devices
            if (each.reduces if joins else each.copies)
        }
        fits: dict[tuple[int, ...], bool] = {}
        for places in _alike(order, _roots(problem, turned, able), taken):
            ways = tuple([order.way[place] for place in places])
            if ways not in fits:
                fits[ways] = _branches([turned[way] for way in ways], able)
            if fits[ways]:
                tree = Tree(places, joins, places[-1] if joins else places[0])
                found.update(dict.fromkeys(places, tree))
    return found


def _roots(problem: Problem, turned: Sequence[Route], able: set[str]) -> NDArray[np.int64]:
    """Return the number of the first link of each way, shape (ways,).

    It is -1 where a way begins at a device that cannot store or crosses none that is able.
    """
    numbers: dict[Route, int] = {}
    return np.array(
        [
            numbers.setdefault(route[:2], len(numbers))
            if problem.topology.device(route[0]).stores and not able.isdisjoint(route[1:-1])
            else -1
            for route in turned
        ],
        dtype=np.int64,
    )


def _alike(
    order: Order, roots: NDArray[np.int64], taken: NDArray[np.bool_]
) -> Iterator[tuple[int, ...]]:
    """Yield places of two or more sends of one chunk and epoch with the same first link."""
    root = roots[order.way]
    places = np.flatnonzero((root >= 0) & ~taken)
    columns = [each[places] for each in (root, order.chunks, order.epochs)]
    places = places[np.lexsort(columns)]
    columns = [each[places] for each in (root, order.chunks, order.epochs)]
    new = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    listed = places.tolist()
    bounds = [0, *(np.flatnonzero(new) + 1).tolist(), len(listed)]
    for low, high in pairwise(bounds):
        if high - low > 1:
            yield tuple(listed[low:high])


def _branches(ways: Sequence[Route], able: set[str]) -> bool:
    """Say whether ways from one end are a tree that branches only at devices that are able."""
    before: dict[tuple[str, str], tuple[str, str] | None] = {}
    onward: dict[tuple[str, str], set[str]] = {}
    for way in ways:
        last = None
        for link in pairwise(way):
            if before.setdefault(link, last) != last:
                return False
            if last is not None:
                onward.setdefault(last, set()).add(link[1])
            last = link
    ends = {way[-2:] for way in ways}
    if len(ends) < len(ways) or any(end in onward for end in ends):
        return False
    return all(link[1] in able for link, next_ones in onward.items() if len(next_ones) > 1)


def meeting(first: Send, second: Send) -> str:
    """Return the device at which two sends that end alike run together."""
    common = second.dst
    ways = (first.src, *first.via, first.dst), (second.src, *second.via, second.dst)
    for one, other in zip(*(way[::-1] for way in ways), strict=False):
        if one != other:
            break
        common = one
    return common
