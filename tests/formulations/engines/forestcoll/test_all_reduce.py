"""All-reduce with shares of its own for each root and link: gains, and none where there is none."""

import pytest

from ccl.collective import Chunk, all_reduce, custom
from ccl.problem import Problem
from ccl.topology import Topology, device, duplex
from ccl.tree_embedding import steady_makespan
from ccl.verify import verify
from formulations import solve
from formulations.engines.forestcoll.plans import shared_forest, shares_of, turned
from formulations.solvers.cvxpy_highs import Backend
from gallery import open_cluster
from tests.formulations.engines.forestcoll.clusters import forest_of, random_cluster
from tests.formulations.engines.forestcoll.test_rates import asked


def star(*bandwidths: float) -> Topology:
    """Join GPUs to a switch, each with its own GB/s both ways."""
    gpus = [device("gpu", f"g{i}") for i in range(len(bandwidths))]
    links = [
        link for i, each in enumerate(bandwidths) for link in duplex(f"g{i}", "s", bandwidth=each)
    ]
    return Topology("star", (*gpus, device("switch", "s")), tuple(links))


def both(problem: Problem) -> tuple[float, float]:
    """Return the µs of equal halves one after the other, and of the linear program."""
    backend = Backend()
    shares = shares_of(problem, backend=backend)
    found = shared_forest(problem, shares, backend=backend)
    assert found is not None
    verify(problem, found.forest)
    assert float(found.makespan) == pytest.approx(shares.makespan, rel=1e-5)
    assert steady_makespan(problem, found.forest) <= found.makespan
    return float(forest_of(problem).makespan), shares.makespan


@pytest.mark.parametrize(
    ("bandwidths", "equal", "free"),
    [((10, 1, 1, 1, 1, 1), 10, 6), ((4, 4, 1, 1, 1, 1, 1, 1), 14, 8)],
)
def test_stars_with_fat_gpus_gain(bandwidths, equal, free):
    """A GPU of 1 GB/s takes in n - 1 of n shards in each half: 2 (n - 1) seconds for n GB.

    With the fat GPU as root all data goes once up every thin link and once down: n seconds.
    """
    topology = star(*bandwidths)
    ranks = len(bandwidths)
    asks = asked(topology, "all-reduce")
    assert asks.collective.size == ranks * 1e6

    assert both(asks) == pytest.approx((equal * 1e3, free * 1e3))


@pytest.mark.parametrize("cluster", ["dgx-a100:hosts=2", "mi250", "ndv2:hosts=1", "hypercube"])
def test_real_servers_gain_nothing(cluster):
    equal, free = both(asked(cluster, "all-reduce"))

    assert free == pytest.approx(equal, rel=1e-6)


@pytest.mark.parametrize("cluster", ["mi250", "dgx-a100:hosts=2", "random:seed=1"])
def test_where_links_are_alike_both_ways_sums_go_up_the_trees_that_spread_them(cluster):
    found = solve(asked(cluster, "all-reduce"), "forestcoll", options={"roots": "equal"})
    forest = found.plan

    assert tuple(map(turned, forest.trees)) == forest.spread
    assert found.bound.makespan <= found.makespan


@pytest.mark.parametrize("seed", range(200, 212))
def test_random_clusters_never_lose_and_the_gain_has_its_bound(seed):
    """Where links are as wide both ways, less than half is saved: n / (2 (n - 1))."""
    one_way = random_cluster(seed, gpus=4, switches=2, even=True)
    back = one_way.reversed()
    topology = Topology("both ways", one_way.devices, (*one_way.links, *back.links))

    equal, free = both(asked(topology, "all-reduce"))

    assert equal * 4 / 6 * (1 - 1e-6) <= free <= equal * (1 + 1e-6)


def test_the_formulation_takes_the_faster():
    problem = asked(star(10, 1, 1, 1, 1, 1), "all-reduce")

    free = solve(problem, "forestcoll")
    equal = solve(problem, "forestcoll", options={"roots": "equal"})
    rails = solve(asked("dgx-a100:hosts=2", "all-reduce"), "forestcoll", options={"roots": "free"})

    assert free.steady_makespan == pytest.approx(6e3)
    assert free.steady_makespan < equal.steady_makespan
    assert "no trees up to roots and down again take less than 6000 µs" in free.log
    assert rails.steady_makespan == pytest.approx(2 * 15 / 325 * 1e3)


def test_a_large_program_is_left_out_and_said():
    problem = asked(open_cluster("mi250:hosts=2"), "all-reduce")

    result = solve(problem, "forestcoll")

    assert any("was not tried" in line for line in result.log)


def test_a_custom_sum_for_everybody_is_an_all_reduce():
    """What it is called does not matter: the same chunks take the same time."""
    every = (0, 1, 2, 3)
    topology = open_cluster("ring:gpus=4")
    named = Problem(topology, all_reduce(4, 4e6))
    own = Problem(topology, custom(4, [Chunk(1e6, every, every, reduced=True)] * 4))
    found = solve(own, "forestcoll")
    assert found.steady_makespan == pytest.approx(solve(named, "forestcoll").steady_makespan)
