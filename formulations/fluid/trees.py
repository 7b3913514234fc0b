"""Orbit column generation with trees: the best rate of a collective, with a forest that has it.

A master program (`formulations.fluid.trees_master`) shares data among the trees of a pool; its
prices say which trees are missing, and the cheapest of all out-trees are found for all roots at
once (`formulations.compiled.arborescence`). What they cost is a lower bound on R, so the search
ends with a proof. Prices between those of the best bound and the newest make fewer rounds.

While trees of least depth do nearly as well as any, only these are taken, because a tree's depth
is what the first data waits. Afterwards a second objective may choose among forests of the same
R. At last the weights are made exact from the basis (`formulations.fluid.trees_weights`).

Source: thesis (Zhao), section 5.2, "Additional thoughts", for columns that are trees.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

import numpy as np

from ccl.problem import Problem
from formulations.backends import Backend
from formulations.fluid.trees_master import Master, Pool
from formulations.fluid.trees_price import Found, Prices
from formulations.fluid.trees_side import Floats
from formulations.fluid.trees_task import Task, task_of
from formulations.fluid.trees_weights import Weights, exact_weights
from formulations.growing import Solved

PROVED = 1e-9
"""A time within this share of the bound is the best."""

NEAR = 0.5
"""Share of what any trees could gain that trees of least depth must gain to be taken alone."""


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
        On the clock of `time.perf_counter`.
    report
        Told R and its bound in µs after each round.
    """

    task: Task
    backend: Backend
    deadline: float = np.inf
    report: Callable[[float, float], None] = lambda _time, _bound: None
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
            prices = self.master.prices(solved)
            new = self._priced(prices, solved)
            self.report(reached, self.bound)
            if reached <= self.bound * (1 + PROVED) or not new or self.late:
                break
            self.master.grow()
            solved = self.master.program.solve()
        self.solved = solved
        weights = exact_weights(self.master, solved)
        return Optimum(self.pool, weights, self.bound, self.rounds, self.master, self.best)

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return time.perf_counter() > self.deadline

    def _begin(self) -> None:
        """Put trees into the pool at equal prices, and the least deep ones."""
        even = Prices(self.task, np.ones(len(self.task.rows.rates)))
        for found in (even.cheapest(), even.breadth()):
            if found is not None:
                self._take(even, found, np.ones(len(found.parents), dtype=bool))

    def _priced(self, prices: Floats, solved: Solved) -> int:
        """Add trees that the master lacks; return how many are new."""
        new = 0
        for share in self._shares():
            mixed = prices if share == 0 else share * self.best + (1 - share) * prices
            new += self._at(mixed, solved)
        return new

    def _shares(self) -> tuple[float, ...]:
        """Return how much of the best prices so far is mixed into the newest."""
        return (0.0,) if not len(self.best) else (0.0, 0.5, 0.8)

    def _at(self, prices: Floats, solved: Solved) -> int:
        """Add the cheapest trees at some prices that are cheaper than the master pays."""
        at = Prices(self.task, prices)
        found = at.cheapest()
        if found.bound > self.bound:
            self.bound, self.best = found.bound, prices
        flat = at.breadth()
        if flat is not None:
            reached = solved.objective * self.master.unit * at.total
            gain = reached - at.least(found.costs)
            if reached - at.least(flat.costs) > NEAR * gain > 0:
                found = flat
        return self._take(at, found, np.ones(len(found.parents), dtype=bool))

    def _take(self, at: Prices, found: Found, wanted: np.ndarray) -> int:
        new = 0
        for place in np.flatnonzero(wanted).tolist():
            wish = self.task.wishes[place]
            side = self.task.sides[wish.side]
            root = int(side.ranks[wish.root])
            column = at.sides[wish.side].column(root, found.parents[place])
            new += self.pool.add(place, column)
        return new


Secondary = Literal["none", "depth", "gpus", "ports", "links"]


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
        One whose demands are groups (`formulations.fluid.demands`).
    symmetric
        Whether roots that look alike are one.
    backend
        The solver.
    seconds
        After which the best so far is returned.
    """
    deadline = np.inf if seconds is None else time.perf_counter() + seconds
    task = task_of(problem, symmetric=symmetric)
    return Search(task, backend or Backend(), deadline=deadline).run()
