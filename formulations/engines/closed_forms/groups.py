"""What groups of places do among themselves: gather all, exchange, pass down, collect, deal out.

A group is a row of places; chunks come with the row that they are in and the columns of the places
that have or want them. ``direct`` sends everything in one step, each place to the next ones in
turn, so that no two begin with the same; ``ring`` sends to the next column only, step after step;
``doubling`` exchanges all with a partner twice as far in each step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from formulations.engines.closed_forms.messages import Messages
from formulations.engines.closed_forms.trees import binomial, chain

Algorithm = Literal["direct", "ring", "doubling"]


@dataclass(frozen=True)
class Chunks:
    """Chunks in groups; n of them.

    Parameters
    ----------
    groups
        Places of each group, shape (rows, columns).
    number
        In the collective, shape (n,).
    row
        Group that each is in, shape (n,).
    at
        Column of the place that has it, shape (n,).
    """

    groups: np.ndarray
    number: np.ndarray
    row: np.ndarray
    at: np.ndarray

    @property
    def columns(self) -> int:
        """How many places a group has."""
        return int(self.groups.shape[1])

    def sent(self, step: int, at: np.ndarray, to: np.ndarray, *, which: np.ndarray) -> Messages:
        """Send some of the chunks from columns to columns; `which` says for each whether."""
        row, src, dst = self.row[which], at[which], to[which]
        return Messages(
            np.full(len(row), step),
            self.number[which],
            self.groups[row, src % self.columns],
            self.groups[row, dst % self.columns],
        )

    @property
    def every(self) -> np.ndarray:
        """All of them, as `sent` takes it."""
        return np.ones(len(self.number), dtype=bool)


def gathered(chunks: Chunks, algorithm: Algorithm) -> Messages:
    """Give each chunk to everyone of its group."""
    at, every = chunks.at, chunks.every
    turns = range(chunks.columns - 1)
    if algorithm == "direct":
        return _together(chunks.sent(0, at, at + turn + 1, which=every) for turn in turns)
    if algorithm == "ring":
        return _together(chunks.sent(turn, at + turn, at + turn + 1, which=every) for turn in turns)
    return _together(
        chunks.sent(step, at ^ far, at ^ far ^ (1 << step), which=every)
        for step in range(chunks.columns.bit_length() - 1)
        for far in range(1 << step)
    )


def exchanged(chunks: Chunks, goal: np.ndarray, algorithm: Algorithm) -> Messages:
    """Give each chunk to one column of its group; a ring is gone round by pairs at a distance."""
    far = (goal - chunks.at) % chunks.columns
    return _together(
        chunks.sent(
            turn - 1 if algorithm == "ring" else 0, chunks.at, chunks.at + turn, which=far == turn
        )
        for turn in range(1, chunks.columns)
    )


def passed(chunks: Chunks, algorithm: Algorithm) -> Messages:
    """Give each chunk, which the first column has, to everyone of its group."""
    columns = chunks.columns
    if algorithm == "direct":
        return gathered(chunks, algorithm)
    tree = (chain if algorithm == "ring" else binomial)([0], columns)
    parts = []
    for row in range(len(chunks.groups)):
        down = tree.spread(chunks.number[chunks.row == row])
        place = chunks.groups[row]
        parts.append(Messages(down.step, down.chunk, place[down.src], place[down.dst]))
    return _together(parts)


def _together(parts: Iterable[Messages]) -> Messages:
    return Messages.joined([Messages.of([]), *parts])


def in_turn(phases: Iterable[Messages]) -> Messages:
    """Put phases one after the other."""
    parts: list[Messages] = []
    begin = 0
    for phase in phases:
        parts.append(phase.later(begin))
        begin += phase.steps
    return _together(parts)
