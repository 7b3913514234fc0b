"""Axes of charts that are painted without a browser: scales, ticks, frames, markers, legends.

How wide text is, so that it can be shortened or framed; measured in Pillow's built-in font.

Ways of links between boxes, as the canvas bends them (`widgets/js/src/geometry.js`).

What a picture is made of: shapes in drawing units, x to the right and y down, painted in order.

Lines and radii are in drawing units too. Each shape may say what it shows, for those who point at
it or have it read to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

Point = tuple[float, float]


class Rect(NamedTuple):
    """A rectangle by its left, upper, right and lower side."""

    x1: float
    y1: float
    x2: float
    y2: float

    @property
    def middle(self) -> Point:
        """Its centre."""
        return (self.x1 + self.x2) / 2, (self.y1 + self.y2) / 2

    @property
    def width(self) -> float:
        """From left to right."""
        return self.x2 - self.x1

    @property
    def height(self) -> float:
        """From top to bottom."""
        return self.y2 - self.y1

    def grown(self, by: float) -> Rect:
        """Return it with every side moved outwards."""
        return Rect(self.x1 - by, self.y1 - by, self.x2 + by, self.y2 + by)

    def has(self, point: Point) -> bool:
        """Say whether a point is inside."""
        return self.x1 <= point[0] <= self.x2 and self.y1 <= point[1] <= self.y2

    def meets(self, other: Rect) -> bool:
        """Say whether the two overlap."""
        return (
            self.x1 < other.x2 and other.x1 < self.x2 and self.y1 < other.y2 and other.y1 < self.y2
        )


def around(rects: list[Rect]) -> Rect:
    """Return the smallest rectangle around some, of which there is at least one."""
    lefts, tops, rights, bottoms = zip(*rects, strict=True)
    return Rect(min(lefts), min(tops), max(rights), max(bottoms))


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line along points.

    Parameters
    ----------
    points
        At least two; of a curved one the start, the control point and the end of a parabola.
    color
        ``#rrggbb``.
    width
        Of the line.
    opacity
        From 0 to 1.
    dash
        Lengths of dashes and gaps in turn; empty for a whole line.
    closed
        Whether the last point is joined to the first.
    curved
        Whether the points are those of a parabola.
    round
        Whether the ends are half circles.
    title
        What it shows.
    """

    points: tuple[Point, ...]
    color: str
    width: float
    opacity: float = 1.0
    dash: tuple[float, ...] = ()
    closed: bool = False
    curved: bool = False
    round: bool = True
    title: str = ""


@dataclass(frozen=True, slots=True)
class Area:
    """What some outlines enclose; inside an even number of them is outside."""

    loops: tuple[tuple[Point, ...], ...]
    fill: str
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with round corners; without a border where `line` is empty."""

    rect: Rect
    fill: str
    radius: float = 0.0
    line: str = ""
    width: float = 0.0
    opacity: float = 1.0
    dash: tuple[float, ...] = ()
    title: str = ""


@dataclass(frozen=True, slots=True)
class Dot:
    """A circle; without a border where `line` is empty."""

    at: Point
    radius: float
    fill: str
    line: str = ""
    width: float = 0.0


@dataclass(frozen=True, slots=True)
class Words:
    """A line of text.

    Parameters
    ----------
    at
        Middle, start or end of the base line, as `anchor` says.
    text
        Without breaks.
    size
        Of the font.
    color
        ``#rrggbb``.
    bold
        Whether it is heavier.
    anchor
        ``middle``, ``start`` or ``end``.
    wide
        Width that it is fitted to, whatever font a screen has; 0 leaves it as it comes.
    """

    at: Point
    text: str
    size: float
    color: str
    bold: bool = False
    anchor: str = "middle"
    wide: float = 0.0


Shape = Stroke | Area | Box | Dot | Words


@dataclass(frozen=True, slots=True)
class Ground:
    """What lies under everything: a colour, and dots of another in a grid unless that is empty.

    Parameters
    ----------
    color, dots
        ``#rrggbb``.
    pixel
        Length of a pixel in drawing units; the dots are alike at every zoom.
    """

    color: str
    dots: str = ""
    pixel: float = 1.0

    @property
    def pitch(self) -> float:
        """From dot to dot, in drawing units."""
        return 22 * self.pixel

    @property
    def radius(self) -> float:
        """Of a dot, in drawing units."""
        return 1.1 * self.pixel


@dataclass(frozen=True, slots=True)
class Picture:
    """Shapes with what frames them.

    Parameters
    ----------
    frame
        What is seen, in drawing units.
    zoom
        Pixels of a drawing unit at the size that was asked for.
    ground
        Beneath the shapes.
    shapes
        In the order of painting.
    title, about
        What it shows, in a few words and in a sentence.
    """

    frame: Rect
    zoom: float
    ground: Ground
    shapes: tuple[Shape, ...]
    title: str
    about: str

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return (
            max(1, round(self.frame.width * self.zoom)),
            max(1, round(self.frame.height * self.zoom)),
        )


_BENDS = (0, 60, -60, 95, -95, 140, -140, 200, -200, 280, -280)
_CLEARANCE = 5.0
_MOST_SAMPLES = 400
"""Points of a way that are looked at."""
_REACH = 150.0
"""How far beside a link boxes may stand in the way of its bends."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The visible part of a link: straight, or a parabola with control point `c`."""

    a: Point
    b: Point
    c: Point | None
    length: float

    def at(self, share: float, side: float = 0.0) -> Point:
        """Return the point so far on the way from a to b, `side` to the right of it."""
        (ax, ay), (bx, by) = self.a, self.b
        if self.c is None:
            x, y, dx, dy = ax + (bx - ax) * share, ay + (by - ay) * share, bx - ax, by - ay
        else:
            cx, cy = self.c
            left = 1 - share
            x = left * left * ax + 2 * left * share * cx + share * share * bx
            y = left * left * ay + 2 * left * share * cy + share * share * by
            dx = left * (cx - ax) + share * (bx - cx)
            dy = left * (cy - ay) + share * (by - cy)
        length = math.hypot(dx, dy) or 1.0
        return x - dy / length * side, y + dx / length * side

    @property
    def points(self) -> tuple[Point, ...]:
        """Of its stroke."""
        return (self.a, self.b) if self.c is None else (self.a, self.c, self.b)


