"""Cut-time bounds: what crosses in time, found by hand, by search, and never above a plan."""

import tracemalloc

import numpy as np
import pytest

from ccl.collective import make_collective
from ccl.errors import CclError
from ccl.problem import Problem
from ccl.topology import Topology, device, duplex
from formulations import solve
from formulations.bounds import initial_bounds, timed_bounds
from formulations.bounds.cut_times import CUTS, balls, crossing_of, cut_time_bounds
from formulations.bounds.cuts import Network, common_cuts
from gallery import open_cluster
from tests.formulations.random_problems import draw


def proved(problem: Problem) -> tuple[float, float]:
    """Return what is known, and what cuts in time prove, 0 if no more."""
    known = initial_bounds(problem, quick=False, whole_chunks=False)
    found = timed_bounds(problem, known=known, seconds=20)
    return known[0].makespan, max((each.makespan for each in found), default=0.0)


def test_what_is_far_keeps_a_slow_link_waiting():
    """A line a, b, c with 5 µs from a to b and 1 GB/s from b to c, which gathers 1 kB of each.

    A cut sees 2 kB at 1 GB/s, 2 µs, and that a's take 5.01 µs to get away. But b's 1 kB is over
    after 1 µs, and a's crosses from 5 µs on: 6 µs.
    """
    devices = tuple(device("gpu", name) for name in "abc")
    links = (*duplex("a", "b", bandwidth=100.0, alpha=5.0), *duplex("b", "c", bandwidth=1.0))
    problem = Problem(Topology("line", devices, links), make_collective("gather", 3, 3e3, root=2))
    before, after = proved(problem)
    assert before < 5.02
    assert after == pytest.approx(6.0, rel=2e-4)
    assert solve(problem, "list").makespan == pytest.approx(6.0, rel=1e-2)


@pytest.mark.parametrize(
    ("cluster", "kind", "size", "least"),
    [
        ("dgx-1v", "all-gather", 64e3, 1.6133),
        ("dgx-1v", "all-reduce", 64e3, 2.332),
        ("mi250", "all-gather", 1e6, 4.0417),
        ("ndv2:hosts=2", "all-gather", 64e3, 5.64),
        ("torus", "all-reduce", 64e3, 3.12),
        ("star:gpus=8", "all-reduce", 16e3, 2.92),
        ("gb200-nvl72", "all-reduce", 16e3, 1.4079),
    ],
)
def test_known_clusters(cluster, kind, size, least):
    """What another program for the same mathematics, bisecting T, finds."""
    topology = open_cluster(cluster)
    problem = Problem(topology, make_collective(kind, len(topology.ranks), size))
    before, after = proved(problem)
    assert before < least
    assert after == pytest.approx(least, rel=2e-4)


def test_one_shot_meets_the_bound_at_a_switch_that_cannot_add():
    """8 GPUs exchange 1 KB at once: seven messages of 1 KB reach each over 50 GB/s and 1.4 µs."""
    topology = open_cluster("star:gpus=8")
    problem = Problem(topology, make_collective("all-reduce", 8, 1e3))
    assert proved(problem)[1] == pytest.approx(1.54, rel=1e-3)


def test_hundreds_of_gpus_in_a_torus():
    """512 GPUs: 1 MB has to leave each over six links of 50 GB/s, and then to go 12 links far."""
    topology = open_cluster("torus:shape=8x8x8")
    problem = Problem(topology, make_collective("all-reduce", 512, 1e6))
    known = initial_bounds(problem, quick=True, whole_chunks=False)
    assert known[0].makespan == pytest.approx(12 * 0.7)
    found = timed_bounds(problem, known=known, seconds=20)
    assert found[0].makespan == pytest.approx(1e3 / 300 + 12 * 0.7, rel=1e-4)


def test_what_is_too_much_is_left_out_before_it_is_written_down():
    """Ends of a cut through a fat-tree of 432 GPUs, told apart, would be numbers of gigabytes."""
    topology = open_cluster("fat-tree:radix=12")
    network = Network(Problem(topology, make_collective("all-gather", 432, 1e6)))
    inside = np.array([each.kind == "gpu" for each in topology.devices])
    inside[network.gpus[216:]] = False
    network.latency, network.latency_to  # noqa: B018  not what is measured
    tracemalloc.start()
    try:
        assert crossing_of(network, inside, apart=True) is None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100e6


def test_without_latencies_there_is_nothing_to_prove():
    topology = open_cluster("te-ccl-1")
    network = Network(Problem(topology, make_collective("all-reduce", 4, 1e6)))
    assert cut_time_bounds(network, common_cuts(network), proved=1.0, seconds=9) == []


def test_any_weights_prove_no_more_than_the_program():
    """V needs no solver: other weights are a proof too, but a weaker one."""
    topology = open_cluster("dgx-1v")
    network = Network(Problem(topology, make_collective("all-reduce", 8, 64e3)))
    inside = np.arange(len(topology.devices)) != 0
    crossing = crossing_of(network, inside, apart=False)
    best, chance = crossing.least(1.0), np.random.default_rng(0)
    for _ in range(20):
        weights = chance.random(len(crossing.needs))
        assert crossing._worth(best * 1.01, weights) >= 1


def test_balls_and_their_rests_are_tried_but_not_all():
    topology = open_cluster("mi250:hosts=2")
    network = Network(Problem(topology, make_collective("all-gather", len(topology.ranks), 1e6)))
    assert len(balls(network)) > CUTS


@pytest.mark.parametrize("begin", range(0, 120, 20))
def test_no_plan_is_faster(begin):
    """Of problems drawn by chance, from less than is known, so that cuts in time must prove it."""
    checked = 0
    for seed in range(begin, begin + 20):
        problem = draw(seed)
        if problem is None:
            continue
        try:
            plan = solve(problem, "list", options={"passes": 4})
        except CclError:
            continue
        network = Network(problem)
        known = initial_bounds(problem, quick=True, whole_chunks=False)[0].makespan
        found = cut_time_bounds(network, common_cuts(network), proved=0.4 * known, seconds=5)
        for bound in found:
            checked += 1
            assert bound.makespan <= plan.makespan * (1 + 1e-9)
    assert checked > 3
