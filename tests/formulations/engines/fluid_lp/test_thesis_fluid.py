"""The formulation of the thesis' linear programs: plans that are as fast as the program says."""

from dataclasses import replace

import pytest

from ccl.collective import Chunk, custom, make_collective
from ccl.errors import Infeasible
from ccl.plans import Flow, Forest
from ccl.problem import Problem
from ccl.result import Status, Stop
from ccl.topology import Topology
from ccl.verify import verify
from formulations import formulation, solve
from formulations.engines.fluid_lp.dantzig_wolfe_plan import nearest_forest
from formulations.engines.fluid_lp.plain import solve_plain
from gallery import open_cluster
from tests.formulations.engines.fluid_lp.clusters import ask, boxes, butterfly, small_pcie, star

NAME = "thesis-fluid"


def still(topology: Topology) -> Topology:
    """Return a cluster without latencies."""
    return replace(topology, links=tuple(replace(each, alpha=0.0) for each in topology.links))


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "broadcast", "reduce"])
def test_a_forest_has_the_best_rate_and_it_is_proved(kind):
    asked = ask(star(2.0, 1.0, 1.0, 3.0), kind)
    result = solve(asked, NAME)
    assert isinstance(result.plan, Forest)
    assert result.steady_makespan == pytest.approx(solve_plain(asked).makespan, rel=1e-6)
    assert result.status in (Status.OPTIMAL, Status.THROUGHPUT)
    assert result.stop in (Stop.PROVED, Stop.RATE)


@pytest.mark.parametrize("kind", ["all-to-all", "gather", "scatter"])
def test_pairs_become_a_flow_of_the_best_rate(kind):
    asked = ask(small_pcie(2), kind)
    result = solve(asked, NAME)
    assert isinstance(result.plan, Flow)
    assert result.steady_makespan == pytest.approx(solve_plain(asked).makespan, rel=1e-6)
    assert result.status in (Status.OPTIMAL, Status.THROUGHPUT)


def test_an_all_reduce_on_an_uneven_star_is_40_per_cent_faster_than_its_halves():
    """6 s instead of twice 5: in-trees and out-trees share every link."""
    asked = ask(star(10.0, 1.0, 1.0, 1.0, 1.0, 1.0), "all-reduce", gigabytes=6)
    result = solve(asked, NAME)
    verify(asked, result.plan)
    assert result.plan.spread
    assert result.steady_makespan == pytest.approx(6e6, rel=1e-6)


@pytest.mark.parametrize("model", ["labels", "duplicates", "relaxation"])
def test_every_model_comes_to_the_same_rate(model):
    asked = ask(open_cluster("thesis-2.4"), "all-gather")
    result = solve(asked, NAME, options={"model": model})
    assert result.steady_makespan == pytest.approx(1e6 * 4 * 3 / 96, rel=1e-6)


def test_flows_that_cannot_be_combined_are_told_and_the_forest_is_still_one():
    """Duplicates say 1/2 s for the butterfly; its memories cannot do that."""
    asked = ask(butterfly(), "broadcast")
    result = solve(asked, NAME, options={"model": "duplicates"})
    verify(asked, result.plan)
    assert result.steady_makespan >= 2e6 / 3 * (1 - 1e-9)
    assert any("combined flows that cannot be" in each for each in result.log)
    assert solve(asked, NAME).steady_makespan == pytest.approx(2e6 / 3)


def test_fewer_hops_may_carry_less():
    """Around two hubs, the fast way takes four links and the slow one two."""
    asked = ask(boxes(2), "gather")
    free, short = solve(asked, NAME), solve(asked, NAME, options={"hops": 2})
    assert free.steady_makespan < short.steady_makespan * (1 - 1e-6)
    with pytest.raises(Infeasible):
        solve(asked, NAME, options={"hops": 1})


def test_hops_bound_the_ways_of_trees():
    """A line of 4 at 1 GB/s needs 3 hops for its ends."""
    asked = ask(still(open_cluster("line:gpus=4")), "all-gather")
    result = solve(asked, NAME, options={"hops": 3})
    assert result.plan.depth <= 3
    with pytest.raises(Infeasible):
        solve(asked, NAME, options={"hops": 2})


def test_sums_keep_away_from_a_memory_that_cannot_add():
    """NVLink alone joins contributions; the program of trees says what it takes."""
    asked = ask(small_pcie(1), "reduce-scatter")
    result = solve(asked, NAME)
    verify(asked, result.plan)
    routes = [route for tree in result.plan.trees for route in tree.routes]
    assert not any("m0" in route for route in routes)
    assert result.steady_makespan == pytest.approx(solve_plain(asked, joined=True).makespan)


@pytest.mark.parametrize("kind", ["all-gather", "reduce", "all-reduce"])
def test_the_first_plan_is_a_forest(kind):
    asked = ask(small_pcie(2), kind)
    verify(asked, nearest_forest(asked))


def test_it_refuses_in_words_what_is_no_forest_and_what_is_too_large():
    chosen = formulation(NAME)
    topology = star(1.0, 1.0, 1.0)
    mixed = custom(3, [Chunk(1e6, (0,), (1, 2)), Chunk(1e6, (0,), (1,))])
    assert "different destinations" in (chosen.why_not(Problem(topology, mixed)) or "")
    both = custom(3, [Chunk(1e6, (0,), (1, 2)), Chunk(1e6, (0, 1, 2), (1,), reduced=True)])
    assert "no forest does at once" in (chosen.why_not(Problem(topology, both)) or "")
    large = star(*[1.0] * 9)
    many = Problem(large, make_collective("all-gather", 9, 9e6))
    assert "8 destinations" in (chosen.why_not(many) or "")
    assert chosen.why_not(Problem(large, make_collective("all-to-all", 9, 9e6))) is None
