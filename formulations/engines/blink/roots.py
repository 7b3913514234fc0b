"""Root of an all-reduce in Blink, and the trees of one root: what each of them carries.

`best_root` is the rank that reaches all and is reached at the best rates.

`weighted` finds trees of one root by multiplicative weights: the cheapest tree, again and again.
Every arc has a price, at first one over its bandwidth. In each round the cheapest tree takes as
much as its narrowest arc has, f, and the price of each of its arcs e grows by 1 + EPSILON f / c(e).
At the end all that was taken is scaled until no arc has more than it can carry. The trees come near
the best rate with the number of rounds and are never better (Garg and Koenemann, SIAM Journal on
Computing 37, 2007; Blink, section 3).

`chosen` says better what each tree of a pool should carry, many or few of them, by a linear or an
integer program. With w[T] the weight of tree T and z[T] whether it is used at all, c[e] what
connection e carries, of which both directions are one where trees go up and down:

    maximise    sum over T of w[T]
    sum over T with e of w[T] <= c[e]                     each e
    w[T] <= z[T] min over e in T of c[e]                  each T
    sum over T of z[T] <= k,  z whole                     at most k trees

Without a number k the z and their rows are left out. Blink first requires weights of 0 and 1 and
lets go of that where it loses more than a twentieth; here weights are free from the beginning, as
the halves of a tree cost nothing more. The heaviest k trees without z, weighed anew, are the answer
where the integer program finds none better in time. Source: Blink, section 3.

`shared_halves` plans an all-reduce by one root, both halves at once: which part of each link goes
down the trees. Link e of c(e) GB/s lets o(e) of what goes down from the root r through, and
c(e) - o(e) of what goes up to it. Trees of the rate X exist exactly if every cut lets X through
(Edmonds):

    maximise    X
    o(S) >= X             S a set of devices with r and without some GPU; o(S) is what leaves it
    c(S) - o(S) >= X      S the same in reverse: links that enter it
    o into v = o out of v                    v a switch
    o(e) + o(back of e) = c(e)               where every link is the same both ways

Then the trees are those of a graph without directions, each up one way and down the other, which
is Blink's packing for all-reduces; the last rows lose nothing, as the mean of a solution and of
its mirror image is as good, and save the second ones. Cuts are added as they are overrun: after
each solve the worst one before each GPU. Of equally good parts those near c(e) / 2 are taken, by
a small price for being apart from it: else links that do not matter would run over cut after cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from ccl.result import ModelSize
from formulations.engines.epoch_grid.arcs import distances
from formulations.engines.forestcoll.plans import Shares, leaving
from formulations.engines.forestcoll.search import (
    BYTES,
    Ints,
    Network,
    Rate,
    rate_of,
    symmetric_links,
)
from formulations.engines.kernels.arborescence import FAR, arborescences
from formulations.engines.kernels.maxflow import newton, tight_sides
from formulations.solvers import cp
from formulations.solvers.cvxpy_highs import Backend


@dataclass(frozen=True)
class Root:
    """A root and the rates of its trees.

    Parameters
    ----------
    rank
        Which.
    out, into
        GB/s at which all that it has goes to all, and all comes to it, each alone on the links.
    """

    rank: int
    out: Fraction
    into: Fraction


def of_root(network: Network, rank: int) -> Network:
    """Return the network in which this rank alone has all the data."""
    weight = np.zeros_like(network.weight)
    weight[network.gpus[rank]] = 1
    return replace(network, weight=weight, share=network.share * int(network.weight.sum()))


def turned_round(network: Network) -> Network:
    """Return the network with every link reversed."""
    return replace(network, src=network.dst, dst=network.src)


def best_root(network: Network, rank: int | None) -> Root:
    """Return the root requested, or the one whose two halves take least alone on the links.

    Where every link is the same both ways all roots are as good; of equal ones the one from which
    the farthest GPU is fewest links away is taken.
    """
    if rank is not None:
        return _root(network, rank)
    far = _far(network)
    if symmetric_links(network) is not None:
        return _root(network, int(np.argmin(far)))
    roots = [_root(network, each) for each in range(len(network.gpus))]
    return min(roots, key=lambda each: (1 / each.out + 1 / each.into, far[each.rank]))


def _root(network: Network, rank: int) -> Root:
    up, down = alone(network, rank)
    return Root(rank, down.speed, up.speed)


def alone(network: Network, rank: int) -> tuple[Rate, Rate]:
    """Return the rates of both halves, up to a root and down from it, each alone on the links."""
    up, down = (
        rate_of(each, sinks=each.sinks, reduces=False)
        for each in (of_root(turned_round(network), rank), of_root(network, rank))
    )
    return up, down


def _far(network: Network) -> np.ndarray:
    """Return how many links each rank is from the farthest one, shape (ranks,)."""
    ones = np.ones(len(network.src))
    hops = distances(network.src, network.dst, ones, len(network.weight))
    return np.asarray(hops[np.ix_(network.gpus, network.gpus)].max(axis=1))


EPSILON = 0.1
"""How fast prices grow; slower ones come nearer to the best rate, in more rounds."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Connections between GPUs.

    Parameters
    ----------
    gpus
        How many.
    root
        Rank of the root.
    tail, head
        Ranks that each arc leaves and enters, shape (arcs,).
    row
        What each arc takes from: its own row, or one for both directions, shape (arcs,).
    capacity
        Of each row, shape (rows,).
    """

    gpus: int
    root: int
    tail: Ints
    head: Ints
    row: Ints
    capacity: np.ndarray


@dataclass(frozen=True, eq=False)
class Pool:
    """Trees of one root.

    Parameters
    ----------
    arcs
        Arcs of each tree, parents first, shape (trees, gpus - 1).
    rate
        What they carry together by their own weights, in the unit of the rows.
    """

    arcs: Ints
    rate: float


def weighted(graph: Graph, *, rounds: int, over: Callable[[], bool]) -> Pool:
    """Return the trees of as many rounds, the first in any case, and the rate they reach."""
    members, roots = np.arange(graph.gpus), np.array([graph.root])
    number = np.full((graph.gpus, graph.gpus), -1)
    number[graph.head, graph.tail] = np.arange(len(graph.tail))
    prices = 1.0 / graph.capacity
    loads = np.zeros(len(graph.capacity))
    pool: dict[bytes, Ints] = {}
    taken = 0.0
    for turn in range(rounds):
        if turn and over():
            break
        costs = np.full((graph.gpus, graph.gpus), FAR)
        costs[graph.head, graph.tail] = prices[graph.row]
        parents = arborescences(costs, members, roots)[0]
        reached = np.flatnonzero(parents >= 0)
        arcs = number[reached, parents[reached]]
        rows = graph.row[arcs]
        most = float(graph.capacity[rows].min())
        loads[rows] += most
        taken += most
        prices[rows] *= 1 + EPSILON * most / graph.capacity[rows]
        prices /= prices.max()
        pool.setdefault(np.sort(arcs).tobytes(), arcs)
    ordered = np.array([from_root(graph, arcs) for arcs in pool.values()])
    return Pool(ordered, taken / float((loads / graph.capacity).max()))


def from_root(graph: Graph, arcs: Ints) -> Ints:
    """Return the arcs of a tree, parents before children."""
    below: dict[int, list[int]] = {}
    for arc in arcs.tolist():
        below.setdefault(int(graph.tail[arc]), []).append(arc)
    front, found = [graph.root], []
    for rank in front:
        for arc in below.get(rank, []):
            found.append(arc)
            front.append(int(graph.head[arc]))
    return np.array(found, dtype=np.int64)


SECONDS = 5.0
"""For the integer program."""

GAP = 1e-3
"""Share of the rate at which the integer program may stop."""

CLOSE = 1e-7
"""Weights of less than this share of the rate count as zero."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """The trees that carry something.

    Parameters
    ----------
    places
        In the pool, shape (trees,).
    weights
        In the unit of the graph, shape (trees,).
    size
        Size of the program.
    """

    places: np.ndarray
    weights: np.ndarray
    size: ModelSize

    @property
    def rate(self) -> float:
        """What all carry together."""
        return float(self.weights.sum())


def chosen(
    graph: Graph, pool: Pool, most: int, *, backend: Backend, time_limit: float | None
) -> Chosen:
    """Return the best weights of at most `most` trees of the pool, 0: of any number.

    Raises
    ------
    SolveError
        If the solver finds nothing, or not in time.
    """
    program = _Program(graph, pool, backend, time_limit)
    best = program.solve(np.arange(len(pool.arcs)))
    if not most or len(best.places) <= most:
        return best
    heavy = best.places[np.argsort(-best.weights, kind="stable")[:most]]
    simple = program.solve(np.sort(heavy))
    return max(simple, program.integral(most), key=lambda each: each.rate)


class _Program:
    """The program of a pool, in shares of the widest row."""

    def __init__(
        self, graph: Graph, pool: Pool, backend: Backend, time_limit: float | None
    ) -> None:
        self.backend, self.time_limit = backend, time_limit
        self.unit = float(graph.capacity.max())
        self.capacity = graph.capacity / self.unit
        self.narrowest = self.capacity[graph.row[pool.arcs]].min(axis=1)
        trees, arcs = pool.arcs.shape
        place = graph.row[pool.arcs].ravel(), np.repeat(np.arange(trees), arcs)
        shape = (len(self.capacity), trees)
        self.crossed: Any = sparse.csr_array((np.ones(trees * arcs), place), shape=shape)

    def solve(self, places: np.ndarray) -> Chosen:
        """Return the best weights of some trees."""
        weights = cp.Variable(len(places), nonneg=True)
        model = cp.Problem(
            cp.Maximize(np.ones(len(places)) @ weights),
            [self.crossed[:, places] @ weights <= self.capacity],
        )
        found = self.backend.solve(model, time_limit=self.time_limit, method="simplex")
        values = np.zeros(self.crossed.shape[1])
        values[places] = np.asarray(weights.value)
        return self._read(values, found.size)

    def integral(self, most: int) -> Chosen:
        """Return the best weights of at most `most` trees that are found in time."""
        trees = self.crossed.shape[1]
        weights, used = cp.Variable(trees, nonneg=True), cp.Variable(trees, boolean=True)
        widest: Any = sparse.diags_array(self.narrowest)
        closed: Any = weights - widest @ used
        many: Any = np.ones(trees) @ used
        model = cp.Problem(
            cp.Maximize(np.ones(trees) @ weights),
            [self.crossed @ weights <= self.capacity, closed <= 0, many <= most],
        )
        seconds = SECONDS if self.time_limit is None else min(SECONDS, self.time_limit)
        found = self.backend.solve(model, time_limit=seconds, gap=GAP)
        open_ones = np.asarray(used.value).round() > 0
        return self._read(np.where(open_ones, np.asarray(weights.value), 0.0), found.size)

    def _read(self, values: np.ndarray, size: ModelSize) -> Chosen:
        places = np.flatnonzero(values > CLOSE * values.sum())
        return Chosen(places, values[places] * self.unit, size)


UNIT = 2**40
"""Whole numbers to the bandwidth of the fastest link, for maximum flows."""

HALVES_CLOSE = 1e-9
"""A cut that lacks less than this share of X stays."""

EVEN = 1e-2
"""Price for being apart from one half, all links together; far too little to make X smaller."""

ROUNDS = 200
"""Solves after which the cuts found so far must do."""


def shared_halves(
    network: Network, rank: int, *, backend: Backend, left: Callable[[], float | None]
) -> Shares:
    """Return the shares of links with which an all-reduce by one root is fastest.

    Parameters
    ----------
    network
        Of the all-gather.
    rank
        The root.
    backend
        The solver.
    left
        Returns the seconds left, or None; when none are, the cuts found so far must do.

    Raises
    ------
    SolveError
        If the solver finds nothing.
    """
    program = _HalvesProgram(of_root(network, rank))
    for _ in range(ROUNDS):
        program.solve(backend)
        seconds = left()
        if not program.grown() or (seconds is not None and seconds <= 0.01):
            break
    speed = program.rate * float(network.capacity.max() * network.unit)
    share = np.zeros(len(network.gpus))
    share[rank] = 1.0
    return Shares(
        makespan=float(network.share * int(network.weight.sum())) / (speed * BYTES),
        roots=share,
        out=np.clip(program.out / program.capacity, 0, 1),
        size=program.size,
    )


@dataclass(frozen=True, eq=False)
class _Side:
    """One half as a network with its own capacities: down, or up on links turned round."""

    network: Network
    up: bool


class _HalvesProgram:
    """The linear program with the cuts so far; capacities are shares of the fastest link."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.capacity = network.capacity / network.capacity.max()
        self.back = symmetric_links(network)
        self.sides = [_Side(network, up=False)]
        if self.back is None:
            self.sides.append(_Side(turned_round(network), up=True))
        self.cuts: dict[bytes, tuple[np.ndarray, bool]] = {}
        self.rate, self.size = 0.0, ModelSize(0, 0, 0)
        self.out = self.capacity / 2
        for side in self.sides:
            self._add(side, network.weight > 0)
            for sink in network.sinks.tolist():
                inside = np.ones(len(network.weight), dtype=bool)
                inside[sink] = False
                self._add(side, inside)

    def solve(self, backend: Backend) -> None:
        """Find the best parts of links for the cuts so far."""
        network = self.network
        many = len(self.capacity)
        out, apart = cp.Variable(many, nonneg=True), cp.Variable(many, nonneg=True)
        rate = cp.Variable()
        middle = self.capacity / 2
        rows: list[cp.Constraint] = [
            out <= self.capacity,
            out - middle <= apart,
            middle - out <= apart,
        ]
        if self.back is not None:
            rows.append(out + out[self.back] == self.capacity)
        for up in sorted({up for _, up in self.cuts.values()}):
            crossed: Any = sparse.csr_array(
                np.array([cut for cut, of in self.cuts.values() if of == up], dtype=float)
            )
            rows.append(crossed @ (self.capacity - out if up else out) >= rate)
        relays = np.setdiff1d(np.arange(len(network.weight)), network.gpus)
        if len(relays):
            leaves: Any = leaving(network)[relays]
            rows.append(leaves @ out == 0)
        even = np.full(many, EVEN / many)
        found = backend.solve(cp.Problem(cp.Maximize(rate - even @ apart), rows), method="simplex")
        self.rate, self.size = float(np.asarray(rate.value)), found.size
        self.out = np.clip(np.asarray(out.value), 0.0, self.capacity)

    def grown(self) -> bool:
        """Add the worst cut before each GPU; say whether there was a new one."""
        before = len(self.cuts)
        for side in self.sides:
            values = self.capacity - self.out if side.up else self.out
            for inside in _overrun(side.network, np.floor(values * UNIT), self.rate):
                self._add(side, inside)
        return len(self.cuts) > before

    def _add(self, side: _Side, inside: np.ndarray) -> None:
        network = side.network
        crossed = inside[network.src] & ~inside[network.dst]
        self.cuts.setdefault(crossed.tobytes() + bytes([side.up]), (crossed, side.up))


def _overrun(network: Network, values: np.ndarray, rate: float) -> list[np.ndarray]:
    """Return for each sink the side of a cut that lets less than the rate through."""
    arcs = network.arcs
    capacity: Ints = arcs.of_links(values.astype(np.int64))
    graph = arcs.first, arcs.head, arcs.rev, capacity, network.weight
    wanted = int(rate * (1 - HALVES_CLOSE) * UNIT)
    sides = []
    for sink in network.sinks.tolist():
        above, below, last, _ = newton(*graph, np.array([sink]), wanted, 1)
        if last >= 0:
            sides.append(tight_sides(*graph, sink, above, below, 1)[-1, :-1])
    return sides
