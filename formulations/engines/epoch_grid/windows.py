"""Which variables the model of whole chunks has, and how large it is before it is built.

A variable exists only inside its window: a chunk is sent from a device not before it can be
there, and arrives not after it can still be of use. The windows of a hop are intervals of epochs,
so everything about the size of a model is counted without laying it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ccl.errors import Infeasible
from ccl.result import ModelSize
from formulations.core.registry import Anatomy
from formulations.engines.epoch_grid.arcs import Hops, no_way
from formulations.engines.epoch_grid.plans import Demand


@dataclass(frozen=True)
class Cells:
    """The variables that exist for one horizon.

    Parameters
    ----------
    horizon
        K.
    epoch, hop, chunk
        Indices of each send variable f, shape (n,).
    held
        Number of the buffer variable b of (epoch, device, chunk), -1 where there is none,
        shape (K + 1, devices, chunks).
    """

    horizon: int
    epoch: np.ndarray
    hop: np.ndarray
    chunk: np.ndarray
    held: np.ndarray

    @property
    def buffers(self) -> int:
        """Number of buffer variables."""
        return int(self.held.max(initial=-1)) + 1


@dataclass(frozen=True)
class Windows:
    """The windows of one demand on one grid, for any horizon.

    Parameters
    ----------
    hops
        Links or hyper-edges on the grid.
    demand
        Who has and wants which chunk.
    """

    hops: Hops
    demand: Demand

    @cached_property
    def earliest(self) -> np.ndarray:
        """First epoch at whose beginning a chunk can be at a device, (devices, chunks)."""
        return self.demand.earliest(self.hops.distance)

    @cached_property
    def tail(self) -> np.ndarray:
        """Fewest epochs from a device to one that wants the chunk, (devices, chunks)."""
        return self.demand.tail(self.hops.distance)

    @property
    def last_to_come(self) -> tuple[int, int, int]:
        """The arrival that takes most epochs at least: these, the device and the chunk.

        Raises
        ------
        Infeasible
            If no way leads to a device that wants a chunk.
        """
        late = np.where(self.demand.wants, self.earliest, 0.0)
        device, chunk = np.unravel_index(int(late.argmax()), late.shape)
        if np.isinf(late.max()):
            raise Infeasible(no_way(self.hops.topology.devices[int(device)].name))
        return int(late.max()), int(device), int(chunk)

    @cached_property
    def most(self) -> np.ndarray:
        """How often a chunk may be sent over each hop at once, shape (hops,).

        More than once is of use only on the way to what can neither store nor copy.
        """
        hops = self.hops
        room = np.array([min(hops.room[list(links)]) for links in hops.links])
        again = ~(hops.stores | hops.copies)[hops.dst]
        return np.asarray(np.where(again, room, 1))

    def cells(self, horizon: int) -> Cells:
        """Lay out the variables of a model of `horizon` epochs."""
        hops, demand = self.hops, self.demand
        latest = horizon - self.tail
        start = np.arange(horizon)[:, None, None]
        useful = (
            (start >= self.earliest[hops.src])
            & (start + hops.delay[:, None] <= latest[hops.dst])
            & ~demand.has[hops.dst]
            & hops.open_in(horizon)[:, :, None]
        )
        epoch, hop, chunk = np.nonzero(useful)
        moment = np.arange(horizon + 1)[:, None, None]
        exists = (moment >= self.earliest) & (moment <= latest)
        exists &= ~demand.has & hops.stores[:, None]
        held = np.full(exists.shape, -1)
        held[exists] = np.arange(int(exists.sum()))
        return Cells(horizon, epoch, hop, chunk, held)

    def measure(self, horizon: int) -> ModelSize:
        """Count variables, constraints and nonzeros of a model of `horizon` epochs.

        Where links have less bandwidth at times, it is more than there are.
        """
        return self.anatomy(horizon).size

    def anatomy(self, horizon: int) -> Anatomy:
        """Count the same, the constraints by what they say (`te_ccl.chunk_sizes.GROUPS`)."""
        return _Count(self, horizon).anatomy()


class _Count:
    """Counts over the intervals in which each chunk may start over each hop."""

    def __init__(self, windows: Windows, horizon: int) -> None:
        self.windows, self.horizon = windows, horizon
        hops, demand = windows.hops, windows.demand
        self.hops, self.demand = hops, demand
        latest = horizon - windows.tail
        first = windows.earliest[hops.src]
        last = latest[hops.dst] - hops.delay[:, None]
        self.sends = np.where(demand.has[hops.dst], 0.0, np.maximum(last - first + 1, 0.0))
        self.hop, self.chunk = np.nonzero(self.sends)
        self.first = first[self.hop, self.chunk].astype(int)
        self.last = last[self.hop, self.chunk].astype(int)
        kept = np.maximum(latest - windows.earliest + 1, 0.0)
        self.kept = np.where(demand.has | ~hops.stores[:, None], 0.0, kept)

    def anatomy(self) -> Anatomy:
        """Add up the families of rows, in the order of the model."""
        hops, kept = self.hops, self.kept
        sends, buffers = int(self.sends.sum()), int(kept.sum())
        wants = int(self.demand.wants.sum())
        stored = int(self.sends[hops.stores[hops.dst]].sum())
        later = hops.stores[hops.src][:, None] & ~self.demand.has[hops.src]
        bought = int(self.sends[later].sum())
        # What is held, what was before, what arrives.
        held = 2 * buffers - int((kept > 0).sum()) + stored
        families = {
            "buffer": (buffers, held),
            "wanted": (wants, wants),
            "send what is held": (bought, 2 * bought),
            "switch": self._switches(),
            "room of a link": self._capacity(),
            "shared limit": self._limits(),
        }
        entries = sum(each for _, each in families.values())
        rows = {name: many for name, (many, _) in families.items()}
        return Anatomy(sends + buffers, entries, rows)

    def _switches(self) -> tuple[int, int]:
        rows = entries = 0
        hops = self.hops
        shape = (self.horizon + 2, self.demand.has.shape[1])
        for device in np.flatnonzero(~hops.stores).tolist():
            into, out = np.zeros(shape, dtype=int), np.zeros(shape, dtype=int)
            enter, leave = hops.dst[self.hop] == device, hops.src[self.hop] == device
            delay = hops.delay[self.hop[enter]]
            _spread(into, self.first[enter] + delay, self.last[enter] + delay, self.chunk[enter])
            _spread(out, self.first[leave], self.last[leave], self.chunk[leave])
            if hops.copies[device]:
                rows += int(out.sum())
                entries += int((out * (1 + into)).sum())
            else:
                rows += int(((into > 0) | (out > 0)).sum())
                entries += int((into + out).sum())
        return rows, entries

    def _capacity(self) -> tuple[int, int]:
        """Count rows that can bind: more sends may hold a link in an epoch than have room."""
        hops = self.hops
        links = len(hops.room)
        width = self.horizon + int((hops.begin + hops.occupancy).max()) + 2
        count, load = np.zeros((width, links), dtype=int), np.zeros((width, links), dtype=int)
        many = np.array([len(each) for each in hops.links])[self.hop]
        which = np.repeat(np.arange(len(self.hop)), many)
        link = np.array([each for hop in self.hop.tolist() for each in hops.links[hop]], dtype=int)
        hop = self.hop[which]
        begin, stop = self.first[which] + hops.begin[hop], self.last[which] + hops.begin[hop] + 1
        for table, value in ((count, 1), (load, self.windows.most[hop].astype(int))):
            np.add.at(table, (begin, link), value)
            np.subtract.at(table, (stop, link), value)
            np.subtract.at(table, (begin + hops.occupancy[hop], link), value)
            np.add.at(table, (stop + hops.occupancy[hop], link), value)
        count, load = (np.cumsum(np.cumsum(each, axis=0), axis=0) for each in (count, load))
        binding = load > hops.room
        return int(binding.sum()), int(count[binding].sum())

    def _limits(self) -> tuple[int, int]:
        topology, hops = self.hops.topology, self.hops
        rows = entries = 0
        for limit in topology.limits:
            under = {topology.link_index[ends] for ends in limit.links}
            epochs = [
                {
                    later
                    for link, span in zip(links, hops.carried(hop), strict=True)
                    if link in under
                    for later in span
                }
                for hop, links in enumerate(hops.links)
            ]
            many = np.array([len(each) for each in epochs])
            if (self.sends.sum(axis=1) * many).any():
                rows += self.horizon + int(hops.delay.max())
                entries += int((self.sends.sum(axis=1) * many).sum())
        return rows, entries


def _spread(table: np.ndarray, first: np.ndarray, last: np.ndarray, column: np.ndarray) -> None:
    """Count in each row of `table` the intervals [first, last] that it is in, by column."""
    np.add.at(table, (first, column), 1)
    np.subtract.at(table, (last + 1, column), 1)
    np.cumsum(table, axis=0, out=table)
