"""Cheapest trees of all demands at given prices, and the lower bound that they prove.

With a price q(i) >= 0 on every row, a byte costs on a link the sum over rows of q(i) / rate(i). In
a plan that takes R every row carries at most rate(i) R, so all bytes together cost at most
R times the sum of the prices; and each demand costs at least what its cheapest trees cost. So

    R >= sum over demands of bytes * cheapest / sum of prices,

where of the roots of an all-reduce the cheapest pair of an in-tree and an out-tree counts alone,
for all bytes. Links have a tiny price more than they are given, so that paths do not wander; the
sum counts it, and the bound holds as it stands.

Trees may pass vertices which need not be reached: memory, switches that copy (`cheapest`). Which of
them a tree passes is a choice; once it is made, a cheapest out-tree over the others and these is
found as usual. Few are all tried, which is exact. Of many, those that a tree over all of them has
as leaves are left out, then one after the other is tried without and with: a good tree, not always
a cheapest one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from formulations.engines.tree_columns.task import Column, Floats, Ints, Priced, Task

FEW = 8
"""Up to so many vertices all choices are tried."""


def cheapest(priced: Priced, members: Ints, *, roots: Ints, optional: Ints) -> tuple[Ints, bool]:
    """Return the parents of a tree of each root, shape (roots, vertices), and whether it is exact.

    Parameters
    ----------
    priced
        The cheapest paths.
    members
        Vertices that every tree must reach, the roots among them.
    roots
        Vertices.
    optional
        Vertices that it may reach.
    """
    if not len(optional):
        return priced.cheapest(members, roots), True
    if len(optional) <= FEW:
        choices = [
            np.array(each, dtype=np.int64)
            for many in range(len(optional) + 1)
            for each in combinations(optional.tolist(), many)
        ]
        return _best(priced, members, roots=roots, choices=choices)[0], True
    found = [_searched(priced, members, root=root, optional=optional) for root in roots.tolist()]
    return np.array(found), False


def _best(
    priced: Priced, members: Ints, *, roots: Ints, choices: list[Ints]
) -> tuple[Ints, Floats]:
    """Return the cheapest tree of each root over the choices, and its cost."""
    best = np.full((len(roots), len(priced.costs)), -1, dtype=np.int32)
    least = np.full(len(roots), np.inf)
    for chosen in choices:
        parents = priced.cheapest(np.sort(np.concatenate([members, chosen])), roots)
        cost = priced.cost(parents)
        better = cost < least
        best[better], least[better] = parents[better], cost[better]
    return best, least


def _searched(priced: Priced, members: Ints, *, root: int, optional: Ints) -> Ints:
    """Return a good tree of one root."""
    start = np.array([root])
    chosen = _without_leaves(priced, members, root=root, chosen=optional)
    best, least = _best(priced, members, roots=start, choices=[chosen, chosen[:0]])
    chosen = np.intersect1d(optional, np.flatnonzero(best[0] >= 0))
    better = True
    while better:
        better = False
        for each in optional.tolist():
            inside = (chosen == each).any()
            other = chosen[chosen != each] if inside else np.append(chosen, each)
            tree, cost = _best(priced, members, roots=start, choices=[other])
            if cost[0] < least[0] * (1 - 1e-12):
                best, least, chosen, better = tree, cost, other, True
    return np.asarray(best[0])


def _without_leaves(priced: Priced, members: Ints, *, root: int, chosen: Ints) -> Ints:
    """Leave out what a tree over everything has as leaves, again and again."""
    while len(chosen):
        [parents] = priced.cheapest(np.sort(np.concatenate([members, chosen])), np.array([root]))
        kept = chosen[np.isin(chosen, parents)]
        if len(kept) == len(chosen):
            break
        chosen = kept
    return chosen


TINY = 1e-11
"""What all links are charged more, as a share of all prices."""


@dataclass(frozen=True, eq=False)
class Found:
    """A tree of every demand.

    Parameters
    ----------
    parents
        Of each demand, shape (vertices,) of its side.
    costs
        µs of each, bytes times prices, shape (demands,).
    bound
        Lower bound on R in µs; 0 where the trees are not known to be cheapest.
    """

    parents: list[Ints]
    costs: Floats
    bound: float


class Prices:
    """The paths of all sides at prices of rows.

    Parameters
    ----------
    task
        Of what.
    prices
        Of each row, shape (rows,).
    extra
        Further cost of a byte on each link, shape (links,), which no bound counts.
    """

    def __init__(self, task: Task, prices: Floats, *, extra: Floats | None = None) -> None:
        self.task, rows = task, task.rows
        charged = prices.copy()
        own = rows.speeds[: rows.links]
        charged[: rows.links] += TINY * max(prices.sum(), 1e-30) * own / own.sum()
        self.total = float(charged.sum())
        length = rows.fold.T @ (charged / rows.speeds)
        self.bounds = extra is None
        if extra is not None:
            length = length + extra
            length += TINY * length.max()
        self.sides: tuple[Priced, ...] = tuple(side.priced(length) for side in task.sides)

    def cheapest(self) -> Found:
        """Return the cheapest tree of each demand."""
        parents: list[Ints] = [np.empty(0)] * len(self.task.demands)
        exact = self.bounds
        for side, members, places, roots in self._alike():
            others = np.ones(len(side.costs), dtype=bool)
            others[members] = False
            found, sure = cheapest(side, members, roots=roots, optional=np.flatnonzero(others))
            exact = exact and sure
            for place, each in zip(places, found, strict=True):
                parents[place] = each
        return self._found(parents, exact=exact)

    def breadth(self) -> Found | None:
        """Return of each demand the cheapest tree of least depth; None if vertices may be left."""
        parents: list[Ints] = [np.empty(0)] * len(self.task.demands)
        for side, members, places, roots in self._alike():
            if len(members) < len(side.costs):
                return None
            for place, each in zip(places, side.breadth(roots), strict=True):
                parents[place] = each
        return self._found(parents, exact=False)

    def shallow(self, found: Found, share: float) -> Found | None:
        """Return trees that are less deep for `share` of what a path costs on average a hop.

        None where vertices may be left out.
        """
        parents = list(found.parents)
        for side, members, places, roots in self._alike():
            if len(members) < len(side.costs):
                return None
            trees = np.array([found.parents[place] for place in places])
            steps = share * side.cost(trees) / len(members)
            for place, each in zip(places, side.shallow(members, roots, steps=steps), strict=True):
                parents[place] = each
        return self._found(parents, exact=False)

    def _alike(self) -> Iterator[tuple[Priced, Ints, list[int], Ints]]:
        """Yield prices, members, places and roots of demands with the same members."""
        for members, places in self.task.alike:
            roots = np.array([self._root(place) for place in places])
            yield self.sides[self.task.demands[places[0]].side], members, places, roots

    def column(self, place: int, parents: Ints) -> Column:
        """Return the tree of a demand with its links."""
        side = self.sides[self.task.demands[place].side]
        return side.column(self._root(place), parents)

    def _root(self, place: int) -> int:
        demand = self.task.demands[place]
        return int(self.task.sides[demand.side].ranks[demand.root])

    def _found(self, parents: list[Ints], *, exact: bool) -> Found:
        task = self.task
        costs = np.empty(len(task.demands))
        for side, places in enumerate(task.of_side):
            costs[places] = self.sides[side].cost(np.array([parents[place] for place in places]))
        costs *= task.nbytes
        return Found(parents, costs, self.least(costs) / self.total if exact else 0.0)

    def least(self, costs: Floats) -> float:
        """Return what all demands cost together at least."""
        paired = self.task.paired
        alone = np.ones(len(costs), dtype=bool)
        alone[paired] = alone[paired + 1] = False
        pairs = costs[paired] + costs[paired + 1]
        return float(costs[alone].sum() + (pairs.min() if len(pairs) else 0.0))
