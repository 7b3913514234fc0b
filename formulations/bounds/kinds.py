"""Chunks counted by their ends, and which of them must leave a set of devices.

What must leave is said in `formulations.bounds.demand`. Read backwards in time, a chunk leaves its
destinations for its holders; the same chunks cross the same links, in the other direction.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ccl.collective import Collective
from formulations.bounds.demand import Floats, Mask


@dataclass(frozen=True)
class Kinds:
    """Chunks that have the same ends, counted.

    Parameters
    ----------
    counts
        (kinds,): how many there are.
    starts, stops
        (kinds, ranks): where they come from and where they have to be.
    any_start, any_stop
        (kinds,): whether something has to go from every start to every stop, so that any may be
        looked at; else only what goes from one start, or to one stop, is sure.
    """

    counts: np.ndarray
    starts: Mask
    stops: Mask
    any_start: Mask
    any_stop: Mask

    def turned(self) -> Kinds:
        """Return the same chunks read backwards in time."""
        return Kinds(self.counts, self.stops, self.starts, self.any_stop, self.any_start)

    def chosen(self, which: Mask) -> Kinds:
        """Return some of the kinds."""
        return Kinds(
            self.counts[which],
            self.starts[which],
            self.stops[which],
            self.any_start[which],
            self.any_stop[which],
        )

    def coming(self, inside: Mask) -> Mask:
        """Return (kinds,): which come from a set for sure, given the ranks in it."""
        return _met(self._starts, inside, any_one=self.any_start)

    def going(self, inside: Mask) -> Mask:
        """Return (kinds,): which have to get out of a set for sure, given the ranks in it."""
        return _met(self._stops, ~inside, any_one=self.any_stop)

    def leaving(self, inside: Mask) -> Mask:
        """Return (kinds,): which must leave a set, given the ranks in it."""
        return np.asarray(self.coming(inside) & self.going(inside))

    def opening(self, times: Floats, inside: Mask) -> Floats:
        """Return (kinds, links) from (ranks, links): times from those of the starts in a set."""
        return _ends(times, self.starts & inside, farthest=self.any_start)

    def closing(self, times: Floats, inside: Mask, *, of: Floats | None = None) -> Floats:
        """Return (kinds, links) from (ranks, links): times to those of the stops outside.

        Other times of the same stops are given back where there are some.
        """
        return _ends(times, self.stops & ~inside, farthest=self.any_stop, of=of)

    def copies(self, inside: Mask) -> np.ndarray:
        """Return (kinds,): how many ranks of a set a chunk has to be brought to, one by one."""
        starts = self._starts.sum(axis=1)
        lacking = np.where(self.any_start[:, None], starts[:, None] > self.starts, ~self.starts)
        many = (self.stops & inside & lacking).sum(axis=1)
        return np.where(self.any_stop, many, self.leaving(~inside))

    @cached_property
    def _starts(self) -> Floats:
        return self.starts.astype(np.float64)

    @cached_property
    def _stops(self) -> Floats:
        return self.stops.astype(np.float64)


def kinds_of(collective: Collective, nbytes: float) -> Kinds:
    """Count the chunks of `nbytes` or more by their ends."""
    counted = Counter(
        (each.holders, each.destinations, each.reduced)
        for each in collective.chunks
        if each.size >= nbytes
    )
    shape = len(counted), collective.ranks
    starts, stops = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    for row, (holders, destinations, _) in enumerate(counted):
        starts[row, list(holders)] = True
        stops[row, list(destinations)] = True
    reduced = np.array([each for _, _, each in counted], dtype=bool)
    return Kinds(
        np.array(list(counted.values())), starts, stops, reduced, np.ones(len(counted), dtype=bool)
    )


def _met(ranks: Floats, inside: Mask, *, any_one: Mask) -> Mask:
    """Return (kinds,): whether any of the ranks, or else all of them, are in a set."""
    inside_of = ranks @ inside
    return np.asarray(np.where(any_one, inside_of > 0, inside_of == ranks.sum(axis=1)))


def _ends(times: Floats, ranks: Mask, *, farthest: Mask, of: Floats | None = None) -> Floats:
    """Return (kinds, links): times of the farthest of some ranks, or of the nearest per link."""
    nearest, taken = times.min(axis=1), times if of is None else of
    found = taken[np.where(ranks, nearest, -np.inf).argmax(axis=1)]
    for row in np.flatnonzero(~farthest & (ranks.sum(axis=1) > 1)):
        found[row] = taken[ranks[row]].min(axis=0)
    return np.asarray(found)
