"""How many variables and rows fluid models have (`fluid_lp.plain`), uncompiled.

How many variables and rows the model of steps has: `fluid_lp.stepwise`, uncompiled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from ccl.problem import Problem
from formulations.core.registry import Anatomy
from formulations.engines.epoch_grid.windows import Need, by_hops
from formulations.engines.reverse_time import adding
from formulations.engines.steady_state import (
    FluidGraph,
    Group,
    demands_of,
    graph_of,
    in_steps,
    without_copies,
)

Copies = Literal["exact", "relaxed", "subsets"]

GROUPS = {
    "conservation": "what flows into a vertex for one destination flows out of it, or stays there",
    "usage": "what crosses an edge is as much as any flow that shares it",
    "switch": "as much leaves a switch that may not copy as enters it",
    "bandwidth": "what a link or a shared limit carries takes the whole time R at most",
    "shares": "what all roots add up is all the data",
    "time": "R is held at its least while the weighted data is minimised",
}
"""What the constraints say."""


def count_fluid(problem: Problem, *, copies: Copies, steps: int | None) -> Anatomy:
    """Count the program of `solve_plain` with in-trees that keep away from what cannot add."""
    topology = problem.topology
    sums = adding(problem).topology if problem.collective.reduces else topology
    bare = graph_of(topology), graph_of(sums.reversed())
    copying = tuple(without_copies(each) for each in bare) if copies == "exact" else bare
    demands, ranks = demands_of(problem), len(topology.ranks)
    free = [Group(o, tuple({*range(ranks)} - {o}), demands.free) for o in range(ranks)]
    free = free if demands.free else []
    rows = Counter({"bandwidth": len(bare[0].rates), "time": 1, "shares": bool(free)})
    variables = 1 + len(free)
    nonzeros = len(bare[0].rates) + 1 + len(free)
    for reduces, groups in enumerate((demands.spreads, demands.sums)):
        whole = copies == "subsets" and not demands.only_pairs
        for several, kind in _sides(groups, free, whole=whole):
            graph = bare[reduces] if kind == "pairs" else copying[reduces]
            graph = graph if steps is None else in_steps(graph, steps)
            side = _stream(graph, several) if kind == "pairs" else _spread(graph, several, copies)
            variables += side.variables
            nonzeros += side.nonzeros + (2 * len(several) * _each(several) * (kind == "free"))
            rows += Counter(side.rows)
    counts = {name: int(rows[name]) for name in GROUPS if rows[name]}
    return Anatomy(variables, nonzeros, counts)


def fewest_hops(problem: Problem) -> Need:
    """Return how many hops some data takes at least; sums for everybody choose their roots."""
    topology, demands = problem.topology, demands_of(problem)
    place = [topology.index[name] for name in topology.ranks]
    src, dst = topology.ends
    many = len(topology.devices)
    links = sparse.csr_array((np.ones(len(src)), (src, dst)), shape=(many, many))
    far = np.asarray(csgraph.shortest_path(links, unweighted=True))
    pairs = [(place[each.root], place[other]) for each in demands.spreads for other in each.others]
    pairs += [(place[other], place[each.root]) for each in demands.sums for other in each.others]
    found = by_hops(far, pairs, topology) if pairs else Need(1, "")
    if not demands.free:
        return found
    # Whichever rank adds up, all must come to it, and get to all from it.
    own = far[np.ix_(place, place)]
    reach = np.maximum(own.max(axis=0), own.max(axis=1))
    root = int(reach.argmin())
    why = f"hops between {topology.ranks[root]}, in the middle, and what is farthest from it"
    return max(found, Need(int(reach[root]), why), key=lambda each: each.many)


def _sides(
    groups: Sequence[Group], free: Sequence[Group], *, whole: bool
) -> Iterator[tuple[list[Group], str]]:
    """Yield the groups of each side, and whether they are trees, pairs or of free roots."""
    several = [each for each in groups if whole or len(each.others) > 1]
    pairs = [each for each in groups if not whole and len(each.others) == 1]
    for found, kind in ((several, "trees"), (pairs, "pairs"), (list(free), "free")):
        if found:
            yield found, kind


def _each(groups: Sequence[Group]) -> int:
    return len(groups[0].others)


def _spread(graph: FluidGraph, groups: Sequence[Group], copies: Copies) -> Anatomy:
    """Count a side whose data is copied on the way."""
    if copies == "subsets":
        return _labelled(graph, groups)
    many = sum(len(each.others) for each in groups)
    variables = graph.edges * (len(groups) + many)
    rows = {"conservation": graph.vertices * many, "usage": graph.edges * many}
    nonzeros = 2 * graph.edges * many + 2 * graph.edges * many
    if copies == "relaxed":
        held = graph.incidence[np.flatnonzero(~graph.copies)]
        rows["switch"] = held.shape[0] * len(groups)
        nonzeros += held.nnz * len(groups)
    return Anatomy(variables, nonzeros + graph.rows.nnz * len(groups), rows)


def _labelled(graph: FluidGraph, groups: Sequence[Group]) -> Anatomy:
    """Count a side with a label for each set of destinations (`fluid_lp.subsets`)."""
    labels = splits = 0
    for each in groups:
        many = len(each.others)
        labels += 2**many - 1
        splits += (3**many - 2 ** (many + 1) + 1) // 2
    copying = int(graph.copies.sum())
    variables = graph.edges * (labels + len(groups)) + copying * splits
    rows = {"conservation": graph.vertices * labels, "usage": graph.edges * len(groups)}
    nonzeros = 2 * graph.edges * labels + graph.edges * (labels + len(groups))
    nonzeros += 3 * copying * splits
    return Anatomy(variables, nonzeros + graph.rows.nnz * len(groups), rows)


def _stream(graph: FluidGraph, groups: Sequence[Group]) -> Anatomy:
    """Count a side of pairs, which flow together by their roots."""
    roots = len({each.root for each in groups})
    rows = {"conservation": graph.vertices * roots}
    nonzeros = (2 * graph.edges + graph.rows.nnz) * roots
    return Anatomy(graph.edges * roots, nonzeros, rows)


STEP_GROUPS = {
    "conservation": "what flows into a vertex for one destination flows out of it, or stays there",
    "usage": "a chunk crosses an edge if any flow of it does",
    "room": "what a link or a shared limit carries in a step fits into it",
    "switch": "a chunk leaves what may neither copy nor store once",
}
"""What the constraints say."""


def count_steps(problem: Problem, steps: int) -> Anatomy:
    """Count the model of so many steps."""
    graph = in_steps(without_copies(graph_of(problem.topology)), steps)
    chunks = problem.collective.chunks
    pairs = sum(len({*each.destinations} - {*each.holders}) for each in chunks)
    carrying = np.flatnonzero(graph.link >= 0)
    stores = np.array([each.stores for each in graph.topology.devices])[graph.device]
    held = ~graph.copies & ~stores
    leaving = int(held[graph.src[carrying]].sum())
    rows = {
        "conservation": graph.vertices * pairs,
        "usage": len(carrying) * pairs,
        "room": steps * graph.rows.shape[0],
        "switch": int(held.sum()) * len(chunks),
    }
    variables = len(carrying) * len(chunks) + graph.edges * pairs
    nonzeros = 2 * graph.edges * pairs + 2 * len(carrying) * pairs
    nonzeros += (graph.rows.nnz + leaving) * len(chunks)
    return Anatomy(variables, nonzeros, rows)
