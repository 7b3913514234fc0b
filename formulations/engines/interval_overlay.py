"""Parts of a whole as exact fractions, and where the parts of several wholes meet."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")

DENOMINATORS = (12, 120, 5_000)
"""Largest denominators that are tried, one after the other."""

CLOSE = 1e-7
"""A fraction within this of a solver's number is what it stands for."""

ROUND = 1_000_000_000
"""Parts of the whole, where no simple fractions are close."""


def exact_parts(parts: Sequence[float]) -> list[Fraction]:
    """Return positive numbers that add up to about 1 as simple fractions that do exactly."""
    for most in DENOMINATORS:
        near = [Fraction(part).limit_denominator(most) for part in parts]
        close = all(abs(each - part) < CLOSE for each, part in zip(near, parts, strict=True))
        if close and sum(near) == 1 and all(near):
            return near
    rounded = [max(1, round(part * ROUND)) for part in parts]
    return [Fraction(each, sum(rounded)) for each in rounded]


def refined(wholes: Sequence[Sequence[tuple[Item, Fraction]]]) -> dict[tuple[Item, ...], Fraction]:
    """Lay the parts of each whole on a line, and return what lies above one another, how long.

    Parameters
    ----------
    wholes
        Of each its parts, an item with how much of it there is; all wholes are as long.
    """
    intervals = [_ends(parts) for parts in wholes]
    ends = sorted({end for each in intervals for _, end in each})
    lengths: dict[tuple[Item, ...], Fraction] = {}
    place = [0] * len(intervals)
    for begin, end in pairwise([Fraction(0), *ends]):
        for k, each in enumerate(intervals):
            while each[place[k]][1] <= begin:
                place[k] += 1
        met = tuple(each[at][0] for each, at in zip(intervals, place, strict=True))
        lengths[met] = lengths.get(met, Fraction(0)) + end - begin
    return lengths


def _ends(parts: Sequence[tuple[Item, Fraction]]) -> list[tuple[Item, Fraction]]:
    """Return where each part ends."""
    end, found = Fraction(0), []
    for item, part in parts:
        end += part
        found.append((item, end))
    return found
