"""BFB: optimal on symmetric clusters, not on others, and what its programs say by hand."""

from fractions import Fraction

import pytest

from ccl.collective import make_collective
from ccl.errors import LimitReached, ProblemError
from ccl.problem import Problem
from ccl.result import Status
from ccl.topology import Link, SharedLimit, Topology, device, duplex
from formulations import solve
from formulations.engines.bfb import Steps, steps_of
from formulations.engines.list_scheduling.timed import transfers_of
from formulations.solvers.cvxpy_highs import Backend
from gallery import open_cluster

MB = 1e6


def asked(cluster: str, kind: str = "all-gather", *, size: float = 8 * MB) -> Problem:
    topology = open_cluster(cluster)
    return Problem(topology, make_collective(kind, len(topology.ranks), size))


def steps(topology: Topology, nbytes: dict[int, float]) -> Steps:
    return steps_of(transfers_of(topology), nbytes, backend=Backend(), stop=lambda _: None)


@pytest.mark.parametrize(
    ("cluster", "degree"),
    [("ring:gpus=6", 2), ("ring:gpus=5", 2), ("hypercube", 3), ("torus", 4), ("full-mesh", 3)],
)
def test_symmetric_clusters_have_all_gathers_at_the_cut(cluster, degree):
    """Each of n GPUs takes in (n-1)/n of 8 MB over `degree` links of 50 GB/s, and no faster.

    That holds for the steps one after the other too, latencies of 0.7 µs apart: all links into a
    GPU carry the same in every step.
    """
    problem = asked(cluster)
    ranks = len(problem.topology.ranks)
    best = (ranks - 1) / ranks * 8 * MB / (degree * 50e3)

    result = solve(problem, "bfb")
    found = steps(problem.topology, dict.fromkeys(range(ranks), 8 * MB / ranks))

    assert result.steady_makespan == pytest.approx(best, rel=1e-9)
    assert result.status in (Status.OPTIMAL, Status.THROUGHPUT)
    assert sum(found.transmissions) == pytest.approx(best, rel=1e-6)
    assert found.makespan == pytest.approx(best + 0.7 * len(found.latencies), rel=1e-6)


def test_a_slow_link_on_a_shortest_way_is_not_gone_round():
    """Three GPUs, g0 and g2 joined by 10 GB/s, the others by 100: every rank is one hop away.

    So a shard of 1 MB takes 100 µs over the slow link. Each GPU takes in 2 MB: g0 and g2 over 110
    GB/s, 18.2 µs at best, which ForestColl's trees reach.
    """
    links = (
        *duplex("g0", "g1", bandwidth=100.0),
        *duplex("g1", "g2", bandwidth=100.0),
        *duplex("g0", "g2", bandwidth=10.0),
    )
    topology = Topology("triangle", tuple(device("gpu", f"g{i}") for i in range(3)), links)
    problem = Problem(topology, make_collective("all-gather", 3, 3 * MB))

    assert solve(problem, "bfb").steady_makespan == pytest.approx(100.0)
    assert solve(problem, "forestcoll").steady_makespan == pytest.approx(2 * MB / 110e3)


def test_a_broadcast_alone_leaves_its_neighbours_idle():
    """In a hypercube of 8 each of three neighbours takes the whole 8 MB from the root: 160 µs.

    Trees that part at the root would take a third of that.
    """
    problem = asked("hypercube", "broadcast")

    result = solve(problem, "bfb")

    assert result.steady_makespan == pytest.approx(160.0)
    assert solve(problem, "forestcoll").steady_makespan == pytest.approx(160.0 / 3)


def test_the_opposite_gpu_of_a_ring_has_one_half_from_each_side():
    found = steps(open_cluster("ring:gpus=4"), {0: MB})

    assert [part for _, part in found.parts[0, 2]] == [Fraction(1, 2)] * 2
    assert [part for _, part in found.parts[0, 1]] == [Fraction(1)]
    assert found.transmissions == pytest.approx((20.0, 10.0))


def test_a_shared_limit_is_a_row():
    """g3 has 3 MB from g1 and g2, over 25 GB/s by a limit and 50: 1 MB and 2 MB in 40 µs."""
    ends = (("g0", "g1", 100.0), ("g0", "g2", 100.0), ("g1", "g3", 50.0), ("g2", "g3", 50.0))
    topology = Topology(
        "diamond",
        tuple(device("gpu", f"g{i}") for i in range(4)),
        tuple(Link(*each) for each in ends),
        (SharedLimit("slow", (("g1", "g3"),), 25.0),),
    )

    found = steps(topology, {0: 3 * MB})

    assert sorted(part for _, part in found.parts[0, 3]) == [Fraction(1, 3), Fraction(2, 3)]
    assert found.transmissions == pytest.approx((30.0, 40.0))


def test_a_reduction_is_the_mirror_and_an_all_reduce_both():
    """On a ring of 6, 5/6 of 8 MB over two links of 50 GB/s each way."""
    times = [
        solve(asked("ring:gpus=6", kind), "bfb").steady_makespan
        for kind in ("all-gather", "reduce-scatter", "all-reduce")
    ]

    assert times == pytest.approx([200 / 3, 200 / 3, 400 / 3])


def test_trees_are_cut_where_parts_end():
    """Weights of a root are exact and add up to 1, and each rank has its parts from its parents."""
    problem = asked("ndv2:hosts=2", size=16 * MB)
    found = steps(problem.topology, dict.fromkeys(range(16), MB))
    plan = solve(problem, "bfb").plan
    routes = transfers_of(problem.topology).routes

    for root in range(16):
        trees = [tree for tree in plan.trees if tree.root == root]
        assert sum(tree.weight for tree in trees) == 1
        for rank in set(range(16)) - {root}:
            for transfer, part in found.parts[root, rank]:
                assert sum(each.weight for each in trees if routes[transfer] in each.routes) == part


def test_ways_over_switches_share_ports_and_go_on_from_where_they_are_shortest():
    """A star is one step of n-1 shards over each port, which is optimal; two hosts of 8 GPUs are
    two steps: inside over two links, and between over the rails."""
    star = solve(asked("star:gpus=4"), "bfb")
    rails = open_cluster("dgx-a100:hosts=2")

    assert star.steady_makespan == pytest.approx(3 * 2 * MB / 50e3)
    assert any("share ports" in sentence for sentence in star.log)
    assert len(steps(rails, dict.fromkeys(range(16), MB)).latencies) == 2


def test_memories_and_short_limits_are_told_in_words():
    with pytest.raises(ProblemError, match="stores without wanting anything"):
        solve(asked("thesis-2.3"), "bfb")
    with pytest.raises(LimitReached, match="steps after"):
        solve(asked("torus:shape=8x8"), "bfb", time_limit=0.001)
