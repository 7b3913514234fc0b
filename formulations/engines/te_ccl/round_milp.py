"""Rounds of TE-CCL's A*, until every demand is met: the integer program of each.

Its mathematics is the docstring of `formulations.models.te_ccl_astar`. Each variable is one entry
of a flat vector, each family of rows one sparse matrix. Epochs inside a round count from its first,
0; those of the whole plan are called moments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ccl.errors import Infeasible, LimitReached, SolveError
from ccl.plans import Schedule
from formulations.core.run import Run
from formulations.engines.epoch_grid.arcs import Arcs, capacity_rows, limit_rows, rows
from formulations.engines.epoch_grid.plans import Demand, nearest, schedule, sends_at
from formulations.engines.epoch_grid.windows import CellProgram, Cells
from formulations.solvers import cp


@dataclass(frozen=True)
class State:
    """Where a plan stands when a round begins.

    Parameters
    ----------
    moment
        First epoch of the round.
    arrives
        Moment from which on a device that stores has a chunk, be it there, in flight or never
        (inf), shape (devices, chunks). Beyond `moment` it is the paper's look-ahead Q.
    epoch, hop, chunk
        Moment, hop and chunk of every send so far, each shape (sends,).
    """

    moment: int
    arrives: np.ndarray
    epoch: np.ndarray
    hop: np.ndarray
    chunk: np.ndarray

    def lacking(self, demand: Demand) -> np.ndarray:
        """Return which demands are neither met nor in flight, shape (devices, chunks)."""
        return np.asarray(demand.wants & np.isinf(self.arrives))

    def delivered(self, demand: Demand) -> int:
        """Return how many demands are met when the round begins."""
        return int((demand.wants & (self.arrives <= self.moment)).sum())

    def later(self, length: int) -> State:
        """Return the same, `length` epochs later."""
        return replace(self, moment=self.moment + length)

    def extended(
        self, length: int, *, hops: Arcs, epoch: np.ndarray, hop: np.ndarray, chunk: np.ndarray
    ) -> State:
        """Return the state `length` epochs later, with more sends.

        Parameters
        ----------
        length
            Epochs of the round.
        hops
            What `hop` counts.
        epoch, hop, chunk
            Epoch in the round, hop and chunk of every send of the round, each shape (n,).
        """
        arrives = self.arrives.copy()
        there = hops.stores[hops.dst[hop]]
        moment = self.moment + (epoch + hops.delay[hop])[there]
        np.minimum.at(arrives, (hops.dst[hop][there], chunk[there]), moment)
        return State(
            self.moment + length,
            arrives,
            epoch=np.concatenate([self.epoch, epoch + self.moment]),
            hop=np.concatenate([self.hop, hop]),
            chunk=np.concatenate([self.chunk, chunk]),
        )


def first_state(demand: Demand) -> State:
    """Return the state before the first round."""
    none = np.zeros(0, dtype=int)
    return State(0, np.where(demand.has, 0.0, np.inf), epoch=none, hop=none, chunk=none)


@dataclass(frozen=True)
class Rounds:
    """The rounds of one demand on one grid.

    Parameters
    ----------
    hops
        Links or hyper-edges on the grid.
    demand
        Who has and wants which chunk.
    gamma
        How much a chunk in flight counts beside one that has arrived, in (0, 1).
    """

    hops: Arcs
    demand: Demand
    gamma: float

    @cached_property
    def ahead(self) -> int:
        """Most epochs from a send to the device that stores it, through devices that cannot."""
        hops = self.hops
        far = np.full_like(hops.distance, np.inf)
        np.minimum.at(far, (hops.src, hops.dst), hops.delay.astype(float))
        for middle in np.flatnonzero(~hops.stores):
            np.minimum(far, far[:, middle, None] + far[None, middle, :], out=far)
        between = far[np.ix_(hops.stores, hops.stores)]
        np.fill_diagonal(between, 0.0)
        return int(between[np.isfinite(between)].max(initial=1))

    def reach(self, state: State) -> np.ndarray:
        """Epochs from the nearest device that has or will have a chunk, (devices, chunks)."""
        return nearest(self.hops.distance, np.where(np.isfinite(state.arrives), 0.0, np.inf))

    def waits(self, state: State) -> bool:
        """Return whether something is still in flight, or holds links, when the round begins."""
        hops, flying = self.hops, np.isfinite(state.arrives) & (state.arrives > state.moment)
        until = state.epoch + (hops.begin + hops.occupancy)[state.hop]
        return bool(flying.any() or (until > state.moment).any())

    def count(self, state: State, length: int, *, ahead: int | None = None) -> int:
        """Count the sends of the round of `length` epochs that begins with `state`."""
        first, stop = self._window(state, length, self.ahead if ahead is None else ahead)
        return int(np.maximum(stop - first, 0.0).sum())

    def cells(self, state: State, length: int, *, ahead: int | None = None) -> Cells:
        """Lay out the variables of the round of `length` epochs that begins with `state`.

        The look-ahead is of `ahead` epochs, by default as many as anything may need to arrive.

        A send exists if it can be made, the chunk is not there or in flight there already, and
        it leads nearer to a device that lacks the chunk than all that have it.
        """
        hops = self.hops
        further = self.ahead if ahead is None else ahead
        last = length + further
        first, stop = self._window(state, length, further)
        epoch = np.arange(last)[:, None, None]
        able = (epoch >= first) & (epoch < stop)
        there = np.maximum(state.arrives - state.moment, 0.0)
        moment = np.arange(last + 1)[:, None, None]
        exists = (moment >= nearest(hops.distance, there)) & np.isinf(there)
        exists &= self._nearer(state) & hops.stores[:, None]
        held = np.full(exists.shape, -1)
        held[exists] = np.arange(int(exists.sum()))
        epochs, hop, chunk = np.nonzero(able)
        return Cells(last, epochs, hop, chunk, held)

    def _window(self, state: State, length: int, ahead: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the first epoch of each send and the one after the last, (hops, chunks)."""
        hops, last = self.hops, length + ahead
        there = np.maximum(state.arrives - state.moment, 0.0)
        useful = np.isinf(there) & self._nearer(state)
        # What does not store sends on what came in by the end of the round.
        starts = np.where(hops.stores[hops.src], length, last)
        stop = np.minimum(starts, last - hops.delay + 1)[:, None]
        able = useful[hops.dst] & (useful | np.isfinite(there))[hops.src]
        # What is in flight to a device arrives when it does, even if others are nearer by now.
        first = np.where(np.isfinite(there), there, nearest(hops.distance, there))
        return first[hops.src], np.where(able, stop, 0)

    def _nearer(self, state: State) -> np.ndarray:
        """Return whether a device is nearer to one that lacks a chunk than all that have it."""
        far, near, lacking = self.hops.distance, self.reach(state), state.lacking(self.demand)
        nearer = np.zeros(lacking.shape, dtype=bool)
        for chunk in np.flatnonzero(lacking.any(axis=0)):
            goals = np.flatnonzero(lacking[:, chunk])
            nearer[:, chunk] = (far[:, goals] < near[goals, chunk]).any(axis=1)
        return nearer


