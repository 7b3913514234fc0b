"""How wide text is, so that it can be shortened or framed; measured in Pillow's built-in font."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

_BROADER = 1.06
"""The fonts of screens run wider than Pillow's built-in one."""
_BOLD = 1.05
_TALL = 100
"""Size that widths are measured at."""


@lru_cache(maxsize=64)
def font(size: float) -> Any:
    """Return Pillow's built-in font, which needs no file of the system, of a size in pixels.

    Plain layout: the same bytes come out whether or not Pillow has a shaping library.
    """
    from PIL import ImageFont  # noqa: PLC0415 - most start without it

    found = ImageFont.load_default(size)
    assert isinstance(found, ImageFont.FreeTypeFont), "Pillow is always built with FreeType"
    return found


@lru_cache(maxsize=65536)
def width(text: str, size: float, *, bold: bool = False) -> float:
    """Return about how wide a text is, in the unit of its size."""
    wide: float = font(_TALL).getlength(text) / _TALL * size * _BROADER
    return wide * _BOLD if bold else wide


def one_line(text: str) -> str:
    """Return a name without line breaks and signs that cannot be printed."""
    return "".join(each if each.isprintable() else " " for each in text)


def shortened(text: str, size: float, most: float, *, bold: bool = False) -> str:
    """Return a name that is at most so wide, with an ellipsis where it was cut."""
    text = one_line(text)
    if width(text, size, bold=bold) <= most:
        return text
    kept = text[:200]
    while kept and width(kept + "…", size, bold=bold) > most:
        kept = kept[:-1]
    return kept.rstrip() + "…"
