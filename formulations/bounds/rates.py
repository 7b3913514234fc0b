"""The largest rate at which all demands flow together: a linear program for the best prices.

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

import cvxpy as cp
import numpy as np
from scipy import sparse

from ccl.errors import SolveError
from formulations.bounds.cuts import BYTES, Network
from formulations.bounds.demand import Floats
from formulations.bounds.prices import Rows
from formulations.solvers.cvxpy_highs import Backend

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
