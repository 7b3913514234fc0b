"""Trees and paths out of fluid solutions.

`trees_of` takes trees out of a solution that says of all data for whom they are
(`formulations.engines.fluid_lp.multicast.labelled`). Data for a set of destinations S at a vertex
goes on over an edge with its label, or is split in two. Following the largest amount from the root
until every destination is reached gives a tree; it carries the least of the amounts on it, which
are taken off. Every tree uses up an edge or a split of some label, so there are at most as many as
these.

`links_of_pairs` takes paths out of flows that were added up by root. A flow from a root to many
destinations is a sum of paths from the root to each, since nothing is copied: going back from a
destination over edges that carry something leads to the root, or round a cycle, which is taken off
and carries nothing anywhere.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ccl.plans import Tree
from formulations.engines.fluid_lp.multicast import labels_of
from formulations.engines.fluid_lp.plain import Part
from formulations.engines.steady_state import FluidGraph, Group

NOTHING = 1e-8
"""Shares of a group below this are the solver's rounding, and the slack of the second objective."""

NEAR = 10_000
"""Largest denominator of a weight that is taken for meant."""

Routes = tuple[tuple[str, ...], ...]
"""The paths between the storing devices of a tree, from the root on."""


def trees_of(part: Part) -> tuple[Tree, ...]:
    """Return trees that carry the groups of a labelled part, their weights exact.

    Weights are rounded to fractions and add up to 1 for each group.

    Parameters
    ----------
    part
        Solved with ``subsets``; of sums, on the reversed cluster.
    """
    trees: list[Tree] = []
    labels = labels_of(part.groups)
    for number, group in enumerate(part.groups):
        found: defaultdict[Routes, float] = defaultdict(float)
        for routes, amount in _Peel(part, number, labels.splits).all():
            found[_tree(part.graph, group, routes)] += amount
        if not found:  # of free roots, some add up nothing
            continue
        weights = fractions(list(found.values()))
        for routes, weight in zip(found, weights, strict=True):
            turned = tuple(route[::-1] for route in reversed(routes)) if part.reduces else routes
            if weight:
                trees.append(Tree(group.root, turned, weight))
    return tuple(trees)


def fractions(amounts: list[float]) -> list[Fraction]:
    """Return the shares of amounts as fractions that add up to 1, simple ones where they fit."""
    total = sum(amounts)
    shares = []
    for each in amounts:
        share = Fraction(each / total)
        near = share.limit_denominator(NEAR)
        meant = abs(near - share) <= Fraction(NOTHING)
        shares.append(near if meant else share.limit_denominator(10**9))
    largest = max(range(len(shares)), key=lambda i: shares[i])
    shares[largest] += 1 - sum(shares)
    return shares


@dataclass(frozen=True)
class _Step:
    """One use of an edge or a split by a tree: its place in the array and what follows."""

    kind: int  # 0 an edge, 1 a split
    place: tuple[int, int]


class _Peel:
    """Takes one tree after the other out of the labelled flows of a group."""

    def __init__(self, part: Part, number: int, splits: np.ndarray) -> None:
        assert part.f is not None
        graph = part.graph
        self._graph, self._group = graph, part.groups[number]
        self._left = part.f.copy(), np.zeros((0, 0)) if part.split is None else part.split.copy()
        self._floor = NOTHING * self._group.nbytes
        # Labels of the group stand one after the other in the order of their bits, from 1 on.
        self._first = int(np.flatnonzero(part.owner == number)[0]) - 1
        self._out: defaultdict[int, list[int]] = defaultdict(list)
        for edge, vertex in enumerate(graph.src.tolist()):
            self._out[vertex].append(edge)
        self._copying = {int(v): i for i, v in enumerate(np.flatnonzero(graph.copies))}
        self._splits: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for k, (whole, one, other) in enumerate(splits.tolist()):
            self._splits[whole].append((k, one, other))
        self._goals = {
            self._first + (1 << i): int(graph.goals[rank])
            for i, rank in enumerate(self._group.others)
        }

    def all(self) -> Iterator[tuple[Routes, float]]:
        """Yield the paths of each tree and what it carries."""
        everyone = self._first + (1 << len(self._group.others)) - 1
        root = int(self._graph.origins[self._group.root])
        while True:
            steps: list[_Step] = []
            routes: list[tuple[str, ...]] = []
            whole = self._follow((root, everyone), steps, routes)
            if whole is None:
                return
            amount = min(self._left[step.kind][step.place] for step in steps)
            for step in steps:
                self._left[step.kind][step.place] -= amount
            if whole:
                yield tuple(routes), float(amount)

    def _follow(
        self, start: tuple[int, int], steps: list[_Step], routes: list[tuple[str, ...]]
    ) -> bool | None:
        """Write down a tree from a vertex with a label on.

        Return False where the steps are a cycle instead, and None where nothing is left.
        """
        name = [each.name for each in self._graph.topology.devices]
        stack: list[tuple[int, int, tuple[str, ...]]] = [(*start, (name[self._at(start[0])],))]
        while stack:
            vertex, label, route = stack.pop()
            seen: dict[tuple[int, int], int] = {}
            while self._goals.get(label) != vertex:
                if (vertex, label) in seen:
                    del steps[: seen[vertex, label]]
                    return False
                seen[vertex, label] = len(steps)
                chosen = self._largest(vertex, label)
                if chosen is None:
                    return None
                steps.append(chosen[0])
                if chosen[0].kind == 0:
                    edge = chosen[0].place[0]
                    vertex = int(self._graph.dst[edge])
                    route = self._extended(route, edge, name, routes)
                else:
                    _, one, label = chosen[1]
                    stack.append((vertex, one, route))
        return True

    def _largest(self, vertex: int, label: int) -> tuple[_Step, tuple[int, int, int]] | None:
        """Return the edge or split that takes most of a label at a vertex, or None."""
        flows, splits = self._left
        found: list[tuple[float, int, tuple[int, int], tuple[int, int, int]]] = [
            (float(flows[edge, label]), 0, (edge, label), (0, 0, 0)) for edge in self._out[vertex]
        ]
        row = self._copying.get(vertex)
        if row is not None:
            found += [
                (float(splits[row, each[0]]), 1, (row, each[0]), each)
                for each in self._splits[label]
            ]
        best = max(found, default=(0.0, 0, (0, 0), (0, 0, 0)), key=lambda each: each[0])
        return None if best[0] <= self._floor else (_Step(best[1], best[2]), best[3])

    def _at(self, vertex: int) -> int:
        return int(self._graph.device[vertex])

    def _extended(
        self, route: tuple[str, ...], edge: int, name: list[str], routes: list[tuple[str, ...]]
    ) -> tuple[str, ...]:
        """Return a route with one more edge; one that ends at a storing device is written down."""
        if self._graph.link[edge] < 0:
            return route
        device = self._at(int(self._graph.dst[edge]))
        longer = (*route, name[device])
        if not self._graph.topology.devices[device].stores:
            return longer
        routes.append(longer)
        return longer[-1:]


