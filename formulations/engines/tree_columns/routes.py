"""Routes of crossings: what one piece crosses at once, by number and as arrays.

A route is a path between two devices that store, over devices that do not; or several paths from
one device that part at switches that copy; or several to one device that join at switches that add.
What crosses it is one transmission (`ccl.plans`): it holds each link once, and is counted to take
the latency of its longest path and as long as the bytes take on its slowest, which may be two. So
list scheduling and linear programs need not know of more than routes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ccl.topology import Topology
from formulations.engines.list_scheduling.timed import TimedTransfers, Transfers, transfers_along

Links = tuple[int, ...]
"""Numbers of the links of a route, those of each path in the order in which data crosses them."""


Ends = tuple[int, int]
"""Numbers of the devices that a route of one path joins."""


def paths_of(topology: Topology, links: Links) -> list[tuple[str, ...]]:
    """Return the paths of a route, as devices."""
    ends = [topology.links[link].ends for link in links]
    if all(one[1] == two[0] for one, two in pairwise(ends)):
        return [(ends[0][0], *(dst for _, dst in ends))]
    after, before = dict(ends), {dst: src for src, dst in ends}
    if len(before) == len(ends):  # they part: one link leads to each device
        back = [_followed(before, dst) for dst in before if dst not in after]
        return [each[::-1] for each in back]
    return [_followed(after, src) for src in after if src not in before]


def ends_of(topology: Topology, links: Links) -> Ends:
    """Return the devices that a route of one path joins, by number."""
    first, last = topology.links[links[0]], topology.links[links[-1]]
    return topology.index[first.src], topology.index[last.dst]


def _followed(then: dict[str, str], device: str) -> tuple[str, ...]:
    found = [device]
    while found[-1] in then:
        found.append(then[found[-1]])
    return tuple(found)


class Routes:
    """Routes by number, and what crossing them takes.

    Parameters
    ----------
    topology
        Where they are.
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._numbers: dict[Links, int] = {}
        self._made: Paths | None = None

    def number(self, links: Links) -> int:
        """Return the number of a route, a new one if it is new."""
        return self._numbers.setdefault(links, len(self._numbers))

    def images(self, moved: np.ndarray | None) -> np.ndarray:
        """Return the numbers of the images of all routes, shape (group, routes).

        `moved` are the images of links, shape (group, links), or None of the identity alone.
        """
        known = list(self._numbers)
        if moved is None:
            return np.arange(len(known))[None, :]
        flat = [link for each in known for link in each]
        ends = np.cumsum([0, *map(len, known)]).tolist()
        found = []
        for row in moved[:, flat].tolist():
            images = (tuple(row[i:j]) for i, j in pairwise(ends))
            found.append([self.number(each) for each in images])
        return np.array(found)

    def taken_from(self, others: Routes) -> np.ndarray:
        """Return the numbers here of all routes of others, shape (routes,)."""
        return np.array([self.number(each) for each in others._numbers])

    @property
    def paths(self) -> Paths:
        """The paths of all routes."""
        if self._made is None or len(self._made.transfers) < len(self._numbers):
            each = [paths_of(self.topology, links) for links in self._numbers]
            alone = transfers_along(self.topology, [path for those in each for path in those])
            self._made = Paths(alone, np.cumsum([0, *map(len, each)]))
        return self._made

    @property
    def transfers(self) -> Transfers:
        """All routes as arrays."""
        return self.paths.transfers


@dataclass(frozen=True, eq=False)
class Paths:
    """Paths of routes; p of them, of n routes.

    Parameters
    ----------
    alone
        What each path takes.
    first
        Where the paths of each route begin, shape (n + 1,).
    """

    alone: Transfers
    first: np.ndarray

    @cached_property
    def many(self) -> np.ndarray:
        """Of each route, shape (n,)."""
        return np.diff(self.first)

    @cached_property
    def joins(self) -> np.ndarray:
        """Whether the paths of each route come from several devices, shape (n,)."""
        src, begin = self.alone.src, self.first[:-1]
        return np.minimum.reduceat(src, begin) < np.maximum.reduceat(src, begin)

    @cached_property
    def behind(self) -> tuple[np.ndarray, np.ndarray]:
        """How much later than the first each starts to be there with it, each shape (p,).

        µs and µs per byte: what joins is there at once, what parts starts at once.
        """
        joins = np.repeat(self.joins, self.many)
        found = []
        for took in (self.alone.latency, self.alone.slowest):
            longest = np.repeat(np.maximum.reduceat(took, self.first[:-1]), self.many)
            found.append(np.where(joins, longest - took, 0.0))
        return found[0], found[1]

    @cached_property
    def transfers(self) -> Transfers:
        """Each route as if it were one path that holds the links of all of its paths once."""
        alone, begin = self.alone, self.first[:-1]
        if len(alone) == len(begin):
            return alone
        lag, drags = self.behind
        of = np.repeat(np.arange(len(begin)), self.many)[alone.of_link]
        links = len(alone.topology.links)
        _, where = np.unique(of * links + alone.link, return_index=True)
        where.sort()
        lead, drag = alone.lead + lag[alone.of_link], alone.drag + drags[alone.of_link]
        return Transfers(
            topology=alone.topology,
            routes=tuple(alone.routes[path] for path in begin.tolist()),
            src=alone.src[begin],
            dst=alone.dst[begin],
            first=np.searchsorted(of[where], np.arange(len(begin) + 1)).astype(np.int64),
            link=alone.link[where],
            beta=alone.beta[where],
            lead=lead[where],
            drag=drag[where],
            parts=alone.parts[where],
            latency=np.maximum.reduceat(alone.latency, begin),
            slowest=np.maximum.reduceat(alone.slowest, begin),
        )

    def sent(
        self, route: np.ndarray, chunk: np.ndarray, start: np.ndarray, nbytes: np.ndarray
    ) -> tuple[TimedTransfers, np.ndarray]:
        """Return the transfers of crossings, and the crossing of each.

        Parameters
        ----------
        route, chunk, start, nbytes
            Of each crossing, each shape (crossings,).
        """
        of, path = self._members(route, self.many[route])
        lag, drags = self.behind
        begin = start[of] + lag[path] + nbytes[of] * drags[path]
        return TimedTransfers(path, chunk[of], begin, of), of

    def waits(
        self, route: np.ndarray, before: np.ndarray, after: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return which transfers of crossings wait for which, given which crossings do.

        What joins is there at once and what parts leaves at once, so one of them is enough.
        """
        if len(self.alone) == len(self.many):
            return before, after
        place = np.concatenate([[0], np.cumsum(self.many[route])])
        joins = self.joins[route]
        ends = np.where(joins, 1, self.many[route])[before]
        pair, path = self._members(route[before], ends)
        came = place[before[pair]] + path - self.first[route[before[pair]]]
        starts = np.where(joins, self.many[route], 1)[after][pair]
        again, leaves = self._members(route[after[pair]], starts)
        met = self.alone.dst[path[again]] == self.alone.src[leaves]
        then = place[after[pair[again]]] + leaves - self.first[route[after[pair[again]]]]
        return came[again][met], then[met]

    def _members(self, route: np.ndarray, many: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the first `many` paths of routes: the place of the route of each, and the path."""
        of = np.repeat(np.arange(len(route)), many)
        offset = np.arange(len(of)) - np.repeat(np.cumsum(many) - many, many)
        return of, self.first[route][of] + offset
