"""Certified flow: bounds by any prices, flows made good, and what both say of the best rate."""

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from ccl.collective import Chunk, Collective, make_collective
from ccl.errors import ProblemError
from ccl.plans import Flow
from ccl.problem import Problem
from ccl.topology import Link, SharedLimit, Topology, device, duplex
from formulations import formulation, solve
from formulations.analyses import best_rate
from formulations.analyses.best_rate import optimum
from formulations.bounds.concurrent_flow import ConcurrentFlow, certified
from formulations.bounds.cuts import Network
from formulations.bounds.prices import rows_of
from formulations.engines.fluid_lp import certified as engine
from formulations.engines.fluid_lp.certified import certified_flows
from formulations.engines.orbit_lp.lp import solve_orbits
from gallery import open_cluster

CLUSTERS = (
    ("ring:gpus=5", "all-to-all"),
    ("random:gpus=9,switches=0,degree=3", "all-to-all"),
    ("random:gpus=8,switches=3,degree=3,seed=4", "all-to-all"),
    ("mi250", "scatter"),
    ("dgx-1v", "gather"),
)


def asked(cluster: str, kind: str = "all-to-all") -> Problem:
    topology = open_cluster(cluster)
    return Problem(topology, make_collective(kind, len(topology.ranks), 1e6))


def under_a_limit() -> Problem:
    """Four GPUs in a ring whose links one way share 30 GB/s."""
    names = [f"g{i}" for i in range(4)]
    links = [
        each
        for i in range(4)
        for each in duplex(names[i], names[(i + 1) % 4], bandwidth=25.0, alpha=1.0)
    ]
    ways = tuple((names[i], names[(i + 1) % 4]) for i in range(4))
    limit = SharedLimit("bus", ways, 30.0)
    topology = Topology("limited", tuple(device("gpu", each) for each in names), links, (limit,))
    return Problem(topology, make_collective("all-to-all", 4, 1e6))


PROBLEMS = [*(asked(*each) for each in CLUSTERS), under_a_limit()]


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_the_optimum_is_between_bound_and_flow(problem):
    best = solve_orbits(problem).makespan
    *_, found = certified_flows(problem, seconds=60, near=1e-4)
    assert float(found.bound) <= best * (1 + 1e-9)
    assert found.makespan >= best * (1 - 1e-9)
    assert found.gap <= 1e-4


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_every_byte_leaves_and_arrives(problem):
    found = next(certified_flows(problem, seconds=60))
    network, traffic = found.network, found.network.demand.traffic
    for place, source in enumerate(found.sources):
        net = np.zeros(len(problem.topology.devices))
        np.add.at(net, network.ends[:, 1], found.flow[:, place])
        np.subtract.at(net, network.ends[:, 0], found.flow[:, place])
        wanted = np.zeros(len(net))
        wanted[network.gpus] = traffic[source]
        wanted[network.gpus[source]] -= traffic[source].sum()
        np.testing.assert_allclose(net, wanted, atol=1e-6 * traffic.max())


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_no_prices_prove_too_much(problem):
    best = solve_orbits(problem).makespan
    network, dice = Network(problem), np.random.default_rng(7)
    rows = rows_of(network, 0.0)
    for _ in range(30):
        prices = dice.random(len(rows.rates)) * (dice.random(len(rows.rates)) < 0.7)
        if prices.any():
            assert certified(network, rows, prices) <= Fraction(best * (1 + 1e-9))


def test_what_a_solver_left_unfinished_still_proves_and_arrives(monkeypatch):
    problem = PROBLEMS[1]
    best = solve_orbits(problem).makespan
    monkeypatch.setattr(ConcurrentFlow, "solve", lambda self, **_: False)
    found = next(certified_flows(problem, seconds=1))
    assert 0 < float(found.bound) <= best <= found.makespan


def test_circles_are_taken_out():
    problem = asked("ring:gpus=4")
    network = Network(problem)
    place = problem.topology.link_index
    flow = np.zeros(len(network.bandwidth))
    for ends in (("g0", "g1"), ("g1", "g2"), ("g2", "g3"), ("g3", "g0")):
        flow[place[ends]] = 5.0
    flow[place["g0", "g1"]] += 3.0
    flow[place["g1", "g0"]] += 1.0
    left = engine._without_circles(network, flow, least=1e-9)
    assert left.sum() == pytest.approx(2.0)
    assert left[place["g0", "g1"]] == pytest.approx(2.0)


def test_the_plan_carries_no_more_than_its_steady_state_says():
    problem = asked("random:gpus=8,switches=0,degree=3")
    result = solve(problem, "certified-flow", time_limit=60)
    assert isinstance(result.plan, Flow)
    size = {number: each.size for number, each in enumerate(problem.collective.chunks)}
    busy: defaultdict[tuple[str, str], float] = defaultdict(float)
    for rate in result.plan.rates:
        link = problem.topology.link(rate.src, rate.dst)
        busy[link.ends] += rate.amount * size[rate.chunk] / link.bandwidth * 1e-3
    proved = max(each.makespan for each in result.bounds if each.steady)
    assert proved <= max(busy.values()) * (1 + 1e-9) <= 1.005 * proved * (1 + 1e-9)
    assert result.makespan >= max(busy.values()) * (1 - 1e-9)


def test_what_is_no_pair_is_refused():
    topology = open_cluster("ring:gpus=4")
    both = Chunk(size=1e6, holders=(0,), destinations=(1, 2))
    problem = Problem(topology, Collective("custom", 4, 1e6, (both,)))
    why = formulation("certified-flow").why_not(problem)
    assert why == "chunk 0 has several destinations, which takes trees: use orbit-trees"


def test_a_cluster_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(engine, "LARGEST", 10)
    why = formulation("certified-flow").why_not(asked("ring:gpus=4"))
    assert why == "its linear program would have 32 amounts, and 10 are the most"
    with pytest.raises(ProblemError, match="32 amounts"):
        solve(asked("ring:gpus=4"), "certified-flow")


def test_the_best_rate_of_a_large_cluster_without_symmetry_is_proved_in_time(monkeypatch):
    problem = asked("random:gpus=32,switches=0,degree=4,seed=1")
    best = optimum(problem)
    monkeypatch.setattr(best_rate, "WORK", 0)
    quick, slow = optimum(problem), optimum(problem, seconds=60)
    assert best.reached
    assert not quick.reached
    assert not slow.reached
    assert quick.makespan < 0.9 * best.makespan
    assert 0.99 * best.makespan < slow.makespan <= best.makespan * (1 + 1e-9)
    assert sum(slow.prices.values()) == pytest.approx(1, abs=1e-3)


def test_nothing_is_sent_from_where_nothing_comes():
    devices = (device("gpu", "a"), device("gpu", "b"), device("memory", "alone"))
    ways = (*duplex("a", "b", bandwidth=10.0, alpha=1.0), Link("alone", "a", 10.0, 1.0))
    problem = Problem(Topology("one way", devices, ways), make_collective("all-to-all", 2, 1e6))
    *_, found = certified_flows(problem, seconds=60, near=1e-4)
    assert found.makespan == pytest.approx(50.0, rel=1e-4)
    assert not found.flow[2].any()
