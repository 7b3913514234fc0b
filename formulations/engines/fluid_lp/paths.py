"""Paths out of flows that were added up by root.

A flow from a root to many destinations is a sum of paths from the root to each, since nothing is
copied: going back from a destination over edges that carry something leads to the root, or round a
cycle, which is taken off and carries nothing anywhere.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from formulations.engines.steady_state.graph import FluidGraph

NOTHING = 1e-9
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
    walk = _Walk(graph, flow, int(graph.origins[root]), NOTHING * max(wants.values()))
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
