"""The cut that binds, found by maximum flows.

For one sink t and weights w(r), the bytes that t needs from rank r alone, the cuts that matter
are sets S without t, and the demand of S is at least w(S). The largest w(S) / B(S) is found by
Newton's method on the makespan: a source feeds w(r) / T into each r; if a flow of w / T in all
reaches t, no cut proves more than T; otherwise the cut that stops it proves more, and T becomes
what it proves. This is the throughput bound of ForestColl (arXiv 2402.06787), section 4.

Sums that end at one rank (reduce-scatter) and what leaves one source (scatter) are the same on
the reversed graph. For sums that many ranks need (all-reduce) every set with a holder inside and
a destination outside has the whole size as its demand, so the least cut between ranks is sought.

Capacities are whole numbers, so flows are exact; what a cut proves is worked out again from the
cut alone (`formulations.bounds.cuts`), hence rounding could make it less sharp but never wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import igraph
import numpy as np

from formulations.bounds.cuts import Network
from formulations.bounds.demand import Floats, Mask

_GRAIN = 1e-6
"""GB/s that bandwidths are rounded to for flows."""

_EXACT = 2**50
"""Above this a sum of whole numbers might not be exact in floating point."""


def binding_cuts(network: Network) -> list[Mask]:
    """Return cuts among which is one of the largest demand over bandwidth.

    Exact for all-gather, reduce-scatter, broadcast, reduce, gather, scatter and all-reduce
    without shared limits and with latencies left out; for other collectives cuts worth trying.
    """
    demand = network.demand
    many = demand.destinations.sum(axis=1) > 1
    found: list[Mask] = []
    sources = np.flatnonzero((demand.traffic > 0).any(axis=1))
    sinks = np.flatnonzero((demand.traffic > 0).any(axis=0))
    if (many & ~demand.reduced).any() or len(sinks) == 1:
        found += _Newton(network, flipped=False).run(demand.into())
    if (demand.reduced & ~many).any() or len(sources) == 1:
        found += [~side for side in _Newton(network, flipped=True).run(demand.out_of())]
    for group in np.flatnonzero(demand.reduced & many):
        found += _least_cuts(network, demand.holders[group], demand.destinations[group])
    return found


class _Newton:
    """The flows of one direction; the graph is built once and only capacities change."""

    def __init__(self, network: Network, *, flipped: bool) -> None:
        self.devices = len(network.problem.topology.devices)
        self.gpus = network.gpus
        self.ends = network.ends[:, ::-1] if flipped else network.ends
        self.capacity = _whole(network.bandwidth / _GRAIN)
        feeds = [(self.devices, int(gpu)) for gpu in network.gpus]
        self.graph = igraph.Graph(
            n=self.devices + 1, edges=[*map(tuple, self.ends.tolist()), *feeds], directed=True
        )

    def run(self, needs: Floats) -> list[Mask]:
        """Return the cuts met, the last of which binds, as masks over devices.

        Parameters
        ----------
        needs
            (sinks, ranks): the weights of each sink, in bytes.
        """
        if not needs.any():
            return []
        whole = _whole(needs / needs.max() * 1e6)
        # The cut around each sink is the usual answer, so start from the worst of these.
        top, bottom = 0, 1
        for rank, need in enumerate(whole):
            entering = int(self.capacity[self.ends[:, 1] == self.gpus[rank]].sum())
            if entering and int(need.sum()) * bottom > top * entering:
                top, bottom = int(need.sum()), entering
        found: list[Mask] = []
        for rank, need in enumerate(whole):
            for side, *ratio in self._steps(rank, need, top=top, bottom=bottom):
                top, bottom = ratio
                found.append(side)
        return found

    def _steps(
        self, rank: int, need: np.ndarray, *, top: int, bottom: int
    ) -> Iterator[tuple[Mask, int, int]]:
        """Yield ever better cuts for one sink with their weight and bandwidth."""
        target = int(need.sum())
        while target:
            common = math.gcd(top, bottom)
            top, bottom = top // common, bottom // common
            if max(target * bottom, int(self.capacity.sum()) * top) > _EXACT:
                # Newton stops early; what was found so far stays valid.
                return
            capacity = np.concatenate([self.capacity * top, need * bottom]).tolist()
            sink = int(self.gpus[rank])
            if self.graph.maxflow_value(self.devices, sink, capacity) >= target * bottom:
                return
            side = np.zeros(self.devices + 1, dtype=bool)
            side[self.graph.mincut(self.devices, sink, capacity).partition[0]] = True
            side = side[:-1]
            top = int(need[side[self.gpus]].sum())
            leaving = side[self.ends[:, 0]] & ~side[self.ends[:, 1]]
            bottom = int(self.capacity[leaving].sum())
            yield side, top, bottom


def _least_cuts(network: Network, holders: Mask, destinations: Mask) -> list[Mask]:
    """Return the least cut from each holder to one destination and from one holder to each."""
    capacity = _whole(network.bandwidth / _GRAIN).tolist()
    first, last = np.flatnonzero(holders)[0], np.flatnonzero(destinations)[0]
    pairs = [(first, rank) for rank in np.flatnonzero(destinations)]
    pairs += [(rank, last) for rank in np.flatnonzero(holders)]
    best, found = math.inf, []
    for start, stop in pairs:
        if start == stop:
            continue
        src, dst = int(network.gpus[start]), int(network.gpus[stop])
        value = network.graph.maxflow_value(src, dst, capacity)
        if value < best:
            best = value
            side = np.zeros(len(network.problem.topology.devices), dtype=bool)
            side[network.graph.mincut(src, dst, capacity).partition[0]] = True
            found.append(side)
    return found


def _whole(values: Floats) -> np.ndarray:
    """Return whole numbers in the proportions of `values`, as small as they can be."""
    rounded = np.rint(values).astype(np.int64)
    common = int(np.gcd.reduce(rounded, axis=None)) if rounded.any() else 1
    return np.asarray(rounded // max(common, 1))
