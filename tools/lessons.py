"""Keep the index of the lessons, and take their pictures in a real JupyterLab.

    python tools/lessons.py index                    writes tables of gallery/notebooks/README.md
    python tools/lessons.py pictures [folder] [12]   writes docs/images/lessons, or some of it

A picture is the output of the cell with the tag ``thumbnail``.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "gallery" / "notebooks"
INDEX = NOTEBOOKS / "README.md"
PICTURES = ROOT / "docs" / "images" / "lessons"
TABLE = "<!-- {} -->\n", "\n<!-- end of {} -->"
"""What stands before and behind a table of the index."""

WIDTH = 480
"""Of a picture, in pixels."""

COLOURS = 256
"""Of a picture; drawings have few, and it stays below 60 kB."""

HIGHEST = 700
"""Of an output that is pictured whole, in pixels; of a higher one its plot is."""

PLAYING, MOMENT = 12_000, 0.45
"""ms after which a player has come to its end, and the share of its time that is pictured."""

PATIENCE = 240_000
"""ms for a lesson on a busy machine."""

NEEDS = {2: (1,), 3: (2,), 4: (3,), 5: (3,), 6: (2,), 7: (3,), 8: (3, 7), 9: (8,), 10: (1, 9),
         11: (8, 9, 10), 12: (2, 7, 9, 10), 13: (8,), 14: (1, 8), 15: (2, 8), 16: (2, 7),
         17: (3, 7, 9), 18: (8, 15)}  # fmt: skip
"""Lessons that each builds on."""

HARDWARE = ("dgx-1v", "dgx-a100:hosts=2", "dgx-h100:hosts=2", "gb200-nvl72", "mi250:hosts=2",
            "mi300x:hosts=2", "tpu-v4", "pcie-server")  # fmt: skip
"""Clusters whose links the index lists."""


@dataclass(frozen=True)
class Entry:
    """A lesson as its notebook describes it."""

    path: Path
    lesson: int
    title: str
    goals: tuple[str, ...]
    minutes: int


def entries() -> list[Entry]:
    """Return the lessons in order."""
    found = []
    for path in sorted(NOTEBOOKS.glob("[0-9][0-9]-*.ipynb")):
        told = json.loads(path.read_text("utf-8"))["metadata"]["topoloom"]
        found.append(
            Entry(path, told["lesson"], told["title"], tuple(told["goals"]), told["minutes"])
        )
    return found


def table() -> str:
    """Return the table of the lessons, each with its first goal."""
    rows = ["| | lesson | after it you can | minutes | needs |", "|---|---|---|---|---|"]
    for each in entries():
        needs = ", ".join(map(str, NEEDS.get(each.lesson, ())))
        link = f"[{each.title}]({each.path.name})"
        rows.append(f"| {each.lesson} | {link} | {each.goals[0]} | {each.minutes} | {needs} |")
    return "\n".join(rows)


def course_map() -> str:
    """Return a drawing, in Mermaid, of which lesson builds on which."""
    lines = [f'  {each.lesson}["{each.lesson} {each.title}"]' for each in entries()]
    lines += [f"  {need} --> {lesson}" for lesson, needs in NEEDS.items() for need in needs]
    return "\n".join(["```mermaid", "graph LR", *lines, "```"])


def hardware() -> str:
    """Return a table of what links of the gallery take."""
    from gallery import open_cluster  # noqa: PLC0415  pictures need no cluster

    found: dict[tuple[str, float, float], list[str]] = {}
    for name in HARDWARE:
        for link in open_cluster(name).links:
            where = found.setdefault((link.medium or "", link.bandwidth, link.alpha), [])
            if name not in where:
                where.append(name)
    rows = [
        "| link | α, µs | bandwidth, GB/s | β, µs per MB | α / β, KB | in the gallery |",
        "|---|---|---|---|---|---|",
    ]
    for (medium, bandwidth, alpha), where in found.items():
        names = ", ".join(f"`{name}`" for name in where)
        numbers = f"{alpha:g} | {bandwidth:g} | {1e3 / bandwidth:.3g} | {alpha * bandwidth:.3g}"
        rows.append(f"| {medium} | {numbers} | {names} |")
    return "\n".join(rows)


def written(text: str) -> str:
    """Return the index with its tables as they should be."""
    for name, content in (("lessons", table), ("map", course_map), ("hardware", hardware)):
        begin, end = (mark.format(name) for mark in TABLE)
        before, rest = text.split(begin)
        text = f"{before}{begin}{content()}{end}{rest.split(end)[1]}"
    return text


@contextmanager
def lab() -> Iterator[tuple[str, Path]]:
    """Serve a JupyterLab that asks nothing; yield its address and its folder."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        home = Path(folder)
        work = home / "work"
        work.mkdir()
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        command = [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
            *("--ip=127.0.0.1", f"--port={port}", f"--ServerApp.root_dir={work}"),
            *("--IdentityProvider.token=", "--ServerApp.password="),
            "--LabApp.expose_app_in_browser=True",
        ]
        with (home / "lab.log").open("wb") as log:
            server = subprocess.Popen(
                command, env=_quiet(home), stdout=log, stderr=log, start_new_session=True
            )
            try:
                url = f"http://127.0.0.1:{port}"
                _wait_for(f"{url}/api")
                yield url, work
            finally:
                os.killpg(server.pid, signal.SIGTERM)
                server.wait(20)


