"""The master of tree column generation: how much each tree of the pool carries.

Sets: trees T of the pool, wishes c (one root of each orbit,
`formulations.engines.tree_columns.task`), rows i of links or shared limits that look alike, and
pairs (in, out) of wishes of an all-reduce.

Variables, all >= 0: w[T], share of the wish's data that takes T; x[pair], share of all data that
the roots of an orbit add up and spread; R, the time in units of a first guess.

    minimise R
    sum over T of c of w[T] = 1                            c of a given root
    sum over T of c of w[T] = x[pair]                      c one of a pair
    sum over pairs of x[pair] = 1                          if there are any
    sum over T of w[T] bytes[c(T)] count[i, T] / rate[i] <= R     each i

The duals are a price on every row; a tree that is cheaper than its wish pays comes in. Whatever
the prices, what the cheapest trees cost at them is a lower bound on R (`Master.worth`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
from scipy import sparse

from formulations.engines.tree_columns.multicast import Column
from formulations.engines.tree_columns.task import Task
from formulations.solvers.cvxpy_highs import Backend
from formulations.solvers.incremental_lp import Growing, Solved


@dataclass
class Pool:
    """Trees found so far.

    Parameters
    ----------
    task
        Of what.
    columns
        The trees.
    wishes
        Place of the wish of each.
    counts
        How often the rows count each, one sparse column each, shape (rows, 1).
    """

    task: Task
    columns: list[Column] = field(default_factory=list)
    wishes: list[int] = field(default_factory=list)
    counts: list[np.ndarray] = field(default_factory=list)
    _known: dict[tuple[int, tuple[int, bytes]], int] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many trees there are."""
        return len(self.columns)

    def add(self, wish: int, column: Column) -> int:
        """Keep a tree unless it is known; return its place."""
        key = wish, column.key
        place = self._known.setdefault(key, len(self.columns))
        if place == len(self.columns):
            self.columns.append(column)
            self.wishes.append(wish)
            self.counts.append(self.task.counts(column).astype(np.int32))
        return place

    def loads(self, first: int) -> sparse.csc_array:
        """Return µs of each row for each tree from one on, if it carries all, (rows, trees)."""
        found = np.array(self.counts[first:], dtype=float).T
        nbytes = self.task.nbytes[self.wishes[first:]]
        return sparse.csc_array(found * nbytes / self.task.rows.speeds[:, None])


class Master:
    """The linear program over a pool, which grows with it.

    Parameters
    ----------
    pool
        With a tree of each wish at least.
    backend
        The solver.
    """

    def __init__(self, pool: Pool, backend: Backend) -> None:
        self.pool, task = pool, pool.task
        self.pairs = len(task.paired)
        self.head = 1 + self.pairs
        loads = pool.loads(0)
        self.unit = _guess(pool, loads)
        self.program = Growing(backend, self._model(loads))
        self.known = len(pool)

    def _model(self, loads: sparse.csc_array) -> cp.Problem:
        task, pool = self.pool.task, self.pool
        z = cp.Variable(self.head + len(pool), bounds=[0, None])
        given = np.ones(len(task.wishes))
        entries = [(wish, self.head + place, 1.0) for place, wish in enumerate(pool.wishes)]
        for number, wish in enumerate(task.paired.tolist()):
            for half in (wish, wish + 1):
                given[half] = 0.0
                entries.append((half, 1 + number, -1.0))
            entries.append((len(task.wishes), 1 + number, 1.0))
        if self.pairs:
            given = np.append(given, 1.0)
        row, column, value = zip(*entries, strict=True)
        shape = (len(given), z.size)
        sums: Any = sparse.coo_array((value, (row, column)), shape=shape).tocsr()
        time = np.zeros((loads.shape[0], self.head))
        time[:, 0] = -1.0
        rows: Any = sparse.csr_array(sparse.hstack([sparse.csr_array(time), loads / self.unit]))
        return cp.Problem(cp.Minimize(z[0]), [sums @ z == given, rows @ z <= 0])

    @property
    def equations(self) -> int:
        """How many rows come before those of links."""
        return len(self.pool.task.wishes) + (self.pairs > 0)

    def grow(self, costs: np.ndarray | None = None) -> None:
        """Add the trees that are new in the pool, at their costs or free."""
        new = len(self.pool) - self.known
        if not new:
            return
        sums = sparse.coo_array(
            (np.ones(new), (self.pool.wishes[self.known :], np.arange(new))),
            shape=(self.equations, new),
        )
        loads = self.pool.loads(self.known) / self.unit
        columns = sparse.csc_array(sparse.vstack([sums, loads]))
        self.program.add(np.zeros(new) if costs is None else costs, columns)
        self.known = len(self.pool)

    def prices(self, solved: Solved) -> np.ndarray:
        """Return the price of each row, shape (rows,)."""
        return np.asarray(np.maximum(-solved.duals[self.equations :], 0.0))

    def weights(self, solved: Solved) -> np.ndarray:
        """Return what each tree of the pool carries, shape (trees,)."""
        return np.asarray(np.maximum(solved.values[self.head :], 0.0))


def _guess(pool: Pool, loads: sparse.csc_array) -> float:
    """Return the µs of the first trees of all wishes together."""
    firsts = np.unique(np.array(pool.wishes), return_index=True)[1]
    many = max(len(pool.task.paired), 1)
    total = loads[:, firsts].sum(axis=1) / (many if len(pool.task.paired) else 1)
    return float(total.max())
