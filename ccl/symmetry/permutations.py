"""Permutations as arrays of images: orbits, inverses and random products."""

from __future__ import annotations

import numpy as np

_SLOTS = 12
"""Elements that random products are made of."""

_ROUNDS = 60
"""Products after which an element is taken for random."""


def orbits_of(permutations: np.ndarray) -> np.ndarray:
    """Return the smallest member of the orbit of each point, shape (points,).

    Parameters
    ----------
    permutations
        Image of each point under each generator, shape (generators, points).
    """
    many = permutations.shape[1]
    row, left = np.nonzero(permutations != np.arange(many))
    return joined(many, left, permutations[row, left])


def joined(many: int, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the smallest member of the connected component of each point, shape (many,).

    In each round every root hangs itself below a smaller one that it meets, and all paths are
    made short.

    Parameters
    ----------
    many
        Number of points.
    left, right
        Points that are connected, shape (pairs,).
    """
    label = np.arange(many)
    while True:
        first, second = label[left], label[right]
        apart = first != second
        if not apart.any():
            return label
        left, right, first, second = left[apart], right[apart], first[apart], second[apart]
        np.minimum.at(label, np.maximum(first, second), np.minimum(first, second))
        while (label[label] != label).any():
            label = label[label]


def inverse(permutation: np.ndarray) -> np.ndarray:
    """Return what leads each point back, shape (points,)."""
    back = np.empty_like(permutation)
    back[permutation] = np.arange(len(permutation))
    return back


def random_elements(generators: np.ndarray, many: int, *, seed: int) -> np.ndarray:
    """Return elements of the group, nearly uniform, shape (many, points).

    Product replacement with an accumulator (Celler, Leedham-Green, Murray, Niemeyer, O'Brien:
    Generating random elements of a finite group, Communications in Algebra 23, 1995), which
    begins with the generators or, of many, with random subproducts of them (Babai, Cooperman,
    Finkelstein, Luks, Seress: Fast Monte Carlo algorithms for permutation groups, 1991).
    """
    if not len(generators):
        return generators
    dice = np.random.default_rng(seed)
    if len(generators) > _SLOTS:
        slots = [_subproduct(generators, dice) for _ in range(_SLOTS)]
    else:
        slots = [generators[i % len(generators)] for i in range(_SLOTS)]
    turns = _ROUNDS + many
    left = dice.integers(_SLOTS, size=turns)
    right = (left + dice.integers(1, _SLOTS, size=turns)) % _SLOTS
    turned, before = dice.integers(2, size=(2, turns)).astype(bool)
    total, found = slots[0], []
    for turn in range(turns):
        here, there = slots[left[turn]], slots[right[turn]]
        other = inverse(there) if turned[turn] else there
        slots[left[turn]] = other[here] if before[turn] else here[other]
        total = total[slots[left[turn]]]
        if turn >= _ROUNDS:
            found.append(total)
    return np.array(found)


def _subproduct(generators: np.ndarray, dice: np.random.Generator) -> np.ndarray:
    """Return the product of about half of the generators, in any order."""
    product = np.arange(generators.shape[1])
    order = dice.permutation(len(generators))
    for each in order[dice.integers(2, size=len(order)).astype(bool)]:
        product = generators[each][product]
    return product
