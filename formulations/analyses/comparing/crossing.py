"""Where another method becomes the fastest as the size grows.

Makespans are known at some sizes. Between two neighbouring ones, m0 < m1, each method's is drawn
on logarithmic axes as a straight line: with x = ln(m / m0) / ln(m1 / m0) from 0 to 1,

    ln T(x) = (1 - x) ln T(m0) + x ln T(m1).

For a method that is the fastest and one that will be, d(x) = ln T_after(x) - ln T_before(x) is a
straight line, too, with d0 = d(0) >= 0 and d1 = d(1) < 0. It is zero at

    x = d0 / (d0 - d1),    m = m0 (m1 / m0)^x,    ln T = (1 - x) ln T_after(m0) + x ln T_after(m1).

Of all methods that are faster at m1 than the one that is the fastest now, the one that meets it
first takes over, and so on until none is left: the lower envelope of straight lines. A method that
takes the same as the fastest does not take over, but where several take the same at the first size,
the one leads that does so after it. Nothing is interpolated where a method has no
result at one of the two sizes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ccl.result import PROOF_TOLERANCE

if TYPE_CHECKING:
    from formulations.analyses.comparing.nouns import Comparison, Crossover, Method

Times = Mapping[str, float]
"""Logarithms of makespans in µs, by method."""

_NOBODY: Times = {}

SAME = math.log1p(PROOF_TOLERANCE)
"""Logarithms this close are the same makespan, and shares the same place."""


def crossovers(comparison: Comparison) -> tuple[Crossover, ...]:
    """Return them by size."""
    return _walk(comparison)[1]


def leaders(comparison: Comparison) -> tuple[Method | None, ...]:
    """Return who is the fastest at each size: who was before, where others take the same."""
    return _walk(comparison)[0]


def _walk(comparison: Comparison) -> tuple[tuple[Method | None, ...], tuple[Crossover, ...]]:
    """Go from size to size; return who leads at each, and where another takes over."""
    from formulations.analyses.comparing.nouns import Crossover  # noqa: PLC0415  they ask for these

    methods = {str(each): each for each in comparison.methods}
    lead: list[Method | None] = []
    found: list[Crossover] = []
    now, before = "", (0.0, _NOBODY)
    for size in comparison.sizes:
        times = _times(comparison, size)
        both = {name: (before[1][name], times[name]) for name in before[1] if name in times}
        for after, share, time in _taken_over(both, now):
            if len(lead) == 1 and _fastest(before[1], after) == after:
                # It takes the same at the first size, so that it leads from there.
                lead[0], now = methods[after], after
                continue
            place = math.exp((1 - share) * math.log(before[0]) + share * math.log(size))
            found.append(Crossover(place, math.exp(time), methods[now], methods[after]))
            now = after
        now, before = _fastest(times, now), (size, times)
        lead.append(methods.get(now))
    return tuple(lead), tuple(found)


def _times(comparison: Comparison, size: float) -> Times:
    asked = [str(each) for each in comparison.methods]
    there = [row for row in comparison.at(size) if row.result is not None]
    there.sort(key=lambda row: asked.index(str(row.method)))
    return {str(row.method): math.log(row.result.makespan) for row in there if row.result}


def _fastest(times: Times, now: str) -> str:
    """Return the fastest method: `now` if it is among them, else the first that was asked."""
    if not times:
        return ""
    least = min(times.values()) + SAME
    near = [name for name, time in times.items() if time <= least]
    return now if now in near else near[0]


def _taken_over(
    both: Mapping[str, tuple[float, float]], now: str
) -> list[tuple[str, float, float]]:
    """Return who takes over, at which share of the way, and the logarithm of its time there.

    Parameters
    ----------
    both
        Logarithms of the makespans at both ends, by method.
    now
        The fastest at the first end.
    """
    found: list[tuple[str, float, float]] = []
    while now in both:
        begin, end = both[now]
        faster = {
            name: _meet(max(0.0, first - begin), last - end)
            for name, (first, last) in both.items()
            if last < end - SAME
        }
        if not faster:
            break
        soon = [name for name, share in faster.items() if share <= min(faster.values()) + SAME]
        # Of those that meet it at the same place, who will be the fastest and was asked first.
        least = min(both[name][1] for name in soon)
        now = next(name for name in soon if both[name][1] <= least + SAME)
        share, (first, last) = faster[now], both[now]
        found.append((now, share, (1 - share) * first + share * last))
    return found


def _meet(over: float, under: float) -> float:
    """Return the share of the way at which a line goes from `over` zero to `under` it."""
    return over / (over - under)
