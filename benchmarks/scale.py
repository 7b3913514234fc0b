"""Hundreds of GPUs: `auto` on the largest clusters, with seconds and memory.

``scale`` asks for each cluster, collective and size in a process of its own, so that nothing is
remembered, and prints how far the plan is above the largest bound, the whole seconds from the
question to the verified answer, and the most memory that its processes had together.
"""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection
from typing import Annotated, Any

import typer

from benchmarks.measuring import output, said, table
from ccl.collective import CollectiveKind, make_collective
from ccl.errors import CclError
from ccl.problem import Problem
from ccl.serialization.quantity import parse_size
from formulations import solve
from formulations.jobs.child import memory_of, tree
from gallery import open_cluster

CLUSTERS = (
    "dgx-h100:hosts=64",
    "dgx-h100:hosts=128",
    "torus:shape=8x8x8",
    "fat-tree:radix=12",
    "random:gpus=512,switches=0,degree=6,spread=1",
)
KINDS: tuple[CollectiveKind, ...] = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all")
SIZES = "1KB,1MB,64MB,1GB"

SECONDS, MEMORY = 60.0, 4e9
"""What a question may take: whole seconds, and bytes."""

PAUSE = 0.1
"""Seconds between two looks at the memory."""


def scale(
    cluster: Annotated[list[str] | None, typer.Option(help="Only these; may be repeated.")] = None,
    *,
    collective: Annotated[list[str] | None, typer.Option(help="Only these kinds.")] = None,
    sizes: Annotated[str, typer.Option(help="Joined by commas.")] = SIZES,
    limit: Annotated[float, typer.Option(help="Time limit of a solve, in seconds.")] = 45.0,
) -> None:
    """Print what `auto` finds on hundreds of GPUs, how soon, and with how much memory."""
    console = output()
    heads = ("cluster", "collective", "size", "auto µs", "found by", "bound µs", "gap %", "s", "GB")
    made = table("hundreds of GPUs", heads)
    beyond = 0
    for name in cluster or CLUSTERS:
        for kind in KINDS:
            for size in sizes.split(",") if kind in (collective or KINDS) else ():
                cells, within = _row(name, kind, size, limit)
                beyond += not within
                console.print(name, kind, size, *cells, sep="  ")
                made.add_row(name, kind, size, *cells)
    console.print(made)
    kept = f"within {SECONDS:g} s and {MEMORY / 1e9:g} GB"
    console.print(f"{beyond} not {kept}; as asked: {said(not beyond)}")


def _row(cluster: str, kind: CollectiveKind, size: str, limit: float) -> tuple[list[str], bool]:
    """Return the cells of a question, and whether it kept to what it may take."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    began, most = time.monotonic(), 0.0
    process = context.Process(target=_answer, args=(theirs, cluster, kind, size, limit))
    process.start()
    theirs.close()
    assert process.pid is not None
    while not ours.poll(PAUSE):
        most = max(most, sum(map(memory_of, tree(process.pid))))
    try:
        found: dict[str, Any] = ours.recv()
    except EOFError:
        found = {"why": "its process ended"}
    took = time.monotonic() - began
    process.join()
    if "why" in found:
        return [found["why"]], False
    gap = 100 * (found["makespan"] / found["bound"] - 1)
    cells = [f"{found['makespan']:.5g}", found["by"], f"{found['bound']:.5g}", f"{gap:.2f}"]
    return [*cells, f"{took:.0f}", f"{most / 1e9:.1f}"], took <= SECONDS and most <= MEMORY


def _answer(news: Connection, cluster: str, kind: CollectiveKind, size: str, limit: float) -> None:
    """Solve, and send what was found or why nothing was."""
    try:
        topology = open_cluster(cluster)
        collective = make_collective(kind, len(topology.ranks), parse_size(size))
        found = solve(Problem(topology, collective), time_limit=limit)
        by = found.found_by or found.formulation
        news.send({"makespan": found.makespan, "bound": found.bound.makespan, "by": by})
    except CclError as error:
        news.send({"why": str(error)})
