"""Search over the model of whole chunks: on which grids, for which horizons, until when.

`Horizons` solves the model on one grid: from above, in halves, or by the paper. The smallest
horizon K that has a solution is found by descending from one that is known to be enough, or by
bisection between the latency, the lower bounds and that one. Every K that is tried is in the log.

Algorithm 1 of TE-CCL (appendix E; `algorithm_1`) finds a horizon that is enough from models of 4, 8
and 12 long epochs: for one candidate after the other of the whole time, in µs, it decides whether a
schedule of that time exists. As printed, its loop over candidates goes on after one has worked, so
that the last counts and not the smallest; no candidates are given, and none that works leaves its
answer undefined. Here candidates are multiples of the lower bound, `SHARES`, ascending; the first
that works ends it. A schedule on long epochs need not fit into as much time on short ones, where
every delay is rounded up anew: where it does not, the horizon is doubled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ccl.errors import Infeasible, LimitReached, ScheduleError
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import Result, Stop
from ccl.topology import Topology
from formulations.core.run import Run
from formulations.core.weighted_objectives import (
    prioritised,
    tenant_priorities,
    weighted_arrivals,
    weighted_finish,
)
from formulations.engines.epoch_grid import arcs
from formulations.engines.epoch_grid.epochs import (
    DOMINANT,
    LONGER,
    ChunkOptions,
    EpochGrid,
    durations,
    lengthened,
    memory,
)
from formulations.engines.epoch_grid.plans import demand, schedule
from formulations.engines.te_ccl.greedy import greedy, onto

if TYPE_CHECKING:
    from formulations.engines.te_ccl.chunk_milp import ChunkModel

SHARES = (1.05, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0)
"""Candidates for the whole time as multiples of the lower bound."""

COARSE = (4, 8, 12)
"""Numbers of epochs of the models of Algorithm 1."""

COARSE_SECONDS = 10.0
COARSE_SHARE = 0.1
"""Seconds, and share of the time limit, for each of these models; one that takes longer counts as
one without a schedule."""

DOUBLINGS = 5
"""How often a horizon that is only a guess may be doubled."""


@dataclass(eq=False)
class Horizons:
    """The search on one grid.

    Parameters
    ----------
    model
        Models of any horizon on that grid.
    options
        Objective, horizon and how it is found.
    enough
        A horizon that has a solution, or a guess of one.
    known
        A plan of `enough` epochs that has been offered, or None.
    start
        A plan on this grid to begin with, or None.
    """

    model: ChunkModel
    options: ChunkOptions
    enough: int
    known: Schedule | None
    start: Schedule | None = None

    def __post_init__(self) -> None:
        self.attempted, self.ruled_out, self.run = False, 0, self.model.run
        self.most = self.options.horizon or self.enough
        self.high = min(self.most, self.enough)
        # A horizon that turns out to be too small may grow up to this.
        self.limit = self.options.horizon or self.enough * 2**DOUBLINGS
        self.has_plan = self.known is not None and self.enough <= self.most

    def search(self) -> Stop:
        """Offer what the models find, and say why it ends.

        Raises
        ------
        Infeasible
            If the horizon is too small.
        """
        bisect, objective = self.options.horizon_by == "bisection", self.options.objective
        try:
            if objective == "fewest-epochs":
                return self._bisect() if bisect else self._descend()
            horizon = self.most
            if bisect:
                stop = self._bisect()
                proved = self.run.enough and self.options.stop_at_proof
                if proved or stop is Stop.TIME_LIMIT:
                    return stop
                if self.run.merit is None:
                    horizon = self.high
            return self._optimise(horizon)
        except LimitReached:
            return Stop.TIME_LIMIT

    def _ask(self, horizon: int) -> Schedule | None:
        """Return a plan of at most so many epochs, or None; both are noted."""
        tried = f"{horizon} epochs of {self.model.hops.grid.epoch_duration:.6g} µs"
        self.attempted = True
        start = self.known if self.known and self.known.horizon <= horizon else None
        try:
            plan = self.model.solve(horizon, start=None if self.run.problem.windows else start)
        except Infeasible:
            self.run.note(f"{tried}: no schedule exists")
            self.ruled_out = max(self.ruled_out, horizon)
            return None
        except LimitReached:
            self.run.note(f"{tried}: undecided within the time limit")
            raise
        self.run.note(f"{tried}: a schedule of {plan.horizon}")
        self.run.offer(plan, message=f"a schedule of {plan.horizon} epochs")
        return plan

    def _first(self) -> None:
        """Find a plan where none is at hand; a horizon that is only a guess may grow.

        Raises
        ------
        Infeasible
            If there is no schedule.
        """
        # What latency and bounds rule out need not be solved, where more is allowed.
        self.high = min(max(self.high, self.model.least), self.limit)
        while True:
            self.model.check(self.high)
            plan = self._ask(self.high)
            if plan is not None:
                self.high, self.has_plan = plan.horizon, True
                return
            if self.high >= self.limit:
                raise Infeasible(self.model.none(self.high))
            self.high = min(2 * self.high, self.limit)

    def _descend(self) -> Stop:
        """Try one epoch less until there is no solution."""
        if not self.has_plan:
            self._first()
        while not self.run.enough and self.high > max(self.model.least, self.ruled_out + 1):
            if self.run.expired:
                return Stop.TIME_LIMIT
            plan = self._ask(self.high - 1)
            if plan is None:
                break
            self.high = plan.horizon
        self._built()
        return self.run.reached if self.run.enough else Stop.MODEL_OPTIMAL

    def _built(self) -> None:
        """Try the horizon of the plan at hand where nothing else had to be tried."""
        if not (self.attempted or self.options.stop_at_proof):
            self._ask(self.high)

    def _bisect(self) -> Stop:
        """Halve what lies between a horizon that is too small and one that is enough."""
        if not self.has_plan:
            self._first()
        low = max(self.model.least - 1, self.ruled_out)
        while not self.run.enough and self.high - low > 1:
            if self.run.expired:
                return Stop.TIME_LIMIT
            middle = (low + self.high) // 2
            plan = self._ask(middle)
            if plan is None:
                low = middle
            else:
                self.high = plan.horizon
        self._built()
        return self.run.reached if self.run.enough else Stop.MODEL_OPTIMAL

    def _optimise(self, horizon: int) -> Stop:
        """Optimise the objective within `horizon` epochs, or more where these are a guess."""
        model, options, run = self.model, self.options, self.run
        gap = run.gap if options.model_gap is None else options.model_gap / 100
        assert options.objective != "fewest-epochs"
        while True:
            try:
                plan = model.solve(horizon, aim=options.objective, gap=gap, start=self.start)
                break
            except Infeasible:
                if horizon >= self.limit:
                    raise
                horizon = min(2 * horizon, self.limit)
        outcome = model.outcome
        assert outcome is not None
        run.note(
            f"{options.objective} within {horizon} epochs: the objective is "
            f"{outcome.objective:.6g}, the solver's bound on it {outcome.bound:.6g}"
        )
        if run.offer(plan):
            return run.reached
        if model.near:
            return Stop.MODEL_GAP
        return Stop.MODEL_OPTIMAL if model.proved else Stop.TIME_LIMIT


def algorithm_1(run: Run, model: Callable[[float], ChunkModel], *, offers: bool) -> float:
    """Return a time in µs in which a schedule exists.

    Parameters
    ----------
    run
        Its lower bound is what candidates are multiples of.
    model
        Makes the models on the grid of an epoch duration in µs.
    offers
        Whether a schedule on long epochs answers the request.

    Raises
    ------
    Infeasible
        If no candidate works.
    LimitReached
        If the time limit came before one did, or none did and some were not decided in their time.
    """
    bound = run.bounds[0].makespan
    limit = math.inf if run.time_limit is None else COARSE_SHARE * run.time_limit
    limit = min(COARSE_SECONDS, limit)
    undecided = False
    for share in SHARES:
        for many in COARSE:
            tried = f"algorithm 1, {share * bound:.6g} µs in {many} epochs"
            try:
                plan = model(share * bound / many).solve(many, time_limit=limit)
            except Infeasible:
                run.note(f"{tried}: no schedule exists")
                continue
            except LimitReached:
                run.note(f"{tried}: undecided")
                undecided = True
                if run.expired:
                    raise
                continue
            run.note(f"{tried}: a schedule")
            if offers:
                run.offer(plan, message="a schedule on long epochs")
            return plan.duration
    msg = (
        f"algorithm 1 found no schedule of up to {SHARES[-1]:g} times the lower bound of "
        f"{bound:.6g} µs in {COARSE[-1]} epochs; find the horizon by the greedy schedule"
    )
    raise LimitReached(msg) if undecided else Infeasible(msg)


def in_epochs(duration: float, epoch_duration: float) -> int:
    """Return how many epochs a time in µs takes."""
    return max(1, math.ceil(duration / epoch_duration - 1e-9))


Start = tuple[arcs.Arcs, int, Schedule | None]
"""A grid, a number of epochs that is enough on it, and the plan of so many that was offered."""

LAST = (Stop.PROVED, Stop.GAP, Stop.WHOLE_GAP, Stop.MODEL_GAP, Stop.TOO_LARGE)
"""Why no finer grid is tried."""

PATIENCE = 1.5
"""Seconds for greedy schedules on all grids together."""

VARIABLES = 1_000_000
"""Most variables of a model that is tried where a greedy schedule is at hand; HiGHS takes minutes
for less on two cores, and looks at its time limit only now and then while it presolves."""

ENTRIES = 10_000_000
"""Most variables and most nonzeros of any model; more take more memory than there may be."""

EPOCHS = 200_000
"""Most epochs into which the lower bound is cut; on more even the greedy schedule takes long."""

WORTH = 0.002
"""Share by which a finer grid's greedy schedule must be faster for the model to use that grid."""

