"""Dantzig-Wolfe decomposition of the time-free program, per origin or per class of origins.

Sets: edges e and vertices v of a graph (`formulations.engines.steady_state`); capacity rows L
with b(L) GB/s; classes k of origins, with a representative o[k] and elements pi[k, i], i = 1 ..
|k|, one of which takes o[k] to each of its class. Plain Dantzig-Wolfe has a class for each origin
and the identity; the mirrored one has the orbits of a group of symmetries.

Subproblem of class k, LP (5.1) and (5.2) of the thesis, with prices p[e] >= 0 as parameters:

    minimise    sum over e of p[e] w[e]
    subject to  f[., d] is a flow of one unit from o[k] to d       for every d that wants its data
                w[e] >= f[e, d] >= 0

Master, with a column j for each solution of a subproblem that has been found:

    minimise    R
    subject to  sum over columns j of k, images i and e in L of lambda[j] w[j, e'] <= R b(L)
                    where e = pi[k, i] e' and w counts bytes                 dual pi(L), their sum
                                                                             weighted by b(L) is 1
                sum over columns j of k of lambda[j] = 1                     dual sigma[k]

A class prices e' at the sum over i of what rows charge for pi[k, i] e'. A solution that costs less
than sigma[k] is a new column; where no class has one, lambda is optimal. At any time the sum over
k of what the subproblems cost is a lower bound on R. Any column fits, as R is free: no artificial
columns are needed to begin. Then the same with R held and cost[e] added to the prices.

What the thesis says and what holds. (a) Lemma 6 wants {pi(v, i)} = P for *every* v of a class P.
Its proof chooses h_i that take one v_0 to all of P, which does not do so for another v: of three
alike, the identity and the exchanges (0 1) and (0 2) take 0 everywhere, and 1 never to 2. Only v_0
= o[k] is needed here, and any choice of representatives of cosets will do. (b) Theorem 7 averages
over the pi of one class after another. Such a set need not be a group, so an average over it need
not be symmetric, nor stay so when the next class is averaged over. The average over the whole group
is, and it suffices: it is invariant under the elements that fix o[k], hence w[pi e, pi o] = w[e, o]
for whatever pi was chosen. (c) The master's row counts w at pi(e, i); the image of w under pi(., i)
puts on pi(e, i) what w puts on e, so it is w at the inverse image that loads e. The two agree where
inverses of the chosen elements are chosen too. (d) Its objective counts the cost of representatives
once; with classes of different sizes each counts |k| times.

Kept for teaching and as a check: `formulations.engines.orbit_lp.lp` also reduces destinations and
links, and `formulations.engines.tree_columns.search` prices with arborescences instead of linear
programs.

Source: the thesis, chapter 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from ccl.errors import LimitReached, ProblemError
from ccl.problem import Problem
from ccl.symmetry import Group
from formulations.engines.orbit_lp.group import Acting, Load, Uniform, acting, loads_of
from formulations.engines.steady_state import FluidGraph, graph_of, without_copies
from formulations.solvers import cp
from formulations.solvers.cvxpy_highs import Backend, Outcome, TerminationCondition

BETTER = 1e-9
"""Share by which a column must be cheaper than its class pays to be added."""


@dataclass(frozen=True, eq=False)
class OriginClass:
    """Origins that one subproblem stands for.

    Parameters
    ----------
    load, item
        Load of the problem, and number of the representative in it.
    graph
        What it flows on.
    ranks
        Rank of each origin, the representative's first.
    devices, edges
        Elements that take the representative there, on devices and on edges, (origins, ...).
    """

    load: Load
    item: int
    graph: FluidGraph
    ranks: np.ndarray
    devices: np.ndarray
    edges: np.ndarray

    @property
    def nbytes(self) -> float:
        """Of each origin's data, in bytes."""
        return float(self.load.nbytes[self.item])

    def summed(self, per_edge: np.ndarray) -> np.ndarray:
        """Return what each edge of the representative is charged, all images together."""
        return np.asarray(per_edge[self.edges].sum(axis=0))

    def loaded(self, usage: np.ndarray) -> np.ndarray:
        """Return what all images of a usage put on each edge."""
        total = np.zeros(self.graph.edges)
        for edges in self.edges:
            total[edges] += usage
        return total


@dataclass(frozen=True, eq=False)
class Column:
    """A solution of a subproblem.

    Parameters
    ----------
    owner
        Number of its class.
    usage
        w of the representative, in shares of its data, shape (edges,).
    busy
        Share of the unit of time that each capacity row is busy with all its images, (rows,).
    cost
        Bytes times cost of all its images.
    """

    owner: int
    usage: np.ndarray
    busy: np.ndarray
    cost: float


