"""Trees with exact weights: an all-gather or a reduction in its steady state.

Source of the notion: Zhao et al., ForestColl, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ccl.errors import ProblemError


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
        Share of the root's shard that takes this tree; the weights of a root add up to 1.
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


@dataclass(frozen=True)
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
    """

    trees: tuple[Tree, ...]
    reduces: bool = False