def curve_between(start: Rect, end: Rect, bend: float = 0.0) -> Curve:
    """Return the way from box to box that deviates by `bend` to the side."""
    p, q = start.middle, end.middle
    c = control(p, q, bend) if bend else None
    a, b = _border(start, c or q), _border(end, c or p)
    length = math.dist(a, b)
    if c is not None:
        length = (length + math.dist(c, a) + math.dist(b, c)) / 2
    return Curve(a, b, c, length or 1.0)


def control(p: Point, q: Point, bend: float) -> Point:
    """Return the control point of a way that deviates by `bend` to the side."""
    length = math.dist(p, q) or 1.0
    (px, py), (qx, qy) = p, q
    return (px + qx) / 2 - (qy - py) / length * bend, (py + qy) / 2 + (qx - px) / length * bend


def _border(box: Rect, to: Point) -> Point:
    """Return where the way from the middle of a box to a point leaves it."""
    (mx, my), (x, y) = box.middle, to
    dx, dy = x - mx, y - my
    share = min(
        box.width / 2 / abs(dx) if dx else math.inf,
        box.height / 2 / abs(dy) if dy else math.inf,
        1.0,
    )
    return mx + dx * share, my + dy * share


def bend_around(p: Point, q: Point, boxes: np.ndarray) -> float:
    """Return how far a link has to bend to cross no box, or the fewest.

    Parameters
    ----------
    p, q
        Middles of its ends.
    boxes
        The others, shape (boxes, 4): left, top, right, bottom.
    """
    length = math.dist(p, q)
    near = _near(p, q, boxes)
    if not len(near):
        return 0.0
    best, fewest = 0.0, math.inf
    for bend in _BENDS:
        if abs(bend) > length * 0.7:
            break
        hits = _crossings(p, q, bend, boxes=near)
        if hits < fewest:
            best, fewest = float(bend), hits
        if not hits:
            break
    return best


def _near(p: Point, q: Point, boxes: np.ndarray) -> np.ndarray:
    grown = boxes + np.array([-_CLEARANCE, -_CLEARANCE, _CLEARANCE, _CLEARANCE])
    (left, right), (top, bottom) = sorted((p[0], q[0])), sorted((p[1], q[1]))
    kept: np.ndarray = grown[
        (grown[:, 0] < right + _REACH)
        & (grown[:, 2] > left - _REACH)
        & (grown[:, 1] < bottom + _REACH)
        & (grown[:, 3] > top - _REACH)
    ]
    return kept


def _crossings(p: Point, q: Point, bend: float, *, boxes: np.ndarray) -> int:
    samples = min(_MOST_SAMPLES, max(8, math.ceil(math.dist(p, q) / 12)))
    share = np.arange(1, samples)[:, None] / samples
    middle = np.array(control(p, q, bend))
    left = 1 - share
    at = left * left * np.array(p) + 2 * left * share * middle + share * share * np.array(q)
    x, y = at[:, :1], at[:, 1:]
    inside = (x >= boxes[:, 0]) & (x <= boxes[:, 2]) & (y >= boxes[:, 1]) & (y <= boxes[:, 3])
    return int(inside.any(axis=0).sum())


def covered(curve: Curve, boxes: Sequence[Rect], *, parts: int = 48) -> tuple[bool, ...]:
    """Say of each part of a way whether it lies beneath one of some boxes; empty if none does."""
    middles = [curve.at((part + 0.5) / parts) for part in range(parts)]
    found = tuple(
        any(box.x1 <= x <= box.x2 and box.y1 <= y <= box.y2 for box in boxes) for x, y in middles
    )
    return found if any(found) else ()


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
