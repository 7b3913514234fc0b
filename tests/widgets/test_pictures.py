"""Pictures as SVG, and where on them everything stands at a time."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccl.bound import Bound, Cut
from ccl.collective import all_gather, all_reduce
from ccl.errors import FormatError
from ccl.layout import layout
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.result import Stop, conclude
from ccl.serialization.documents import Document, document
from ccl.simulate import simulate
from ccl.topology import Topology, device, duplex
from gallery.registry import open_cluster
from interchange.formats.xml import Element, parse_xml
from tests.interchange.formats.strategies import drawings, planned
from widgets.pages.writers import write
from widgets.print.cutting import Region
from widgets.print.geometry.names import short_name
from widgets.print.geometry.outlines import outline
from widgets.print.geometry.routes import bend_around, curve_between
from widgets.print.geometry.stage import Stage
from widgets.print.geometry.tiers import link_classes
from widgets.print.legend import Entry, rows
from widgets.print.playback import Moment, Playback, place, tokens
from widgets.print.sheet import Box, Dot, Rect, Stroke, Words
from widgets.print.style import DARK, LIGHT, OKABE_ITO, PAPER
from widgets.print.view import View
from widgets.view_model.scene import scene

SVG = "{http://www.w3.org/2000/svg}"
PLACES = {"a": (0.0, 0.0), "b": (278.0, 0.0)}
"""Boxes of 78 x 60 around these leave 200 units between them, from x = 39 to x = 239."""


def pair() -> Topology:
    """Two GPUs, 10 GB/s each way: 1 MB takes 100 µs."""
    return Topology(
        "pair",
        (device("gpu", "a", host="h"), device("gpu", "b", host="h")),
        duplex("a", "b", bandwidth=10.0, alpha=0.0, medium="NVLink 2"),
    )


def exchange() -> Document:
    """The result of an all-gather of 2 x 1 MB between the two, 100 µs, with the cut around a."""
    problem = Problem(pair(), all_gather(2, 2e6))
    plan = Schedule((Send(0, 0, "a", "b"), Send(0, 1, "b", "a")), 100.0, 2)
    cut = Cut(("a",), (("a", "b"),), 10.0)
    result = conclude(
        problem,
        plan,
        bounds=(Bound(100.0, "cut", cut, "1 MB at 10 GB/s"),),
        stop=Stop.CONSTRUCTED,
        formulation="by-hand",
        options={},
        solve_time=0.0,
    )
    return document(result, positions=PLACES)


def playback() -> Playback:
    """The same, to be played."""
    made = exchange()
    assert made.problem is not None
    assert made.plan is not None
    return Playback(scene(made.problem, made.plan, simulate(made.problem, made.plan)))


def drawn(content: Document, **chosen: str) -> tuple[str, Element]:
    """Return the text of the SVG of a document, and what it parses to."""
    text = write(content, "svg", chosen).content
    return text.decode(), parse_xml(text)


def titles(root: Element) -> list[str]:
    """What the shapes say that they show."""
    return [each.content for each in root.everywhere(f"{SVG}title")]


# SVG


@settings(max_examples=20, deadline=None)
@given(drawings())
def test_svg_names_every_device_and_every_line(content):
    """Names may be anything; signs that cannot be printed are blanks. A line is both ways."""
    _, root = drawn(content)

    told = titles(root)
    for each in content.topology.devices:
        name = "".join(sign if sign.isprintable() else " " for sign in each.name)
        assert any(f"{name}, {each.kind}".strip() == one.strip() for one in told)
    pairs = {frozenset(each.ends) for each in content.topology.links}
    assert sum(" GB/s" in one for one in told) >= len(pairs)
    assert len(list(root.everywhere(f"{SVG}path"))) >= len(pairs)


@settings(max_examples=20, deadline=None)
@given(drawings() | planned(), st.sampled_from(["light", "dark", "paper"]))
def test_svg_asks_nobody_for_anything(content, style):
    """Its only address is the name of its language, and it runs nothing."""
    text = write(content, "svg", {"style": style}).content.decode()
    plain = text.replace('xmlns="http://www.w3.org/2000/svg"', "", 1)

    markup = [part.split(">")[0] for part in plain.split("<")[1:]]
    assert not any(
        word in each for each in markup for word in ("http", "href", "script", "style=", "@import")
    )


@settings(max_examples=15, deadline=None)
@given(planned(), st.floats(0, 1))
def test_any_plan_is_drawn_at_any_time_twice_alike(content, share):
    timeline = simulate(content.problem, content.plan)
    chosen = {"time": str(timeline.makespan * share), "style": "dark"}

    first = write(content, "svg", chosen).content

    assert first == write(content, "svg", chosen).content
    parse_xml(first)


def test_a_line_says_its_figures():
    assert "a ↔ b, 10 GB/s, NVLink 2" in titles(drawn(document(pair()))[1])


def test_a_one_way_link_has_a_head():
    """The only other areas would be those of a cut, which there is none of here."""
    links = duplex("a", "b", bandwidth=10.0)
    for count, areas in ((2, 0), (1, 1)):
        topology = Topology("pair", pair().devices, links[:count])
        view = View(Stage.of(topology, PLACES), LIGHT)
        assert [type(each).__name__ for each in view.still()].count("Area") == areas


@pytest.mark.parametrize("style", ["light", "dark", "paper"])
def test_the_cut_is_drawn_and_said_unless_it_is_not_wanted(style):
    """100 µs are what 1 MB takes over the 10 GB/s that leave a; the line across is dashed."""
    text, _ = drawn(exchange(), style=style)
    plain, _ = drawn(exchange(), style=style, cut="false")

    assert ">Bottleneck cut · 10 GB/s out of a · lower bound 100 µs<" in text
    assert "Bottleneck" not in plain
    assert text.count("stroke-dasharray") == plain.count("stroke-dasharray") + 2


def test_the_frame_is_as_wide_as_asked_for_and_holds_every_box():
    for width in (200, 640, 3000):
        view = View(Stage.of(pair(), PLACES), LIGHT, width=float(width))
        assert view.picture().size[0] == width
        for box in view.stage.boxes.values():
            assert view.frame.x1 < box.x1 < box.x2 < view.frame.x2
            assert view.frame.y1 < box.y1 < box.y2 < view.frame.y2


def test_names_in_print_are_as_large_as_asked_for():
    """The drawing is 278 + 78 units and 20 of the host on each side wide, its border 8 pixels."""
    text, root = drawn(exchange(), style="paper", width="792", font="9", cut="false")
    _, _, width, _ = map(float, root.text("viewBox").split())
    sizes = {
        float(each.attributes["font-size"].removesuffix("px"))
        for each in root.everywhere(f"{SVG}text")
    }

    assert width == pytest.approx(396 * 792 / (792 - 2 * 8), rel=1e-3)
    assert list(sizes) == pytest.approx([9 * width / 792], abs=0.01)
    assert LIGHT.dot not in text


def test_a_thousand_gpus_are_folded_into_their_hosts():
    """128 hosts of 8 GPUs and a switch; the 8 rails serve all of them, and the spine is alone."""
    content = document(open_cluster("dgx-a100:hosts=128"))
    text, root = drawn(content)
    told = titles(root)

    assert sum(each.endswith(", 8 GPUs · 1 switch") for each in told) == 128
    assert "rail0 … rail7, 8 switches" in told
    assert "spine, switch" in told
    # 8 links from each GPU's host to the rails and 8 back, one bundle for a host.
    assert sum(each.startswith("16 links") for each in told) == 128 + 1
    assert ", gpu<" not in text
    assert "1,160 devices are folded into 129 boxes" in write(content, "svg", {}).lost


def test_a_cut_through_a_folded_host_frames_it():
    """g0 is one of the nine devices of h0, so no outline can be around it alone."""
    topology = open_cluster("dgx-a100:hosts=40")
    links = [list(each.ends) for each in topology.links_out["g0"]]
    cut = {"inside": ["g0"], "links": links, "label": "Bottleneck cut"}
    stage = Stage.of(topology, {})
    view = View(stage, LIGHT, region=Region(stage, cut))
    framed = [each for each in view.still() if isinstance(each, Box) and each.line == LIGHT.cut]

    assert [each.title for each in framed] == ["h0, 8 GPUs · 1 switch"]
    assert "Bottleneck cut" in [each.text for each in view.over() if isinstance(each, Words)]


def test_folded_boxes_do_not_overlap_and_keep_their_order():
    """What was left of or above a host stays so; hosts are named row by row."""
    stage = Stage.of(open_cluster("dgx-a100:hosts=128"), {})
    boxes = [stage.boxes[group.key] for group in stage.groups]

    assert not any(a.meets(b) for a, b in itertools.combinations(boxes, 2))
    hosts = [box.middle for box in boxes[:-1]]
    assert hosts == sorted(hosts, key=lambda at: (at[1], at[0]))


def test_pods_have_frames_and_names_as_on_the_canvas():
    """Radix 8 makes eight pods of 16 GPUs and 8 switches; hosts of racks have theirs by name."""
    tree = open_cluster("fat-tree:radix=8")
    stage = Stage.of(tree, layout(tree))
    assert [title for title, _ in stage.pods] == [f"pod {i}" for i in range(8)]
    for number, (_, frame) in enumerate(stage.pods):
        inside = {name for name, box in stage.boxes.items() if box.meets(frame)}
        assert {f"g{i}" for i in range(16 * number, 16 * number + 16)} <= inside
        assert len(inside) == 16 + 8
    words = [each.text for each in View(stage, LIGHT).still() if isinstance(each, Words)]
    assert [each for each in words if each.startswith("pod")] == [f"pod {i}" for i in range(8)]

    hosts = [f"rack{i // 2}/host{i}" for i in range(4)]
    gpus = tuple(device("gpu", f"{host}.{k}", host=host) for host in hosts for k in range(2))
    ends = [(a.name, b.name) for a, b in itertools.pairwise(gpus)]
    racks = Topology("racks", gpus, tuple(x for e in ends for x in duplex(*e, bandwidth=9.0)))
    places = {each.name: (150.0 * i, 0.0) for i, each in enumerate(gpus)}
    assert [title for title, _ in Stage.of(racks, places).pods] == ["rack0", "rack1"]
    assert Stage.of(pair(), PLACES).pods == []


def test_names_that_could_not_be_read_are_not_written():
    """At 160 pixels, 60 of them border, 978 units of a row leave 2.7 for names of 26 units."""
    row = tuple(device("gpu", f"g{rank}") for rank in range(10))
    places = {each.name: (100.0 * rank, 0.0) for rank, each in enumerate(row)}
    content = document(Topology("row", row, ()), positions=places)

    assert not list(drawn(content, width="160")[1].everywhere(f"{SVG}text"))
    assert len(list(drawn(content, width="640")[1].everywhere(f"{SVG}text"))) == 10


# Where things are at a time


def test_a_token_is_between_its_ends():
    """1 MB takes 100 µs over 200 units: after 25 µs it is 50 from a, on the right of its way.

    y grows downwards, so right of the way from a to b is below, and b's chunk is above. A link of
    10 GB/s is 1.3 + log2(1.5) wide, and its lane 3.2 beside half of that.
    """
    view = View(Stage.of(pair(), PLACES), DARK)
    found = [
        each
        for each in tokens(view.stage, Moment(playback(), 25.0), DARK, zoom=1.0)
        if isinstance(each, Dot)
    ]
    lane = 3.2 + (1.3 + math.log2(1.5)) / 2

    assert [each.fill for each in found] == list(OKABE_ITO[:2])
    assert found[0].at == pytest.approx((39 + 50, lane))
    assert found[1].at == pytest.approx((239 - 50, -lane))


def test_tails_are_behind_the_tokens():
    view = View(Stage.of(pair(), PLACES), DARK)
    shapes = list(tokens(view.stage, Moment(playback(), 50.0), DARK, zoom=1.0))
    tails = [each.points for each in shapes if isinstance(each, Stroke)]

    assert tails[0][0][0] < tails[0][1][0]
    assert tails[1][0][0] > tails[1][1][0]


def test_nothing_moves_at_the_end():
    view = View(Stage.of(pair(), PLACES), DARK)
    assert not list(tokens(view.stage, Moment(playback(), 100.0), DARK, zoom=1.0))


def test_gpus_hold_what_has_arrived():
    """Each has its own of two chunks until the other's is in at 100 µs; time may go back."""
    film = playback()
    before = {"a": [1.0, 0.0], "b": [0.0, 1.0]}

    assert film.levels(99.9) == before
    assert film.levels(100.0) == {"a": [1.0, 1.0], "b": [1.0, 1.0]}
    assert film.levels(0.0) == before


