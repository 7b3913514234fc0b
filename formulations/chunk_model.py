"""The integer program of whole chunks on a grid of epochs, built with sparse matrices.

Its mathematics is the docstring of `formulations.models.te_ccl_milp`; here is how the rows are
laid out. Every variable is one entry of a flat vector whose indices (epoch, hop, chunk) or
(epoch, device, chunk) are arrays; every family of rows is one sparse matrix.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from scipy import sparse

from ccl.errors import Infeasible
from ccl.schedule import Schedule, Send
from formulations.backends import Ending, Report
from formulations.demand import Demand
from formulations.epochs import ROUNDING
from formulations.hops import Hops
from formulations.plans import schedule
from formulations.rows import rows
from formulations.run import Run


@dataclass(frozen=True)
class _Cells:
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


class ChunkModel:
    """Models of one demand on one grid, for any horizon.

    Parameters
    ----------
    hops
        Links or hyper-edges on the grid.
    demand
        Who has and wants which chunk.
    run
        Gives limits and hears news.
    """

    def __init__(self, hops: Hops, demand: Demand, run: Run) -> None:
        self.hops, self.demand, self.run = hops, demand, run
        self.earliest = demand.earliest(hops.distance)
        self.tail = demand.tail(hops.distance)
        self.proved = False
        self.build_seconds = self.solve_seconds = 0.0

    def solve(self, horizon: int, *, reward: bool = False) -> Schedule:
        """Return a schedule of at most `horizon` epochs.

        Parameters
        ----------
        horizon
            K.
        reward
            Whether early arrivals are rewarded; else any solution will do.

        Raises
        ------
        Infeasible
            If there is none.
        LimitReached
            If the time limit came first.
        """
        self._check(horizon)
        run, begin = self.run, time.perf_counter()
        run.report(f"building the model of {horizon} epochs")
        cells = self._cells(horizon)
        sends = self._sends(cells)
        buffers = cp.Variable(cells.buffers, bounds=[0, 1])
        rules = self._rules(cells, sends, buffers)
        objective = self._reward(cells, buffers) if reward else cp.Minimize(0)
        model = cp.Problem(objective, rules)
        built = time.perf_counter() - begin

        def improved() -> None:
            run.offer(self._schedule(cells, sends))

        run.report(f"solving for {horizon} epochs")
        outcome = run.backend.solve(
            model,
            time_limit=run.left,
            gap=run.gap if reward else None,
            on_report=self._heard(horizon),
            on_solution=improved if reward else None,
        )
        self.build_seconds += built + outcome.build_seconds
        self.solve_seconds += outcome.solve_seconds
        self.proved = outcome.ending is Ending.OPTIMAL
        run.met(outcome.size)
        return self._schedule(cells, sends)

    def measure(self, horizon: int) -> tuple[int, int]:
        """Return how many variables and entries the model of `horizon` epochs would have.

        Entries are of the rows of capacity, which are most of it where chunks hold their links
        for many epochs.
        """
        hops, demand = self.hops, self.demand
        latest = horizon - self.tail
        room = latest[hops.dst] - hops.delay[:, None] - self.earliest[hops.src] + 1
        sends = np.where(demand.has[hops.dst], 0.0, np.maximum(room, 0.0)).sum(axis=1)
        exists = (self.earliest <= latest) & ~demand.has & hops.stores[:, None]
        buffers = (horizon + 1 - self.earliest[exists]).sum()
        held = hops.occupancy * np.array([len(links) for links in hops.links])
        return int(sends.sum() + buffers), int((sends * held).sum())

    def _check(self, horizon: int) -> None:
        """Say which arrival makes a horizon too small before a solver has to find out."""
        late = np.where(self.demand.wants, self.earliest, 0.0)
        needed = int(late.max())
        if needed > horizon:
            device, chunk = np.unravel_index(int(late.argmax()), late.shape)
            name = self.hops.topology.devices[int(device)].name
            tau = self.hops.grid.epoch_duration
            msg = (
                f"horizon of {horizon} epochs: chunk {chunk} cannot be at {name} before epoch "
                f"{needed} with epochs of {tau:.6g} µs; allow {needed} epochs or more"
            )
            raise Infeasible(msg)

    def _heard(self, horizon: int) -> Callable[[Report], bool]:
        def heard(_: Report) -> bool:
            self.run.report(f"solving for {horizon} epochs")
            return self.run.expired

        return heard

    def _cells(self, horizon: int) -> _Cells:
        """Lay out the variables inside their windows."""
        hops, demand = self.hops, self.demand
        latest = horizon - self.tail
        start = np.arange(horizon)[:, None, None]
        useful = (
            (start >= self.earliest[hops.src])
            & (start + hops.delay[:, None] <= latest[hops.dst])
            & ~demand.has[hops.dst]
        )
        epoch, hop, chunk = np.nonzero(useful)
        moment = np.arange(horizon + 1)[:, None, None]
        exists = (
            (moment >= self.earliest)
            & (self.earliest <= latest)
            & ~demand.has
            & hops.stores[:, None]
        )
        held = np.full(exists.shape, -1)
        held[exists] = np.arange(int(exists.sum()))
        return _Cells(horizon, epoch, hop, chunk, held)

    def _most(self, cells: _Cells) -> np.ndarray:
        """Return how often each send may be made at once, shape (n,).

        More than once is of use only on the way to what can neither store nor copy.
        """
        hops = self.hops
        room = np.array([min(hops.room[list(links)]) for links in hops.links])
        again = ~(hops.stores | hops.copies)[hops.dst]
        return np.asarray(np.where(again, room, 1)[cells.hop])

    def _sends(self, cells: _Cells) -> cp.Variable:
        most = self._most(cells)
        if most.max(initial=1) == 1:
            return cp.Variable(len(most), boolean=True)
        return cp.Variable(len(most), integer=True, bounds=[np.zeros(len(most)), most])

    def _rules(
        self, cells: _Cells, sends: cp.Variable, buffers: cp.Variable
    ) -> list[cp.Constraint]:
        source = self.hops.src[cells.hop]
        rules = self._buffer_rows(cells, sends, buffers)
        # What a device has from the start it may send at any time.
        later = self.hops.stores[source] & ~self.demand.has[source, cells.chunk]
        needs = np.flatnonzero(later)
        if needs.size:
            there = cells.held[cells.epoch[needs], source[needs], cells.chunk[needs]]
            shape, most = (len(needs), cells.buffers), self._most(cells)[needs]
            rules.append(
                sends[needs] <= rows(np.arange(len(needs)), there, shape, value=most) @ buffers
            )
        rules += self._switch_rows(cells, sends)
        rules += self._capacity_rows(cells, sends)
        rules += self._limit_rows(cells, sends)
        return rules

    def _buffer_rows(
        self, cells: _Cells, sends: cp.Variable, buffers: cp.Variable
    ) -> list[cp.Constraint]:
        """Let a device hold what it held and what arrives, and at the end what it wants."""
        hops, held, count = self.hops, cells.held, cells.buffers
        arrival = cells.epoch + hops.delay[cells.hop]
        row = held[arrival, hops.dst[cells.hop], cells.chunk]
        stored = np.flatnonzero(row >= 0)
        shape = (count, len(cells.epoch))
        arrive = rows(row[stored], stored, shape)
        before = held[:-1][(held[1:] >= 0) & (held[:-1] >= 0)]
        after = held[1:][(held[1:] >= 0) & (held[:-1] >= 0)]
        every = np.arange(count)
        step = rows(every, every, (count, count)) - rows(after, before, (count, count))
        final = held[-1][self.demand.wants]
        return [step @ buffers == arrive @ sends, buffers[final] == 1]

    def _switch_rows(self, cells: _Cells, sends: cp.Variable) -> list[cp.Constraint]:
        """Let what came in for an epoch leave a device that cannot store, and nothing else."""
        hops = self.hops
        devices, chunks = self.demand.has.shape
        shape = (cells.horizon + 1, devices, chunks)
        many = int(np.prod(shape))
        columns = np.arange(len(cells.epoch))
        arrival = cells.epoch + hops.delay[cells.hop]
        enters = np.ravel_multi_index((arrival, hops.dst[cells.hop], cells.chunk), shape)
        leaves = np.ravel_multi_index((cells.epoch, hops.src[cells.hop], cells.chunk), shape)
        into = rows(enters, columns, (many, len(columns)))
        relay = ~hops.stores[hops.src[cells.hop]]
        copied = np.flatnonzero(relay & hops.copies[hops.src[cells.hop]])
        rules: list[cp.Constraint] = []
        if copied.size:
            most = sparse.diags_array(self._most(cells)[copied])
            rules.append(sends[copied] <= (most @ into[leaves[copied]]) @ sends)
        plain = ~hops.stores & ~hops.copies
        if plain.any():
            out = rows(leaves, columns, (many, len(columns)))
            used = np.diff(into.indptr) + np.diff(out.indptr)
            touched = np.flatnonzero(np.broadcast_to(plain[:, None], shape).ravel() & (used > 0))
            if touched.size:
                rules.append((out[touched] - into[touched]) @ sends == 0)
        return rules

    def _spans(self, cells: _Cells) -> tuple[np.ndarray, np.ndarray]:
        """Return every (send, epoch) such that the send holds its links in the epoch."""
        many = self.hops.occupancy[cells.hop]
        which = np.repeat(np.arange(len(many)), many)
        first = np.repeat(np.cumsum(many) - many, many)
        begin = (cells.epoch + self.hops.begin[cells.hop])[which]
        return which, begin + np.arange(len(which)) - first

    def _capacity_rows(self, cells: _Cells, sends: cp.Variable) -> list[cp.Constraint]:
        """Keep every link to its room; rows that cannot bind are left out."""
        hops = self.hops
        which, epoch = self._spans(cells)
        uses = sparse.csc_array(hops.uses)
        many = np.diff(uses.indptr)[cells.hop[which]]
        begin = uses.indptr[:-1][cells.hop[which]]
        spread = np.repeat(np.arange(len(which)), many)
        place = np.arange(len(spread)) - np.repeat(np.cumsum(many) - many, many)
        link = uses.indices[begin[spread] + place]
        width = int(epoch.max(initial=0)) + 1
        shape = (uses.shape[0] * width, len(cells.epoch))
        matrix = rows(link * width + epoch[spread], which[spread], shape)
        room = np.repeat(hops.room, width)
        binding = np.flatnonzero(matrix @ self._most(cells) > room)
        return [matrix[binding] @ sends <= room[binding]] if binding.size else []

    def _limit_rows(self, cells: _Cells, sends: cp.Variable) -> list[cp.Constraint]:
        """Keep every shared limit to its bandwidth in every epoch."""
        topology, grid = self.hops.topology, self.hops.grid
        width, count = cells.horizon + int(self.hops.delay.max()), len(cells.epoch)
        rules: list[cp.Constraint] = []
        for limit in topology.limits:
            shares = self._shares({topology.link_index[ends] for ends in limit.links})
            many = np.array([len(share) for share in shares])[cells.hop]
            which = np.repeat(np.arange(count), many)
            if which.size:
                later, share = np.concatenate([shares[hop] for hop in cells.hop.tolist()]).T
                epoch = cells.epoch[which] + later.astype(int)
                matrix = rows(epoch, which, (width, count), value=share)
                most = 1e3 * limit.bandwidth * grid.epoch_duration / grid.chunk_size
                rules.append(matrix @ sends <= most * (1 + ROUNDING))
        return rules

    def _shares(self, under: set[int]) -> list[np.ndarray]:
        """Return (epochs after its own, share of a chunk) of each hop over links under a limit."""
        hops = self.hops
        return [
            np.array(
                [
                    (later, 1 / len(epochs))
                    for link, epochs in zip(links, hops.carried(hop), strict=True)
                    if link in under
                    for later in epochs
                ]
            ).reshape(-1, 2)
            for hop, links in enumerate(hops.links)
        ]

    def _reward(self, cells: _Cells, buffers: cp.Variable) -> cp.Maximize:
        weight = np.zeros(cells.buffers)
        for moment in range(1, cells.horizon + 1):
            wanted = cells.held[moment][self.demand.wants]
            weight[wanted[wanted >= 0]] = 1.0 / moment
        return cp.Maximize(weight @ buffers)

    def _schedule(self, cells: _Cells, sends: cp.Variable) -> Schedule:
        hops = self.hops
        times = np.rint(np.asarray(sends.value)).astype(int)
        listed = []
        for cell in np.repeat(np.arange(len(times)), np.maximum(times, 0)).tolist():
            route = hops.routes[cells.hop[cell]]
            epoch, chunk = int(cells.epoch[cell]), int(cells.chunk[cell])
            listed.append(Send(epoch, chunk, route[0], route[-1], via=route[1:-1]))
        return schedule(listed, hops, self.demand)
