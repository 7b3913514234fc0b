"""What links can carry in each epoch where windows take bandwidth from them."""

from __future__ import annotations

from collections import defaultdict

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

    def epochs(self, link: Link, nbytes: float, least: int, *, first: int) -> int:
        """Count the epochs from `first` on of which each can carry an equal part of so many bytes.

        They are the fewest, from `least` on; `least` where there are none.
        """
        room = link.bandwidth * 1e3 * self._tau * (1 + TOLERANCE)
        slowest = 1.0
        for count in range(1, self._horizon - first + 1):
            slowest = min(slowest, self.share(link.ends, first + count - 1))
            if count >= least and nbytes <= count * slowest * room:
                return count
        return least