CELLS = 300_000
"""Most epochs times hops times chunks of a grid that ``auto`` tries beside the coarsest; HiGHS
finds nothing on larger ones within minutes on two cores."""


def find(run: Run, options: ChunkOptions) -> Stop:
    """Offer greedy schedules, then those of the model, the most promising grid first.

    With time to spare, the model is solved on finer grids as well.
    """
    run.merit = _merit(run, options)
    try:
        starts = _by_algorithm_1(run, options) or _by_greedy(run, options)
    except LimitReached:
        return Stop.TIME_LIMIT
    if run.enough and options.stop_at_proof:
        return run.reached
    stop = Stop.TOO_LARGE
    impossible: list[Infeasible] = []
    for hops, enough, known in starts:
        if run.expired:
            return Stop.TIME_LIMIT
        try:
            stop = _on_grid(_model(run, options, hops), options, enough=enough, known=known)
        except Infeasible as error:
            stop = Stop.MODEL_OPTIMAL
            impossible.append(error)
        if stop in LAST or (run.best and run.time_limit is None):
            break
    if run.best is None and impossible:
        raise impossible[0]
    return stop


def _model(run: Run, options: ChunkOptions, hops: arcs.Arcs) -> ChunkModel:
    from formulations.engines.te_ccl.chunk_milp import ChunkModel  # noqa: PLC0415  it loads the solver

    return ChunkModel(
        arcs.slowed(hops),
        demand(run.problem),
        run,
        memory=memory(run.problem),
        at_once=not options.store_and_forward,
    )