def test_of_a_sum_the_share_of_the_contributions_counts():
    """a's half of the sum reaches b, which has both then, and sends them back."""
    topology = pair()
    problem = Problem(topology, all_reduce(2, 1e6))
    moves = [(0, 0, "a", "b"), (0, 1, "b", "a"), (1, 0, "b", "a"), (1, 1, "a", "b")]
    plan = Schedule(tuple(Send(*each) for each in moves), 50.0, 4)
    film = Playback(scene(problem, plan, simulate(problem, plan)))

    assert film.levels(0.0) == {"a": [0.5, 0.5], "b": [0.5, 0.5]}
    assert film.levels(50.0) == {"a": [0.5, 1.0], "b": [1.0, 0.5]}
    assert film.levels(100.0) == {"a": [1.0, 1.0], "b": [1.0, 1.0]}


def test_a_link_bends_around_a_device_in_its_way():
    """A box of 60 x 60 lies on the middle of a way of 400; half a bend is how far that deviates."""
    boxes = np.array([[170.0, -30.0, 230.0, 30.0]])

    bend = bend_around((0.0, 0.0), (400.0, 0.0), boxes)
    curve = curve_between(Rect(-10, -10, 10, 10), Rect(390, -10, 410, 10), bend)

    assert abs(curve.at(0.5)[1]) > 35
    assert bend_around((0.0, 100.0), (400.0, 100.0), boxes) == 0


