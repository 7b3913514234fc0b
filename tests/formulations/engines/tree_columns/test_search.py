"""Column generation with trees against cuts, the plain program, arithmetic and its own plans."""

from fractions import Fraction

import numpy as np
import pytest

from ccl.collective import Chunk, custom
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.result import Status
from ccl.topology import SharedLimit, Topology, device, duplex
from ccl.tree_embedding import steady_makespan
from ccl.verify import verify
from formulations import formulation, solve
from formulations.engines.fluid_lp.plain import link_costs, solve_plain
from formulations.engines.forestcoll.search import forest_rate
from formulations.engines.tree_columns.price import Prices
from formulations.engines.tree_columns.search import best_trees, forest_of, refined
from gallery import open_cluster
from tests.formulations.engines.fluid_lp.clusters import (
    around,
    ask,
    boxes,
    chords,
    pcie,
    pcie_costs,
    rails,
    star,
)


def rate(asked, *, symmetric=True):
    """Return the exact R in µs of a proved optimum whose forest verifies and takes as long."""
    found = best_trees(asked, symmetric=symmetric)
    assert found.proved
    assert found.weights.basic
    forest = forest_of(found)
    verify(asked, forest)
    assert steady_makespan(asked, forest) == found.time
    return found.time


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("shape", ["gpus=5,switches=2", "gpus=7,switches=0", "gpus=9,switches=5"])
@pytest.mark.parametrize("one_way", ["true", "false"])
def test_where_as_much_enters_as_leaves_the_rate_is_the_worst_cut(shape, seed, one_way):
    asked = ask(open_cluster(f"random:{shape},seed={seed},one_way={one_way}"), "all-gather")

    assert rate(asked) == forest_rate(asked).makespan


@pytest.mark.parametrize(
    "cluster", ["dgx-1v", "torus:shape=3x3", "hypercube", "forestcoll-12", "mi250", "fat-tree"]
)
def test_clusters_of_the_gallery_have_the_rate_of_their_worst_cut(cluster):
    asked = ask(open_cluster(cluster), "all-gather")

    assert rate(asked) == forest_rate(asked).makespan


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-reduce", "broadcast"])
@pytest.mark.parametrize(
    "topology", [rails(2, gpus=3), boxes(2), chords(6), star(4, 1, 1, 2)], ids=str
)
def test_the_plain_program_agrees(topology, kind):
    asked = ask(topology, kind)

    assert float(rate(asked)) == pytest.approx(solve_plain(asked).makespan, rel=1e-6)


@pytest.mark.parametrize("kind", ["all-gather", "all-reduce"])
def test_more_down_than_up_is_no_cut_and_still_exact(kind):
    """Upward 10 % slower, FLUID's case in which a cut is only a bound."""
    asked = ask(rails(3, gpus=2, up=22.5), kind)

    assert float(rate(asked)) == pytest.approx(solve_plain(asked).makespan, rel=1e-6)


@pytest.mark.parametrize("cluster", ["dgx-1v", "torus:shape=4x4", "dgx-a100:hosts=2", "mi250"])
def test_symmetry_changes_nothing(cluster):
    asked = ask(open_cluster(cluster), "all-gather")

    assert rate(asked) == rate(asked, symmetric=False)


@pytest.mark.parametrize(
    ("topology", "both", "shared"),
    [
        (star(10, 1, 1, 1, 1, 1), 10, 6),
        (star(4, 4, 1, 1, 1, 1, 1, 1), 14, 8),
        (rails(2), 2 * Fraction(15, 325) * 16, Fraction(30, 325) * 16),
    ],
    ids=["one fat", "two fat", "rails"],
)
def test_all_reduce_shares_links_between_its_halves(topology, both, shared):
    """A star gains 40 % and 43 % over two all-gathers one after the other, rails nothing.

    Figures per GB and shard: 1 GB from each GPU in an all-gather is n GB to be added up.
    """
    many = len(topology.ranks)
    gathered = rate(ask(topology, "all-gather"))
    reduced = rate(ask(topology, "all-reduce", gigabytes=many))

    assert 2 * gathered / 10**6 == pytest.approx(float(both) / (many if many == 16 else 1))
    assert reduced / 10**6 == pytest.approx(float(shared) / (many if many == 16 else 1))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", ["gpus=4,switches=1", "gpus=8,switches=3"])
def test_all_reduce_gains_at_most_what_a_cut_allows(shape, seed):
    """Where links are as fast both ways, a cut passes both halves: n / (2 n - 2) of two gathers."""
    topology = open_cluster(f"random:{shape},seed={seed}")
    many = len(topology.ranks)
    gathered = rate(ask(topology, "all-gather"))
    reduced = rate(ask(topology, "all-reduce", gigabytes=many))

    assert Fraction(many, 2 * many - 2) * 2 * gathered <= reduced <= 2 * gathered


def test_many_devices_that_may_be_passed_are_searched():
    """12 copying switches and 16 GPUs: no choice of switches is left to prove, and a cut does."""
    asked = ask(open_cluster("random:gpus=16,switches=12,copies=true"), "all-gather")

    found = solve(asked, "orbit-trees", time_limit=20)

    assert found.status in {Status.OPTIMAL, Status.THROUGHPUT}
    assert found.bound.kind == "ejection"
    assert any("prices prove nothing" in line for line in found.log)


