"""Text for people: quantities in three digits with a unit, counts, lists, sentences."""

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

NONE = "–"

DIGITS = 6
"""Significant digits of a number in a sentence."""

_TIMES = ("µs", "ms", "s")

MOST_LINES = 40
"""Lines of one kind in a text, which counts those left out."""


def duration(microseconds: float | None) -> str:
    """Write a time given in µs, such as ``9.8 µs`` or ``1.24 ms``."""
    if microseconds is None or not math.isfinite(microseconds):
        return NONE
    return scale_unit(microseconds, _TIMES)


def bandwidth(gigabytes: float | None) -> str:
    """Write a bandwidth given in GB/s, such as ``229 GB/s``."""
    if gigabytes is None or not math.isfinite(gigabytes):
        return NONE
    return scale_unit(gigabytes, ("GB/s", "TB/s"))


def size(nbytes: float | None) -> str:
    """Write a number of bytes with decimal prefixes, such as ``1 GB``."""
    if nbytes is None or not math.isfinite(nbytes):
        return NONE
    return scale_unit(nbytes, ("B", "KB", "MB", "GB", "TB"))


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


def moment(microseconds: float, whole: float) -> str:
    """Write a moment of something that takes `whole` µs, such as ``28.0 of 42.8 µs``.

    It has the whole's unit and as many places, so that a clock does not jump.
    """
    factor, shown, units = 1.0, whole, list(_TIMES)
    while abs(shown) >= 999.5 and len(units) > 1:
        factor, shown, units = factor * 1000, shown / 1000, units[1:]
    places = 0 if not shown or abs(shown) >= 100 else 2 - math.floor(math.log10(abs(shown)))
    return f"{microseconds / factor:.{min(places, 6)}f} of {digits(shown)} {units[0]}"


def scale_unit(value: float, units: tuple[str, ...]) -> str:
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


def gigabits(gigabytes: float) -> str:
    """Write a bandwidth given in GB/s as gigabits, such as ``400 Gb/s``."""
    return f"{digits(gigabytes * 8)} Gb/s"


def count(number: int, what: str, many: str = "") -> str:
    """Write ``1 GPU``, ``16 GPUs``, ``4 switches``, ``2 memories``."""
    if number != 1:
        what = many or (f"{what[:-1]}ies" if what.endswith("ory") else what)
        what += "" if what.endswith("ies") or many else "es" if what.endswith("tch") else "s"
    return f"{number:,} {what}"


def ordinal(number: int) -> str:
    """Write ``1st``, ``2nd``, ``3rd``, ``11th``."""
    teens = number % 100 in {11, 12, 13}
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def sentence(words: str) -> str:
    """Begin with a capital, unless with a name such as ``mine.json``, and end with a stop."""
    first = words.split(" ", 1)[0].rstrip(":;,")
    if first.replace("-", "").replace("'", "").isalpha() and first.islower():
        words = words[:1].upper() + words[1:]
    return words if words.endswith((".", "!", "?")) else words + "."


def number(value: float, digits: int = DIGITS) -> str:
    """Write a number with so many significant digits at most, as the canvas' `short` does.

    Halves go up, there are no trailing zeros and no exponents.
    """
    if not value:
        return "0"
    exact = Decimal(value)
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    rounded = exact.quantize(step, rounding=ROUND_HALF_UP)
    text = f"{rounded:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def enumerate_words(names: Sequence[str], most: int = 6) -> str:
    """Write ``a, b and c``, or the first of many and how many more there are."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def bounded(lines: Sequence[str], what: str, most: int = MOST_LINES) -> list[str]:
    """Return at most so many lines, and how many more there would be."""
    if len(lines) <= most:
        return list(lines)
    return [*lines[:most], f"  and {count(len(lines) - most, what)} more"]
