"""Matrices modulo a prime, compiled; `formulations.engines.tree_columns.exact` calls it."""

from __future__ import annotations

import numpy as np

from formulations.engines.kernels.kernels import inner, kernel


@kernel
def inverse(matrix, prime):
    """Return the inverse of a square matrix modulo a prime below 2**31; empty if there is none."""
    many = len(matrix)
    left = matrix.copy()
    right = np.zeros((many, many), np.int64)
    for k in range(many):
        right[k, k] = 1
    for k in range(many):
        pivot = k
        while pivot < many and left[pivot, k] == 0:
            pivot += 1
        if pivot == many:
            return np.empty((0, 0), np.int64)
        if pivot != k:
            for j in range(many):
                left[k, j], left[pivot, j] = left[pivot, j], left[k, j]
                right[k, j], right[pivot, j] = right[pivot, j], right[k, j]
        scale = _power(left[k, k], prime - 2, prime)
        for j in range(many):
            left[k, j] = left[k, j] * scale % prime
            right[k, j] = right[k, j] * scale % prime
        for i in range(many):
            factor = left[i, k]
            if i == k or factor == 0:
                continue
            for j in range(many):
                if left[k, j]:
                    left[i, j] = (left[i, j] - factor * left[k, j]) % prime
                if right[k, j]:
                    right[i, j] = (right[i, j] - factor * right[k, j]) % prime
    return right


@inner
def _power(base, exponent, prime):
    result = 1
    while exponent > 0:
        if exponent & 1:
            result = result * base % prime
        base = base * base % prime
        exponent >>= 1
    return result
