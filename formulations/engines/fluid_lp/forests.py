"""Forests of a fluid solution: the trees of every root, weights exact.

A problem that is one forest has a single group for each root, all spread or all added up, or is a
sum for everybody, whose in-trees and out-trees of a root carry its share.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from ccl.forest import Forest, Tree
from ccl.problem import Problem
from ccl.topology import Topology
from formulations.engines.reverse_time import adding
from formulations.engines.steady_state.demands import Demands, demands_of


def no_forest(demands: Demands) -> str | None:
    """Say in words why one forest cannot carry the demands, or None."""
    if bool(demands.spreads) + bool(demands.sums) + bool(demands.free) > 1:
        return "some chunks are added up and others are not, which no forest does at once"
    if demands.free:
        return None
    groups = (*demands.spreads, *demands.sums)
    if len({each.root for each in groups}) < len(groups):
        return "chunks of one rank have different destinations, and its trees take all data alike"
    return None


def joined_forest(
    trees: tuple[Tree, ...], spread: tuple[Tree, ...], shares: list[Fraction]
) -> Forest:
    """Return the forest of an all-reduce.

    Parameters
    ----------
    trees, spread
        In-trees and out-trees, whose weights add up to 1 for each root that has a share.
    shares
        What each rank adds up of all data, 1 in all.
    """

    def weighed(some: tuple[Tree, ...]) -> tuple[Tree, ...]:
        kept = (each for each in some if shares[each.root])
        return tuple(replace(each, weight=each.weight * shares[each.root]) for each in kept)

    return Forest(weighed(trees), reduces=True, spread=weighed(spread))


def nearest_forest(problem: Problem) -> Forest:
    """Return a forest of the fewest hops: a first plan, which proves nothing.

    Raises
    ------
    ProblemError
        If sums would have to lie in a memory.
    """
    demands = demands_of(problem)
    sums = adding(problem).topology if problem.collective.reduces else problem.topology
    whole = Fraction(1)
    if demands.free:
        ranks = range(len(problem.topology.ranks))
        every = tuple(ranks)
        inward = tuple(_nearest(sums, root, every, whole, reduces=True) for root in ranks)
        outward = tuple(
            _nearest(problem.topology, root, every, whole, reduces=False) for root in ranks
        )
        return joined_forest(inward, outward, [Fraction(1, len(every))] * len(every))
    reduces = bool(demands.sums)
    topology = sums if reduces else problem.topology
    groups = demands.sums or demands.spreads
    trees = (_nearest(topology, g.root, g.others, whole, reduces=reduces) for g in groups)
    return Forest(tuple(trees), reduces=reduces)


def _nearest(
    topology: Topology, root: int, others: tuple[int, ...], weight: Fraction, *, reduces: bool
) -> Tree:
    """Return a tree of shortest ways; switches are crossed, what stores is where ways meet."""
    around = topology.reversed() if reduces else topology
    start = around.ranks[root]
    came: dict[str, str] = {start: start}
    queue = [start]
    for name in queue:
        for link in around.links_out[name]:
            if link.dst not in came:
                came[link.dst] = name
                queue.append(link.dst)
    routes: dict[str, tuple[str, ...]] = {}
    for rank in others:
        name = around.ranks[rank]
        while name != start and name not in routes:
            way = [name, came[name]]
            while not around.device(way[-1]).stores:
                way.append(came[way[-1]])
            routes[name] = tuple(reversed(way))
            name = way[-1]
    order = {name: i for i, name in enumerate(queue)}
    ways = [routes[name] for name in sorted(routes, key=order.__getitem__)]
    if reduces:
        ways = [way[::-1] for way in reversed(ways)]
    return Tree(root, tuple(ways), weight)


def carried_shares(shares: np.ndarray) -> list[float]:
    """Return the shares of ranks of which more than rounding is left."""
    return [each if each > 1e-7 * shares.sum() else 0.0 for each in shares.tolist()]
