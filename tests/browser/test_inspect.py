"""Looking into a schedule: bars, cells, ways, filters, the keyboard, and what it costs the host.

The ring's all-gather has three steps of 20 µs; in step k GPU i sends chunk i - k to the next one.
So chunk 0 goes g0, g1, g2, g3, one link in each step, and every link is busy all the time.
"""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from benchmarks.player import film as busy_film

pytestmark = pytest.mark.browser

WAY_OF_CHUNK_0 = [
    "g0 sends chunk 0 of g0 to g1 at 0 µs, there at 20 µs: at once.",
    "g1 sends chunk 0 of g0 to g2 at 20 µs, there at 40 µs: ",
    "g2 sends chunk 0 of g0 to g3 at 40 µs, there at 60 µs: ",
]
NOTHING = {"chunk": None, "link": None, "rank": None, "host": None, "transfer": None}
VIEW = "[c.cy.zoom(), c.cy.pan().x, c.cy.pan().y, c.clock.time]"

WHITE = """(send) => {
    const { inspector } = document.querySelector('.tl').__canvas.canvas;
    const at = inspector.chart.placeOf(inspector.plan.sends[send]);
    const box = inspector.chart.canvas.getBoundingClientRect();
    const k = inspector.chart.canvas.width / box.width;
    const { data } = inspector.chart.canvas.getContext('2d').getImageData(
        (at.x - at.width / 2 + 6 - box.left) * k, (at.y - 12 - box.top) * k, 12 * k, 24 * k);
    let white = 0;
    for (let i = 0; i < data.length; i += 4) white += Math.min(...data.slice(i, i + 3)) > 170;
    return white;
}"""
"""White pixels above and below the beginning of a send's bar, on the dark ground."""


@pytest.fixture
def inspector(show: Any, page: Any, ring: Any) -> Any:
    """The ring's film with the inspector open, opened by its key."""
    film = show(page, *ring, theme="dark")
    film.keys("i")
    expect(drawer(film)).to_be_visible()
    return film


def drawer(film: Any) -> Locator:
    found: Locator = film.page.get_by_role("region", name="Inspector")
    return found


def items(film: Any) -> Locator:
    found: Locator = film.page.get_by_role("region", name="Sends in order").get_by_role("listitem")
    return found


def focus(film: Any) -> Any:
    return film.ask("c.canvas.model.get('focus')")


def press_bar(film: Any, send: int) -> None:
    at = film.ask("c.canvas.inspector.chart.placeOf(c.canvas.inspector.plan.sends[x])", send)
    film.page.mouse.click(at["x"], at["y"])
    film.settle()


def test_a_chunk_is_followed_from_its_bar_its_token_and_its_cell(inspector: Any) -> None:
    """Of the ring's four lines its way takes three; the fourth one fades."""
    film = inspector
    foot = drawer(film).get_by_role("status")
    film.do("seek", time=10)
    before = film.ask(VIEW)
    first = film.ask("c.canvas.inspector.plan.pathOf(0)[0].i")
    critical = film.ask("[...c.canvas.inspector.plan.critical.keys()]")
    assert len(critical) == 3
    assert min(film.page.evaluate(WHITE, send) for send in critical) > 10
    drawer(film).get_by_role("button", name="Critical path").click()
    film.settle()
    assert max(film.page.evaluate(WHITE, send) for send in critical) == 0

    press_bar(film, first)
    expect(foot).to_have_text(WAY_OF_CHUNK_0[0])
    for item, sentence in zip(items(film).all(), WAY_OF_CHUNK_0, strict=True):
        expect(item).to_contain_text(sentence)
    assert focus(film) == {**NOTHING, "chunk": 0, "transfer": first}
    assert film.ask("c.cy.edges('.faded').map((e) => e.id()).length") == 1
    assert film.ask(VIEW) == before

    film.keys("Escape")
    assert focus(film) is None
    assert film.ask("c.cy.edges('.faded').length") == 0

    # Half of the way from g0 to g1, on the right-hand side of the line.
    lane = film.ask("c.canvas.stage.curve(c.canvas.shown.lanes.get('g0\\u0001g1').line).lane", None)
    (x, y), (far, _) = film.at("g0"), film.at("g1")
    film.page.mouse.click((x + far) / 2, y + lane * film.ask("c.cy.zoom()"))
    film.settle()
    assert focus(film) == {**NOTHING, "chunk": 0, "transfer": first}

    # The first cell in the buffer of g3; g3 is selected, as ever.
    left, top = film.at("g3")
    zoom = film.ask("c.cy.zoom()")
    corner = film.ask(
        "(({ x1, x2, y1, y2 }) => [(x2 - x1) / 2, (y2 - y1) / 2])(c.canvas.stage.rect('g3'))"
    )
    film.page.mouse.click(left - corner[0] * zoom, top)  # a port of it
    film.settle()
    assert focus(film) == {**NOTHING, "rank": 3}
    film.page.mouse.click(left - (corner[0] - 14) * zoom, top + (corner[1] - 27) * zoom)
    film.settle()
    assert focus(film) == {**NOTHING, "chunk": 0}
    assert film.ask("c.canvas.model.get('selection').devices") == ["g3"]


