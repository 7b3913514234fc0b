"""HammingMesh, dragonfly+ and rails with spines have the counts of their sources."""

import pytest

from ccl.errors import ProblemError
from ccl.symmetry import automorphisms
from gallery import open_cluster
from tests.gallery.graphs import degrees, diameter


def crossing(topology, inside):
    """Return how many links, parallel ones singly, leave the devices that `inside` says yes to."""
    return sum(each.count for each in topology.links if inside(each.src) and not inside(each.dst))


def number(name):
    return int("".join(filter(str.isdigit, name)))


@pytest.mark.parametrize(
    ("gpus", "units", "spines", "trunk"), [(512, 2, 8, 4), (1024, 4, 16, 2), (2048, 8, 32, 1)]
)
def test_switches_and_cables_are_those_of_a_superpod(gpus, units, spines, trunk):
    """A leaf has 32 ports below and 32 above; leaves and spines are gpus / 32 and gpus / 64."""
    topology = open_cluster(
        f"rail-optimised:units={units},unit_hosts=32,gpus=8,spines={spines},trunk={trunk}"
    )
    leaves = [each.name for each in topology.devices if each.name.startswith("leaf")]
    upper = [each.name for each in topology.devices if each.name.startswith("spine")]

    assert len(topology.ranks) == gpus
    assert (len(leaves), len(upper)) == (gpus // 32, gpus // 64)
    for name in leaves + upper:
        assert sum(link.count for link in topology.links_out[name]) == 64
    assert crossing(topology, lambda name: name in leaves) == 2 * gpus


def test_two_spines_for_three_hosts_of_a_unit_are_oversubscribed():
    """Each leaf has 3 links down and 2 up; half of the units are behind 2 x 4 x 2 links."""
    topology = open_cluster("rail-optimised:units=4,unit_hosts=3")
    halves = {*(f"leaf{i}" for i in range(8)), *(f"nvswitch{i}" for i in range(6))}
    halves |= {f"g{i}" for i in range(24)}

    assert [len(topology.links_out["leaf0"]), len(topology.links_out["spine0"])] == [5, 16]
    assert crossing(topology, halves.__contains__) == 2 * 4 * 2


@pytest.mark.parametrize(
    ("groups", "spines", "uplinks"), [(2, 1, 1), (3, 2, 2), (5, 2, 2), (7, 3, 2)]
)
def test_every_two_groups_of_a_dragonfly_plus_are_joined(groups, spines, uplinks):
    """So leaves of two groups are 3 links apart, and GPUs 5."""
    topology = open_cluster(
        f"dragonfly-plus:groups={groups},group_spines={spines},uplinks={uplinks}"
    )
    between = [
        (topology.device(link.src).host, topology.device(link.dst).host)
        for link in topology.links
        if topology.device(link.src).host != topology.device(link.dst).host
    ]

    assert len(set(between)) == groups * (groups - 1)
    assert diameter(topology) == 5
    assert all((dst, src) in topology.link_index for src, dst in topology.link_index)


def test_the_gpus_of_a_dragonfly_plus_are_one_orbit():
    for name in ("dragonfly-plus", "dragonfly-plus:groups=4,group_leaves=3,group_spines=4"):
        topology = open_cluster(name)
        orbits = automorphisms(topology, method="declared").orbits()
        assert len({orbits[topology.index[each]] for each in topology.ranks}) == 1


@pytest.mark.parametrize(("board", "shape"), [("2x2", "4x4"), ("4x4", "2x2"), ("2x3", "2x4")])
def test_every_gpu_of_a_hamming_mesh_has_four_links(board, shape):
    """A switch has two ports for each board of its row or column."""
    topology = open_cluster(f"hamming-mesh:board={board},shape={shape}")
    rows, columns = (int(each) for each in shape.split("x"))

    assert degrees(topology) == {4}
    assert sum(link.count for link in topology.links_out["row0"]) == 2 * columns
    assert sum(link.count for link in topology.links_out["column0"]) == 2 * rows


@pytest.mark.parametrize("side", [1, 2, 4])
def test_the_cut_through_a_hamming_mesh_is_an_nth_of_what_its_gpus_can_send(side):
    """1 / (2 a) of 4 links of each GPU in one half: the paper's bandwidth of Hx2 and Hx4."""
    topology = open_cluster(f"hamming-mesh:board={side}x{side},shape=4x4")
    width = 4 * side
    left = {name for name in topology.ranks if number(name) % width < width // 2}
    # Switches of rows stand on either side of the cut: what leaves the left half enters them.
    left |= {f"column{i}" for i in range(width // 2)}

    assert crossing(topology, left.__contains__) * 2 * side == 4 * len(topology.ranks) // 2


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("hamming-mesh:board=2", "board 2 of a HammingMesh must be two whole numbers, such as 2x2"),
        ("hamming-mesh:shape=0x2", "shape 0x2 of a HammingMesh must be two whole numbers"),
        ("dragonfly-plus:groups=6", "groups of a dragonfly+ must be from 2 to 5, got 6"),
        ("rail-optimised:trunk=0", "parallel links of a leaf and a spine must be from 1 to 512"),
        ("rail-optimised:units=512,unit_hosts=512", "must be from 2 to 16,384, got 1,048,576"),
    ],
)
def test_a_number_that_makes_no_network_is_answered_in_one_sentence(text, answer):
    with pytest.raises(ProblemError) as caught:
        open_cluster(text)

    assert answer in str(caught.value)
