"""Whether what a device keeps fits into its buffer."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from ccl.errors import ScheduleError
from ccl.problem import Problem
from ccl.topology import Device
from ccl.verify.order import TOLERANCE
from ccl.verify.times import Clock, Timed


def check_buffers(problem: Problem, clock: Clock) -> ScheduleError | None:
    """Return the first moment at which a device keeps more than its buffer takes.

    A device keeps a chunk from its arrival until its last send of it starts, and for ever where
    it is a destination; parts of a chunk are kept as amounts. What leaves at a moment makes room
    for what arrives then.
    """
    limited = {
        each.name: _Moves()
        for each in problem.topology.devices
        if each.stores and each.buffer_bytes is not None
    }
    if not limited:
        return None
    for timed in clock.sends:
        if timed.send.dst in limited:
            limited[timed.send.dst].came[timed.send.chunk].append(timed)
        if timed.send.src in limited:
            limited[timed.send.src].left[timed.send.chunk].append(timed)
    ranks = problem.topology.ranks
    for number, chunk in enumerate(problem.collective.chunks):
        for rank in chunk.holders:
            if ranks[rank] in limited:
                limited[ranks[rank]].holds.add(number)
        for rank in chunk.destinations:
            if ranks[rank] in limited:
                limited[ranks[rank]].needs.add(number)
    found = [
        _overfull(problem, clock, device=problem.topology.device(name), moves=moves)
        for name, moves in limited.items()
    ]
    errors = [error for error in found if error is not None]
    return min(errors, key=lambda error: error.time, default=None)


@dataclass(frozen=True, slots=True)
class _Moves:
    """What comes to a device and leaves it by chunk, and the chunks it has first or needs last."""

    came: defaultdict[int, list[Timed]] = field(default_factory=lambda: defaultdict(list))
    left: defaultdict[int, list[Timed]] = field(default_factory=lambda: defaultdict(list))
    holds: set[int] = field(default_factory=set)
    needs: set[int] = field(default_factory=set)


def _overfull(
    problem: Problem, clock: Clock, *, device: Device, moves: _Moves
) -> ScheduleError | None:
    assert device.buffer_bytes is not None
    room = device.buffer_bytes * (1 + TOLERANCE)
    kept = 0.0
    for _, change, time, timed, number in sorted(_changes(problem, clock, moves), key=_order):
        kept += change
        if change > 0 and kept > room:
            epoch = 0 if timed is None else timed.send.epoch
            msg = (
                f"epoch {epoch}: {device.name} keeps {kept:g} bytes with chunk {number} at "
                f"{time:g} µs and its buffer takes {device.buffer_bytes:g}; send something on "
                "first or enlarge it"
            )
            return ScheduleError(msg, where=device.name, time=time, epoch=epoch)
    return None


_Change = tuple[float, float, float, Timed | None, int]
"""Sorting key in µs, bytes more or less, µs, the send behind it, and the chunk."""


def _order(change: _Change) -> tuple[float, float]:
    return change[:2]


def _changes(problem: Problem, clock: Clock, moves: _Moves) -> list[_Change]:
    """List what a device begins and ceases to keep."""
    changes: list[_Change] = []
    for number in sorted({*moves.came, *moves.left, *moves.holds}):
        chunk = problem.collective.chunks[number]
        arrivals, departures = moves.came.get(number, []), moves.left.get(number, [])
        holds, needs = number in moves.holds, number in moves.needs
        if not any(each.send.fraction < 1 for each in (*arrivals, *departures)):
            if not departures and not needs:
                continue
            arrivals = [] if holds else sorted(arrivals, key=lambda timed: timed.end)[:1]
            departures = [] if needs else [max(departures, key=lambda timed: timed.start)]
        if holds:
            changes.append((-clock.slack, chunk.size, 0.0, None, number))
        for each in arrivals:
            size = each.send.fraction * chunk.size
            changes.append((each.end + clock.slack, size, each.end, each, number))
        for each in departures:
            size = each.send.fraction * chunk.size
            changes.append((each.start, -size, each.start, each, number))
    return changes
