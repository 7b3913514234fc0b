"""The slider over the plans of a solve, moved by the keyboard and by the mouse."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import HANDLE

pytestmark = pytest.mark.browser

SLOW = 90_000
"""ms for a solve on a busy machine."""

SCENE = "c.canvas.model.get('scene').makespan"
"""What the canvas plays takes so many µs."""


def test_the_slider_shows_plans_with_fewer_sends_and_goes_back_to_the_best(page, server, drive):
    """List scheduling sends whole shards first; two NDv2 hosts gain by pieces over the thin link.

    What the canvas plays and the figures are those of the plan that the slider stands on.
    """
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(server[0])
    driver = drive(page)
    expect(page.locator("#bounds")).to_contain_text("Bottleneck cut", timeout=SLOW)
    card, makespan = page.locator("#front-box"), page.locator("#schedule .ds-stats b").first
    words = page.locator("#front-words")
    expect(card).to_be_hidden()
    page.get_by_role("button", name="Solve", exact=True).click()
    expect(card).to_be_visible(timeout=SLOW)

    expect(words).to_contain_text("the fastest; found by")
    best, played = makespan.inner_text(), driver.ask(SCENE)
    page.get_by_role("slider", name="Pieces per shard").press("Home")
    expect(words).to_contain_text(re.compile(r"\d sends, .* % longer than the fastest"))
    expect(makespan).not_to_have_text(best)
    expect(page.locator("#schedule .ds-banner")).to_contain_text("It has fewer sends")
    assert driver.ask(SCENE) > played

    box = card.locator(".mantine-Slider-track").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2)
    expect(words).to_contain_text("the fastest; found by")
    expect(makespan).to_have_text(best)
    page.wait_for_function(f"(x) => {{ const c = {HANDLE}; return {SCENE} === x; }}", arg=played)
    page.get_by_role("button", name="New").click()
    expect(card).to_be_hidden()
