"""The canvas alone on a page: drawing with mouse and keyboard, playing, cuts, themes, films."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ccl.bound import Bound, Cut
from ccl.collective import all_gather
from ccl.problem import Problem
from ccl.schedule import Schedule, Send
from ccl.simulate import simulate
from ccl.topology import Topology, device, duplex
from widgets.export import standalone_html
from widgets.scene import cuts, drawing, scene

pytestmark = pytest.mark.browser

RANKS = 4
NOTHING = drawing(Topology("untitled", (), ()))


def ring() -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    """Four GPUs in a ring of 50 GB/s, an all-gather of 4 x 1 MB in three steps of 20 µs, a cut."""
    names = [f"g{i}" for i in range(RANKS)]
    topology = Topology(
        "ring of 4",
        tuple(device("gpu", name, host="h0" if i < 2 else "h1") for i, name in enumerate(names)),
        tuple(
            link
            for i in range(RANKS)
            for link in duplex(names[i], names[(i + 1) % RANKS], bandwidth=50.0, medium="NVLink")
        ),
    )
    problem = Problem(topology, all_gather(RANKS, 4e6))
    sends = tuple(
        Send(k, (i - k) % RANKS, names[i], names[(i + 1) % RANKS])
        for k in range(RANKS - 1)
        for i in range(RANKS)
    )
    plan = Schedule(sends, epoch_duration=20.0, horizon=RANKS - 1)
    cut = Cut(("g0", "g1"), (("g0", "g3"), ("g1", "g2")), 100.0)
    positions = {"g0": (0, 0), "g1": (200, 0), "g2": (200, 160), "g3": (0, 160)}
    return (
        drawing(topology, positions),
        scene(problem, plan, simulate(problem, plan)),
        cuts([Bound(20.0, "cut", cut, "two chunks leave the host over 100 GB/s")]),
    )


@pytest.fixture
def show(drive: Callable[[Page], Any], tmp_path: Path) -> Callable[..., Any]:
    """Open a page with a drawing and take its wheel."""

    def open_page(page: Page, given: Any = NOTHING, *rest: Any, **options: Any) -> Any:
        file = tmp_path / "canvas.html"
        file.write_text(standalone_html(given, *rest, **options), encoding="utf-8")
        page.goto(file.as_uri())
        return drive(page)

    return open_page


@pytest.fixture
def empty(show: Any, page: Page) -> Any:
    return show(page)


@pytest.fixture
def drawn(show: Any, page: Page) -> Any:
    return show(page, ring()[0])


@pytest.fixture
def film(show: Any, page: Page) -> Any:
    return show(page, *ring())


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


def test_the_theme_follows_the_page_or_is_given(show: Any, page: Page) -> None:
    canvas = show(page, ring()[0])
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
    expect(drawn.page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    drawn.keys("Escape")
    expect(drawn.page.get_by_role("dialog", name="Keyboard")).to_be_hidden()


# ---- playing ----


def test_steps_go_both_ways_and_say_what_happens(film: Any) -> None:
    slider = film.page.get_by_role("slider", name="Time")
    film.keys("ArrowRight", "ArrowRight")
    assert slider.get_attribute("aria-valuenow") == "40"
    assert film.ask("c.canvas.dom.live.textContent").startswith(
        "Epoch 2: 4 chunks over 4 links. g0 sends"
    )
    expect(film.page.get_by_text("Epoch 2 / 3")).to_be_visible()
    film.keys("ArrowLeft")
    assert slider.get_attribute("aria-valuenow") == "20"
    film.keys("End")
    expect(film.page.get_by_text("Epoch 3 / 3")).to_be_visible()


def test_chunks_travel_and_fill_the_buffers(film: Any) -> None:
    film.do("seek", time=10)
    assert film.ask("c.tokens") == 4
    film.do("seek", time=20)
    assert film.ask("Array.from(c.canvas.buffers.levels.get('g1'))") == [1, 1, 0, 0]
    film.do("seek", time=60)
    assert film.ask("c.tokens") == 0
    assert film.ask("Array.from(c.canvas.buffers.levels.get('g1'))") == [1, 1, 1, 1]


def test_buffer_cells_are_painted_in_the_colour_of_the_origin(film: Any) -> None:
    """The first cell of g1 holds chunk 0, which is sky blue, once it has arrived."""
    look = """() => {
        const { canvas } = document.querySelector('.tl').__canvas;
        const layer = canvas.overlay.layers.cells;
        const r = canvas.stage.rect('g1');
        const p = canvas.stage.toScreen({ x: r.x1 + 14, y: r.y2 - 27 });
        const k = layer.width / layer.clientWidth;
        const pixel = layer.getContext('2d').getImageData(p.x * k, p.y * k, 1, 1);
        return Array.from(pixel.data).slice(0, 3);
    }"""
    film.do("seek", time=0)
    assert film.page.evaluate(look) != [0x56, 0xB4, 0xE9]
    film.do("seek", time=20)
    assert film.page.evaluate(look) == [0x56, 0xB4, 0xE9]


def test_space_plays_and_pauses_and_the_time_is_reported(film: Any) -> None:
    film.keys(" ")
    film.page.wait_for_function("() => document.querySelector('.tl').__canvas.clock.time > 5")
    film.keys(" ")
    assert film.ask("c.clock.playing") is False
    assert film.ask("c.canvas.model.get('time') === c.clock.time")


def test_the_strip_is_scrubbed(film: Any) -> None:
    box = film.page.get_by_role("slider", name="Time").bounding_box()
    middle = box["y"] + box["height"] / 2
    film.drag((box["x"] + 4, middle), (box["x"] + box["width"] / 2, middle))
    assert film.ask("c.clock.time") == pytest.approx(30, abs=0.5)


def test_the_end_stops_and_play_starts_over(film: Any) -> None:
    film.do("seek", time=59)
    film.do("speed", value=8)
    film.do("play")
    film.page.wait_for_function("() => !document.querySelector('.tl').__canvas.clock.playing")
    assert film.ask("c.clock.time") == 60
    film.do("speed", value=0.25)
    film.do("play")
    assert film.ask("c.clock.time") < 30


def test_a_film_starts_by_itself_unless_motion_is_reduced(show: Any, new_page: Any) -> None:
    still, moving = new_page(), new_page(reduced_motion="no-preference")
    assert show(still, *ring()).ask("c.clock.playing") is False
    assert show(moving, *ring()).ask("c.clock.playing") is True


def test_the_text_of_what_happens_is_a_panel(film: Any) -> None:
    film.keys("t")
    panel = film.page.get_by_role("region", name="What happens")
    expect(panel).to_contain_text("g0 sends chunk 0 of g0 to g1")
    film.keys("ArrowRight")
    expect(panel).to_contain_text("Epoch 1")
    expect(panel).to_contain_text("g0 sends chunk 3 of g3 to g1")
    film.keys("t")
    expect(panel).to_be_hidden()


def test_link_load_can_be_shown(film: Any) -> None:
    film.keys("h")
    expect(film.page.get_by_text("Link load", exact=True)).to_be_visible()
    assert (
        film.page.get_by_role("button", name="Link load (H)").get_attribute("aria-pressed")
        == "true"
    )


# ---- cuts and schedules out of date ----


def test_the_bottleneck_cut_is_dashed_and_labelled(film: Any) -> None:
    expect(film.page.get_by_text("Bottleneck cut · 100 GB/s across · ≥ 20 µs")).to_be_visible()
    cut = film.ask(
        "c.cy.edges('.cut').map((e) => [e.data('a'), e.data('b')].sort().join('-')).sort()"
    )
    assert cut == ["g0-g3", "g1-g2"]


def test_an_edit_makes_the_schedule_stale_and_undo_makes_it_true_again(film: Any) -> None:
    note = film.page.get_by_text("Bottleneck cut")
    film.do("edit_links", links=[["g0", "g1"]], values={"bandwidth": 10})
    expect(film.page.get_by_text("Out of date")).to_be_visible()
    expect(note).to_be_hidden()
    assert film.ask("[c.stale, c.canvas.model.get('stale'), c.tokens]") == [True, True, 0]
    film.keys("Control+z")
    expect(note).to_be_visible()
    assert film.ask("c.canvas.model.get('stale')") is False


@pytest.mark.parametrize(
    ("command", "arguments"),
    [("nudge", {"dx": 10}), ("rename_topology", {"name": "other"}), ("align", {"how": "left"})],
)
def test_moving_and_naming_leave_the_schedule_true(film: Any, command: str, arguments: Any) -> None:
    film.ask("void c.canvas.select({ devices: ['g0', 'g1'] })")
    before = film.ask("c.canvas.history.past.length")
    film.do(command, **arguments)
    assert film.ask("c.canvas.history.past.length") == before + 1
    assert film.ask("c.stale") is False


# ---- films as files ----


def test_a_film_is_saved_as_gif(film: Any) -> None:
    with film.page.expect_download() as waiting:
        film.do("export_gif", width=320, fps=3)
    file = Path(waiting.value.path())
    assert waiting.value.suggested_filename == "ring-of-4.gif"
    assert file.read_bytes()[:6] == b"GIF89a"
    assert file.stat().st_size > 4000


def test_a_film_is_saved_as_webm(film: Any) -> None:
    film.do("speed", value=8)
    with film.page.expect_download() as waiting:
        film.do("export_webm", width=320, fps=15)
    assert Path(waiting.value.path()).read_bytes()[:4] == base64.b64decode("GkXfow==")


def test_there_is_no_film_of_nothing(drawn: Any) -> None:
    drawn.do("export_gif")
    expect(drawn.page.get_by_role("alert")).to_contain_text("no schedule")
