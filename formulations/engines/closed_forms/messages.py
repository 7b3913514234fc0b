"""What has to be spread among places, and the messages that do it.

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
