"""From the columns of a Dantzig-Wolfe decomposition to a verified forest.

Where every w of a column in use is 0 or 1, it holds an arborescence from its origin: the tree of
the column, with weight lambda as a fraction. The other origins of a class have its images. A
fractional w is a combination of trees only where nothing relays, and is not taken apart here.
"""

from __future__ import annotations

from collections import deque
from fractions import Fraction

import numpy as np

from ccl.bound import Bound
from ccl.errors import LimitReached
from ccl.forest import Forest, Tree
from ccl.problem import Problem
from ccl.result import ModelSize, Result, Stop
from formulations.core.run import Run
from formulations.engines.fluid_lp.arborescences import fractions
from formulations.engines.fluid_lp.costs import CostKind, link_costs
from formulations.engines.fluid_lp.dantzig_wolfe import (
    Column,
    Decomposition,
    OriginClass,
    decompose,
)
from formulations.engines.fluid_lp.forests import nearest_forest

MARGIN = 1e-9
"""Share by which the bound is lowered, for the rounding of a solver that works in floats."""

USED = 1e-7
"""Columns with a smaller share are not used."""

ROUNDING = 1e-6
"""How far from 0 and 1 a usage may be that counts as whole."""


def solve_by_columns(run: Run, costs: CostKind, *, mirrored: bool) -> Result:
    """Decompose the run's problem and offer its forest.

    Raises
    ------
    LimitReached
        If no plan was found in time.
    """
    problem = run.problem
    run.merit = _rate
    run.offer(nearest_forest(problem), message="a forest of the fewest hops")
    per_link = None if costs == "none" else link_costs(problem.topology, costs)
    try:
        found = decompose(
            problem,
            mirrored=mirrored,
            costs=per_link,
            backend=run.backend,
            stop=lambda: run.expired,
        )
    except LimitReached:
        run.note("time ran out between two rounds of pricing")
        return run.finish(Stop.TIME_LIMIT)
    _prove(run, found)
    forest = forest_of(problem, found)
    if forest is None:
        run.note("a subproblem's usage is no tree: switches relay; use orbit-trees for a plan")
    else:
        run.offer(forest, message="a forest of the best rate")
    return run.finish(Stop.MODEL_OPTIMAL)


def _rate(result: Result) -> float:
    """Return the µs of the steady state, which is what the master makes least."""
    steady = result.steady_makespan
    assert steady is not None
    return steady


def _prove(run: Run, found: Decomposition) -> None:
    run.met(ModelSize(len(found.columns) + 1, len(found.classes[0].graph.rates), 0))
    run.note(
        f"{len(found.classes)} subproblems for {sum(len(each.ranks) for each in found.classes)} "
        f"origins, {found.iterations} rounds of pricing, {len(found.columns)} columns"
    )
    words = "Dantzig-Wolfe: what the subproblems cost at the master's prices"
    proved = Bound(found.bound * (1 - MARGIN), "flow", None, words, steady=True)
    run.bounds = tuple(sorted((*run.bounds, proved), key=lambda each: -each.makespan))


def forest_of(problem: Problem, found: Decomposition) -> Forest | None:
    """Return the forest of the columns in use, or None where one is no tree.

    Parameters
    ----------
    problem
        With data of one kind: all spread, or all added up.
    found
        Its decomposition.
    """
    trees: list[Tree] = []
    for number, each in enumerate(found.classes):
        used = [
            (column, share)
            for column, share in zip(found.columns, found.shares.tolist(), strict=True)
            if column.owner == number and share > USED
        ]
        weights = fractions([share for _, share in used])
        for (column, _), weight in zip(used, weights, strict=True):
            routes = routes_of(column, each)
            if routes is None:
                return None
            if weight:  # a share may be less than rounding
                trees += _images(problem, each, routes=routes, weight=weight)
    return Forest(tuple(trees), reduces=found.classes[0].load.turned)


def routes_of(column: Column, owner: OriginClass) -> list[list[int]] | None:
    """Return the tree of a column, parents first, as devices between those that copy and store.

    The tree that is nearest to the origin is taken, so what a free edge carries for nothing is
    left out. None if the usage is not whole.
    """
    if (np.abs(column.usage - np.round(column.usage)) > ROUNDING).any():
        return None
    graph, load = owner.graph, owner.load
    ahead: dict[int, list[int]] = {}
    for edge in np.flatnonzero(column.usage > 0.5).tolist():
        ahead.setdefault(int(graph.src[edge]), []).append(int(graph.dst[edge]))
    start = int(graph.origins[load.roots[owner.item]])
    came, queue = {start: start}, deque([start])
    order = []
    while queue:
        order.append(queue.popleft())
        for each in ahead.get(order[-1], ()):
            if each not in came:
                came[each] = order[-1]
                queue.append(each)
    meets = [each.stores and each.copies for each in graph.topology.devices]
    routes: dict[int, list[int]] = {}
    for rank in np.flatnonzero(load.shares(owner.item, len(graph.origins))):
        vertex = int(graph.goals[rank])
        while vertex != start and vertex not in routes:
            way = [vertex, came[vertex]]
            while not meets[graph.device[way[-1]]]:
                way.append(came[way[-1]])
            routes[vertex] = way[::-1]
            vertex = way[-1]
    return [graph.device[routes[each]].tolist() for each in order if each in routes]


def _images(
    problem: Problem, owner: OriginClass, *, routes: list[list[int]], weight: Fraction
) -> list[Tree]:
    """Return the tree of each origin of a class."""
    names = [each.name for each in problem.topology.devices]
    trees = []
    for rank, element in zip(owner.ranks.tolist(), owner.devices.tolist(), strict=True):
        ways = [tuple(names[element[each]] for each in way) for way in routes]
        if owner.load.turned:
            ways = [way[::-1] for way in reversed(ways)]
        trees.append(Tree(rank, tuple(ways), weight))
    return trees
