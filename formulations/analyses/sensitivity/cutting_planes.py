"""The best rate as a function of bandwidths: concave, and below planes that cuts and prices give.

Let s be the scales of the classes, 1 today, and A(s) the best algbw when every bandwidth b of class
k is s[k] b. A witness of one optimum bounds all others:

* a cut with what c[k] of class k leaves, and with the data w inside, says
  A(s) <= sum over k of s[k] c[k] (size / w), in fractions;
* prices y >= 0 of a byte on each link, at which moving everything costs D(y) along the cheapest
  ways or trees, say A(s) <= sum over k of s[k] g[k] with g[k] = size / D(y) times the sum of y b
  over class k: what moves everything in the time T has paid D(y) <= T (y . b) at least.

So each is a *plane* through the origin that A never exceeds, and one that touches A at s is tight
there. A is the least of its planes: concave, never falling, and A(c s) = c A(s).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from ccl.bound import Cut
from ccl.errors import CclError
from formulations.analyses.sensitivity.classes import Classes

Number = Fraction | float
"""Exact where cuts decide."""

Scales = tuple[Number, ...]
"""One for each class."""

Ends = tuple[str, str]

SLACK = 1e-9
"""Rates of linear programs are the same within this share."""


class Undecided(CclError):
    """One kind of proof does not hold for some scales; another is to be taken."""


@dataclass(frozen=True, eq=False)
class Plane:
    """A linear function of the scales that the best rate never exceeds.

    Parameters
    ----------
    weights
        GB/s of algbw for each unit of each class's scale.
    cut
        What proves it, with the bandwidths of today, or None where prices do.
    prices
        Share of each link in what holds the rate down, where prices prove it; they add up to 1,
        those of shared limits counted with each of their links.
    """

    weights: tuple[Number, ...]
    cut: Cut | None = None
    prices: Mapping[Ends, float] = field(default_factory=dict)

    def at(self, scales: Sequence[Number]) -> Number:
        """Return its value in GB/s."""
        return self.along(scales)

    def along(self, direction: Sequence[Number]) -> Number:
        """Return by how much it rises along a change of the scales, in GB/s."""
        total: Number = Fraction(0)
        for weight, each in zip(self.weights, direction, strict=True):
            if each:
                total = total + weight * each
        return total


class Rates(ABC):
    """The best rate at any scales, with planes that are tight there; each is found once.

    Parameters
    ----------
    classes
        What changes together.
    """

    def __init__(self, classes: Classes) -> None:
        self.classes = classes
        self._known: dict[Scales, tuple[Plane, ...]] = {}

    def at(self, scales: Scales) -> tuple[Plane, ...]:
        """Return at least one plane that is tight at some scales, all positive.

        Raises
        ------
        Undecided
            If this kind of proof does not hold there.
        """
        if scales not in self._known:
            self._known[scales] = self._found(scales)
        return self._known[scales]

    def value(self, scales: Scales) -> Number:
        """Return the best algbw in GB/s."""
        return self.at(scales)[0].at(scales)

    def same(self, first: Number, second: Number, *, of: Number) -> bool:
        """Whether two rates are the same, as shares of a third: exactly where cuts decide."""
        if first == second:
            return True
        return not self.exact and abs(float(first) - float(second)) <= SLACK * float(of)

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether its numbers are fractions."""

    @abstractmethod
    def _found(self, scales: Scales) -> tuple[Plane, ...]: ...
