"""The trees of a forest one at a time: which there are for a root, and a tree as marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from ccl.plans import Forest, Tree
from ccl.topology import Topology

Half = Literal["both", "up", "down"]


@dataclass(frozen=True, slots=True)
class Way:
    """How a share of a root's data travels: up a tree, down a tree, or both in an all-reduce.

    Parameters
    ----------
    root
        Rank at the root.
    weight
        The share; of all data in an all-reduce, else of the root's.
    up
        In-tree along which contributions are added, or None.
    down
        Out-tree along which the data is spread, or None.
    """

    root: int
    weight: Fraction
    up: Tree | None
    down: Tree | None

    def depth(self, half: Half = "both") -> int:
        """Edges on the longest way from the root, both trees one after the other."""
        return sum(max(levels(tree, up=up).values(), default=0) for tree, up in self.trees(half))

    def trees(self, half: Half = "both") -> Iterator[tuple[Tree, bool]]:
        """Yield the trees asked for, and whether data goes up."""
        if self.up is not None and half != "down":
            yield self.up, True
        if self.down is not None and half != "up":
            yield self.down, False


def ways(forest: Forest, topology: Topology, rank: int) -> list[Way]:
    """Return the ways from one root, the heaviest first; images of a symmetry included."""
    trees = _of_root(forest, topology, rank, trees=forest.trees)
    if not forest.spread:
        up = forest.reduces
        found = [
            Way(rank, each.weight, each if up else None, None if up else each) for each in trees
        ]
    else:
        found = _met(rank, trees, _of_root(forest, topology, rank, trees=forest.spread))
    return sorted(found, key=lambda each: -each.weight)


def roots(forest: Forest) -> list[int]:
    """Return the ranks that are roots of trees, in order."""
    own = {tree.root for tree in (*forest.trees, *forest.spread)}
    if forest.symmetry is not None:
        own = set(np.unique(forest.symmetry.ranks[:, sorted(own)]).tolist())
    return sorted(own)


def _of_root(forest: Forest, topology: Topology, rank: int, *, trees: Sequence[Tree]) -> list[Tree]:
    """Return the trees of one root; of the images only those that are asked for are made."""
    group = forest.symmetry
    if group is None:
        return [each for each in trees if each.root == rank]
    names = [each.name for each in topology.devices]
    found = []
    for tree in trees:
        for element in np.flatnonzero(group.ranks[:, tree.root] == rank).tolist():
            image = dict(zip(names, (names[i] for i in group.devices[element]), strict=True))
            routes = tuple(tuple(image[name] for name in route) for route in tree.routes)
            found.append(replace(tree, root=rank, routes=routes))
    return found


def _met(rank: int, up: Sequence[Tree], down: Sequence[Tree]) -> list[Way]:
    """Pair in-trees with out-trees: what was added up on one goes down another."""
    found = []
    rising, falling = iter(up), iter(down)
    one, other = next(rising, None), next(falling, None)
    left = one.weight if one else Fraction(0)
    room = other.weight if other else Fraction(0)
    while one is not None and other is not None:
        share = min(left, room)
        found.append(Way(rank, share, one, other))
        left, room = left - share, room - share
        if not left:
            one = next(rising, None)
            left = one.weight if one else left
        if not room:
            other = next(falling, None)
            room = other.weight if other else room
    return found


def levels(tree: Tree, *, up: bool) -> dict[str, int]:
    """Return how many edges each GPU is away from the root, the root left out."""
    depth: dict[str, int] = {}
    for route in reversed(tree.routes) if up else tree.routes:
        parent, child = (route[-1], route[0]) if up else (route[0], route[-1])
        depth[child] = depth.get(parent, 0) + 1
    return depth


def tree_marks(way: Way, topology: Topology, *, half: Half = "both") -> dict[str, Any]:
    """Return the marks of a way: its links in the root's colour, depths at the GPUs."""
    name = topology.ranks[way.root]
    tone = {"origin": [way.root, len(topology.ranks)]}
    shown = list(way.trees(half))
    groups = []
    for tree, up in shown:
        hops = {hop: None for route in tree.routes for hop in pairwise(route)}
        both = len(shown) > 1
        groups.append(
            {
                "tone": tone,
                "links": [list(hop) for hop in hops],
                "dash": up and both,
                "label": ("Sums go up, dashed" if up else "Sums come down, solid") if both else "",
            }
        )
    away = levels(shown[-1][0], up=shown[-1][1]) if shown else {}
    return {
        "title": f"A tree of {name}: {weight_words(way.weight)}, depth {way.depth(half)}",
        "groups": [{"tone": tone, "devices": [name]}, *groups],
        "badges": {name: "root", **{each: str(depth) for each, depth in away.items()}},
        "arrows": True,
        "fade": True,
    }


def weight_words(weight: Fraction) -> str:
    """Write ``1/3`` of the data, ``all``, or an approximation where the fraction is unwieldy."""
    if weight == 1:
        return "all of it"
    return str(weight) if weight.denominator < 10_000 else f"about {float(weight):.4g}"
