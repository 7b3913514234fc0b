"""What links can carry in each epoch where windows take bandwidth from them."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise

from ccl.problem import Problem
from ccl.schedule import Schedule
from ccl.topology import Link
from ccl.verify.order import TOLERANCE
from ccl.window import Window

Ends = tuple[str, str]


class Windows:
    """The share of its bandwidth that each link has in each epoch."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self._tau = schedule.epoch_duration
        self._horizon = schedule.horizon
        self.links: defaultdict[Ends, list[Window]] = defaultdict(list)
        for window in problem.windows:
            for ends in window.links:
                self.links[ends].append(window)
        self._shares: dict[tuple[Ends, int], float] = {}

    def share(self, ends: Ends, epoch: int) -> float:
        """Return the least share of the windows that overlap an epoch, or 1."""
        key = ends, epoch
        if key not in self._shares:
            begin, end = epoch * self._tau, (epoch + 1) * self._tau
            self._shares[key] = min(
                (
                    window.share
                    for window in self.links.get(ends, ())
                    if window.begin < end * (1 - TOLERANCE) and window.end > begin + TOLERANCE * end
                ),
                default=1.0,
            )
        return self._shares[key]

    def changes(self, ends: Ends) -> list[int]:
        """Return the epochs that may have another share than those before them."""
        windows = self.links.get(ends, ())
        moments = {moment for each in windows for moment in (each.begin, each.end)}
        near = {math.floor(moment / self._tau) + k for moment in moments for k in range(-1, 3)}
        return sorted(epoch for epoch in near if 0 <= epoch < self._horizon)

    def epochs(self, link: Link, nbytes: float, least: int, *, first: int) -> int:
        """Count the epochs from `first` on of which each can carry an equal part of so many bytes.

        They are the fewest, from `least` on; `least` where there are none.
        """
        room = link.bandwidth * 1e3 * self._tau * (1 + TOLERANCE)
        changes = [epoch for epoch in self.changes(link.ends) if epoch > first]
        slowest = 1.0
        # From one change to the next the slowest epoch stays the same.
        for begin, end in pairwise((first, *changes, self._horizon)):
            slowest = min(slowest, self.share(link.ends, begin))
            if not slowest:
                break
            count = max(least, begin + 1 - first, math.ceil(nbytes / (slowest * room)))
            if first + count <= end:
                return count
        return least
