"""Plans in steps of any collective: how instances are decided, and the Pareto front of all of them.

`solve` takes a collective side by side, as `list_scheduling.search` takes it apart: what adds up is
planned backwards and what spreads behind it, each in steps of its own; steps and rounds that are
requested are those of each side.

`Question` is one side, a collective without sums: what is proved of it in steps, and how an
instance is decided. First what needs no search: bounds, and list scheduling in rounds, whose plans
have steps of one round each. Then constraint programming, for plans that look the same under a
symmetry of the cluster before all others. A symmetric plan is a plan; its absence proves nothing.

`pareto` finds the front of latency against bandwidth: the fewest rounds per chunk for each number
of steps. For each number of steps S, from the distance on, instances of C chunks per shard and R
rounds are decided in the order of R / C, the time per byte, then of C (SCCL, algorithm 1): the
first that is found is the best of S, among C up to the largest requested. It ends when R / C is
that of the worst cut, which no plan is below, whatever its steps. Instances that are no better than
one of fewer steps, or that the two bounds refute, are not asked.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from ccl.collective import CollectiveKind, make_collective
from ccl.errors import Infeasible, LimitReached, ProblemError
from ccl.problem import Problem
from ccl.result import ClosedForm, Result, Stop
from ccl.topology import Topology
from formulations.bounds import quick_bounds
from formulations.core.registry import formulation
from formulations.core.run import Run
from formulations.engines.cp_sat.search import Effort
from formulations.engines.epoch_grid.arcs import flattened
from formulations.engines.list_scheduling.multistart import Quotient, Task, passes
from formulations.engines.list_scheduling.search import PACE, WORK, After, Finder, Side, answer
from formulations.engines.list_scheduling.timed import TimedTransfers, ends, transfers_of
from formulations.engines.reverse_time import halves, parts
from formulations.engines.sccl import Options
from formulations.engines.sccl.client import (
    Decided,
    Outcome,
    Solver,
    in_rounds,
    in_steps,
    on_time,
    steps_of,
    thrifty,
)
from formulations.engines.sccl.instance import Instance, Least, capacities, described, least_of

SYMMETRIC = 0.25
"""Share of the time that is left for an instance that each symmetry gets."""

MET = 1e-6
"""Rounds that count as zero."""


@dataclass(frozen=True)
class Question:
    """A side whose instances are decided.

    Parameters
    ----------
    side
        What can be sent and what has to be.
    solver
        Decides what a search decides.
    effort
        For an instance; its seconds are the most that one gets.
    most
        Passes of list scheduling for each symmetry.
    symmetry
        Whether symmetric plans are looked for.
    left
        Returns the seconds left for everything.
    searched
        What was decided by a search, in order.
    """

    side: Side
    solver: Solver
    effort: Effort
    most: int
    symmetry: bool
    left: Callable[[], float]
    searched: list[Outcome] = field(default_factory=list)

    @cached_property
    def task(self) -> Task:
        """What has to be done from the beginning."""
        return self.side.task()

    @cached_property
    def least(self) -> Least:
        """What is proved without a search."""
        return least_of(Problem(self.side.transfers.topology, self.side.collective), self.task)

    @cached_property
    def _instances(self) -> tuple[tuple[Instance, Quotient | None], ...]:
        """The task for representatives under each symmetry, then as it is."""
        capacity = capacities(self.side.transfers.topology)
        found: list[tuple[Instance, Quotient | None]] = []
        for each in self.side.reduced() if self.symmetry else ():
            merged = [Fraction(0)] * len(each.task.free)
            for link, resource in enumerate(each.task.resource.tolist()):
                merged[resource] = capacity[link]
            found.append((Instance(each.task, tuple(merged)), each))
        return (*found, (Instance(self.task, capacity), None))

    @cached_property
    def listed(self) -> TimedTransfers | None:
        """The best plan in steps of one round each that list scheduling finds."""
        best: TimedTransfers | None = None
        goal = self.least.in_order
        for turn, (instance, quotient) in enumerate(self._instances):
            # The first pass is run in any case, so that there is a plan.
            if best is not None and (self.left() <= 0 or steps_of(best) <= goal):
                break
            for plan in self._passes(instance, turn, goal=goal):
                if best is None or steps_of(plan) < steps_of(best):
                    best = plan if quotient is None else quotient.lifted(plan)
        return best

    def _passes(self, instance: Instance, turn: int, *, goal: int) -> list[TimedTransfers]:
        task = in_rounds(instance.task, instance.capacity)
        steps = max(1.0, min(WORK, self.left() * PACE))
        found = passes(
            task,
            seed=self.effort.seed + turn,
            most=self.most,
            steps=steps,
            goal=goal + MET,
            over=lambda: self.left() <= 0,
        )
        return [
            thrifty(instance.task, in_steps(instance.task, instance.capacity, plan))
            for plan, _ in found
        ]

    def decide(self, steps: int, rounds: int, *, share: float = 1.0) -> Outcome:
        """Decide whether there is a plan in so many steps and rounds.

        Parameters
        ----------
        share
            Of the time that is left, that this instance may take.

        Raises
        ------
        Infeasible
            If no paths lead where chunks have to be.
        SolveError
            If the solver's process died.
        """
        why = self.least.refutes(steps, rounds)
        if why is not None:
            return Outcome(Decided.IMPOSSIBLE, why)
        # Steps of one round each are never fewer than that.
        listed = self.listed if steps >= self.least.in_order else None
        if listed is not None and steps_of(listed) <= steps:
            ones = (1,) * (steps - 1)
            return Outcome(Decided.FOUND, plan=listed, rounds=(*ones, rounds - len(ones)))
        return self._searched(steps, rounds, min(self.effort.seconds, share * self.left()))

    def _searched(self, steps: int, rounds: int, seconds: float) -> Outcome:
        """Search under each symmetry, then without, in so many seconds together."""
        spare, why = seconds, ""
        for instance, quotient in self._instances:
            if spare <= 0:
                break
            share = 1.0 if quotient is None else SYMMETRIC
            begin = time.perf_counter()
            last = self.solver.decide(
                instance, steps, rounds, effort=replace(self.effort, seconds=share * spare)
            )
            self.searched.append(last)
            if last.plan is not None and quotient is not None:
                return replace(last, plan=quotient.lifted(last.plan))
            if quotient is None and last.decided is not Decided.UNDECIDED:
                return last
            spare -= time.perf_counter() - begin
            why = last.why * (quotient is None)
        return Outcome(Decided.UNDECIDED, why or f"its {max(0.0, seconds):.3g} s were over")


PASSES = 60
"""Passes of list scheduling for each symmetry."""

SHARE = 0.5
"""Share of the time left that an instance gets while others may have to be decided after it."""


def solve(run: Run, options: Options, solver: Solver) -> Result:
    """Decide instances until the request is met.

    Raises
    ------
    Infeasible
        If the instance requested is proved to have no plan, or no paths lead where chunks must be.
    LimitReached
        If it is not decided in its time.
    """
    collective = run.problem.collective
    halved = halves(collective) if collective.reduces else (None, None)
    finder = StepFinder(
        run,
        options.seed,
        PASSES,
        options.symmetry,
        options=options,
        solver=solver,
        until=math.inf if run.time_limit is None else run.time_limit,
        alone=None in halved,
    )
    answer(finder)
    return run.end(finder.stop)


@dataclass(frozen=True)
class StepFinder(Finder):
    """A finder of plans in steps.

    Parameters
    ----------
    options
        What is requested.
    solver
        Decides instances.
    until
        Seconds after the beginning of the run when it has to end.
    alone
        Whether one side is the whole problem.
    endings
        Why the searches ended, in their order.
    stored
        The best plan in steps of the last side.
    """

    options: Options
    solver: Solver
    until: float
    alone: bool = True
    endings: list[Stop] = field(default_factory=list)
    stored: list[TimedTransfers] = field(default_factory=list)

    @property
    def stop(self) -> Stop:
        """Why it ended."""
        if Stop.TIME_LIMIT not in self.endings:
            return Stop.MODEL_OPTIMAL
        return Stop.TIME_LIMIT if self.until == self.run.time_limit else Stop.EFFORT

    def plans(
        self,
        side: Side,
        *,
        goal: float,
        found: Callable[[TimedTransfers], bool],
        after: After | None = None,
        final: bool = True,
    ) -> None:
        """Hand over plans, each shorter than those before.

        Raises
        ------
        Infeasible
            If the instance requested is impossible, or no paths lead where chunks have to be.
        LimitReached
            If it is not decided in its time.
        """
        del goal, final  # steps are what counts here
        task = side.task(after=after)
        if after is not None:
            # The same steps, begun where what was added up leaves capacity.
            found(on_time(task, self.stored[-1]))
            return
        self.run.note(described(side.transfers.topology, float(side.nbytes.max())))
        options = self.options
        question = Question(
            side,
            self.solver,
            Effort(seconds=options.seconds, workers=options.workers, seed=options.seed),
            self.passes,
            self.symmetry,
            lambda: self.until - self.run.seconds,
        )
        best = np.inf
        for outcome in self._outcomes(question):
            assert outcome.plan is not None
            timed = on_time(task, outcome.plan)
            makespan = float(ends(side.transfers, timed, side.nbytes).max())
            if makespan < best:
                best = makespan
                self.stored.append(outcome.plan)
                if self.alone:
                    self.run.closed_form = formula(side, task, outcome)
                if found(timed) and options.mode == "pareto":
                    return

    def _outcomes(self, question: Question) -> Iterator[Outcome]:
        """Yield instances that are found."""
        search = {
            "least-steps": self._least_steps,
            "instance": self._instance,
            "pareto": self._front,
        }[self.options.mode]
        try:
            yield from search(question)
        finally:
            for each in question.searched:
                if each.size is not None:
                    self.run.met(each.size)

    def _instance(self, question: Question) -> Iterator[Outcome]:
        least = question.least
        steps = self.options.steps or least.steps
        rounds = self.options.rounds or max(steps, math.ceil(least.rounds))
        requested = named(steps, rounds)
        self.run.report(f"deciding {requested}")
        outcome = question.decide(steps, rounds)
        if outcome.decided is Decided.IMPOSSIBLE:
            raise Infeasible(
                f"no plan in {requested}: proved, as {outcome.why}{least.more(steps, rounds)}"
            )
        if outcome.decided is Decided.UNDECIDED:
            raise LimitReached(
                f"not decided whether there is a plan in {requested}: {outcome.why}; allow more"
            )
        self.run.note(f"a plan in {requested}: {', '.join(map(str, outcome.rounds))}")
        self.endings.append(Stop.MODEL_OPTIMAL)
        yield outcome

    def _least_steps(self, question: Question) -> Iterator[Outcome]:
        run, least = self.run, question.least
        run.report("list scheduling in steps of one round each")
        listed, steps = question.listed, least.in_order
        why = least.refutes(steps - 1, steps - 1) or ""
        opened: list[int] = []
        while listed is None or steps < steps_of(listed):
            run.report(f"deciding {steps} steps of one round each")
            outcome = question.decide(steps, steps, share=SHARE)
            if outcome.plan is not None:
                listed = outcome.plan
                break
            if outcome.decided is Decided.IMPOSSIBLE:
                why = outcome.why
            else:
                opened.append(steps)
                if run.seconds >= self.until:
                    break
            steps += 1
        self.endings.append(Stop.TIME_LIMIT if opened else Stop.MODEL_OPTIMAL)
        if listed is None:
            raise LimitReached(
                f"not decided whether there is a plan in {named(steps, steps)}; allow more"
            )
        many = steps_of(listed)
        run.note(
            f"{many} step{'s' * (many > 1)} of one round each; "
            + (
                f"whether {opened[0]} are enough is not decided"
                if opened
                else f"fewer are proved impossible, as {why}"
            )
        )
        yield Outcome(Decided.FOUND, plan=listed, rounds=(1,) * many)

    def _front(self, question: Question) -> Iterator[Outcome]:
        run, least = self.run, question.least
        fewest = math.ceil(least.rounds)
        best: int | None = None
        steps = least.steps
        while (best is None or best > max(fewest, steps)) and run.seconds < self.until:
            low = max(steps, fewest)
            rounds = low
            while best is None or rounds < best:
                run.report(f"deciding {named(steps, rounds)}")
                outcome = question.decide(steps, rounds, share=SHARE)
                run.note(f"{named(steps, rounds)}: {outcome.decided}")
                if outcome.decided is Decided.UNDECIDED:
                    self.endings.append(Stop.TIME_LIMIT)
                if outcome.plan is not None:
                    best = rounds
                    yield outcome
                if outcome.plan is not None or run.seconds >= self.until:
                    break
                rounds += 1
            steps += 1
        if best is None and question.listed is not None:
            many = steps_of(question.listed)
            yield Outcome(Decided.FOUND, plan=question.listed, rounds=(1,) * many)
        self.endings.append(Stop.MODEL_OPTIMAL if best is not None else Stop.TIME_LIMIT)


def named(steps: int, rounds: int) -> str:
    """Name an instance."""
    return (
        f"{steps} step{'s' * (steps != 1)} of {rounds} round{'s' * (rounds != 1)}"
        + " together" * (steps > 1)
    )


def formula(side: Side, task: Task, outcome: Outcome) -> ClosedForm:
    """Return the cost of steps and rounds, S alpha + R c beta for chunks of c bytes (SCCL, 2.2)."""
    plan, transfers = outcome.plan, side.transfers
    assert plan is not None
    nbytes, steps, rounds = float(side.nbytes.max()), len(outcome.rounds), sum(outcome.rounds)
    alpha = float(transfers.latency[plan.transfer].max())
    beta = max(each.beta for each in transfers.topology.links)
    took = transfers.latency[plan.transfer] + nbytes * transfers.slowest[plan.transfer]
    still = replace(task, there=np.zeros_like(task.there))
    alone, together = 0.0, 0.0
    crowd, busiest = 1, None
    for step in range(steps):
        these = plan.chosen(np.flatnonzero(plan.start == step))
        if not len(these):
            continue
        alone += float(took[plan.start == step].max())
        at_once = on_time(still, replace(these, start=np.zeros(len(these))))
        together += float(ends(transfers, at_once, side.nbytes).max())
        crossed = transfers.link[flattened(transfers.first, these.transfer)[0]]
        link, most = Counter(crossed.tolist()).most_common(1)[0]
        if most > crowd:
            crowd, busiest = most, transfers.topology.links[link].ends
    parts = side.collective.size / nbytes
    share = "m" if round(parts) == 1 else f"m/{round(parts)}"
    return ClosedForm(
        expression=f"{steps} α + {rounds} {share} β",
        alpha=alpha,
        beta=beta,
        makespan=steps * alpha + rounds * nbytes * beta,
        alone=alone,
        in_steps=together,
        steps=steps,
        busiest=busiest,
        crowd=crowd,
    )


NAME = "sccl"

FARTHEST = 2
"""Times the rounds per chunk of the worst cut up to which instances run, and a round each."""


@dataclass(frozen=True)
class Point:
    """An instance and what is known of it.

    Parameters
    ----------
    steps, rounds, chunks
        S, R of all steps together, C per shard.
    decided
        Whether there is a plan.
    why
        What proves that no plan exists, or leaves it undecided; or empty.
    result
        The plan where there is one.
    """

    steps: int
    rounds: int
    chunks: int
    decided: Decided
    why: str = ""
    result: Result | None = None

    @property
    def cost(self) -> Fraction:
        """Rounds per chunk: time per byte in units of the slowest link's."""
        return Fraction(self.rounds, self.chunks)


