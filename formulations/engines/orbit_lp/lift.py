"""From orbits back to links and ranks: what each link carries of each root, on demand.

With g an element that takes the representative o to an item, and h one that fixes o and takes the
representative d to where g takes what becomes the destination,

    w[g e, g o] = W[o, a(e)]          f[g h e, g o, g h d] = F[o, d, a'(e)].

Such vectors satisfy every row of the plain program. All of f would be n^2 m numbers, so they are
made one root and one destination at a time. Pairs become paths: of each origin's flow paths are
taken off until every destination has its share, for one item of each orbit; the others have images.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ccl.symmetry import Carriers
from formulations.engines.orbit_lp.blocks import Block, Way
from formulations.engines.orbit_lp.group import Acting
from formulations.engines.orbit_lp.lp import OrbitSolution

NOTHING = 1e-11
"""Shares below this are rounding errors of a solver."""

Paths = list[tuple[float, list[int]]]
"""Shares with the devices that they pass, adding up to 1."""


class Lift:
    """A solution written out for single roots and destinations.

    Parameters
    ----------
    solution
        Of the orbit linear program.
    """

    def __init__(self, solution: OrbitSolution) -> None:
        self.solution = solution
        self._orbits = {
            number: solution.acting.items(number, load)
            for number, load in enumerate(solution.loads)
        }
        self._carriers: dict[tuple[int, int], Carriers] = {}

    def usage(self, load: int, item: int) -> np.ndarray:
        """Return the share of an item's data that each edge carries, shape (edges,)."""
        place, block = self._block(load, item)
        values = _spread(block.edges, self.solution.usage[place])
        return _pushed(values, block.graph.moved(self._element(block, item))[1])

    def flow(self, load: int, item: int, *, rank: int) -> np.ndarray:
        """Return what is on its way from an item's root to a rank, shape (edges,)."""
        place, block = self._block(load, item)
        element = self._element(block, item)
        gpus = self.solution.acting.gpus
        source = int(np.flatnonzero(element == gpus[rank])[0])
        orbit = block.acting.group.orbits()
        number = next(
            i for i, way in enumerate(block.ways) if orbit[gpus[way.rank]] == orbit[source]
        )
        way: Way = block.ways[number]
        inner = self._carried(block.acting, int(gpus[way.rank]), target=source)
        values = _spread(way.edges, self.solution.flows[place][number])
        return _pushed(values, block.graph.moved(element[inner])[1])

    def paths(self) -> Iterator[tuple[int, int, Paths]]:
        """Yield source, destination and paths of every pair; data that may be copied has none.

        Each path leads from the source to the destination, on collected data too.
        """
        ranks = len(self.solution.acting.gpus)
        for number, load in enumerate(self.solution.loads):
            if load.spreads:
                continue
            first: dict[int, list[tuple[int, Paths]]] = {}
            for item, root in enumerate(load.roots.tolist()):
                place, block = self._block(number, item)
                if place not in first:
                    shares = load.shares(block.item, ranks)
                    values = _spread(block.edges, self.solution.usage[place])
                    first[place] = list(taken_apart(block, values, shares=shares))
                element = self._element(block, item)
                rank = np.full(len(element), -1)
                rank[self.solution.acting.gpus] = np.arange(ranks)
                for goal, paths in first[place]:
                    there = int(rank[element[self.solution.acting.gpus[goal]]])
                    images = [(share, element[path].tolist()) for share, path in paths]
                    if load.turned:
                        yield there, root, [(share, path[::-1]) for share, path in images]
                    else:
                        yield root, there, images

    def _block(self, load: int, item: int) -> tuple[int, Block]:
        orbits = self._orbits[load]
        return next(
            (place, block)
            for place, block in enumerate(self.solution.blocks)
            if block.load == load and orbits[block.item] == orbits[item]
        )

    def _element(self, block: Block, item: int) -> np.ndarray:
        """Return an element that brings the representative of a block to an item."""
        acting, load = self.solution.acting, self.solution.loads[block.load]
        places = acting.places(block.load, load)
        return self._carried(acting, int(places[block.item]), target=int(places[item]))

    def _carried(self, acting: Acting, device: int, *, target: int) -> np.ndarray:
        key = id(acting), device
        if key not in self._carriers:
            self._carriers[key] = acting.group.carriers(device)
        return np.asarray(self._carriers[key].to(target)[: len(acting.topology.devices)])


def taken_apart(
    block: Block, values: np.ndarray, *, shares: np.ndarray
) -> Iterator[tuple[int, Paths]]:
    """Yield each destination of a flow with its paths, shortest first.

    What is left of a flow after a path has been taken off is a flow again, so whoever still lacks
    something can be reached.

    Parameters
    ----------
    block
        Whose representative flows.
    values
        What each edge carries, in shares of what the one who gets most gets, shape (edges,).
    shares
        What each rank gets, shape (ranks,).
    """
    graph = block.graph
    ahead: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for edge in np.flatnonzero(values > NOTHING).tolist():
        ahead[int(graph.src[edge])][int(graph.dst[edge])] = float(values[edge])
    start = int(graph.origins[block.root])
    for rank in np.flatnonzero(shares).tolist():
        goal, left = int(graph.goals[rank]), float(shares[rank])
        paths: Paths = []
        while left > NOTHING * 100 and (path := _shortest(ahead, start, goal=goal)):
            amount = min([left, *[ahead[a][b] for a, b in pairwise(path)]])
            for a, b in pairwise(path):
                ahead[a][b] -= amount
                if ahead[a][b] <= NOTHING:
                    del ahead[a][b]
            left -= amount
            paths.append((amount, graph.device[path].tolist()))
        whole = sum(amount for amount, _ in paths)
        yield rank, [(amount / whole, path) for amount, path in paths]


def _shortest(
    ahead: defaultdict[int, dict[int, float]], start: int, *, goal: int
) -> list[int] | None:
    """Return a path with fewest edges over what is left, or None."""
    came = {start: start}
    queue = deque([start])
    while queue and goal not in came:
        vertex = queue.popleft()
        for each in ahead.get(vertex, ()):
            if each not in came:
                came[each] = vertex
                queue.append(each)
    if goal not in came:
        return None
    path = [goal]
    while path[-1] != start:
        path.append(came[path[-1]])
    return path[::-1]


def _spread(labels: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the value of each edge from that of its orbit, 0 where it has none."""
    return np.asarray(np.append(values, [0.0])[labels])


def _pushed(values: np.ndarray, image: np.ndarray) -> np.ndarray:
    """Return the values where a permutation takes them."""
    moved = np.empty_like(values)
    moved[image] = values
    return moved
