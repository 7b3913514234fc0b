"""Cuts when chunks are never split: links take them one after the other, with heads and tails.

Let S be a set of devices and c a chunk that must leave it (`formulations.bounds.demand`). Take a
destination d outside and, where contributions are added up, a holder h inside. What d gets from h
(of a chunk that is not reduced: from some holder) comes along a chain of sends of the whole chunk,
and the last hop on it that leaves S is over some link e = (u, v) that leaves S. On e

* c begins no earlier than it can be at u: all of it if u stores, else its first byte (`head`);
* c has left e no later than T minus the latency of e and the quickest way on from v to d: of all
  of it if v stores, else of its last byte as far as the next device that stores (`tail`).

Between these e is busy for bytes times beta with c, and one link can be busy with distinct chunks
only one after the other. So for any set C of such chunks of n bytes or more, with the least head
and the least tail on e of those in C, e takes at most (T - head - tail) / (n beta) of them, rounded
down, and T is at least the |C|-th smallest of all head + tail + k n beta over links e and k >= 1.
Every choice of C, h and d gives a bound; tried are all chunks, and those whose heads or tails
are large, with the farthest h and d of each. This is the bound of parallel processors with heads
and tails (Carlier, EJOR 1987); it holds at copying switches, as chunks are counted once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ccl.bound import Bound
from formulations.bounds.cuts import Network, witness
from formulations.bounds.demand import Floats, Mask
from formulations.bounds.paths import Ways

WORK_LIMIT = 20_000_000
"""Most pairs of a cut and a kind of chunk that are looked at."""

_THRESHOLDS = 6
"""Most values of heads, and of tails, that sets of chunks are formed by."""


@dataclass(frozen=True)
class _Kinds:
    """Chunks of `nbytes` or more, counted by their ends: (kinds,) and (kinds, ranks)."""

    counts: np.ndarray
    holders: Mask
    destinations: Mask
    reduced: Mask

    def leaving(self, inside: Mask) -> np.ndarray:
        """Return the numbers of the kinds that must leave a set, given the ranks in it."""
        held = (self.holders & inside).sum(axis=1)
        starts = np.where(self.reduced, held > 0, held == self.holders.sum(axis=1))
        return np.flatnonzero(starts & (self.destinations & ~inside).any(axis=1))


def whole_bound(network: Network, cuts: Iterable[Mask]) -> Bound | None:
    """Return the best bound that cuts prove for plans that never split a chunk."""
    sides = list(cuts)
    best, cut = 0.0, None
    for nbytes in sorted({each.size for each in network.problem.collective.chunks}):
        kinds = _kinds(network, nbytes)
        if len(kinds.counts) * len(sides) > WORK_LIMIT:
            continue
        ways = Ways(network, nbytes)
        for inside in sides:
            makespan = _makespan(network, ways, kinds, inside=inside, beaten=best)
            if makespan > best:
                best, cut = makespan, inside
    if cut is None:
        return None
    return Bound(
        best,
        "cut",
        witness(network, cut),
        "whole chunks crossing one after the other, from where they start to where they must be",
        whole_chunks=True,
    )


def _kinds(network: Network, nbytes: float) -> _Kinds:
    counted = Counter(
        (each.holders, each.destinations, each.reduced)
        for each in network.problem.collective.chunks
        if each.size >= nbytes
    )
    shape = len(counted), len(network.gpus)
    holders, destinations = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    for row, (starts, stops, _) in enumerate(counted):
        holders[row, list(starts)] = True
        destinations[row, list(stops)] = True
    return _Kinds(
        np.array(list(counted.values())),
        holders,
        destinations,
        np.array([reduced for _, _, reduced in counted], dtype=bool),
    )


def _makespan(network: Network, ways: Ways, kinds: _Kinds, *, inside: Mask, beaten: float) -> float:
    """Return the most µs that a cut proves over the sets of chunks tried, or what is beaten."""
    at = inside[network.gpus]
    leaving, links = kinds.leaving(at), network.crossing(inside)
    if not len(leaving):
        return beaten
    heads, tails = _heads(network, ways, links), _tails(network, ways, links)
    head = _ends(heads, kinds.holders[leaving] & at, farthest=kinds.reduced[leaving])
    tail = _ends(tails, kinds.destinations[leaving] & ~at, farthest=np.ones(len(leaving), bool))
    busy = ways.nbytes * 1e-3 / network.bandwidth[links]
    counts = kinds.counts[leaving]
    best = beaten
    for chosen in _sets(head.min(axis=1), tail.min(axis=1)):
        waits = head[chosen].min(axis=0) + tail[chosen].min(axis=0)
        usable, count = np.isfinite(waits), int(counts[chosen].sum())
        waits, pace = waits[usable], busy[usable]
        # A steady flow is at most one chunk on one link ahead.
        if _steady(waits, pace, count=count) + pace.max() > best:
            best = max(best, _finished(waits, pace, count=count))
    return best


def _heads(network: Network, ways: Ways, links: np.ndarray) -> Floats:
    """Return (ranks, links): µs before a chunk of a rank can begin to cross."""
    return np.asarray(ways.arrivals[:, network.ends[links, 0]])


def _tails(network: Network, ways: Ways, links: np.ndarray) -> Floats:
    """Return (ranks, links): µs from when a chunk has left the link until a rank has it."""
    return np.asarray(network.alpha[links] + ways.remains[:, network.ends[links, 1]])


def _ends(times: Floats, ranks: Mask, *, farthest: Mask) -> Floats:
    """Return (kinds, links): times of the farthest of some ranks, or of the nearest per link."""
    nearest = times.min(axis=1)
    found = times[np.where(ranks, nearest, -np.inf).argmax(axis=1)]
    for row in np.flatnonzero(~farthest & (ranks.sum(axis=1) > 1)):
        found[row] = times[ranks[row]].min(axis=0)
    return np.asarray(found)


def _sets(heads: Floats, tails: Floats) -> Iterator[Mask]:
    """Yield sets of chunks with at least some head and at least some tail."""
    for head in _levels(heads):
        for tail in _levels(tails):
            chosen = (heads >= head) & (tails >= tail)
            if chosen.any():
                yield chosen


def _levels(values: Floats) -> Floats:
    """Return a few of the values, the smallest and the largest among them."""
    distinct = np.unique(values)
    places = np.linspace(0, len(distinct) - 1, min(len(distinct), _THRESHOLDS))
    return np.asarray(distinct[np.rint(places).astype(int)])


def _finished(waits: Floats, busy: Floats, *, count: int) -> float:
    """Return the `count`-th smallest of waits + k busy over links and k = 1, 2, ..."""
    done = np.floor((_steady(waits, busy, count=count) - waits) / busy * (1 - 1e-12)).clip(min=0)
    # As many as that are done by the time at which a steady flow would be; few are missing.
    following = waits + (done + 1) * busy
    finished = 0.0
    for _ in range(count - int(done.sum())):
        link = int(following.argmin())
        finished = float(following[link])
        following[link] += busy[link]
    return finished


def _steady(waits: Floats, busy: Floats, *, count: int) -> float:
    """Return when a steady flow of chunks over all links has brought `count`; not later."""
    order = np.argsort(waits, kind="stable")
    rate = np.cumsum(1 / busy[order])
    return float(((count + np.cumsum(waits[order] / busy[order])) / rate).min())
