"""Whole numbers for times in µs, so that what is proved of the whole numbers holds for the µs.

Let ``T`` be the makespan of a plan in continuous time, in ticks. All of its rules are differences:
``s_j - s_i >= y``, where y is a delay (a chunk is sent on after it came) or ``e - l`` (j holds a
link from l after its start on, i until e after its own), and ``T - s_i >= y`` at the end. Put
``S = floor(s)`` for every start and 0 for the beginning. As an integer above ``y - 1``,

    S_j - S_i  >=  floor(y)  >=  floor(e) - ceil(l)        and        floor(T) >= S_i + floor(y).

So if delays are rounded down, and what is held of a link is rounded inwards, every plan in
continuous time is a solution in whole ticks that is not longer: **a lower bound of B ticks on all
solutions is one on all plans.** Windows, loads and symmetries that the model adds follow from its
own whole numbers and need no proof of their own.

A solution says who sends what to whom and in which order; its plan has these in the earliest µs
that keep every order (`formulations.engines.cp_sat.instance`). Each hop and each wait may make it a
tick longer than the solution, so ticks are short, and where all times are multiples of one number
that number is the tick, nothing is rounded, and plan and solution are equally long: the proof is
exact.

A time counts as a multiple if it is within NEAR ticks of one. Then each y is too large by 2 NEAR
at most, and the longest chain of n waits by 2 n NEAR, which is taken off the bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NEAR = 1e-8
"""Share of a tick that is none; times in double precision are nearer to their multiple."""

MOST_TICKS = 4_000_000
"""Most ticks of a plan: so many that even a chain of waits rounded loses little."""


@dataclass(frozen=True)
class Ticks:
    """Times as whole numbers.

    Parameters
    ----------
    duration
        µs of a tick.
    exact
        Whether all times are multiples of it.
    """

    duration: float
    exact: bool

    def down(self, times: np.ndarray) -> np.ndarray:
        """Return times in µs as whole ticks, rounded down."""
        return np.floor(np.asarray(times) / self.duration + NEAR).astype(np.int64)

    def up(self, times: np.ndarray) -> np.ndarray:
        """Return times in µs as whole ticks, rounded up."""
        return np.ceil(np.asarray(times) / self.duration - NEAR).astype(np.int64)

    def proved(self, ticks: int, *, waits: int) -> float:
        """Return the bound in µs that so many ticks prove for chains of `waits` at most."""
        return max(0.0, (ticks - 2 * NEAR * waits) * self.duration)


def ticks_for(times: np.ndarray, *, longest: float) -> Ticks:
    """Choose the tick for some times.

    Parameters
    ----------
    times
        All that occur in the model, in µs.
    longest
        µs of the longest plan that matters.
    """
    shortest = longest / MOST_TICKS
    values = np.unique(times[times > 0])
    common = _common(values, shortest)
    if common is None:
        return Ticks(shortest, exact=False)
    return Ticks(common, exact=True)


def _common(values: np.ndarray, shortest: float) -> float | None:
    """Return the largest number of which all values are multiples, or None if it is too short."""
    common = 0.0
    for value in values.tolist():
        a, b = value, common
        while b > shortest / 2:
            a, b = b, a - b * round(a / b)
            b = abs(b)
        common = a
    if common < shortest:
        return None
    # What Euclid's algorithm left of rounding is taken out by the largest value.
    common = float(values[-1] / round(values[-1] / common))
    off = values / common - np.round(values / common)
    return common if np.abs(off).max() <= NEAR else None
