"""Number of chunks per shard as a decision: more of them overlap, and cost latency.

A plan is solved for each count. Each has a bound of its own, as plans of whole chunks are bound by
the chunk. Counts are compared by a bound that holds for all of them: it allows chunks to be split
without end, so that the plans of every count are among those that it is about.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ccl.bound import Bound
from ccl.collective import Collective, CollectiveKind, make_collective
from ccl.errors import ProblemError, SolveError
from ccl.problem import Problem
from ccl.result import PROOF_TOLERANCE, Result
from ccl.topology import Topology
from formulations.solving.api import DEFAULT, SOLVER, solve

if TYPE_CHECKING:
    from formulations.core.run import Progress

COUNTS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Chunks per shard that are tried."""


def sweep_counts(  # noqa: PLR0913  those of `formulations.solve`
    topology: Topology,
    kind: CollectiveKind,
    size: float,
    *,
    counts: Iterable[int] = COUNTS,
    root: int = 0,
    formulation: str = DEFAULT,
    options: Mapping[str, Any] | None = None,
    time_limit: float | None = None,
    gap: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    solver: str = SOLVER,
) -> tuple[Result, ...]:
    """Solve a collective with each number of chunks per shard, the fewest first.

    It ends before the last count when a plan is within `gap` of the bound that holds for all of
    them, or meets it: more chunks could be no better.

    Parameters
    ----------
    topology, kind, size, root
        The collective and where; size in bytes.
    counts
        Chunks per shard.
    formulation, options, progress, solver
        As for `formulations.solve`, for each count.
    time_limit
        Seconds for everything; each count gets an equal share of what is left.
    gap
        Share above the bound at which a plan is good enough.

    Returns
    -------
        A result for each count that a plan was found for.

    Raises
    ------
    ProblemError
        If there are no counts, or a problem or an option is wrong.
    SolveError
        If no count has a plan: that of the first.
    """

    def solved(count: int, seconds: float | None) -> Result:
        made = make_collective(kind, len(topology.ranks), size, chunks=count, root=root)
        return solve(
            Problem(topology, made),
            formulation,
            options=options,
            time_limit=seconds,
            gap=gap,
            progress=progress,
            solver=solver,
        )

    return tried(solved, counts, time_limit=time_limit, gap=gap)


def tried(
    solved: Callable[[int, float | None], Result],
    counts: Iterable[int],
    *,
    time_limit: float | None = None,
    gap: float | None = None,
    over: Callable[[], bool] = lambda: False,
) -> tuple[Result, ...]:
    """Call `solved` with each number of chunks and its seconds; `sweep_counts` says when it ends.

    Parameters
    ----------
    solved
        Returns a result for a number of chunks and seconds, or raises a `SolveError`.
    counts, time_limit, gap
        As for `sweep_counts`.
    over
        Whether to be content with what is there.
    """
    waiting = sorted(set(counts))
    if not waiting:
        raise ProblemError("no number of chunks per shard is given; give at least one, such as 1")
    end = None if time_limit is None else time.perf_counter() + time_limit
    found: list[Result] = []
    failed: list[SolveError] = []
    for place, count in enumerate(waiting):
        try:
            found.append(solved(count, _share(end, len(waiting) - place)))
        except SolveError as error:
            failed.append(error)
        near = found and common_gap(found[-1], found) <= max(gap or 0.0, PROOF_TOLERANCE)
        if near or over():
            break
    if not found:
        raise failed[0]
    return tuple(found)


def _share(end: float | None, many: int) -> float | None:
    """Return the seconds of one of `many` solves that have to be done at `end`."""
    return None if end is None else max(0.01, end - time.perf_counter()) / many


def common_bound(results: Sequence[Result]) -> Bound:
    """Return the largest bound that holds for every number of chunks.

    Bounds that let chunks be split hold for all of `results`, whichever of them brought it; a
    formulation that needed no more than quick bounds (`formulations.bounds`) brought no others.

    Parameters
    ----------
    results
        Of one collective, in different numbers of chunks.
    """
    bounds = (bound for each in results for bound in each.bounds if not bound.whole_chunks)
    return max(bounds, key=lambda bound: bound.makespan)


def common_gap(result: Result, results: Sequence[Result]) -> float:
    """Return how far a result is above what holds for every number of chunks, as a share of it."""
    return max(0.0, result.makespan / common_bound(results).makespan - 1.0)


def pareto(results: Iterable[Result]) -> tuple[Result, ...]:
    """Return those that no other beats with as few chunks: the fewest chunks first.

    Each is shorter, by more than what counts as a proof, than every one with fewer chunks.
    """
    front: list[Result] = []
    for each in sorted(results, key=lambda each: (chunks_per_shard(each), each.makespan)):
        if not front or each.makespan < front[-1].makespan * (1 - PROOF_TOLERANCE):
            front.append(each)
    return tuple(front)


def sends_front(result: Result) -> list[dict[str, Any]]:
    """Return a row for each plan of `Result.front`, for a table or a data frame.

    ``pieces`` per shard, as sent or replayed; ``sends``; ``makespan_us``; by which share it is
    ``longer`` than the best; and what it was ``found_by``.
    """
    return [
        {
            "pieces": chunks_per_shard(each) * each.timeline.chunks,
            "sends": each.sends,
            "makespan_us": each.makespan,
            "longer": max(0.0, each.makespan / result.makespan - 1.0),
            "found_by": each.found_by or each.formulation,
        }
        for each in result.front
    ]


def chunks_per_shard(result: Result) -> int:
    """Return into how many chunks a shard is cut: those that have the same ends."""
    return _alike(result.problem.collective)


def _alike(collective: Collective) -> int:
    ends = Counter((each.holders, each.destinations) for each in collective.chunks)
    return max(ends.values())
