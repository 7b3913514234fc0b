"""Master of tree column generation: the weight of each tree of the pool, exact in the end.

Sets: trees T of the pool, demands c (one root of each orbit,
`formulations.engines.tree_columns.task`), rows i of links or shared limits that look alike, and
pairs (in, out) of demands of an all-reduce.

Variables, all >= 0: w[T], share of the demand's data that takes T; x[pair], share of all data that
the roots of an orbit add up and spread; R, the time in units of a first guess.

    minimise R
    sum over T of c of w[T] = 1                            c of a given root
    sum over T of c of w[T] = x[pair]                      c one of a pair
    sum over pairs of x[pair] = 1                          if there are any
    sum over T of w[T] bytes[c(T)] count[i, T] / rate[i] <= R     each i

The duals are a price on every row; a tree that is cheaper than its demand pays comes in. Whatever
the prices, what the cheapest trees cost at them is a lower bound on R
(`formulations.engines.tree_columns.price`).

`exact_weights` are those of the last basis in whole numbers, or the nearest weights that add up. In
units in which bytes d and rates n are whole numbers, weights w and time r satisfy

    sum of w over the trees of a demand = 1, or = x of its pair;  sum of x = 1
    sum of w[T] d[T] count[i, T] = n[i] r                       each tight row i,

as many equations as the basis has columns.

`exactly_solved` makes exact rationals from the basis of a floating-point optimum. What a solver
says of a basis is which columns carry something and which rows are tight; that is a square system
of whole numbers. It is solved modulo a prime and lifted digit by digit (Dixon, Numerische
Mathematik 40, 1982), which takes as many small products as the answer has digits, then read as
fractions and checked exactly. So nothing is left of the solver's rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from formulations.engines.kernels.maxflow import inverse
from formulations.engines.tree_columns.task import Column, Task
from formulations.solvers import cp
from formulations.solvers.cvxpy_highs import Backend, Growing, Solved


@dataclass
class Pool:
    """Trees found so far.

    Parameters
    ----------
    task
        Of what.
    columns
        The trees.
    demands
        Place of the demand of each.
    counts
        How often the rows count each, one sparse column each, shape (rows, 1).
    """

    task: Task
    columns: list[Column] = field(default_factory=list)
    demands: list[int] = field(default_factory=list)
    counts: list[np.ndarray] = field(default_factory=list)
    _known: dict[tuple[int, tuple[int, bytes]], int] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many trees there are."""
        return len(self.columns)

    def copy(self) -> Pool:
        """Return a pool of the same trees that grows by itself."""
        known = [*self.columns], [*self.demands], [*self.counts], {**self._known}
        return Pool(self.task, *known)

    def add(self, demand: int, column: Column) -> int:
        """Keep a tree unless it is known; return its place."""
        key = demand, column.key
        place = self._known.setdefault(key, len(self.columns))
        if place == len(self.columns):
            self.columns.append(column)
            self.demands.append(demand)
            self.counts.append(self.task.counts(column).astype(np.int32))
        return place

    def loads(self, first: int) -> sparse.csc_array:
        """Return µs of each row for each tree from one on, if it carries all, (rows, trees)."""
        return sparse.csc_array(self.busy(range(first, len(self))))

    def busy(self, places: Sequence[int]) -> np.ndarray:
        """Return the same of some trees, dense."""
        counts = np.array([self.counts[place] for place in places], dtype=float).T
        nbytes = self.task.nbytes[[self.demands[place] for place in places]]
        return np.asarray(counts * nbytes / self.task.rows.speeds[:, None])