def _on_grid(
    model: ChunkModel, options: ChunkOptions, *, enough: int, known: Schedule | None
) -> Stop:
    """Offer what the model finds on one grid, where `enough` epochs have a solution.

    Raises
    ------
    Infeasible
        If the horizon is too small.
    """
    run = model.run
    start = (
        None
        if run.start is None or run.problem.windows
        else onto(run.start, model.hops, model.demand)
    )
    if start is not None and start.horizon <= enough and _offered(run, options, start):
        enough, known = start.horizon, start
        run.note(f"the plan given sets the horizon: {enough} epochs")
    search = Horizons(model, options, enough, known, start)
    size = model.measure(search.high if options.objective == "fewest-epochs" else search.most)
    most = max(size.variables, size.nonzeros)
    if most > ENTRIES or (run.best is not None and size.variables > VARIABLES):
        run.note(
            f"a model of {size.variables:,} variables and {size.nonzeros:,} entries was not "
            "built, it would be too large"
        )
        return Stop.TOO_LARGE
    return search.search()


def _by_greedy(run: Run, options: ChunkOptions) -> list[Start]:
    """Offer greedy schedules on the grids in question.

    Return the grids with their horizons, from that of the best schedule on to finer ones.
    """
    grids = _grids(run, options)
    starts: list[Start] = []
    best, first = math.inf, 0
    for hops in grids:
        tau = hops.grid.epoch_duration
        run.report(f"greedy schedule with epochs of {tau:.6g} µs")
        try:
            plan = _greedy(run, options, hops, PATIENCE / len(grids))
        except Infeasible:
            if not starts and hops is grids[-1]:
                raise
            continue
        fits = plan.horizon <= (options.horizon or plan.horizon)
        makespan = run.replay(plan) if fits else math.inf
        # A finer grid costs a larger model, so it must gain enough.
        if makespan < best * (1 - WORTH):
            best, first = makespan, len(starts)
        known = options.greedy_start and fits and _offered(run, options, plan)
        enough = max(plan.horizon, _by_priority(run, options, hops))
        starts.append((hops, enough, plan if known else None))
        if known and (run.enough or run.expired):
            break
    return starts[first:]


