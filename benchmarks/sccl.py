"""SCCL's instances on the DGX-1 and DGX-2: ours in steps and rounds, beside the published seconds.

Seconds "cold" are those of a process from its start to its end, with all that it loads; "again"
those of the same solve once more in the same process: bounds, a process for the solver, search,
verification and replay. "cpu" are those of the processors for "again", which a busy machine does
not stretch. The first table has instances for which the published program was run on
two cores like ours, with z3; the second has TE-CCL's table 7, whose epochs are rounds and whose
seconds are those of its authors' six cores. Steps are the fewest that the rounds can be dealt out
to; the last column of ours says what refutes one less.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

CHUNK = 25_000
"""Bytes of each chunk; 1 µs on the slowest link."""

LIMIT = 120.0
"""Seconds for each solve."""

_SOLVE = """
    import json, os, sys, time
    from ccl.collective import make_collective
    from ccl.errors import Infeasible, LimitReached
    from ccl.problem import Problem
    from formulations import solve
    from gallery import open_cluster

    asked = json.loads(sys.argv[1])
    for _ in range(asked["times"]):
        begin, work = time.perf_counter(), sum(os.times()[:4])
        topology = open_cluster(asked["cluster"])
        ranks = len(topology.ranks)
        size = ranks * asked["chunks"] * asked["bytes"]
        made = make_collective(asked["kind"], ranks, size, chunks=asked["chunks"])
        problem = Problem(topology, made)
        try:
            result = solve(problem, "sccl", options=asked["options"], time_limit=asked["limit"])
            cost = result.closed_form.expression
            said = {"makespan": f"{result.makespan:.6g}", "cost": cost, "why": result.log[-1]}
        except (Infeasible, LimitReached) as error:
            said = {"makespan": "none", "cost": "", "why": str(error)}
        said |= {"seconds": time.perf_counter() - begin, "cpu": sum(os.times()[:4]) - work}
    print(json.dumps(said))
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One instance.

    Parameters
    ----------
    kind, chunks
        Collective and chunks per shard.
    steps, rounds
        Of the instance; 0 for the fewest steps of a round each.
    published
        Texts of the published seconds.
    cluster
        By its name in the gallery.
    """

    kind: str
    chunks: int
    steps: int
    rounds: int
    published: tuple[str, ...]
    cluster: str = "dgx-1v:alpha=0"


Z3 = (
    Row("all-gather", 1, 0, 0, ("0.4",)),
    Row("all-gather", 2, 2, 3, ("0.7",)),
    Row("all-gather", 6, 3, 7, ("20.8",)),
    Row("all-to-all", 1, 0, 0, ("9.6",)),
    Row("all-gather", 1, 0, 0, ("open at 300",), "dgx-2"),
)
TABLE_7 = (
    Row("all-gather", 1, 2, 2, ("0.3", "0.09")),
    Row("all-gather", 2, 2, 3, ("0.7", "0.07")),
    Row("all-gather", 3, 3, 4, ("1.8", "0.19")),
    Row("all-gather", 4, 3, 5, ("4.1", "1.45")),
    Row("all-gather", 5, 3, 6, ("11.2", "8.96")),
    Row("all-gather", 6, 3, 7, ("27.7", "50.57")),
    Row("all-to-all", 1, 2, 3, ("8.8", "0.11")),
    Row("all-to-all", 3, 2, 8, ("none", "0.18")),
    Row("all-to-all", 8, 2, 30, ("none", "1.88")),
)


def main() -> None:
    """Solve every instance and print ours beside the published figures."""
    console = Console(width=140)
    console.print(_table("SCCL's program with z3", Z3, ("z3 s",)))
    console.print(
        _table("TE-CCL, table 7, DGX-1, 25 KB chunks, alpha 0", TABLE_7, ("SCCL s", "TE-CCL s"))
    )


def _table(title: str, rows: tuple[Row, ...], published: tuple[str, ...]) -> Table:
    made = Table(title=title)
    for heading in (
        "cluster",
        "collective",
        "chunks",
        "cost",
        "µs",
        "cold s",
        "again s",
        "cpu s",
        "a step less",
    ):
        made.add_column(heading, justify="right")
    for heading in published:
        made.add_column(heading, justify="right", style="dim")
    for row in rows:
        begin = time.perf_counter()
        _solved(row, steps=row.steps)
        cold = time.perf_counter() - begin
        found = _solved(row, steps=row.steps, times=2)
        # Who asks for the fewest steps is told by whom fewer are refuted.
        less = _solved(row, steps=row.steps - 1) if row.steps else found
        made.add_row(
            row.cluster.partition(":")[0],
            row.kind,
            str(row.chunks),
            found["cost"],
            found["makespan"],
            f"{cold:.2f}",
            f"{found['seconds']:.2f}",
            f"{found['cpu']:.2f}",
            _refuted(less),
            *row.published,
        )
    return made


def _solved(row: Row, *, steps: int, times: int = 1) -> dict[str, Any]:
    """Solve a row in so many steps in a process of its own; return what it says the last time."""
    options: dict[str, Any] = {"seconds": LIMIT}
    if row.steps:
        options |= {"mode": "instance", "steps": steps, "rounds": row.rounds}
    asked = {
        "cluster": row.cluster,
        "kind": row.kind,
        "chunks": row.chunks,
        "bytes": CHUNK,
        "limit": LIMIT,
        "options": options,
        "times": times,
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_SOLVE), json.dumps(asked)],
        capture_output=True,
        text=True,
        check=True,
    )
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def _refuted(less: dict[str, Any]) -> str:
    """Say in a word what proves that there is no plan."""
    if "proved" not in less["why"]:
        return "not refuted"
    for word, what in (("searched", "search"), ("links of", "cut"), ("steps to", "distance")):
        if word in less["why"]:
            return what
    return "bound"
