"""Contents of devices and of sends: three kinds of chunks.

A whole chunk is there or not. A chunk sent in parts is an amount between 0 and 1, as in a fluid.
A reduced chunk is the set of ranks whose contributions have been added up, as bits of a number.

Whether what a device keeps fits into its buffer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ccl.collective import Chunk
from ccl.errors import ScheduleError
from ccl.plans import Send
from ccl.problem import Problem
from ccl.topology import Device
from ccl.verify.order import TOLERANCE, find_meeting
from ccl.verify.times import Clock, Timed

Content = float
"""1 for a whole chunk, an amount, or the bits of a set, which are an `int`."""


class Possession(Protocol):
    """Who holds how much of the chunks of one kind."""

    def leave(self, timed: Timed, device: Device) -> Content:
        """Return what a send from a storing device carries."""

    def arrive(self, timed: Timed, device: Device, content: Content) -> None:
        """Keep at a storing device what a send brought."""

    def cross(
        self, timed: Timed, device: Device, *, came: Sequence[Content], leaving: Sequence[Send]
    ) -> Sequence[Content]:
        """Return what each of the sends that leave a device that cannot store carries.

        `came` is what arrived for that epoch, in order of arrival; `timed` is the first to leave.
        """

    def missing(self, number: int, rank: int) -> str | None:
        """Describe what a destination lacks at the end, or None."""


def broken_rule(timed: Timed, device: Device, what: str, *, arrived: bool = False) -> ScheduleError:
    """Make the error for a send that breaks a rule at a device."""
    epoch = timed.send.epoch
    time = timed.end if arrived else timed.start
    return ScheduleError(f"epoch {epoch}: {what}", where=device.name, time=time, epoch=epoch)


def _unforwarded(timed: Timed, device: Device, *, came: int, leaves: int) -> ScheduleError:
    what = (
        f"chunk {timed.send.chunk} came to {device.name} {came} times for this epoch and leaves it "
        f"{leaves} times; what cannot copy or add sends out as much as came in"
    )
    return broken_rule(timed, device, what)


def _twice(timed: Timed, device: Device) -> ScheduleError:
    what = f"{device.name} receives {timed.send} a second time; drop one of the sends"
    return broken_rule(timed, device, what, arrived=True)


def _absent(timed: Timed, device: Device) -> ScheduleError:
    what = f"{device.name} does not hold {timed.send} at {timed.start:g} µs; send it later"
    return broken_rule(timed, device, what)


class Whole:
    """Chunks that are sent whole and not reduced."""

    def __init__(self, problem: Problem, numbers: Sequence[int]) -> None:
        self._ranks = problem.topology.ranks
        holds = [(n, rank) for n in numbers for rank in problem.collective.chunks[n].holders]
        self._got = {(n, self._ranks[rank]) for n, rank in holds}
        self._left: set[tuple[int, str]] = set()

    def leave(self, timed: Timed, device: Device) -> Content:
        """Let a device that cannot copy send it once, and another keep it."""
        place = timed.send.chunk, device.name
        if place not in self._got:
            raise _absent(timed, device)
        if not device.copies:
            if place in self._left:
                what = f"{device.name} cannot copy and sends {timed.send} a second time"
                raise broken_rule(timed, device, what)
            self._left.add(place)
        return 1

    def arrive(self, timed: Timed, device: Device, _content: Content) -> None:
        """Take it once."""
        place = timed.send.chunk, device.name
        if place in self._got:
            raise _twice(timed, device)
        self._got.add(place)

    def cross(
        self, timed: Timed, device: Device, *, came: Sequence[Content], leaving: Sequence[Send]
    ) -> Sequence[Content]:
        """Copy what came once where the device copies; else send out as many as came."""
        if len(came) != (1 if device.copies else len(leaving)):
            raise _unforwarded(timed, device, came=len(came), leaves=len(leaving))
        return [1] * len(leaving)

    def missing(self, number: int, rank: int) -> str | None:
        """Describe where it is not."""
        place = number, self._ranks[rank]
        if place in self._got and place not in self._left:
            return None
        return f"chunk {number} is not in {self._ranks[rank]}, which needs it"


class Parts:
    """Chunks of which parts are sent, as amounts."""

    def __init__(self, problem: Problem, numbers: Sequence[int]) -> None:
        self._ranks = problem.topology.ranks
        self._chunks = problem.collective.chunks
        self._amount: defaultdict[tuple[int, str], float] = defaultdict(float)
        for number in numbers:
            for rank in self._chunks[number].holders:
                self._amount[number, self._ranks[rank]] = 1.0

    def leave(self, timed: Timed, device: Device) -> Content:
        """Send no more than is held."""
        send = timed.send
        have = self._amount[send.chunk, device.name]
        if send.fraction > have + TOLERANCE:
            what = (
                f"{device.name} holds {have:g} of chunk {send.chunk} at {timed.start:g} µs and "
                f"sends {send.fraction:g} of it to {send.dst}; send no more than it holds"
            )
            raise broken_rule(timed, device, what)
        self._amount[send.chunk, device.name] = have - send.fraction
        return send.fraction

    def arrive(self, timed: Timed, device: Device, content: Content) -> None:
        """Add up amounts, to the chunk at most."""
        place = timed.send.chunk, device.name
        self._amount[place] += content
        if self._amount[place] > 1 + TOLERANCE:
            raise _twice(timed, device)

    def cross(
        self, timed: Timed, device: Device, *, came: Sequence[Content], leaving: Sequence[Send]
    ) -> Sequence[Content]:
        """Send as much as came."""
        leaves = [send.fraction for send in leaving]
        if abs(sum(came) - sum(leaves)) > TOLERANCE:
            what = (
                f"{sum(came):g} of chunk {timed.send.chunk} came to {device.name} for this epoch "
                f"and {sum(leaves):g} leaves it; it stores nothing, so both must be equal"
            )
            raise broken_rule(timed, device, what)
        return leaves

    def missing(self, number: int, rank: int) -> str | None:
        """Describe how much is there."""
        have = self._amount[number, self._ranks[rank]]
        if have >= 1 - TOLERANCE:
            return None
        return f"{have:g} of chunk {number} is in {self._ranks[rank]}, which needs all of it"


class Sums:
    """Reduced chunks: sets of contributions as bits."""

    def __init__(self, problem: Problem, numbers: Sequence[int]) -> None:
        self._ranks = problem.topology.ranks
        self._chunks = problem.collective.chunks
        self._sum: defaultdict[tuple[int, str], int] = defaultdict(int)
        for number in numbers:
            for rank in self._chunks[number].holders:
                self._sum[number, self._ranks[rank]] = 1 << rank

    def leave(self, timed: Timed, device: Device) -> Content:
        """Send the sum held; a device that cannot copy keeps nothing of it."""
        place = timed.send.chunk, device.name
        held = self._sum[place]
        if not held:
            raise _absent(timed, device)
        if not device.copies:
            self._sum[place] = 0
        return held

    def arrive(self, timed: Timed, device: Device, content: Content) -> None:
        """Add a disjoint sum; one that has more than all of the old replaces it."""
        place = timed.send.chunk, device.name
        held, came = self._sum[place], int(content)
        if came == held:
            raise _twice(timed, device)
        if held and not held & came:
            if not device.reduces:
                what = f"{device.name} cannot reduce and receives {timed.send} in two parts"
                raise broken_rule(timed, device, what, arrived=True)
        elif held & ~came:
            raise self._added_twice(timed, device, held & came)
        self._sum[place] = held | came

    def cross(
        self, timed: Timed, device: Device, *, came: Sequence[Content], leaving: Sequence[Send]
    ) -> Sequence[Content]:
        """Add all to one sum where the device reduces; else send each as it came."""
        n = len(leaving)
        if n == len(came) and not (device.copies and device.reduces):
            return came
        if (len(came) > 1 and not device.reduces) or (n > 1 and not device.copies):
            raise _unforwarded(timed, device, came=len(came), leaves=n)
        total = 0
        for each in came:
            if total & int(each):
                raise self._added_twice(timed, device, total & int(each))
            total |= int(each)
        return [total] * n

    def together(
        self, sends: Sequence[Timed], contents: Sequence[Content], devices: Mapping[str, Device]
    ) -> Content:
        """Add up what sends bring whose paths meet."""
        total = 0
        for i, (timed, content) in enumerate(zip(sends, contents, strict=True)):
            both = total & int(content)
            if both:
                before = next(j for j in range(i) if int(contents[j]) & both)
                where = devices[find_meeting(sends[before].send, timed.send)]
                raise self._added_twice(timed, where, both)
            total |= int(content)
        return total

    def missing(self, number: int, rank: int) -> str | None:
        """Describe whose contribution is not there."""
        lacks = _all(self._chunks[number]) & ~self._sum[number, self._ranks[rank]]
        if not lacks:
            return None
        whose = self._ranks[_lowest(lacks)]
        return f"the contribution of {whose} to chunk {number} is not in {self._ranks[rank]}"

    def _added_twice(self, timed: Timed, device: Device, both: int) -> ScheduleError:
        rank = _lowest(both)
        what = (
            f"{device.name} adds the contribution of rank {rank} ({self._ranks[rank]}) to chunk "
            f"{timed.send.chunk} twice; it must be added once"
        )
        return broken_rule(timed, device, what, arrived=timed.send.dst == device.name)


def _all(chunk: Chunk) -> int:
    return sum(1 << rank for rank in chunk.holders)


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def check_buffers(problem: Problem, clock: Clock) -> ScheduleError | None:
    """Return the first moment at which a device keeps more than its buffer takes.

    A device keeps a chunk from its arrival until its last send of it starts, and for ever where
    it is a destination; parts of a chunk are stored as amounts. What leaves at a moment makes space
    for what arrives then.
    """
    limited = {
        each.name: _Traffic()
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
        _overfull(problem, clock, device=problem.topology.device(name), traffic=traffic)
        for name, traffic in limited.items()
    ]
    errors = [error for error in found if error is not None]
    return min(errors, key=lambda error: error.time, default=None)


@dataclass(frozen=True, slots=True)
class _Traffic:
    """What comes to a device and leaves it by chunk, and the chunks it has first or needs last."""

    came: defaultdict[int, list[Timed]] = field(default_factory=lambda: defaultdict(list))
    left: defaultdict[int, list[Timed]] = field(default_factory=lambda: defaultdict(list))
    holds: set[int] = field(default_factory=set)
    needs: set[int] = field(default_factory=set)


def _overfull(
    problem: Problem, clock: Clock, *, device: Device, traffic: _Traffic
) -> ScheduleError | None:
    assert device.buffer_bytes is not None
    capacity = device.buffer_bytes * (1 + TOLERANCE)
    held = 0.0
    for _, change, time, timed, number in sorted(_changes(problem, clock, traffic), key=_order):
        held += change
        if change > 0 and held > capacity:
            epoch = 0 if timed is None else timed.send.epoch
            msg = (
                f"epoch {epoch}: {device.name} keeps {held:g} bytes with chunk {number} at "
                f"{time:g} µs and its buffer takes {device.buffer_bytes:g}; send something on "
                "first or enlarge it"
            )
            return ScheduleError(msg, where=device.name, time=time, epoch=epoch)
    return None


_Change = tuple[float, float, float, Timed | None, int]
"""Sorting key in µs, bytes more or less, µs, the send behind it, and the chunk."""


def _order(change: _Change) -> tuple[float, float]:
    return change[:2]


def _changes(problem: Problem, clock: Clock, traffic: _Traffic) -> list[_Change]:
    """List what a device begins and ceases to keep."""
    changes: list[_Change] = []
    for number in sorted({*traffic.came, *traffic.left, *traffic.holds}):
        chunk = problem.collective.chunks[number]
        arrivals, departures = traffic.came.get(number, []), traffic.left.get(number, [])
        holds, needs = number in traffic.holds, number in traffic.needs
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