def test_a_chunk_travels_on_one_side_there_and_on_the_other_back():
    line = Stage.of(pair(), PLACES).lines[0]

    assert place(line, 0.5, forth=True)[1] == -place(line, 0.5, forth=False)[1]


def test_the_outline_leaves_others_out():
    """Of three boxes in a row the outer ones are enclosed around the one between them."""
    row = [Rect(x, 0.0, x + 60, 60.0) for x in (0.0, 150.0, 300.0)]
    loops = outline([row[0], row[2]], [row[1]])

    def inside(x: float, y: float) -> bool:
        hits = 0
        for loop in loops:
            for (px, py), (qx, qy) in zip(loop, (*loop[1:], loop[0]), strict=True):
                if (py > y) != (qy > y) and x < px + (y - py) / (qy - py) * (qx - px):
                    hits += 1
        return hits % 2 == 1

    assert [inside(*each.middle) for each in row] == [True, False, True]


def test_the_name_of_the_host_is_not_said_twice():
    assert short_name(device("gpu", "h0/g1", host="h0")) == "g1"
    assert short_name(device("gpu", "h0", host="h0")) == "h0"
    assert short_name(device("gpu", "g1", host="h0")) == "g1"


# What cannot be drawn


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ({"time": "101"}, "beyond the makespan of 100 µs"),
        ({"epoch": "3"}, "beyond the plan's 1"),
        ({"time": "1", "epoch": "1"}, "give one"),
    ],
)
def test_a_time_that_is_none_is_refused(chosen, told):
    with pytest.raises(FormatError, match=told):
        write(exchange(), "svg", chosen)


