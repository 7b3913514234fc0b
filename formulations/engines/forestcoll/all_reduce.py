"""All-reduce with shares of the roots and of the links by a linear program.

All data goes up in-trees to the roots, where it is added up, and from them down out-trees. Root v
has the share x(v) of the data per second; of link e's c(e) the out-trees have o(e), the in-trees
the rest. All other figures are GB/s.

Variables, all >= 0: x(v), v a GPU; o(e) <= c(e); for each GPU t the flows f_t(e) to it, h_t(e)
from it. X is the sum of x. Maximise X, subject to, for each device v and GPU t,

    f_t out of v - f_t into v = x(v), and x(t) - X at v = t;   x is 0 at switches
    h_t into v - h_t out of v = x(v), and x(t) - X at v = t
    f_t(e) <= o(e);   h_t(e) <= c(e) - o(e)
    o into v = o out of v                                      v a switch

With the last rows both parts of the network give out at a switch what they take in, so each part
has trees that reach its flows (`formulations.engines.forestcoll.search`), and no trees lack such an
o: the program is exact for relays without the paper's indirection over all pairs of GPUs. The
solver's floats become fractions, whose rates are then searched exactly; so a forest is what it says
even where the fractions are not the solver's vertex.

Source: ForestColl, appendix E.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import cvxpy as cp
import numpy as np
from scipy import sparse

from ccl.forest import Forest
from ccl.problem import Problem
from ccl.result import ModelSize
from ccl.steady import exact
from formulations.engines.forestcoll.network import WHOLE, Ints, Network, network_of, whole
from formulations.engines.forestcoll.plans import Planned, Watch, halves, load_of, trees_of, turned
from formulations.engines.forestcoll.search import BYTES, Rate, rate_of
from formulations.solvers.cvxpy_highs import Backend

DENOMINATORS = (12, 120, 5_000, 200_000)
"""Largest denominators that are tried for shares, one after the other."""

ROUND = 720_720
"""Parts of a unit, where the shares are no such fractions."""

CLOSE = 1e-7
"""Fractions that are slower than the program by less are the program's."""


@dataclass(frozen=True, eq=False)
class Shares:
    """What the linear program says.

    Parameters
    ----------
    makespan
        µs in the steady state.
    roots
        x over X of each rank, shape (ranks,).
    out
        o over c of each link, shape (links,).
    size
        Size of the program.
    """

    makespan: float
    roots: np.ndarray
    out: np.ndarray
    size: ModelSize


def shares_of(problem: Problem, *, backend: Backend, time_limit: float | None = None) -> Shares:
    """Solve the program of an all-reduce.

    Raises
    ------
    SolveError
        If the solver finds nothing, or not in time.
    """
    network = network_of(halves(problem)[1])
    links, ranks = len(network.src), len(network.gpus)
    devices = len(network.weight)
    leaves = _leaves(network)
    at = sparse.csr_array((np.ones(ranks), (network.gpus, np.arange(ranks))), (devices, ranks))
    relays = np.setdiff1d(np.arange(devices), network.gpus)
    capacity = (network.capacity / network.capacity.max())[:, None]
    roots = cp.Variable((ranks, 1), nonneg=True)
    out = cp.Variable((links, 1), nonneg=True)
    down, up = (cp.Variable((links, ranks), nonneg=True) for _ in range(2))
    row = np.ones((1, ranks))
    total = row @ roots
    wanted = (at @ roots) @ row - total[0, 0] * at.toarray()
    rows = [
        leaves @ down == wanted,
        leaves @ up == -wanted,
        down <= out @ row,
        up <= (capacity - out) @ row,
        out <= capacity,
    ]
    if len(relays):
        rows.append(leaves[relays] @ out == np.zeros((len(relays), 1)))
    model = cp.Problem(cp.Maximize(total[0, 0]), rows)
    found = backend.solve(model, time_limit=time_limit)
    given, part = np.asarray(roots.value)[:, 0], np.asarray(out.value)[:, 0]
    speed = float(given.sum()) * float(network.capacity.max() * network.unit)
    return Shares(
        makespan=float(_bytes(problem)) / (speed * BYTES),
        roots=np.clip(given / given.sum(), 0, 1),
        out=np.clip(part / capacity[:, 0], 0, 1),
        size=found.size,
    )


def _bytes(problem: Problem) -> Fraction:
    return sum((exact(each.size) for each in problem.collective.chunks), Fraction(0))


def _leaves(network: Network) -> sparse.csr_array:
    """Return 1 where a link leaves a device and -1 where it enters, shape (devices, links)."""
    links = np.arange(len(network.src))
    signs = np.repeat(np.array([1, -1]), len(links))
    ends = np.concatenate([network.src, network.dst]), np.tile(links, 2)
    return sparse.csr_array((signs, ends), shape=(len(network.weight), len(links)))


