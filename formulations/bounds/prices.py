"""What prices of links prove about chunks with one holder and one destination, not reduced.

Any plan sends each byte of such a chunk along some way. With prices p(e) >= 0 on links and
q(L) >= 0 on shared limits, let P(e) be p(e) plus the prices of the limits that count e, and
dist(s, d) the cheapest way from s to d under P. A byte from s to d costs at least dist(s, d) on
its way. In a plan of makespan T a link carries at most b(e) (T - wait(e)) bytes of use and a
limit at most b(L) (T - wait(L)), where wait(e) is the time in which e is of no use (latency from
the nearest source to its tail, its own, and that from its head to the nearest destination; or,
if that is less, a makespan already proved) and wait(L) is the least of its links. So

    sum of bytes(s, d) dist(s, d)  <=  sum p(e) b(e) (T - wait(e)) + sum q(L) b(L) (T - wait(L)),

which gives a lower bound on T, whatever the prices. Equal prices weigh bytes by the links that
they have to cross and are right for tori; the best prices are the duals of the linear program in
`formulations.bounds.rates`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ccl.bound import Bound
from formulations.bounds.cuts import BYTES, Network
from formulations.bounds.demand import Floats


@dataclass(frozen=True)
class Rows:
    """Links, then limits, as rows: which links each sums, GB/s, and µs of no use."""

    members: sparse.csr_array
    rates: Floats
    waits: Floats


def rows_of(network: Network, proved: float) -> Rows:
    """Return the rows of a problem of which a makespan of `proved` µs is already proved."""
    links = len(network.bandwidth)
    waits = np.minimum(_waits(network), proved)
    places = [(link, link) for link in range(links)]
    rates, held = [*network.bandwidth], [*waits]
    for row, (limit, members) in enumerate(network.limits, start=links):
        places += [(row, int(link)) for link in members]
        rates.append(limit.bandwidth)
        held.append(waits[members].min())
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


def _waits(network: Network) -> Floats:
    """Return the µs of the makespan in which each link is of no use to any chunk."""
    before = network.latency[network.demand.holding].min(axis=0)
    after = network.latency_to[network.demand.needing].min(axis=0)
    return np.asarray(before[network.ends[:, 0]] + network.alpha + after[network.ends[:, 1]])
