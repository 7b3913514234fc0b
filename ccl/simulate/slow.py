"""When links have less bandwidth than their own."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ccl.problem import Problem
from ccl.schedule import Schedule
from ccl.simulate.ways import Hop, Way
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


@dataclass(frozen=True, slots=True)
class Held:
    """When the links of a limited way are held, one entry for each; counted from an epoch's begin.

    Parameters
    ----------
    first, epochs
        Over how many epochs it is spread and from which on, for links that are limited.
    offsets, ends
        µs until its first byte at the earliest, and until the last has left it, both with the
        alphas before it.
    """

    first: tuple[int, ...]
    epochs: tuple[int, ...]
    offsets: tuple[float, ...]
    ends: tuple[float, ...]


class Spans:
    """Over how many epochs a schedule spreads what crosses a limited link."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self._links = problem.topology.links
        self._schedule = schedule
        self._slow = SlowTimes(problem)
        self._held: dict[tuple[int, int], Held] = {}

    def held(self, way: Way, epoch: int) -> Held:
        """Return when a way that begins in an epoch holds its links.

        A limited link is spread from its first byte on, and over no fewer epochs than those over
        which the bytes come to it; another waits until it can send without a pause.
        """
        # With windows a way is another in another epoch.
        key = id(way), epoch if self._slow.of else 0
        if key not in self._held:
            self._held[key] = self._laid(way, epoch)
        return self._held[key]

    def _laid(self, way: Way, epoch: int) -> Held:
        tau = self._schedule.epoch_duration
        first, epochs, waits, ends = [], [], list[float](), list[float]()
        for hop in way.hops:
            wait = max([waits[k] for k in hop.after], default=0.0)
            until = max([ends[k] for k in hop.after], default=0.0)
            later = math.floor((hop.lead + wait) / tau + SAME_MOMENT)
            many = 0
            if hop.limited:
                least = max(hop.busy, until - wait)
                many = self._epochs(hop, way.nbytes, epoch + later, least)
            else:
                wait = max(wait, until - hop.busy)
            first.append(later)
            epochs.append(many)
            waits.append(wait)
            ends.append(wait + (many * tau if hop.limited else hop.busy))
        return Held(
            tuple(first),
            tuple(epochs),
            tuple(hop.lead + wait for hop, wait in zip(way.hops, waits, strict=True)),
            tuple(hop.lead + end for hop, end in zip(way.hops, ends, strict=True)),
        )

    def _epochs(self, hop: Hop, nbytes: float, first: int, took: float) -> int:
        """Count the epochs from `first` on over which a transmission is spread in equal parts.

        They come to `took` µs at least. Where windows leave too little for it in any number of
        epochs, they are as many as without.
        """
        tau = self._schedule.epoch_duration
        least = max(1, math.ceil(took / tau - SAME_MOMENT))
        if hop.link not in self._slow.of:
            return least
        needed = nbytes * self._links[hop.link].beta * (1 - SAME_MOMENT)
        count = least
        while first + count <= self._schedule.horizon:
            share = self._slow.share(hop.link, first * tau, (first + count) * tau)
            if needed <= count * share * tau:
                return count
            if not share:
                return least
            # What is more than the least share lets through is too much for fewer epochs.
            count = max(count + 1, math.floor(needed / (share * tau)))
        return least
