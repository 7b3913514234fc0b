"""Ways quickly: one chunk after the other along whatever is soonest there over links so far.

The plan to begin with. A chunk spreads from device to device, each time over the move for which
the later of two times is least: when the chunk would be there if it never waited, and when the
busiest link of the move would have carried everything so far. Images by symmetry go along.
"""

from __future__ import annotations

import numpy as np

from formulations.engines.taccl.demands import Demands
from formulations.engines.taccl.pairs import Pairs


class _Spread:
    """Loads of the links so far, and what every chunk has taken."""

    def __init__(self, pairs: Pairs, demands: Demands, usable: np.ndarray) -> None:
        self.pairs, self.demands, self.usable = pairs, demands, usable
        self.taken = np.zeros(pairs.many, dtype=bool)
        ways = pairs.part.logical
        self.beta = ways.beta.tocsc()
        self.load = np.zeros(len(ways.moves.topology.links))
        order = np.argsort(pairs.orbit, kind="stable")
        self.members = np.split(order, np.searchsorted(pairs.orbit[order], range(1, pairs.many)))

    def spread(self, number: int) -> None:
        """Let a chunk reach all its destinations that can be reached."""
        pairs, part = self.pairs, self.pairs.part
        span = np.arange(pairs.first[number], pairs.first[number + 1])
        span = span[self.usable[span]]
        there = np.where(part.holds[number], 0.0, np.inf)
        came = np.full(len(there), -1)
        wanted = set(np.flatnonzero(part.wants[number]).tolist())
        for pair in self._first(number):
            self._go(pair, there, came)
            wanted.discard(int(pairs.dst[pair]))
        while wanted:
            open_ = span[np.isfinite(there[pairs.src[span]]) & ~np.isfinite(there[pairs.dst[span]])]
            if not len(open_):
                return
            soon = there[pairs.src[open_]] + pairs.delay[open_]
            busy = self._busy(pairs.move[open_], float(part.nbytes[number]))
            best = int(open_[np.lexsort((soon, np.maximum(soon, busy)))[0]])
            there[pairs.dst[best]] = there[pairs.src[best]] + pairs.delay[best]
            came[pairs.dst[best]] = best
            if int(pairs.dst[best]) in wanted:
                wanted.discard(int(pairs.dst[best]))
                self._take(best, came)

    def _first(self, number: int) -> list[int]:
        """Return the pairs of a chunk that a forced pair of GPUs makes it take, in order."""
        pairs = self.pairs
        for forced in self.demands.forced:
            if self.taken[pairs.orbit[forced]].any():
                continue
            mine = forced[pairs.chunk[forced] == number]
            direct = mine[pairs.part.holds[number][pairs.src[mine]]]
            if len(direct):
                return [int(direct[0])]
        return []

    def _go(self, pair: int, there: np.ndarray, came: np.ndarray) -> None:
        there[self.pairs.dst[pair]] = self.pairs.delay[pair]
        came[self.pairs.dst[pair]] = pair
        self._take(pair, came)

    def _busy(self, move: np.ndarray, nbytes: float) -> np.ndarray:
        """µs until the busiest link of each move would have carried the chunk too."""
        first, beta = self.beta.indptr, self.beta
        return np.array(
            [
                (self.load[beta.indices[span]] + nbytes * beta.data[span]).max()
                for span in (slice(first[each], first[each + 1]) for each in move.tolist())
            ]
        )

    def _take(self, pair: int, came: np.ndarray) -> None:
        """Take the way that leads to a pair's end, with all images."""
        pairs, beta = self.pairs, self.beta
        while pair >= 0 and not self.taken[pairs.orbit[pair]]:
            self.taken[pairs.orbit[pair]] = True
            for each in self.members[pairs.orbit[pair]].tolist():
                move = pairs.move[each]
                span = slice(beta.indptr[move], beta.indptr[move + 1])
                self.load[beta.indices[span]] += (
                    pairs.part.nbytes[pairs.chunk[each]] * beta.data[span]
                )
            pair = int(came[pairs.src[pair]])


def route(pairs: Pairs, demands: Demands, *, direct: bool) -> np.ndarray:
    """Return which pairs are taken, shape (many,); some chunks may not come everywhere.

    Parameters
    ----------
    pairs, demands
        What there is to choose and to meet.
    direct
        Whether chunks come to another host only from their own, where ways lead there, so that
        crossings are met.
    """
    usable = demands.direct if direct else np.ones(len(pairs), dtype=bool)
    state = _Spread(pairs, demands, usable)
    # Chunks whose images have gone already have nothing left to do.
    done = np.zeros(len(pairs.part.nbytes), dtype=bool)
    for number in range(len(done)):
        if done[number]:
            continue
        state.spread(number)
        done[pairs.chunk[state.taken[pairs.orbit]]] = True
    return state.taken
