"""Colour refinement: devices that differ in what they are linked to get different colours.

Colours that are equal do not mean that devices are interchangeable; colours that differ mean that
they are not. They are used for finding candidates only.
"""

from __future__ import annotations

import numpy as np

from ccl.symmetry.shape import Shape, scattered


def refined(shape: Shape, colours: np.ndarray, *, rounds: int | None = None) -> np.ndarray:
    """Return colours that the neighbours' colours decide too, again and again.

    Parameters
    ----------
    shape
        The cluster.
    colours
        A number for each device to begin with, shape (..., devices); with several rows these are
        coloured alike, so that colours can be compared between them.
    rounds
        After how many rounds to stop; None goes on until nothing changes.
    """
    _, start = np.unique(colours, return_inverse=True)
    colour = start.reshape(colours.shape)
    many, turn = -1, 0
    while (count := int(colour.max(initial=0)) + 1) > many and turn != rounds:
        signs = np.array([_signs(shape, row) for row in np.atleast_2d(colour)])
        _, which = np.unique(signs, return_inverse=True)
        colour = which.reshape(colours.shape)
        many, turn = count, turn + 1
    return colour


def neighbours(shape: Shape) -> np.ndarray:
    """Return a number for each device that its neighbours and the links to them decide."""
    mixed = scattered(np.arange(shape.size, dtype=np.uint64))
    return _signs(shape, np.arange(shape.size)) - mixed * np.uint64(3)


def _signs(shape: Shape, colours: np.ndarray) -> np.ndarray:
    """Return a number for each device that its colour and its neighbours' decide."""
    mixed = scattered(colours.astype(np.uint64))
    kinds = scattered(_capped(shape) + np.uint64(7919))
    total = mixed * np.uint64(3)
    np.add.at(total, shape.src, scattered(mixed[shape.dst] ^ kinds))
    np.add.at(total, shape.dst, scattered(mixed[shape.src] + kinds))
    return total


def _capped(shape: Shape) -> np.ndarray:
    """Return a number for each link that its colour and those of its limits decide."""
    total = shape.link.astype(np.uint64)
    if len(shape.limit):
        limit, member = shape.membership
        np.add.at(total, member, scattered(shape.limit[limit].astype(np.uint64)))
    return total
