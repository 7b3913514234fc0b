"""Links that open as they were copied, and pages that play from disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ccl.collective import all_gather, all_reduce
from ccl.layout import layout
from ccl.problem import Problem
from ccl.serialization.documents import document
from formulations import compare
from gallery import open_cluster
from interchange.formats.own.fragment import Share, Solving, fragment_of, share_of
from tests.browser.conftest import CanvasDriver
from tests.ccl.clusters import ring
from widgets.pages.comparison import comparison_html

pytestmark = pytest.mark.browser

SLOW = 40_000
PAIR = "document.querySelector('.tlp')?.__pair"


def test_a_link_opens_what_was_copied_and_keeps_what_was_drawn(
    new_page: Callable[..., Page], server: tuple[str, int], drive: Callable[[Page], CanvasDriver]
) -> None:
    """A link over a drawing, a reload after an edit, a broken link; new tabs without one."""
    topology = open_cluster("dgx-1v")
    places = {name: (x + 7.0, y) for name, (x, y) in layout(topology).items()}
    problem = Problem(topology, all_reduce(8, 16e6, chunks=2))
    solving = Solving(formulation="te-ccl-milp", options={"horizon": 7}, time_limit=12.0, gap=0.05)
    link = fragment_of(Share(document(problem, positions=places), solving))
    address = server[0]

    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    name = page.locator("#topology-name")
    page.goto(address)
    expect(name).to_have_value("2 × NDv2", timeout=SLOW)
    drive(page).do("rename_topology", name="drawn before")
    expect(name).to_have_value("drawn before", timeout=SLOW)
    page.wait_for_timeout(300)  # it is kept 150 ms after the last edit

    page.goto(f"{address}#t={link}")  # over the address of the page that is open
    expect(name).to_have_value("DGX-1V", timeout=SLOW)
    expect(page.get_by_text("DGX-1V came with the link")).to_be_visible()
    expect(page.locator("#size")).to_have_value("16 MB")
    expect(page.locator("#chunks")).to_have_value("2")
    expect(page.locator("#gap-asked")).to_have_value("5 %")

    page.get_by_role("button", name="Export").click()
    page.get_by_text("Copy link").click()
    expect(page.get_by_text("Link copied")).to_be_visible(timeout=SLOW)
    copied = page.evaluate("navigator.clipboard.readText()")
    share = share_of(copied)
    assert copied.startswith(f"{address}#t=")
    assert share.document.problem == problem
    assert share.document.positions == places
    assert share.solving == solving

    drive(page).do("rename_topology", name="drawn after")
    expect(name).to_have_value("drawn after", timeout=SLOW)
    page.wait_for_timeout(300)
    page.reload()
    expect(name).to_have_value("drawn after", timeout=SLOW)
    page.goto(f"{address}#t={link[:200]}")
    expect(page.get_by_text("It was cut or changed on its way")).to_be_visible(timeout=SLOW)
    expect(name).to_have_value("drawn after")
    assert page.url == f"{address}#t={link}"

    beside = page.context.new_page()
    beside.goto(address)
    expect(beside.locator("#topology-name")).to_have_value("2 × NDv2", timeout=SLOW)
    page.close()
    after = page.context.new_page()  # takes over what the closed one has left
    after.goto(address)
    expect(after.locator("#topology-name")).to_have_value("drawn before", timeout=SLOW)


def test_a_comparison_plays_from_disk(new_page: Callable[..., Page], tmp_path: Path) -> None:
    """Both players, another schedule without a server, the plot in another unit, and no script."""
    found = compare(Problem(ring(4), all_gather(4, 4e6)), ["ring", "direct"], sizes=[4e4, 4e6])
    file = tmp_path / "comparison.html"
    file.write_text(comparison_html(found), encoding="utf-8")

    page = new_page(color_scheme="dark")
    page.goto(file.as_uri())
    page.wait_for_function(f"() => {PAIR}?.sides.every((side) => side.playback)")
    expect(page).to_have_title("All-gather on ring")
    box = page.get_by_role("combobox", name="Schedule A")
    before = page.evaluate(f"{PAIR}?.sides[0].playback.makespan")
    small = page.locator("optgroup[label='40 KB'] option").first.get_attribute("value")
    box.select_option(small)
    page.wait_for_function(f"(old) => {PAIR}.sides[0].playback?.makespan < old", arg=before)
    shown = page.locator(".plot:visible svg:visible")
    expect(shown).to_have_count(1)
    expect(shown).to_contain_text("makespan")
    page.get_by_text("algbw", exact=True).first.click()
    expect(page.locator(".plot:visible svg:visible")).to_contain_text("GB/s")

    still = new_page(java_script_enabled=False)
    still.goto(file.as_uri())
    expect(still.locator("#pair svg:visible")).to_have_count(1)
    expect(still.locator("noscript p")).to_be_visible()
    expect(still.get_by_role("row")).to_have_count(1 + 2 + 4 + 4)
