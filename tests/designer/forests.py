"""Forests made by hand on a ring: each root sends half of its data round either way."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from ccl.bound import Bound
from ccl.collective import all_gather, all_reduce
from ccl.plans import Forest, Tree
from ccl.problem import Problem
from ccl.result import Result, Stop, conclude
from ccl.topology import Topology, device, duplex

RANKS = 4
HALF = Fraction(1, 2)


def ring_of_gpus() -> Topology:
    """Four GPUs on a ring of 50 GB/s."""
    names = [f"g{i}" for i in range(RANKS)]
    links = [
        link
        for i in range(RANKS)
        for link in duplex(names[i], names[(i + 1) % RANKS], bandwidth=50.0, medium="NVLink")
    ]
    return Topology("ring", tuple(device("gpu", name) for name in names), tuple(links))


def path(root: int, by: int, weight: Fraction) -> Tree:
    """Return the out-tree that goes round from a root in one direction."""
    stops = [f"g{(root + by * k) % RANKS}" for k in range(RANKS)]
    return Tree(root, tuple(pairwise(stops)), weight)


def turned(tree: Tree) -> Tree:
    """Return an out-tree as an in-tree."""
    return Tree(tree.root, tuple(route[::-1] for route in reversed(tree.routes)), tree.weight)


def gathered() -> Result:
    """An all-gather along two paths of each root."""
    trees = tuple(path(root, by, HALF) for root in range(RANKS) for by in (1, -1))
    return _result(Problem(ring_of_gpus(), all_gather(RANKS, 4e6)), Forest(trees))


def reduced() -> Result:
    """An all-reduce: in-trees one way round, out-trees of half the share either way."""
    share = Fraction(1, RANKS)
    up = tuple(turned(path(root, 1, share)) for root in range(RANKS))
    down = tuple(path(root, by, share / 2) for root in range(RANKS) for by in (1, -1))
    forest = Forest(up, reduces=True, spread=down)
    return _result(Problem(ring_of_gpus(), all_reduce(RANKS, 4e6)), forest)


def _result(problem: Problem, forest: Forest) -> Result:
    bound = Bound(1.0, "solver", None, "by hand")
    return conclude(
        problem,
        forest,
        bounds=(bound,),
        stop=Stop.CONSTRUCTED,
        formulation="by-hand",
        options={},
        solve_time=0.1,
    )
