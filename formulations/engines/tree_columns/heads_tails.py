"""Weights of patterns by heads and tails: how much of the data each tree should carry.

A crossing of a link can begin no earlier than its head, what comes before it along the tree, and
after it at least its tail has to follow. Within T µs the crossings of a link with heads of h or
more and tails of q or more have T - h - q for themselves (Jackson's preemptive bound for one
machine), so for every row i of links that look alike, and levels h and q,

    sum over crossings of i with head >= h, tail >= q of w[t] bytes / rate(i) <= λ (T - h - q)
    sum of w[t] over the patterns t of a demand = 1,    w >= 0,    minimise λ,

where patterns that take longer than T alone are out. The smallest T with λ <= 1 gives the weights.
With T large these are those of the best rate; where latency counts, less deep trees have more.
A `Cut` rounds the weights to whole numbers of pieces.
T is no bound on plans: trees are those of the pool, and levels are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ccl.errors import SolveError
from ccl.result import ModelSize
from formulations.engines.tree_columns.patterns import Pattern
from formulations.engines.tree_columns.routes import Routes
from formulations.engines.tree_columns.task import Task
from formulations.solvers import cp
from formulations.solvers.cvxpy_highs import Backend

FEW = 8
"""Pieces of a root below which their number is taken as it is."""

LEVELS = 6
"""Heads, and tails, that are distinguished."""

CLOSE = 1e-3
"""T is found to this share of it."""

TRIES = 12
"""Linear programs at most until T is feasible, and again until it is close."""

SHALLOW = 1e-5
"""What patterns cost by how long they take alone, as a share of λ."""

VERTICES = 4
"""Weights by chance whose mean spreads data over more trees."""

LEAST = 1e-9
"""µs, or shares, that count as none."""


class Style(NamedTuple):
    """How weights differ from the best ones.

    Few trees make all pieces wait for the same links at the same time, and the linear program does
    not see it. So it is given more time than it needs, and then prefers what fills links least.

    Parameters
    ----------
    slack
        How often T it is given.
    chance
        What chance costs at most, as a share of λ; then weights are a mean of several.
    length
        What the longest pattern costs, as a share of λ.
    """

    slack: float
    chance: float
    length: float


STYLES = (
    Style(1.0, 0.0, SHALLOW),
    Style(1.1, 0.05, 0.0),
    Style(1.0, 0.01, 0.0),
    Style(1.1, 0.0, 0.3),
    Style(1.2, 0.05, 0.0),
)
"""The best weights first."""


@dataclass(frozen=True, eq=False)
class Weights:
    """Shares of the data by pattern.

    Parameters
    ----------
    time
        T in µs.
    shares
        Of each pattern, those of a demand add up to 1, shape (patterns,).
    prices
        Of each row, what a share of more bandwidth in it is worth, shape (rows,).
    """

    time: float
    shares: np.ndarray
    prices: np.ndarray


class HeadsAndTails:
    """The linear program for pieces of some size.

    Parameters
    ----------
    task
        With the rows of links that look alike.
    patterns
        The pool.
    routes
        Where the paths of patterns have numbers.
    nbytes
        Of each demand, shape (demands,).
    pieces
        Into how many each demand is cut, by which the delays of crossings are measured.
    backend
        The solver.
    """

    def __init__(
        self,
        task: Task,
        patterns: Sequence[Pattern],
        routes: Routes,
        *,
        nbytes: np.ndarray,
        pieces: int,
        backend: Backend,
    ) -> None:
        self.task, self.backend = task, backend
        self.patterns, self.routes = patterns, routes
        self.demand = np.array([each.demand for each in patterns])
        self.nbytes = nbytes
        crossings = [self._crossings(each, routes, pieces) for each in patterns]
        self.alone = np.array([each[3] for each in crossings])
        pattern = np.repeat(np.arange(len(patterns)), [len(each[0]) for each in crossings])
        link, head, tail = (np.concatenate([each[k] for each in crossings]) for k in range(3))
        self._rows(pattern, link, head, tail)
        self._model()

    def _crossings(
        self, pattern: Pattern, routes: Routes, pieces: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Return links, heads and tails of all crossings, and how long it takes alone."""
        transfers, size = routes.transfers, self.nbytes[pattern.demand] / pieces
        numbers = np.array([routes.number(each) for each in pattern.routes])
        delays = transfers.delay(size)[numbers]
        head, tail = pattern.heads(delays.tolist())
        many = np.diff(transfers.first)[numbers]
        of = np.repeat(np.arange(len(numbers)), many)
        place = np.arange(len(of)) + np.repeat(
            transfers.first[numbers] - np.cumsum(many) + many, many
        )
        lead = transfers.lead[place]
        after = transfers.latency[numbers][of] - lead
        alone = float((head + delays + tail).max())
        return transfers.link[place], head[of] + lead, after + tail[of], alone

    def _rows(
        self, pattern: np.ndarray, link: np.ndarray, head: np.ndarray, tail: np.ndarray
    ) -> None:
        """Sum up what patterns send by row, head and tail."""
        heads, tails = _levels(head), _levels(tail)
        fold, speeds = self.task.rows.fold.tocsc(), self.task.rows.speeds
        many = np.diff(fold.indptr)[link]
        of = np.repeat(np.arange(len(link)), many)
        place = np.arange(len(of)) + np.repeat(fold.indptr[link] - np.cumsum(many) + many, many)
        row = fold.indices[place]
        busy = fold.data[place] * self.nbytes[self.demand[pattern[of]]] / speeds[row]
        at_head = np.searchsorted(heads, head[of] + LEAST, side="right") - 1
        at_tail = np.searchsorted(tails, tail[of] + LEAST, side="right") - 1
        shape = (len(speeds), len(heads), len(tails), len(self.demand))
        load = np.zeros(shape)
        np.add.at(load, (row, at_head, at_tail, pattern[of]), busy)
        # What has a later head or tail counts in earlier levels too.
        load = np.flip(np.flip(load, (1, 2)).cumsum(axis=1).cumsum(axis=2), (1, 2))
        late = np.broadcast_to(heads[None, :, None] + tails[None, None, :], shape[:3])
        self.load = load.reshape(-1, len(self.demand))
        used = self.load.any(axis=1)
        self.load, self.late = self.load[used], late.reshape(-1)[used]
        self.row = np.repeat(np.arange(len(speeds)), len(heads) * len(tails))[used]

    def _model(self) -> None:
        """Write the program down once, with T behind two parameters."""
        many, demands = len(self.demand), int(self.demand.max()) + 1
        self.weight = cp.Variable(many, bounds=[0, None])
        self.factor = cp.Variable(bounds=[0, None])
        self.room = cp.Parameter(len(self.late), nonneg=True)
        self.able = cp.Parameter(many, nonneg=True)
        each: Any = sparse.csr_array(
            (np.ones(many), (self.demand, np.arange(many))), shape=(demands, many)
        )
        load: Any = sparse.csr_array(self.load)
        self.cost = cp.Parameter(many, nonneg=True, value=SHALLOW * self.alone / self.alone.max())
        self.loads = load @ self.weight - self.room * self.factor <= 0
        self.model = cp.Problem(
            cp.Minimize(self.factor + self.cost @ self.weight),
            [each @ self.weight == 1, self.loads, self.weight <= self.able],
        )

    @property
    def size(self) -> ModelSize:
        """Of the linear program."""
        rows = len(self.load) + len(self.demand) + int(self.demand.max()) + 1
        return ModelSize(len(self.demand) + 1, rows, int(np.count_nonzero(self.load)))

    def _factor(self, time: float) -> float:
        """Return λ at a T; infinite where a demand has no pattern that is quick enough."""
        able = self.alone <= time * (1 + LEAST)
        if len(np.unique(self.demand[able])) <= int(self.demand.max()):
            return np.inf
        self.room.value = np.maximum(time - self.late, 1e-6 * time)
        self.able.value = able.astype(float)
        return self.backend.solve(self.model).objective

    def best(self, least: float = 0.0) -> Weights:
        """Return the weights of the smallest T, which is `least` or more.

        Raises
        ------
        SolveError
            If none was found.
        """
        quickest = np.full(int(self.demand.max()) + 1, np.inf)
        np.minimum.at(quickest, self.demand, self.alone)
        low, time, found = 0.0, max(least, float(quickest.max())), None
        for _ in range(TRIES):
            factor = self._factor(time)
            if factor <= 1 + CLOSE:
                found = self._weights(time)
                break
            low, time = time, time * min(max(factor, 1 + 2 * CLOSE), 2.0)
        if found is None:
            raise SolveError("no weights of trees were found")
        for _ in range(TRIES if low else 0):
            if found.time - low <= CLOSE * found.time:
                break
            middle = (low + found.time) / 2
            if self._factor(middle) <= 1 + CLOSE:
                found = self._weights(middle)
            else:
                low = middle
        return found

    def shares(self, weights: Weights, style: Style, *, seed: int) -> np.ndarray:
        """Return shares in a style near the best weights, shape (patterns,)."""
        if style == STYLES[0]:
            return weights.shares
        dice, usual = np.random.default_rng(seed), self.cost.value
        total = np.zeros(len(self.alone))
        for _ in range(VERTICES if style.chance else 1):
            by_length = style.length * self.alone / self.alone.max()
            self.cost.value = by_length + style.chance * dice.random(len(total))
            self._factor(weights.time * style.slack)
            total += self._weights(weights.time * style.slack).shares
        self.cost.value = usual
        return np.asarray(total / np.bincount(self.demand, weights=total)[self.demand])

    def _weights(self, time: float) -> Weights:
        assert self.weight.value is not None
        shares = np.maximum(self.weight.value, 0.0)
        shares[shares < 1e-7] = 0.0
        totals = np.bincount(self.demand, weights=shares)
        prices = np.zeros(len(self.task.rows.speeds))
        np.add.at(prices, self.row, np.maximum(self.loads.dual_value, 0.0))
        return Weights(time, shares / totals[self.demand], prices)


