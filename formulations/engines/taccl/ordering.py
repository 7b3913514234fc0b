"""Step 2, heuristic ordering (section 4.1, appendix A.2): which chunk a link sends first.

Links and chunks keep running times: from when on a link is free and a chunk is there. Of all sends
that could be next the one that can start first is put next; of those that can start at once the
heuristic chooses. Ordered *along* the paths from their beginnings; or *against* them, from their
ends, as if time ran backwards, which makes the last sends early and leaves waiting to the first.

The paper schedules a candidate of the path that the heuristic prefers, whenever that can start.
Here running times come first: a link that waits for the preferred chunk while another is there
serves nobody.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

import numpy as np

from formulations.engines.taccl.sends import Crossed, Sends, end, times

Heuristic = Literal["shortest-until-now", "longest-from-now"]
Direction = Literal["along", "against"]
HEURISTICS: tuple[Heuristic, ...] = get_args(Heuristic)
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)

TICK = 1e-9
"""Starts within this share of the longest send are the same."""


@dataclass(frozen=True)
class Order:
    """An order of all sends, none before what it waits for.

    Parameters
    ----------
    order
        Their numbers.
    makespan
        µs when links serve them in this order, as the replay counts.
    heuristic, direction
        How it was found.
    """

    order: list[int]
    makespan: float
    heuristic: Heuristic
    direction: Direction


def orders(
    sends: Sends,
    *,
    heuristics: tuple[Heuristic, ...],
    directions: tuple[Direction, ...],
    holds: bool,
    seed: int,
    over: Callable[[], bool],
) -> list[Order]:
    """Return the orders of some heuristics in some directions, the shortest makespan first.

    Parameters
    ----------
    sends
        What is sent.
    heuristics, directions
        Which are tried.
    holds
        Whether latency holds links too while they are ordered.
    seed
        Of the random numbers that decide ties besides; with 0 nothing is random.
    over
        Says when no more are to be tried; one always is.
    """
    found: list[Order] = []
    for ties, heuristic, direction in product(_ties(sends, seed), heuristics, directions):
        if found and over():
            break
        order = ordered(sends, heuristic, direction, holds=holds, ties=ties)
        makespan = end(sends, times(sends, order))
        found.append(Order(order, makespan, heuristic, direction))
    return sorted(found, key=lambda each: each.makespan)


def _ties(sends: Sends, seed: int) -> list[list[int]]:
    """Return what decides where all else is equal: symmetry, the list's order, and chance.

    Sends that symmetries exchange have the same turn, so that their plan stays symmetric.
    """
    ties = [sends.alike.tolist(), list(range(len(sends)))]
    if seed:
        ties.append(np.random.default_rng(seed).permutation(len(sends)).tolist())
    return ties


def ordered(
    sends: Sends, heuristic: Heuristic, direction: Direction, *, holds: bool, ties: list[int]
) -> list[int]:
    """Return the sends in the order of one heuristic.

    Parameters
    ----------
    sends
        What is sent.
    heuristic, direction
        Which one, and from where.
    holds
        Whether latency holds links too.
    ties
        Smaller first where all else is equal.
    """
    along = direction == "along"
    after, before = (sends.after, sends.before) if along else (sends.before, sends.after)
    crossed = sends.links(holds=holds)
    if not along:
        crossed = tuple(
            tuple((link, delay - lead - held, held) for link, lead, held in each)
            for each, delay in zip(crossed, sends.delay, strict=True)
        )
    if heuristic == "shortest-until-now":
        rank = longest(after, before, sends.delay)
    else:
        rank = [-each for each in longest(before, after, sends.delay)]
    sign = -1.0 if along else 1.0
    keys = [
        (sign * weight, value, tie, number)
        for number, (weight, value, tie) in enumerate(
            zip(sends.priority.tolist(), rank, ties, strict=True)
        )
    ]
    found = _served(after, before, crossed, sends.delay, keys)
    return found if along else found[::-1]


def longest(
    after: tuple[tuple[int, ...], ...],
    before: tuple[tuple[int, ...], ...],
    delay: list[float],
    *,
    own: bool = False,
) -> list[float]:
    """Return how long the paths that lead up to each send are if nothing waits, in µs.

    Parameters
    ----------
    after, before
        What each waits for, and what waits for it.
    delay
        µs that each takes.
    own
        Whether it counts itself.
    """
    left = [len(each) for each in after]
    front = [number for number, many in enumerate(left) if not many]
    length = [0.0] * len(delay)
    while front:
        number = front.pop()
        for each in before[number]:
            length[each] = max(length[each], length[number] + delay[number])
            left[each] -= 1
            if not left[each]:
                front.append(each)
    return [each + took * own for each, took in zip(length, delay, strict=True)]


Key = tuple[float, float, int, int]
"""What decides among sends that can start at once; its last part is the number of the send."""


class _Line:
    """Sends that wait for the same links, and take them as long."""

    def __init__(self, crossed: Crossed) -> None:
        self.crossed = crossed
        self.posted: tuple[int, Key] | None = None
        self._coming: list[tuple[int, Key]] = []
        self._waiting: list[Key] = []

    def join(self, there: int, key: Key) -> None:
        """Let a send wait from the tick on at which its chunk is there."""
        heapq.heappush(self._coming, (there, key))

    def head(self, free: int) -> tuple[int, Key] | None:
        """Return when the next can start if links are free at a tick, and which it is."""
        while self._coming and self._coming[0][0] <= free:
            heapq.heappush(self._waiting, heapq.heappop(self._coming)[1])
        if self._waiting:
            return free, self._waiting[0]
        return self._coming[0] if self._coming else None

    def leave(self) -> None:
        """Take the next out."""
        if self._waiting:
            heapq.heappop(self._waiting)
        else:
            heapq.heappop(self._coming)


class _Service:
    """Sends put one after the other, always one that can start first."""

    def __init__(self, crossed: tuple[Crossed, ...], delay: list[float], keys: list[Key]) -> None:
        self.delay, self.keys = delay, keys
        self.tick = TICK * max(delay, default=1.0)
        alike: dict[Crossed, _Line] = {}
        self.line = [alike.setdefault(each, _Line(each)) for each in crossed]
        self.lines = list(alike.values())
        self.place = {id(line): number for number, line in enumerate(self.lines)}
        self.free: dict[int, float] = {}
        self.there = [0.0] * len(delay)
        self.queue: list[tuple[int, Key, int]] = []

    def join(self, number: int) -> None:
        """Let a send wait whose chunk will be there."""
        line = self.line[number]
        line.join(round(self.there[number] / self.tick), self.keys[number])
        self._post(line)

    def _opens(self, line: _Line) -> float:
        return max((self.free.get(link, 0.0) - lead for link, lead, _ in line.crossed), default=0.0)

    def _post(self, line: _Line) -> bool:
        """Queue a line with its head; return whether that was known already."""
        head = line.head(round(max(0.0, self._opens(line)) / self.tick))
        if head == line.posted:
            return True
        line.posted = head
        if head is not None:
            heapq.heappush(self.queue, (*head, self.place[id(line)]))
        return False

    def take(self) -> int | None:
        """Take the next send and give it its links; None if none waits."""
        while self.queue:
            turn, key, place = heapq.heappop(self.queue)
            line = self.lines[place]
            # Links may have been taken since, or another send may have come: then it is queued.
            if (turn, key) != line.posted or not self._post(line):
                continue
            line.leave()
            number = key[-1]
            start = max(self.there[number], self._opens(line))
            for link, lead, held in line.crossed:
                self.free[link] = start + lead + held
            line.posted = None
            self._post(line)
            self.there[number] = start + self.delay[number]
            return number
        return None


def _served(
    after: tuple[tuple[int, ...], ...],
    before: tuple[tuple[int, ...], ...],
    crossed: tuple[Crossed, ...],
    delay: list[float],
    keys: list[Key],
) -> list[int]:
    """Return sends by their starts; of those that start at once the smallest key first."""
    service = _Service(crossed, delay, keys)
    left = [len(each) for each in after]
    for number, many in enumerate(left):
        if not many:
            service.join(number)
    found = []
    while (taken := service.take()) is not None:
        found.append(taken)
        for each in before[taken]:
            service.there[each] = max(service.there[each], service.there[taken])
            left[each] -= 1
            if not left[each]:
                service.join(each)
    return found
