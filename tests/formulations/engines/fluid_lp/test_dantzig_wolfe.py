"""Dantzig-Wolfe, per origin and mirrored: the value of the whole program, and its forests."""

from fractions import Fraction

import numpy as np
import pytest

from ccl.collective import make_collective
from ccl.errors import LimitReached, ProblemError
from ccl.problem import Problem
from ccl.result import Status
from ccl.topology import Topology, device, duplex
from formulations import solve
from formulations.engines.fluid_lp.dantzig_wolfe import decompose
from formulations.engines.fluid_lp.plain import link_costs, solve_plain
from formulations.engines.orbit_lp.group import Uniform
from formulations.engines.orbit_lp.lp import solve_orbits
from gallery import open_cluster


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-to-all", "broadcast"])
@pytest.mark.parametrize("cluster", ["star:gpus=4", "random:gpus=5,switches=2", "torus:shape=2x3"])
def test_columns_come_to_the_optimum_of_the_whole_program(cluster, kind, mirrored):
    """Both objectives agree with the plain program, and the subproblems' bound with R."""
    topology = open_cluster(cluster)
    asked = Problem(topology, make_collective(kind, len(topology.ranks), 1e9))
    costs = link_costs(topology, "links")

    whole = solve_plain(asked, costs=costs)
    found = decompose(asked, mirrored=mirrored, costs=costs)

    assert found.makespan == pytest.approx(whole.makespan, rel=1e-6)
    assert found.bound == pytest.approx(whole.makespan, rel=1e-6)
    assert found.cost == pytest.approx(whole.cost, rel=1e-6)
    for number in range(len(found.classes)):
        mine = [each.owner == number for each in found.columns]
        assert found.shares[mine].sum() == pytest.approx(1.0)


def test_mirroring_solves_one_subproblem_of_sixteen_on_two_hosts_of_rails():
    """Table 6.3 of the thesis, two nodes: 15/325 s/GB and 516.9."""
    topology = open_cluster("dgx-a100:hosts=2,fabric=rail-only")
    found = decompose(Uniform(topology, "all-gather", 16e9), costs=link_costs(topology, "ports"))

    assert len(found.classes) == 1
    assert len(found.classes[0].ranks) == 16
    assert found.makespan * 1e-6 == pytest.approx(15 / 325, rel=1e-6)
    assert found.cost * 1e-9 == pytest.approx(516.923, rel=1e-5)


def test_classes_of_different_sizes_count_as_often_as_they_have_origins():
    """A star of one GPU at 2 GB/s and three at 1 GB/s: classes of 1 and 3 origins.

    Each of the three receives 3 GB at 1 GB/s: 3 s. With costs by links each of 4 shards is taken
    over 2 links to 3 others: 24, of which the class of three has 18 and would be counted as 6.
    """
    gpus = [device("gpu", f"g{i}") for i in range(4)]
    links = [
        link for i in range(4) for link in duplex(f"g{i}", "s", bandwidth=2.0 if i == 0 else 1.0)
    ]
    topology = Topology("uneven", (*gpus, device("switch", "s")), tuple(links))

    found = decompose(Uniform(topology, "all-gather", 4e9), costs=link_costs(topology, "links"))

    assert sorted(len(each.ranks) for each in found.classes) == [1, 3]
    assert found.makespan * 1e-6 == pytest.approx(3.0, rel=1e-6)
    assert found.cost * 1e-9 == pytest.approx(24.0, rel=1e-6)


def test_every_image_of_a_class_carries_what_its_representative_does():
    """Loads of a column are those of w moved by each element, not by its inverse.

    On a ring that runs one way round the two differ: the image of a path is a path only so.
    """
    topology = open_cluster("ring:gpus=5")
    found = decompose(Uniform(topology, "all-gather", 5e9))
    [origin] = found.classes
    column = found.columns[0]

    for rank, edges in zip(origin.ranks.tolist(), origin.edges, strict=True):
        moved = np.zeros(origin.graph.edges)
        moved[edges] = column.usage
        net = origin.graph.incidence @ (moved > 0.5)
        assert net[origin.graph.origins[rank]] < 0
        assert origin.loaded(column.usage)[edges].min() >= 0
    assert origin.loaded(column.usage).sum() == pytest.approx(5 * column.usage.sum())


@pytest.mark.parametrize("name", ["dantzig-wolfe", "mirrored-dantzig-wolfe"])
@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "broadcast", "reduce"])
@pytest.mark.parametrize("cluster", ["star:gpus=4,alpha=0", "dgx-1v", "random:gpus=5,switches=2"])
@pytest.mark.cover(8)
def test_the_forest_of_the_columns_has_the_best_rate(cluster, kind, name):
    topology = open_cluster(cluster)
    asked = Problem(topology, make_collective(kind, len(topology.ranks), 1e9))

    result = solve(asked, name, time_limit=60)

    assert result.steady_makespan == pytest.approx(solve_orbits(asked).makespan, rel=1e-6)
    assert result.status in (Status.OPTIMAL, Status.THROUGHPUT)
    weights = [Fraction(0)] * len(topology.ranks)
    for tree in result.plan.trees:
        weights[tree.root] += tree.weight
    assert set(weights) <= {Fraction(0), Fraction(1)}


def test_a_sum_for_everybody_is_refused_and_a_stop_is_kept():
    star = open_cluster("star:gpus=4")

    with pytest.raises(ProblemError, match="no origins of its own"):
        decompose(Uniform(star, "all-reduce", 1e9))
    with pytest.raises(LimitReached, match="in round 1"):
        decompose(Uniform(star, "all-gather", 1e9), left=lambda: 0.0)


def test_it_is_stopped_in_the_middle_of_a_round():
    """Without symmetry a round has a subproblem for each GPU: of 96 GPUs one took 20 s."""
    seconds = iter([9.0, 9.0, 0.0])

    with pytest.raises(LimitReached, match="in round 1"):
        decompose(
            Uniform(open_cluster("star:gpus=4"), "all-gather", 1e9),
            mirrored=False,
            left=lambda: next(seconds),
        )


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter"])
def test_two_ranks_need_no_trees(kind):
    asked = Problem(open_cluster("line:gpus=2"), make_collective(kind, 2, 1e9))

    assert decompose(asked).makespan == pytest.approx(solve_plain(asked).makespan, rel=1e-6)
    with pytest.raises(ProblemError, match="takes no tree"):
        solve(asked, "mirrored-dantzig-wolfe")
