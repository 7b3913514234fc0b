"""A line of a catalog: what is known of a stored plan without reading it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ccl.collective import CollectiveKind
from ccl.result import Result, Status, Stop, verdict_of
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
        Name of the cluster that it was first kept for; others may be isomorphic to it.
    kind, ranks, chunks, root
        Of the collective: its kind, ranks, chunks per shard (all chunks of a custom one) in the
        plan, and the rank of the root on that cluster.
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
        When it was kept: UTC, as ``2025-01-31 12:00:00``.
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
        """Whether solving again with these limits could not be asked for more.

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
        What tells one drawing of a cluster from others: a sketch names its devices, so that it
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
