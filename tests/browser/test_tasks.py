"""Each task of drawing, reading and watching, once by the mouse and once by the keyboard.

A task is a function that does it in either way and says what has to be true then. A page counts
what is pressed: by the mouse, keys are only held (Shift, Alt) or typed into fields; by the keyboard
no button of the mouse is pressed, and what has the focus is what Tab can reach.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from ccl.collective import all_reduce
from ccl.layout import layout
from ccl.problem import Problem
from ccl.topology import Topology, device, duplex
from formulations import solve
from gallery import open_cluster
from tests.browser.conftest import HANDLE, LOCAL, CanvasDriver
from widgets.pages.writers import standalone_html
from widgets.view_model.scene import drawing, scene

pytestmark = pytest.mark.browser

SLOW = 90_000
"""ms for an answer of the server on a busy machine."""

COUNT = """
window.hands = { keys: [], presses: 0 };
addEventListener("pointerdown", () => (window.hands.presses += 1), true);
addEventListener("keydown", ({ key, target }) => {
    const typed = target.matches("input, textarea") && (key.length === 1 || key === "Enter");
    if (!typed && !["Shift", "Alt"].includes(key)) window.hands.keys.push(key);
}, true);
"""
Task = Callable[["Hand"], None]
ON_CANVAS: list[tuple[str, Task]] = []
IN_DESIGNER: list[tuple[str, Task]] = []


def task(where: str) -> Callable[[Task], Task]:
    """List a task: on a drawing called so, or in the designer."""

    def listed(does: Task) -> Task:
        (IN_DESIGNER if where == "designer" else ON_CANVAS).append((where, does))
        return does

    return listed


def reach(wanted: Locator) -> None:
    """Give the focus to what Tab reaches."""
    wanted.focus()
    expect(wanted).to_be_focused()
    assert wanted.evaluate("(element) => element.tabIndex") >= 0


class Hand(CanvasDriver):
    """A user who has only a mouse, or only a keyboard."""

    def __init__(self, page: Page, *, mouse: bool) -> None:
        super().__init__(page)
        self.mouse = mouse

    def either(self, by_mouse: Callable[[], Any], *keys: str) -> None:
        """Do something with the mouse, or press keys on the canvas."""
        if self.mouse:
            by_mouse()
            self.settle()
        else:
            self.keys(*keys)

    def inside(self, by_mouse: Callable[[], Any], *keys: str) -> None:
        """Do something with the mouse, or press keys where the focus is."""
        if self.mouse:
            by_mouse()
        else:
            for key in keys:
                self.page.keyboard.press(key)
        self.settle()

    def press(self, button: Locator) -> None:
        """Click it, or press Enter on it."""
        if self.mouse:
            button.click()
        else:
            reach(button)
            self.page.keyboard.press("Enter")
        self.settle()

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return where a place of the drawing is on the page."""
        return self._screen("return x;", [x, y])

    def choose(self, at: tuple[float, float], *labels: str) -> None:
        """Choose from the menu of what is at a place of the drawing, or of what is selected."""
        menu = self.page.locator(".tl-menu")
        if self.mouse:
            self.page.mouse.click(*self.place(*at), button="right")
            for label in labels:
                menu.get_by_text(label, exact=True).click()
            self.settle()
            return
        self.keys("ContextMenu")
        for i, label in enumerate(labels):
            for _ in range(30):
                if (
                    self.page.evaluate("document.activeElement.firstElementChild?.textContent")
                    == label
                ):
                    break
                self.page.keyboard.press("ArrowDown")
            self.page.keyboard.press("Enter" if i + 1 == len(labels) else "ArrowRight")
        self.settle()

    def type(self, text: str) -> None:
        """Type into the field that has the focus."""
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")
        self.settle()

    def walk_to(self, *names: str) -> None:
        """Select devices, the others kept: Enter, then Tab and Shift+Enter."""
        if self.mouse:
            for i, name in enumerate(names):
                self.page.mouse.move(*self.at(name))
                if i:
                    self.page.keyboard.down("Shift")
                self.click(name)
                if i:
                    self.page.keyboard.up("Shift")
        else:
            self.keys("Escape", "Escape", "Enter")
            for i, name in enumerate(names):
                while self.ask("c.canvas.keyboard.at") != name:
                    self.keys("Tab")
                if i + 1 < len(names):
                    self.keys("Shift+Enter")
        assert self.ask("c.canvas.selection.devices") == list(names)

    def all_at_once(self) -> None:
        """Select everything: devices with a box, links with Alt, or Ctrl+A."""
        if not self.mouse:
            self.keys("Control+a")
            return
        self.box("Shift")

    def box(self, *held: str) -> None:
        """Drag a box around everything."""
        x1, y1, x2, y2 = self.ask(
            "(() => { const b = c.cy.elements().renderedBoundingBox();"
            " const o = c.cy.container().getBoundingClientRect();"
            " return [b.x1 + o.x - 30, b.y1 + o.y - 30, b.x2 + o.x + 30, b.y2 + o.y + 30]; })()"
        )
        for key in held:
            self.page.keyboard.down(key)
        self.drag((x1, y1), (x2, y2))
        for key in held:
            self.page.keyboard.up(key)

    def selected(self) -> dict[str, int]:
        """Return how much of each kind is selected."""
        return {what: len(some) for what, some in self.ask("c.canvas.selection").items()}

    def link(self, src: str, dst: str) -> dict[str, Any]:
        """Return a link of the drawing."""
        ends = (src, dst)
        return next(each for each in self.topology["links"] if (each["src"], each["dst"]) == ends)


