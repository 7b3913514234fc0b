"""Trees of links as a forest of routes."""

from __future__ import annotations

from fractions import Fraction

from ccl.forest import Forest, Tree
from formulations.engines.tree_columns.multicast import Column, Side
from formulations.engines.tree_columns.search import Optimum


def forest_of(found: Optimum) -> Forest:
    """Return the forest of an optimum, with its group of symmetries if that has any."""
    task, pool = found.task, found.pool
    trees: dict[bool, list[Tree]] = {False: [], True: []}
    for place, share in sorted(found.weights.shares.items()):
        wish = task.wishes[pool.wishes[place]]
        side = task.sides[wish.side]
        weight = share if wish.partner is None else share / task.symmetry.order
        trees[side.reduces].append(_tree(side, pool.columns[place], rank=wish.root, weight=weight))
    group = task.symmetry if task.symmetry.order > 1 else None
    if trees[True] and trees[False]:
        return Forest(tuple(trees[True]), True, tuple(trees[False]), symmetry=group)
    reduces = bool(trees[True])
    return Forest(tuple(trees[reduces]), reduces, symmetry=group)


def depth_of(side: Side, column: Column) -> int:
    """Return the most hops from the root of a tree to a device, switches not counted."""
    depth = {column.root: 0}
    for vertex in column.order:
        stores = side.topology.devices[side.vertices[vertex]].stores
        depth[vertex] = depth[int(column.parents[vertex])] + stores
    return max(depth.values())


def _tree(side: Side, column: Column, *, rank: int, weight: Fraction) -> Tree:
    """Write a tree as routes from one device that stores to the next."""
    topology = side.topology
    names = [topology.devices[vertex].name for vertex in side.vertices.tolist()]
    brought: dict[int, tuple[str, ...]] = {column.root: (names[column.root],)}
    routes = []
    for vertex in column.order:
        before = brought[int(column.parents[vertex])]
        route = (*before, *(topology.links[link].dst for link in column.way(vertex)))
        if topology.device(names[vertex]).stores:
            routes.append(route)
            route = route[-1:]
        brought[vertex] = route
    if side.reduces:
        routes = [route[::-1] for route in reversed(routes)]
    return Tree(rank, tuple(routes), weight)
