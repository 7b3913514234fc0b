"""The thesis' tables 6.3 to 6.8, the same questions on up to 100,000 GPUs, and its examples.

The tables are of all-gather and all-to-all of the DGX A100 on rails: latency in s/GB when every GPU
gives 1 GB to all (all-gather) or to each (all-to-all), to three digits; objective in GB, data times
cost, to four; seconds of its mirrored Dantzig-Wolfe. Numbers stay texts, because how many digits
were printed says how well they have to agree. Our seconds are those from a cluster that is made to
an answer: symmetry, linear program, rate and, where asked for, the least weighted data at that
rate. That of making the cluster stands apart.

The examples, figures 2.1 to 2.7, are broadcasts from the first GPU. Links carry x = 32 GB/s and the
memory y = 96 GB/s, of 32 MB in all, so that a step takes 1 ms. What the text says is printed beside
ours; figures that it does not print, such as what a memory that copies reaches in 2.3 and 2.4, have
an argument of ours there and are marked as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Literal

import numpy as np
from rich.table import Table

from benchmarks.measuring import GB, Seconds, median_of, said, table
from ccl.collective import broadcast
from ccl.plans import Forest, Tree
from ccl.problem import Problem
from ccl.topology import DeviceKind, Link, Topology, device
from ccl.tree_embedding import steady_makespan
from formulations import solve
from formulations.engines.fluid_lp.plain import FluidSolution, link_costs, solve_plain
from formulations.engines.orbit_lp.group import Uniform
from formulations.engines.orbit_lp.lp import OrbitSolution, solve_orbits
from gallery import open_cluster

Used = Literal["nvlink-only", "no-nvlink", "all"]
Kind = Literal["all-gather", "all-to-all"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A row of one of the tables.

    Parameters
    ----------
    table
        Its number.
    kind, used, hosts
        Collective, which links, how many nodes of 8 GPUs.
    seconds, latency, objective
        As printed; empty where nothing is.
    """

    table: str
    kind: Kind
    used: Used
    hosts: int
    seconds: str
    latency: str
    objective: str

    @property
    def cluster(self) -> str:
        """What opens its cluster."""
        return f"thesis-dgx-a100:hosts={self.hosts},used={self.used}"

    @property
    def latency_digits(self) -> int:
        """Digits of its latency: three, but for one that is printed with two."""
        return 2 if self.latency == "0.021" else 3

    @property
    def slip(self) -> str:
        """Why a figure that is printed cannot be right, or nothing."""
        return SLIPS.get((self.table, self.hosts), "")


HOSTS = (1, 2, 4, 8, 16, 32)

_LATENCIES = {
    "6.3": "0.0233 0.0462 0.12 0.28 0.60 1.24",
    "6.4": "0.0219 0.469 0.969 1.97 3.97 -",
    "6.5": "0.0211 0.0452 0.12 0.28 0.60 -",
    "6.6": "0.0233 0.32 0.96 2.24 4.80 9.92",
    "6.7": "0.375 0.75 1.5 3.0 6.0 12.0",
    "6.8": "0.021 0.32 0.96 2.24 4.8 9.92",
}
_OBJECTIVES = {
    "6.3": "112 516.9 2176 8960 36350 146400",
    "6.4": "92 424 1808 7456 30270 -",
    "6.5": "109.7 504.9 2092 8600 33640 -",
    "6.6": "112 960 4864 21500 90110 368600",
    "6.7": "112 736 3520 15230 63230 257500",
    "6.8": "112 764.2 3689 16020 66610 271500",
}
_SECONDS = {
    "6.3": "0.247 19.3 42.8 254 865 5360",
    "6.4": "0.257 3.9 22 360 4200 -",
    "6.5": "2.95 27.7 82.1 634 9870 -",
    "6.6": "0.854 1.04 4.36 21.6 106 633",
    "6.7": "0.198 0.902 4.58 15.4 97.1 467",
    "6.8": "1.02 2.84 15.1 75.1 330 1550",
}
_SCENARIOS: tuple[tuple[str, Kind, Used], ...] = (
    ("6.3", "all-gather", "nvlink-only"),
    ("6.4", "all-gather", "no-nvlink"),
    ("6.5", "all-gather", "all"),
    ("6.6", "all-to-all", "nvlink-only"),
    ("6.7", "all-to-all", "no-nvlink"),
    ("6.8", "all-to-all", "all"),
)


