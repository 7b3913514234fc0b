"""Tuning table: the best plan for each range of sizes, as a runtime's tuner reads it.

The JSON is ``topoloom-tuner/1`` (`TunerTable.to_json`), the CSV has one line for each range, with
the names of collectives that runtimes use; ``docs/catalog.md`` describes both.

An `Entry` is a line of a catalog: what is known of a stored plan without reading it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ccl.collective import CollectiveKind
from ccl.result import Result, Status, Stop, verdict_of
from ccl.serialization.text import csv_text
from formulations.solving.api import DEFAULT

_CUT_SHORT = (Stop.TIME_LIMIT, Stop.MEMORY, Stop.CANCELLED)
_LIMITED = (Stop.EFFORT, Stop.PASSES)
"""Own ends that come earlier where a limit leaves parts of a search less time."""
_NEAR = (Stop.GAP, Stop.WHOLE_GAP, Stop.MODEL_GAP)
_ABOUT = 0.99
"""Share of a time limit that counts as all of it: solvers stop a little early."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A stored plan.

    Parameters
    ----------
    number
        By which the catalog knows it.
    cluster
        Name of the cluster that it was first stored for; others may be isomorphic to it.
    kind, ranks, chunks, root
        Of the collective: its kind, ranks, chunks per shard in the plan (all chunks of a custom
        one, and of an all-reduce that is cut unevenly), and the rank of the root on that cluster.
    whole
        Whether these chunks were fixed; else they are what the plan was found with.
    size
        Bytes of the whole buffer.
    formulation, options
        How it was found.
    version
        Of Topoloom, when it was found.
    makespan, bound
        µs: of the replay, and the largest lower bound for every plan.
    whole_bound
        µs: the largest for plans that send these chunks whole, None where that says no more.
    status, stop
        Among which plans it is proved, and why the solve stopped.
    chunk
        Bytes of the largest chunk.
    found_by
        Which method found it, where the formulation tries several.
    solve_time
        Seconds.
    given
        Seconds that the solve was given, None without a limit.
    kept
        When it was stored: UTC, as ``2025-01-31 12:00:00``.
    nbytes
        Bytes that it takes in the file.
    """

    number: int
    cluster: str
    kind: CollectiveKind
    ranks: int
    chunks: int
    whole: bool
    root: int
    size: float
    formulation: str
    options: Mapping[str, Any]
    version: str
    makespan: float
    bound: float
    whole_bound: float | None
    status: Status
    chunk: float
    stop: Stop
    found_by: str
    solve_time: float
    given: float | None
    kept: str
    nbytes: int

    @property
    def gap(self) -> float:
        """How far the makespan is above the bound, as a share of the bound."""
        return max(0.0, self.makespan / self.bound - 1.0)

    @property
    def verdict(self) -> str:
        """The status in words for the user, as `Result.verdict` says it."""
        return verdict_of(self.status, gap=self.gap, chunk=self.chunk)

    @property
    def algbw(self) -> float:
        """GB/s: size over makespan."""
        return self.size / self.makespan * 1e-3

    def answers(self, *, time_limit: float | None, gap: float | None) -> bool:
        """Return whether solving again within these limits could not find a better plan.

        It could not where the plan is proved or near enough, where the solve came to its own end,
        or was cut short after at least as many seconds.
        """
        if self.status is Status.OPTIMAL or (gap is not None and self._reached <= gap):
            return True
        if self.stop in _NEAR:
            return False
        if self.given is None:
            return True
        return time_limit is not None and self.given >= time_limit * _ABOUT

    @property
    def _reached(self) -> float:
        """The gap by which its solve is done: where others may cut, to every plan."""
        if self.whole_bound is None or (self.formulation == DEFAULT and not self.whole):
            return self.gap
        return max(0.0, self.makespan / self.whole_bound - 1.0)


def given_to(result: Result, time_limit: float | None) -> float | None:
    """Return the seconds that a solve was given, None where more could not have changed it."""
    if result.stop in _CUT_SHORT:
        return max(result.solve_time, time_limit or 0.0)
    return time_limit if result.stop in _LIMITED else None


def options_text(options: Mapping[str, Any], *, exact: str) -> str:
    """Return options as text, equal for equal ones.

    Parameters
    ----------
    options
        Plain values by name.
    exact
        A key that distinguishes drawings of a cluster: a sketch names its devices, so that it
        means nothing on another.
    """
    named = any(isinstance(each, Mapping) for each in options.values())
    value = {**options, "": exact} if named else dict(options)
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def options_in(text: str) -> dict[str, Any]:
    """Return the options that `options_text` has written."""
    value: dict[str, Any] = json.loads(text)
    value.pop("", None)
    return value


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
