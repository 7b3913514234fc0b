"""Sizes as people type them: ``1GB`` is 10^9 bytes, ``1GiB`` is 2^30 bytes."""

from __future__ import annotations

import math

from ccl.serialization.quantity import BINARY, DECIMAL, SIZE, parse_quantity

_DIGITS = 6


def parse_size(text: str) -> float:
    """Return the bytes that a text such as ``1GB``, ``1.5 MB``, ``64KiB`` or ``4096`` means.

    Raises
    ------
    FormatError
        If it is not a positive number with a unit of bytes or none.
    """
    return parse_quantity(text, SIZE, what="size", above=0)


def format_size(nbytes: float) -> str:
    """Return `nbytes` as the shortest of what `parse_size` reads, to six digits: ``1 MB``.

    A round binary size keeps its binary unit: 65536 is ``64 KiB``.
    """
    exact = [
        text
        for text in (_written(nbytes, DECIMAL), _written(nbytes, BINARY))
        if math.isclose(parse_size(text), nbytes, rel_tol=1e-12)
    ]
    return min(exact, key=_length, default=_written(nbytes, DECIMAL))


def _length(text: str) -> int:
    return len(text.partition(" ")[0])


def _written(nbytes: float, units: dict[str, int]) -> str:
    fitting = [name for name, unit in units.items() if nbytes >= unit] or [next(iter(units))]
    return f"{nbytes / units[fitting[-1]]:.{_DIGITS}g} {fitting[-1]}"
