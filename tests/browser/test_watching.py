"""Schedules watched: several in step, the difference of two, a chunk followed, sums, a film."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ccl.collective import all_gather, all_reduce, reduce_scatter
from ccl.problem import Problem
from ccl.serialization.quantity import parse_size
from formulations import solve
from gallery import open_cluster
from widgets import canvas_file
from widgets.view_model import scene
from widgets.view_model.scene import drawing

pytestmark = pytest.mark.browser

PAIR = "document.querySelector('.tlp').__pair"
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>players</title>
<link rel="icon" href="data:,"><style>body { margin: 0 }</style><div id="players"></div>
<script type="module">
const bytes = Uint8Array.from(atob("BUNDLE"), (letter) => letter.charCodeAt(0));
const file = URL.createObjectURL(new Blob([bytes], { type: "text/javascript" }));
const { default: afm, PlainModel } = await import(file);
const state = STATE;
const films = new Map(state.films.map((film) => [film.key, film]));
window.model = new PlainModel({ ...state, films: state.chosen.map((key) => films.get(key)) });
window.model.on("change:chosen", () => {
  window.model.receive("films", window.model.get("chosen").map((key) => films.get(key)));
});
afm.render({ model: window.model, el: document.getElementById("players") });
</script></html>"""


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """Three plans of a ring of four, and one on another cluster."""
    ring, mesh = open_cluster("ring:gpus=4"), open_cluster("full-mesh")
    small, large = (Problem(ring, all_gather(4, size)) for size in (1e6, 4e6))
    return {
        "ring": solve(large, "ring"),
        "direct": solve(large, "direct"),
        "ring of 1 MB": solve(small, "ring"),
        "mesh": solve(Problem(mesh, all_gather(4, 4e6)), "direct"),
    }


def open_players(page: Page, tmp_path: Path, results: dict[str, Any]) -> None:
    """Open the ring beside direct, with the others to choose from."""
    page.set_viewport_size({"width": 1440, "height": 900})
    state = {
        "drawing": drawing(results["ring"].problem.topology),
        "choices": scene.result_choices(results),
        "chosen": ["ring", "direct"],
        "films": scene.result_films(results, list(results)),
        "theme": "dark",
        "height": "100vh",
    }
    bundle = base64.b64encode(canvas_file().read_bytes()).decode()
    html = PAGE.replace("STATE", json.dumps(state).replace("<", "\\u003c"))
    (tmp_path / "players.html").write_text(html.replace("BUNDLE", bundle), encoding="utf-8")
    page.goto((tmp_path / "players.html").as_uri())
    expect(page.locator(".tlp-side")).to_have_count(2)
    page.wait_for_function(f"() => {PAIR}.sides.every((side) => side.playback)")


def test_four_play_in_step_two_are_told_apart_and_clusters_keep_their_own_view(
    page: Page, tmp_path: Path, results: dict[str, Any]
) -> None:
    """A ring sends 12 chunks over one link each; direct sends the opposite ones over two."""
    open_players(page, tmp_path, results)
    players = page.locator(".tlp-side")
    expect(players).to_have_count(2)
    more = page.get_by_role("button", name="One player more")
    for count in (3, 4):
        more.click()
        expect(players).to_have_count(count)
    expect(more).to_be_disabled()
    page.wait_for_function(f"() => {PAIR}.sides.every((side) => side.playback)")

    boxes = [players.nth(i).bounding_box() for i in range(4)]
    assert [(round(box["x"]) > 0, round(box["y"]) > 0) for box in boxes if box] == [
        (False, False),
        (True, False),
        (False, True),
        (True, True),
    ]
    strip = page.get_by_role("slider", name="Time of all")
    strip.focus()
    page.keyboard.press("End")
    ends = page.evaluate(f"() => {PAIR}.sides.map((side) => side.screen.clock.time)")
    assert ends == pytest.approx([each.makespan for each in results.values()])
    expect(page.locator(".tlp-done")).to_have_text(["done"] * 4)
    zooms = f"() => {PAIR}.sides.map(({{ screen }}) => screen.stage.cy.zoom())"
    before = page.evaluate(zooms)
    page.locator(".tlp-a .tlp-film .tl").focus()
    page.keyboard.press("+")
    after = page.evaluate(zooms)
    assert after[0] == after[1] == after[2] > before[0]
    assert after[3] == before[3]

    page.get_by_role("button", name="Close player C").click()
    expect(players).to_have_count(3)
    page.keyboard.press("d")
    page.get_by_label("Difference of A and B").first.wait_for()
    legend = page.locator(".tlp-classes")
    expect(legend).to_contain_text("Only in A")
    sizes = [parse_size(each) for each in legend.locator(".tlp-class b").all_inner_texts()]
    a, b = (
        sum(each.nbytes for each in results[name].timeline.transfers) for name in ("ring", "direct")
    )
    assert (sizes[0] + sizes[2], sizes[1] + sizes[2]) == pytest.approx((a, b), rel=0.01)
    assert sizes[2] > 0
    expect(page.locator(".tlp-film .tl:visible")).to_have_count(1)
    expect(page.get_by_role("button", name="Difference of A and B")).to_have_attribute(
        "aria-pressed", "true"
    )
    page.get_by_label("Schedule B").get_by_role("combobox").first.select_option("mesh")
    expect(page.locator(".tlp-difference .tlp-nothing")).to_contain_text("needs one cluster")
    page.get_by_role("button", name="Difference of A and B").click()
    expect(page.locator(".tlp-film .tl:visible")).to_have_count(3)