class Master:
    """The linear program over a pool, which grows with it.

    Parameters
    ----------
    pool
        With a tree of each demand at least.
    backend
        The solver.
    """

    def __init__(self, pool: Pool, backend: Backend) -> None:
        self.pool, self._backend = pool, backend
        self.pairs = len(pool.task.paired)
        self.head = 1 + self.pairs

    @cached_property
    def unit(self) -> float:
        """µs of the first trees of all demands together."""
        pool = self.pool
        firsts = np.unique(np.array(pool.demands), return_index=True)[1]
        total = pool.busy(firsts.tolist()).sum(axis=1)
        return float(total.max()) / max(self.pairs, 1)

    @cached_property
    def program(self) -> Growing:
        """The program over the pool as it is now; it takes long to compile where that is large."""
        self.known = len(self.pool)
        return Growing(self._backend, self._model(self.pool.loads(0)))

    def _model(self, loads: sparse.csc_array) -> cp.Problem:
        task, pool = self.pool.task, self.pool
        z = cp.Variable(self.head + len(pool), bounds=[0, None])
        given = np.ones(len(task.demands))
        entries = [(demand, self.head + place, 1.0) for place, demand in enumerate(pool.demands)]
        for number, demand in enumerate(task.paired.tolist()):
            for half in (demand, demand + 1):
                given[half] = 0.0
                entries.append((half, 1 + number, -1.0))
            entries.append((len(task.demands), 1 + number, 1.0))
        if self.pairs:
            given = np.append(given, 1.0)
        row, column, value = zip(*entries, strict=True)
        shape = (len(given), z.size)
        sums: Any = sparse.coo_array((value, (row, column)), shape=shape).tocsr()
        time = np.zeros((loads.shape[0], self.head))
        time[:, 0] = -1.0
        rows: Any = sparse.csr_array(sparse.hstack([sparse.csr_array(time), loads / self.unit]))
        return cp.Problem(cp.Minimize(z[0]), [sums @ z == given, rows @ z <= 0])

    @property
    def equations(self) -> int:
        """How many rows come before those of links."""
        return len(self.pool.task.demands) + (self.pairs > 0)

    def grow(self, costs: np.ndarray | None = None) -> None:
        """Add the trees that are new in the pool, at their costs or free."""
        new = len(self.pool) - self.known
        if not new:
            return
        sums = sparse.coo_array(
            (np.ones(new), (self.pool.demands[self.known :], np.arange(new))),
            shape=(self.equations, new),
        )
        loads = self.pool.loads(self.known) / self.unit
        columns = sparse.csc_array(sparse.vstack([sums, loads]))
        self.program.add(np.zeros(new) if costs is None else costs, columns)
        self.known = len(self.pool)

    def mixed(self, carried: np.ndarray) -> Solved:
        """Return as a solution, with no basis, what trees of the pool carry, shape (trees,)."""
        rows = self.equations + len(self.pool.task.rows.rates)
        values = np.concatenate([[0.0], np.full(self.pairs, 1 / max(self.pairs, 1)), carried])
        return Solved(np.inf, values, np.zeros(rows), values < 0, np.zeros(rows, dtype=bool))

    def prices(self, solved: Solved) -> np.ndarray:
        """Return the price of each row, shape (rows,)."""
        return np.asarray(np.maximum(-solved.duals[self.equations :], 0.0))

    def weights(self, solved: Solved) -> np.ndarray:
        """Return what each tree of the pool carries, shape (trees,)."""
        return np.asarray(np.maximum(solved.values[self.head :], 0.0))


PRIME = 67_108_859
"""The largest below 2**26: sums of a thousand products of two digits fit 64 bits."""

DIGITS = 1 << 14
"""Digits after which a system is given up."""


def exactly_solved(matrix: np.ndarray, right: np.ndarray) -> list[Fraction] | None:
    """Solve a square system of whole numbers; None where its determinant is 0 modulo the prime.

    Parameters
    ----------
    matrix
        Shape (n, n), of Python's whole numbers or of 64 bits.
    right
        Shape (n,).
    """
    back = inverse((matrix % PRIME).astype(np.int64), PRIME)
    if not len(back):
        return None
    largest = max((abs(int(each)) for each in matrix.ravel()), default=0)
    kind = np.int64 if largest * PRIME * len(matrix) < 2**62 else object
    whole, rest = matrix.astype(kind), right.astype(object)
    digits: list[np.ndarray] = []
    target = 8
    while len(digits) < DIGITS:
        digit = back @ (rest % PRIME).astype(np.int64) % PRIME
        rest = (rest - (whole @ digit.astype(kind)).astype(object)) // PRIME
        digits.append(digit)
        if len(digits) == target:
            found = _read(digits)
            if found is not None and _holds(matrix, right, found):
                return found
            target *= 2
    return None


