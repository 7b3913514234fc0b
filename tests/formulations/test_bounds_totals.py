"""Bounds on what all GPUs or hosts send or take in together (thesis, appendix A)."""

import random
from dataclasses import replace

import numpy as np
import pytest

from ccl.collective import CollectiveKind, make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.topology import Device, Link, Topology, device
from formulations import solve
from formulations.bounds import quick_bounds
from formulations.bounds.cuts import Network, total_bounds
from formulations.bounds.mean_latency import mean_latency_bounds
from formulations.bounds.prices import spanning_bounds
from formulations.engines.fluid_lp.plain import solve_plain
from formulations.engines.tree_columns.search import best_trees
from gallery import open_cluster
from tests.formulations.engines.fluid_lp.clusters import ask, rails
from tests.formulations.random_problems import draw


def uneven(gpus: int, up: float, down: float, *, copies: bool = False) -> Topology:
    """GPUs around a switch, with other bandwidths up than down."""
    names = [f"g{i}" for i in range(gpus)]
    devices = [*(device("gpu", name) for name in names), device("switch", "s", copies=copies)]
    links = [Link(name, "s", up) for name in names] + [Link("s", name, down) for name in names]
    return Topology("uneven", tuple(devices), tuple(links))


def largest(problem: Problem) -> float:
    return max(each.makespan for each in total_bounds(Network(problem)))


@pytest.mark.parametrize("ranks", [3, 5])
@pytest.mark.parametrize(("up", "down"), [(1.0, 4.0), (4.0, 1.0)])
def test_theorem_17_a_reduce_scatter_takes_n_minus_1_nths_of_either_bandwidth(ranks, up, down):
    """(n - 1) / (n min(b_up, b_down)) for inputs of 1 GB."""
    asked = Problem(uneven(ranks, up, down), make_collective("reduce-scatter", ranks, 1e9))
    assert largest(asked) == pytest.approx(1e6 * (ranks - 1) / ranks / min(up, down))
    assert quick_bounds(asked)[0].makespan == pytest.approx(largest(asked))


def test_theorem_19_an_all_reduce_takes_2_n_minus_2_nths_of_the_bandwidth_down():
    asked = Problem(uneven(4, 5.0, 1.0), make_collective("all-reduce", 4, 1e9))
    assert largest(asked) == pytest.approx(1e6 * 6 / 4)


def test_a_switch_that_cannot_copy_is_sent_every_copy():
    """4 GPUs upload 3 GB each at 1 GB/s; a cut sees 1 GB. A copying switch needs only that."""
    plain = ask(uneven(4, 1.0, 10.0), "all-gather")
    assert largest(plain) == pytest.approx(3e6)
    assert solve_plain(plain).makespan == pytest.approx(3e6)
    copying = ask(uneven(4, 1.0, 10.0, copies=True), "all-gather")
    assert quick_bounds(copying)[0].makespan == pytest.approx(1e6)


def test_rails_whose_way_up_is_slower_are_bounded_exactly():
    """Rails of 4 hosts with 22.5 GB/s up and 25 down: 8 GPUs, each of whose GB goes to 3 hosts.

    96 GB leave 32 GPUs at 22.5: 0.1333 s. Cuts and LP (3.10) say 24 GB at 200: 0.12 s.
    """
    asked = ask(rails(4, up=22.5), "all-gather")
    assert quick_bounds(asked)[0].makespan == pytest.approx(96e6 / (32 * 22.5))
    assert max(
        each.makespan for each in quick_bounds(asked) if each.kind != "group"
    ) == pytest.approx(0.12e6)


def test_latencies_are_for_nothing_and_the_steady_state_knows_none():
    topology = uneven(4, 1.0, 10.0)
    links = tuple(replace(each, alpha=5.0) for each in topology.links)
    asked = ask(replace(topology, links=links), "all-gather")
    assert largest(asked) == pytest.approx(3e6 + 5)
    assert max(each.makespan for each in quick_bounds(asked) if each.steady) == pytest.approx(3e6)


