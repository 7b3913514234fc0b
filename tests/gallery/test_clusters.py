"""The clusters have the devices and links that their sources give them."""

import pytest

import gallery
from ccl.topology import Topology


def counts(topology: Topology) -> tuple[int, int, int]:
    return len(topology.ranks), len(topology.devices), len(topology.links)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ring:gpus=6", (6, 6, 12)),
        ("line:gpus=6", (6, 6, 10)),
        ("star:gpus=6", (6, 7, 12)),
        ("full-mesh:gpus=6", (6, 6, 30)),
        ("torus:shape=4x4x4", (64, 64, 384)),
        ("torus:shape=2x3", (6, 6, 18)),
        ("mesh:shape=3x3", (9, 9, 24)),
        ("hypercube:dimension=4", (16, 16, 64)),
        ("dgx-1v", (8, 8, 32)),
        ("ndv2:hosts=1", (8, 8, 32)),
        ("ndv2:hosts=2", (16, 16, 66)),
        ("ndv2:hosts=4", (32, 33, 32 * 4 + 2 * 4)),
        ("dgx-2", (16, 17, 32)),
        ("dgx-2:hosts=2", (32, 32 + 2 + 16 + 1, 64 + 64 + 32)),
        ("dgx-2-te-ccl", (32, 34, 80)),
        ("taccl-c", (32, 34, 80)),
        ("dgx-a100:hosts=4,fabric=rail-only", (32, 9 * 4 + 8, 32 * 4)),
        ("dgx-a100:hosts=4,fabric=rail", (32, 9 * 4 + 9, 32 * 4 + 16)),
        ("dgx-a100:hosts=4,fabric=flat", (32, 9 * 4 + 1, 32 * 4)),
        ("dgx-a100:planes=true", (8, 14, 96)),
        ("dgx-h100:planes=true", (8, 12, 64)),
        ("gb200-nvl72:planes=true", (72, 90, 2 * 18 * 72)),
        ("mi250", (16, 16, 56)),
        ("mi250:hosts=3", (48, 49, 56 * 3 + 32 * 3)),
        ("amd-te-ccl:hosts=2", (32, 24 * 2 + 1, 2 * (56 + 32 + 16))),
        ("te-ccl-internal-1", (8, 9, 2 * 8 + 2 * 8)),
        ("te-ccl-internal-2:hosts=16", (32, 33, 16 * 2 + 2 * 32)),
        ("te-ccl-internal-2:hosts=1", (2, 2, 2)),
        ("mi300x", (8, 8, 56)),
        ("tpu-v4:shape=4x4x8", (128, 128, 768)),
        ("tpu-v4:shape=2x2x1", (4, 4, 8)),
        ("fat-tree:radix=4", (16, 36, 96)),
        ("dragonfly:groups=9", (72, 108, 2 * 72 + 9 * 12 + 9 * 8)),
        ("rail-only:hosts=4,gpus=8", (32, 44, 128)),
        ("ring:gpus=8,chord_bandwidth=1", (8, 8, 56)),
        ("star:gpus=6,wide=2", (6, 7, 12)),
        ("random:gpus=64,switches=16,degree=4", (64, 80, 320)),
        ("random:gpus=2,switches=1,degree=2", (2, 3, 6)),
        ("thesis-2.1", (3, 3, 4)),
        ("thesis-2.5", (4, 4, 4)),
        ("thesis-2.6", (4, 4, 6)),
        ("thesis-2.7", (2, 3, 4)),
        ("thesis-dgx-a100:hosts=16", (128, 152, 512)),
        ("thesis-dgx-a100:hosts=2,used=no-nvlink", (16, 50, 2 * (24 + 16 + 16))),
        ("thesis-dgx-a100:hosts=2,used=all", (16, 52, 2 * (24 + 16 + 16) + 32)),
        ("forestcoll-12", (8, 11, 32)),
        ("pcie-server", (8, 13, 24)),
        ("pcie-server:hosts=2,nvlink=true", (16, 52, 2 * (24 + 16 + 16) + 32)),
    ],
)
def test_gpus_devices_and_links_are_as_many_as_the_sources_say(name, expected):
    assert counts(gallery.open_cluster(name)) == expected


@pytest.mark.parametrize("entry", gallery.catalog(), ids=lambda entry: entry.name)
def test_bandwidth_in_and_out_is_equal_at_every_device_but_where_ports_are_one_way(entry):
    """Trees reach the cut bound of an all-gather where this holds."""
    topology = gallery.open_cluster(entry.name)
    uneven = {
        each.name
        for each in topology.devices
        if sum(link.bandwidth for link in topology.links_in[each.name])
        != pytest.approx(sum(link.bandwidth for link in topology.links_out[each.name]))
    }

    one_way = {
        "ndv2": {"g0", "g1", "g8", "g9"},
        "dgx-2-te-ccl": set(topology.ranks),
        "taccl-c": set(topology.ranks),
    }
    if not entry.name.startswith("te-ccl-2"):
        assert uneven == one_way.get(entry.name, set())


