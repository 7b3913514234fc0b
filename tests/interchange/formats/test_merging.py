"""Two descriptions of one machine become one. GB/s one way."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings

import gallery
from ccl.collective import all_gather
from ccl.errors import FormatError
from ccl.problem import Problem
from ccl.serialization.documents import document
from ccl.topology import Link, SharedLimit, Topology, device, duplex
from interchange.formats.catalogue import reader
from interchange.formats.format import Request
from interchange.formats.merging import merge
from tests.interchange.formats.strategies import documents, drawings

SAMPLES = Path(__file__).parent / "samples"
MB = 1e6


def machine(name, devices, joined, *, limits=()):
    """Make a topology; `joined` has two names, GB/s and medium of each pair."""
    kinds = {"g": "gpu", "n": "nic", "s": "switch", "m": "memory"}
    made = tuple(device(kinds[each[0]], each, host="h0") for each in devices.split())
    links = [
        link
        for a, b, rate, medium in joined
        for link in duplex(a, b, bandwidth=rate, medium=medium)
    ]
    return document(Topology(name, made, tuple(links), tuple(limits)))


def read(name, content, **said):
    return reader(name).read(content, Request(name="x", settings=said)).document


def ends(made):
    return {frozenset(link.ends) for link in made.topology.links}


def test_links_of_gpus_come_from_the_matrix_and_the_tree_from_hwloc():
    """Two GPUs with NV2, and the tree of the sample: its host's name gives way to the first's."""
    matrix = read("nvidia-smi", b"\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n")
    tree = read("hwloc", (SAMPLES / "hwloc_two_packages.xml").read_bytes())
    made, report = merge(matrix, tree)

    assert ends(made) == ends(matrix) | ends(tree)
    assert made.topology.link("gpu0", "gpu1").medium == "NVLink 2"
    assert made.topology.hosts == ("h0",)
    assert report.assumed == ("hosts are the same: box7 is h0",)
    assert report.taken[0] == "2 GPUs that are called alike"
    again, _ = merge(tree, matrix)
    assert ends(again) == ends(made)
    assert again.topology.hosts == ("box7",)


def test_switches_that_join_the_same_are_the_same_whatever_they_are_called():
    """s0 joins g0, g1 and s9 above; in the second sa joins g0, g1, n0 and sb above."""
    first = machine(
        "a",
        "g0 g1 g2 s0 s9",
        [
            ("g0", "s0", 30, "PCIe 4"),
            ("g1", "s0", 30, "PCIe 4"),
            ("s0", "s9", 30, "PCIe 4"),
            ("g2", "s9", 30, "PCIe 4"),
        ],
    )
    second = machine(
        "b",
        "g0 g1 g2 sb s0 n0",
        [
            ("g0", "sb", 60, "PCIe 5"),
            ("g1", "sb", 60, "PCIe 5"),
            ("sb", "s0", 60, "PCIe 5"),
            ("g2", "s0", 60, "PCIe 5"),
            ("n0", "sb", 60, "PCIe 5"),
        ],
    )
    made, report = merge(first, second)

    assert [each.name for each in made.topology.devices] == ["g0", "g1", "g2", "s0", "s9", "n0"]
    assert made.topology.links[:8] == first.topology.links
    assert made.topology.links[8:] == duplex("n0", "s0", bandwidth=60, medium="PCIe 5")
    assert report.left_out == ("8 links of b that a has",)


def test_a_device_of_the_same_name_that_joins_others_is_another():
    first = machine("a", "g0 g1 s0", [("g0", "s0", 30, "")])
    second = machine("b", "g0 g1 s0", [("g1", "s0", 20, "")])
    made, _ = merge(first, second)

    assert ends(made) == {frozenset({"g0", "s0"}), frozenset({"g1", "s0-2"})}


def test_of_the_same_links_those_of_the_first_stay():
    first = machine("a", "g0 g1", [("g0", "g1", 30, "")])
    second = machine("b", "g0 g1", [("g0", "g1", 20, "")])

    assert merge(first, second)[0] is first
    assert merge(second, first)[0] is second


def test_what_the_first_tells_of_a_gpu_is_not_told_twice():
    """NVLinks of a mesh are not also those into a switch, of which nothing is left."""
    mesh = machine(
        "a", "g0 g1 g2", [(*pair, 50, "NVLink 3") for pair in combinations(("g0", "g1", "g2"), 2)]
    )
    star = machine(
        "b",
        "g0 g1 g2 s0 s1",
        [
            *((f"g{i}", "s0", 100, "NVLink 4") for i in range(3)),
            *((f"g{i}", "s1", 60, "PCIe 5") for i in range(3)),
        ],
    )
    made, report = merge(mesh, star)

    assert [each.name for each in made.topology.devices] == ["g0", "g1", "g2", "s1"]
    assert ends(made) == ends(mesh) | {frozenset({f"g{i}", "s1"}) for i in range(3)}
    assert report.left_out == (
        "6 links of b over nvlink, which a tells of the same GPUs and adapters",
        "1 device of b joined by such links alone; to keep them, give it first",
    )


def test_gpus_are_paired_in_their_order_or_as_told():
    first = machine("a", "g0 g1", [])
    second = machine("b", "gx gy s0", [("gx", "s0", 10, ""), ("gy", "s0", 20, "")])
    in_order, report = merge(first, second)
    crossed, _ = merge(first, second, pairs={"g0": "gy", "g1": "gx"})

    assert report.assumed == ("GPUs are the same in their order: gx is g0, gy is g1",)
    assert [in_order.topology.link(f"g{i}", "s0").bandwidth for i in range(2)] == [10, 20]
    assert [crossed.topology.link(f"g{i}", "s0").bandwidth for i in range(2)] == [20, 10]


@pytest.mark.parametrize("pairs", [{}, {"g0": "gx"}, {"g0": "gx", "g1": "gx"}, {"g0": "s0"}])
def test_pairs_that_do_not_pair_all_are_refused(pairs):
    first, second = machine("a", "g0 g1", []), machine("b", "gx gy s0", [])
    with pytest.raises(FormatError, match="the pairs do not give each of the 2 GPUs of a another"):
        merge(first, second, pairs=pairs)


def test_unequally_many_gpus_are_refused():
    first, second = machine("a", "g0 g1", []), machine("b", "g0", [])
    with pytest.raises(FormatError, match="a has 2 GPUs and b has 1; merge two descriptions"):
        merge(first, second)


def test_limits_and_places_of_what_is_added_come_along():
    bus = SharedLimit("bus", (("m0", "s0"), ("s0", "m0")), 90)
    first = machine(
        "a", "g0 s0", [("g0", "s0", 30, "")], limits=[SharedLimit("bus", (("g0", "s0"),), 20)]
    )
    second = machine("b", "g0 s0 m0", [("g0", "s0", 30, ""), ("m0", "s0", 60, "")], limits=[bus])
    second = replace(second, positions={"m0": (1.0, 2.0), "g0": (3.0, 4.0)})
    made, _ = merge(replace(first, positions={"g0": (5.0, 6.0)}), second)

    assert made.topology.limits == (*first.topology.limits, replace(bus, name="bus-2"))
    assert made.positions == {"m0": (1.0, 2.0), "g0": (5.0, 6.0)}


def test_a_host_that_only_the_second_tells_is_taken():
    first = document(
        Topology("a", (device("gpu", "g0"), device("gpu", "g1")), (Link("g0", "g1", 9),))
    )
    made, _ = merge(first, machine("b", "g0 g1", []))

    assert made.topology.hosts == ("h0",)


def test_a_problem_stays_where_nothing_is_added_and_is_told_where_something_is():
    mesh = gallery.nvidia.dgx_1v()
    posed = document(Problem(mesh, all_gather(8, 8 * MB)))
    tree = document(
        replace(
            mesh,
            devices=(*mesh.devices, device("switch", "s0")),
            links=duplex("g0", "s0", bandwidth=1),
            declared=(),
        )
    )

    assert merge(posed, document(mesh))[0] is posed
    made, report = merge(posed, tree)
    assert made.kind == "topology"
    assert any(each.startswith("the problem of DGX-1V") for each in report.left_out)


@settings(deadline=None, max_examples=30)
@given(documents())
def test_merged_with_itself_a_document_is_itself(drawn):
    assert merge(drawn, drawn)[0] is drawn


@settings(deadline=None, max_examples=30)
@given(drawings())
def test_links_of_gpus_and_all_others_make_the_whole_again(drawn):
    """Split into links between two GPUs and links to other devices, nothing is told twice."""
    whole = replace(
        drawn.topology,
        limits=(),
        links=tuple(replace(each, medium="") for each in drawn.topology.links),
    )
    ranks = set(whole.ranks)
    direct = [each for each in whole.links if {*each.ends} <= ranks]
    others = [each for each in whole.links if not {*each.ends} <= ranks]
    gpus = tuple(each for each in whole.devices if each.kind == "gpu")
    first = document(Topology(whole.name, gpus, tuple(direct)))
    made, _ = merge(first, document(replace(whole, links=tuple(others))))

    assert set(made.topology.devices) == set(whole.devices)
    assert set(made.topology.links) == set(whole.links)
    assert made.topology.ranks == whole.ranks


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.filter_too_much])
@given(drawings(), drawings())
def test_the_first_stays_whole_and_in_front(one, other):
    assume(len(one.topology.ranks) == len(other.topology.ranks))
    made, _ = merge(one, other)

    count = len(one.topology.devices)
    assert [each.name for each in made.topology.devices[:count]] == list(one.topology.index)
    assert made.topology.links[: len(one.topology.links)] == one.topology.links
    assert made.topology.limits[: len(one.topology.limits)] == one.topology.limits
    assert made.topology.ranks == one.topology.ranks
