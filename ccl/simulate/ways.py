"""The links that a transmission crosses: of one send, or of several that part or run together.

`ccl.schedule` says which sends of an epoch cross links together. They are found here by laying
their ways into one another, device by device from the end that they share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from ccl.problem import Problem
from ccl.schedule import Send

Route = tuple[str, ...]
"""Devices along a way, its ends included."""

_Node: TypeAlias = "dict[str, _Node]"
"""The devices that follow one, each with what follows it."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One link of a way.

    Parameters
    ----------
    link, ends
        Its number and its ends.
    beta, alpha
        Its µs per byte, of the tightest limit that it is under where that is more, and its
        latency in µs.
    offset
        µs from the common start until its first byte.
    limited
        Whether it is under a shared limit that binds.
    after
        Places in the way of the links that its bytes come from.
    """

    link: int
    ends: tuple[str, str]
    beta: float
    alpha: float
    offset: float
    limited: bool
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """Links that are crossed together, each once, no link before those that its bytes come from.

    Parameters
    ----------
    hops
        The links.
    joins
        Whether several sends run together on it, rather than part.
    own
        Of each send the places of the links that it crosses, in order.
    lags
        µs after the common start at which each send leaves its device.
    latency
        µs of alphas from the common start to the arrival of each send.
    """

    hops: tuple[Hop, ...]
    joins: bool
    own: tuple[tuple[int, ...], ...]
    lags: tuple[float, ...]
    latency: tuple[float, ...]

    def brings(self, member: int) -> Sequence[int]:
        """Return the places of all links that what a send brings has crossed."""
        return range(len(self.hops)) if self.joins else self.own[member]


class Ways:
    """Lays out each way once; `caps` has the GB/s of the tightest limit of each limited link."""

    def __init__(self, problem: Problem, caps: Mapping[tuple[str, str], float]) -> None:
        self._topology = problem.topology
        self._caps = caps
        self._laid: dict[tuple[bool, tuple[Route, ...]], Way] = {}

    def of(self, routes: tuple[Route, ...], *, joins: bool) -> Way:
        """Return the way of one route, or of several that are crossed together."""
        way = self._laid.get((joins, routes))
        if way is None:
            way = self._laid[joins, routes] = self._lay(routes, joins=joins)
        return way

    def _lay(self, routes: tuple[Route, ...], *, joins: bool) -> Way:
        link = self._topology.link
        latency = [sum(link(*ends).alpha for ends in pairwise(route)) for route in routes]
        longest = max(latency)
        lags = [longest - each if joins else 0.0 for each in latency]
        offset: dict[tuple[str, str], float] = {}
        after: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for route, lag in zip(routes, lags, strict=True):
            before: tuple[str, str] | None = None
            late = lag
            for ends in pairwise(route):
                offset.setdefault(ends, late)
                those = after.setdefault(ends, [])
                if before is not None and before not in those:
                    those.append(before)
                late += link(*ends).alpha
                before = ends
        # What ways share at their ends has the largest offsets of all that leads to it.
        placed = sorted(after, key=lambda ends: _depth(ends, after))
        place = {ends: i for i, ends in enumerate(placed)}
        return Way(
            hops=tuple(
                self._hop(ends, offset[ends], tuple(place[each] for each in after[ends]))
                for ends in placed
            ),
            joins=joins,
            own=tuple(tuple(place[ends] for ends in pairwise(route)) for route in routes),
            lags=tuple(lags),
            latency=tuple([longest] * len(routes) if joins else latency),
        )

    def _hop(self, ends: tuple[str, str], offset: float, after: tuple[int, ...]) -> Hop:
        link = self._topology.link(*ends)
        return Hop(
            link=self._topology.link_index[ends],
            ends=ends,
            beta=1e-3 / min(link.bandwidth, self._caps.get(ends, link.bandwidth)),
            alpha=link.alpha,
            offset=offset,
            limited=ends in self._caps,
            after=after,
        )


def _depth(ends: tuple[str, str], after: Mapping[tuple[str, str], list[tuple[str, str]]]) -> int:
    """Count the links on the longest way to the end of a link."""
    return 1 + max((_depth(each, after) for each in after[ends]), default=0)


def together(problem: Problem, sends: Sequence[Send]) -> list[tuple[tuple[int, ...], bool]]:
    """Return the places of sends that are one transmission, in turn, and whether they join."""
    split = {send.chunk for send in sends if send.fraction < 1}
    crossing = [i for i, send in enumerate(sends) if send.via and send.chunk not in split]
    shared = {group[0]: group for group in _groups(problem, sends, crossing, joins=False)}
    parted = {i for group in shared.values() for i in group}
    chunks = problem.collective.chunks
    summed = [i for i in crossing if i not in parted and chunks[sends[i].chunk].reduced]
    shared |= {group[-1]: group for group in _groups(problem, sends, summed, joins=True)}
    inside = {i for group in shared.values() for i in group}
    return [
        (shared.get(i, (i,)), i in shared and i not in parted)
        for i in range(len(sends))
        if i in shared or i not in inside
    ]


def _groups(
    problem: Problem, sends: Sequence[Send], places: Sequence[int], *, joins: bool
) -> list[tuple[int, ...]]:
    """Return sends which begin with the same link, or end with it, and are a tree."""
    found: dict[tuple[int, int, str, str], list[int]] = {}
    for i in places:
        send = sends[i]
        root, next_one = (send.dst, send.via[-1]) if joins else (send.src, send.via[0])
        found.setdefault((send.epoch, send.chunk, root, next_one), []).append(i)
    device = problem.topology.device
    able = {
        each.name: (each.reduces if joins else each.copies) for each in problem.topology.devices
    }
    groups = []
    for (_, _, root, _), group in found.items():
        if len(group) > 1 and device(root).stores:
            routes = [(sends[i].src, *sends[i].via, sends[i].dst) for i in group]
            if _is_tree([route[::-1] for route in routes] if joins else routes, able):
                groups.append(tuple(group))
    return groups


def _is_tree(routes: Sequence[Route], able: Mapping[str, bool]) -> bool:
    """Say whether routes from one device branch where they may and meet nowhere again."""
    root: _Node = {}
    for route in routes:
        node = root
        for name in route[1:]:
            node = node.setdefault(name, {})
    links: list[Route] = []
    leaves = 0
    waiting = [(routes[0][0], root)]
    while waiting:
        name, node = waiting.pop()
        if len(node) > 1 and not able[name]:
            return False
        leaves += not node
        links += [(name, onward) for onward in node]
        waiting += node.items()
    return leaves == len(routes) and len(set(links)) == len(links)
