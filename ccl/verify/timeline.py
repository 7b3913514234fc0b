"""Verification of a replay: one send at a time, bandwidth, limits, causality."""

from __future__ import annotations

import numpy as np

from ccl.errors import ScheduleError
from ccl.problem import Problem
from ccl.timeline import Timeline, Transfer
from ccl.topology import SharedLimit
from ccl.verify.order import TOLERANCE, check_passing


def verify_timeline(problem: Problem, timeline: Timeline) -> None:
    """Check a timeline as such, whatever plan it comes from.

    Each link carries one transfer at a time and none faster than its bandwidth, or than what
    windows leave of it; over every window between the starts and ends of transfers, what the links
    of a limit must have carried in it fits; nothing leaves a device before the first of it could
    have come there (cut-through counted), and of what a device cannot store no byte leaves it
    before it has come. It takes quadratic time in the transfers under a limit. Where a link stands
    for its orbit (`Timeline.orbits`), what is checked is the link with all that the orbit carries.

    Raises
    ------
    ScheduleError
        At a transfer that breaks one of these.
    """
    slack = TOLERANCE * max((each.end for each in timeline.transfers), default=0.0)
    by_link = timeline.by_link()
    for ends, transfers in by_link.items():
        _check_link(problem, ends, transfers=transfers, slack=slack)
        _check_windows(problem, ends, transfers=transfers, slack=slack)
    for limit in problem.topology.limits:
        carried = [by_link.get(timeline.place(*ends), []) for ends in limit.links]
        _check_limit(problem, limit, carried=carried, slack=slack)
    _check_causes(problem, timeline, slack)
    check_passing(problem, timeline, slack)


def _check_link(
    problem: Problem, ends: tuple[str, str], *, transfers: list[Transfer], slack: float
) -> None:
    link = problem.topology.link(*ends)
    free = 0.0
    for each in transfers:
        if each.start < free - slack:
            raise ScheduleError(
                f"link {link} sends two things at once at {each.start:g} µs",
                where=str(link),
                time=each.start,
            )
        if each.sent - each.start < each.nbytes * link.beta - slack:
            raise ScheduleError(
                f"link {link} sends faster than {link.bandwidth:g} GB/s at {each.start:g} µs",
                where=str(link),
                time=each.start,
            )
        if abs(each.end - each.sent - link.alpha) > slack:
            raise ScheduleError(
                f"link {link} takes {each.end - each.sent:g} µs, not its {link.alpha:g} µs alpha",
                where=str(link),
                time=each.sent,
            )
        free = each.sent


def _check_windows(
    problem: Problem, ends: tuple[str, str], *, transfers: list[Transfer], slack: float
) -> None:
    """Refuse a transfer that takes less time than windows would let it."""
    windows = [window for window in problem.windows if ends in window.links]
    if not windows:
        return
    moments = sorted({0.0, *(t for window in windows for t in (window.begin, window.end))})
    shares = [
        min((w.share for w in windows if w.begin <= moment < w.end), default=1.0)
        for moment in moments
    ]
    link = problem.topology.link(*ends)
    for each in transfers:
        # At full bandwidth it would take as long as all of its time, each part by its share.
        worth = sum(
            share * max(0.0, min(each.sent, end) - max(each.start, begin))
            for begin, end, share in zip(moments, [*moments[1:], np.inf], shares, strict=True)
        )
        if worth < each.nbytes * link.beta - slack:
            raise ScheduleError(
                f"link {link} sends {each.nbytes:g} bytes from {each.start:g} to {each.sent:g} µs, "
                "more than its windows let through",
                where=str(link),
                time=each.start,
            )


def _check_limit(
    problem: Problem, limit: SharedLimit, *, carried: list[list[Transfer]], slack: float
) -> None:
    """Count in each window what cannot have been carried outside it at the links' bandwidths."""
    rows = [
        (each.start, each.sent, each.nbytes, problem.topology.link(*ends).bandwidth * 1e3)
        for ends, transfers in zip(limit.links, carried, strict=True)
        for each in transfers
    ]
    if not rows:
        return
    starts, sents, nbytes, speeds = np.array(rows).T
    moments = np.unique(np.concatenate([starts, sents]))
    capacity = limit.bandwidth * 1e3
    for begin in moments:
        ends_at = moments[moments > begin][:, None]
        before = np.clip(np.minimum(sents, begin) - starts, 0, None)
        after = np.clip(sents - np.maximum(starts, ends_at), 0, None)
        inside = np.clip(nbytes - speeds * (before + after), 0, None)
        inside[(sents <= begin) | (starts >= ends_at)] = 0
        over = inside.sum(axis=1) - capacity * (ends_at[:, 0] - begin + slack) > 0
        if over.any():
            raise ScheduleError(
                f"limit {limit.name} is exceeded after {begin:g} µs",
                where=limit.name,
                time=float(begin),
            )


def _check_causes(problem: Problem, timeline: Timeline, slack: float) -> None:
    """Refuse a transfer from where nothing of its chunk can be yet."""
    topology, chunks = problem.topology, problem.collective.chunks
    first: dict[tuple[int, str], float] = {}
    for each in timeline.transfers:
        alpha = topology.link(each.src, each.dst).alpha
        # A device that cannot store may send on the first byte while the last is in flight.
        there = each.end if topology.device(each.dst).stores else each.start + alpha
        key = each.chunk, each.dst
        first[key] = min(first.get(key, there), there)
    for each in timeline.transfers:
        if topology.rank.get(each.src) in chunks[each.chunk].holders:
            continue
        if first.get((each.chunk, each.src), np.inf) > each.start + slack:
            raise ScheduleError(
                f"{each.src} sends chunk {each.chunk} at {each.start:g} µs before it has come",
                where=each.src,
                time=each.start,
            )
