"""Which method is the best for which collective and size, and what that gains over a ring.

An atlas is plain data, from the plans of a catalog (each at every size, `tuning`) or from
comparisons; `widgets.charts.atlas` and `widgets.pictures.atlas` draw it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ccl.collective import Collective, CollectiveKind, make_collective
from ccl.topology import Topology
from formulations.campaigns.catalog.tuning import Curves, candidates, grid_of

if TYPE_CHECKING:
    from formulations.analyses.comparison import Comparison
    from formulations.campaigns.catalog.catalog import Catalog

RINGS = ("ring", "multi-ring", "bidirectional-ring")
"""Methods against which a gain is told: the best of them that is there."""

SIZES: tuple[float, ...] = tuple(10.0**i for i in range(3, 10))
"""Bytes from 1 KB to 1 GB."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The best of one collective at one size.

    Parameters
    ----------
    kind, size
        The collective, and the bytes of its whole buffer.
    method
        Who found the plan; None where there is none.
    makespan
        µs of the best plan, None where there is none.
    ring
        µs of the best ring, None where there is none.
    """

    kind: CollectiveKind
    size: float
    method: str | None
    makespan: float | None
    ring: float | None

    @property
    def gain(self) -> float | None:
        """How many times as fast as a ring it is, None where one of the two is missing."""
        if self.makespan is None or self.ring is None:
            return None
        return self.ring / self.makespan


@dataclass(frozen=True)
class Atlas:
    """Cells by collective, then by size.

    Parameters
    ----------
    topology
        Name of the cluster.
    kinds, sizes
        Rows, and columns in bytes, ascending.
    cells
        By row, then by column.
    """

    topology: str
    kinds: tuple[CollectiveKind, ...]
    sizes: tuple[float, ...]
    cells: tuple[Cell, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """Who is the best somewhere, by the number of cells, then by name."""
        found = [each.method for each in self.cells if each.method is not None]
        return tuple(sorted(set(found), key=lambda name: (-found.count(name), name)))

    def cell(self, kind: str, size: float) -> Cell:
        """Return the cell of a collective of `kinds` at a size of `sizes`."""
        place = self.kinds.index(kind) * len(self.sizes)
        return self.cells[place + self.sizes.index(size)]

    def to_json(self) -> dict[str, Any]:
        """Return plain values; sizes in bytes, times in µs."""
        return {
            "format": "topoloom-atlas/1",
            "topology": self.topology,
            "cells": [
                {
                    "collective": each.kind,
                    "size": each.size,
                    "method": each.method,
                    "makespan_us": each.makespan,
                    "ring_us": each.ring,
                    "gain": each.gain,
                }
                for each in self.cells
            ],
        }


def regimes(
    catalog: Catalog,
    topology: Topology,
    kinds: Iterable[CollectiveKind],
    *,
    sizes: Iterable[float] = SIZES,
    progress: Callable[[CollectiveKind], None] | None = None,
) -> Atlas:
    """Return the atlas of a cluster from what a catalog holds.

    Parameters
    ----------
    catalog
        Where the plans are; each counts at every size, whatever it was solved for.
    topology
        The cluster.
    kinds
        Collectives; the root of one that has one is rank 0.
    sizes
        Whole bytes.
    progress
        Called with every collective that is done.

    Raises
    ------
    ProblemError
        If there are fewer than two sizes, or one is not a whole number of bytes above 0.
    """
    rows, columns = tuple(dict.fromkeys(kinds)), grid_of(sizes)
    cells: list[Cell] = []
    for kind in rows:
        asked = make_collective(kind, len(topology.ranks), float(columns[-1]))
        cells += _row(catalog, topology, asked, columns)
        if progress is not None:
            progress(kind)
    return Atlas(topology.name, rows, tuple(map(float, columns)), tuple(cells))


def atlas_of(comparisons: Sequence[Comparison]) -> Atlas:
    """Return the atlas of comparisons on one cluster, one of each collective, at the same sizes."""
    sizes = comparisons[0].sizes
    cells: list[Cell] = []
    for each in comparisons:
        for size in sizes:
            best = each.best(size)
            times = {
                row.method.formulation: row.result.makespan for row in each.at(size) if row.result
            }
            result = None if best is None else best.result
            cells.append(
                Cell(
                    each.problem.collective.kind,
                    size,
                    None if result is None else result.found_by or result.formulation,
                    None if result is None else result.makespan,
                    min((time for name, time in times.items() if name in RINGS), default=None),
                )
            )
    kinds = tuple(each.problem.collective.kind for each in comparisons)
    return Atlas(comparisons[0].problem.topology.name, kinds, sizes, tuple(cells))


def _row(
    catalog: Catalog, topology: Topology, collective: Collective, sizes: Sequence[int]
) -> list[Cell]:
    curves = Curves(candidates(catalog, topology, collective))
    who = [each.entry.found_by or each.entry.formulation for each in curves.candidates]
    rings = [place for place, name in enumerate(who) if name in RINGS]
    cells: list[Cell] = []
    before: int | None = None
    for size in sizes:
        before = curves.best(size, before)
        ring = min((curves.makespan(place, size) for place in rings), default=math.inf)
        cells.append(
            Cell(
                collective.kind,
                float(size),
                None if before is None else who[before],
                None if before is None else curves.makespan(before, size),
                None if math.isinf(ring) else ring,
            )
        )
    return cells
