"""The plain program against figures of the papers and against arithmetic."""

import random

import numpy as np
import pytest

from ccl.collective import Chunk, custom
from ccl.errors import Infeasible, ProblemError
from ccl.problem import Problem
from ccl.topology import Device, Link, Topology, device, duplex
from formulations.engines.fluid_lp.plain import FluidSolution, link_costs, solve_plain
from tests.formulations.engines.fluid_lp.clusters import (
    ask,
    boxes,
    chords,
    pcie,
    pcie_costs,
    rails,
    star,
)


def seconds(solution: FluidSolution) -> float:
    """R in s, which is s/GB where every rank contributes a GB."""
    return solution.makespan * 1e-6


@pytest.mark.parametrize("copies", ["exact", "relaxed", "counted"])
def test_one_host_gathers_at_nvlink_speed_and_uploads_once(copies):
    """Table 6.3: 7 GB come in at 300 GB/s; each of 8 GPUs is sent 7 GB and sends 7: 112 GB."""
    found = solve_plain(ask(rails(1), "all-gather"), copies=copies)
    assert seconds(found) == pytest.approx(7 / 300)
    assert found.cost == pytest.approx(112e9, rel=1e-6)


def test_without_a_rule_for_switches_they_copy_and_the_cost_is_too_low():
    """A GPU then uploads 1 GB once and downloads 7: 64 GB in all, and R is the same."""
    found = solve_plain(ask(rails(1), "all-gather"), copies="free")
    assert seconds(found) == pytest.approx(7 / 300)
    assert found.cost == pytest.approx(64e9, rel=1e-6)


@pytest.mark.parametrize(
    ("kind", "latency", "objective"),
    [("all-gather", 15 / 325, 516.923077), ("all-to-all", 0.32, 960.0)],
)
def test_two_hosts_on_rails_as_in_tables_6_3_and_6_6(kind, latency, objective):
    """All but one GPU send it 15 GB over its 325 GB/s; 64 pairs of GB per rail host cross."""
    asked = ask(rails(2), kind)
    found = solve_plain(asked, copies="relaxed", costs=link_costs(asked.topology, "ports"))
    assert seconds(found) == pytest.approx(latency, rel=1e-6)
    assert found.cost == pytest.approx(objective * 1e9, rel=1e-6)


@pytest.mark.parametrize(
    ("kind", "nvlink", "latency", "objective"),
    [
        ("all-gather", False, 7 / 32, 92.0),
        ("all-to-all", False, 0.375, 112.0),
        ("all-gather", True, 7 / 332, 109.686747),
        ("all-to-all", True, 7 / 332, 112.0),
    ],
)
def test_one_host_with_pcie_as_in_tables_6_4_5_7_and_8(kind, nvlink, latency, objective):
    """Memory that copies saves uploads; the slip .0219 of table 6.4 is 7 / 32 = .21875."""
    topology = pcie(1, nvlink=nvlink)
    found = solve_plain(ask(topology, kind), copies="relaxed", costs=pcie_costs(topology))
    assert seconds(found) == pytest.approx(latency, rel=1e-6)
    assert found.cost == pytest.approx(objective * 1e9, rel=1e-6)


@pytest.mark.parametrize(
    ("kind", "nvlink", "latency", "objective"),
    [
        ("all-gather", False, 15 / 32, 424.0),
        ("all-to-all", False, 0.75, 736.0),
        ("all-to-all", True, 0.32, 764.16),
    ],
)
def test_two_hosts_with_pcie_as_in_tables_6_4_7_and_8(kind, nvlink, latency, objective):
    topology = pcie(2, nvlink=nvlink)
    found = solve_plain(ask(topology, kind), copies="relaxed", costs=pcie_costs(topology))
    assert seconds(found) == pytest.approx(latency, rel=1e-6)
    assert found.cost == pytest.approx(objective * 1e9, rel=1e-6)


@pytest.mark.parametrize(("steps", "latency"), [(None, 1.0), (2, 4.0), (3, 4.0), (4, 1.0)])
def test_boxes_need_four_hops_for_their_rate(steps, latency):
    """In two hops all data for the other box takes the slow switch, to each GPU: 4 GB at 1 GB/s."""
    asked = ask(boxes(2), "all-gather")
    found = solve_plain(
        asked, copies="relaxed", steps=steps, costs=link_costs(asked.topology, "none")
    )
    assert seconds(found) == pytest.approx(latency, rel=1e-6)


