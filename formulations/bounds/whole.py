"""Cuts when chunks are never split: links take them one after the other, with heads and tails.

Let S be a set of devices and c a chunk that must leave it (`formulations.bounds.demand`). Take a
destination d outside and, where contributions are added up, a holder h inside. What d gets from h
(of a chunk that is not reduced: from some holder) comes along a chain of sends of the whole chunk,
and the last hop on it that leaves S is over some link e = (u, v) that leaves S. On e

* c begins no earlier than it can be at u: all of it if u stores, else its first byte (`head`);
* d has c no earlier than the quickest way over e and on from v allows after that (`tail`).

From when it begins, e is busy with c for bytes times beta, and one link can be busy with distinct
chunks only one after the other. So for any set C of such chunks of n bytes or more, with the least
head and the least tail on e of those in C, the chunks of C that cross e keep the makespan T at
head + tail + k n beta or more, k one less than their number: T is at least the |C|-th smallest of
all these over links e and k >= 0 (`formulations.bounds.machines`).
Every choice of C, h and d gives a bound; tried are all chunks, and those whose heads or tails
are large, with the farthest h and d of each.

Links under a shared limit L carry at most b(L) bytes a second together, between the least head of
any and T less the quickest way on from the end of any. Each carries whole chunks, so k chunks need
this head, k n over b(L), and this way: as if L were one link. Both views are tried.

This is the bound of parallel processors with heads and tails (Carlier, EJOR 1987); it holds at
copying switches, as chunks are counted once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from formulations.bounds.cuts import Network, throttled
from formulations.bounds.demand import Floats, Mask
from formulations.bounds.kinds import Kinds
from formulations.bounds.machines import slot, steady
from formulations.bounds.paths import Ways

_THRESHOLDS = 6
"""Most values of heads, and of tails, that sets of chunks are formed by."""


def cut_makespan(
    network: Network, ways: Ways, kinds: Kinds, *, inside: Mask, beaten: float = 0.0
) -> float:
    """Return the most µs that a cut proves over the sets of chunks tried, or what is beaten."""
    at = inside[network.gpus]
    crossing, links = kinds.leaving(at), network.crossing(inside)
    if not crossing.any():
        return beaten
    leaving = kinds.chosen(crossing)
    head = leaving.opening(ways.begins(links), at)
    brings = ways.brings(links)
    tail = leaving.closing(brings, at)
    # To the same destination, else both kinds of machines would not speak of one chain of sends.
    follow = leaving.closing(brings, at, of=ways.follows(links)) if network.limits else tail
    pace = ways.nbytes * 1e-3 / network.bandwidth[links]
    joint = throttled(network, links)
    best = beaten
    for chosen in _sets(head.min(axis=1), tail.min(axis=1)):
        heads, count = head[chosen].min(axis=0), int(leaving.counts[chosen].sum())
        tried = [(heads + tail[chosen].min(axis=0), pace)]
        if joint:
            waits = heads, follow[chosen].min(axis=0)
            tried.append(_as_one(tried[0], joint, waits=waits, nbytes=ways.nbytes))
        for opens, busy in tried:
            usable = np.isfinite(opens)
            if steady(opens[usable], busy[usable], count=count) > best:
                best = max(best, slot(opens, busy, count=count))
    return best


def _as_one(
    machines: tuple[Floats, Floats],
    joint: Sequence[tuple[float, Mask]],
    *,
    waits: tuple[Floats, Floats],
    nbytes: float,
) -> tuple[Floats, Floats]:
    """Return the machines when links that a limit throttles together are one.

    `waits` are the µs before a chunk begins to cross each link, and after it has left it.
    """
    opens, pace = machines
    free = ~np.logical_or.reduce([links for _, links in joint])
    busy = [nbytes * 1e-3 / bandwidth for bandwidth, _ in joint]
    waited = [sum(float(each[links].min()) for each in waits) for _, links in joint]
    return (
        np.concatenate([opens[free], np.add(waited, busy)]),
        np.concatenate([pace[free], busy]),
    )


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
