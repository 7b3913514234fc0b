"""Clusters by numbers, the table as a spreadsheet, and how things are chosen and linked."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

SLOW = 60_000
"""ms for an answer of the server on a busy machine."""


def press_row(page: Any, number: int, **how: Any) -> None:
    """Press the mark of a row of the links."""
    page.locator('#table tr[data-of="link"] .ds-pick').nth(number).click(**how)


def bandwidths(designer: Any) -> list[float]:
    """Return the bandwidth of each link of the drawing."""
    return [each["bandwidth"] for each in designer.topology["links"]]


def steps(designer: Any) -> int:
    """Return how many steps can be undone."""
    return int(designer.ask("c.history.past.length"))


def test_the_wizard_checks_ports_and_adds_or_opens_as_one_step(designer):
    """Two hosts of two GPUs and NICs: two rails of one leaf, and a spine with two links to each."""
    page = designer.page
    designer.keys("d")
    dialog = page.get_by_role("dialog", name="Hosts, leaves, spines")
    for label in ("Hosts", "GPUs in each", "NICs in each host"):
        dialog.get_by_label(label, exact=True).fill("2")
    expect(dialog.get_by_role("status")).to_have_text(
        "4 GPUs · 4 NICs · 5 switches · 14 links", timeout=SLOW
    )
    expect(dialog).to_contain_text("100 GB/s one way between halves of the hosts")
    dialog.get_by_label("Radix of a spine").fill("1")
    expect(dialog).to_contain_text("Radix of a spine must be from 2 to 1,024", timeout=SLOW)
    expect(dialog.get_by_role("button", name="Open as a new drawing")).to_be_disabled()
    dialog.get_by_label("Radix of a spine").fill("32")
    dialog.get_by_role("button", name="Add beside the drawing").click(timeout=SLOW)
    expect(page.locator("#counts")).to_contain_text("20 GPUs", timeout=SLOW)
    designer.keys("Control+z")
    expect(page.locator("#counts")).to_contain_text("16 GPUs")
    page.locator("#wizard-button").click()
    dialog.get_by_role("button", name="Open as a new drawing").click(timeout=SLOW)
    expect(page.locator("#counts")).to_have_text(
        "4 GPUs · 5 switches · 4 NICs · 14 links", timeout=SLOW
    )


def test_no_choice_of_the_wizard_is_cut_off_on_a_phone(designer):
    """Every field shows its whole text, on wider pages too."""
    page = designer.page
    designer.keys("d")
    dialog = page.get_by_role("dialog", name="Hosts, leaves, spines")
    expect(dialog.get_by_label("Leaf to spine")).to_have_value(re.compile("GB/s"))
    cut = """(all) => all.filter((each) => each.scrollWidth > each.clientWidth)
        .map((each) => `${each.id}: ${each.value}`)"""
    for width in (390, 360, 768):
        page.set_viewport_size({"width": width, "height": 844})
        assert dialog.locator("input").evaluate_all(cut) == []


def test_the_table_edits_rows_at_once_pastes_fills_and_copies(designer):
    """All of it on the links of one medium; each is one step."""
    page = designer.page
    page.set_default_timeout(SLOW)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_text("Table", exact=True).click()
    page.locator("#table-kind").click(timeout=SLOW)
    page.get_by_role("option", name="NVLink 2").click()
    expect(page.locator("#table")).to_contain_text("64 links of 66", timeout=SLOW)
    expect(page.locator('#table tr[data-of="device"]')).to_have_count(0)

    press_row(page, 1)
    press_row(page, 3, modifiers=["Shift"])
    expect(page.locator("#table-chosen")).to_have_text("3 rows selected")
    cell = page.get_by_label("Bandwidth of g0 to g4")
    cell.fill("33")
    cell.press("Enter")
    page.wait_for_function(
        "() => document.querySelector('#canvas .tl').__canvas.history.past.length"
    )
    assert bandwidths(designer).count(33) == 3

    alpha = page.get_by_label("Alpha of g1 to g0")
    alpha.fill("2 us")
    alpha.press("Control+d")
    expect(page.get_by_label("Alpha of g4 to g0")).to_have_value("2 µs", timeout=SLOW)
    assert steps(designer) == 2

    page.evaluate("navigator.clipboard.writeText('40\\t320\\t1\\n44\\t352\\t1\\n')")
    page.get_by_label("Bandwidth of g0 to g1").click()
    page.keyboard.press("Control+v")
    expect(page.get_by_label("Bandwidth of g1 to g0")).to_have_value("44 GB/s", timeout=SLOW)
    assert (bandwidths(designer)[:2], steps(designer)) == ([40, 44], 3)

    page.get_by_role("button", name="Copy", exact=True).click()
    page.wait_for_function(
        "async () => (await navigator.clipboard.readText()).startsWith('From\\tTo\\tBandwidth')"
    )
    lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert lines[1].split("\t") == ["g1", "g0", "44", "352", "1", "2", "NVLink 2"]
    assert len(lines) == 4

    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_label("Bandwidth of g0 to g1")).to_have_value("50 GB/s", timeout=SLOW)
    page.get_by_role("button", name="Select none").click()
    expect(page.locator("#table-chosen")).to_have_text("")


def box(drawn: Any, *keys: str) -> dict[str, int]:
    """Drag a box around everything with keys held; return how much of each kind it took."""
    page = drawn.page
    drawn.do("select", devices=[], links=[], hosts=[])
    corners = drawn.ask(
        "(() => { const b = c.cy.elements().renderedBoundingBox();"
        " const o = c.cy.container().getBoundingClientRect();"
        " return [b.x1 + o.x - 6, b.y1 + o.y - 6, b.x2 + o.x + 6, b.y2 + o.y + 6]; })()"
    )
    for key in keys:
        page.keyboard.down(key)
    drawn.drag((corners[0], corners[1]), (corners[2], corners[3]))
    for key in keys:
        page.keyboard.up(key)
    chosen = drawn.ask("c.canvas.selection")
    return {what: len(chosen[what]) for what in ("devices", "links")}


def test_a_box_takes_devices_first_and_a_link_begins_beside_an_edge(drawn):
    """With Alt it takes the links alone; outside an edge its port is near enough to be pulled."""
    devices, links = len(drawn.names), len(drawn.pairs) // 2
    assert box(drawn, "Shift") == {"devices": devices, "links": 0}
    assert box(drawn, "Shift", "Alt") == {"devices": 0, "links": links}

    first, last = drawn.names[0], drawn.names[-1]
    before = drawn.ask(
        "c.drawing.topology.links.find((l) => l.src === x[0] && l.dst === x[1])", [first, last]
    )
    x, y = drawn.port(first, 0)
    end = drawn.port(last, 2)
    drawn.drag((x + 8, y - 7), (end[0] - 9, end[1] + 5))
    after = drawn.ask(
        "c.drawing.topology.links.find((l) => l.src === x[0] && l.dst === x[1])", [first, last]
    )
    assert after is not None
    assert after != before


def notes(drawn: Any) -> list[dict[str, Any]]:
    """Return the notes and frames of the drawing."""
    found: list[dict[str, Any]] = drawn.ask("c.drawing.annotations ?? []")
    return found


def test_notes_frames_and_the_overview(drawn):
    """Written, framed, moved, typed anew, deleted and undone; the overview moves the view."""
    page = drawn.page
    drawn.keys("e")
    page.keyboard.type("spare NIC")
    page.keyboard.press("Enter")
    assert [each["text"] for each in notes(drawn)] == ["spare NIC"]
    drawn.do("select", devices=["g0", "g3"])
    drawn.keys("x")
    page.keyboard.type("Rack 1")
    page.keyboard.press("Enter")
    frame = notes(drawn)[1]
    assert (frame["kind"], frame["text"], frame["x"], frame["y"]) == ("frame", "Rack 1", 0, 73)

    edge = drawn._screen("return [x[0], x[1]];", [frame["x"] - frame["width"] / 2, 80])
    drawn.drag(edge, (edge[0] - 30, edge[1] + 20))
    moved = notes(drawn)[1]
    assert moved["x"] < frame["x"]
    assert moved["y"] > frame["y"]
    assert moved["width"] == frame["width"]
    drawn.keys("Delete")
    assert len(notes(drawn)) == 1
    drawn.keys("Control+z", "Control+z")
    assert notes(drawn)[1] == frame
    drawn.keys("Escape", "a", "F2")
    page.keyboard.type("two spare NICs")
    page.keyboard.press("Enter")
    assert notes(drawn)[0]["text"] == "two spare NICs"
    assert len(drawn.names) == 4

    drawn.keys("y")
    overview = page.get_by_role("group", name="Overview: arrows move the view")
    before = drawn.ask("c.cy.pan()")
    box_of = overview.bounding_box()
    page.mouse.click(box_of["x"] + 4, box_of["y"] + 4)
    there = drawn.ask("c.cy.pan()")
    assert there["x"] > before["x"]
    assert there["y"] > before["y"]
    overview.press("ArrowLeft")
    assert drawn.ask("c.cy.pan().x") > there["x"]
    drawn.keys("y")
    expect(overview).to_be_hidden()
