"""How long solving takes beside what is told before: the classes of `explanation`.

The whole solve is timed, bounds, building and all plans included, up to a limit; a solve that
meets it is told as longer than that.
"""

from __future__ import annotations

import time

from rich.console import Console
from rich.table import Table

from ccl.collective import CollectiveKind, make_collective
from ccl.errors import LimitReached
from ccl.problem import Problem
from ccl.result import Stop
from ccl.serialization.quantity import parse_size
from formulations import explain, solve
from formulations.core.registry import LAST, Speed
from gallery import open_cluster

Row = tuple[str, str, CollectiveKind, dict[str, object]]

GRID = {"epoch": "slowest", "greedy_start": False}
ASKED: tuple[Row, ...] = (
    ("thesis-fluid", "ring:gpus=4", "all-gather", {}),
    ("thesis-fluid", "dgx-1v", "all-to-all", {}),
    ("thesis-fluid", "dgx-1v", "broadcast", {"model": "duplicates"}),
    ("thesis-fluid", "dgx-1v", "all-gather", {"model": "duplicates"}),
    ("thesis-fluid", "mi250", "all-to-all", {}),
    ("thesis-fluid", "dgx-a100:hosts=4", "all-to-all", {}),
    ("thesis-fluid", "ndv2:hosts=6", "all-to-all", {}),
    ("thesis-fluid", "dgx-a100:hosts=12", "all-to-all", {}),
    ("orbit-lp", "ndv2", "all-to-all", {}),
    ("orbit-lp", "dgx-a100:hosts=8", "all-to-all", {}),
    ("te-ccl-lp", "dgx-1v", "all-to-all", {"epoch": "slowest"}),
    ("te-ccl-lp", "ndv2", "all-to-all", {"epoch": "slowest"}),
    ("te-ccl-lp", "mi250", "all-to-all", {"epoch": "slowest"}),
    ("te-ccl-lp", "dgx-a100:hosts=2", "all-to-all", {"epoch": "slowest"}),
    ("te-ccl-lp", "ndv2:hosts=3", "all-to-all", {"epoch": "slowest"}),
    ("te-ccl-lp", "ndv2:hosts=3", "scatter", {"epoch": "slowest"}),
    ("te-ccl-milp", "ring:gpus=6", "all-gather", GRID),
    ("te-ccl-milp", "dgx-1v", "all-gather", GRID),
    ("te-ccl-milp", "dgx-a100", "all-gather", GRID),
    ("te-ccl-milp", "mi250", "broadcast", GRID),
    ("te-ccl-milp", "mi250", "all-gather", GRID),
    ("te-ccl-milp", "ndv2", "all-gather", GRID),
    ("te-ccl-milp", "mi250", "all-to-all", GRID),
    ("te-ccl-milp", "ndv2:hosts=3", "all-gather", GRID),
    ("te-ccl-milp", "dgx-1v", "all-to-all", GRID),
    ("thesis-steps", "ring:gpus=6", "all-to-all", {}),
    ("thesis-steps", "mi250", "broadcast", {}),
    ("thesis-steps", "mi250", "all-gather", {}),
    ("mirrored-dantzig-wolfe", "mi250", "all-gather", {}),
    ("dantzig-wolfe", "ndv2", "all-gather", {}),
    ("mirrored-dantzig-wolfe", "dgx-a100:hosts=2", "all-gather", {}),
    ("mirrored-dantzig-wolfe", "dgx-1v", "all-gather", {}),
    ("dantzig-wolfe", "dgx-1v", "all-gather", {}),
    ("dantzig-wolfe", "dgx-a100", "all-gather", {}),
)


def main(size: str = "1MB", limit: float = 60.0, only: str = "") -> None:
    """Print sizes, the class that they are told to be in, and the seconds measured."""
    table = Table(title=f"{size}, at most {limit:g} s each")
    for name in ("formulation", "cluster", "collective", "nonzeros", "told", "s", "took"):
        table.add_column(name, justify="right" if name in ("nonzeros", "s") else "left")
    same = 0
    asked = [each for each in ASKED if only in each[0]]
    for name, cluster, kind, options in asked:
        topology = open_cluster(cluster)
        collective = make_collective(kind, len(topology.ranks), parse_size(size), root=0)
        problem = Problem(topology, collective)
        found = explain(name, problem, options=options)
        if found.size is None or found.speed is None:
            table.add_row(name, cluster, kind, "", found.refusal or found.note, "", "")
            continue
        seconds, over = _timed(problem, name, options=options, limit=limit)
        took = speed_in(seconds)
        fits = took is found.speed or (over and found.speed in LONG)
        same += fits
        table.add_row(
            name,
            cluster,
            kind,
            f"{found.size.nonzeros:,}",
            found.speed.words,
            f"{'> ' * over}{seconds:.2f}",
            "as told" if fits else took.words,
        )
    table.caption = f"{same} of {len(asked)} as told"
    Console(width=140).print(table)


LONG = (Speed.MINUTES, Speed.HOURS)
"""What a solve that met the limit of a minute may be."""


def speed_in(seconds: float) -> Speed:
    """Return the class of something that took so long."""
    ends = (1.0, 60.0, 3600.0)
    return next((speed for speed, end in zip(Speed, ends, strict=False) if seconds < end), LAST)


def _timed(
    problem: Problem, name: str, *, options: dict[str, object], limit: float
) -> tuple[float, bool]:
    """Return the seconds of a solve, and whether it met its limit."""
    begin = time.perf_counter()
    try:
        stop = solve(problem, name, options=options, time_limit=limit).stop
    except LimitReached:
        stop = Stop.TIME_LIMIT
    return time.perf_counter() - begin, stop in (Stop.TIME_LIMIT, Stop.TOO_LARGE)
