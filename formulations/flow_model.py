"""The linear program of amounts on a grid of epochs, built with sparse matrices.

Its mathematics is the docstring of `formulations.models.te_ccl_lp`. Variables are entries of
flat vectors, inside their windows only; every family of rows is one sparse matrix.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from ccl.errors import LimitReached
from ccl.schedule import Schedule, Send
from formulations.decompose import Amounts, paths, sends_of
from formulations.hops import Hops
from formulations.rows import rows
from formulations.run import Run


@dataclass(frozen=True)
class _Cells:
    """The variables of one horizon: number of each, -1 where there is none.

    Parameters
    ----------
    sent
        Shape (K, links, sources).
    held
        Shape (K, devices, sources).
    read
        Shape (K + 1, devices, sources).
    """

    sent: np.ndarray
    held: np.ndarray
    read: np.ndarray

    @property
    def horizon(self) -> int:
        """K."""
        return len(self.sent)


class FlowModel:
    """Models of one problem on one grid, for any horizon.

    Parameters
    ----------
    hops
        The links on a grid for fluid amounts.
    run
        Gives the problem and limits, and hears news.
    """

    def __init__(self, hops: Hops, run: Run) -> None:
        self.hops, self.run = hops, run
        topology, collective = run.problem.topology, run.problem.collective
        place = [topology.index[name] for name in topology.ranks]
        moved = [chunk for chunk in collective.chunks if chunk.holders != chunk.destinations]
        self.sources = sorted({place[chunk.holders[0]] for chunk in moved})
        number = {device: i for i, device in enumerate(self.sources)}
        self.demand = np.zeros((len(topology.devices), len(self.sources)))
        for chunk in moved:
            source, goal = place[chunk.holders[0]], place[chunk.destinations[0]]
            self.demand[goal, number[source]] += chunk.size / hops.grid.chunk_size
        wanted = self.demand > 0
        self.earliest = hops.distance[self.sources].T
        self.tail = np.stack(
            [hops.distance[:, wanted[:, s]].min(axis=1) for s in range(len(self.sources))], axis=1
        )
        self.build_seconds = self.solve_seconds = 0.0

    @property
    def width(self) -> int:
        """Links times sources: the variables of one epoch at most."""
        return len(self.hops.topology.links) * len(self.sources)

    def least(self) -> int:
        """Return a horizon below which there is no solution."""
        reach = int(self.earliest[self.demand > 0].max())
        return max(reach, math.ceil(self.run.bounds[0].makespan / self.hops.grid.epoch_duration))

    def solve(self, horizon: int, *, reward: bool = False) -> Schedule:
        """Return a schedule of fractions within `horizon` epochs.

        Parameters
        ----------
        horizon
            K.
        reward
            Whether early arrivals are rewarded; else the links' busy time is least.

        Raises
        ------
        Infeasible
            If there is none.
        LimitReached
            If the time limit came first.
        """
        run, begin = self.run, time.perf_counter()
        if run.expired:
            msg = f"{run.formulation} was out of time before {horizon} epochs"
            raise LimitReached(msg)
        run.report(f"building the model of {horizon} epochs")
        cells = self._cells(horizon)
        sent, held, read = (
            cp.Variable(int(table.max(initial=-1)) + 1, nonneg=True)
            for table in (cells.sent, cells.held, cells.read)
        )
        rules = self._balance(cells, sent, held, read) + self._capacity(cells, sent)
        objective = self._reward(cells, read) if reward else self._busy(cells, sent)
        model = cp.Problem(objective, rules)
        built = time.perf_counter() - begin
        run.report(f"solving for {horizon} epochs")
        outcome = run.backend.solve(model, time_limit=run.left)
        self.build_seconds += built + outcome.build_seconds
        self.solve_seconds += outcome.solve_seconds
        run.met(outcome.size)
        return self._schedule(cells, sent, held, read)

    def _cells(self, horizon: int) -> _Cells:
        hops = self.hops
        latest = horizon - self.tail
        start = np.arange(horizon)[:, None, None]
        home = np.zeros(self.demand.shape, dtype=bool)
        home[self.sources, np.arange(len(self.sources))] = True
        sent = (
            (start >= self.earliest[hops.src])
            & (start + hops.delay[:, None] <= latest[hops.dst])
            & ~home[hops.dst]
        )
        held = (start >= self.earliest) & (start < latest) & hops.stores[:, None]
        moment = np.arange(horizon + 1)[:, None, None]
        read = (moment >= self.earliest) & (self.demand > 0)
        return _Cells(*(_numbered(mask) for mask in (sent, held, read)))

    def _balance(
        self, cells: _Cells, sent: cp.Variable, held: cp.Variable, read: cp.Variable
    ) -> list[cp.Constraint]:
        """Balance what comes to a device with what it holds back, reads and sends on."""
        hops, horizon = self.hops, cells.horizon
        shape = (horizon + 1, *self.demand.shape)
        many = int(np.prod(shape))

        def at(*index: np.ndarray) -> np.ndarray:
            return np.asarray(np.ravel_multi_index(index, shape))

        k, e, s = np.nonzero(cells.sent >= 0)
        cell = cells.sent[k, e, s]
        flow = rows(at(k + hops.delay[e], hops.dst[e], s), cell, (many, sent.size))
        flow -= rows(at(k, hops.src[e], s), cell, (many, sent.size))
        k, v, s = np.nonzero(cells.held >= 0)
        cell = cells.held[k, v, s]
        kept = rows(at(k + 1, v, s), cell, (many, held.size))
        kept -= rows(at(k, v, s), cell, (many, held.size))
        k, v, s = np.nonzero(cells.read >= 0)
        taken = rows(at(k, v, s), cells.read[k, v, s], (many, read.size))
        supply = np.zeros(many)
        first = np.zeros(len(self.sources), dtype=int)
        start = at(first, np.array(self.sources), np.arange(len(self.sources)))
        supply[start] = self.demand.sum(axis=0)
        touched = np.flatnonzero(
            np.diff(flow.indptr) + np.diff(kept.indptr) + np.diff(taken.indptr) + (supply > 0)
        )
        goal, source = np.nonzero(self.demand > 0)
        pair = np.full(self.demand.shape, -1)
        pair[goal, source] = np.arange(len(goal))
        total = rows(pair[v, s], cells.read[k, v, s], (len(goal), read.size))
        return [
            flow[touched] @ sent + kept[touched] @ held - taken[touched] @ read == -supply[touched],
            total @ read == self.demand[goal, source],
        ]

    def _capacity(self, cells: _Cells, sent: cp.Variable) -> list[cp.Constraint]:
        """Room of each link and shared limit in each epoch; rows that cannot bind are left out."""
        hops, topology, grid = self.hops, self.hops.topology, self.hops.grid
        k, e, s = np.nonzero(cells.sent >= 0)
        cell = cells.sent[k, e, s]
        shape = (cells.horizon * len(topology.links), sent.size)
        matrix = rows(k * len(topology.links) + e, cell, shape)
        used = np.flatnonzero(np.diff(matrix.indptr))
        room = np.tile(hops.room, cells.horizon)
        rules = [matrix[used] @ sent <= room[used]]
        for limit in topology.limits:
            inside = np.zeros(len(topology.links), dtype=bool)
            inside[[topology.link_index[ends] for ends in limit.links]] = True
            matrix = rows(k[inside[e]], cell[inside[e]], (cells.horizon, sent.size))
            most = 1e3 * limit.bandwidth * grid.epoch_duration / grid.chunk_size
            rules.append(matrix @ sent <= most)
        return rules

    def _busy(self, cells: _Cells, sent: cp.Variable) -> cp.Minimize:
        cost = np.zeros(sent.size)
        k, e, s = np.nonzero(cells.sent >= 0)
        # In shares of the longest hop, plus a little for every hop, so that no way is free.
        hold = self.hops.grid.hold
        cost[cells.sent[k, e, s]] = (hold / hold.max() + 0.01)[e]
        return cp.Minimize(cost @ sent)

    def _reward(self, cells: _Cells, read: cp.Variable) -> cp.Maximize:
        weight = np.zeros(read.size)
        k, v, s = np.nonzero(cells.read >= 0)
        # What is read at k counts in every epoch from then on.
        harmonic = np.cumsum(1.0 / np.arange(cells.horizon, 0, -1))[::-1]
        weight[cells.read[k, v, s]] = harmonic[np.maximum(k, 1) - 1]
        return cp.Maximize(weight @ read)

    def _schedule(
        self, cells: _Cells, sent: cp.Variable, held: cp.Variable, read: cp.Variable
    ) -> Schedule:
        amounts = Amounts(
            sent=_filled(cells.sent, sent),
            held=_filled(cells.held, held),
            read=_filled(cells.read, read),
        )
        found = paths(amounts, self.hops, self.sources)
        sends, horizon = sends_of(found, self.hops, self.run.problem)
        tau = self.hops.grid.epoch_duration * self._overload(sends, horizon)
        return Schedule(sends, tau, horizon)

    def _overload(self, sends: tuple[Send, ...], horizon: int) -> float:
        """Return by which factor the solver's tolerance overfills an epoch, 1 or hardly more."""
        topology, room = self.hops.topology, self.hops.room
        chunks, unit = self.run.problem.collective.chunks, self.hops.grid.chunk_size
        load = np.zeros((len(topology.links), horizon))
        for send in sends:
            link = topology.link_index[send.src, send.dst]
            load[link, send.epoch] += send.fraction * chunks[send.chunk].size / unit
        most = float((load / room[:, None]).max())
        for limit in topology.limits:
            links = [topology.link_index[ends] for ends in limit.links]
            through = 1e3 * limit.bandwidth * self.hops.grid.epoch_duration / unit
            most = max(most, float(load[links].sum(axis=0).max()) / through)
        return max(1.0, most)


def _numbered(mask: np.ndarray) -> np.ndarray:
    numbers = np.full(mask.shape, -1)
    numbers[mask] = np.arange(int(mask.sum()))
    return numbers


def _filled(cells: np.ndarray, variable: cp.Variable) -> np.ndarray:
    """Return the values in the shape of the table, 0 where there is no variable."""
    values = np.append(np.maximum(np.asarray(variable.value), 0.0), 0.0)
    return np.asarray(values[cells])