DIFFERENCE = f"{PAIR}.difference.screen"


def test_the_difference_keeps_what_was_chosen_in_the_players(
    page: Page, tmp_path: Path, results: dict[str, Any]
) -> None:
    """A chunk, a rank, a device and the load of links now; what is chosen there since stays."""
    open_players(page, tmp_path, results)
    switch = page.get_by_role("button", name="Difference of A and B")
    page.evaluate(f"""() => {{
        const {{ screen }} = {PAIR}.sides[1];
        screen.inspector.look({{ chunk: 1, rank: 2 }});
        screen.select({{ devices: ["g0"] }});
        screen.setHeat(true, "now");
    }}""")
    label = page.evaluate(f"() => {PAIR}.sides[1].playback.scene.chunks[1].label")
    switch.click()
    legend = page.locator(".tlp-classes")
    expect(legend.locator(".tlp-only")).to_have_text(f"Only {label}")
    expect(legend).to_contain_text("busier now")
    chosen = f"""() => [{DIFFERENCE}.inspector.focus.rank, {DIFFERENCE}.selection.devices,
        {DIFFERENCE}.heatOf, {DIFFERENCE}.heat]"""
    assert page.evaluate(chosen) == [2, ["g0"], "now", True]
    sizes = [parse_size(each) for each in legend.locator(".tlp-class b").all_inner_texts()]
    ring, direct = (
        sum(each.nbytes for each in results[name].timeline.transfers if each.chunk == 1)
        for name in ("ring", "direct")
    )
    assert (sizes[0] + sizes[2], sizes[1] + sizes[2]) == pytest.approx((ring, direct), rel=0.01)

    page.evaluate(f"() => {DIFFERENCE}.setHeat(true, 'run')")
    expect(legend).not_to_contain_text("busier now")
    switch.click()
    switch.click()
    assert page.evaluate(chosen) == [2, ["g0"], "run", True]
    page.evaluate(f"() => {PAIR}.sides[1].screen.setHeat(true, 'run')")
    legend.get_by_role("button", name="Compare all data").click()
    expect(legend.locator(".tlp-only")).to_have_count(0)
    assert page.evaluate(f"() => {PAIR}.sides.map(({{ screen }}) => screen.inspector.focus)") == [
        None,
        {"chunk": None, "link": None, "rank": 2, "host": None, "transfer": None},
    ]


