"""Symmetry that the builder of a cluster declares, checked before it is used.

Of blocks that may be interchanged two permutations generate everything: the exchange of the first
two and the turn of all. Devices are fixed by leaving out the blocks that hold them, so that a
stabiliser needs no search. Where a cluster has been edited, blocks whose devices look different
by now are no longer interchanged; whatever is wrong even so is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import chain, repeat

import numpy as np

from ccl.interchange import Declared, Permutation, moves_at_will
from ccl.symmetry.group import Group
from ccl.symmetry.refine import refined
from ccl.symmetry.shape import Moves, Shape, scattered

_Element = tuple[np.ndarray, Moves]

_ROUNDS = 4
"""Rounds of refinement that tell blocks apart: an edit is seen so many links away."""


class DeclaredGroup(Group):
    """The group that a topology declares, less what is wrong by now.

    Parameters
    ----------
    shape
        What automorphisms must keep.
    fixed
        Devices that stay where they are.
    """

    def __init__(self, shape: Shape, fixed: tuple[int, ...] = ()) -> None:
        reader = _Reader(shape, fixed)
        found = list(reader.generators())
        rows = np.array([image for image, _ in found], dtype=np.int64).reshape(-1, shape.size)
        self._set(shape, rows, [moves for _, moves in found])
        self.whole = reader.whole
        """Whether all that is declared was found to be true."""
        self.at_will = all(map(moves_at_will, self.topology.declared))
        """Whether it is made of interchanges alone."""
        self._fixed = fixed

    def stabiliser(self, *devices: int) -> Group:
        """Return a group of elements that leave the devices where they are."""
        if self.at_will:
            return DeclaredGroup(self.shape, (*self._fixed, *devices))
        return super().stabiliser(*devices)


class _Reader:
    """Turns declarations into permutations that have been checked."""

    def __init__(self, shape: Shape, fixed: tuple[int, ...]) -> None:
        self.shape = shape
        self.whole = True
        self._fixed = np.zeros(shape.size, dtype=bool)
        self._fixed[list(fixed)] = True

    def generators(self) -> Iterator[_Element]:
        """Yield permutations of devices and the links that they move."""
        index = self.shape.topology.index
        for each in self.shape.topology.declared:
            yield from self._read(each, index, np.arange(self.shape.size)[None, :])

    def _read(self, each: Declared, place: dict[str, int], outer: np.ndarray) -> Iterator[_Element]:
        """Yield what is declared about the blocks in the rows of `outer`, places by `place`."""
        if isinstance(each, Permutation):
            yield from self._permuted(each, place, outer)
            return
        size = len(each.blocks[0])
        every = map(place.get, chain.from_iterable(each.blocks), repeat(-1))
        table = np.fromiter(every, np.int64).reshape(-1, size)
        table = table[(table >= 0).all(axis=1)]
        self.whole &= len(table) == len(each.blocks)
        if not len(table):
            return
        names = {name: i for i, name in enumerate(each.blocks[0])}
        for row in self._some(outer):
            blocks = row[table]
            held = self._fixed[blocks].any(axis=1)
            yield from self._interchanged(blocks[~held])
            for inner in each.inner:
                yield from self._read(inner, names, blocks)

    def _some(self, blocks: np.ndarray) -> np.ndarray:
        """Return blocks enough: one of those that are interchanged and each with fixed devices."""
        held = self._fixed[blocks].any(axis=1)
        _, first = np.unique(self._looks(blocks[~held]), return_index=True)
        return np.concatenate([blocks[~held][first], blocks[held]])

    def _permuted(
        self, each: Permutation, place: dict[str, int], outer: np.ndarray
    ) -> Iterator[_Element]:
        if not all(name in place for name in (*each.names, *each.images)):
            self.whole = False
            return
        names = np.array([place[name] for name in each.names], dtype=np.int64)
        images = np.array([place[name] for name in each.images], dtype=np.int64)
        for row in self._some(outer):
            if not self._fixed[row[names]].any():
                yield from self._checked(row[names], row[images])

    def _interchanged(self, blocks: np.ndarray) -> Iterator[_Element]:
        """Yield generators of all permutations of blocks, or of blocks that look alike."""
        if len(blocks) < 2:
            return
        found = list(self._turned(blocks))
        if len(found) == min(len(blocks) - 1, 2):
            yield from found
            return
        self.whole = False
        _, look = np.unique(self._looks(blocks), return_inverse=True)
        for each in range(int(look.max()) + 1):
            yield from self._turned(blocks[look.ravel() == each])

    def _turned(self, blocks: np.ndarray) -> Iterator[_Element]:
        if len(blocks) > 1:
            yield from self._checked(blocks[:2], blocks[1::-1])
        if len(blocks) > 2:
            yield from self._checked(blocks, np.roll(blocks, -1, axis=0))

    def _looks(self, blocks: np.ndarray) -> np.ndarray:
        """Return a number for each block that the colours of its devices decide."""
        colours = scattered(self._colours.astype(np.uint64))[blocks]
        places = scattered(np.arange(blocks.shape[1], dtype=np.uint64))
        return np.asarray((colours * (places | np.uint64(1))).sum(axis=1))

    @cached_property
    def _colours(self) -> np.ndarray:
        return refined(self.shape, self.shape.device, rounds=_ROUNDS)

    def _checked(self, devices: np.ndarray, images: np.ndarray) -> Iterator[_Element]:
        image = np.arange(self.shape.size)
        image[devices] = images
        moves = self.shape.moves(image)
        if moves is None:
            self.whole = False
        else:
            yield image, moves
