"""Chromium for all browser tests, and pages that fail a test on an error or a request abroad."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from ccl.bound import Bound, Cut
from ccl.collective import all_gather
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.topology import Topology, device, duplex
from widgets.pages.writers import standalone_html
from widgets.view_model.scene import cuts, drawing, scene

SYSTEM_CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",  # CI runs as root in a container
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SERVE = """
import sys
from designer.app import serve
serve(None, host="127.0.0.1", port=int(sys.argv[1]), open_browser=False)
"""
DESIGN = """
import sys
from designer.cli import main
port, *more = sys.argv[1:]
main(["design", "--no-browser", "--port", port, *more])
"""
START = 120.0
"""Seconds that a server may take to load what it needs, on a machine that does other things."""

LOCAL = ("http://127.0.0.1", "ws://127.0.0.1", "file:", "data:", "blob:", "about:")

RANKS = 4
Ring = tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]
"""Drawing, scene and cuts."""

HANDLE = "document.querySelector('.tl').__canvas"

# What is expected is what comes, not when, on a machine that runs two files at a time; a test of
# how long something takes says its seconds.
expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser per file: $CHROMIUM, else the system's, else Playwright's own.

    Not one for the whole session: while Playwright runs, no test elsewhere could start a loop.
    """
    found = os.environ.get("CHROMIUM") or (
        str(SYSTEM_CHROMIUM) if SYSTEM_CHROMIUM.exists() else None
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def new_page(chromium: Browser, serve_with: Callable[..., str]) -> Iterator[Callable[..., Page]]:
    """Make pages that are watched: the test fails on a console error or a request to elsewhere."""
    del serve_with  # its servers outlive the pages, which ask them to the end
    wrong: list[str] = []
    contexts = []

    def make(**options: Any) -> Page:
        options = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"} | options
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(f"page error: {error}"))
        page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
        page.on(
            "request",
            lambda asked: (
                None if asked.url.startswith(LOCAL) else wrong.append(f"asked {asked.url}")
            ),
        )
        return page

    yield make
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture
def page(new_page: Callable[..., Page]) -> Page:
    """One watched page, with motion reduced so that films start paused."""
    return new_page()


