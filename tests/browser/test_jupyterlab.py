"""Views in a real JupyterLab: kernel, canvas, keyboard, edits that arrive in Python, pictures."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Page, WebSocket, expect

from tools.lessons import lab as quiet_lab

ROOT = Path(__file__).parents[2]
FIRST = ROOT / "gallery" / "notebooks" / "first_light.ipynb"
LESSON = ROOT / "gallery" / "notebooks" / "02-ring-tree-halving.ipynb"
BIG_PLAYER = """
from ccl.collective import all_gather
from ccl.problem import Problem
from formulations import solve
from gallery import open_cluster
from widgets import SchedulePlayer

SchedulePlayer(solve(Problem(open_cluster("dgx-a100:hosts=8"), all_gather(64, 64e6)), "ring"))
"""
PLAY = """(root) => new Promise((done) => {
    const canvas = root.__canvas;
    const [start, from] = [performance.now(), canvas.clock.time];
    let frames = 0;
    canvas.cmd("play");
    const each = (now) => {
        frames += 1;
        if (now - start < 2000) return requestAnimationFrame(each);
        canvas.cmd("pause");
        return done([frames, canvas.clock.time - from, (now - start) / 1000]);
    };
    requestAnimationFrame(each);
})"""
"""Play for two seconds; say how many frames, how many µs of the plan and how many seconds."""
MINUTE = 60_000

pytestmark = [pytest.mark.browser, pytest.mark.notebook]


@pytest.fixture(scope="module")
def lab() -> Iterator[str]:
    """Start a JupyterLab in a folder with copies of the notebooks; return its address."""
    with quiet_lab() as (url, work):
        shutil.copy(FIRST, work)
        lesson = nbformat.read(LESSON, as_version=4)
        lesson.cells.append(nbformat.v4.new_code_cell(BIG_PLAYER))
        nbformat.write(lesson, work / LESSON.name)
        yield url


def _open(page: Page, address: str, notebook: Path) -> None:
    """Open a notebook and wait for its kernel: cells that are run before stay as they are."""
    page.goto(f"{address}/lab/tree/{notebook.name}?reset")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=MINUTE)
    expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible(timeout=MINUTE)


def test_the_notebook_draws_solves_and_hears_of_edits(
    lab: str, page: Page, drive: Callable[[Page], Any]
) -> None:
    _open(page, lab, FIRST)
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }")
    outputs = page.locator(".jp-OutputArea-output")
    expect(outputs.filter(has_text="8 devices")).to_be_visible(timeout=MINUTE)
    expect(outputs.filter(has_text="no plan takes less than")).to_be_visible()
    assert page.locator(".jp-Dialog").count() == 0

    canvas = drive(page)
    cells = page.locator(".jp-Notebook .jp-Cell")
    count = cells.count()
    canvas.keys("b", "a", "d", "d", "ArrowRight")
    assert cells.count() == count, "letters for the canvas reached the notebook"
    assert canvas.ask("c.clock.time") > 0
    assert canvas.ask("c.canvas.theme") == "light"

    canvas.keys("g")
    cells.last.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(outputs.filter(has_text="9 devices")).to_be_visible(timeout=MINUTE)
    assert canvas.ask("c.stale") is True

    # Saved, its kernel ended, opened again: the picture that was made when the cell was run.
    page.evaluate(
        """async (path) => {
            const { commands, serviceManager } = window.jupyterapp;
            await commands.execute("docmanager:save");
            await commands.execute("application:close");
            await serviceManager.sessions.shutdownAll();
            await commands.execute("docmanager:open", { path });
        }""",
        FIRST.name,
    )
    picture = outputs.first.locator("img")
    expect(picture).to_be_visible()
    assert picture.get_attribute("alt") == "DGX-1V: 8 GPUs, 32 links, one way each"
    expect(page.get_by_text("Error displaying widget")).to_have_count(0)


def test_a_lesson_plays_without_asking_the_kernel_for_frames(lab: str, page: Page) -> None:
    """The time is reported five times a second at most, whatever is drawn: nothing else is sent.

    64 GPUs send 8,064 times, and the page draws as many frames as it can.
    """
    sent, heard = _watched(page)
    _open(page, lab, LESSON)
    kinds = page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.widgets.map((c) => c.model.type)"
    )
    cells = page.locator(".jp-Notebook .jp-Cell")
    for place in [*[i for i, kind in enumerate(kinds) if kind == "code"][:2], len(kinds) - 1]:
        page.evaluate(
            """(place) => {
                const { shell, commands } = window.jupyterapp;
                shell.currentWidget.content.activeCellIndex = place;
                return commands.execute("notebook:run-cell");
            }""",
            place,
        )
        expect(cells.nth(place).locator(".jp-OutputArea-output").first).to_be_visible(
            timeout=MINUTE
        )
    player = cells.last.locator(".tl")
    expect(player).to_be_visible()
    player.scroll_into_view_if_needed()
    expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()
    page.wait_for_timeout(300)
    sent.clear()
    heard.clear()
    frames, moved, seconds = player.evaluate(PLAY)

    assert moved > 0
    assert len(sent) <= 5 * seconds + 2
    assert frames > len(sent)
    assert sum(heard) < 10_000 * (len(sent) + 1), "a scene came with the time"


def _watched(page: Page) -> tuple[list[bytes | str], list[int]]:
    """Return what the page sends to its views in the kernel, and how many bytes it is sent."""
    sent: list[bytes | str] = []
    heard: list[int] = []

    def on_sent(frame: bytes | str) -> None:
        if "comm_msg" in str(frame):
            sent.append(frame)

    def watch(opened: WebSocket) -> None:
        opened.on("framesent", on_sent)
        opened.on("framereceived", lambda frame: heard.append(len(frame)))

    page.on("websocket", watch)
    return sent, heard
