"""What a round of TE-CCL's A* starts from, and which variables it has.

Epochs inside a round count from its first, 0; those of the whole plan are called moments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from formulations.engines.epoch_grid.arcs import Hops
from formulations.engines.epoch_grid.demand import Demand
from formulations.engines.epoch_grid.windows import Cells


@dataclass(frozen=True)
class State:
    """Where a plan stands when a round begins.

    Parameters
    ----------
    moment
        First epoch of the round.
    arrives
        Moment from which on a device that stores has a chunk, be it there, in flight or never
        (inf), shape (devices, chunks). Beyond `moment` it is the paper's look-ahead Q.
    epoch, hop, chunk
        Moment, hop and chunk of every send so far, each shape (sends,).
    """

    moment: int
    arrives: np.ndarray
    epoch: np.ndarray
    hop: np.ndarray
    chunk: np.ndarray

    def lacking(self, demand: Demand) -> np.ndarray:
        """Return which demands are neither met nor on their way, shape (devices, chunks)."""
        return np.asarray(demand.wants & np.isinf(self.arrives))

    def delivered(self, demand: Demand) -> int:
        """Return how many demands are met when the round begins."""
        return int((demand.wants & (self.arrives <= self.moment)).sum())

    def later(self, length: int) -> State:
        """Return the same, `length` epochs later."""
        return replace(self, moment=self.moment + length)

    def extended(
        self, length: int, *, hops: Hops, epoch: np.ndarray, hop: np.ndarray, chunk: np.ndarray
    ) -> State:
        """Return the state `length` epochs later, with more sends.

        Parameters
        ----------
        length
            Epochs of the round.
        hops
            What `hop` counts.
        epoch, hop, chunk
            Epoch in the round, hop and chunk of every send of the round, each shape (n,).
        """
        arrives = self.arrives.copy()
        there = hops.stores[hops.dst[hop]]
        moment = self.moment + (epoch + hops.delay[hop])[there]
        np.minimum.at(arrives, (hops.dst[hop][there], chunk[there]), moment)
        return State(
            self.moment + length,
            arrives,
            epoch=np.concatenate([self.epoch, epoch + self.moment]),
            hop=np.concatenate([self.hop, hop]),
            chunk=np.concatenate([self.chunk, chunk]),
        )


def first_state(demand: Demand) -> State:
    """Return the state before the first round."""
    none = np.zeros(0, dtype=int)
    return State(0, np.where(demand.has, 0.0, np.inf), epoch=none, hop=none, chunk=none)


@dataclass(frozen=True)
class Rounds:
    """The rounds of one demand on one grid.

    Parameters
    ----------
    hops
        Links or hyper-edges on the grid.
    demand
        Who has and wants which chunk.
    gamma
        How much a chunk on its way counts beside one that has arrived, in (0, 1).
    """

    hops: Hops
    demand: Demand
    gamma: float

    @cached_property
    def ahead(self) -> int:
        """Most epochs from a send to the device that stores it, through devices that cannot."""
        hops = self.hops
        far = np.full_like(hops.distance, np.inf)
        np.minimum.at(far, (hops.src, hops.dst), hops.delay.astype(float))
        for middle in np.flatnonzero(~hops.stores):
            np.minimum(far, far[:, middle, None] + far[None, middle, :], out=far)
        between = far[np.ix_(hops.stores, hops.stores)]
        np.fill_diagonal(between, 0.0)
        return int(between[np.isfinite(between)].max(initial=1))

    @cached_property
    def most(self) -> np.ndarray:
        """How often a chunk may take each hop at once, shape (hops,).

        More than once is of use only on the way to what can neither store nor copy.
        """
        hops = self.hops
        room = np.array([min(hops.room[list(links)]) for links in hops.links])
        return np.where(~(hops.stores | hops.copies)[hops.dst], room, 1).astype(int)

    def reach(self, state: State) -> np.ndarray:
        """Epochs from the nearest device that has or will have a chunk, (devices, chunks)."""
        return _nearest(self.hops.distance, np.where(np.isfinite(state.arrives), 0.0, np.inf))

    def waits(self, state: State) -> bool:
        """Whether something is still on its way, or holds links, when the round begins."""
        hops, flying = self.hops, np.isfinite(state.arrives) & (state.arrives > state.moment)
        until = state.epoch + (hops.begin + hops.occupancy)[state.hop]
        return bool(flying.any() or (until > state.moment).any())

    def count(self, state: State, length: int, *, ahead: int | None = None) -> int:
        """Count the sends of the round of `length` epochs that begins with `state`."""
        first, stop = self._window(state, length, self.ahead if ahead is None else ahead)
        return int(np.maximum(stop - first, 0.0).sum())

    def cells(self, state: State, length: int, *, ahead: int | None = None) -> Cells:
        """Lay out the variables of the round of `length` epochs that begins with `state`.

        The look-ahead is of `ahead` epochs, by default as many as anything may need to arrive.

        A send exists if it can be made, the chunk is not there or on its way there already, and
        it leads nearer to a device that lacks the chunk than all that have it.
        """
        hops = self.hops
        further = self.ahead if ahead is None else ahead
        last = length + further
        first, stop = self._window(state, length, further)
        epoch = np.arange(last)[:, None, None]
        able = (epoch >= first) & (epoch < stop)
        there = np.maximum(state.arrives - state.moment, 0.0)
        moment = np.arange(last + 1)[:, None, None]
        exists = (moment >= _nearest(hops.distance, there)) & np.isinf(there)
        exists &= self._nearer(state) & hops.stores[:, None]
        held = np.full(exists.shape, -1)
        held[exists] = np.arange(int(exists.sum()))
        epochs, hop, chunk = np.nonzero(able)
        return Cells(last, epochs, hop, chunk, held)

    def _window(self, state: State, length: int, ahead: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the first epoch of each send and the one after the last, (hops, chunks)."""
        hops, last = self.hops, length + ahead
        there = np.maximum(state.arrives - state.moment, 0.0)
        useful = np.isinf(there) & self._nearer(state)
        # What does not store sends on what came in by the end of the round.
        starts = np.where(hops.stores[hops.src], length, last)
        stop = np.minimum(starts, last - hops.delay + 1)[:, None]
        able = useful[hops.dst] & (useful | np.isfinite(there))[hops.src]
        # What is on its way to a device arrives when it does, even if others are nearer by now.
        first = np.where(np.isfinite(there), there, _nearest(hops.distance, there))
        return first[hops.src], np.where(able, stop, 0)

    def _nearer(self, state: State) -> np.ndarray:
        """Whether a device is nearer to one that lacks a chunk than all that have it."""
        far, near, lacking = self.hops.distance, self.reach(state), state.lacking(self.demand)
        nearer = np.zeros(lacking.shape, dtype=bool)
        for chunk in np.flatnonzero(lacking.any(axis=0)):
            goals = np.flatnonzero(lacking[:, chunk])
            nearer[:, chunk] = (far[:, goals] < near[goals, chunk]).any(axis=1)
        return nearer


def _nearest(distance: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Smallest sum of when a device has a chunk and its distance, shape (devices, chunks)."""
    found = np.full(there.shape, np.inf)
    for chunk in range(there.shape[1]):
        have = np.flatnonzero(np.isfinite(there[:, chunk]))
        found[:, chunk] = (distance[have] + there[have, chunk, None]).min(axis=0, initial=np.inf)
    return found
