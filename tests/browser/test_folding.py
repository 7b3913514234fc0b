"""Large clusters on the canvas: hosts are folded, opened, moved and panned."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ccl.layout import layout
from gallery import open_cluster
from widgets.view_model.scene import drawing

pytestmark = pytest.mark.browser

PAN = """(frames) => new Promise((done) => {
    const { cy } = document.querySelector('.tl').__canvas;
    const times = [];
    let last = performance.now();
    const step = (now) => {
        times.push(now - last);
        last = now;
        cy.panBy({ x: times.length % 20 < 10 ? 5 : -5, y: 2 });
        if (times.length < frames) requestAnimationFrame(step);
        else done(times.slice(2).sort((a, b) => a - b)[Math.floor(times.length / 2)]);
    };
    requestAnimationFrame(step);
})"""


@pytest.fixture
def rails(show: Any, page: Page) -> Any:
    """A cluster of 1,024 GPUs on eight rails, 1,160 devices and 2,048 pairs of links."""
    topology = open_cluster("rail-only:hosts=128")
    return show(page, drawing(topology, layout(topology)))


def drawn_elements(canvas: Any) -> Any:
    return canvas.ask(
        "[c.cy.nodes('.group').length, c.cy.nodes('.device').length, c.cy.edges().length]"
    )


def test_a_thousand_gpus_are_a_box_per_host_and_pan_smoothly(rails: Any) -> None:
    """128 hosts and one box for the eight rails, a bundle from each host to it.

    A frame takes 17 ms where nothing else runs, and 200 ms with all hosts open; the ratio holds on
    a machine that is busy.
    """
    assert drawn_elements(rails) == [129, 0, 128]
    bundle = rails.ask("c.shown.lines.map((line) => [line.parts.length, line.forth.bandwidth])[5]")
    assert bundle == [8, 8 * 50]
    expect(
        rails.page.get_by_text("128 of 128 hosts folded, each 8 GPUs · 1 switch")
    ).to_be_visible()
    assert rails.ask("c.cy.nodes('.group.named').map((n) => n.data('label'))")[:2] == ["h0", "h1"]
    folded = rails.page.evaluate(PAN, 30)
    rails.do("fold", on=False)
    assert drawn_elements(rails) == [0, 1160, 2048]
    assert folded < rails.page.evaluate(PAN, 10) / 2


def test_hosts_stand_in_racks_of_32_gpus_that_say_which_they_are(show: Any, page: Page) -> None:
    """Four hosts of 8 GPUs make one, and the eight rails are a box; R folds and opens them."""
    topology = open_cluster("dgx-h100:hosts=128")
    rails = show(page, drawing(topology, layout(topology)))
    rails.keys("r")
    assert drawn_elements(rails) == [33, 1, 33]
    titles = rails.ask("c.shown.groups.filter((g) => g.pod).map((g) => g.title)")
    assert titles == [f"h{4 * i} … h{4 * i + 3}" for i in range(32)]
    expect(
        rails.page.get_by_text("32 of 32 racks folded, each 32 GPUs · 4 switches")
    ).to_be_visible()
    rails.page.mouse.dblclick(*rails.at(rails.ask("c.shown.groups.find((g) => g.pod).key")))
    rails.settle()
    assert drawn_elements(rails) == [31 + 4 + 1, 1, 31 + 4 + 1]
    rails.page.get_by_role("button", name="Fold racks").click()
    rails.keys("r")
    assert drawn_elements(rails) == [129, 1, 129]


def places(canvas: Any) -> dict[str, list[float]]:
    """Where the racks stand on the screen, by their titles."""
    found: dict[str, list[float]] = canvas.ask(
        "Object.fromEntries(c.shown.groups.filter((g) => g.pod).map((g) => {"
        " const { x, y } = c.cy.getElementById(`g:${g.key}`).position(); return [g.title, [x, y]];"
        "}))"
    )
    return found


def test_racks_stand_in_a_grid_in_which_one_opens_and_moves(show: Any, page: Page) -> None:
    """Of three racks in a row of hosts, 32 make four rows of eight, below the rails.

    Opening one leaves the others in their rows and apart; one that is dragged stays where it was
    dropped, the others where they were, and undoing brings it back.
    """
    topology = open_cluster("dgx-h100:hosts=128")
    racks = show(page, drawing(topology, layout(topology)))
    racks.keys("r")
    racks.settle()
    before = places(racks)
    assert [len({place[i] for place in before.values()}) for i in range(2)] == [8, 4]
    titles = sorted(before, key=lambda title: (before[title][1], before[title][0]))
    assert titles == [f"h{4 * i} … h{4 * i + 3}" for i in range(32)]
    rails = racks.ask("c.shown.positions[c.shown.groups.find((g) => !g.pod).key]")
    assert rails[1] < min(y for _, y in before.values())

    key = racks.ask("c.shown.groups.filter((g) => g.pod)[17].key")
    x, y = racks.at(key)
    racks.drag((x, y), (x + 24, y + 8))
    after = places(racks)
    moved = {title for title in after if abs(after[title][0] - before[title][0]) > 5}
    assert moved == {"h68 … h71"}
    racks.keys("Control+z")
    racks.settle()
    assert places(racks) == before

    page.mouse.dblclick(*racks.at(key))
    racks.settle()
    boxes = racks.ask("c.shown.groups.map((g) => c.canvas.stage.rect(g.key))")
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            beside = a["x2"] <= b["x1"] or b["x2"] <= a["x1"]
            assert beside or a["y2"] <= b["y1"] or b["y2"] <= a["y1"]
    assert len({place[1] for place in places(racks).values()}) == 4
    racks.keys("r")
    racks.settle()
    assert places(racks) == before


def test_a_host_opens_with_a_double_click_and_folds_with_a_key(rails: Any) -> None:
    x, y = rails.at("\u0002h4")
    rails.page.mouse.dblclick(x, y)
    rails.settle()
    # Its eight GPUs each have a line to the switch inside and one to the box of the rails.
    assert drawn_elements(rails) == [128, 9, 127 + 16]
    assert set(rails.ask("c.shown.devices.map((d) => d.host)")) == {"h4"}
    rails.ask("void c.canvas.select({ hosts: ['h4'] })")
    rails.keys("o")
    assert drawn_elements(rails) == [129, 0, 128]
    rails.keys("Enter")
    assert drawn_elements(rails) == [128, 9, 127 + 16]


def test_opening_a_host_leaves_the_others_apart(rails: Any) -> None:
    rails.do("fold", hosts=["h4"])
    boxes = rails.ask(
        "[...c.shown.groups.map((g) => c.canvas.stage.rect(g.key)), c.canvas.stage.hostRect('h4')]"
    )
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            beside = a["x2"] <= b["x1"] or b["x2"] <= a["x1"]
            above = a["y2"] <= b["y1"] or b["y2"] <= a["y1"]
            assert beside or above


def test_a_folded_host_is_selected_as_the_host_and_a_bundle_as_its_links(rails: Any) -> None:
    rails.page.mouse.click(*rails.at("\u0002h7"))
    rails.settle()
    assert rails.ask("c.canvas.selection") == {"devices": [], "links": [], "hosts": ["h7"]}
    rails.ask("void c.cy.edges()[7].select()")
    links = rails.ask("c.canvas.selection.links")
    assert len(links) == 8
    assert len(set(map(tuple, links))) == 8


def test_a_folded_host_is_moved_as_a_whole(rails: Any) -> None:
    before = rails.ask("c.drawing.positions")
    x, y = rails.at("\u0002h0")
    rails.drag((x, y), (x - 60, y - 20))
    after = rails.ask("c.drawing.positions")
    moved = {name for name in after if after[name] != before[name]}
    assert moved == {*(f"g{i}" for i in range(8)), "nvswitch0"}
    shifts = {(after[n][0] - before[n][0], after[n][1] - before[n][1]) for n in moved}
    assert len(shifts) == 1
    rails.keys("Control+z")
    assert rails.ask("c.drawing.positions") == before


def test_a_small_cluster_folds_only_when_asked(film: Any) -> None:
    assert drawn_elements(film) == [0, 4, 4]
    film.keys("o")
    assert drawn_elements(film) == [2, 0, 1]
    film.do("seek", time=10)
    assert film.ask("c.tokens") > 0  # chunks between the hosts run along the bundle
    film.page.get_by_role("button", name="Open all").click()
    film.settle()
    assert drawn_elements(film) == [0, 4, 4]


def test_sixteen_hosts_in_a_row_fill_the_canvas_and_one_is_moved_alone(
    show: Any, page: Page
) -> None:
    """What was a strip is four rows of four below the rails; undoing brings a host back."""
    topology = open_cluster("dgx-a100:hosts=16")
    canvas = show(page, drawing(topology, layout(topology)))
    canvas.do("fold", on=True)
    shape = "(({ w, h }) => w / h)(c.cy.elements().boundingBox())"
    assert 0.8 < canvas.ask(shape) < 2
    hosts = "Object.fromEntries(c.shown.groups.map(({ key }) => [key, c.shown.positions[key]]))"
    before = canvas.ask(hosts)
    assert len({y for x, y in (before[f"\x02h{i}"] for i in range(16))}) == 4

    x, y = canvas.at("\x02h5")
    canvas.drag((x, y), (x + 24, y + 16))
    after = canvas.ask(hosts)
    assert {key for key in after if after[key] != before[key]} == {"\x02h5"}
    canvas.keys("Control+z")
    assert canvas.ask(hosts) == before
    page.mouse.dblclick(*canvas.at("\x02h5"))
    canvas.settle()
    assert drawn_elements(canvas)[:2] == [16, 10]