def _printed(text: str) -> list[str]:
    return ["" if each == "-" else each for each in text.split()]


CELLS: tuple[Cell, ...] = tuple(
    Cell(table, kind, used, *row)
    for table, kind, used in _SCENARIOS
    for row in zip(
        HOSTS,
        _printed(_SECONDS[table]),
        _printed(_LATENCIES[table]),
        _printed(_OBJECTIVES[table]),
        strict=True,
    )
)
"""All 36 rows; two of them are empty."""

_BELOW = (
    "its objective is below the least of the cluster inferred here: another detail of the cluster, "
    "a relaxation or an early stop"
)
SLIPS: dict[tuple[str, int], str] = {
    ("6.4", 1): "a factor of ten: 7 shards over 32 GB/s take 0.219 s, at the objective printed",
    ("6.5", 4): _BELOW,
    ("6.5", 8): _BELOW,
    ("6.5", 16): _BELOW,
}
"""Table and nodes -> what is wrong there."""


def agrees(value: float, printed: str, *, digits: int) -> bool:
    """Say whether a value rounds to what is printed.

    Parameters
    ----------
    value
        Ours.
    printed
        Theirs.
    digits
        Significant ones that theirs was rounded to.
    """
    theirs = Decimal(printed)
    unit = Decimal(1).scaleb(theirs.adjusted() - digits + 1)
    return abs(Decimal(value) - theirs) <= unit / 2 * (1 + _ROUNDING)


_ROUNDING = Decimal("1e-4")
"""Share of half a digit that a value computed in floating point may be beyond it."""


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
        row = _cell_row(cell, *solved(cell, repeat))
        told.append(row[len(headings) - 1])
        made.add_row(*row)
    why = [f"{cell.table}, {8 * cell.hosts} GPUs: {cell.slip}." for cell in CELLS if cell.slip]
    counts = f"as printed: {told.count('yes')}; not: {told.count('no')}, {len(why)} of them known:"
    made.caption = "\n".join([counts, *why])
    yield made


def _cell_row(cell: Cell, found: OrbitSolution, seconds: Seconds) -> tuple[str, ...]:
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
        made.add_row(*_large_row(row, repeat))
    yield made


def _large_row(row: Large, repeat: int) -> tuple[str, ...]:
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


X, Y, SIZE = 32.0, 96.0, 32e6
STEP = SIZE / X * 1e-3
"""µs."""

COUNTS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True, slots=True)
class Row:
    """A number of ours beside that of the text; `own` if the text does not print it."""

    figure: str
    what: str
    ours: float
    text: float
    unit: str
    own: bool = False

    @property
    def same(self) -> bool:
        """Whether both are the same."""
        return abs(self.ours - self.text) <= 1e-6 * abs(self.text)


def rows() -> Iterator[Row]:
    """Yield all numbers."""
    yield from _pipelining()
    yield from _memory()
    yield from _limited()
    yield from _adjusted()
    yield from _beside()


def toys(_repeat: int) -> Iterator[Table]:
    """Figures 2.1 to 2.7 of the thesis."""
    made = table("thesis, figures 2.1 to 2.7", ("figure", "what", "ours", "unit"), ("text", ""))
    found = list(rows())
    for row in found:
        note = "argued here" if row.own else ""
        made.add_row(row.figure, row.what, f"{row.ours:.6g}", row.unit, f"{row.text:.6g}", note)
    made.caption = f"all as they should be: {said(all(row.same for row in found))}"
    yield made


def _pipelining() -> Iterator[Row]:
    """K chunks take K + 1 steps of 1/K each: no number of them is as fast as the fluid."""
    yield Row("2.1", "fluid, both links busy", _fluid("thesis-2.1").makespan, STEP, "µs")
    topology = open_cluster("thesis-2.1")
    for count in COUNTS:
        asked = Problem(topology, broadcast(3, SIZE, chunks=count))
        best = solve(asked, time_limit=10.0).makespan
        yield Row("2.1", f"best schedule, K = {count}", best, STEP * (1 + 1 / count), "µs")


