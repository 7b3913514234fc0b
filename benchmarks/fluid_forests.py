"""Exact rates of all-gathers, and forests that have them, verified and replayed.

Seconds of a forest are those of a whole solve on a new cluster: symmetry, search, exact weights,
verification and replay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import said, table
from benchmarks.timing import GB, median_of
from ccl.collective import all_gather
from ccl.errors import CclError
from ccl.plans import Forest
from ccl.problem import Problem
from ccl.result import Result
from ccl.tree_embedding import steady_makespan
from formulations import solve
from formulations.engines.forestcoll.search import fixed_rate, forest_rate, network_of
from gallery import open_cluster

READABLE = 10**6
"""Fractions with a smaller denominator are printed; rates that are not proved have large ones."""


@dataclass(frozen=True, slots=True)
class Published:
    """An optimal algbw in GB/s; `trees` per root, or 0 for any number."""

    title: str
    cluster: str
    algbw: str
    trees: int = 0


PUBLISHED = (
    Published("DGX A100", "dgx-a100", "342.857"),
    Published("DGX A100 x 2", "dgx-a100:hosts=2,fabric=flat", "346.667"),
    Published("DGX A100 x 4", "dgx-a100:hosts=4,fabric=flat", "266.667"),
    Published("MI250", "mi250", "342.857"),
    Published("MI250 x 2", "mi250:hosts=2", "354.133"),
    Published("MI250 x 2, 2 trees per die", "mi250:hosts=2", "341.333", 2),
)
"""ForestColl, section 4.5, and its published program on the same clusters."""


def gathering(cluster: str) -> Problem:
    """Return the all-gather to which every GPU gives a GB, on a new cluster."""
    topology = open_cluster(cluster)
    return Problem(topology, all_gather(len(topology.ranks), len(topology.ranks) * GB))


def algbw_of(row: Published) -> Fraction:
    """Return the best algbw of an all-gather in GB/s."""
    rate = forest_rate(gathering(row.cluster))
    ranks = len(rate.network.topology.ranks)
    if not row.trees:
        return ranks * rate.shards
    network = network_of(gathering(row.cluster))
    best = fixed_rate(network, row.trees, best=rate.speed / network.unit)
    return ranks * row.trees * network.unit / best.time


def forestcoll(repeat: int) -> Iterator[Table]:
    """Yield ForestColl's optimal algbw as fractions."""
    algbw_of(PUBLISHED[0])
    made = table(
        "ForestColl's optimal all-gather", ("cluster", "algbw GB/s", "is", "s", "same"), ("GB/s",)
    )
    for row in PUBLISHED:
        found, seconds = median_of(repeat, lambda row=row: algbw_of(row))  # type: ignore[misc]
        same = said(f"{float(found):.3f}" == row.algbw)
        made.add_row(
            row.title, str(found), f"{float(found):.3f}", f"{seconds.wall:.4f}", same, row.algbw
        )
    yield made


@dataclass(frozen=True, slots=True)
class Wanted:
    """A forest to be found within some seconds, what others needed, seconds after which to stop."""

    cluster: str
    seconds: float
    published: str = ""
    limit: float | None = None


FORESTS = (
    Wanted("thesis-dgx-a100:hosts=128", 5.0),
    Wanted("mi250:hosts=8", 10.0),
    Wanted("random:gpus=128,switches=32,degree=6", 30.0),
    Wanted("random:gpus=128,switches=32,degree=6,seed=1", 30.0),
    Wanted("random:gpus=128,switches=32,degree=6,one_way=true", 30.0, limit=120.0),
)
PIPELINE = (
    Wanted("mi250:hosts=2", 5.0),
    Wanted("thesis-dgx-a100:hosts=16", 10.0, "39.2 s (thesis, 6.9)"),
    Wanted("thesis-dgx-a100:hosts=32", 60.0, "315 s (thesis, 6.9)"),
)


def forests(repeat: int) -> Iterator[Table]:
    """Yield forests by column generation with trees."""
    yield from _solved("forests by column generation with trees", "orbit-trees", FORESTS, repeat)


def pipeline(repeat: int) -> Iterator[Table]:
    """Yield forests by ForestColl's search, splitting and packing."""
    yield from _solved("ForestColl's own pipeline", "forestcoll", PIPELINE, repeat)


def _solved(title: str, formulation: str, rows: tuple[Wanted, ...], repeat: int) -> Iterator[Table]:
    headings = ("cluster", "GPUs", "R s/GB", "at the cut", "trees per GPU", "depth", "µs replayed")
    made = table(title, (*headings, "s", "CPU s", "asked s", "as asked"), ("others",))
    solve(gathering("thesis-dgx-a100:hosts=2"), formulation)
    for row in rows:
        problems = [gathering(row.cluster) for _ in range(repeat)]
        try:
            found, seconds = median_of(
                repeat,
                lambda: solve(problems.pop(), formulation, time_limit=row.limit),  # noqa: B023
            )
        except CclError as error:
            made.add_row(row.cluster, "", "", "", "", "", str(error))
            continue
        done = f"{seconds.wall:.2f}", f"{seconds.processor:.2f}", f"{row.seconds:g}"
        told = said(seconds.wall <= row.seconds)
        # A part takes minutes, and its table comes at the end.
        Console(stderr=True).print(row.cluster, *done[:2], style="dim")
        made.add_row(row.cluster, *described(found), *done, told, row.published)
    yield made


def described(found: Result) -> tuple[str, ...]:
    """Return GPUs, exact rate, whether it is that of the cut, trees, depth and µs as texts."""
    assert isinstance(found.plan, Forest)
    problem, forest = found.problem, found.plan
    rate = Fraction(steady_makespan(problem, forest)) / 10**6
    ranks = len(problem.topology.ranks)
    at_cut = rate == forest_rate(problem).makespan / 10**6
    trees = len(forest.trees) * forest.images / ranks
    return (
        f"{ranks:,}",
        f"{rate} = {float(rate):.6g}" if rate.denominator < READABLE else f"{float(rate):.6g}",
        said(at_cut),
        f"{trees:.3g}",
        str(forest.depth),
        f"{found.makespan:.6g}",
    )
