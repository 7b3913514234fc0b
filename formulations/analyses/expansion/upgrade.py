"""Cheapest upgrade of a cluster with which collectives reach a target.

A linear or integer program buys the cheapest amounts of bandwidth under the cuts that are known.

Sets: goods g (links of one class, or shared limits, that get more together), collectives p, and
the cuts c of each that were found so far (`formulations.analyses.expansion.rates`).

Variables: x[g] >= 0, units that are bought of g, whole where g is sold in steps; a unit is the
step, or today's bandwidth where any amount can be bought; f, how many times as fast as today.
u[g] are GB/s of a unit, a[c, g] and d[c] the slopes and the offset of a cut, t[p] GB/s that are
required of p at f = 1 and s[p] the increase when f grows by 1.

    minimise    cost_weight sum over g of price[g] u[g] x[g] - reward f
    subject to  sum over g of a[c, g] u[g] x[g] + d[c] >= t[p] + s[p] (f - 1)   each c of each p
                sum over g of price[g] u[g] x[g] <= budget
                x[g] u[g] <= most[g],   least <= f <= largest

Rows are divided by t[p] and costs by that of all bandwidth of today, so all numbers are near 1.

`Search.settle` solves it, requests the best rates from the engines at what it bought, and adds the
cuts that say a target is missed, until none is (Kelley, The cutting-plane method for solving convex
programs, 1960; Benders, Partitioning procedures, 1962): engines have finitely many cuts, so this
ends, and as cuts leave no good amounts out, the last objective is a proof.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ccl import text
from ccl.errors import Infeasible, LimitReached, ProblemError
from ccl.problem import Problem
from formulations.analyses.expansion.costs import Costs
from formulations.analyses.expansion.offers import By, Gain, Offers, Upgrade, offers_of
from formulations.analyses.expansion.rates import Found, Rates, rates_of
from formulations.solvers import cp
from formulations.solvers.cvxpy_highs import Backend, TerminationCondition

Target = float | str
"""GB/s of algbw, or a factor over today's best such as ``1.5x``."""

VISIBLE_SHARE = 1e-4
"""Links with a smaller share of what holds a collective down are not named."""


def cheapest_upgrade(
    problems: Problem | Sequence[Problem],
    costs: Costs,
    *,
    target: Target | Sequence[Target],
    by: By = "kind",
    time_limit: float | None = None,
) -> Upgrade:
    """Return the cheapest upgrade with which the best steady state of each problem is fast enough.

    Parameters
    ----------
    problems
        Collectives on one topology.
    costs
        What more bandwidth costs.
    target
        algbw in GB/s or a factor such as ``"1.5x"``, of all problems or of each.
    by
        ``kind``: links of one bandwidth and medium get the same; ``orbit``: only those that
        symmetries of the cluster exchange do, which can be cheaper.
    time_limit
        Seconds.

    Raises
    ------
    ProblemError
        If there is no problem, they are on several topologies, one is refused, or a target or
        the costs make no sense.
    Infeasible
        If nothing that is for sale is enough.
    LimitReached
        If the time limit came first.
    """
    listed = (problems,) if isinstance(problems, Problem) else tuple(problems)
    engines, offers, today = prepared(listed, costs, by=by)
    targets = targets_of(target, today=[each.algbw for each in today])

    before = np.array([each.algbw for each in today])
    base = np.maximum(targets, before)
    deadline = math.inf if time_limit is None else time.perf_counter() + time_limit
    search = Search(offers, engines, today, base, np.zeros(len(base)), deadline)
    try:
        bought = search.settle(Goal(largest=1.0))
    except Infeasible:
        raise Infeasible(_too_much(engines, offers, today, base=base)) from None
    return upgrade_of(
        engines,
        offers,
        bought.extra,
        today=today,
        targets=targets,
        bound=bought.bound * search.unit,
        currency=costs.currency,
    )


