"""All-reduces whose two halves share the links, beside twice an all-gather.

Data is added up along trees into roots and spread along trees out of them; both loads meet on the
links and roots take what share they like. Where uploads of one half leave downloads for the other
this is faster than one half after the other, by 1 - n / (2 (n - 1)) of n GPUs at most: through a
cut with the bandwidth B out of it, all data of the n GPUs has to pass for one half or the other,
n / B, and an all-gather takes (n - 1) / B at the narrowest GPU or less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from rich.console import Console
from rich.table import Table

from benchmarks.fluid_forests import gathering
from benchmarks.measuring import said, table
from benchmarks.timing import median_of
from ccl.collective import all_reduce
from ccl.plans import Forest
from ccl.problem import Problem
from ccl.result import Result, Status
from ccl.tree_embedding import steady_makespan
from formulations import solve
from formulations.engines.forestcoll.search import forest_rate


@dataclass(frozen=True, slots=True)
class Request:
    """A cluster, and the share that is saved there: what the notes say, or what has to be."""

    cluster: str
    gain: str = ""


GAINING = (
    Request("star:gpus=6,bandwidth=1,wide=1,wide_bandwidth=10,alpha=0", "40 %"),
    Request("star:gpus=8,bandwidth=1,wide=2,wide_bandwidth=4,alpha=0", "43 %"),
    Request("random:gpus=6,switches=2"),
    Request("random:gpus=16,switches=4"),
    Request("random:gpus=32,switches=8"),
    Request("random:gpus=64,switches=16"),
)
EVEN = tuple(
    Request(cluster, "0 %")
    for cluster in (
        "thesis-dgx-a100:hosts=2",
        "thesis-dgx-a100:hosts=16",
        "torus:shape=4x4",
        "hypercube:dimension=4",
        "fat-tree:radix=4",
        "dragonfly",
        "ndv2:hosts=1",
        "mi250",
        "mi250:hosts=2",
    )
)


def all_reduces(repeat: int) -> Iterator[Table]:
    """Yield optimal all-reduces of uneven networks, then of hardware, where nothing is gained."""
    solve(reducing("star"), "orbit-trees")
    for title, rows in (("uneven networks", GAINING), ("hardware and regular networks", EVEN)):
        headings = (
            "cluster",
            "GPUs",
            "2 x all-gather",
            "all-reduce",
            "gain",
            "at most",
            "no plan is better",
        )
        made = table(f"all-reduce, {title}: s/GB", (*headings, "depth", "s", "CPU s"), ("gain",))
        for row in rows:
            problems = [reducing(row.cluster) for _ in range(repeat)]
            found, seconds = median_of(
                repeat,
                lambda problems=problems: solve(problems.pop(), "orbit-trees"),  # type: ignore[misc]
            )
            done = f"{seconds.wall:.2f}", f"{seconds.processor:.2f}"
            made.add_row(row.cluster, *compared(row.cluster, found), *done, row.gain)
            Console(stderr=True).print(row.cluster, *done, style="dim")
        yield made


def reducing(cluster: str) -> Problem:
    """Return the all-reduce of as many GB as there are GPUs, on a new cluster."""
    asked = gathering(cluster)
    return replace(asked, collective=all_reduce(asked.collective.ranks, asked.collective.size))


def halves_of(cluster: str) -> Fraction:
    """Return s/GB of two all-gathers, one after the other."""
    return 2 * forest_rate(gathering(cluster)).makespan / 10**6


def whole_of(found: Result) -> Fraction:
    """Return s/GB of the all-reduce found."""
    assert isinstance(found.plan, Forest)
    return Fraction(steady_makespan(found.problem, found.plan)) / 10**6


def compared(cluster: str, found: Result) -> tuple[str, ...]:
    """Return GPUs, both rates, the share saved, the most that can be, proof and depth as texts."""
    assert isinstance(found.plan, Forest)
    ranks = len(found.problem.topology.ranks)
    halves, whole = halves_of(cluster), whole_of(found)
    return (
        str(ranks),
        str(halves),
        str(whole),
        f"{float(1 - whole / halves):.1%}",
        f"{1 - ranks / (2 * (ranks - 1)):.1%}",
        said(found.status is not Status.FEASIBLE),
        str(found.plan.depth),
    )
