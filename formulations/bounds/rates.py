"""The largest rate at which all demands flow together, as a bound on the makespan.

For chunks with one holder and one destination that are not reduced, any plan sends each byte
along some way. Summed over time, with sources s, links e and

    flow[e, s] >= 0    bytes of chunks from s that cross e,
    T                  the makespan, in µs,

every plan satisfies

    sum of flow[., s] out of v - into v = what s has to send if v is s, else - what v needs of s
    sum over s of flow[e, s]            <= b(e) (T - wait(e))     for every link
    sum over e in L and s of flow[e, s] <= b(L) (T - wait(L))     for every shared limit L

where wait(e) is the time in which e is of no use: latency from the nearest source to its tail,
its own, and that from its head to the nearest destination, or a makespan already proved, if that
is less; wait(L) is the least of its links. The least T is a bound: the time-free linear program
for all-to-all (the thesis, section 4.2, without its time axis), with latencies added.

Its dual prices are a certificate that needs no trust in a solver. For any prices p(e), q(L) >= 0
let P(e) be p(e) plus the prices of the limits with e, and dist(s, d) the cheapest way from s to d
under P. Multiplying the rows by their prices and adding up,

    T >= (sum of bytes(s, d) dist(s, d) + sum p(e) b(e) wait(e) + sum q(L) b(L) wait(L))
         / (sum p(e) b(e) + sum q(L) b(L)),

and this is what is returned, worked out from the prices of the solver.
"""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from scipy import sparse

from ccl.bound import Bound
from ccl.errors import SolveError
from formulations.backends import Backend
from formulations.bounds.cuts import BYTES, Network
from formulations.bounds.demand import Floats


@dataclass(frozen=True)
class _Rows:
    """Links and limits that bind: which links each row sums, GB/s and waits of each row."""

    members: sparse.csr_array
    rates: Floats
    waits: Floats


def rate_bound(network: Network, *, proved: float) -> Bound | None:
    """Return the bound of the linear program, or None if no price came out of it.

    Parameters
    ----------
    network
        A problem whose chunks have one holder and one destination and are not reduced.
    proved
        A makespan in µs that is already proved.
    """
    rows = _rows(network, proved)
    traffic = network.demand.traffic
    sources = np.flatnonzero(traffic.any(axis=1))
    devices, links = len(network.problem.topology.devices), len(network.bandwidth)
    every = np.arange(links)
    ends = sparse.csr_array(
        (
            np.concatenate([np.ones(links), -np.ones(links)]),
            (np.concatenate([network.ends[:, 0], network.ends[:, 1]]), np.tile(every, 2)),
        ),
        shape=(devices, links),
    )
    supply = np.zeros((devices, len(sources)))
    supply[network.gpus] = -traffic[sources].T
    supply[network.gpus[sources], np.arange(len(sources))] = traffic[sources].sum(axis=1)
    unit = traffic.max()  # keeps the numbers of the program near 1

    flow = cp.Variable((links, len(sources)), nonneg=True)
    makespan = cp.Variable()
    carried = rows.members @ cp.sum(flow, axis=1)
    # In GB/s times the time of `unit` bytes at 1 GB/s; the row prices then are per unit too.
    room = cp.multiply(rows.rates, makespan - rows.waits * BYTES / unit)
    fits = carried <= room
    model = cp.Problem(cp.Minimize(makespan), [ends @ flow == supply / unit, fits])
    try:
        Backend().solve(model, time_limit=30.0, method="ipm" if flow.size > 5000 else "choose")
    except SolveError:
        return None
    prices = np.maximum(np.asarray(fits.dual_value, dtype=float).ravel(), 0.0)
    value = _certified(network, rows, prices)
    if value is None:
        return None
    return Bound(value, "flow", None, "the largest rate at which all chunks flow together")


def _rows(network: Network, proved: float) -> _Rows:
    links = len(network.bandwidth)
    waits = np.minimum(_waits(network), proved)
    places = [*zip(range(links), range(links), strict=True)]
    rates, held = [*network.bandwidth], [*waits]
    for row, (allowed, members) in enumerate(network.limits, start=links):
        places += [(row, int(link)) for link in members]
        rates.append(allowed)
        held.append(waits[members].min())
    at = np.array(places).T
    members = sparse.csr_array((np.ones(len(places)), (at[0], at[1])), shape=(len(rates), links))
    return _Rows(members, np.array(rates), np.array(held))


def _waits(network: Network) -> Floats:
    """Return the µs of the makespan in which each link is of no use to any chunk."""
    before = network.latency[network.demand.holding].min(axis=0)
    after = network.latency_to[network.demand.needing].min(axis=0)
    return np.asarray(before[network.ends[:, 0]] + network.alpha + after[network.ends[:, 1]])


def _certified(network: Network, rows: _Rows, prices: Floats) -> float | None:
    """Return what prices of the rows prove, in µs."""
    worth = float(prices @ rows.rates) * BYTES
    if worth <= 0:
        return None
    costs = rows.members.T @ prices
    found = network.graph.distances(
        network.gpus.tolist(), network.gpus.tolist(), weights=costs.tolist()
    )
    ways = np.asarray(found, dtype=float)
    traffic = network.demand.traffic
    needed = float((traffic[traffic > 0] * ways[traffic > 0]).sum())
    waited = float((prices * rows.rates) @ rows.waits) * BYTES
    return (needed + waited) / worth
