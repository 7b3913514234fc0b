"""The best rate as a fraction: published figures, all cuts, and a linear program."""

import csv
from fractions import Fraction
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

from ccl.collective import Chunk, custom, make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.topology import Link, SharedLimit, Topology, device, duplex
from formulations.engines.forestcoll.plans import halves
from formulations.engines.forestcoll.search import fixed_rate, forest_rate, refusal
from formulations.solvers.cvxpy_highs import Backend
from gallery import open_cluster
from tests.formulations.engines.forestcoll.clusters import random_cluster, worst_cut

GOLDEN = Path(__file__).parents[3] / "golden" / "forestcoll_optimal_allgather_algbw.csv"


def asked(cluster: str | Topology, kind: str = "all-gather") -> Problem:
    """Give every rank a shard of 1 MB; a root 1 MB in all."""
    topology = open_cluster(cluster) if isinstance(cluster, str) else cluster
    ranks = len(topology.ranks)
    each = 1e6 if kind in ("broadcast", "reduce") else 1e6 * ranks
    return Problem(topology, make_collective(kind, ranks, each))


@pytest.mark.parametrize(
    ("cluster", "algbw"),
    [
        ("dgx-a100:hosts=1", Fraction(8 * 300, 7)),
        ("dgx-a100:hosts=2", Fraction(16 * 325, 15)),
        ("dgx-a100:hosts=4", Fraction(32 * 200, 24)),
        ("mi250:hosts=1", Fraction(16 * 300, 14)),
        ("mi250:hosts=2", Fraction(32 * 332, 30)),
    ],
)
def test_algbw_is_that_of_the_bottleneck_as_a_fraction(cluster, algbw):
    """What must enter the worst cut, over the bandwidth into it.

    One box of 8 A100: 7 shards into one GPU at 300 GB/s. Two: 15 shards at 300 + 25. Four: 24
    shards into a box at 8 times 25. MI250, one box: 14 shards into a package of two dies, whose
    links but those between the two carry 6 times 50; two boxes: 30 shards, 300 and 2 times 16.
    The figures of ForestColl's own program for these clusters agree to its three digits.
    """
    topology = open_cluster(cluster)
    ranks = len(topology.ranks)

    rate = forest_rate(asked(topology))

    assert rate.speed * ranks == algbw
    with GOLDEN.open(encoding="utf-8") as file:
        published = [
            float(row["algbw_GBps"])
            for row in csv.DictReader(file)
            if int(row["gpus"]) == ranks and "fixed" not in row["topology"]
        ]
    assert any(abs(float(algbw) - each) < 6e-4 for each in published)


def test_two_trees_per_root_on_two_mi250_boxes_are_as_fast_as_published():
    """341.33 GB/s, ForestColl section 4.5: 32 roots with 2 trees each, 3/16 s for a tree."""
    rate = forest_rate(asked("mi250:hosts=2"))

    fixed = fixed_rate(rate.network, 2, best=rate.speed / rate.network.unit)

    assert 32 * 2 / fixed.time * rate.network.unit == Fraction(1024, 3)


@pytest.mark.parametrize("trees", [1, 3, 50])
def test_a_fixed_number_of_trees_loses_at_most_a_tree_on_the_thinnest_link(trees):
    """Theorem 15 of ForestColl; 83 trees per root reach the optimum."""
    rate = forest_rate(asked("mi250:hosts=2"))
    best = rate.speed / rate.network.unit

    time = fixed_rate(rate.network, trees, best=best).time

    assert trees / best <= time <= trees / best + Fraction(1, int(rate.network.capacity.min()))
    assert fixed_rate(rate.network, 83, best=best).time == 83 / best


@pytest.mark.parametrize("seed", range(40))
def test_the_rate_is_that_of_the_worst_of_all_cuts(seed):
    topology = random_cluster(seed, gpus=3 + seed % 3, switches=seed % 4)

    rate = forest_rate(asked(topology))

    assert rate.speed == worst_cut(topology, dict.fromkeys(topology.ranks, 1))
    for cut in rate.cuts:
        inside = sum(name in cut.inside for name in topology.ranks)
        leaving = [each for each in topology.links if each.ends in cut.links]
        assert inside * rate.speed == sum(Fraction(each.bandwidth) for each in leaving)
        assert all(e.src in cut.inside and e.dst not in cut.inside for e in leaving)
        assert cut.bandwidth == sum(each.bandwidth for each in leaving)
        assert not set(topology.ranks) <= set(cut.inside)


@pytest.mark.parametrize("seed", range(40, 60))
def test_roots_may_have_different_amounts_of_data_and_some_none(seed):
    """Root 0 has three times what root 1 has, the others nothing."""
    topology = random_cluster(seed)
    others = [tuple(rank for rank in range(4) if rank != root) for root in (0, 1)]
    chunks = [Chunk(3e6, (0,), others[0]), Chunk(1e6, (1,), others[1])]

    rate = forest_rate(Problem(topology, custom(4, chunks)))

    assert rate.speed == worst_cut(topology, {"g0": 3, "g1": 1})
    assert rate.shards == 3 * rate.speed
    assert rate.makespan == 1000 / rate.speed


@pytest.mark.parametrize("seed", range(60, 75))
def test_a_reduction_is_as_fast_as_its_mirror_on_the_reversed_cluster(seed):
    topology = random_cluster(seed)

    here = forest_rate(asked(topology, "reduce-scatter"))
    there = forest_rate(asked(topology.reversed()))

    assert here.speed == there.speed
    inside = sum(name not in here.cut.inside for name in topology.ranks)
    assert here.cut.bandwidth == pytest.approx(float(inside * here.speed))
    ends = [(src in here.cut.inside, dst in here.cut.inside) for src, dst in here.cut.links]
    assert set(ends) == {(True, False)}


