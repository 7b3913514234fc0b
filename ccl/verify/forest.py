"""Verification of a forest or a flow, and of the symmetry that a forest claims.

`verify_forest`: its trees take every shard where it must go, each share once. `verify_flow`: it
takes every chunk from its holder to its destination. `check_group` and `check_preserved`: a group
really is one, of permutations that leave topology and collective as they are.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np

from ccl.errors import ScheduleError
from ccl.plans import Flow, Forest, Tree
from ccl.problem import Problem
from ccl.symmetry import Symmetry
from ccl.topology import Topology
from ccl.verify.order import TOLERANCE


def check_group(topology: Topology, symmetry: Symmetry) -> None:
    """Check that the elements are the products of generators, and these automorphisms.

    Then every element is one. What must stay: the abilities and kinds of devices, bandwidth and
    latency of links, limits with their links.

    Raises
    ------
    ScheduleError
        If one of this fails, or an element leaves a GPU in its place.
    """
    devices = symmetry.devices
    many = len(topology.devices)
    if devices.ndim != 2 or devices.shape[1:] != (many,) or symmetry.topology != topology:
        _refuse(topology, "is one of another topology; make the forest anew")
    identity = np.arange(many)
    elements = identity[None, :]
    for place, power in zip(symmetry.generators, symmetry.powers, strict=True):
        generator = devices[min(place, len(devices) - 1)]
        if (np.sort(generator) != identity).any():
            _refuse(topology, f"has a generator, element {place}, that is no permutation")
        _check_automorphism(topology, generator)
        blocks = [elements]
        for _ in range(power - 1):
            blocks.append(generator[blocks[-1]])
        elements = np.concatenate(blocks)
    if not np.array_equal(devices, elements):
        _refuse(topology, "has elements that are not the products of its generators")
    gpus = [topology.index[name] for name in topology.ranks]
    still = (devices[1:, gpus] == gpus).any(axis=0)
    if still.any():
        name = topology.ranks[int(still.argmax())]
        _refuse(topology, f"leaves {name} in its place", where=name)


def check_preserved(
    problem: Problem, symmetry: Symmetry, *, wanted: Mapping[int, frozenset[int]]
) -> None:
    """Check that each generator brings a root with its data to one that has the same for others.

    Parameters
    ----------
    problem
        Whose chunks are looked at.
    symmetry
        A group that `check_group` accepts.
    wanted
        For each root the ranks that its data goes to, or comes from.

    Raises
    ------
    ScheduleError
        If a generator does not keep the collective.
    """
    many = len(problem.topology.ranks)
    table = np.zeros((many, many), dtype=bool)
    for root, ranks in wanted.items():
        table[root, list(ranks)] = True
    data = _data(problem)
    for place in symmetry.generators:
        image = symmetry.ranks[place]
        moved = table[np.ix_(image, image)]
        for root in range(many):
            same = data[root] == data[int(image[root])]
            if not same or (table[root] != moved[root]).any():
                name = problem.topology.ranks[root]
                what = f"brings {name} to {problem.topology.ranks[image[root]]}, "
                _refuse(problem.topology, what + "whose data is not the same", where=name)


def _data(problem: Problem) -> list[Counter[tuple[float, float, str]]]:
    """Return size, priority and tenant of the chunks of each rank: it alone sends or gets them."""
    found: defaultdict[int, Counter[tuple[float, float, str]]] = defaultdict(Counter)
    for chunk in problem.collective.chunks:
        if chunk.in_place:
            continue
        ends, others = chunk.holders, chunk.destinations
        if chunk.reduced:
            ends, others = others, ends
        for each in (set(ends), set(others) - set(ends)):
            if len(each) == 1:
                found[each.pop()][chunk.size, chunk.priority, chunk.tenant] += 1
    return [found[rank] for rank in range(len(problem.topology.ranks))]


def _check_automorphism(topology: Topology, image: np.ndarray) -> None:
    devices, links = topology.devices, topology.links
    to = {
        each.name: devices[place].name for each, place in zip(devices, image.tolist(), strict=True)
    }
    for each in devices:
        other = topology.device(to[each.name])
        if _abilities(each) != _abilities(other):
            _refuse(topology, f"brings {each.name} to {other.name}, which is not alike")
    for link in links:
        ends = to[link.src], to[link.dst]
        place = topology.link_index.get(ends)
        if place is None:
            _refuse(topology, f"brings {link} to {ends[0]}->{ends[1]}, which is no link")
        elif (links[place].bandwidth, links[place].alpha) != (link.bandwidth, link.alpha):
            _refuse(topology, f"brings {link} to {links[place]}, which is not as fast")
    if Counter(_limits(topology, to)) != Counter(_limits(topology, {name: name for name in to})):
        _refuse(topology, "does not keep the shared limits")


def _abilities(device: object) -> tuple[object, ...]:
    names = ("kind", "stores", "copies", "reduces", "buffer_bytes")
    return tuple(getattr(device, name) for name in names)


def _limits(
    topology: Topology, to: Mapping[str, str]
) -> Iterator[tuple[float, frozenset[tuple[str, str]]]]:
    for limit in topology.limits:
        yield limit.bandwidth, frozenset((to[src], to[dst]) for src, dst in limit.links)


def _refuse(topology: Topology, what: str, *, where: str | None = None) -> None:
    raise ScheduleError(f"the symmetry of a forest {what}", where=where or topology.name)


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
        If the weights of a root do not add up to 1, a route is not a path, the routes are not a
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
        check_preserved(problem, forest.symmetry, wanted=wanted)
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
        raise ScheduleError(
            f"{problem.collective.kind} has chunks that are not all added up by the same ranks for "
            "the same ranks; in-trees with out-trees are for these alone",
            where=topology.ranks[0],
        )
    [(holders, destinations)] = kinds
    if forest.symmetry is not None:
        for ranks in (holders, destinations):
            check_preserved(problem, forest.symmetry, wanted=dict.fromkeys(ranks, ranks))
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
            raise ScheduleError(
                f"the in-trees of root {root} ({name}) weigh {_shown(added[root])} and its "
                f"out-trees {_shown(spread[root])}; make them the same",
                where=name,
            )
    whole = sum(added, Fraction(0))
    if whole != 1:
        raise ScheduleError(
            f"the in-trees of all roots weigh {_shown(whole)} together; make it 1",
            where=topology.ranks[0],
        )


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
            raise ScheduleError(
                f"chunk {number} of {problem.collective.kind} is not one that {kind} over trees",
                where=ranks[ends[0]],
            )
        # What a root has nobody brings it; what it adds to a sum counts.
        wanted[ends[0]].update(others if forest.reduces else {*others} - {*ends})
    return {root: frozenset(others) for root, others in wanted.items()}


def _of_root(topology: Topology, tree: Tree, wanted: Wanted) -> frozenset[str]:
    """Return the names of the devices that a tree must reach."""
    ranks = topology.ranks
    if tree.root not in wanted:
        where = ranks[tree.root] if 0 <= tree.root < len(ranks) else str(tree.root)
        raise ScheduleError(
            f"a tree has the root {tree.root}, which has no data; drop the tree", where=where
        )
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
    raise ScheduleError(
        f"the trees of root {root} ({name}) weigh {_shown(weight)} in all; make it 1", where=name
    )


def _shown(weight: Fraction) -> str:
    """Return a weight for a sentence; one of more digits than anybody reads is rounded."""
    if max(weight.numerator, weight.denominator) < 10**12:
        return str(weight)
    return f"about {float(min(weight, Fraction(10**9))):.9g}"


def _check_tree(topology: Topology, tree: Tree, *, reduces: bool, wanted: frozenset[str]) -> None:
    """Refuse what is not a tree, or that does not reach all `wanted` devices."""
    root = topology.ranks[tree.root]
    uses = {root: int(root in wanted)}
    for route in reversed(tree.routes) if reduces else tree.routes:
        _check_route(topology, tree, route, reduces=reduces)
        parent, child = (route[-1], route[0]) if reduces else (route[0], route[-1])
        if parent not in uses:
            raise ScheduleError(
                f"a tree of root {tree.root} leaves {parent}, which it has not reached before",
                where=parent,
            )
        if child in uses:
            raise ScheduleError(
                f"a tree of root {tree.root} reaches {child} twice; once is a tree", where=child
            )
        uses[child] = int(child in wanted)
        uses[parent] += 1
    for name, count in uses.items():
        device = topology.device(name)
        able, what = (device.reduces, "add") if reduces else (device.copies, "copy")
        if count > 1 and not able:
            raise ScheduleError(
                f"a tree of root {tree.root} makes {name} {what}, which it cannot", where=name
            )
    for name in sorted(wanted - uses.keys()):
        raise ScheduleError(
            f"a tree of root {tree.root} does not reach {name}; add a route to it", where=name
        )


def _check_route(topology: Topology, tree: Tree, route: tuple[str, ...], *, reduces: bool) -> None:
    """Refuse a route that is not a path from one device that may branch to the next.

    What has no rank and cannot add, or in out-trees not copy, is crossed whether it stores or not:
    each route over it brings data of its own.
    """
    for ends in itertools.pairwise(route):
        if ends not in topology.link_index:
            where = f"{ends[0]}->{ends[1]}"
            raise ScheduleError(
                f"a tree of root {tree.root} takes {where}, which is not a link of {topology}",
                where=where,
            )
    inside = route[1:-1]
    for name in route:
        device = topology.device(name)
        passes = device.kind != "gpu" and not (device.reduces if reduces else device.copies)
        if device.stores == (name in inside) and not (passes and name in inside):
            what = "crosses" if name in inside else "ends at"
            raise ScheduleError(
                f"a tree of root {tree.root} {what} {name} on the route {'->'.join(route)}; routes "
                "end at devices that store and cross only those that do not",
                where=name,
            )


def verify_flow(problem: Problem, flow: Flow) -> None:
    """Check that of each chunk one unit leaves its holder and as much leaves a device as enters.

    Raises
    ------
    ScheduleError
        If a link does not exist, a chunk cannot flow, or conservation fails at a device.
    """
    topology, chunks = problem.topology, problem.collective.chunks
    balance: defaultdict[tuple[int, str], float] = defaultdict(float)
    for rate in flow.rates:
        if not 0 <= rate.chunk < len(chunks):
            raise ScheduleError(
                f"there is no chunk {rate.chunk}; they go from 0 to {len(chunks) - 1}",
                where=rate.src,
            )
        if (rate.src, rate.dst) not in topology.link_index:
            where = f"{rate.src}->{rate.dst}"
            raise ScheduleError(
                f"chunk {rate.chunk} takes {where}, which is not a link of {topology}", where=where
            )
        balance[rate.chunk, rate.src] -= rate.amount
        balance[rate.chunk, rate.dst] += rate.amount
    for number, chunk in enumerate(chunks):
        if chunk.in_place:
            continue
        holder, destination = (
            topology.ranks[chunk.holders[0]],
            topology.ranks[chunk.destinations[0]],
        )
        if chunk.reduced or len(chunk.holders) > 1 or len(chunk.destinations) > 1:
            raise ScheduleError(
                f"chunk {number} has several ends and cannot be a flow; use a schedule or forest",
                where=holder,
            )
        balance[number, holder] += 1
        balance[number, destination] -= 1
    for (number, device), surplus in sorted(balance.items()):
        if abs(surplus) > TOLERANCE:
            what = "stays in" if surplus > 0 else "is missing in"
            raise ScheduleError(
                f"{abs(surplus):g} of chunk {number} {what} {device}; as much must leave as enters",
                where=device,
            )
