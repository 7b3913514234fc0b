"""What is around the views of the designer: their addresses, the answer at the top, the columns."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from ccl.collective import all_gather
from ccl.problem import Problem
from ccl.serialization.documents import document
from gallery import open_cluster
from interchange.formats.own.fragment import Share, fragment_of
from tests.designer.sweeps import write_sweep

pytestmark = pytest.mark.browser

SLOW = 90_000
"""ms for a solve on a busy machine."""


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


def solve(page):
    """Solve, and wait for its end."""
    page.keyboard.press("Control+Enter")
    expect(page.locator("#schedule .ds-banner")).to_be_visible(timeout=SLOW)
    expect(page.locator("#solve")).to_be_visible(timeout=SLOW)


def test_keys_solve_only_where_solve_is_shown(designer):
    page, counted = designer.page, "() => window.pressed"
    page.evaluate(
        "() => { window.pressed = 0; document.getElementById('solve')"
        ".addEventListener('click', () => { window.pressed += 1; }) }"
    )
    choose(page, "Compare")
    page.keyboard.press("Control+Enter")
    assert page.evaluate(counted) == 0
    choose(page, "Table")
    page.keyboard.press("Control+Enter")
    page.wait_for_function("() => window.pressed === 1", timeout=SLOW)


def test_the_answer_stands_at_the_top_in_the_words_of_its_card(designer):
    """In every view; grey once the request or the drawing has changed."""
    page, answer = designer.page, designer.page.locator("#answer")
    expect(answer).to_have_text("No schedule yet")
    page.keyboard.press("Control+Enter")
    expect(answer).to_contain_text(re.compile("Solving|Still solving"), timeout=SLOW)
    solve(page)
    stats = page.locator("#schedule .ds-stat b")
    figures = answer.locator("b")
    expect(figures).to_have_text(stats.all_inner_texts()[:2], timeout=SLOW)
    expect(answer).to_contain_text("makespan")
    expect(answer).to_contain_text(re.compile("above the .*bound"))
    proof = answer.locator(".ds-proved").inner_text().strip()
    expect(page.locator("#schedule .ds-banner")).to_contain_text(proof)
    for words in ("Table", "Compare", "What if", "Canvas"):
        choose(page, words)
        expect(answer.locator(".ds-proved")).to_be_visible()
    old = answer.locator(".ds-answer-old")
    expect(old).to_have_count(0)
    page.locator("#size").fill("2MB")
    expect(old).to_contain_text("Out of date", timeout=SLOW)
    page.locator("#size").fill("1MB")
    expect(old).to_have_count(0, timeout=SLOW)
    designer.click("g0")
    designer.keys("Delete")
    expect(old).to_contain_text("Out of date", timeout=SLOW)


def test_the_time_limit_stands_beside_solve(designer):
    """One field, whose value goes with the solve and whose error stands below it."""
    page = designer.page
    limit, button = page.get_by_label("Time limit"), page.locator("#solve")
    expect(limit).to_have_count(1)
    expect(limit).to_have_value("60 s")
    at, beside = limit.bounding_box(), button.bounding_box()
    assert 0 < beside["x"] - (at["x"] + at["width"]) < 40
    assert abs(beside["y"] + beside["height"] / 2 - at["y"] - at["height"] / 2) < 4
    limit.fill("soon")
    limit.press("Enter")
    expect(limit).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".tl-field:has(#time-limit) .tl-field-told")).to_be_visible()
    expect(button).to_be_disabled(timeout=SLOW)
    limit.fill("7")
    limit.press("Enter")
    expect(limit).to_have_value("7 s")
    expect(button).to_be_enabled(timeout=SLOW)
    page.get_by_role("button", name="Options of the method").click()
    page.get_by_role("button", name="Reset to defaults").click()
    expect(limit).to_have_value("60 s")


def test_cards_fold_and_stay_folded(designer):
    page = designer.page
    gallery, schedule = page.locator("#gallery-list"), page.locator("#solve-box, #plan-box").first
    for name, inside in (("Gallery", gallery), ("Schedule", schedule)):
        head = page.get_by_role("button", name=name, exact=True)
        expect(head).to_have_attribute("aria-expanded", "true")
        head.focus()
        page.keyboard.press("Enter")
        expect(head).to_have_attribute("aria-expanded", "false")
        expect(inside).to_be_hidden()
    page.reload()
    expect(page.get_by_role("button", name="Gallery", exact=True)).to_have_attribute(
        "aria-expanded", "false", timeout=SLOW
    )
    expect(gallery).to_be_hidden()
    page.get_by_role("button", name="Gallery", exact=True).click()
    expect(gallery).to_be_visible()
    # What leads into a folded card opens it.
    page.locator(".ds-skip").last.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#schedule-section")).to_be_focused()
    expect(schedule).to_be_visible()


def test_columns_hide_by_buttons_and_by_keys(designer):
    """The canvas takes their width, a reload remembers, and a field keeps its brackets."""
    page = designer.page
    left, right = page.locator(".ds-left"), page.locator(".ds-right")

    def width():
        return page.locator("#canvas .tl-graph").bounding_box()["width"]

    narrow = width()
    page.locator("#panel-left").click()
    expect(left).to_be_hidden()
    assert width() > narrow + 200
    designer.root.focus()
    page.keyboard.press("]")
    expect(right).to_be_hidden()
    assert width() > narrow + 500
    page.reload()
    page.wait_for_selector(".tl-graph canvas")
    expect(left).to_be_hidden()
    expect(page.locator("#panel-right")).to_have_attribute("aria-expanded", "false")
    page.locator("#topology-name").focus()
    page.keyboard.type("[]")
    expect(page.locator("#topology-name")).to_have_value(re.compile(r"\[\]"))
    expect(left).to_be_hidden()
    page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press("[")
    page.keyboard.press("]")
    expect(left).to_be_visible()
    expect(right).to_be_visible()
    page.locator("#canvas .tl").focus()
    page.keyboard.press("?")
    sheet = page.locator("#canvas .tl-sheet")
    expect(sheet).to_contain_text("hide or show the columns")
    expect(sheet).to_contain_text("all drawings and their versions")


CUT = """() => {
    const wide = document.documentElement.clientWidth;
    const seen = [...document.querySelectorAll(
        ".ds-header :is(button, input:not([type=file]), .ds-answer, .ds-view),"
        + ".tl-bar button, .tl-time button, .tl-strip, .tl-read"
    )].filter((each) => each.checkVisibility({ visibilityProperty: true }));
    const boxes = seen.map((each) => [each, each.getBoundingClientRect()])
        .filter(([, box]) => box.width > 2);
    const name = (each) => each.id || each.getAttribute("aria-label") || each.className;
    const out = boxes.filter(([each, box]) => box.left < -1 || box.right > wide + 1
        || box.bottom > innerHeight + 1).map(([each]) => `${name(each)} is cut off`);
    const under = boxes.filter(([each, box]) => {
        const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
        const at = document.elementFromPoint(x, y);
        return !(each.contains(at) || at?.contains(each));
    }).map(([each]) => `${name(each)} is under another`);
    return [...out, ...under];
}"""
"""What of the bar, the tools and the player is outside of the page or covered."""


@pytest.mark.parametrize("size", [(390, 844), (768, 1024), (1024, 700), (1280, 720), (1920, 1080)])
def test_nothing_is_cut_off_or_under_another(designer, size):
    page = designer.page
    solve(page)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.wait_for_timeout(500)
    assert page.evaluate(CUT) == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= size[0]
    if size[0] == 1920:
        assert page.locator("#canvas .tl-graph").bounding_box()["width"] > 1300


@pytest.fixture
def phone(new_page, server, drive):
    """The designer on a phone, under fingers, and a driver of its canvas."""
    page = new_page(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page.goto(server[0])
    driver = drive(page)
    expect(page.locator("#counts")).to_contain_text("16 GPUs", timeout=SLOW)
    return driver


def fingers(page, *places):
    """Put fingers down, move each on its way in steps, and lift them."""
    session = page.context.new_cdp_session(page)

    def touch(what, points):
        spots = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)]
        session.send("Input.dispatchTouchEvent", {"type": what, "touchPoints": spots})
        page.wait_for_timeout(30)

    touch("touchStart", [begin for begin, _ in places])
    for step in range(1, 9):
        part = step / 8
        touch("touchMove", [(a + (c - a) * part, b + (d - b) * part) for (a, b), (c, d) in places])
    touch("touchEnd", [])


def test_a_pinch_zooms_and_a_finger_drags(phone):
    """Also where the first finger of the pinch is on a device, which stays where it is."""
    page = phone.page
    box = page.locator("#canvas .tl-graph").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    ground = ((x, box["y"] + box["height"] - 60), (x + 70, box["y"] + box["height"] - 90))
    zoom = phone.ask("c.cy.zoom()")
    fingers(page, ((x - 20, y + 120), (x - 110, y + 120)), ((x + 20, y + 120), (x + 110, y + 120)))
    phone.settle()
    assert phone.ask("c.cy.zoom()") > 1.5 * zoom
    phone.do("fit")
    places = phone.ask("c.drawing.positions")
    on = phone.at("g3")
    fingers(page, (on, (on[0] - 60, on[1])), ((on[0] + 40, on[1]), (on[0] + 90, on[1])))
    phone.settle()
    assert phone.ask("c.cy.zoom()") > 1.5 * zoom
    assert phone.ask("c.canvas.selection.devices") == []
    phone.do("fit")
    pan = phone.ask("c.cy.pan()")
    fingers(page, ground)
    assert phone.ask("c.cy.pan()")["x"] > pan["x"] + 40
    assert phone.ask("c.drawing.positions") == places
    phone.do("fit")
    begin = phone.at("g5")
    fingers(page, (begin, (begin[0] + 6, begin[1] + 90)))
    phone.settle()
    assert phone.ask("c.drawing.positions.g5")[1] > places["g5"][1] + 40


def test_columns_are_drawers_on_a_phone(phone):
    page = phone.page
    left, right = page.locator(".ds-left"), page.locator(".ds-right")
    expect(left).to_be_hidden()
    expect(right).to_be_hidden()
    page.locator("#panel-left").tap()
    expect(left).to_be_visible()
    expect(left).to_be_focused()
    left.locator(".ds-tile").first.tap()
    expect(page.locator("#counts")).to_contain_text("17 GPUs")
    page.touchscreen.tap(375, 600)
    expect(left).to_be_hidden()
    page.locator("#panel-right").tap()
    expect(right).to_be_visible()
    page.locator("#panel-left").tap()
    expect(right).to_be_hidden()
    expect(left).to_be_visible()
    page.keyboard.press("Escape")
    expect(left).to_be_hidden()
    expect(page.locator("#panel-left")).to_be_focused()


SEEN = """() => {
    const box = (each) => each.getBoundingClientRect();
    const bar = box(document.querySelector("#view"));
    const beside = box(document.querySelector("#answer"));
    const inside = (at, of) => at.left >= of.left - 0.5 && at.right <= of.right + 0.5
        && at.top >= of.top - 0.5 && at.bottom <= of.bottom + 0.5;
    const labels = [...document.querySelectorAll("#view label")];
    const small = labels.filter((each) => box(each).height < 24 || box(each).width < 24);
    const figures = [...document.querySelectorAll("#answer b")];
    const lines = labels.filter((each) => box(each).height > 32);
    return {
        cut: labels.filter((each) => !inside(box(each), bar)).map((each) => each.innerText),
        small: [...small, ...lines].map((each) => each.innerText),
        figures: figures.map((each) => each.innerText),
        short: figures.filter((each) => each.scrollWidth > each.clientWidth
            || !inside(box(each), beside)).map((each) => each.innerText),
        header: [box(document.querySelector(".ds-solve")).bottom,
            box(document.querySelector(".ds-header")).bottom],
    };
}"""
"""Of the row of views and the answer beside it what is cut off, or too small for a finger."""


@pytest.mark.parametrize("width", [390, 360])
def test_a_phone_shows_every_view_and_the_answer_whole(designer, width):
    """Five views of at least 24 pixels each way, makespan and gap, the question in two rows."""
    page = designer.page
    solve(page)
    page.set_viewport_size({"width": width, "height": 844})
    page.wait_for_timeout(500)
    seen = page.evaluate(SEEN)
    assert len(seen["figures"]) == 2
    assert (seen["cut"], seen["small"], seen["short"]) == ([], [], [])
    assert seen["header"][0] <= seen["header"][1]
    choose(page, "Propose")
    expect(view(page)).to_have_attribute("data-view", "propose")


SPARE = """() => {
    const header = document.querySelector(".ds-header").getBoundingClientRect();
    const rows = [...document.querySelectorAll(".ds-header :is(button, input, .ds-answer)")]
        .filter((each) => each.checkVisibility({ visibilityProperty: true }))
        .map((each) => each.getBoundingClientRect());
    const main = document.querySelector(".ds-stage").getBoundingClientRect();
    const last = Math.max(...rows.map(({ bottom }) => bottom));
    return [header.bottom - last, main.top - header.bottom];
}"""
"""Pixels of the bar below the last thing in it, and between it and the view."""


@pytest.mark.parametrize("size", [(1440, 900), (1024, 700), (390, 844)])
def test_the_bar_has_no_empty_row_in_any_view(designer, size):
    """Views that leave rows of the question out have a lower bar, and begin where it ends."""
    page = designer.page
    page.set_viewport_size({"width": size[0], "height": size[1]})
    for name in ("Canvas", "Compare", "What if", "Propose"):
        choose(page, name)
        expect(view(page)).to_have_attribute("data-view", name.lower().replace(" ", ""))
        below, between = page.evaluate(SPARE)
        assert 4 <= below <= 14, name
        assert 0 <= between < 1, name


def test_what_is_wrong_is_said_beside_its_field(designer):
    """A size that cannot be read, more chunks than are kept, a root that is no rank."""
    page = designer.page

    def said(field):
        return page.locator(f".tl-field:has(#{field}) .tl-field-told[data-wrong]")

    for field, value, words in (
        ("size", "many", "not a number of bytes"),
        ("chunks", "1000000", "at most 1,048,576 are kept"),
    ):
        before = page.locator(f"#{field}").input_value()
        page.locator(f"#{field}").fill(value)
        expect(said(field)).to_contain_text(words, timeout=SLOW)
        expect(page.locator("#answer")).to_contain_text(words, timeout=SLOW)
        page.locator(f"#{field}").fill(before)
        expect(said(field)).to_have_count(0, timeout=SLOW)
    page.get_by_role("textbox", name="Collective").click()
    page.get_by_role("option", name="Broadcast").click()
    page.locator("#root").fill("99")
    expect(said("root")).to_contain_text("ranks go from 0 to 15", timeout=SLOW)


def test_what_refuses_is_not_ticked(designer):
    """And is again, once it takes the problem."""
    page = designer.page
    choose(page, "Compare")
    tree = page.get_by_role("checkbox", name="Double binary tree")
    expect(tree).to_be_disabled(timeout=SLOW)
    expect(tree).not_to_be_checked()
    page.get_by_role("textbox", name="Collective").click()
    page.get_by_role("option", name="All-reduce").click()
    expect(tree).to_be_enabled(timeout=SLOW)
    expect(tree).to_be_checked()


def test_a_link_type_is_given_to_the_links_that_are_selected(designer):
    """Both directions of the line, in one step; of the others none."""
    page = designer.page
    typed = (
        "c.drawing.topology.links.filter((l) => l.medium === 'InfiniBand NDR')"
        ".map((l) => [l.src, l.dst, l.bandwidth]).sort()"
    )
    designer.ask("void c.canvas.select({ links: [['g0', 'g4']] })")
    expect(page.locator("#inspector")).to_contain_text("g4")
    page.locator(".ds-links").get_by_text("InfiniBand NDR").click()
    page.wait_for_timeout(1500)
    assert designer.ask(typed) == [["g0", "g4", 50], ["g4", "g0", 50]]
    page.locator("#canvas .tl").first.focus()
    page.keyboard.press("Control+z")
    assert designer.ask(typed) == []
