"""A cut's links in pictures are orange where they have a wire for themselves, as on the canvas."""

from __future__ import annotations

from itertools import pairwise
from math import dist

import pytest

from ccl.layout import layout
from ccl.topology import Link, Topology, device
from gallery.registry import open_cluster
from widgets.print.cutting import Region
from widgets.print.geometry.own_wires import first_units, own_wires
from widgets.print.geometry.routes import curve_between
from widgets.print.geometry.stage import Line, Stage
from widgets.print.sheet import Area, Dot, Rect, Stroke, Words
from widgets.print.style import LIGHT, PAPER
from widgets.print.view import View

HUB = Rect(538.0, 33.0, 662.0, 67.0)


def wired(name, start, end, *corners):
    return Line((name, "hub"), curve_between(start, end, corners), 2.0, {(name, "hub"): True}, "")


def gpu(x, y=0.0):
    return Rect(x - 39.0, y - 30.0, x + 39.0, y + 30.0)


ROW = [wired(f"g{i}", gpu(150.0 * i), HUB, (150.0 * i, 50.0)) for i in range(3)]
"""Three GPUs 150 apart on one track 50 below them, which ends in a hub on the right.

The same is in `widgets/js/test/own_wires.test.js`.
"""


def found(marked, at_hub=False):
    return own_wires(ROW, {(name, "hub"): at_hub for name in marked})


def view_of(name, inside, **how):
    """A cluster with the cut around some of its devices."""
    topology = open_cluster(name)
    links = [list(e.ends) for e in topology.links if e.src in inside and e.dst not in inside]
    stage = Stage.of(topology, layout(topology))
    label = "Bottleneck cut · 200 GB/s out of h0 · lower bound 12 µs"
    region = Region(stage, {"inside": sorted(inside), "links": links, "label": label})
    return View(stage, how.pop("look", LIGHT), region=region, **how)


def orange(view):
    """Strokes in the cut's colour, without its outline."""
    shapes = [each for each in view.still() if isinstance(each, Stroke)]
    return [each for each in shapes if each.color == view.look.cut and not each.closed]


def length(stroke):
    return sum(dist(p, q) for p, q in pairwise(stroke.points))


def test_a_link_has_its_wire_for_itself_to_where_the_first_other_one_joins():
    """From the side of the box, 30 below its middle, to the track, and along it to the next."""
    assert found(["g0"])["g0", "hub"].own == 20 + 150
    assert found(["g1"])["g1", "hub"].own == 20
    assert found(["g0"], at_hub=True)["g0", "hub"].own == 0
    assert list(found(["g0"])) == [("g0", "hub")]
    assert own_wires(ROW, {}) == {}


def test_what_marked_links_share_is_drawn_once_and_its_dots_are_theirs():
    wires = found(["g0", "g1"])
    assert [wires[name, "hub"].own for name in ("g0", "g1")] == [20 + 300, 20 + 150]
    assert [wires[name, "hub"].drawn for name in ("g0", "g1")] == [20 + 300, 20]
    assert wires["g1", "hub"].has((150.0, 50.0))
    assert not wires["g0", "hub"].has((300.0, 50.0))
    assert found(["g0", "g1", "g2"])["g0", "hub"].rest == (), "nobody else is on it"


def test_the_rest_of_a_wire_is_from_its_other_end():
    wire = found(["g0"])["g0", "hub"]
    assert wire.rest == ((538.0, 50.0), (150.0, 50.0))
    assert first_units(wire.corners, 0.0) == ()


def test_wires_that_only_cross_do_not_join():
    east = wired("east", gpu(0), gpu(600), (300.0, 0.0))
    south = wired("south", gpu(200, -300), gpu(200, 300), (200.0, 100.0))
    assert own_wires([east, south], {("east", "hub"): False})["east", "hub"].own == 522