# ---- drawing ----


@task("ring")
def add_undo_and_redo(hand: Hand) -> None:
    hand.either(lambda: hand.tool("Add a GPU"), "g")
    assert len(hand.names) == 5
    hand.either(lambda: hand.tool("Undo"), "Control+z")
    assert len(hand.names) == 4
    hand.either(lambda: hand.tool("Redo"), "Control+Shift+z")
    assert len(hand.names) == 5


@task("ring")
def menu_of_a_device(hand: Hand) -> None:
    if not hand.mouse:
        hand.walk_to("g0")
    hand.choose((0, 0), "Delete")
    assert hand.names == ["g1", "g2", "g3"]


@task("ring")
def menu_of_the_ground(hand: Hand) -> None:
    hand.choose((100, 80), "Add a switch here")
    assert hand.names[-1] == "switch0"


@task("ring")
def menu_of_a_link(hand: Hand) -> None:
    """By keys U selects a link of what is selected, and again the next."""
    if not hand.mouse:
        hand.walk_to("g2")
        hand.keys("u", "u")
        assert hand.ask("c.canvas.selection.links") == [["g2", "g3"]]
    hand.choose((100, 160), "Make one-way")
    assert ("g3", "g2") not in hand.pairs
    assert ("g2", "g3") in hand.pairs


@task("ring")
def menu_of_a_host(hand: Hand) -> None:
    if not hand.mouse:
        hand.keys("Control+f")
        hand.type("h0")
        hand.page.keyboard.press("Escape")
    hand.choose((-52, 0), "Repeat", "4 in all, joined by a switch")
    assert len(hand.names) == 4 + 3 * 2 + 1


@task("ring")
def rename_in_place(hand: Hand) -> None:
    if not hand.mouse:
        hand.walk_to("g2")
    hand.either(lambda: hand.page.mouse.dblclick(*hand.at("g2")), "F2")
    expect(hand.page.get_by_role("textbox", name="New name of g2")).to_be_focused()
    hand.type("root")
    assert hand.names == ["g0", "g1", "root", "g3"]


@task("ring")
def box_and_its_links(hand: Hand) -> None:
    """A box takes the devices, with Alt the links; so do Ctrl+A and Shift+U."""
    hand.all_at_once()
    assert hand.selected()["devices"] == 4
    hand.either(lambda: hand.page.mouse.click(*hand.place(100, 80)))
    hand.either(lambda: hand.box("Shift", "Alt"), "Shift+U")
    assert hand.selected() == {"devices": 0, "links": 4, "hosts": 0}


@task("ring")
def some_of_many(hand: Hand) -> None:
    hand.walk_to("g0", "g2")
    hand.either(
        lambda: hand.page.locator(".tl-bar").get_by_label("Put into a host").click(), "Control+g"
    )
    assert [each["host"] for each in hand.topology["devices"]] == ["host0", "h0", "host0", "h1"]


def mixed(hand: Hand) -> None:
    """Select devices and links."""
    hand.all_at_once()
    if hand.mouse:
        hand.page.keyboard.down("Shift")
        hand.page.mouse.click(*hand.place(100, 160))
        hand.page.keyboard.up("Shift")
        hand.settle()
    assert hand.selected()["devices"] == 4
    assert hand.selected()["links"] >= 1


@task("ring")
def mixed_selection_is_aligned(hand: Hand) -> None:
    hand.walk_to("g0", "g2", "g3")
    hand.choose((0, 0), "Align", "Top edges")
    assert hand.ask("['g0', 'g2', 'g3'].map((n) => c.drawing.positions[n][1])") == [0, 0, 0]
    hand.choose((0, 0), "Align", "Even gaps across")
    assert hand.ask("c.drawing.positions.g2[0]") == 200


