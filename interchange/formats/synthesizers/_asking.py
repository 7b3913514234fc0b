"""Settings of readers as numbers and words, and errors that begin with the name of the file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ccl.errors import FormatError, ProblemError, ScheduleError
from ccl.serialization.size import parse_size
from interchange.formats.format import Asked, Question


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
        msg = f"{name}: {error}"
        raise type(error)(msg) from None
    except ScheduleError as error:
        msg = f"{name}: its plan breaks a rule: {error}"
        raise FormatError(msg) from None


def number(asked: Asked, key: str, default: float, *, most: float, unit: str = "") -> float:
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
        msg = f"setting {key} is {word!r}; give a number above 0 and at most {most:g}{of}"
        raise FormatError(msg)
    return value


def latency(asked: Asked, key: str, default: float = 0.0) -> float:
    """Return a setting that is a latency in µs, zero allowed; errors as `number`."""
    if asked.settings.get(key, "").strip() in ("0", "0.0"):
        return 0.0
    return number(asked, key, default, most=1e9, unit="µs")


def count(asked: Asked, key: str, default: int, *, most: int) -> int:
    """Return a setting that is a whole number from 1 on, or its default; errors as `number`."""
    value = number(asked, key, default, most=most)
    if value != int(value):
        msg = f"setting {key} is {value:g}; give a whole number"
        raise FormatError(msg)
    return int(value)


def nbytes(asked: Asked, key: str, default: float) -> float:
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
        msg = f"setting {key} is {word!r}; give 1 byte to 10^18 bytes"
        raise FormatError(msg)
    return size


def choice(asked: Asked, key: str, choices: Mapping[str, str]) -> str | None:
    """Return a setting that is one of some words, or None where nothing is said.

    Raises
    ------
    FormatError
        If it is none of them.
    """
    word = asked.settings.get(key)
    if word is not None and word not in choices:
        named = ", ".join(f"{each} ({told})" for each, told in choices.items())
        msg = f"setting {key} is {word!r}; there are {named}"
        raise FormatError(msg)
    return word


def counted(many: int, what: str) -> str:
    """Return ``1 link`` or ``2 links``."""
    return f"{many:,} {what}{'' if many == 1 else 's'}"
