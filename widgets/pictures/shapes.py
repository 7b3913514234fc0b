"""What a picture is made of: shapes in drawing units, x to the right and y down, painted in order.

Lines and radii are in drawing units too. Each shape may say what it shows, for those who point at
it or have it read to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

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