@task("ring")
def mixed_selection_becomes_a_host(hand: Hand) -> None:
    mixed(hand)
    hand.choose((0, 0), "Put into a host")
    assert {each["host"] for each in hand.topology["devices"]} == {"host0"}


@task("ring")
def mixed_selection_takes_a_bandwidth(hand: Hand) -> None:
    mixed(hand)
    hand.ask(
        "void c.canvas.model.receive('link_preset', x)",
        {"bandwidth": 25, "alpha": 1, "medium": "EDR"},
    )
    hand.choose((0, 0), "Link type", "EDR · 25 GB/s · 1 µs, as the next link")
    assert hand.link("g2", "g3")["bandwidth"] == 25


@task("ring")
def guides(hand: Hand) -> None:
    """g3 is moved along the line of g2, which says so until it is let go."""
    found = "c.canvas.snapping.guides.map(({ axis, at }) => [axis, at])"
    if hand.mouse:
        x, y = hand.at("g3")
        hand.page.mouse.move(x, y)
        hand.page.mouse.down()
        hand.page.mouse.move(x - 20, y + 2, steps=4)
        hand.page.mouse.move(x - 40, y + 2, steps=4)
    else:
        hand.walk_to("g3")
        hand.page.keyboard.down("ArrowLeft")
    hand.settle()
    assert ["y", 160] in hand.ask(found)
    if hand.mouse:
        hand.page.mouse.up()
    else:
        hand.page.keyboard.up("ArrowLeft")
    hand.settle()
    assert hand.ask(found) == []
    x, y = hand.ask("c.drawing.positions.g3")
    assert (x < 0, y) == (True, 160)


@task("ring")
def grid(hand: Hand) -> None:
    """From 160 the next line of the grid downwards is 180."""
    hand.either(lambda: hand.tool("Snap to a grid"), "#")
    if hand.mouse:
        x, y = hand.at("g3")
        hand.drag((x, y), (x - 93 * hand.ask("c.cy.zoom()"), y + 71 * hand.ask("c.cy.zoom()")))
        assert hand.ask("c.drawing.positions.g3") == [-100, 240]
    else:
        hand.walk_to("g3")
        hand.keys("ArrowDown", "ArrowLeft")
        assert hand.ask("c.drawing.positions.g3") == [-20, 180]


@task("empty")
def stamp_and_mesh(hand: Hand) -> None:
    hand.either(lambda: hand.tool("Add a GPU"), "g")
    hand.either(lambda: hand.choose(hand.ask("c.drawing.positions.gpu0"), "Stamp", "4 in all"), "4")
    assert len(hand.names) == 4
    hand.either(
        lambda: hand.choose(hand.ask("c.drawing.positions.gpu0"), "Link", "Each to each"), "k"
    )
    assert len(hand.pairs) == 12


@task("ring")
def all_to_this_one(hand: Hand) -> None:
    """By keys, to the one that Tab has reached last."""
    hand.walk_to("g0", "g1", "g2")
    hand.either(lambda: hand.choose((200, 160), "Link", "All to g2"), "*")
    assert {("g0", "g2"), ("g1", "g2")} <= hand.pairs
    assert ("g1", "g3") not in hand.pairs


@task("hosts")
def in_pairs(hand: Hand) -> None:
    hand.all_at_once()
    hand.either(lambda: hand.choose((0, 0), "Link", "In pairs"), "j")
    assert {("a0", "b0"), ("a1", "b1")} <= hand.pairs
    assert len(hand.pairs) == 4 + 4


@task("hosts")
def port_to_port(hand: Hand) -> None:
    """By keys L begins at what is selected, and arrows aim."""
    if hand.mouse:
        hand.page.mouse.move(*hand.at("a1"))
        hand.drag(hand.port("a1", 0), hand.port("b0", 2))
    else:
        hand.walk_to("a1")
        hand.keys("l", "ArrowRight", "Enter")
    assert ("a1", "b0") in hand.pairs


@task("ring")
def bandwidths_on_links(hand: Hand) -> None:
    hand.either(lambda: hand.tool("Bandwidths on the links"), "b")
    assert hand.ask("c.canvas.linkLabels.count") == 4