def _levels(values: np.ndarray) -> np.ndarray:
    """Return few levels, the least among them, that divide values evenly."""
    known = np.unique(np.round(values, 9))
    if len(known) <= LEVELS:
        return known
    return np.unique(np.quantile(known, np.linspace(0, 1, LEVELS), method="lower"))


def counted(shares: np.ndarray, pieces: int) -> np.ndarray:
    """Return whole numbers of pieces that are nearest to the shares, by largest remainders."""
    exact = shares * pieces
    found = np.floor(exact + LEAST).astype(np.int64)
    order = np.argsort(found - exact, kind="stable")
    missing = pieces - int(found.sum())
    for turn in range(missing):
        found[order[turn % len(order)]] += 1
    for _ in range(-missing):
        found[int(np.argmax(found))] -= 1
    return found


def rounding(model: HeadsAndTails, shares: np.ndarray, pieces: int) -> tuple[float, np.ndarray]:
    """Return by how much the busiest link grows with whole pieces, and how many of each pattern."""
    many = np.zeros(len(shares), dtype=np.int64)
    for demand in range(int(model.demand.max()) + 1):
        own = np.flatnonzero((model.demand == demand) & (shares > 0))
        many[own] = counted(shares[own], pieces)
    first = model.load[model.late == model.late.min()]
    return float((first @ (many / pieces)).max() / (first @ shares).max()), many


