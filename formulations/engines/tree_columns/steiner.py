"""Cheapest trees that may pass vertices which need not be reached: memory, switches that copy.

Which of them a tree passes is a choice; once it is made, a cheapest out-tree over the others and
these is found as usual. Few are all tried, which is exact. Of many, those that a tree over all of
them has as leaves are left out, then one after the other is tried without and with: a good tree,
not always a cheapest one.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from formulations.engines.tree_columns.multicast import Floats, Ints, Priced

FEW = 8
"""Up to so many vertices all choices are tried."""


def cheapest(priced: Priced, members: Ints, *, roots: Ints, optional: Ints) -> tuple[Ints, bool]:
    """Return the parents of a tree of each root, shape (roots, vertices), and whether it is exact.

    Parameters
    ----------
    priced
        The cheapest ways.
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
