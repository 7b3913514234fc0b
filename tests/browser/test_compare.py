"""The Compare view and two schedules in step, as a user meets them."""

from __future__ import annotations

import base64
import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Request, Route, expect

from ccl.collective import all_gather
from ccl.layout import layout
from ccl.problem import Problem
from ccl.serialization.documents import document, document_text
from formulations import compare
from formulations.analyses.comparison import comparison_from_json
from gallery import open_cluster
from widgets import canvas_file
from widgets.view_model import scene
from widgets.view_model.scene import drawing

pytestmark = pytest.mark.browser

SLOW = 90_000
"""ms for solves on a busy machine."""

PAIR = "document.querySelector('.tlp')?.__pair"
TIMES = f"() => {PAIR}.sides.map((side) => side.screen.clock.time)"

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>pair</title>
<link rel="icon" href="data:,"><style>body { margin: 0 }</style><div id="pair"></div>
<script type="module">
const bytes = Uint8Array.from(atob("BUNDLE"), (letter) => letter.charCodeAt(0));
const file = URL.createObjectURL(new Blob([bytes], { type: "text/javascript" }));
const { default: afm, PlainModel } = await import(file);
window.saved = [];
window.model = new PlainModel(STATE, (changed) => window.saved.push(changed));
window.end = afm.render({ model: window.model, el: document.getElementById("pair") });
</script></html>"""


@pytest.fixture(scope="module")
def compared() -> Any:
    """Two schedules of an all-gather of 4 MB on a DGX-1 with V100."""
    problem = Problem(open_cluster("dgx-1v"), all_gather(8, 4e6))
    return compare(problem, ("direct", "ring"), sizes=(1e6, 4e6), time_limit=5)


@pytest.fixture
def two(page: Page, tmp_path: Path, compared: Any) -> Page:
    """A page with the fastest schedule and the ring side by side, at the start."""
    topology = compared.problem.topology
    chosen = scene.first_pair(compared)
    state = {
        "drawing": drawing(topology, layout(topology)),
        "choices": scene.choices(compared),
        "chosen": chosen,
        "films": scene.films(compared, chosen),
        "theme": "dark",
        "height": "600px",
    }
    bundle = base64.b64encode(canvas_file().read_bytes()).decode()
    html = PAGE.replace("STATE", json.dumps(state).replace("<", "\\u003c"))
    (tmp_path / "pair.html").write_text(html.replace("BUNDLE", bundle), encoding="utf-8")
    page.goto((tmp_path / "pair.html").as_uri())
    page.wait_for_function(f"() => {PAIR}?.sides.every((side) => side.playback)")
    return page


@pytest.fixture
def designer(page: Page, server: tuple[str, int], tmp_path: Path) -> Page:
    """The page with a DGX-1 with V100, in the Compare view, only three methods ticked."""
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(server[0])
    page.wait_for_selector(".tl-graph canvas")
    file = tmp_path / "dgx.json"
    file.write_text(document_text(document(open_cluster("dgx-1v"))), encoding="utf-8")
    page.locator("#upload input[type=file]").set_input_files(file)
    expect(page.locator("#counts")).to_contain_text("8 GPUs")
    page.locator("#view").get_by_text("Compare").click()
    ticked = page.locator(".ds-cmp-method").get_by_role("checkbox", checked=True)
    expect(ticked).not_to_have_count(0)
    page.get_by_role("button", name="None", exact=True).click()
    # The answer comes from the server, and would take back what is ticked before it is there.
    expect(ticked).to_have_count(0)
    for name in ("Ring", "Direct", "List scheduling in continuous time"):
        page.get_by_role("checkbox", name=name, exact=True).check()
    page.get_by_label("Sizes").fill("16KB, 1MB")
    expect(page.locator("#compare-pane")).to_contain_text("2 of them: 16 KB, 1 MB")
    return page


def run(page: Page) -> None:
    """Compare, and wait for the end."""
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator("#compare-status")).to_contain_text("Finished: 6 rows", timeout=SLOW)


def times(page: Page) -> list[float]:
    """Return the µs at which both players are."""
    found: list[float] = page.evaluate(TIMES)
    return found


def test_three_methods_at_two_sizes_are_compared_played_and_opened(designer: Page) -> None:
    """At a tenth of the longer film both are on their way, at the same time."""
    page = designer
    run(page)
    rows = page.locator("#compare-table .ds-cmp-row")
    expect(rows).to_have_count(6)
    expect(page.locator("#compare-table .ds-cmp-size")).to_have_count(2)
    expect(page.locator("#compare-plot .scatterlayer .trace")).not_to_have_count(0)
    legend = page.locator("#compare-plot .legend")
    for name in ("bound", "Ring", "Direct", "List scheduling"):
        expect(legend).to_contain_text(name)
    page.locator("#compare-quantity").get_by_text("algbw").click()
    expect(page.locator("#compare-plot .ytick").first).to_contain_text("GB/s")

    details = page.get_by_role("button", name="Details of ring").last
    detail = page.locator(".ds-cmp-detail")
    details.focus()
    for shown in (1, 0, 1):
        page.keyboard.press("Enter")
        expect(detail).to_have_count(shown)
        expect(details).to_be_focused()
    expect(detail).to_contain_text("Formula and simulation")
    detail.get_by_role("button", name="Play beside another").click()
    page.wait_for_function(f"() => {PAIR}?.sides.every((side) => side.playback)")
    expect(page.get_by_label("Schedule A").get_by_role("combobox").first).to_have_value(
        re.compile("ring$")
    )
    page.evaluate(f"() => Object.assign({PAIR}.lead, {{ speed: 0.25 }}).toggle(true)")
    page.wait_for_function(f"() => {PAIR}.lead.time > {PAIR}.lead.end * 0.1")
    page.evaluate(f"() => {PAIR}.lead.toggle(false)")
    first, second = times(page)
    assert first == second > 0
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")

    page.get_by_role("button", name="Back to the table").click()
    rows.last.get_by_text("ring").click()
    expect(page.locator("#canvas-pane .tl")).to_be_visible()
    expect(page.locator("#schedule")).to_contain_text("All-gather of 1 MB")
    expect(page.locator("#schedule")).not_to_contain_text("Out of date")
    expect(page.get_by_role("textbox", name="Method")).to_have_value("Ring")
    assert page.evaluate("document.querySelector('#canvas .tl').__canvas.clock.end") > 0


def test_a_tick_outlives_a_table_that_was_drawn_before_it(designer: Page) -> None:
    """The table for opened details is on its way while a row is ticked, and another after it."""
    page = designer
    run(page)
    watch = page.get_by_role("checkbox", name="Watch ")
    watch.nth(0).check()
    late: list[Route] = []

    def drawn(request: Request) -> bool:
        return "compare-table.children" in (request.post_data or "")

    def held(route: Route) -> None:
        if drawn(route.request) and not late:
            late.append(route)
        else:
            route.continue_()

    page.route(re.compile("_dash-update-component"), held)
    with page.expect_request(drawn):
        page.get_by_role("button", name="Details of ring").first.click()
    watch.nth(1).check()
    expect(page.get_by_role("button", name="Watch 2 in step")).to_be_visible()
    late[0].continue_()
    expect(page.locator(".ds-cmp-detail")).to_be_visible()
    expect(page.locator(".ds-cmp-tick input:checked")).to_have_count(2)
    watch.nth(0).uncheck()
    expect(page.locator(".ds-cmp-tick input:checked")).to_have_count(1)
    watch.nth(2).check()
    expect(page.get_by_role("button", name="Watch 2 in step")).to_be_visible()


def test_it_goes_grey_comes_back_after_a_reload_and_is_exported(designer: Page) -> None:
    page = designer
    run(page)
    page.get_by_label("Chunks per shard").fill("2")
    expect(page.locator("#compare-stale")).to_contain_text("the request has changed")
    expect(page.locator("#compare-found")).to_have_class(re.compile("ds-cmp-old"))
    page.get_by_label("Chunks per shard").fill("")
    expect(page.locator("#compare-stale")).to_be_empty()

    page.wait_for_timeout(400)  # the drawing is kept a moment after the last edit
    page.reload()
    page.locator("#view").get_by_text("Compare").click()
    expect(page.locator("#compare-table .ds-cmp-row")).to_have_count(6, timeout=SLOW)
    expect(page.locator("#compare-stale")).to_be_empty()

    texts = {}
    for kind in ("Comparison as JSON", "Table as CSV"):
        page.locator("#compare-export-open").click()
        with page.expect_download() as given:
            page.get_by_role("menuitem", name=kind).click()
        texts[kind] = Path(given.value.path()).read_text(encoding="utf-8")
    read = comparison_from_json(json.loads(texts["Comparison as JSON"]))
    assert len(read.rows) == 6
    assert len(list(csv.DictReader(texts["Table as CSV"].splitlines()))) == 6


def test_both_players_go_by_one_time_and_the_faster_one_waits(two: Page, compared: Any) -> None:
    """Between the ends of both the faster one is over, at its end, and the slower one goes on."""
    rows = [scene.row_of(compared, key) for key in scene.first_pair(compared)]
    fast, slow = (row.result.makespan for row in rows)
    between = (fast + slow) / 2
    assert fast < between
    strip = two.get_by_role("slider", name="Time of both")
    strip.focus()
    two.keyboard.press("ArrowRight")
    first, second = times(two)
    assert first == second > 0
    two.evaluate(f"() => {PAIR}.lead.seek({between})")
    assert times(two) == pytest.approx([fast, between])
    expect(two.get_by_label("Schedule A").get_by_role("status").first).to_have_text("done")
    expect(two.locator(".tlp-b .tlp-done")).to_have_text("")
    assert float(strip.get_attribute("aria-valuenow")) == pytest.approx(between, abs=1e-3)
    two.keyboard.press("End")
    assert times(two) == pytest.approx([fast, slow])
    two.keyboard.press("Home")
    assert times(two) == [0, 0]


def test_keys_on_one_canvas_move_both_and_views_go_together(two: Page) -> None:
    right = two.locator(".tlp-b .tlp-film .tl")
    right.focus()
    two.keyboard.press("ArrowRight")
    first, second = times(two)
    assert first == second > 0
    two.keyboard.press("Space")
    two.wait_for_function(f"() => {PAIR}.lead.time > {first}")
    two.keyboard.press("Space")
    assert not two.evaluate(f"{PAIR}.lead.playing")
    two.keyboard.press("+")
    views = two.evaluate(
        f"() => {PAIR}.sides.map(({{ screen }}) => [screen.stage.cy.zoom(), screen.stage.cy.pan()])"
    )
    assert views[0] == views[1]


def test_nothing_can_be_drawn_here_and_a_move_is_seen_on_both(two: Page) -> None:
    left = two.locator(".tlp-a .tlp-film .tl")
    left.focus()
    two.keyboard.press("g")
    expect(left.get_by_role("alert")).to_contain_text("only shows")
    counts = f"{PAIR}.sides.map(({{ screen }}) => screen.drawing.topology.devices.length)"
    assert two.evaluate(counts) == [8, 8]
    two.evaluate(
        f"() => {{ const {{ screen }} = {PAIR}.sides[0]; screen.select({{ devices: ['g0'] }}); }}"
    )
    two.keyboard.press("Shift+ArrowRight")
    places = two.evaluate(f"{PAIR}.sides.map(({{ screen }}) => screen.drawing.positions.g0)")
    assert places[0] == places[1]


def test_another_choice_asks_the_host_and_its_film_goes_on_at_the_same_time(
    two: Page, compared: Any
) -> None:
    two.evaluate(f"() => {PAIR}.lead.seek(5)")
    key = scene.first_pair(compared, 1e6)[1]
    two.get_by_label("Schedule B").get_by_role("combobox").first.select_option(key)
    asked = two.evaluate("window.saved.at(-1).chosen")
    assert asked == [scene.first_pair(compared)[0], key]
    two.evaluate("(films) => window.model.receive('films', films)", scene.films(compared, asked))
    assert times(two) == [5, 5]
    other = scene.row_of(compared, key).result.makespan
    assert two.evaluate(f"{PAIR}.sides[1].playback.makespan") == pytest.approx(other)
    longer = max(scene.row_of(compared, each).result.makespan for each in asked)
    assert two.evaluate(f"{PAIR}.lead.end") == pytest.approx(longer)


def test_it_cleans_up_after_itself(two: Page) -> None:
    two.evaluate("() => window.end()")
    assert two.locator(".tl").count() == 0
    assert all(
        not each for each in two.evaluate("[...window.model.listeners.values()].map((s) => s.size)")
    )
