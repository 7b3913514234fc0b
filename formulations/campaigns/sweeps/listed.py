"""Lists and ranges as people write them: ``[2,4,8]``, ``2..8``, ``2..64 x2``, ``1KB..1GB x4``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from ccl.errors import FormatError, ProblemError
from ccl.serialization.quantity import parse_size

MOST_VALUES = 10_000
"""Of one range."""

_RANGE = re.compile(r"\s*(?P<low>.+?)\s*\.\.\s*(?P<high>.+?)(?:\s+x\s*(?P<factor>[\d.]+))?\s*")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")


def sizes_of(given: list[str | float]) -> tuple[float, ...]:
    """Return bytes, ascending and each once, of sizes and of ranges such as ``1KB..1GB x4``.

    Raises
    ------
    FormatError
        If one is no number of bytes, or a range has no factor above 1.
    """
    found: set[float] = set()
    for each in given:
        text = str(each)
        if ".." in text and _RANGE.fullmatch(text) is None:
            msg = f"the sizes {text!r} are no range; write it like 1KB..1GB x4"
            raise FormatError(msg)
        found.update(_range(text, parse_size, usual=None) or (parse_size(text),))
    return tuple(sorted(found))


def texts_of(text: str) -> tuple[str, ...]:
    """Return every text that one with lists stands for: ``a:n=[1,2]`` is ``a:n=1`` and ``a:n=2``.

    Raises
    ------
    ProblemError
        If a list is empty or a range is none.
    """
    pieces = _BRACKETS.split(text)
    # Every second piece was in brackets.
    choices = [_items(each) if place % 2 else (each,) for place, each in enumerate(pieces)]
    return tuple("".join(chosen) for chosen in product(*choices))


def values_of(given: Any) -> tuple[Any, ...]:
    """Return the values of a list, of a range such as ``2..8``, or of one value alone.

    Raises
    ------
    ProblemError
        If there is none.
    """
    if isinstance(given, list):
        values = tuple(value for each in given for value in values_of(each))
        if not values:
            msg = "a list of values is empty; give at least one"
            raise ProblemError(msg)
        return values
    if isinstance(given, str):
        return _range(given, _whole, usual=1) or (given,)
    return (given,)


def _items(text: str) -> tuple[str, ...]:
    parts = [each.strip() for each in text.split(",") if each.strip()]
    if not parts:
        msg = "a list in brackets is empty; give at least one value, such as [2,4,8]"
        raise ProblemError(msg)
    return tuple(str(value) for part in parts for value in values_of(part))


def _range(text: str, read: Callable[[str], float], *, usual: int | None) -> tuple[Any, ...] | None:
    """Return the numbers of a range, None where the text is none.

    `usual` is what is added where no factor is given; None where a factor has to be.
    """
    found = _RANGE.fullmatch(text)
    if found is None:
        return None
    low, high = read(found["low"]), read(found["high"])
    if low > high:
        msg = f"the range {text!r} is empty; give the smaller end first"
        raise ProblemError(msg)
    if found["factor"] is None:
        if usual is None:
            msg = f"the range {text!r} has no factor; write it like {found['low']}.."
            msg += f"{found['high']} x4"
            raise FormatError(msg)
        return _few(text, iter(range(int(low), int(high) + 1, usual)))
    factor = float(found["factor"])
    if not factor > 1:
        msg = f"the range {text!r} has the factor {factor:g}; give more than 1, such as x2"
        raise FormatError(msg)
    return _few(text, _growing(low, high, factor))


def _growing(low: float, high: float, factor: float) -> Iterator[float]:
    if low <= 0:
        msg = f"a range with a factor begins at {low:g}; begin above 0"
        raise ProblemError(msg)
    for power in range(MOST_VALUES + 1):
        value = low * factor**power
        if value > high * (1 + 1e-9):
            return
        whole = isinstance(low, int) and value == math.floor(value)
        yield int(value) if whole else value


def _few(text: str, values: Iterator[Any]) -> tuple[Any, ...]:
    found = tuple(value for value, _ in zip(values, range(MOST_VALUES + 1), strict=False))
    if len(found) > MOST_VALUES:
        msg = f"the range {text!r} has more than {MOST_VALUES:,} values; give fewer"
        raise FormatError(msg)
    return found


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        msg = f"a range has the end {text!r}; give whole numbers, such as 2..8 or 2..64 x2"
        raise ProblemError(msg) from None
