"""Dantzig-Wolfe decompositions as formulations, and verified forests of fluid solutions.

What the two decompositions share are options, refusals and the run (`solve_by_columns`).

Forests have the trees of every root, with exact weights. A problem that is one forest has a single
group for each root, all spread or all added up, or is a sum for everybody, whose in-trees and
out-trees of a root carry its share.

`forest_of` makes one from the columns of a decomposition. Where every w of a column in use is 0 or
1, it holds an arborescence from its origin: the tree of the column, with weight lambda as a
fraction. The other origins of a class have its images. A fractional w is a combination of trees
only where nothing relays, and is not taken apart here.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from ccl.bound import Bound
from ccl.errors import LimitReached
from ccl.plans import Forest, Tree
from ccl.problem import Problem
from ccl.result import ModelSize, Result, Stop
from ccl.topology import Topology
from formulations.core.refusals import no_crumbs, no_stores
from formulations.core.registry import Formulation, ModelEstimate
from formulations.core.run import Run
from formulations.engines.fluid_lp.arborescences import fractions
from formulations.engines.fluid_lp.dantzig_wolfe import (
    Column,
    Decomposition,
    OriginClass,
    decompose,
)
from formulations.engines.fluid_lp.plain import COST_ROW, CostKind, link_costs
from formulations.engines.reverse_time import adding, irreversible
from formulations.engines.steady_state import (
    Demands,
    Vertex,
    breadth_first,
    demands_of,
    graph_of,
    refusal,
    without_copies,
)


def no_forest(demands: Demands) -> str | None:
    """Explain why one forest cannot carry the demands, or None."""
    if bool(demands.spreads) + bool(demands.sums) + bool(demands.free) > 1:
        return "some chunks are added up and others are not, which no forest does at once"
    if demands.free:
        return None
    groups = (*demands.spreads, *demands.sums)
    if len({each.root for each in groups}) < len(groups):
        return "chunks of one rank have different destinations, and its trees carry all data to all"
    return None


def all_reduce_forest(
    trees: tuple[Tree, ...], spread: tuple[Tree, ...], shares: list[Fraction]
) -> Forest:
    """Return the forest of an all-reduce.

    Parameters
    ----------
    trees, spread
        In-trees and out-trees, whose weights add up to 1 for each root that has a share.
    shares
        What each rank adds up of all data, 1 in all.
    """

    def weighed(some: tuple[Tree, ...]) -> tuple[Tree, ...]:
        kept = (each for each in some if shares[each.root])
        return tuple(replace(each, weight=each.weight * shares[each.root]) for each in kept)

    return Forest(weighed(trees), reduces=True, spread=weighed(spread))


def nearest_forest(problem: Problem) -> Forest:
    """Return a forest of the fewest hops: a first plan, which proves nothing.

    Raises
    ------
    ProblemError
        If sums would have to lie in a memory.
    """
    demands = demands_of(problem)
    sums = adding(problem).topology if problem.collective.reduces else problem.topology
    whole = Fraction(1)
    if demands.free:
        ranks = range(len(problem.topology.ranks))
        every = tuple(ranks)
        inward = tuple(_nearest(sums, root, every, whole, reduces=True) for root in ranks)
        outward = tuple(
            _nearest(problem.topology, root, every, whole, reduces=False) for root in ranks
        )
        return all_reduce_forest(inward, outward, [Fraction(1, len(every))] * len(every))
    reduces = bool(demands.sums)
    topology = sums if reduces else problem.topology
    groups = demands.sums or demands.spreads
    trees = (_nearest(topology, g.root, g.others, whole, reduces=reduces) for g in groups)
    return Forest(tuple(trees), reduces=reduces)


def _nearest(
    topology: Topology, root: int, others: tuple[int, ...], weight: Fraction, *, reduces: bool
) -> Tree:
    """Return a tree of shortest paths; switches are crossed, what stores is where paths meet."""
    around = topology.reversed() if reduces else topology
    start = around.ranks[root]
    came = breadth_first(start, lambda name: [link.dst for link in around.links_out[name]])
    goals = [around.ranks[rank] for rank in others]
    routes = _between_meets(came, goals, lambda name: around.device(name).stores)
    paths = [tuple(route) for route in routes]
    if reduces:
        paths = [path[::-1] for path in reversed(paths)]
    return Tree(root, tuple(paths), weight)


def carried_shares(shares: np.ndarray) -> list[float]:
    """Return the shares of ranks of which more than rounding is left."""
    return [each if each > 1e-7 * shares.sum() else 0.0 for each in shares.tolist()]


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
    run.merit = steady_time
    run.offer(nearest_forest(problem), message="a forest of the fewest hops")
    per_link = None if costs == "none" else link_costs(problem.topology, costs)
    try:
        found = decompose(
            problem,
            mirrored=mirrored,
            costs=per_link,
            backend=run.backend,
            left=lambda: 0.0 if run.over() else run.remaining,
        )
    except LimitReached:
        run.note("time ran out before the prices were settled")
        return run.finish(Stop.TIME_LIMIT)
    _prove(run, found)
    forest = forest_of(problem, found)
    if forest is None:
        run.note("a subproblem's usage is no tree: switches relay; use orbit-trees for a plan")
    else:
        run.offer(forest, message="a forest of the best rate")
    return run.finish(Stop.MODEL_OPTIMAL)


def steady_time(result: Result) -> float:
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
    run.prove([proved])


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
    came = breadth_first(start, lambda vertex: ahead.get(vertex, ()))
    meets = [each.stores and each.copies for each in graph.topology.devices]
    goals = graph.goals[np.flatnonzero(load.shares(owner.item, len(graph.origins)))].tolist()
    routes = _between_meets(came, goals, lambda vertex: meets[graph.device[vertex]])
    return [graph.device[route].tolist() for route in routes]


def _between_meets(
    came: dict[Vertex, Vertex], goals: Iterable[Vertex], meets: Callable[[Vertex], bool]
) -> list[list[Vertex]]:
    """Return the paths of a tree that lead to goals, cut where data meets, parents first."""
    start = next(iter(came))
    routes: dict[Vertex, list[Vertex]] = {}
    for goal in goals:
        vertex = goal
        while vertex != start and vertex not in routes:
            path = [vertex, came[vertex]]
            while not meets(path[-1]):
                path.append(came[path[-1]])
            routes[vertex] = path[::-1]
            vertex = path[-1]
    return [routes[each] for each in came if each in routes]


def _images(
    problem: Problem, owner: OriginClass, *, routes: list[list[int]], weight: Fraction
) -> list[Tree]:
    """Return the tree of each origin of a class."""
    names = [each.name for each in problem.topology.devices]
    trees = []
    for rank, element in zip(owner.ranks.tolist(), owner.devices.tolist(), strict=True):
        paths = [tuple(names[element[each]] for each in path) for path in routes]
        if owner.load.turned:
            paths = [path[::-1] for path in reversed(paths)]
        trees.append(Tree(rank, tuple(paths), weight))
    return trees


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is wanted beside the best rate."""

    costs: CostKind = field(default="gpus", metadata=COST_ROW)


