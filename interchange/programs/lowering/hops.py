"""Plans of all kinds as hops from device to device, and these as messages from rank to rank.

`hops_of` says which part of which chunk goes from device to device, in what order. Every chunk is
cut into as many equal pieces, so that each share of it that goes a way of its own is a run of
pieces (`Part`). Shares of forests are exact fractions, and the pieces their least common
denominator; those of flows and of sends of a part of a chunk are the nearest fractions. Where that
would take too many pieces, shares are rounded to whole pieces, the largest remainders first.

Times only order the hops. A schedule's are its own, the µs at which each send starts and has
arrived; of forests and flows, whose parts follow one another without end, a link takes one step.

`messages_of` makes messages among ranks, in one order in which all can be done. A program knows
ranks alone, so what goes through switches, NICs and memories goes from the rank that it left to the
rank that it reaches: what a switch copies is sent once to each, and what a switch adds up is sent
by each and added where it arrives.

A message is sent at the moment at which it arrives, if what its sender holds of the chunk is then
still what left it; then nothing has to be under way, and all messages in their order, one after
the other, are a way to run the program: it cannot stand still. Where the sender has added
something in the meantime, the message is sent when it left and waits in its connection.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import attrgetter
from typing import NamedTuple

from ccl.collective import Chunk
from ccl.errors import ProblemError
from ccl.plans import Flow, Rate, Schedule, Send, paths
from ccl.problem import Problem
from ccl.result import Plan
from ccl.simulate.dependencies import find_carried
from ccl.simulate.routes import SAME_MOMENT
from ccl.simulate.transmissions import plan_sends
from ccl.topology import Topology, binding_limits
from ccl.tree_embedding import Route, routes

_NEAR = 1e-6
"""Shares that differ by less are the same: a linear program tells them no more exactly."""


@dataclass(frozen=True, slots=True)
class Part:
    """A run of pieces of a chunk: `count` of them from `start` on."""

    chunk: int
    start: int
    count: int


class ValueOf(NamedTuple):
    """What a hop of a sum carries where sends name it.

    Parameters
    ----------
    bits
        Its contributions.
    after
        Numbers of the hops that bring values of it to its source.
    number
        Of the value that it is, or is a part of, where it arrives: that of its first hop.
    """

    bits: int
    after: tuple[int, ...]
    number: int


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
    value
        What it carries, where sends of its chunk name that.
    """

    part: int
    src: str
    dst: str
    start: float
    end: float
    after: tuple[int, ...] | None = None
    leaves: int = 0
    comes: int = 0
    value: ValueOf | None = None


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


def hops_of(problem: Problem, plan: Plan, *, most_pieces: int) -> Hops:
    """Return the hops of a plan, with chunks of `most_pieces` pieces at most."""
    if isinstance(plan, Schedule):
        return _of_schedule(problem, plan, most_pieces)
    if isinstance(plan, Flow):
        return _cut(problem, _along_paths(problem, plan, most_pieces), most_pieces)
    return _cut(problem, list(routes(problem, plan.unfolded(problem.topology))), most_pieces)


def _along_paths(problem: Problem, flow: Flow, most_pieces: int) -> list[Route]:
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
            links = tuple(problem.topology.link_index[ends] for ends in itertools.pairwise(path))
            found.append(Route(number, share, links, after=after, steps=tuple(steps)))
    return found


def _simple(share: float, most: int) -> Fraction:
    near = Fraction(share).limit_denominator(most)
    return near if abs(near - share) < _NEAR else Fraction(share)


def _cut(problem: Problem, found: Sequence[Route], most_pieces: int) -> Hops:
    """Give every way its run of pieces, and every link of it a hop."""
    pieces, exact = _denominator((way.share for way in found), most_pieces)
    of_chunk: defaultdict[int, list[Route]] = defaultdict(list)
    for way in found:
        of_chunk[way.chunk].append(way)
    parts: list[Part] = []
    hops: list[Hop] = []
    for number, listed in of_chunk.items():
        start = 0
        counts = _whole_pieces([way.share for way in listed], pieces)
        for way, count in zip(listed, counts, strict=True):
            if count:
                hops += _crossed(problem.topology, way, len(parts), first=len(hops))
                parts.append(Part(number, start, count))
            start += count
    return Hops(tuple(parts), tuple(hops), pieces, moment=_NEAR, rounded=not exact)


