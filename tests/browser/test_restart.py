"""The server is killed while it solves and begins anew: the page says so and goes on."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import CanvasDriver

pytestmark = pytest.mark.browser

SLOW = 40_000
ROOT = Path(__file__).resolve().parents[2]
LOADED = """
import sys
from designer.app import serve
sys.stdin.readline() or sys.exit()
serve(None, host="127.0.0.1", port=int(sys.argv[1]), open_browser=False)
"""
Start = Callable[[], "subprocess.Popen[bytes]"]


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
        return found


@pytest.fixture
def start(port: int) -> Iterator[Start]:
    """Start a server on the port and wait for it, twice at most; both are ended with the test.

    Both have loaded what they need before, so that the page waits for the second one alone.
    """
    loaded = [
        subprocess.Popen([sys.executable, "-c", LOADED, str(port)], cwd=ROOT, stdin=subprocess.PIPE)
        for _ in range(2)
    ]
    left = iter(loaded)

    def begin() -> subprocess.Popen[bytes]:
        process = next(left)
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        for _ in range(400):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/alive", timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        return process

    yield begin
    for each in loaded:
        each.kill()
        each.communicate(timeout=10)


def choose(page: Page, title: str) -> None:
    """Choose a formulation by its title."""
    page.locator("#formulation").click()
    page.get_by_role("option").filter(has_text=title).first.click()


def test_a_page_goes_on_after_its_server_was_killed_in_a_solve_and_came_back(
    chromium: Browser, start: Start, port: int, drive: Callable[[Page], CanvasDriver]
) -> None:
    """Only that the server was away is on the console, which the browser itself writes there.

    What was drawn and kept while it was away is there afterwards, beside the plan of before.
    """
    wrong: list[str] = []
    page = chromium.new_page(reduced_motion="reduce")
    page.on(
        "pageerror",
        lambda error: (
            wrong.append(f"page error: {error}") if "Failed to fetch" not in str(error) else None
        ),
    )
    page.on(
        "console",
        lambda line: (
            wrong.append(line.text)
            if line.type == "error" and "net::ERR_" not in line.text
            else None
        ),
    )
    server = start()
    page.goto(f"http://127.0.0.1:{port}/")
    canvas = drive(page)
    solve = page.get_by_role("button", name="Solve", exact=True)
    choose(page, "List scheduling")
    solve.click()
    page.locator("#schedule .ds-stats").wait_for(timeout=SLOW)
    page.locator("#solve").wait_for(state="visible", timeout=SLOW)

    # A solve that goes on for long.
    choose(page, "TE-CCL: chunks in epochs (MILP)")
    solve.click()
    page.get_by_role("button", name="Cancel", exact=True).wait_for(timeout=SLOW)
    os.kill(server.pid, signal.SIGKILL)
    server.wait(10)
    expect(page.get_by_text("The server does not answer")).to_be_visible(timeout=SLOW)
    many = len(canvas.names)
    canvas.keys("g")
    assert len(canvas.names) == many + 1
    canvas.keys("Control+s")
    expect(page.get_by_text("A version is kept")).to_be_visible()

    start()
    expect(page.get_by_text("The solve is gone")).to_be_visible(timeout=SLOW)
    expect(page.get_by_text("the drawing and the last plan are kept")).to_be_visible()
    page.locator("#solve").wait_for(state="visible", timeout=SLOW)
    expect(page.locator("#schedule .ds-stats")).to_be_visible()
    expect(page.locator("#counts")).to_contain_text("17 GPUs")

    canvas.keys("Control+z")
    expect(page.locator("#counts")).to_contain_text("16 GPUs")
    choose(page, "List scheduling")
    solve.click()
    page.locator("#solve").wait_for(state="visible", timeout=SLOW)
    page.locator("#schedule .ds-stats").wait_for(timeout=SLOW)

    page.reload()
    expect(page.locator("#counts")).to_contain_text("16 GPUs", timeout=SLOW)
    page.keyboard.press("Control+o")
    drawings = page.get_by_role("dialog", name="Drawings")
    expect(drawings.get_by_role("button", name="Open 2 × NDv2, 16 GPUs")).to_be_visible()
    versions = drawings.locator(".ds-docs-version")
    expect(versions.filter(has_text="Kept by hand")).to_contain_text("17 GPUs")
    expect(versions.filter(has_text="All-gather 1MB").first).to_contain_text("16 GPUs")
    page.close()
    assert wrong == []
