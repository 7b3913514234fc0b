"""Metrics of a replay: bandwidths as nccl-tests prints them, use of links, critical path."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ccl.collective import Collective
from ccl.problem import Problem
from ccl.timeline.causes import SAME_MOMENT, trace_critical
from ccl.timeline.transfers import Timeline, Transfer


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


def finish_times(problem: Problem, timeline: Timeline) -> dict[str, float]:
    """Return the µs at which the last byte of each tenant is where it is needed.

    By name in the order of the chunks; chunks without a tenant are together under the empty
    name. The largest is the makespan.
    """
    ranks, chunks = problem.topology.ranks, problem.collective.chunks
    wanted = [{ranks[rank] for rank in chunk.destinations} for chunk in chunks]
    finish = {chunk.tenant: 0.0 for chunk in chunks}
    for each in timeline.transfers:
        if each.dst in wanted[each.chunk]:
            tenant = chunks[each.chunk].tenant
            finish[tenant] = max(finish[tenant], each.end)
    return finish


def link_utilisation(problem: Problem, timeline: Timeline) -> dict[tuple[str, str], float]:
    """Return for every link the share of the makespan in which it carries at full bandwidth.

    What crosses a link after the makespan, needed by nobody, counts all the same.
    """
    carried = {
        place: sum(each.nbytes for each in transfers)
        for place, transfers in timeline.by_link().items()
    }
    if not timeline.makespan:
        return {link.ends: 0.0 for link in problem.topology.links}
    return {
        link.ends: carried.get(timeline.place(*link.ends), 0.0) * link.beta / timeline.makespan
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
    slots = max(1, int(np.ceil(timeline.makespan / epoch_duration - SAME_MOMENT)))
    moments = np.arange(slots + 1) * epoch_duration
    by_link = timeline.by_link()
    rows = [by_link.get(timeline.place(*link.ends), []) for link in problem.topology.links]
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
    """Return a chain of transfers, each the cause of the next, that makes the makespan what it is.

    `ccl.timeline` says how each one lets the next go.
    """
    return tuple([timeline.transfers[i] for i in trace_critical(problem, timeline)])
