"""Of all forests of the best rate, one that is less deep or moves less weighted data.

R is fixed, and the same master minimises what its trees cost: hops from the root to the last
device, or bytes times costs of links. For costs of links the cheapest missing tree is again an
arborescence, whose lengths are prices and costs together, so the minimum is exact. For depth it is
not: trees of least depth and trees that pay for a hop are tried, which is good, not always best.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ccl.errors import LimitReached
from formulations.core.preparing import clock
from formulations.engines.tree_columns.multicast import Floats
from formulations.engines.tree_columns.plan import depth_of
from formulations.engines.tree_columns.price import Found, Prices
from formulations.engines.tree_columns.search import Optimum
from formulations.engines.tree_columns.weights import exact_weights
from formulations.solvers.incremental_lp import Solved

ROUNDS = 40
"""Most times that the master is solved."""

SHARES = (0.02, 0.2, 1.0)
"""Of what a way costs on average, what a hop of depth costs when trees are sought."""

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
        wish = self.pool.wishes[place]
        column, nbytes = self.pool.columns[place], self.task.nbytes[wish]
        if self.costs is None:
            side = self.task.sides[self.task.wishes[wish].side]
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
        pays = solved.duals[: len(self.task.wishes)]
        prices = self.master.prices(solved) / self.master.unit
        extra = None if self.costs is None else self.costs / self.scale
        at = Prices(self.task, prices, extra=extra)
        found = at.cheapest()
        if self.costs is not None:
            self._taken(at, found, pays)
        elif (flat := at.breadth()) is not None:
            self._taken(at, flat, pays)
            for share in SHARES:
                tried = at.shallow(found, share)
                if tried is not None:
                    self._taken(at, tried, pays)
        new = len(self.pool) - before
        self.master.grow(np.array(self.paid[before:]))
        return new

    def _taken(self, at: Prices, found: Found, pays: Floats) -> None:
        """Keep the trees that cost less than the master pays for them."""
        for place, parents in enumerate(found.parents):
            if found.costs[place] > pays[place] - GAIN:
                continue
            wish = self.task.wishes[place]
            side = self.task.sides[wish.side]
            root = int(side.ranks[wish.root])
            column = at.sides[wish.side].column(root, parents)
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