def _memory() -> Iterator[Row]:
    """Go from 1 over memory, 2 and memory to 3 in four steps, or write once and read in two.

    What is said of the first way leaves out that the memory has kept what 1 wrote, so that here
    it passes two memories.
    """
    asked = _broadcast(open_cluster("thesis-2.2"))
    names = "g0", "mem0", "g1", "mem1", "g2"
    kinds: tuple[DeviceKind, ...] = "gpu", "memory", "gpu", "memory", "gpu"
    stops = tuple(device(kind, name) for kind, name in zip(kinds, names, strict=True))
    relayed = _broadcast(Topology("", stops, tuple(Link(*ends, X) for ends in pairwise(names))))
    yield Row("2.2", "steps from GPU to GPU", solve(relayed).makespan / STEP, 4, "steps")
    yield Row("2.2", "steps with memory", solve(asked).makespan / STEP, 2, "steps")
    once = _written(asked.topology) / SIZE
    yield Row("2.2", "written to memory", once, 1, "times")
    twice = _written(_seen(asked.topology, "switch")) / SIZE
    yield Row("2.2", "written without memory", twice, 2, "times")


def _limited() -> Iterator[Row]:
    """Reach y/6 if three deliveries write and read the memory each, y/4 if two do.

    With 2.4's direct link one of three deliveries needs no memory. A memory that copies is written
    once and read for each GPU that has nothing else: y/4 with three, y/3 with two, up to x.
    """
    for figure, switch, memory in (("2.3", Y / 6, Y / 4), ("2.4", Y / 4, Y / 3)):
        name = f"thesis-{figure}"
        yield Row(figure, "memory as a switch", _rate(name, "switch"), min(switch, X), "GB/s")
        tree = _chain(open_cluster(name))
        yield Row(figure, "tree by splitting it off", tree, min(Y / 6, X), "GB/s")
        yield Row(figure, "memory that copies", _rate(name), min(memory, X), "GB/s", own=True)


def _adjusted() -> Iterator[Row]:
    """Narrowed links say the truth of 2.3 as a switch, and y/6 where 2.4 reaches y/4."""
    yield Row("2.5", "links of min(y/6, x)", _rate("thesis-2.5"), min(Y / 6, X), "GB/s")
    yield Row("2.6", "links of min(y/6, x)", _rate("thesis-2.6"), min(Y / 6, X), "GB/s")
    tree = _tree(open_cluster("thesis-2.4"), (("g0", "mem0", "g1"), ("g1", "mem0", "g2")))
    yield Row("2.6", "its tree in the cluster", tree, min(Y / 4, X), "GB/s")


def _beside() -> Iterator[Row]:
    """Nothing has to be in a memory; if it is taken for a GPU, its link of x/2 limits."""
    yield Row("2.7", "memory", _rate("thesis-2.7"), X, "GB/s")
    yield Row("2.7", "memory as a GPU", _rate("thesis-2.7", "gpu"), X / 2, "GB/s")


def _broadcast(topology: Topology) -> Problem:
    return Problem(topology, broadcast(len(topology.ranks), SIZE, chunks=1))


def _seen(topology: Topology, kind: DeviceKind) -> Topology:
    """Return the same cluster with its memories taken for devices of that kind."""
    return replace(
        topology,
        devices=tuple(
            device(kind, each.name, host=each.host) if each.kind == "memory" else each
            for each in topology.devices
        ),
    )


def _fluid(name: str, kind: DeviceKind = "memory") -> FluidSolution:
    return solve_plain(_broadcast(_seen(open_cluster(name), kind)))


def _rate(name: str, kind: DeviceKind = "memory") -> float:
    return SIZE / _fluid(name, kind).makespan * 1e-3


def _written(topology: Topology) -> float:
    """Return the least bytes that enter the memory at the best rate."""
    costs = np.array([float(each.dst == "mem0") for each in topology.links])
    return solve_plain(_broadcast(topology), costs=costs).cost


def _chain(topology: Topology) -> float:
    """Return the GB/s of the path through all GPUs that a packing without the memory finds."""
    ways = tuple((f"g{i}", "mem0", f"g{i + 1}") for i in range(3))
    return _tree(topology, ways, direct=())


def _tree(
    topology: Topology,
    ways: tuple[tuple[str, ...], ...],
    *,
    direct: tuple[tuple[str, ...], ...] = (("g1", "g3"),),
) -> float:
    """Return the GB/s of one tree."""
    forest = Forest((Tree(0, (*ways, *direct), Fraction(1)),))
    return SIZE / float(steady_makespan(_broadcast(topology), forest)) * 1e-3
