"""Solver interface, the only place that calls a solver: names, limits, progress, statuses.

Models are CVXPY problems with few large sparse rows. Of its backends for compiling, SciPy's takes
least on them: 0.02 s for an integer program of 30,000 nonzeros and 1.2 s for one of 1.8 million,
where COO takes 1.4 s and C++ 1.8 s. For HiGHS, the default, CVXPY compiles them and the arrays go
to ``highspy`` directly, because CVXPY's own interface has no callbacks; every solution comes back
through CVXPY, so that variables and duals have their values (`HighsRun`). Any other installed
solver is called through CVXPY and reports nothing until it ends.

`Growing` is a linear program to which columns are added, and the simplex method goes on where it
was. CVXPY models and compiles what there is at the beginning, and it is handed to HiGHS as any
other. New columns go to HiGHS directly, since CVXPY would compile everything again and lose the
basis.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

from ccl.errors import Infeasible, LimitReached, SolveError, SolverMissing
from ccl.result import ModelSize
from formulations.solvers import OUT, cp, shut_out

VIOLATION = 1e-5
"""Largest violation of a row, in the model's own units, of values that count as a solution."""


class TerminationCondition(Enum):
    """Why a solver stopped with a solution in hand."""

    OPTIMAL = "optimal"
    TIME_LIMIT = "time limit"
    GAP = "gap"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one solver call came to; the values are in the model's variables.

    Parameters
    ----------
    ending
        Why it stopped.
    objective
        Value of the model's objective at the solution.
    bound
        The solver's own bound on the objective.
    build_seconds, solve_seconds
        Compiling by CVXPY, and the solver's run.
    size
        Variables, constraints and nonzeros after compilation.
    """

    ending: TerminationCondition
    objective: float
    bound: float
    build_seconds: float
    solve_seconds: float
    size: ModelSize


@dataclass(frozen=True, slots=True)
class Report:
    """Where a running solver stands: seconds, best objective and bound, in the model's units."""

    seconds: float
    objective: float
    bound: float


@dataclass(frozen=True)
class Backend:
    """A solver with its settings.

    Parameters
    ----------
    solver
        A name that CVXPY knows.
    threads
        Threads that it may use; one keeps runs reproducible.
    seed
        Seed of the solver's own chance.
    settings
        Further options by the solver's own names.
    """

    solver: str = "HIGHS"
    threads: int = 1
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def solve(
        self,
        model: cp.Problem,
        *,
        time_limit: float | None = None,
        gap: float | None = None,
        on_report: Callable[[Report], bool] | None = None,
        on_solution: Callable[[], None] | None = None,
        method: str = "choose",
        start: tuple[cp.Variable, np.ndarray] | None = None,
    ) -> Outcome:
        """Compile and solve `model`, and leave the values in its variables.

        Parameters
        ----------
        model
            A linear or mixed-integer linear problem.
        time_limit
            Seconds for the solver's run.
        gap
            Relative gap of the objective at which a mixed-integer solve may stop.
        on_report
            Called from time to time; returns True to stop.
        on_solution
            Called with the variables set, whenever a better integer solution is found.
        method
            HiGHS's method for a linear program: ``simplex``, ``ipm``, ``pdlp`` or ``choose``.
        start
            A variable with its values in a first solution, from which HiGHS finds the others;
            another solver does not get it, nor is HiGHS where CVXPY has replaced the variable.

        Raises
        ------
        SolverMissing
            If the solver is not installed.
        Infeasible
            If no solution exists.
        LimitReached
            If the limit came before a solution.
        SolveError
            If the solver failed.
        """
        self.check()
        if self.solver != "HIGHS":
            return self._through_cvxpy(model, time_limit)
        run = HighsRun(self, model, on_report, on_solution)
        if start is not None:
            run.begin_at(*start)
        return run.solve(time_limit=time_limit, gap=gap, method=method)

    def check(self) -> None:
        """Refuse a solver that is not here.

        Raises
        ------
        SolverMissing
            If it is not installed, or cannot be loaded any more.
        """
        if self.solver == "HIGHS" and shut_out():
            raise SolverMissing(OUT)
        if self.solver not in _installed():
            raise SolverMissing(
                f"solver {self.solver} is not installed here; "
                f"installed are {', '.join(sorted(_installed()))}"
            )

    def _through_cvxpy(self, model: cp.Problem, time_limit: float | None) -> Outcome:
        """Solve with a solver of which only CVXPY's common interface is known."""
        begin = time.perf_counter()
        settings = dict(self.settings)
        if time_limit is not None and self.solver == "GUROBI":
            settings["TimeLimit"] = time_limit
        try:
            model.solve(solver=self.solver, canon_backend=cp.SCIPY_CANON_BACKEND, **settings)
        except cp.SolverError as error:
            raise SolveError(f"{self.solver} failed: {error}") from error
        seconds = time.perf_counter() - begin
        if model.status in (cp.INFEASIBLE, cp.settings.INFEASIBLE_OR_UNBOUNDED):
            raise Infeasible(_NOTHING)
        if not satisfied(model):
            raise LimitReached(f"{self.solver} stopped after {seconds:.0f} s without a solution")
        solved, value = model.status == cp.OPTIMAL, float(model.value)
        ending = TerminationCondition.OPTIMAL if solved else TerminationCondition.TIME_LIMIT
        bound = value if solved else float("nan")
        rows = sum(int(rule.size) for rule in model.constraints)
        columns = sum(int(variable.size) for variable in model.variables())
        return Outcome(ending, value, bound, 0.0, seconds, ModelSize(columns, rows, 0))


