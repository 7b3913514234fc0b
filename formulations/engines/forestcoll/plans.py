"""From a problem to a forest: rate, splitting, packing, and trees with the ways that they take.

Of a reduction the network is turned round, and so are the trees at the end. An all-reduce is a
reduce-scatter and an all-gather at once, which share the links: `combined`.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ccl.collective import all_gather, reduce_scatter
from ccl.forest import Forest, Tree
from ccl.problem import Problem
from formulations.engines.forestcoll.network import WHOLE, Network
from formulations.engines.forestcoll.packing import Packed, pack
from formulations.engines.forestcoll.search import BYTES, FixedRate, Rate, fixed_rate, forest_rate
from formulations.engines.forestcoll.splitting import Load, Way, Ways, split

Watch = Callable[[int, int], None]
"""Called with the number of roots that have their trees and of all; may raise to stop."""


@dataclass(frozen=True, eq=False)
class Planned:
    """A forest and what is known of it.

    Parameters
    ----------
    forest
        The trees.
    makespan
        µs in the steady state, if every link that is full in the model is full.
    trees
        Trees of the root that has most, alike ones counted as often as they are.
    """

    forest: Forest
    makespan: Fraction
    trees: int


def forest_of(problem: Problem, *, trees: int = 0) -> Planned:
    """Return a forest at the best rate, or at the best with `trees` trees of each root.

    Raises
    ------
    ProblemError
        If the problem is refused (`formulations.engines.forestcoll.network.refusal`).
    SolveError
        If links that carry whole trees leave a switch that cannot be split.
    """
    if problem.adds_for_several:
        return combined(*(forest_of(half, trees=trees) for half in halves(problem)))
    rate = forest_rate(problem)
    return fixed_forest(rate, trees) if trees else best_forest(rate)


def best_forest(rate: Rate, *, watch: Watch | None = None) -> Planned:
    """Return a forest at the best rate.

    Where one root has all the data, as many trees as there are other GPUs are tried too: each may
    begin at another of them, and they are kept if they are shallower.
    """
    load = load_of(rate)
    found = _planned(rate, load, makespan=rate.makespan, watch=watch)
    others = len(rate.network.gpus) - 1
    if np.count_nonzero(load.trees) > 1 or found.forest.depth <= 2:
        return found
    times = others // math.gcd(others, int(load.trees.max()))
    if int(load.capacity.max()) * times * others >= WHOLE:
        return found
    finer = Load(load.network, load.capacity * times, load.trees * times)
    again = _planned(rate, finer, makespan=rate.makespan, watch=watch)
    return again if again.forest.depth < found.forest.depth else found


def fixed_forest(rate: Rate, trees: int, *, watch: Watch | None = None) -> Planned:
    """Return a forest at the best rate with `trees` trees of each root.

    Where roots have different amounts of data, one with twice as much has twice as many trees.

    Raises
    ------
    SolveError
        If links that carry whole trees leave a switch that cannot be split.
    """
    fixed = fixed_rate(rate.network, trees, best=rate.speed / rate.network.unit)
    return _planned(
        rate,
        Load(rate.network, fixed.capacities(rate.network), rate.network.weight * trees),
        makespan=makespan_of(rate.network, fixed),
        watch=watch,
    )


def makespan_of(network: Network, fixed: FixedRate) -> Fraction:
    """Return the µs that a fixed number of trees takes in the steady state."""
    return network.share * fixed.time / (fixed.trees * network.unit * BYTES)


def load_of(rate: Rate) -> Load:
    """Return the fewest trees, all alike in weight, that make up the best rate."""
    network = rate.network
    speed = rate.speed / network.unit
    capacity, trees = network.capacity * speed.denominator, network.weight * speed.numerator
    common = math.gcd(int(np.gcd.reduce(capacity)), int(np.gcd.reduce(trees)))
    return Load(network, capacity // common, trees // common)


def halves(problem: Problem) -> tuple[Problem, Problem]:
    """Return the reduce-scatter and the all-gather of an all-reduce."""
    ranks = problem.collective.ranks
    size = float(sum(chunk.size for chunk in problem.collective.chunks))
    topology = problem.topology
    both = reduce_scatter(ranks, size), all_gather(ranks, size)
    return Problem(topology, both[0]), Problem(topology, both[1])


def combined(reducing: Planned, gathering: Planned) -> Planned:
    """Return the all-reduce of both halves, each root adding up and spreading the same share.

    The halves follow one another in the makespan; what the links really take may be less.
    """
    roots = {tree.root for tree in gathering.forest.trees}
    trees, spread = (
        tuple(Tree(tree.root, tree.routes, tree.weight / len(roots)) for tree in each.forest.trees)
        for each in (reducing, gathering)
    )
    return Planned(
        Forest(trees, reduces=True, spread=spread),
        reducing.makespan + gathering.makespan,
        max(reducing.trees, gathering.trees),
    )


def _planned(rate: Rate, load: Load, *, makespan: Fraction, watch: Watch | None) -> Planned:
    trees = trees_of(load, watch=watch)
    if rate.reduces:
        trees = tuple(turned(tree) for tree in trees)
    return Planned(Forest(trees, reduces=rate.reduces), makespan, int(load.trees.max()))


def trees_of(load: Load, *, watch: Watch | None = None) -> tuple[Tree, ...]:
    """Return the trees of a load with their ways; the weights of each root add up to 1.

    Raises
    ------
    SolveError
        If they do not fit, or a switch cannot be split.
    """
    found = split(load)
    routes = _Routes(load.network, found.ways)
    trees = []
    for packed in pack(load, found, stop=watch):
        trees += routes.trees(packed, of=int(load.trees[packed.root]))
    return tuple(trees)


def turned(tree: Tree) -> Tree:
    """Return an out-tree of the reversed cluster as an in-tree, children first, and back."""
    return Tree(tree.root, tuple(route[::-1] for route in reversed(tree.routes)), tree.weight)


class _Routes:
    """Ways of connections, handed out to trees."""

    def __init__(self, network: Network, ways: Ways) -> None:
        self.names = [each.name for each in network.topology.devices]
        self.rank = network.topology.rank
        self.left = {
            ends: deque(sorted(each, key=lambda way: len(way[0]))) for ends, each in ways.items()
        }

    def trees(self, packed: Packed, *, of: int) -> list[Tree]:
        """Return copies of a tree as trees with routes, copies with the same ways as one."""
        taken = [self._take(edge, packed.copies) for edge in packed.edges]
        copies: defaultdict[tuple[Way, ...], int] = defaultdict(int)
        done = 0
        while done < packed.copies:
            some = min(ways[0][1] for ways in taken)
            copies[tuple(ways[0][0] for ways in taken)] += some
            done += some
            for ways in taken:
                way, many = ways[0]
                if many == some:
                    ways.popleft()
                else:
                    ways[0] = way, many - some
        root = self.rank[self.names[packed.root]]
        return [
            Tree(root, tuple(self._named(way) for way in ways), Fraction(many, of))
            for ways, many in copies.items()
        ]

    def _named(self, way: Way) -> tuple[str, ...]:
        return tuple(self.names[device] for device in way)

    def _take(self, edge: tuple[int, int], copies: int) -> deque[tuple[Way, int]]:
        """Take ways for all copies, one for all if there is one, and the shortest of these."""
        left = self.left[edge]
        for place, (way, many) in enumerate(left):
            if many >= copies:
                left[place] = way, many - copies
                return deque([(way, copies)])
        taken: deque[tuple[Way, int]] = deque()
        while copies > 0:
            way, many = left.popleft()
            some = min(many, copies)
            copies -= some
            if some:
                taken.append((way, some))
            if many > some:
                left.appendleft((way, many - some))
        return taken
