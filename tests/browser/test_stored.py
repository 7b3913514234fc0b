"""The catalog as a user meets it: a solve that is answered from it, its view, a row opened."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

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
