"""Frames of the player and of panning: what a film costs a page in a headless Chromium.

``player`` plays a film made for it, whose links carry many chunks at any moment, on 8, 64 and 128
GPUs, with hosts folded and open, and pans each drawing. Frames a second on the wall's clock are
stretched by whatever else the machine does; milliseconds of script a frame, of all scripts of the
page in processor's time, are not. With ``--cluster`` it is one cluster with the inspector closed,
open, and open on a chunk's way, and the messages to the host are counted: a message is a
`save_changes` of the model that the host gave. There the time of a frame is that of our own code,
from the clock to the last shape that is drawn; what the browser then makes of it is not in it.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from playwright.sync_api import CDPSession, Page, sync_playwright

from benchmarks.measuring import output, show, table
from ccl.explain.narration import templates
from ccl.layout import layout
from gallery import open_cluster
from widgets.pages.writers import standalone_html
from widgets.view_model.scene import drawing

CLUSTERS = {"dgx-a100": 400, "dgx-a100:hosts=8": 1600, "dgx-a100:hosts=16": 3200}
"""8, 64 and 128 GPUs, and the chunks that are on their way at any moment."""

CHUNK = 1e6
"""Bytes of a chunk."""

ORIGINS = 4
"""Chunks that come from each GPU."""

SETTINGS = {
    "inspector closed": "",
    "inspector open": "cmd('inspect', { on: true });",
    "open, on a chunk's way": "cmd('focus', { chunk: 5 });",
}
"""What is done before each measurement, in JavaScript."""

FOLDED = {"open": "cmd('fold', { on: false });", "folded": "cmd('fold', { on: true });"}

PAN = """async (seconds) => {
    const graph = document.querySelector('.tl-graph');
    const ground = graph.querySelector('canvas');
    const { left, top, height } = graph.getBoundingClientRect();
    const at = (i) => ({ clientX: left + 6 + 4 * (i % 40), clientY: top + height / 2 + (i % 40) });
    const tell = (type, i) => (type === 'mousedown' ? ground : window).dispatchEvent(
        new MouseEvent(type, { ...at(i), button: 0, buttons: 1, bubbles: true, view: window }));
    const times = [];
    const end = performance.now() + seconds * 1000;
    tell('mousedown', 0);
    for (let last = performance.now(); last < end || times.length < 30;) {
        const now = await new Promise(requestAnimationFrame);
        times.push(now - last);
        last = now;
        tell('mousemove', times.length);
    }
    tell('mouseup', times.length);
    const taken = times.reduce((sum, each) => sum + each, 0) / 1000;
    return { times, taken, messages: 0, tokens: 0 };
}"""
"""Drag the ground for some seconds: milliseconds from each frame to the next."""

FEW_FRAMES = """async () => {
    for (let i = 0; i < 6; i++) await new Promise(requestAnimationFrame);
}"""

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
            {"origin": i % len(gpus), "label": f"chunk {i}", "size": CHUNK, "reduced": False}
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


def player(
    cluster: Annotated[str, typer.Option(help="One cluster, with the inspector")] = "",
    tokens: Annotated[int, typer.Option(help="Chunks on their way at any moment there")] = 4000,
    seconds: Annotated[float, typer.Option(help="How long each is measured")] = 8.0,
) -> None:
    """Print frames a second and milliseconds of script of playing and panning, in a browser."""
    if cluster:
        show([_inspected(cluster, tokens=tokens, seconds=seconds)])
        return
    headings = ("GPUs", "hosts", "", "frames/s", "script ms a frame")
    made = table(f"playing and panning, {seconds:g} s each", headings)
    console = output()
    for name, many in CLUSTERS.items():
        drawn = film(name, tokens=many)
        gpus = str(sum(each["kind"] == "gpu" for each in drawn[0]["topology"]["devices"]))
        with _opened(standalone_html(*drawn)) as page:
            for folded, script in FOLDED.items():
                for what, measure in (("play", MEASURE), ("pan", PAN)):
                    found = _one(page, script, seconds, measure=measure)
                    frames = len(found["times"])
                    script_ms = f"{found['processor'] * 1e3 / frames:.1f}"
                    rate = f"{frames / found.get('taken', seconds):.0f}"
                    row = (gpus, folded, what, rate, script_ms)
                    console.print(*row, sep="  ")
                    made.add_row(*row)
    show([made])


def _inspected(cluster: str, *, tokens: int, seconds: float) -> Any:
    """Return a table of one film with each of the settings, one after the other."""
    with _opened(standalone_html(*film(cluster, tokens=tokens))) as page:
        found = {
            name: _one(page, script, seconds, measure=MEASURE) for name, script in SETTINGS.items()
        }
    most = max(each["tokens"] for each in found.values())
    headings = ("ms a frame", "median", "p95", "processor", "frames/s", "messages/s")
    made = table(f"{cluster}, {most:,} chunks in flight, {seconds:g} s each", headings)
    for name, each in found.items():
        times = sorted(each["times"])
        figures = (
            statistics.median(times),
            times[int(0.95 * (len(times) - 1))],
            each["processor"] * 1e3 / len(times),
        )
        made.add_row(
            name,
            *(f"{figure:.2f}" for figure in figures),
            f"{len(times) / seconds:.0f}",
            f"{each['messages'] / seconds:.1f}",
        )
    return made


@contextmanager
def _opened(page_text: str) -> Iterator[Page]:
    """Open a page in a browser."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "film.html"
        file.write_text(page_text, encoding="utf-8")
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        page = browser.new_page(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
        page.goto(file.as_uri())
        page.wait_for_selector(".tl-graph canvas")
        yield page
        browser.close()


def _one(page: Page, script: str, seconds: float, *, measure: str) -> dict[str, Any]:
    """Measure after a script has run; `processor` is seconds of all scripts meanwhile."""
    page.evaluate(PREPARE.format(script + " cmd('seek', { time: 12 });"))
    page.wait_for_timeout(1000)  # the first pictures of a new view are not measured
    page.evaluate(FEW_FRAMES)
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = _script_seconds(tools)
    found: dict[str, Any] = page.evaluate(measure, seconds)
    return {**found, "processor": _script_seconds(tools) - before}


def _script_seconds(tools: CDPSession) -> float:
    metrics = tools.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "ScriptDuration"))
