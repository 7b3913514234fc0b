"""TE-CCL's figures 9 and 11: what copies on the way and what buffers are worth.

Both are drawings; what their text says is printed beside our figures. Of figure 9 it says how much
copies save at the largest transfer, 0.21 GB in 4 chunks, and that they save nothing at small ones;
the other sizes and all times cannot be read. Of figure 11 it says that buffers leave the transfer
time as it is, and how much of the solver's time they save on average, over two chassis of each
cluster; sizes and times cannot be read, nor how two chassis of DGX-1 are joined, so here is one.

The bandwidths of the internal clusters are not published and assumed in the gallery; ratios of
times depend on them only through the latencies. Without copies, every destination is sent chunks
of its own, which is the demand of the paper's linear program, so that solves it (the model of
whole chunks does with ``copy`` off, and bounds it from above).
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table

from ccl.collective import all_gather, custom
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.quantity import parse_size
from formulations import solve
from formulations.engines.epoch_grid.plans import without_copies
from gallery import open_cluster


@dataclass(frozen=True, slots=True)
class Published:
    """A cluster of the figures, with the shares in % that copies and buffers save there."""

    title: str
    cluster: str
    copies: float
    buffers: float


CLUSTERS = (
    Published("DGX-1", "dgx-1v", 50.0, 71.0),
    Published(
        "Internal 1 × 2, no latency", "te-ccl-internal-1:alpha=0,network_alpha=0", 50.0, 61.0
    ),
    Published("Internal 1 × 2", "te-ccl-internal-1", 50.0, -28.46),
    Published("Internal 2 × 2", "te-ccl-internal-2", 12.5, 0.23),
)
SIZES = ("0.21GB", "21MB", "2.1MB", "210KB", "21KB")
"""Bytes that each GPU sends to every other; only the first is published."""

CHUNKS = 4


def main(time_limit: float = 10.0, repeat: int = 3) -> None:
    """Print both tables; a solve takes `time_limit` seconds at most."""
    console = Console(width=140)
    solve(_asked("ring:gpus=3", "1KB"), "te-ccl-milp", options={"greedy_start": False})
    console.print(_copies(time_limit))
    console.print(_buffers(time_limit, repeat))


def _asked(cluster: str, size: str, *, chunks: int = 1) -> Problem:
    topology = open_cluster(cluster)
    ranks = len(topology.ranks)
    return Problem(topology, all_gather(ranks, ranks * parse_size(size), chunks=chunks))


def _copies(time_limit: float) -> Table:
    table = Table(title=f"Figure 9: all-gather in {CHUNKS} chunks, with copies on the way or not")
    table.add_column("cluster")
    for heading in ("each sends", "with µs", "gap", "without µs", "gap", "copies save"):
        table.add_column(heading, justify="right", style="bold")
    table.add_column("published", justify="right", style="dim")
    for row in CLUSTERS:
        for size in SIZES:
            asked = _asked(row.cluster, size, chunks=CHUNKS)
            copied = solve(asked, "te-ccl-milp", time_limit=time_limit)
            alone = _alone(asked, time_limit)
            saved = 1 - copied.makespan / alone.makespan
            published = f"{row.copies:g} %" if size == SIZES[0] else ""
            table.add_row(
                row.title,
                size,
                f"{copied.makespan:.6g}",
                f"{copied.gap:.1%}",
                f"{alone.makespan:.6g}",
                f"{alone.gap:.1%}",
                f"{saved:.1%}",
                published,
            )
    return table


def _alone(asked: Problem, time_limit: float) -> Result:
    """Return the better plan without copies of the linear program and of whole chunks."""
    chunks = without_copies(asked).collective.chunks
    flows = replace(asked, collective=custom(asked.collective.ranks, chunks))
    found = (
        solve(flows, "te-ccl-lp", time_limit=time_limit),
        solve(asked, "te-ccl-milp", options={"copy": False}, time_limit=time_limit),
    )
    return min(found, key=lambda result: result.makespan)


def _buffers(time_limit: float, repeat: int) -> Table:
    table = Table(title="Figure 11: the paper's objective, with store-and-forward or without")
    table.add_column("cluster")
    headings = ("each sends", "with µs", "without µs", "with s", "without s", "buffers save s")
    for heading in headings:
        table.add_column(heading, justify="right", style="bold")
    table.add_column("published, on average", justify="right", style="dim")
    for row in CLUSTERS:
        shares = []
        for size in SIZES[:-1]:
            asked = _asked(row.cluster, size)
            stored, first = _timed(asked, time_limit, repeat, stores=True)
            passed, second = _timed(asked, time_limit, repeat, stores=False)
            shares.append(1 - first / second)
            table.add_row(
                row.title,
                size,
                f"{stored.makespan:.6g}",
                f"{passed.makespan:.6g}",
                f"{first:.2f}",
                f"{second:.2f}",
                f"{shares[-1]:.1%}",
                "",
            )
        average = f"{statistics.mean(shares):.1%}"
        table.add_row(row.title, "average", "", "", "", "", average, f"{row.buffers:g} %")
    return table


def _timed(asked: Problem, time_limit: float, repeat: int, *, stores: bool) -> tuple[Result, float]:
    """Return a plan by the paper's objective, and the median of the seconds it took."""
    options = {
        "objective": "early-arrivals",
        "epoch": "fastest",
        "greedy_start": False,
        "store_and_forward": stores,
    }
    results = [
        solve(asked, "te-ccl-milp", options=options, time_limit=time_limit) for _ in range(repeat)
    ]
    return results[0], statistics.median(result.solve_time for result in results)
