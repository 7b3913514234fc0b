"""The gap plot on a page of its own, in the host that a notebook is."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import widgets
from widgets.view_model.gap import course

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>gap</title>
<link rel="icon" href="data:,"><body data-jp-theme-light="true"><div id="plot"></div>
<script type="module">
const { default: afm } = await import("data:text/javascript;base64,SOURCE");
const listeners = new Map();
window.model = {
  state: { course: COURSE },
  get: (name) => window.model.state[name],
  on: (event, listener) => listeners.set(event, listener),
  off: (event) => listeners.delete(event),
  tell(value) { this.state.course = value; listeners.get("change:course")?.(); },
  listeners,
};
window.end = afm.render({ model: window.model, el: document.getElementById("plot") });
</script></body></html>"""

POINTS = [(0.5, None, 10.0), (1.0, 20.0, 10.0), (3.0, 15.0, 10.0)]
"""No plan, then 20 µs, then 15 µs, over a bound of 10 µs."""


def content(points: list[Any], *, seconds: float, running: bool) -> Any:
    """Return a course as it travels to the page."""
    return course(points, seconds=seconds, running=running)


@pytest.fixture
def plot(page: Page, tmp_path: Path) -> Page:
    """A page with the plot of a solve that runs, 4 s after its start."""
    source = (Path(widgets.__file__).parent / "static" / "gap_plot.js").read_bytes()
    told = json.dumps(content(POINTS, seconds=4.0, running=True))
    html = PAGE.replace("SOURCE", base64.b64encode(source).decode()).replace("COURSE", told)
    file = tmp_path / "gap.html"
    file.write_text(html, encoding="utf-8")
    page.goto(file.as_uri())
    page.locator(".gp-dots circle").first.wait_for()
    return page


def tell(page: Page, points: list[Any], *, seconds: float, running: bool) -> None:
    """Bring news."""
    page.evaluate("(c) => window.model.tell(c)", content(points, seconds=seconds, running=running))


def test_it_says_best_bound_and_gap(plot: Page) -> None:
    """15 µs over 10 µs is half above it."""
    legend = plot.locator(".gp-legend")
    for words in ("best 15 µs", "bound 10 µs", "gap 50 %"):
        expect(legend).to_contain_text(words)
    name = "Best makespan 15 µs, bound 10 µs, gap 50 % so far"
    expect(plot.get_by_role("img", name=name)).to_be_visible()
    expect(plot.locator(".gp-dots circle")).to_have_count(2)


def test_news_changes_what_is_drawn_and_makes_nothing_anew(plot: Page) -> None:
    """The same elements with other places: nothing flickers, no axis moves within 5 s."""
    plot.evaluate("() => { window.before = [...document.querySelectorAll('.gp *')]; }")
    line = plot.locator(".gp-best").get_attribute("d")
    ticks = plot.locator("svg text").all_inner_texts()
    tell(plot, POINTS, seconds=4.4, running=True)
    assert plot.evaluate("() => window.before.every((each) => each.isConnected)")
    assert plot.locator(".gp-best").get_attribute("d") != line
    assert plot.locator("svg text").all_inner_texts() == ticks


def test_a_proof_closes_the_gap(plot: Page) -> None:
    tell(plot, [*POINTS, (5.0, 15.0, 15.0)], seconds=5.0, running=False)
    expect(plot.locator(".gp-proved")).to_contain_text("gap 0 %")
    expect(plot.get_by_role("img", name="at the end")).to_be_visible()


def test_pointing_at_a_time_tells_what_was_known_and_moves_nothing(plot: Page) -> None:
    """Of 5 s from 50 px to the right edge less 10 px, 2 s lie at two fifths: 20 µs were known."""
    svg = plot.locator(".gp svg")
    box = svg.bounding_box()
    assert box is not None
    plot.mouse.move(box["x"] + 50 + (box["width"] - 60) * 0.4, box["y"] + 80)
    expect(plot.locator(".gp-legend")).to_contain_text("gap 100 %")
    expect(svg).to_contain_text("2 s")
    assert svg.bounding_box() == box
    plot.mouse.move(box["x"] + 5, box["y"] + 400)
    expect(plot.locator(".gp-legend")).to_contain_text("gap 50 %")


def test_it_is_readable_in_light_and_dark(plot: Page) -> None:
    """Lines and words differ from the page in both by 3 to 1 and 4.5 to 1 at least (WCAG 2.2)."""
    contrast = """([selector, key, ground]) => {
        const style = getComputedStyle(document.querySelector(selector))[key];
        const light = (text) => {
            const rgb = text.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255);
            const curve = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            const linear = rgb.map(curve);
            return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
        };
        const [a, b] = [light(style), light(ground)].sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);
    }"""
    for light, ground in (("true", "rgb(246, 248, 251)"), ("false", "rgb(22, 30, 40)")):
        plot.evaluate("(on) => { document.body.dataset.jpThemeLight = on; }", light)
        for selector, key, least in (
            (".gp-best", "stroke", 3.0),
            (".gp-bound", "stroke", 3.0),
            (".gp text", "fill", 4.5),
            (".gp-legend b", "color", 4.5),
        ):
            assert plot.evaluate(contrast, [selector, key, ground]) >= least, (selector, light)


def test_the_end_of_the_host_takes_everything_away(plot: Page) -> None:
    plot.evaluate("() => window.end()")
    expect(plot.locator(".gp")).to_have_count(0)
    assert plot.evaluate("() => window.model.listeners.size") == 0
