"""Plans of all kinds as hops: which part of which chunk goes from device to device, in what order.

Every chunk is cut into as many equal pieces, so that each share of it that goes a way of its own is
a run of pieces (`Part`). Shares of forests are exact fractions, and the pieces their least common
denominator; those of flows and of sends of a part of a chunk are the nearest fractions. Where that
would take too many pieces, shares are rounded to whole pieces, the largest remainders first.

Times only order the hops. A schedule's are its own, the µs at which each send starts and has
arrived; of forests and flows, whose parts follow one another without end, a link takes one step.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ccl.flow import Flow, Rate
from ccl.laying import ways
from ccl.paths import paths
from ccl.problem import Problem
from ccl.result import Plan
from ccl.schedule import Schedule, Send
from ccl.simulate.engine import binding
from ccl.simulate.plan import plan_sends
from ccl.simulate.slow import SAME_MOMENT

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
        for way in ways(problem, plan.unfolded(problem.topology))
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
    plan = plan_sends(problem, schedule, binding(problem.topology))
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
