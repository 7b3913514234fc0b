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
`formulations.bounds.prices`.

The largest rate at which all demands flow together: a linear program for the best prices.

For chunks with one holder and one destination that are not reduced, with sources s, links e and

    flow[e, s] >= 0    bytes of chunks from s that cross e,
    T                  the makespan, in µs,

every plan, summed over time, satisfies

    sum of flow[., s] out of v - into v = what s has to send if v is s, else - what v needs of s
    sum over s of flow[e, s]            <= b(e) (T - wait(e))     for every link
    sum over e in L and s of flow[e, s] <= b(L) (T - wait(L))     for every shared limit L

with the rates and waits of `formulations.bounds.prices`. The least T is a bound: the time-free
linear program for all-to-all (the thesis, section 4.2, without its time axis), with latencies
added. The bound is worked out from the prices of its rows, so that no solver has to be trusted.
"""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from scipy import sparse

from ccl.bound import Bound
from ccl.errors import SolveError
from formulations.bounds.cuts import BYTES, Network, narrowed
from formulations.bounds.demand import Floats
from formulations.solvers.cvxpy_highs import Backend


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


_SECONDS = 30.0
"""The program is never worth more than this."""


def best_prices(network: Network, rows: Rows) -> Floats:
    """Return the prices of links and limits, zeros if the program was not solved in time."""
    traffic = network.demand.traffic
    sources = np.flatnonzero(traffic.any(axis=1))
    devices, links = len(network.problem.topology.devices), len(network.bandwidth)
    supply = np.zeros((devices, len(sources)))
    supply[network.gpus] = -traffic[sources].T
    supply[network.gpus[sources], np.arange(len(sources))] = traffic[sources].sum(axis=1)
    unit = traffic.max()  # keeps the numbers of the program near 1

    flow = cp.Variable((links, len(sources)), nonneg=True)
    makespan = cp.Variable()
    carried = rows.members @ (flow @ np.ones(len(sources)))
    # The time of `unit` bytes at 1 GB/s is the unit of time.
    fits = carried <= makespan * rows.rates - rows.rates * rows.waits * BYTES / unit
    model = cp.Problem(cp.Minimize(makespan), [_ends(network) @ flow == supply / unit, fits])
    try:
        # Interior points are far faster than the simplex method on flows by source.
        method = "ipm" if flow.size > 5000 else "choose"
        Backend().solve(model, time_limit=_SECONDS, method=method)
    except SolveError:
        return np.zeros(len(rows.rates))
    prices: Floats = np.maximum(np.asarray(fits.dual_value, dtype=float).ravel(), 0.0)
    return prices


def _ends(network: Network) -> sparse.csr_array:
    """Return (devices, links): 1 where a link leaves a device, -1 where it enters one."""
    links = len(network.bandwidth)
    return sparse.csr_array(
        (
            np.repeat([1.0, -1.0], links),
            (network.ends.T.ravel(), np.tile(np.arange(links), 2)),
        ),
        shape=(len(network.problem.topology.devices), links),
    )
