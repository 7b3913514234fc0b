"""Automorphisms of clusters that are too large for BLISS, guessed and checked.

Two colourings of the cluster are refined side by side. What is still alike is told apart on both
sides: one device and any that looks like it, a few times, which is enough for lattices; then
whole classes in any order, twins and the smallest first, which is right where their members may
be permuted at will, as hosts and rails. When all colours differ they say who goes where, and what
is no automorphism after all is thrown away. So orbits may be finer than the true ones, never
coarser.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ccl.symmetry.permutations import orbits_of
from ccl.symmetry.refine import neighbours, refined
from ccl.symmetry.shape import Shape

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
    singles = _SINGLES
    while (counts := np.bincount(both[0])).max() > 1:
        if next(steps, None) is None:
            return None
        if singles:
            both = _apart(both, np.arange(len(counts)) == counts.argmax(), 1, dice=dice)
            singles -= 1
        else:
            both = _apart(both, _chosen(shape, both[0], counts), shape.size, dice=dice)
        both = refined(shape, both, rounds=_ROUNDS)
        if (np.sort(both[0]) != np.sort(both[1])).any():
            return None
    image = np.empty(shape.size, dtype=np.int64)
    image[np.argsort(both[0])] = np.argsort(both[1])
    return image


def _chosen(shape: Shape, colours: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Choose all classes of twins, which nothing tells apart, or else a smallest class."""
    around = neighbours(shape)
    least = np.full(len(counts), np.iinfo(np.uint64).max, dtype=np.uint64)
    most = np.zeros(len(counts), dtype=np.uint64)
    np.minimum.at(least, colours, around)
    np.maximum.at(most, colours, around)
    twins = np.asarray((least == most) & (counts > 1))
    if twins.any():
        return twins
    smallest = int(np.where(counts > 1, counts, shape.size + 1).argmin())
    return np.asarray(np.arange(len(counts)) == smallest)


def _apart(
    both: np.ndarray, chosen: np.ndarray, many: int, *, dice: np.random.Generator
) -> np.ndarray:
    """Give members of the chosen classes colours of their own, in any order on the second side."""
    coloured = both.copy()
    for side, row in enumerate(both):
        members = np.flatnonzero(chosen[row])
        order = dice.random(len(members)) if side else members
        members = members[np.lexsort((order, row[members]))][:many]
        coloured[side, members] = len(chosen) + np.arange(len(members))
    return coloured
