"""Cost against speed, for several collectives at once.

The cost of speed f is the optimum of a linear program whose right hand sides are linear in f
(`formulations.analyses.expansion.upgrade`): convex and straight between finitely many corners.
These are found exactly by tangents: between two points that are known, minimise cost
less reward times f with their slope as the reward; either no point lies below the line through
them, and it is part of the front, or a new one does and there are two lines to test (Aneja and
Nair, Bicriteria transportation problem, 1979; Eisner and Severance, Mathematical techniques for
efficient record segmentation, 1976).

Where everything is bought in steps the front is a list. From a point on it, find the least cost
of anything faster, then for the fastest that costs no more; that is the next point. What is faster
by a share of `RISE` or less counts as equally fast.
"""

import math
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from ccl.errors import Infeasible, LimitReached, ProblemError
from ccl.problem import Problem
from formulations.analyses.expansion.costs import Costs
from formulations.analyses.expansion.offers import By, Front, FrontKind, Offers, Upgrade
from formulations.analyses.expansion.upgrade import Bought, Goal, Search, prepared, upgrade_of

RISE = 1e-5
"""Least share by which a point in steps is faster than the one before."""

SAME = 1e-7
"""Costs and factors that differ by less, as shares of the largest, are one."""

SAMPLES = 9
"""Points of a front of which some is bought in steps and some is not."""


class _Exploration:
    """A search that preserves its points when a limit comes."""

    def __init__(self, search: Search, *, least: float, most: float, points: int) -> None:
        self.search, self.least, self.most, self.points = search, least, most, points
        self.found: list[Bought] = []
        self.complete = False

    def run(self, kind: FrontKind) -> None:
        """Find the points."""
        methods = {"breaks": self._breaks, "steps": self._steps, "samples": self._samples}
        try:
            for each in methods[kind]():
                if len(self.found) >= self.points:
                    return
                self.found.append(each)
        except LimitReached:
            return
        self.complete = True

    def _today(self) -> Bought:
        return Bought(np.zeros(len(self.search.offers.goods)), self.least, 0.0, 0.0)

    def _fastest(self) -> float:
        """Return the largest factor that is requested and can be bought."""
        goal = Goal(cost_weight=0.0, reward=1.0, least=self.least, largest=self.most)
        return self._settled(goal).factor

    def _cheapest(self, factor: float) -> Bought:
        return self._settled(Goal(least=factor, largest=factor))

    def _settled(self, goal: Goal) -> Bought:
        """Return what is best for a goal; a point without a proof is not part of a front."""
        found = self.search.settle(goal)
        if not found.proved:
            raise LimitReached(
                f"the time limit came before a point of {self.search.offers.topology} was proved"
            )
        return found

    def _breaks(self) -> Iterator[Bought]:
        """Yield the ends of a convex front, then its corners as they are found."""
        first = self._today()
        yield first
        last = self._cheapest(self._fastest())
        if last.factor <= first.factor * (1 + SAME):
            return
        yield last
        lines = [(first, last)]
        while lines:
            left, right = lines.pop(0)
            between = self._below(left, right, scale=last.cost)
            if between is not None:
                yield between
                lines += [(left, between), (between, right)]

    def _below(self, left: Bought, right: Bought, *, scale: float) -> Bought | None:
        """Return a corner below the line through two points, or None."""
        slope = (right.cost - left.cost) / (right.factor - left.factor)
        unit = self.search.unit
        goal = Goal(reward=slope / unit, least=left.factor, largest=right.factor)
        found = self._settled(goal)
        gained = left.cost - slope * left.factor - (found.cost - slope * found.factor)
        return found if gained > SAME * scale else None

    def _steps(self) -> Iterator[Bought]:
        """Yield what nothing beats, the slowest first."""
        here = self._today()
        yield here
        while here.factor < self.most * (1 - SAME):
            try:
                cheap = self._settled(Goal(least=here.factor * (1 + RISE)))
            except Infeasible:
                return  # nothing that is for sale is faster
            budget = cheap.cost * (1 + SAME)
            here = self._settled(
                Goal(cost_weight=0.0, reward=1.0, least=cheap.factor, budget=budget)
            )
            yield here

    def _samples(self) -> Iterator[Bought]:
        """Yield cheapest upgrades at some factors."""
        yield self._today()
        last = self._fastest()
        for factor in np.linspace(self.least, last, min(SAMPLES, self.points))[1:].tolist():
            yield self._cheapest(factor)