def drawn(seed: int) -> Topology:
    chance = random.Random(seed)
    gpus = [device("gpu", f"g{i}", host=f"h{i % 2}") for i in range(chance.randint(3, 4))]
    others: list[Device] = [
        device(
            chance.choice(("switch", "memory")),
            f"s{i}",
            host=chance.choice((None, "h0", "h1")),
            copies=chance.random() < 0.3,
            reduces=chance.random() < 0.2,
        )
        for i in range(chance.randint(0, 2))
    ]
    names = [each.name for each in (*gpus, *others)]
    links = [
        Link(a, b, float(chance.randint(1, 9)))
        for a in names
        for b in names
        if a != b and chance.random() < 0.5
    ]
    return Topology(f"drawn {seed}", (*gpus, *others), tuple(links))


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "broadcast", "all-to-all"])
def test_no_exact_optimum_is_below_the_bounds(kind):
    compared = 0
    for seed in range(25):
        try:
            asked = ask(drawn(seed), kind)
        except ProblemError:
            continue
        exact = solve_plain(asked, copies="exact" if kind == "all-to-all" else "subsets")
        assert all(
            each.makespan <= exact.makespan * (1 + 1e-6) for each in total_bounds(Network(asked))
        )
        compared += 1
    assert compared >= 8


@pytest.mark.parametrize(
    "cluster", ["random:gpus=10,seed=2", "ndv2:hosts=2", "mi250", "amd-te-ccl", "dgx-1v"]
)
def test_no_all_reduce_has_a_higher_rate_than_the_best_trees_on_duplex_links(cluster):
    """Twice the minimum spanning tree under their prices is what they take."""
    topology = open_cluster(cluster)
    problem = Problem(topology, make_collective("all-reduce", len(topology.ranks), 1e8))
    trees = best_trees(problem, seconds=20)
    assert trees.proved
    found = spanning_bounds(problem, trees.each_price, proved=0.0)
    assert found[0].steady
    assert found[0].makespan == pytest.approx(float(trees.time), rel=1e-8)


def test_whatever_the_prices_spanning_trees_prove_no_more_than_plans_take():
    """Of clusters drawn by chance, those whose all-reduce can be planned."""
    checked = 0
    for seed in range(40):
        chance, drawn = random.Random(seed), draw(seed)
        if drawn is None:
            continue
        topology = drawn.topology
        try:
            problem = Problem(topology, make_collective("all-reduce", len(topology.ranks), 1e5))
            plan = solve(problem, "list", options={"passes": 4})
        except ProblemError:
            continue
        proved = max(each.makespan for each in quick_bounds(problem))
        many = len(topology.links) + len(topology.limits)
        for _ in range(10):
            prices = np.array([chance.choice([0.0, 1.0, chance.random()]) for _ in range(many)])
            for each in spanning_bounds(problem, prices, proved=proved):
                assert each.makespan <= plan.makespan * (1 + 1e-9)
                checked += 1
    assert checked > 50


def mean_latency(cluster: str, kind: CollectiveKind, size: float) -> float:
    topology = open_cluster(cluster)
    asked = Problem(topology, make_collective(kind, len(topology.ranks), size))
    return max((each.makespan for each in mean_latency_bounds(Network(asked))), default=0.0)


def test_bytes_take_the_mean_latency_beyond_the_time_that_links_are_busy():
    """On a fat-tree of 16 GPUs, links of 50 GB/s and 0.6 µs: 15 shards of 1.25 µs arrive at each.

    A shard of an all-gather comes to 3 other pods over 6 links, to 4 other edges of a pod over 4
    and 8 times over 2, at the least; one of an all-to-all to 12, 2 and 1.
    """
    assert mean_latency("fat-tree", "all-gather", 1e6) == pytest.approx(18.75 + 0.6 * 50 / 15)
    assert mean_latency("fat-tree", "reduce-scatter", 1e6) == pytest.approx(18.75 + 0.6 * 50 / 15)
    assert mean_latency("fat-tree", "all-reduce", 1e6) == pytest.approx(37.5 + 0.6 * 50 / 15)
    assert mean_latency("fat-tree", "all-to-all", 1e6) == pytest.approx(18.75 + 0.6 * 82 / 15)
    # So small that links are never busy: a mean of latencies is not above the longest.
    assert mean_latency("fat-tree", "all-to-all", 1e2) <= 3.6


def test_at_one_switch_the_mean_latency_is_that_of_all():
    """7 shards of 1/8 MB at 50 GB/s, two links of 0.7 µs; nothing is said of a copying switch."""
    assert mean_latency("star:gpus=8", "all-gather", 1e6) == pytest.approx(17.5 + 1.4)
    assert mean_latency("star:gpus=8", "all-reduce", 1e6) == pytest.approx(35 + 1.4)
    assert mean_latency("star:gpus=8,copies=true", "all-gather", 1e6) == 0.0
