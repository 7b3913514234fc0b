"""Systems of whole numbers are exactly_solved exactly, whatever their numbers."""

from fractions import Fraction

import numpy as np
import pytest

from formulations.engines.tree_columns.master import PRIME, exactly_solved


@pytest.mark.parametrize(
    ("many", "largest"), [(1, 5), (3, 10), (8, 1000), (30, 12), (12, 10**9), (6, 10**25)]
)
def test_a_solution_solves_the_system(many, largest):
    draw = np.random.default_rng(many)
    numbers = [int(each) * largest // 100 for each in draw.integers(-100, 101, many * many)]
    matrix = np.array(numbers, dtype=object).reshape(many, many)
    matrix[np.arange(many), np.arange(many)] += largest * many + 1
    right = np.array([int(each) for each in draw.integers(-50, 50, many)], dtype=object)

    found = exactly_solved(matrix, right)

    assert found is not None
    for row, value in zip(matrix.tolist(), right.tolist(), strict=True):
        assert sum(Fraction(a) * x for a, x in zip(row, found, strict=True)) == value


def test_thirds_are_thirds():
    found = exactly_solved(np.array([[3, 0], [1, 7]], dtype=object), np.array([1, 0], dtype=object))

    assert found == [Fraction(1, 3), Fraction(-1, 21)]


def test_a_hilbert_matrix():
    """Its inverse has whole numbers; times 27,720 so has it, with 6 rows."""
    many = 6
    matrix = np.array(
        [[27720 // (i + j + 1) for j in range(many)] for i in range(many)], dtype=object
    )
    right = np.array([27720] + [0] * (many - 1), dtype=object)

    found = [36, -630, 3360, -7560, 7560, -2772]
    assert exactly_solved(matrix, right) == [Fraction(each) for each in found]


def test_no_single_solution_is_none():
    matrix = np.array([[1, 2], [2, 4]], dtype=object)

    assert exactly_solved(matrix, np.array([1, 2], dtype=object)) is None
    assert exactly_solved(np.array([[PRIME]], dtype=object), np.array([1], dtype=object)) is None