def test_a_sum_has_the_colours_of_its_parts_and_the_view_follows_its_chunk(
    page: Page, show: Any
) -> None:
    """A ring of four adds up in three steps; in the third one the chunk on its way has three parts.

    Motion is reduced here, so the view is at the chunk in the next frame.
    """
    problem = Problem(open_cluster("ring:gpus=4"), reduce_scatter(4, 4e6))
    result = solve(problem, "ring")
    canvas = show(
        page, drawing(problem.topology), scene.scene(problem, result.plan, result.timeline)
    )
    canvas.do("seek", time=result.makespan * 0.9)
    parts = "[...c.canvas.buffers.parts.values()].map((each) => each.length)"
    assert sorted(set(canvas.ask(parts))) == [1, 2, 3]
    expect(page.locator(".tl-legend")).to_contain_text("A sum has the colours of its parts")
    canvas.do("seek", time=0.0)
    canvas.keys("w")
    chunk = canvas.ask("c.canvas.inspector.focus.chunk")
    assert canvas.ask("c.canvas.following.on") is True
    for share in (0.2, 0.5, 0.8):
        canvas.do("seek", time=result.makespan * share)
        canvas.settle()
        away = canvas.ask(
            """(() => {
                const { stage, playback, clock } = c.canvas;
                const { dst, src } = playback.inFlight(clock.time).find((f) => f.chunk === x);
                const boxes = [src, dst].map((name) => stage.rect(name));
                const at = (k, j) => boxes.reduce((sum, r) => sum + r[k] + r[j], 0) / 4;
                const p = stage.toScreen({ x: at("x1", "x2"), y: at("y1", "y2") });
                const [a, b] = boxes.map((r) => [(r.x1 + r.x2) / 2, (r.y1 + r.y2) / 2]);
                const length = Math.hypot(a[0] - b[0], a[1] - b[1]) * c.cy.zoom();
                return Math.hypot(p.x - c.cy.width() / 2, p.y - c.cy.height() / 2) / length;
            })()""",
            chunk,
        )
        assert away < 0.75  # the chunk is on its line, whose middle is at most half of it away
    canvas.keys("w")
    assert canvas.ask("c.canvas.following.on") is False


FRAMES = """() => {
    window.frames_encoded = [];
    const encode = VideoEncoder.prototype.encode;
    VideoEncoder.prototype.encode = function (frame, ...more) {
        const ctx = new OffscreenCanvas(frame.codedWidth, frame.codedHeight).getContext("2d");
        ctx.drawImage(frame, 0, 0);
        const { data } = ctx.getImageData(0, 0, frame.codedWidth, frame.codedHeight);
        window.frames_encoded.push(data.reduce((sum, each) => (sum * 31 + each) % 4294967291, 7));
        return encode.call(this, frame, ...more);
    };
}"""
"""Numbers that tell the pictures that are encoded from one another."""


def test_a_film_is_the_same_each_time_has_chapters_and_can_be_cancelled(
    page: Page, show: Any
) -> None:
    """Of 0.5 s at 10 frames a second: it stands 0.8 s at both ends, which makes 21 frames.

    The same are the pictures that are encoded; encoders spend as much care as there is time for.
    """
    problem = Problem(open_cluster("ring:gpus=4"), all_reduce(4, 4e6))
    result = solve(problem, "ring")
    canvas = show(
        page, drawing(problem.topology), scene.scene(problem, result.plan, result.timeline)
    )
    canvas.do("seek", time=3.0)
    page.evaluate(FRAMES)
    films, frames = [], []
    for _ in range(2):
        with page.expect_download(timeout=60_000) as given:
            canvas.do("export_film", width=480, height=270, fps=10, seconds=0.5)
        films.append(Path(given.value.path()).read_bytes())
        frames.append(page.evaluate("() => window.frames_encoded.splice(0)"))
    assert given.value.suggested_filename.endswith(".webm")
    assert len(frames[0]) == 21
    assert len(set(frames[0])) > 5
    assert frames[0] == frames[1]
    assert b"reduce-scatter" in films[0]
    assert b"all-gather" in films[0]
    shown = page.evaluate(
        """async (bytes) => {
            const video = document.createElement("video");
            const file = new Blob([new Uint8Array(bytes)], { type: "video/webm" });
            video.src = URL.createObjectURL(file);
            await new Promise((done, wrong) => {
                Object.assign(video, { onloadeddata: done, onerror: wrong });
            });
            video.currentTime = 1;
            await new Promise((done) => (video.onseeked = done));
            return [video.duration, video.videoWidth, video.videoHeight, video.currentTime];
        }""",
        list(films[0]),
    )
    assert shown == [2.1, 480, 270, 1]
    assert canvas.ask("c.clock.time") == pytest.approx(3.0)
    canvas.ask("void c.cmd('export_film')")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".tl-filming")).to_have_count(0)
    expect(page.locator(".tl > .tl-sr").first).to_have_text("The film was cancelled")
