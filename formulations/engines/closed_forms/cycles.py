"""Rings: cycles through all ranks, as fast as can be.

A ring is searched depth first, over fast ways before slow ones and short ones before long ones,
ranks in the order of the drawing. Once it has had to turn back, a step is taken only if all that
are left can be reached from it, and the first rank from them. No claim is made that no better
ring exists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ccl.topology import Topology
from formulations.engines.closed_forms.routing import Joined, nearest, reached

WORK = 600_000
"""Ranks looked at in the searches for a ring, after which there is none; half a second."""

Hop = tuple[int, ...]
"""Links that a ring takes from a rank to the next."""


def ring_of(topology: Topology, *, both: bool = False) -> np.ndarray | None:
    """Return the ranks around a ring, its slowest hop as fast as could be found, or None.

    With `both`, ways lead around it in both directions.
    """
    if len(topology.ranks) < 2:
        return None
    found: list[Joined] = []
    patience = Patience(WORK)
    for near in nearest(topology):
        ways = near.mutual if both else near
        ring = cycle(ways, patience, faster=found)
        if ring is not None:
            return np.array(ring)
        found.append(ways)
    return None


@dataclass
class Patience:
    """Ranks that may still be looked at."""

    left: int


def cycle(
    ways: Joined,
    patience: Patience,
    *,
    faster: Sequence[Joined] = (),
    take: Callable[[int, int], Hop | None] = lambda *_: (),
    give: Callable[[Hop], None] = lambda _: None,
) -> list[int] | None:
    """Return a cycle through all, or None.

    Parameters
    ----------
    ways
        Who is joined to whom.
    patience
        What is left of it; without any there is None.
    faster
        Of these, those that are tried first, the first first.
    take, give
        Takes a hop, if it is still free, and gives it back.
    """
    if not (all(ways.out) and ways.strong):
        return None
    search = _Search(ways, (*faster, ways), take)
    while patience.left > 0:
        patience.left -= search.work
        following = search.following()
        if following is not None:
            if search.went(following):
                return search.path
        elif len(search.path) == 1:
            return None
        else:
            give(search.turn())
    for hop in search.hops:
        give(hop)
    return None


class _Search:
    """A path from the first rank, and what may still come after each of its ranks."""

    def __init__(
        self, ways: Joined, tiers: Sequence[Joined], take: Callable[[int, int], Hop | None]
    ) -> None:
        self.ways = ways
        self.tiers = tiers
        self.take = take
        self.path = [0]
        self.hops: list[Hop] = [()]
        self.pending = [ways.out[0]]
        self.free = (1 << ways.count) - 2
        self.turned = False
        self.work = 1

    def following(self) -> int | None:
        """Return who comes next: the nearest that is left, by rank after the last."""
        last, able = self.path[-1], self.pending[-1] & self.free
        for tier in self.tiers:
            near = able & tier.out[last]
            if near:
                near = (near >> last << last) or near
                return (near & -near).bit_length() - 1
        return None

    def went(self, following: int) -> bool:
        """Go on to the next, if that is any good, and say whether the ring is closed by it."""
        self.work = 1
        self.pending[-1] ^= 1 << following
        left = self.free ^ (1 << following)
        if left and self.turned and not self._open(following, left):
            return False
        hop = self.take(self.path[-1], following)
        if hop is None:
            return False
        self.path.append(following)
        if not left and self.ways.has(following, 0) and self.take(following, 0) is not None:
            return True
        self.hops.append(hop)
        self.pending.append(self.ways.out[following])
        self.free = left
        return False

    def turn(self) -> Hop:
        """Go back by one; return the hop that is free again."""
        self.turned, self.work = True, 1
        self.pending.pop()
        self.free |= 1 << self.path.pop()
        return self.hops.pop()

    def _open(self, last: int, left: int) -> bool:
        """Say whether the last reaches all that are left, and they the first."""
        self.work += 2 * left.bit_count()
        ways = self.ways
        return reached(ways.out, last, left) == left and reached(ways.into, 0, left) == left
