"""In which order links take what messages carry: whatever can start first goes first.

A program says in which order a connection carries its messages, and nothing about messages of
different connections that meet on a link. Here each waits for what it needs, and a link goes to
the one that can start first, of several to the one that came first in the run.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Sequence

from interchange.programs._lift_place import Held, Key, Way
from interchange.programs._lift_run import Carry

MOST_ORDERED = 50_000
"""Carried chunks at most that are ordered; more keep the order of the run."""


def ordered(
    carried: Sequence[Carry], held: dict[Key, Held], ways: dict[tuple[int, int], Way]
) -> list[Carry]:
    """Return what is carried in the order in which it goes over the links."""
    links = [hop.link for way in ways.values() for hop in way.hops]
    if len(set(links)) == len(links) or len(carried) > MOST_ORDERED:
        return list(carried)
    found = _Order(carried, held, ways).run()
    return found if len(found) == len(carried) else list(carried)


class _Order:
    """The first of each connection that has not gone waits for what it needs, or for its links."""

    def __init__(
        self, carried: Sequence[Carry], held: dict[Key, Held], ways: dict[tuple[int, int], Way]
    ) -> None:
        self._carried = carried
        self._held = held
        self._ways = ways
        self._lines: defaultdict[tuple[int, int], deque[int]] = defaultdict(deque)
        self._lacks = {key: [0] * len(each.came) for key, each in held.items()}
        self._came = {key: [0.0] * len(each.came) for key, each in held.items()}
        for turn, carry in enumerate(carried):
            self._lines[carry.src, carry.dst].append(turn)
            self._lacks[carry.chunk, carry.dst][self._level(carry, carry.dst)] += 1
        self._free: defaultdict[int, float] = defaultdict(float)
        self._waiting: defaultdict[Key, list[int]] = defaultdict(list)
        self._queue: list[tuple[float, int]] = []

    def run(self) -> list[Carry]:
        """Return what could go, in order."""
        order = []
        for line in self._lines.values():
            self._offer(line[0])
        while self._queue:
            told, turn = heapq.heappop(self._queue)
            start = self._start(turn)
            if start > told:
                heapq.heappush(self._queue, (start, turn))
                continue
            order.append(self._carried[turn])
            self._go(turn, start)
        return order

    def _level(self, carry: Carry, rank: int) -> int:
        return self._held[carry.chunk, rank].level(carry.mask)

    def _offer(self, turn: int) -> None:
        """Queue the first of a connection, or let it wait for what it needs."""
        carry = self._carried[turn]
        key = carry.chunk, carry.src
        if any(self._lacks[key][: self._level(carry, carry.src) + 1]):
            self._waiting[key].append(turn)
        else:
            heapq.heappush(self._queue, (self._start(turn), turn))

    def _start(self, turn: int) -> float:
        """Return the µs at which one can start as things stand."""
        carry = self._carried[turn]
        came = self._came[carry.chunk, carry.src][: self._level(carry, carry.src) + 1]
        way = self._ways[carry.src, carry.dst]
        return max(*came, 0.0, *(self._free[hop.link] - hop.offset for hop in way.hops))

    def _go(self, turn: int, start: float) -> None:
        carry = self._carried[turn]
        way = self._ways[carry.src, carry.dst]
        for hop in way.hops:
            self._free[hop.link] = start + hop.offset + hop.busy
        key = carry.chunk, carry.dst
        level = self._level(carry, carry.dst)
        self._lacks[key][level] -= 1
        self._came[key][level] = max(self._came[key][level], start + way.duration)
        line = self._lines[carry.src, carry.dst]
        line.popleft()
        again = self._waiting.pop(key, [])
        if line:
            again.append(line[0])
        for each in again:
            self._offer(each)
