"""Flows taken apart into paths."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator

from ccl.flow import Flow
from ccl.problem import Problem

_NOTHING = 1e-12
"""Shares of a chunk below this are rounding errors of a solver."""

_Amounts = defaultdict[str, dict[str, float]]


def paths(problem: Problem, flow: Flow) -> Iterator[tuple[int, list[tuple[float, list[str]]]]]:
    """Yield each chunk that flows with its paths: the share of each and the devices along it.

    The shares of a chunk add up to 1 as nearly as the flow does. Short paths come first.
    """
    amounts: defaultdict[int, _Amounts] = defaultdict(lambda: defaultdict(dict))
    for rate in flow.rates:
        out = amounts[rate.chunk][rate.src]
        out[rate.dst] = out.get(rate.dst, 0.0) + rate.amount
    ranks = problem.topology.ranks
    for number in sorted(amounts):
        chunk = problem.collective.chunks[number]
        if chunk.in_place:
            continue
        start, goal = ranks[chunk.holders[0]], ranks[chunk.destinations[0]]
        yield number, list(_taken(amounts[number], start, goal=goal))


def _taken(amounts: _Amounts, start: str, *, goal: str) -> Iterator[tuple[float, list[str]]]:
    """Take paths with their shares off the amounts, which are used up, until none is left."""
    while True:
        came_from = {start: ""}
        front = [start]
        while front and goal not in came_from:
            device = front.pop(0)
            for dst, amount in amounts[device].items():
                if amount > _NOTHING and dst not in came_from:
                    came_from[dst] = device
                    front.append(dst)
        if goal not in came_from:
            return
        path = [goal]
        while path[-1] != start:
            path.append(came_from[path[-1]])
        path.reverse()
        share = min(amounts[src][dst] for src, dst in itertools.pairwise(path))
        for src, dst in itertools.pairwise(path):
            amounts[src][dst] -= share
        yield share, path