def test_filters_rows_and_keys_lead_to_the_same_sends(inspector: Any) -> None:
    """Two of the four links touch g1; what arrives there are chunks 0, 3 and 2, in this order."""
    film = inspector
    field = drawer(film).get_by_label("Filter by chunk")
    row = drawer(film).get_by_role("button", name="g2 → g3", exact=True)
    expect(row).to_be_visible()
    field.fill("nobody")
    field.press("Enter")
    expect(drawer(film).get_by_role("status")).to_contain_text("is called “nobody”")
    field.fill("g1")
    field.press("Enter")
    expect(row).to_be_hidden()
    press_bar(film, film.ask("c.canvas.inspector.chart.rows[0].sends[1].i"))
    assert [focus(film)[part] for part in ("chunk", "rank")] == [3, 1]
    expect(row).to_be_hidden()
    drawer(film).get_by_role("button", name="Drop chunk 3 of g3").click()
    expect(drawer(film).get_by_role("button", name="g0 → g1", exact=True)).to_be_visible()
    for item, chunk in zip(items(film).all(), (0, 3, 2), strict=True):
        expect(item).to_contain_text(f"g0 sends chunk {chunk} of g{chunk} to g1")
    drawer(film).get_by_role("button", name="Drop g1").click()
    expect(row).to_be_visible()

    # Above the bars there is nothing but time: its middle, then that of the last epoch's column.
    at = film.ask("c.canvas.inspector.chart.view.getBoundingClientRect().toJSON()")
    gantt, grid = film.ask("[c.canvas.inspector.chart.frame.gantt, c.canvas.inspector.chart.page]")
    film.page.mouse.click(at["x"] + gantt["x"] + gantt["width"] / 2, at["y"] + 30)
    assert film.ask("c.clock.time") == pytest.approx(30, abs=0.3)
    film.page.mouse.click(at["x"] + grid["x"] + 2.5 * grid["each"], at["y"] + 30)
    assert film.ask("c.clock.time") == 40

    row.click()
    assert focus(film) == {**NOTHING, "link": ["g2", "g3"]}
    expect(drawer(film)).to_contain_text("3 sends, busy 100 % of the time")

    film.page.get_by_role("group", name="Sends over time").focus()
    for key in ("Escape", "ArrowRight", "ArrowRight", "Enter"):
        film.page.keyboard.press(key)
    assert focus(film)["chunk"] == 3  # the second on the first row, from g0 to g1
    before = film.ask(VIEW)
    film.ask("void c.canvas.model.receive('focus', { rank: 2 })")
    expect(drawer(film)).to_contain_text("Arrivals at g2")
    film.ask("void c.canvas.model.receive('focus', { chunk: 9 })")
    expect(film.page.get_by_role("alert")).to_contain_text("there is no chunk 9")
    assert focus(film) is None
    assert film.ask(VIEW) == before


COUNT = """async () => {
    const { canvas, cmd } = document.querySelector('.tl').__canvas;
    const save = canvas.model.save_changes;
    const begin = performance.now();
    const painted = canvas.inspector.chart.painted;
    let [messages, tokens] = [0, 0];
    canvas.model.save_changes = function () { messages += 1; return save.call(this); };
    cmd('speed', { value: 0.25 });
    cmd('play');
    while (performance.now() - begin < 1500) {
        await new Promise((done) => requestAnimationFrame(done));
        tokens = Math.max(tokens, canvas.overlay.tokens);
    }
    cmd('pause');
    const seconds = (performance.now() - begin) / 1000;
    return { messages, tokens, seconds, painted: canvas.inspector.chart.painted - painted };
}"""


def test_frames_ask_the_host_for_nothing(show: Any, page: Any) -> None:
    """With 4,000 chunks in flight: the time five times a second, and that it plays and pauses.

    The charts are painted once; while the film plays, only their cursors move.
    """
    film = show(page, *busy_film(epochs=3))
    film.keys("i")
    film.do("seek", time=12)
    found = page.evaluate(COUNT)

    assert found["tokens"] >= 3900
    assert 3 <= found["messages"] <= 5 * found["seconds"] + 2
    assert found["painted"] == 0
