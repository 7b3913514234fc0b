"""Drawing on the canvas alone on a page, with mouse, keyboard and host."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


@pytest.fixture
def empty(show: Any, page: Page) -> Any:
    return show(page)


# ---- drawing ----


def test_four_gpus_in_a_ring_are_drawn_with_the_mouse_alone(empty: Any) -> None:
    expect(empty.page.get_by_text("Draw your first cluster")).to_be_visible()
    for _ in range(4):
        empty.tool("Add a GPU")
    for i in range(4):
        empty.drag(empty.port(f"gpu{i}"), empty.at(f"gpu{(i + 1) % 4}"))

    assert empty.names == ["gpu0", "gpu1", "gpu2", "gpu3"]
    assert len(empty.pairs) == 8
    expect(empty.page.get_by_text("Draw your first cluster")).to_be_hidden()


def test_four_gpus_on_a_switch_are_drawn_with_the_keyboard_alone(empty: Any) -> None:
    """Tab walks on from the device that is selected; in link mode it chooses the other end."""
    empty.keys("g", "g", "g", "g", "s", "l")
    for _ in range(4):
        empty.page.keyboard.press("Enter")
        empty.page.keyboard.press("Tab")
    empty.settle()

    assert empty.pairs == {
        ends for i in range(4) for ends in ((f"gpu{i}", "switch0"), ("switch0", f"gpu{i}"))
    }
    empty.keys("Escape", "Escape", "Enter", "Tab")
    assert empty.ask("c.canvas.selection.devices") == ["gpu1"]


def test_the_keyboard_is_not_caught(drawn: Any) -> None:
    """With nothing selected Tab goes on to the tools; past the last device too."""
    drawn.keys("Tab")
    assert drawn.page.evaluate("document.activeElement.ariaLabel") == "Select (V)"
    drawn.keys("Enter", "Tab", "Tab", "Tab")
    assert drawn.ask("c.canvas.selection.devices") == ["g3"]
    drawn.page.keyboard.press("Tab")
    assert drawn.page.evaluate("document.activeElement.ariaLabel") == "Select (V)"


def test_keys_count_only_while_the_canvas_has_the_focus(drawn: Any) -> None:
    drawn.page.evaluate("document.activeElement.blur()")
    drawn.page.keyboard.press("g")
    assert len(drawn.names) == 4


def test_a_click_gives_the_canvas_the_keys(drawn: Any) -> None:
    """In a notebook they would work on its cells: D twice deletes one."""
    drawn.page.evaluate("document.activeElement.blur()")
    drawn.click("g2")
    drawn.page.keyboard.press("Delete")
    drawn.settle()
    assert "g2" not in drawn.names


def test_arrows_aim_a_link(drawn: Any) -> None:
    drawn.click("g0")
    drawn.keys("l", "ArrowDown", "ArrowRight", "Enter")
    assert ("g0", "g2") in drawn.pairs


def test_a_link_over_another_lies_in_parallel(drawn: Any) -> None:
    drawn.drag(drawn.port("g0"), drawn.at("g1"))
    link = next(
        link for link in drawn.topology["links"] if link["src"] == "g1" and link["dst"] == "g0"
    )
    assert (link["count"], link["bandwidth"]) == (2, 100.0)


def test_link_mode_draws_from_anywhere_on_a_device(drawn: Any) -> None:
    drawn.keys("l")
    drawn.drag(drawn.at("g0"), drawn.at("g2"))
    drawn.keys("v")
    assert {("g0", "g2"), ("g2", "g0")} <= drawn.pairs


def test_a_link_let_go_over_nothing_is_none(drawn: Any) -> None:
    x, y = drawn.port("g1")
    drawn.drag((x, y), (x + 130, y - 40))
    assert len(drawn.pairs) == 8


def test_a_kind_dropped_from_a_palette_joins_the_host_beneath(drawn: Any) -> None:
    x, y = drawn.at("g0")
    drop = """([x, y, kind]) => {
        const data = new DataTransfer();
        data.setData("application/x-topology", kind);
        const where = { clientX: x, clientY: y, bubbles: true, cancelable: true };
        const stage = document.querySelector(".tl-stage");
        stage.dispatchEvent(new DragEvent("dragover", { ...where, dataTransfer: data }));
        stage.dispatchEvent(new DragEvent("drop", { ...where, dataTransfer: data }));
    }"""
    drawn.page.evaluate(drop, [x + 90, y, "memory"])
    drawn.page.evaluate(drop, [x, y + 420, "nic"])
    drawn.settle()
    hosts = {each["name"]: each["host"] for each in drawn.topology["devices"]}
    assert (hosts["memory0"], hosts["nic0"]) == ("h0", None)


def test_a_move_is_one_step_back(drawn: Any) -> None:
    x, y = drawn.at("g3")
    drawn.drag((x, y), (x - 100, y + 30))
    assert drawn.ask("c.drawing.positions.g3")[0] < -20
    drawn.keys("Control+z")
    assert drawn.ask("c.drawing.positions.g3") == [0, 160]
    drawn.keys("Control+Shift+z")
    assert drawn.ask("c.drawing.positions.g3")[0] < -20


def test_a_box_selects_and_becomes_a_host(drawn: Any) -> None:
    (x0, y0), (x1, y1) = drawn.at("g0"), drawn.at("g3")
    drawn.page.keyboard.down("Shift")
    drawn.drag((x0 - 130, y0 - 90), (x1 + 70, y1 + 60))
    drawn.page.keyboard.up("Shift")
    drawn.keys("Control+g")
    hosts = {each["name"]: each["host"] for each in drawn.topology["devices"]}
    assert hosts == {"g0": "host0", "g1": "h0", "g2": "h1", "g3": "host0"}
    drawn.keys("Control+Shift+g")
    assert drawn.topology["devices"][0]["host"] is None


def test_delete_takes_links_along_and_undo_brings_them_back(drawn: Any) -> None:
    before = drawn.topology
    drawn.click("g0")
    drawn.keys("Delete")
    assert drawn.names == ["g1", "g2", "g3"]
    assert len(drawn.pairs) == 4
    drawn.keys("Control+z")
    assert drawn.topology == before


def test_copy_paste_and_duplicate(drawn: Any) -> None:
    drawn.click("g0")
    drawn.keys("Control+c", "Control+v", "Control+v", "Control+d")
    assert drawn.names[4:] == ["g4", "g5", "g6"]
    places = drawn.ask("c.drawing.positions")
    assert len({tuple(places[name]) for name in drawn.names}) == 7


def test_a_host_is_repeated_and_joined_by_rails(drawn: Any) -> None:
    drawn.do("repeat_host", host="h0", times=2, join="rails", bandwidth=25, alpha=1)
    assert drawn.names[-2:] == ["rail0", "rail1"]
    assert {src for src, dst in drawn.pairs if dst == "rail0"} == {"g0", "g4", "g6"}


def test_arrows_move_the_selection_when_nothing_plays(drawn: Any) -> None:
    drawn.click("g0")
    drawn.keys("ArrowRight", "Shift+ArrowDown")
    assert drawn.ask("c.drawing.positions.g0") == [10, 10]


def test_what_is_refused_is_said_and_changes_nothing(drawn: Any) -> None:
    before = drawn.topology
    drawn.do("edit_links", links=[["g0", "g1"]], values={"bandwidth": -3})
    expect(drawn.page.get_by_role("alert")).to_have_text(
        "link g0->g1 needs a positive bandwidth, got -3 GB/s"
    )
    assert "-3 GB/s" in drawn.ask("c.canvas.model.get('message').text")
    assert drawn.topology == before
    drawn.do("dance")
    expect(drawn.page.get_by_role("alert")).to_contain_text("no command is called dance")


def test_a_renamed_device_stays_selected(drawn: Any) -> None:
    drawn.click("g0")
    drawn.do("rename_device", device="g0", name="first")
    assert drawn.ask("c.canvas.model.get('selection').devices") == ["first"]
    assert ("first", "g1") in drawn.pairs


# ---- the host of the canvas ----


def test_a_drawing_from_the_host_is_a_step_of_the_history(drawn: Any) -> None:
    drawn.ask(
        "void c.canvas.model.receive('drawing', x)",
        {"topology": {"name": "n", "devices": [{"name": "a", "kind": "gpu"}], "links": []}},
    )
    drawn.settle()
    assert drawn.names == ["a"]
    assert drawn.ask("'a' in c.canvas.model.get('drawing').positions")
    drawn.keys("Control+z")
    assert drawn.names == ["g0", "g1", "g2", "g3"]


def test_an_edit_reaches_the_host_as_a_whole(drawn: Any) -> None:
    drawn.keys("g")
    assert drawn.ask("c.canvas.model.get('drawing') === c.drawing")
    assert drawn.ask("c.canvas.model.get('selection').devices") == ["gpu0"]


def test_a_command_from_the_host_runs_once(drawn: Any) -> None:
    for command in ({"n": 1}, {"n": 1}, {"n": 2}):
        drawn.ask(
            "void c.canvas.model.receive('command', x)",
            {"name": "add", "args": {"kind": "gpu"}, **command},
        )
    assert drawn.names[4:] == ["gpu0", "gpu1"]


def test_selection_from_the_host_is_shown(drawn: Any) -> None:
    drawn.ask(
        "void c.canvas.model.receive('selection', x)",
        {"devices": [], "links": [["g1", "g0"]], "hosts": ["h1"]},
    )
    assert drawn.ask("c.cy.$(':selected').length") == 2


def test_the_theme_follows_the_page_or_is_given(show: Any, page: Page, ring: Any) -> None:
    canvas = show(page, ring[0])
    assert canvas.ask("c.canvas.theme") == "light"
    page.evaluate("document.documentElement.dataset.mantineColorScheme = 'dark'")
    canvas.settle()
    assert canvas.ask("c.canvas.theme") == "dark"
    canvas.ask("void c.canvas.model.receive('theme', 'light')")
    assert canvas.root.get_attribute("data-theme") == "light"


def test_the_wheel_scrolls_the_page_until_the_canvas_has_the_focus(drawn: Any) -> None:
    drawn.page.evaluate("document.activeElement.blur()")
    drawn.page.mouse.move(640, 400)
    before = drawn.ask("c.cy.zoom()")
    drawn.page.mouse.wheel(0, -200)
    drawn.settle()
    assert drawn.ask("c.cy.zoom()") == before
    drawn.root.focus()
    drawn.page.mouse.wheel(0, -200)
    drawn.settle()
    assert drawn.ask("c.cy.zoom()") > before


def test_a_canvas_that_is_taken_away_leaves_nothing_behind(film: Any) -> None:
    film.ask("void (window.gone = c.canvas, c.canvas.destroy())")
    film.page.evaluate(
        """() => {
            window.gone.model.receive('theme', 'dark');
            document.body.dataset.jpThemeLight = 'false';
        }"""
    )
    film.page.wait_for_timeout(80)
    assert film.page.locator(".tl").count() == 0


# ---- what is under the pointer ----


def test_a_link_under_the_pointer_tells_its_figures(drawn: Any) -> None:
    (x0, y0), (x1, y1) = drawn.at("g0"), drawn.at("g1")
    drawn.page.mouse.move((x0 + x1) / 2, (y0 + y1) / 2)
    tip = drawn.page.get_by_role("tooltip")
    for text in ("g0 ↔ g1", "50 GB/s (400 Gb/s)", "0 µs", "NVLink", "each way"):
        expect(tip).to_contain_text(text)


def test_a_device_under_the_pointer_tells_its_figures(drawn: Any) -> None:
    drawn.page.mouse.move(*drawn.at("g2"))
    tip = drawn.page.get_by_role("tooltip")
    for text in ("g2", "gpu", "h1", "stores, copies, reduces", "100 GB/s (800 Gb/s)"):
        expect(tip).to_contain_text(text)


def test_question_mark_shows_the_keys(drawn: Any) -> None:
    drawn.keys("?")
    sheet = drawn.page.get_by_role("dialog", name="Keyboard")
    expect(sheet).to_be_visible()
    expect(sheet.get_by_role("heading")).to_have_text(
        ["Drawing", "Selection", "View", "Playing", "Presenting"]
    )
    drawn.keys("Escape")
    expect(sheet).to_be_hidden()


@pytest.mark.parametrize(
    ("size", "columns", "scrolls"),
    [((1440, 900), 3, False), ((1024, 700), 3, False), ((390, 844), 1, True)],
)
def test_the_keys_stand_in_columns_that_fit_the_window(drawn, size, columns, scrolls):
    drawn.page.set_viewport_size({"width": size[0], "height": size[1]})
    drawn.keys("?")
    sheet = drawn.page.get_by_role("dialog", name="Keyboard")
    box = sheet.bounding_box()
    assert box["x"] >= 0 <= box["y"]
    assert box["x"] + box["width"] <= size[0]
    assert box["y"] + box["height"] <= size[1]
    headings = sheet.get_by_role("heading")
    assert len({each.bounding_box()["x"] for each in headings.all()}) == columns
    taller, wider = sheet.evaluate(
        "(e) => [e.scrollHeight > e.clientHeight, e.scrollWidth > e.clientWidth]"
    )
    assert (taller, wider) == (scrolls, False)


def test_devices_that_are_put_into_a_host_and_out_again_stay_whole(drawn):
    """A box can only be entered once it is there, and takes along what is still in it."""
    lines = drawn.ask("c.cy.edges().length")
    box = "c.cy.nodes('.host').map((n) => [n.data('name'), n.children().length])"
    drawn.keys("Control+a", "Control+Shift+g")
    assert drawn.ask(box) == []
    assert drawn.ask("[c.cy.nodes('.device').length, c.cy.edges().length]") == [4, lines]
    drawn.keys("Control+a", "Control+g")
    assert drawn.ask(box) == [["host0", 4]]
    assert drawn.ask("[c.cy.nodes('.device').length, c.cy.edges().length]") == [4, lines]
