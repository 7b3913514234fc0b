"""What a replay is worth: bandwidths as nccl-tests prints them, use of links, critical path."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ccl.collective import Collective
from ccl.problem import Problem
from ccl.timeline import Timeline, Transfer

_SAME_MOMENT = 1e-9
"""Times closer than this share of the makespan are one moment."""


def bus_factor(collective: Collective) -> float:
    """Return busbw / algbw of a collective.

    Reference: NVIDIA/nccl-tests, doc/PERFORMANCE.md and the GetBw functions in src/; a custom
    demand, which it does not know, has the factor 1.
    """
    n = collective.ranks
    if collective.kind == "all-reduce":
        return 2 * (n - 1) / n
    if collective.kind in ("custom", "broadcast", "reduce"):
        return 1.0
    return (n - 1) / n


def algbw(collective: Collective, makespan: float) -> float:
    """Return size over makespan in GB/s; `makespan` is in µs."""
    return collective.size / makespan * 1e-3


def busbw(collective: Collective, makespan: float) -> float:
    """Return algbw times the bus factor in GB/s; `makespan` is in µs."""
    return algbw(collective, makespan) * bus_factor(collective)


def link_utilisation(problem: Problem, timeline: Timeline) -> dict[tuple[str, str], float]:
    """Return for every link the share of the makespan in which it carries at full bandwidth.

    What crosses a link after the makespan, needed by nobody, counts all the same.
    """
    carried = {link.ends: 0.0 for link in problem.topology.links}
    for each in timeline.transfers:
        carried[each.src, each.dst] += each.nbytes
    if not timeline.makespan:
        return dict.fromkeys(carried, 0.0)
    return {
        link.ends: carried[link.ends] * link.beta / timeline.makespan
        for link in problem.topology.links
    }


def link_load(problem: Problem, timeline: Timeline, epoch_duration: float) -> NDArray[np.float64]:
    """Return the share of each link's capacity that is used in each slot of time.

    Parameters
    ----------
    problem
        Whose links give the rows.
    timeline
        A replay; what a transfer carries counts as spread evenly from its start until it is sent.
    epoch_duration
        Length of a slot in µs.

    Returns
    -------
    Array of shape (links, slots), from 0 to 1, with as many slots as the makespan needs.
    """
    slots = max(1, int(np.ceil(timeline.makespan / epoch_duration - _SAME_MOMENT)))
    moments = np.arange(slots + 1) * epoch_duration
    rows: list[list[Transfer]] = [[] for _ in problem.topology.links]
    for each in timeline.transfers:
        rows[problem.topology.link_index[each.src, each.dst]].append(each)
    load = np.zeros((len(rows), slots))
    for i, (link, row) in enumerate(zip(problem.topology.links, rows, strict=True)):
        if row:
            # A link serves one transfer at a time, so what it has carried grows along a line.
            times = np.array([(each.start, each.sent) for each in row]).ravel()
            total = np.cumsum([each.nbytes for each in row])
            carried = np.column_stack([total - [each.nbytes for each in row], total]).ravel()
            load[i] = np.diff(np.interp(moments, times, carried)) * link.beta / epoch_duration
    return load


def critical_path(problem: Problem, timeline: Timeline) -> tuple[Transfer, ...]:
    """Return a chain of transfers, in time, that makes the makespan what it is.

    Each one starts when the one before it lets it: by bringing what it carries or, where nothing
    it needs came just then, by leaving its link. Of a timeline slowed down by shared limits the
    one before is the last that did either.
    """
    by_link: dict[tuple[str, str], list[Transfer]] = {}
    by_goal: dict[tuple[int, str], list[Transfer]] = {}
    for each in timeline.transfers:
        by_link.setdefault((each.src, each.dst), []).append(each)
        by_goal.setdefault((each.chunk, each.dst), []).append(each)
    current = _last(problem, timeline)
    slack = _SAME_MOMENT * timeline.makespan
    chain: list[Transfer] = []
    while current is not None:
        chain.append(current)
        latest = current.start + slack
        brought = [
            (_there(problem, each, latest), each)
            for each in by_goal.get((current.chunk, current.src), ())
        ]
        left = [(each.sent, each) for each in by_link[current.src, current.dst]]
        current = _cause(brought, left, current=current, slack=slack)
    return tuple(reversed(chain))


def _last(problem: Problem, timeline: Timeline) -> Transfer | None:
    """Return the transfer that ends at the makespan where it is needed."""
    ranks, chunks = problem.topology.ranks, problem.collective.chunks
    wanted = [{ranks[rank] for rank in chunk.destinations} for chunk in chunks]
    needed = (each for each in timeline.transfers if each.dst in wanted[each.chunk])
    return max(needed, key=lambda each: each.end, default=None)


def _there(problem: Problem, each: Transfer, latest: float) -> float:
    """Return when a transfer was there: its first byte where it was sent on before its last."""
    if each.end > latest and not problem.topology.device(each.dst).stores:
        return each.end - each.sent + each.start
    return each.end


def _cause(
    brought: list[tuple[float, Transfer]],
    left: list[tuple[float, Transfer]],
    *,
    current: Transfer,
    slack: float,
) -> Transfer | None:
    """Return the last of what let `current` start, arrivals first, or None at the beginning."""
    found: tuple[float, Transfer] | None = None
    for time, each in (*brought, *left):
        if (
            time <= current.start + slack
            and each.start < current.start
            and (found is None or time > found[0] + slack)
        ):
            found = time, each
    return None if found is None or current.start <= slack else found[1]