def shared_forest(
    problem: Problem, shares: Shares, *, backend: Backend, watch: Watch | None = None
) -> Planned | None:
    """Return the forest of the fractions near the program's shares, None if none is near."""
    best = shared_rates(problem, shares, backend=backend)
    return None if best is None else _planned(best, watch=watch)


def shared_rates(problem: Problem, shares: Shares, *, backend: Backend) -> tuple[Rate, Rate] | None:
    """Return the rates up and down of the fractions near the program's shares, None if none is.

    The first that are as fast as the program are taken, else the fastest.
    """
    gathering = network_of(halves(problem)[1])
    nbytes = _bytes(problem)
    best: tuple[Rate, Rate] | None = None
    for roots, down, part in _fractions(gathering, shares, backend):
        rates = _rates(gathering, roots, (down, part), nbytes=nbytes)
        if rates is not None and (best is None or _slower(rates) < _slower(best)):
            best = rates
        if best is not None and float(_slower(best)) <= shares.makespan * (1 + CLOSE):
            break
    return best


def _slower(rates: tuple[Rate, Rate]) -> Fraction:
    return max(each.makespan for each in rates)


def _fractions(
    network: Network, shares: Shares, backend: Backend
) -> Iterator[tuple[Ints, Ints, int]]:
    """Yield whole weights of the ranks, capacities of the out-trees, and parts of a unit."""
    for most in DENOMINATORS:
        roots = [Fraction(each).limit_denominator(most) for each in shares.roots.tolist()]
        out = [Fraction(each).limit_denominator(most) for each in shares.out.tolist()]
        part = math.lcm(*(each.denominator for each in out))
        fine = part * math.lcm(*(each.denominator for each in roots))
        if any(roots) and fine * int(network.capacity.sum()) < WHOLE:
            parts = [int(c * o * part) for c, o in zip(network.capacity.tolist(), out, strict=True)]
            yield np.array(whole(roots)[0]), np.array(parts), part
    roots = np.rint(shares.roots * ROUND).astype(np.int64)
    yield roots, _rounded(network, shares.out * network.capacity * ROUND, backend), ROUND


def _rounded(network: Network, amount: np.ndarray, backend: Backend) -> Ints:
    """Round up or down so that switches stay balanced; vertices of such a program are whole."""
    low = np.floor(amount)
    up = cp.Variable(len(amount), bounds=[0, 1])
    leaves = _leaves(network)[np.setdiff1d(np.arange(len(network.weight)), network.gpus)]
    rows = [leaves @ up == -(leaves @ low)]
    model = cp.Problem(cp.Minimize((1 - 2 * (amount - low)) @ up), rows)
    backend.solve(model, method="simplex")
    return np.asarray(low + np.rint(np.asarray(up.value)), dtype=np.int64)


def _rates(
    gathering: Network, roots: Ints, out: tuple[Ints, int], *, nbytes: Fraction
) -> tuple[Rate, Rate] | None:
    """Return the rates up and down, None if the shares leave no trees or are too fine."""
    down, part = out
    weight = np.zeros_like(gathering.weight)
    weight[gathering.gpus] = roots
    ends = gathering.src, gathering.dst
    networks = [
        Network(
            topology=gathering.topology,
            src=src,
            dst=dst,
            capacity=capacity,
            unit=gathering.unit / part,
            weight=weight,
            share=nbytes / int(weight.sum()),
            gpus=gathering.gpus,
        )
        for capacity, (src, dst) in (
            (gathering.capacity * part - down, ends[::-1]),
            (down, ends),
        )
    ]
    most = int(weight.sum()) * int(gathering.capacity.sum()) * part
    if most >= WHOLE or not all(_balanced(each) for each in networks):
        return None
    up, out_rate = (rate_of(each, sinks=each.sinks, reduces=False) for each in networks)
    return (up, out_rate) if up.speed > 0 and out_rate.speed > 0 else None


def _balanced(network: Network) -> bool:
    net = _leaves(network) @ network.capacity
    net[network.gpus] = 0
    return not net.any()


def _planned(rates: tuple[Rate, Rate], *, watch: Watch | None) -> Planned:
    network = rates[0].network
    parts = network.weight[network.gpus].tolist()
    loads = [load_of(rate) for rate in rates]
    up, down = (
        [
            replace(each, weight=each.weight * Fraction(parts[each.root], sum(parts)))
            for each in trees_of(load, watch=watch)
        ]
        for load in loads
    )
    forest = Forest(tuple(turned(tree) for tree in up), reduces=True, spread=tuple(down))
    return Planned(forest, _slower(rates), max(int(load.trees.max()) for load in loads))