@pytest.mark.parametrize(("steps", "latency"), [(None, 0.28), (1, 1.0), (2, 1 / 3), (3, 0.28)])
def test_a_ring_with_chords_needs_three_hops(steps, latency):
    """7 GB into each GPU over 25 GB/s need it; in one hop a chord brings its GB at 1 GB/s."""
    asked = ask(chords(8), "all-gather")
    found = solve_plain(asked, steps=steps, costs=link_costs(asked.topology, "none"))
    assert seconds(found) == pytest.approx(latency, rel=1e-6)


def test_too_few_hops_are_infeasible():
    with pytest.raises(Infeasible):
        solve_plain(ask(boxes(2), "all-gather"), steps=1)


@pytest.mark.parametrize(
    ("bandwidths", "gathered", "reduced"),
    [((10, 1, 1, 1, 1, 1), 5.0, 6.0), ((4, 4, 1, 1, 1, 1, 1, 1), 7.0, 8.0)],
)
def test_sharing_links_saves_all_reduces_on_uneven_stars(bandwidths, gathered, reduced):
    """A slow GPU sends and receives 1 GB each for the sum of all, n in both halves of n sums.

    One half after the other would take 2 (n - 1): 40 % and 43 % are saved. The bound: each way
    n GB cross the link of a slow GPU.
    """
    topology = star(*map(float, bandwidths))
    ranks = len(bandwidths)
    gather = solve_plain(ask(topology, "all-gather"))
    both = solve_plain(ask(topology, "all-reduce", gigabytes=ranks))
    assert seconds(gather) == pytest.approx(gathered, rel=1e-6)
    assert seconds(both) == pytest.approx(reduced, rel=1e-6)
    assert both.shares.sum() == pytest.approx(ranks * 1e9)


def test_rails_gain_nothing_from_sharing_links():
    """All GPUs alike: an all-reduce is twice an all-gather, 2 x 7 GB at 300 GB/s."""
    both = solve_plain(ask(rails(1), "all-reduce", gigabytes=8))
    assert seconds(both) == pytest.approx(14 / 300, rel=1e-6)


def small_rails(up: float) -> Topology:
    """Four hosts of two GPUs at 100 GB/s, and two rails."""
    devices: list[Device] = []
    links: list[Link] = []
    for host in range(4):
        devices.append(device("switch", f"s{host}"))
        for i in range(2):
            devices.append(device("gpu", f"g{host}.{i}"))
            links += duplex(f"g{host}.{i}", f"s{host}", bandwidth=100.0)
            links += [Link(f"g{host}.{i}", f"r{i}", up), Link(f"r{i}", f"g{host}.{i}", 10.0)]
    devices += [device("switch", f"r{i}") for i in range(2)]
    return Topology("small rails", tuple(devices), tuple(links))


def test_a_slower_way_up_is_seen_by_rows_and_duplicates_and_not_by_3_10():
    """Into a host come 6 GB over 20 GB/s: 0.3 s. Plain rails pass on what they are sent, so the
    8 senders' 72 GB/s carry 4 x 6 GB: 24 / 72 = 0.3333 s. A rail that copied would hide that."""
    asked = ask(small_rails(9.0), "all-gather")
    costs = link_costs(asked.topology, "none")
    found = {
        c: seconds(solve_plain(asked, copies=c, costs=costs)) for c in ("free", "relaxed", "exact")
    }
    assert found["free"] == pytest.approx(0.3, rel=1e-6)
    assert found["relaxed"] == pytest.approx(1 / 3, rel=1e-6)
    assert found["exact"] == pytest.approx(1 / 3, rel=1e-6)


def drawn(seed: int) -> Topology:
    """GPUs and plain switches with one-way links drawn by chance."""
    chance = random.Random(seed)
    gpus = [device("gpu", f"g{i}") for i in range(chance.randint(3, 5))]
    switches = [device("switch", f"s{i}") for i in range(chance.randint(1, 4))]
    names = [each.name for each in (*gpus, *switches)]
    links = [
        Link(a, b, float(chance.randint(1, 9)))
        for a in names
        for b in names
        if a != b and chance.random() < 0.4
    ]
    return Topology(f"drawn {seed}", (*gpus, *switches), tuple(links))


