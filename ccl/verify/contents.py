"""Contents of devices and of sends: four kinds of chunks, and whether they fit into buffers.

A whole chunk is there or not. A chunk sent in parts is an amount between 0 and 1, as in a fluid.
A reduced chunk is the set of ranks whose contributions have been added up, as bits of a number.
Where sends of one name what they carry (`ccl.plans.Send.terms`), a device has several such sets.

`check_buffers` finds out whether what a device keeps fits into its buffer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ccl.errors import ScheduleError
from ccl.plans import Send, bits_of, choose_values, ranks_of, share_values, union_of
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
        lacks = bits_of(self._chunks[number].holders) & ~self._sum[number, self._ranks[rank]]
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


@dataclass(slots=True)
class _Value:
    """A sum as it came: its contributions, the send that brought it, and the last that uses it.

    `uses` has the turns of all that do, and ``-1`` where a destination needs it at the end.
    """

    bits: int
    came: Timed | None = None
    last: Timed | None = None
    uses: list[int] = field(default_factory=list)


class Stay(NamedTuple):
    """What takes the space of a chunk from a send's arrival until another leaves.

    None for what is there at first, and for what stays.
    """

    came: Timed | None
    last: Timed | None


class Terms(Sums):
    """Reduced chunks with sends that name what they carry: values, sums as they came."""

    def __init__(self, problem: Problem, numbers: Sequence[int]) -> None:
        super().__init__(problem, ())
        self._devices = {each.name: each for each in problem.topology.devices}
        self._turn = 0
        self._values: defaultdict[tuple[int, str], list[_Value]] = defaultdict(list)
        self._gone: defaultdict[tuple[int, str], list[_Value]] = defaultdict(list)
        for number in numbers:
            for rank in self._chunks[number].holders:
                self._values[number, self._ranks[rank]].append(_Value(1 << rank))

    def leave(self, timed: Timed, device: Device) -> Content:
        """Send the sum of values; a device that cannot copy has them no more."""
        place = timed.send.chunk, device.name
        values = self._values[place]
        if not values:
            raise _absent(timed, device)
        bits = [each.bits for each in values]
        chosen = choose_values(bits, _named(timed.send), adds=device.reduces)
        if chosen is None:
            raise self._unsent(timed, device, bits)
        self._turn += 1
        for i in chosen:
            value = values[i]
            value.last = timed
            value.uses.append(self._turn)
        if not device.copies:
            self._gone[place] += [values[i] for i in chosen]
            self._values[place] = [each for i, each in enumerate(values) if i not in chosen]
        return sum(bits[i] for i in chosen)

    def arrive(self, timed: Timed, device: Device, content: Content) -> None:
        """Keep a value beside the others."""
        values = self._values[timed.send.chunk, device.name]
        if content in [each.bits for each in values]:
            raise _twice(timed, device)
        values.append(_Value(int(content), timed))

    def cross(
        self, timed: Timed, device: Device, *, came: Sequence[Content], leaving: Sequence[Send]
    ) -> Sequence[Content]:
        """Send each value on, as one with others where the device reduces."""
        bits = [int(each) for each in came]
        terms = [_named(send) for send in leaving]
        shares = share_values(bits, terms, copies=device.copies, adds=device.reduces)
        if shares is None:
            if not any(terms):
                raise _unforwarded(timed, device, came=len(came), leaves=len(leaving))
            what = (
                f"what came to {device.name} of chunk {timed.send.chunk} for this epoch, "
                f"{' and '.join(map(_ranks, bits))}, is not what leaves it, "
                f"{' and '.join(_ranks(each) if each else 'the rest' for each in terms)}; both "
                "must agree"
            )
            raise broken_rule(timed, device, what)
        return [self._added(timed, device, [bits[i] for i in share]) for share in shares]

    def missing(self, number: int, rank: int) -> str | None:
        """Describe whose contribution is not there, or what does not add up."""
        name, wanted = self._ranks[rank], bits_of(self._chunks[number].holders)
        values = self._values[number, name]
        bits = [each.bits for each in values]
        chosen = choose_values(bits, wanted, adds=self._devices[name].reduces)
        if chosen is not None:
            for i in chosen:
                values[i].uses.append(-1)
            return None
        lacks = wanted & ~union_of(bits)
        if lacks:
            whose = self._ranks[_lowest(lacks)]
            return f"the contribution of {whose} to chunk {number} is not in {name}"
        held = " and ".join(map(_ranks, bits))
        return f"{name} holds {held} of chunk {number}, which do not make up the sum of all"

    def stays(self, number: int, name: str) -> list[Stay]:
        """Return what takes the space of a chunk at a device, from when until when.

        Values that leave together each time are added to one another as they come. What nobody
        uses takes no space.
        """
        place = number, name
        alike: dict[tuple[int, ...], list[_Value]] = {}
        for value in (*self._gone[place], *self._values[place]):
            if value.uses:
                alike.setdefault(tuple(value.uses), []).append(value)
        # They are in the order in which they came.
        return [
            Stay(those[0].came, None if uses[-1] < 0 else those[0].last)
            for uses, those in alike.items()
        ]

    def _added(self, timed: Timed, device: Device, bits: Sequence[int]) -> int:
        total = 0
        for each in bits:
            if total & each:
                raise self._added_twice(timed, device, total & each)
            total |= each
        return total

    def _unsent(self, timed: Timed, device: Device, bits: Sequence[int]) -> ScheduleError:
        send, held = timed.send, " and ".join(map(_ranks, bits))
        named = _named(send)
        lacks = 0 if named is None else named & ~union_of(bits)
        if lacks:
            what = (
                f"{device.name} does not hold the contribution of rank {_lowest(lacks)} "
                f"({self._ranks[_lowest(lacks)]}) to {send} at {timed.start:g} µs; send it later"
            )
        elif not device.reduces:
            what = (
                f"{device.name} cannot reduce and holds {held} of chunk {send.chunk} at "
                f"{timed.start:g} µs; name in the terms of {send} what came as one"
            )
        else:
            what = (
                f"{device.name} holds {held} of chunk {send.chunk} at {timed.start:g} µs, of which "
                f"none add up to {send}; name ranks whose sums it holds"
            )
        return broken_rule(timed, device, what)


def _named(send: Send) -> int | None:
    return None if send.terms is None else bits_of(send.terms)


def _ranks(bits: int) -> str:
    ranks = [str(rank) for rank in ranks_of(bits)]
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(ranks)}"


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def check_buffers(
    problem: Problem, clock: Clock, terms: Mapping[int, Terms]
) -> ScheduleError | None:
    """Return the first moment at which a device keeps more than its buffer takes.

    A device keeps a chunk from its arrival until its last send of it starts, and for ever where
    it is a destination; parts of a chunk are stored as amounts. What leaves at a moment makes space
    for what arrives then. Where sends name what they carry, a device keeps each value likewise, and
    for ever where a destination needs it; values that all the same sends carry are one, since they
    can be added as they come. `terms` has these chunks by number.
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
        _overfull(
            problem, clock, device=problem.topology.device(name), traffic=traffic, terms=terms
        )
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
    problem: Problem, clock: Clock, *, device: Device, traffic: _Traffic, terms: Mapping[int, Terms]
) -> ScheduleError | None:
    assert device.buffer_bytes is not None
    capacity = device.buffer_bytes * (1 + TOLERANCE)
    held = 0.0
    changes = _changes(problem, clock, traffic, terms)
    for number, those in terms.items():
        changes += _stays(clock, those.stays(number, device.name), problem=problem, number=number)
    for _, change, time, timed, number in sorted(changes, key=_order):
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


def _stays(
    clock: Clock, stays: Iterable[Stay], *, problem: Problem, number: int
) -> Iterator[_Change]:
    """Yield the values of a chunk that a device begins and ceases to keep."""
    size = problem.collective.chunks[number].size
    for came, last in stays:
        end = 0.0 if came is None else came.end
        yield (-clock.slack if came is None else end + clock.slack), size, end, came, number
        if last is not None:
            yield last.start, -size, last.start, last, number


def _changes(
    problem: Problem, clock: Clock, traffic: _Traffic, apart: Container[int]
) -> list[_Change]:
    """List what a device begins and ceases to keep, but of some chunks."""
    changes: list[_Change] = []
    for number in sorted({*traffic.came, *traffic.left, *traffic.holds}):
        if number in apart:
            continue
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
