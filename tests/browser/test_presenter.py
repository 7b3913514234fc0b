"""Steps of a plan, presenter mode (type, keys, what is hidden, the way back), load of links."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.simulate import simulate
from tests.browser.test_access import violations
from tests.ccl.clusters import mesh, ring_all_reduce
from widgets.view_model.scene import drawing, scene

pytestmark = pytest.mark.browser

SQUARE = {"g0": (0, 0), "g1": (200, 0), "g2": (200, 160), "g3": (0, 160)}


def pages(made: tuple[Problem, Schedule]) -> tuple[Any, Any]:
    """Drawing and scene of a plan on four GPUs."""
    problem, plan = made
    return drawing(problem.topology, SQUARE), scene(problem, plan, simulate(problem, plan))


@pytest.fixture
def summing(show: Any, page: Any) -> Any:
    """An all-reduce around four of a mesh, whose two diagonals are never used."""
    return show(page, *pages(ring_all_reduce(mesh(4))))


def clock(film: Any) -> Any:
    return film.ask("c.clock.time")


def present(film: Any) -> None:
    film.keys("p")
    film.page.wait_for_function("() => document.querySelector('.tl[data-presenting]')")
    film.page.wait_for_timeout(200)
    film.settle()


# ---- steps ----


def test_comma_and_full_stop_go_from_step_to_step(film: Any) -> None:
    """Steps of the ring begin at 0, 20 and 40 µs."""
    film.do("seek", time=25)
    film.keys(".")
    assert clock(film) == 40
    caption = film.page.locator(".tl-caption p")
    expect(caption).to_have_text("Step 3 of 3: each GPU passes on what it just received")
    assert film.ask("c.canvas.dom.live.textContent").startswith("Step 3 of 3")
    film.keys(".")
    assert clock(film) == 60
    expect(caption).to_have_text("All 3 steps are done")
    film.keys(",", ",", ",")
    assert clock(film) == 0
    expect(caption).to_have_text("Step 1 of 3: each GPU sends data of its own")


def test_buttons_beside_the_caption_step_too(film: Any) -> None:
    film.page.get_by_role("button", name="Next step (.)").click()
    film.page.get_by_role("button", name="Next step (.)").click()
    assert clock(film) == 40
    film.page.get_by_role("button", name="Previous step (,)").click()
    assert clock(film) == 20


def test_a_plan_without_steps_has_no_caption_and_steps_by_epochs(film: Any) -> None:
    film.ask("(({ steps, ...s }) => c.canvas.model.receive('scene', s))(c.canvas.playback.scene)")
    film.settle()
    expect(film.page.locator(".tl-caption")).to_be_hidden()
    film.keys(".")
    assert clock(film) == 20


def test_phases_stand_above_the_steps_and_are_stepped(summing: Any) -> None:
    """Sums are whole after three rounds of 20 µs."""
    summing.do("step", of="phase")
    assert clock(summing) == 60
    assert summing.ask("c.canvas.dom.live.textContent").startswith("all-gather. Step 4 of 6")


# ---- presenter mode ----


def test_p_fills_the_screen_with_drawing_clock_and_caption(summing: Any) -> None:
    page = summing.page
    summing.do("log", on=True)
    small = page.locator(".tl-read b").evaluate("(e) => parseFloat(getComputedStyle(e).fontSize)")
    present(summing)
    box = summing.root.bounding_box()
    assert (box["width"], box["height"]) == (1280, 800)
    expect(page.locator(".tl-legend")).to_contain_text("Chunk origin")
    for gone in (".tl-bar", ".tl-log", ".tl-in"):
        expect(page.locator(gone)).to_be_hidden()
    expect(page.locator(".tl-strip")).to_be_visible()
    expect(page.locator(".tl-caption p")).to_be_visible()
    large = page.locator(".tl-read b").evaluate("(e) => parseFloat(getComputedStyle(e).fontSize)")
    assert large >= 1.6 * small
    sizes = "c.cy.nodes('.gpu').map((n) => parseFloat(n.style('font-size')))"
    assert min(summing.ask(sizes)) >= 1.6 * 11


def test_where_the_screen_may_not_be_taken_the_window_is_filled(film: Any) -> None:
    """Also from within an element that is moved, to which what is fixed would be fixed."""
    film.ask(
        """void [c.canvas.dom.root].forEach((root) => {
            root.requestFullscreen = () => Promise.reject(new Error("no"));
            root.parentElement.style.cssText = "transform: translateX(30px); overflow: hidden";
            c.canvas.model.receive("height", "300px");
        })"""
    )
    present(film)
    box = film.root.bounding_box()
    assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, 1280, 800)
    film.keys("Escape")
    assert film.root.bounding_box()["height"] == pytest.approx(300)
    assert film.root.get_attribute("popover") is None


def test_arrows_go_by_step_and_by_phase_and_space_plays(summing: Any) -> None:
    present(summing)
    summing.keys("ArrowRight", "ArrowRight")
    assert clock(summing) == 40
    summing.keys("ArrowDown")
    assert clock(summing) == 60
    summing.keys("PageDown")
    assert clock(summing) == 80
    summing.keys("ArrowUp", "ArrowLeft")
    assert clock(summing) == 40
    summing.keys(" ")
    assert summing.ask("c.clock.playing")
    summing.keys(" ", "Home")
    assert clock(summing) == 0


@pytest.mark.parametrize("key", ["p", "Escape"])
def test_leaving_puts_everything_back(film: Any, key: str) -> None:
    view = "[c.cy.zoom(), c.cy.pan().x, c.cy.pan().y, c.canvas.heat, c.canvas.mode]"
    film.do("inspect", on=True)
    film.do("focus", chunk=1)
    film.do("seek", time=20)
    film.do("link")
    film.page.wait_for_timeout(200)
    film.ask("void c.canvas.zoom(1.3)")
    before = film.ask(view)
    size = film.root.bounding_box()
    present(film)
    film.keys("b", "x", "u", "h", key)
    film.page.wait_for_function("() => !document.fullscreenElement")
    film.page.wait_for_timeout(200)
    assert film.ask(view) == pytest.approx(before)
    assert film.root.bounding_box() == size
    expect(film.page.locator(".tl-bar")).to_be_visible()
    expect(film.page.locator(".tl-in")).to_be_visible()
    expect(film.page.locator(".tl-note")).to_be_visible()
    assert film.ask("c.canvas.inspector.focus.chunk") == 1
    assert film.ask("[c.canvas.presenter.hiding, c.canvas.presenter.laser.on]") == [False, False]
    assert clock(film) == 20


def test_a_fitted_view_is_fitted_again(film: Any) -> None:
    before = film.ask("[c.cy.zoom(), c.cy.pan().x, c.cy.pan().y]")
    present(film)
    film.keys("Escape")
    film.page.wait_for_timeout(300)
    assert film.ask("[c.cy.zoom(), c.cy.pan().x, c.cy.pan().y]") == pytest.approx(before)


def test_leaving_the_full_screen_by_the_browser_leaves_presenter_mode(film: Any) -> None:
    present(film)
    assert film.ask("document.fullscreenElement === c.canvas.dom.root")
    film.ask("void document.exitFullscreen()")
    film.page.wait_for_function("() => !document.querySelector('.tl[data-presenting]')")
    expect(film.page.locator(".tl-bar")).to_be_visible()


def test_b_hides_bound_and_answer_until_it_is_pressed_again(film: Any) -> None:
    page = film.page
    question = page.locator(".tl-question")
    film.do("seek", time=20)
    present(film)
    expect(question).to_be_hidden()
    expect(page.locator(".tl-note")).to_be_visible()
    film.keys("b")
    expect(question).to_be_visible()
    expect(page.locator(".tl-note")).to_have_count(0)
    assert film.ask("c.cy.edges('.cut').length") == 0
    assert film.page.locator(".tl-read").inner_text().split("\n") == ["20.0 µs"]
    film.keys("b")
    expect(question).to_be_hidden()
    expect(page.locator(".tl-note")).to_be_visible()
    assert film.page.locator(".tl-read").inner_text().split("\n") == ["20.0 of 60 µs"]


RED = """([x, y]) => {
    const layer = document.querySelector('.tl-laser');
    const k = layer.width / layer.clientWidth;
    const [r, g, b, a] = layer.getContext('2d').getImageData(x * k, y * k, 1, 1).data;
    return r > 200 && g < 80 && b < 90 && a > 200;
}"""


def test_the_laser_is_a_red_dot_at_the_mouse(film: Any) -> None:
    page = film.page
    present(film)
    expect(page.locator(".tl-laser")).to_be_hidden()
    film.keys("x")
    page.mouse.move(300, 200)
    page.mouse.move(400, 240, steps=5)
    film.settle()
    assert page.evaluate(RED, [400, 240])
    assert not page.evaluate(RED, [700, 500])
    film.keys("x")
    expect(page.locator(".tl-laser")).to_be_hidden()


def test_links_that_the_plan_never_uses_are_left_out(summing: Any) -> None:
    """The ring uses four of the six lines of the mesh."""
    seen = "c.cy.edges().filter((e) => e.style('visibility') === 'visible').length"
    assert summing.ask(seen) == 6
    present(summing)
    assert summing.ask(seen) == 4
    summing.keys("u")
    assert summing.ask(seen) == 6
    summing.keys("u", "Escape")
    assert summing.ask(seen) == 6


def test_a_click_on_a_chunk_follows_it(film: Any) -> None:
    """At 10 µs chunk 0 is half of the way from g0 to g1, on the right-hand side of the line."""
    present(film)
    film.do("seek", time=10)
    lane = film.ask("c.canvas.stage.curve(c.canvas.shown.lanes.get('g0\\u0001g1').line).lane")
    (x, y), (far, _) = film.at("g0"), film.at("g1")
    film.page.mouse.click((x + far) / 2, y + lane * film.ask("c.cy.zoom()"))
    film.settle()
    assert film.ask("c.canvas.inspector.focus.chunk") == 0
    assert film.ask("c.cy.edges('.faded').length") == 1
    film.keys("Escape")
    assert film.ask("c.canvas.inspector.focus") is None


def test_the_drawing_is_not_edited(film: Any) -> None:
    before = film.ask("JSON.stringify(c.drawing)")
    film.do("select", devices=["g0"])
    present(film)
    film.keys("g", "s", "Delete", "Control+z", "l", "Shift+ArrowRight")
    film.drag(film.at("g0"), (640, 300))
    film.keys("Escape")
    assert film.ask("JSON.stringify(c.drawing)") == before
    assert film.ask("c.canvas.selection.devices") == ["g0"]


def test_buttons_do_what_the_keys_do(film: Any) -> None:
    page = film.page
    page.get_by_role("button", name="Present (P)").click()
    page.wait_for_function("() => document.querySelector('.tl[data-presenting]')")
    page.get_by_role("button", name="Hide the bound and the answer").click()
    expect(page.locator(".tl-question")).to_have_text("What is the least time? Where is the cut?")
    expect(page.locator(".tl-question")).to_be_visible()
    page.get_by_role("button", name="Laser pointer").click()
    expect(page.locator(".tl-laser")).to_be_visible()
    page.get_by_role("button", name="Leave presenter mode").click()
    expect(page.locator(".tl-bar")).to_be_visible()


def test_the_designer_puts_its_columns_away(page: Any, server: Any, drive: Any) -> None:
    page.goto(server[0])
    canvas = drive(page)
    canvas.keys("p")
    for gone in (".ds-header", ".ds-side >> nth=0", ".ds-side >> nth=1", ".ds-view"):
        expect(page.locator(gone)).to_be_hidden()
    box = canvas.root.bounding_box()
    assert (box["width"], box["height"]) == (1280, 800)
    canvas.keys("Escape")
    expect(page.locator(".ds-header")).to_be_visible()
    expect(page.locator(".ds-side").first).to_be_visible()
    expect(page.locator(".ds-view")).to_be_visible()


def test_axe_finds_nothing_in_presenter_mode(film: Any) -> None:
    found = {}
    for theme in ("light", "dark"):
        film.ask("void c.canvas.model.receive('theme', x)", theme)
        present(film)
        film.keys("b", "h")
        found[theme] = violations(film.page)
        film.keys("Escape")
    assert found == {"light": [], "dark": []}


# ---- load of links ----


def test_the_load_is_shown_now_and_of_the_whole_run(film: Any) -> None:
    """H goes from none to now, to the whole run, and back to none; the legend has both to click."""
    choice = film.page.get_by_role("group", name="Link load of")
    expect(choice).to_have_count(0)
    film.keys("h")
    expect(choice.get_by_role("button", name="now")).to_have_attribute("aria-pressed", "true")
    film.keys("h")
    expect(choice.get_by_role("button", name="whole run")).to_have_attribute("aria-pressed", "true")
    film.keys("h")
    expect(choice).to_have_count(0)
    film.keys("h")
    choice.get_by_role("button", name="whole run").click()
    assert film.ask("[c.canvas.heat, c.canvas.heatOf]") == [True, "run"]
    film.do("heat", on=True)
    assert film.ask("[c.canvas.heat, c.canvas.heatOf]") == [True, "now"]
    film.do("heat", of="yesterday")
    expect(film.page.locator(".tl-toast")).to_have_text(
        "load is shown of now or run, not of yesterday"
    )


INK = """(x) => {
    const { canvas } = document.querySelector('.tl').__canvas;
    const { cells } = canvas.overlay.layers;
    const [a, b] = [canvas.stage.rect('g1'), canvas.stage.rect('g0')];
    const p = canvas.stage.toScreen({ x: a.x1 - 40, y: (a.y1 + a.y2) / 2 + x });
    const k = cells.width / cells.clientWidth;
    return cells.getContext('2d').getImageData(p.x * k - 2, p.y * k - 2, 5, 5).data.some((v) => v);
}"""


def test_the_load_of_the_whole_run_stays_when_the_moment_has_none(film: Any) -> None:
    """At the end nothing is under way: only the whole run has a load on the line from g0 to g1."""
    film.do("seek", time=0)
    film.do("heat", on=True, of="run")
    film.do("seek", time=60)
    lane = film.ask(
        "((v) => Math.max(1.6, v.width / 4 + 0.8))"
        "(c.canvas.stage.curve(c.canvas.shown.lanes.get('g0\\u0001g1').line))"
    )
    assert film.page.evaluate(INK, lane)
    assert film.ask("[...c.canvas.playback.loadOfRun.values()].every((v) => v === 1)")


def test_the_busiest_links_are_listed(page: Any, server: Any, drive: Any) -> None:
    page.goto(server[0])
    canvas = drive(page)
    page.get_by_role("button", name="Solve").first.click()
    rows = page.get_by_role("list", name="Busiest links").get_by_role("listitem")
    expect(rows).to_have_count(10, timeout=60_000)
    shares = [float(row.split("\n")[-1].split()[0]) for row in rows.all_inner_texts()]
    assert shares == sorted(shares, reverse=True)
    assert 0 < shares[0] <= 100
    del canvas
