"""Solutions on orbits, lifted back to links and ranks, satisfy the rows of the plain program."""

import numpy as np
import pytest

from ccl.collective import Chunk, custom, make_collective
from ccl.problem import Problem
from ccl.result import Status
from formulations import solve
from formulations.engines.fluid_lp.plain import link_costs
from formulations.engines.orbit_lp.group import Uniform
from formulations.engines.orbit_lp.lp import Lift, solve_orbits
from gallery import open_cluster

CLUSTERS = ("dgx-a100:hosts=2,fabric=rail-only", "ndv2", "torus:shape=3x3", "thesis-2.3")


@pytest.mark.parametrize("copies", ["exact", "free"])
@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter"])
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_lifted_vectors_are_a_solution_of_the_plain_program(cluster, kind, copies):
    """Conservation of every f, f at most w, and every capacity row, for all roots and ranks."""
    topology = open_cluster(cluster)
    ranks = len(topology.ranks)
    found = solve_orbits(Uniform(topology, kind, 1e9 * ranks), copies=copies)
    lift, graph = Lift(found), found.blocks[0].graph
    busy = np.zeros(len(graph.rates))
    for root in range(ranks):
        used = lift.usage(0, root)
        busy += graph.rows @ used * 1e6 / graph.rates
        for rank in range(ranks):
            if rank != root and (ranks < 10 or (rank + root) % 5 == 0):
                flow = lift.flow(0, root, rank=rank)
                net = np.zeros(graph.vertices)
                net[graph.goals[rank]] += 1
                net[graph.origins[root]] -= 1
                assert graph.incidence @ flow == pytest.approx(net, abs=1e-7)
                assert (flow <= used + 1e-7).all()

    assert busy.max() == pytest.approx(found.makespan, rel=1e-7)
    assert busy / found.makespan == pytest.approx(found.busy[found.row_orbits], abs=1e-7)


@pytest.mark.parametrize("kind", ["all-to-all", "gather", "scatter"])
@pytest.mark.parametrize("cluster", [*CLUSTERS, "pcie-server", "te-ccl-1"])
@pytest.mark.cover(6)
def test_a_flow_of_pairs_has_the_best_rate(cluster, kind):
    topology = open_cluster(cluster)
    asked = Problem(topology, make_collective(kind, len(topology.ranks), 1e9))

    result = solve(asked, "orbit-lp")
    bare = solve_orbits(asked)

    assert result.steady_makespan == pytest.approx(bare.makespan, rel=1e-7)
    assert result.status in (Status.OPTIMAL, Status.THROUGHPUT)


def test_pairs_of_different_sizes_flow_together():
    """3 MB from g0 to g2 and 1 MB from g1 to g2 on a line at 50 GB/s: 80 µs on the last link."""
    topology = open_cluster("line:gpus=3,alpha=0")
    asked = Problem(topology, custom(3, [Chunk(3e6, (0,), (2,)), Chunk(1e6, (1,), (2,))]))

    result = solve(asked, "orbit-lp")

    assert result.steady_makespan == pytest.approx(80.0, rel=1e-7)
    [bound] = [each for each in result.bounds if "prices" in each.reference]
    assert bound.makespan == pytest.approx(80.0, rel=1e-7)
    assert "1 on g1->g2" in bound.reference


def test_paths_of_the_cheapest_flow_are_the_shortest():
    """With costs by links an all-to-all on one star takes two links for every pair."""
    star = open_cluster("star:gpus=4,bandwidth=1.0")
    found = solve_orbits(Uniform(star, "all-to-all", 4e9), costs=link_costs(star, "links"))

    paths = list(Lift(found).paths())

    assert len(paths) == 12
    assert {(source, goal) for source, goal, _ in paths} == {
        (a, b) for a in range(4) for b in range(4) if a != b
    }
    for source, goal, ways in paths:
        assert [way for _, way in ways] == [[source, 4, goal]]
