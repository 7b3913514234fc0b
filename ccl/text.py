"""Quantities as people read them: three digits and a unit."""

from __future__ import annotations

import math
from collections.abc import Sequence

NONE = "–"


def duration(microseconds: float | None) -> str:
    """Write a time given in µs, such as ``9.8 µs`` or ``1.24 ms``."""
    if microseconds is None or not math.isfinite(microseconds):
        return NONE
    return scaled(microseconds, ("µs", "ms", "s"))


def bandwidth(gigabytes: float | None) -> str:
    """Write a bandwidth given in GB/s, such as ``229 GB/s``."""
    if gigabytes is None or not math.isfinite(gigabytes):
        return NONE
    return scaled(gigabytes, ("GB/s", "TB/s"))


def size(nbytes: float | None) -> str:
    """Write a number of bytes with decimal prefixes, such as ``1 GB``."""
    if nbytes is None or not math.isfinite(nbytes):
        return NONE
    return scaled(nbytes, ("B", "KB", "MB", "GB", "TB"))


def share(value: float | None) -> str:
    """Write a share as per cent, such as ``16.7 %``."""
    if value is None or not math.isfinite(value):
        return NONE
    percent = value * 100
    return f"{0 if abs(percent) < 5e-5 else digits(percent)} %"


def seconds(value: float) -> str:
    """Write a time given in s, such as ``0.42 s`` or ``3 min 20 s``."""
    if value < 120:
        return f"{digits(value)} s"
    return f"{int(value // 60)} min {int(value % 60)} s"


def digits(value: float) -> str:
    """Write a number with three digits and thousands apart, without trailing zeros."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{min(places, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def scaled(value: float, units: tuple[str, ...]) -> str:
    """Use the unit that leaves the number below 1000, as far as there are units."""
    place = 0
    while abs(value) >= 999.5 and place < len(units) - 1:
        value, place = value / 1000, place + 1
    return f"{digits(value)} {units[place]}"


def listing(names: Sequence[str], limit: int = 3) -> str:
    """Write ``a, b, c and 5 more``."""
    if len(names) <= limit:
        return ", ".join(names)
    return f"{', '.join(names[:limit])} and {len(names) - limit} more"
