"""Symmetry that the builder of a cluster declares, checked before it is used.

Of blocks that may be interchanged two permutations generate everything: the exchange of the first
two and the turn of all. Devices are fixed by leaving out the blocks that hold them, so that a
stabiliser needs no search. Where a cluster has been edited, blocks whose devices look different
by now are no longer interchanged; whatever is wrong even so is left out.

Automorphisms of a cluster: declared by its builder, found by BLISS, or guessed and checked.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from typing import Literal

import numpy as np

from ccl.symmetry.canonical import bliss
from ccl.symmetry.group import Group
from ccl.symmetry.guess import guessed
from ccl.symmetry.shape import Moves, Shape, refined, scattered, shape_of
from ccl.topology import Declared, Interchange, Permutation, Topology, moves_at_will

_Element = tuple[np.ndarray, Moves]

_ROUNDS = 4
"""Rounds of refinement that tell blocks apart: an edit is seen so many links away."""


@dataclass(frozen=True, eq=False)
class _Blocks:
    """An interchange by positions: of devices, or of places in the first block around it."""

    table: np.ndarray
    inner: tuple[_Known, ...]


@dataclass(frozen=True, eq=False)
class _Move:
    """A permutation by positions."""

    names: np.ndarray
    images: np.ndarray


_Known = _Blocks | _Move


class DeclaredGroup(Group):
    """The group that a topology declares, less what is wrong by now.

    Parameters
    ----------
    shape
        What automorphisms must keep.
    """

    def __init__(self, shape: Shape) -> None:
        known = tuple(_known(shape.topology.declared, shape.topology.index))
        self._read(shape, known, fixed=())
        self.whole &= all(map(_complete, shape.topology.declared, known))

    def _read(self, shape: Shape, known: tuple[_Known, ...], *, fixed: tuple[int, ...]) -> None:
        reader = _Reader(shape, fixed)
        found = list(reader.generators(known))
        rows = np.array([image for image, _ in found], dtype=np.int64).reshape(-1, shape.size)
        self._set(shape, rows, [moves for _, moves in found])
        self.whole = reader.whole
        """Whether all that is declared was found to be true."""
        self.at_will = all(map(moves_at_will, self.topology.declared))
        """Whether it is made of interchanges alone."""
        self._fixed = fixed
        self._known_blocks = known

    def stabiliser(self, *devices: int) -> Group:
        """Return a group of elements that leave the devices where they are."""
        if not self.at_will:
            return super().stabiliser(*devices)
        made = DeclaredGroup.__new__(DeclaredGroup)
        made._read(self.shape, self._known_blocks, fixed=(*self._fixed, *devices))
        return made


def _known(declared: Iterable[Declared], place: dict[str, int]) -> Iterator[_Known]:
    """Yield declarations by positions; what names a missing device is left out."""
    for each in declared:
        if isinstance(each, Permutation):
            names = np.array([place.get(name, -1) for name in each.names], dtype=np.int64)
            images = np.array([place.get(name, -1) for name in each.images], dtype=np.int64)
            there = (names >= 0).all() and (images >= 0).all()
            yield _Move(names, images) if there else _Move(names[:0], images[:0])
            continue
        every = map(place.get, chain.from_iterable(each.blocks), repeat(-1))
        table = np.fromiter(every, np.int64).reshape(len(each.blocks), -1)
        inside = {name: i for i, name in enumerate(each.blocks[0])}
        yield _Blocks(table[(table >= 0).all(axis=1)], tuple(_known(each.inner, inside)))


def _complete(declared: Declared, known: _Known) -> bool:
    """Whether no name was missing."""
    if isinstance(declared, Interchange) and isinstance(known, _Blocks):
        inner = all(map(_complete, declared.inner, known.inner))
        return inner and len(known.table) == len(declared.blocks)
    if isinstance(declared, Permutation) and isinstance(known, _Move):
        return len(known.names) == len(declared.names)
    return False


class _Reader:
    """Turns declarations into permutations that have been checked."""

    def __init__(self, shape: Shape, fixed: tuple[int, ...]) -> None:
        self.shape = shape
        self.whole = True
        self._fixed = np.zeros(shape.size, dtype=bool)
        self._fixed[list(fixed)] = True

    def generators(self, known: Iterable[_Known]) -> Iterator[_Element]:
        """Yield permutations of devices and the links that they move."""
        return self._inside(known, np.arange(self.shape.size)[None, :])

    def _inside(self, known: Iterable[_Known], outer: np.ndarray) -> Iterator[_Element]:
        """Yield what is declared about the blocks in the rows of `outer`."""
        for each in known:
            for row in self._some(outer):
                if isinstance(each, _Move):
                    if not self._fixed[row[each.names]].any():
                        yield from self._checked(row[each.names], row[each.images])
                    continue
                blocks = row[each.table]
                held = self._fixed[blocks].any(axis=1)
                yield from self._interchanged(blocks[~held])
                yield from self._inside(each.inner, blocks)

    def _some(self, blocks: np.ndarray) -> np.ndarray:
        """Return blocks enough: one of those that are interchanged and each with fixed devices."""
        if len(blocks) < 2:
            return blocks
        held = self._fixed[blocks].any(axis=1)
        _, first = np.unique(self._looks(blocks[~held]), return_index=True)
        return np.concatenate([blocks[~held][first], blocks[held]])

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


Method = Literal["auto", "declared", "bliss", "refined", "none"]

MOST_DEVICES = 5000
"""Devices above which BLISS takes too long: it may find as many generators as there are hosts."""


def automorphisms(
    topology: Topology,
    *,
    colours: Iterable[Hashable] | None = None,
    links: Iterable[Hashable] | None = None,
    method: Method = "auto",
    steady: bool = False,
) -> Group:
    """Return a group of automorphisms; each generator has been checked.

    Parameters
    ----------
    topology
        The cluster.
    colours
        Something for each device that must be equal for two to change places, besides what it is.
    links
        The same for each link, such as its cost, besides bandwidth and latency.
    method
        ``declared`` takes what the builder of the cluster says, as far as it is true; ``bliss``
        finds all there are; ``refined`` guesses and checks some; ``none`` finds none. ``auto``
        takes a declaration if all of it is true and of interchanges, as single permutations
        seldom are all there are; otherwise it asks BLISS or, in a cluster too large for that,
        takes what is true of the declaration or else guesses.
    steady
        Whether latencies may differ, as in a steady state, where only bandwidths count.
    """
    shape = shape_of(topology, colours=colours, links=links, steady=steady)
    if method == "none":
        return Group(topology, np.empty((0, shape.size)), shape=shape)
    large = shape.size > MOST_DEVICES
    if method == "declared" or (method == "auto" and topology.declared):
        group = DeclaredGroup(shape)
        if method == "declared" or (group.whole and group.at_will):
            return group
        if large and not group.trivial:
            return group
    if method == "refined" or (method == "auto" and large):
        return Group(topology, guessed(shape), shape=shape)
    return Group(topology, bliss(shape), shape=shape).fewer()
