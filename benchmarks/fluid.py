"""Fluid optima beside the papers' figures, part by part.

``tables``
    Tables 6.3 to 6.8 of the thesis: latency, objective and seconds of all 34 cells.
``forestcoll``
    ForestColl's optimal algbw as fractions.
``scale``
    Rates of 128 to 100,000 GPUs.
``forests``
    Forests of 1,024 GPUs on rails, 128 dies, 128 GPUs with 32 switches joined by chance.
``pipeline``
    ForestColl's search, splitting and packing.
``agree``
    All engines on the all-gathers of 200 random networks and of the gallery: their rates agree to a
    millionth, or somebody is wrong. The plain program, the orbit program, trees, mirrored
    Dantzig-Wolfe and the worst cut have little in common but the question. An engine that cannot
    take a cluster says so and is left out there; of the cut that is any cluster where some device
    lets out more or less than in, or a memory copies.
``all-reduce``
    All-reduces whose halves share links, beside twice an all-gather.
``toys``
    Figures 2.1 to 2.7 of the thesis.
``steps``
    Its theorem 4: steady states as schedules of 1 to 256 staggered chunks.

Seconds are medians; published ones are other people's machines and solvers.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from benchmarks.forests import all_reduces, forestcoll, forests, pipeline, steps
from benchmarks.measuring import GB, PartArgument, parts_named, progress, said, show, table
from benchmarks.thesis import scale, tables, toys
from ccl.collective import all_gather
from ccl.errors import CclError
from ccl.problem import Problem
from ccl.topology import Topology
from formulations.engines.fluid_lp.dantzig_wolfe import decompose
from formulations.engines.fluid_lp.plain import solve_plain
from formulations.engines.forestcoll.search import forest_rate
from formulations.engines.orbit_lp.lp import solve_orbits
from formulations.engines.steady_state import graph_of, without_copies
from formulations.engines.tree_columns.search import best_trees
from gallery import catalog, open_cluster

TOLERANCE = 1e-6
"""Relative difference that passes."""

COLUMNS = 50_000
"""Columns of the plain program, or of one origin's, above which it is left out."""

LIMIT = 30.0
"""Seconds after which it has not answered: how degenerate it is depends on the cluster."""

RANDOM = 200


@dataclass(frozen=True)
class Compared:
    """µs of each engine that took a cluster, and why others did not."""

    name: str
    gpus: int
    makespans: Mapping[str, float]
    refused: Mapping[str, str]

    @property
    def apart(self) -> float:
        """Relative difference of the largest and the smallest."""
        values = list(self.makespans.values())
        return max(values) / min(values) - 1 if values else 0.0


def _plain(problem: Problem) -> float:
    columns = _columns(problem.topology)
    if columns > COLUMNS:
        raise CclError(f"{columns:,} columns")
    free = np.zeros(len(problem.topology.links))
    return solve_plain(problem, costs=free, time_limit=LIMIT).makespan


def _trees(problem: Problem) -> float:
    found = best_trees(problem, seconds=LIMIT)
    if not found.proved:
        raise CclError(f"at least {found.bound:.6g} µs after {LIMIT:g} s")
    return float(found.time)


def _mirrored(problem: Problem) -> float:
    columns = _columns(problem.topology) // len(problem.topology.ranks)
    if columns > COLUMNS:
        raise CclError(f"{columns:,} columns for one origin")
    late = time.perf_counter() + LIMIT
    return decompose(problem, left=lambda: late - time.perf_counter()).makespan


ENGINES: dict[str, Callable[[Problem], float]] = {
    "plain": _plain,
    "orbits": lambda problem: solve_orbits(problem).makespan,
    "trees": _trees,
    "mirrored": _mirrored,
    "cut": lambda problem: float(forest_rate(problem).makespan),
}


