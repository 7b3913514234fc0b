"""A sketch drawn on the canvas: clicks, keys, files, what an edit takes away, and the solve."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

SLOW = 60_000
"""ms on a busy machine."""


@pytest.fixture
def designer(page, server, drive):
    """The page with two NDv2 hosts and a formulation that takes a sketch."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(server[0])
    driver = drive(page)
    page.locator("#formulation").click()
    page.locator("[role=option][value=taccl]").click()
    expect(card(page)).to_contain_text("derived from the cluster", timeout=SLOW)
    return driver


def card(page):
    """Return what floats over the canvas."""
    return page.locator("#sketch-card")


def press(page, name):
    """Press a button of the card."""
    card(page).get_by_role("button", name=name).click()


def begin(page):
    """Start to draw."""
    press(page, "Draw")
    page.wait_for_selector("#canvas .tl[data-sketching]", timeout=SLOW)
    expect(page.locator("#canvas .tl")).to_be_focused(timeout=SLOW)


def sketch(designer):
    """Return what the canvas was told to draw."""
    return designer.ask("c.canvas.model.get('sketch')")


def between(designer, first, second):
    """Return the middle of a line on the page."""
    return designer._screen(
        """const k = c.canvas.stage.curve(c.canvas.shown.lanes.get(x.join('\\u0001')).line);
        const far = k.c ?? { x: (k.a.x + k.b.x) / 2, y: (k.a.y + k.b.y) / 2 };
        return [(k.a.x + 2 * far.x + k.b.x) / 4, (k.a.y + 2 * far.y + k.b.y) / 4];""",
        [first, second],
    )


def test_clicks_draw_a_sketch_that_is_kept_and_solved_with(designer):
    """GPUs 0 and 8 send to the other host; each is the relay of the eight of its host.

    The plan may not use the link that is off.
    """
    page = designer.page
    begin(page)
    designer.click("g0")
    designer.click("g8")
    page.mouse.click(*between(designer, "g2", "g3"))
    expect(card(page)).to_contain_text("own: 1 link off, 2 relays", timeout=SLOW)
    assert sketch(designer)["relays"] == {"g0": 8, "g8": 8}
    assert designer.ask("c.cy.edges('.off').map((e) => [e.data('a'), e.data('b')])") == [
        ["g2", "g3"]
    ]
    assert designer.ask("c.canvas.selection.devices") == []
    designer.click("g8")  # a second click takes it back
    expect(card(page)).to_contain_text("1 link off, 1 relay,", timeout=SLOW)
    press(page, "Done")
    expect(page.locator("#canvas .tl[data-sketching]")).to_have_count(0)

    page.reload()
    expect(card(page)).to_contain_text("own: 1 link off, 1 relay,", timeout=SLOW)
    assert sketch(designer)["drawing"] is False
    begin(page)
    designer.click("g2")
    expect(page.get_by_text("No path leads from g2 out of h0")).to_be_visible(timeout=SLOW)
    page.get_by_role("button", name="Solve", exact=True).click()
    page.wait_for_function(
        "() => document.querySelector('.tl').__canvas.canvas.playback", timeout=SLOW
    )
    used = {(src, dst) for _, src, dst, *_ in designer.ask("c.canvas.model.get('scene').transfers")}
    assert ("g0", "g1") in used
    assert not used & {("g2", "g3"), ("g3", "g2")}
    press(page, "Draw")
    press(page, "Clear")
    expect(card(page)).to_contain_text("derived from the cluster", timeout=SLOW)


def test_everything_can_be_done_with_keys(designer):
    page = designer.page
    page.locator("#options-open").click()
    row = page.locator(".ds-sketch-row")
    expect(row).to_contain_text("Derived from the cluster.", timeout=SLOW)
    row.get_by_role("button", name="Draw").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#canvas .tl[data-sketching]", timeout=SLOW)
    expect(page.locator("#canvas .tl")).to_be_focused(timeout=SLOW)
    for key in ("Tab", "Tab", "Shift+Tab", "Enter"):  # the first GPU, the second, back
        page.keyboard.press(key)
    expect(card(page)).to_contain_text("1 relay", timeout=SLOW)
    assert sketch(designer)["relays"] == {"g0": 8}
    page.keyboard.press("ArrowRight")
    expect(page.locator("#canvas .tl-sr")).to_contain_text("in use: Enter switches it off")
    page.keyboard.press("Enter")
    expect(card(page)).to_contain_text("1 link off", timeout=SLOW)
    assert len(designer.names) == 16
    page.keyboard.press("Delete")
    page.keyboard.press("g")
    designer.settle()
    assert len(designer.names) == 16  # no key edits the drawing meanwhile
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator("#canvas .tl[data-sketching]")).to_have_count(0)
    expect(card(page).get_by_role("button", name="Done")).to_have_count(0, timeout=SLOW)


def test_a_file_is_read_fields_are_typed_and_an_edit_drops_what_is_gone(designer):
    """TACCL's words for NDv2 on two hosts: GPU 0 sends to GPU 1 of the other host, both ways."""
    page = designer.page
    file = {
        "nnodes": 2,
        "internode_sketch": {"strategy": "relay", "internode_conn": {"0": [1]}, "beta_split": 1},
        "symmetry_offsets": [[8, 16]],
        "hyperparameters": {"input_chunkup": 2},
    }
    page.locator("#options-open").click()
    page.locator(".ds-sketch-row input[type=file]").set_input_files(
        {"name": "mine.json", "mimeType": "application/json", "buffer": json.dumps(file).encode()}
    )
    row = page.locator(".ds-sketch-row")
    expect(row).to_contain_text(
        "Own: symmetry 8 in 16, 2 pairs between hosts, 2 chunks", timeout=SLOW
    )
    expect(page.locator("#chunks")).to_have_value("2")
    expect(page.get_by_text("left out: beta_split")).to_be_visible()
    row.get_by_role("button", name="Draw").click()
    page.wait_for_selector("#canvas .tl[data-sketching]", timeout=SLOW)
    offsets = card(page).get_by_label("Symmetry of ranks")
    offsets.fill("3 in 5")
    offsets.press("Enter")
    expect(page.get_by_text("do not divide the 16 GPUs")).to_be_visible(timeout=SLOW)
    offsets.fill("")
    offsets.press("Enter")
    expect(card(page)).not_to_contain_text("symmetry 8", timeout=SLOW)
    designer.click("g1")
    expect(page.get_by_text("sends to no other host")).to_be_visible(timeout=SLOW)
    page.mouse.click(*between(designer, "g13", "g15"))
    expect(card(page)).to_contain_text("own: 1 link off, 2 pairs between hosts", timeout=SLOW)
    press(page, "Done")
    designer.do("delete", devices=["g15"])
    expect(card(page)).not_to_contain_text("link off", timeout=SLOW)
    expect(page.get_by_text("The sketch lost g13–g15")).to_be_visible()
