"""Result of a solve: a plan that was verified and replayed, and its quality.

Three questions are kept apart: why it stopped (`Stop`), whether the plan is proved optimal, and
among which plans (`Status`), and what proves it (`Result.bound` and `Result.whole_bound`, which
carry their witnesses).

A `ClosedForm` is what a published formula says of a plan, beside what the plan takes on this graph.
Formulas of collectives count steps and bytes on links that are all alike and never shared. On a
drawn cluster the same steps share links, and links differ. Four times show where a difference
comes from: the formula, with the slowest path between neighbours; every message alone on its own
path, step after step; the messages of a step together; and the replay, in which steps overlap.
Shared limits are left out before the replay.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from ccl import text
from ccl.bound import Bound
from ccl.display import mime_bundle
from ccl.plans import Flow, Forest, Schedule
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.timeline import Timeline, bus_factor
from ccl.topology import no_collection
from ccl.tree_embedding import steady_makespan
from ccl.verify import verify

SAME = 1e-9
"""Times within this share of each other are the same."""


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """A formula and what becomes of it, in µs.

    Parameters
    ----------
    expression
        The formula as published, in α, β, p ranks and m bytes.
    alpha, beta
        µs and µs per byte that it is evaluated with: the largest latency and the slowest link of
        the paths between ranks that the steps use.
    makespan
        What it comes to.
    alone
        Step after step, each as long as its slowest message would take alone on its path; where
        the formula counts ports, as the fullest port of a GPU would.
    in_steps
        Step after step, the messages of a step together on the links.
    steps
        How many there are.
    busiest
        The link that most messages of one step cross, or None where none is shared.
    crowd
        How many these are.
    elsewhere
        Whether the plan sends over other paths than the steps do, where these are quicker.
    """

    expression: str
    alpha: float
    beta: float
    makespan: float
    alone: float
    in_steps: float
    steps: int
    busiest: tuple[str, str] | None = None
    crowd: int = 1
    elsewhere: bool = False

    def why(self, makespan: float) -> str:
        """Say in one sentence how a replay of `makespan` µs differs from the formula, and why."""
        reasons = []
        if self.alone < self.makespan * (1 - SAME):
            reasons.append(f"some links are faster than the slowest ({self.alone:.6g} µs)")
        if self.alone > self.makespan * (1 + SAME):
            reasons.append(f"its messages take longer paths ({self.alone:.6g} µs)")
        if self.in_steps > self.alone * (1 + SAME):
            where = (
                ""
                if self.busiest is None
                else f", {self.crowd} at once on {'->'.join(self.busiest)}"
            )
            reasons.append(f"messages share links{where} ({self.in_steps:.6g} µs)")
        if self.in_steps < self.alone * (1 - SAME):
            reasons.append(
                f"GPUs use several links at once or pass on what they have ({self.in_steps:.6g} µs)"
            )
        if makespan < self.in_steps * (1 - SAME):
            why = "other paths are quicker" if self.elsewhere else "steps overlap"
            reasons.append(f"{why} ({makespan:.6g} µs)")
        if makespan > self.in_steps * (1 + SAME):
            reasons.append(f"shared limits or the order of sends slow it ({makespan:.6g} µs)")
        begin = f"{self.expression} = {self.makespan:.6g} µs"
        if not reasons:
            return f"{begin}, and so it is here"
        return f"{begin}; {', then '.join(reasons)}"


Plan = Schedule | Forest | Flow

PROOF_TOLERANCE = 1e-6
"""A makespan within this share of a bound meets it; below solver tolerances nothing is known."""

NEAR = 0.1
"""A gap up to which a plan that is not proved is said to be near the bound."""

_log = logging.getLogger("topoloom")

_TOLD = 20_000
"""Most characters of a problem that a log line repeats."""


class Status(StrEnum):
    """Among which plans a plan is proved optimal.

    ``optimal`` refers to the makespan, among all plans, however they cut the data;
    ``optimal for whole chunks`` among the plans that send these chunks whole; ``optimal
    throughput`` of the steady state of many repetitions. Nothing is proved of a feasible plan but
    its gap.
    """

    OPTIMAL = "optimal"
    WHOLE = "optimal for whole chunks"
    THROUGHPUT = "optimal throughput (steady state)"
    FEASIBLE = "feasible"

    @classmethod
    def _missing_(cls, value: object) -> Status | None:
        """Read the name that files of before have."""
        return cls.THROUGHPUT if value == "optimal throughput" else None


class Stop(StrEnum):
    """Why the solve stopped."""

    PROVED = "the makespan meets a lower bound"
    RATE = "no plan has a higher rate: its steady state meets a lower bound"
    MODEL_OPTIMAL = "the model is solved to optimality on its grid of epochs"
    GAP = "the requested gap is reached"
    WHOLE_GAP = "the requested gap is reached among plans that keep these chunks whole"
    MODEL_GAP = "the model's own objective is within the requested gap"
    TIME_LIMIT = "the time limit is reached"
    MEMORY = "it needed more memory than it may have"
    TOO_LARGE = "the model would be too large to be solved here"
    CANCELLED = "it was cancelled"
    SEARCHED = "no plan that the model has is shorter"
    EFFORT = "search budget used up"
    PASSES = "all requested passes are done"
    FEWER = "it has fewer sends than the fastest plan of the same solve"
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
        The problem.
    plan
        The answer.
    timeline
        The replay of the plan in continuous time.
    bounds
        Lower bounds that are about this plan, the largest first; at least one of them holds for
        every plan.
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
    simpler
        Verified plans with fewer sends that the same solve has found, the fewest first; they take
        longer and carry none themselves.
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
    simpler: tuple[Result, ...] = field(default=(), compare=False, repr=False)

    _repr_mimebundle_ = mime_bundle

    @property
    def makespan(self) -> float:
        """µs until the last byte is where it is needed, in the replay."""
        return self.timeline.makespan

    @cached_property
    def sends(self) -> int:
        """How often a device that stores sends something; what switches pass on is not counted."""
        stores = {each.name for each in self.problem.topology.devices if each.stores}
        return self.timeline.count_leaving(stores)

    @property
    def front(self) -> tuple[Result, ...]:
        """The plans to choose from, the fewest sends first: each is shorter than those before."""
        return (*self.simpler, self)

    @cached_property
    def bound(self) -> Bound:
        """The largest lower bound that holds for every plan, however it cuts the data."""
        return next(each for each in self.bounds if not each.whole_chunks)

    @cached_property
    def whole_bound(self) -> Bound | None:
        """The largest lower bound on plans that send these chunks whole, where that is larger.

        None too for a plan that splits them, as it says nothing of that.
        """
        return self.bounds[0] if self.bounds[0].whole_chunks else None

    @property
    def gap(self) -> float:
        """How far the makespan is above the bound, as a share of the bound."""
        return _above(self.makespan, self.bound)

    @property
    def whole_gap(self) -> float | None:
        """How far the makespan is above the bound on plans of whole chunks, where there is one."""
        return None if self.whole_bound is None else _above(self.makespan, self.whole_bound)

    @cached_property
    def steady_makespan(self) -> float | None:
        """µs that each of many repetitions takes in the steady state; None for a schedule.

        A link that has less bandwidth for a time has no steady state.
        """
        if isinstance(self.plan, Schedule) or self.problem.windows:
            return None
        return float(steady_makespan(self.problem, self.plan))

    @cached_property
    def steady_gap(self) -> float | None:
        """How far the steady state is above the largest bound on it, as a share of that bound.

        None where there is no steady state or no bound on it. A bound that it refutes is a bug,
        logged and left out.
        """
        steady = self.steady_makespan
        if steady is None:
            return None
        kept = [0.0]
        for bound in self.bounds:
            if bound.steady and bound.makespan > steady * (1 + PROOF_TOLERANCE):
                _refuted(self.problem, bound, f"a steady state of {steady:.9g} us")
            elif bound.steady:
                kept.append(bound.makespan)
        return max(0.0, steady / max(kept) - 1.0) if max(kept) else None

    @property
    def status(self) -> Status:
        """Among which plans it is proved optimal."""
        if self.gap <= PROOF_TOLERANCE:
            return Status.OPTIMAL
        if self.whole_gap is not None and self.whole_gap <= PROOF_TOLERANCE:
            return Status.WHOLE
        steady = self.steady_gap
        met = steady is not None and steady <= PROOF_TOLERANCE
        return Status.THROUGHPUT if met else Status.FEASIBLE

    @property
    def verdict(self) -> str:
        """The status in words for the user, with the size of the chunks or the gap it is about."""
        return verdict_of(self.status, gap=self.gap, chunk=self.problem.collective.chunk_size)

    def stopped(self) -> Result:
        """Return the same result, with a proof as the reason why it stopped if there is one."""
        met = Stop.PROVED
        proofs = {Status.OPTIMAL: met, Status.WHOLE: met, Status.THROUGHPUT: Stop.RATE}
        proof = proofs.get(self.status)
        asked = (Stop.GAP, Stop.WHOLE_GAP) if proof is Stop.RATE else ()
        if proof is None or self.stop in (Stop.CONSTRUCTED, Stop.READ, *asked):
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


def conclude(  # noqa: PLR0913  the parts of a result
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
    ours: bool = True,
) -> Result:
    """Verify and replay a plan, and make a result of it.

    A bound that the plan beats is false and left out. Where bounds are `ours`, not what a file
    says, it is a bug and logged with the problem.

    Raises
    ------
    ScheduleError
        If the plan breaks a rule: a bug of the formulation, never of the user.
    """
    with no_collection():
        verify(problem, plan)
        timeline = simulate(problem, plan)
    return Result(
        problem=problem,
        plan=plan,
        timeline=timeline,
        bounds=true_bounds(problem, plan, bounds, makespan=timeline.makespan, ours=ours),
        stop=stop,
        formulation=formulation,
        options=dict(options),
        solve_time=solve_time,
        log=log,
        size=size,
    ).stopped()


def verdict_of(status: Status, *, gap: float, chunk: float) -> str:
    """Return what `Result.verdict` says of a plan whose largest chunk has `chunk` bytes."""
    if status is Status.WHOLE:
        return f"{status} of {text.size(chunk)}"
    if status is Status.FEASIBLE and gap <= NEAR:
        return f"within {text.share(gap)} of the bound"
    return str(status)


def keeps_chunks(plan: Plan) -> bool:
    """Return whether a plan sends every chunk whole, so that bounds on such plans are about it."""
    return isinstance(plan, Schedule) and all(send.fraction >= 1 for send in plan.sends)


def true_bounds(
    problem: Problem, plan: Plan, bounds: Iterable[Bound], *, makespan: float, ours: bool = True
) -> tuple[Bound, ...]:
    """Return the bounds that a verified plan of `makespan` µs does not refute, largest first.

    Where they are `ours`, what it refutes is a bug: it is logged with the problem, so that it can
    be found again. Bounds on plans of whole chunks are left out where the plan splits chunks.
    """
    every = tuple(bounds)
    whole = any(each.whole_chunks for each in every) and keeps_chunks(plan)
    kept: list[Bound] = []
    for bound in every:
        if bound.whole_chunks and not whole:
            continue
        if bound.makespan <= makespan * (1 + PROOF_TOLERANCE):
            kept.append(bound)
        elif ours:
            _refuted(problem, bound, f"a verified plan of {makespan:.9g} us")
    if all(each.whole_chunks for each in kept):
        kept.append(_least(problem))
    return tuple(sorted(kept, key=lambda each: -each.makespan))


def _refuted(problem: Problem, bound: Bound, by: str) -> None:
    """Log a bound that is false, with the problem."""
    _log.error(
        "bug: the %s bound of %.9g us (%s) is above %s of %s",
        bound.kind,
        bound.makespan,
        bound.reference,
        by,
        repr(problem)[:_TOLD],
    )


def _least(problem: Problem) -> Bound:
    """Return the bound that is left when no other is: one chunk, over all links at once."""
    nbytes = min(chunk.size for chunk in problem.collective.chunks)
    rate = sum(link.bandwidth for link in problem.topology.links) * 1e3
    return Bound(nbytes / rate, "flow", None, "one chunk over all links at once")


def _above(makespan: float, bound: Bound) -> float:
    """Return how far a makespan is above a bound, as a share; rounding may put it below."""
    return max(0.0, makespan / bound.makespan - 1.0)
