"""Trees with exact weights: a collective in its steady state.

Source of the notion: Zhao et al., ForestColl, section 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ccl.errors import ProblemError
from ccl.symmetry import Symmetry
from ccl.topology import Topology


@dataclass(frozen=True, slots=True)
class Tree:
    """One tree along which a share of the root's data travels.

    Parameters
    ----------
    root
        Rank at its root.
    routes
        One entry per edge of the tree, parents first: the devices from the parent to the child,
        switches that are crossed included, so ``("g0", "s", "g1")``.
    weight
        Share of the root's shard that takes this tree; the weights of a root add up to 1. In an
        all-reduce, share of all data; the weights of all roots add up to 1.
    """

    root: int
    routes: tuple[tuple[str, ...], ...]
    weight: Fraction

    def __post_init__(self) -> None:
        if self.weight <= 0:
            msg = f"a tree of root {self.root} has weight {self.weight}; give a positive one"
            raise ProblemError(msg)
        if any(len(route) < 2 for route in self.routes):
            msg = f"a tree of root {self.root} has a route of one device; give two or more"
            raise ProblemError(msg)


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees of every root.

    Parameters
    ----------
    trees
        Out-trees from each root.
    reduces
        Whether data travels up the trees and is added on the way (reduce-scatter, reduce)
        rather than down (all-gather, broadcast). Routes are then written from the child to the
        parent, children before their parents.
    spread
        Out-trees of an all-reduce, else empty: what `trees` have added up at a root goes down
        its trees here. The out-trees of a root weigh as much as its in-trees.
    symmetry
        A group that leaves no GPU in its place, or None. With it `trees` and `spread` are
        representatives: the image of each under each element belongs to the forest, with the
        weight of the representative.
    """

    trees: tuple[Tree, ...]
    reduces: bool = False
    spread: tuple[Tree, ...] = ()
    symmetry: Symmetry | None = None

    @property
    def images(self) -> int:
        """How many trees each tree stands for, itself included."""
        return 1 if self.symmetry is None else self.symmetry.order

    @property
    def depth(self) -> int:
        """Most edges from a root to a device, in-trees and out-trees one after the other."""
        return sum(
            max((depth_of(tree, reduces=reduces) for tree in trees), default=0)
            for trees, reduces in ((self.trees, self.reduces), (self.spread, False))
        )

    def every(self, topology: Topology) -> Iterator[Tree]:
        """Yield all of `trees`, images included; those of `spread` are in `unfolded`."""
        return self._images(self.trees, topology)

    def unfolded(self, topology: Topology) -> Forest:
        """Return the same forest with every tree written out, without a symmetry."""
        if self.symmetry is None:
            return self
        every = (tuple(self._images(trees, topology)) for trees in (self.trees, self.spread))
        trees, spread = every
        return Forest(trees, self.reduces, spread)

    def _images(self, trees: tuple[Tree, ...], topology: Topology) -> Iterator[Tree]:
        if self.symmetry is None:
            yield from trees
            return
        names = [each.name for each in topology.devices]
        for devices, ranks in zip(self.symmetry.devices, self.symmetry.ranks, strict=True):
            image = dict(zip(names, (names[i] for i in devices.tolist()), strict=True))
            for tree in trees:
                routes = tuple(tuple([image[name] for name in route]) for route in tree.routes)
                yield replace(tree, root=int(ranks[tree.root]), routes=routes)

    def __eq__(self, other: object) -> bool:
        """Whether trees, direction and group are the same."""
        if not isinstance(other, Forest):
            return NotImplemented
        same = (self.trees, self.reduces, self.spread) == (other.trees, other.reduces, other.spread)
        if not same or self.symmetry is None or other.symmetry is None:
            return same and self.symmetry is other.symmetry
        return np.array_equal(self.symmetry.devices, other.symmetry.devices)

    def __hash__(self) -> int:
        """Equal for equal forests."""
        return hash((self.trees, self.reduces, self.spread, self.images))


def depth_of(tree: Tree, *, reduces: bool = False) -> int:
    """Return the most edges from the root of a tree to a device, switches not counted."""
    depth: dict[str, int] = {}
    for route in reversed(tree.routes) if reduces else tree.routes:
        parent, child = (route[-1], route[0]) if reduces else (route[0], route[-1])
        depth[child] = depth.get(parent, 0) + 1
    return max(depth.values(), default=0)