def prepared(
    problems: Sequence[Problem], costs: Costs, *, by: By
) -> tuple[list[Rates], Offers, list[Found]]:
    """Return an engine for each problem, what is for sale, and the best rates of today."""
    if not problems:
        raise ProblemError("there is no collective to upgrade for; give one at least")
    topology = problems[0].topology
    for each in problems[1:]:
        if each.topology != topology:
            raise ProblemError(
                f"the collectives are on {topology} and on {each.topology}; give them one cluster"
            )
    offers = offers_of(topology, costs, by=by)
    engines = [rates_of(each, offers) for each in problems]
    none = np.zeros(len(offers.goods))
    return engines, offers, [each.at(none) for each in engines]


def targets_of(target: Target | Sequence[Target], *, today: Sequence[float]) -> np.ndarray:
    """Return targets in GB/s, shape (problems,).

    Parameters
    ----------
    target
        One for all, or one for each.
    today
        algbw in GB/s of each problem.

    Raises
    ------
    ProblemError
        If one is no positive number, or there are not as many as problems.
    """
    given = [target] * len(today) if isinstance(target, (int, float, str)) else list(target)
    if len(given) != len(today):
        raise ProblemError(
            f"there are {len(given)} targets for {len(today)} collectives; give one, or as many"
        )
    return np.array([_gigabytes(each, now) for each, now in zip(given, today, strict=True)])


def upgrade_of(
    engines: Sequence[Rates],
    offers: Offers,
    extra: np.ndarray,
    *,
    today: Sequence[Found],
    targets: np.ndarray,
    bound: float,
    currency: str,
) -> Upgrade:
    """Return the cost and rates of amounts, recomputed by the engines.

    Parameters
    ----------
    engines, offers
        Of the problems and their cluster.
    extra
        GB/s more of each of the goods, shape (goods,).
    today
        Rates of the problems as the cluster is.
    targets
        algbw in GB/s of each that was requested.
    bound
        Lower bound on the cost.
    currency
        Its unit.
    """
    rounded = offers.rounded(extra)
    gains = []
    for engine, now, target in zip(engines, today, targets.tolist(), strict=True):
        found = engine.at(rounded)
        kind = engine.problem.collective.kind
        held = tuple(_held(offers, found))
        gains.append(Gain(kind, now.algbw, found.algbw, target, found.cut, held))
    return Upgrade(
        cost=offers.cost(rounded),
        bound=max(bound, 0.0),
        changes=offers.changes(rounded),
        topology=offers.upgraded(rounded),
        gains=tuple(gains),
        currency=currency,
        factor=min(each.target / each.before for each in gains),
    )


def _held(offers: Offers, found: Found) -> list[tuple[str, float]]:
    """Return classes of links with their shares of what holds a collective down."""
    shares: dict[str, float] = {}
    topology = offers.topology
    for row in np.flatnonzero(found.shares > 0).tolist():
        number = int(offers.rows[row])
        if number >= 0:
            words = offers.goods[number].words
        elif row < len(topology.links):
            link = topology.links[row]
            words = f"{link.medium or 'links'} at {text.number(link.bandwidth, 4)} GB/s"
        else:
            limit = topology.limits[row - len(topology.links)]
            words = f"shared limit {limit.name} at {text.number(limit.bandwidth, 4)} GB/s"
        shares[words] = shares.get(words, 0.0) + float(found.shares[row])
    kept = [(words, share) for words, share in shares.items() if share > VISIBLE_SHARE]
    return sorted(kept, key=lambda each: -each[1])


