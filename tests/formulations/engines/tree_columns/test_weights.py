"""Weights of trees, made exact."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from ccl.collective import make_collective
from ccl.errors import LimitReached
from ccl.problem import Problem
from ccl.result import Stop
from ccl.verify import verify
from formulations import solve
from formulations.core.preparing import clock
from formulations.engines.tree_columns import search as searching
from formulations.engines.tree_columns.master import Master, Pool, exact_weights
from formulations.engines.tree_columns.price import Prices
from formulations.engines.tree_columns.search import Search, best_trees, forest_of
from formulations.engines.tree_columns.task import task_of
from formulations.solvers.cvxpy_highs import Backend, Growing
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


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-reduce"])
def test_where_the_program_takes_too_long_the_trees_of_the_steps_will_do(kind, monkeypatch):
    """Those before it come near to the best rate, and nothing else is proved of it."""
    topology = open_cluster("random")
    problem = Problem(topology, make_collective(kind, len(topology.ranks), 1e6))
    best = best_trees(problem)

    def cut_off(_program, *, time_limit):
        raise LimitReached("cut off")

    monkeypatch.setattr(Growing, "solve", cut_off)
    search = Search(task_of(problem), Backend(), deadline=clock() + 60)
    found = search.run()

    assert not found.weights.basic
    assert found.bound <= float(best.time) * (1 + 1e-9)
    assert best.time <= found.time < Fraction(6, 5) * best.time
    verify(problem, forest_of(found))


@pytest.mark.parametrize("kind", ["all-gather", "all-reduce"])
def test_with_many_roots_and_little_time_the_first_steps_will_do(kind, monkeypatch):
    monkeypatch.setattr(searching, "MANY", 0)
    monkeypatch.setattr(searching, "CLOSE", 0.5)
    topology = open_cluster("random")
    problem = Problem(topology, make_collective(kind, len(topology.ranks), 1e6))
    result = solve(problem, "orbit-trees", time_limit=60)

    assert result.stop is Stop.EFFORT
    assert any("first steps" in each for each in result.log)
    assert len(result.plan.trees) <= searching.HEAVY * len(topology.ranks)
    assert result.steady_makespan < 1.7 * best_trees(problem).bound


def test_a_search_that_is_cut_off_says_so(monkeypatch):
    monkeypatch.setattr(Search, "late", True)
    topology = open_cluster("random")
    problem = Problem(topology, make_collective("all-gather", len(topology.ranks), 1e6))

    assert solve(problem, "orbit-trees", time_limit=60).stop is Stop.TIME_LIMIT


def test_a_program_goes_on_after_it_was_cut_off():
    topology = open_cluster("random")
    problem = Problem(topology, make_collective("all-gather", len(topology.ranks), 1e6))
    search = Search(task_of(problem), Backend())
    best = search.run()
    pool = Pool(search.task)
    for demand, column in zip(search.pool.demands, search.pool.columns, strict=True):
        pool.add(demand, column)
    master = Master(pool, Backend())

    with pytest.raises(LimitReached):
        master.program.solve(time_limit=0.0)
    assert master.program.solve().objective * master.unit == pytest.approx(float(best.time))
