"""Small things of writing: counts, lists that end, bytes."""

from __future__ import annotations

from collections.abc import Sequence

from ccl.explain.told import number

MOST_LINES = 40
"""Lines of one kind that are told; how many are left out is said."""


def count(many: int, what: str) -> str:
    """Write ``1 hop`` or ``3 hops``."""
    return f"{many:,} {what}{'' if many == 1 else 's'}"


def listing(names: Sequence[str], most: int = 6) -> str:
    """Write ``a, b and c``, or the first of many and how many more there are."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def bounded(lines: Sequence[str], what: str, most: int = MOST_LINES) -> list[str]:
    """Return at most so many lines, and how many more there would be."""
    if len(lines) <= most:
        return list(lines)
    return [*lines[:most], f"  and {count(len(lines) - most, what)} more"]


def bytes_text(nbytes: float) -> str:
    """Write a number of bytes with a decimal prefix, in four digits."""
    units = ("B", "kB", "MB", "GB", "TB")
    power = 0
    while nbytes >= 1000 and power < len(units) - 1:
        nbytes, power = nbytes / 1000, power + 1
    return f"{number(nbytes, 4)} {units[power]}"
