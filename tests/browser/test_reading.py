"""Large clusters are read: colours with a legend, what is pointed at, folding, layouts."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from ccl.layout import layout
from gallery import open_cluster
from tests.browser.conftest import HANDLE
from tests.browser.test_access import violations
from widgets.view_model.scene import drawing

pytestmark = pytest.mark.browser

FADED = "c.cy.edges('.faded').length"
LINES = "c.cy.edges().length"

BENEATH = """c.shown.lines.filter((line) => Array.isArray(c.canvas.stage.routeOf(line)))
    .filter((line) => c.canvas.stage.curve(line).covered !== null).map((line) => line.id)"""
"""Lines of buses that run beneath a device."""
COVERED = """(() => {
    const { stage, cutView } = c.canvas;
    const origin = c.canvas.dom.stage.getBoundingClientRect();
    const box = cutView.labels[0].getBoundingClientRect();
    const at = (p) => stage.toScreen(p);
    const [x1, y1] = [box.left - origin.left, box.top - origin.top];
    const [x2, y2] = [x1 + box.width, y1 + box.height];
    const has = ({ x, y }) => x > x1 && x < x2 && y > y1 && y < y2;
    const devices = c.shown.devices.map((d) => d.name).filter((name) => {
        const r = stage.rect(name);
        const [p, q] = [at({ x: r.x1, y: r.y1 }), at({ x: r.x2, y: r.y2 })];
        return p.x < x2 && q.x > x1 && p.y < y2 && q.y > y1;
    });
    const points = (line) => {
        const { a, b, c: bend, legs } = stage.curve(line);
        const ways = legs ?? (bend ? [[a, bend], [bend, b]] : [[a, b]]);
        return ways.flatMap(([p, q]) => Array.from({ length: 101 }, (_, i) =>
            at({ x: p.x + (q.x - p.x) * i / 100, y: p.y + (q.y - p.y) * i / 100 })));
    };
    const lines = c.shown.lines.filter((line) => !stage.curve(line).c && points(line).some(has));
    const whole = cutView.bounds()[0];
    const [p, q] = [at({ x: whole.x1, y: whole.y1 }), at({ x: whole.x2, y: whole.y2 })];
    const far = Math.hypot(Math.max(0, p.x - x2, x1 - q.x), Math.max(0, p.y - y2, y1 - q.y));
    return { devices, lines: lines.map(({ id }) => id), near: far <= 200 };
})()"""
"""What the label of the cut covers, and whether it is near."""


def opened(show: Any, page: Any, name: str) -> Any:
    topology = open_cluster(name)
    return show(page, drawing(topology, layout(topology)))


def test_links_of_a_large_cluster_have_colours_and_a_legend_that_filters(
    show: Any, page: Any
) -> None:
    """128 links inside hosts, 128 to rails and eight to the spine; by the mouse and by keys."""
    rails = opened(show, page, "dgx-a100:hosts=16")
    inside = page.get_by_role("button", name="NVLink 3")
    outside = page.get_by_role("button", name="InfiniBand HDR")
    expect(inside).to_have_attribute("aria-pressed", "true")
    colors = rails.ask("c.cy.edges().map((e) => e.data('tint'))")
    assert len(set(colors)) == 2
    assert len(colors) == 264
    assert violations(page) == []

    inside.click()
    assert rails.ask(FADED) == 128
    expect(inside).to_have_attribute("aria-pressed", "false")
    outside.press("Enter")
    assert rails.ask(FADED) == rails.ask(LINES)
    inside.press("Enter")
    outside.press("Enter")
    assert rails.ask(FADED) == 0

    # What is pointed at stands out: a GPU has a link to its host's switch and one to its rail.
    page.mouse.move(*rails.at("g3"))
    page.wait_for_function(f"() => {{ const c = {HANDLE}; return {FADED} === {LINES} - 2; }}")
    page.mouse.move(5, 300)
    page.wait_for_function(f"() => {{ const c = {HANDLE}; return {FADED} === 0; }}")

    rails.keys("c")
    expect(page.get_by_role("button", name="Tier 2")).to_be_visible()
    rails.keys("c")
    expect(page.get_by_role("button", name="Tier 2")).to_have_count(0)
    assert rails.ask("c.cy.edges('[tint]').length") == 0


def test_a_large_cluster_folds_into_hosts_and_pods(show: Any, page: Any) -> None:
    """A fat-tree of radix 8 has eight pods of 16 GPUs around 16 switches of its core."""
    tree = opened(show, page, "fat-tree:radix=8")
    titles = tree.ask("c.canvas.stage.podFrames().map(({ title }) => title)")
    assert titles == [f"pod {i}" for i in range(8)]
    page.get_by_role("button", name="Fold pods").click()
    assert tree.ask("c.shown.groups.length") == 9
    assert tree.ask(LINES) == 8
    expect(page.get_by_text("8 of 8 pods folded")).to_be_visible()
    tree.ask("void c.cmd('fold', { keys: [c.shown.groups[0].key] })")
    expect(page.get_by_text("7 of 8 pods folded")).to_be_visible()
    tree.keys("r")
    expect(page.get_by_text("8 of 8 pods folded")).to_be_visible()
    tree.keys("r")
    assert tree.ask("c.shown.groups.length") == 0
    expect(page.get_by_text("All 8 pods are open")).to_be_visible()

    trays = opened(show, page, "gb200-nvl72")
    page.get_by_role("button", name="Fold all").click()
    expect(page.get_by_text("18 of 18 hosts folded")).to_be_visible()
    page.get_by_role("button", name="Open all").click()
    assert trays.ask("c.shown.groups.length") == 0


def test_links_that_close_rows_are_short_and_those_of_one_switch_run_together(
    show: Any, page: Any
) -> None:
    """48 of the links of a torus of 4 x 4 x 4 close a row; 72 lead to the switch of an NVL72."""
    torus = opened(show, page, "tpu-v4")
    assert torus.ask("c.cy.edges('.stubs').length") == 48
    curve = "c.canvas.stage.curve(c.shown.lanes.get('g0\\u0001g3').line)"
    assert round(torus.ask(f"{curve}.length")) == 60

    trays = opened(show, page, "gb200-nvl72")
    assert trays.ask("c.cy.edges('.turned').length") == 72
    assert trays.ask(BENEATH) == []


@pytest.mark.parametrize("name", ["dgx-a100:hosts=16", "mi250:hosts=4", "fat-tree:radix=8"])
def test_buses_and_the_label_of_a_cut_stand_on_free_ground(show: Any, page: Any, name: str) -> None:
    """No line of a bus runs beneath a device; the label, within 200 pixels, covers nothing."""
    topology = open_cluster(name)
    inside = [each.name for each in topology.devices if each.host == "h0"] or ["g0"]
    links = [list(each.ends) for each in topology.links if each.src in inside]
    links = [ends for ends in links if ends[1] not in inside]
    cut = {"inside": inside, "links": links, "bandwidth": 200.0, "makespan": 5.0}
    cut["label"] = "Bottleneck cut · 200 GB/s · ≥ 4.69 µs"
    page.set_viewport_size({"width": 1440, "height": 760})
    large = show(page, drawing(topology, layout(topology)), None, [cut])
    large.settle()
    assert large.ask("c.cy.edges('.turned').length") >= 64
    assert large.ask(BENEATH) == []
    assert large.ask(COVERED) == {"devices": [], "lines": [], "near": True}


INK = """([from, to]) => {
    const c = document.querySelector('.tl').__canvas;
    const layer = document.querySelector('.tl-borders');
    const line = c.shown.lanes.get(c.canvas.model.get('cuts')[0].links[0].join('\\u0001')).line;
    const { b, legs } = c.canvas.stage.curve(line);
    const ctx = layer.getContext('2d');
    const ratio = layer.width / layer.clientWidth;
    const inks = Array.from({ length: 30 }, (_, i) => {
        const x = b.x + from + (to - from) * i / 30;
        const p = c.canvas.stage.toScreen({ x, y: legs.at(-1)[0].y });
        const [left, top] = [p.x * ratio, p.y * ratio - 1].map(Math.round);
        const { data } = ctx.getImageData(left, top, 1, 3);
        return [0, 4, 8].map((at) => [...data.slice(at, at + 4)])
            .reduce((p, q) => (q[3] > p[3] ? q : p));
    });
    return inks.reduce((p, q) => (q[3] > p[3] ? q : p));
}"""
"""The strongest ink on the track of the cut's first link, so many units from its GPU."""


