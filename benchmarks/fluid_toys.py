"""The examples of the thesis, figures 2.1 to 2.7: broadcasts from the first GPU.

Links carry x = 32 GB/s and the memory y = 96 GB/s, of 32 MB in all, so that a step takes 1 ms. What
the text says is printed beside ours; figures that it does not print, such as what a memory that
copies reaches in 2.3 and 2.4, have an argument of ours there and are marked as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
from rich.table import Table

from benchmarks.measuring import said, table
from ccl.collective import broadcast
from ccl.plans import Forest, Tree
from ccl.problem import Problem
from ccl.topology import DeviceKind, Link, Topology, device
from ccl.tree_embedding import steady_makespan
from formulations import solve
from formulations.engines.fluid_lp.plain import FluidSolution, solve_plain
from gallery import open_cluster

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