@pytest.mark.parametrize(
    ("hub", "limit", "expected"),
    [
        (device("gpu", "m", copies=True), None, None),
        (device("memory", "m"), None, 3.0),
        (device("memory", "m"), 3.0, None),
        (device("switch", "s", copies=True), None, 3.0),
    ],
    ids=["gpu", "memory", "memory with a limit", "copying switch"],
)
def test_around_a_hub_that_copies(hub, limit, expected):
    """Each of 4 GPUs takes in 3 GB at 1 GB/s; what the plain program says where more binds."""
    asked = ask(around(hub, 4, limit=limit), "all-gather")
    found = float(rate(asked)) * 1e-6

    assert found == pytest.approx(solve_plain(asked).makespan * 1e-6, rel=1e-6)
    assert expected is None or found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kind", "nvlink"),
    [
        ("all-gather", False),
        ("reduce-scatter", False),
        ("all-reduce", False),
        ("all-gather", True),
        ("reduce-scatter", True),
    ],
)
def test_memory_in_a_server_copies_and_never_adds(kind, nvlink):
    asked = ask(pcie(1, nvlink=nvlink), kind)

    assert float(rate(asked)) == pytest.approx(solve_plain(asked).makespan, rel=1e-6)


def test_a_shared_limit_is_a_row_of_its_own():
    """Both directions between two GPUs under 50 GB/s: 1 GB each way takes 40 ms."""
    ends = (("g0", "g1"), ("g1", "g0"))
    topology = Topology(
        "pair",
        (device("gpu", "g0"), device("gpu", "g1")),
        duplex("g0", "g1", bandwidth=50.0),
        (SharedLimit("bus", ends, 50.0), SharedLimit("same", ends, 50.0)),
    )

    assert rate(ask(topology, "all-gather")) == 40_000


def test_unequal_shards_to_some_of_the_ranks():
    """A line g0 - g1 - g2 at 1 GB/s: the link from g1 to g2 carries 3 MB and 1 MB."""
    chunks = [Chunk(3e6, (0,), (1, 2)), Chunk(1e6, (1,), (2,))]
    asked = Problem(open_cluster("line:gpus=3,bandwidth=1.0"), custom(3, chunks))

    assert rate(asked) == 4000


def test_ranks_that_want_nothing_may_pass_data_on():
    """On a ring of 4 at 1 GB/s, 2 MB from g0 to g2 go both ways round."""
    asked = Problem(open_cluster("ring:gpus=4,bandwidth=1.0"), custom(4, [Chunk(2e6, (0,), (2,))]))

    assert rate(asked) == 1000


def test_weights_of_a_box_without_regularity_are_exact():
    """MI250, two hosts: a pair takes in the 30 other shards over 332 GB/s."""
    asked = ask(open_cluster("mi250:hosts=2"), "all-gather")

    assert rate(asked) == Fraction(30 * 10**6, 332)


@pytest.mark.parametrize(("used", "objective"), [("nvlink-only", 516.923077), ("no-nvlink", 424.0)])
def test_weighted_data_is_least_among_the_best(used, objective):
    """Two hosts in tables 6.3 and 6.4 of the thesis, GB for a GB of each GPU."""
    topology = rails(2) if used == "nvlink-only" else pcie(2, nvlink=False)
    asked = ask(topology, "all-gather")
    costs = link_costs(topology, "ports") if used == "nvlink-only" else pcie_costs(topology)
    found = best_trees(asked)

    cheap = refined(found, costs=costs)

    assert cheap.time == found.time
    verify(asked, forest_of(cheap))
    paid = sum(
        float(share)
        * cheap.task.symmetry.order
        * float(costs[cheap.pool.columns[place].links].sum())
        for place, share in cheap.weights.shares.items()
    )
    assert paid == pytest.approx(objective, rel=1e-6)


@pytest.mark.parametrize(
    ("cluster", "diameter"), [("torus:shape=4x4", 4), ("hypercube", 3), ("dgx-1v", 2)]
)
def test_trees_are_made_less_deep_at_the_same_rate(cluster, diameter):
    asked = ask(open_cluster(cluster), "all-gather")

    deep = solve(asked, "orbit-trees", options={"prefer": "any"})
    flat = solve(asked, "orbit-trees")

    assert flat.steady_makespan == pytest.approx(deep.steady_makespan, rel=1e-12)
    assert diameter <= flat.plan.depth <= deep.plan.depth
    assert flat.plan.depth <= diameter + 1


def test_a_torus_is_covered_by_trees_as_deep_as_its_diameter():
    found = solve(ask(open_cluster("torus:shape=4x4x4"), "all-gather"), "orbit-trees")

    assert found.status is Status.THROUGHPUT
    assert found.plan.depth == 6
    assert found.plan.images == 64


def test_the_bound_holds_at_any_prices():
    """Lagrange: no prices prove more than the optimum."""
    found = best_trees(ask(open_cluster("random:gpus=6,switches=2"), "all-gather"))
    draw = np.random.default_rng(0)

    for _ in range(20):
        prices = draw.random(len(found.task.rows.rates)) ** 4
        bound = Prices(found.task, prices).cheapest().bound
        assert 0 < bound <= float(found.time) * (1 + 1e-12)


def test_what_no_forest_holds_is_refused_in_words():
    trees = formulation("orbit-trees")
    line = open_cluster("line:gpus=3")
    mixed = [Chunk(1e6, (0,), (1, 2)), Chunk(1e6, (0, 1, 2), (1,), reduced=True)]
    apart = [Chunk(1e6, (0,), (1,)), Chunk(1e6, (0,), (2,))]

    assert "together" in (trees.why_not(Problem(line, custom(3, mixed))) or "")
    assert "different data" in (trees.why_not(Problem(line, custom(3, apart))) or "")
    with pytest.raises(ProblemError, match="it supports all-gather"):
        solve(ask(line, "all-to-all"), "orbit-trees")
