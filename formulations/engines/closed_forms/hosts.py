"""Orders of the ranks for closed forms: by host, by fast paths, and in grids.

Groups, leaders and orders that keep hosts together are found by `by_host`, `best_connected` and
`laid`.

`fitted` finds orders in which a form's neighbours are joined by paths as fast as can be. A form
names pairs of places that exchange most. An order is searched depth first in which a path over at
most devices that cannot store joins every one of them; paths slower than a threshold are left out,
from the fastest threshold down, and at each the shortest paths are tried alone first. No claim is
made that no better order exists; where none is found within `ORDER_TRIES` steps there is None, and
forms fall back on the order of ranks.

A `Grid` is the shape that the links between GPUs have, with rings and rows along its dimensions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ccl.topology import Topology
from formulations.engines.closed_forms.routing import Reachability, nearest, paces, reachability

ORDER_TRIES = 100_000
"""Steps of a search, after which it is given up."""


def by_rank(topology: Topology) -> np.ndarray:
    """Return the order of ranks as they are."""
    return np.arange(len(topology.ranks))


def arranged(
    topology: Topology, pairs: Iterable[tuple[int, int]], *, tries: int = ORDER_TRIES
) -> np.ndarray | None:
    """Return an order in which each pair of places (src, dst) is joined, or None.

    Parameters
    ----------
    topology
        Whose ranks are ordered.
    pairs
        Places that must be joined, in that direction.
    tries
        Steps of each search, after which it is given up.
    """
    wanted = Reachability.of(len(topology.ranks), pairs)
    for paths in nearest(topology):
        order = fitted(paths, wanted, tries=tries)
        if order is not None:
            return np.array(order)
    return None


def order_for(topology: Topology, pairs: Iterable[tuple[int, int]]) -> np.ndarray:
    """Return an order in which each pair of places is joined, or that of ranks if there is none."""
    found = arranged(topology, pairs)
    return by_rank(topology) if found is None else found


def fitted(
    paths: Reachability,
    wanted: Reachability,
    *,
    allowed: list[int] | None = None,
    tries: int = ORDER_TRIES,
) -> list[int] | None:
    """Return the rank at each place such that whatever is wanted of places is joined, or None.

    The search is depth first; place i takes the first rank after that of place i - 1 that fits,
    of those that bits in `allowed` leave it.
    """
    if _hopeless(paths, wanted):
        return None
    fits = _fits(paths, wanted)
    order: list[int] = []
    pending: list[int] = []
    free = (1 << paths.count) - 1
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


def _fits(paths: Reachability, wanted: Reachability) -> Callable[[list[int], int], int]:
    """Return what says which ranks, as bits, fit the place after those that are taken."""
    needed: list[list[tuple[int, list[int]]]] = [[] for _ in range(wanted.count)]
    for src, row in enumerate(wanted.out):
        left = row
        while left:
            dst = (left & -left).bit_length() - 1
            left &= left - 1
            needed[max(src, dst)].append((min(src, dst), paths.out if src < dst else paths.into))

    def fits(order: list[int], free: int) -> int:
        for other, near in needed[len(order)]:
            free &= near[order[other]]
        return free

    return fits


def _hopeless(paths: Reachability, wanted: Reachability) -> bool:
    """Return whether counting neighbours or reaching all of them rules every order out."""
    if wanted.count < paths.count:
        return False
    for has, asks in ((paths.out, wanted.out), (paths.into, wanted.into)):
        many, least = (sorted(map(int.bit_count, each)) for each in (has, asks))
        if any(one < other for one, other in zip(many, least, strict=True)):
            return True
    return wanted.strong and not paths.strong


TRIES = 5_000
"""Steps of a search for an order, after which it is given up."""


def by_host(topology: Topology) -> list[list[int]]:
    """Return the ranks of each host, in order; GPUs without one count as one host."""
    found: dict[str | None, list[int]] = {}
    for name, rank in topology.rank.items():
        found.setdefault(topology.device(name).host, []).append(rank)
    return list(found.values())


def from_first(topology: Topology, first: int) -> list[list[int]]:
    """Return the ranks of each host, that of `first` before the others and it before all."""
    blocks = sorted(by_host(topology), key=lambda block: first not in block)
    blocks[0].sort(key=lambda rank: rank != first)
    return blocks


def best_connected(topology: Topology, ranks: Sequence[int], others: Sequence[int]) -> int:
    """Return which of `ranks` has the most GB/s to and from others, each over its fastest path.

    Of several it is the first.
    """
    wanted = bits(others)
    total = dict.fromkeys(ranks, 0.0)
    every = paces(topology)
    for pace, slower in zip(every, [*every[1:], 0.0], strict=True):
        paths = reachability(topology, pace)
        for rank in ranks:
            met = (paths.out[rank] & wanted).bit_count() + (paths.into[rank] & wanted).bit_count()
            total[rank] += met * (pace - slower)
    return max(ranks, key=lambda rank: total[rank])


def laid(
    topology: Topology, blocks: Sequence[Sequence[int]], pairs: Sequence[tuple[int, int]]
) -> np.ndarray:
    """Return the rank at each place: block after block, its first rank first in the first one.

    Blocks are ranks of a host each, of all hosts or of some. Pairs of places (src, dst) are joined
    by paths as fast as can be found, those between blocks
    before those within. Where no order is found that joins all, place after place takes the first
    rank that has the fastest path from or to a place before; where links are one way, it is first
    requested an order in which all are joined over other ranks.
    """
    of = np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
    allowed = [bits(blocks[block]) for block in of.tolist()]
    allowed[0] = 1 << blocks[0][0]
    same = {rank: bits(block) for block in blocks for rank in block}
    wanted = Reachability.of(len(of), pairs)
    every = paces(topology)
    paths = {pace: reachability(topology, pace) for pace in every}

    def found(outside: float, inside: float) -> list[int] | None:
        mixed = _mixed(paths[outside], paths[inside], same)
        return fitted(mixed, wanted, allowed=allowed, tries=TRIES)

    slowest = every[-1]
    outside = next((pace for pace in every if found(pace, slowest) is not None), None)
    if outside is None:
        reached = None
        if not paths[slowest].strong:
            reached = fitted(_onwards(paths[slowest]), wanted, allowed=allowed, tries=TRIES)
        return np.array(reached or _nearest(pairs, allowed, [paths[pace] for pace in every]))
    orders = (found(outside, pace) for pace in every)
    return np.array(next(order for order in orders if order is not None))


def _onwards(paths: Reachability) -> Reachability:
    """Return which ranks are reached over any number of others."""
    found = []
    for rows in (list(paths.out), list(paths.into)):
        for middle in range(paths.count):
            for rank in range(paths.count):
                if rows[rank] >> middle & 1:
                    rows[rank] |= rows[middle]
        found.append(rows)
    return Reachability(*found)


def _nearest(
    pairs: Sequence[tuple[int, int]], allowed: Sequence[int], paths: Sequence[Reachability]
) -> list[int]:
    """Return the rank at each place, one after the other; `paths` are from fast to slow."""
    before: list[list[tuple[int, bool]]] = [[] for _ in allowed]
    for src, dst in pairs:
        before[max(src, dst)].append((min(src, dst), src < dst))
    order: list[int] = []
    free = (1 << paths[0].count) - 1
    for block, wanted in zip(allowed, before, strict=True):
        near = (
            (each.out if onwards else each.into)[order[other]]
            for each in paths
            for other, onwards in wanted
        )
        fits = next((found for each in near if (found := each & free & block)), free & block)
        order.append((fits & -fits).bit_length() - 1)
        free &= ~(1 << order[-1])
    return order


def _mixed(outside: Reachability, inside: Reachability, same: dict[int, int]) -> Reachability:
    """Return the paths of one between hosts and those of the other within."""
    rows = [
        [
            (far[rank] & ~same.get(rank, 0)) | (near[rank] & same.get(rank, 0))
            for rank in range(outside.count)
        ]
        for far, near in ((outside.out, inside.out), (outside.into, inside.into))
    ]
    return Reachability(*rows)


def bits(ranks: Sequence[int]) -> int:
    """Return ranks as the bits of a whole number."""
    return sum(1 << rank for rank in ranks)


def uneven(topology: Topology) -> str | None:
    """Explain why hosts are not two or more of two GPUs or more each, all alike, or None."""
    alone = [name for name in topology.ranks if topology.device(name).host is None]
    if alone:
        return f"{alone[0]} is in no host, and here every GPU is in one"
    blocks = by_host(topology)
    names = [topology.device(topology.ranks[block[0]]).host for block in blocks]
    if len(blocks) < 2:
        return f"all its GPUs are in one host, {names[0]}, and here two hosts or more exchange"
    for name, block in zip(names, blocks, strict=True):
        if len(block) != len(blocks[0]):
            return (
                f"host {names[0]} has {len(blocks[0])} GPUs and host {name} has {len(block)}; "
                "here all have as many"
            )
    if len(blocks[0]) < 2:
        return "its hosts have one GPU each, and here there is work within them"
    return None


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
