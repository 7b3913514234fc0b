"""The What-if view as a user meets it: sliders moved by keys, the cut that follows, losses."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

SLOW = 60_000
"""ms on a busy machine."""

LOOK = "document.querySelector('#whatif-canvas .tl').__canvas"


@pytest.fixture
def page_of_two_hosts(page, server, drive):
    """The page with two NDv2 hosts in the What-if view, its first figures there."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(server[0])
    drive(page)
    page.locator("#view").get_by_text("What if").click()
    expect(page.locator("#whatif-figures")).to_contain_text("25 GB/s", timeout=SLOW)
    return page


def pressed(page, name, key, times):
    """Move a slider by keys."""
    slider = page.get_by_role("slider", name=name)
    slider.focus()
    for _ in range(times):
        page.keyboard.press(key)
    return slider


def bandwidths(page):
    """Return the bandwidths of the links between the hosts on the drawing."""
    return page.evaluate(
        "document.querySelector('#canvas .tl').__canvas.drawing.topology.links"
        ".filter(({ medium }) => medium === 'InfiniBand EDR').map(({ bandwidth }) => bandwidth)"
    )


def test_a_slider_moves_the_rate_and_its_cut_and_is_applied_and_undone(page_of_two_hosts):
    """Twenty steps of 3.5 % are twice the network: 50 GB/s, and 1.3 µs more than 20 once.

    Four times as much and NVLink still lets it pass; the cut is that of a host throughout.
    """
    page = page_of_two_hosts
    figures = page.locator("#whatif-figures")
    expect(figures).to_contain_text("41.3 µs")
    slider = pressed(page, "Bandwidth of InfiniBand EDR", "ArrowRight", 20)
    began = time.monotonic()
    expect(figures).to_contain_text("+25 GB/s, +100 %", timeout=SLOW)
    assert time.monotonic() - began < 30  # 0.2 s where nothing else runs
    expect(figures).to_contain_text("21.3 µs")
    expect(slider).to_have_attribute("aria-valuetext", "25 GB/s")
    expect(page.get_by_role("textbox", name="Bandwidth of InfiniBand EDR, GB/s")).to_have_value(
        "25 GB/s"
    )
    cut = page.locator("#whatif-cuts button")
    expect(cut).to_contain_text("25 GB/s out of h", timeout=SLOW)
    assert len(page.evaluate(f"{LOOK}.canvas.model.get('cuts')[0].inside")) == 8
    cut.click()
    expect(cut).to_have_attribute("aria-pressed", "false")
    assert page.evaluate(f"{LOOK}.canvas.model.get('cuts')") == []

    limits = page.locator("#whatif-limits")
    expect(limits).to_contain_text("All-gather runs at 50 GB/s", timeout=SLOW)
    first = page.locator(".ds-wif-class").first
    expect(first).to_have_attribute("aria-pressed", "true", timeout=SLOW)
    traces = page.locator("#whatif-plot .scatterlayer .trace")
    expect(traces).to_have_count(2, timeout=SLOW)  # the curve, and where the slider stands
    page.locator(".ds-wif-class").last.click()
    expect(traces).not_to_have_count(2, timeout=SLOW)

    assert bandwidths(page) == [12.5, 12.5]
    page.get_by_role("button", name="Apply to the drawing").click()
    expect(page.locator("#whatif-status")).to_contain_text("The drawing has it now", timeout=SLOW)
    assert bandwidths(page) == [25, 25]
    expect(figures).to_contain_text("as today", timeout=SLOW)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#whatif-status")).to_be_empty(timeout=SLOW)
    assert bandwidths(page) == [12.5, 12.5]
    expect(figures).to_contain_text("41.3 µs", timeout=SLOW)


def test_hosts_and_sizes_move_and_typed_values_count(page_of_two_hosts):
    """With three hosts two thirds of the data come into each over 12.5 GB/s: 18.75 GB/s."""
    page = page_of_two_hosts
    figures = page.locator("#whatif-figures")
    pressed(page, "Hosts", "ArrowRight", 1)
    expect(figures).to_contain_text("18.8 GB/s", timeout=SLOW)
    devices = page.evaluate(f"{LOOK}.drawing.topology.devices")
    assert sum(each["kind"] == "gpu" for each in devices) == 24
    page.get_by_role("button", name="Reset").click()
    expect(figures).to_contain_text("as today", timeout=SLOW)
    size = page.get_by_role("textbox", name=re.compile("^Size of the collective"))
    size.fill("2MB")
    expect(figures).to_contain_text("80 µs", timeout=SLOW)
    alpha = page.get_by_role("textbox", name="Alpha of InfiniBand EDR, µs")
    alpha.fill("11.3")
    expect(figures).to_contain_text("91.3 µs", timeout=SLOW)


