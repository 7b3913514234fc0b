"""Orbit column generation with trees: the best rate of a collective, with a forest that has it.

A master program (`formulations.engines.tree_columns.master`) shares data among the trees of a pool;
its prices say which trees are missing, and the cheapest of all out-trees are found for all roots at
once (`formulations.engines.kernels.arborescence`). What they cost is a lower bound on R, so the
search ends with a proof. Prices between those of the best bound and the newest make fewer rounds.

The pool begins with the trees of a few steps of Frank and Wolfe on a smooth maximum of the loads
(`warmed`). The rows are priced by how full they are, exp(sharpness * load); the cheapest trees at
these prices get a share of the data, as much as lowers the smooth maximum most. The sharpness
grows, so the loads come near the best ones, and the trees that were used are a pool in which the
master finds far better combinations than it would from its own first prices, which see a row or two
at a time.

While trees of least depth do nearly as well as any, only these are taken, because a tree's depth
is what the first data waits. At last the weights are made exact from the basis
(`formulations.engines.tree_columns.master`), and the trees of links are a forest of routes
(`forest_of`).

Afterwards a second objective may choose, of all forests of the same R, one that is less deep or
sends less weighted data (`refined`). R is fixed, and the same master minimises what its trees cost:
hops from the root to the last device, or bytes times costs of links. For costs of links the
cheapest missing tree is again an arborescence, whose lengths are prices and costs together, so the
minimum is exact. For depth it is not: trees of least depth and trees that pay for a hop are tried,
which is good, not always best.

Source: thesis, section 5.2, "Additional thoughts", for columns that are trees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from ccl.bound import Bound
from ccl.errors import LimitReached
from ccl.plans import Forest, Tree
from ccl.problem import Problem
from formulations.core.preparing import clock
from formulations.engines.tree_columns.master import Master, Pool, Weights, exact_weights
from formulations.engines.tree_columns.price import Found, Prices
from formulations.engines.tree_columns.task import Column, Floats, Side, Task, task_of
from formulations.solvers.cvxpy_highs import Backend, Solved

WARM_ROUNDS = 20
"""Steps at most."""

WIDE, NARROW = 0.5, 0.02
"""Share of the largest load by which loads may stay below it and still count, first and last."""

ENOUGH = 1e-4
"""Steps end when the largest load falls by less than this share of it in three of them."""

GOLDEN = (5**0.5 - 1) / 2


def warmed(
    loads: Floats, step: Callable[[Floats], Floats], *, done: Callable[[], bool]
) -> tuple[list[float], float]:
    """Take steps; return what share each takes of the data of those before, and the largest load.

    Parameters
    ----------
    loads
        µs of each row to begin with, shape (rows,).
    step
        Finds trees at prices of the rows, keeps them, and returns their loads.
    done
        Whether to stop.
    """
    largest, shares = [float(loads.max())], []
    for number in range(WARM_ROUNDS):
        width = max(NARROW, WIDE / (number + 1) ** 0.7)
        sharpness = np.log(len(loads) + 1) / (loads.max() * width)
        prices = np.exp(sharpness * (loads - loads.max()))
        other = step(prices / prices.sum())
        shares.append(_share(loads, other, sharpness))
        loads = loads + shares[-1] * (other - loads)
        largest.append(float(loads.max()))
        if done() or (number > 3 and largest[-4] - largest[-1] < ENOUGH * largest[-1]):
            break
    return shares, largest[-1]


def _share(loads: Floats, other: Floats, sharpness: float) -> float:
    """Return how far to go from one to the other, by golden section."""
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        values = [_smooth(loads + each * (other - loads), sharpness) for each in (left, right)]
        if values[0] < values[1]:
            high = right
        else:
            low = left
    return (low + high) / 2


def _smooth(loads: Floats, sharpness: float) -> float:
    largest = loads.max()
    return float(largest + np.log(np.exp(sharpness * (loads - largest)).sum()) / sharpness)


PROVED = 1e-9
"""A time within this share of the bound is the best."""

NEAR = 1e-9
"""Trees of least depth are taken where they cost as little as any, but for this share."""

FLAT = 0.1
"""Share of what a path costs on average that a hop of depth costs, in the first trees."""

SHARES = (0.5, 0.8)
"""How much of the prices of the best bound is mixed into the newest."""

MANY, CLOSE, HEAVY = 1_000_000, 0.003, 3
"""Demands times rows from which on, within a limit, trees of least depth are not sought again once
they cost more, no program is solved where its first trees are as close as this share to the bound,
only so many steps look for trees that are less deep, and so many trees carry a demand."""


@dataclass(frozen=True)
class Optimum:
    """The best rate, or the best found in time.

    Parameters
    ----------
    pool
        All trees that were found.
    weights
        Which carry what.
    bound
        Lower bound on R in µs; 0 where nothing is proved.
    rounds
        How often the master was solved.
    master
        The program, solved.
    prices
        Of each row, those of the best bound, shape (rows,).
    late
        Whether the deadline cut the search off.
    """

    pool: Pool
    weights: Weights
    bound: float
    rounds: int
    master: Master
    prices: Floats
    late: bool = False

    @property
    def task(self) -> Task:
        """The problem."""
        return self.pool.task

    @property
    def each_price(self) -> Floats:
        """`prices` for a byte on each link, then in each shared limit of the topology."""
        return self.task.each_price(self.prices)

    @property
    def time(self) -> Fraction:
        """R in µs."""
        return self.weights.time

    @property
    def proved(self) -> bool:
        """Whether no forest has a smaller R."""
        return float(self.time) <= self.bound * (1 + PROVED)

    def met_by(self, bound: Bound) -> bool:
        """Return whether a bound on the steady state of every plan says the same."""
        return bound.steady and float(self.time) <= bound.makespan * (1 + PROVED)


@dataclass
class Search:
    """Column generation.

    Parameters
    ----------
    task
        The problem.
    backend
        The solver.
    deadline
        On the clock of `formulations.core.preparing`.
    report
        Called with R and its bound in µs after each round.
    """

    task: Task
    backend: Backend
    deadline: float = np.inf
    report: Callable[[float, float], None] = lambda _time, _bound: None
    flat: float = FLAT
    bound: float = 0.0
    rounds: int = 0
    best: Floats = field(default_factory=lambda: np.empty(0))
    taken: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        task = self.task
        size = len(task.demands) * len(task.rows.rates)
        self._hurried = size > MANY and self.deadline < np.inf
        self._flat = True  # whether trees of least depth may yet cost as little as any

    def run(self) -> Optimum:
        """Return the best rate, or the best found before the deadline."""
        self.pool, began = Pool(self.task), clock()
        mixed, reached = self._begin()
        self.master = Master(self.pool, self.backend)
        # A program of so many trees takes about as long as they took.
        soon = self.deadline - clock() < clock() - began
        enough = self._hurried and (soon or reached <= self.bound * (1 + CLOSE))
        solved = (None if enough else self._solved()) or self.master.mixed(mixed)
        while solved.basic.any():
            self.rounds += 1
            reached = solved.objective * self.master.unit
            new = self._grown(self.master.prices(solved), reached)
            self.report(reached, self.bound)
            if self._met(reached) or not new or self.late:
                break
            self.master.grow()
            again = self._solved()
            if again is None:
                break
            solved = again
        weights = exact_weights(self.master, solved)
        late = self.late and not self._met(float(weights.time))
        return Optimum(
            self.pool, weights, self.bound, self.rounds, self.master, self.best, late=late
        )

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return clock() > self.deadline

    def _met(self, reached: float) -> bool:
        return reached <= self.bound * (1 + PROVED)

    def _solved(self) -> Solved | None:
        """Return the optimum over the pool, None where it takes too long."""
        left = self.deadline - clock()
        try:
            return self.master.program.solve(time_limit=None if left == np.inf else max(0.0, left))
        except LimitReached:
            return None

    def _begin(self) -> tuple[Floats, float]:
        """Put trees into the pool: at equal prices, then those of steps towards equal loads.

        Returns what share of its demand each carries after these steps, shape (trees,), and the µs
        of the busiest row then.
        """
        task, many = self.task, len(self.task.rows.rates)
        self.bound, self.best = _device_bound(task)
        even = Prices(task, np.ones(many))
        loads = self.take(even, even.cheapest())
        flat = even.breadth()
        if flat is not None:
            self.take(even, flat)
        # Of many trees, making a forest takes as long again, verifying and replaying it included.
        half = clock() + (self.deadline - clock()) / 2 if self._hurried else np.inf
        shares, reached = warmed(loads, self._step, done=lambda: self.late or clock() > half)
        carried = np.zeros(len(self.pool))
        last = self.taken[len(self.taken) - len(shares) :]
        for numbers, share in zip((self.taken[0], *last), (1.0, *shares), strict=True):
            carried *= 1 - share
            carried[numbers] += share
        if self._hurried:
            demands = np.array(self.pool.demands)
            order = np.lexsort((-carried, demands))
            first = np.searchsorted(demands[order], demands[order])
            carried[order[np.arange(len(order)) - first >= HEAVY]] = 0.0
        return carried, reached

    def _step(self, prices: Floats) -> Floats:
        at, found = self._at(prices)
        deep = self._hurried and len(self.taken) > HEAVY
        flat = at.shallow(found, self.flat) if self.flat and not deep else None
        return self.take(at, found if flat is None else flat)

    def _grown(self, prices: Floats, reached: float) -> int:
        """Add trees that the master lacks; return how many are new."""
        before = len(self.pool)
        for share in (0.0, *SHARES):
            if self._met(reached):
                break
            self.take(*self._at(share * self.best + (1 - share) * prices))
        return len(self.pool) - before

    def _at(self, prices: Floats) -> tuple[Prices, Found]:
        """Return the cheapest trees at some prices, those of least depth if they nearly are."""
        at = Prices(self.task, prices)
        found = at.cheapest()
        if found.bound > self.bound:
            self.bound, self.best = found.bound, prices
        flat = at.breadth() if self._flat else None
        if flat is not None and at.least(flat.costs) <= at.least(found.costs) * (1 + NEAR):
            return at, flat
        self._flat = not self._hurried
        return at, found

    def take(self, at: Prices, found: Found) -> Floats:
        """Keep trees, and return what they load if every demand takes its own, shape (rows,)."""
        task = self.task
        share = 1 / max(len(task.paired), 1)
        paired = {half for demand in task.paired.tolist() for half in (demand, demand + 1)}
        loads = np.zeros(len(task.rows.rates))
        self.taken.append([])
        for place, parents in enumerate(found.parents):
            number = self.pool.add(place, at.column(place, parents))
            self.taken[-1].append(number)
            weight = task.nbytes[place] * (share if place in paired else 1.0)
            loads += self.pool.counts[number] * weight
        return np.asarray(loads / task.rows.speeds)


def _device_bound(task: Task) -> tuple[float, Floats]:
    """Return the best bound by what enters or leaves a single GPU, and its prices."""
    speeds, fold = task.rows.speeds, task.rows.fold
    best, kept = 0.0, np.zeros(len(speeds))
    for ends in zip(*(_ports(task, rank) for rank in task.leaders), strict=True):
        # The GPU with the least bandwidth is the one to test.
        rates = [sum(task.problem.topology.links[link].bandwidth for link in each) for each in ends]
        links = np.zeros(fold.shape[1])
        links[ends[int(np.argmin(rates))]] = 1.0
        prices = (fold[: task.rows.links] @ links > 0) * speeds[: task.rows.links]
        prices = np.append(prices, np.zeros(len(speeds) - task.rows.links))
        if not prices.any():
            continue  # nothing leads into, or out of, that GPU
        found = Prices(task, prices / prices.sum()).cheapest()
        if found.bound > best:
            best, kept = found.bound, prices / prices.sum()
    return best, kept


def _ports(task: Task, rank: int) -> tuple[list[int], list[int]]:
    """Return the numbers of the links that enter and leave a GPU."""
    topology = task.problem.topology
    name, index = topology.ranks[rank], topology.link_index
    return (
        [index[each.ends] for each in topology.links_in[name]],
        [index[each.ends] for each in topology.links_out[name]],
    )


def best_trees(
    problem: Problem, *, symmetric: bool = True, seconds: float | None = None
) -> Optimum:
    """Return the best rate of a problem with the trees that have it.

    Parameters
    ----------
    problem
        One whose demands are groups (`formulations.engines.steady_state`).
    symmetric
        Whether roots that look alike are one.
    seconds
        After which the best so far is returned.
    """
    deadline = np.inf if seconds is None else clock() + seconds
    task = task_of(problem, symmetric=symmetric)
    return Search(task, Backend(), deadline=deadline).run()


def forest_of(found: Optimum) -> Forest:
    """Return the forest of an optimum, with its group of symmetries if that has any."""
    task, pool = found.task, found.pool
    trees: dict[bool, list[Tree]] = {False: [], True: []}
    for place, share in sorted(found.weights.shares.items()):
        demand = task.demands[pool.demands[place]]
        side = task.sides[demand.side]
        weight = share if demand.partner is None else share / task.symmetry.order
        trees[side.reduces].append(
            _tree(side, pool.columns[place], rank=demand.root, weight=weight)
        )
    group = task.symmetry if task.symmetry.order > 1 else None
    if trees[True] and trees[False]:
        return Forest(tuple(trees[True]), True, tuple(trees[False]), symmetry=group)
    reduces = bool(trees[True])
    return Forest(tuple(trees[reduces]), reduces, symmetry=group)


def depth_of(side: Side, column: Column) -> int:
    """Return the most hops from the root of a tree to a device, switches not counted."""
    depth = {column.root: 0}
    for vertex in column.order:
        stores = side.topology.devices[side.vertices[vertex]].stores
        depth[vertex] = depth[int(column.parents[vertex])] + stores
    return max(depth.values())


def _tree(side: Side, column: Column, *, rank: int, weight: Fraction) -> Tree:
    """Write a tree as routes from one device that stores to the next."""
    topology = side.topology
    names = [topology.devices[vertex].name for vertex in side.vertices.tolist()]
    brought: dict[int, tuple[str, ...]] = {column.root: (names[column.root],)}
    routes = []
    for vertex in column.order:
        before = brought[int(column.parents[vertex])]
        route = (*before, *(topology.links[link].dst for link in column.links_to(vertex)))
        if topology.device(names[vertex]).stores:
            routes.append(route)
            route = route[-1:]
        brought[vertex] = route
    if side.reduces:
        routes = [route[::-1] for route in reversed(routes)]
    return Tree(rank, tuple(routes), weight)


ROUNDS = 40
"""Most times that the master is solved."""

SECOND_SHARES = (0.02, 0.2, 1.0)
"""Of what a path costs on average, what a hop of depth costs when trees are sought."""

GAIN = 1e-7
"""Share of the costs that a tree must promise to come in."""


class Second:
    """A second objective at a fixed rate.

    Parameters
    ----------
    found
        The best rate; its master is used up.
    costs
        Of a byte on each link, shape (links,); None for depth.
    deadline
        On the clock of `formulations.core.preparing`.
    """

    def __init__(self, found: Optimum, *, costs: Floats | None, deadline: float) -> None:
        self.found, self.costs, self.deadline = found, costs, deadline
        self.master, self.pool, self.task = found.master, found.pool, found.task
        self.scale = 1.0
        # The last trees of the search came in no more.
        self.master.grow()
        first = np.concatenate([self._cost(place) for place in range(len(self.pool))])
        self.scale = float(max(first.max(), 1e-30))
        self.paid = list(first / self.scale)

    def _cost(self, place: int) -> Floats:
        """Return what a tree costs, in units, shape (1,)."""
        demand = self.pool.demands[place]
        column, nbytes = self.pool.columns[place], self.task.nbytes[demand]
        if self.costs is None:
            side = self.task.sides[self.task.demands[demand].side]
            return np.array([depth_of(side, column) / self.scale])
        return np.array([float(self.costs[column.links].sum()) * nbytes / self.scale])

    def run(self) -> Optimum:
        """Return the optimum with other weights; the old one where nothing was gained in time."""
        program, head = self.master.program, self.master.head
        program.fix(0, float(self.found.time) / self.master.unit)
        program.minimise(np.concatenate([np.zeros(head), self.paid]))
        weights = None
        for _ in range(ROUNDS):
            left = self.deadline - clock()
            try:
                solved = program.solve(time_limit=max(left, 0.01) if np.isfinite(left) else None)
            except LimitReached:
                break
            weights = solved
            if left <= 0 or not self._grown(solved):
                break
        if weights is None:
            return self.found
        exact = exact_weights(self.master, weights, time=self.found.time)
        return replace(self.found, weights=exact) if exact.basic else self.found

    def _grown(self, solved: Solved) -> int:
        """Add trees that would lower the costs; return how many."""
        before = len(self.pool)
        pays = solved.duals[: len(self.task.demands)]
        prices = self.master.prices(solved) / self.master.unit
        extra = None if self.costs is None else self.costs / self.scale
        at = Prices(self.task, prices, extra=extra)
        found = at.cheapest()
        if self.costs is not None:
            self.take(at, found, pays)
        elif (flat := at.breadth()) is not None:
            self.take(at, flat, pays)
            for share in SECOND_SHARES:
                tried = at.shallow(found, share)
                if tried is not None:
                    self.take(at, tried, pays)
        new = len(self.pool) - before
        self.master.grow(np.array(self.paid[before:]))
        return new

    def take(self, at: Prices, found: Found, pays: Floats) -> None:
        """Keep the trees that cost less than the master pays for them."""
        for place, parents in enumerate(found.parents):
            if found.costs[place] > pays[place] - GAIN:
                continue
            column = at.column(place, parents)
            side = self.task.sides[self.task.demands[place].side]
            if self.costs is None:
                depth = depth_of(side, column) / self.scale
                if found.costs[place] + depth > pays[place] - GAIN:
                    continue
            number = self.pool.add(place, column)
            if number == len(self.paid):
                self.paid.append(float(self._cost(number)[0]))


def refined(found: Optimum, *, costs: Floats | None = None, deadline: float = np.inf) -> Optimum:
    """Return a forest of the same rate that is less deep, or of least cost where costs are given.

    Parameters
    ----------
    found
        The best rate; its master is used up.
    costs
        Of a byte on each link, shape (links,); None for depth.
    deadline
        On the clock of `formulations.core.preparing`.
    """
    return Second(found, costs=costs, deadline=deadline).run()
