"""Hops among devices become messages among ranks, in one order in which all can be done.

A program knows ranks alone, so what goes through switches, NICs and memories goes from the rank
that it left to the rank that it reaches: what a switch copies is sent once to each, and what a
switch adds up is sent by each and added where it arrives.

A message is sent at the moment at which it arrives, if what its sender holds of the chunk is then
still what left it; then nothing has to be under way, and all messages in their order, one after
the other, are a way to run the program: it cannot stand still. Where the sender has added
something in the meantime, the message is sent when it left and waits in its connection.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from ccl.collective import Chunk
from ccl.errors import ProblemError
from ccl.problem import Problem
from interchange.programs.lowering.hops import Hop, Hops


@dataclass(frozen=True, slots=True)
class Message:
    """A part on its way from rank to rank.

    Parameters
    ----------
    part
        Number of the part.
    src, dst
        Ranks.
    adds
        Whether it is added to what the receiver holds rather than put in its place.
    early
        Whether it is sent before other messages that are received before it.
    """

    part: int
    src: int
    dst: int
    adds: bool
    early: bool


@dataclass(frozen=True, slots=True)
class Event:
    """One end of a message: its sending or its receiving."""

    message: int
    sends: bool


@dataclass(frozen=True, slots=True)
class Messages:
    """All messages, and both ends of each in an order in which they can be done."""

    messages: tuple[Message, ...]
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class _Parcel:
    """What left a rank: the contributions in it, in which state of the rank, and when.

    `sums` are the bits of the ranks; 0 where nothing is added up.
    """

    rank: int
    sums: int
    version: int
    moment: int


@dataclass
class _Traced:
    """What devices hold of the parts while the hops are followed."""

    sums: dict[tuple[int, int], int] = field(default_factory=dict)
    version: defaultdict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    stored: defaultdict[tuple[int, str], list[_Parcel]] = field(
        default_factory=lambda: defaultdict(list)
    )
    left: dict[tuple[int, str], list[_Parcel]] = field(default_factory=dict)
    crossing: defaultdict[tuple[int, str, int], list[_Parcel]] = field(
        default_factory=lambda: defaultdict(list)
    )
    messages: list[Message] = field(default_factory=list)
    moments: defaultdict[int, list[Event]] = field(default_factory=lambda: defaultdict(list))


def messages_of(problem: Problem, hops: Hops) -> Messages:
    """Follow the hops of a verified plan and return the messages.

    Raises
    ------
    ProblemError
        If a device that cannot store sends on what no message says.
    """
    follower = _Follower(problem, hops)
    return follower.follow()


class _Follower:
    """Follows the hops in the order of their times."""

    def __init__(self, problem: Problem, hops: Hops) -> None:
        self._topology = problem.topology
        self._chunks = problem.collective.chunks
        self._hops = hops
        self._traced = _Traced()
        self._brought: dict[int, list[_Parcel]] = {}
        self._together: defaultdict[tuple[int, str, int], list[int]] = defaultdict(list)
        for number, hop in enumerate(hops.hops):
            if hop.after is None:
                self._together[hop.part, hop.src, hop.leaves].append(number)

    def follow(self) -> Messages:
        """Return the messages."""
        traced = self._traced
        for moment, (arrives, number) in enumerate(self._order()):
            hop = self._hops.hops[number]
            if arrives:
                self._arrive(hop, self._brought[number], moment)
            else:
                self._brought[number] = self._leave(hop, number, moment)
        events = [each for moment in sorted(traced.moments) for each in traced.moments[moment]]
        return Messages(tuple(traced.messages), tuple(events))

    def _order(self) -> list[tuple[bool, int]]:
        """Return arrivals and departures in order; at one moment arrivals come first."""
        hops = self._hops.hops
        times = sorted({time for hop in hops for time in (hop.start, hop.end)})
        ticks: dict[float, int] = {}
        last, tick = -float("inf"), 0
        for time in times:
            if time - last > self._hops.moment:
                tick += 1
            ticks[time], last = tick, time
        rows = [(ticks[hop.start], 1, number) for number, hop in enumerate(hops)]
        rows += [(ticks[hop.end], 0, number) for number, hop in enumerate(hops)]
        return [(kind == 0, number) for _, kind, number in sorted(rows)]

    def _leave(self, hop: Hop, number: int, moment: int) -> list[_Parcel]:
        """Return what a hop carries."""
        traced, rank = self._traced, self._topology.rank.get(hop.src)
        device = self._topology.device(hop.src)
        if rank is not None or (hop.after is None and device.stores):
            parcels = self._kept(hop, rank, moment)
            return parcels if device.copies else self._handed_on(hop, rank, parcels)
        if hop.after is not None:
            return [parcel for each in hop.after for parcel in self._brought[each]]
        came = traced.crossing[hop.part, hop.src, hop.leaves]
        leaving = self._together[hop.part, hop.src, hop.leaves]
        if len(leaving) == len(came) and not (device.copies and device.reduces):
            return [came[leaving.index(number)]]
        if came and (len(came) == 1 or self._chunk(hop.part).reduced):
            return came
        msg = (
            f"chunk {self._hops.parts[hop.part].chunk} leaves {hop.src} {len(leaving)} times in "
            f"turn {hop.leaves} and came {len(came)} times, which no messages between ranks say"
        )
        raise ProblemError(msg)

    def _kept(self, hop: Hop, rank: int | None, moment: int) -> list[_Parcel]:
        """Return what a device that stores holds of a part."""
        if rank is None:
            return self._traced.stored[hop.part, hop.src]
        key = hop.part, rank
        held = self._held(key)
        if self._chunk(hop.part).reduced and not held:
            return []
        return [_Parcel(rank, held, self._traced.version[key], moment)]

    def _handed_on(self, hop: Hop, rank: int | None, parcels: list[_Parcel]) -> list[_Parcel]:
        """Take from a device that cannot copy what it sends, of sums all that it holds.

        Where nothing is left, it is one more way of what left before: a switch copies it.
        """
        last = self._traced.left
        if parcels and self._chunk(hop.part).reduced:
            last[hop.part, hop.src] = parcels
            self._traced.stored[hop.part, hop.src] = []
            if rank is not None:
                self._traced.sums[hop.part, rank] = 0
        return parcels or last[hop.part, hop.src]

    def _arrive(self, hop: Hop, parcels: list[_Parcel], moment: int) -> None:
        """Keep what a hop brought, or make messages of it where it reaches a rank."""
        traced, rank = self._traced, self._topology.rank.get(hop.dst)
        if rank is not None:
            self._deliver(hop.part, rank, parcels, moment)
        elif not self._topology.device(hop.dst).stores:
            traced.crossing[hop.part, hop.dst, hop.comes] += parcels
        else:
            held = traced.stored[hop.part, hop.dst]
            both = _sums(held) & _sums(parcels)
            traced.stored[hop.part, hop.dst] = parcels if not held or both else [*held, *parcels]

    def _deliver(self, part: int, rank: int, parcels: list[_Parcel], moment: int) -> None:
        """Make the messages that bring a rank what has arrived."""
        key = part, rank
        held, came = self._held(key), _sums(parcels)
        own = [each for each in parcels if each.rank == rank]
        if own and own[0].version != self._traced.version[key]:
            msg = (
                f"chunk {self._hops.parts[part].chunk} comes back to rank {rank}, which has added "
                "something since it sent it; no messages between ranks say that"
            )
            raise ProblemError(msg)
        adds = self._chunk(part).reduced and bool(held) and (bool(own) or not held & came)
        for each in sorted(parcels, key=attrgetter("moment")):
            if each.rank != rank:
                self._send(part, each, rank, adds=adds, moment=moment)
                adds = self._chunk(part).reduced
        self._traced.sums[key] = held | came
        self._traced.version[key] += 1

    def _send(self, part: int, parcel: _Parcel, rank: int, *, adds: bool, moment: int) -> None:
        traced, number = self._traced, len(self._traced.messages)
        early = traced.version[part, parcel.rank] != parcel.version
        traced.messages.append(Message(part, parcel.rank, rank, adds, early))
        traced.moments[parcel.moment if early else moment].append(Event(number, sends=True))
        traced.moments[moment].append(Event(number, sends=False))

    def _held(self, key: tuple[int, int]) -> int:
        """Return the contributions that a rank holds of a part as bits."""
        if key not in self._traced.sums:
            chunk = self._chunk(key[0])
            held = 1 << key[1] if chunk.reduced and key[1] in chunk.holders else 0
            self._traced.sums[key] = held
        return self._traced.sums[key]

    def _chunk(self, part: int) -> Chunk:
        return self._chunks[self._hops.parts[part].chunk]


def _sums(parcels: Sequence[_Parcel]) -> int:
    """Return all contributions in parcels as bits."""
    total = 0
    for each in parcels:
        total |= each.sums
    return total