@task("ring")
def notes_and_frames(hand: Hand) -> None:
    """A note is written; a frame is made, moved, enlarged and deleted."""
    notes = "c.drawing.annotations ?? []"
    hand.either(lambda: hand.choose((300, 300), "Add a note here"), "e")
    hand.type("spare")
    hand.walk_to("g0", "g3")
    hand.either(lambda: hand.choose((0, 0), "Frame around it"), "x")
    hand.type("Rack 1")
    note, frame = hand.ask(notes)
    assert (note["text"], frame["text"]) == ("spare", "Rack 1")
    left, top = frame["x"] - frame["width"] / 2, frame["y"] - frame["height"] / 2
    if hand.mouse:
        x, y = hand.place(left, top + 60)
        hand.drag((x, y), (x - 20, y + 20))
    else:
        hand.keys("Shift+ArrowLeft", "Shift+ArrowDown")
    moved = hand.ask(notes)[1]
    assert (moved["x"] < frame["x"], moved["y"] > frame["y"]) == (True, True)
    if hand.mouse:
        right, bottom = moved["x"] + moved["width"] / 2, moved["y"] + moved["height"] / 2
        x, y = hand.place(right, bottom)
        hand.drag((x, y), (x + 30, y + 30))
    else:
        hand.keys("Control+ArrowRight", "Control+ArrowDown")
    larger = hand.ask(notes)[1]
    assert (larger["width"] > moved["width"], larger["height"] > moved["height"]) == (True, True)
    hand.either(lambda: hand.tool("Delete"), "Delete")
    assert len(hand.ask(notes)) == 1
    assert len(hand.names) == 4


@task("ring")
def find(hand: Hand) -> None:
    hand.either(lambda: hand.tool("Find"), "Control+f")
    hand.page.keyboard.type("g h1")
    option = hand.page.get_by_role("option")
    expect(option).to_have_count(2)
    hand.inside(lambda: option.nth(1).click(), "ArrowDown", "Enter")
    assert hand.ask("c.canvas.selection.devices") == ["g3"]
    hand.inside(hand.page.get_by_role("button", name="Select all").click, "Control+Enter")
    assert hand.ask("c.canvas.selection.devices") == ["g2", "g3"]


@task("ring")
def zoom_to_selection(hand: Hand) -> None:
    """What is selected comes to the middle, and all is shown again."""
    x, y = hand.at("g3")
    if not hand.mouse:
        hand.walk_to("g3")
    hand.either(lambda: hand.choose((0, 160), "Zoom to selection"), "z")
    box = hand.root.bounding_box()
    assert hand.at("g3")[0] == pytest.approx(box["x"] + box["width"] / 2, abs=2)
    hand.either(lambda: hand.tool("Fit"), "f")
    assert hand.at("g3") == pytest.approx((x, y), abs=2)


@task("ring")
def overview(hand: Hand) -> None:
    hand.either(lambda: hand.choose((300, 80), "Overview"), "y")
    shown = hand.page.get_by_role("group", name="Overview: arrows move the view")
    before = hand.ask("c.cy.pan()")
    if hand.mouse:
        shown.click(position={"x": 4, "y": 4})
    else:
        reach(shown)
        hand.page.keyboard.press("ArrowLeft")
    assert hand.ask("c.cy.pan().x") > before["x"]


@task("racks")
def fold_hosts_and_racks(hand: Hand) -> None:
    """Racks are told by the names of their hosts."""
    hand.either(lambda: hand.choose((300, 300), "Fold or open all hosts"), "o")
    assert hand.ask("c.shown.groups.length") == 4
    hand.either(lambda: hand.choose((300, 300), "Fold or open racks and pods"), "r")
    assert hand.ask("c.shown.groups.length") == 2
    key = hand.ask("c.shown.groups[0].key")
    hand.either(lambda: hand.page.mouse.dblclick(*hand.at(key)), "Enter", "Enter")
    assert hand.ask("c.shown.groups.length") == 3
    hand.press(hand.page.get_by_role("button", name="Open all"))
    assert hand.ask("c.shown.groups.length") == 0


# ---- reading and watching, on the canvas ----


@task("two media")
def colours_and_legend(hand: Hand) -> None:
    """Two GPUs with NVLink at a switch with Ethernet: two media, then two tiers."""
    far = (150, 260)
    hand.either(lambda: hand.choose(far, "Colours of links"), "c")
    hand.press(hand.page.get_by_role("button", name="NVLink"))
    assert hand.ask("c.cy.edges('.faded').length") == 1
    hand.either(lambda: hand.choose(far, "Colours of links"), "c")
    hand.press(hand.page.get_by_role("button", name="Tier 1"))
    assert hand.ask("c.cy.edges('.faded').length") == 2


