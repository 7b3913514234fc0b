"""Rounds of TE-CCL's A*, until every demand is met.

Its mathematics is the docstring of `formulations.models.te_ccl_astar`.
"""

from dataclasses import dataclass

import numpy as np

from ccl.errors import Infeasible, LimitReached, SolveError
from ccl.plans import Schedule
from formulations.core.run import Run
from formulations.engines.epoch_grid.plans import schedule, sends_at
from formulations.engines.te_ccl.round_milp import RoundModel, Rounds, State, first_state

SENDS = 1_500
"""Most sends in the model of a round that is longer than the largest delay; HiGHS solves these in
a second or so on one core."""

MOST = 3_000
"""Most sends in the model of a round that is as long as the largest delay; above, it is shorter."""

LONGEST = 4
"""Length of the longest rounds in multiples of the largest delay."""

CLOSING = 5_000
"""Most sends in the model of the last rounds together; it has no reward, so it is easier."""

STALLS = 6
"""Rounds in a row without progress after which it is given up."""

HALF = 0.5
"""Share of its bound that a round must reach when its solver is stopped by the limit."""


@dataclass
class Journey:
    """Rounds on one grid, from the first to the one after which no demand is open.

    Parameters
    ----------
    run
        Gives limits and hears news.
    rounds
        Grid and demand.
    length
        Epochs of a round, None where the size of its model decides.
    gap
        Relative gap of a round's reward at which its solver stops.
    seconds
        Limit for the solver in one round.
    shorten
        Whether the last rounds are solved again for fewer epochs.
    """

    run: Run
    rounds: Rounds
    length: int | None
    gap: float
    seconds: float
    shorten: bool

    def __post_init__(self) -> None:
        self.least, self.longest = self.length or 1, self.length or LONGEST * self.rounds.ahead
        self.number = self.stalls = 0
        self.factor = 1

    def travel(self) -> bool:
        """Offer the plan of all rounds, then shorter ones; return whether it came to the end.

        Raises
        ------
        SolveError
            If nothing is sent in round after round.
        """
        run, demand = self.run, self.rounds.demand
        states = [first_state(demand)]
        while states[-1].lacking(demand).any():
            if run.expired:
                return False
            if self.stalls >= STALLS:
                raise SolveError(
                    f"{run.formulation}: {self.stalls} rounds in a row brought no chunk on and "
                    f"{int(states[-1].lacking(demand).sum())} demands are open; allow more "
                    "seconds for a round"
                )
            after = self._round(states[-1])
            if after is not states[-1]:
                states.append(after)
        tau = self.rounds.hops.grid.epoch_duration
        run.offer(self._plan(states[-1]), message=f"rounds with epochs of {tau:.6g} µs")
        if self.shorten:
            self._close(states)
        return True

    def _plan(self, state: State) -> Schedule:
        hops = self.rounds.hops
        sends = sends_at(hops, state.epoch, hop=state.hop, chunk=state.chunk)
        return schedule(sends, hops, self.rounds.demand)

    def _close(self, states: list[State]) -> None:
        """Try an epoch less, again and again, from as early as leaves a small model."""
        run, rounds = self.run, self.rounds
        wants = rounds.demand.wants
        end = int(states[-1].arrives[wants].max())
        begin = states[-1]
        for state in reversed(states[:-1]):
            if rounds.count(state, end - state.moment, ahead=0) > CLOSING:
                break
            begin = state
        while not (run.expired or run.enough):
            run.report(f"{rounds.demand.wants.sum()} chunks by epoch {end - 1}")
            after = self._closed(begin, end - 1 - begin.moment)
            if after is None:
                break
            end = int(after.arrives[wants].max())
            run.offer(self._plan(after), message=f"the last rounds end with epoch {end}")

    def _closed(self, state: State, length: int) -> State | None:
        """Return a state `length` epochs after `state` with every demand met, if one is found."""
        wants = self.rounds.demand.wants
        flying = state.arrives[wants & np.isfinite(state.arrives)].max(initial=0.0)
        if length < 1 or flying > state.moment + length:
            return None
        model = RoundModel(self.rounds, state, length, closing=True)
        if (model.cells.held[-1][model.lacking] < 0).any():
            return None
        limit = self.seconds if self.run.left is None else min(self.seconds, self.run.left)
        try:
            outcome = self.run.backend.solve(
                model.problem(), time_limit=limit, on_report=lambda _: self.run.expired
            )
        except (Infeasible, LimitReached):
            return None
        self.run.met(outcome.size)
        return model.outcome()

    def _round(self, state: State) -> State:
        """Return the state after the next round; the same state if the round is solved anew."""
        length = self._length(state)
        self._report(state)
        after: State | None = state.later(length)
        # Else whatever there is to send on is still in flight.
        if self.rounds.count(state, length):
            after = self._solved(state, length)
        if after is None:
            return self._cut(state, length)
        self.number += 1
        if _brought(state, after) or self.rounds.waits(state):
            self.stalls, self.factor = 0, 1
        else:
            self.stalls, self.factor = self.stalls + 1, 2 * self.factor
        return after

    def _solved(self, state: State, length: int) -> State | None:
        """Return the state after a round as its model has it, None if the limit came too soon."""
        from formulations.solvers.cvxpy_highs import TerminationCondition  # noqa: PLC0415  it loads the solver

        run = self.run
        model = RoundModel(self.rounds, state, length)
        try:
            outcome = run.backend.solve(
                model.problem(),
                time_limit=self.seconds if run.left is None else min(self.seconds, run.left),
                gap=self.gap,
                on_report=lambda _: self._report(state),
            )
        except LimitReached:
            return None
        run.met(outcome.size)
        after = model.outcome()
        cut = outcome.ending in (TerminationCondition.TIME_LIMIT, TerminationCondition.STOPPED)
        poor = outcome.objective < HALF * outcome.bound and length > self.least
        return None if cut and (poor or not _brought(state, after)) else after

    def _length(self, state: State) -> int:
        """Return the longest length whose model is small enough, or the least."""
        length = self.longest
        while length > self.least:
            most = SENDS if length > self.rounds.ahead else MOST
            if self.rounds.count(state, length) <= most:
                break
            length = max(self.least, length // 2)
        return length * self.factor

    def _cut(self, state: State, length: int) -> State:
        """Make rounds shorter after one that the limit cut off, or else the limit longer."""
        if length > self.least:
            self.longest = max(self.least, length // 2)
        else:
            self.stalls += 1
            self.seconds *= 2
        return state

    def _report(self, state: State) -> bool:
        """Report how it stands, and say whether the time is up."""
        demand = self.rounds.demand
        done, all_ = state.delivered(demand), int(demand.wants.sum())
        self.run.report(f"round {self.number + 1}: {done} of {all_} chunks delivered")
        return self.run.expired


def _brought(state: State, after: State) -> bool:
    """Return whether a device has or will have a chunk after a round that it had not before."""
    return bool(np.isfinite(after.arrives).sum() > np.isfinite(state.arrives).sum())
