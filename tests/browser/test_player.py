"""Playing a schedule on the canvas: time, buffers, cuts, schedules out of date, films."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


# ---- playing ----


def test_steps_go_both_ways_and_say_what_happens(film: Any) -> None:
    slider = film.page.get_by_role("slider", name="Time")
    film.keys("ArrowRight", "ArrowRight")
    assert slider.get_attribute("aria-valuenow") == "40"
    assert film.ask("c.canvas.dom.live.textContent").startswith(
        "Epoch 2: 4 chunks over 4 links. g0 sends"
    )
    expect(film.page.get_by_text("2 of 3 epochs")).to_be_visible()
    film.keys("ArrowLeft")
    assert slider.get_attribute("aria-valuenow") == "20"
    film.keys("End")
    expect(film.page.get_by_text("3 of 3 epochs")).to_be_visible()


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


BETTER = """(({ series, number, by }) => {
    const { model } = c.canvas;
    const s = model.get('scene');
    model.receive('scene', {
        ...s,
        transfers: s.transfers.map(([k, a, b, t0, t1, f]) => [k, a, b, t0 * by, t1 * by, f]),
        makespan: s.makespan * by,
        epoch_duration: s.epoch_duration * by,
        take: { series, number },
    });
})(x)"""
"""Bring another schedule of the same problem, faster by a factor."""


def bring(film: Any, series: str, number: int, by: float) -> None:
    film.ask(BETTER, {"series": series, "number": number, "by": by})
    film.settle()


def test_a_better_schedule_takes_over_at_the_same_share_of_its_time(film: Any) -> None:
    """60 µs, then 30 µs: a film at its middle goes on at the middle, and goes on."""
    bring(film, "solve", 1, 1.0)
    film.do("speed", value=1e-6)
    film.do("seek", time=30)
    film.do("play")
    bring(film, "solve", 2, 0.5)
    assert film.ask("c.clock.playing")
    assert film.ask("c.clock.time / c.clock.end") == pytest.approx(0.5, abs=1e-3)
    assert film.ask("c.clock.end") == pytest.approx(30)
    expect(film.page.get_by_role("button", name="Show it")).to_be_hidden()


def test_a_better_schedule_is_offered_to_who_has_stopped_the_film(film: Any) -> None:
    """A third of 60 µs is looked at; a third of 45 µs follows the click, a quarter is gained."""
    bring(film, "solve", 1, 1.0)
    film.do("seek", time=20)
    bring(film, "solve", 2, 0.75)
    offer = film.page.get_by_role("button", name="Show it")
    expect(offer).to_be_visible()
    expect(film.page.get_by_text("Schedule 2 is here: 45 µs, 25 % faster")).to_be_visible()
    assert film.ask("c.clock.time") == pytest.approx(20)
    offer.click()
    expect(offer).to_be_hidden()
    assert film.ask("[c.clock.time, c.clock.end, c.clock.playing]") == [15, 45, False]


def test_the_schedule_of_another_solve_begins_at_the_start(film: Any) -> None:
    bring(film, "solve", 1, 1.0)
    film.do("seek", time=20)
    bring(film, "solve", 2, 0.5)
    bring(film, "another", 1, 1.0)
    expect(film.page.get_by_role("button", name="Show it")).to_be_hidden()
    assert film.ask("c.clock.end") == pytest.approx(30)


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


def test_a_film_starts_by_itself_unless_motion_is_reduced(
    show: Any, new_page: Any, ring: Any
) -> None:
    still, moving = new_page(), new_page(reduced_motion="no-preference")
    assert show(still, *ring).ask("c.clock.playing") is False
    assert show(moving, *ring).ask("c.clock.playing") is True


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
    for line in ("Bottleneck cut", "100 GB/s across"):
        expect(film.page.get_by_text(line)).to_be_visible()
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


# ---- the view ----


def test_the_view_stays_fitted_until_somebody_moves_it(drawn: Any, ring: Any) -> None:
    """The strip and the region of a new schedule need room; a view that was chosen is kept."""

    def lowest() -> float:
        return max(drawn.at(name)[1] for name in drawn.names)

    before = lowest()
    drawn.ask(
        "void (c.canvas.model.receive('cuts', x[2]), c.canvas.model.receive('scene', x[1]))", ring
    )
    drawn.settle()
    assert lowest() < before

    drawn.keys("+")
    zoom = drawn.ask("c.cy.zoom()")
    drawn.ask("void c.canvas.model.receive('scene', null)")
    drawn.settle()
    assert drawn.ask("c.cy.zoom()") == zoom


def test_names_are_written_above_the_buffers_from_the_first_picture(drawn: Any, ring: Any) -> None:
    """A new scene moves the names up in the box; they must not be cut off by where they were."""
    ink = """() => {
        const { canvas } = document.querySelector('.tl').__canvas;
        const layer = document.querySelector('.tl-graph canvas[data-id="layer2-node"]');
        const k = layer.width / layer.clientWidth;
        return ['g0', 'g1', 'g2', 'g3'].map((name) => {
            const r = canvas.stage.rect(name);
            const p = canvas.stage.toScreen({ x: r.x1 + 20, y: r.y1 + 6 });
            const size = [38, 16].map((v) => v * canvas.stage.cy.zoom() * k);
            const { data } = layer.getContext('2d').getImageData(p.x * k, p.y * k, ...size);
            return data.filter((value, i) => i % 4 === 0 && value < 90).length;
        });
    }"""
    drawn.ask("void c.canvas.model.receive('theme', 'light')")
    drawn.ask(
        "void (c.canvas.model.receive('cuts', x[2]), c.canvas.model.receive('scene', x[1]))", ring
    )
    drawn.page.wait_for_timeout(300)
    assert min(drawn.page.evaluate(ink)) > 10