def _quiet(home: Path) -> dict[str, str]:
    """Return an environment in which the Lab offers nothing and draws every cell at once."""
    for place, value in {
        "config/labconfig/page_config.json": {"buildCheck": False},
        "settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings": {
            "fetchNews": "false",
            "checkForUpdates": False,
        },
        "settings/@jupyterlab/notebook-extension/tracker.jupyterlab-settings": {
            "windowingMode": "none"
        },
    }.items():
        path = home / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value), "utf-8")
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
    }


def _wait_for(url: str) -> None:
    for _ in range(600):
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"JupyterLab did not answer at {url} within a minute")


def run_all(page: Any, url: str, name: str) -> None:
    """Open a notebook, run all of it and wait until it has settled."""
    page.goto(f"{url}/lab/tree/{name}?reset")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=PATIENCE)
    idle = page.get_by_text("Python 3 (ipykernel) | Idle")
    idle.wait_for(timeout=PATIENCE)
    for command in ("application:toggle-left-area", "notebook:run-all-cells"):
        page.evaluate("(name) => window.jupyterapp.commands.execute(name)", command)
    idle.wait_for(timeout=PATIENCE)
    page.wait_for_timeout(3_000)


def picture(page: Any, path: Path) -> bytes:
    """Return the PNG of the output of the cell with the tag; the lesson has been run."""
    from PIL import Image  # noqa: PLC0415 - the index needs neither it nor a browser

    cells = json.loads(path.read_text("utf-8"))["cells"]
    [place] = (i for i, e in enumerate(cells) if "thumbnail" in e["metadata"].get("tags", ()))
    output = page.locator(".jp-Notebook .jp-Cell").nth(place).locator(".jp-OutputArea-output").last
    plot = output.locator(".js-plotly-plot")
    if (output.bounding_box() or {"height": 0})["height"] > HIGHEST and plot.count():
        output = plot.first  # the Lab scrolls: what is higher than its window is never whole
    output.scroll_into_view_if_needed()
    strip = output.locator(".tl-strip")
    box = strip.bounding_box() if strip.count() else None  # no box where nothing is played
    if box is not None:
        page.wait_for_timeout(PLAYING)
        strip.click(position={"x": MOMENT * box["width"], "y": box["height"] / 2})
    page.wait_for_timeout(1_000)
    image = Image.open(io.BytesIO(output.screenshot())).convert("RGB")
    height = round(image.height * WIDTH / image.width)
    small = image.resize((WIDTH, height), Image.Resampling.LANCZOS)
    held = io.BytesIO()
    small.quantize(COLOURS, dither=Image.Dither.NONE).save(held, "PNG", optimize=True)
    return held.getvalue()


def pictures(folder: Path, only: tuple[int, ...] = ()) -> None:
    """Run the lessons and write a picture of each."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - as above

    sys.path.insert(0, str(ROOT))
    from tools.chromium import chromium  # noqa: PLC0415 - the repository is on the path only now

    folder.mkdir(parents=True, exist_ok=True)
    chosen = [each for each in entries() if not only or each.lesson in only]
    with lab() as (url, work), sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium())
        for each in chosen:
            shutil.copy(each.path, work)
            page = browser.new_page(viewport={"width": 1000, "height": 900}, device_scale_factor=2)
            run_all(page, url, each.path.name)
            made = picture(page, each.path)
            (folder / f"{each.lesson:02}.png").write_bytes(made)
            print(f"{each.lesson:02}.png  {len(made) / 1e3:.0f} kB")
            page.close()
        browser.close()


def main() -> None:
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["index"]:
            INDEX.write_text(written(INDEX.read_text("utf-8")), "utf-8")
        case ["pictures", *more]:
            numbers = tuple(int(each) for each in more if each.isdigit())
            folders = [Path(each) for each in more if not each.isdigit()]
            pictures(folders[0] if folders else PICTURES, numbers)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
