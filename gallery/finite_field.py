"""Finite fields GF(q) by tables, for networks that are built on them.

An element is the number 0 to q - 1 whose digits to the base p, q = p^k, are the coefficients of a
polynomial, the constant first. The modulus is the first polynomial of degree k for which the powers
of x are all elements but 0, so that products add exponents.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from ccl.errors import ProblemError


@dataclass(frozen=True, eq=False)
class Field:
    """A finite field.

    Parameters
    ----------
    order
        Number of its elements, q.
    characteristic
        The prime p of which q is a power.
    powers
        The powers of a primitive element from the 0th on, shape (q - 1,).
    sums, products
        Of each two elements, shape (q, q).
    """

    order: int
    characteristic: int
    powers: np.ndarray
    sums: np.ndarray
    products: np.ndarray

    @property
    def basis(self) -> list[int]:
        """Elements of which all are sums."""
        found = [1]
        while found[-1] * self.characteristic < self.order:
            found.append(found[-1] * self.characteristic)
        return found

    def power(self, exponent: int) -> int:
        """Return a power of the primitive element."""
        return int(self.powers[exponent % (self.order - 1)])

    def negatives(self) -> np.ndarray:
        """Return what gives 0 when it is added to each element, shape (q,)."""
        return np.asarray(self.products[self.characteristic - 1])

    def conjugates(self, times: int) -> np.ndarray:
        """Return the p-th power of the p-th power and so on of each element, shape (q,).

        That keeps sums and products (the automorphism of Frobenius), and after k times it is the
        element itself.
        """
        found = np.zeros(self.order, dtype=np.int64)
        exponents = np.arange(self.order - 1) * self.characteristic**times
        found[self.powers] = self.powers[exponents % (self.order - 1)]
        return found


def finite_field(order: int) -> Field:
    """Return the field of so many elements.

    Raises
    ------
    ProblemError
        If `order` is no power of a prime.
    """
    prime = next((each for each in range(2, order + 1) if order % each == 0), 0)
    degree = 1
    while prime and prime**degree < order:
        degree += 1
    if not prime or prime**degree != order:
        raise ProblemError(
            f"a finite field has a power of a prime of elements, such as 8 or 9, got {order}"
        )
    digits = np.array(list(itertools.product(range(prime), repeat=degree)))[:, ::-1]
    weights = prime ** np.arange(degree)
    powers = _powers(prime, degree) @ weights
    exponent = np.empty(order, dtype=np.int64)
    exponent[powers] = np.arange(order - 1)
    products = powers[(exponent[:, None] + exponent) % (order - 1)]
    products[0, :] = products[:, 0] = 0
    sums = (digits[:, None] + digits) % prime @ weights
    return Field(order, prime, powers, sums, products)


def _powers(prime: int, degree: int) -> np.ndarray:
    """Return the digits of the powers of a primitive element x, shape (q - 1, degree).

    Each element of `taps` is a coefficient of x^k less the modulus. With one of x^0 multiplication
    by x can be undone, so the powers come back to 1, in the end after all elements but 0.
    """
    one = (1, *(0,) * (degree - 1))
    for first, *rest in itertools.product(range(1, prime), *[range(prime)] * (degree - 1)):
        taps, found = (first, *rest), [one]
        while (after := _times_x(found[-1], taps, prime)) != one:
            found.append(after)
        if len(found) == prime**degree - 1:
            return np.array(found)
    raise AssertionError("every finite field has a primitive element")


def _times_x(element: tuple[int, ...], taps: tuple[int, ...], prime: int) -> tuple[int, ...]:
    *low, high = element
    return tuple((each + high * tap) % prime for each, tap in zip((0, *low), taps, strict=True))