def _by_priority(run: Run, options: ChunkOptions, hops: arcs.Arcs) -> int:
    """Offer a greedy schedule that serves one priority after the other; return its epochs.

    The fewest epochs in which all is done may be too few for the urgent to go first. 0 where
    priorities do not count, or the horizon is given.
    """
    if run.merit is None or options.horizon is not None or not prioritised(run.problem):
        return 0
    weight = tenant_priorities(run.problem)
    finish = options.objective == "finish-times"
    chunks = run.problem.collective.chunks
    urgency = np.array([weight[each.tenant] if finish else each.priority for each in chunks])
    plan = _greedy(run, options, hops, PATIENCE, urgency=urgency)
    if options.greedy_start:
        _offered(run, options, plan)
    return plan.horizon


def _greedy(
    run: Run,
    options: ChunkOptions,
    hops: arcs.Arcs,
    patience: float,
    *,
    urgency: np.ndarray | None = None,
) -> Schedule:
    """Return a greedy schedule that begins when all windows are over."""
    wanted, through = demand(run.problem), options.switches == "hyper-edges"
    sends = greedy(
        hops,
        wanted,
        through=through,
        seed=run.backend.seed,
        patience=patience,
        urgency=urgency,
        left=lambda: run.awaited,
    )
    plan, later = schedule(sends, hops, wanted), arcs.settled(hops.grid)
    moved = tuple(replace(send, epoch=send.epoch + later) for send in plan.sends)
    return Schedule(moved, plan.epoch_duration, plan.horizon + later)


def _offered(run: Run, options: ChunkOptions, plan: Schedule) -> bool:
    """Offer a constructed schedule, and return whether it answers the request."""
    if not options.store_and_forward:
        run.note("a schedule that stores and forwards is only a guess of the horizon")
        return False
    limited = bool(memory(run.problem).limited.size)
    try:
        run.offer(plan, message="a greedy schedule", doubted=limited)
    except ScheduleError:
        run.note("a greedy schedule that breaks a buffer is only a guess of the horizon")
        return False
    return True


