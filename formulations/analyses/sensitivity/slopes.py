"""One-sided derivatives of the best rate, proved.

Along a direction d from the scales 1 of today let f(t) = A(1 + t d), concave and made of finitely
many straight pieces (`formulations.analyses.sensitivity.cutting_planes`). Its derivative to the
right at 0 is the least slope among *all* planes that are tight at 0; a solve finds only some of
them, and any vertex of the optimal dual face. So look further away, where planes that rise less
take over:

1. let p be the tight plane of least slope found so far, and t some way off;
2. solve at t. If p is tight there too, f is straight between 0 and t, since it is concave and
   below p: the slope of p is the derivative, and p the proof;
3. else some plane q is tight at t and below p there. If it is tight at 0 as well it was a better p.
   Else p and q meet between 0 and t; look there next.

Every round finds another plane, so it ends; nothing is a difference of nearby values, and no step
is "small enough". The derivative to the left is that along -d, with the sign turned.

Source: Eisner and Severance, Mathematical techniques for efficient record segmentation in large
shared databases (Journal of the ACM 23, 1976), whose tangents find all pieces; here the first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction

from formulations.analyses.sensitivity.cutting_planes import Number, Plane, Rates, Scales, Undecided

ROUNDS = 100
"""More rounds than any cluster was seen to need; exact numbers need no such limit."""

FAR_UP = Fraction(1)
FAR_DOWN = Fraction(1, 2)
"""Where to look first: twice the bandwidth, and half of it."""


class Slopes:
    """What the best rate does from today's bandwidths on.

    Parameters
    ----------
    rates
        The best rate at any scales.

    Attributes
    ----------
    now
        Best algbw today, in GB/s.
    tight
        Planes that are tight today, as far as they were met.
    """

    def __init__(self, rates: Rates) -> None:
        self.rates = rates
        self.one: Scales = (Fraction(1),) * rates.classes.many
        self.tight = list(rates.at(self.one))
        self.now = self.tight[0].at(self.one)

    def more(self, classes: Collection[int]) -> tuple[Number, Plane]:
        """Return d ln algbw / d ln bandwidth to the right, of classes raised together.

        Returns
        -------
        tuple
            It, from 0 to 1, and the tight plane that rises no more.
        """
        direction = self._direction(classes, 1)
        least = self._least(direction)
        # It never falls, so nothing is less than nothing.
        held = least if self._none(least, direction) else self._toward(direction, FAR_UP)
        return max(Fraction(0), held.along(direction) / self.now), held

    def less(self, classes: Collection[int]) -> tuple[Number, Plane]:
        """Return the same to the left: what a share less costs, in shares.

        Returns
        -------
        tuple
            It, from 0 to 1, and the tight plane that falls as much.
        """
        direction = self._direction(classes, -1)
        held = self._toward(direction, FAR_DOWN)
        return max(Fraction(0), -held.along(direction) / self.now), held

    def at_most(self, classes: Collection[int]) -> Number:
        """Return the most that classes raised together can give, by the planes met so far."""
        direction = self._direction(classes, 1)
        return self._least(direction).along(direction) / self.now

    def _toward(self, direction: Sequence[int], step: Number) -> Plane:
        """Return a tight plane of least slope along a direction."""
        for _ in range(ROUNDS):
            point = tuple(1 + step * each for each in direction)
            held = self.rates.at(point)
            self._keep(held)
            near = self._least(direction)
            if self._same(near.at(point), held[0].at(point)):
                return near
            beyond = max(held, key=lambda plane: plane.along(direction))
            over = beyond.at(self.one) - self.now
            step = over / (near.along(direction) - beyond.along(direction))
        msg = f"no straight piece was found within {ROUNDS} rounds"
        raise Undecided(msg)

    def _keep(self, planes: Sequence[Plane]) -> None:
        known = {plane.weights for plane in self.tight}
        for plane in planes:
            if plane.weights not in known and self._same(plane.at(self.one), self.now):
                self.tight.append(plane)

    def _least(self, direction: Sequence[int]) -> Plane:
        return min(self.tight, key=lambda plane: plane.along(direction))

    def _none(self, plane: Plane, direction: Sequence[int]) -> bool:
        return self._same(plane.along(direction), Fraction(0))

    def _same(self, first: Number, second: Number) -> bool:
        return self.rates.same(first, second, of=self.now)

    def _direction(self, classes: Collection[int], sign: int) -> tuple[int, ...]:
        return tuple(sign * (k in classes) for k in range(self.rates.classes.many))
