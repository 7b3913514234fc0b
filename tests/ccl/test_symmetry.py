"""Automorphisms: how many there are by hand, and each judged link by link without the module."""

import itertools
import math
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from ccl.collective import Chunk, Collective, all_gather, all_to_all, custom, make_collective
from ccl.symmetry import Symmetry, symmetry_of
from ccl.topology import SharedLimit, Topology
from gallery import open_cluster


def links_after(topology: Topology, image: dict[str, str]) -> Counter:
    """Return the links with their devices renamed."""
    return Counter(
        (image[link.src], image[link.dst], link.bandwidth, link.alpha) for link in topology.links
    )


def limits_after(topology: Topology, image: dict[str, str]) -> Counter:
    """Return the shared limits with their devices renamed."""
    return Counter(
        (limit.bandwidth, frozenset((image[src], image[dst]) for src, dst in limit.links))
        for limit in topology.limits
    )


def judge(symmetry: Symmetry) -> None:
    """Claim that it is a group of automorphisms that leaves no GPU in its place."""
    topology = symmetry.topology
    names = [each.name for each in topology.devices]
    same = {name: name for name in names}
    rows = [tuple(row) for row in symmetry.devices.tolist()]
    assert rows[0] == tuple(range(len(names)))
    assert len(set(rows)) == symmetry.order
    for row in rows:
        image = {name: names[place] for name, place in zip(names, row, strict=True)}
        assert sorted(image.values()) == sorted(names)
        assert links_after(topology, image) == links_after(topology, same)
        assert limits_after(topology, image) == limits_after(topology, same)
        for each in topology.devices:
            assert replace(topology.device(image[each.name]), name="any", host=None) == replace(
                each, name="any", host=None
            )
        if row != rows[0]:
            assert all(image[gpu] != gpu for gpu in topology.ranks)
    for first, second in itertools.product(rows, repeat=2):
        assert tuple(first[place] for place in second) in rows


def still(symmetry: Symmetry) -> int:
    """Count links that an element other than the identity leaves where they are."""
    ends = [
        (symmetry.topology.index[link.src], symmetry.topology.index[link.dst])
        for link in symmetry.topology.links
    ]
    return sum(
        (row[src], row[dst]) == (src, dst)
        for row in symmetry.devices[1:].tolist()
        for src, dst in ends
    )


def with_slow(topology: Topology, *pairs: tuple[str, str]) -> Topology:
    """Return the cluster with some links at 1 GB/s."""
    return replace(
        topology,
        links=tuple(
            replace(link, bandwidth=1.0) if link.ends in pairs else link for link in topology.links
        ),
    )


def renamed(topology: Topology, seed: int) -> Topology:
    """Give the devices other names and the links another order; ranks keep theirs."""
    chance = random.Random(seed)
    new = [f"device {number}" for number in range(len(topology.devices))]
    chance.shuffle(new)
    name = {each.name: other for each, other in zip(topology.devices, new, strict=True)}
    links = [replace(each, src=name[each.src], dst=name[each.dst]) for each in topology.links]
    chance.shuffle(links)
    devices = tuple(replace(each, name=name[each.name]) for each in topology.devices)
    return Topology("renamed", devices, tuple(links))


