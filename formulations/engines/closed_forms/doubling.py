"""Blocks that double: partners at distances 1, 2, 4, ..., and ranks that are left over.

Of p places, p' = 2^floor(log2 p) are the core. Of the first 2 (p - p') places every even one is in
the core and every odd one is left over beside it; all after them are in the core.

What has to be spread among places, and the messages that do it.

Places are positions in an order of the ranks that the form chooses; a form that says that place i
sends to place i + 1 is laid around the ring that the order makes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

EVERYONE = -1
"""Goal of a chunk that all places want."""


@dataclass(frozen=True)
class Task:
    """Chunks with the place that has each at the beginning and those that want it; n chunks.

    Parameters
    ----------
    places
        How many there are.
    chunk
        Numbers in the collective, shape (n,).
    root
        Place that has it, shape (n,).
    goal
        The only place that wants it, or `EVERYONE`, shape (n,).
    """

    places: int
    chunk: np.ndarray
    root: np.ndarray
    goal: np.ndarray

    @property
    def spreads(self) -> bool:
        """Whether everyone wants every chunk, as in an all-gather or a broadcast."""
        return bool((self.goal == EVERYONE).all())

    def turns(self) -> np.ndarray:
        """Count chunks of the same root and goal: 0 for the first of each, shape (n,)."""
        pairs = self.root * (self.places + 1) + self.goal + 1
        order = np.argsort(pairs, kind="stable")
        _, first, many = np.unique(pairs[order], return_index=True, return_counts=True)
        turn = np.empty(len(pairs), dtype=np.int64)
        turn[order] = np.arange(len(pairs)) - np.repeat(first, many)
        return turn


@dataclass(frozen=True)
class Messages:
    """Chunks sent from place to place in steps; n of them.

    Within a step the order here is that of the sends on each link.

    Parameters
    ----------
    step, chunk, src, dst
        Steps from 0, numbers of chunks, places; each shape (n,).
    """

    step: np.ndarray
    chunk: np.ndarray
    src: np.ndarray
    dst: np.ndarray

    def __len__(self) -> int:
        return len(self.step)

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, int, int]]) -> Messages:
        """Make them of rows (step, chunk, src, dst)."""
        table = np.array(list(rows), dtype=np.int64).reshape(-1, 4)
        return cls(*table.T)

    @classmethod
    def joined(cls, parts: Iterable[Messages]) -> Messages:
        """Put several side by side, each with its own steps."""
        every = list(parts)
        columns = ("step", "chunk", "src", "dst")
        return cls(*(np.concatenate([getattr(each, name) for each in every]) for name in columns))

    def later(self, steps: int) -> Messages:
        """Return them so many steps later."""
        return Messages(self.step + steps, self.chunk, self.src, self.dst)

    @property
    def steps(self) -> int:
        """How many steps they take."""
        return int(self.step.max(initial=-1)) + 1


def is_power_of_two(ranks: int) -> bool:
    """Say whether a number doubles from 1."""
    return ranks & (ranks - 1) == 0


def core(places: int) -> np.ndarray:
    """Return the places that double."""
    most = 1 << (places.bit_length() - 1)
    extra = places - most
    return np.array([*range(0, 2 * extra, 2), *range(2 * extra, places)])


def beside(places: int) -> np.ndarray:
    """Return the places in the core that have one beside them which is left over."""
    return np.arange(0, 2 * (places - len(core(places))), 2)


def partners(places: int) -> list[tuple[int, int]]:
    """Return all pairs of places that exchange, in both directions."""
    inside, extra = core(places), beside(places)
    turns = np.arange(len(inside))
    pairs = [
        (int(inside[i]), int(inside[i ^ (1 << t)]))
        for t in range(len(inside).bit_length() - 1)
        for i in turns.tolist()
    ]
    for place in extra.tolist():
        pairs += [(place + 1, place), (place, place + 1)]
    return pairs


def doubled(task: Task) -> Messages:
    """Send from partner to partner all that a place has, then to those left over.

    Chunks begin in the core.
    """
    inside = core(task.places)
    number = np.zeros(task.places, dtype=np.int64)
    number[inside] = np.arange(len(inside))
    root = number[task.root]
    steps = len(inside).bit_length() - 1
    parts = []
    for t in range(steps):
        for other in range(1 << t):
            # The one that has the chunk in step t and is `other` away from its root.
            src = root ^ other
            step = np.full(len(src), t)
            parts.append(Messages(step, task.chunk, inside[src], inside[src ^ (1 << t)]))
    for place in beside(task.places).tolist():
        here = np.full(len(root), place)
        parts.append(Messages(np.full(len(root), steps), task.chunk, here, here + 1))
    return Messages.joined(parts)
