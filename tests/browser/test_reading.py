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
