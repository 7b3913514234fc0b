"""What a comparison is: methods, rows, crossovers, and the questions that a table answers."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ccl.bound import Bound
from ccl.problem import Problem
from ccl.result import Result
from formulations.core.run import Progress


@dataclass(frozen=True, slots=True)
class Method:
    """A formulation with options, as ``name`` or ``name:option=value,option=value``.

    `formulations.analyses.comparison.parse_method` reads one.

    Parameters
    ----------
    formulation
        Its name.
    options
        By name, those that differ from the default; a sketch in its plain form.
    """

    formulation: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        given = ",".join(f"{name}={_written(value)}" for name, value in self.options.items())
        return f"{self.formulation}:{given}" if given else self.formulation


def _written(value: Any) -> str:
    """Write an option as a command line takes it: a choice with hyphens for its spaces.

    A sketch has no name; eight digits tell it from others.
    """
    if isinstance(value, Mapping):
        return f"{zlib.crc32(json.dumps(value, sort_keys=True).encode()):08x}"
    return str(value).lower() if isinstance(value, bool) else str(value).replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Row:
    """One method at one size.

    Parameters
    ----------
    method
        Who.
    size
        Bytes of the whole buffer.
    result
        Its result, or None where it has none.
    why_not
        Why it has none: what it refuses, or what went wrong; else empty.
    """

    method: Method
    size: float
    result: Result | None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class News:
    """Where a comparison stands.

    Parameters
    ----------
    done, cells
        How many rows are there, and how many there will be.
    method, size
        Who is being solved at how many bytes; no method while the common bounds are proved.
    progress
        How that solve stands; None when it begins or has ended.
    row
        Its row when it has ended, else None.
    """

    done: int
    cells: int
    method: Method | None
    size: float
    progress: Progress | None = None
    row: Row | None = None


@dataclass(frozen=True, slots=True)
class Crossover:
    """Where another method becomes the fastest as the size grows.

    Parameters
    ----------
    size
        Bytes at which both take the same, interpolated on logarithmic axes between two sizes.
    makespan
        µs there.
    before, after
        The fastest below and above.
    """

    size: float
    makespan: float
    before: Method
    after: Method


@dataclass(frozen=True)
class Comparison:
    """Rows for every method and size, and the bound for every size.

    One that was cancelled has rows only for what was solved.

    Parameters
    ----------
    problem
        What was asked, at the first size.
    methods
        In the order asked.
    sizes
        Bytes, ascending.
    bounds
        For each size the largest bound that holds for every plan.
    rows
        By method, then by size.
    """

    problem: Problem
    methods: tuple[Method, ...]
    sizes: tuple[float, ...]
    bounds: tuple[Bound, ...]
    rows: tuple[Row, ...]

    def row(self, method: Method | str, size: float) -> Row | None:
        """Return the row of a method at a size of `sizes`, None where there is none."""
        for each in self.rows:
            if each.size == size and str(each.method) == str(method):
                return each
        return None

    def at(self, size: float) -> tuple[Row, ...]:
        """Return the rows of a size: the fastest first, those without a result last."""
        found = (each for each in self.rows if each.size == size)
        return tuple(sorted(found, key=_makespan))

    def bound(self, size: float) -> Bound:
        """Return the largest bound that holds for every plan of a size of `sizes`."""
        return self.bounds[self.sizes.index(size)]

    def best(self, size: float) -> Row | None:
        """Return the row of the fastest, one of several by `leaders`; None without any result."""
        leader = self.leaders()[self.sizes.index(size)]
        return None if leader is None else self.row(leader, size)

    def gap(self, row: Row) -> float | None:
        """Return how far a row is above the common bound of its size, as a share of that bound.

        None where the row has no result.
        """
        if row.result is None:
            return None
        return max(0.0, row.result.makespan / self.bound(row.size).makespan - 1.0)

    def crossovers(self) -> tuple[Crossover, ...]:
        """Return where another method becomes the fastest: `comparing.crossing`."""
        from formulations.analyses.comparing.crossing import crossovers  # noqa: PLC0415  it takes these

        return crossovers(self)

    def leaders(self) -> tuple[Method | None, ...]:
        """Return who is the fastest at each size, in step with `crossovers`.

        Where several take the same, it is who was the fastest before, else the first that was
        asked; None where no method has a result.
        """
        from formulations.analyses.comparing.crossing import leaders  # noqa: PLC0415  as above

        return leaders(self)

    def table(self) -> list[dict[str, Any]]:
        """Return plain values for printing: size by size, the fastest first, refusals last."""
        leaders = dict(zip(self.sizes, map(str, self.leaders()), strict=True))
        return [
            self._line(row, fastest=str(row.method) == leaders[size])
            for size in self.sizes
            for row in self.at(size)
        ]

    def _line(self, row: Row, *, fastest: bool) -> dict[str, Any]:
        result = row.result
        line: dict[str, Any] = {
            "size": row.size,
            "method": str(row.method),
            "bound_us": self.bound(row.size).makespan,
        }
        if result is None:
            return line | {"status": None, "why_not": row.why_not}
        size, formula = result.size, result.closed_form
        return line | {
            "status": result.verdict,
            "whole_gap": result.whole_gap,
            "fastest": fastest,
            "makespan_us": result.makespan,
            "algbw_GBps": result.algbw,
            "busbw_GBps": result.busbw,
            "gap": self.gap(row),
            "own_gap": result.gap,
            "found_by": result.found_by or result.formulation,
            "stop": result.stop.name,
            "solve_s": result.solve_time,
            "variables": None if size is None else size.variables,
            "constraints": None if size is None else size.constraints,
            "formula": None if formula is None else formula.expression,
            "formula_us": None if formula is None else formula.makespan,
            "why": None if formula is None else formula.why(result.makespan),
        }


def _makespan(row: Row) -> float:
    return float("inf") if row.result is None else row.result.makespan