ORDERS = {
    "ring:gpus=3": (3, 3),
    "ring:gpus=4": (4, 4),
    "ring:gpus=7": (7, 7),
    "ring:gpus=12": (12, 12),
    "torus:shape=4x4": (16, 16),
    "torus:shape=3x5": (15, 15),
    "hypercube": (8, 8),
    "hypercube:dimension=4": (16, 16),
    "full-mesh:gpus=6": (6, 6),
    "star:gpus=8": (8, 8),
    "line:gpus=5": (1, 1),
    "dgx-1v": (4, 4),
    "ndv2:hosts=2": (2, 2),
    "ndv2:hosts=3": (3, 3),
    "ndv2:hosts=4": (4, 4),
    "dgx-2:hosts=2": (32, 16),
    "dgx-2-te-ccl": (16, 16),
    "fat-tree": (16, 16),
    "fat-tree:radix=6": (54, 54),
    "fat-tree:radix=8": (128, 128),
    "leaf-spine": (16, 8),
    "rail-optimised": (16, 16),
}
"""Cluster -> order of the group, and of the one that moves every link too.

A group that leaves no GPU in its place has at most as many elements as there are GPUs, and its
order divides the number of GPUs of each sort. Turning rings, the axes of a torus, the bits of a
hypercube and the GPUs around a switch reaches that number. A line has only its reflection, and the
middle of five stays. DGX-1V is judged below by trying everything. In NDv2 one GPU of each host
writes to the network, so there are as many elements as hosts at most. In TE-CCL's DGX-2 half of
the 32 GPUs write to the other box. In DGX-2 two GPUs share a NIC: what exchanges them leaves the
links of the NIC to the network where they are, so that only half of the group moves all links. A
fat-tree has as many links between two levels as GPUs, and its planes and cores may be turned with
them; four leaves and two spines are joined by eight links each way, of which no more can move.
"""


@pytest.mark.parametrize("spec", ORDERS)
def test_the_group_has_the_order_that_counting_gives(spec):
    topology = open_cluster(spec)
    found = symmetry_of(topology), symmetry_of(topology, links=True)

    assert tuple(each.order for each in found) == ORDERS[spec]
    for each in found:
        judge(each)
    assert still(found[1]) == 0


def test_no_group_on_a_dgx_1v_is_larger():
    """All 40,320 permutations are tried, and what GPUs are taken to by those that keep the links.

    A group that leaves no GPU in its place takes each to as many as it has elements, so their
    number divides that of the GPUs that any one can be taken to.
    """
    topology = open_cluster("dgx-1v")
    speed = np.zeros((8, 8))
    for link in topology.links:
        speed[topology.rank[link.src], topology.rank[link.dst]] = link.bandwidth
    every = np.array(list(itertools.permutations(range(8))))
    kept = (speed[every[:, :, None], every[:, None, :]] == speed).all(axis=(1, 2))
    orbits = {frozenset(np.unique(every[kept][:, rank]).tolist()) for rank in range(8)}

    found = symmetry_of(topology)

    most = math.gcd(*(len(orbit) for orbit in orbits))
    group = {tuple(row) for row in every[kept].tolist()}
    assert most == 4
    assert found.order == most
    assert {tuple(row) for row in found.devices.tolist()} <= group


def test_a_slower_cable_leaves_what_exchanges_its_ends():
    """Of the 8 exchanges of bits of a cube, only that of the lowest takes {g0, g1} to itself."""
    cube = with_slow(open_cluster("hypercube"), ("g0", "g1"), ("g1", "g0"))

    found = symmetry_of(cube)

    judge(found)
    assert found.devices.tolist() == [[0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 3, 2, 5, 4, 7, 6]]


@pytest.mark.parametrize("spec", ["ring:gpus=6", "hypercube", "torus:shape=4x4", "star:gpus=4"])
def test_one_slower_link_leaves_nothing(spec):
    """Its first GPU is the only one that it leaves, or that it enters."""
    whole = open_cluster(spec)

    assert symmetry_of(with_slow(whole, whole.links[0].ends)).order == 1


def test_two_slower_links_leave_what_exchanges_them():
    """On a ring of 6, g0->g1 and g3->g4 are exchanged by half a turn, and by nothing else."""
    ring = with_slow(open_cluster("ring:gpus=6"), ("g0", "g1"), ("g3", "g4"))

    found = symmetry_of(ring)

    judge(found)
    assert found.devices.tolist() == [[0, 1, 2, 3, 4, 5], [3, 4, 5, 0, 1, 2]]


def test_a_longer_latency_counts_as_a_slower_link():
    ring = open_cluster("ring:gpus=5")
    first, *others = ring.links

    assert symmetry_of(replace(ring, links=(replace(first, alpha=9.0), *others))).order == 1


@pytest.mark.parametrize("change", [{"copies": False}, {"reduces": False}, {"buffer_bytes": 1e6}])
def test_a_gpu_of_another_sort_stays_where_it_is(change):
    ring = open_cluster("ring:gpus=5")
    first, *others = ring.devices

    assert symmetry_of(replace(ring, devices=(replace(first, **change), *others))).order == 1


