"""Words: all-reduces in stages over grids of ranks, one letter a stage.

With groups of k1, k2, ... ranks whose product is p,

    x   exchange   every member of a group gets the sums of all others       α + (k-1) mβ
    h   add up     each owns a share of the vector, and adds it up           α + (k-1)/k mβ
    s   spread     owners send the sums to everyone

Behind an h only the share m/k of the vector goes on. So x is one-shot, xx its exchange of hosts and
then of their likes, x with k = 2 throughout recursive doubling, hs a reduce-scatter and an
all-gather, hxs what a hierarchical all-reduce does; hx lets owners send what they have added up to
everyone at once, which saves a step of latency. Few letters are for small sizes and h and s for
large ones. (Thakur, Rabenseifner, Gropp, IJHPCA 2005, have such words for hypercubes.)

Where stages are along the dimensions of a grid, pieces of the vector take the dimensions by turns,
each beginning with another one: then all links of a torus or a hypercube are in use in all stages.

Decisions: the ranks make a grid, host by host or, where they can be so arranged, such that the rows
of all dimensions are joined. There are all words over all grids of up to four dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from math import prod

import numpy as np

from ccl.topology import Topology
from formulations.engines.closed_forms.hosts import arranged, by_host

MOST_STAGES = 4
"""Dimensions of a grid."""


@dataclass(frozen=True, eq=False)
class Word:
    """A word over a grid of ranks.

    Parameters
    ----------
    letters
        One for each stage.
    grid
        Ranks, an axis for each dimension.
    axes
        Dimensions of the stages, for each of the pieces that take them by turns.
    """

    letters: str
    grid: np.ndarray
    axes: tuple[tuple[int, ...], ...]

    @property
    def owners(self) -> int:
        """In how many choices of owners every member of a group owns as much."""
        sides: tuple[int, ...] = self.grid.shape
        return prod(sides[axis] for axis in self.axes[0][: self.letters.count("h")])

    @property
    def pieces(self) -> int:
        """The fewest of which all members of a group own as many."""
        return len(self.axes) * self.owners

    @property
    def messages(self) -> int:
        """Messages of each piece, those that pass them on not counted."""
        found, active = 0, self.grid.size
        last = len(self.letters) - 1
        for stage, (letter, axis) in enumerate(zip(self.letters, self.axes[0], strict=False)):
            side = self.grid.shape[axis]
            if letter == "h":
                found, active = found + active - active // side, active // side
            else:
                found += (self.grid.size if stage == last else active) * side - active
        return found + (self.grid.size - active if self.letters.endswith("s") else 0)

    def rows(self, axis: int) -> np.ndarray:
        """Return the rows of ranks along a dimension, shape (rows, ranks of a row)."""
        return np.moveaxis(self.grid, axis, -1).reshape(-1, self.grid.shape[axis])

    def __str__(self) -> str:
        """Say what groups do, one stage after the other."""
        does = {"h": "add up", "x": "exchange"}
        stages = zip(self.letters, self.axes[0], strict=False)
        said = [f"groups of {self.grid.shape[axis]} {does[each]}" for each, axis in stages]
        said += ["owners spread the sums"] * self.letters.endswith("s")
        return ", then ".join(said) + "; pieces take the dimensions by turns" * (len(self.axes) > 1)

    def others(self) -> Iterator[Word]:
        """Yield the same with the dimensions in other orders, where all pieces have one order."""
        if len(self.axes) == 1:
            for axes in permutations(self.axes[0]):
                if axes != self.axes[0]:
                    yield replace(self, axes=(axes,))


TRIES = 30_000
"""Steps of a search for an order of the ranks, of which there is one for each grid."""


def words_over(topology: Topology, *, arrange: bool = True) -> Iterator[Word]:
    """Yield words over grids; and over those whose rows are joined, if so asked."""
    for stages in range(1, MOST_STAGES + 1):
        for sides in products(len(topology.ranks), stages):
            for grid in _grids(topology, sides, arrange=arrange):
                axes = tuple(range(stages))[::-1]
                turned = tuple(axes[turn:] + axes[:turn] for turn in range(stages))
                for letters in _letters(stages):
                    yield Word(letters, grid, (axes,))
                    if stages > 1 and ("h" not in letters or len({*sides}) == 1):
                        yield Word(letters, grid, turned)


def _letters(stages: int) -> Iterator[str]:
    for adding_up in range(stages + 1):
        word = "h" * adding_up + "x" * (stages - adding_up)
        if adding_up < stages:
            yield word
        if adding_up:
            yield word + "s"


def products(p: int, many: int) -> Iterator[tuple[int, ...]]:
    """Yield the products of so many numbers of 2 or more that are p, in all orders."""
    if many == 1 and p > 1:
        yield (p,)
    for side in range(2, p // 2 + 1) if many > 1 else ():
        if p % side == 0:
            yield from ((side, *rest) for rest in products(p // side, many - 1))


def _grids(topology: Topology, sides: tuple[int, ...], *, arrange: bool) -> Iterator[np.ndarray]:
    """Yield the ranks in grids: host by host, and such that rows are joined."""
    order = np.concatenate(by_host(topology))
    yield order.reshape(sides)
    if not arrange:
        return
    places = np.arange(len(order)).reshape(sides)
    rows = (np.moveaxis(places, axis, -1).reshape(-1, side) for axis, side in enumerate(sides))
    pairs = [pair for each in rows for row in each.tolist() for pair in permutations(row, 2)]
    other = arranged(topology, pairs, tries=TRIES)
    if other is not None and (other != order).any():
        yield other.reshape(sides)