def cut_of_the_first(topology: Any, name: str) -> dict[str, Any]:
    inside = [each.name for each in topology.devices if each.host == name]
    links = [list(each.ends) for each in topology.links if each.src in inside]
    links = [ends for ends in links if ends[1] not in inside]
    return {"inside": inside, "links": links, "bandwidth": 1.0, "makespan": 1.0, "label": "Cut"}


def test_of_a_shared_wire_only_what_a_cut_link_has_for_itself_is_orange(
    show: Any, page: Any
) -> None:
    """Eight GPUs of the first of 16 hosts lead to their rails, along the tracks of all others.

    Each track is the link's own up to the GPU of the next host, where that one joins. When
    something else is pointed at, the orange steps back like the links.
    """
    topology = open_cluster("dgx-a100:hosts=16")
    cut = cut_of_the_first(topology, "h0")
    rails = show(page, drawing(topology, layout(topology)), None, [cut])
    rails.settle()
    assert rails.ask("c.cy.edges('.cut').length") == 8
    assert rails.ask("c.cy.edges('.cut.wired').length") == 8
    apart = rails.ask("c.drawing.positions.g8[0] - c.drawing.positions.g0[0]")
    own = rails.ask("[...c.canvas.cutView.wires.values()].map(({ own }) => own)")
    assert all(apart < each < apart + 60 for each in own)
    red, green, blue, seen = page.evaluate(INK, [5, 50])
    assert (red > 180, green < 160, blue < 120, seen > 120) == (True,) * 4
    assert page.evaluate(INK, [apart + 20, apart + 50])[3] == 0

    page.mouse.move(*rails.at("g100"))
    page.wait_for_function(f"() => {{ const c = {HANDLE}; return {FADED} > 0; }}")
    rails.settle()
    assert page.evaluate(INK, [5, 50])[3] < seen / 2
    page.mouse.move(5, 300)


