"""Which links of a topology are cables, and between which boxes."""

from collections import Counter

from ccl.cabling import cabling_of
from ccl.topology import Link, Topology, device, duplex
from gallery import open_cluster


def test_a_host_is_a_box_and_its_ports_are_called_alike_in_all():
    """Two DGX H100: NVLink stays inside, each GPU has a cable to the switch."""
    made = cabling_of(open_cluster("dgx-h100:hosts=2,fabric=flat"))

    assert [len(names) for names in made.boxes.values()] == [9, 9, 1]
    assert made.switches == {"fabric"}
    assert len(made.cables) == 16
    for host in ("h0", "h1"):
        ports = {each.second.port for each in made.cables if each.second.box == host}
        assert ports == {f"gpu{i}:1" for i in range(8)}
    assert {each.first.port for each in made.cables} == {f"p{i}" for i in range(1, 17)}


def test_parallel_links_are_a_cable_each_and_two_directions_one():
    """A link of three towards b that has one back takes three cables of a third each."""
    links = (Link("a", "b", 150.0, 0.0, "network", 3), Link("b", "a", 50.0, 0.0, "network"))
    made = cabling_of(Topology("pair", (device("gpu", "a"), device("gpu", "b")), links))

    assert [each.bandwidth for each in made.cables] == [50.0] * 3
    assert [each.first.port for each in made.cables] == ["p1", "p2", "p3"]


def test_a_host_with_switches_of_the_network_is_no_box():
    """The groups of a dragonfly are names for many: each GPU and router stands for itself."""
    made = cabling_of(open_cluster("dragonfly:groups=3,routers=2,gpus=2,uplinks=1"))

    assert len(made.boxes) == 3 * 2 * 3
    assert len(made.switches) == 6
    assert Counter(len(names) for names in made.boxes.values()) == {1: 18}


def test_nvlink_between_boxes_is_a_backplane():
    made = cabling_of(open_cluster("gb200-nvl72"))

    assert made.cables == ()
    assert made.backplanes == 72


def test_a_host_that_is_called_as_a_device_is_another_box():
    devices = (device("gpu", "a"), *(device("gpu", f"g{i}", host="a") for i in range(2)))
    links = duplex("a", "g0", bandwidth=50.0)

    assert set(cabling_of(Topology("odd", devices, links)).boxes) == {"a", "host a"}
