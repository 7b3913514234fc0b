"""When links have less bandwidth than their own."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from ccl.problem import Problem
from ccl.schedule import Schedule
from ccl.simulate.ways import Hop
from ccl.window import Window

SAME_MOMENT = 1e-9
"""Times closer than this share of the duration are one moment; likewise shares of a chunk."""


class SlowTimes:
    """The windows of each link, by its number."""

    def __init__(self, problem: Problem) -> None:
        self.of: defaultdict[int, list[Window]] = defaultdict(list)
        for window in problem.windows:
            for ends in window.links:
                self.of[problem.topology.link_index[ends]].append(window)

    def moments(self) -> Iterator[float]:
        """Yield the times in µs at which a window begins or ends."""
        for windows in self.of.values():
            for window in windows:
                yield window.begin
                yield window.end

    def share(self, link: int, begin: float, end: float) -> float:
        """Return the least share that a link has between two times in µs."""
        shares = [
            window.share
            for window in self.of.get(link, ())
            if begin < window.end * (1 - SAME_MOMENT) and window.begin < end * (1 - SAME_MOMENT)
        ]
        return min(shares, default=1.0)

    def at(self, link: int, now: float) -> float:
        """Return the share that a link has from a moment on, in µs."""
        shares = [each.share for each in self.of.get(link, ()) if each.begin <= now < each.end]
        return min(shares, default=1.0)


class Spans:
    """Over how many epochs a schedule spreads what crosses a limited link."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self._links = problem.topology.links
        self._schedule = schedule
        self._slow = SlowTimes(problem)

    def epochs(self, hop: Hop, nbytes: float, first: int) -> int:
        """Count the epochs from `first` on over which a transmission is spread in equal parts.

        Where windows leave too little for it in any number of epochs, as many as without.
        """
        tau = self._schedule.epoch_duration
        least = max(1, math.ceil(hop.busy / tau - SAME_MOMENT))
        if hop.link not in self._slow.of:
            return least
        needed = nbytes * self._links[hop.link].beta * (1 - SAME_MOMENT)
        share = 1.0
        for epoch in range(first, self._schedule.horizon):
            share = min(share, self._slow.share(hop.link, epoch * tau, (epoch + 1) * tau))
            count = epoch + 1 - first
            if count >= least and needed <= count * share * tau:
                return count
        return least
