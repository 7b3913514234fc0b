"""Concurrent flow of pairs: a linear program by source, and what prices of its rows prove exactly.

For chunks with one holder and one destination that are not reduced, with sources s, links e and

    flow[e, s] >= 0    bytes of chunks from s that cross e,
    T                  the makespan, in µs,

every plan, summed over time, satisfies

    sum of flow[., s] out of v - into v = what s has to send if v is s, else - what v needs of s
    sum over s of flow[e, s]            <= b(e) (T - wait(e))     for every link
    sum over e in L and s of flow[e, s] <= b(L) (T - wait(L))     for every shared limit L

with the rates and waits of `formulations.bounds.prices`. The least T is a bound: the time-free
linear program for all-to-all (the thesis, section 4.2, without its time axis), with latencies
added.

Nothing about a solver has to be trusted. Whatever the prices p >= 0 of the rows, dist(s, d) being
the cheapest path,

    T >= sum of bytes(s, d) dist(s, d) / sum over rows of p b        where waits are zero,

since each byte costs at least its cheapest path and the rows carry at most b T. So prices of a run
that is not finished, or finished loosely, prove too: small programs are solved by interior points,
large ones by a first-order method (PDLP), which needs little memory and is soon near where T is
some 1: what equal prices prove is the unit of time. Prices rounded to whole numbers make all sums
whole numbers, and the proof a fraction (`certified`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from ccl.errors import SolveError
from formulations.bounds.cuts import BYTES, Network
from formulations.bounds.demand import Floats
from formulations.bounds.prices import Rows
from formulations.solvers import cp
from formulations.solvers.cvxpy_highs import Backend, TerminationCondition

INTERIOR = 20_000
"""Amounts up to which interior points are used; below a quarter of it the solver may choose."""

LARGEST = 500_000
"""Amounts above which the program is not made: 256 GPUs of 6 links each have 393,000."""

WHOLE = 10**9
"""Largest price where prices are whole numbers: sums along a path stay exact in floats."""

_TOLERANCES = (
    "pdlp_optimality_tolerance",
    "primal_feasibility_tolerance",
    "dual_feasibility_tolerance",
    "optimality_tolerance",
    "kkt_tolerance",
)


class ConcurrentFlow:
    """The linear program of a network.

    Parameters
    ----------
    network
        Of a problem some of whose chunks are pairs.
    rows
        Links and limits with their rates and waits.
    """

    def __init__(self, network: Network, rows: Rows) -> None:
        traffic = network.demand.traffic
        self.network = network
        self.sources = np.flatnonzero(traffic.any(axis=1))
        """Ranks that send something."""
        self.unit = float(traffic.max())  # keeps the numbers of the program near 1
        supply = np.zeros((len(network.problem.topology.devices), len(self.sources)))
        supply[network.gpus] = -traffic[self.sources].T
        supply[network.gpus[self.sources], np.arange(len(self.sources))] = traffic[
            self.sources
        ].sum(axis=1)
        self._flow = cp.Variable((len(network.bandwidth), len(self.sources)), nonneg=True)
        makespan = cp.Variable()
        carried = rows.members @ (self._flow @ np.ones(len(self.sources)))
        # The time of `unit` bytes at 1 GB/s, times what equal prices prove.
        least = float(certified(network, rows, np.ones(len(rows.rates)))) * BYTES / self.unit
        ready = rows.rates * rows.waits * BYTES / self.unit
        fits = carried <= makespan * (rows.rates * least) - ready
        self._fits = fits
        balanced: Any = _ends(network) @ self._flow == supply / self.unit
        self.model = cp.Problem(cp.Minimize(makespan), [balanced, fits])

    @property
    def size(self) -> int:
        """Number of amounts."""
        return int(self._flow.size)

    def solve(self, *, seconds: float, tolerance: float | None = None) -> bool:
        """Solve it, and return whether the solver says that it came to its end.

        Parameters
        ----------
        seconds
            For the solver's run.
        tolerance
            Share by which a first-order method may miss; by default 1e-3 where one is used.
        """
        method = "choose" if self.size <= INTERIOR // 4 else "ipm"
        settings = {}
        if tolerance is not None or self.size > INTERIOR:
            method, settings = "pdlp", dict.fromkeys(_TOLERANCES, tolerance or 1e-3)
        try:
            found = Backend(settings=settings).solve(self.model, time_limit=seconds, method=method)
        except SolveError:
            return False
        return found.ending is TerminationCondition.OPTIMAL

    @property
    def prices(self) -> Floats:
        """Prices of the rows, shape (rows,); zeros where there is no solution."""
        found = self._fits.dual_value
        rows = self._fits.size
        return np.maximum(np.zeros(rows) if found is None else np.ravel(found), 0.0)

    @property
    def flow(self) -> Floats:
        """Bytes that each link carries of each source, shape (links, sources), roughly balanced."""
        found = self._flow.value
        return np.zeros(self._flow.shape) if found is None else np.maximum(found, 0.0) * self.unit


def _ends(network: Network) -> sparse.csr_array:
    """Return (devices, links): 1 where a link leaves a device, -1 where it enters one."""
    links = len(network.bandwidth)
    return sparse.csr_array(
        (np.repeat([1.0, -1.0], links), (network.ends.T.ravel(), np.tile(np.arange(links), 2))),
        shape=(len(network.problem.topology.devices), links),
    )


def certified(network: Network, rows: Rows, prices: Floats) -> Fraction:
    """Return the µs that prices prove for the steady state of pairs, as an exact fraction.

    Parameters
    ----------
    network
        A network with pairs.
    rows
        Its links and limits; their waits do not count.
    prices
        Of the rows, at least 0 and not all 0, shape (rows,).
    """
    whole = np.round(prices * (WHOLE / prices.max()))
    gpus = network.gpus.tolist()
    costs = rows.members.T @ whole
    distances = np.asarray(network.graph.distances(gpus, gpus, weights=costs.tolist()))
    traffic = network.demand.traffic
    needed = sum(
        (
            Fraction(float(nbytes)) * int(far)
            for nbytes, far in zip(traffic[traffic > 0], distances[traffic > 0], strict=True)
        ),
        Fraction(0),
    )
    paid = sum(
        (Fraction(float(rate)) * int(each) for rate, each in zip(rows.rates, whole, strict=True)),
        Fraction(0),
    )
    return needed / (paid * int(BYTES))
