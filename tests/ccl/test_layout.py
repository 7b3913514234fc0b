"""Drawings that nobody has arranged yet."""

import time

import numpy as np
import pytest

import gallery
from ccl.layout import SIZES, layout
from ccl.topology import Topology

LARGER = [
    "dgx-2:hosts=2",
    "dgx-a100:hosts=16",
    "dgx-h100:hosts=2,planes=true",
    "dragonfly:groups=9",
    "fat-tree:radix=8",
    "full-mesh:gpus=12",
    "hamming-mesh:board=3x3,shape=2x3",
    "hyperx:shape=3x3,concentration=2",
    "gb200-nvl72:planes=true",
    "hypercube:dimension=5",
    "mi250:hosts=2",
    "mi300x:hosts=4,fabric=flat",
    "ndv2:hosts=3",
    "pcie-server:hosts=2,nvlink=true",
    "rail-optimised:units=3,unit_hosts=4",
    "ring:gpus=200",
    "torus:shape=3x3x3",
    "torus:shape=4x6",
    "tpu-v4:shape=2x2x2",
    "twisted-torus:shape=4x4x8,twists=0x4x4",
]
CLUSTERS = [each.name for each in gallery.catalog()] + LARGER


def boxes(topology: Topology) -> np.ndarray:
    """Left, top, right and bottom of each device's box."""
    places = layout(topology)
    centres = np.array([places[each.name] for each in topology.devices])
    halves = np.array([SIZES[each.kind] for each in topology.devices]) / 2
    return np.hstack([centres - halves, centres + halves])


def overlapping(rectangles: np.ndarray) -> list[tuple[int, int]]:
    left, top, right, bottom = rectangles.T
    meet = (left[:, None] < right) & (left < right[:, None])
    meet &= (top[:, None] < bottom) & (top < bottom[:, None])
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(meet, 1))]


@pytest.mark.parametrize("name", CLUSTERS)
def test_no_two_devices_overlap(name):
    topology = gallery.open_cluster(name)

    assert layout(topology).keys() == topology.index.keys()
    assert overlapping(boxes(topology)) == []


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_frames_of_hosts_neither_overlap_nor_hold_strangers(name):
    """A frame reaches 22 pixels beyond the devices of its host."""
    topology = gallery.open_cluster(name)
    rectangles = boxes(topology)
    home = np.array([each.host or "" for each in topology.devices])
    frames = np.array(
        [
            [*rectangles[home == host, :2].min(axis=0), *rectangles[home == host, 2:].max(axis=0)]
            for host in topology.hosts
        ]
    ).reshape(-1, 4) + np.array([-22, -22, 22, 22])

    assert overlapping(frames) == []
    for host, frame in zip(topology.hosts, frames, strict=True):
        strangers = rectangles[home != host]
        inside = (strangers[:, 0] < frame[2]) & (frame[0] < strangers[:, 2])
        inside &= (strangers[:, 1] < frame[3]) & (frame[1] < strangers[:, 3])
        assert not inside.any()


def test_a_torus_is_a_grid_whose_closing_links_pass_beside_its_gpus():
    """The straight line from first to last of a row must clear the boxes in between."""
    places = layout(gallery.open_cluster("torus:shape=4x4"))

    for row in range(4):
        first, *between, last = (places[f"g{4 * row + i}"] for i in range(4))
        assert first[1] == last[1]
        assert all(abs(y - first[1]) > SIZES["gpu"][1] / 2 for _, y in between)


def test_a_twisted_torus_is_drawn_as_the_torus_and_a_circulant_network_as_a_circle():
    """The rows of the first are closed, those of the second lead on to the next."""
    torus = layout(gallery.open_cluster("torus:shape=4x4"))
    circulant = layout(gallery.open_cluster("circulant:jumps=1x4"))

    assert layout(gallery.open_cluster("twisted-torus:shape=4x4,twists=3")) == torus
    assert len({x for x, _ in circulant.values()}) > 4
    assert max(y for _, y in circulant.values()) == circulant["g8"][1]


def test_rows_and_columns_of_boards_have_their_switches_before_them():
    places = layout(gallery.open_cluster("hamming-mesh:board=2x3,shape=2x1"))

    for row, column in np.ndindex(4, 3):
        x, y = places[f"g{3 * row + column}"]
        assert places[f"row{row}"][0] < x > places[f"column{column}"][0]
        assert places[f"row{row}"][1] < y > places[f"column{column}"][1]


def test_units_of_hosts_are_tables_side_by_side():
    places = layout(gallery.open_cluster("rail-optimised:units=2,unit_hosts=4"))

    for host, rail in np.ndindex(8, 4):
        assert places[f"g{4 * host + rail}"][1] == places[f"leaf{host // 4 * 4 + rail}"][1]
    first = [places[f"g{rank}"][0] for rank in range(16)]
    second = [places[f"g{rank}"][0] for rank in range(16, 32)]
    assert max(first) < min(second)
    assert max(first) < sum(places[f"spine{i}"][0] for i in range(2)) / 2 < min(second)


