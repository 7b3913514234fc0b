"""Whether the trees of a forest take every shard where it must go, each share once."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from ccl.errors import ScheduleError
from ccl.forest import Forest, Tree
from ccl.problem import Problem
from ccl.topology import Topology
from ccl.verify.automorphisms import check_group, check_kept

Wanted = Mapping[int, frozenset[int]]
"""For each root the ranks that its trees must reach."""


def verify_forest(problem: Problem, forest: Forest) -> None:
    """Check weights, routes and reach of every tree.

    The chunks of a root take its trees in proportion of the weights: chunks that it alone holds,
    or in a reduction chunks of which it is the only destination. In an all-reduce all chunks
    together take the in-trees, and what a root has added up takes its out-trees. Chunks that are
    in place take none.

    Of a forest with a symmetry the representatives are checked, and that each generator leaves
    topology and collective as they are: so it brings a tree that reaches all that is wanted of its
    root to one that reaches all that is wanted of the image. Devices of a switch or memory kind
    may be on a tree without being wanted.

    Raises
    ------
    ScheduleError
        If the weights of a root do not add up to 1, a route is not a way, the routes are not a
        tree, a device on it lacks an ability, a rank is not reached, the out-trees of a root do
        not weigh what its in-trees do, or a generator is no automorphism.
    """
    topology = problem.topology
    if forest.symmetry is not None:
        check_group(topology, forest.symmetry)
    if forest.spread:
        _check_all_reduce(problem, forest)
        return
    wanted = _wanted(problem, forest)
    if forest.symmetry is not None:
        check_kept(problem, forest.symmetry, wanted=wanted)
    for tree in forest.trees:
        _check_tree(topology, tree, reduces=forest.reduces, wanted=_of_root(topology, tree, wanted))
    weights = _weights(topology, forest, forest.trees)
    for root in wanted:
        if weights[root] != 1:
            _refuse_weight(topology, root, weights[root])


def _check_all_reduce(problem: Problem, forest: Forest) -> None:
    """Check in-trees that take all data to the roots, and out-trees from there."""
    topology = problem.topology
    chunks = [each for each in problem.collective.chunks if not each.in_place]
    kinds = {(frozenset(each.holders), frozenset(each.destinations)) for each in chunks}
    alike = len(kinds) == 1 and all(each.reduced for each in chunks)
    if not (forest.reduces and alike):
        msg = (
            f"{problem.collective.kind} has chunks that are not all added up by the same ranks for "
            "the same ranks; in-trees with out-trees are for these alone"
        )
        raise ScheduleError(msg, where=topology.ranks[0])
    [(holders, destinations)] = kinds
    if forest.symmetry is not None:
        for ranks in (holders, destinations):
            check_kept(problem, forest.symmetry, wanted=dict.fromkeys(ranks, ranks))
    for trees, reduces, ranks in (
        (forest.trees, True, holders),
        (forest.spread, False, destinations),
    ):
        wanted = dict.fromkeys(range(len(topology.ranks)), ranks)
        for tree in trees:
            _check_tree(topology, tree, reduces=reduces, wanted=_of_root(topology, tree, wanted))
    added = _weights(topology, forest, forest.trees)
    spread = _weights(topology, forest, forest.spread)
    for root, name in enumerate(topology.ranks):
        if added[root] != spread[root]:
            msg = (
                f"the in-trees of root {root} ({name}) weigh {_shown(added[root])} and its "
                f"out-trees {_shown(spread[root])}; make them the same"
            )
            raise ScheduleError(msg, where=name)
    whole = sum(added, Fraction(0))
    if whole != 1:
        msg = f"the in-trees of all roots weigh {_shown(whole)} together; make it 1"
        raise ScheduleError(msg, where=topology.ranks[0])


def _wanted(problem: Problem, forest: Forest) -> dict[int, frozenset[int]]:
    ranks = problem.topology.ranks
    wanted: defaultdict[int, set[int]] = defaultdict(set)
    for number, chunk in enumerate(problem.collective.chunks):
        if chunk.in_place:
            continue
        ends, others = chunk.holders, chunk.destinations
        if forest.reduces:
            ends, others = others, ends
        if chunk.reduced != forest.reduces or len(ends) != 1:
            kind = "adds up to one root" if forest.reduces else "spreads from one root"
            msg = f"chunk {number} of {problem.collective.kind} is not one that {kind} over trees"
            raise ScheduleError(msg, where=ranks[ends[0]])
        # What a root has nobody brings it; what it adds to a sum counts.
        wanted[ends[0]].update(others if forest.reduces else {*others} - {*ends})
    return {root: frozenset(others) for root, others in wanted.items()}


def _of_root(topology: Topology, tree: Tree, wanted: Wanted) -> frozenset[str]:
    """Return the names of the devices that a tree must reach."""
    ranks = topology.ranks
    if tree.root not in wanted:
        where = ranks[tree.root] if 0 <= tree.root < len(ranks) else str(tree.root)
        msg = f"a tree has the root {tree.root}, which has no data; drop the tree"
        raise ScheduleError(msg, where=where)
    return frozenset([ranks[rank] for rank in wanted[tree.root]])


def _weights(topology: Topology, forest: Forest, trees: tuple[Tree, ...]) -> list[Fraction]:
    """Return what the trees of each rank weigh, those counted that are images."""
    weights = [Fraction(0)] * len(topology.ranks)
    for tree in trees:
        if forest.symmetry is None:
            weights[tree.root] += tree.weight
            continue
        times = np.bincount(forest.symmetry.ranks[:, tree.root], minlength=len(weights))
        for root in np.flatnonzero(times).tolist():
            weights[root] += tree.weight * int(times[root])
    return weights


def _refuse_weight(topology: Topology, root: int, weight: Fraction) -> None:
    name = topology.ranks[root]
    msg = f"the trees of root {root} ({name}) weigh {_shown(weight)} in all; make it 1"
    raise ScheduleError(msg, where=name)


def _shown(weight: Fraction) -> str:
    """Return a weight for a sentence; one of more digits than anybody reads is told roughly."""
    if max(weight.numerator, weight.denominator) < 10**12:
        return str(weight)
    return f"about {float(min(weight, Fraction(10**9))):.9g}"


def _check_tree(topology: Topology, tree: Tree, *, reduces: bool, wanted: frozenset[str]) -> None:
    """Refuse a tree that is none, or that does not reach all `wanted` devices."""
    root = topology.ranks[tree.root]
    uses = {root: int(root in wanted)}
    for route in reversed(tree.routes) if reduces else tree.routes:
        _check_route(topology, tree, route, reduces=reduces)
        parent, child = (route[-1], route[0]) if reduces else (route[0], route[-1])
        if parent not in uses:
            msg = f"a tree of root {tree.root} leaves {parent}, which it has not reached before"
            raise ScheduleError(msg, where=parent)
        if child in uses:
            msg = f"a tree of root {tree.root} reaches {child} twice; once is a tree"
            raise ScheduleError(msg, where=child)
        uses[child] = int(child in wanted)
        uses[parent] += 1
    for name, count in uses.items():
        device = topology.device(name)
        able, what = (device.reduces, "add") if reduces else (device.copies, "copy")
        if count > 1 and not able:
            msg = f"a tree of root {tree.root} makes {name} {what}, which it cannot"
            raise ScheduleError(msg, where=name)
    for name in sorted(wanted - uses.keys()):
        msg = f"a tree of root {tree.root} does not reach {name}; add a route to it"
        raise ScheduleError(msg, where=name)


def _check_route(topology: Topology, tree: Tree, route: tuple[str, ...], *, reduces: bool) -> None:
    """Refuse a route that is not a way from one device that may branch to the next.

    What has no rank and cannot add, or in out-trees not copy, is crossed whether it stores or not:
    each route over it brings data of its own.
    """
    for ends in itertools.pairwise(route):
        if ends not in topology.link_index:
            where = f"{ends[0]}->{ends[1]}"
            msg = f"a tree of root {tree.root} takes {where}, which is not a link of {topology}"
            raise ScheduleError(msg, where=where)
    inside = route[1:-1]
    for name in route:
        device = topology.device(name)
        passes = device.kind != "gpu" and not (device.reduces if reduces else device.copies)
        if device.stores == (name in inside) and not (passes and name in inside):
            what = "crosses" if name in inside else "ends at"
            msg = (
                f"a tree of root {tree.root} {what} {name} on the route {'->'.join(route)}; routes "
                "end at devices that store and cross only those that do not"
            )
            raise ScheduleError(msg, where=name)
