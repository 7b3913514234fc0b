"""Automorphisms of a cluster: declared by its builder, found by BLISS, or guessed and checked.

Declared ones are checked before they are used. Of blocks that may be interchanged two permutations
generate everything: the exchange of the first two and the turn of all. Devices are fixed by leaving
out the blocks that hold them, so that a stabiliser needs no search. Where a cluster has been
edited, blocks whose devices look different by now are no longer interchanged; whatever is wrong
even so is left out.

Those of clusters that are too large for BLISS are guessed and checked. Two colourings of the
cluster are refined side by side. What is still alike is individualised on both sides: one device
and any that looks like it, a few times, which is enough for lattices; then whole classes in any
order, which is right where their members may be permuted at will, as hosts and rails: twins first,
then one device of each part that hangs together by itself, then the smallest class. When all
colours differ they say who goes where, and what is no automorphism after all is thrown away. So
orbits may be finer than the true ones, never coarser.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count, repeat
from typing import Literal

import numpy as np

from ccl.symmetry.canonical import bliss
from ccl.symmetry.group import Group, components, orbits_of
from ccl.symmetry.refinement import (
    Moves,
    Shape,
    neighbours,
    refine_colours,
    scatter_numbers,
    shape_of,
)
from ccl.topology import Declared, Interchange, Permutation, Topology, declares_interchanges_only

_GUESS_ROUNDS = 400
"""Rounds of refinement at most, which is how far away a device is seen."""

_TRIES = 20
"""Candidates at most."""

_ENOUGH = 10
"""Elements that are enough if devices that look alike are in one orbit then."""

_SINGLES = 4
"""Devices that are individualised before whole classes are."""

_WORK = 60_000_000
"""Refinements times links after which no more is guessed; at most some ten seconds."""


def guess_automorphisms(shape: Shape) -> np.ndarray:
    """Return automorphisms, shape (found, devices)."""
    start = refine_colours(shape, shape.device, rounds=_GUESS_ROUNDS)
    classes = int(start.max(initial=-1)) + 1
    found = np.empty((0, shape.size), dtype=np.int64)
    dice = np.random.default_rng(0)
    steps = iter(range(_WORK // max(len(shape.src), 1)))
    for _ in range(_TRIES if classes < shape.size else 0):
        image = _candidate(shape, start, dice, steps)
        if image is not None and shape.moves(image) is not None:
            found = np.concatenate([found, image[None, :]])
            if len(found) >= _ENOUGH and len(np.unique(orbits_of(found))) == classes:
                break
    return found


def _candidate(
    shape: Shape, start: np.ndarray, dice: np.random.Generator, steps: Iterator[int]
) -> np.ndarray | None:
    """Return a permutation that keeps colours, or None if the sides differ or no step is left."""
    both = np.stack([start, start])
    for turn in count():
        if len(np.unique(both[0])) == shape.size:
            break
        if next(steps, None) is None:
            return None
        orders = np.arange(shape.size), dice.permutation(shape.size)
        apart = [
            _told_apart(shape, row, order, single=turn < _SINGLES)
            for row, order in zip(both, orders, strict=True)
        ]
        if len(apart[0]) != len(apart[1]):
            return None
        for row, members in zip(both, apart, strict=True):
            row[members] = shape.size + np.arange(len(members))
        both = refine_colours(shape, both, rounds=_GUESS_ROUNDS)
        if (np.sort(both[0]) != np.sort(both[1])).any():
            return None
    image = np.empty(shape.size, dtype=np.int64)
    image[np.argsort(both[0])] = np.argsort(both[1])
    return image


def _told_apart(
    shape: Shape, colours: np.ndarray, order: np.ndarray, *, single: bool
) -> np.ndarray:
    """Return devices that get colours of their own; those at one place are thought to be alike.

    Parameters
    ----------
    shape
        The cluster.
    colours
        Colour of each device on one side, shape (devices,).
    order
        Which of several alike comes first, shape (devices,).
    single
        Whether only one device of a largest class is individualised.
    """
    sizes = np.bincount(colours)
    if single:
        members = np.flatnonzero(colours == sizes.argmax())
        return members[[order[members].argmin()]]
    twins = _twins(shape, colours) & (sizes > 1)
    if not twins.any():
        parts = _parts(shape, colours, order)
        if len(parts) > 1:
            return parts
        twins[np.where(sizes > 1, sizes, shape.size + 1).argmin()] = True
    members = np.flatnonzero(twins[colours])
    return np.asarray(members[np.lexsort((order[members], colours[members]))])


def _twins(shape: Shape, colours: np.ndarray) -> np.ndarray:
    """Return whether all devices of a class have the same neighbours, shape (classes,)."""
    around = neighbours(shape)
    classes = int(colours.max()) + 1
    least = np.full(classes, np.iinfo(np.uint64).max, dtype=np.uint64)
    most = np.zeros(classes, dtype=np.uint64)
    np.minimum.at(least, colours, around)
    np.maximum.at(most, colours, around)
    return np.asarray(least == most)


def _parts(shape: Shape, colours: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return a device of each part that is left when those whose colour is their own are gone.

    It is one of the lowest colour in its part; parts come in the order of what colours they have.
    """
    loose = np.bincount(colours)[colours] > 1
    kept = loose[shape.src] & loose[shape.dst]
    part = components(shape.size, shape.src[kept], shape.dst[kept])
    looks = np.zeros(shape.size, dtype=np.uint64)
    np.add.at(looks, part, scatter_numbers(colours.astype(np.uint64)))
    lowest = np.full(shape.size, shape.size)
    np.minimum.at(lowest, part, colours)
    members = np.flatnonzero(loose & (colours == lowest[part]))
    members = members[np.argsort(order[members])]
    members = members[np.unique(part[members], return_index=True)[1]]
    return np.asarray(members[np.lexsort((order[members], looks[part[members]]))])


_Element = tuple[np.ndarray, Moves]

_ROUNDS = 4
"""Rounds of refinement that distinguish blocks: an edit is seen so many links away."""


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
        self.at_will = all(map(declares_interchanges_only, self.topology.declared))
        """Whether it consists of interchanges alone."""
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
    """Return whether no name was missing."""
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
        colours = scatter_numbers(self._colours.astype(np.uint64))[blocks]
        places = scatter_numbers(np.arange(blocks.shape[1], dtype=np.uint64))
        return np.asarray((colours * (places | np.uint64(1))).sum(axis=1))

    @cached_property
    def _colours(self) -> np.ndarray:
        return refine_colours(self.shape, self.shape.device, rounds=_ROUNDS)

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
        seldom are all there are; otherwise it calls BLISS or, in a cluster too large for that,
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
        return Group(topology, guess_automorphisms(shape), shape=shape)
    return Group(topology, bliss(shape), shape=shape).fewer()
