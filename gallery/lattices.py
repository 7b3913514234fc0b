"""Lattices of whole numbers, and the moves of the abelian Cayley networks that they define.

The network of a lattice L of dimension D has the vertices Z^D / L and links along the D axes, both
forth and back; it is every connected Cayley network of an abelian group with D generators. A
lattice has one basis in Hermite normal form: an upper triangular matrix whose diagonal, the
`shape`, is positive and whose other elements, the `twists` row by row, are at least 0 and below the
element of the diagonal in their column. A vertex is then one with 0 <= x[i] < shape[i].
Source: Cohen, A Course in Computational Algebraic Number Theory, 1993, section 2.4.
"""

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from ccl import text
from ccl.errors import ProblemError

HermiteForm = tuple[tuple[int, ...], tuple[int, ...]]
"""Shape and twists."""


def hermite_forms(vertices: int, dimensions: int) -> Iterator[HermiteForm]:
    """Yield every lattice for which the network has so many vertices.

    In two dimensions they are as many as the sum of the divisors of `vertices`, in three the sum of
    b c^2 over all products a b c = `vertices`. Lattices that an exchange or a turn of the axes
    takes to one another are all among them, and so are those of which an axis is no move.
    """
    for shape in _factored(vertices, dimensions):
        columns = [shape[j] for i in range(dimensions) for j in range(i + 1, dimensions)]
        for twists in itertools.product(*map(range, columns)):
            yield shape, twists


def _factored(number: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (number,)
        return
    for first in range(1, number + 1):
        if number % first == 0:
            for rest in _factored(number // first, parts - 1):
                yield (first, *rest)


def hermite_matrix(shape: Sequence[int], twists: Sequence[int]) -> np.ndarray:
    """Return the matrix of a Hermite form, shape (dimensions, dimensions).

    Raises
    ------
    ProblemError
        If a side is below 1 or the twists are not as many as pairs of dimensions.
    """
    written = "x".join(map(str, shape))
    if len(shape) < 2 or len(shape) > 6 or min(shape) < 1:
        raise ProblemError(
            f"shape {written} of a twisted torus must be 2 to 6 whole numbers from 1 on, "
            f"such as 4x4"
        )
    pairs = math.comb(len(shape), 2)
    if len(twists) != pairs or min(twists) < 0:
        raise ProblemError(
            f"a twisted torus {written} takes {text.count(pairs, 'twist')} from 0 on, one for each "
            f"two dimensions, got {'x'.join(map(str, twists))}"
        )
    matrix = np.diag(np.array(shape, dtype=np.int64))
    matrix[np.triu_indices(len(shape), 1)] = twists
    return matrix


def moves_of(matrix: np.ndarray) -> list[np.ndarray]:
    """Return where a step along each axis leads from each vertex, and last where negation does.

    Vertices are numbered with the last coordinate fastest. Steps and negation are automorphisms of
    the network, and the steps take every vertex to every other.
    """
    shape = tuple(np.diag(matrix).tolist())
    places = np.stack(np.unravel_index(np.arange(math.prod(shape)), shape), axis=1)
    steps = np.eye(len(shape), dtype=np.int64)
    return [_numbers(places + step, matrix) for step in steps] + [_numbers(-places, matrix)]


def _numbers(places: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return the numbers of the vertices that points of Z^D belong to."""
    reduced = places.copy()
    for axis, row in enumerate(matrix):
        reduced -= (reduced[:, axis] // row[axis])[:, None] * row
    return np.asarray(np.ravel_multi_index(tuple(reduced.T), tuple(np.diag(matrix).tolist())))
