"""For how many epochs the model of whole chunks is asked: from above, in halves, or by the paper.

The smallest horizon K that has a solution is found by descending from one that is known to be
enough, or by bisection between the latency, the lower bounds and that one. Every K that is tried
is told in the log.

Algorithm 1 of TE-CCL (appendix E) finds a horizon that is enough from models of 4, 8 and 12 long
epochs: for one candidate after the other of the whole time, in µs, it asks whether a schedule of
that time exists. As printed, its loop over candidates goes on after one has worked, so that the
last counts and not the smallest; no candidates are given, and none that works leaves its answer
undefined. Here candidates are multiples of the lower bound, `SHARES`, ascending; the first that
works ends it. A schedule on long epochs need not fit into as much time on short ones, where every
delay is rounded up anew: where it does not, the horizon is doubled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ccl.errors import Infeasible, LimitReached
from ccl.result import Stop
from ccl.schedule import Schedule
from formulations.core.run import Run
from formulations.engines.epoch_grid.epoch_options import ChunkOptions

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

    def __init__(
        self,
        model: ChunkModel,
        options: ChunkOptions,
        *,
        enough: int,
        known: Schedule | None,
        start: Schedule | None = None,
    ) -> None:
        self.start, self.at_hand = start, known
        self.asked = False
        self.ruled_out = 0
        self.model, self.options, self.run = model, options, model.run
        self.most = options.horizon or enough
        self.high = min(self.most, enough)
        # A horizon that turns out to be too small may grow up to this.
        self.limit = options.horizon or enough * 2**DOUBLINGS
        self.known = known is not None and enough <= self.most

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
        """Return a plan of at most so many epochs, None where there is none; both are noted."""
        tried = f"{horizon} epochs of {self.model.hops.grid.epoch_duration:.6g} µs"
        self.asked = True
        start = self.at_hand if self.at_hand and self.at_hand.horizon <= horizon else None
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
            If there is none.
        """
        # What latency and bounds rule out need not be asked, where more is allowed.
        self.high = min(max(self.high, self.model.least), self.limit)
        while True:
            self.model.check(self.high)
            plan = self._ask(self.high)
            if plan is not None:
                self.high, self.known = plan.horizon, True
                return
            if self.high >= self.limit:
                raise Infeasible(self.model.none(self.high))
            self.high = min(2 * self.high, self.limit)

    def _descend(self) -> Stop:
        """Ask for one epoch less until there is no solution."""
        if not self.known:
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
        """Ask for the horizon of the plan at hand where nothing else had to be asked."""
        if not (self.asked or self.options.stop_at_proof):
            self._ask(self.high)

    def _bisect(self) -> Stop:
        """Halve what lies between a horizon that is too small and one that is enough."""
        if not self.known:
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
        Whether a schedule on long epochs is an answer to what was asked.

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
