"""Words of the page: counts, lists and sentences beside the quantities of `widgets.text`."""

from __future__ import annotations

from widgets.text import (
    NONE,
    bandwidth,
    digits,
    duration,
    listing,
    scaled,
    seconds,
    share,
    size,
)

__all__ = [
    "NONE",
    "bandwidth",
    "count",
    "digits",
    "duration",
    "gigabits",
    "listing",
    "ordinal",
    "scaled",
    "seconds",
    "sentence",
    "share",
    "size",
]


def gigabits(gigabytes: float) -> str:
    """Write a bandwidth given in GB/s as gigabits, such as ``400 Gb/s``."""
    return f"{digits(gigabytes * 8)} Gb/s"


def count(number: int, what: str, many: str = "") -> str:
    """Write ``1 GPU``, ``16 GPUs``, ``4 switches``."""
    return f"{number:,} {what if number == 1 else many or what + 's'}"


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
