"""What ways have to meet besides spreading chunks: forced pairs, and hosts that are crossed to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ccl.errors import Infeasible
from ccl.sketch import Sketch
from formulations.engines.taccl.pairs import Pairs


@dataclass(frozen=True)
class Demands:
    """Sets of pairs of which one at least is taken.

    Parameters
    ----------
    pairs
        What there is.
    forced
        Of each forced pair of GPUs the pairs that use it.
    crossings
        Of each chunk and each other host that wants it and that ways from its own reach: the pairs
        that lead there from its own (inter-node transfer constraints of formulation 2).
    """

    pairs: Pairs
    forced: tuple[np.ndarray, ...]
    crossings: tuple[np.ndarray, ...]

    @cached_property
    def direct(self) -> np.ndarray:
        """Whether each pair stays in its host, or crosses to one to which no crossing leads.

        Or is a crossing, shape (pairs,).
        """
        pairs, host = self.pairs, self.pairs.part.logical.host
        crossing = np.concatenate([*self.crossings, np.empty(0, dtype=np.int64)]).astype(np.int64)
        hosts = int(host.max()) + 2
        key = pairs.chunk * hosts + host[pairs.dst]
        led = np.isin(key, key[crossing])
        usable = ~(pairs.part.logical.away[pairs.move] & led)
        usable[crossing] = True
        return np.asarray(usable)

    def spreads(self, taken: np.ndarray) -> bool:
        """Whether every chunk comes once to all who want it, to nobody twice, from a holder."""
        pairs, part = self.pairs, self.pairs.part
        chosen = np.flatnonzero(taken[pairs.orbit])
        came = np.zeros(part.holds.shape, dtype=np.int64)
        np.add.at(came, (pairs.chunk[chosen], pairs.dst[chosen]), 1)
        if (came > 1).any() or (part.wants & (came == 0)).any():
            return False
        there = part.holds.copy()
        for _ in range(there.shape[1]):
            reached = there[pairs.chunk[chosen], pairs.src[chosen]]
            there[pairs.chunk[chosen[reached]], pairs.dst[chosen[reached]]] = True
            if reached.all():
                return True
        return False

    def met(self, taken: np.ndarray) -> bool:
        """Whether every set has a pair that is taken."""
        every = taken[self.pairs.orbit]
        return all(every[each].any() for each in (*self.forced, *self.crossings))


def demands_of(pairs: Pairs, sketch: Sketch) -> Demands:
    """Return the demands of a sketch and of the hosts.

    Raises
    ------
    Infeasible
        If no chunk can go over a forced pair.
    """
    forced = []
    for src, dst in sketch.forced:
        using = np.flatnonzero(np.isin(pairs.move, pairs.part.logical.between(src, dst)))
        if not len(using):
            msg = f"no chunk can go from {src} to {dst}, which the sketch forces; take it out"
            raise Infeasible(msg)
        forced.append(using)
    return Demands(pairs, tuple(forced), tuple(_crossings(pairs)))


def _crossings(pairs: Pairs) -> list[np.ndarray]:
    part, host = pairs.part, pairs.part.logical.host
    away = np.flatnonzero(part.logical.away[pairs.move])
    # From a host of a holder to one where somebody wants it and nobody has it.
    hosts = int(host.max()) + 1
    shape = (len(part.nbytes), hosts + 1)
    holding, wanting = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    for device, place in enumerate(host.tolist()):
        holding[:, place] |= part.holds[:, device]
        wanting[:, place] |= part.wants[:, device]
    chunk, begin, end = pairs.chunk[away], host[pairs.src[away]], host[pairs.dst[away]]
    direct = holding[chunk, begin] & wanting[chunk, end] & ~holding[chunk, end]
    away, key = away[direct], (chunk * hosts + end)[direct]
    order = np.argsort(key, kind="stable")
    return np.split(away[order], np.flatnonzero(np.diff(key[order])) + 1) if len(away) else []
