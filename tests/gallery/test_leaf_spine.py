"""Leaf and spine: counts of switches and links, ports within radix, bisection, faults by field."""

import itertools

import igraph
import pytest

from ccl.errors import ProblemError
from gallery import open_cluster
from gallery.build import Wire
from gallery.leaf_spine import Plan, build, find_faults, size_fabric

WIRE = Wire(bandwidth=50.0, alpha=1.0, medium="network")
HALF = Wire(bandwidth=25.0, alpha=1.0, medium="network")


def plan(**numbers):
    """Return a plan of 16 hosts with eight GPUs and NICs, all links alike."""
    usual = {"hosts": 16, "gpus": 8, "nics": 8, "leaf_radix": 32, "spine_radix": 32}
    wires = dict.fromkeys(("inner", "bus", "port", "uplink"), WIRE)
    return Plan(**{**usual, **wires, **numbers})


@pytest.mark.parametrize(
    ("numbers", "leaves", "spines", "parallel"),
    [
        # Eight rails of one leaf: 16 ports down, 16 up, 8 x 4 of each spine's 32.
        ({}, 8, 4, 4),
        # Twice as much from below: 8 links up, 8 x 4 of each spine's 32.
        ({"oversubscription": 2.0}, 8, 2, 4),
        # 16 ports take 8 hosts: two leaves a rail, 8 links up each, 16 x 2 of each spine's 32.
        ({"leaf_radix": 16}, 16, 4, 2),
        # Links up that are half as fast are twice as many: for 8 hosts a leaf, 8 + 16 ports.
        ({"uplink": HALF}, 16, 8, 2),
        # All NICs of a host on one leaf: two hosts make 16 + 16 ports.
        ({"rails": False}, 8, 4, 4),
        # All in one leaf: nothing above.
        ({"rails": False, "hosts": 4}, 1, 0, 0),
        # Chosen leaves: four a rail, 4 hosts each, 4 links up, 32 x 1 of each spine's 32.
        ({"leaves": 32}, 32, 4, 1),
    ],
)
def test_switches_follow_from_radix_and_oversubscription(numbers, leaves, spines, parallel):
    """Derived by hand beside each case."""
    wanted = plan(**numbers)
    fabric = size_fabric(wanted)

    assert (fabric.leaves, fabric.spines, fabric.parallel) == (leaves, spines, parallel)
    assert fabric.leaf_ports <= wanted.leaf_radix
    assert fabric.spine_ports <= wanted.spine_radix
    assert fabric.oversubscription <= wanted.oversubscription
    assert sum(fabric.groups) == wanted.hosts


