"""Rows of a model as one sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


def rows(row: np.ndarray, column: np.ndarray, shape: tuple[int, int], *, value: Any = 1.0) -> Any:
    """Return a sparse matrix with `value` at each (row, column); entries at one place add up.

    Its type is Any because CVXPY's expressions, which it is multiplied with, are untyped.
    """
    values = np.broadcast_to(np.asarray(value, dtype=float), np.shape(row))
    return sparse.csr_array((values, (row, column)), shape=shape)