GROUPS = {
    "conservation": "what flows into a vertex for one destination flows out of it, or stays there",
    "usage": "what crosses an edge is as much as any flow that shares it",
}
"""What the constraints of a subproblem say."""


def estimate(problem: Problem, options: Options) -> ModelEstimate:
    """Count the first subproblem; the master has a row for each link and each subproblem."""
    del options
    demands = demands_of(problem)
    group = (*demands.spreads, *demands.sums)[0]
    topology = problem.topology if demands.spreads else problem.topology.reversed()
    graph = without_copies(graph_of(topology))
    goals = len(group.others)
    rows = {"conservation": graph.vertices * goals, "usage": graph.edges * goals}
    note = "each of its subproblems, solved again and again; the master's columns come of them"
    return ModelEstimate(graph.edges * (1 + goals), 4 * graph.edges * goals, rows, note)


def decomposed(
    name: str, title: str, *, reference: str, mirrored: bool, mathematics: str
) -> Formulation:
    """Return the decomposition per origin, or mirrored per class of origins."""

    def run(run: Run, options: Options) -> Result:
        """Decompose, and offer the forest of the columns."""
        return solve_by_columns(run, options.costs, mirrored=mirrored)

    return Formulation(
        name=name,
        title=title,
        reference=reference,
        collectives=frozenset({"all-gather", "reduce-scatter", "broadcast", "reduce", "custom"}),
        options=Options,
        refuses=_refuses,
        run=run,
        model="columns",
        estimate=estimate,
        groups=GROUPS,
        whole_chunks=False,
        mathematics=mathematics,
    )


def _refuses(problem: Problem) -> str | None:
    """Leave what no forest says to others."""
    reason = no_stores(problem) or irreversible(problem) or no_crumbs(problem) or refusal(problem)
    if reason is not None:
        return reason
    demands = demands_of(problem)
    if demands.free:
        return "a sum for everybody has no origin of its own: use thesis-fluid or orbit-trees"
    if any(len(each.others) == 1 for each in (*demands.spreads, *demands.sums)):
        return "some data goes from one rank to one other, which takes no tree: use orbit-lp"
    return no_forest(demands)
