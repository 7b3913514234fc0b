"""Exact weights of trees: the last basis in whole numbers, or the nearest weights that add up.

In units in which bytes d and rates n are whole numbers, weights w and time r satisfy

    sum of w over the trees of a wish = 1, or = x of its pair;  sum of x = 1
    sum of w[T] d[T] count[i, T] = n[i] r                       each tight row i,

as many equations as the basis has columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from formulations.engines.tree_columns.exact import solved as exactly
from formulations.engines.tree_columns.master import Master, Pool
from formulations.solvers.incremental_lp import Solved

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
        amounts = [each.nbytes for each in task.wishes]
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
            weight = int(share * common) * self.nbytes[self.pool.wishes[place]]
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
    shares = _basic(master, solved, units=units, time=time)
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
    found = exactly(matrix, right)
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
        if row < len(task.wishes):
            right[k] = int(task.wishes[row].partner is None)
        elif row < master.equations:
            right[k] = 1
    for j, column in enumerate(columns.tolist()):
        if column == 0:
            matrix[bound, j] = [-units.rates[link] for link in links.tolist()]
        elif column < master.head:
            first = int(task.paired[column - 1])
            entries = ((first, -1), (first + 1, -1), (len(task.wishes), 1))
            for row, value in entries:
                if row in place:
                    matrix[place[row], j] = value
        else:
            wish = pool.wishes[column - master.head]
            if wish in place:
                matrix[place[wish], j] = 1
            counts = pool.counts[column - master.head][links].astype(object)
            matrix[bound, j] = counts * units.nbytes[wish]
    return matrix, right


def _rounded(master: Master, solved: Solved) -> dict[int, Fraction]:
    """Return weights near those of an optimum that add up exactly."""
    pool, task = master.pool, master.pool.task
    weights = master.weights(solved)
    wanted = [Fraction(1)] * len(task.wishes)
    halves = [round(float(value) * COARSE) for value in solved.values[1 : master.head]]
    for number, wish in enumerate(task.paired.tolist()):
        wanted[wish] = wanted[wish + 1] = Fraction(halves[number], sum(halves))
    whole = [round(float(weight) * COARSE) for weight in weights]
    # Trees of the last round prove the bound and came after the last solve: nothing is on them.
    whole += [0] * (len(pool.wishes) - len(whole))
    sums = [0] * len(task.wishes)
    for wish, number in zip(pool.wishes, whole, strict=True):
        sums[wish] += number
    return {
        place: wanted[wish] * Fraction(number, sums[wish])
        for place, (wish, number) in enumerate(zip(pool.wishes, whole, strict=True))
        if number and wanted[wish]
    }


def _unit(amounts: list[Fraction] | tuple[Fraction, ...]) -> Fraction:
    """Return the largest number of which all amounts are whole multiples."""
    down = math.lcm(*(each.denominator for each in amounts))
    return Fraction(math.gcd(*(int(each * down) for each in amounts)), down)
