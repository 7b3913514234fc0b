"""The integer program of whole chunks on a grid of epochs, built with sparse matrices.

Its mathematics is the docstring of `formulations.models.te_ccl_milp`; its variables are laid out
in `formulations.engines.epoch_grid.windows`, its rows in
`formulations.engines.te_ccl.chunk_constraints` and `formulations.engines.epoch_grid.epochs`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import Literal

import cvxpy as cp
import numpy as np

from ccl.errors import Infeasible
from ccl.plans import Schedule, Send
from ccl.result import ModelSize
from formulations.core.run import Run
from formulations.engines.epoch_grid.arcs import Hops
from formulations.engines.epoch_grid.epochs import Memory
from formulations.engines.epoch_grid.grid_bound import (
    Crossing,
    Need,
    by_bound,
    crossing,
    few,
    proved_short,
    too_short,
)
from formulations.engines.epoch_grid.plans import Demand, schedule
from formulations.engines.epoch_grid.windows import Cells, Windows
from formulations.engines.te_ccl.chunk_constraints import ChunkRows, Keeping
from formulations.solvers.cvxpy_highs import Ending, Outcome, Report
from formulations.solvers.sparse_rows import rows

Aim = Literal["any", "early-arrivals", "finish-times"]
"""What a model optimises: nothing, so that any solution will do, or one of two objectives."""


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
        Limited buffers, or None where there are none.
    at_once
        Whether a device must send on what it was not given at the start when it arrives, or
        never.
    """

    def __init__(
        self,
        hops: Hops,
        demand: Demand,
        run: Run,
        *,
        memory: Memory | None = None,
        at_once: bool = False,
    ) -> None:
        self.hops, self.demand, self.run = hops, demand, run
        self.windows = Windows(hops, demand)
        self.memory = memory if memory is not None and memory.limited.size else None
        self.at_once = at_once
        self.outcome: Outcome | None = None
        self.build_seconds = self.solve_seconds = 0.0

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
            If there is none.
        LimitReached
            If the time limit came first.
        """
        self.check(horizon)
        run, begin = self.run, time.perf_counter()
        run.report(f"building the model of {horizon} epochs")
        cells = self.windows.cells(horizon)
        sends = self._sends(cells)
        model = self._model(cells, sends, aim)
        built = time.perf_counter() - begin

        def improved() -> None:
            run.offer(self._schedule(cells, sends))

        run.report(f"solving for {horizon} epochs")
        limits = [each for each in (run.left, time_limit) if each is not None]
        try:
            outcome = run.backend.solve(
                model,
                time_limit=min(limits, default=None),
                gap=gap,
                on_report=self._heard(horizon),
                on_solution=None if aim == "any" else improved,
                start=None if start is None else self._begun(cells, sends, start),
            )
        except Infeasible:
            run.met(self.measure(horizon))
            raise Infeasible(self.none(horizon)) from None
        self.build_seconds += built + outcome.build_seconds
        self.solve_seconds += outcome.solve_seconds
        self.outcome = outcome
        run.met(outcome.size)
        return self._schedule(cells, sends)

    def _model(self, cells: Cells, sends: cp.Variable, aim: Aim) -> cp.Problem:
        buffers = cp.Variable(cells.buffers, bounds=[0, 1])
        rules = ChunkRows(
            self.windows, cells, sends=sends, buffers=buffers, at_once=self.at_once
        ).rules()
        if self.memory is not None:
            rules += Keeping(self.windows, cells, self.memory).rules(sends, buffers)
        objective, more = self._objective(aim, cells, buffers)
        return cp.Problem(objective, rules + more)

    @property
    def proved(self) -> bool:
        """Whether the last model was solved to optimality."""
        return self.outcome is not None and self.outcome.ending is Ending.OPTIMAL

    @property
    def near(self) -> bool:
        """Whether the last model stopped at the gap of its objective that was asked for."""
        return self.outcome is not None and self.outcome.ending is Ending.GAP

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
        """Say why a horizon is too small before a solver has to find out.

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
        holders = np.flatnonzero(self.demand.has[:, chunk])
        nearest = int(holders[self.hops.distance[holders, device].argmin()])
        src, dst = (self.hops.topology.devices[each].name for each in (nearest, device))
        return Need(needed, f"hops from {src} to {dst}, chunk {chunk}")

    @property
    def _by_cut(self) -> Need:
        names = [each.name for each in self.hops.topology.devices]
        inside = few([names[each] for each in self._crossing.inside])
        return Need(
            self._crossing.epochs,
            f"{self._crossing.chunks} chunks of {inside} cannot all be at "
            f"{names[self._crossing.device]} sooner, since so few of them leave in an epoch",
        )

    def none(self, horizon: int) -> str:
        """Say that the solver proved a horizon too small."""
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

    def _sends(self, cells: Cells) -> cp.Variable:
        most = self.windows.most[cells.hop]
        if most.max(initial=1) == 1:
            return cp.Variable(len(most), boolean=True)
        return cp.Variable(len(most), integer=True, bounds=[np.zeros(len(most)), most])

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
        if self.run.mirrored:
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

    def _begun(
        self, cells: Cells, sends: cp.Variable, plan: Schedule
    ) -> tuple[cp.Variable, np.ndarray] | None:
        """Return the values of f in a plan, or None where the model has no such send."""
        hop = {route: number for number, route in enumerate(self.hops.routes)}
        cell = {
            key: number
            for number, key in enumerate(
                zip(cells.epoch.tolist(), cells.hop.tolist(), cells.chunk.tolist(), strict=True)
            )
        }
        values = np.zeros(len(cells.epoch))
        for send in plan.sends:
            route = hop.get((send.src, *send.via, send.dst), -1)
            number = cell.get((send.epoch, route, send.chunk))
            if number is None:
                self.run.note("the plan given has no place on this grid, so the solver got none")
                return None
            values[number] += 1
        return sends, values

    def _schedule(self, cells: Cells, sends: cp.Variable) -> Schedule:
        hops = self.hops
        times = np.rint(np.asarray(sends.value)).astype(int)
        listed = []
        for cell in np.repeat(np.arange(len(times)), np.maximum(times, 0)).tolist():
            route = hops.routes[cells.hop[cell]]
            epoch, chunk = int(cells.epoch[cell]), int(cells.chunk[cell])
            listed.append(Send(epoch, chunk, route[0], route[-1], via=route[1:-1]))
        return schedule(listed, hops, self.demand)