def worst_cut(topology: Topology) -> float:
    """Return GPUs inside over the bandwidth that leaves, the largest over all sets, in s/GB."""
    names = [each.name for each in topology.devices]
    worst = 0.0
    for mask in range(1, 2 ** len(names) - 1):
        inside = {name for i, name in enumerate(names) if mask >> i & 1}
        gpus = len(inside.intersection(topology.ranks))
        if 0 < gpus < len(topology.ranks):
            leaves = [each for each in topology.links if each.src in inside]
            rate = sum(each.bandwidth for each in leaves if each.dst not in inside)
            worst = max(worst, gpus / rate)
    return worst


def test_cuts_flows_and_rows_for_switches_differ_on_one_way_links():
    """Not Eulerian: cut 2 < (3.10) 3 < (3.13) 4, which is what duplicates say."""
    asked = ask(drawn(3), "all-gather")
    found = {c: seconds(solve_plain(asked, copies=c)) for c in ("free", "relaxed", "exact")}
    assert worst_cut(asked.topology) == pytest.approx(2.0)
    assert found == pytest.approx({"free": 3.0, "relaxed": 4.0, "exact": 4.0})


def test_bounds_keep_their_order_on_clusters_drawn_by_chance():
    compared = 0
    for seed in range(24):
        try:
            asked = ask(drawn(seed), "all-gather")
        except ProblemError:  # some GPU cannot be reached
            continue
        costs = link_costs(asked.topology, "none")
        kinds = ("free", "relaxed", "counted", "exact", "subsets")
        found = [seconds(solve_plain(asked, copies=each, costs=costs)) for each in kinds]
        free, relaxed, counted, duplicates, labels = found
        assert worst_cut(asked.topology) <= free * (1 + 1e-6)
        assert free <= relaxed * (1 + 1e-6)
        assert relaxed <= counted * (1 + 1e-6)
        assert counted <= labels * (1 + 1e-6)
        # All that copies wants the data, so duplicates are exact.
        assert duplicates == pytest.approx(labels, rel=1e-6)
        compared += 1
    assert compared >= 10


def test_usage_keeps_to_the_rows_and_duals_name_the_bottleneck():
    """All must reach a GPU over NVLink at 300 GB/s or its port at 200: it takes 3 GB from 500."""
    topology = rails(2, gpus=2, up=200.0, down=200.0)
    found = solve_plain(ask(topology, "all-gather"), copies="relaxed")
    rates = np.array([each.bandwidth for each in topology.links])
    assert (found.usage <= rates * found.makespan * 1e3 * (1 + 1e-6)).all()
    assert found.duals.sum() == pytest.approx(1.0)
    assert found.duals[rates == 200.0].sum() == pytest.approx(200 / 500, rel=1e-6)
    assert seconds(found) == pytest.approx(3 / 500, rel=1e-6)


def test_time_reversal_gives_sums_and_keeps_memory_from_adding():
    """Four GPUs around a memory that copies: gathering, each link up carries 1 GB and down 3.

    Memory cannot add, so a reduce-scatter sends 3 GB up each link and 3 GB down: the same time.
    A memory that copied backwards would let the way down carry 1 GB.
    """
    links = [link for i in range(4) for link in duplex(f"g{i}", "m", bandwidth=1.0)]
    links = [link if link.src == "m" else Link(link.src, link.dst, 0.5) for link in links]
    devices = [*(device("gpu", f"g{i}") for i in range(4)), device("memory", "m")]
    topology = Topology("memory", tuple(devices), tuple(links))
    assert seconds(solve_plain(ask(topology, "all-gather"))) == pytest.approx(3.0)
    assert seconds(solve_plain(ask(topology, "reduce-scatter"))) == pytest.approx(6.0)


def test_several_collectives_share_the_links():
    """A broadcast of 1 GB from g0 and 1 GB from g1 to g2 on a full triangle at 1 GB/s.

    From g0 and g1 2 GB must come into g2 over 2 GB/s: 1 s; relayed halves use the third link.
    """
    links = [Link(f"g{i}", f"g{j}", 1.0) for i in range(3) for j in range(3) if i != j]
    topology = Topology("triangle", tuple(device("gpu", f"g{i}") for i in range(3)), tuple(links))
    asked = Problem(topology, custom(3, [Chunk(1e9, (0,), (1, 2)), Chunk(1e9, (1,), (2,))]))
    assert seconds(solve_plain(asked)) == pytest.approx(1.0)


def test_what_no_side_can_hold_is_refused_in_words():
    twice = Problem(star(1.0, 1.0, 1.0), custom(3, [Chunk(1e6, (0, 1), (2,))]))
    with pytest.raises(ProblemError, match="chunk 0 is held by 2 ranks"):
        solve_plain(twice)
