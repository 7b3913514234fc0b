"""Exact rationals from the basis of a floating-point optimum.

What a solver says of a basis is which columns carry something and which rows are tight; that is a
square system of whole numbers. It is solved modulo a prime and lifted digit by digit (Dixon,
Numerische Mathematik 40, 1982), which takes as many small products as the answer has digits, then
read as fractions and checked exactly. So nothing is left of the solver's rounding.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from formulations.engines.kernels.modular import inverse

PRIME = 67_108_859
"""The largest below 2**26: sums of a thousand products of two digits fit 64 bits."""

SMALL = 2**52
"""Sums of fewer than a thousand numbers below this fit 64 bits."""

DIGITS = 1 << 14
"""Digits after which a system is given up."""


def solved(matrix: np.ndarray, right: np.ndarray) -> list[Fraction] | None:
    """Solve a square system of whole numbers; None where its determinant is 0 modulo the prime.

    Parameters
    ----------
    matrix
        Shape (n, n), of Python's whole numbers or of 64 bits.
    right
        Shape (n,).
    """
    back = inverse((matrix % PRIME).astype(np.int64), PRIME)
    if not len(back):
        return None
    largest = max((abs(int(each)) for each in matrix.ravel()), default=0)
    kind = np.int64 if largest * PRIME * len(matrix) < 2**62 else object
    whole, rest = matrix.astype(kind), right.astype(object)
    digits: list[np.ndarray] = []
    target = 8
    while len(digits) < DIGITS:
        digit = back @ (rest % PRIME).astype(np.int64) % PRIME
        rest = (rest - (whole @ digit.astype(kind)).astype(object)) // PRIME
        digits.append(digit)
        if len(digits) == target:
            found = _read(digits)
            if found is not None and _holds(matrix, right, found):
                return found
            target *= 2
    return None


def _read(digits: list[np.ndarray]) -> list[Fraction] | None:
    """Read the digits of each unknown as a fraction; None if there are too few."""
    modulus = PRIME ** len(digits)
    values = [0] * len(digits[0])
    for digit in reversed(digits):
        values = [value * PRIME + low for value, low in zip(values, digit.tolist(), strict=True)]
    limit = math.isqrt(modulus // 2)
    common = 1
    found = []
    for value in values:
        # Denominators have much in common, so most are known by now.
        part = _fraction(value * common % modulus, modulus, limit)
        if part is None or common * part[1] > limit:
            return None
        common *= part[1]
        found.append(Fraction(part[0], common))
    return found


def _fraction(value: int, modulus: int, limit: int) -> tuple[int, int] | None:
    """Return the numerator and denominator below a limit that are `value` modulo a number."""
    if value <= limit:
        return value, 1
    if modulus - value <= limit:
        return value - modulus, 1
    before, now = (modulus, 0), (value, 1)
    while now[0] > limit:
        many = before[0] // now[0]
        before, now = now, (before[0] - many * now[0], before[1] - many * now[1])
    if now[1] == 0 or abs(now[1]) > limit:
        return None
    return (now[0], now[1]) if now[1] > 0 else (-now[0], -now[1])


def _holds(matrix: np.ndarray, right: np.ndarray, found: list[Fraction]) -> bool:
    """Say whether a solution is one, in whole numbers."""
    common = math.lcm(*(each.denominator for each in found))
    numbers = np.array([int(each * common) for each in found], dtype=object)
    return bool((matrix.astype(object) @ numbers == right.astype(object) * common).all())
