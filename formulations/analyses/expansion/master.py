"""The cheapest amounts of bandwidth under the cuts that are known.

Sets: goods g (links of one class, or shared limits, that get more together), collectives p, and
the cuts c of each that were found so far (`formulations.analyses.expansion.rates`).

Variables: x[g] >= 0, units that are bought of g, whole where g is sold in steps; a unit is the
step, or today's bandwidth where any amount can be bought; f, how many times as fast as today.
u[g] are GB/s of a unit, a[c, g] and d[c] the slopes and the offset of a cut, t[p] GB/s that are
asked of p at f = 1 and s[p] those that are asked more when f grows by 1.

    minimise    worth sum over g of price[g] u[g] x[g] - reward f
    subject to  sum over g of a[c, g] u[g] x[g] + d[c] >= t[p] + s[p] (f - 1)   each c of each p
                sum over g of price[g] u[g] x[g] <= budget
                x[g] u[g] <= most[g],   least <= f <= largest

Rows are divided by t[p] and costs by that of all bandwidth of today, so all numbers are near 1.

`Search.settle` solves it, asks the engines for the best rates at what it bought, and adds the cuts
that say a target is missed, until none is (Kelley, The cutting-plane method for solving convex
programs, 1960; Benders, Partitioning procedures, 1962): engines have finitely many cuts, so this
ends, and as cuts leave no good amounts out, the last objective is a proof.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np

from ccl.errors import LimitReached
from formulations.analyses.expansion.rates import Found, Rates
from formulations.analyses.expansion.sale import Sale
from formulations.solvers.cvxpy_highs import Backend, Ending

MET = 1e-7
"""A target is met by a rate that is less by this share at most."""

TIGHT = {"primal_feasibility_tolerance": 1e-9, "mip_feasibility_tolerance": 1e-9}
"""Of HiGHS: far less than what counts as missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What the program is asked; the defaults ask for the least cost.

    Parameters
    ----------
    worth, reward
        Weights of cost, as a share of `Search.unit`, and of speed.
    least, largest
        Bounds of f.
    budget
        Largest cost.
    """

    worth: float = 1.0
    reward: float = 0.0
    least: float = 1.0
    largest: float = math.inf
    budget: float = math.inf


@dataclass(frozen=True, eq=False)
class Bought:
    """What the program buys.

    Parameters
    ----------
    extra
        GB/s more of each of the goods, shape (goods,).
    factor
        f.
    cost
        Of these.
    bound
        Lower bound on what the goal counts: `worth` times cost less `reward` times f.
    proved
        Whether it is that bound; else the deadline came in an integer program.
    """

    extra: np.ndarray
    factor: float
    cost: float
    bound: float
    proved: bool = True


@dataclass
class Search:
    """The program with its engines.

    Parameters
    ----------
    sale
        What is for sale.
    rates
        An engine for each collective.
    base, slope
        t and s in GB/s, shape (collectives,).
    deadline
        On the clock of `time.perf_counter`.
    """

    sale: Sale
    rates: Sequence[Rates]
    base: np.ndarray
    slope: np.ndarray
    deadline: float = math.inf
    _left: list[np.ndarray] = field(default_factory=list)
    _speed: list[float] = field(default_factory=list)
    _right: list[float] = field(default_factory=list)
    _known: set[tuple[int, Found]] = field(default_factory=set)

    def __post_init__(self) -> None:
        goods = self.sale.goods
        self.backend = Backend(settings=TIGHT)
        self.steps = [i for i, each in enumerate(goods) if each.step is not None]
        self.unit_of = np.array([each.step or each.bandwidth for each in goods])
        price = np.array([each.price for each in goods])
        self.unit = float(price @ np.array([each.bandwidth for each in goods]))
        self.price = price * self.unit_of / self.unit
        most = np.array([each.most for each in goods]) / self.unit_of
        most[self.steps] = np.floor(most[self.steps] * (1 + 1e-9))
        self.most = most

    def add(self, number: int, found: Found) -> None:
        """Keep the cuts of a collective.

        Parameters
        ----------
        number
            Which collective.
        found
            What its engine said.
        """
        base = self.base[number]
        self._known.add((number, found))
        for slopes, offset in zip(found.slopes, found.offsets.tolist(), strict=True):
            self._left.append(slopes * self.unit_of / base)
            self._speed.append(self.slope[number] / base)
            self._right.append((base - self.slope[number] - offset) / base)

    def settle(self, goal: Goal) -> Bought:
        """Return what is best for a goal, proved.

        Raises
        ------
        Infeasible
            If nothing that is for sale is enough.
        LimitReached
            If the deadline came first.
        """
        while True:
            bought = self._solve(goal)
            if not self._missed(bought):
                return bought

    def _missed(self, bought: Bought) -> bool:
        """Ask engines until one says that a target is missed, and keep its cuts.

        Quick ones are asked first, and slow ones only about amounts that satisfy these.
        """
        order = sorted(range(len(self.rates)), key=lambda number: self.rates[number].effort)
        for number in order:
            need = self.base[number] + self.slope[number] * (bought.factor - 1)
            found = self.rates[number].at(bought.extra)
            # What the program knows already it misses by the solver's rounding alone.
            new = (number, found) not in self._known
            if new and found.algbw < need * (1 - MET):
                self.add(number, found)
                return True
        return False

    def _solve(self, goal: Goal) -> Bought:
        left = self.deadline - time.perf_counter()
        if left <= 0:
            msg = (
                f"the time limit came before the cheapest upgrade of {self.sale.topology} was "
                "found; give it more time, or sell fewer kinds of links"
            )
            raise LimitReached(msg)
        many = len(self.unit_of)
        # Bounds may be infinite, and CVXPY leaves such out.
        x = cp.Variable(many, bounds=[0, self.most], integer=(self.steps,) if self.steps else False)
        f = cp.Variable(bounds=[goal.least, goal.largest])
        rules: list[Any] = [
            np.array(self._left) @ x - np.array(self._speed) * f >= np.array(self._right)
        ]
        if goal.budget < math.inf:
            rules.append(self.price @ x <= goal.budget / self.unit)
        aim = goal.worth * (self.price @ x) - goal.reward * f
        model = cp.Problem(cp.Minimize(aim), rules)
        limit = None if left == math.inf else left
        outcome = self.backend.solve(model, gap=0.0, time_limit=limit)
        units = np.maximum(np.asarray(x.value, dtype=float), 0.0)
        units[self.steps] = np.rint(units[self.steps])
        extra = units * self.unit_of
        return Bought(
            extra=extra,
            factor=float(np.asarray(f.value)),
            cost=self.sale.cost(extra),
            bound=outcome.bound,
            proved=outcome.ending is Ending.OPTIMAL,
        )
