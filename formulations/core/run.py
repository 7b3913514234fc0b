"""Run of a formulation: its limits, its reports, the best result so far.

A formulation offers every plan that it finds; an offer is verified and replayed, stored if it is
better than the best so far, and reported. So a limit or a cancel never loses a plan.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

from ccl.bound import Bound
from ccl.errors import LimitReached, ScheduleError, SolveError
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import (
    SAME,
    ClosedForm,
    ModelSize,
    Plan,
    Result,
    Status,
    Stop,
    conclude,
    true_bounds,
)
from ccl.simulate import simulate
from formulations.core.detours import FEW_SENDS, moves_less, straighten
from formulations.core.front import Front
from formulations.core.preparing import clock

if TYPE_CHECKING:
    from formulations.solvers.cvxpy_highs import Backend

_log = logging.getLogger("topoloom")

_LONGEST_TEXT = 1_000_000
"""Most characters of a problem that a log line repeats."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a solve stands.

    Parameters
    ----------
    seconds
        Since it began.
    incumbent, bound
        Best makespan and largest lower bound in µs, None before the first.
    message
        What it does now.
    result
        The best result when it is new, else None.
    """

    seconds: float
    incumbent: float | None
    bound: float | None
    message: str = ""
    result: Result | None = None


@dataclass
class Run:
    """What a formulation is given to work with.

    Parameters
    ----------
    problem
        What the formulation solves.
    formulation
        Name for the results.
    options
        Plain values for the results.
    bounds
        Proved lower bounds of the problem.
    time_limit
        Seconds for everything, or None.
    gap
        Gap to the bound at which it is good enough, or None.
    progress
        Called with every news.
    solver
        Name of a solver that CVXPY knows.
    epoch_duration
        µs of an epoch that the plan must have, or None where the formulation may choose.
    reverse_time
        Whether plans will be read backwards, which grids depend on.
    answers, turn
        What results answer, where that is not `problem` itself, and how a plan of `problem`
        becomes one of it.
    start
        A plan of `problem` to begin with, or None; who uses it offers it.
    merit
        What the best result has least of, in µs, or None where that is its makespan.
    whole
        Whether a proof among the plans that send these chunks whole is enough, as where no others
        are found anyway.
    over
        Says whether somebody else has found enough, so that it may stop.
    known
        Says of how many µs the best plan is that somebody else has; slower ones need not be made.
    grace
        Seconds of the run until which a first plan is worth waiting for, be the time limit over:
        without end, unless somebody else has a plan.
    doubts
        Whether plans may break a rule and be no bug: such are dropped.
    method
        What is being tried, where a formulation tries several.
    best
        The best result so far.
    front
        The verified plans so far that no other beats with as few sends; copies of a run share it.
    log
        Sentences for the result.
    size
        Size of the largest model so far.
    closed_form
        The published formula of the plans that are offered, where there is one.
    broken
        What was wrong with plans that broke a rule and were dropped; each is a bug.
    begin
        When it began, on the clock of `formulations.core.preparing`, which stands still while the
        searches are compiled.
    """

    problem: Problem
    formulation: str
    options: Mapping[str, Any]
    bounds: tuple[Bound, ...]
    time_limit: float | None = None
    gap: float | None = None
    progress: Callable[[Progress], None] | None = None
    solver: str = "HIGHS"
    epoch_duration: float | None = None
    reverse_time: bool = False
    answers: Problem | None = None
    turn: Callable[[Any], Plan] = lambda plan: plan
    start: Schedule | None = None
    merit: Callable[[Result], float] | None = None
    whole: bool = True
    over: Callable[[], bool] = lambda: False
    known: Callable[[], float] = lambda: inf
    grace: float = inf
    doubts: bool = False
    method: str = ""
    best: Result | None = None
    front: Front = field(default_factory=Front)
    log: list[str] = field(default_factory=list)
    size: ModelSize | None = None
    closed_form: ClosedForm | None = None
    broken: list[str] = field(default_factory=list)
    begin: float = field(default_factory=clock)

    @cached_property
    def backend(self) -> Backend:
        """The solver, loaded when it is first requested."""
        from formulations.solvers.cvxpy_highs import Backend  # noqa: PLC0415

        return Backend(solver=self.solver)

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return clock() - self.begin

    @property
    def remaining(self) -> float:
        """Seconds until the time limit, negative after it; infinite without one."""
        return inf if self.time_limit is None else self.time_limit - self.seconds

    @property
    def awaited(self) -> float:
        """Seconds that a plan which is being made is waited for: the first, or a better one."""
        return self.grace - self.seconds if self.best is None else self.remaining

    @property
    def left(self) -> float | None:
        """Seconds left, at least a hundredth; None without a limit."""
        return None if self.time_limit is None else max(0.01, self.remaining)

    @property
    def late(self) -> bool:
        """Whether the time limit has passed."""
        return self.time_limit is not None and self.seconds >= self.time_limit

    @property
    def expired(self) -> bool:
        """Whether to stop: the time limit has passed or enough was found elsewhere."""
        return self.late or self.over()

    def best_known(self) -> float:
        """Return the µs of the best plan, here or elsewhere; infinite before the first."""
        return min(self.known(), inf if self.best is None else self.best.makespan)

    def note(self, sentence: str) -> None:
        """Write into the log of the result, once."""
        if sentence not in self.log:
            self.log.append(sentence)

    def met(self, size: ModelSize) -> None:
        """Remember the size of the largest model."""
        if self.size is None or size.variables > self.size.variables:
            self.size = size

    def prove(self, more: Iterable[Bound]) -> None:
        """Add bounds that are not known yet."""
        new = [each for each in more if each not in self.bounds]
        self.bounds = tuple(sorted((*self.bounds, *new), key=lambda each: -each.makespan))

    def report(self, message: str, result: Result | None = None) -> None:
        """Report how it stands."""
        if self.progress is not None:
            self.progress(
                Progress(
                    self.seconds,
                    self.best.makespan if self.best else None,
                    self.proof.makespan,
                    message,
                    result,
                )
            )

    def replay(self, plan: Plan) -> float:
        """Return the makespan of what `plan` comes to in µs, without verifying it."""
        return simulate(self.answers or self.problem, self.turn(plan)).makespan

    def offer(
        self, plan: Plan, *, message: str = "a better schedule", doubted: bool = False
    ) -> bool:
        """Verify and replay `plan`; keep it if it is the best. Return whether it is good enough.

        A plan that breaks a rule is a bug of the formulation: it is logged with what makes it
        again, and dropped.

        Parameters
        ----------
        plan, message
            What is offered, and what is reported of it.
        doubted
            Whether it may break a rule and be no bug, as one that a user gives.

        Raises
        ------
        ScheduleError
            If a plan that is doubted breaks a rule.
        """
        try:
            result = self._result(self.turn(plan), Stop.TIME_LIMIT, method=self.method)
        except ScheduleError as error:
            if doubted:
                raise
            if not self.doubts:
                self.drop(error)
            return self.enough
        return self._kept(result, message)

    def take(self, found: Result, *, by: str) -> bool:
        """Keep a verified plan of the same bytes that another run has found, if it is the best.

        Parameters
        ----------
        found
            Its problem may have the chunks of this one cut further.
        by
            Which method found it.
        """
        bounds = true_bounds(found.problem, found.plan, self.bounds, makespan=found.makespan)
        result = replace(
            found,
            bounds=bounds,
            formulation=self.formulation,
            options=self.options,
            found_by=by,
            solve_time=self.seconds,
            simpler=(),
        )
        for each in found.simpler:
            self.front.add(each)
        return self._kept(result, "a better schedule")

    def _kept(self, result: Result, message: str) -> bool:
        """Keep and report a result if it is the best; return whether the best is good enough."""
        self.front.add(result)
        if self.best is None or self._better(result, self.best):
            self.best = result
            self.report(message, result)
        return self.enough

    def _better(self, result: Result, best: Result) -> bool:
        """Return whether a result costs less, or as much and moves less data over fewer links."""
        cost, least = self._cost(result), self._cost(best)
        if cost < least * (1 - SAME):
            return True
        alike = len(result.problem.collective.chunks) == len(best.problem.collective.chunks)
        return alike and cost <= least * (1 + SAME) and moves_less(result, best)

    def _straight(self, best: Result) -> Result:
        """Return the best result without needless detours, where it may be what is answered.

        What is built by a formula stays what the formula is about, unless it is one method's of
        several and takes longer for its detours. Those of large plans stay until others are there
        to be compared with, as leaving them out takes time.
        """
        formula = best.closed_form is not None
        large = isinstance(best.plan, Schedule) and len(best.plan.sends) > FEW_SENDS
        if self.merit is not None or (large if self.method else formula):
            return best

        def judge(plan: Schedule) -> Result | None:
            try:
                found = conclude(
                    best.problem,
                    plan,
                    bounds=best.bounds,
                    stop=best.stop,
                    formulation=best.formulation,
                    options=best.options,
                    solve_time=best.solve_time,
                )
            except ScheduleError:
                return None
            return replace(best, plan=plan, timeline=found.timeline, bounds=found.bounds)

        found = straighten(best, judge)
        if not formula:
            return found
        sooner = found.makespan < best.makespan * (1 - SAME)
        return replace(found, closed_form=None) if sooner else best

    def drop(self, error: ScheduleError) -> None:
        """Log what a plan of our own did wrong, and how to make it again."""
        if str(error) in self.broken:
            return
        from ccl.serialization.topoloom import problem_to_json  # noqa: PLC0415  it is rarely needed

        problem = self.answers or self.problem
        text = json.dumps(problem_to_json(problem))
        _log.error(
            "bug: a plan of %s with %s breaks a rule: %s; of %s",
            self.method or self.formulation,
            dict(self.options),
            error,
            text if len(text) <= _LONGEST_TEXT else f"problem {problem.fingerprint}",
        )
        self.broken.append(str(error))
        self.note(f"a plan was dropped, as it breaks a rule, which is a bug: {error}")

    def _cost(self, result: Result) -> float:
        return result.makespan if self.merit is None else self.merit(result)

    @property
    def enough(self) -> bool:
        """Whether the best so far is proved or within the gap requested.

        Bounds are on makespans: where something else is requested, nothing is proved by them.
        """
        best = self.best
        if best is None or self.merit is not None:
            return False
        if self.reached is Stop.PROVED:
            return True
        return self.gap is not None and self._gap(best) <= self.gap

    def _gap(self, best: Result) -> float:
        """Return how far a result is above the largest bound that is about the plans wanted."""
        whole = best.whole_gap if self.whole else None
        return best.gap if whole is None else min(best.gap, whole)

    @property
    def latency(self) -> float:
        """The share that latency alone takes of what is proved."""
        paths = [each.makespan for each in self.bounds if each.kind == "path"]
        return max(paths, default=0.0) / (self.proof.makespan or inf)

    @property
    def proof(self) -> Bound:
        """The largest lower bound that holds for every plan."""
        return next((each for each in self.bounds if not each.whole_chunks), self.bounds[0])

    @property
    def reached(self) -> Stop:
        """Why the best so far is enough: a proof, or the gap that was requested."""
        proofs = (Status.OPTIMAL, Status.WHOLE) if self.whole else (Status.OPTIMAL,)
        if self.best is None or self.best.status in proofs:
            return Stop.PROVED
        return self._near(self.best)

    def _near(self, best: Result) -> Stop:
        """Return among which plans the gap requested is reached."""
        return Stop.GAP if self.gap is not None and best.gap <= self.gap else Stop.WHOLE_GAP

    def finish(self, stop: Stop) -> Result:
        """Return the best result with the reason why it stopped.

        Raises
        ------
        LimitReached
            If it found no plan.
        SolveError
            If it found no plan because every model was too large, or because of a bug.
        """
        if self.best is None and self.broken:
            raise SolveError(
                f"{self.formulation} made a plan that breaks a rule, which is a bug and was "
                f"logged: {self.broken[0]}; take another formulation"
            )
        if self.best is None and stop is Stop.TOO_LARGE:
            why = "; ".join(self.log)
            raise SolveError(
                f"{self.formulation} has no model that is small enough: {why}; make epochs longer"
            )
        if self.best is None:
            raise LimitReached(
                f"{self.formulation} found no schedule within {self.seconds:.0f} s; allow more"
            )
        best = self.best = self._straight(self.best)
        if stop is Stop.TIME_LIMIT and self.time_limit is None:
            stop = Stop.EFFORT  # a limit of the formulation's own
        if stop is Stop.TIME_LIMIT and self.gap is not None and self._gap(best) <= self.gap:
            stop = self._near(best)
        best = replace(
            best, stop=stop, solve_time=self.seconds, log=tuple(self.log), size=self.size
        )
        return replace(self._proved(best), simpler=self._simpler(best))

    def _simpler(self, best: Result) -> tuple[Result, ...]:
        """Return the plans with fewer sends, where it is this run that is waited for."""
        if self.method or self.merit is not None:
            return ()
        return tuple(
            self._proved(replace(each, formulation=self.formulation, options=self.options))
            for each in self.front.simpler(best)
        )

    def _proved(self, found: Result) -> Result:
        """Return a result, verified and replayed when it was offered, with all that is proved."""
        bounds = true_bounds(found.problem, found.plan, self.bounds, makespan=found.makespan)
        return replace(found, bounds=bounds).stopped()

    def end(self, stop: Stop) -> Result:
        """Return the best result: as one that is enough, or with the reason why it stopped.

        Raises
        ------
        LimitReached, SolveError
            As `finish`.
        """
        return self.finish(self.reached if self.enough else stop)

    def finish_rate(self) -> Result:
        """Return the best result of what looks for the best rate."""
        if self.best is not None and self.best.status is Status.THROUGHPUT:
            return self.finish(Stop.RATE)
        return self.end(Stop.CONSTRUCTED)

    def _result(self, plan: Plan, stop: Stop, *, method: str) -> Result:
        problem, bounds = self.answers or self.problem, self.bounds
        if isinstance(plan, Schedule) and plan.chunks not in (None, len(problem.collective.chunks)):
            # What holds for these chunks, whole, says nothing of others.
            problem = problem.cut_into(plan.chunks)
            bounds = tuple(each for each in bounds if not each.whole_chunks)
        found = conclude(
            problem,
            plan,
            bounds=bounds,
            stop=stop,
            formulation=self.formulation,
            options=self.options,
            solve_time=self.seconds,
            log=tuple(self.log),
            size=self.size,
        )
        return replace(found, found_by=method, closed_form=self.closed_form)