@pytest.mark.parametrize("joined", ["switch", "mesh", "ring"])
@pytest.mark.parametrize(("gpus", "nics"), [(8, 8), (8, 2), (2, 4), (1, 1)])
@pytest.mark.parametrize("rails", [True, False])
def test_the_drawing_has_what_was_planned(joined, gpus, nics, rails):
    """Each switch has the ports that its fabric says, and each GPU its links in the host."""
    wanted = plan(hosts=5, gpus=gpus, nics=nics, joined=joined, rails=rails, leaf_radix=16)
    fabric = size_fabric(wanted)
    made = build(wanted, "planned")

    kinds = [each.kind for each in made.devices]
    assert (kinds.count("gpu"), kinds.count("nic")) == (5 * gpus, 5 * nics)
    assert kinds.count("switch") == (
        fabric.leaves + fabric.spines + 5 * (joined == "switch" and gpus > 1)
    )
    ports = {each.name: 0 for each in made.devices}
    inner = dict(ports)
    for link in made.links:
        ports[link.src] += link.count
        inner[link.src] += not link.dst.startswith("nic")
    assert max(ports[f"leaf{i}"] for i in range(fabric.leaves)) == fabric.leaf_ports
    assert all(ports[f"spine{i}"] == fabric.spine_ports for i in range(fabric.spines))
    of_gpu = {"switch": 1, "mesh": gpus - 1, "ring": 2 if gpus > 3 else gpus - 1}[joined]
    assert inner["g0"] == (of_gpu if gpus > 1 else 0)
    assert ports["g0"] - inner["g0"] == max(1, nics // gpus)


@pytest.mark.parametrize("uplink", [WIRE, HALF])
@pytest.mark.parametrize(
    "numbers",
    [
        {"hosts": 6, "nics": 2, "leaf_radix": 4, "oversubscription": 2.0},
        {"hosts": 7, "nics": 2, "leaf_radix": 5, "oversubscription": 1.5},
        {"hosts": 5, "nics": 1, "leaf_radix": 3, "oversubscription": 4.0},
        {"hosts": 6, "nics": 2, "leaf_radix": 64, "rails": False},
        {"hosts": 7, "nics": 2, "leaf_radix": 9, "rails": False, "oversubscription": 3.0},
    ],
)
def test_bisection_is_the_least_cut_between_two_halves_of_the_hosts(numbers, uplink):
    """By a maximal flow for every choice of a half; inside hosts nothing limits."""
    wide = Wire(bandwidth=1e6, alpha=1.0, medium="inside")
    wanted = plan(**{"gpus": 2, **numbers}, inner=wide, bus=wide, uplink=uplink)
    made = build(wanted, "planned")
    index, hosts = made.index, made.hosts
    near, far = len(index), len(index) + 1
    graph = igraph.Graph(
        len(index) + 2,
        [(index[each.src], index[each.dst]) for each in made.links]
        + [(near, index[each.name]) for each in made.devices]
        + [(index[each.name], far) for each in made.devices],
        directed=True,
    )
    fixed = [each.bandwidth for each in made.links]
    cuts = []
    for half in itertools.combinations(hosts, len(hosts) // 2):
        starts = [1e9 * (each.kind == "gpu" and each.host in half) for each in made.devices]
        ends = [1e9 * (each.kind == "gpu" and each.host not in half) for each in made.devices]
        cuts.append(graph.maxflow_value(near, far, capacity=fixed + starts + ends))

    assert size_fabric(wanted).bisection == pytest.approx(min(cuts))


@pytest.mark.parametrize(
    ("numbers", "field", "words"),
    [
        ({"hosts": 1}, "hosts", "hosts must be from 2 to 2,048, got 1"),
        ({"oversubscription": 0}, "oversubscription", "must be from 0.1 to 64, got 0"),
        ({"nics": 3}, "nics", "3 NICs cannot be shared evenly by 8 GPUs"),
        ({"hosts": 2048, "gpus": 16, "nics": 1}, "gpus", "2,048 hosts of 16 GPUs are 32,768 GPUs"),
        ({"leaf_radix": 2, "rails": False}, "leaf_radix", "8 ports for one host and 8 up"),
        ({"leaf_radix": 16, "leaves": 8}, "leaves", "give 16 leaves or more"),
        ({"leaves": 12}, "leaves", "8 rails need a multiple of 8 leaves, got 12"),
        ({"leaves": 256}, "leaves", "16 hosts can use at most 128 leaves, got 256"),
        ({"spine_radix": 4}, "spine_radix", "a port for each of 8 leaves"),
    ],
)
def test_what_does_not_fit_is_said_of_its_field(numbers, field, words):
    faults = find_faults(plan(**numbers))

    assert list(faults) == [field]
    assert words in faults[field]
    with pytest.raises(ProblemError, match=r"^leaf and spine: "):
        size_fabric(plan(**numbers))


def test_all_numbers_out_of_range_are_said_at_once():
    assert set(find_faults(plan(hosts=0, nics=0))) == {"hosts", "nics"}


def test_a_thousand_gpus_open_by_name():
    """128 hosts of eight: eight rails, two leaves each of 64 hosts down and 32 links up."""
    made = open_cluster(
        "leaf-spine:hosts=128,gpus=8,nics=8,leaf_radix=96,spine_radix=64,oversubscription=2"
    )

    switches = [each.name for each in made.devices if each.kind == "switch"]
    assert len(made.ranks) == 1024
    assert sum(name.startswith("leaf") for name in switches) == 16
    assert sum(name.startswith("spine") for name in switches) == 8


def test_a_gpu_that_stands_alone_has_no_bus_of_a_host_before_its_port():
    """In a host PCIe 5 ×16 stands before a port of 200 GB/s; who names a bus gets it."""
    fast = "leaf-spine:hosts=8,nics=1,network_bandwidth=200,spine_bandwidth=200,gpus="
    alone, hosted = open_cluster(f"{fast}1"), open_cluster(f"{fast}2")
    named = open_cluster(f"{fast}1,bus_bandwidth=64")

    assert {each.bandwidth for each in alone.links} == {200.0}
    for made in (hosted, named):
        assert {each.bandwidth for each in made.links if each.medium == "PCIe"} == {64.0}