def test_two_ndv2_have_one_direct_link_each_way():
    topology = gallery.open_cluster("ndv2:hosts=2")

    between = [
        link
        for link in topology.links
        if topology.device(link.src).host != topology.device(link.dst).host
    ]
    assert [(link.src, link.dst, link.bandwidth, link.alpha) for link in between] == [
        ("g0", "g9", 12.5, 1.3),
        ("g8", "g1", 12.5, 1.3),
    ]


def test_a_chunk_of_the_appendix_of_taccl_takes_what_it_says():
    """8 µs over NVLink and 107 over InfiniBand for 1 MB, without latency; odd GPUs send."""
    topology = gallery.open_cluster("taccl-c")

    took = {1e6 * link.beta + link.alpha for link in topology.links if "nv" in link.src + link.dst}
    between = [link for link in topology.links if {link.src, link.dst} <= set(topology.ranks)]
    assert took == {8.0}
    assert [1e6 * link.beta + link.alpha for link in between] == pytest.approx([107.0] * 16)
    assert all(int(link.src[1:]) % 2 and not int(link.dst[1:]) % 2 for link in between)


def test_four_ndv2_write_from_gpu_0_and_read_at_gpu_1():
    topology = gallery.open_cluster("ndv2:hosts=4,copies=true")

    assert {link.src for link in topology.links_in["fabric"]} == {"g0", "g8", "g16", "g24"}
    assert {link.dst for link in topology.links_out["fabric"]} == {"g1", "g9", "g17", "g25"}
    assert topology.device("fabric").copies


def test_a_cube_mesh_has_six_nvlinks_at_every_gpu():
    topology = gallery.open_cluster("dgx-1v")

    for gpu in topology.ranks:
        assert sum(link.count for link in topology.links_out[gpu]) == 6
        assert sum(link.bandwidth for link in topology.links_out[gpu]) == 150


def test_nvswitches_are_plain_unless_they_are_told_to_copy_and_reduce():
    plain = gallery.open_cluster("dgx-h100").device("nvswitch0")
    able = gallery.open_cluster("dgx-h100:copies=true,reduces=true").device("nvswitch0")

    assert (plain.stores, plain.copies, plain.reduces) == (False, False, False)
    assert (able.stores, able.copies, able.reduces) == (False, True, True)


@pytest.mark.parametrize(
    ("name", "per_gpu"),
    [("dgx-h100", 450), ("dgx-h100:planned=true", 370.8), ("gb200-nvl72:planned=true", 721.8)],
)
def test_planned_rates_are_below_the_data_sheet(name, per_gpu):
    topology = gallery.open_cluster(name)

    assert topology.links_out["g0"][0].bandwidth == pytest.approx(per_gpu)


def test_planes_share_the_bandwidth_of_a_gpu():
    topology = gallery.open_cluster("dgx-h100:planes=true")

    assert [link.count for link in topology.links_out["g0"]] == [5, 5, 4, 4]
    assert sum(link.bandwidth for link in topology.links_out["g0"]) == 450


def test_rails_join_the_same_gpu_of_every_host():
    topology = gallery.open_cluster("dgx-a100:hosts=3")

    assert {link.src for link in topology.links_in["rail2"]} == {"g2", "g10", "g18", "spine"}
    assert topology.link("rail2", "spine").bandwidth == 3 * 25


def test_a_slice_closes_to_a_torus_only_if_it_is_made_of_whole_cubes():
    closed = gallery.open_cluster("tpu-v4:shape=4x4x4")
    grid = gallery.open_cluster("tpu-v4:shape=2x4x4")

    assert {len(links) for links in closed.links_out.values()} == {6}
    assert min(len(links) for links in grid.links_out.values()) == 3
    assert all(sum(d.host == host for d in closed.devices) == 4 for host in closed.hosts)


@pytest.mark.parametrize("groups", range(2, 10))
def test_every_two_groups_of_a_dragonfly_are_joined_in_both_directions(groups):
    topology = gallery.open_cluster(f"dragonfly:groups={groups}")
    between = [
        (topology.device(link.src).host, topology.device(link.dst).host)
        for link in topology.links
        if topology.device(link.src).host != topology.device(link.dst).host
    ]

    assert len(set(between)) == groups * (groups - 1)
    assert all((dst, src) in topology.link_index for src, dst in topology.link_index)


def test_the_memory_limit_counts_reads_and_writes_and_can_be_left_out():
    limited = gallery.open_cluster("pcie-server")
    (limit,) = limited.limits

    assert len(limit.links) == 8
    assert limit.bandwidth < sum(limited.link(*ends).bandwidth for ends in limit.links)
    assert gallery.open_cluster("pcie-server:memory_bandwidth=0").limits == ()
