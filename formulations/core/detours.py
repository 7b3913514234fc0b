"""Plans without needless detours: fewer links for the same data, and not a moment later.

A solver that looks for the least makespan alone has many optimal plans, and may take one in which a
chunk goes from a to b and on to c where b has no need of it and a link leads straight from a to c.
Here such pairs of sends become one. A plan with fewer sends is kept only if it passes the verifier
and its replay is not longer, so that whatever was proved of the makespan stays true.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.result import SAME, Result
from ccl.timeline import Transfers

MOST_SENDS = 20_000
"""Sends of a plan above which it stays as it is: each trial is a replay."""

FEW_SENDS = 200
"""Sends up to which a plan is straightened before others are there to be compared with."""

MOST_TRIALS = 24
"""Plans that are verified and replayed on the way."""

Judge = Callable[[Schedule], Result | None]
"""Makes a result of a plan, None where it breaks a rule."""


@dataclass(frozen=True, slots=True)
class Detour:
    """Two sends of a chunk over a device that has no need of it.

    Parameters
    ----------
    first, second
        Numbers of the sends.
    via
        Devices that the one send instead of them crosses.
    """

    first: int
    second: int
    via: tuple[str, ...]


def moves_less(one: Result, other: Result) -> bool:
    """Return whether less data crosses links in one plan, or as much in fewer transfers.

    What crosses several links counts on each of them.
    """
    (few, count), (many, most) = _moved(one), _moved(other)
    return few < many * (1 - SAME) or (few <= many * (1 + SAME) and count < most)


def _moved(result: Result) -> tuple[float, int]:
    timeline = result.timeline
    moves = timeline.transfers
    nbytes = moves.nbytes.sum() if isinstance(moves, Transfers) else sum(m.nbytes for m in moves)
    return timeline.images * float(nbytes), timeline.images * len(moves)


def straighten(result: Result, judge: Judge) -> Result:
    """Return a result without the detours that can be left out, or the same one.

    Parameters
    ----------
    result
        Whose plan may have some.
    judge
        What verifies and replays a plan.
    """
    trials = MOST_TRIALS
    while isinstance(result.plan, Schedule) and len(result.plan.sends) <= MOST_SENDS:
        better, trials = _shorter(result, result.plan, judge, trials=trials)
        if better is None:
            break
        result = better
    return result


def _shorter(
    result: Result, plan: Schedule, judge: Judge, *, trials: int
) -> tuple[Result | None, int]:
    """Return a plan with fewer detours, if one is found, and how many trials are left."""
    waiting = [_apart(_detours(result.problem, plan))]
    while waiting and trials > 0:
        some = waiting.pop(0)
        if not some:
            continue
        for late in (True, False):
            trials -= 1
            found = judge(_without(plan, some, late=late))
            if found is not None and found.makespan <= result.makespan * (1 + SAME):
                return found, trials
        if len(some) > 1:
            half = len(some) // 2
            waiting += [some[:half], some[half:]]
    return None, trials


def _detours(problem: Problem, plan: Schedule) -> list[Detour]:
    """Find pairs of sends that one send over fewer links could replace."""
    collective, topology = problem.collective, problem.topology
    needs = [
        {topology.ranks[rank] for rank in (*chunk.holders, *chunk.destinations)}
        for chunk in collective.chunks
    ]
    into: dict[tuple[int, str], list[int]] = defaultdict(list)
    out: dict[tuple[int, str], list[int]] = defaultdict(list)
    for number, send in enumerate(plan.sends):
        into[send.chunk, send.dst].append(number)
        out[send.chunk, send.src].append(number)
    found = []
    for (chunk, place), firsts in into.items():
        seconds = out.get((chunk, place), [])
        alone = len(firsts) == len(seconds) == 1 and place not in needs[chunk]
        if not alone or collective.chunks[chunk].reduced:
            continue
        first, second = plan.sends[firsts[0]], plan.sends[seconds[0]]
        if first.fraction != second.fraction or first.src == second.dst:
            continue
        via = _straight(problem, first.src, second.dst)
        if via is not None and len(via) + 1 < len(first.hops) + len(second.hops):
            found.append(Detour(firsts[0], seconds[0], via))
    return found


def _straight(problem: Problem, src: str, dst: str) -> tuple[str, ...] | None:
    """Return what a send crosses that takes one link, or two over a switch; None without either."""
    topology = problem.topology
    ends = topology.link_index
    if (src, dst) in ends:
        return ()
    next_to = (topology.device(link.dst) for link in topology.links_out[src])
    between = (each.name for each in next_to if not each.stores)
    return next(((name,) for name in between if (name, dst) in ends), None)


def _apart(detours: Sequence[Detour]) -> list[Detour]:
    """Return detours of which no two have a send in common."""
    used: set[int] = set()
    found = []
    for each in detours:
        if not used & {each.first, each.second}:
            used |= {each.first, each.second}
            found.append(each)
    return found


def _without(plan: Schedule, detours: Sequence[Detour], *, late: bool) -> Schedule:
    """Return a plan in which one send goes straight, when the second or the first of a pair did."""
    sends: list[Send | None] = list(plan.sends)
    for each in detours:
        first, second = plan.sends[each.first], plan.sends[each.second]
        sends[each.first] = sends[each.second] = None
        straight = replace(second, src=first.src, via=each.via)
        sends[each.second if late else each.first] = (
            straight if late else replace(straight, epoch=first.epoch)
        )
    return replace(plan, sends=tuple(each for each in sends if each is not None))