@task("film")
def play_and_step(hand: Hand) -> None:
    """By epoch, by step of the plan and by phase, and back to the start."""
    time, bar = "c.clock.time", hand.root.locator(".tl-time")
    phases = hand.ask("c.canvas.playback.phases.map(({ start }) => start)")
    steps = hand.ask("c.canvas.playback.steps.map(({ start }) => start)")
    hand.either(lambda: bar.get_by_label("Step forward").click(), "ArrowRight")
    assert hand.ask(time) == pytest.approx(hand.ask("c.canvas.playback.step"))
    hand.either(lambda: bar.get_by_label("To the start").click(), "Home")
    hand.either(lambda: bar.get_by_label("Next step").click(), ".")
    assert hand.ask(time) == pytest.approx(steps[1])
    strip = hand.page.get_by_role("slider", name="Time")
    wide = strip.bounding_box()["width"]
    hand.either(lambda: strip.click(position={"x": wide * 0.8, "y": 5}), "ArrowDown")
    assert hand.ask(time) == pytest.approx(phases[1])
    hand.either(lambda: strip.click(position={"x": wide * 0.2, "y": 5}), "ArrowUp")
    assert hand.ask(time) == 0
    hand.either(lambda: bar.get_by_label("Play").click(), " ")
    hand.page.wait_for_function(f"() => {HANDLE}.clock.time > 1")
    hand.either(lambda: bar.get_by_label("Play").click(), " ")
    assert hand.ask("c.clock.playing") is False


@task("film")
def load_log_and_inspector(hand: Hand) -> None:
    """The load now, then of the whole run; what happens in words; where a chunk comes from."""
    bar = hand.root.locator(".tl-time")
    for of in ("now", "run"):
        hand.either(lambda: bar.get_by_label("Link load").click(), "h")
        assert hand.ask("[c.canvas.heat, c.canvas.heatOf]") == [True, of]
    hand.either(lambda: bar.get_by_label("Event log").click(), "t")
    expect(hand.page.get_by_role("region", name="What happens")).to_be_visible()
    hand.either(lambda: bar.get_by_label("Inspector").click(), "i")
    assert hand.ask("c.canvas.inspector.open") is True


@task("film")
def presenter_mode(hand: Hand) -> None:
    tools = hand.page.get_by_role("toolbar", name="Presenter")
    hand.either(lambda: hand.root.locator(".tl-time").get_by_label("Present").click(), "p")
    expect(tools).to_be_visible()
    hand.either(lambda: tools.get_by_label("Hide the bound").click(), "b")
    expect(hand.page.locator(".tl-question")).to_be_visible()
    hand.either(lambda: tools.get_by_label("Laser pointer").click(), "x")
    assert hand.ask("c.canvas.presenter.laser.on") is True
    hand.either(lambda: tools.get_by_label("Leave presenter").click(), "Escape")
    expect(tools).to_be_hidden()


@task("film")
def a_film(hand: Hand) -> None:
    """It begins and is cancelled; test_watching.py makes one to its end."""
    hand.press(hand.root.locator(".tl-time").get_by_label("Save as film"))
    hand.press(hand.page.get_by_role("button", name="Cancel"))
    expect(hand.page.locator(".tl-filming")).to_have_count(0)


# ---- in the designer ----


def empty(hand: Hand) -> None:
    """Begin a drawing."""
    hand.press(hand.page.locator("#new"))
    expect(hand.page.locator("#counts")).to_contain_text("0 GPUs")


def pair(hand: Hand) -> None:
    """Draw two GPUs and link them."""
    empty(hand)
    for _ in range(2):
        hand.either(lambda: hand.tool("Add a GPU"), "g")
    if hand.mouse:
        hand.page.mouse.move(*hand.at("gpu0"))
        hand.drag(hand.port("gpu0", 0), hand.at("gpu1"))
    else:
        hand.keys("l", "Enter", "v")
    assert len(hand.pairs) == 2
    expect(hand.page.locator("#counts")).to_contain_text("2 GPUs")


def list_of_drawings(hand: Hand) -> Locator:
    """Open it."""
    if hand.mouse:
        hand.page.locator("#drawings-open").click()
    else:
        hand.page.keyboard.press("Control+o")
    found = hand.page.get_by_role("dialog", name="Drawings")
    expect(found.get_by_role("region", name="Versions")).to_be_visible()
    expect(found.locator("[aria-busy]")).to_have_count(0)
    return found


def solved(hand: Hand) -> None:
    """Solve, and wait for the answer."""
    hand.either(lambda: hand.page.locator("#solve").click(), "Control+Enter")
    expect(hand.page.locator("#answer")).to_contain_text("makespan", timeout=SLOW)


