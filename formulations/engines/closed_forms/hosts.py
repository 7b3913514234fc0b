"""Ranks by host: who lies together, who speaks for a host, orders that keep hosts together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ccl.topology import Topology
from formulations.engines.closed_forms.orders import fitted
from formulations.engines.closed_forms.routing import Joined, joined, paces

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
    """Return which of `ranks` has the most GB/s to and from others, each over its fastest way.

    Of several it is the first.
    """
    asked = bits(others)
    total = dict.fromkeys(ranks, 0.0)
    every = paces(topology)
    for pace, slower in zip(every, [*every[1:], 0.0], strict=True):
        ways = joined(topology, pace)
        for rank in ranks:
            met = (ways.out[rank] & asked).bit_count() + (ways.into[rank] & asked).bit_count()
            total[rank] += met * (pace - slower)
    return max(ranks, key=lambda rank: total[rank])


def laid(
    topology: Topology, blocks: Sequence[Sequence[int]], pairs: Sequence[tuple[int, int]]
) -> np.ndarray:
    """Return the rank at each place: block after block, its first rank first in the first one.

    Blocks are ranks of a host each, of all hosts or of some. Pairs of places (src, dst) are joined
    by ways as fast as can be found, those between blocks
    before those within. Where no order is found that joins all, place after place takes the first
    rank that has the fastest way from or to a place before; where links are one way, it is first
    asked for an order in which all are joined over other ranks.
    """
    of = np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
    allowed = [bits(blocks[block]) for block in of.tolist()]
    allowed[0] = 1 << blocks[0][0]
    same = {rank: bits(block) for block in blocks for rank in block}
    wanted = Joined.of(len(of), pairs)
    every = paces(topology)
    ways = {pace: joined(topology, pace) for pace in every}

    def found(outside: float, inside: float) -> list[int] | None:
        mixed = _mixed(ways[outside], ways[inside], same)
        return fitted(mixed, wanted, allowed=allowed, tries=TRIES)

    slowest = every[-1]
    outside = next((pace for pace in every if found(pace, slowest) is not None), None)
    if outside is None:
        reached = None
        if not ways[slowest].strong:
            reached = fitted(_onwards(ways[slowest]), wanted, allowed=allowed, tries=TRIES)
        return np.array(reached or _nearest(pairs, allowed, [ways[pace] for pace in every]))
    orders = (found(outside, pace) for pace in every)
    return np.array(next(order for order in orders if order is not None))


def _onwards(ways: Joined) -> Joined:
    """Return which ranks are reached over any number of others."""
    found = []
    for rows in (list(ways.out), list(ways.into)):
        for middle in range(ways.count):
            for rank in range(ways.count):
                if rows[rank] >> middle & 1:
                    rows[rank] |= rows[middle]
        found.append(rows)
    return Joined(*found)


def _nearest(
    pairs: Sequence[tuple[int, int]], allowed: Sequence[int], ways: Sequence[Joined]
) -> list[int]:
    """Return the rank at each place, one after the other; `ways` are from fast to slow."""
    before: list[list[tuple[int, bool]]] = [[] for _ in allowed]
    for src, dst in pairs:
        before[max(src, dst)].append((min(src, dst), src < dst))
    order: list[int] = []
    free = (1 << ways[0].count) - 1
    for block, asked in zip(allowed, before, strict=True):
        near = (
            (each.out if onwards else each.into)[order[other]]
            for each in ways
            for other, onwards in asked
        )
        fits = next((found for each in near if (found := each & free & block)), free & block)
        order.append((fits & -fits).bit_length() - 1)
        free &= ~(1 << order[-1])
    return order


def _mixed(outside: Joined, inside: Joined, same: dict[int, int]) -> Joined:
    """Return the ways of one between hosts and those of the other within."""
    rows = [
        [
            (far[rank] & ~same.get(rank, 0)) | (near[rank] & same.get(rank, 0))
            for rank in range(outside.count)
        ]
        for far, near in ((outside.out, inside.out), (outside.into, inside.into))
    ]
    return Joined(*rows)


def bits(ranks: Sequence[int]) -> int:
    """Return ranks as the bits of a whole number."""
    return sum(1 << rank for rank in ranks)


def uneven(topology: Topology) -> str | None:
    """Say in words why hosts are not two or more of two GPUs or more each, all alike, or None."""
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