def test_a_time_needs_a_plan():
    with pytest.raises(FormatError, match="no plan"):
        write(document(pair()), "svg", {"time": "0"})


def test_an_epoch_is_a_time():
    assert drawn(exchange(), epoch="1")[0] == drawn(exchange(), time="100")[0]


def test_shared_limits_are_not_drawn_and_it_says_so():
    content = document(open_cluster("pcie-server"))
    count = len(content.topology.limits)

    assert f"{count} shared limit" in write(content, "svg", {}).lost[0]


def test_a_picture_for_slides_has_title_clock_and_legend_of_chunks_and_links():
    """Two origins, links of one kind, and the cut; in print it has them too."""
    content = exchange()
    for style in ("light", "paper"):
        text, root = drawn(content, time="50", legend="true", style=style)
        words = [each.content for each in root.everywhere(f"{SVG}text")]
        for wanted in ("Chunks of", "a", "b", "Links", "bottleneck cut"):
            assert wanted in words
        assert any("GB/s" in each for each in words)
        assert any(re.match(r"\d+ of \d+ epochs? · ", each) for each in words)
        assert "Chunk origin" not in text
    plain, _ = drawn(content, legend="true")
    assert "Chunks of" not in plain
    assert ">Links<" in plain
    assert write(content, "pdf", {"time": "50", "legend": "true"}).content[:4] == b"%PDF"


def test_a_legend_goes_on_in_further_rows_and_shows_some_of_many_chunks():
    entry = Entry("a name of some length", "#123456")
    found = rows([[entry] * 10, [entry]], 640.0)

    assert [len(row) for row in found] == [3, 3, 3, 1, 1]


def test_links_of_a_large_drawing_have_classes_as_on_the_canvas():
    """By medium where there are several, else by tier; a small drawing has none."""
    rails = link_classes(open_cluster("dgx-a100:hosts=16"))
    tree = link_classes(open_cluster("fat-tree:radix=8"))

    assert set(rails.values()) == {"NVLink 3", "InfiniBand HDR"}
    assert list(dict.fromkeys(tree.values())) == ["Tier 1", "Tier 2", "Tier 3"]
    assert link_classes(open_cluster("dgx-a100:hosts=2")) == {}


def test_a_large_drawing_is_coloured_with_a_legend():
    """In print it is not: nothing there is to please."""
    topology = open_cluster("dgx-a100:hosts=8")
    stage = Stage.of(topology, layout(topology))
    texts = {each.text for each in View(stage, LIGHT).still() if isinstance(each, Words)}
    paper = {each.text for each in View(stage, PAPER).still() if isinstance(each, Words)}

    assert {"NVLink 3", "InfiniBand HDR"} <= texts
    assert not {"NVLink 3", "InfiniBand HDR"} & paper
