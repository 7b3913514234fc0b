"""Automorphisms of clusters that are too large for BLISS, guessed and checked.

Two colourings of the cluster are refined side by side. What is still alike is told apart on both
sides: one device and any that looks like it, a few times, which is enough for lattices; then
whole classes in any order, which is right where their members may be permuted at will, as hosts
and rails: twins first, then one device of each part that hangs together by itself, then the
smallest class. When all colours differ they say who goes where, and what is no automorphism after
all is thrown away. So orbits may be finer than the true ones, never coarser.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np

from ccl.symmetry.group import joined, orbits_of
from ccl.symmetry.shape import Shape, neighbours, refined, scattered

_ROUNDS = 400
"""Rounds of refinement at most, which is how far away a device is seen."""

_TRIES = 20
"""Candidates at most."""

_ENOUGH = 10
"""Elements that are enough if devices that look alike are in one orbit then."""

_SINGLES = 4
"""Devices that are told apart before whole classes are."""

_WORK = 60_000_000
"""Refinements times links after which no more is guessed; at most some ten seconds."""


def guessed(shape: Shape) -> np.ndarray:
    """Return automorphisms, shape (found, devices)."""
    start = refined(shape, shape.device, rounds=_ROUNDS)
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
        both = refined(shape, both, rounds=_ROUNDS)
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
        Whether but one device of a largest class is told apart.
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
    """Whether all devices of a class have the same neighbours, shape (classes,)."""
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
    part = joined(shape.size, shape.src[kept], shape.dst[kept])
    looks = np.zeros(shape.size, dtype=np.uint64)
    np.add.at(looks, part, scattered(colours.astype(np.uint64)))
    lowest = np.full(shape.size, shape.size)
    np.minimum.at(lowest, part, colours)
    members = np.flatnonzero(loose & (colours == lowest[part]))
    members = members[np.argsort(order[members])]
    members = members[np.unique(part[members], return_index=True)[1]]
    return np.asarray(members[np.lexsort((order[members], looks[part[members]]))])
