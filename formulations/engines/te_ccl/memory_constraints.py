"""The rows of limited buffers in the model of whole chunks; `epoch_grid.memory` says them."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from formulations.engines.epoch_grid.arcs import Hops
from formulations.engines.epoch_grid.epochs import ROUNDING
from formulations.engines.epoch_grid.memory import Memory
from formulations.engines.epoch_grid.windows import Cells, Windows
from formulations.solvers.sparse_rows import rows


class Keeping:
    """The rows of limited buffers of one model."""

    def __init__(self, windows: Windows, cells: Cells, memory: Memory) -> None:
        self.hops, self.has = windows.hops, windows.demand.has
        self.most, self.cells, self.memory = windows.most, cells, memory
        self.leaves = np.isfinite(memory.room)[:, None] & ~memory.keeps
        self.number = np.full(self.leaves.shape, -1)
        self.number[self.leaves] = np.arange(int(self.leaves.sum()))
        self.width = int(self.leaves.sum())
        self.gone = cp.Variable(self.width * (cells.horizon + 1), bounds=[0, 1])

    def rules(self, sends: cp.Variable, buffers: cp.Variable) -> list[cp.Constraint]:
        """Return all rows."""
        rules = [self.gone[: -self.width] <= self.gone[self.width :]] if self.width else []
        return rules + self._send_rows(sends, buffers) + self._kept_rows(sends, buffers)

    def _at(self, moment: np.ndarray, device: np.ndarray, chunk: np.ndarray) -> np.ndarray:
        """Return the number of the variable gone[moment, device, chunk]."""
        return np.asarray(moment * self.width + self.number[device, chunk])

    def _send_rows(self, sends: cp.Variable, buffers: cp.Variable) -> list[cp.Constraint]:
        cells, source = self.cells, self.hops.src[self.cells.hop]
        needs = np.flatnonzero(self.leaves[source, cells.chunk])
        if not needs.size:
            return []
        epoch, device, chunk = cells.epoch[needs], source[needs], cells.chunk[needs]
        every, most = np.arange(len(needs)), self.most[cells.hop[needs]]
        moment = epoch + ~_sharp_start(self.hops)[cells.hop[needs]]
        left = rows(
            every, self._at(moment, device, chunk), (len(needs), self.gone.size), value=most
        )
        there = cells.held[epoch, device, chunk]
        came = np.flatnonzero(there >= 0)
        held = rows(came, there[came], (len(needs), cells.buffers), value=most[came])
        first = np.where(self.has[device, chunk], most, 0)
        return [sends[needs] + left @ self.gone <= first + held @ buffers]

    def _kept_rows(self, sends: cp.Variable, buffers: cp.Variable) -> list[cp.Constraint]:
        """Count what is kept before the first epoch and in each; none of it is negative."""
        horizon, limited = self.cells.horizon, self.memory.limited
        shape = (horizon + 1, *self.has.shape)
        count = int(np.prod(shape))
        held, came = self._held(shape), self._inside(shape)
        # Outside its window a chunk is not there, or nothing is sent on any more.
        window = self.leaves & (self.has | self._window())
        moment, device, chunk = np.nonzero(window)
        place = np.ravel_multi_index((moment, device, chunk), shape)
        left = rows(place, self._at(moment, device, chunk), (count, self.gone.size))
        first, at = np.broadcast_to(self.has, shape).ravel(), np.arange(count)
        later = np.flatnonzero(window.ravel() & ~first)
        rules = []
        if later.size:
            rules.append(held[later] @ buffers + came[later] @ sends - left[later] @ self.gone >= 0)
        owner = (at // self.has.shape[1]) % len(self.has)
        row = at // self.has.size * len(limited) + np.searchsorted(limited, owner)
        inside = np.flatnonzero(np.isin(owner, limited))
        total = rows(row[inside], inside, ((horizon + 1) * len(limited), count))
        fixed = total @ first.astype(float)
        room = np.tile(self.memory.room[limited], horizon + 1)
        kept = (total @ held) @ buffers + (total @ came) @ sends - (total @ left) @ self.gone
        return [*rules, kept + fixed <= room]

    def _window(self) -> np.ndarray:
        """Whether a chunk can be at a device at the beginning or the end of each epoch."""
        there = self.cells.held >= 0
        there[1:] |= there[:-1].copy()
        return there

    def _held(self, shape: tuple[int, ...]) -> Any:
        """Return b at the beginning of each epoch; row 0 is before the first."""
        epoch, device, chunk = np.nonzero(self.cells.held[: shape[0] - 1] >= 0)
        place = np.ravel_multi_index((epoch + 1, device, chunk), shape)
        column = self.cells.held[epoch, device, chunk]
        return rows(place, column, (int(np.prod(shape)), self.cells.buffers))

    def _inside(self, shape: tuple[int, ...]) -> Any:
        """Return what arrives in each epoch, and not exactly at its end."""
        cells, hops = self.cells, self.hops
        arrival = cells.epoch + hops.delay[cells.hop]
        late = np.flatnonzero(
            ~_sharp_end(hops)[cells.hop]
            & (cells.held[arrival, hops.dst[cells.hop], cells.chunk] >= 0)
        )
        place = np.ravel_multi_index(
            (arrival[late], hops.dst[cells.hop[late]], cells.chunk[late]), shape
        )
        return rows(place, late, (int(np.prod(shape)), len(cells.epoch)))


def _sharp_start(hops: Hops) -> np.ndarray:
    """Whether a send over each hop starts exactly with its epoch, shape (hops,)."""
    limited = hops.grid.limited
    return np.array(
        [
            bool(limited[list(links)].any()) or bool((hops.room[list(links)] == 1).all())
            for links in hops.links
        ]
    )


def _sharp_end(hops: Hops) -> np.ndarray:
    """Whether a send over each hop arrives exactly at the end of its last epoch, (hops,)."""
    grid, found = hops.grid, []
    for hop, links in enumerate(map(list, hops.links)):
        alone = bool((hops.room[links] == 1).all()) and not grid.limited[links].any()
        took = float(max(grid.hold[links]) + sum(grid.alpha[links]))
        whole = float(hops.delay[hop]) * grid.epoch_duration
        found.append(alone and abs(took - whole) <= ROUNDING * whole)
    return np.array(found, dtype=bool)
