"""Gestures people try on the canvas: menus, renaming, finding, links and copies by pattern."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

AXE = Path(__file__).parents[2] / "widgets" / "js" / "node_modules" / "axe-core" / "axe.min.js"
FIND = """async () => {
    const { violations } = await axe.run(document.querySelector(".tl"));
    const bad = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
    return bad.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(" ")}`));
}"""


def menu(canvas: Any, name: str = "Commands for") -> Any:
    """Return the menu that is open."""
    return canvas.page.get_by_role("menu", name=name)


def item(canvas: Any, name: str) -> Any:
    """Return an item of a menu that is open."""
    pattern = ("menuitem", "menuitemcheckbox")
    return canvas.page.locator(
        ", ".join(f"[role={role}]:has(> span:text-is('{name}'))" for role in pattern)
    )


def right_click(canvas: Any, name: str) -> None:
    """Click a device with the right button."""
    canvas.page.mouse.click(*canvas.at(name), button="right")
    canvas.settle()


def choose(canvas: Any, *names: str) -> None:
    """Click items, the first one's submenu being the next one's menu."""
    for name in names:
        item(canvas, name).click()
    canvas.settle()


def inside(outer: Any, inner: Any) -> bool:
    """Return whether a box lies in another."""
    return all(
        outer[at] <= inner[at] and inner[at] + inner[size] <= outer[at] + outer[size]
        for at, size in (("x", "width"), ("y", "height"))
    )


def place(canvas: Any, x: float, y: float) -> tuple[float, float]:
    """Return where a place of the drawing is on the page."""
    return canvas._screen("return x;", [x, y])


# ---- the context menu ----


def test_a_right_click_selects_a_device_and_offers_what_fits_it(drawn: Any) -> None:
    drawn.click("g3")
    right_click(drawn, "g0")
    expect(menu(drawn, "Commands for g0")).to_be_visible()
    assert drawn.ask("c.canvas.selection.devices") == ["g0"]
    expect(item(drawn, "Take out of the host")).to_be_visible()
    expect(item(drawn, "Align")).to_have_count(0)
    choose(drawn, "Delete")
    assert drawn.names == ["g1", "g2", "g3"]
    expect(menu(drawn)).to_be_hidden()
    drawn.page.keyboard.press("Control+z")
    drawn.settle()
    assert drawn.names == ["g0", "g1", "g2", "g3"]


def test_a_mixed_selection_is_kept_and_still_offers_what_fits_its_parts(drawn: Any) -> None:
    drawn.do("select", devices=["g0", "g2"], links=[["g0", "g1"]], hosts=[])
    right_click(drawn, "g2")
    expect(menu(drawn, "Commands for 3 selected")).to_be_visible()
    choose(drawn, "Align", "Top edges")
    assert drawn.ask("[c.drawing.positions.g0[1], c.drawing.positions.g2[1]]") == [0, 0]
    right_click(drawn, "g2")
    choose(drawn, "Put into a host")
    hosts = {each["name"]: each["host"] for each in drawn.topology["devices"]}
    assert hosts == {"g0": "host0", "g1": "h0", "g2": "host0", "g3": "h1"}


def test_a_link_takes_another_type_and_becomes_one_way(drawn: Any) -> None:
    drawn.page.mouse.click(*place(drawn, 100, 160), button="right")
    expect(menu(drawn, "Commands for g2 and g3")).to_be_visible()
    choose(drawn, "Make one-way")
    assert ("g3", "g2") not in drawn.pairs
    assert ("g2", "g3") in drawn.pairs
    drawn.ask(
        "void c.canvas.model.receive('link_preset', x)",
        {"bandwidth": 25, "alpha": 1, "medium": "EDR"},
    )
    drawn.page.mouse.click(*place(drawn, 100, 160), button="right")
    choose(drawn, "Link type", "EDR · 25 GB/s · 1 µs, as the next link")
    link = next(
        each for each in drawn.topology["links"] if each["src"] == "g2" and each["dst"] == "g3"
    )
    assert (link["bandwidth"], link["alpha"], link["medium"]) == (25, 1, "EDR")


def test_a_host_is_repeated_folded_and_opened_from_its_menu(drawn: Any) -> None:
    x, y = drawn.at("g0")
    drawn.page.mouse.click(x, y + 40, button="right")  # its box, below the device
    drawn.page.keyboard.press("Escape")
    drawn.page.mouse.click(*place(drawn, -52, 0), button="right")
    expect(menu(drawn, "Commands for h0")).to_be_visible()
    choose(drawn, "Repeat", "4 in all, joined by a switch")
    assert len(drawn.names) == 11
    drawn.do("select", hosts=["h0"])
    drawn.keys("ContextMenu")
    choose(drawn, "Fold")
    assert drawn.ask("c.shown.groups.map((g) => g.host)") == ["h0"]
    drawn.keys("Shift+F10")
    choose(drawn, "Open")
    assert drawn.ask("c.shown.groups.length") == 0


def test_the_ground_adds_and_pastes_where_it_was_clicked(drawn: Any) -> None:
    drawn.click("g1")
    drawn.keys("Control+c")
    spot = place(drawn, 100, 80)
    drawn.page.mouse.click(*spot, button="right")
    expect(menu(drawn, "Commands for the drawing")).to_be_visible()
    choose(drawn, "Add a switch here")
    assert drawn.names[-1] == "switch0"
    x, y = drawn.ask("c.drawing.positions.switch0")
    assert abs(x - 100) <= 1
    assert abs(y - 80) <= 1
    drawn.page.mouse.click(*place(drawn, -120, 80), button="right")
    choose(drawn, "Paste here")
    x, y = drawn.ask("c.drawing.positions.g4")
    assert abs(x + 120) <= 1
    assert abs(y - 80) <= 1


def test_keys_walk_the_menu_and_its_submenus(drawn: Any) -> None:
    drawn.keys("Control+a", "ContextMenu")
    focused = "document.activeElement.firstElementChild?.textContent"
    assert drawn.page.evaluate(focused) == "Link type"
    drawn.page.keyboard.press("ArrowRight")
    expect(menu(drawn, "Link type")).to_be_visible()
    drawn.page.keyboard.press("Escape")
    expect(menu(drawn, "Link type")).to_be_hidden()
    assert drawn.page.evaluate(focused) == "Link type"
    for key in ("End", "ArrowUp", "d"):
        drawn.page.keyboard.press(key)
    assert drawn.page.evaluate(focused) == "Delete"
    drawn.page.keyboard.press("Escape")
    expect(menu(drawn)).to_be_hidden()
    assert drawn.page.evaluate("document.activeElement.classList.contains('tl')")
    drawn.do("select", devices=drawn.names)
    drawn.keys("ContextMenu")
    for key in ("a", "ArrowRight", "ArrowDown", "Enter"):
        drawn.page.keyboard.press(key)
    drawn.settle()
    assert len({x for x, _ in drawn.ask("Object.values(c.drawing.positions)")}) == 1


def test_no_menu_leaves_the_canvas(show: Any, new_page: Any, ring: Any) -> None:
    page = new_page(viewport={"width": 390, "height": 420})
    canvas = show(page, ring[0])
    root = canvas.root.bounding_box()
    corners = [(x, y) for x in (9, root["width"] - 9) for y in (9, root["height"] - 9)]
    for x, y in corners:
        page.mouse.click(root["x"] + x, root["y"] + y, button="right")
        canvas.settle()
        assert inside(root, menu(canvas).bounding_box())
        page.keyboard.press("Escape")
    canvas.do("select", devices=canvas.names)
    right_click(canvas, "g2")
    item(canvas, "Align").click()
    assert inside(root, menu(canvas, "Align").bounding_box())


def test_a_long_press_opens_it_and_keeps_what_is_selected(
    show: Any, new_page: Any, ring: Any
) -> None:
    page = new_page(has_touch=True)
    canvas = show(page, ring[0])
    canvas.do("select", devices=["g0", "g1"])
    session = page.context.new_cdp_session(page)
    x, y = canvas.at("g0")

    def touch(kind: str, points: list[dict[str, float]]) -> None:
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", [{"x": x, "y": y}])
    expect(menu(canvas, "Commands for 2 selected")).to_be_visible()
    touch("touchEnd", [])
    canvas.settle()
    assert canvas.ask("c.canvas.selection.devices") == ["g0", "g1"]
    item(canvas, "Align").tap()
    item(canvas, "Centres").tap()
    canvas.settle()
    assert canvas.ask("c.drawing.positions.g0[0] === c.drawing.positions.g1[0]")
    touch("touchStart", [{"x": x, "y": y + 200}])
    touch("touchMove", [{"x": x + 40, "y": y + 200}])
    page.wait_for_timeout(600)
    touch("touchEnd", [])
    expect(menu(canvas)).to_be_hidden()


def test_a_view_that_only_shows_offers_nothing_that_edits(show: Any, page: Page, ring: Any) -> None:
    canvas = show(page, ring[0])
    canvas.ask("void c.canvas.model.receive('locked', true)")
    right_click(canvas, "g0")
    expect(item(canvas, "Delete")).to_have_count(0)
    choose(canvas, "Zoom to selection")
    x, _y = canvas.at("g0")
    box = canvas.root.bounding_box()
    assert abs(x - box["x"] - box["width"] / 2) < 2


# ---- renaming in place ----


def test_a_double_click_renames_a_device_and_a_bad_name_says_why(drawn: Any) -> None:
    drawn.page.mouse.dblclick(*drawn.at("g0"))
    field = drawn.page.get_by_role("textbox", name="New name of g0")
    expect(field).to_be_focused()
    field.fill("g1")
    field.press("Enter")
    expect(drawn.page.get_by_text("there is a device called g1 already")).to_be_visible()
    expect(field).to_be_visible()
    field.fill("root")
    field.press("Enter")
    expect(field).to_be_hidden()
    assert drawn.names[0] == "root"
    assert drawn.ask("c.canvas.selection.devices") == ["root"]
    drawn.page.keyboard.press("Control+z")  # the canvas has the focus again
    drawn.settle()
    assert drawn.names[0] == "g0"


def test_the_name_and_the_box_of_a_host_rename_it(drawn: Any) -> None:
    drawn.page.mouse.dblclick(*place(drawn, 100, -70))  # above its box
    field = drawn.page.get_by_role("textbox", name="New name of h0")
    expect(field).to_be_focused()
    field.fill("box")
    drawn.page.mouse.click(*place(drawn, 100, 80))  # leaving it keeps what was typed
    drawn.settle()
    assert [each["host"] for each in drawn.topology["devices"]] == ["box", "box", "h1", "h1"]
    drawn.page.mouse.dblclick(*place(drawn, 100, 200))
    expect(drawn.page.get_by_role("textbox", name="New name of h1")).to_be_focused()


def test_f2_renames_and_escape_drops(drawn: Any) -> None:
    drawn.click("g2")
    drawn.keys("F2")
    field = drawn.page.get_by_role("textbox", name="New name of g2")
    expect(field).to_have_value("g2")
    field.fill("x")
    field.press("Escape")
    expect(field).to_be_hidden()
    assert "g2" in drawn.names
    drawn.keys("F2")
    drawn.page.keyboard.type("nvl")
    drawn.page.keyboard.press("Enter")
    drawn.settle()
    assert "nvl" in drawn.names
    drawn.do("select", devices=["g0", "g1"])
    drawn.keys("F2")
    expect(drawn.page.get_by_text("renaming needs one device or one host")).to_be_visible()


def test_a_device_named_after_its_host_keeps_that(drawn: Any) -> None:
    """The box says h0 already, so the device's name on the screen is only the rest of it."""
    drawn.do("rename_device", device="g0", name="h0/gpu0")
    drawn.do("rename", device="h0/gpu0")
    field = drawn.page.get_by_role("textbox", name="New name of h0/gpu0")
    expect(field).to_have_value("gpu0")
    field.fill("a")
    field.press("Enter")
    drawn.settle()
    assert drawn.names[0] == "h0/a"


# ---- finding and zooming ----


def test_matches_are_listed_as_one_types_and_enter_zooms_to_one(drawn: Any) -> None:
    drawn.keys("Control+f")
    field = drawn.page.get_by_role("combobox", name="Find a device or a host")
    expect(field).to_be_focused()
    drawn.page.keyboard.type("h1")
    options = drawn.page.get_by_role("option")
    expect(options).to_have_text(["h1host", "g2gpu in h1", "g3gpu in h1"])
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        drawn.page.keyboard.press(key)
    drawn.settle()
    assert drawn.ask("c.canvas.selection") == {"devices": ["g3"], "links": [], "hosts": []}
    box = drawn.root.bounding_box()
    assert abs(drawn.at("g3")[0] - box["x"] - box["width"] / 2) < 2
    expect(field).to_be_focused()
    drawn.page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    drawn.page.keyboard.press("Delete")
    drawn.settle()
    assert "g3" not in drawn.names


def test_all_matches_are_selected_at_once(drawn: Any) -> None:
    drawn.tool("Find")
    field = drawn.page.get_by_role("combobox", name="Find a device or a host")
    field.fill("gpu h0")
    drawn.page.keyboard.press("Control+Enter")
    expect(field).to_be_hidden()
    assert drawn.ask("c.canvas.selection.devices") == ["g0", "g1"]
    drawn.tool("Find")
    field.fill("nothing")
    expect(drawn.page.get_by_role("search").get_by_role("status")).to_have_text("none")


def test_the_zoom_figure_follows_and_goes_back_to_100(drawn: Any) -> None:
    figure = drawn.root.get_by_role("button", name="Zoom is")
    drawn.do("zoom", level=0.5)
    expect(figure).to_have_text("50 %")
    figure.click()
    expect(figure).to_have_text("100 %")
    drawn.click("g0")
    drawn.keys("z")
    expect(figure).to_have_text("150 %")
    assert drawn.ask("c.cy.zoom()") == 1.5
    drawn.keys("0")
    expect(figure).to_have_text("100 %")


# ---- links and copies by pattern ----


def test_a_switch_with_eight_gpus_is_drawn_in_five_actions(show: Any, page: Page) -> None:
    """G, 8, S, select all, and all to the switch, which is one step of the history."""
    canvas = show(page)
    canvas.keys("g", "8", "s", "Control+a")
    canvas.page.mouse.move(5, 5)
    canvas.keys("*")
    expect(page.get_by_text("8 links made")).to_be_visible()
    assert canvas.pairs == {
        ends for i in range(8) for ends in ((f"gpu{i}", "switch0"), ("switch0", f"gpu{i}"))
    }
    canvas.keys("*")
    expect(page.get_by_text("0 links made; 8 were there already")).to_be_visible()
    canvas.keys("Control+z")
    assert canvas.pairs == set()
    assert len(canvas.names) == 9


def test_the_menu_links_all_to_the_device_that_was_clicked(drawn: Any) -> None:
    drawn.ask(
        "void c.canvas.model.receive('link_preset', x)",
        {"bandwidth": 25, "alpha": 1, "medium": "EDR"},
    )
    drawn.do("select", devices=["g0", "g1", "g2"])
    right_click(drawn, "g2")
    choose(drawn, "Link", "All to g2")
    expect(drawn.page.get_by_text("1 link made; one was there already")).to_be_visible()
    links = {(each["src"], each["dst"]): each for each in drawn.topology["links"]}
    assert links["g0", "g2"]["medium"] == "EDR"
    assert links["g1", "g2"]["bandwidth"] == 50


def test_pairs_and_meshes_have_keys(show: Any, page: Page) -> None:
    canvas = show(page)
    canvas.keys("g", "4", "k")
    assert len(canvas.pairs) == 12
    canvas.keys("Control+z", "Control+c", "Control+v", "Control+a", "j")
    assert {("gpu0", "gpu4"), ("gpu3", "gpu7")} <= canvas.pairs
    assert len(canvas.pairs) == 8
    canvas.do("select", devices=["gpu0", "gpu1", "gpu2"])
    canvas.keys("j")
    expect(page.get_by_text("needs two groups of the same size")).to_be_visible()


def test_stamping_a_host_repeats_it(drawn: Any) -> None:
    drawn.do("select", hosts=["h0"])
    drawn.keys("4")
    assert drawn.ask("c.canvas.selection.hosts.length") == 4
    assert len(drawn.names) == 10
    drawn.keys("Control+z")
    assert len(drawn.names) == 4


# ---- bandwidths on the links ----


def test_bandwidths_are_shown_where_they_can_be_read(drawn: Any) -> None:
    """The ring has four lines; far out no label is drawn, and the key and the tool are one."""
    assert drawn.ask("c.canvas.linkLabels.count") == 0
    drawn.keys("b")
    tool = drawn.root.get_by_role("button", name="Bandwidths on the links")
    expect(tool).to_have_attribute("aria-pressed", "true")
    assert drawn.ask("c.canvas.linkLabels.count") == 4
    drawn.do("zoom", level=0.3)
    assert drawn.ask("c.canvas.linkLabels.count") == 0
    drawn.keys("f")
    assert drawn.ask("c.canvas.linkLabels.count") == 4
    tool.click()
    drawn.settle()
    assert drawn.ask("c.canvas.linkLabels.count") == 0


# ---- snapping ----


def test_a_device_stops_on_the_line_of_another_and_guides_say_so(drawn: Any) -> None:
    """8 units beside the line is more than 6 pixels, 3 are less."""
    zoom = drawn.ask("c.cy.zoom()")
    x, y = drawn.at("g3")
    mouse = drawn.page.mouse
    mouse.move(x, y)
    mouse.down()
    mouse.move(x - 60, y + 40 * zoom, steps=4)
    mouse.move(x + 3 * zoom, y + 40 * zoom, steps=4)
    drawn.settle()
    assert drawn.ask("c.canvas.snapping.guides.map((g) => [g.axis, g.at])") == [["x", 0]]
    mouse.up()
    drawn.settle()
    assert drawn.ask("c.canvas.snapping.guides") == []
    assert drawn.ask("c.drawing.positions.g3") == [0, 200]


def test_with_alt_nothing_snaps(drawn: Any) -> None:
    zoom = drawn.ask("c.cy.zoom()")
    x, y = drawn.at("g3")
    drawn.page.keyboard.down("Alt")
    drawn.drag((x, y), (x + 3 * zoom, y + 40 * zoom))
    drawn.page.keyboard.up("Alt")
    assert drawn.ask("c.drawing.positions.g3[0]") in (2, 3, 4)


def test_the_grid_is_turned_on_and_holds_what_is_dragged(drawn: Any) -> None:
    drawn.keys("#")
    expect(drawn.root.get_by_role("button", name="Snap to a grid")).to_have_attribute(
        "aria-pressed", "true"
    )
    zoom = drawn.ask("c.cy.zoom()")
    x, y = drawn.at("g3")
    drawn.drag((x, y), (x - 93 * zoom, y + 71 * zoom))
    assert drawn.ask("c.drawing.positions.g3") == [-100, 240]
    drawn.do("add", kind="gpu", position=[411, 309])
    assert drawn.ask("c.drawing.positions.gpu0") == [420, 300]


def test_a_host_that_is_dragged_keeps_its_shape(drawn: Any) -> None:
    zoom = drawn.ask("c.cy.zoom()")
    x, y = place(drawn, 100, 190)
    drawn.drag((x, y), (x + 40 * zoom, y + 90 * zoom))
    (x2, y2), (x3, y3) = drawn.ask("[c.drawing.positions.g2, c.drawing.positions.g3]")
    assert (x2 - x3, y2 - y3) == (200, 0)
    assert y2 > 230


# ---- for those who do not see it well ----


def test_axe_finds_nothing_in_menus_and_fields_in_either_theme(drawn: Any) -> None:
    drawn.page.evaluate(AXE.read_text(encoding="utf-8"))
    found = []
    for theme in ("light", "dark"):
        drawn.ask("void c.canvas.model.receive('theme', x)", theme)
        drawn.do("select", devices=["g0", "g1"])
        drawn.keys("b", "ContextMenu")
        item(drawn, "Align").click()
        found += drawn.page.evaluate(FIND)
        drawn.keys("Escape", "Escape", "Control+f")
        drawn.page.keyboard.type("g")
        found += drawn.page.evaluate(FIND)
        drawn.page.keyboard.press("Escape")
        drawn.do("rename", device="g0")
        drawn.page.keyboard.type("g1")
        drawn.page.keyboard.press("Enter")
        found += drawn.page.evaluate(FIND)
        drawn.page.keyboard.press("Escape")
    assert found == []