def test_shared_limits_are_kept():
    """On a ring of 6 a limit over what leaves g0 leaves nothing; one on each of g0, g2, g4 thirds.

    With another bandwidth on g4 nothing is left again.
    """
    ring = open_cluster("ring:gpus=6")

    def limit(number: int, bandwidth: float = 60.0) -> SharedLimit:
        ends = tuple(link.ends for link in ring.links_out[f"g{number}"])
        return SharedLimit(f"limit {number}", ends, bandwidth)

    def order(*limits: SharedLimit) -> int:
        found = symmetry_of(replace(ring, limits=limits))
        judge(found)
        return found.order

    assert order(limit(0)) == 1
    assert order(limit(0), limit(2), limit(4)) == 3
    assert order(limit(0), limit(2), limit(4, 61.0)) == 1


def test_links_that_share_a_limit_share_one_afterwards():
    """On a ring of 4 every link is under one limit of 60 GB/s with one other.

    With what leaves the same GPU at g0 and g1, with what goes the same way round at g2 and g3: so
    no turn is left, only what exchanges g0 with g1 and g2 with g3 and turns both ways round.
    """
    ring = open_cluster("ring:gpus=4")
    pairs = ("01 03", "12 10", "23 30", "21 32")
    limits = tuple(
        SharedLimit(pair, tuple((f"g{each[0]}", f"g{each[1]}") for each in pair.split()), 60.0)
        for pair in pairs
    )

    found = symmetry_of(replace(ring, limits=limits))

    judge(found)
    assert found.devices.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]


@pytest.mark.parametrize("spec", ["ring:gpus=12", "dgx-1v", "ndv2:hosts=2", "dgx-2-te-ccl"])
@pytest.mark.parametrize("seed", [1, 2])
def test_names_and_the_order_of_links_do_not_count(spec, seed):
    found = symmetry_of(renamed(open_cluster(spec), seed))

    judge(found)
    assert found.order == ORDERS[spec][0]


@pytest.mark.parametrize("spec", ["ring:gpus=6", "hypercube", "dgx-1v", "torus:shape=4x4"])
@pytest.mark.parametrize("seed", range(4))
def test_with_the_ranks_in_any_order_what_is_found_is_a_group(spec, seed):
    """Numbers that show nothing may hide it all; nothing wrong may be found in them."""
    topology = open_cluster(spec)
    devices = list(topology.devices)
    random.Random(seed).shuffle(devices)

    found = symmetry_of(replace(topology, devices=tuple(devices)))

    judge(found)
    assert len(topology.ranks) % found.order == 0


@pytest.mark.parametrize("spec", ORDERS)
def test_images_of_links_join_the_images_of_their_ends(spec):
    symmetry = symmetry_of(open_cluster(spec))
    links, index = symmetry.topology.links, symmetry.topology.index

    for row, images in zip(symmetry.devices, symmetry.links, strict=True):
        for link, image in zip(links, images.tolist(), strict=True):
            assert row[index[link.src]] == index[links[image].src]
            assert row[index[link.dst]] == index[links[image].dst]


def judge_chunks(symmetry: Symmetry, collective: Collective) -> None:
    """Claim that the images of chunks are permutations that take ranks along."""
    images = symmetry.chunks(collective)
    assert images is not None
    assert images.shape == (symmetry.order, len(collective.chunks))
    assert images[0].tolist() == list(range(len(collective.chunks)))
    for ranks, row in zip(symmetry.ranks.tolist(), images.tolist(), strict=True):
        assert sorted(row) == list(range(len(collective.chunks)))
        for chunk, image in zip(collective.chunks, row, strict=True):
            other = collective.chunks[image]
            assert {ranks[rank] for rank in chunk.holders} == set(other.holders)
            assert {ranks[rank] for rank in chunk.destinations} == set(other.destinations)
            assert replace(chunk, holders=(0,), destinations=(0,)) == replace(
                other, holders=(0,), destinations=(0,)
            )
    turned = symmetry.turned(collective)
    assert turned is not None
    some = np.arange(0, len(collective.chunks), 2)
    assert (symmetry.images(turned, some) == images[:, some]).all()
    assert set(symmetry.representatives(turned)) == set(symmetry.orbits(images))


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-reduce", "all-to-all"])
@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("spec", ["ring:gpus=5", "dgx-1v", "ndv2:hosts=2"])
def test_chunks_go_where_their_ranks_go(spec, kind, chunks):
    symmetry = symmetry_of(open_cluster(spec))

    judge_chunks(symmetry, make_collective(kind, len(symmetry.topology.ranks), 1e6, chunks=chunks))