def test_an_answer_that_comes_after_a_newer_one_is_not_shown(page_of_two_hosts):
    page = page_of_two_hosts
    figures, cuts = page.locator("#whatif-figures"), page.locator("#whatif-cuts")
    pressed(page, "Bandwidth of InfiniBand EDR", "ArrowRight", 20)
    expect(figures).to_contain_text("+25 GB/s, +100 %", timeout=SLOW)
    late = """(n) => window.dash_clientside.set_props("whatif-now", { data: {
        n, answer: {}, moved: true, drawing: null,
        panel: { figures: `answer ${n}`, cuts: `cuts ${n}` } } })"""

    page.evaluate(late, 0)
    page.wait_for_timeout(500)  # nothing tells that nothing changes
    expect(figures).to_contain_text("+25 GB/s, +100 %")
    expect(cuts).not_to_contain_text("cuts 0")

    page.evaluate(late, 10**6)
    expect(figures).to_contain_text("answer 1000000")
    expect(cuts).to_contain_text("cuts 1000000")


def test_what_is_lost_is_drawn_and_opened(page_of_two_hosts):
    """Without a link between the hosts nothing comes out of one: it is the worst."""
    page = page_of_two_hosts
    page.get_by_text("Failures").click()
    page.get_by_role("button", name="Lose each").click()
    rows = page.locator("#whatif-failures-found tbody tr")
    expect(page.locator("#whatif-failures-found")).to_contain_text("The worst case", timeout=SLOW)
    expect(rows.first).to_contain_text("link")
    worst = rows.first.get_by_role("button").first
    worst.click()
    expect(worst).to_have_attribute("aria-pressed", "true", timeout=SLOW)
    expect(page.locator("#whatif-canvas .tl-marks")).to_contain_text("Lost:", timeout=SLOW)
    gpu = page.locator("#whatif-failures-found tr").filter(has_text="a GPU").first
    gpu.get_by_role("button", name=re.compile("Open the cluster")).click()
    expect(page.locator("#counts")).to_contain_text("15 GPUs", timeout=SLOW)
    expect(page.locator("#canvas-pane .tl")).to_be_visible()
    page.locator("#canvas .tl").focus()
    page.keyboard.press("Control+z")
    expect(page.locator("#counts")).to_contain_text("16 GPUs", timeout=SLOW)


def test_networks_are_proposed_and_one_opens_on_the_canvas(page, server):
    """What is refused is said beside its field; dots and cards come, a dot chooses its card."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{server[0]}#propose")
    expect(page.locator("#counts")).to_contain_text("16 GPUs")
    gpus = page.get_by_label("GPUs", exact=True)
    page.get_by_label("Ports of a GPU").fill("1")
    page.keyboard.press("Tab")  # what does not fit together is said at once
    radix = page.get_by_label("Ports of a switch")
    expect(radix).to_have_accessible_description(re.compile("need switches"), timeout=SLOW)
    page.get_by_label("Ports of a GPU").fill("4")
    gpus.fill("16")
    page.locator("#propose-pane summary", has_text="More").click()
    page.get_by_label("Time to search").fill("4 s")
    page.keyboard.press("Enter")
    page.locator("#propose-run").click()
    status = page.locator("#propose-status")
    expect(status).to_contain_text(re.compile("^Finished: [1-9]"), timeout=2 * SLOW)
    cards = page.locator(".ds-pro-card")
    expect(cards.first).to_contain_text("All-to-all per GB")
    sizes = page.locator("#propose-beside .ds-pro-sizes")
    expect(sizes).to_contain_text("1 × all-to-all of 256 MB")
    expect(page.locator("#propose-plot .points path").first).to_be_visible()
    page.locator("#propose-pane summary", has_text="Prices").click()
    price = page.locator("#propose-prices input").first
    cost = cards.first.locator("dd", has_text="$")
    before = cost.inner_text()
    price.fill("0")
    price.press("Enter")
    expect(cost).not_to_have_text(before, timeout=SLOW)  # cards are made anew
    name = cards.first.locator("b").inner_text().removeprefix("1. ")
    cards.first.get_by_role("button", name="Open on the canvas").click()
    expect(page.get_by_label("Name of the topology")).to_have_value(name)
    expect(page.locator("#counts")).to_contain_text("16 GPUs")
