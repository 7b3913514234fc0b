"""The catalog as a user meets it: a solve that is answered from it, its view, a row opened."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import settle

pytestmark = pytest.mark.browser

SLOW = 60_000
"""ms on a busy machine."""


def test_a_solve_is_answered_from_the_catalog_and_its_plan_opens(page, serve_with, drive, tmp_path):
    """Nothing is held at first; what was solved answers the second time and fills the view."""
    page.goto(serve_with("ring:gpus=4", "--catalog", str(tmp_path / "plans.sqlite")))
    drive(page)
    view = page.locator("#view")
    view.get_by_text("Catalog").click()
    expect(page.locator("#catalog-none")).to_contain_text("No plan of", timeout=SLOW)
    progress = page.locator("#progress-line")
    page.get_by_role("button", name="Solve", exact=True).click()
    expect(progress).to_contain_text("Finished with", timeout=SLOW)
    page.get_by_role("button", name="Solve", exact=True).click()
    expect(progress).to_contain_text("From the catalog", timeout=SLOW)
    expect(progress).to_contain_text("verified again just now")

    view.get_by_text("Catalog").click()
    expect(page.locator("#catalog-status")).to_contain_text("1 plan of", timeout=SLOW)
    expect(page.locator(".ds-sto-bar")).to_contain_text("1 GB", timeout=SLOW)
    expect(page.locator("#catalog-atlas .heatmaplayer")).to_be_visible(timeout=SLOW)
    with page.expect_download() as download:
        page.get_by_role("button", name="Export the table as CSV").click()
    assert download.value.suggested_filename.endswith("-all-gather-tuner.csv")
    page.locator("#catalog-plans").get_by_role("button", name="All-gather").click()
    expect(page.locator("#stage")).to_have_attribute("data-view", "canvas", timeout=SLOW)
    expect(page.locator("#schedule-section")).to_contain_text("makespan")


def test_a_search_for_networks_is_kept_opened_as_it_was_and_removed(page, serve_with, tmp_path):
    """Axes and a typed price come back with it, also after the page was used for another search."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(serve_with("ring:gpus=4", "--catalog", str(tmp_path / "plans.sqlite")) + "#propose")
    page.set_default_timeout(SLOW)
    expect(page.locator("#counts")).to_contain_text("4 GPUs", timeout=SLOW)
    gpus, status = page.get_by_label("GPUs", exact=True), page.locator("#propose-status")
    gpus.fill("16")
    page.locator("#propose-pane summary", has_text="More").click()
    page.get_by_label("Time to search").fill("4 s")
    page.keyboard.press("Enter")
    page.locator("#propose-run").click()
    expect(status).to_contain_text("Finished", timeout=SLOW)
    found = status.inner_text()
    page.locator("#propose-across").click()
    page.get_by_role("option", name="Cables on the way, mean").click()
    page.locator("#propose-pane summary", has_text="Prices").click()
    price = page.locator("#propose-prices input").first
    price.fill("7")
    price.press("Enter")
    cost = page.locator(".ds-pro-card").first.locator("dd", has_text="$")
    expect(cost).to_contain_text("$", timeout=SLOW)
    settle(page)
    typed = cost.inner_text()

    gpus.fill("12")
    page.keyboard.press("Enter")
    page.locator("#propose-run").click()
    expect(status).not_to_contain_text(found, timeout=SLOW)
    expect(status).to_contain_text("Finished", timeout=SLOW)
    page.locator("#propose-across").click()
    page.get_by_role("option", name="Cost of the network").click()
    price.fill("9")
    price.press("Enter")
    settle(page)

    page.locator("#view").get_by_text("Catalog").click()
    rows = page.locator("#catalog-studies")
    expect(rows.locator("tbody tr")).to_have_count(2, timeout=SLOW)
    rows.get_by_role("button", name=re.compile("^16 GPUs with 4 ports")).click()
    expect(page.locator("#stage")).to_have_attribute("data-view", "propose", timeout=SLOW)
    expect(status).to_contain_text(found, timeout=SLOW)
    expect(gpus).to_have_value("16")
    expect(page.locator("#propose-across")).to_have_value("Cables on the way, mean")
    expect(price).to_have_value("7")
    expect(cost).to_have_text(typed, timeout=SLOW)

    page.locator("#view").get_by_text("Catalog").click()
    rows.get_by_role("button", name=re.compile("^Remove 12 GPUs")).click()
    expect(rows.locator("tbody tr")).to_have_count(1, timeout=SLOW)
