"""A sweep of 200 tasks on one and on two workers, and one that is killed at half and goes on.

Eight to sixteen GPUs in a box, a torus and two boxes with their links changed, all-gathers and
all-reduces of five sizes, by forests and by list scheduling: what takes some tenths of a second
each, as most of a night's tasks do. Seconds are those of whole sweeps, from the call to the last
row on the disk: workers are started, and each of them loads its solvers. The kill is a SIGKILL of
the sweep and of all processes that it started, at half of the rows.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

import formulations
from benchmarks.measuring import said
from formulations.campaigns.sweeps.rows import Row, without_clock
from formulations.campaigns.sweeps.running import Progress
from formulations.campaigns.sweeps.store import is_sweep, read_rows

SPEC: dict[str, Any] = {
    "clusters": [
        {"open": "dgx-1v", "links": [{"bandwidth": [1, 2]}]},
        {"open": "torus:shape=4x4", "links": [{"bandwidth": [1, 2], "alpha": [1, 2]}]},
        {"open": "ndv2:hosts=2", "links": [{"of": "between hosts", "bandwidth": [1, 2, 4, 8]}]},
    ],
    "collectives": ["all-gather", "all-reduce"],
    "sizes": "64KB..512MB x8",
    "formulations": ["forestcoll", "list:passes=30"],
    "time_limit": 60,
}
"""10 clusters, 2 collectives, 5 sizes, 2 formulations; the limit is out of reach, since who needs
all of it would find other plans on a machine that has more to do."""

TASKS = 200
RATIO = 1.7
"""Tasks, and how many times as fast two workers have to be."""

CHILD = """
import sys
import msgspec
import formulations
formulations.sweep(msgspec.json.decode(sys.argv[1]), into=sys.argv[2], workers=int(sys.argv[3]))
"""


def main(
    repeat: Annotated[int, typer.Option(min=1, help="How often both are timed.")] = 1,
    workers: Annotated[int, typer.Option(min=2, help="Of the sweep that is faster.")] = 2,
) -> None:
    """Print seconds on one and on several workers, and what a kill at half costs."""
    console = Console(highlight=False)
    made = Table(title=f"{TASKS} tasks")
    for name in ("workers", "seconds", "tasks a second", "busy"):
        made.add_column(name, justify="right")
    with tempfile.TemporaryDirectory(prefix="topoloom-sweep-") as folder:
        ratios: list[float] = []
        rows: Sequence[Row] = ()
        same = True
        for number in range(repeat):
            alone, rows = _timed(Path(folder) / f"1-{number}", 1)
            several, others = _timed(Path(folder) / f"n-{number}", workers)
            for many, seconds, done in ((1, alone, rows), (workers, several, others)):
                busy = sum(row.wall for row in done) / seconds / many
                rate = f"{len(done) / seconds:.2f}"
                made.add_row(f"{many}", f"{seconds:.1f}", rate, f"{busy:.0%}")
            ratios.append(alone / several)
            same &= without_clock(rows) == without_clock(others)
            Console(stderr=True).print(f"{ratios[-1]:.2f} times as fast", style="dim")
        console.print(made)
        resumed = _resumed(Path(folder) / "killed", rows, workers, console)
    ratio = sorted(ratios)[len(ratios) // 2]
    asked = (
        (f"{workers} workers are {ratio:.2f} times as fast as 1", ratio >= RATIO),
        (f"{len(rows)} rows, all with plans, the same on both", same and _whole(rows)),
        ("killed at half and resumed, the same rows", resumed),
    )
    for words, true in asked:
        console.print(f"{words}: {said(true)}")
    console.print(f"as asked: {said(all(true for _, true in asked))}")


def _whole(rows: Sequence[Row]) -> bool:
    return len(rows) == TASKS and not any(row.why_not for row in rows)


def _timed(folder: Path, workers: int) -> tuple[float, Sequence[Row]]:
    """Return the seconds of a sweep in a process of its own, and its rows."""
    begin = time.perf_counter()
    with _begun(folder, workers) as running:
        code = running.wait()
    seconds = time.perf_counter() - begin
    assert code == 0, f"the sweep ended with {code}"
    return seconds, read_rows(folder)


def _begun(folder: Path, workers: int) -> subprocess.Popen[bytes]:
    asked = msgspec.json.encode(SPEC).decode()
    command = [sys.executable, "-c", CHILD, asked, str(folder), str(workers)]
    return subprocess.Popen(command, start_new_session=True)


def _resumed(folder: Path, rows: Sequence[Row], workers: int, console: Console) -> bool:
    """Kill a sweep at half, go on with it, and say whether it ends with the same rows."""
    with _begun(folder, workers) as running:
        while running.poll() is None:
            if is_sweep(folder) and len(read_rows(folder)) >= TASKS // 2:
                break
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGKILL)
    before = read_rows(folder)
    begin = time.perf_counter()
    solved: list[Progress] = []
    found = formulations.sweep(SPEC, into=folder, workers=workers, progress=solved.append)
    seconds = time.perf_counter() - begin
    console.print(
        f"killed with {len(before)} rows on the disk; {len(solved) - 1} solved after it in "
        f"{seconds:.1f} s"
    )
    kept = set(before) <= set(found.rows) and len(before) + len(solved) - 1 == TASKS
    return kept and without_clock(found.rows) == without_clock(rows)