@pytest.mark.parametrize("seed", range(75, 85))
def test_a_linear_program_of_flows_has_the_same_optimum(seed):
    """The most x of which every root can send every other GPU a flow of its own.

    Flows of one root share what they use on a link, flows of different roots do not: thesis, LP
    (3.10). It is below every cut, and in these clusters trees reach the cut.
    """
    topology = random_cluster(seed, gpus=3, switches=2, even=True)
    index, ranks = topology.index, topology.ranks
    incidence = np.zeros((len(topology.devices), len(topology.links)))
    for i, link in enumerate(topology.links):
        incidence[index[link.src], i] += 1
        incidence[index[link.dst], i] -= 1
    rate = cp.Variable()
    load = cp.Variable((len(topology.links), len(ranks)), nonneg=True)
    rows = [cp.sum(load, axis=1) <= np.array([each.bandwidth for each in topology.links])]
    for root, name in enumerate(ranks):
        goals = [index[each] for each in ranks if each != name]
        demand = np.zeros((len(topology.devices), len(goals)))
        demand[index[name]] = 1
        demand[goals, range(len(goals))] -= 1
        flow = cp.Variable((len(topology.links), len(goals)), nonneg=True)
        rows += [incidence @ flow == rate * demand]
        rows += [flow[:, i] <= load[:, root] for i in range(len(goals))]
    model = cp.Problem(cp.Maximize(rate), rows)
    Backend().solve(model, method="simplex")

    assert float(forest_rate(asked(topology)).speed) == pytest.approx(float(rate.value), rel=1e-6)


def test_both_halves_of_an_all_reduce_are_asked_one_by_one():
    problem = asked("dgx-a100:hosts=2", "all-reduce")

    rates = [forest_rate(half) for half in halves(problem)]

    assert [each.makespan for each in rates] == [Fraction(15 * 10**6, 325 * 1000)] * 2
    with pytest.raises(ProblemError, match="take its two halves"):
        forest_rate(problem)


def test_one_sink_of_each_orbit_is_enough():
    """512 GPUs of rails look alike, so there are few flows; 504 shards at 200 GB/s into a box."""
    rate = forest_rate(asked("dgx-a100:hosts=64,fabric=rail-only"))

    assert rate.speed == Fraction(200, 504)
    assert rate.flows < 10


def test_bandwidths_are_the_simple_fractions_that_they_look_like():
    """Two of 0.1 and 0.2 GB/s make 0.3 GB/s, though not as floats."""
    links = [*duplex("g0", "g1", bandwidth=0.1), *duplex("g0", "g1", bandwidth=0.2)]
    pair = Topology("pair", (device("gpu", "g0"), device("gpu", "g1")), tuple(links))

    assert pair.links[0].bandwidth != 0.3
    assert forest_rate(asked(pair)).speed == Fraction(3, 10)


def star(**changes: float) -> Topology:
    """Join three GPUs to the switch s at 10 GB/s, some links at another bandwidth."""
    ends = [pair for name in ("g0", "g1", "g2") for pair in ((name, "s"), ("s", name))]
    links = [Link(*pair, changes.get("_".join(pair), 10.0)) for pair in ends]
    gpus = [device("gpu", f"g{i}") for i in range(3)]
    return Topology("star", (*gpus, device("switch", "s")), tuple(links))


def test_a_switch_that_gives_out_less_than_it_takes_in_is_refused_with_its_figures():
    why = refusal(asked(star(s_g1=4.5)))

    assert why is not None
    assert "s takes in 30 GB/s and gives out 24.5 GB/s" in why
    assert "orbit-trees takes it" in why


def test_gpus_may_give_out_other_than_they_take_in():
    """g0 -> g1 has 5 GB/s more than g1 -> g0: into g2 go 10 GB/s as before, 2 shards."""
    topology = star()
    more = Topology("more", topology.devices, (*topology.links, Link("g0", "g1", 5.0)))

    assert refusal(asked(more)) is None
    assert forest_rate(asked(more)).speed == 5


def test_memories_and_shared_limits_are_refused_by_name():
    memory = open_cluster("pcie-server")
    limit = SharedLimit("bus", (("g0", "s"), ("g1", "s")), 15.0)
    limited = Topology("limited", star().devices, star().links, (limit,))
    loose = Topology("loose", star().devices, star().links, (SharedLimit("b", (("g0", "s"),), 99),))

    assert "stores and copies without wanting anything" in (refusal(asked(memory)) or "")
    assert "bus allows 15 GB/s" in (refusal(asked(limited)) or "")
    assert refusal(asked(loose)) is None


def test_data_that_only_some_want_is_refused():
    problem = Problem(star(), custom(3, [Chunk(1e6, (0,), (1,))]))

    assert "chunk 0 does not go from one GPU to all others" in (refusal(problem) or "")


def test_bandwidths_without_a_common_unit_are_refused():
    """The last bit of the small one is 2**-62 GB/s; 10 GB/s are more of these than 64 bits hold."""
    fine = star(g0_s=0.001234567890123456, s_g0=0.001234567890123456)

    assert "too fine for whole numbers" in (refusal(asked(fine)) or "")


def test_bandwidths_with_many_digits_are_exact_where_they_fit():
    """Two shards enter g1 at 10.123456789012345 GB/s, every bit of it."""
    rate = 10.123456789012345
    odd = star(**{f"{end}": rate for i in range(3) for end in (f"g{i}_s", f"s_g{i}")})

    assert forest_rate(asked(odd)).speed == Fraction(rate) / 2
