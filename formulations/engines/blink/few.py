"""What each tree of a pool carries, many or few of them: a linear or an integer program.

With w[T] the weight of tree T and z[T] whether it is used at all, c[e] what connection e carries,
of which both directions are one where trees go up and down:

    maximise    sum over T of w[T]
    sum over T with e of w[T] <= c[e]                     each e
    w[T] <= z[T] min over e in T of c[e]                  each T
    sum over T of z[T] <= k,  z whole                     at most k trees

Without a number k the z and their rows are left out. Blink first asks for weights of 0 and 1 and
lets go of that where it loses more than a twentieth; here weights are free from the beginning, as
the halves of a tree cost nothing more. The heaviest k trees without z, weighed anew, are the answer
where the integer program finds none better in time. Source: Blink, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from scipy import sparse

from ccl.result import ModelSize
from formulations.engines.blink.weights import Graph, Pool
from formulations.solvers.cvxpy_highs import Backend

SECONDS = 5.0
"""For the integer program."""

GAP = 1e-3
"""Share of the rate at which the integer program may stop."""

CLOSE = 1e-7
"""Weights of less than this share of the rate are none."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """The trees that carry something.

    Parameters
    ----------
    places
        In the pool, shape (trees,).
    weights
        In the unit of the graph, shape (trees,).
    size
        Size of the program.
    """

    places: np.ndarray
    weights: np.ndarray
    size: ModelSize

    @property
    def rate(self) -> float:
        """What all carry together."""
        return float(self.weights.sum())


def chosen(
    graph: Graph, pool: Pool, most: int, *, backend: Backend, time_limit: float | None
) -> Chosen:
    """Return the best weights of at most `most` trees of the pool, 0: of any number.

    Raises
    ------
    SolveError
        If the solver finds nothing, or not in time.
    """
    program = _Program(graph, pool, backend, time_limit)
    best = program.solve(np.arange(len(pool.arcs)))
    if not most or len(best.places) <= most:
        return best
    heavy = best.places[np.argsort(-best.weights, kind="stable")[:most]]
    simple = program.solve(np.sort(heavy))
    return max(simple, program.integral(most), key=lambda each: each.rate)


class _Program:
    """The program of a pool, in shares of the widest row."""

    def __init__(
        self, graph: Graph, pool: Pool, backend: Backend, time_limit: float | None
    ) -> None:
        self.backend, self.time_limit = backend, time_limit
        self.unit = float(graph.capacity.max())
        self.capacity = graph.capacity / self.unit
        self.narrowest = self.capacity[graph.row[pool.arcs]].min(axis=1)
        trees, arcs = pool.arcs.shape
        place = graph.row[pool.arcs].ravel(), np.repeat(np.arange(trees), arcs)
        shape = (len(self.capacity), trees)
        self.crossed: Any = sparse.csr_array((np.ones(trees * arcs), place), shape=shape)

    def solve(self, places: np.ndarray) -> Chosen:
        """Return the best weights of some trees."""
        weights = cp.Variable(len(places), nonneg=True)
        model = cp.Problem(
            cp.Maximize(np.ones(len(places)) @ weights),
            [self.crossed[:, places] @ weights <= self.capacity],
        )
        found = self.backend.solve(model, time_limit=self.time_limit, method="simplex")
        values = np.zeros(self.crossed.shape[1])
        values[places] = np.asarray(weights.value)
        return self._read(values, found.size)

    def integral(self, most: int) -> Chosen:
        """Return the best weights of at most `most` trees that are found in time."""
        trees = self.crossed.shape[1]
        weights, used = cp.Variable(trees, nonneg=True), cp.Variable(trees, boolean=True)
        widest: Any = sparse.diags_array(self.narrowest)
        closed: Any = weights - widest @ used
        many: Any = np.ones(trees) @ used
        model = cp.Problem(
            cp.Maximize(np.ones(trees) @ weights),
            [self.crossed @ weights <= self.capacity, closed <= 0, many <= most],
        )
        seconds = SECONDS if self.time_limit is None else min(SECONDS, self.time_limit)
        found = self.backend.solve(model, time_limit=seconds, gap=GAP)
        open_ones = np.asarray(used.value).round() > 0
        return self._read(np.where(open_ones, np.asarray(weights.value), 0.0), found.size)

    def _read(self, values: np.ndarray, size: ModelSize) -> Chosen:
        places = np.flatnonzero(values > CLOSE * values.sum())
        return Chosen(places, values[places] * self.unit, size)
