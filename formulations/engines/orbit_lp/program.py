"""The orbit linear program as one CVXPY model.

    minimise    R
    subject to  the rows of each block (`formulations.engines.orbit_lp.blocks`)
                sum over blocks of busy[i, a] W[a] <= scale[i] R       for orbits i of capacity rows
                sum over orbits of roots of n[o] x[o] = 1              where roots are free: then
                                                                       conservation has x[o] times
                                                                       its right hand side

and then, with R held at its least, the least sum of cost[a] W[a]. R counts in a unit of time in
which it is near 1; `scale` is 1 but where sensitivities ask what a little more bandwidth would do.

Source: the thesis, LP (4.2) without its axis of time, and section 3.1 for the order of the two
objectives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np
from scipy import sparse

from formulations.engines.orbit_lp.blocks import Block
from formulations.solvers.cvxpy_highs import Backend

SLACK = 1e-9
"""How much longer than the least time may be taken where cost is least, relative."""

MANY = 5_000
"""Columns from which interior points are faster on pairs; on trees they never are."""

FREE = 1e12
"""More units of time than anything takes."""


class OrbitProgram:
    """The model of some blocks.

    Parameters
    ----------
    blocks
        At least one.
    rows
        Orbit of each capacity row, shape (rows,).
    unit
        µs in which R counts.
    costs
        Cost of a byte on each link, shape (links,), or None.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        rows: np.ndarray,
        unit: float,
        costs: np.ndarray | None = None,
    ) -> None:
        self.blocks, self.rows, self.unit = blocks, rows, unit
        self.busy = sparse.csr_array(sparse.hstack([each.busy(rows) for each in blocks]))
        roots = {each.free: each.many for each in blocks if each.free >= 0}
        self.roots = list(roots)
        self.least = cp.Variable(nonneg=True)
        self.usage = cp.Variable(self.busy.shape[1], nonneg=True)
        self.flow = cp.Variable(sum(_flows(each) for each in blocks), nonneg=True)
        self.share = cp.Variable(len(roots), nonneg=True)
        self.scale = cp.Parameter(
            self.busy.shape[0], nonneg=True, value=np.ones(self.busy.shape[0])
        )
        self.cap: Any = sparse.csr_array(self.busy / unit) @ self.usage <= self.scale * self.least
        self.rules = [*self._balance(), *self._covered(), self.cap]
        if roots:
            self.rules.append(np.array([*roots.values()], dtype=float) @ self.share == 1)
        goal: Any = self.least
        self._phase = [cp.Parameter(nonneg=True, value=value) for value in (1.0, 0.0, FREE)]
        self._worth = 1.0
        if costs is not None:
            # One model for both objectives, so that it is compiled once.
            cost = np.concatenate([each.cost(costs) for each in blocks])
            self._worth = max(float(cost.max()), 1e-300)
            goal = self._phase[0] * goal + self._phase[1] * ((cost / self._worth) @ self.usage)
            self.rules.append(self.least <= self._phase[2])
        self.model = cp.Problem(cp.Minimize(goal), self.rules)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        every = self.usage.size + self.flow.size + self.share.size + 1
        return every, sum(int(each.size) for each in self.rules)

    def fastest(self, backend: Backend, time_limit: float | None = None) -> float:
        """Return the least time in µs, and leave usage, flows and prices in the model.

        Raises
        ------
        Infeasible
            If some data cannot arrive.
        LimitReached
            If the time limit, in seconds, came first.
        """
        self._set(1.0, 0.0, FREE)
        return self._solved(backend, time_limit) * self.unit

    @property
    def prices(self) -> np.ndarray:
        """Dual of each orbit of capacity rows; they add up to 1."""
        return np.asarray(np.abs(self.cap.dual_value))

    def cheapest(self, backend: Backend, time: float, *, time_limit: float | None = None) -> float:
        """Return the least cost of all that take `time` µs, in bytes times cost.

        Raises
        ------
        LimitReached
            If the time limit, in seconds, came first.
        """
        self._set(0.0, 1.0, time / self.unit * (1 + SLACK))
        return self._solved(backend, time_limit) * self._worth

    def _solved(self, backend: Backend, time_limit: float | None) -> float:
        large = not self.flow.size and self.usage.size > MANY
        method = "ipm" if large else "simplex"
        return backend.solve(self.model, method=method, time_limit=time_limit).objective

    def _set(self, *values: float) -> None:
        for parameter, value in zip(self._phase, values, strict=True):
            parameter.value = value

    def values(self) -> list[tuple[np.ndarray, list[np.ndarray]]]:
        """Return W of each block, and F of each of its ways."""
        found, usage, flow = [], 0, 0
        for block in self.blocks:
            mine = np.asarray(self.usage.value)[usage : usage + len(block.count)]
            usage += len(block.count)
            flows = []
            for way in block.ways if block.spreads else ():
                flows.append(np.asarray(self.flow.value)[flow : flow + len(way.part)])
                flow += len(way.part)
            found.append((mine, flows))
        return found

    def _balance(self) -> list[Any]:
        """Conservation: of F, or of W where nothing is copied."""
        on_flow = [way.balance for each in self.blocks if each.spreads for way in each.ways]
        rules = []
        if on_flow:
            demand = self._demands([each for each in self.blocks if each.spreads])
            rules.append(sparse.csr_array(sparse.block_diag(on_flow)) @ self.flow == demand)
        if any(not each.spreads for each in self.blocks):
            empty = [
                sparse.csr_array((0, len(each.count))) if each.spreads else each.ways[0].balance
                for each in self.blocks
            ]
            dealt = [each for each in self.blocks if not each.spreads]
            demand = np.concatenate([each.ways[0].demand for each in dealt])
            rules.append(sparse.csr_array(sparse.block_diag(empty)) @ self.usage == demand)
        return rules

    def _demands(self, blocks: Sequence[Block]) -> Any:
        """Return the right hand sides of conservation of F, of free roots times their shares."""
        fixed = np.concatenate(
            [way.demand * (each.free < 0) for each in blocks for way in each.ways]
        )
        if not self.roots:
            return fixed
        parts = [
            sparse.csr_array(np.outer(way.demand, np.array(self.roots) == each.free))
            for each in blocks
            for way in each.ways
        ]
        return fixed + sparse.csr_array(sparse.vstack(parts)) @ self.share

    def _covered(self) -> list[Any]:
        """F is at most W."""
        if not self.flow.size:
            return []
        place, first = [], 0
        for block in self.blocks:
            place += [way.part + first for way in block.ways if block.spreads]
            first += len(block.count)
        column = np.concatenate(place)
        chosen = sparse.csr_array(
            (np.ones(len(column)), (np.arange(len(column)), column)),
            shape=(len(column), self.usage.size),
        )
        return [self.flow <= chosen @ self.usage]


def _flows(block: Block) -> int:
    return sum(len(each.part) for each in block.ways) if block.spreads else 0
