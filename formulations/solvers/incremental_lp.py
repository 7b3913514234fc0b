"""A linear program that grows: columns are added, and the simplex method goes on where it was.

CVXPY models and compiles what there is at the beginning; `formulations.solvers.cvxpy_highs` hands
it to HiGHS. New columns go to HiGHS directly, since CVXPY would compile everything again and lose
the basis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from scipy import sparse

from ccl.errors import Infeasible, LimitReached, SolverMissing
from formulations.solvers.cvxpy_highs import Backend, HighsRun

TOLERANCE = 1e-9
"""By how much HiGHS may miss a row or the sign of a reduced cost."""


@dataclass(frozen=True)
class Solved:
    """An optimum of the columns so far.

    Parameters
    ----------
    objective
        Its value.
    values
        Of the columns, shape (columns,).
    duals
        Change of the objective with the right side of each row, shape (rows,).
    basic
        Which columns are basic, shape (columns,).
    tight
        Which rows have no slack in the basis, shape (rows,).
    """

    objective: float
    values: np.ndarray
    duals: np.ndarray
    basic: np.ndarray
    tight: np.ndarray


class Growing:
    """A linear program to be minimised.

    Parameters
    ----------
    backend
        It must be HiGHS; no other solver is told of new columns.
    model
        What there is at the beginning, with one vector of variables. Rows are counted in the
        order of its constraints, equations first.

    Raises
    ------
    SolverMissing
        If the solver is another.
    """

    def __init__(self, backend: Backend, model: cp.Problem) -> None:
        if backend.solver != "HIGHS":
            msg = f"solver {backend.solver} is not told of new columns here; use HIGHS"
            raise SolverMissing(msg)
        self.highs: Any = HighsRun(backend, model, None, None).highs
        options = {
            "threads": backend.threads,
            "random_seed": backend.seed,
            "solver": "simplex",
            # New columns leave the basis feasible, and the primal method goes on from there.
            "simplex_strategy": 4,
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
            **backend.settings,
        }
        for name, value in options.items():
            self.highs.setOptionValue(name, value)

    @property
    def columns(self) -> int:
        """How many there are."""
        return int(self.highs.getNumCol())

    def add(self, costs: np.ndarray, columns: sparse.csc_array) -> None:
        """Add columns of zero or more, shape (rows, new)."""
        many = columns.shape[1]
        self.highs.addCols(
            many,
            np.asarray(costs, dtype=float),
            np.zeros(many),
            np.full(many, np.inf),
            columns.nnz,
            columns.indptr[:-1].astype(np.int32),
            columns.indices.astype(np.int32),
            columns.data,
        )

    def minimise(self, costs: np.ndarray) -> None:
        """Give all columns new costs."""
        places = np.arange(len(costs), dtype=np.int32)
        self.highs.changeColsCost(len(costs), places, np.asarray(costs, dtype=float))

    def fix(self, column: int, value: float) -> None:
        """Give one column its value."""
        self.highs.changeColBounds(column, value, value)

    def drop(self, columns: np.ndarray) -> None:
        """Take columns away; the others move up."""
        self.highs.deleteCols(len(columns), np.asarray(columns, dtype=np.int32))

    def solve(self, *, time_limit: float | None = None) -> Solved:
        """Go on to an optimum.

        Raises
        ------
        Infeasible
            If there is no solution.
        LimitReached
            If the limit came before the optimum.
        """
        import highspy  # noqa: PLC0415  a solver is loaded only when one is called

        if time_limit is not None:
            # HiGHS counts the seconds of all its runs.
            limit = float(self.highs.getRunTime()) + time_limit
            self.highs.setOptionValue("time_limit", limit)
        self.highs.run()
        status = self.highs.getModelStatus().name
        if status in ("kInfeasible", "kUnboundedOrInfeasible"):
            msg = "the columns so far have no solution"
            raise Infeasible(msg)
        if status != "kOptimal":
            msg = f"HiGHS stopped ({status}) before the optimum of {self.columns} columns"
            raise LimitReached(msg)
        solution, basis = self.highs.getSolution(), self.highs.getBasis()
        kinds = highspy.HighsBasisStatus.kBasic
        return Solved(
            float(self.highs.getInfo().objective_function_value),
            np.array(solution.col_value),
            np.array(solution.row_dual),
            np.array([each == kinds for each in basis.col_status]),
            np.array([each != kinds for each in basis.row_status]),
        )
