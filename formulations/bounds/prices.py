"""What prices of links prove about chunks with one holder and one destination, not reduced.

Any plan sends each byte of such a chunk along some way. With prices p(e) >= 0 on links and
q(L) >= 0 on shared limits, let P(e) be p(e) plus the prices of the limits that count e, and
dist(s, d) the cheapest way from s to d under P. A byte from s to d costs at least dist(s, d) on
its way. In a plan of makespan T a link carries at most b(e) max(0, T - wait(e)) bytes of use,
where wait(e) is the time in which e is of no use: latency from the nearest source to its tail, its
own, and that from its head to the nearest destination. A limit carries what the pipes r of
`formulations.bounds.cuts.narrowed` carry, as its links are of use at different times. Where P is
a makespan that every plan is known to take, max(0, T - wait) is at most T - min(wait, P), so with
wait(L) the mean of min(wait(r), P), weighted by the rates of the pipes, and b(L) the sum of these,

    sum of bytes(s, d) dist(s, d)  <=  sum p(e) b(e) (T - min(wait(e), P))
                                       + sum q(L) b(L) (T - wait(L)),

which gives a lower bound on T, whatever the prices. Equal prices weigh bytes by the links that
they have to cross and are right for tori; the best prices are the duals of the linear program in
`formulations.bounds.rates`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ccl.bound import Bound
from formulations.bounds.cuts import BYTES, Network, narrowed
from formulations.bounds.demand import Floats


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
        rates.append(float(pipes.sum()))
        waits = np.minimum(waits, proved)
        held.append(float(np.average(waits, weights=pipes)) if len(pipes) else 0.0)
    at = np.array(places).T
    summed = sparse.csr_array((np.ones(len(places)), (at[0], at[1])), shape=(len(rates), links))
    return Rows(summed, np.array(rates), np.array(held))


def price_bound(network: Network, rows: Rows, prices: Floats) -> Bound | None:
    """Return what prices of the rows prove, or None if all of them are zero."""
    worth = float(prices @ rows.rates) * BYTES
    if worth <= 0:
        return None
    gpus = network.gpus.tolist()
    costs = (rows.members.T @ prices).tolist()
    ways = np.asarray(network.graph.distances(gpus, gpus, weights=costs), dtype=float)
    traffic = network.demand.traffic
    needed = float((traffic[traffic > 0] * ways[traffic > 0]).sum())
    waited = float((prices * rows.rates) @ rows.waits) * BYTES
    return Bound((needed + waited) / worth, "flow", None, "all chunks flowing together")


def _windows(network: Network) -> tuple[Floats, Floats]:
    """Return the µs after the start, and before the end, in which links are of use to no chunk."""
    before = network.latency[network.demand.holding].min(axis=0)
    after = network.latency_to[network.demand.needing].min(axis=0)
    heads, tails = network.ends.T
    return np.asarray(before[heads]), np.asarray(network.alpha + after[tails])
