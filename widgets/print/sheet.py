"""A sheet of shapes: what a picture is made of, before `widgets.print.painter` draws it.

Shapes are in drawing units, x to the right and y down, painted in order; lines and radii are in
drawing units too. Each shape may say what it shows, for those who point at it or have it read to
them. matplotlib is loaded where the first text is measured or the first sheet is drawn, never by
``import widgets``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.ft2font import FT2Font

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
    """What some outlines enclose; one that runs the other way round is a hole."""

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
        Whether it is heavier where the font has a weight that is no wider, as on screens.
    anchor
        ``middle``, ``start`` or ``end``.
    """

    at: Point
    text: str
    size: float
    color: str
    bold: bool = False
    anchor: str = "middle"


Shape = Stroke | Area | Box | Dot | Words


@dataclass(frozen=True, slots=True)
class Picture:
    """Shapes with what frames them.

    Parameters
    ----------
    frame
        What is seen, in drawing units.
    zoom
        Pixels of a drawing unit at the requested size.
    ground
        ``#rrggbb`` beneath the shapes.
    shapes
        In the order of painting.
    title, about
        What it shows, in a few words and in a sentence.
    dots
        Colour of dots in a grid on the ground, alike at every zoom; none where it is empty.
    """

    frame: Rect
    zoom: float
    ground: str
    shapes: tuple[Shape, ...]
    title: str
    about: str
    dots: str = ""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        width, height = self.frame.width * self.zoom, self.frame.height * self.zoom
        return max(1, round(width)), max(1, round(height))


_SHRUNK = 0.75
"""Of its size a name has at least."""
_TALL = 64
"""Points at which widths of letters are measured."""


@cache
def font_file() -> str:
    """Return where DejaVu Sans lies, which comes with matplotlib."""
    import matplotlib  # noqa: PLC0415 - most start without it

    return f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf"


@cache
def _font() -> FT2Font:
    from matplotlib.ft2font import FT2Font  # noqa: PLC0415 - as above

    font = FT2Font(font_file())
    font.set_size(_TALL, 72)
    return font


@lru_cache(maxsize=4096)
def _advance(sign: str) -> float:
    """Return how wide a letter is over the size of its font."""
    from matplotlib.ft2font import LoadFlags  # noqa: PLC0415 - as above

    font = _font()
    glyph = font.load_glyph(font.get_char_index(ord(sign)), flags=LoadFlags.NO_HINTING)
    return glyph.linearHoriAdvance / 65536 / _TALL


def width(text: str, size: float) -> float:
    """Return how wide a text is, in the unit of its size; fonts of screens run narrower."""
    return sum(map(_advance, text)) * size


def unwritten(text: str) -> bool:
    """Say whether a text has signs that the font lacks."""
    font = _font()
    return not all(font.get_char_index(ord(each)) for each in text)


def one_line(text: str) -> str:
    """Return a name without line breaks and signs that cannot be printed."""
    return "".join(each if each.isprintable() else " " for each in text)


def fitted(text: str, size: float, most: float) -> tuple[str, float]:
    """Return a name that is at most so wide, and its size: first it shrinks, then it is cut."""
    size *= max(_SHRUNK, min(1.0, most / max(width(one_line(text), size), 1e-9)))
    return shortened(text, size, most), size


def shortened(text: str, size: float, most: float) -> str:
    """Return a name that is at most so wide, with an ellipsis where it was cut."""
    text = one_line(text)
    if width(text, size) <= most:
        return text
    kept = text[:200]
    while kept and width(kept + "…", size) > most:
        kept = kept[:-1]
    return kept.rstrip() + "…"
