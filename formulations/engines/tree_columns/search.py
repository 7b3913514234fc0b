"""Orbit column generation with trees: the best rate of a collective, with a forest that has it.

A master program (`formulations.engines.tree_columns.master`) shares data among the trees of a pool;
its prices say which trees are missing, and the cheapest of all out-trees are found for all roots at
once (`formulations.engines.kernels.arborescence`). What they cost is a lower bound on R, so the
search ends with a proof. Prices between those of the best bound and the newest make fewer rounds.

While trees of least depth do nearly as well as any, only these are taken, because a tree's depth
is what the first data waits. Afterwards a second objective may choose among forests of the same
R. At last the weights are made exact from the basis (`formulations.engines.tree_columns.weights`).

Source: thesis, section 5.2, "Additional thoughts", for columns that are trees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from ccl.problem import Problem
from formulations.core.preparing import clock
from formulations.engines.tree_columns.master import Master, Pool
from formulations.engines.tree_columns.multicast import Floats
from formulations.engines.tree_columns.price import Found, Prices
from formulations.engines.tree_columns.task import Task, task_of
from formulations.engines.tree_columns.warm import warmed
from formulations.engines.tree_columns.weights import Weights, exact_weights
from formulations.solvers.cvxpy_highs import Backend

PROVED = 1e-9
"""A time within this share of the bound is the best."""

NEAR = 1e-9
"""Trees of least depth are taken where they cost as little as any, but for this share."""

FLAT = 0.1
"""Share of what a way costs on average that a hop of depth costs, in the first trees."""

SHARES = (0.5, 0.8)
"""How much of the prices of the best bound is mixed into the newest."""


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
    """

    pool: Pool
    weights: Weights
    bound: float
    rounds: int
    master: Master
    prices: Floats

    @property
    def task(self) -> Task:
        """What was asked."""
        return self.pool.task

    @property
    def time(self) -> Fraction:
        """R in µs."""
        return self.weights.time

    @property
    def proved(self) -> bool:
        """Whether no forest has a smaller R."""
        return float(self.time) <= self.bound * (1 + PROVED)


@dataclass
class Search:
    """Column generation.

    Parameters
    ----------
    task
        What is asked.
    backend
        The solver.
    deadline
        On the clock of `formulations.core.preparing`.
    report
        Told R and its bound in µs after each round.
    """

    task: Task
    backend: Backend
    deadline: float = np.inf
    report: Callable[[float, float], None] = lambda _time, _bound: None
    flat: float = FLAT
    bound: float = 0.0
    rounds: int = 0
    best: Floats = field(default_factory=lambda: np.empty(0))

    def run(self) -> Optimum:
        """Return the best rate, or the best found before the deadline."""
        self.pool = Pool(self.task)
        self._begin()
        self.master = Master(self.pool, self.backend)
        solved = self.master.program.solve()
        while True:
            self.rounds += 1
            reached = solved.objective * self.master.unit
            new = self._grown(self.master.prices(solved), reached)
            self.report(reached, self.bound)
            if self._met(reached) or not new or self.late:
                break
            self.master.grow()
            solved = self.master.program.solve()
        weights = exact_weights(self.master, solved)
        return Optimum(self.pool, weights, self.bound, self.rounds, self.master, self.best)

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return clock() > self.deadline

    def _met(self, reached: float) -> bool:
        return reached <= self.bound * (1 + PROVED)

    def _begin(self) -> None:
        """Put trees into the pool: at equal prices, then those of steps towards equal loads."""
        task, many = self.task, len(self.task.rows.rates)
        self.bound, self.best = _device_bound(task)
        even = Prices(task, np.ones(many))
        loads = self._taken(even, even.cheapest())
        flat = even.breadth()
        if flat is not None:
            self._taken(even, flat)
        warmed(loads, self._step, done=lambda: self.late)

    def _step(self, prices: Floats) -> Floats:
        at, found = self._at(prices)
        flat = at.shallow(found, self.flat) if self.flat else None
        return self._taken(at, found if flat is None else flat)

    def _grown(self, prices: Floats, reached: float) -> int:
        """Add trees that the master lacks; return how many are new."""
        before = len(self.pool)
        for share in (0.0, *SHARES):
            if self._met(reached):
                break
            self._taken(*self._at(share * self.best + (1 - share) * prices))
        return len(self.pool) - before

    def _at(self, prices: Floats) -> tuple[Prices, Found]:
        """Return the cheapest trees at some prices, those of least depth if they nearly are."""
        at = Prices(self.task, prices)
        found = at.cheapest()
        if found.bound > self.bound:
            self.bound, self.best = found.bound, prices
        flat = at.breadth()
        if flat is not None and at.least(flat.costs) <= at.least(found.costs) * (1 + NEAR):
            return at, flat
        return at, found

    def _taken(self, at: Prices, found: Found) -> Floats:
        """Keep trees, and return what they load if every wish takes its own, shape (rows,)."""
        task = self.task
        share = 1 / max(len(task.paired), 1)
        paired = {half for wish in task.paired.tolist() for half in (wish, wish + 1)}
        loads = np.zeros(len(task.rows.rates))
        for place, parents in enumerate(found.parents):
            wish = task.wishes[place]
            root = int(task.sides[wish.side].ranks[wish.root])
            number = self.pool.add(place, at.sides[wish.side].column(root, parents))
            weight = task.nbytes[place] * (share if place in paired else 1.0)
            loads += self.pool.counts[number] * weight
        return np.asarray(loads / task.rows.speeds)


def _device_bound(task: Task) -> tuple[float, Floats]:
    """Return the best bound by what enters or leaves a single GPU, and its prices."""
    speeds, fold = task.rows.speeds, task.rows.fold
    best, kept = 0.0, np.zeros(len(speeds))
    for ends in zip(*(_ports(task, rank) for rank in task.leaders), strict=True):
        # The GPU with the least bandwidth is the one to ask about.
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
    problem: Problem,
    *,
    symmetric: bool = True,
    backend: Backend | None = None,
    seconds: float | None = None,
) -> Optimum:
    """Return the best rate of a problem with the trees that have it.

    Parameters
    ----------
    problem
        One whose demands are groups (`formulations.engines.steady_state.demands`).
    symmetric
        Whether roots that look alike are one.
    backend
        The solver.
    seconds
        After which the best so far is returned.
    """
    deadline = np.inf if seconds is None else clock() + seconds
    task = task_of(problem, symmetric=symmetric)
    return Search(task, backend or Backend(), deadline=deadline).run()
