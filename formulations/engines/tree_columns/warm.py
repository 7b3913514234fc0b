"""Trees to begin with: steps of Frank and Wolfe on a smooth maximum of the loads.

The rows are priced by how full they are, exp(sharpness * load); the cheapest trees at these prices
get a share of the data, as much as lowers the smooth maximum most. The sharpness grows, so the
loads come near the best ones, and the trees that were used are a pool in which the master finds
far better combinations than it would from its own first prices, which see a row or two at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from formulations.engines.tree_columns.multicast import Floats

ROUNDS = 20
"""Steps at most."""

WIDE, NARROW = 0.5, 0.02
"""Share of the largest load by which loads may stay below it and still count, first and last."""

ENOUGH = 1e-4
"""Steps end when the largest load falls by less than this share of it in three of them."""

GOLDEN = (5**0.5 - 1) / 2


def warmed(loads: Floats, step: Callable[[Floats], Floats], *, done: Callable[[], bool]) -> None:
    """Take steps.

    Parameters
    ----------
    loads
        µs of each row to begin with, shape (rows,).
    step
        Finds trees at prices of the rows, keeps them, and returns their loads.
    done
        Whether to stop.
    """
    largest = [float(loads.max())]
    for number in range(ROUNDS):
        width = max(NARROW, WIDE / (number + 1) ** 0.7)
        sharpness = np.log(len(loads) + 1) / (loads.max() * width)
        prices = np.exp(sharpness * (loads - loads.max()))
        other = step(prices / prices.sum())
        loads = loads + _share(loads, other, sharpness) * (other - loads)
        largest.append(float(loads.max()))
        if done() or (number > 3 and largest[-4] - largest[-1] < ENOUGH * largest[-1]):
            return


def _share(loads: Floats, other: Floats, sharpness: float) -> float:
    """Return how far to go from one to the other, by golden section."""
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        values = [_smooth(loads + each * (other - loads), sharpness) for each in (left, right)]
        if values[0] < values[1]:
            high = right
        else:
            low = left
    return (low + high) / 2


def _smooth(loads: Floats, sharpness: float) -> float:
    largest = loads.max()
    return float(largest + np.log(np.exp(sharpness * (loads - largest)).sum()) / sharpness)
