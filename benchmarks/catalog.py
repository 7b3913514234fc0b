"""How soon a catalog of many plans answers what was asked before, under other names.

Plans are of closed forms on small clusters: each method solves every cluster once, and its plan is
scaled to many sizes, verified and replayed at each. Then clusters of the catalog are asked for
again, their devices renamed and in another order, at a size that is there: the time is that of the
whole answer, from the drawing to a result: canonical form, look-up, relabelling, verification and
replay. Clusters that differ in one bandwidth are asked for, too, and must not be found.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from ccl.collective import CollectiveKind, make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.result import Result, Stop, conclude
from ccl.topology import Topology
from formulations import solve
from formulations.bounds import quick_bounds
from formulations.campaigns.catalog import Catalog
from formulations.campaigns.catalog.relabelling import shuffled
from formulations.campaigns.catalog.tuning import scaled, sized
from gallery import open_cluster

CLUSTERS = (
    "ring:gpus=4", "ring:gpus=6", "ring", "line", "star:gpus=5", "full-mesh", "torus:shape=3x3",
    "mesh", "hypercube:dimension=3", "dgx-1v", "ndv2:hosts=2", "pcie-server", "thesis-2.1",
    *(f"random:gpus=6,switches=2,spread=4,seed={seed}" for seed in range(12)),
)  # fmt: skip
KINDS: tuple[CollectiveKind, ...] = ("all-gather", "all-reduce")
METHODS = ("direct", "ring", "halving-doubling", "recursive-doubling")
AGREED = 0.050
"""Seconds within which an answer was asked for."""

PlansOption = Annotated[int, typer.Option(help="Plans to keep.")]
QuestionsOption = Annotated[int, typer.Option(help="Questions to ask.")]
PathOption = Annotated[
    Path | None,
    typer.Option(
        help="Where the catalog is made, or lies full; by default it is made and thrown away."
    ),
]


@dataclass(frozen=True)
class Answers:
    """Seconds of answers, on the clock and of the processor, and what came of them."""

    wall: tuple[float, ...]
    work: tuple[float, ...]
    hits: int
    false_hits: int
    changed: int


def main(
    plans: PlansOption = 10_000, questions: QuestionsOption = 300, path: PathOption = None
) -> None:
    """Fill a catalog, then ask for what it holds on clusters with other names."""
    with tempfile.TemporaryDirectory() as folder:
        catalog = Catalog(path or Path(folder) / "catalog.sqlite")
        begin = time.perf_counter()
        if catalog.count() < plans:
            _fill(catalog, list(_bases()), plans)
        took = time.perf_counter() - begin
        found = _asked(catalog, questions)
        _tell(catalog, found, took=took)


def _bases() -> Iterator[Result]:
    """Yield a plan of every method that takes a cluster and a collective, at 1 MB."""
    for name in track(CLUSTERS, "solving", console=Console(stderr=True)):
        topology = open_cluster(name)
        for kind in KINDS:
            problem = Problem(topology, make_collective(kind, len(topology.ranks), 1e6))
            for method in METHODS:
                try:
                    yield solve(problem, method)
                except ProblemError:
                    continue


def _fill(catalog: Catalog, bases: list[Result], plans: int) -> None:
    """Keep the plans at as many sizes as it takes, in portions."""
    sizes = -(-plans // len(bases))
    grid = [round(1e3 * 1e6 ** (i / max(1, sizes - 1))) for i in range(sizes)]
    left = plans
    for size in track(grid, "keeping", console=Console(stderr=True)):
        results = [_at(each, float(size)) for each in bases[:left]]
        catalog.keep_all(results)
        left -= len(results)


def _at(base: Result, size: float) -> Result:
    """Return the plan of a result at another size, verified and replayed, with its bounds there."""
    problem = sized(base.problem, size)
    plan, _ = scaled(base.problem, base.plan, size)
    return conclude(
        problem,
        plan,
        bounds=quick_bounds(problem),
        stop=Stop.CONSTRUCTED,
        formulation=base.formulation,
        options=base.options,
        solve_time=base.solve_time,
    )


def _asked(catalog: Catalog, questions: int) -> Answers:
    """Ask for plans of the catalog on shuffled clusters, and on clusters that have changed."""
    chance = random.Random(0)
    entries = catalog.entries()
    asked = [_question(catalog, chance.choice(entries).number, i) for i in range(questions)]
    wall, work, hits, false_hits = [], [], 0, 0
    for problem, method in asked:
        begin, began = time.perf_counter(), time.process_time()
        found = catalog.find(problem, method)
        wall.append(time.perf_counter() - begin)
        work.append(time.process_time() - began)
        hits += found is not None
    for problem, method in asked:
        changed = replace(problem, topology=_changed(problem.topology, chance))
        false_hits += catalog.find(changed, method) is not None
    return Answers(tuple(wall), tuple(work), hits, false_hits, len(asked))


def _question(catalog: Catalog, number: int, seed: int) -> tuple[Problem, str]:
    """Return the problem of a plan on a shuffled cluster, and the method that found it."""
    result = catalog.load(number)
    assert result is not None
    other = shuffled(result.problem.topology, seed=seed)
    return replace(result.problem, topology=other), result.formulation


def _changed(topology: Topology, chance: random.Random) -> Topology:
    """Make one link a thousandth wider."""
    links = list(topology.links)
    place = chance.randrange(len(links))
    links[place] = replace(links[place], bandwidth=links[place].bandwidth * 1.001)
    return replace(topology, links=tuple(links))


def _tell(catalog: Catalog, found: Answers, *, took: float) -> None:
    plans, nbytes = catalog.count(), catalog.path.stat().st_size
    table = Table(title="Repeated questions under other names", title_justify="left")
    for heading in ("", "median ms", "95 % ms", "most ms"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, seconds in (("on the clock", found.wall), ("of the processor", found.work)):
        ranked = sorted(seconds)
        shown = (statistics.median(ranked), ranked[int(0.95 * len(ranked))], ranked[-1])
        table.add_row(name, *(f"{1e3 * each:.1f}" for each in shown))
    console = Console(highlight=False)
    console.print(table)
    told = partial(console.print, soft_wrap=True)
    asked, slowest = len(found.wall), max(found.wall)
    told(
        f"{plans:,} plans of {len(CLUSTERS)} clusters in {nbytes / 1e6:.1f} MB, "
        f"{nbytes / plans:,.0f} bytes each, there after {took:.0f} s"
    )
    told(f"{found.hits} of {asked} shuffled clusters hit")
    told(f"{found.false_hits} of {found.changed} clusters with a wider link hit")
    met = (
        statistics.median(found.wall) < AGREED
        and found.hits == asked
        and not found.false_hits
        and plans >= 10_000
    )
    every = "every one" if slowest < AGREED else f"{sum(t < AGREED for t in found.wall)} of {asked}"
    told(
        f"as asked: {'yes' if met else 'no'}, {statistics.median(found.wall) * 1e3:.1f} ms in the "
        f"middle and {every} under {AGREED * 1e3:.0f} ms, {plans:,} plans, "
        f"{found.hits}/{asked} hits"
    )
