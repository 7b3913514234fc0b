"""What follows the drawing: optimum, cuts, link prices, classes, and the trees of a forest."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import expect

from ccl.serialization.documents import document, document_text
from tests.designer.forests import gathered, reduced

pytestmark = pytest.mark.browser

SLOW = 60_000
"""ms on a busy machine."""


@pytest.fixture
def designer(page, server, drive):
    """The page with two NDv2 hosts, whose optimum has come."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(server[0])
    driver = drive(page)
    expect(page.locator("#optimum-card .ds-figures")).to_contain_text("25 GB/s", timeout=SLOW)
    return driver


def marks(designer):
    """Return what is drawn over the cluster."""
    return designer.ask("c.canvas.model.get('marks')")


def layer(page, name):
    """Press the button that draws something over the cluster."""
    page.get_by_role("button", name=name, exact=True).click()


def test_the_optimum_and_its_cut_follow_the_drawing(designer):
    """16 shards: eight leave a host over 12.5 GB/s, so 1 MB takes 40 µs; twice as fast, 20 µs.

    With four times the bandwidth what a GPU takes in has not yet become the bottleneck: 10 µs.
    """
    page = designer.page
    card = page.locator("#optimum-card")
    expect(card).to_contain_text("40 µs")
    assert len(designer.ask("c.canvas.model.get('cuts')[0].inside")) == 8
    between = [[a, b] for a, b in designer.pairs if (int(a[1:]) < 8) != (int(b[1:]) < 8)]
    began = time.monotonic()
    designer.do("edit_links", links=between, values={"bandwidth": 25})
    expect(card).to_contain_text("20 µs", timeout=SLOW)
    assert time.monotonic() - began < 5  # 0.2 s where nothing else runs
    expect(card.locator(".ds-cut")).to_contain_text("25 GB/s out of")
    expect(page.locator("#canvas .tl-note")).to_contain_text("25 GB/s")
    cut = card.locator(".ds-cut").first
    expect(cut).to_have_attribute("aria-pressed", "true")
    cut.click()
    expect(cut).to_have_attribute("aria-pressed", "false")
    expect(page.locator("#canvas .tl-note")).to_have_count(0)


def test_what_a_link_is_worth_is_said_and_drawn(designer):
    """All that limits is the links between the hosts: 1 % more of them gives 1 %."""
    page = designer.page
    prices = page.locator("#link-prices-card")
    expect(prices).to_contain_text(
        re.compile(
            r"2 links of 12.5 GB/s.*: 1\s% more bandwidth raises the best rate by 1.00\s%, "
            r"1\s% less lowers it by 1.00\s%"
        ),
        timeout=SLOW,
    )
    expect(prices).to_contain_text("16 kinds of links: neither more nor less changes anything")
    layer(page, "±1 %")
    expect(page.locator("#canvas .tl-marks")).to_contain_text("Gain by 1 % more bandwidth")
    hottest, idle = marks(designer)["groups"]
    assert (hottest["tone"], idle["tone"]) == ({"heat": 1.0}, {"heat": 0.0})
    assert len(hottest["links"]) == 2
    layer(page, "µs per GB/s")
    # Half of 1 MB leaves each host in 40 µs; half of the price 40 / 12.5 is on either link.
    legend = "µs saved per GB/s, none on 64 links"
    expect(page.locator("#canvas .tl-marks")).to_contain_text(legend, timeout=SLOW)
    assert [each["label"] for each in marks(designer)["groups"]] == ["1.6 on 2 links"]
    expect(page.locator("#link-duals-note")).to_contain_text("linear program of a fluid")
    layer(page, "µs per GB/s")
    expect(page.locator("#canvas .tl-marks")).to_be_hidden()


def test_interchangeable_gpus_are_coloured_and_told(designer):
    """The hosts can change places and nothing else can: eight classes of two GPUs."""
    page = designer.page
    told = page.locator("#alike-card")
    expect(told).to_contain_text("2 GPUs: g0, g8", timeout=SLOW)
    layer(page, "GPUs")
    expect(page.locator("#canvas .tl-marks li")).to_have_count(8)
    groups = marks(designer)["groups"]
    assert [len(each["devices"]) for each in groups] == [2] * 8
    layer(page, "Links")  # one layer at a time
    expect(page.locator("#canvas .tl-marks")).to_contain_text("Symmetric links")
    expect(page.get_by_role("button", name="GPUs", exact=True)).to_have_attribute(
        "aria-pressed", "false"
    )


def test_the_trees_of_a_forest_are_shown_one_at_a_time(designer, tmp_path):
    page = designer.page
    file = tmp_path / "gathered.json"
    file.write_text(document_text(document(gathered())), encoding="utf-8")
    page.locator("#upload input[type=file]").set_input_files(file)
    section = page.locator("#trees-box")
    expect(section).to_contain_text("1 of 2", timeout=SLOW)
    expect(section).to_contain_text("1/2of what g0 gives")
    expect(section).to_contain_text("3 hopsdeep")
    page.get_by_role("button", name="Next tree").click()
    expect(section).to_contain_text("2 of 2")
    expect(page.locator("#canvas .tl-marks")).to_contain_text("A tree of g0: 1/2, depth 3")
    drawn = marks(designer)
    assert drawn["groups"][1]["links"] == [["g0", "g3"], ["g3", "g2"], ["g2", "g1"]]
    assert drawn["badges"] == {"g0": "root", "g3": "1", "g2": "2", "g1": "3"}
    page.get_by_role("textbox", name="Root of the trees").click()
    page.get_by_role("option", name="g2").click()
    expect(page.locator("#canvas .tl-marks")).to_contain_text("A tree of g2")
    designer.do("delete", links=[["g0", "g1"], ["g1", "g0"]])
    expect(section).to_be_hidden()
    expect(page.locator("#canvas .tl-marks")).to_be_hidden()
    # What is left is a line: the cut is that of the drawing, though the schedule is of another.
    expect(page.locator("#canvas .tl-note")).to_contain_text("50 GB/s", timeout=SLOW)


def test_an_all_reduce_shows_in_tree_and_out_tree(designer, tmp_path):
    page = designer.page
    file = tmp_path / "reduced.json"
    file.write_text(document_text(document(reduced())), encoding="utf-8")
    page.locator("#upload input[type=file]").set_input_files(file)
    section = page.locator("#trees-box")
    expect(section).to_contain_text("1 of 2", timeout=SLOW)
    expect(section).to_contain_text("6 hopsdeep")
    layer(page, "Show on canvas")
    expect(page.locator("#canvas .tl-marks")).to_contain_text("Sums go up, dashed")
    assert [each.get("dash") for each in marks(designer)["groups"]] == [None, True, False]
    section.get_by_text("Up, adding").click()
    expect(section).to_contain_text("3 hopsdeep")
    expect(page.locator("#canvas .tl-marks")).not_to_contain_text("dashed")
    assert marks(designer)["groups"][1]["links"][-1][1] == "g0"