def compared(name: str, topology: Topology) -> Compared:
    """Ask all engines for the rate of an all-gather to which each GPU gives a GB."""
    ranks = len(topology.ranks)
    makespans, refused = {}, {}
    for engine, rate in ENGINES.items():
        try:
            makespans[engine] = rate(Problem(topology, all_gather(ranks, ranks * GB)))
        except CclError as error:
            refused[engine] = str(error)
    return Compared(name, ranks, makespans, refused)


def random_network(seed: int) -> tuple[str, Topology]:
    """Return one of the random networks: 3 to 8 GPUs, up to 4 switches, links of 1 to 9 GB/s.

    Links of every third go one way.
    """
    gpus, switches = 3 + seed % 6, seed // 6 % 5
    degree = min(2 + seed % 3, gpus + switches - 1)
    one_way = str(seed % 3 == 2).lower()
    name = f"random:gpus={gpus},switches={switches},degree={degree},one_way={one_way},seed={seed}"
    return name, open_cluster(name)


def small_clusters() -> Iterator[tuple[str, Topology]]:
    """Yield the gallery's clusters as they open, and more shapes of some."""
    names = [each.name for each in catalog()]
    more = ("ring:gpus=8,bandwidth=10,chord_bandwidth=1", "star:wide=2", "torus:shape=2x3")
    shapes = ("thesis-dgx-a100:hosts=1,used=all", "forestcoll-12:hosts=4", "ndv2:hosts=1")
    for name in (*names, *more, *shapes):
        yield name, open_cluster(name)


def agree(_repeat: int) -> Iterator[Table]:
    """Yield who agrees with whom on random networks and on the gallery."""
    yield _agreement("random networks", map(random_network, range(RANDOM)), each=False)
    yield _agreement("the gallery", small_clusters(), each=True)


def _agreement(title: str, clusters: Iterator[tuple[str, Topology]], *, each: bool) -> Table:
    made = table(f"rates of all-gathers, {title}", ("cluster", "GPUs", *ENGINES, "apart"))
    worst, taken, alone = 0.0, defaultdict[str, int](int), 0
    begin = time.perf_counter()
    for name, topology in clusters:
        found = compared(name, topology)
        worst = max(worst, found.apart)
        alone += len(found.makespans) < 2
        for engine in found.makespans:
            taken[engine] += 1
        if each or found.apart > TOLERANCE:
            values = [found.makespans.get(engine) for engine in ENGINES]
            texts = ["" if value is None else f"{value * 1e-6:.7g}" for value in values]
            made.add_row(name, str(found.gpus), *texts, f"{found.apart:.1e}")
            progress(name, dict(found.refused))
    counts = ", ".join(f"{engine} {count}" for engine, count in taken.items())
    made.caption = (
        f"s/GB; answered by {counts}; fewer than two answers: {alone}; "
        f"largest difference {worst:.1e}; all within 1e-6: {said(worst <= TOLERANCE)}; "
        f"{time.perf_counter() - begin:.0f} s"
    )
    return made


def _columns(topology: Topology) -> int:
    """Return how many columns the plain program has: a flow for each pair on each edge."""
    ranks = len(topology.ranks)
    return ranks * (ranks - 1) * without_copies(graph_of(topology)).edges


Part = Callable[[int], Iterator[Table]]
"""Tables of a part, each time measured so often."""

PARTS: dict[str, Part] = {
    "tables": tables,
    "forestcoll": forestcoll,
    "scale": scale,
    "forests": forests,
    "pipeline": pipeline,
    "agree": agree,
    "all-reduce": all_reduces,
    "toys": toys,
    "steps": steps,
}


def main(
    part: PartArgument = "all",
    *,
    repeat: Annotated[int, typer.Option(min=1, help="Times each is measured; median.")] = 3,
) -> None:
    """Print optimal rates, forests and their seconds beside the figures of the papers."""
    for each in parts_named(part, PARTS):
        show(each(repeat))
    busy = f"{os.getloadavg()[0]:.1f} tasks on {os.cpu_count()} processors"
    print(f"at the end: {busy}; more of them stretch the seconds of the clock")
