"""The best plan for each range of sizes, as a runtime's tuner reads it.

The JSON is ``topoloom-tuner/1`` (`TunerTable.to_json`), the CSV has one line for each range, with
the names of collectives that runtimes use; ``docs/catalog.md`` describes both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ccl.collective import CollectiveKind
from ccl.serialization.text import csv_text
from formulations.campaigns.catalog.entry import Entry

FORMAT = "topoloom-tuner/1"

COLUMNS = (
    "collective", "min_bytes", "max_bytes", "algorithm", "formulation", "chunks", "plan",
    "ranks", "root", "min_time_us", "max_time_us", "min_bound_us", "max_bound_us",
)  # fmt: skip
"""Of the CSV; ``min_`` and ``max_`` times are those at the ends of the range."""


@dataclass(frozen=True, slots=True)
class TunerRange:
    """One plan for all sizes from `begin` to before `end`, in bytes of the whole buffer.

    Parameters
    ----------
    begin, end
        Whole bytes; the last range holds its end too.
    entry
        The plan in the catalog.
    makespans, bounds
        µs at both ends: of the replay of this plan, and the largest lower bound for any plan.
    """

    begin: int
    end: int
    entry: Entry
    makespans: tuple[float, float]
    bounds: tuple[float, float]

    @property
    def algorithm(self) -> str:
        """Which method found the plan."""
        return self.entry.found_by or self.entry.formulation

    @property
    def algbws(self) -> tuple[float, float]:
        """GB/s at both ends: size over makespan."""
        return self.begin / self.makespans[0] * 1e-3, self.end / self.makespans[1] * 1e-3


@dataclass(frozen=True)
class TunerTable:
    """The best stored plan of a collective on a cluster for every size; `tuned` makes it.

    Parameters
    ----------
    topology
        Name of the cluster.
    kind, ranks, root
        Of the collective.
    ranges
        By size, without holes.
    left_out
        Why plans are not among the candidates at some sizes, in sentences.
    """

    topology: str
    kind: CollectiveKind
    ranks: int
    root: int
    ranges: tuple[TunerRange, ...]
    left_out: tuple[str, ...] = ()

    def at(self, size: float) -> TunerRange | None:
        """Return the range of a size in bytes, None where it is outside of all."""
        for each in self.ranges:
            if each.begin <= size < each.end:
                return each
        last = self.ranges[-1] if self.ranges else None
        return last if last is not None and size == last.end else None

    def to_json(self) -> dict[str, Any]:
        """Return plain values; sizes in bytes, times in µs, rates in GB/s."""
        return {
            "format": FORMAT,
            "topology": self.topology,
            "collective": self.kind,
            "ranks": self.ranks,
            "root": self.root,
            "ranges": [
                {
                    "min_bytes": each.begin,
                    "max_bytes": self._last(each),
                    "algorithm": each.algorithm,
                    "formulation": each.entry.formulation,
                    "options": dict(each.entry.options),
                    "chunks": each.entry.chunks,
                    "plan": each.entry.number,
                    "solved_for_bytes": each.entry.size,
                    "time_us": list(each.makespans),
                    "bound_us": list(each.bounds),
                    "algbw_GBps": list(each.algbws),
                }
                for each in self.ranges
            ],
            "left_out": list(self.left_out),
        }

    def to_csv(self) -> str:
        """Return a heading and one line for each range."""
        rows = [
            (
                self.kind.replace("-", ""), each.begin, self._last(each), each.algorithm,
                each.entry.formulation, each.entry.chunks, each.entry.number, self.ranks, self.root,
                *(f"{time:.6g}" for time in (*each.makespans, *each.bounds)),
            )
            for each in self.ranges
        ]  # fmt: skip
        return csv_text([COLUMNS, *rows])

    def _last(self, each: TunerRange) -> int:
        """Return the last byte that belongs to a range."""
        return each.end if each is self.ranges[-1] else each.end - 1
