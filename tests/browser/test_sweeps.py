"""The rows of a sweep in a browser: look, filter, sort, open one."""

import re

import pytest
from playwright.sync_api import expect

from tests.designer.sweeps import write_sweep

pytestmark = pytest.mark.browser


def test_a_row_of_a_sweep_is_found_and_opened(serve_with, new_page, tmp_path):
    address = serve_with("--sweep", str(write_sweep(tmp_path / "night.sweep")))
    page = new_page()
    page.goto(address)
    page.get_by_text("Sweeps", exact=True).click()
    expect(page.get_by_text("16 rows, 4 without a plan")).to_be_visible(timeout=20_000)
    rows = page.locator(".ds-swp-table tbody tr")
    expect(rows).to_have_count(8, timeout=20_000)
    expect(page.locator("#sweep-plot .legendtext")).to_have_count(4)

    page.get_by_text("None", exact=True).locator("visible=true").last.click()
    expect(rows).to_have_count(4)
    expect(rows.first).to_contain_text("it supports all-")

    page.get_by_text("Best", exact=True).click()
    expect(rows).to_have_count(8)
    page.get_by_role("button", name="Makespan").click()
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Makespan")
    page.get_by_role("button", name="Makespan").click()
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Makespan")
    expect(rows.first).to_contain_text("star of 4")

    rows.first.get_by_role("button").click()
    expect(page.locator("#stage")).to_have_attribute("data-view", "canvas", timeout=20_000)
    expect(page.locator("#topology-name")).to_have_value(re.compile("star of 4"))