@contextmanager
def served(code: str, *arguments: str) -> Iterator[tuple[str, int]]:
    """Run a server that is given a port and more; yield its address and process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(port), *arguments],
        cwd=Path(__file__).resolve().parents[2],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}/"
    until = time.monotonic() + START
    try:
        while process.poll() is None and time.monotonic() < until:
            try:
                urllib.request.urlopen(address, timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield address, process.pid
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture(scope="session")
def served_to_all() -> Iterator[tuple[str, int]]:
    """One Designer for all files: a page has a session of its own, and beginning one takes long."""
    with served(SERVE) as found:
        yield found


@pytest.fixture(scope="module")
def server(served_to_all: tuple[str, int]) -> Iterator[tuple[str, int]]:
    """A Designer in a process of its own: (address, process id).

    What still computes for a page of a file is ended with the file, as the server would wait for
    the page to come back.
    """
    yield served_to_all
    for each in psutil.Process(served_to_all[1]).children(recursive=True):
        with suppress(psutil.Error):
            if any(
                word.startswith("formulations") or word.endswith(".worker")
                for word in each.cmdline()
            ):
                each.kill()


@pytest.fixture
def serve_with() -> Iterator[Callable[..., str]]:
    """Serve the Designer as ``topoloom design`` does with more arguments; return its address."""
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(served(DESIGN, *arguments))[0]


class CanvasDriver:
    """Mouse and keyboard on a canvas that is on a page, and a look at its drawing."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.locator(".tl[role='application']").first

    def ask(self, expression: str, argument: Any = None) -> Any:
        """Evaluate an expression of ``c``, the canvas' test handle, and ``x``, the argument."""
        return self.page.evaluate(
            f"(x) => {{ const c = {HANDLE}; return {expression}; }}", argument
        )

    def do(self, command: str, **arguments: Any) -> None:
        """Run a command of the canvas."""
        self.ask("void c.cmd(x[0], x[1])", [command, arguments])
        self.settle()

    def settle(self) -> None:
        """Wait until what was changed is drawn."""
        self.page.evaluate(
            "() => new Promise((done) => setTimeout(() => requestAnimationFrame(done), 40))"
        )

    @property
    def topology(self) -> dict[str, Any]:
        """What is drawn."""
        found: dict[str, Any] = self.ask("c.drawing.topology")
        return found

    @property
    def names(self) -> list[str]:
        """Names of the devices, in order."""
        return [device["name"] for device in self.topology["devices"]]

    @property
    def pairs(self) -> set[tuple[str, str]]:
        """Ends of the links."""
        return {(link["src"], link["dst"]) for link in self.topology["links"]}

    def at(self, name: str) -> tuple[float, float]:
        """Middle of a device on the page."""
        return self._screen(
            "const r = c.canvas.stage.rect(x); return [(r.x1 + r.x2) / 2, (r.y1 + r.y2) / 2];", name
        )

    def port(self, name: str, side: int = 0) -> tuple[float, float]:
        """Port of a device on the page: right, bottom, left, top."""
        return self._screen(
            "const p = c.canvas.stage.ports(x[0])[x[1]]; return [p.x, p.y];", [name, side]
        )

    def _screen(self, body: str, argument: Any) -> tuple[float, float]:
        x, y = self.page.evaluate(
            f"""(x) => {{
                const c = {HANDLE};
                const [mx, my] = ((x) => {{ {body} }})(x);
                const p = c.canvas.stage.toScreen({{ x: mx, y: my }});
                const box = c.cy.container().getBoundingClientRect();
                return [p.x + box.x, p.y + box.y];
            }}""",
            argument,
        )
        return x, y

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press at a place of the page, move to another, let go."""
        mouse = self.page.mouse
        mouse.move(*start)
        mouse.move(start[0] + 1, start[1])
        self.settle()  # a port shows in the frame after the pointer has come
        mouse.down()
        mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, steps=4)
        mouse.move(*end, steps=4)
        mouse.up()
        self.settle()

    def click(self, name: str) -> None:
        """Click a device."""
        self.page.mouse.click(*self.at(name))
        self.settle()

    def keys(self, *keys: str) -> None:
        """Press keys while the canvas has the focus."""
        self.root.focus()
        for key in keys:
            self.page.keyboard.press(key)
        self.settle()

    def tool(self, name: str) -> None:
        """Press a floating tool."""
        self.root.get_by_role("toolbar").get_by_role("button", name=name, exact=False).first.click()
        self.settle()


@pytest.fixture
def drive() -> Callable[[Page], CanvasDriver]:
    """Take the wheel of the canvas on a page, once it is there."""

    def wait_and_drive(page: Page) -> CanvasDriver:
        page.wait_for_selector(".tl-graph canvas")
        driver = CanvasDriver(page)
        driver.settle()
        return driver

    return wait_and_drive


@pytest.fixture
def designer(page: Page, server: Any, drive: Callable[[Page], CanvasDriver]) -> CanvasDriver:
    """The designer with nothing kept from before and its bounds there, to be driven."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(server[0])
    driver = drive(page)
    expect(page.locator("#counts")).to_contain_text("16 GPUs")
    expect(page.locator("#bounds")).to_contain_text("Bottleneck cut", timeout=90_000)
    return driver


@pytest.fixture
def ring() -> Ring:
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
def show(drive: Callable[[Page], CanvasDriver], tmp_path: Path) -> Callable[..., CanvasDriver]:
    """Open a page with a canvas alone on it and take its wheel."""

    def open_page(page: Page, *what: Any, **options: Any) -> CanvasDriver:
        file = tmp_path / "canvas.html"
        given = what or (drawing(Topology("untitled", (), ())),)
        file.write_text(standalone_html(*given, **options), encoding="utf-8")
        page.goto(file.as_uri())
        return drive(page)

    return open_page


@pytest.fixture
def drawn(show: Callable[..., CanvasDriver], page: Page, ring: Ring) -> CanvasDriver:
    """The ring without a schedule."""
    return show(page, ring[0])


@pytest.fixture
def film(show: Callable[..., CanvasDriver], page: Page, ring: Ring) -> CanvasDriver:
    """The ring with its schedule and cut."""
    return show(page, *ring)


def settle(page: Page, quiet_s: float = 1.0) -> None:
    """Wait until the page has asked nothing for a while, and all that it asked is answered.

    The load state of Playwright is reached once, after the page has come, and never lost again.
    """
    last, running = [time.monotonic()], list[Any]()

    def asked(request: Any) -> None:
        last[0] = time.monotonic()
        running.append(request)

    def ended(request: Any) -> None:
        last[0] = time.monotonic()
        if request in running:
            running.remove(request)

    page.on("request", asked)
    page.on("requestfinished", ended)
    page.on("requestfailed", ended)
    while running or time.monotonic() - last[0] < quiet_s:
        page.wait_for_timeout(50)
    page.remove_listener("request", asked)
    page.remove_listener("requestfinished", ended)
    page.remove_listener("requestfailed", ended)
