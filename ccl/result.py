"""What a solve hands over: a plan that was verified and replayed, and how good it is.

Three questions are kept apart: why it stopped (`Stop`), whether the plan is proved optimal
(`Status`), and what proves it (`Result.bound`, which carries its witness).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from ccl.bound import Bound
from ccl.closed_form import ClosedForm
from ccl.display import mime_bundle
from ccl.flow import Flow
from ccl.forest import Forest
from ccl.metrics import bus_factor
from ccl.problem import Problem
from ccl.schedule import Schedule
from ccl.simulate import simulate
from ccl.steady import steady_makespan
from ccl.timeline import Timeline
from ccl.verify import verify

Plan = Schedule | Forest | Flow

PROOF_TOLERANCE = 1e-6
"""A makespan within this share of a bound meets it; below solver tolerances nothing is known."""


class Status(StrEnum):
    """Whether the plan is proved optimal in continuous time, or at least its steady state is."""

    OPTIMAL = "optimal"
    THROUGHPUT = "optimal throughput"
    FEASIBLE = "feasible"


class Stop(StrEnum):
    """Why the solve stopped."""

    PROVED = "the makespan meets a lower bound"
    RATE = "no plan has a higher rate: its steady state meets a lower bound"
    MODEL_OPTIMAL = "the model is solved to optimality on its grid of epochs"
    GAP = "the gap asked for is reached"
    MODEL_GAP = "the model's own objective is within the gap asked for"
    TIME_LIMIT = "the time limit is reached"
    MEMORY = "it needed more memory than it may have"
    TOO_LARGE = "the model would be too large to be solved here"
    CANCELLED = "it was cancelled"
    SEARCHED = "no plan that the model has is shorter"
    EFFORT = "the effort asked for is spent"
    PASSES = "all the passes asked for are done"
    CONSTRUCTED = "the plan is constructed, nothing is searched"
    READ = "the plan was read from a file, nothing is searched"


@dataclass(frozen=True, slots=True)
class ModelSize:
    """How large a model is, after compilation."""

    variables: int
    constraints: int
    nonzeros: int

    @property
    def memory(self) -> float:
        """Bytes that building and solving it takes, estimated.

        Measured with HiGHS 1.15 on integer programs of 40,000 to 400,000 nonzeros: 840 to 1,230
        bytes for each.
        """
        return 1_000.0 * self.nonzeros


@dataclass(frozen=True)
class Result:
    """A verified plan with its replay and bounds; make it with `conclude`.

    Parameters
    ----------
    problem
        What was asked.
    plan
        The answer.
    timeline
        The replay of the plan in continuous time.
    bounds
        Lower bounds, the largest first; never empty.
    stop
        Why the solve stopped.
    formulation
        Name of the formulation.
    options
        Its options by name, as plain values.
    solve_time
        Seconds, building and compiling included.
    log
        Sentences on what was rounded, dropped, coarsened or tried.
    size
        Size of the largest model solved, or None where there was none.
    found_by
        Which method found the plan, where the formulation tries several; else empty.
    closed_form
        The published formula of the plan and what becomes of it here, where there is one.
    """

    problem: Problem
    plan: Plan
    timeline: Timeline
    bounds: tuple[Bound, ...]
    stop: Stop
    formulation: str
    options: Mapping[str, Any]
    solve_time: float
    log: tuple[str, ...] = ()
    size: ModelSize | None = field(default=None)
    found_by: str = ""
    closed_form: ClosedForm | None = None

    _repr_mimebundle_ = mime_bundle

    @property
    def makespan(self) -> float:
        """µs until the last byte is where it is needed, in the replay."""
        return self.timeline.makespan

    @property
    def bound(self) -> Bound:
        """The largest lower bound."""
        return self.bounds[0]

    @property
    def gap(self) -> float:
        """How far the makespan is above the bound, as a share of the bound."""
        return max(0.0, self.makespan / self.bound.makespan - 1.0)

    @cached_property
    def steady_makespan(self) -> float | None:
        """µs that each of many repetitions takes in the steady state; None for a schedule.

        A link that has less bandwidth for a time has no steady state.
        """
        if isinstance(self.plan, Schedule) or self.problem.windows:
            return None
        return float(steady_makespan(self.problem, self.plan))

    @property
    def steady_gap(self) -> float | None:
        """How far the steady state is above the largest bound on it, as a share of that bound.

        None where there is no steady state or no bound on it.
        """
        bounds = [each.makespan for each in self.bounds if each.steady]
        if self.steady_makespan is None or not bounds:
            return None
        return max(0.0, self.steady_makespan / max(bounds) - 1.0)

    @property
    def status(self) -> Status:
        """Optimal when the makespan meets the bound, or else the throughput when its own does."""
        if self.gap <= PROOF_TOLERANCE:
            return Status.OPTIMAL
        steady = self.steady_gap
        met = steady is not None and steady <= PROOF_TOLERANCE
        return Status.THROUGHPUT if met else Status.FEASIBLE

    def stopped(self) -> Result:
        """Return the same result, with a proof as the reason why it stopped if there is one."""
        proof = {Status.OPTIMAL: Stop.PROVED, Status.THROUGHPUT: Stop.RATE}.get(self.status)
        if proof is None or self.stop in (Stop.CONSTRUCTED, Stop.READ):
            return self
        return replace(self, stop=proof)

    @property
    def epochs(self) -> int | None:
        """Number of epochs of a schedule, None for other plans."""
        return self.plan.horizon if isinstance(self.plan, Schedule) else None

    @property
    def algbw(self) -> float:
        """GB/s: size over makespan."""
        return self.problem.collective.size / self.makespan * 1e-3

    @property
    def busbw(self) -> float:
        """GB/s: algbw times the factor of nccl-tests for the collective."""
        return self.algbw * bus_factor(self.problem.collective)

    def explain(
        self,
        *,
        chunk: int | None = None,
        link: tuple[str, str] | None = None,
        rank: int | None = None,
        host: str | None = None,
    ) -> str:
        """Tell the plan in words, as `Schedule.explain` does, from the replay that is there.

        Raises
        ------
        ProblemError
            If there is no such chunk, link, rank or host.
        """
        from ccl.explain import explain  # noqa: PLC0415  most results are not told

        return explain(
            self.problem,
            self.plan,
            timeline=self.timeline,
            chunk=chunk,
            link=link,
            rank=rank,
            host=host,
        )


def conclude(
    problem: Problem,
    plan: Plan,
    *,
    bounds: tuple[Bound, ...],
    stop: Stop,
    formulation: str,
    options: Mapping[str, Any],
    solve_time: float,
    log: tuple[str, ...] = (),
    size: ModelSize | None = None,
) -> Result:
    """Verify and replay a plan, and make a result of it.

    Raises
    ------
    ScheduleError
        If the plan breaks a rule: a bug of the formulation, never of the user.
    """
    verify(problem, plan)
    timeline = simulate(problem, plan)
    ranked = tuple(sorted(bounds, key=lambda bound: -bound.makespan))
    return Result(
        problem=problem,
        plan=plan,
        timeline=timeline,
        bounds=ranked,
        stop=stop,
        formulation=formulation,
        options=dict(options),
        solve_time=solve_time,
        log=log,
        size=size,
    ).stopped()
