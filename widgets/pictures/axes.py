"""Axes of charts that are painted without a browser: scales, ticks, frames, markers, legends.

How wide text is, so that it can be shortened or framed; measured in Pillow's built-in font.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from widgets.pictures.curves import Area, Dot, Point, Rect, Shape, Stroke, Words

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


DASHES: dict[str, tuple[float, ...]] = {"solid": (), "dot": (1.5, 3.0), "dash": (6.0, 4.0)}
"""Lengths of strokes and gaps, in pixels, by the names that Plotly has for them."""

_CORNERS: dict[str, tuple[tuple[float, float], ...]] = {
    "square": ((-0.89, -0.89), (0.89, -0.89), (0.89, 0.89), (-0.89, 0.89)),
    "diamond": ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    "triangle-up": ((0, -1.2), (1.1, 0.8), (-1.1, 0.8)),
    "triangle-down": ((0, 1.2), (1.1, -0.8), (-1.1, -0.8)),
    "pentagon": ((0, -1.1), (1.05, -0.34), (0.65, 0.89), (-0.65, 0.89), (-1.05, -0.34)),
}
_ARM = 0.38
"""Half of the width of a cross, over its radius."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Values along a side of a plot.

    Parameters
    ----------
    low, high
        Values at its ends; above zero where it is logarithmic.
    start, end
        Pixels of these.
    log
        Whether it is logarithmic.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = True

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return self.start + (value - low) / (high - low) * (self.end - self.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ink:
    """Colours and the size of letters of a chart; `paper` has thin lines.

    Parameters
    ----------
    text, soft, line, ground
        ``#rrggbb`` of words, of ticks, of the grid and beneath all.
    size
        Of letters, pixels.
    paper
        Whether it is for print.
    """

    text: str
    soft: str
    line: str
    ground: str
    size: float
    paper: bool

    @property
    def thin(self) -> float:
        """Pixels of a line of the grid."""
        return 0.5 if self.paper else 1.0

    @property
    def thick(self) -> float:
        """Pixels of a line of data."""
        return 1.1 if self.paper else 2.0

    @property
    def radius(self) -> float:
        """Pixels of a marker, from its middle."""
        return self.size * (0.26 if self.paper else 0.34)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a legend."""

    name: str
    color: str
    symbol: str = ""
    dash: str = "solid"


def marker(symbol: str, at: Point, radius: float, color: str) -> Shape:
    """Draw what stands for one value; the symbols are those of `widgets.charts.comparison`."""
    if symbol == "circle":
        return Dot(at, radius, color)
    if symbol in ("cross", "x"):
        return Area((_cross(at, radius * 1.2, turned=symbol == "x"),), color)
    corners = _CORNERS[symbol]
    return Area((tuple((at[0] + x * radius, at[1] + y * radius) for x, y in corners),), color)


def _cross(at: Point, radius: float, *, turned: bool) -> tuple[Point, ...]:
    arm = radius * _ARM
    outline: tuple[Point, ...] = (
        (-arm, -radius), (arm, -radius), (arm, -arm), (radius, -arm), (radius, arm), (arm, arm),
        (arm, radius), (-arm, radius), (-arm, arm), (-radius, arm), (-radius, -arm), (-arm, -arm),
    )  # fmt: skip
    half = math.sqrt(0.5)
    if turned:
        outline = tuple((half * (x - y), half * (x + y)) for x, y in outline)
    return tuple((at[0] + x, at[1] + y) for x, y in outline)


def widest(words: Iterable[str], size: float) -> float:
    """Return the width of the longest of some texts, in pixels."""
    return max((width(each, size) for each in words), default=0.0)


def upright(
    axis: Axis, ticks: Sequence[float], told: Callable[[float], str], *, plot: Rect, ink: Ink
) -> Iterator[Shape]:
    """Draw lines across a plot at the values of its left side, and what they are."""
    for value in ticks:
        y = axis.at(value)
        yield Stroke(((plot.x1, y), (plot.x2, y)), ink.line, ink.thin, round=False)
        at = (plot.x1 - 0.6 * ink.size, y + 0.35 * ink.size)
        yield Words(at, told(value), ink.size, ink.soft, anchor="end")


def across(
    axis: Axis, ticks: Sequence[float], told: Callable[[float], str], *, plot: Rect, ink: Ink
) -> Iterator[Shape]:
    """Draw lines up a plot at the values below it, and what those are where there is room."""
    free = -math.inf
    for value in ticks:
        x = axis.at(value)
        yield Stroke(((x, plot.y1), (x, plot.y2)), ink.line, ink.thin, round=False)
        half = width(told(value), ink.size) / 2
        if x - half < free:
            continue
        free = x + half + 0.5 * ink.size
        yield Words((x, plot.y2 + 1.5 * ink.size), told(value), ink.size, ink.soft)


def frame(plot: Rect, ink: Ink) -> Stroke:
    """Draw the two sides at which values stand."""
    corners = ((plot.x1, plot.y1), (plot.x1, plot.y2), (plot.x2, plot.y2))
    return Stroke(corners, ink.soft, ink.thin, round=False)


def legend(entries: Sequence[Entry], top: float, *, left: float, right: float, ink: Ink) -> Legend:
    """Lay out the names of lines in rows, from left to right."""
    key = 2.4 * ink.size
    shapes: list[Shape] = []
    x, y = left, top + ink.size
    for each in entries:
        name = shortened(each.name, ink.size, right - left - key - ink.size)
        wide = key + 0.6 * ink.size + width(name, ink.size)
        if x > left and x + wide > right:
            x, y = left, y + 1.6 * ink.size
        middle = y - 0.35 * ink.size
        ends = ((x, middle), (x + key, middle))
        dash = DASHES[each.dash]
        shapes.append(Stroke(ends, each.color, ink.thick, dash=dash, round=False))
        if each.symbol:
            at = (x + key / 2, middle)
            shapes.append(marker(each.symbol, at, ink.radius, each.color))
        at = (x + key + 0.6 * ink.size, y)
        shapes.append(Words(at, name, ink.size, ink.text, anchor="start"))
        x += wide + 1.6 * ink.size
    return Legend(tuple(shapes), y + 0.4 * ink.size)


@dataclass(frozen=True, slots=True)
class Legend:
    """Shapes of a legend, and the pixel at which it ends."""

    shapes: tuple[Shape, ...]
    below: float
