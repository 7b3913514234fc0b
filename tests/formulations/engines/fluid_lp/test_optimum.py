"""The live optimum: which proof it takes, and that it is the same whichever it is."""

from dataclasses import replace
from fractions import Fraction

import pytest

from ccl.collective import (
    COLLECTIVES,
    CollectiveKind,
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    make_collective,
    reduce_scatter,
)
from ccl.errors import ProblemError
from ccl.problem import Problem
from formulations.analyses import best_rate
from formulations.analyses.best_rate import optimum
from formulations.bounds import quick_bounds
from formulations.engines import steady_state
from formulations.engines.orbit_lp.lp import solve_orbits
from gallery.registry import open_cluster


@pytest.mark.parametrize("collective", [all_gather, reduce_scatter, broadcast])
@pytest.mark.parametrize("cluster", ["ndv2:hosts=2", "dgx-1v", "forestcoll-12"])
def test_a_cut_and_the_linear_program_agree(cluster: str, collective):
    topology = open_cluster(cluster)
    problem = Problem(topology, collective(len(topology.ranks), 1e9))
    found = optimum(problem)
    assert found.fraction is not None
    assert found.cuts
    assert found.makespan == pytest.approx(solve_orbits(problem).makespan, rel=1e-6)
    assert float(found.fraction) == pytest.approx(1e6 / found.makespan)


def test_the_bottleneck_of_figure_12_is_a_box():
    """4 GPUs of a box share 4 links of 1 GB/s to the other: 8 shards at 1 GB/s each."""
    topology = open_cluster("forestcoll-12")
    found = optimum(Problem(topology, all_gather(8, 8e9)))
    assert found.fraction == Fraction(8)
    assert {len(cut.inside) for cut in found.cuts} >= {5}


def test_prices_of_an_all_to_all_are_on_what_leaves_the_hosts():
    """Two hosts: all that is between them takes the one network, whose links alone have a price."""
    topology = open_cluster("ndv2:hosts=2")
    found = optimum(Problem(topology, all_to_all(16, 1e9)))
    assert found.fraction is None
    assert sum(found.prices.values()) == pytest.approx(1.0)
    host = {each.name: each.host for each in topology.devices}
    assert all(host[src] != host[dst] for src, dst in found.prices)


def test_trees_reach_what_a_relaxation_only_bounds(monkeypatch: pytest.MonkeyPatch):
    """Memory that copies makes branches optional: the program relaxes them, trees have them.

    Each GPU takes in 32 GB/s and wants 3 of 4 shards: 128/3 GB/s.
    """
    problem = Problem(open_cluster("thesis-3.1"), all_gather(4, 1e9))
    trees = optimum(problem)
    assert trees.reached
    assert trees.fraction == Fraction(128, 3)
    assert sum(trees.prices.values()) == pytest.approx(1.0)
    monkeypatch.setattr(best_rate, "_by_trees", lambda problem: None)
    relaxed = optimum(problem)
    assert not relaxed.reached
    assert relaxed.makespan == pytest.approx(trees.makespan)


@pytest.mark.parametrize("cluster", ["ndv2:hosts=1", "star:gpus=5,wide=1,wide_bandwidth=500"])
def test_trees_and_the_linear_program_agree_on_all_reduces(
    cluster: str, monkeypatch: pytest.MonkeyPatch
):
    topology = open_cluster(cluster)
    problem = Problem(topology, all_reduce(len(topology.ranks), 1e9))
    trees = optimum(problem)
    assert trees.fraction is not None
    monkeypatch.setattr(best_rate, "_by_trees", lambda problem: None)
    program = optimum(problem)
    for each in (trees, program):
        assert each.every
        assert "add up at roots" not in each.proved_by
    assert program.fraction is None
    assert program.makespan == pytest.approx(trees.makespan, rel=1e-6)


def test_where_memories_copy_an_all_reduce_is_the_best_of_its_kind():
    """Two memories hand on what they hold to many: a spanning tree of GPUs says nothing of them."""
    found = optimum(Problem(open_cluster("thesis-2.3"), all_reduce(4, 1e9)))
    assert not found.every
    assert "add up at roots" in found.proved_by


def test_what_would_take_too_long_is_bounded(monkeypatch: pytest.MonkeyPatch):
    problem = Problem(open_cluster("star:gpus=4"), all_reduce(4, 1e9))
    exact = optimum(problem)
    monkeypatch.setattr(best_rate, "_by_trees", lambda problem: None)
    monkeypatch.setattr(best_rate, "WORK", 0)
    assert not best_rate.priceable(problem)
    found = optimum(problem)
    assert not found.reached
    best = max(each.makespan for each in quick_bounds(problem) if each.steady)
    assert found.makespan == best <= exact.makespan * (1 + 1e-9)


def test_data_of_two_holders_is_refused_in_words():
    topology = open_cluster("star:gpus=4")
    given = all_gather(4, 1e9)
    chunks = (replace(given.chunks[0], holders=(0, 1)), *given.chunks[1:])
    problem = Problem(topology, replace(given, kind="custom", chunks=chunks))
    with pytest.raises(ProblemError, match="held by 2 ranks"):
        optimum(problem)


@pytest.mark.parametrize("kind", [each for each in COLLECTIVES if each != "custom"])
def test_pairs_are_seen_without_making_groups(kind: CollectiveKind):
    """Of two ranks everything is a pair; of three what goes to all is not."""
    for ranks, cluster in ((2, "thesis-2.7"), (3, "thesis-2.2")):
        problem = Problem(open_cluster(cluster), make_collective(kind, ranks, 6e6))
        assert steady_state.only_pairs(problem) == steady_state.demands_of(problem).only_pairs
