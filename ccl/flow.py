"""Fluid flows: how much of each chunk every link carries, without saying when.

Flows taken apart into paths.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ccl.errors import ProblemError
from ccl.problem import Problem


@dataclass(frozen=True, slots=True)
class Rate:
    """What one link carries of one commodity.

    Parameters
    ----------
    chunk
        Number of the chunk, which is the commodity; it has one holder and one destination.
    src, dst
        Ends of the link.
    amount
        Share of the chunk, above 0 and at most 1.
    """

    chunk: int
    src: str
    dst: str
    amount: float

    def __post_init__(self) -> None:
        if not 0 < self.amount <= 1 + 1e-9:
            msg = (
                f"link {self.src}->{self.dst} carries {self.amount} of chunk {self.chunk}; "
                "give more than 0, at most 1"
            )
            raise ProblemError(msg)


@dataclass(frozen=True)
class Flow:
    """A steady state: each chunk is a unit flow from its holder to its destination."""

    rates: tuple[Rate, ...]


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