def cost_front(
    problems: Problem | Sequence[Problem],
    costs: Costs,
    *,
    most: float = 2.0,
    points: int = 60,
    weights: Sequence[float] | None = None,
    by: By = "kind",
    time_limit: float | None = None,
) -> Front:
    """Return cost against speed, from today's cluster on.

    Speed is one factor f: each collective reaches f times today's best algbw.

    Parameters
    ----------
    problems
        Collectives on one topology.
    costs
        What more bandwidth costs.
    most
        Largest f.
    points
        Most points.
    weights
        How much more each collective gains: 1 + weight (f - 1) times today's algbw; by default 1.
        One of weight 0 needs to become no faster.
    by
        As in `formulations.cheapest_upgrade`.
    time_limit
        Seconds, after which what is proved so far is returned.

    Raises
    ------
    ProblemError
        If there is no problem, they are on several topologies, one is refused, or the costs,
        weights or `most` make no sense.
    """
    listed = (problems,) if isinstance(problems, Problem) else tuple(problems)
    cost_weight = _weights(weights, many=len(listed))
    if not 1 < most < math.inf:
        raise ProblemError(
            f"a front up to {most:g} times today's speed has no points; give more than 1"
        )
    if points < 2:
        raise ProblemError(f"a front of {points} points is no front; ask for 2 at least")
    deadline = math.inf if time_limit is None else time.perf_counter() + time_limit
    engines, offers, today = prepared(listed, costs, by=by)
    before = np.array([each.algbw for each in today])
    search = Search(offers, engines, today, before, before * cost_weight, deadline)
    kind = kind_of(offers)
    exploration = _Exploration(search, least=1.0, most=most, points=points)
    exploration.run(kind)

    def upgrade(bought: Bought) -> Upgrade:
        targets = before * (1 + cost_weight * (bought.factor - 1))
        return upgrade_of(
            engines,
            offers,
            bought.extra,
            today=today,
            targets=targets,
            bound=bought.cost,
            currency=costs.currency,
        )

    found_points = sorted(exploration.found, key=lambda each: each.factor)
    if kind == "breaks" and exploration.complete:
        found_points = corners(found_points)
    return Front(
        points=tuple(upgrade(each) for each in found_points),
        kind=kind,
        complete=exploration.complete,
        today=costs.today(offers.topology),
        currency=costs.currency,
    )


def kind_of(offers: Offers) -> FrontKind:
    """Return what a front of these goods is made of."""
    stepped = [each.step is not None for each in offers.goods]
    if not any(stepped):
        return "breaks"
    return "steps" if all(stepped) else "samples"


def corners(points: Sequence[Bought]) -> list[Bought]:
    """Return the points at which a front that is sorted by factor turns, and its ends."""
    kept = list(points[:1])
    for here, after in pairwise(points[1:]):
        before, largest = kept[-1], points[-1].cost
        part = (here.factor - before.factor) / (after.factor - before.factor)
        line = before.cost + part * (after.cost - before.cost)
        if line - here.cost > SAME * largest:
            kept.append(here)
    return kept + list(points[1:][-1:])


def _weights(weights: Sequence[float] | None, *, many: int) -> np.ndarray:
    given = np.ones(many) if weights is None else np.array([*weights], dtype=float)
    if len(given) != many:
        raise ProblemError(f"there are {len(given)} weights for {many} collectives; give as many")
    if not (np.isfinite(given) & (given >= 0)).all() or not given.any():
        raise ProblemError(
            f"weights are {', '.join(f'{each:g}' for each in given)}; give some above 0"
        )
    return given
