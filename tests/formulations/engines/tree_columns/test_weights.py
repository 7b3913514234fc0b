"""Weights of trees, made exact."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from ccl.collective import make_collective
from ccl.problem import Problem
from formulations.engines.tree_columns.master import exact_weights
from formulations.engines.tree_columns.price import Prices
from formulations.engines.tree_columns.search import Search
from formulations.engines.tree_columns.task import task_of
from formulations.solvers.cvxpy_highs import Backend
from gallery import open_cluster


def test_trees_that_came_after_the_last_solve_carry_nothing():
    """The last round of a search may add trees that only prove the bound: no solve has seen them.

    Without a basis to read weights from, those of the solve are rounded; they still add up to 1.
    """
    topology = open_cluster("random")
    problem = Problem(topology, make_collective("all-gather", len(topology.ranks), 1e6))
    search = Search(task_of(problem), Backend())
    search.run()
    pool, seen = search.pool, len(search.pool)
    solved = search.master.program.solve()
    dice = np.random.default_rng(1)
    while len(pool) == seen:
        at = Prices(pool.task, dice.random(len(pool.task.rows.rates)))
        for place, parents in enumerate(at.cheapest().parents):
            wish = pool.task.demands[place]
            side = at.sides[wish.side]
            pool.add(place, side.column(int(pool.task.sides[wish.side].ranks[wish.root]), parents))

    found = exact_weights(search.master, replace(solved, tight=np.zeros_like(solved.tight)))

    assert not found.basic
    assert max(found.shares) < seen
    sums = [Fraction(0)] * len(pool.task.demands)
    for place, share in found.shares.items():
        sums[pool.demands[place]] += share
    assert sums == [1] * len(sums)
