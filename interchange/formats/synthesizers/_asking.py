"""Settings of readers as numbers and words, and errors that begin with the name of the file.

Matrices of links between GPUs: their shape, and which of their sides is the destination.

MSCCL-tools and TACCL count ``links[dst][src]`` (microsoft/msccl-tools:msccl/topologies/topology.py,
microsoft/taccl:taccl/topologies/topology.py); most other programs count the other way round. Where
a matrix is symmetric both are the same, and where it is not only the user knows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from ccl.errors import FormatError, ProblemError, ScheduleError
from ccl.serialization.quantity import parse_size
from interchange.formats.format import Question, Request


@contextmanager
def about(name: str) -> Iterator[None]:
    """Begin the errors of a block with the name of a file; a broken plan is an error of its file.

    Raises
    ------
    FormatError
        For a `FormatError` and for a `ScheduleError`.
    ProblemError
        For a `ProblemError`.
    """
    try:
        yield
    except Question:
        raise
    except (FormatError, ProblemError) as error:
        raise type(error)(f"{name}: {error}") from None
    except ScheduleError as error:
        raise FormatError(f"{name}: its plan breaks a rule: {error}") from None


def number(asked: Request, key: str, default: float, *, most: float, unit: str = "") -> float:
    """Return a setting that is a positive number, or its default.

    Raises
    ------
    FormatError
        If it is no number above 0 and at most `most`.
    """
    word = asked.settings.get(key)
    if word is None:
        return default
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0 < value <= most:
        of = f" {unit}" if unit else ""
        raise FormatError(
            f"setting {key} is {word!r}; give a number above 0 and at most {most:g}{of}"
        )
    return value


def latency(asked: Request, key: str, default: float = 0.0) -> float:
    """Return a setting that is a latency in µs, zero allowed; errors as `number`."""
    if asked.settings.get(key, "").strip() in ("0", "0.0"):
        return 0.0
    return number(asked, key, default, most=1e9, unit="µs")


def count(asked: Request, key: str, default: int, *, most: int) -> int:
    """Return a setting that is a whole number from 1 on, or its default; errors as `number`."""
    value = number(asked, key, default, most=most)
    if value != int(value):
        raise FormatError(f"setting {key} is {value:g}; give a whole number")
    return int(value)


def nbytes(asked: Request, key: str, default: float) -> float:
    """Return a setting that is a size such as ``1MB``, in bytes, or its default.

    Raises
    ------
    FormatError
        If it is no size.
    """
    word = asked.settings.get(key)
    if word is None:
        return default
    size = parse_size(word)
    if not 1 <= size <= 1e18:
        raise FormatError(f"setting {key} is {word!r}; give 1 byte to 10^18 bytes")
    return size


def choice(asked: Request, key: str, choices: Mapping[str, str]) -> str | None:
    """Return a setting that is one of some words, or None where nothing is said.

    Raises
    ------
    FormatError
        If it is none of them.
    """
    word = asked.settings.get(key)
    if word is not None and word not in choices:
        named = ", ".join(f"{each} ({told})" for each, told in choices.items())
        raise FormatError(f"setting {key} is {word!r}; there are {named}")
    return word


def counted(many: int, what: str) -> str:
    """Return ``1 link`` or ``2 links``."""
    return f"{many:,} {what}{'' if many == 1 else 's'}"


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
    asked: Request,
    matrices: Sequence[Matrix[int] | Matrix[float]],
    fits: Callable[[bool], bool] | None = None,
) -> tuple[bool, tuple[str, ...]]:
    """Say whether rows are destinations, and in a sentence how that is known.

    Parameters
    ----------
    asked
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
    word = choice(asked, "direction", DIRECTIONS)
    if word is not None:
        return word == "destination-major", ()
    if all(symmetric(each) for each in matrices):
        return True, ()
    if fits is not None and fits(True) != fits(False):
        by_row = fits(True)
        told = "destination" if by_row else "source"
        return by_row, (f"the row of a link is its {told}, because the sends fit no other reading",)
    raise Question(
        f"{asked.name}: its matrix is not symmetric; say whether a row is the destination or "
        "the source of its links",
        key="direction",
        choices=DIRECTIONS,
    )