@task("designer")
def documents(hand: Hand) -> None:
    """Named, left by New, opened from the list; a version is looked at and restored."""
    page = hand.page
    pair(hand)
    name = page.get_by_label("Name of the topology")
    hand.press(name)
    name.fill("pair")
    page.keyboard.press("Enter")
    found = list_of_drawings(hand)
    hand.press(found.get_by_role("button", name="Keep this version"))
    expect(found.get_by_text("The version is kept.")).to_be_visible()
    hand.press(found.get_by_role("button", name="Close"))
    hand.either(lambda: hand.tool("Add a GPU"), "g")
    expect(page.locator("#counts")).to_contain_text("3 GPUs")
    empty(hand)
    found = list_of_drawings(hand)
    hand.press(found.get_by_role("button", name=re.compile("^Open pair, ")).first)
    expect(page.locator("#counts")).to_contain_text("3 GPUs")
    row = list_of_drawings(hand).locator(".ds-docs-version").filter(has_text="Kept by hand").first
    hand.press(row.get_by_role("button", name=re.compile("^Restore ")))
    expect(page.locator("#counts")).to_contain_text("2 GPUs")
    hand.either(lambda: hand.tool("Undo"), "Control+z")
    expect(page.locator("#counts")).to_contain_text("3 GPUs")


@task("designer")
def wizard(hand: Hand) -> None:
    empty(hand)
    hand.either(lambda: hand.page.locator("#wizard-button").click(), "d")
    dialog = hand.page.get_by_role("dialog", name="Hosts, leaves, spines")
    for label in ("Hosts", "GPUs in each", "NICs in each host"):
        hand.press(dialog.get_by_label(label, exact=True))
        dialog.get_by_label(label, exact=True).fill("2")
    expect(dialog.get_by_role("status")).to_contain_text("4 GPUs", timeout=SLOW)
    hand.press(dialog.get_by_role("button", name="Open as a new drawing"))
    expect(hand.page.locator("#counts")).to_contain_text("4 GPUs · 5 switches", timeout=SLOW)


@task("designer")
def table(hand: Hand) -> None:
    """Filtered; the bandwidth of one row is pasted and filled down to the other."""
    page = hand.page
    pair(hand)
    view(hand, "Table")
    words = page.get_by_label("Filter rows")
    hand.press(words)
    words.fill("gpu0 gpu1")
    expect(page.locator("#table tr[data-of=device]")).to_have_count(0, timeout=SLOW)
    for mark in page.locator("#table tr[data-of=link] .ds-pick").all():
        hand.press(mark)
    expect(page.locator("#table-chosen")).to_have_text("2 rows selected", timeout=SLOW)
    cells = page.locator('#table tr[data-of=link] [aria-label^="Bandwidth of"]')
    first, second = cells.first, cells.last
    page.evaluate("navigator.clipboard.writeText('40\\t320\\n')")
    hand.press(first)
    hand.inside(page.locator("#table-paste").click, "Control+v")
    expect(first).to_have_value("40 GB/s", timeout=SLOW)
    hand.inside(page.locator("#table-fill").click, "Control+d")
    expect(second).to_have_value("40 GB/s", timeout=SLOW)
    view(hand, "Canvas")


def view(hand: Hand, words: str) -> None:
    """Go to a view: a click, or arrows among the views."""
    views = hand.page.locator("#view")
    if hand.mouse:
        views.get_by_text(words, exact=True).click()
    else:
        views.locator("input:checked").focus()
        for _ in range(8):
            if views.locator("label:has(> *)", has_text=words).first.get_attribute("data-active"):
                break
            hand.page.keyboard.press("ArrowRight")
    name = {"Canvas": "canvas", "Table": "table", "Compare": "compare"}[words]
    expect(hand.page.locator("#stage")).to_have_attribute("data-view", name)


@task("designer")
def layout_and_back(hand: Hand) -> None:
    pair(hand)
    places = hand.ask("c.drawing.positions")
    # Ground, wherever the view is.
    x, y = hand.ask("Object.values(c.canvas.stage.toModel({ x: 60, y: 240 }))")
    hand.either(lambda: hand.choose((x, y), "Lay out anew"), "q")
    hand.page.wait_for_function(
        f"(x) => JSON.stringify({HANDLE}.drawing.positions) !== x",
        arg=hand.ask("JSON.stringify(x)", places),
    )
    hand.either(lambda: hand.tool("Undo"), "Control+z")
    assert hand.ask("c.drawing.positions") == places


@task("designer")
def retype_links(hand: Hand) -> None:
    """A type of the palette is given to the links that are selected."""
    pair(hand)
    hand.either(lambda: hand.box("Shift", "Alt"), "Control+a")
    hand.press(hand.page.locator(".ds-link", has_text="InfiniBand NDR"))
    hand.page.wait_for_function(
        f"() => {HANDLE}.drawing.topology.links.every((l) => l.bandwidth === 50)"
    )


