"""Exchanges: one piece after the other takes another tree, while the plan hardly gets slower.

Weights of trees say how much each carries, and a whole number of pieces of each is put into order
afterwards. What links then wait for one another the weights do not know: where latency counts, the
best order of the best weights takes a third longer than they promise. So the pieces of a plan are
changed one by one. One of those that are there last gets another tree of the pool, by chance; what
starts when in the plan stays as the order of all others, the new one begins at any time that leaves
it enough, and passes put all of them right. What is not slower is the next plan, and at first
what is a little slower, too, by chance and less and less: simulated annealing (Kirkpatrick, Gelatt
and Vecchi, Science 220, 1983) with thresholds drawn from an exponential distribution.

Images of a piece under a group change with it. Where they stand for one another only trees count
under which they still meet on no link.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from formulations.core.preparing import clock
from formulations.engines.list_scheduling.reordering import Pass
from formulations.engines.tree_columns.heads_tails import Cut
from formulations.engines.tree_columns.pieces import Jobs, Pieces, images_apart

MOST, EVERY = 30_000, 400_000
"""Crossings of the pieces of a plan, and with all of their images, above which one pass, or writing
them down, takes too long to try hundreds."""

PROMISE = 1.02
"""How often longer than its weights promise a plan has to take, to be changed."""

FAR = 1.15
"""How far behind the quickest plan one may be, to be changed."""

LATE = 0.999
"""Share of the makespan from which on arrivals are the last ones."""

SWAY = 1e-3
"""By what share of it a plan may get slower at first, on average."""

HOPELESS = 1.02
"""How often longer the first order of a changed plan may take, for more passes."""

ROUNDS = 2
"""Pairs of passes over each changed plan, while they gain."""

TRIALS = 0.4
"""Share of the time for all plans, before the one that has become the quickest goes on."""

STALLED = 3_000
"""Changes in a row without a plan quicker than all before, after which it ends."""

GAIN = 1e-9
"""µs, or seconds, that count as none."""


@dataclass(frozen=True, eq=False)
class Beginning:
    """A plan to change.

    Parameters
    ----------
    plan
        Starts and arrivals.
    pieces
        What pieces along any pattern do.
    cut
        Which pieces there are.
    promised
        µs that the weights which they come from promise.
    """

    plan: Pass
    pieces: Pieces
    cut: Cut
    promised: float

    @property
    def time(self) -> float:
        """Its µs."""
        return float(self.plan[1].max())

    @property
    def small(self) -> bool:
        """Whether it has few crossings enough."""
        own, group = len(self.plan[0]), self.pieces.group
        return own <= MOST and own * (1 if group is None else group.order) <= EVERY

    def worth(self, known: float) -> bool:
        """Return whether changing it may pay off, where a plan of so many µs is known."""
        return self.time < FAR * known and min(known, self.time) > PROMISE * self.promised

    @cached_property
    def others(self) -> list[np.ndarray]:
        """The patterns that pieces of each demand may take."""
        model, pieces = self.cut.model, self.pieces
        able = (model.alone < self.time) | (self.cut.many > 0)
        if pieces.group is not None:
            whole, used, order = pieces.whole, self.cut.used, pieces.group.order
            for place in np.flatnonzero(able).tolist():
                moved = images_apart(whole, [*used, model.patterns[place]])
                able[place] = moved is not None and moved.order == order
        demands = range(int(model.demand.max()) + 1)
        return [np.flatnonzero(able & (model.demand == each)) for each in demands]


class Exchange:
    """A plan that changes piece by piece.

    Parameters
    ----------
    begun
        The first.
    dice
        All chance.
    """

    def __init__(self, begun: Beginning, dice: np.random.Generator) -> None:
        self.begun, self.cut, self._pieces, self._dice = begun, begun.cut, begun.pieces, dice
        self._patterns, self._turns = begun.cut.pieces
        self._begins = begun.pieces.begins(self._patterns)
        self._plan, self._time, self.least = begun.plan, begun.time, begun.time
        self.stalled = 0

    def changed(self, heat: float) -> tuple[Jobs, Pass] | None:
        """Give one piece another tree, once; return the plan if none was as quick.

        A plan may get slower by `heat` on average, as a share of it.
        """
        dice, pieces, begins, (start, stop) = self._dice, self._pieces, self._begins, self._plan
        last = np.flatnonzero(stop >= LATE * self._time)
        place = int(np.searchsorted(begins, dice.choice(last), side="right")) - 1
        patterns = [*self._patterns]
        demand = self.cut.model.demand[patterns[place]]
        patterns[place] = int(dice.choice(self.begun.others[demand]))
        part = pieces.part(patterns[place])
        free = max(0.0, self._time - float((part.head + part.tail).max()))
        own = part.head + dice.random() * free
        order = np.concatenate([start[: begins[place]], own, start[begins[place + 1] :]])
        jobs = pieces.jobs(patterns, self._turns)
        plan = self._ordered(jobs, order)
        time = float(plan[1].max())
        if time <= self._time * (1 + heat * dice.exponential()):
            self._plan, self._time, self._patterns = plan, time, patterns
            self._begins = pieces.begins(patterns)
        self.stalled += 1
        if time >= self.least - GAIN:
            return None
        self.least, self.stalled = time, 0
        return replace(jobs, terms=pieces.terms(patterns)), plan

    def _ordered(self, jobs: Jobs, order: np.ndarray) -> Pass:
        """Return the plan in about this order, put right by passes where it is not hopeless."""
        passes = jobs.passes(self.cut.model.routes.transfers)
        found = passes.forward(order)
        for _ in range(ROUNDS):
            time = float(found[1].max())
            if time > HOPELESS * self._time:
                break
            again = passes.forward(-passes.backward(-found[1])[1])
            if again[1].max() >= time - GAIN:
                break
            found = again
        return found


def exchanged(
    begun: Sequence[Beginning],
    *,
    offer: Callable[[Jobs, Cut, Pass], object],
    left: Callable[[], float],
    over: Callable[[], bool],
    seed: int = 0,
) -> None:
    """Offer plans whose pieces take other trees, each quicker than those before.

    Every plan is changed for a while, then that which has become the quickest.

    Parameters
    ----------
    begun
        Plans to change.
    offer
        Takes what is quicker.
    left
        Seconds that are left.
    over
        Whether to stop.
    seed
        Of all chance.
    """
    exchanges = [Exchange(each, np.random.default_rng(seed)) for each in begun]
    start, span = clock(), max(left(), GAIN)

    def goes_on(exchange: Exchange, until: float) -> None:
        while exchange.stalled < STALLED and not over():
            done = (clock() - start) / span
            if done >= until:
                break
            found = exchange.changed(SWAY * max(0.0, 1 - done))
            if found is not None:
                offer(found[0], exchange.cut, found[1])

    for turn, each in enumerate(exchanges, start=1):
        goes_on(each, turn * TRIALS / len(exchanges))
    goes_on(min(exchanges, key=lambda each: each.least), np.inf)
