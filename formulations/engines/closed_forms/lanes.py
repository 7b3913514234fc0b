"""Several rings side by side, none of which takes bandwidth that another has.

At a pace, a link has as many lanes as its bandwidth goes into. Rings are searched one after the
other over the lanes that are left, those that can be gone around both ways first; what a symmetry
makes of the last ring is tried before anything is searched. Where one more may be there the search
begins again with the ranks in another order. No claim is made that there are no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from ccl.symmetry import symmetry_of
from ccl.topology import Topology
from formulations.engines.closed_forms.cycles import WORK, Hop, Patience, cycle
from formulations.engines.closed_forms.routing import Joined, paces
from formulations.engines.list_scheduling.routes import moves_of

SEARCHES = 12
"""Searches among which the work for a pace is shared."""

ATTEMPTS = 20
"""Orders of the ranks that are tried at one pace, all but the first by chance."""

FEW = 64
"""Ranks up to which more than one order is tried."""


@dataclass(frozen=True)
class Rings:
    """Rings that take no more of any link than it has.

    Parameters
    ----------
    pace
        GB/s that each may have all around.
    both
        Those that may be gone around in both directions at once.
    ahead
        Those that may be gone around in one direction besides.
    """

    pace: float
    both: tuple[np.ndarray, ...]
    ahead: tuple[np.ndarray, ...]

    def chosen(self, *, both: bool) -> tuple[np.ndarray, ...]:
        """Return rings to be gone around both ways, or all of them, each in its own direction."""
        if both:
            return self.both
        turned = (np.roll(ring[::-1], 1) for ring in self.both)
        return (*self.both, *turned, *self.ahead)


def side_by_side(topology: Topology) -> list[Rings]:
    """Return for each pace of a link as many rings as were found."""
    lanes = _Lanes(topology)
    every = [lanes.rings(pace) for pace in paces(topology)]
    return [each for each in every if each.both or each.ahead]


class _Lanes:
    """How often each link can be taken at a pace."""

    def __init__(self, topology: Topology) -> None:
        self.count = len(topology.ranks)
        self.bandwidth = np.array([link.bandwidth for link in topology.links])
        self.speed: list[float] = self.bandwidth.tolist()
        self.left: list[int] = []
        self.spent = 0
        self.symmetries = symmetry_of(topology).ranks[1:]
        moves = moves_of(topology)
        rank = {topology.index[name]: rank for name, rank in topology.rank.items()}
        self.ways: dict[tuple[int, int], list[Hop]] = {}
        hops = np.split(moves.link, moves.first[1:-1])
        for src, dst, hop in zip(moves.src.tolist(), moves.dst.tolist(), hops, strict=True):
            if src in rank and dst in rank:
                self.ways.setdefault((rank[src], rank[dst]), []).append(tuple(hop.tolist()))
        for every in self.ways.values():
            every.sort(key=len)

    def rings(self, pace: float) -> Rings:
        """Find rings at a pace, as many as there are."""
        left = WORK
        chance = np.random.default_rng(0)
        best = Rings(pace, (), ())
        for attempt in range(ATTEMPTS if self.count <= FEW else 1):
            order = chance.permutation(self.count) if attempt else np.arange(self.count)
            self.spent = 0
            found = self._attempt(pace, order)
            left -= self.spent
            if len(found.chosen(both=False)) > len(best.chosen(both=False)):
                best = found
            if len(best.chosen(both=False)) >= self._most or left <= 0:
                break
        return best

    def _attempt(self, pace: float, order: np.ndarray) -> Rings:
        self.left = np.floor(self.bandwidth / pace * (1 + 1e-9)).astype(int).tolist()
        self._most = self._ports()
        both = self._found(order, self._take_both, mutual=True)
        return Rings(pace, both, self._found(order, self._take, mutual=False))

    def _ports(self) -> int:
        """Return a number of rings above which some GPU has no links left."""
        out, into = [0] * self.count, [0] * self.count
        seen: set[tuple[int, int]] = set()
        for (src, dst), hops in self.ways.items():
            for hop in hops:
                for ports, rank, link in ((out, src, hop[0]), (into, dst, hop[-1])):
                    if (id(ports), link) not in seen:
                        seen.add((id(ports), link))
                        ports[rank] += self.left[link]
        return min(*out, *into)

    def _found(
        self, order: np.ndarray, take: Callable[[int, int], Hop | None], *, mutual: bool
    ) -> tuple[np.ndarray, ...]:
        """Take rings one after the other, each beginning at another rank."""
        rings: list[np.ndarray] = []
        while True:
            image = self._image(rings, take)
            if image is not None:
                rings.append(image)
                continue
            at = np.roll(order, -len(rings)).tolist()
            place = np.argsort(at)
            every = [each.mutual if mutual else each for each in self._joined(place.tolist())]
            patience = Patience(max(WORK // SEARCHES, 100 * self.count))
            begin = patience.left
            ring = cycle(
                every[-1],
                patience,
                faster=every[:-1],
                take=partial(_as_places, take, at),
                give=self._give,
            )
            self.spent += begin - patience.left
            if ring is None:
                return tuple(rings)
            rings.append(np.array(at)[ring])

    def _image(
        self, rings: Sequence[np.ndarray], take: Callable[[int, int], Hop | None]
    ) -> np.ndarray | None:
        """Take the image of the last ring under a symmetry that fits beside all of them."""
        for images in self.symmetries if rings else ():
            ring = images[rings[-1]]
            hops: list[Hop] = []
            for src, dst in pairwise([*ring.tolist(), int(ring[0])]):
                hop = take(src, dst)
                if hop is None:
                    break
                hops.append(hop)
            if len(hops) == len(ring):
                return np.array(ring)
            for hop in hops:
                self._give(hop)
        return None

    def _joined(self, place: list[int]) -> list[Joined]:
        """Return which places free ways join, at first by the fastest and shortest only."""
        pairs: dict[tuple[float, int], list[tuple[int, int]]] = {}
        for (src, dst), hops in self.ways.items():
            hop = self._shortest(hops)
            if hop is not None:
                near = -min(self.speed[link] for link in hop), len(hop)
                pairs.setdefault(near, []).append((place[src], place[dst]))
        kinds = sorted(pairs) or [(0.0, 0)]
        return [
            Joined.of(self.count, (pair for each in kinds[: i + 1] for pair in pairs.get(each, ())))
            for i in range(len(kinds))
        ]

    def _shortest(self, hops: list[Hop]) -> Hop | None:
        return next((hop for hop in hops if all(self.left[link] for link in hop)), None)

    def _take(self, src: int, dst: int) -> Hop | None:
        hop = self._shortest(self.ways[src, dst])
        for link in hop or ():
            self.left[link] -= 1
        return hop

    def _take_both(self, src: int, dst: int) -> Hop | None:
        there = self._take(src, dst)
        back = None if there is None else self._take(dst, src)
        if there is None or back is None:
            self._give(there or ())
            return None
        return (*there, *back)

    def _give(self, hop: Hop) -> None:
        for link in hop:
            self.left[link] += 1


def _as_places(
    take: Callable[[int, int], Hop | None], at: list[int], src: int, dst: int
) -> Hop | None:
    return take(at[src], at[dst])