@task("designer")
def solve_play_and_load(hand: Hand) -> None:
    """Solved; the load of the whole run with its list of the busiest."""
    pair(hand)
    solved(hand)
    busiest = hand.page.get_by_role("list", name="Busiest links").get_by_role("listitem")
    expect(busiest).to_have_count(2, timeout=SLOW)
    for _ in range(2):
        hand.either(lambda: hand.root.locator(".tl-time").get_by_label("Link load").click(), "h")
    assert hand.ask("c.canvas.heatOf") == "run"


@task("designer")
def picture_for_slides(hand: Hand) -> None:
    page = hand.page
    pair(hand)
    hand.press(page.get_by_role("button", name="Export").first)
    item = page.get_by_role("menuitem", name="More formats")
    expect(item).to_be_visible()
    if hand.mouse:
        item.click()
    else:
        press_until(page, "ArrowDown", item)
        page.keyboard.press("Enter")
    words = page.get_by_label("Search formats")
    hand.press(words)
    words.fill("picture svg")
    hand.settle()  # the list is drawn anew, and what had the focus in it is gone
    entry = page.locator(".ds-exp-entry", has_text="Picture, SVG")
    expect(entry).to_be_enabled(timeout=SLOW)
    hand.press(entry)
    with page.expect_download() as given:
        hand.press(page.get_by_role("dialog").get_by_role("button", name="Download"))
    assert "<svg" in Path(given.value.path()).read_text(encoding="utf-8")


def press_until(page: Page, key: str, wanted: Locator) -> None:
    """Press a key until something has the focus."""
    for _ in range(20):
        if wanted.evaluate("(each) => each === document.activeElement"):
            return
        page.keyboard.press(key)
    pytest.fail(f"{key} does not reach {wanted}")


@task("designer")
def columns_and_cards(hand: Hand) -> None:
    page = hand.page
    for side, key in (("left", "["), ("right", "]")):
        column = page.locator(f".ds-{side}")
        for shown in (False, True):
            hand.either(page.locator(f"#panel-{side}").click, key)
            expect(column).to_be_visible(visible=shown)
    head = page.get_by_role("button", name="Gallery", exact=True)
    for shown in (False, True):
        hand.press(head)
        expect(page.locator("#gallery-list")).to_be_visible(visible=shown)


@task("designer")
def four_players_and_their_difference(hand: Hand) -> None:
    """Two methods at two sizes, all four watched, and of two the difference."""
    page = hand.page
    pair(hand)
    view(hand, "Compare")
    method = page.locator(".ds-cmp-method").get_by_role("checkbox")
    expect(method.and_(page.locator(":checked"))).not_to_have_count(0, timeout=SLOW)
    hand.press(page.get_by_role("button", name="None", exact=True))
    expect(page.locator(".ds-cmp-method input:checked")).to_have_count(0)
    for name in ("Ring", "Direct"):
        tick(hand, page.get_by_role("checkbox", name=name, exact=True))
    sizes = page.get_by_label("Sizes")
    hand.press(sizes)
    sizes.fill("16KB, 1MB")
    hand.press(page.get_by_role("button", name="Compare", exact=True))
    status = page.locator("#compare-status")
    expect(status).not_to_contain_text("Finished")  # as the last one, which was there again
    expect(status).to_contain_text("Finished: 4 rows", timeout=SLOW)
    watch = page.get_by_role("checkbox", name="Watch ")
    expect(watch).to_have_count(4)
    for each in watch.all():
        tick(hand, each)
    hand.press(page.get_by_role("button", name="Watch 4 in step"))
    players = page.locator(".tlp-side")
    expect(players).to_have_count(4)
    page.wait_for_function(
        "() => document.querySelector('.tlp').__pair.sides.every((s) => s.playback)"
    )
    for letter in "DC":
        hand.press(page.get_by_role("button", name=f"Close player {letter}"))
    expect(players).to_have_count(2)
    hand.press(page.get_by_role("button", name="Difference of A and B"))
    expect(page.locator(".tlp-classes")).to_contain_text("Only in A")
    hand.press(page.get_by_role("button", name="Back to the table"))
    view(hand, "Canvas")


def tick(hand: Hand, box: Locator) -> None:
    """Tick a box: a click, or Space."""
    if hand.mouse:
        box.click()
    else:
        reach(box)
        hand.page.keyboard.press("Space")
    expect(box).to_be_checked()


# ---- the pages ----


