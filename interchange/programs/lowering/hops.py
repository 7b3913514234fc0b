"""Plans of all kinds as hops: which part of which chunk goes from device to device, in what order.

Every chunk is cut into as many equal pieces, so that each share of it that goes a way of its own is
a run of pieces (`Part`). Shares of forests are exact fractions, and the pieces their least common
denominator; those of flows and of sends of a part of a chunk are the nearest fractions. Where that
would take too many pieces, shares are rounded to whole pieces, the largest remainders first.

Times only order the hops. A schedule's are its own, the µs at which each send starts and has
arrived; of forests and flows, whose parts follow one another without end, a link takes one step.

Hops among devices become messages among ranks, in one order in which all can be done.

A program knows ranks alone, so what goes through switches, NICs and memories goes from the rank
that it left to the rank that it reaches: what a switch copies is sent once to each, and what a
switch adds up is sent by each and added where it arrives.

A message is sent at the moment at which it arrives, if what its sender holds of the chunk is then
still what left it; then nothing has to be under way, and all messages in their order, one after
the other, are a way to run the program: it cannot stand still. Where the sender has added
something in the meantime, the message is sent when it left and waits in its connection.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import attrgetter

from ccl.collective import Chunk
from ccl.errors import ProblemError
from ccl.plans import Flow, Rate, Schedule, Send, paths
from ccl.problem import Problem
from ccl.result import Plan
from ccl.simulate.plan import plan_sends
from ccl.simulate.routes import SAME_MOMENT
from ccl.topology import binding_limits
from ccl.tree_embedding import routes

_NEAR = 1e-6
"""Shares that differ by less are the same: a linear program tells them no more exactly."""


@dataclass(frozen=True, slots=True)
class Part:
    """A run of pieces of a chunk: `count` of them from `start` on."""

    chunk: int
    start: int
    count: int


@dataclass(frozen=True, slots=True)
class Hop:
    """A part on its way from one device to another.

    Parameters
    ----------
    part
        Number of the part.
    src, dst
        Devices.
    start, end
        When it leaves and when it has arrived; of two hops only the order counts.
    after
        Numbers of the hops that bring what it takes on from a device that is no rank; None where
        the turns say it.
    leaves, comes
        In which turn it leaves a device that cannot store, and for which it comes to one.
    """

    part: int
    src: str
    dst: str
    start: float
    end: float
    after: tuple[int, ...] | None = None
    leaves: int = 0
    comes: int = 0


@dataclass(frozen=True, slots=True)
class Hops:
    """All hops of a plan.

    Parameters
    ----------
    parts
        What they carry.
    hops
        In no order.
    pieces
        In how many each chunk is cut.
    moment
        Times that differ by less are one.
    rounded
        Whether shares were rounded to whole pieces.
    """

    parts: tuple[Part, ...]
    hops: tuple[Hop, ...]
    pieces: int
    moment: float
    rounded: bool


@dataclass(frozen=True, slots=True)
class _Way:
    """A share of a chunk with the ends of its links, when it crosses each, and after which."""

    chunk: int
    share: Fraction
    links: tuple[tuple[str, str], ...]
    times: tuple[float, ...]
    after: tuple[tuple[int, ...], ...]


def hops_of(problem: Problem, plan: Plan, *, most_pieces: int) -> Hops:
    """Return the hops of a plan, with chunks of `most_pieces` pieces at most."""
    if isinstance(plan, Schedule):
        return _of_schedule(problem, plan, most_pieces)
    if isinstance(plan, Flow):
        return _cut(_along_paths(problem, plan, most_pieces), most_pieces)
    links = problem.topology.links
    found = [
        _Way(
            way.chunk,
            way.share,
            tuple(links[each].ends for each in way.links),
            times=way.steps,
            after=way.after,
        )
        for way in routes(problem, plan.unfolded(problem.topology))
    ]
    return _cut(found, most_pieces)


def _along_paths(problem: Problem, flow: Flow, most_pieces: int) -> list[_Way]:
    """Take a flow apart into paths, the share of each as near a simple fraction as it is."""
    found = []
    for number, listed in paths(problem, flow):
        whole = math.fsum(share for share, _ in listed)
        shares = [_simple(share / whole, most_pieces) for share, _ in listed]
        if sum(shares) != 1:
            exact = [Fraction(share) for share, _ in listed]
            shares = [share / sum(exact) for share in exact]
        for share, (_, path) in zip(shares, listed, strict=True):
            steps = range(len(path) - 1)
            after = ((), *((step,) for step in steps[:-1]))
            links = tuple(itertools.pairwise(path))
            found.append(_Way(number, share, links, times=tuple(steps), after=after))
    return found


def _simple(share: float, most: int) -> Fraction:
    near = Fraction(share).limit_denominator(most)
    return near if abs(near - share) < _NEAR else Fraction(share)


def _cut(found: Sequence[_Way], most_pieces: int) -> Hops:
    """Give every way its run of pieces, and every link of it a hop."""
    pieces, exact = _denominator((way.share for way in found), most_pieces)
    of_chunk: defaultdict[int, list[_Way]] = defaultdict(list)
    for way in found:
        of_chunk[way.chunk].append(way)
    parts: list[Part] = []
    hops: list[Hop] = []
    for number, listed in of_chunk.items():
        start = 0
        counts = _whole_pieces([way.share for way in listed], pieces)
        for way, count in zip(listed, counts, strict=True):
            if count:
                hops += _crossed(way, len(parts), first=len(hops))
                parts.append(Part(number, start, count))
            start += count
    return Hops(tuple(parts), tuple(hops), pieces, moment=_NEAR, rounded=not exact)


def _crossed(way: _Way, part: int, *, first: int) -> list[Hop]:
    """Return a hop for each link; it is there before the next time begins."""
    return [
        Hop(part, src, dst, time, time + 1, after=tuple(first + place for place in after))
        for (src, dst), time, after in zip(way.links, way.times, way.after, strict=True)
    ]


def _denominator(shares: Iterator[Fraction], most: int) -> tuple[int, bool]:
    """Return in how many pieces a chunk is cut, and whether all shares are whole pieces then."""
    pieces = 1
    for share in shares:
        pieces = math.lcm(pieces, share.denominator)
        if pieces > most:
            return most, False
    return pieces, True


def _whole_pieces(shares: Sequence[Fraction], pieces: int) -> list[int]:
    """Round the shares of one chunk to whole pieces, `pieces` in all."""
    counts = [math.floor(share * pieces) for share in shares]
    rest = [share * pieces - count for share, count in zip(shares, counts, strict=True)]
    order = sorted(range(len(shares)), key=lambda i: (-rest[i], i))
    for i in order[: pieces - sum(counts)]:
        counts[i] += 1
    return counts


def _of_schedule(problem: Problem, schedule: Schedule, most_pieces: int) -> Hops:
    """Return the hops of whole chunks as they are sent, and of parts of chunks along paths."""
    plan = plan_sends(problem, schedule, binding_limits(problem.topology))
    tau, slack = schedule.epoch_duration, SAME_MOMENT * schedule.duration
    in_parts = {send.chunk for send in plan.sends if send.fraction < 1}
    numbers = sorted({send.chunk for send in plan.sends} - in_parts)
    rows = list(zip(plan.sends, plan.starts, plan.ends, strict=True))
    cut = Hops((), (), 1, moment=slack, rounded=False)
    if in_parts:
        parted = [(send, start) for send, start, _ in rows if send.chunk in in_parts]
        cut = _cut(_ways_of_parts(problem, parted, most_pieces), most_pieces)
    place = {number: len(cut.parts) + i for i, number in enumerate(numbers)}
    whole = [Part(number, 0, cut.pieces) for number in numbers]
    hops = [
        Hop(
            place[send.chunk],
            send.src,
            send.dst,
            start,
            end,
            leaves=send.epoch,
            comes=math.ceil((end - slack) / tau),
        )
        for send, start, end in rows
        if send.chunk not in in_parts
    ]
    return replace(cut, parts=(*cut.parts, *whole), hops=(*cut.hops, *hops), moment=slack)


def _ways_of_parts(
    problem: Problem, parted: Sequence[tuple[Send, float]], most_pieces: int
) -> list[_Way]:
    """Return the paths of chunks that are sent in parts, in the order in which links begin them."""
    begins: dict[tuple[int, tuple[str, str]], float] = {}
    rates = []
    for send, start in parted:
        for ends in send.hops:
            key = send.chunk, ends
            begins[key] = min(start, begins.get(key, start))
            rates.append(Rate(send.chunk, *ends, min(1.0, send.fraction)))
    found = []
    for way in _along_paths(problem, Flow(tuple(rates)), most_pieces):
        times = itertools.accumulate(
            (begins[way.chunk, ends] for ends in way.links), lambda last, now: max(last + 1, now)
        )
        found.append(replace(way, times=tuple(times)))
    return found


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
        raise ProblemError(
            f"chunk {self._hops.parts[hop.part].chunk} leaves {hop.src} {len(leaving)} times in "
            f"turn {hop.leaves} and came {len(came)} times, which no messages between ranks say"
        )

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
            raise ProblemError(
                f"chunk {self._hops.parts[part].chunk} comes back to rank {rank}, which has added "
                "something since it sent it; no messages between ranks say that"
            )
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