def _read(digits: list[np.ndarray]) -> list[Fraction] | None:
    """Read the digits of each unknown as a fraction; None if there are too few."""
    modulus = PRIME ** len(digits)
    values = [0] * len(digits[0])
    for digit in reversed(digits):
        values = [value * PRIME + low for value, low in zip(values, digit.tolist(), strict=True)]
    limit = math.isqrt(modulus // 2)
    common = 1
    found = []
    for value in values:
        # Denominators have much in common, so most are known by now.
        part = _fraction(value * common % modulus, modulus, limit)
        if part is None or common * part[1] > limit:
            return None
        common *= part[1]
        found.append(Fraction(part[0], common))
    return found


def _fraction(value: int, modulus: int, limit: int) -> tuple[int, int] | None:
    """Return the numerator and denominator below a limit that are `value` modulo a number."""
    if value <= limit:
        return value, 1
    if modulus - value <= limit:
        return value - modulus, 1
    before, now = (modulus, 0), (value, 1)
    while now[0] > limit:
        many = before[0] // now[0]
        before, now = now, (before[0] - many * now[0], before[1] - many * now[1])
    if now[1] == 0 or abs(now[1]) > limit:
        return None
    return (now[0], now[1]) if now[1] > 0 else (-now[0], -now[1])


def _holds(matrix: np.ndarray, right: np.ndarray, found: list[Fraction]) -> bool:
    """Return whether a solution is one, in whole numbers."""
    common = math.lcm(*(each.denominator for each in found))
    numbers = np.array([int(each * common) for each in found], dtype=object)
    return bool((matrix.astype(object) @ numbers == right.astype(object) * common).all())


COARSE = 1 << 40
"""Denominator to which weights are rounded where a basis does not do."""


@dataclass(frozen=True)
class Weights:
    """Exact weights.

    Parameters
    ----------
    shares
        Of the trees of the pool that carry anything, by their places.
    time
        µs of the busiest row with them.
    basic
        Whether they are the solution of a basis rather than rounded.
    """

    shares: dict[int, Fraction]
    time: Fraction
    basic: bool


class Units:
    """Whole numbers for bytes and rates of a task."""

    def __init__(self, pool: Pool) -> None:
        task = pool.task
        self.pool = pool
        amounts = [each.nbytes for each in task.demands]
        self.byte = _unit(amounts)
        self.nbytes = [int(each / self.byte) for each in amounts]
        rate = _unit(task.rows.rates)
        self.rates = [int(each / rate) for each in task.rows.rates]
        self.time = self.byte / rate / 1000

    def loads(self, shares: dict[int, Fraction]) -> Fraction:
        """Return the time of the busiest row, in units."""
        common = math.lcm(*(share.denominator for share in shares.values()))
        total = np.zeros(len(self.rates), dtype=object)
        for place, share in shares.items():
            weight = int(share * common) * self.nbytes[self.pool.demands[place]]
            total += self.pool.counts[place].astype(object) * weight
        return max(
            Fraction(load, rate * common)
            for load, rate in zip(total.tolist(), self.rates, strict=True)
        )


def exact_weights(master: Master, solved: Solved, *, time: Fraction | None = None) -> Weights:
    """Return the exact weights of an optimum.

    Parameters
    ----------
    master
        Which was solved.
    solved
        Its optimum.
    time
        µs of the best rate where that is fixed, else None.
    """
    units = Units(master.pool)
    some = solved.basic.any()
    shares = _basic(master, solved, units=units, time=time) if some else None
    if shares is not None:
        reached = units.loads(shares) * units.time
        if time is None or reached <= time:
            return Weights(shares, reached, basic=True)
    shares = _rounded(master, solved)
    return Weights(shares, units.loads(shares) * units.time, basic=False)


def _basic(
    master: Master, solved: Solved, *, units: Units, time: Fraction | None
) -> dict[int, Fraction] | None:
    """Return the weights of a basis, or None if one is negative or a row above the time."""
    columns = np.flatnonzero(solved.basic)
    rows = np.flatnonzero(solved.tight)
    if len(columns) != len(rows):
        return None
    matrix, right = _system(master, units, columns=columns, rows=rows)
    if not solved.basic[0]:
        assert time is not None
        fixed = time / units.time
        bound = rows >= master.equations
        ahead = [units.rates[row - master.equations] for row in rows[bound].tolist()]
        matrix[bound] *= fixed.denominator
        right[bound] = [rate * fixed.numerator for rate in ahead]
    found = exactly_solved(matrix, right)
    if found is None or min(found) < 0:
        return None
    values = dict(zip(columns.tolist(), found, strict=True))
    shares = {
        column - master.head: value
        for column, value in values.items()
        if column >= master.head and value > 0
    }
    reached = values.get(0, None if time is None else time / units.time)
    return shares if reached is not None and units.loads(shares) <= reached else None


def _system(
    master: Master, units: Units, *, columns: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of a basis at its tight rows, and the right sides."""
    pool, task = master.pool, master.pool.task
    matrix = np.zeros((len(rows), len(columns)), dtype=object)
    right = np.zeros(len(rows), dtype=object)
    place = {row: k for k, row in enumerate(rows.tolist())}
    bound = rows >= master.equations
    links = rows[bound] - master.equations
    for row, k in place.items():
        if row < len(task.demands):
            right[k] = int(task.demands[row].partner is None)
        elif row < master.equations:
            right[k] = 1
    for j, column in enumerate(columns.tolist()):
        if column == 0:
            matrix[bound, j] = [-units.rates[link] for link in links.tolist()]
        elif column < master.head:
            first = int(task.paired[column - 1])
            entries = ((first, -1), (first + 1, -1), (len(task.demands), 1))
            for row, value in entries:
                if row in place:
                    matrix[place[row], j] = value
        else:
            demand = pool.demands[column - master.head]
            if demand in place:
                matrix[place[demand], j] = 1
            counts = pool.counts[column - master.head][links].astype(object)
            matrix[bound, j] = counts * units.nbytes[demand]
    return matrix, right


def _rounded(master: Master, solved: Solved) -> dict[int, Fraction]:
    """Return weights near those of an optimum that add up exactly."""
    pool, task = master.pool, master.pool.task
    weights = master.weights(solved)
    wanted = [Fraction(1)] * len(task.demands)
    halves = [round(float(value) * COARSE) for value in solved.values[1 : master.head]]
    for number, demand in enumerate(task.paired.tolist()):
        wanted[demand] = wanted[demand + 1] = Fraction(halves[number], sum(halves))
    whole = [round(float(weight) * COARSE) for weight in weights]
    # Trees of the last round prove the bound and came after the last solve: nothing is on them.
    whole += [0] * (len(pool.demands) - len(whole))
    sums = [0] * len(task.demands)
    for demand, number in zip(pool.demands, whole, strict=True):
        sums[demand] += number
    return {
        place: wanted[demand] * Fraction(number, sums[demand])
        for place, (demand, number) in enumerate(zip(pool.demands, whole, strict=True))
        if number and wanted[demand]
    }


def _unit(amounts: list[Fraction] | tuple[Fraction, ...]) -> Fraction:
    """Return the largest number of which all amounts are whole multiples."""
    down = math.lcm(*(each.denominator for each in amounts))
    return Fraction(math.gcd(*(int(each * down) for each in amounts)), down)
