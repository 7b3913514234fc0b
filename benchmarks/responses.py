"""What a person at the page waits for: live answers after a change, and the frames of the player.

``whatif`` has what a person waits for who moves a slider, on every cluster: the changed cluster and
its problem are made anew, then the bounds that need no solver, the best steady state with what
proves it, and its tied cuts. Each class of links gets a quarter more and a fifth less bandwidth,
and all latencies are doubled; every change is timed once, since nobody asks the same twice.
Clusters have their default size. Seconds on the wall's clock; loading CVXPY, once in a process, is
left out.

``player`` has what a film costs a page: JavaScript of ours in each frame, and messages to the host.
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
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from playwright.sync_api import CDPSession, Page, sync_playwright

from benchmarks.measuring import output, said, show, table
from ccl.collective import Collective, CollectiveKind, make_collective
from ccl.errors import ProblemError
from ccl.explain.narration import templates
from ccl.layout import layout
from ccl.problem import Problem
from ccl.topology import Topology
from formulations.analyses.best_rate import optimum
from formulations.analyses.sensitivity.cutting_planes import Classes, classes_of
from formulations.bounds import quick_bounds
from gallery import catalog, open_cluster
from widgets.pages.writers import standalone_html
from widgets.view_model.scene import drawing

KINDS = "all-gather,all-reduce,all-to-all"
TARGET = 0.3
"""Seconds that an answer may take, to be called live."""

FACTORS = (1.25, 0.8)
SIZE = 1e9
WARM_UP = "dgx-1v"

MOST_CLASSES = 6
"""Classes of links that are changed."""


@dataclass(frozen=True)
class Answer:
    """Processor seconds of the parts of one answer, and what proved the rate."""

    making: float
    bounding: float
    proving: float
    proved_by: str

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.making + self.bounding + self.proving

    @property
    def where(self) -> str:
        """The part that takes longest."""
        parts = {
            "making the cluster": self.making,
            "bounds": self.bounding,
            f"the optimum, proved by {self.proved_by}": self.proving,
        }
        return max(parts, key=lambda part: parts[part])


def whatif(
    clusters: Annotated[str, typer.Option(help="Names with arguments, ; between them.")] = "",
    collectives: Annotated[str, typer.Option(help="Kinds, with commas between them.")] = KINDS,
) -> None:
    """Print the median and the longest of the live answers of every cluster, in processor ms."""
    kinds = [cast(CollectiveKind, kind) for kind in collectives.split(",")]
    names = clusters.split(";") if clusters else [each.name for each in catalog()]
    console = output()
    for kind in kinds:
        list(_answers(open_cluster(WARM_UP), kind))
    made = table(
        "live answers after a change",
        ("cluster", "GPUs", "links", *(f"{kind} ms: median, max" for kind in kinds)),
    )
    above, every = [], []
    for name in names:
        topology = open_cluster(name)
        cells = []
        for kind in kinds:
            found = list(_answers(topology, kind))
            cells.append(_cell(found))
            every += found
            above += [(name, kind, each) for each in _slowest(found) if each.seconds > TARGET]
        made.add_row(name, str(len(topology.ranks)), str(len(topology.links)), *cells)
    console.print(made)
    seconds = [each.seconds for each in every]
    console.print(
        f"{len(every)} answers: median {statistics.median(seconds) * 1e3:.0f} ms, longest "
        f"{max(seconds) * 1e3:.0f} ms; all within {TARGET:g} s: {said(not above)}"
    )
    for name, kind, each in above:
        console.print(f"{name} {kind}: {each.seconds:.2f} s, most of it for {each.where}")


def _answers(topology: Topology, kind: CollectiveKind) -> Iterator[Answer]:
    """Yield the answers after each change; none where the collective cannot run."""
    collective = make_collective(kind, len(topology.ranks), SIZE)
    try:
        Problem(topology, collective)
    except ProblemError:
        return
    classes = classes_of(topology)
    for number in range(min(classes.many, MOST_CLASSES)):
        for factor in FACTORS:
            yield _answer(classes, collective, number=number, factor=factor)
    yield _answer(classes, collective, number=0, factor=1.0)


def _answer(classes: Classes, collective: Collective, *, number: int, factor: float) -> Answer:
    """Return the seconds after a class has `factor` times its bandwidth; 1.0: slower latencies."""
    begin = time.process_time()
    changed = classes.scaled([factor if k == number else 1.0 for k in range(classes.many)])
    if factor == 1.0:
        links = tuple(replace(each, alpha=2 * each.alpha) for each in changed.links)
        changed = replace(changed, links=links)
    problem = Problem(changed, collective)
    made = time.process_time()
    quick_bounds(problem)
    bounded = time.process_time()
    found = optimum(problem)
    proved = time.process_time()
    words = "cuts" if found.cuts else found.proved_by.split(" at ")[0].split(" (")[0]
    return Answer(made - begin, bounded - made, proved - bounded, words)


def _cell(found: list[Answer]) -> str:
    if not found:
        return "cannot run"
    seconds = [each.seconds * 1e3 for each in found]
    return f"{statistics.median(seconds):.0f}, {max(seconds):.0f}"


def _slowest(found: list[Answer]) -> list[Answer]:
    return sorted(found, key=lambda each: -each.seconds)[:1]


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
    cluster: Annotated[str, typer.Option(help="What is drawn")] = "torus:shape=8x8",
    tokens: Annotated[int, typer.Option(help="Chunks on their way at any moment")] = 4000,
    seconds: Annotated[float, typer.Option(help="How long each is measured")] = 8.0,
) -> None:
    """Print milliseconds a frame and messages a second, of a film in a headless browser."""
    found = _measured(standalone_html(*film(cluster, tokens=tokens)), seconds)
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
    show([made])


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
