"""Demand across a set of devices, whatever the plan, and links that serve it as machines do jobs.

Let S be a set of devices. A chunk must leave S when

* it is not reduced, all its holders are in S and a destination is outside: each of its bytes
  then enters the outside at least once, however it is split, copied or stored afterwards;
* it is reduced, a holder is in S and a destination is outside: the destination needs a sum with
  a contribution from inside at every byte of the chunk, so at least one value for each byte
  leaves S, however contributions are added along the path.

Copying switches and reducing switches change how often a byte crosses, never whether. The sum of
the sizes of all chunks that must leave is the demand of S: the bytes that all cut bounds count.
`Demand` has these bytes, `Kinds` the numbers of chunks by their ends. Read backwards in time, a
chunk leaves its destinations for its holders; the same chunks cross the same links, in the other
direction.

For chunks that cross one after the other a link is a machine. A machine e takes its first job
`opens[e]` µs after the job is released at the earliest, and then another every `pace[e]` µs,
whatever the jobs. So of m jobs released at r or later the last begins no earlier than r plus the
m-th smallest of opens[e] + k pace[e] over machines e and k >= 0 (its `slots`). With N jobs of
which, for every i, at least N - i + 1 are released at r_i or later, this holds for any i and any
j - i + 1 of the first j to begin: the j-th to begin does so no earlier than

    c_j = max over i <= j of r_i + w_(j - i + 1),    w the slots in order.

That is a curve of the same kind, the releases of whatever these jobs have to pass next.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ccl.collective import Collective

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Demand:
    """Chunks summed by their ends.

    Parameters
    ----------
    traffic
        (ranks, ranks): bytes of chunks with one holder and one destination that are not reduced.
    sizes
        (groups,): bytes of all chunks of a group, which have the same ends.
    holders, destinations
        (groups, ranks): who holds and who needs them.
    reduced
        (groups,): whether contributions are added up.
    """

    traffic: Floats
    sizes: Floats
    holders: Mask
    destinations: Mask
    reduced: Mask

    @cached_property
    def holding(self) -> Mask:
        """(ranks,): who holds anything."""
        return np.asarray(self.holders.any(axis=0) | (self.traffic > 0).any(axis=1))

    @cached_property
    def needing(self) -> Mask:
        """(ranks,): who needs anything."""
        return np.asarray(self.destinations.any(axis=0) | (self.traffic > 0).any(axis=0))

    def leaving(self, inside: Mask) -> Floats:
        """Return the bytes that must leave each of several sets.

        Parameters
        ----------
        inside
            (sets, ranks): which GPUs are in each set.

        Returns
        -------
        ndarray
            (sets,): bytes.
        """
        within = inside.astype(np.float64)
        pairs = np.einsum("ki,ki->k", within @ self.traffic, 1.0 - within)
        if not len(self.sizes):
            return np.asarray(pairs)
        # Numbers of ranks are exact in half the bytes, and counted in half the time.
        some = within.astype(np.float32)
        held = some @ self.holders.T.astype(np.float32)
        starts = np.where(self.reduced, held > 0, held == self.holders.sum(axis=1))
        ends = (1.0 - some) @ self.destinations.T.astype(np.float32) > 0
        return np.asarray(pairs + (starts & ends) @ self.sizes)

    def into(self) -> Floats:
        """Return (sinks, ranks): bytes not reduced that a sink needs and only that rank holds."""
        alone = self.sizes * (~self.reduced & (self.holders.sum(axis=1) == 1))
        return self._apart(
            self.traffic.T + (self.destinations * alone[:, None]).T @ self.holders.astype(float)
        )

    def out_of(self) -> Floats:
        """Return (sources, ranks): bytes only that rank needs, and not without the source."""
        alone = self.sizes * (self.destinations.sum(axis=1) == 1)
        held = self.holders & (self.reduced | (self.holders.sum(axis=1) == 1))[:, None]
        return self._apart(
            self.traffic + (held * alone[:, None]).T @ self.destinations.astype(float)
        )

    def _apart(self, weights: Floats) -> Floats:
        """Leave out what a rank has for itself."""
        return np.where(np.eye(len(weights), dtype=bool), 0.0, weights)


def demand_of(collective: Collective) -> Demand:
    """Sum the chunks of a collective by their ends."""
    ranks = collective.ranks
    traffic = np.zeros((ranks, ranks))
    groups: dict[tuple[tuple[int, ...], tuple[int, ...], bool], float] = defaultdict(float)
    for chunk in collective.chunks:
        if len(chunk.holders) == len(chunk.destinations) == 1 and not chunk.reduced:
            if chunk.holders != chunk.destinations:
                traffic[chunk.holders[0], chunk.destinations[0]] += chunk.size
        else:
            groups[chunk.holders, chunk.destinations, chunk.reduced] += chunk.size
    return Demand(
        traffic=traffic,
        sizes=np.array(list(groups.values()), dtype=float),
        holders=_masks([holders for holders, _, _ in groups], ranks),
        destinations=_masks([destinations for _, destinations, _ in groups], ranks),
        reduced=np.array([reduced for _, _, reduced in groups], dtype=bool),
    )


def _masks(sets: list[tuple[int, ...]], ranks: int) -> Mask:
    masks = np.zeros((len(sets), ranks), dtype=bool)
    for row, members in enumerate(sets):
        masks[row, list(members)] = True
    return masks


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


_STEPS = 48
"""Most releases that a curve is worked out from; leaving some out only lowers it."""


def slots(opens: Floats, pace: Floats, *, count: int) -> Floats:
    """Return the `count` smallest of opens + k pace over machines and k = 0, 1, ... in order."""
    usable = np.isfinite(opens)
    opens, pace = opens[usable], pace[usable]
    enough = steady(opens, pace, count=count)
    # One more than are due by then, so that no rounding loses any.
    due = (enough - opens) / pace + _rounding(enough, opens, pace)
    many = np.clip(np.floor(due) + 2, 0, count).astype(int)
    place = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    found = np.repeat(opens, many) + place * np.repeat(pace, many)
    return np.asarray(np.sort(found)[:count])


def slot(opens: Floats, pace: Floats, *, count: int) -> float:
    """Return the `count`-th smallest of opens + k pace, without making all of them."""
    usable = np.isfinite(opens)
    opens, pace = opens[usable], pace[usable]
    before = steady(opens, pace, count=count) - pace.max()
    # Slots until then, but for the last of each machine, which rounding might have let in.
    due = (before - opens) / pace - _rounding(before, opens, pace)
    passed = np.maximum(np.floor(due), 0)
    return float(slots(opens + passed * pace, pace, count=count - int(passed.sum()))[-1])


def _rounding(time: float, opens: Floats, pace: Floats) -> Floats:
    """Return by how many slots a number of them until a time may be off: opens may be far off."""
    return np.asarray(4 * np.finfo(float).eps * (abs(time) + np.abs(opens)) / pace)


def steady(opens: Floats, pace: Floats, *, count: float) -> float:
    """Return when a steady flow of jobs over all machines has brought `count`.

    The `count`-th slot is not later, and less than the longest pace earlier.
    """
    order = np.argsort(opens, kind="stable")
    rate = np.cumsum(1 / pace[order])
    return float(((count + np.cumsum(opens[order] / pace[order])) / rate).min())


def last(releases: Floats, given: Floats) -> float:
    """Return when the last of all jobs begins at the earliest; releases and slots in order."""
    return float((releases + given[: len(releases)][::-1]).max())


def curve(releases: Floats, given: Floats) -> Floats:
    """Return when the first, second, ... job begins at the earliest."""
    count = len(releases)
    firsts = np.flatnonzero(np.diff(releases, prepend=-np.inf) > 0)
    if len(firsts) > _STEPS:
        firsts = firsts[np.linspace(0, len(firsts) - 1, _STEPS).astype(int)]
    found = np.full(count, -np.inf)
    for i in firsts:
        np.maximum(found[i:], releases[i] + given[: count - i], out=found[i:])
    return found