def _crossed(topology: Topology, way: Route, part: int, *, first: int) -> list[Hop]:
    """Return a hop for each link; it is there before the next time begins."""
    return [
        Hop(part, *topology.links[link].ends, step, step + 1, tuple(first + i for i in after))
        for link, step, after in zip(way.links, way.steps, way.after, strict=True)
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
    rows = list(zip(plan.sends, plan.starts.tolist(), plan.ends.tolist(), strict=True))
    cut = Hops((), (), 1, moment=slack, rounded=False)
    if in_parts:
        parted = [(send, start) for send, start, _ in rows if send.chunk in in_parts]
        cut = _cut(problem, _ways_of_parts(problem, parted, most_pieces), most_pieces)
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
    named = find_carried(problem, schedule, plan)
    if named:
        number = itertools.count(len(cut.hops))
        of = {i: next(number) for i, (send, _, _) in enumerate(rows) if send.chunk not in in_parts}
        for i, carried in named.items():
            value = ValueOf(
                carried.bits, tuple([of[j] for j in carried.after]), of[plan.together(i)[0]]
            )
            k = of[i] - len(cut.hops)
            hops[k] = replace(hops[k], value=value)
    return replace(cut, parts=(*cut.parts, *whole), hops=(*cut.hops, *hops), moment=slack)


def _ways_of_parts(
    problem: Problem, parted: Sequence[tuple[Send, float]], most_pieces: int
) -> list[Route]:
    """Return the paths of chunks that are sent in parts, in the order in which links begin them."""
    index = problem.topology.link_index
    begins: dict[tuple[int, int], float] = {}
    rates = []
    for send, start in parted:
        for ends in send.hops:
            key = send.chunk, index[ends]
            begins[key] = min(start, begins.get(key, start))
            rates.append(Rate(send.chunk, *ends, min(1.0, send.fraction)))
    found = []
    for way in _along_paths(problem, Flow(tuple(rates)), most_pieces):
        times = itertools.accumulate(
            (begins[way.chunk, link] for link in way.links), lambda last, now: max(last + 1, now)
        )
        found.append(replace(way, steps=tuple(times)))
    return found


OWN = -1
"""The number of the value that a rank has of its own."""


class Named(NamedTuple):
    """What a message carries of a chunk of which a rank keeps several values.

    Parameters
    ----------
    taken
        Numbers of the values of the sender whose sum it is.
    value
        Number of the value of the receiver that it is, or is a part of.
    bits
        Its contributions.
    """

    taken: frozenset[int]
    value: int
    bits: int


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
    named
        Which values it takes and makes, where sends of the chunk name what they carry.
    """

    part: int
    src: int
    dst: int
    adds: bool
    early: bool
    named: Named | None = None


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


Lane = tuple[int, int, int]
"""From a rank to a rank, and which of several; below 0 for what is sent early."""


def lanes_of(messages: Messages, most: int) -> dict[int, Lane]:
    """Return the connection of each message, which has `most` messages at most.

    What is sent first is received first, so that what is sent early has connections of its own.
    """
    received = {e.message: place for place, e in enumerate(messages.events) if not e.sends}
    count: defaultdict[tuple[int, int], int] = defaultdict(int)
    last: defaultdict[Lane, int] = defaultdict(lambda: -1)
    lanes: dict[int, Lane] = {}
    filled: defaultdict[Lane, int] = defaultdict(int)
    for number in (event.message for event in messages.events if event.sends):
        message = messages.messages[number]
        pair = message.src, message.dst
        if message.early:
            lane = *pair, -1
            while last[lane] > received[number] or filled[lane] == most:
                lane = *pair, lane[2] - 1
        else:
            lane = *pair, count[pair] // most
            count[pair] += 1
        last[lane] = received[number]
        filled[lane] += 1
        lanes[number] = lane
    return lanes


@dataclass(frozen=True, slots=True)
class _Parcel:
    """What left a rank: the contributions in it, in which state of the rank, and when.

    `sums` are the bits of the ranks; 0 where nothing is added up. `taken` are the values that make
    them up where sends name them.
    """

    rank: int
    sums: int
    version: int
    moment: int
    taken: frozenset[int] = frozenset()


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


def check_unnamed(messages: Messages, what: str) -> None:
    """Refuse messages that name what they carry, for what has one place for a chunk at a rank.

    Raises
    ------
    ProblemError
        If there is one.
    """
    if any(each.named is not None for each in messages.messages):
        raise ProblemError(
            f"sends of the plan name the contributions that they carry, and {what} has one place "
            "for a chunk at a rank; choose MSCCL XML, or a plan without terms"
        )


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
            if hop.after is None and hop.value is None:
                self._together[hop.part, hop.src, hop.leaves].append(number)

    def follow(self) -> Messages:
        """Return the messages."""
        traced = self._traced
        for moment, (arrives, number) in enumerate(self._order()):
            hop = self._hops.hops[number]
            if arrives and hop.value is not None:
                self._bring(hop, self._brought[number], moment)
            elif arrives:
                self._arrive(hop, self._brought[number], moment)
            elif hop.value is not None:
                self._brought[number] = self._take(hop, hop.value, moment)
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

    def _take(self, hop: Hop, value: ValueOf, moment: int) -> list[_Parcel]:
        """Return what a hop carries that names it: a sum of values of a rank, or what came."""
        rank = self._topology.rank.get(hop.src)
        if rank is None:
            return [parcel for each in value.after for parcel in self._brought[each]]
        taken, bits = set[int](), value.bits
        for each in value.after:
            came = self._hops.hops[each].value
            assert came is not None
            taken.add(came.number)
            bits &= ~came.bits
        if bits:
            taken.add(OWN)
        return [_Parcel(rank, value.bits, 0, moment, frozenset(taken))]

    def _bring(self, hop: Hop, parcels: Sequence[_Parcel], moment: int) -> None:
        """Make the messages of a value that has come to a rank."""
        rank, value, traced = self._topology.rank.get(hop.dst), hop.value, self._traced
        assert value is not None
        for each in parcels if rank is not None else ():
            assert rank is not None
            if each.rank == rank:
                raise ProblemError(
                    f"chunk {self._hops.parts[hop.part].chunk} brings rank {rank} what it has sent "
                    "itself; no messages between ranks say that"
                )
            number = len(traced.messages)
            named = Named(each.taken, value.number, each.sums)
            traced.messages.append(
                Message(hop.part, each.rank, rank, adds=False, early=False, named=named)
            )
            # A value stays what it is, so that it can be sent when it arrives.
            traced.moments[moment] += [Event(number, sends=True), Event(number, sends=False)]

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