@cache
def _installed() -> tuple[str, ...]:
    """Return the solvers that CVXPY finds; it looks for the modules of all it knows, for 10 ms."""
    return tuple(cp.installed_solvers())


_NOTHING = "no schedule exists under these options; allow more epochs"


def satisfied(model: cp.Problem) -> bool:
    """Return whether the values in the variables satisfy every constraint.

    Statuses are not to be believed: at a time limit CVXPY may hand back zeros.
    """
    return all(variable.value is not None for variable in model.variables()) and all(
        float(np.max(rule.violation(), initial=0.0)) < VIOLATION for rule in model.constraints
    )


@dataclass(eq=False)
class HighsRun:
    """One compiled model on its way through HiGHS."""

    backend: Backend
    model: cp.Problem
    on_report: Callable[[Report], bool] | None = None
    on_solution: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        begin = time.perf_counter()
        self.data, self.chain, self.inverse = self.model.get_problem_data(
            cp.HIGHS, canon_backend=cp.SCIPY_CANON_BACKEND
        )
        self.build_seconds = time.perf_counter() - begin
        matrix = self.data[cp.settings.A].tocsc()
        self.size = ModelSize(matrix.shape[1], matrix.shape[0], matrix.nnz)
        self.integer = bool(self.data[cp.settings.BOOL_IDX] or self.data[cp.settings.INT_IDX])
        # CVXPY minimises; the offset and the sign bring its numbers back to the model's own.
        self.sign = -1.0 if isinstance(self.model.objective, cp.Maximize) else 1.0
        self.stopped = False
        self.highs = self._load(matrix)

    def _load(self, matrix: Any) -> Any:
        import highspy  # noqa: PLC0415  a solver is loaded only when one is called

        data, inf = self.data, highspy.kHighsInf
        equalities = data[cp.settings.DIMS].zero
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = matrix.shape[1], matrix.shape[0]
        lp.offset_ = 0.0
        lp.col_cost_ = data[cp.settings.C]
        lower, upper = _bounds(data, matrix.shape[1], inf)
        lp.col_lower_, lp.col_upper_ = lower, upper
        lp.row_upper_ = data[cp.settings.B]
        row_lower = np.full(matrix.shape[0], -inf)
        row_lower[:equalities] = data[cp.settings.B][:equalities]
        lp.row_lower_ = row_lower
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
        lp.a_matrix_.value_ = matrix.data
        if self.integer:
            whole = {*data[cp.settings.BOOL_IDX], *data[cp.settings.INT_IDX]}
            kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
            lp.integrality_ = [kinds[i in whole] for i in range(matrix.shape[1])]
        highs = highspy.Highs()
        highs.silent()
        highs.passModel(lp)
        return highs

    def solve(self, *, time_limit: float | None, gap: float | None, method: str) -> Outcome:
        """Run HiGHS and bring what it found into the model's variables."""
        highs, backend = self.highs, self.backend
        options: dict[str, Any] = {
            "threads": backend.threads,
            "random_seed": backend.seed,
            "solver": method,
            **backend.settings,
        }
        if time_limit is not None:
            options["time_limit"] = max(time_limit, 0.01)
        if gap is not None:
            options["mip_rel_gap"] = gap
        for name, value in options.items():
            highs.setOptionValue(name, value)
        self._listen()
        begin = time.perf_counter()
        highs.run()
        return self._outcome(time.perf_counter() - begin)

    def begin_at(self, variable: cp.Variable, values: np.ndarray) -> None:
        """Give HiGHS the values of one variable in a first solution."""
        first = None
        for each in self.inverse:
            first = getattr(each, "var_offsets", {}).get(variable.id, first)
        if first is not None:
            columns = np.arange(first, first + variable.size, dtype=np.int32)
            self.highs.setSolution(len(columns), columns, np.ravel(values, order="F"))

    def _listen(self) -> None:
        if not self.integer:
            return
        if self.on_report is not None:
            self.highs.cbMipInterrupt += self._reported
        if self.on_solution is not None:
            self.highs.cbMipImprovingSolution += self._improved

    def _reported(self, event: Any) -> None:
        assert self.on_report is not None
        out = event.data_out
        stop = self.on_report(
            Report(
                float(out.running_time),
                self._own(float(out.mip_primal_bound)),
                self._own(float(out.mip_dual_bound)),
            )
        )
        if stop:
            self.stopped = True
            event.data_in.user_interrupt = True

    def _improved(self, event: Any) -> None:
        assert self.on_solution is not None
        self._unpack(np.array(event.data_out.mip_solution))
        self.on_solution()

    def _own(self, value: float) -> float:
        return self.sign * (value + float(self.inverse[-1][cp.settings.OFFSET]))

    def _unpack(self, values: np.ndarray, duals: Any = None) -> None:
        """Bring solver values back through CVXPY's reductions into the model's variables."""
        info = self.highs.getInfo()
        solution = SimpleNamespace(col_value=values, row_dual=duals)
        self.model.unpack_results(
            {"solution": solution, "info": info, "model_status": "kOptimal", "run_time": 0.0},
            self.chain,
            self.inverse,
        )

    def _outcome(self, seconds: float) -> Outcome:
        highs = self.highs
        status = highs.getModelStatus().name
        if status in ("kInfeasible", "kUnboundedOrInfeasible"):
            raise Infeasible(_NOTHING)
        solution, info = highs.getSolution(), highs.getInfo()
        if not solution.value_valid or not np.isfinite(info.objective_function_value):
            raise LimitReached(f"HiGHS stopped after {seconds:.1f} s ({status}) without a solution")
        duals = np.array(solution.row_dual) if not self.integer else None
        self._unpack(np.array(solution.col_value), duals)
        if status != "kOptimal" and not satisfied(self.model):
            raise LimitReached(
                f"HiGHS stopped after {seconds:.1f} s ({status}) without a feasible solution"
            )
        value = self._own(float(info.objective_function_value))
        bound = self._own(float(info.mip_dual_bound)) if self.integer else value
        return Outcome(self._ending(status), value, bound, self.build_seconds, seconds, self.size)

    def _ending(self, status: str) -> TerminationCondition:
        if self.stopped:
            return TerminationCondition.STOPPED
        if status != "kOptimal":
            return TerminationCondition.TIME_LIMIT
        loose = self.integer and self.highs.getInfo().mip_gap > 1e-6
        return TerminationCondition.GAP if loose else TerminationCondition.OPTIMAL


