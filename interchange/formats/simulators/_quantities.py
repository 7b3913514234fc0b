"""Numbers of simulators' files: exact decimals, so that what is written is read back bit by bit."""

from __future__ import annotations

import re
from decimal import Decimal

from ccl.errors import FormatError

_LONGEST = 60
"""Characters of a number; more digits than a double has are no use."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?")
_RATE = re.compile(
    r"(?P<number>[\d.eE+-]*[\d.])(?P<prefix>[kKMGT]?)(?P<two>i?)(?P<unit>bps|b/s|Bps|B/s)"
)
_DELAY = re.compile(r"(?P<number>[\d.eE+-]*[\d.])(?P<unit>s|ms|us|µs|ns|ps|fs)")
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
_EXPONENTS = {"s": 6, "ms": 3, "us": 0, "µs": 0, "ns": -3, "ps": -6, "fs": -9}


def decimal(word: str, what: str) -> Decimal:
    """Return a finite number; `what` it is begins the sentence if it is none.

    Raises
    ------
    FormatError
        If it is none.
    """
    if len(word) > _LONGEST or _NUMBER.fullmatch(word) is None:
        raise FormatError(f"{what} is {short(word)}, which is no number; write it like 12.5")
    return Decimal(word)


def counted(word: str, what: str, *, least: int, most: int) -> int:
    """Return a whole number from `least` to `most`; errors as `decimal`."""
    if re.fullmatch(r"\d{1,18}", word) is None or not least <= int(word) <= most:
        raise FormatError(
            f"{what} is {short(word)}; give a whole number from {least:,} to {most:,}"
        )
    return int(word)


def rate(word: str, what: str) -> float:
    """Return GB/s of a rate such as ``200Gbps``; bits and bytes, thousands and 1,024s.

    Units are those of ns-3's DataRate: a small b is a bit, a large B a byte.

    Raises
    ------
    FormatError
        If it is none, or not positive.
    """
    found = _RATE.fullmatch(word)
    if found is None:
        raise FormatError(
            f"{what} is {short(word)}, which is no rate; write it like 200Gbps or 25GBps"
        )
    base = 1024 if found["two"] else 1000
    bits = decimal(found["number"], what) * base ** _POWERS[found["prefix"]]
    if found["unit"].startswith("B"):
        bits *= 8
    value = float((bits / 8).scaleb(-9))
    if not 0 < value < float("inf"):
        raise FormatError(f"{what} is {short(word)}; give a positive rate, like 200Gbps")
    return value


def delay(word: str, what: str) -> float:
    """Return µs of a delay such as ``0.0005ms``.

    Raises
    ------
    FormatError
        If it is none, or negative.
    """
    found = _DELAY.fullmatch(word)
    if found is None:
        raise FormatError(
            f"{what} is {short(word)}, which is no delay; write it like 0.0005ms or 500ns"
        )
    value = float(decimal(found["number"], what).scaleb(_EXPONENTS[found["unit"]]))
    if not 0 <= value < float("inf"):
        raise FormatError(f"{what} is {short(word)}; give zero or more, like 500ns")
    return value


def text_of(value: float, *, times: int = 1, shift: int = 0) -> str:
    """Return a number, `times` and shifted by a power of ten, with all its digits."""
    exact = (Decimal(repr(float(value))) * times).scaleb(shift).normalize()
    return f"{exact:f}" if abs(exact.adjusted()) < 20 else str(exact)


def short(word: str) -> str:
    """Return a word for a sentence."""
    return repr(word if len(word) <= 40 else word[:37] + "...")


def many(count: int, one: str, more: str | None = None) -> str:
    """Return ``1 switch`` or ``2 switches``."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"