@dataclass(frozen=True, eq=False)
class Cut:
    """Whole numbers of pieces.

    Parameters
    ----------
    model
        With the patterns.
    parts
        Into which every chunk is cut.
    many
        Pieces of each pattern, shape (patterns,).
    excess
        How often longer the busiest link is busy than with the shares that it was made of.
    """

    model: HeadsAndTails
    parts: int
    many: np.ndarray
    excess: float

    @property
    def used(self) -> list[Pattern]:
        """The patterns that have pieces."""
        return [self.model.patterns[k] for k in np.flatnonzero(self.many).tolist()]

    @property
    def staged(self) -> bool:
        """Whether pieces go in stages, where sends name what they carry and few can do without."""
        return any(each.staged for each in self.used)

    @property
    def pieces(self) -> tuple[list[Pattern], np.ndarray]:
        """The pattern of each piece, demand after demand, and its turn among those, 0 to 1."""
        taken = np.repeat(np.arange(len(self.many)), self.many)
        place = np.arange(len(taken)) - np.repeat(np.cumsum(self.many) - self.many, self.many)
        turns = (place + 0.5) / self.many[taken]
        order = np.lexsort((turns, self.model.demand[taken]))
        return [self.model.patterns[k] for k in taken[order].tolist()], turns[order]

    @property
    def key(self) -> object:
        """The same for cuts that are alike."""
        return self.parts, self.many.tobytes()


@dataclass(frozen=True, eq=False)
class Near:
    """Weights, and the numbers of pieces that their shares may be rounded to."""

    model: HeadsAndTails
    weights: Weights
    style: Style
    per_root: int
    parts: int
    most: int

    @cached_property
    def shares(self) -> np.ndarray:
        """Of each pattern, shape (patterns,)."""
        return self.model.shares(self.weights, self.style, seed=self.parts)

    def options(self) -> list[Cut]:
        """Return the cuts, the nearest first."""
        few = self.parts * self.per_root < FEW
        last = self.parts if few else min(2 * self.parts, self.most)
        first = self.parts if few else self.parts // 2 + 1
        tried = sorted(range(first, last + 1), key=lambda each: abs(each - self.parts))
        return [self.cut(each) for each in tried]

    def cut(self, parts: int) -> Cut:
        """Return the cut of every chunk into so many parts."""
        excess, many = rounding(self.model, self.shares, parts * self.per_root)
        return Cut(self.model, parts, many, max(1.0, round(excess, 6)))