@dataclass(frozen=True)
class _Levels:
    """The variables z: whether a chunk is within a distance of a device that lacks it.

    Parameters
    ----------
    member, row
        Number of a variable b and of the z that it allows, shape (entries,).
    reward
        Reward of each z, shape (levels,).
    """

    member: np.ndarray
    row: np.ndarray
    reward: np.ndarray


class RoundModel(CellProgram):
    """The integer program of one round.

    Parameters
    ----------
    rounds
        Grid and demand.
    state
        What the round starts from.
    length
        Epochs in which sends may start.
    closing
        Whether every demand must be met at the end of the last of these epochs, without a
        look-ahead and without a reward.
    """

    def __init__(self, rounds: Rounds, state: State, length: int, *, closing: bool = False) -> None:
        self.rounds, self.state, self.length = rounds, state, length
        self.closing = closing
        self.hops = rounds.hops
        self.lacking, self.reach = state.lacking(rounds.demand), rounds.reach(state)
        self.cells = rounds.cells(state, length, ahead=0 if closing else None)
        self.most = self.hops.most[self.cells.hop]
        self.levels = self._levels()
        self.near = cp.Variable(len(self.levels.reward), bounds=[0, 1])

    def problem(self) -> cp.Problem:
        """Return the program; its values are read by `outcome`."""
        rules = [
            *self.buffer_rows(),
            *self.held_rows(self._stored()),
            *self.switch_rows(),
            *self._link_rows(),
        ]
        if self.closing:
            met = self.cells.held[-1][self.lacking]
            return cp.Problem(cp.Minimize(0), [*rules, self.buffers[met] == 1])
        rules += self._level_rows()
        reward = self._rewards() @ self.buffers + self.levels.reward @ self.near
        return cp.Problem(cp.Maximize(reward), rules)

    def outcome(self) -> State:
        """Return the state at the end of the round, in the solution that the variables have."""
        cells = self.cells
        which = self.sent
        return self.state.extended(
            self.length,
            hops=self.hops,
            epoch=cells.epoch[which],
            hop=cells.hop[which],
            chunk=cells.chunk[which],
        )

    def _stored(self) -> np.ndarray:
        """Return the sends of what a device comes to hold in the round."""
        cells = self.cells
        there = cells.held[cells.epoch, self.hops.src[cells.hop], cells.chunk]
        return np.flatnonzero(there >= 0)

    def _link_rows(self) -> list[cp.Constraint]:
        """Keep links and shared limits to what earlier rounds leave of them."""
        cells, state, hops = self.cells, self.state, self.hops
        until = state.epoch + np.maximum(hops.delay, hops.begin + hops.occupancy)[state.hop]
        still = np.flatnonzero(until >= state.moment)
        before = state.epoch[still] - state.moment
        # Rows count epochs from that of the oldest send that may still hold a link.
        first = min(0, int(before.min(initial=0)))
        epoch = np.concatenate([cells.epoch, before]) - first
        hop = np.concatenate([cells.hop, state.hop[still]])
        families = [capacity_rows(hops, epoch, hop), *limit_rows(hops, epoch, hop)]
        new = len(cells.epoch)
        rules: list[cp.Constraint] = []
        for matrix, capacity in families:
            taken = matrix[:, new:].sum(axis=1)
            mine = matrix[:, :new]
            load = mine @ self.most
            binding = np.flatnonzero((load > 0) & (load + taken > capacity))
            if binding.size:
                free = np.maximum(capacity - taken, 0.0)[binding]
                rules.append(mine[binding] @ self.sends <= free)
        return rules

    def _levels(self) -> _Levels:
        """Lay out the z of every open demand, distance and epoch of the look-ahead."""
        far, near = self.hops.distance, self.reach
        stores = np.flatnonzero(self.hops.stores)
        member: list[np.ndarray] = []
        row: list[np.ndarray] = []
        reward: list[float] = []
        for device, chunk in np.argwhere(self.lacking).tolist():
            away = far[stores, device]
            found = np.unique(away[(away > 0) & (away < near[device, chunk])])
            gains = self._gains(found, float(near[device, chunk]))
            for level, gain in zip(found.tolist(), gains.tolist(), strict=True):
                within = stores[away <= level]
                for epoch in range(self.length, self.cells.horizon + 1):
                    numbers = self.cells.held[epoch, within, chunk]
                    numbers = numbers[numbers >= 0]
                    if numbers.size:
                        member.append(numbers)
                        row.append(np.full(len(numbers), len(reward)))
                        reward.append(gain / (epoch - self.length + 1))
        empty = [np.zeros(0, dtype=int)]
        return _Levels(
            np.concatenate(member or empty), np.concatenate(row or empty), np.array(reward)
        )

    def _gains(self, levels: np.ndarray, near: float) -> np.ndarray:
        """Return what coming within each distance adds to coming within the next larger one."""
        return np.asarray(self._value(levels) - self._value(np.append(levels[1:], near)))

    def _value(self, distance: np.ndarray) -> np.ndarray:
        return np.asarray(self.rounds.gamma / (1.0 + distance))

    def _level_rows(self) -> list[cp.Constraint]:
        levels = self.levels
        if not levels.reward.size:
            return []
        shape = (len(levels.reward), self.cells.buffers)
        return [self.near <= rows(levels.row, levels.member, shape) @ self.buffers]

    def _rewards(self) -> np.ndarray:
        """Reward of each b: of being there in an epoch of the round and of its look-ahead."""
        cells, far, near = self.cells, self.hops.distance, self.reach
        stores = self.hops.stores
        found = np.zeros(cells.buffers)
        away = np.where((far > 0) & stores[:, None], far, np.inf).min(axis=0)
        for epoch in range(1, cells.horizon + 1):
            number = cells.held[epoch]
            device, chunk = np.nonzero(self.lacking & (number >= 0))
            reward = np.zeros(len(device))
            if epoch <= self.length:
                reward += 1.0 / epoch
            if epoch >= self.length:
                nearest = np.minimum(away[device], near[device, chunk])
                reward += (1.0 - self._value(nearest)) / (epoch - self.length + 1)
            found[number[device, chunk]] = reward
        return found


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