def _by_algorithm_1(run: Run, options: ChunkOptions) -> list[Start]:
    """Return every grid with the horizon that Algorithm 1 finds, where the options select it."""
    if options.horizon_by != "algorithm-1":
        return []
    through = options.switches == "hyper-edges"
    fixed = (options.epoch_duration, options.horizon, run.epoch_duration)
    duration = algorithm_1(
        run,
        lambda tau: _model(run, options, _hops(run, tau, through=through)),
        offers=all(each is None for each in fixed),
    )
    grids = _grids(run, options)
    return [(hops, in_epochs(duration, hops.grid.epoch_duration), None) for hops in grids]


def _hops(run: Run, epoch_duration: float, *, through: bool) -> arcs.Arcs:
    problem = run.problem
    size = problem.collective.chunk_size
    grid = EpochGrid(
        problem.topology,
        size,
        epoch_duration,
        reverse_time=run.reverse_time,
        windows=problem.windows,
    )
    return arcs.hyper_edges(grid) if through else arcs.link_arcs(grid)


def _grids(run: Run, options: ChunkOptions) -> list[arcs.Arcs]:
    """Return the hops on every grid that the options select and that is not too fine."""
    problem = run.problem
    taus = epoch_durations(problem, options, note=run.note)
    if run.epoch_duration is not None:
        taus = [run.epoch_duration]
    found: list[arcs.Arcs] = []
    for tau in sorted(taus, reverse=True):
        hops = _hops(run, tau, through=options.switches == "hyper-edges")
        if arcs.settled(hops.grid) > arcs.LONGEST:
            run.note(
                f"epochs of {tau:.6g} µs were not tried: links have less bandwidth for "
                f"{arcs.settled(hops.grid):,} of them"
            )
            continue
        epochs = max(1.0, run.bounds[0].makespan / tau)
        cells = epochs * len(hops.routes) * len(problem.collective.chunks)
        if epochs <= EPOCHS and (not found or cells <= CELLS):
            found.append(hops)
        else:
            run.note(
                f"epochs of {tau:.6g} µs were not tried: {epochs:.2g} epochs at least, with "
                f"{cells:.2g} cells, are too many"
            )
    return found


def epoch_durations(
    problem: Problem, options: ChunkOptions, *, note: Callable[[str], None]
) -> list[float]:
    """Return the epoch durations in µs to be tried; `note` takes what made them longer."""
    topology, size = problem.topology, problem.collective.chunk_size
    taus = durations(topology, size, by=options.epoch, given=options.epoch_duration)
    if options.epoch_duration is not None:
        return taus
    if options.lengthen_short and options.epoch != "auto":
        taus = [_lengthened(topology, tau, note) for tau in taus]
    if options.epoch_multiplier > 1:
        note(f"epochs are {options.epoch_multiplier} times as long, as requested")
    return [tau * options.epoch_multiplier for tau in taus]


def _lengthened(topology: Topology, tau: float, note: Callable[[str], None]) -> float:
    longer = lengthened(topology, tau)
    if longer != tau:
        alpha = max(link.alpha for link in topology.links)
        note(
            f"epochs of {tau:.6g} µs were made {LONGER:g} times as long, since a latency of "
            f"{alpha:g} µs is more than {DOMINANT:g} of them"
        )
    return longer


def _merit(run: Run, options: ChunkOptions) -> Callable[[Result], float] | None:
    """Return what the best plan has least of, where that is not the makespan.

    With priorities and tenants it is what the objective is about, in µs of the replay.
    """
    several = prioritised(run.problem)
    if options.objective == "finish-times":
        several |= len(tenant_priorities(run.problem)) > 1
    if options.objective == "fewest-epochs" or not several:
        return None
    if run.reverse_time or run.answers is not None:
        run.note("priorities say nothing here: sums are found backwards in time")
        return None
    return weighted_finish if options.objective == "finish-times" else weighted_arrivals