@pytest.mark.parametrize("look", [LIGHT, PAPER])
def test_of_a_rail_a_link_of_the_cut_is_orange_as_far_as_the_next_host(look):
    """Eight GPUs of the first of 16 hosts lead to their rails along the tracks of all others."""
    inside = {"nvswitch0", *(f"g{rank}" for rank in range(8))}
    view = view_of("dgx-a100:hosts=16", inside, look=look)
    apart = view.stage.boxes["g8"].x1 - view.stage.boxes["g0"].x1
    strokes = orange(view)

    assert len(strokes) == 8
    assert all(apart < length(each) < apart + 60 for each in strokes)
    assert all(each.dash for each in strokes)
    titles = [each.title for each in view.still() if isinstance(each, Stroke)]
    assert [titles.count(each.title) for each in strokes] == [2] * 8, (
        "the rest says what it is, too"
    )


def test_a_short_stub_is_heavy_with_a_dot_where_others_join():
    """g0 of a rack stands between its track and the next row: 10 units, and nobody's beyond."""
    view = view_of("gb200-nvl72", {"g0"})
    (stub,) = orange(view)
    line = next(each for each in view.stage.lines if "g0" in each.ends)
    dots = [e for e in view.still() if isinstance(e, Dot) and e.fill == LIGHT.cut]

    assert (stub.dash, stub.width > line.width) == ((), True)
    assert length(stub) * view.zoom < 16
    assert stub.points[-1] in [each.at for each in dots]


def test_a_folded_host_of_a_cut_has_its_stub_in_orange():
    """128 boxes lead to that of the rails; sixteen links of the first host are one bundle."""
    view = view_of("dgx-a100:hosts=128", {"nvswitch0", *(f"g{rank}" for rank in range(8))})
    (stub,) = orange(view)
    (wire,) = view.region.wires.values()
    assert length(stub) == pytest.approx(wire.own)
    assert wire.own < wire.length / 10


def test_a_cut_from_its_larger_side_is_orange_from_the_smaller_one():
    topology = open_cluster("gb200-nvl72")
    most = {each.name for each in topology.devices} - {"g0"}
    (wire,) = view_of("gb200-nvl72", most).region.wires.values()
    (same,) = view_of("gb200-nvl72", {"g0"}).region.wires.values()
    assert wire == same


def test_a_cut_without_buses_is_dashed_from_end_to_end():
    view = view_of("ring:gpus=8", {"g0"})
    assert view.region.wires == {}
    lines = [each for each in view.stage.lines if "g0" in each.ends]
    assert sorted(map(length, orange(view))) == pytest.approx(sorted(e.curve.length for e in lines))


def test_a_one_way_link_along_a_bus_keeps_its_corners_and_its_head():
    """Sixteen GPUs in two rows send to a switch beyond them: wires turn, and heads are the cut's
    only where all of the wire is."""
    gpus = tuple(device("gpu", f"g{i}") for i in range(16))
    hub = device("switch", "hub")
    star = Topology("in", (*gpus, hub), tuple(Link(e.name, "hub", 9.0) for e in gpus))
    places = {f"g{i}": (100.0 * (i % 8), 90.0 * (i // 8)) for i in range(16)} | {"hub": (350, 300)}
    stage = Stage.of(star, places)
    wired = [each for each in stage.lines if each.curve.along_bus]
    plain = [e for e in View(stage, LIGHT).still() if isinstance(e, Stroke) and "→" in e.title]
    upright = [e for e in plain if all(p[0] == q[0] or p[1] == q[1] for p, q in pairwise(e.points))]

    assert len(wired) >= 12
    assert len(upright) >= len(wired)
    cut = {"inside": ["g0"], "links": [["g0", "hub"]], "label": "Cut"}
    view = View(stage, LIGHT, region=Region(stage, cut))
    heads = [each.fill for each in view.still() if isinstance(each, Area)]
    assert heads.count(LIGHT.cut) == 1, "the tint of the cut alone"


@pytest.mark.parametrize("name", ["dgx-a100:hosts=16", "mi250:hosts=4"])
def test_the_label_of_a_cut_leaves_the_legend_of_links_free(name):
    view = view_of(name, {e.name for e in open_cluster(name).devices if e.host == "h0"})
    said = {each.text: each for each in view.still() if isinstance(each, Words)}
    assert view._class_colors
    assert view.spot is not None
    for kind in view._class_colors:
        assert view.spot.y2 < said[kind].at[1] - said[kind].size * 0.7
