"""Matrices of links between GPUs: their shape, and which of their sides is the destination.

MSCCL-tools and TACCL count ``links[dst][src]`` (microsoft/msccl-tools:msccl/topologies/topology.py,
microsoft/taccl:taccl/topologies/topology.py); most other programs count the other way round. Where
a matrix is symmetric both are the same, and where it is not only the user knows.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from ccl.errors import FormatError
from interchange.formats.fields import answer, choice
from interchange.formats.format import Request

Entry = TypeVar("Entry", int, float)
Matrix = Sequence[Sequence[Entry]]

MOST_SIDE = 4_096
"""Rows of a matrix; one with more would be a file of a hundred megabytes."""

DIRECTIONS = {
    "destination-major": "row = destination, column = source, as MSCCL-tools and TACCL have it",
    "source-major": "row = source, column = destination",
}


def square(matrix: Matrix[Entry], name: str, side: int) -> None:
    """Refuse a matrix that has other than `side` rows and columns or a value below 0.

    Raises
    ------
    FormatError
        With the row that is wrong.
    """
    if not 0 < side <= MOST_SIDE:
        raise FormatError(f"at {name}: it is for {side:,} GPUs; give 1 to {MOST_SIDE:,}")
    if len(matrix) != side:
        raise FormatError(
            f"at {name}: it has {len(matrix)} rows for {side} GPUs; give one for each"
        )
    for row, values in enumerate(matrix):
        if len(values) != side:
            raise FormatError(f"at {name}[{row}]: it has {len(values)} values for {side} GPUs")
        wrong = next((each for each in values if not 0 <= each <= 1e12), None)
        if wrong is not None:
            raise FormatError(f"at {name}[{row}]: {wrong:g} is out of range; give 0 to 10^12")


def symmetric(matrix: Matrix[Entry]) -> bool:
    """Say whether a square matrix is the same with rows and columns exchanged."""
    return all(
        value == matrix[column][row]
        for row, values in enumerate(matrix)
        for column, value in enumerate(values[:row])
    )


def turned(matrix: Matrix[Entry]) -> list[list[Entry]]:
    """Return a matrix with rows and columns exchanged."""
    return [list(column) for column in zip(*matrix, strict=True)]


def direction(
    request: Request,
    matrices: Sequence[Matrix[int] | Matrix[float]],
    fits: Callable[[bool], bool] | None = None,
) -> tuple[bool, tuple[str, ...]]:
    """Say whether rows are destinations, and in a sentence how that is known.

    Parameters
    ----------
    request
        May have the answer among its settings.
    matrices
        All that share the direction; where all are symmetric there is nothing to ask.
    fits
        Says whether what else the file has fits rows that are destinations (True) or sources;
        where only one does, it is that one.

    Raises
    ------
    Question
        If it matters and is not known.
    FormatError
        If the answer is none.
    """
    silent = not choice(request, "direction", DIRECTIONS)
    if silent and all(symmetric(each) for each in matrices):
        return True, ()
    if silent and fits is not None and fits(True) != fits(False):
        by_row = fits(True)
        told = "destination" if by_row else "source"
        return by_row, (f"the row of a link is its {told}, because the sends fit no other reading",)
    doubt = (
        "its matrix is not symmetric; say whether a row is the destination or the source of its "
        "links"
    )
    word = answer(request, "direction", choices=DIRECTIONS, doubt=doubt)
    return word == "destination-major", ()
