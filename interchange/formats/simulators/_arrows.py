"""Arrows along the ways of chunks: which transfer takes on what another brought.

A timeline does not say it, so it is told from times, chunk by chunk and device by device:

* a device that has a chunk from the start, and is not adding it up, waits for none;
* over each link, what comes several times or in parts is sent on in the order in which it came,
  alike sizes to alike sizes;
* of a chunk that is added up, a transfer takes on all that has come since the one before it, or
  the last of it where nothing has;
* a device that cannot store passes on what comes just then, byte by byte, if there is such: a
  faster link waits until it can send without a pause.

The arrows are then laid end to end, so that each chain goes through as many transfers as it can:
viewers draw a chain as one flow with one beginning and one end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from ccl.problem import Problem
from ccl.timeline import Timeline, Transfer

_SAME_MOMENT = 1e-9
"""Times closer than this share of the makespan are one moment."""


def chains(problem: Problem, timeline: Timeline) -> list[list[int]]:
    """Return chains of two or more transfers, by their places; each arrow is in one of them."""
    after: defaultdict[int, list[int]] = defaultdict(list)
    before: defaultdict[int, list[int]] = defaultdict(list)
    for first, then in _arrows(problem, timeline):
        after[first].append(then)
        before[then].append(first)
    onward: dict[tuple[int, int], int] = {}
    begun: list[tuple[int, int]] = []
    for place in sorted(after):
        came = iter(before[place])
        for then in after[place]:
            reached = next(came, None)
            if reached is None:
                begun.append((place, then))
            else:
                onward[reached, place] = then
    found = []
    for first, then in begun:
        chain = [first, then]
        while (further := onward.get((chain[-2], chain[-1]))) is not None:
            chain.append(further)
        found.append(chain)
    return found


@dataclass
class _Place:
    """What comes to a device of a chunk and leaves it, by places in order of starts."""

    came: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)


def _arrows(problem: Problem, timeline: Timeline) -> Iterator[tuple[int, int]]:
    """Yield pairs of a transfer and one that takes it on."""
    places: defaultdict[tuple[int, str], _Place] = defaultdict(_Place)
    for number, each in enumerate(timeline.transfers):
        places[each.chunk, each.src].left.append(number)
        places[each.chunk, each.dst].came.append(number)
    telling = _Telling(problem, timeline)
    rank = problem.topology.rank
    for (chunk, device), place in places.items():
        about = problem.collective.chunks[chunk]
        has = rank.get(device) in about.holders
        if place.came and place.left and (about.reduced or not has):
            found = telling.found(place, device, reduced=about.reduced)
            # Without latency two may seem to bring each other; the later one brings nothing.
            yield from ((first, then) for first, then in found if first < then)


class _Telling:
    """Tells for one chunk at one device which arrivals each departure takes on."""

    def __init__(self, problem: Problem, timeline: Timeline) -> None:
        self._topology = problem.topology
        self._transfers = timeline.transfers
        self._slack = _SAME_MOMENT * timeline.makespan

    def found(self, place: _Place, device: str, *, reduced: bool) -> Iterator[tuple[int, int]]:
        """Yield pairs of arrivals and departures."""
        left = place.left
        if not self._topology.device(device).stores:
            through = dict(self._through(place, reduced=reduced))
            yield from ((first, then) for then, all_ in through.items() for first in all_)
            left = [number for number in left if number not in through]
        came = sorted(place.came, key=lambda number: self._transfers[number].end)
        yield from (self._added if reduced else self._sent_on)(came, left)

    def _through(self, place: _Place, *, reduced: bool) -> Iterator[tuple[int, list[int]]]:
        """Yield departures with what comes just then: all of a sum, else one for each link."""
        # A link begins with the first byte that comes, or, if it is faster, ends with the last.
        heads = sorted((self._head(number), number) for number in place.came)
        tails = sorted((self._transfers[number].end, number) for number in place.came)
        used: set[tuple[str, int]] = set()
        for number in place.left:
            each = self._transfers[number]
            both = (*self._at(heads, each.start), *self._at(tails, each.sent))
            now = [first for first in dict.fromkeys(both) if (each.dst, first) not in used]
            if not reduced:
                del now[1:]
            used.update((each.dst, first) for first in now)
            if now:
                yield number, now

    def _at(self, moments: Sequence[tuple[float, int]], time: float) -> Iterator[int]:
        """Yield what has its moment at a time."""
        begin = bisect_left(moments, time - self._slack, key=itemgetter(0))
        end = bisect_right(moments, time + self._slack, key=itemgetter(0))
        return (number for _, number in moments[begin:end])

    def _head(self, number: int) -> float:
        """Return when the first byte of a transfer arrives, in µs."""
        each = self._transfers[number]
        return each.start + self._topology.link(each.src, each.dst).alpha

    def _sent_on(self, came: Sequence[int], left: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield over each link the next arrival of the size, or the last that is there."""
        by_size: defaultdict[str, list[int]] = defaultdict(list)
        for number in came:
            by_size[_size(self._transfers[number])].append(number)
        ends = [self._transfers[number].end for number in came]
        taken: defaultdict[tuple[str, str], int] = defaultdict(int)
        for number in left:
            each = self._transfers[number]
            size = _size(each)
            alike, place = by_size.get(size, ()), taken[each.dst, size]
            if place < len(alike) and self._ready(alike[place], each):
                taken[each.dst, size] += 1
                yield alike[place], number
            elif ready := bisect_right(ends, each.start + self._slack):
                yield came[ready - 1], number

    def _added(self, came: Sequence[int], left: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield what each departure takes on of a sum: all since the one before, or the last."""
        ends = [self._transfers[number].end for number in came]
        done = 0
        for number in left:
            ready = bisect_right(ends, self._transfers[number].start + self._slack)
            for first in came[min(done, max(0, ready - 1)) : ready]:
                yield first, number
            done = max(done, ready)

    def _ready(self, first: int, then: Transfer) -> bool:
        return self._transfers[first].end <= then.start + self._slack


def _size(each: Transfer) -> str:
    """Return bytes as they count when parts are compared."""
    return f"{each.nbytes:.9g}"