@dataclass(eq=False)
class Decomposition:
    """What came of it.

    Parameters
    ----------
    makespan
        R in µs.
    bound
        The largest lower bound on R that the subproblems gave, in µs.
    cost
        Least bytes times cost at R, or None where no costs were given.
    iterations
        Rounds of pricing, of both objectives.
    classes, columns, shares
        Classes of origins, all columns, and lambda of each.
    """

    makespan: float
    bound: float
    cost: float | None
    iterations: int
    classes: tuple[OriginClass, ...]
    columns: list[Column]
    shares: np.ndarray = field(repr=False)


class Subproblem:
    """LP (5.1) of one origin, compiled once for all prices.

    Parameters
    ----------
    origin
        Its class.
    """

    def __init__(self, origin: OriginClass) -> None:
        graph, load = origin.graph, origin.load
        shares = load.shares(origin.item, len(graph.origins))
        start = int(graph.origins[load.roots[origin.item]])
        self.price = cp.Parameter(graph.edges, nonneg=True)
        self.usage = cp.Variable(graph.edges, nonneg=True)
        wanting = np.flatnonzero(shares)
        rules: list[Any]
        if load.spreads:
            demand = np.zeros((graph.vertices, len(wanting)))
            demand[graph.goals[wanting], np.arange(len(wanting))] += 1
            demand[start] -= 1
            flow = cp.Variable((graph.edges, len(wanting)), nonneg=True)
            every = np.ones((1, len(wanting)))
            rules = [graph.incidence @ flow == demand, flow <= self.usage[:, None] @ every]
        else:
            wanted = np.zeros(graph.vertices)
            wanted[graph.goals] = shares
            wanted[start] -= shares.sum()
            rules = [graph.incidence @ self.usage == wanted]
        self.model = cp.Problem(cp.Minimize(self.price @ self.usage), rules)

    def cheapest(
        self, price: np.ndarray, solve: Callable[[cp.Problem], Outcome]
    ) -> tuple[float, np.ndarray]:
        """Return the least cost and a usage that has it."""
        largest = max(float(price.max()), 1e-300)
        self.price.value = price / largest
        solve(self.model)
        usage = np.maximum(np.asarray(self.usage.value), 0.0)
        return float(price @ usage), usage


def decompose(
    problem: Problem | Uniform,
    *,
    mirrored: bool = True,
    costs: np.ndarray | None = None,
    backend: Backend | None = None,
    left: Callable[[], float] = lambda: np.inf,
) -> Decomposition:
    """Solve a problem by columns.

    Parameters
    ----------
    problem
        Anything but sums for everybody.
    mirrored
        Whether origins that symmetries exchange have one subproblem.
    costs
        Cost of a byte on each link, shape (links,).
    backend
        The solver.
    left
        Seconds until it gives up.

    Raises
    ------
    ProblemError
        If it cannot be said, or has a sum for everybody.
    LimitReached
        If none are left.
    """
    classes = classes_of(problem, mirrored=mirrored, costs=costs)
    return _Master(classes, costs, backend or Backend(), left).run()


def classes_of(
    problem: Problem | Uniform, *, mirrored: bool, costs: np.ndarray | None
) -> tuple[OriginClass, ...]:
    """Return the classes of origins; the arguments are those of `decompose`."""
    topology, loads = problem.topology, loads_of(problem)
    if any(each.free for each in loads):
        raise ProblemError(
            "a sum for everybody has no origins of its own; decompose a reduce-scatter instead"
        )
    if mirrored:
        found = acting(topology, loads, costs=costs)
    else:
        none = Group(topology, np.empty((0, len(topology.devices)), dtype=np.int64))
        found = Acting(topology, none, (None,) * len(loads))
    classes = []
    for number, load in enumerate(loads):
        bare = graph_of(topology.reversed() if load.turned else topology)
        graph = without_copies(bare) if load.spreads else bare
        orbits = found.items(number, load)
        if found.group.trivial:
            # Items that share a root may not be distinguished by where their root goes.
            orbits = np.arange(len(load.roots))
        for orbit in range(int(orbits.max()) + 1):
            items = np.flatnonzero(orbits == orbit)
            classes.append(_class(number, load, items=items, graph=graph, found=found))
    return tuple(classes)


def _class(
    number: int, load: Load, *, items: np.ndarray, graph: FluidGraph, found: Acting
) -> OriginClass:
    places = found.places(number, load)[items]
    carriers = found.group.carriers(int(places[0]))
    many = len(found.topology.devices)
    devices = np.array([carriers.to(int(each))[:many] for each in places])
    edges = np.array([graph.moved(each)[1] for each in devices])
    return OriginClass(load, int(items[0]), graph, load.roots[items], devices, edges)


