"""Fields for quantities, and what each tab keeps of its own, as a user meets them."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

SLOW = 90_000
"""ms for a solve on a busy machine."""


@pytest.fixture
def designer(page, server, drive):
    """The page with nothing kept from before, and a driver of its canvas."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(server[0])
    driver = drive(page)
    expect(page.locator("#counts")).to_contain_text("16 GPUs")
    return driver


def told(field):
    """Return the words that describe a field, as soon as they stand on the page."""
    return field.evaluate(
        """async (field) => {
            const named = (field.getAttribute("aria-describedby") ?? "").split(" ").filter(Boolean);
            for (let frames = 0; ; frames += 1) {
                const words = named.map((id) => document.getElementById(id));
                if (words.every(Boolean) || frames === 120) {
                    return words.map((each) => each?.textContent ?? "").join(" ");
                }
                await new Promise(requestAnimationFrame);
            }
        }"""
    )


def refused(field, typed):
    """Type what is refused; again where the late answer to what was typed before puts that back."""
    for left in (2, 1, 0):
        field.fill(typed)
        field.press("Enter")
        try:
            expect(field).to_have_attribute(
                "aria-invalid", "true", timeout=20_000 if left else SLOW
            )
        except AssertionError:
            if not left:
                raise
        else:
            return


def test_a_field_says_what_it_understood_and_marks_what_it_refuses(designer):
    page = designer.page
    designer.do("select", links=[["g0", "g1"]])
    field = page.locator("#inspector").get_by_label("Bandwidth", exact=True)
    field.fill("600 Gb/s")
    assert told(field) == "600 Gb/s = 75 GB/s"
    field.press("Enter")
    page.wait_for_function(
        "() => document.querySelector('.tl').__canvas.drawing.topology.links"
        ".filter((l) => l.bandwidth === 75).length === 2"
    )
    expect(field).to_have_value("75 GB/s")
    for typed, why in (("abc", "is not a bandwidth"), ("-5", "give more than 0 GB/s")):
        refused(field, typed)
        assert why in told(field)
    expect(field).to_have_value("-5")
    rates = {link["bandwidth"] for link in designer.topology["links"]}
    assert 75 in rates
    assert min(rates) > 0
    # Another link has its own values, not what was typed for the one before.
    designer.do("select", links=[["g2", "g3"]])
    expect(field).not_to_have_attribute("aria-invalid", "true")


@pytest.mark.parametrize("typed", ["2.5", "-3", "abc"])
def test_chunks_that_are_none_are_refused_as_they_were_typed(designer, typed):
    page = designer.page
    field = page.get_by_label("Chunks per shard")
    field.fill(typed)
    expect(field).to_have_attribute("aria-invalid", "true")
    assert f"'{typed}'" in told(field)
    expect(field).to_have_value(typed)
    expect(page.locator("#solve")).to_be_disabled()
    field.fill("1e1")
    field.press("Enter")
    expect(field).to_have_value("10")
    expect(page.locator("#solve")).to_be_enabled()


def opened(context, address):
    """Open the designer in another tab."""
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(".tl-graph canvas")
    return page


def test_each_tab_keeps_a_drawing_of_its_own_and_can_undo_it_after_a_reload(designer, server):
    one = designer.page
    designer.do("add", kind="gpu")
    expect(one.locator("#counts")).to_contain_text("17 GPUs")
    two = opened(one.context, server[0])
    expect(two.locator("#counts")).to_contain_text("16 GPUs")
    two.get_by_role("button", name="New").click()
    expect(two.locator("#counts")).to_contain_text("0 GPUs")
    one.reload()
    expect(one.locator("#counts")).to_contain_text("17 GPUs")
    two.reload()
    expect(two.locator("#counts")).to_contain_text("0 GPUs")
    expect(two.get_by_label("Name of the topology")).to_have_value("untitled")
    expect(two.get_by_role("button", name="Undo")).to_be_enabled()
    two.wait_for_timeout(500)
    two.locator("#canvas .tl").focus()
    two.keyboard.press("Control+z")
    expect(two.locator("#counts")).to_contain_text("16 GPUs")


def test_a_duplicated_tab_goes_on_with_a_copy(designer, server):
    one = designer.page
    designer.do("add", kind="gpu")
    expect(one.locator("#counts")).to_contain_text("17 GPUs")
    one.wait_for_function(
        "() => Object.keys(localStorage).some((k) => k.startsWith('topoloom.drawing.'))"
    )
    session = one.evaluate("() => ({...sessionStorage})")
    two = one.context.new_page()
    two.add_init_script(
        "if (!sessionStorage.length) for (const [k, v] of "
        f"Object.entries({json.dumps(session)})) sessionStorage.setItem(k, v)"
    )
    two.goto(server[0])
    expect(two.locator("#counts")).to_contain_text("17 GPUs")
    two.get_by_role("button", name="New").click()
    expect(two.locator("#counts")).to_contain_text("0 GPUs")
    one.reload()
    expect(one.locator("#counts")).to_contain_text("17 GPUs")


def test_another_cluster_does_not_have_the_plan_of_the_one_before(designer):
    page = designer.page
    page.get_by_role("textbox", name="Method").click()
    page.get_by_role("option").filter(has_text="Direct").first.click()
    page.get_by_role("button", name="Solve", exact=True).click()
    page.locator("#schedule .ds-stats").wait_for(timeout=SLOW)
    page.locator(".ds-cluster", has_text="Ring").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Open").click()
    expect(page.locator("#counts")).to_contain_text("8 GPUs")
    expect(page.locator("#schedule")).to_contain_text("No schedule yet")
    expect(page.locator("#solve")).to_be_visible()