def front(points: Iterable[Point]) -> tuple[Point, ...]:
    """Return the points that are found, the fewest steps first; each costs less than those."""
    stored: list[Point] = []
    for each in sorted(points, key=lambda each: (each.steps, each.cost, each.chunks)):
        if each.decided is Decided.FOUND and (not stored or each.cost < stored[-1].cost):
            stored.append(each)
    return tuple(stored)


def pareto(  # noqa: PLR0913  a topology, a collective, and how far to look
    topology: Topology,
    kind: CollectiveKind,
    size: float,
    *,
    root: int = 0,
    most_chunks: int = 6,
    most_steps: int = 12,
    seconds: float = 10.0,
    time_limit: float | None = None,
    symmetry: bool = True,
    seed: int = 0,
) -> tuple[Point, ...]:
    """Decide the instances along the front; `front` keeps those on it.

    Parameters
    ----------
    topology, kind, size, root
        The collective and where; size in bytes.
    most_chunks, most_steps
        Largest C and S.
    seconds
        For each instance at most.
    time_limit
        Seconds for everything; where it is reached, the instance that was next ends the points.
    symmetry, seed
        As the options of the formulation.

    Raises
    ------
    ProblemError
        If the formulation refuses the problem, or it is a sum for several ranks.
    Infeasible
        If no paths lead where chunks have to be.
    """
    end = math.inf if time_limit is None else time.perf_counter() + time_limit
    ranks = len(topology.ranks)

    def made(chunks: int) -> Problem:
        return Problem(topology, make_collective(kind, ranks, size, chunks=chunks, root=root))

    least = _least(made(1))
    points: list[Point] = []
    best: Fraction | None = None
    wanted = Options(mode="instance", symmetry=symmetry, seed=seed)
    with Solver() as solver:
        for steps in range(least.steps, most_steps + 1):
            for rounds, chunks in _instances(least, steps, most_chunks=most_chunks, below=best):
                left = end - time.perf_counter()
                if left <= 0:
                    late = "the time limit came before it was decided; allow more"
                    points.append(Point(steps, rounds, chunks, Decided.UNDECIDED, late))
                    return tuple(points)
                options = replace(wanted, steps=steps, rounds=rounds, seconds=min(seconds, left))
                points.append(_decided(made(chunks), chunks, options, solver))
                if points[-1].decided is Decided.FOUND:
                    best = points[-1].cost
                    break
            if best == least.rounds:
                break
    return tuple(points)