@dataclass(eq=False)
class _Master:
    """The columns that have been found, and their duals of the rows."""

    classes: tuple[OriginClass, ...]
    costs: np.ndarray | None
    backend: Backend
    left: Callable[[], float]

    def __post_init__(self) -> None:
        classes = self.classes
        self.subproblems = [Subproblem(each) for each in classes]
        self.rates = classes[0].graph.rates
        # Bytes over bandwidth in a unit of time in which R is near 1.
        most = max(each.nbytes * len(each.ranks) for each in classes)
        self.unit = most * 1e-3 / float(self.rates.max())
        self.columns: list[Column] = []
        self.iterations = 0
        self.bound = 0.0

    def run(self) -> Decomposition:
        """Minimise the time, then the cost."""
        self._price(
            np.full(len(self.rates), 1 / len(self.rates)), np.full(len(self.classes), np.inf)
        )
        time, shares = self._least(None)
        cost = None
        if self.costs is not None:
            cost, shares = self._least(time)
        return Decomposition(
            makespan=time * self.unit,
            bound=min(self.bound, time) * self.unit,
            cost=cost,
            iterations=self.iterations,
            classes=self.classes,
            columns=self.columns,
            shares=shares,
        )

    def _least(self, time: float | None) -> tuple[float, np.ndarray]:
        """Return the least time and the shares of columns, or at a time the least cost."""
        costly = time is not None
        while True:
            value, shares, prices = self._solve(time)
            if not costly:
                prices /= prices.sum()
            if not self._price(prices, self._paid(prices, costly=costly), costly=costly):
                return value, shares

    def _solve(self, time: float | None) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the master's value, lambda and the dual of each row."""
        busy = np.array([each.busy for each in self.columns]).T
        owner = np.array([each.owner for each in self.columns])
        many = len(self.columns)
        whole = sparse.csr_array((np.ones(many), (owner, np.arange(many))))
        share, least = cp.Variable(many, nonneg=True), cp.Variable(nonneg=True)
        fits: Any = sparse.csr_array(busy) @ share <= least
        rules = [fits, cp.Constant(whole) @ share == 1]
        if time is None:
            model, unit = cp.Problem(cp.Minimize(least), rules), 1.0
        else:
            cost = np.array([each.cost for each in self.columns])
            unit = max(float(cost.max()), 1e-300)
            rules.append(least <= time * (1 + BETTER))
            model = cp.Problem(cp.Minimize((cost / unit) @ share), rules)
        found = self._optimum(model)
        prices = np.abs(np.asarray(fits.dual_value)) * unit
        return found.objective * unit, np.asarray(share.value), prices

    def _optimum(self, model: cp.Problem) -> Outcome:
        """Solve a program to its end, as one that is cut off proves nothing."""
        left = self.left()
        if left > 0:
            limit = left if np.isfinite(left) else None
            found = self.backend.solve(model, method="simplex", time_limit=limit)
            if found.ending is TerminationCondition.OPTIMAL:
                return found
        raise LimitReached(f"Dantzig-Wolfe was cut off in round {self.iterations}; allow more time")

    def _paid(self, prices: np.ndarray, *, costly: bool = False) -> np.ndarray:
        """Return sigma: what the cheapest column of each class costs at the prices."""
        paid = np.full(len(self.classes), np.inf)
        for each in self.columns:
            price = float(prices @ each.busy) + (each.cost if costly else 0.0)
            paid[each.owner] = min(paid[each.owner], price)
        return paid

    def _price(self, prices: np.ndarray, paid: np.ndarray, *, costly: bool = False) -> bool:
        """Add the cheapest column of each class that beats what it pays; say whether any did."""
        self.iterations += 1
        better, total = False, 0.0
        for number, each in enumerate(self.classes):
            charge = each.graph.rows.T @ (prices / self.rates) * (1e-3 / self.unit)
            if costly and self.costs is not None:
                charge = charge + each.graph.costs(self.costs)
            value, usage = self.subproblems[number].cheapest(
                each.summed(charge) * each.nbytes, self._optimum
            )
            total += value
            scale = max(abs(paid[number]), 1e-300) if np.isfinite(paid[number]) else 1.0
            if value < paid[number] - BETTER * scale:
                better = True
                self.columns.append(self._column(number, usage))
        if not costly:
            self.bound = max(self.bound, total)
        return better

    def _column(self, number: int, usage: np.ndarray) -> Column:
        owner = self.classes[number]
        nbytes = owner.loaded(usage) * owner.nbytes
        busy = owner.graph.rows @ nbytes * 1e-3 / (self.rates * self.unit)
        cost = 0.0 if self.costs is None else float(owner.graph.costs(self.costs) @ nbytes)
        return Column(number, usage, busy, cost)
