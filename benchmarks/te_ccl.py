"""The figures of TE-CCL's paper: its table 8, its A*, and what copies and buffers are worth.

Table 8 is of NDv2 x 2. Ours are replays in continuous time over all 16 GPUs with every latency
counted. The paper's finish times are epochs times their duration on 80 cores with Gurobi and drop
short latencies; the files it provides cover 15 of the 16 GPUs.

Figures 9 and 11 are drawings; what their text says is printed beside our figures. Of figure 9 it
says how much copies save at the largest transfer, 0.21 GB in 4 chunks, and that they save nothing
at small ones; the other sizes and all times cannot be read. Of figure 11 it says that buffers leave
the transfer time as it is, and how much of the solver's time they save on average, over two chassis
of each cluster; sizes and times cannot be read, nor how two chassis of DGX-1 are joined, so here is
one. The bandwidths of the internal clusters are not published and assumed in the gallery; ratios of
times depend on them only through the latencies. Without copies, every destination is sent chunks
of its own, which is the demand of the paper's linear program, so that solves it (the model of
whole chunks does with ``copy`` off, and bounds it from above).

The A* stands beside the general model: how far from the optimum, and how much faster. Rounds are
left alone, without the greedy schedule that is kept as a first plan otherwise; the general model
has it, and a limit. The paper has A* 6 to 20 % above the optimum on two chassis of its internal
clusters, of which it tells the structure and the latencies; bandwidths are assumed
(``te-ccl-internal-1`` and ``-2`` of the gallery).
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace

from rich.table import Table

from benchmarks.measuring import Measured, Request, Settings, filled, measured, show, table, warm_up
from ccl.collective import CollectiveKind, all_gather, custom
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.quantity import parse_size
from formulations import solve
from formulations.engines.epoch_grid.plans import without_copies
from gallery import open_cluster


@dataclass(frozen=True, slots=True)
class Finished:
    """One row: size of the buffer, finish times in µs and solver seconds, by epoch duration."""

    size: str
    slow: float
    slow_seconds: float
    fast: float
    fast_seconds: float

    @property
    def published(self) -> tuple[str, ...]:
        """The figures as texts."""
        slow, fast = f"{self.slow:.6g}", f"{self.fast:.6g}"
        return slow, f"{self.slow_seconds:.2f}", fast, f"{self.fast_seconds:.2f}"


ALL_GATHER = (
    Finished("1GB", 50000, 0.94, 43750, 7201.05),
    Finished("256MB", 12804.10, 0.77, 11200, 7214.16),
    Finished("64MB", 3201.02, 0.78, 2800, 7209.46),
    Finished("16MB", 800.06, 0.77, 700, 7208.70),
    Finished("4MB", 200, 0.77, 190, 152.60),
    Finished("1MB", 70, 1.04, 48.75, 160.10),
    Finished("256KB", 19.20, 1.09, 14.72, 59.55),
    Finished("64KB", 7.68, 1.74, 6.08, 27.61),
    Finished("16KB", 4.80, 3.35, 4.44, 18.80),
    Finished("4KB", 4.24, 21.56, 4.24, 12.26),
    Finished("1KB", 4.14, 89.07, 4.135, 50.28),
)
ALL_TO_ALL = (
    Finished("1GB", 325000, 14.82, 320235.81, 336.50),
    Finished("256MB", 83226.63, 14.36, 82000, 307.33),
    Finished("64MB", 20806.66, 11.01, 20495.09, 339.92),
    Finished("16MB", 5200.42, 9.96, 5123.77, 280.82),
    Finished("4MB", 1300.03, 11.81, 1296.25, 165.63),
    Finished("1MB", 340, 10.85, 325.28, 189.47),
    Finished("256KB", 88.32, 9.97, 85.52, 218.50),
    Finished("64KB", 24.32, 10.46, 23.30, 161.99),
    Finished("16KB", 7.6, 8.83, 7.27, 182.08),
    Finished("4KB", 4.5, 20.90, 4.64, 69.58),
    Finished("1KB", 4.235, 276.47, 4.24, 196.72),
)


TABLE8 = ("slowest-link µs", "s", "fastest-link µs", "s")
"""Headings of `Finished.published`."""


def table8(time_limit: float = 20.0, repeat: int = 3) -> None:
    """Print both halves of table 8; seconds are the median of `repeat` whole solves."""
    halves: tuple[tuple[CollectiveKind, str, tuple[Finished, ...]], ...] = (
        ("all-gather", "te-ccl-milp", ALL_GATHER),
        ("all-to-all", "te-ccl-lp", ALL_TO_ALL),
    )
    show(_half(*half, Settings(repeat=repeat, time_limit=time_limit)) for half in halves)


def _half(
    kind: CollectiveKind, formulation: str, rows: tuple[Finished, ...], settings: Settings
) -> Table:
    asked = Request(cluster="ndv2:hosts=2", size="1MB", kind=kind, formulation=formulation)
    chosen = settings.chosen(replace(asked, size=r.size, published=r.published) for r in rows)
    warm_up(chosen[0])
    made = filled(f"NDv2 x 2, {kind}, {formulation}", chosen, settings, published=TABLE8)
    made.caption = "dim: published (Gurobi, 80 cores)"
    return made


@dataclass(frozen=True, slots=True)
class Saved:
    """A cluster of the figures, with the shares in % that copies and buffers save there."""

    title: str
    cluster: str
    copies: float
    buffers: float


CLUSTERS = (
    Saved("DGX-1", "dgx-1v", 50.0, 71.0),
    Saved("Internal 1 × 2, no latency", "te-ccl-internal-1:alpha=0,network_alpha=0", 50.0, 61.0),
    Saved("Internal 1 × 2", "te-ccl-internal-1", 50.0, -28.46),
    Saved("Internal 2 × 2", "te-ccl-internal-2", 12.5, 0.23),
)
SIZES = ("0.21GB", "21MB", "2.1MB", "210KB", "21KB")
"""Bytes that each GPU sends to every other; only the first is published."""

CHUNKS = 4


def figures(time_limit: float = 10.0, repeat: int = 3) -> None:
    """Print both tables; a solve takes `time_limit` seconds at most."""
    solve(_asked("ring:gpus=3", "1KB"), "te-ccl-milp", options={"greedy_start": False})
    show((_copies(time_limit), _buffers(time_limit, repeat)))


def _asked(cluster: str, size: str, *, chunks: int = 1) -> Problem:
    topology = open_cluster(cluster)
    ranks = len(topology.ranks)
    return Problem(topology, all_gather(ranks, ranks * parse_size(size), chunks=chunks))


def _copies(time_limit: float) -> Table:
    made = table(
        f"Figure 9: all-gather in {CHUNKS} chunks, with copies on the way or not",
        ("cluster", "each sends", "with µs", "gap", "without µs", "gap", "copies save"),
        ("published",),
    )
    for row in CLUSTERS:
        for size in SIZES:
            asked = _asked(row.cluster, size, chunks=CHUNKS)
            copied = solve(asked, "te-ccl-milp", time_limit=time_limit)
            alone = _alone(asked, time_limit)
            saved = 1 - copied.makespan / alone.makespan
            published = f"{row.copies:g} %" if size == SIZES[0] else ""
            made.add_row(
                row.title,
                size,
                f"{copied.makespan:.6g}",
                f"{copied.gap:.1%}",
                f"{alone.makespan:.6g}",
                f"{alone.gap:.1%}",
                f"{saved:.1%}",
                published,
            )
    return made


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
    headings = ("each sends", "with µs", "without µs", "with s", "without s", "buffers save s")
    made = table(
        "Figure 11: the paper's objective, with store-and-forward or without",
        ("cluster", *headings),
        ("published, on average",),
    )
    for row in CLUSTERS:
        shares = []
        for size in SIZES[:-1]:
            asked = _asked(row.cluster, size)
            stored, first = _timed(asked, time_limit, repeat, stores=True)
            passed, second = _timed(asked, time_limit, repeat, stores=False)
            shares.append(1 - first / second)
            made.add_row(
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
        made.add_row(row.title, "average", "", "", "", "", average, f"{row.buffers:g} %")
    return made


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


TWO_CHASSIS = tuple(
    Request(cluster=cluster, size=size, chunks=chunks)
    for cluster in ("te-ccl-internal-1", "te-ccl-internal-2")
    for size in ("64MB", "1MB", "64KB", "8KB")
    for chunks in (1, 2)
)
GPUS_32 = tuple(
    Request(cluster=cluster, size="32MB")
    for cluster in (
        "te-ccl-internal-1:hosts=8",
        "te-ccl-internal-2:hosts=16",
        "ndv2:hosts=4",
        "dgx-2-te-ccl",
    )
)


def astar(time_limit: float = 30.0, repeat: int = 1) -> None:
    """Print both tables; seconds are the median of `repeat`, the general model has a limit."""
    warm_up(Request(cluster="ring:gpus=4", size="1MB", formulation="te-ccl-astar", time_limit=10.0))
    parts = ("two chassis", TWO_CHASSIS), ("32 GPUs", GPUS_32)
    show(_rounds(*part, Settings(repeat=repeat, time_limit=time_limit)) for part in parts)


def _rounds(title: str, rows: tuple[Request, ...], settings: Settings) -> Table:
    limit = settings.time_limit or 0.0
    headings = ("A* µs", "gap", "s", "general µs", "gap", "s", "A* longer by", "times faster")
    made = table(
        f"all-gather, {title}, the general model stopped at {limit:g} s",
        ("cluster", "size", "chunks", *headings),
    )
    for row in rows:
        alone = replace(row, options={"greedy_start": False}, time_limit=20 * limit)
        mine = measured(replace(alone, formulation="te-ccl-astar"), settings)
        other = measured(replace(row, formulation="te-ccl-milp", time_limit=limit), settings)
        made.add_row(
            row.cluster,
            row.size,
            str(row.chunks),
            *_told(mine),
            *_told(other),
            f"{mine.makespan / other.makespan - 1:+.1%}",
            f"{other.seconds / mine.seconds:.1f}",
        )
    return made


def _told(done: Measured) -> tuple[str, ...]:
    gap = "" if done.result is None else f"{done.result.gap:.1%}"
    return f"{done.makespan:.6g}", gap, f"{done.seconds:.2f}"
