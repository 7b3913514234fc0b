"""Step 2, heuristic ordering (section 4.1, appendix A.2): which chunk a link sends first.

Links and chunks keep running times: from when on a link is free and a chunk is there. Of all sends
that could be next the one that can start first is put next; of those that can start at once the
heuristic chooses. Ordered *along* the ways from their beginnings; or *against* them, from their
ends, as if time ran backwards, which makes the last sends early and leaves waiting to the first.

The paper schedules a candidate of the path that the heuristic prefers, whenever that can start.
Here running times come first: a link that waits for the preferred chunk while another is there
serves nobody.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

import numpy as np

from formulations.taccl.hops import Crossed, Sends, end, times

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
        Of the random numbers that decide ties besides; with 0 there are none.
    """
    found = []
    for heuristic, direction, ties in product(heuristics, directions, _ties(sends, seed)):
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
        (sign * weight, value, tie)
        for weight, value, tie in zip(sends.priority.tolist(), rank, ties, strict=True)
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
    """Return how long the ways that lead up to each send are if nothing waits, in µs.

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


def _served(
    after: tuple[tuple[int, ...], ...],
    before: tuple[tuple[int, ...], ...],
    crossed: tuple[Crossed, ...],
    delay: list[float],
    keys: list[tuple[float, float, int]],
) -> list[int]:
    """Return sends by their starts; of those that start at once the smallest key first."""
    tick = TICK * max(delay, default=1.0)
    free: dict[int, float] = {}
    there = [0.0] * len(delay)
    left = [len(each) for each in after]
    queue = [(0, keys[number], number) for number, many in enumerate(left) if not many]
    heapq.heapify(queue)
    found = []
    while queue:
        turn, key, number = heapq.heappop(queue)
        start = there[number]
        for link, lead, _ in crossed[number]:
            start = max(start, free.get(link, 0.0) - lead)
        # Links may have been taken since it was queued: then it waits again.
        now = round(start / tick)
        if now > turn:
            heapq.heappush(queue, (now, key, number))
            continue
        found.append(number)
        for link, lead, held in crossed[number]:
            free[link] = start + lead + held
        for each in before[number]:
            there[each] = max(there[each], start + delay[number])
            left[each] -= 1
            if not left[each]:
                heapq.heappush(queue, (round(there[each] / tick), keys[each], each))
    return found