def test_hosts_on_rails_are_a_table():
    """A column for each host under its switch, a row for each rail, its switch in the middle."""
    places = layout(gallery.open_cluster("dgx-h100:hosts=8"))

    for host, rail in np.ndindex(8, 8):
        x, y = places[f"g{8 * host + rail}"]
        assert x == places[f"nvswitch{host}"][0]
        assert y == places[f"rail{rail}"][1]
    assert places["spine"][0] == places["rail0"][0]
    assert places["nvswitch3"][0] < places["rail0"][0] < places["nvswitch4"][0]


def test_links_inside_hosts_are_no_columns():
    places = layout(gallery.open_cluster("mi300x:hosts=4"))

    assert len({places[f"g{rank}"][0] for rank in range(8)}) > 1


@pytest.mark.parametrize("name", ["mi300x:hosts=4", "mi250:hosts=4"])
def test_hosts_with_links_inside_are_ovals_with_a_row_for_each_gpu(name):
    """Links to the switches between hosts run level, at the same heights in all hosts."""
    topology = gallery.open_cluster(name)
    places = layout(topology)
    many = len(topology.ranks) // 4
    heights = np.array([places[rank][1] for rank in topology.ranks]).reshape(4, many)

    assert (heights == heights[0]).all()
    assert np.diff(np.sort(heights[0])).min() > SIZES["gpu"][1]


def test_rows_of_trays_stand_in_the_same_columns():
    """So links of a tray may run down behind the trays below it."""
    places = layout(gallery.open_cluster("gb200-nvl72"))

    assert len({places[f"g{rank}"][0] for rank in range(72)}) == 10


def test_pods_stand_around_their_core():
    """Half of the pods of 16 GPUs above it, upside down, and half below."""
    topology = gallery.open_cluster("fat-tree:radix=8")
    places = layout(topology)
    core = [y for name, (_, y) in places.items() if name.startswith("core")]
    gpus = [places[name][1] for name in topology.ranks]

    assert max(gpus[:64]) < min(core) <= max(core) < min(gpus[64:])
    left, top, right, bottom = boxes(topology).T
    assert (right.max() - left.min()) / (bottom.max() - top.min()) < 4


def test_a_torus_of_three_dimensions_is_a_block():
    """Rows, columns and files are straight and even; no link of a file passes behind a device."""
    topology = gallery.open_cluster("tpu-v4")
    places = layout(topology)
    at = np.array([places[name] for name in topology.ranks]).reshape(4, 4, 4, 2)

    for axis in range(3):
        assert np.ptp(np.diff(at, axis=axis), axis=axis).max() < 1
    heights = at[0, :, :, 1].ravel()
    assert np.diff(np.sort(heights)).min() > SIZES["gpu"][1] / 2 + 5
    assert np.ptp(at[:, :, :, 1], axis=0).max() == 0


def test_one_way_graphs_run_from_left_to_right():
    topology = gallery.open_cluster("te-ccl-2c")
    places = layout(topology)

    assert all(places[link.src][0] < places[link.dst][0] for link in topology.links)


def test_the_order_on_a_circle_follows_the_strong_links():
    """The double links of a DGX-1V close to a ring, so all are sides and none a diagonal."""
    topology = gallery.open_cluster("dgx-1v")
    places = layout(topology)
    sides = [np.hypot(*np.subtract(places[link.src], places[link.dst])) for link in topology.links]
    double = [link.count == 2 for link in topology.links]

    assert max(side for side, is_double in zip(sides, double, strict=True) if is_double) < 110
    assert min(side for side, is_double in zip(sides, double, strict=True) if not is_double) > 110


def test_a_drawing_depends_on_nothing_but_the_topology():
    first, second = (gallery.open_cluster("dgx-a100:hosts=4") for _ in range(2))

    assert layout(first) == layout(second)
    assert min(x for x, _ in layout(first).values()) >= 0


@pytest.mark.parametrize("name", ["dgx-a100:hosts=128", "torus:shape=32x32", "fat-tree:radix=16"])
def test_a_thousand_gpus_are_placed_in_a_second(name):
    topology = gallery.open_cluster(name)
    start = time.process_time()

    assert len(layout(topology)) == len(topology.devices)
    assert time.process_time() - start < 1


def test_an_empty_drawing_has_no_positions():
    assert layout(Topology("nothing", (), ())) == {}


@pytest.mark.parametrize("name", ["circulant:gpus=16384,jumps=1x100", "kautz:gpus=8192"])
def test_large_networks_of_gpus_alone_are_drawn_in_seconds(name):
    """Their sides are counted before links are compared: half a minute of it before."""
    topology = gallery.open_cluster(name)
    began = time.process_time()
    layout(topology)
    assert time.process_time() - began < 15
