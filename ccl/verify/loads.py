"""Whether limits, and links that are limited, carry what a schedule gives them in every epoch.

A send over many epochs is one entry however many these are: what a limit carries is followed from
where it changes to where it changes next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ccl.verify.order import TOLERANCE
from ccl.verify.windows import Windows

Ends = tuple[str, str]


class Cap(NamedTuple):
    """A limit by its name: links, how many bytes pass in an epoch, and whether windows count."""

    name: str
    links: Sequence[Ends]
    room: float
    slowed: bool


class Excess(NamedTuple):
    """An epoch in which a limit carries too much: bytes, and how many fit."""

    epoch: int
    name: str
    total: float
    room: float


class Loads:
    """Bytes that links carry in each epoch."""

    def __init__(self) -> None:
        self._spread: defaultdict[Ends, list[tuple[int, int, float]]] = defaultdict(list)

    def add(self, ends: Ends, *, first: int, epochs: int, nbytes: float) -> None:
        """Spread bytes over a link evenly over epochs."""
        self._spread[ends].append((first, first + epochs, nbytes / epochs))

    def links(self) -> Iterable[Ends]:
        """Return the ends of all links that carry something."""
        return self._spread

    def excess(self, cap: Cap, windows: Windows) -> Excess | None:
        """Return the first epoch in which a limit carries too much."""
        rows = [row for ends in cap.links for row in self._spread.get(ends, ())]
        if not rows:
            return None
        begins, ends, share = (np.array(column) for column in zip(*rows, strict=True))
        moments = np.unique(np.concatenate([begins, ends]))
        if cap.slowed:
            changes = np.array(windows.changes(cap.links[0]), dtype=np.int64)
            inside = (changes > moments[0]) & (changes < moments[-1])
            moments = np.union1d(moments, changes[inside])
        more = np.zeros(len(moments))
        np.add.at(more, np.searchsorted(moments, begins), share)
        np.subtract.at(more, np.searchsorted(moments, ends), share)
        total = np.cumsum(more)
        room = np.full(len(moments), cap.room)
        if cap.slowed:
            room *= [windows.share(cap.links[0], epoch) for epoch in moments.tolist()]
        # What sums of many numbers are off by is no load.
        wrong = np.flatnonzero(total > room * (1 + TOLERANCE) + 1e-12 * float(total.max()))
        if not wrong.size:
            return None
        first = int(wrong[0])
        return Excess(int(moments[first]), cap.name, float(total[first]), float(room[first]))
