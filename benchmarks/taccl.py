"""TACCL's three steps here, beside TACCL as TE-CCL's table 8 tells it, and its seconds.

First NDv2 x 2: makespans, bounds and seconds of every size, beside the published finish times and
solver seconds of TACCL. Then all-gather on NDv2 x 2, NDv2 x 4 and DGX-2 x 2 in chunks of 1 MB,
beside the seconds that the published program takes with HiGHS on a machine of two cores.

Steps 1 to 3 run in full: the quick ways are not offered, they only start step 1. Ours are replays
in continuous time with every latency counted; in TACCL's figures latency holds a link.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from ccl.collective import CollectiveKind, make_collective
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.quantity import parse_size
from formulations import solve
from gallery import open_cluster


@dataclass(frozen=True, slots=True)
class Published:
    """A row of table 8: size of the buffer, finish time of TACCL in µs, its solver's seconds."""

    size: str
    makespan: float
    seconds: float


ALL_TO_ALL = (
    Published("1GB", 320049.4, 1214.69),
    Published("256MB", 81964.2, 1217.56),
    Published("64MB", 20532, 1220.6),
    Published("16MB", 5164.4, 1213.9),
    Published("4MB", 1324.2, 1214.51),
    Published("1MB", 359, 1213.52),
    Published("256KB", 115.72, 1221.78),
    Published("64KB", 50.34, 860.88),
    Published("16KB", 35.76, 86.03),
    Published("4KB", 32.115, 31.14),
    Published("1KB", 36.799, 27.66),
)
ALL_GATHER = (
    Published("1GB", 53766.70, 7.01),
    Published("256MB", 12494.60, 6.56),
    Published("64MB", 3133.20, 8.27),
    Published("4MB", 216.50, 8.37),
    Published("1MB", 62.15, 62.65),
    Published("256KB", 25.26, 11.17),
    Published("64KB", 13.08, 3.66),
    Published("16KB", 12.68, 6.34),
    Published("4KB", 11.85, 4.30),
    Published("1KB", 10.16, 3.02),
)


@dataclass(frozen=True, slots=True)
class Synthesis:
    """An all-gather of chunks of 1 MB: cluster, chunks per shard, seconds and µs of TACCL.

    Seconds and µs are those of its published program with HiGHS, on links as it profiled them.
    """

    cluster: str
    ranks: int
    chunks: int
    seconds: float
    makespan: float


SYNTHESES = (
    Synthesis("ndv2:hosts=2", 16, 1, 6.8, 991),
    Synthesis("ndv2:hosts=4", 32, 1, 74.2, 2669),
    Synthesis("dgx-2-te-ccl:hosts=2", 32, 2, 39.8, 583),
)
MEGABYTE = 1e6
"""Bytes."""


def main(time_limit: float = 60.0) -> None:
    """Print table 8 and the seconds of synthesis."""
    console = Console(width=140)
    # The first solve of a process loads the solver; nobody waits for that twice.
    _solved("ndv2:hosts=2", "all-gather", 1e6, time_limit=time_limit)
    halves: tuple[tuple[CollectiveKind, tuple[Published, ...]], ...] = (
        ("all-gather", ALL_GATHER),
        ("all-to-all", ALL_TO_ALL),
    )
    for kind, rows in halves:
        console.print(_table_8(kind, rows, time_limit))
    console.print(_seconds(time_limit))


def _table_8(kind: CollectiveKind, rows: tuple[Published, ...], limit: float) -> Table:
    table = _table(f"NDv2 x 2, {kind}", "size")
    for row in rows:
        size = parse_size(row.size)
        result, seconds = _solved("ndv2:hosts=2", kind, size, time_limit=limit)
        best = (*_ours(result, seconds), f"{result.makespan / row.makespan:.3f}")
        table.add_row(row.size, *best, f"{row.makespan:.6g}", f"{row.seconds:.2f}")
    table.caption = "bold: here; dim: TACCL as in TE-CCL's table 8"
    return table


def _seconds(limit: float) -> Table:
    table = _table("All-gather, chunks of 1 MB", "cluster")
    for row in SYNTHESES:
        size = row.ranks * row.chunks * MEGABYTE
        result, seconds = _solved(
            row.cluster, "all-gather", size, chunks=row.chunks, time_limit=limit
        )
        best = (*_ours(result, seconds), f"{seconds / row.seconds:.3f}")
        table.add_row(row.cluster, *best, f"{row.makespan:.6g}", f"{row.seconds:.2f}")
    table.columns[5].header = "of s"
    table.caption = (
        "bold: here; dim: the published program with HiGHS on two cores, on its own profiled links "
        "(slower ones: its µs are not those of this cluster)"
    )
    return table


def _ours(result: Result, seconds: float) -> tuple[str, ...]:
    makespan, bound = f"{result.makespan:.6g}", f"{result.bound.makespan:.6g}"
    return makespan, bound, f"{result.gap:.2%}", f"{seconds:.2f}"


def _solved(
    cluster: str, kind: CollectiveKind, size: float, *, chunks: int = 1, time_limit: float
) -> tuple[Result, float]:
    """Return a result and the seconds of the whole call, verified and replayed."""
    topology = open_cluster(cluster)
    problem = Problem(topology, make_collective(kind, len(topology.ranks), size, chunks=chunks))
    begin = time.perf_counter()
    found = solve(problem, "taccl", options={"quick": False}, time_limit=time_limit)
    return found, time.perf_counter() - begin


def _table(title: str, first: str) -> Table:
    table = Table(title=title)
    table.add_column(first, justify="right")
    for heading in ("makespan µs", "bound µs", "gap", "s", "of µs"):
        table.add_column(heading, justify="right", style="bold")
    for heading in ("TACCL µs", "s"):
        table.add_column(heading, justify="right", style="dim")
    return table
