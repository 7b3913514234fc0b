"""Names in pictures grow as the drawing shrinks, as far as their boxes have room."""

from __future__ import annotations

import pytest

from ccl.layout import layout
from ccl.topology import Topology, device
from gallery.registry import open_cluster
from widgets.print.geometry.names import Names, short_name
from widgets.print.geometry.stage import Stage
from widgets.print.sheet import Words, width
from widgets.print.style import LIGHT
from widgets.print.view import View


def named(zoom, *names, kind="gpu", **how):
    """Sizes of the names of devices of a kind."""
    devices = tuple(device(kind, name) for name in names)
    places = {name: (200.0 * i, 0.0) for i, name in enumerate(names)}
    stage = Stage.of(Topology("row", devices, ()), places)
    return [Names(stage, zoom).device(each, **how) for each in stage.devices]


def test_from_afar_names_of_gpus_grow_to_what_their_boxes_have_room_for_and_near_ones_stay():
    """A box is 78 wide, 12 of them beside the name."""
    assert named(1.0, "g127") == [11.0]
    (far,) = named(0.42, "g127")
    assert far * 0.42 >= 10.5
    assert far <= 26
    assert far * width("g127", 1.0) <= 66 + 1e-9
    for zoom in (1.0, 0.42, 0.1):
        assert named(zoom, "accelerator12") == [11.0], "its end is left out"
    assert named(0.1, "rail0", kind="switch")[0] <= 24, "a switch is low"


def test_each_step_away_is_no_smaller():
    for kind in ("gpu", "nic", "memory", "switch"):
        sizes = [named(zoom, "a1", kind=kind)[0] for zoom in (1.0, 0.8, 0.65, 0.55, 0.4)]
        assert sizes == sorted(sizes)
        assert sizes[-1] >= 1.9 * sizes[0]


def test_names_that_are_about_as_long_have_one_size():
    assert len(set(named(0.3, "g0", "g16", "g127"))) == 1
    long, same, short, also = named(0.3, "nvswitch15", "nvswitch0", "rail0", "top", kind="switch")
    assert long == same < short == also


def test_above_a_buffer_there_is_less_room():
    assert named(0.3, "g1", filled=True) < named(0.3, "g1")
    assert named(0.3, "m1", kind="memory", filled=True) == [14.0]


def test_names_whose_size_is_requested_have_it():
    stage = Stage.of(Topology("one", (device("gpu", "accelerator12"),), ()), {})
    names = Names(stage, 0.5, font=9.0)
    assert [names.device(stage.devices[0]), names.hosts, names.pods] == [18.0] * 3


def test_names_of_hosts_are_no_wider_than_their_frames():
    names = ("h1", "a-host-whose-name-is-long")
    devices = tuple(device("gpu", f"g{i}", host=host) for i, host in enumerate(names))
    stage = Stage.of(Topology("two", devices, ()), {"g0": (0.0, 0.0), "g1": (300.0, 0.0)})
    assert Names(stage, 0.3).hosts == 12.0
    rails = open_cluster("dgx-a100:hosts=2")
    assert Names(Stage.of(rails, layout(rails)), 0.3).hosts == 25.0


@pytest.mark.parametrize(("name", "least"), [("dgx-a100:hosts=16", 8.5), ("mi250:hosts=4", 10.0)])
def test_names_of_gpus_of_a_large_cluster_can_be_read(name, least):
    """On a picture of 1,280 pixels; at the sizes before, 18 and 14 units, they had 6.8 and 7.6."""
    topology = open_cluster(name)
    view = View(Stage.of(topology, layout(topology)), LIGHT)
    gpus = {short_name(each) for each in topology.devices if each.kind == "gpu"}
    sizes = {e.size for e in view.still() if isinstance(e, Words) and e.text in gpus}
    assert len(sizes) == 1
    assert sizes.pop() * view.zoom >= least


def test_the_lines_of_a_folded_host_fit_into_its_box():
    topology = open_cluster("dgx-a100:hosts=128")
    stage = Stage.of(topology, layout(topology))
    names = Names(stage, 0.3)
    for group in stage.groups:
        assert width(group.counts, names.group(group)) <= 164 - 10
    assert len({names.group(group) for group in stage.groups if group.host is not None}) == 1
