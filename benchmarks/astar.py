"""TE-CCL's A* beside its general model: how far from the optimum, and how much faster.

All-gather; whole solves, verified and replayed. Rounds are left alone, without the greedy schedule
that is kept as a first plan otherwise; the general model has it, and a limit. The paper has A* 6
to 20 % above the optimum on two chassis of its internal clusters, of which it tells the structure
and the latencies; bandwidths are assumed (``te-ccl-internal-1`` and ``-2`` of the gallery).
"""

from __future__ import annotations

import statistics
from typing import Any

from rich.console import Console
from rich.table import Table

from ccl.collective import all_gather
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.quantity import parse_size
from formulations import solve
from gallery import open_cluster

TWO_CHASSIS = tuple(
    (cluster, size, chunks)
    for cluster in ("te-ccl-internal-1", "te-ccl-internal-2")
    for size in ("64MB", "1MB", "64KB", "8KB")
    for chunks in (1, 2)
)
GPUS_32 = (
    ("te-ccl-internal-1:hosts=8", "32MB", 1),
    ("te-ccl-internal-2:hosts=16", "32MB", 1),
    ("ndv2:hosts=4", "32MB", 1),
    ("dgx-2-te-ccl", "32MB", 1),
)


def main(time_limit: float = 30.0, repeat: int = 1) -> None:
    """Print both tables; seconds are the median of `repeat`, the general model has a limit."""
    console = Console(width=140)
    # The first solve of a process loads the solver; nobody waits for that twice.
    _solved("ring:gpus=4", "1MB", 1, formulation="te-ccl-astar", time_limit=10.0)
    for title, rows in (("two chassis", TWO_CHASSIS), ("32 GPUs", GPUS_32)):
        table = _table(f"all-gather, {title}, the general model stopped at {time_limit:g} s")
        for row in rows:
            table.add_row(*_row(row, time_limit, repeat))
        console.print(table)


def _row(row: tuple[str, str, int], time_limit: float, repeat: int) -> list[str]:
    cluster, size, chunks = row
    rounds = [
        _solved(*row, formulation="te-ccl-astar", time_limit=20 * time_limit, greedy_start=False)
        for _ in range(repeat)
    ]
    models = [
        _solved(*row, formulation="te-ccl-milp", time_limit=time_limit) for _ in range(repeat)
    ]
    mine, other = (min(each, key=lambda result: result.makespan) for each in (rounds, models))
    quick, slow = (
        statistics.median(result.solve_time for result in each) for each in (rounds, models)
    )
    return [
        cluster,
        size,
        str(chunks),
        f"{mine.makespan:.6g}",
        f"{mine.gap:.1%}",
        f"{quick:.2f}",
        f"{other.makespan:.6g}",
        f"{other.gap:.1%}",
        f"{slow:.2f}",
        f"{mine.makespan / other.makespan - 1:+.1%}",
        f"{slow / quick:.1f}",
    ]


def _solved(
    cluster: str, size: str, chunks: int, *, formulation: str, time_limit: float, **options: Any
) -> Result:
    topology = open_cluster(cluster)
    collective = all_gather(len(topology.ranks), parse_size(size), chunks=chunks)
    return solve(Problem(topology, collective), formulation, options=options, time_limit=time_limit)


def _table(title: str) -> Table:
    table = Table(title=title)
    for heading in ("cluster", "size", "chunks"):
        table.add_column(heading)
    for heading in ("A* µs", "gap", "s", "general µs", "gap", "s", "A* longer by", "times faster"):
        table.add_column(heading, justify="right")
    return table
