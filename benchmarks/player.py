"""What the player costs a page: JavaScript of ours in each frame, and messages to the host.

A film made for it, of GPUs in a torus whose links carry thousands of chunks at any moment, is
played in a headless Chromium: with the inspector closed, open, and open on a chunk's way. The time
of a frame is that of our own code, from the clock to the last shape that is drawn; what the browser
then makes of the shapes is not in it. Times on the clock are stretched by whatever else the machine
does; the processor's, of all scripts of the page by frames, are not. A message is a `save_changes`
of the model that the host gave.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from playwright.sync_api import CDPSession, Page, sync_playwright
from rich.console import Console
from rich.table import Table

from ccl.explain.narration import templates
from ccl.layout import layout
from gallery import open_cluster
from widgets.pages.writers import standalone_html
from widgets.view_model.scene import drawing

SIZE = 1e6
"""Bytes of a chunk."""

ORIGINS = 4
"""Chunks that come from each GPU."""

SETTINGS = {
    "inspector closed": "",
    "inspector open": "cmd('inspect', { on: true });",
    "open, on a chunk's way": "cmd('focus', { chunk: 5 });",
}
"""What is done before each measurement, in JavaScript."""

PREPARE = "() => {{ const {{ cmd }} = document.querySelector('.tl').__canvas; {} }}"

MEASURE = """async (seconds) => {
    const { canvas, cmd } = document.querySelector('.tl').__canvas;
    const times = [];
    let [messages, tokens] = [0, 0];
    const [tick, save] = [canvas.frames.tick, canvas.model.save_changes];
    cmd('speed', { value: 0.25 });
    cmd('play');
    canvas.frames.tick = function (now) {
        const begin = performance.now();
        tick.call(this, now);
        times.push(performance.now() - begin);
        tokens = Math.max(tokens, canvas.overlay.tokens);
    };
    canvas.model.save_changes = function () {
        messages += 1;
        return save.call(this);
    };
    await new Promise((done) => setTimeout(done, seconds * 1000));
    canvas.frames.tick = tick;
    canvas.model.save_changes = save;
    cmd('pause');
    return { times, messages, tokens };
}"""
"""Play for some seconds: milliseconds of each frame, messages, the most chunks in flight."""


def film(
    cluster: str = "torus:shape=8x8", *, tokens: int = 4000, epochs: int = 7
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a drawing and a scene in which about so many chunks are on their way at any moment.

    Each link starts its share of them one after the other within an epoch, and each takes one, so
    that chunks arrive all the time. They are no answer to any problem.
    """
    topology = open_cluster(cluster)
    links, gpus = topology.links, topology.ranks
    chunks = ORIGINS * len(gpus)
    each = tokens / len(links)
    step = 10.0
    moves: list[list[Any]] = sorted(
        (
            [(7 * link + 3 * k) % chunks, links[link].src, links[link].dst, start, start + step, 1]
            for link in range(len(links))
            for k in range(round(each * (epochs - 1)))
            for start in [(k / each + (link % 16) / 16 / each) * step]
        ),
        key=lambda move: move[3],
    )
    scene = {
        "topology": drawing(topology)["topology"],
        "title": f"a busy {topology.name}",
        "chunks": [
            {"origin": i % len(gpus), "label": f"chunk {i}", "size": SIZE, "reduced": False}
            for i in range(chunks)
        ],
        "holds": {name: list(range(i, chunks, len(gpus))) for i, name in enumerate(gpus)},
        "transfers": moves,
        "makespan": step * epochs,
        "epoch_duration": step,
        "epochs": epochs,
        "sentences": [""] * epochs,
        "details": {
            "rows": [[0, -1, move[3], int(move[3] // step), move[4]] for move in moves],
            "reasons": ["at once"],
            "phrases": templates(),
            "critical": list(range(0, len(moves), len(moves) // 10)),
        },
    }
    return drawing(topology, layout(topology)), scene


def main(
    cluster: Annotated[str, typer.Option(help="What is drawn")] = "torus:shape=8x8",
    tokens: Annotated[int, typer.Option(help="Chunks on their way at any moment")] = 4000,
    seconds: Annotated[float, typer.Option(help="How long each is measured")] = 8.0,
) -> None:
    """Print milliseconds a frame and messages a second, of a film in a headless browser."""
    found = _measured(standalone_html(*film(cluster, tokens=tokens)), seconds)
    most = max(each["tokens"] for each in found.values())
    table = Table(title=f"{cluster}, {most:,} chunks in flight, {seconds:g} s each")
    table.add_column("ms a frame")
    for name in ("median", "p95", "processor", "frames/s", "messages/s"):
        table.add_column(name, justify="right")
    for name, each in found.items():
        times = sorted(each["times"])
        figures = (
            statistics.median(times),
            times[int(0.95 * (len(times) - 1))],
            each["processor"] * 1e3 / len(times),
        )
        table.add_row(
            name,
            *(f"{figure:.2f}" for figure in figures),
            f"{len(times) / seconds:.0f}",
            f"{each['messages'] / seconds:.1f}",
        )
    Console().print(table)


def _measured(page_text: str, seconds: float) -> dict[str, dict[str, Any]]:
    """Play a page with each of the settings, one after the other."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "film.html"
        file.write_text(page_text, encoding="utf-8")
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        page.goto(file.as_uri())
        page.wait_for_selector(".tl-graph canvas")
        found = {name: _one(page, script, seconds) for name, script in SETTINGS.items()}
        browser.close()
    return found


def _one(page: Page, script: str, seconds: float) -> dict[str, Any]:
    """Measure after a script has run; `processor` is seconds of all scripts meanwhile."""
    page.evaluate(PREPARE.format(script + " cmd('seek', { time: 12 });"))
    page.wait_for_timeout(1000)  # the first pictures of a new view are not measured
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = _script_seconds(tools)
    found: dict[str, Any] = page.evaluate(MEASURE, seconds)
    return {**found, "processor": _script_seconds(tools) - before}


def _script_seconds(tools: CDPSession) -> float:
    metrics = tools.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "ScriptDuration"))
