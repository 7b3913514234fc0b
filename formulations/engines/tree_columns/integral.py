"""Few trees of equal weight for every root, as whole chunks need when there are few of them.

The pool of column generation, and the images of its trees under automorphisms that keep their
root, are put into a small integer program. With y[T], how many of the k trees of a root are T:

    minimise R
    sum over T of c of y[T] = k                                          each demand c
    sum over T of y[T] / k bytes[c(T)] count[i, T] / rate[i] <= R        each row i
    y whole, >= 0

The halves of an all-reduce are demands, and their roots share the data equally. Where k trees of
the pool do not reach the best rate, trees that were never found might; what is proved is only the
rate that no number of trees exceeds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from ccl.symmetry import automorphisms
from formulations.engines.tree_columns.master import Pool, Units, Weights
from formulations.engines.tree_columns.price import Prices
from formulations.engines.tree_columns.search import Optimum
from formulations.engines.tree_columns.task import Column, Floats, Ints, Side
from formulations.solvers import cp
from formulations.solvers.cvxpy_highs import Backend, TerminationCondition

MOST = 1500
"""Most trees in the program."""

DRAWS, FEW = 40, 20
"""How often prices are drawn at most, and up to how many trees for each root."""

SEARCH, STARTS = 3.0, 40
"""Seconds for the search that the program begins with, and how often it begins anew at most."""

NORMS = (4, 16, 64)
"""Of the loads, which the search makes small one after the other."""

ENOUGH = 1e-6
"""Share by which R may stay above the least."""


@dataclass(frozen=True)
class Integral:
    """The best k trees of each root that are in the pool.

    Parameters
    ----------
    optimum
        The same pool with weights of whole numbers over k.
    ratio
        Its R over the R of any number of trees.
    best
        Whether no k trees of the pool have a smaller R.
    """

    optimum: Optimum
    ratio: float
    best: bool


def integral(
    found: Optimum, trees: int, *, backend: Backend | None = None, time_limit: float | None = None
) -> Integral:
    """Return the best equal weights for a number of trees per root.

    Parameters
    ----------
    found
        The best rate for any number of trees; its pool grows.
    trees
        k, 1 or more.
    backend
        The solver.
    time_limit
        Seconds for the integer program.
    """
    pool, task = found.pool, found.task
    _with_drawn(found)
    _with_images(pool)
    chosen = _chosen(found)
    share = Fraction(1, max(len(task.paired), 1))
    parts = np.array([1.0 if each.partner is None else float(share) for each in task.demands])
    demands = np.array(pool.demands)[chosen]
    loads = pool.busy(chosen.tolist()) * parts[demands] / (trees * float(found.time))
    many = cp.Variable(len(chosen), integer=True, bounds=[0, trees])
    time = cp.Variable(bounds=[1 - ENOUGH, None])
    sums: Any = sparse.coo_array(
        (np.ones(len(chosen)), (demands, np.arange(len(chosen)))),
        shape=(len(task.demands), len(chosen)),
    ).tocsr()
    rows: Any = sparse.csr_array(loads)
    given = np.full(len(task.demands), trees)
    model = cp.Problem(cp.Minimize(time), [sums @ many == given, rows @ many <= time])
    start = _searched(loads, demands, trees)
    if (loads @ start).max() <= 1 + ENOUGH:
        return _read(found, chosen, start, trees=trees, best=True)
    outcome = (backend or Backend()).solve(
        model, time_limit=time_limit, gap=ENOUGH, start=(many, start)
    )
    proved = outcome.ending in (TerminationCondition.OPTIMAL, TerminationCondition.GAP)
    return _read(found, chosen, np.asarray(many.value), trees=trees, best=proved)


def _read(found: Optimum, chosen: Ints, numbers: Floats, *, trees: int, best: bool) -> Integral:
    """Return how many trees of each kind there are as exact weights."""
    pool, task = found.pool, found.task
    share = Fraction(1, max(len(task.paired), 1))
    weights = {
        place: Fraction(round(float(number)), trees)
        * (1 if task.demands[pool.demands[place]].partner is None else share)
        for place, number in zip(chosen.tolist(), numbers.tolist(), strict=True)
        if round(float(number))
    }
    units = Units(pool)
    reached = units.loads(weights) * units.time
    optimum = replace(found, weights=Weights(weights, reached, basic=True))
    return Integral(optimum, float(reached / found.time), best)


def _searched(loads: Floats, demands: Ints, trees: int) -> Floats:
    """Return how many of each tree a search takes that changes one tree at a time.

    Each is replaced by the one for which a high norm of the loads is least, until none changes;
    the norm becomes higher, and it begins anew from several draws.
    """
    draw = np.random.default_rng(0)
    among = [np.flatnonzero(demands == demand) for demand in np.unique(demands)]
    best, least = np.zeros(loads.shape[1]), np.inf
    until = perf_counter() + SEARCH
    for _ in range(STARTS):
        if perf_counter() > until or least <= 1 + ENOUGH:
            break
        taken = [(kind, int(draw.choice(kind))) for kind in among for _ in range(trees)]
        for norm in NORMS:
            taken = _improved(loads, taken, norm=norm, until=until)
        number = np.bincount([tree for _, tree in taken], minlength=loads.shape[1]).astype(float)
        reached = float((loads @ number).max())
        if reached < least:
            best, least = number, reached
    return best


def _improved(
    loads: Floats, taken: list[tuple[Ints, int]], *, norm: int, until: float
) -> list[tuple[Ints, int]]:
    """Replace trees one by one until none should be."""
    total = loads[:, [tree for _, tree in taken]].sum(axis=1)
    changed = True
    while changed and perf_counter() < until:
        changed = False
        for slot, (kind, tree) in enumerate(taken):
            rest = total - loads[:, tree]
            scores = ((rest[:, None] + loads[:, kind]) ** norm).sum(axis=0)
            other = int(kind[scores.argmin()])
            if scores.min() < (total**norm).sum() * (1 - 1e-9):
                taken[slot], changed = (kind, other), True
                total = rest + loads[:, other]
    return taken


def _chosen(found: Optimum) -> Ints:
    """Return the places of the trees that carry something, then of those cheapest at the prices."""
    pool = found.pool
    # Trees that load the rows alike are one to the program.
    alike = {(demand, each.tobytes()): k for k, (demand, each) in _backwards(pool)}
    every = np.array(sorted(alike.values()))
    costs = found.prices @ pool.busy(every.tolist()) if len(found.prices) else np.zeros(len(every))
    carrying = np.isin(every, list(found.weights.shares))
    return np.sort(every[np.lexsort((every, costs, ~carrying))[:MOST]])


def _backwards(pool: Pool) -> list[tuple[int, tuple[int, Ints]]]:
    """Return the demands and counts of trees by their places, the first one last."""
    listed = list(enumerate(zip(pool.demands, pool.counts, strict=True)))
    return listed[::-1]


def _with_drawn(found: Optimum) -> None:
    """Add trees that are cheapest at prices drawn by chance, where few are known."""
    pool, task = found.pool, found.task
    draw = np.random.default_rng(0)
    for _ in range(DRAWS):
        if len(pool) > FEW * len(task.demands):
            return
        at = Prices(task, draw.random(len(task.rows.rates)))
        for place, parents in enumerate(at.cheapest().parents):
            pool.add(place, at.column(place, parents))


def _with_images(pool: Pool) -> None:
    """Add the images of trees under automorphisms that keep their roots, while they fit."""
    task = pool.task
    group = automorphisms(task.problem.topology)
    every = len(task.problem.topology.ranks) - 1
    for number, demand in enumerate(task.demands):
        if len(demand.others) < every:
            continue
        side = task.sides[demand.side]
        still = group.stabiliser(int(side.vertices[side.ranks[demand.root]]))
        place = 0
        while place < len(pool) and len(pool) < MOST:
            if pool.demands[place] == number:
                for devices, links in zip(still.generators, still.links, strict=True):
                    moved = _moved(side, pool.columns[place], devices=devices, links=links)
                    pool.add(number, moved)
            place += 1


def _moved(side: Side, column: Column, *, devices: Ints, links: Ints) -> Column:
    """Return the image of a tree."""
    place = np.full(len(side.topology.devices), -1)
    place[side.vertices] = np.arange(len(side.vertices))
    image = place[devices[side.vertices]]
    parents = np.full_like(column.parents, -1)
    reached = column.parents >= 0
    parents[image[reached]] = image[column.parents[reached]]
    before = np.argsort(image)
    lengths = np.diff(column.first)[before]
    parts = [links[column.links[column.first[v] : column.first[v + 1]]] for v in before.tolist()]
    flat = np.concatenate(parts).astype(column.links.dtype)
    return Column(column.root, parents, flat, np.concatenate([[0], np.cumsum(lengths)]))
