"""Whether the trees of a forest take every shard where it must go, each share once."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction

from ccl.errors import ScheduleError
from ccl.forest import Forest, Tree
from ccl.problem import Problem
from ccl.topology import Topology


def verify_forest(problem: Problem, forest: Forest) -> None:
    """Check weights, routes and reach of every tree.

    The chunks of a root take its trees in proportion of the weights: chunks that it alone holds,
    or in a reduction chunks of which it is the only destination.

    Raises
    ------
    ScheduleError
        If the weights of a root do not add up to 1, a route is not a way, the routes are not a
        tree, a device on it lacks an ability, or a rank is not reached.
    """
    wanted = _wanted(problem, forest)
    ranks = problem.topology.ranks
    shares: defaultdict[int, Fraction] = defaultdict(Fraction)
    for tree in forest.trees:
        if tree.root not in wanted:
            where = ranks[tree.root] if 0 <= tree.root < len(ranks) else str(tree.root)
            msg = f"a tree has the root {tree.root}, which has no data; drop the tree"
            raise ScheduleError(msg, where=where)
        shares[tree.root] += tree.weight
        _check_tree(problem.topology, tree, reduces=forest.reduces, wanted=wanted[tree.root])
    for root in wanted:
        if shares[root] != 1:
            msg = f"the trees of root {root} ({ranks[root]}) weigh {shares[root]} in all; make it 1"
            raise ScheduleError(msg, where=ranks[root])


def _wanted(problem: Problem, forest: Forest) -> dict[int, set[str]]:
    """Return for each root the devices that its trees must reach."""
    ranks = problem.topology.ranks
    wanted: defaultdict[int, set[str]] = defaultdict(set)
    for number, chunk in enumerate(problem.collective.chunks):
        ends, others = chunk.holders, chunk.destinations
        if forest.reduces:
            ends, others = others, ends
        if chunk.reduced != forest.reduces or len(ends) != 1:
            kind = "adds up to one root" if forest.reduces else "spreads from one root"
            msg = f"chunk {number} of {problem.collective.kind} is not one that {kind} over trees"
            raise ScheduleError(msg, where=ranks[ends[0]])
        wanted[ends[0]].update(ranks[rank] for rank in others)
    return wanted


def _check_tree(topology: Topology, tree: Tree, *, reduces: bool, wanted: set[str]) -> None:
    """Refuse a tree that is none, or that does not reach all `wanted` devices."""
    root = topology.ranks[tree.root]
    uses = {root: int(root in wanted)}
    for route in reversed(tree.routes) if reduces else tree.routes:
        _check_route(topology, tree, route)
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


def _check_route(topology: Topology, tree: Tree, route: tuple[str, ...]) -> None:
    """Refuse a route that is not a way from one storing device to the next."""
    for ends in itertools.pairwise(route):
        if ends not in topology.link_index:
            where = f"{ends[0]}->{ends[1]}"
            msg = f"a tree of root {tree.root} takes {where}, which is not a link of {topology}"
            raise ScheduleError(msg, where=where)
    inside = route[1:-1]
    for name in route:
        if topology.device(name).stores == (name in inside):
            what = "crosses" if name in inside else "ends at"
            msg = (
                f"a tree of root {tree.root} {what} {name} on the route {'->'.join(route)}; routes "
                "end at devices that store and cross only those that do not"
            )
            raise ScheduleError(msg, where=name)
