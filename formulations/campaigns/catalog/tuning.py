"""Fastest stored plan at each size, whatever sizes plans were solved for, and an atlas of the best.

Every plan of the cluster and collective that may be the fastest at a size of a grid is scaled to it
(`scaled`), verified and replayed there. Where the fastest differs between two neighbours, the
interval is halved, on a logarithmic axis, until what is left is a byte or a `FINE` share, with all
plans again that may be: so a third plan that is the fastest only in between is found wherever a
half of the interval shows it.

Scaling makes every chunk larger or smaller by one factor, the order of sends unchanged. A forest
and a flow say shares, which hold at any size. A schedule says epochs. With chunks f times as large,
transmissions take f times as long and latencies stay:

* epochs f times as long keep every deadline where f >= 1, as latencies become shorter beside them;
* epochs as long as before do so where f < 1, as nothing takes longer than it did.

The replay forgets the epochs, so that their length changes nothing where no limit is shared; where
one is, shorter epochs promise links more, and where f < 1 epochs f times as long are tried too.
What a sum contains may depend on what has arrived in time, so that every scaled schedule is
verified, and one that breaks a rule is not used.

An `Atlas` shows which method is the best for which collective and size, and what that gains over a
ring. It is plain data, from the plans of a catalog, each at every size (`regimes`), or from
comparisons (`atlas_of`); `widgets.charts.atlas` and `widgets.print.diagrams` draw it.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ccl.collective import Collective, CollectiveKind, find_arguments, make_collective
from ccl.errors import ProblemError, ScheduleError
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import Plan
from ccl.simulate import simulate
from ccl.topology import Topology
from ccl.verify import verify
from formulations.analyses.comparison import Comparison
from formulations.analyses.comparison.table import resized
from formulations.campaigns.catalog.catalog import Catalog
from formulations.campaigns.catalog.tuner import Entry, TunerRange, TunerTable


def sized(problem: Problem, size: float) -> Problem:
    """Return the same problem at `size` bytes."""
    return replace(problem, collective=resized(problem.collective, size))


def scaled(problem: Problem, plan: Plan, size: float) -> tuple[Plan, float]:
    """Return a plan of `problem` at `size` bytes, verified, and its makespan in µs.

    Raises
    ------
    ScheduleError
        If it is invalid at that size: a sum would hold something else, or a buffer is too small.
    """
    target = sized(problem, size)
    factor = size / problem.collective.size
    tries: list[Plan] = [plan]
    if isinstance(plan, Schedule) and factor != 1:
        epochs = (factor,) if factor > 1 else (factor, 1.0)
        tries = [replace(plan, epoch_duration=plan.epoch_duration * each) for each in epochs]
    found: list[tuple[float, int]] = []
    for place, each in enumerate(tries):
        try:
            verify(target, each)
        except ScheduleError:
            if place == len(tries) - 1 and not found:
                raise
            continue
        found.append((simulate(target, each).makespan, place))
    makespan, place = min(found)
    return tries[place], makespan


SIZES: tuple[float, ...] = tuple(round(10 ** (3 + i / 5)) for i in range(31))
"""Bytes from 1 KB to 1 GB, five in a factor of ten."""

FINE = 1e-3
"""Share of a size within which a crossover is found."""

SAME = 2e-3
"""Who leads goes on until another is faster by more than this share: no flutter between equals."""

SPARE = 0.03
"""By what share of the best a plan must be expected to be slower that is not replayed."""


@dataclass(frozen=True)
class Candidate:
    """A stored plan on the requested cluster.

    Parameters
    ----------
    entry
        Its line in the catalog.
    problem, plan
        What it answers, and the plan in the names of the cluster.
    """

    entry: Entry
    problem: Problem
    plan: Plan


@dataclass
class Curves:
    """Makespans of candidates over sizes, each replayed once, and only where it may be the best.

    Parameters
    ----------
    candidates
        The plans.
    left_out
        Of each that is invalid at some size: why, at the first.
    """

    candidates: Sequence[Candidate]
    left_out: dict[int, str] = field(default_factory=dict)
    _known: dict[int, dict[float, float]] = field(default_factory=dict)

    def makespan(self, place: int, size: float) -> float:
        """Return the µs of a candidate at `size` bytes; infinite where it is no plan there."""
        known = self._known.setdefault(place, {})
        if size not in known:
            known[size] = self._replayed(place, size)
        return known[size]

    def best(self, size: float, before: int | None = None) -> int | None:
        """Return the fastest candidate; of several the one `before` or else the first."""
        places = sorted(range(len(self.candidates)), key=lambda place: self.floor(place, size))
        times: dict[int, float] = {}
        least = math.inf
        for place in places:
            if self.floor(place, size) > least * (1 + SPARE):
                break
            times[place] = self.makespan(place, size)
            least = min(least, times[place])
        if math.isinf(least):
            return None
        near = [place for place in sorted(times) if times[place] <= least * (1 + SAME)]
        return before if before in near else near[0]

    def floor(self, place: int, size: float) -> float:
        """Return the µs that a candidate takes at least, by what it takes at other sizes.

        In a fixed order it takes the longest of many sums of latencies and of bytes over bandwidth.
        So its time grows with the size, and the faster the larger that is: between two sizes it is
        below the line through both, beyond them above it. `SPARE` is for orders that are not fixed.
        """
        known = self._known.get(place, {})
        if size in known or any(map(math.isinf, known.values())):
            return known.get(size, 0.0)
        below = sorted(each for each in known if each < size)
        found = known[below[-1]] if below else 0.0
        for sizes in (below[-2:], sorted(each for each in known if each > size)[:2]):
            if len(sizes) == 2:
                low, high = sizes
                slope = (known[high] - known[low]) / (high - low)
                found = max(found, known[low] + slope * (size - low))
        return found

    def _replayed(self, place: int, size: float) -> float:
        each = self.candidates[place]
        try:
            return scaled(each.problem, each.plan, size)[1]
        except ScheduleError as error:
            entry = each.entry
            self.left_out.setdefault(
                place,
                f"plan {entry.number} ({entry.formulation}) is invalid at {size:g} bytes: {error}",
            )
            return math.inf


def candidates(catalog: Catalog, topology: Topology, collective: Collective) -> list[Candidate]:
    """Return every stored plan of a collective on a cluster or one isomorphic to it.

    Parameters
    ----------
    catalog
        Where they are.
    topology, collective
        The problem; its size and its number of chunks do not matter.

    Returns
    -------
        Each plan once, though it may have been found at several sizes.
    """
    found = []
    seen: set[object] = set()
    for entry in catalog.family(Problem(topology, collective)):
        problem = Problem(topology, _as_stored(collective, entry))
        result = catalog.load(entry, problem)
        if result is None:
            continue
        plan = result.plan
        alike = (entry.chunks, plan.sends if isinstance(plan, Schedule) else plan)
        if alike not in seen:
            found.append(Candidate(entry, result.problem, plan))
        seen.add(alike)
    return found


def _as_stored(collective: Collective, entry: Entry) -> Collective:
    """Return a collective at the size of an entry, in its chunks where these are fixed."""
    named = find_arguments(collective)
    if named is None:
        return resized(collective, entry.size)
    chunks = entry.chunks if entry.whole else 1
    return make_collective(
        collective.kind, collective.ranks, entry.size, chunks=chunks, root=named[1]
    )


def tuned(
    catalog: Catalog,
    topology: Topology,
    collective: Collective,
    *,
    sizes: Iterable[float] = SIZES,
    progress: Callable[[float], None] | None = None,
) -> TunerTable:
    """Return which stored plan is the fastest in which range of sizes.

    Parameters
    ----------
    catalog
        Where the plans are.
    topology, collective
        The problem; the size and the number of chunks of the collective do not matter.
    sizes
        Bytes, a grid from the first to the last of which the ranges go.
    progress
        Called with every size of the grid that is done.

    Raises
    ------
    ProblemError
        If there are fewer than two sizes, or one is not a whole number of bytes above 0.
    """
    grid = grid_of(sizes)
    curves = Curves(candidates(catalog, topology, collective))
    leaders: list[int | None] = []
    for size in grid:
        leaders.append(curves.best(size, leaders[-1] if leaders else None))
        if progress is not None:
            progress(size)
    marks: list[tuple[int, int | None]] = [(grid[0], leaders[0])]
    for i in range(len(grid) - 1):
        marks += _changes(curves, (grid[i], leaders[i]), (grid[i + 1], leaders[i + 1]))
    named = find_arguments(collective)
    return TunerTable(
        topology.name,
        collective.kind,
        collective.ranks,
        0 if named is None else named[1],
        tuple(_ranges(curves, marks, grid[-1], problem=Problem(topology, collective))),
        tuple(curves.left_out.values()),
    )


def grid_of(sizes: Iterable[float]) -> tuple[int, ...]:
    """Return sizes in ascending order, as whole bytes.

    Raises
    ------
    ProblemError
        If there are fewer than two, or one is not a whole number of bytes above 0.
    """
    listed = sorted(set(sizes))
    wrong = [
        each for each in listed if not (math.isfinite(each) and each >= 1 and each == int(each))
    ]
    if wrong or len(listed) < 2:
        what = f"{wrong[0]:g} bytes is among them" if wrong else f"there are {len(listed)}"
        raise ProblemError(f"a table over sizes needs two or more, whole bytes from 1 on; {what}")
    return tuple(int(each) for each in listed)


def _changes(
    curves: Curves, low: tuple[int, int | None], high: tuple[int, int | None]
) -> list[tuple[int, int | None]]:
    """Return where the leader changes between two sizes, with who leads from there on."""
    if low[1] == high[1]:
        return []
    if high[0] - low[0] <= max(1, FINE * low[0]):
        return [high]
    middle = min(max(round(math.sqrt(low[0] * high[0])), low[0] + 1), high[0] - 1)
    half = (middle, curves.best(middle, low[1]))
    return [*_changes(curves, low, half), *_changes(curves, half, high)]


def _ranges(
    curves: Curves, marks: Sequence[tuple[int, int | None]], last: int, *, problem: Problem
) -> list[TunerRange]:
    from formulations.bounds import quick_bounds  # noqa: PLC0415  only tables need them

    ends = [*(size for size, _ in marks[1:]), last]
    bounds = {size: quick_bounds(sized(problem, size))[0].makespan for size in {marks[0][0], *ends}}
    return [
        TunerRange(
            begin,
            end,
            curves.candidates[who].entry,
            (curves.makespan(who, begin), curves.makespan(who, end)),
            (bounds[begin], bounds[end]),
        )
        for (begin, who), end in zip(marks, ends, strict=True)
        if who is not None and begin < end
    ]


RINGS = ("ring", "multi-ring", "bidirectional-ring")
"""Methods against which a gain is reported: the best of them that is there."""

ATLAS_SIZES: tuple[float, ...] = tuple(10.0**i for i in range(3, 10))
"""Bytes from 1 KB to 1 GB."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The best of one collective at one size.

    Parameters
    ----------
    kind, size
        The collective, and the bytes of its whole buffer.
    method
        Who found the plan; None if there is none.
    makespan
        µs of the best plan, None if there is none.
    ring
        µs of the best ring, None if there is none.
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
    sizes: Iterable[float] = ATLAS_SIZES,
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
        collective = make_collective(kind, len(topology.ranks), float(columns[-1]))
        cells += _row(catalog, topology, collective, columns)
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
