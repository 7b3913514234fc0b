"""Sizes as people type them: ``1GB`` is 10^9 bytes, ``1GiB`` is 2^30 bytes."""

from __future__ import annotations

import math
import re

from ccl.errors import FormatError

DECIMAL = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}

_UNITS = {name.lower(): nbytes for name, nbytes in (DECIMAL | BINARY).items()}
_SIZE = re.compile(r"(?P<number>[+-]?[\d._]+(?:e[+-]?\d+)?)\s*(?P<unit>[a-z]*)", re.IGNORECASE)
_DIGITS = 6


def parse_size(text: str) -> float:
    """Return the bytes that a text such as ``1GB``, ``1.5 MB``, ``64KiB`` or ``4096`` means.

    Raises
    ------
    FormatError
        If it is not a positive number with a unit of bytes or none.
    """
    found = _SIZE.fullmatch(text.strip())
    number = _number(found["number"]) if found else math.nan
    if found is None or math.isnan(number):
        msg = f"size {text!r} is not a number of bytes; write it like 1MB, 64KiB or 4096"
        raise FormatError(msg)
    nbytes = number * _unit(text, found["unit"])
    if not (nbytes > 0 and math.isfinite(nbytes)):
        msg = f"size {text!r} is {nbytes:g} bytes; give more than 0 and a finite number"
        raise FormatError(msg)
    return nbytes


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


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _unit(text: str, unit: str) -> int:
    """Bytes of a unit; prefixes alone and bits mean different things to different people."""
    if not unit:
        return 1
    nbytes = _UNITS.get(unit.lower())
    if nbytes is None or (unit.endswith("b") and unit[0].isupper()):
        prefix = unit[0].upper()
        hint = f"{prefix}B or {prefix}iB" if prefix in "KMGT" else ", ".join([*DECIMAL, *BINARY])
        msg = f"size {text!r} has the unit {unit!r}; units are bytes: write {hint}"
        raise FormatError(msg)
    return nbytes


def _written(nbytes: float, units: dict[str, int]) -> str:
    fitting = [name for name, unit in units.items() if nbytes >= unit] or [next(iter(units))]
    return f"{nbytes / units[fitting[-1]]:.{_DIGITS}g} {fitting[-1]}"