def test_images_of_shards_by_hand():
    """Two chunks for each of three ranks: turning by one takes 0, 1 to 2, 3, and so round."""
    symmetry = symmetry_of(open_cluster("ring:gpus=3"))

    images = symmetry.chunks(all_gather(3, 6e6, chunks=2))

    assert sorted(images.tolist()) == [[0, 1, 2, 3, 4, 5], [2, 3, 4, 5, 0, 1], [4, 5, 0, 1, 2, 3]]
    assert symmetry.orbits(images).tolist() == [0, 1, 0, 1, 0, 1]


def test_a_collective_that_looks_different_somewhere_has_no_images():
    """A root is one place; so is a chunk that is larger, more urgent, or another tenant's."""
    symmetry = symmetry_of(open_cluster("ring:gpus=4"))
    even = all_to_all(4, 1e6)
    first, *others = even.chunks

    assert symmetry.chunks(even) is not None
    for kind in ("broadcast", "reduce", "gather", "scatter"):
        assert symmetry.chunks(make_collective(kind, 4, 1e6)) is None
    for change in ({"size": 9.0}, {"priority": 2.0}, {"tenant": "b"}, {"destinations": (2, 3)}):
        assert symmetry.chunks(custom(4, [replace(first, **change), *others])) is None


def test_a_demand_of_neighbours_has_images_whatever_its_order():
    """Each rank of a ring sends to the next; listed from the last to the first."""
    wanted = custom(5, [Chunk(1e3, (rank,), ((rank + 1) % 5,)) for rank in reversed(range(5))])

    judge_chunks(symmetry_of(open_cluster("ring:gpus=5")), wanted)


def test_a_cluster_of_one_gpu_has_only_the_identity():
    one = open_cluster("ring:gpus=3")
    alone = Topology("one", one.devices[:1], ())

    assert symmetry_of(alone).order == 1


# What leaves no link in its place


@pytest.mark.parametrize(
    ("spec", "order", "moving"),
    [("dgx-1v", 4, 4), ("gb200-nvl72", 72, 72), ("fat-tree", 16, 16), ("dgx-h100:hosts=4", 32, 8)],
)
def test_the_part_that_moves_all_links(spec, order, moving):
    """In a fat-tree all do where planes and cores change places with GPUs and leaves."""
    symmetry = symmetry_of(open_cluster(spec))
    links = np.arange(symmetry.links.shape[1])

    part = symmetry.moving(links)

    assert (symmetry.order, part.order) == (order, moving)
    judge(part)
    assert not (part.links[1:] == links).any()


def test_only_links_that_count_must_move():
    """Turning the hosts leaves the links of rails to the spine; without them all 32 are left."""
    topology = open_cluster("dgx-h100:hosts=4")
    symmetry = symmetry_of(topology)
    kinds = [topology.device(link.dst).kind for link in topology.links]
    links = np.flatnonzero([kind == "gpu" for kind in kinds])

    assert symmetry.moving(links).order == 32


@pytest.mark.parametrize("spec", ["fat-tree", "torus", "dgx-h100:hosts=4", "ring:gpus=6"])
def test_cosets_are_what_a_part_makes_of_an_element(spec):
    symmetry = symmetry_of(open_cluster(spec))
    part = symmetry.moving(np.arange(symmetry.links.shape[1]))

    cosets = symmetry.cosets(part)

    assert sorted(cosets.ravel().tolist()) == list(range(symmetry.order))
    for row in cosets:
        images = part.devices[:, symmetry.devices[row[0]]]
        assert (images == symmetry.devices[row]).all()