def _gigabytes(target: Target, today: float) -> float:
    text = str(target).strip()
    factor = text[-1:] in "x×" and text != ""
    try:
        number = float(text[:-1] if factor else text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ProblemError(
            f"target {text!r} is no algbw; give GB/s such as 300, or a factor such as 1.5x"
        )
    return number * today if factor else number


def _too_much(
    engines: Sequence[Rates], offers: Offers, today: Sequence[Found], *, base: np.ndarray
) -> str:
    """Return which target is out of reach, what the most is, and what holds it there."""
    for engine, now, need in zip(engines, today, base.tolist(), strict=True):
        one = np.array([need])
        search = Search(offers, [engine], [now], one, one)
        best = search.settle(Goal(cost_weight=0.0, reward=1.0, least=0.0, largest=1.0))
        if best.factor < 1 - 1e-6:
            held = _held(offers, engine.at(best.extra))
            return (
                f"nothing that is for sale brings {engine.problem.collective.kind} on "
                f"{offers.topology} to {need:.6g} GB/s: {best.factor * need:.6g} GB/s is the most, "
                f"held by {held[0][0]}; sell more of these, or ask for less"
            )
    return (
        f"what is for sale on {offers.topology} reaches each target, and not all of them together"
    )


MET = 1e-7
"""A target is met by a rate that is less by this share at most."""

TIGHT = {"primal_feasibility_tolerance": 1e-9, "mip_feasibility_tolerance": 1e-9}
"""Of HiGHS: far less than what counts as missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The objective of the program; the defaults minimise cost.

    Parameters
    ----------
    cost_weight, reward
        Weights of cost, as a share of `Search.unit`, and of speed.
    least, largest
        Bounds of f.
    budget
        Largest cost.
    """

    cost_weight: float = 1.0
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
        Lower bound on the objective: `cost_weight` times cost less `reward` times f.
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
    offers
        What is for sale.
    rates
        An engine for each collective.
    today
        What each of them says of the cluster as it is.
    base, slope
        t and s in GB/s, shape (collectives,).
    deadline
        On the clock of `time.perf_counter`.
    """

    offers: Offers
    rates: Sequence[Rates]
    today: Sequence[Found]
    base: np.ndarray
    slope: np.ndarray
    deadline: float = math.inf
    _left: list[np.ndarray] = field(default_factory=list)
    _speed: list[float] = field(default_factory=list)
    _right: list[float] = field(default_factory=list)
    _known: set[tuple[int, Found]] = field(default_factory=set)

    def __post_init__(self) -> None:
        goods = self.offers.goods
        self.backend = Backend(settings=TIGHT)
        self.steps = [i for i, each in enumerate(goods) if each.step is not None]
        self.unit_of = np.array([each.step or each.bandwidth for each in goods])
        price = np.array([each.price for each in goods])
        self.unit = float(price @ np.array([each.bandwidth for each in goods]))
        self.price = price * self.unit_of / self.unit
        most = np.array([each.most for each in goods]) / self.unit_of
        most[self.steps] = np.floor(most[self.steps] * (1 + 1e-9))
        self.most = most
        for number, found in enumerate(self.today):
            self.add(number, found)

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
        """Call engines until one proves that a target is missed, and store its cuts.

        Quick ones are called first, and slow ones only about amounts that satisfy these.
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
            raise LimitReached(
                f"the time limit came before the cheapest upgrade of {self.offers.topology} was "
                "found; give it more time, or sell fewer kinds of links"
            )
        many = len(self.unit_of)
        # Bounds may be infinite, and CVXPY leaves such out.
        x = cp.Variable(many, bounds=[0, self.most], integer=(self.steps,) if self.steps else False)
        f = cp.Variable(bounds=[goal.least, goal.largest])
        rules: list[Any] = [
            np.array(self._left) @ x - np.array(self._speed) * f >= np.array(self._right)
        ]
        if goal.budget < math.inf:
            rules.append(self.price @ x <= goal.budget / self.unit)
        aim = goal.cost_weight * (self.price @ x) - goal.reward * f
        model = cp.Problem(cp.Minimize(aim), rules)
        limit = None if left == math.inf else left
        outcome = self.backend.solve(model, gap=0.0, time_limit=limit)
        units = np.maximum(np.asarray(x.value, dtype=float), 0.0)
        units[self.steps] = np.rint(units[self.steps])
        extra = units * self.unit_of
        return Bought(
            extra=extra,
            factor=float(np.asarray(f.value)),
            cost=self.offers.cost(extra),
            bound=outcome.bound,
            proved=outcome.ending is TerminationCondition.OPTIMAL,
        )
