"""What counters of a replay show over time: the share of links that are busy, and full buffers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import accumulate

import numpy as np

from ccl.problem import Problem
from ccl.timeline import Timeline, Transfer

MOST_STEPS = 2000
"""Of a curve; one that changes more often is shown by its mean in so many slots of time."""

Curve = list[tuple[float, float]]
"""Times in µs, and the value from there on."""


def busy_links(problem: Problem, timeline: Timeline) -> Curve:
    """Return the share of links that are sending; each counts with those that it stands for."""
    if not timeline.transfers:
        return []
    stands: defaultdict[tuple[str, str], int] = defaultdict(int)
    for link in problem.topology.links:
        stands[timeline.place(*link.ends)] += 1
    changes = []
    for each in timeline.transfers:
        weight = stands[timeline.place(each.src, each.dst)]
        changes += [(each.start, weight), (each.sent, -weight)]
    curve = _summed(changes)
    links = len(problem.topology.links)
    return _thinned([(time, value / links) for time, value in curve])


def kept_bytes(problem: Problem, timeline: Timeline) -> dict[str, Curve]:
    """Return the bytes that each device with a limited buffer keeps.

    A device keeps a chunk from its arrival until its last transfer of it starts, and for ever
    where it is a destination; parts of a chunk are kept as amounts. Of a symmetric timeline, which
    shows representatives alone, nothing is known.
    """
    if timeline.images > 1 or timeline.orbits:
        return {}
    limited = [
        each.name
        for each in problem.topology.devices
        if each.stores and each.buffer_bytes is not None
    ]
    moves: dict[str, defaultdict[int, tuple[list[Transfer], list[Transfer]]]] = {
        name: defaultdict(lambda: ([], [])) for name in limited
    }
    for each in timeline.transfers:
        if each.dst in moves:
            moves[each.dst][each.chunk][0].append(each)
        if each.src in moves:
            moves[each.src][each.chunk][1].append(each)
    curves = {}
    for name, of_chunk in moves.items():
        changes = [
            change
            for number in range(len(problem.collective.chunks))
            for change in _changes(problem, name, number=number, moves=of_chunk[number])
        ]
        curves[name] = _thinned(_summed(changes))
    return curves


def _changes(
    problem: Problem, name: str, *, number: int, moves: tuple[list[Transfer], list[Transfer]]
) -> Iterable[tuple[float, float]]:
    """Return when a device begins or ceases to keep how many bytes of a chunk."""
    chunk, rank = problem.collective.chunks[number], problem.topology.rank.get(name, -1)
    holds, needs = rank in chunk.holders, rank in chunk.destinations
    came, left = moves
    if not left and not needs:
        return []
    changes = [(0.0, chunk.size)] if holds else []
    if any(each.nbytes < chunk.size * (1 - 1e-6) for each in (*came, *left)):
        changes += [] if holds and chunk.reduced else [(each.end, each.nbytes) for each in came]
        return changes + ([] if needs else [(each.start, -each.nbytes) for each in left])
    if not holds and came:
        changes.append((min(each.end for each in came), chunk.size))
    if not needs:
        changes.append((max(each.start for each in left), -chunk.size))
    return changes


def _summed(changes: Iterable[tuple[float, float]]) -> Curve:
    """Add up changes; those of one moment are one."""
    at: defaultdict[float, float] = defaultdict(float)
    for time, change in changes:
        at[time] += change
    times = sorted(at)
    return list(zip(times, accumulate(at[time] for time in times), strict=True))


def _thinned(curve: Curve) -> Curve:
    """Return the curve, or its mean in equal slots of time where it has too many steps."""
    if len(curve) <= MOST_STEPS:
        return curve
    times, values = (np.array(each) for each in zip(*curve, strict=True))
    area = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times))])
    moments = np.linspace(times[0], times[-1], MOST_STEPS)
    means = np.diff(np.interp(moments, times, area)) / np.diff(moments)
    return [*zip(moments[:-1].tolist(), means.tolist(), strict=True), curve[-1]]
