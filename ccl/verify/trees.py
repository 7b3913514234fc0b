"""Which sends of a schedule cross their links together: multicasts, and sums on the way.

`ccl.schedule` says when they do; here it is read off the devices of their ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ccl.problem import Problem
from ccl.schedule import Send

Route = tuple[str, ...]
"""The devices of a way, both ends included."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Sends that are one transmission.

    Parameters
    ----------
    places
        Where they are in the order of the schedule, two or more.
    joins
        Whether they run together, as a sum does, rather than part.
    """

    places: tuple[int, ...]
    joins: bool

    @property
    def turn(self) -> int:
        """The place of the whole."""
        return self.places[-1] if self.joins else self.places[0]


def trees(problem: Problem, ordered: Sequence[Send]) -> dict[int, Tree]:
    """Return the tree of each send that is in one, by its place in the order."""
    devices = {each.name: each for each in problem.topology.devices}
    split = {send.chunk for send in ordered if send.fraction < 1}
    found: dict[int, Tree] = {}
    for joins in (False, True):
        alike: dict[tuple[int, int, str, str], list[int]] = {}
        for place, send in enumerate(ordered):
            if not send.via or place in found or send.chunk in split:
                continue
            if not joins:
                key = send.epoch, send.chunk, send.src, send.via[0]
            elif problem.collective.chunks[send.chunk].reduced:
                key = send.epoch, send.chunk, send.dst, send.via[-1]
            else:
                continue
            alike.setdefault(key, []).append(place)
        able = {name for name, each in devices.items() if (each.reduces if joins else each.copies)}
        for (_, _, end, _), places in alike.items():
            if len(places) > 1 and devices[end].stores:
                ways = [_from_the_end(ordered[place], joins=joins) for place in places]
                if _branches(ways, able):
                    tree = Tree(tuple(places), joins)
                    found.update(dict.fromkeys(places, tree))
    return found


def _from_the_end(send: Send, *, joins: bool) -> Route:
    route = (send.src, *send.via, send.dst)
    return route[::-1] if joins else route


def _branches(ways: Sequence[Route], able: set[str]) -> bool:
    """Say whether ways from one end are a tree that branches only at devices that are able."""
    before: dict[tuple[str, str], tuple[str, str] | None] = {}
    onward: dict[tuple[str, str], set[str]] = {}
    for way in ways:
        last = None
        for link in pairwise(way):
            if before.setdefault(link, last) != last:
                return False
            if last is not None:
                onward.setdefault(last, set()).add(link[1])
            last = link
    ends = {way[-2:] for way in ways}
    if len(ends) < len(ways) or any(end in onward for end in ends):
        return False
    return all(link[1] in able for link, next_ones in onward.items() if len(next_ones) > 1)


def meeting(first: Send, second: Send) -> str:
    """Return the device at which two sends that end alike run together."""
    common = second.dst
    ways = (first.src, *first.via, first.dst), (second.src, *second.via, second.dst)
    for one, other in zip(*(way[::-1] for way in ways), strict=False):
        if one != other:
            break
        common = one
    return common
