"""The integer program of whole chunks on a grid of epochs, built with sparse matrices.

Its mathematics is the docstring of `formulations.models.te_ccl_milp`. Every variable is one entry
of a flat vector whose indices (epoch, hop, chunk) or (epoch, device, chunk) are arrays
(`formulations.engines.epoch_grid.windows`). Every family of rows is one sparse matrix: those of the
model are `ChunkRows`, those of limited buffers `Keeping`, of which
`formulations.engines.epoch_grid.epochs` has the mathematics.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ccl.errors import Infeasible
from ccl.plans import Schedule
from ccl.result import ModelSize
from ccl.text import listing
from formulations.core.run import Run
from formulations.engines.epoch_grid.arcs import Arcs, capacity_rows, limit_rows, rows, spans
from formulations.engines.epoch_grid.epochs import ROUNDING, Memory
from formulations.engines.epoch_grid.plans import Demand, schedule, sends_at
from formulations.engines.epoch_grid.windows import (
    MOST_NAMED,
    CellProgram,
    Cells,
    Crossing,
    Need,
    Windows,
    by_bound,
    crossing,
    proved_short,
    too_short,
)
from formulations.solvers import cp
from formulations.solvers.cvxpy_highs import Outcome, Report, TerminationCondition


class ChunkRows(CellProgram):
    """The rows of one model.

    Parameters
    ----------
    windows, cells
        What is sent on which grid, and the variables of one horizon.
    at_once
        Whether what a device is not given at the start must be sent on when it arrives.
    """

    def __init__(self, windows: Windows, cells: Cells, *, at_once: bool) -> None:
        self.hops, self.demand, self.cells = windows.hops, windows.demand, cells
        self.at_once = at_once
        self.most = self.hops.most[cells.hop]

    def rules(self) -> list[cp.Constraint]:
        """Return all rows."""
        return [
            *self.buffer_rows(),
            self.buffers[self.cells.held[-1][self.demand.wants]] == 1,
            *self._send_rows(),
            *self.switch_rows(),
            *self._capacity_rows(),
            *self._limit_rows(),
            *self._share_rows(),
        ]

    def _send_rows(self) -> list[cp.Constraint]:
        """Let a device that stores send what it has.

        What it has from the start it may send at any time.
        """
        cells, source = self.cells, self.hops.src[self.cells.hop]
        later = self.hops.stores[source] & ~self.demand.has[source, cells.chunk]
        needs = np.flatnonzero(later)
        if needs.size and self.at_once:
            return [self.relayed(needs)]
        return self.held_rows(needs)

    def _capacity_rows(self) -> list[cp.Constraint]:
        """Keep every link to its capacity; rows that cannot bind are left out."""
        matrix, capacity = capacity_rows(self.hops, self.cells.epoch, self.cells.hop)
        alone = np.repeat(~self._slowed, len(capacity) // len(self.hops.capacity))
        binding = np.flatnonzero(alone & (matrix @ self.most > capacity))
        return [matrix[binding] @ self.sends <= capacity[binding]] if binding.size else []

    def _limit_rows(self) -> list[cp.Constraint]:
        """Keep every shared limit to its bandwidth in every epoch."""
        width = self.cells.horizon + int(self.hops.delay.max())
        found = limit_rows(self.hops, self.cells.epoch, self.cells.hop, width=width)
        return [matrix @ self.sends <= most for matrix, most in found]

    @property
    def _slowed(self) -> np.ndarray:
        """Whether each link has less bandwidth at times, shape (links,)."""
        topology, found = self.hops.topology, np.zeros(len(self.hops.capacity), dtype=bool)
        for window in self.hops.grid.windows:
            found[[topology.link_index[ends] for ends in window.links]] = True
        return found

    def _share_rows(self) -> list[cp.Constraint]:
        """Keep links with windows to what they have in each epoch."""
        grid, slowed = self.hops.grid, self._slowed
        which, epoch = spans(self.hops, self.cells.epoch, self.cells.hop)
        if not slowed.any() or not which.size:
            return []
        hop = self.cells.hop[which]
        link = np.array([links[0] for links in self.hops.links])[hop]
        width = int(epoch.max()) + 1
        shape = (width * len(slowed), len(self.cells.epoch))
        part = 1.0 / self.hops.occupancy[hop]
        matrix = rows(epoch * len(slowed) + link, which, shape, value=part)
        alone = np.array([each.beta for each in grid.topology.links]) * grid.chunk_size
        most = (grid.shares(width) * (grid.epoch_duration / alone)).ravel()
        kept = np.flatnonzero(np.tile(slowed, width) & (matrix @ self.most > most))
        return [matrix[kept] @ self.sends <= most[kept] * (1 + ROUNDING)] if kept.size else []


class Keeping:
    """The rows of limited buffers of one model."""

    def __init__(self, windows: Windows, cells: Cells, memory: Memory) -> None:
        self.hops, self.has = windows.hops, windows.demand.has
        self.most, self.cells, self.memory = windows.hops.most, cells, memory
        self.leaves = np.isfinite(memory.capacity)[:, None] & ~memory.keeps
        self.number = np.full(self.leaves.shape, -1)
        self.number[self.leaves] = np.arange(int(self.leaves.sum()))
        self.width = int(self.leaves.sum())
        self.gone = cp.Variable(self.width * (cells.horizon + 1), bounds=[0, 1])

    def rules(self, sends: cp.Variable, buffers: cp.Variable) -> list[cp.Constraint]:
        """Return all rows."""
        rules = [self.gone[: -self.width] <= self.gone[self.width :]] if self.width else []
        return rules + self._send_rows(sends, buffers) + self._stock_rows(sends, buffers)

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

    def _stock_rows(self, sends: cp.Variable, buffers: cp.Variable) -> list[cp.Constraint]:
        """Count what is stored before the first epoch and in each; none of it is negative."""
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
        capacity = np.tile(self.memory.capacity[limited], horizon + 1)
        kept = (total @ held) @ buffers + (total @ came) @ sends - (total @ left) @ self.gone
        return [*rules, kept + fixed <= capacity]

    def _window(self) -> np.ndarray:
        """Return whether a chunk can be at a device at the beginning or the end of each epoch."""
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


def _sharp_start(hops: Arcs) -> np.ndarray:
    """Return whether a send over each hop starts exactly with its epoch, shape (hops,)."""
    limited = hops.grid.limited
    return np.array(
        [
            bool(limited[list(links)].any()) or bool((hops.capacity[list(links)] == 1).all())
            for links in hops.links
        ]
    )


def _sharp_end(hops: Arcs) -> np.ndarray:
    """Return whether a send over each hop arrives exactly at the end of its last epoch, (hops,)."""
    grid, found = hops.grid, []
    for hop, links in enumerate(map(list, hops.links)):
        alone = bool((hops.capacity[links] == 1).all()) and not grid.limited[links].any()
        took = float(max(grid.hold[links]) + sum(grid.alpha[links]))
        whole = float(hops.delay[hop]) * grid.epoch_duration
        found.append(alone and abs(took - whole) <= ROUNDING * whole)
    return np.array(found, dtype=bool)


Aim = Literal["any", "early-arrivals", "finish-times"]
"""What a model optimises: nothing, so that any solution will do, or one of two objectives."""


@dataclass(eq=False)
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
    memory
        Limited buffers, or None.
    at_once
        Whether a device must send on what it was not given at the start when it arrives, or
        never.
    """

    hops: Arcs
    demand: Demand
    run: Run
    memory: Memory | None = None
    at_once: bool = False
    outcome: Outcome | None = None
    build_seconds: float = 0.0
    solve_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.windows = Windows(self.hops, self.demand)

    def solve(
        self,
        horizon: int,
        *,
        aim: Aim = "any",
        gap: float | None = None,
        time_limit: float | None = None,
        start: Schedule | None = None,
    ) -> Schedule:
        """Return a schedule of at most `horizon` epochs.

        Parameters
        ----------
        horizon
            K.
        aim
            The objective.
        gap
            Relative gap of the objective at which the solver may stop.
        time_limit
            Seconds for this model, where that is less than what the run has left.
        start
            A plan on this grid from which the solver begins; one that does not fit into the
            windows is left out.

        Raises
        ------
        Infeasible
            If there is no plan.
        LimitReached
            If the time limit came first.
        """
        self.check(horizon)
        run, begin = self.run, time.perf_counter()
        run.report(f"building the model of {horizon} epochs")
        cells = self.windows.cells(horizon)
        program = ChunkRows(self.windows, cells, at_once=self.at_once)
        model = self._model(program, aim)
        built = time.perf_counter() - begin

        def improved() -> None:
            run.offer(self._schedule(program))

        run.report(f"solving for {horizon} epochs")
        limits = [each for each in (run.left, time_limit) if each is not None]
        try:
            outcome = run.backend.solve(
                model,
                time_limit=min(limits, default=None),
                gap=gap,
                on_report=self._heard(horizon),
                on_solution=None if aim == "any" else improved,
                start=None if start is None else self._begun(program, start),
            )
        except Infeasible:
            run.met(self.measure(horizon))
            raise Infeasible(self.none(horizon)) from None
        self.build_seconds += built + outcome.build_seconds
        self.solve_seconds += outcome.solve_seconds
        self.outcome = outcome
        run.met(outcome.size)
        return self._schedule(program)

    def _model(self, program: ChunkRows, aim: Aim) -> cp.Problem:
        cells, rules = program.cells, program.rules()
        if self.memory is not None and self.memory.limited.size:
            keeping = Keeping(self.windows, cells, self.memory)
            rules += keeping.rules(program.sends, program.buffers)
        objective, more = self._objective(aim, cells, program.buffers)
        return cp.Problem(objective, rules + more)

    @property
    def proved(self) -> bool:
        """Whether the last model was solved to optimality."""
        return self.outcome is not None and self.outcome.ending is TerminationCondition.OPTIMAL

    @property
    def near(self) -> bool:
        """Whether the last model stopped at the gap of its objective that was requested."""
        return self.outcome is not None and self.outcome.ending is TerminationCondition.GAP

    def measure(self, horizon: int) -> ModelSize:
        """Count variables, constraints and nonzeros of the model of `horizon` epochs.

        Those of objectives and limited buffers are left out.
        """
        return self.windows.measure(horizon)

    @property
    def least(self) -> int:
        """Epochs without which there is no schedule: by latency, by what crosses cuts, in µs."""
        return max(1, self.windows.last_to_come[0], self._crossing.epochs, self._by_bound.many)

    @cached_property
    def _crossing(self) -> Crossing:
        return crossing(self.hops, self.demand)

    @property
    def _by_bound(self) -> Need:
        # Sends over several links under limits may be late by the schedule's own measure.
        if self.hops.topology.limits and any(len(links) > 1 for links in self.hops.links):
            return Need(1, "")
        return by_bound(self.run.bounds[0], self.hops.grid.epoch_duration)

    def check(self, horizon: int) -> None:
        """Explain why a horizon is too small before a solver has to find out.

        Raises
        ------
        Infeasible
            If latency or a lower bound needs more epochs.
        """
        if horizon < self.least:
            need = max((self._by_hops, self._by_bound, self._by_cut), key=lambda each: each.many)
            raise Infeasible(too_short(horizon, need, each=self.hops.grid.epoch_duration))

    @property
    def _by_hops(self) -> Need:
        needed, device, chunk = self.windows.last_to_come
        nearest = self.demand.holder(self.hops.distance, device, chunk)
        src, dst = (self.hops.topology.devices[each].name for each in (nearest, device))
        return Need(needed, f"hops from {src} to {dst}, chunk {chunk}")

    @property
    def _by_cut(self) -> Need:
        names = [each.name for each in self.hops.topology.devices]
        inside = listing([names[each] for each in self._crossing.inside], MOST_NAMED)
        return Need(
            self._crossing.epochs,
            f"{self._crossing.chunks} chunks of {inside} cannot all be at "
            f"{names[self._crossing.device]} sooner, since so few of them leave in an epoch",
        )

    def none(self, horizon: int) -> str:
        """Return the message that the solver proved a horizon too small."""
        devices = self.hops.topology.devices
        return proved_short(
            horizon,
            self.least,
            each=self.hops.grid.epoch_duration,
            what="schedule",
            full=[each.name for each in devices if each.stores and each.buffer_bytes is not None],
        )

    def _heard(self, horizon: int) -> Callable[[Report], bool]:
        def heard(_: Report) -> bool:
            self.run.report(f"solving for {horizon} epochs")
            return self.run.expired

        return heard

    def _objective(
        self, aim: Aim, cells: Cells, buffers: cp.Variable
    ) -> tuple[cp.Minimize | cp.Maximize, list[cp.Constraint]]:
        if aim == "early-arrivals":
            return self._reward(cells, buffers), []
        if aim == "finish-times":
            return self._finish(cells, buffers)
        return cp.Minimize(0), []

    @property
    def _priority(self) -> np.ndarray:
        """Weight of each chunk; read backwards an early arrival is a late one, so all are 1."""
        chunks = self.run.problem.collective.chunks
        if self.run.reverse_time:
            return np.ones(len(chunks))
        return np.array([chunk.priority for chunk in chunks])

    def _reward(self, cells: Cells, buffers: cp.Variable) -> cp.Maximize:
        weight = np.zeros(cells.buffers)
        device, chunk = np.nonzero(self.demand.wants)
        priority = self._priority[chunk]
        for moment in range(1, cells.horizon + 1):
            wanted = cells.held[moment, device, chunk]
            weight[wanted[wanted >= 0]] = priority[wanted >= 0] / moment
        return cp.Maximize(weight @ buffers)

    def _finish(
        self, cells: Cells, buffers: cp.Variable
    ) -> tuple[cp.Minimize, list[cp.Constraint]]:
        """Count for each tenant the epochs in which it still waits, by its priority."""
        chunks, epochs = self.run.problem.collective.chunks, cells.horizon
        names = sorted({chunk.tenant for chunk in chunks})
        tenant = np.array([names.index(each.tenant) for each in chunks])
        weight = np.array([self._priority[tenant == i].max() for i in range(len(names))])
        device, chunk = np.nonzero(self.demand.wants)
        there = cells.held[:epochs, device, chunk]
        moment, pair = np.nonzero(there >= 0)
        busy = cp.Variable(len(names) * epochs, boolean=True)
        # A tenant waits at least until the last of its chunks can be there.
        least = np.zeros((len(names), epochs))
        for row, many in zip(tenant[chunk], (there < 0).sum(axis=0), strict=True):
            least[row, :many] = 1
        number = np.arange(busy.size).reshape(len(names), epochs)
        rules = [busy >= least.ravel(), busy[number[:, 1:].ravel()] <= busy[number[:, :-1].ravel()]]
        every = np.arange(len(moment))
        if every.size:
            held = rows(every, there[moment, pair], (len(moment), cells.buffers))
            waits = rows(every, number[tenant[chunk[pair]], moment], (len(moment), busy.size))
            rules.append(held @ buffers + waits @ busy >= 1)
        return cp.Minimize(np.repeat(weight, epochs) @ busy), rules

    def _begun(self, program: ChunkRows, plan: Schedule) -> tuple[cp.Variable, np.ndarray] | None:
        """Return the values of f in a plan, or None where the model has no such send."""
        hop = {route: number for number, route in enumerate(self.hops.routes)}
        cells = program.cells
        keys = zip(cells.epoch.tolist(), cells.hop.tolist(), cells.chunk.tolist(), strict=True)
        cell = {key: number for number, key in enumerate(keys)}
        values = np.zeros(len(cells.epoch))
        for send in plan.sends:
            route = hop.get((send.src, *send.via, send.dst), -1)
            number = cell.get((send.epoch, route, send.chunk))
            if number is None:
                self.run.note("the plan given has no place on this grid, so the solver got none")
                return None
            values[number] += 1
        return program.sends, values

    def _schedule(self, program: ChunkRows) -> Schedule:
        cells, sent = program.cells, program.sent
        sends = sends_at(self.hops, cells.epoch[sent], hop=cells.hop[sent], chunk=cells.chunk[sent])
        return schedule(sends, self.hops, self.demand)
