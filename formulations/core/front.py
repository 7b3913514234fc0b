"""Front of sends and makespan: the plans of one solve that no other beats with as few sends.

Cutting shards into more pieces lets links overlap, and every piece costs a send. The replay knows
alpha and beta of links and no cost of a send itself, so the shortest plan may have a hundred
pieces where eight take a few per cent longer. Every plan that a solve verifies on its way to the
best is offered here; those that are worth a choice stay.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from ccl.result import SAME, Result, Stop

MOST_POINTS = 8
"""Plans of a front, the best included."""

MOST_TRANSFERS = 100_000
"""Transfers of a plan up to which it stays in memory beside the best."""

SLIGHT = 1e-3
"""Share of the makespan that more sends must save."""


class Front:
    """Verified plans of the same bytes, the fewest sends first, so the longest makespan first."""

    def __init__(self) -> None:
        self._points: list[Result] = []

    def add(self, result: Result) -> None:
        """Keep a plan unless one with as few sends is as short, or one with fewer hardly longer."""
        if result.timeline.images * len(result.timeline.transfers) > MOST_TRANSFERS:
            return
        if any(_replaces(each, result) for each in self._points):
            return
        rest = [each for each in self._points if not _replaces(result, each)]
        self._points = _thinned(sorted([*rest, result], key=lambda each: each.sends), MOST_POINTS)

    def simpler(self, best: Result) -> tuple[Result, ...]:
        """Return the plans with fewer sends than the best.

        A best plan by another objective than the makespan may take longer than some; these are
        not simpler but other answers.
        """
        least = best.makespan * (1 - SAME)
        fewer = [
            each for each in self._points if each.sends < best.sends and each.makespan >= least
        ]
        points = _thinned(fewer, MOST_POINTS - 1)
        return tuple(replace(each, stop=Stop.FEWER) for each in points)


def _replaces(one: Result, other: Result) -> bool:
    """Return whether nobody needs the other plan."""
    slack = SLIGHT if one.sends < other.sends else 0.0
    return one.sends <= other.sends and one.makespan <= other.makespan * (1 + slack)


def _thinned(points: list[Result], most: int) -> list[Result]:
    """Leave out those whose place the next with fewer sends takes at the least loss.

    The first and the last stay.
    """
    while len(points) > most:
        losses = [before.makespan / each.makespan for before, each in pairwise(points[:-1])]
        place = 1 + losses.index(min(losses))
        points = points[:place] + points[place + 1 :]
    return points