def _tree(graph: FluidGraph, group: Group, routes: Routes) -> Routes:
    """Return a tree out of the paths that data takes, parents first.

    Parts of the data may come to a device by several paths; one is enough for all of them. What
    then leads to nobody who wants it is left out.
    """
    topology = graph.topology
    onward: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for route in routes:
        onward[route[0]].append(route)
    root = topology.ranks[group.root]
    into: dict[str, tuple[str, ...]] = {}
    queue = [root]
    for name in queue:
        for route in onward[name]:
            if route[-1] not in into and route[-1] != root:
                into[route[-1]] = route
                queue.append(route[-1])
    needed: set[str] = set()
    for rank in group.others:
        name = topology.ranks[rank]
        while name != root and name not in needed:
            needed.add(name)
            name = into[name][0]
    return tuple(into[name] for name in queue if name in needed)


NO_FLOW = 1e-9
"""Share of the largest demand below which a flow is rounding."""

Links = dict[int, float]
"""How much of a demand takes each link, by its number; 1 is all of it."""


def links_of_pairs(
    graph: FluidGraph, flow: np.ndarray, root: int, wants: dict[int, float]
) -> dict[int, Links]:
    """Return, for each destination, the share of its demand on each link.

    Parameters
    ----------
    graph
        Where it flows, without duplicates.
    flow
        Bytes on each edge, shape (edges,).
    root
        Rank that it comes from.
    wants
        Bytes of each destination by rank.
    """
    walk = _Walk(graph, flow, int(graph.origins[root]), NO_FLOW * max(wants.values()))
    found = {}
    for rank, nbytes in wants.items():
        amounts: defaultdict[int, float] = defaultdict(float)
        paths = walk.back_from(int(graph.goals[rank]), nbytes)
        total = sum(amount for _, amount in paths)
        for edges, amount in paths:
            for edge in edges:
                if graph.link[edge] >= 0:
                    amounts[int(graph.link[edge])] += amount / total
        found[rank] = dict(amounts)
    return found


class _Walk:
    """Takes paths off a flow."""

    def __init__(self, graph: FluidGraph, flow: np.ndarray, root: int, floor: float) -> None:
        self._graph, self._left = graph, flow.copy()
        self._root, self._floor = root, floor
        self._into: defaultdict[int, list[int]] = defaultdict(list)
        for edge, vertex in enumerate(graph.dst.tolist()):
            self._into[vertex].append(edge)

    def back_from(self, goal: int, wanted: float) -> list[tuple[list[int], float]]:
        """Return paths to a goal that carry what it wants, up to rounding."""
        paths = []
        while wanted > self._floor:
            edges = self._path(goal)
            if edges is None:
                break
            amount = min(wanted, float(self._left[edges].min()))
            self._left[edges] -= amount
            wanted -= amount
            paths.append((edges, amount))
        return paths

    def _path(self, goal: int) -> list[int] | None:
        """Return the edges of a path from the root, or None where nothing comes any more."""
        edges: list[int] = []
        seen = {goal: 0}
        vertex = goal
        while vertex != self._root:
            edge = max(self._into[vertex], key=self._left.__getitem__, default=-1)
            if edge < 0 or self._left[edge] <= 0:
                return None
            edges.append(edge)
            vertex = int(self._graph.src[edge])
            if vertex in seen:
                cycle = edges[seen[vertex] :]
                self._left[cycle] -= self._left[cycle].min()
                del edges[seen[vertex] :]
                seen = {goal: 0, **{int(self._graph.src[e]): i + 1 for i, e in enumerate(edges)}}
                continue
            seen[vertex] = len(edges)
        return edges