def _bounds(data: Mapping[str, Any], columns: int, inf: float) -> tuple[np.ndarray, np.ndarray]:
    lower, upper = data[cp.settings.LOWER_BOUNDS], data[cp.settings.UPPER_BOUNDS]
    low = np.full(columns, -inf) if lower is None else np.array(lower, dtype=float)
    high = np.full(columns, inf) if upper is None else np.array(upper, dtype=float)
    if data[cp.settings.BOOL_IDX]:
        truth = np.array(data[cp.settings.BOOL_IDX], dtype=int)
        low[truth] = np.maximum(low[truth], 0.0)
        high[truth] = np.minimum(high[truth], 1.0)
    return low, high


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
        It must be HiGHS; no other solver takes new columns.
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
            raise SolverMissing(f"solver {backend.solver} takes no new columns here; use HIGHS")
        self.highs: Any = HighsRun(backend, model).highs
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

        # HiGHS counts the seconds of all its runs.
        limit = np.inf if time_limit is None else float(self.highs.getRunTime()) + time_limit
        self.highs.setOptionValue("time_limit", limit)
        self.highs.run()
        status = self.highs.getModelStatus().name
        if status in ("kInfeasible", "kUnboundedOrInfeasible"):
            raise Infeasible("the columns so far have no solution")
        if status != "kOptimal":
            raise LimitReached(
                f"HiGHS stopped ({status}) before the optimum of {self.columns} columns"
            )
        solution, basis = self.highs.getSolution(), self.highs.getBasis()
        kinds = highspy.HighsBasisStatus.kBasic
        return Solved(
            float(self.highs.getInfo().objective_function_value),
            np.array(solution.col_value),
            np.array(solution.row_dual),
            np.array([each == kinds for each in basis.col_status]),
            np.array([each != kinds for each in basis.row_status]),
        )
