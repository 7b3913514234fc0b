"""In which order a machine's actions may happen: one thread at a time, chosen by a queue."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Sequence
from typing import Protocol

from interchange.execution.machine import Machine


class Queue(Protocol):
    """Threads that can go on, and which of them does."""

    def push(self, thread: int) -> None:
        """Take a thread that can go on."""

    def pop(self) -> int:
        """Return the one that goes on."""

    def __len__(self) -> int: ...


class LastFirst:
    """The thread that came last goes on, so that each goes as far as it can."""

    def __init__(self) -> None:
        self._threads: list[int] = []
        self.push = self._threads.append
        self.pop = self._threads.pop

    def __len__(self) -> int:
        return len(self._threads)


class AnyOfThem:
    """Any thread goes on, each as likely as the other."""

    def __init__(self, chance: random.Random) -> None:
        self._threads: list[int] = []
        self._random = chance.random
        self.push = self._threads.append

    def pop(self) -> int:
        """Return a thread by chance."""
        threads = self._threads
        chosen = int(self._random() * len(threads))
        threads[chosen], threads[-1] = threads[-1], threads[chosen]
        return threads.pop()

    def __len__(self) -> int:
        return len(self._threads)


class AsFarAsItGoes(AnyOfThem):
    """A thread goes on until it must wait, then any other does."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance)
        self._current = -1

    def pop(self) -> int:
        """Return the same thread as before if it came back last."""
        same = self._threads[-1] == self._current
        self._current = self._threads.pop() if same else super().pop()
        return self._current


class Ranked:
    """The thread of the least weight goes on; the heavy ones wait until nobody else can."""

    def __init__(self, weights: Sequence[float]) -> None:
        self._weights = weights
        self._heap: list[tuple[float, int]] = []

    def push(self, thread: int) -> None:
        """Take a thread that can go on."""
        heapq.heappush(self._heap, (self._weights[thread], thread))

    def pop(self) -> int:
        """Return the lightest."""
        return heapq.heappop(self._heap)[1]

    def __len__(self) -> int:
        return len(self._heap)


def shuffled(machine: Machine, *, number: int, seed: int) -> Queue:
    """Return the queue of interleaving `number`: four manners in turn, each drawn by the seed.

    Any thread at any time; one thread as far as it goes, then any other; ranks of random speed;
    thread blocks of random speed. A step that waits for too little shows when what it should wait
    for is slow, which the last two bring about far more often than the first.
    """
    chance = random.Random(f"{seed}/{number}")
    manner = number % 4
    if manner == 0:
        return AnyOfThem(chance)
    if manner == 1:
        return AsFarAsItGoes(chance)
    if manner == 2:
        ranks = {thread.rank: chance.random() for thread in machine.threads}
        return Ranked([ranks[thread.rank] for thread in machine.threads])
    return Ranked([chance.random() for _ in machine.threads])


class Walk:
    """What of a machine decides who may go on, laid flat for speed.

    Parameters
    ----------
    machine
        Whose actions are walked.
    slots
        Messages that a connection holds; None for as many as come.
    """

    def __init__(self, machine: Machine, *, slots: int | None) -> None:
        self.starts = machine.starts
        self.posts = [action.posts for action in machine.actions]
        self.counters = len(machine.counters)
        self.guards = [
            action.guards
            if slots is None
            else action.guards + tuple((c, n - slots) for c, n in action.room if n > slots)
            for action in machine.actions
        ]

    def __call__(self, queue: Queue) -> Iterator[int]:
        """Yield the numbers of actions as they happen, until nobody can go on."""
        guards, posts, ends = self.guards, self.posts, self.starts[1:]
        at = list(self.starts[:-1])
        reached = [0] * self.counters
        waiting: list[list[int]] = [[] for _ in range(self.counters)]

        def line_up(thread: int) -> None:
            if at[thread] == ends[thread]:
                return
            for counter, value in guards[at[thread]]:
                if reached[counter] < value:
                    waiting[counter].append(thread)
                    return
            queue.push(thread)

        for thread in range(len(ends)):
            line_up(thread)
        while len(queue):
            thread = queue.pop()
            action = at[thread]
            yield action
            at[thread] = action + 1
            for counter in posts[action]:
                reached[counter] += 1
                if waiting[counter]:
                    woken, waiting[counter] = waiting[counter], []
                    for each in woken:
                        line_up(each)
            line_up(thread)