def square(gpus: dict[str, str], links: list[tuple[str, str]]) -> dict[str, Any]:
    """Return a drawing of GPUs and their hosts, around squares of 200 by 160, linked both ways."""
    corners = [(0, 0), (200, 0), (200, 160), (0, 160)]
    topology = Topology(
        "some GPUs",
        tuple(device("gpu", name, host=host) for name, host in gpus.items()),
        tuple(link for ends in links for link in duplex(*ends, bandwidth=50.0, medium="NVLink")),
    )
    places = [(x + 500 * (i // 4), y) for i, _ in enumerate(gpus) for x, y in [corners[i % 4]]]
    return drawing(topology, dict(zip(gpus, places, strict=True)))


def beginnings() -> dict[str, tuple[Any, ...]]:
    """Return what the tasks on the canvas begin with: a drawing, and a scene to be watched."""
    ring = {"g0": "h0", "g1": "h0", "g2": "h1", "g3": "h1"}
    around = [("g0", "g1"), ("g1", "g2"), ("g2", "g3"), ("g3", "g0")]
    hosts = {"a0": "A", "b0": "B", "b1": "B", "a1": "A"}
    racks = {f"g{i}": f"rack{i // 4}/host{i // 2}" for i in range(8)}
    mixed = Topology(
        "two media",
        (device("gpu", "x"), device("gpu", "y"), device("switch", "leaf")),
        (
            *duplex("x", "y", bandwidth=50.0, medium="NVLink"),
            *duplex("x", "leaf", bandwidth=5.0, medium="Ethernet"),
            *duplex("y", "leaf", bandwidth=5.0, medium="Ethernet"),
        ),
    )
    problem = Problem(open_cluster("ring:gpus=4"), all_reduce(4, 4e6))
    result = solve(problem, "ring")
    return {
        "empty": (drawing(Topology("untitled", (), ())),),
        "ring": (square(ring, around),),
        "hosts": (square(hosts, [("a0", "a1"), ("b0", "b1")]),),
        "racks": (square(racks, [(f"g{i}", f"g{i + 1}") for i in range(7)]),),
        "two media": (drawing(mixed, {"x": (0, 0), "y": (300, 0), "leaf": (150, 160)}),),
        "film": (
            drawing(problem.topology, layout(problem.topology)),
            scene(problem, result.plan, result.timeline),
        ),
    }


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the address of a page with each beginning."""
    folder = tmp_path_factory.mktemp("drawn")
    addresses = {}
    for name, what in beginnings().items():
        file = folder / f"{name}.html"
        file.write_text(standalone_html(*what), encoding="utf-8")
        addresses[name] = file.as_uri()
    return addresses


@pytest.fixture(scope="module")
def shared(chromium: Browser) -> Iterator[Page]:
    """One page for all tasks, which fail with its errors and with requests to elsewhere."""
    wrong: list[str] = []
    context = chromium.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.add_init_script(COUNT)
    page = context.new_page()
    page.set_default_timeout(SLOW)
    page.on("pageerror", lambda error: wrong.append(f"page error: {error}"))
    page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
    page.on(
        "request",
        lambda asked: None if asked.url.startswith(LOCAL) else wrong.append(f"asked {asked.url}"),
    )
    yield page
    context.close()
    assert wrong == []


def play(does: Task, page: Page, *, mouse: bool) -> None:
    """Do a task in one way, and look that nothing of the other one was used."""
    page.wait_for_selector(".tl-graph canvas")
    hand = Hand(page, mouse=mouse)
    hand.settle()
    page.evaluate("() => Object.assign(window.hands, { keys: [], presses: 0 })")
    does(hand)
    used = page.evaluate("() => window.hands")
    assert (used["keys"] if mouse else used["presses"]) == ([] if mouse else 0)


def name(value: Any) -> str:
    """Return the name of a task, for the list of tests."""
    return str(value.__name__).replace("_", " ")


@pytest.mark.parametrize("mouse", [True, False], ids=["mouse", "keyboard"])
@pytest.mark.parametrize(("begin", "does"), ON_CANVAS, ids=[name(each) for _, each in ON_CANVAS])
def test_on_the_canvas(
    shared: Page, drawn: dict[str, str], begin: str, does: Task, *, mouse: bool
) -> None:
    shared.goto(drawn[begin])
    play(does, shared, mouse=mouse)


@pytest.mark.parametrize("mouse", [True, False], ids=["mouse", "keyboard"])
@pytest.mark.parametrize(
    "does", [each for _, each in IN_DESIGNER], ids=[name(each) for _, each in IN_DESIGNER]
)
def test_in_the_designer(shared: Page, server: tuple[str, int], does: Task, *, mouse: bool) -> None:
    shared.goto(server[0])
    expect(shared.locator("#counts")).to_contain_text("GPUs", timeout=SLOW)
    play(does, shared, mouse=mouse)