def test_a_folded_host_of_a_cut_has_its_stub_in_orange(show: Any, page: Any) -> None:
    """128 boxes lead to that of the rails; eight links of the first host are one bundle."""
    topology = open_cluster("dgx-h100:hosts=128")
    cut = cut_of_the_first(topology, "h0")
    hosts = show(page, drawing(topology, layout(topology)), None, [cut])
    hosts.settle()
    wires = "[...c.canvas.cutView.wires.values()].map(({ own, length }) => own < length / 10)"
    assert hosts.ask(wires) == [True]
    assert hosts.ask("c.cy.edges('.cut').map((e) => e.hasClass('wired'))") == [True]


def test_a_cut_without_buses_is_dashed_from_end_to_end(show: Any, page: Any) -> None:
    topology = open_cluster("ring:gpus=8")
    cut = {"inside": ["g0"], "links": [["g0", "g1"], ["g0", "g7"]], "bandwidth": 1.0}
    cut |= {"makespan": 1.0, "label": "Cut"}
    ring = show(page, drawing(topology, layout(topology)), None, [cut])
    ring.settle()
    assert ring.ask("c.cy.edges('.cut').map((e) => e.style('line-style'))") == ["dashed"] * 2
    assert ring.ask("c.cy.edges('.wired').length") == 0


def test_a_layout_glides_and_is_one_step(show: Any, new_page: Any) -> None:
    """Who wants less motion sees the end at once; a page without Python says that it cannot."""
    page = new_page(reduced_motion="no-preference")
    ring = opened(show, page, "ring:gpus=8")
    first = ring.ask("c.drawing.positions.g0")
    ring.ask("void c.cmd('move', { to: { g0: [600, 400], nobody: [0, 0] } })")
    assert ring.ask("c.drawing.positions.g0") == [600, 400]
    page.wait_for_function(f"() => {HANDLE}.cy.getElementById('d:g0').position().x === 600")
    moving = "(c.cmd('undo'), c.canvas.stage.animation.moves.length)"
    assert ring.ask(moving) == 1
    assert ring.ask("c.drawing.positions.g0") == first
    page.wait_for_function(f"() => {HANDLE}.canvas.stage.animation.moves.length === 0")
    assert ring.ask("c.cy.getElementById('d:g0').position()") == {"x": first[0], "y": first[1]}
    ring.keys("q")
    expect(page.get_by_role("alert").filter(has_text="cannot lay out")).to_be_visible()
