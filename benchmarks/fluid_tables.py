"""The thesis' tables 6.3 to 6.8, and the same questions on up to 100,000 GPUs.

Seconds are those from a cluster that is made to an answer: symmetry, linear program, rate and,
where asked for, the least weighted data at that rate. That of making the cluster stands apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rich.table import Table

from benchmarks.measuring import said, table
from benchmarks.thesis_tables import CELLS, Cell, Kind, Used, agrees
from benchmarks.timing import GB, Seconds, median_of
from ccl.topology import Topology
from formulations.engines.fluid_lp.plain import link_costs
from formulations.engines.orbit_lp.group import Uniform
from formulations.engines.orbit_lp.lp import OrbitSolution, solve_orbits
from gallery import open_cluster


def opened(name: str, *, declared: bool = True) -> Topology:
    """Return a new cluster, which remembers nothing, perhaps without what its builder declares."""
    made = open_cluster(name)
    return made if declared else replace(made, declared=())


def optimum(topology: Topology, kind: Kind, *, weighted: bool) -> OrbitSolution:
    """Return the best rate when each GPU gives a GB, to all or to each, and the least data."""
    asked = Uniform(topology, kind, len(topology.ranks) * GB)
    return solve_orbits(asked, costs=link_costs(topology, "ports") if weighted else None)


def tables(repeat: int) -> Iterator[Table]:
    """Yield the six tables in one, cell by cell."""
    solved(CELLS[0], 1)
    headings = ("table", "links", "GPUs", "s/GB", "data, GB", "columns", "s", "CPU s", "as printed")
    made = table(
        "thesis, tables 6.3 to 6.8: DGX A100 on rails",
        (*headings, "faster"),
        ("s/GB", "data, GB", "s"),
    )
    told = []
    for cell in CELLS:
        row = _cell(cell, *solved(cell, repeat))
        told.append(row[len(headings) - 1])
        made.add_row(*row)
    why = [f"{cell.table}, {8 * cell.hosts} GPUs: {cell.slip}." for cell in CELLS if cell.slip]
    counts = f"as printed: {told.count('yes')}; not: {told.count('no')}, {len(why)} of them known:"
    made.caption = "\n".join([counts, *why])
    yield made


def _cell(cell: Cell, found: OrbitSolution, seconds: Seconds) -> tuple[str, ...]:
    latency, data = found.makespan * 1e-6, (found.cost or 0.0) / GB
    same = matches(cell, latency, data)
    return (
        f"{cell.table} {cell.kind}",
        cell.used,
        str(8 * cell.hosts),
        f"{latency:.5g}",
        f"{data:.7g}",
        str(found.columns),
        f"{seconds.wall:.3f}",
        f"{seconds.processor:.3f}",
        said(all(same)) if same else "",
        f"{float(cell.seconds) / seconds.wall:,.0f} x" if cell.seconds else "",
        cell.latency,
        cell.objective,
        cell.seconds,
    )


def solved(cell: Cell, repeat: int) -> tuple[OrbitSolution, Seconds]:
    """Return the optimum of a cell, and the median of the seconds on a new cluster each time."""
    clusters = [opened(cell.cluster) for _ in range(repeat)]
    return median_of(repeat, lambda: optimum(clusters.pop(), cell.kind, weighted=True))


def matches(cell: Cell, latency: float, data: float) -> tuple[bool, ...]:
    """Say which of the figures that a cell prints are those found: s/GB, GB."""
    if not cell.latency:
        return ()
    return (
        agrees(latency, cell.latency, digits=cell.latency_digits),
        agrees(data, cell.objective, digits=4),
    )


@dataclass(frozen=True, slots=True)
class Large:
    """A cluster and within how many seconds it has to be answered; 0 where nothing is asked."""

    used: Used
    hosts: int
    kind: Kind
    declared: bool
    weighted: bool
    limit: float
    published: str = ""

    @property
    def cluster(self) -> str:
        """What opens its cluster."""
        return f"thesis-dgx-a100:hosts={self.hosts},used={self.used}"


LARGE = (
    Large("all", 16, "all-gather", declared=True, weighted=True, limit=0.2, published="9,870 s"),
    Large("all", 16, "all-gather", declared=False, weighted=True, limit=0.2, published="9,870 s"),
    Large("all", 16, "all-to-all", declared=False, weighted=True, limit=0.2, published="330 s"),
    *(
        Large("nvlink-only", hosts, kind, declared=declared, weighted=False, limit=limit)
        for hosts, declared, limit in (
            (16, False, 0.2),
            (128, False, 0.5),
            (4096, True, 5.0),
            (12500, True, 15.0),
        )
        for kind in ("all-gather", "all-to-all")
    ),
)


def scale(repeat: int) -> Iterator[Table]:
    """Yield rates of up to 100,000 GPUs, with closed forms to compare them with."""
    optimum(opened(LARGE[0].cluster), "all-gather", weighted=True)
    headings = ("links", "GPUs", "collective", "s/GB", "closed form", "data, GB", "columns")
    made = table(
        "rates of DGX A100 on rails, up to 100,000 GPUs",
        (*headings, "symmetry", "making s", "s", "CPU s", "asked s", "as asked"),
        ("thesis",),
    )
    for row in LARGE:
        made.add_row(*_row(row, repeat))
    yield made


def _row(row: Large, repeat: int) -> tuple[str, ...]:
    found, making, seconds = _timed(row, repeat)
    return (
        row.used,
        f"{8 * row.hosts:,}",
        row.kind,
        f"{found.makespan * 1e-6:.7g}",
        f"{closed_form(row.hosts, row.kind):.7g}",
        "" if found.cost is None else f"{found.cost / GB:.7g}",
        str(found.columns),
        "declared" if row.declared else "found",
        f"{making.wall:.2f}",
        f"{seconds.wall:.3f}",
        f"{seconds.processor:.3f}",
        f"{row.limit:g}",
        said(seconds.wall <= row.limit),
        row.published,
    )


def _timed(row: Large, repeat: int) -> tuple[OrbitSolution, Seconds, Seconds]:
    """Return the optimum, the seconds of making the cluster, and the median of those it took."""
    clusters: list[Topology] = []

    def make() -> None:
        clusters.append(opened(row.cluster, declared=row.declared))

    def answer() -> OrbitSolution:
        return optimum(clusters.pop(), row.kind, weighted=row.weighted)

    _, making = median_of(repeat, make)
    found, seconds = median_of(repeat, answer)
    return found, making, seconds


def closed_form(hosts: int, kind: Kind) -> float:
    """Return s/GB of three or more nodes on rails: what enters a node through 8 ports of 25 GB/s.

    8 (N - 1) shards of an all-gather; in an all-to-all as many for each of its 8 GPUs.
    """
    shards = 8 * (hosts - 1)
    return shards * (1 if kind == "all-gather" else 8) / (8 * 25)
