"""Price bounds for pairs and for sums that all GPUs want, and the cut that binds.

Pairs are chunks with one holder and one destination, not reduced (`price_bound`). Any plan sends
each byte of such a chunk along some path. With prices p(e) >= 0 on links and q(L) >= 0 on shared
limits, let P(e) be p(e) plus the prices of the limits that count e, and dist(s, d) the cheapest
path from s to d under P. A byte from s to d costs at least dist(s, d) on its path. In a plan of
makespan T a link carries at most b(e) max(0, T - wait(e)) bytes of use, where wait(e) is the time
in which e is of no use: latency from the nearest source to its tail, its own, and that from its
head to the nearest destination. A limit carries what the pipes r of
`formulations.bounds.cuts.narrowed` carry, as its links are of use at different times. Where P is
a makespan that every plan is known to take, max(0, T - wait) is at most T - min(wait, P), so with
wait(L) the mean of min(wait(r), P), weighted by the rates of the pipes, and b(L) the sum of these,

    sum of bytes(s, d) dist(s, d)  <=  sum p(e) b(e) (T - min(wait(e), P))
                                       + sum q(L) b(L) (T - wait(L)),

which gives a lower bound on T, whatever the prices. Equal prices weigh bytes by the links that
they have to cross and are right for tori; the best prices are the duals of the linear program in
`formulations.bounds.concurrent_flow`.

Sums that all GPUs want (all-reduce), where nothing but GPUs copies or adds (`spanning_bounds`).
Look at one byte of the sum. It arrives at GPUs from GPUs; let z(i, j) be how often from one of i
and j at the other. For every partition of the GPUs into k groups at least 2 (k - 1) arrivals lead
from group to group (`formulations.bounds.cuts`), so z / 2 satisfies all partition inequalities: it
is at least a convex combination of spanning trees (Tutte; Nash-Williams; Fulkerson). Each arrival
crosses links of its own and costs at least c(i, j), the cheapest path either way, so the byte costs
at least twice the minimum spanning tree under c, and

    2 bytes MST(c)  <=  sum p(e) b(e) (T - min(wait(e), P)) + sum q(L) b(L) (T - wait(L)).

Where every link has its reverse with the same bandwidth, prices may be averaged with those of the
reversed links, and the best are duals of the best in-trees and out-trees together: then no
all-reduce of any kind has a higher rate than the best trees.

The cut that binds is found by maximum flows (`binding_cuts`). For one sink t and weights w(r), the
bytes that t needs from rank r alone, the cuts that matter are sets S without t, and the demand of S
is at least w(S). The largest w(S) / B(S) is found by Newton's method on the makespan: a source
feeds w(r) / T into each r; if a flow of w / T in all reaches t, no cut proves more than T;
otherwise the cut that stops it proves more, and T becomes what it proves. This is the throughput
bound of ForestColl (arXiv 2402.06787), section 4.

Sums that end at one rank (reduce-scatter) and what leaves one source (scatter) are the same on
the reversed graph. For sums that many ranks need (all-reduce) every set with a holder inside and
a destination outside has the whole size as its demand, so the least cut between ranks is sought.

Capacities are whole numbers, so flows are exact; what a cut proves is worked out again from the
cut alone (`formulations.bounds.cuts`), hence rounding could make it less sharp but never wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ccl.bound import Bound
from ccl.problem import Problem
from ccl.result import PROOF_TOLERANCE
from ccl.symmetry.graphs import igraph
from ccl.topology import Topology
from formulations.bounds.cuts import BYTES, Network, narrowed
from formulations.bounds.demand import Floats, Mask


@dataclass(frozen=True)
class Rows:
    """Links, then limits, as rows: which links each sums, GB/s, and µs of no use."""

    members: sparse.csr_array
    rates: Floats
    waits: Floats


def rows_of(network: Network, proved: float) -> Rows:
    """Return the rows of a problem all of whose plans take `proved` µs, as is known already."""
    links = len(network.bandwidth)
    heads, tails = _windows(network)
    places = [(link, link) for link in range(links)]
    rates, held = [*network.bandwidth], [*np.minimum(heads + tails, proved)]
    for row, (limit, members) in enumerate(network.limits, start=links):
        places += [(row, int(link)) for link in members]
        alone = network.bandwidth[members]
        pipes, waits = narrowed(limit.bandwidth, alone, heads=heads[members], tails=tails[members])
        # One whose links lead nowhere is left as it is: nothing that counts is under it.
        rates.append(float(pipes.sum()) if len(pipes) else limit.bandwidth)
        waits = np.minimum(waits, proved)
        held.append(float(np.average(waits, weights=pipes)) if len(pipes) else 0.0)
    at = np.array(places).T
    summed = sparse.csr_array((np.ones(len(places)), (at[0], at[1])), shape=(len(rates), links))
    return Rows(summed, np.array(rates), np.array(held))


def price_bound(network: Network, rows: Rows, prices: Floats) -> Bound | None:
    """Return what prices of the rows prove, or None if all of them are zero."""
    value = float(prices @ rows.rates) * BYTES
    if value <= 0:
        return None
    gpus = network.gpus.tolist()
    costs = (rows.members.T @ prices).tolist()
    distances = np.asarray(network.graph.distances(gpus, gpus, weights=costs), dtype=float)
    traffic = network.demand.traffic
    needed = float((traffic[traffic > 0] * distances[traffic > 0]).sum())
    waited = float((prices * rows.rates) @ rows.waits) * BYTES
    return Bound((needed + waited) / value, "flow", None, "all chunks flowing together")


def spanning_bounds(problem: Problem, prices: Floats, *, proved: float) -> list[Bound]:
    """Return what prices prove for sums that all GPUs want, and of that the steady part.

    Parameters
    ----------
    problem
        What is to be solved.
    prices
        Any that are not negative, for a byte on each link, then in each shared limit.
    proved
        µs that every plan is known to take.
    """
    network = Network(problem)
    demand, devices = network.demand, problem.topology.devices
    whole = demand.reduced & demand.holders.all(axis=1) & demand.destinations.all(axis=1)
    relays = (each for each in devices if each.kind != "gpu")
    if not whole.any() or any(each.copies or each.reduces for each in relays):
        return []
    nbytes = float(demand.sizes[whole].sum())
    rows = rows_of(network, proved)
    links = len(problem.topology.links)
    tightest = sorted(
        range(len(network.limits)), key=lambda i: problem.topology.limits[i].bandwidth
    )
    given = np.concatenate([prices[:links], prices[links:][tightest]])
    found = []
    for tried in (given, (given + given[_reversed(problem.topology)]) / 2):
        value = float(tried @ rows.rates) * BYTES
        if value > 0:
            needed = 2 * nbytes * _spanning(network, rows.members.T @ tried)
            waited = float((tried * rows.rates) @ rows.waits) * BYTES
            found.append((needed / value, waited / value))
    words = "sums must reach all GPUs: twice the minimum spanning tree of what links cost"
    steady, _ = max(found, default=(0.0, 0.0))
    if steady <= 0:
        return []
    bounds = [Bound(steady * (1 - MARGIN), "flow", None, words, steady=True)]
    if network.alpha.any():
        best = max(map(sum, found)) * (1 - MARGIN)
        bounds.append(Bound(best, "flow", None, words))
    return bounds


def best_of_all(problem: Problem, prices: Floats, makespan: float) -> bool:
    """Return whether prices of an optimum of some kind of plan show that no plan has a higher rate.

    What is not added up for several needs no more than the optimum itself.
    """
    return not problem.adds_for_several or any(
        each.steady and makespan <= each.makespan * (1 + PROOF_TOLERANCE)
        for each in spanning_bounds(problem, prices, proved=0.0)
    )


def _spanning(network: Network, costs: Floats) -> float:
    """Return the minimum spanning tree of the GPUs, for the cheaper direction of each pair."""
    gpus = network.gpus.tolist()
    away = np.asarray(network.graph.distances(gpus, gpus, weights=costs.tolist()), dtype=float)
    pairs = np.triu_indices(len(gpus), 1)
    cheapest = np.minimum(away, away.T)[pairs]
    graph = igraph.Graph(n=len(gpus), edges=np.column_stack(pairs).tolist())
    return float(cheapest[graph.spanning_tree(cheapest.tolist(), return_tree=False)].sum())


def _reversed(topology: Topology) -> np.ndarray:
    """Return the reverse of each link, itself where there is none; limits stay as they are."""
    index, many = topology.link_index, len(topology.links) + len(topology.limits)
    found = np.arange(many)
    for number, link in enumerate(topology.links):
        found[number] = index.get((link.dst, link.src), number)
    return found


def _windows(network: Network) -> tuple[Floats, Floats]:
    """Return the µs after the start, and before the end, in which links are of use to no chunk."""
    before = network.latency[network.demand.holding].min(axis=0)
    after = network.latency_to[network.demand.needing].min(axis=0)
    heads, tails = network.ends.T
    return np.asarray(before[heads]), np.asarray(network.alpha + after[tails])


MARGIN = 1e-10
"""Share by which a bound is lowered, for the rounding of sums of prices."""

_GRAIN = 1e-6
"""GB/s that bandwidths are rounded to for flows."""

_EXACT = 2**50
"""Above this a sum of whole numbers might not be exact in floating point."""


def binding_cuts(network: Network) -> list[Mask]:
    """Return cuts among which is one of the largest demand over bandwidth.

    Exact for all-gather, reduce-scatter, broadcast, reduce, gather, scatter and all-reduce
    without shared limits and with latencies left out; for other collectives cuts to try.
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