def _least(problem: Problem) -> Least:
    """Return what is proved of the collective, or of its time reversal, for one chunk per shard."""
    reason = formulation(NAME).why_not(problem)
    sides = [] if reason is not None else parts(problem)
    if len(sides) == 2:
        reason = "it adds up first, then spreads; ask for each of the two"
    if reason is not None:
        raise ProblemError(f"no front of {problem.collective.kind} on {problem.topology}: {reason}")
    side = sides[0][0]
    return least_of(side, Side(transfers_of(side.topology), side.collective).task())


def _instances(
    least: Least, steps: int, *, most_chunks: int, below: Fraction | None
) -> Iterator[tuple[int, int]]:
    """Yield rounds and chunks of what may be better than `below`, the least per chunk first."""
    found = []
    for chunks in range(1, most_chunks + 1):
        low = max(steps, math.ceil(least.rounds * chunks))
        high = low + math.ceil((FARTHEST - 1) * least.rounds * chunks) + steps
        found += [(Fraction(rounds, chunks), chunks) for rounds in range(low, high + 1)]
    for cost, chunks in sorted(found):
        if below is None or cost < below:
            yield int(cost * chunks), chunks


def _decided(problem: Problem, chunks: int, options: Options, solver: Solver) -> Point:
    """Decide one instance."""
    assert options.steps is not None
    assert options.rounds is not None
    run = Run(
        problem=problem,
        formulation=NAME,
        options=asdict(options),
        bounds=quick_bounds(problem, whole_chunks=True),
    )
    decided, why, result = Decided.FOUND, "", None
    try:
        result = solve(run, options, solver)
    except Infeasible as error:
        decided, why = Decided.IMPOSSIBLE, str(error)
    except LimitReached as error:
        decided, why = Decided.UNDECIDED, str(error)
    return Point(options.steps, options.rounds, chunks, decided, why, result)
