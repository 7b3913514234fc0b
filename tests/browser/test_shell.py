"""What is around the views of the designer: their addresses, the answer at the top, the columns."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from ccl.collective import all_gather
from ccl.problem import Problem
from ccl.serialization.conditions import document
from gallery import open_cluster
from interchange.formats.own.fragment import Share, fragment_of
from tests.designer.sweeps import write_sweep

pytestmark = pytest.mark.browser

SLOW = 90_000
"""ms for a solve on a busy machine."""


@pytest.fixture
def designer(page, server, drive):
    """The page with nothing kept from before, and a driver of its canvas."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(server[0])
    driver = drive(page)
    expect(page.locator("#bounds")).to_contain_text("Bottleneck cut", timeout=SLOW)
    return driver


def view(page):
    """Return what says which view is open, to be waited for."""
    return page.locator("#stage")


def choose(page, words):
    """Choose a view as the user does."""
    page.locator("#view").get_by_text(words, exact=True).click()


def test_back_and_forward_go_through_the_views(designer):
    """Four views in turn, two back, one on, and a new one from there."""
    page = designer.page
    plain = page.url
    for words, name in (("Table", "table"), ("Compare", "compare"), ("What if", "what-if")):
        choose(page, words)
        expect(page).to_have_url(f"{plain}#{name}")
        expect(page).to_have_title(f"{words} · Topoloom")
    page.go_back()
    expect(view(page)).to_have_attribute("data-view", "compare")
    expect(page).to_have_url(f"{plain}#compare")
    page.go_back()
    expect(view(page)).to_have_attribute("data-view", "table")
    expect(page.locator("#table")).to_contain_text("Devices")
    page.go_forward()
    expect(view(page)).to_have_attribute("data-view", "compare")
    page.wait_for_timeout(600)
    choose(page, "Canvas")
    expect(page).to_have_url(f"{plain}#canvas")
    expect(page).to_have_title("Topoloom")
    for name in ("compare", "table", "canvas"):
        page.go_back()
        expect(view(page)).to_have_attribute("data-view", name)
    expect(page).to_have_url(plain)


def test_an_address_opens_its_view(designer, new_page):
    """In a new page, typed over another one, and of a view that is not there."""
    plain = designer.page.url
    page = new_page()
    page.goto(f"{plain}#what-if")
    expect(view(page)).to_have_attribute("data-view", "whatif", timeout=SLOW)
    expect(page.locator("#whatif-pane")).to_be_visible()
    page.reload()
    expect(view(page)).to_have_attribute("data-view", "whatif", timeout=SLOW)
    page.goto(f"{plain}#table")
    expect(view(page)).to_have_attribute("data-view", "table")
    page.goto(f"{plain}#sweeps")
    expect(page.get_by_text("This designer shows no view called sweeps")).to_be_visible()
    expect(view(page)).to_have_attribute("data-view", "table")


def test_views_that_were_requested_have_addresses_too(serve_with, new_page, tmp_path):
    folder, plans = write_sweep(tmp_path / "night.sweep"), tmp_path / "plans.sqlite"
    address = serve_with("--sweep", str(folder), "--catalog", str(plans))
    page = new_page()
    page.goto(f"{address}#sweeps")
    expect(page.get_by_text("16 rows, 4 without a plan")).to_be_visible(timeout=SLOW)
    choose(page, "Catalog")
    expect(page).to_have_url(f"{address}#catalog")
    page.go_back()
    expect(view(page)).to_have_attribute("data-view", "sweeps")


def test_a_link_to_a_drawing_keeps_it_in_every_view(designer):
    """The view stands behind the link; what was drawn before is back where the link is left."""
    page = designer.page
    plain, name = page.url, page.locator("#topology-name")
    link = fragment_of(Share(document(Problem(open_cluster("dgx-1v"), all_gather(8, 8e6)))))
    page.goto(f"{plain}#t={link}")
    expect(name).to_have_value("DGX-1V", timeout=SLOW)
    choose(page, "Table")
    expect(page).to_have_url(f"{plain}#t={link}&view=table")
    page.reload()
    expect(view(page)).to_have_attribute("data-view", "table", timeout=SLOW)
    expect(name).to_have_value("DGX-1V", timeout=SLOW)
    page.go_back()
    expect(view(page)).to_have_attribute("data-view", "canvas")
    expect(page).to_have_url(f"{plain}#t={link}")
    page.go_back()
    expect(name).to_have_value(re.compile("NDv2"), timeout=SLOW)
    expect(page).to_have_url(plain)
