"""A few trees of equal weight: never better than any number, exact where that is known to work."""

from fractions import Fraction

import pytest

from ccl.verify import verify
from formulations import solve
from formulations.engines.tree_columns.integral import integral
from formulations.engines.tree_columns.search import best_trees, forest_of
from gallery import open_cluster
from tests.formulations.engines.fluid_lp.clusters import ask


@pytest.mark.parametrize("trees", [1, 2, 3])
@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-reduce", "broadcast"])
@pytest.mark.parametrize("cluster", ["dgx-1v", "ring:gpus=5", "random:gpus=5,switches=2"])
@pytest.mark.cover(12)
def test_trees_of_equal_weight_verify_and_are_no_faster(cluster, kind, trees):
    asked = ask(open_cluster(cluster), kind)
    found = best_trees(asked)

    made = integral(found, trees, time_limit=1)

    forest = forest_of(made.optimum)
    verify(asked, forest)
    assert made.optimum.time >= found.time
    assert made.ratio == pytest.approx(float(made.optimum.time / found.time))
    roots = len(asked.topology.ranks) if kind == "all-reduce" else 1
    for tree in (*forest.trees, *forest.spread):
        assert (tree.weight * trees * roots).denominator == 1


def test_one_tree_on_a_ring_is_a_chain_and_two_are_both_ways():
    """5 GPUs: 4 of 5 shards over the fuller link with 1 tree, 2 with 2 trees of one half each."""
    asked = ask(open_cluster("ring:gpus=5,bandwidth=1.0"), "broadcast", gigabytes=1e-3)

    found = best_trees(asked)

    assert integral(found, 1).optimum.time == 1000
    assert integral(found, 2).optimum.time == 500 == found.time


def test_six_trees_cover_a_torus_of_6_ways_out():
    """63 ways of each tree, spread over 6 directions by turning one of them about."""
    asked = ask(open_cluster("torus:shape=4x4x4"), "all-gather")

    found = best_trees(asked)
    six = integral(found, 6)

    assert six.optimum.time == found.time
    assert six.best
    verify(asked, forest_of(six.optimum))


def test_three_trees_of_a_torus_are_near():
    """63 does not divide by 6: with 3 trees some direction carries 32 of 31.5 for each."""
    asked = ask(open_cluster("torus:shape=4x4x4"), "all-gather")

    made = integral(best_trees(asked), 3, time_limit=1)

    assert made.optimum.time / best_trees(asked).time >= Fraction(32 * 2, 63)
    assert made.ratio < 1.05


def test_the_option_gives_that_many_trees():
    asked = ask(open_cluster("dgx-1v"), "all-gather")

    found = solve(asked, "orbit-trees", options={"trees_per_root": 3})

    assert {tree.weight * 3 for tree in found.plan.trees} <= {1, 2, 3}
    assert any("3 trees per root take" in line for line in found.log)
