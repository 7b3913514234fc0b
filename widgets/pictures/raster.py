"""A picture as pixels, painted larger than asked for and then reduced, so that edges are smooth.

What can be chosen of a picture or a film (`ccl.options`).
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import singledispatchmethod
from typing import Any, Literal

from PIL import Image, ImageChops, ImageDraw

from widgets.pictures import axes
from widgets.pictures.axes import Area, Box, Dot, Picture, Point, Rect, Shape, Stroke, Words
from widgets.pictures.svg import rgb

Style = Literal["light", "dark", "paper"]

PIXELS_PER_INCH = 96
"""As in CSS, so that a picture is as wide in print as it says."""
MILLIMETRES_PER_INCH = 25.4
POINTS_PER_INCH = 72

_STYLE = {
    "label": "Style",
    "help": "light and dark as the designer; paper: white, thin lines, nothing to please.",
}
_CUT = {"label": "Bottleneck cut", "help": "Whether the cut that proves the bound is drawn."}
_WIDTH = {"label": "Width", "unit": "px", "min": 160}


@dataclass(frozen=True, kw_only=True)
class SheetOptions:
    """Of anything that is drawn on a sheet: on a screen in pixels, in print in mm and points."""

    style: Style = field(default="light", metadata=_STYLE)
    width: int = field(default=1280, metadata={**_WIDTH, "max": 8000})
    font: float | None = field(
        default=None,
        metadata={
            "label": "Font size",
            "unit": "px",
            "min": 2,
            "max": 100,
            "help": "Of names; by default they grow as the drawing shrinks.",
        },
    )
    column: float | None = field(
        default=None,
        metadata={
            "label": "Column",
            "unit": "mm",
            "min": 40,
            "max": 1000,
            "help": "Width in print, instead of pixels; 25.4 mm are an inch.",
        },
    )
    points: float | None = field(
        default=None,
        metadata={
            "label": "Font size in print",
            "unit": "pt",
            "min": 2,
            "max": 72,
            "help": "Instead of pixels; 72 pt are an inch.",
        },
    )

    @property
    def pixels(self) -> float:
        """Width of the picture in pixels."""
        if self.column is None:
            return float(self.width)
        return self.column / MILLIMETRES_PER_INCH * PIXELS_PER_INCH

    @property
    def letters(self) -> float | None:
        """Size of letters in pixels, or None."""
        if self.points is None:
            return self.font
        return self.points / POINTS_PER_INCH * PIXELS_PER_INCH


@dataclass(frozen=True, kw_only=True)
class StillOptions(SheetOptions):
    """Of a picture."""

    time: float | None = field(
        default=None,
        metadata={
            "label": "Time",
            "unit": "µs",
            "min": 0,
            "help": "Of a plan: what is where at this time; without it only the cluster.",
        },
    )
    epoch: int | None = field(
        default=None,
        metadata={
            "label": "Epoch",
            "min": 0,
            "help": "Of a plan: the time as a number of epochs that are over.",
        },
    )
    cut: bool = field(default=True, metadata=_CUT)


_SCALE = {
    "label": "Scale",
    "min": 0.25,
    "max": 4,
    "help": "Pixels for each of the width: 2 for screens of twice the density.",
}


@dataclass(frozen=True, kw_only=True)
class PixelOptions(StillOptions):
    """Of a picture made of pixels."""

    scale: float = field(default=1.0, metadata=_SCALE)


@dataclass(frozen=True, kw_only=True)
class ChartOptions(SheetOptions):
    """Of a chart."""

    width: int = field(default=720, metadata={**_WIDTH, "max": 8000})
    quantity: Literal["time", "ratio", "algbw"] = field(
        default="time",
        metadata={"label": "Upwards", "help": "The makespan, that over the bound, or algbw."},
    )


@dataclass(frozen=True, kw_only=True)
class ChartPixelOptions(ChartOptions):
    """Of a chart made of pixels."""

    scale: float = field(default=1.0, metadata=_SCALE)


@dataclass(frozen=True, kw_only=True)
class FilmOptions:
    """Of a film."""

    style: Style = field(default="dark", metadata=_STYLE)
    width: int = field(default=640, metadata={**_WIDTH, "max": 1920})
    seconds: float = field(
        default=6.0,
        metadata={"label": "Length", "unit": "s", "min": 0.2, "max": 60},
    )
    rate: float = field(
        default=12.5,
        metadata={"label": "Frames per second", "min": 1, "max": 50},
    )
    cut: bool = field(default=True, metadata=_CUT)


_MOST_PIXELS = 60_000_000
"""Of the larger picture."""
_PIECES = 20
"""Straight parts of a bent line."""
_CAP = 8
"""Corners of a half circle at the end of a line."""
_SMALLEST = 6
"""Pixels of a box, painted larger, that has corners and a border."""
_MOST_DASHES = 4000
_SIGNS = {"→": "->", "↔": "<->", "×": "x", "–": "-", "—": "-", "∅": "-"}
"""What Pillow's built-in font has no signs for."""
_MADE = {"µ": "u", "μ": "u", "≥": ">", "≤": "<"}
"""What it lacks and a line more makes of others."""


def pixels(picture: Picture, *, scale: float = 1.0, finer: int = 3) -> Image.Image:
    """Paint a picture, `scale` pixels where it asks for one, `finer` times as large first."""
    canvas = Canvas(picture, scale=scale, finer=finer)
    canvas.paint(picture.shapes)
    return canvas.reduced()


def png(picture: Picture, *, scale: float = 1.0) -> bytes:
    """Return a picture as the content of a PNG file."""
    content = io.BytesIO()
    dots = PIXELS_PER_INCH * scale
    pixels(picture, scale=scale).save(content, "PNG", dpi=(dots, dots))
    return content.getvalue()


class Canvas:
    """The larger picture while it is painted.

    Parameters
    ----------
    picture
        What frames it, and what lies beneath the shapes.
    scale
        Pixels of the result where the picture asks for one.
    finer
        How many times as large it is painted, lines fewer where it were too large.
    """

    def __init__(self, picture: Picture, *, scale: float = 1.0, finer: int = 3) -> None:
        width, height = (max(1, round(side * scale)) for side in picture.size)
        while finer > 1 and width * height * finer**2 > _MOST_PIXELS:
            finer -= 1
        self.finer = finer
        self.zoom = picture.zoom * scale * finer
        self.left, self.top = picture.frame.x1, picture.frame.y1
        self._on(Image.new("RGB", (width * finer, height * finer), picture.ground.color))
        if picture.ground.dots:
            self._dots(picture)

    def _on(self, image: Image.Image) -> None:
        self.image = image
        self.draw = ImageDraw.Draw(image, "RGBA")

    def copy(self) -> Canvas:
        """Return one to paint on while this stays as it is."""
        made = object.__new__(Canvas)
        made.finer, made.zoom, made.left, made.top = self.finer, self.zoom, self.left, self.top
        made._on(self.image.copy())
        return made

    def reduced(self) -> Image.Image:
        """Return the picture at the size that was asked for."""
        return self.image.reduce(self.finer) if self.finer > 1 else self.image

    def paint(self, shapes: Iterable[Shape]) -> None:
        """Paint shapes in their order."""
        for each in shapes:
            self._shape(each)

    def _dots(self, picture: Picture) -> None:
        pitch, frame = picture.ground.pitch, picture.frame
        row = math.floor(frame.y1 / pitch) * pitch + pitch / 2
        while row < frame.y2:
            column = math.floor(frame.x1 / pitch) * pitch + pitch / 2
            while column < frame.x2:
                self._shape(Dot((column, row), picture.ground.radius, picture.ground.dots))
                column += pitch
            row += pitch

    def _at(self, point: Point) -> Point:
        return (point[0] - self.left) * self.zoom, (point[1] - self.top) * self.zoom

    def _rect(self, rect: Rect) -> tuple[float, float, float, float]:
        """Corners as Pillow counts: the last pixel is inside."""
        (x1, y1), (x2, y2) = self._at(rect[:2]), self._at(rect[2:])
        return x1, y1, max(x1, x2 - 1), max(y1, y2 - 1)

    @singledispatchmethod
    def _shape(self, shape: Any) -> None:
        raise TypeError(shape)

    @_shape.register
    def _(self, shape: Stroke) -> None:
        points = list(_parabola(shape.points) if shape.curved else shape.points)
        if shape.closed:
            points.append(points[0])
        placed = [self._at(each) for each in points]
        half = max(0.5, shape.width * self.zoom / 2)
        fill = _ink(shape.color, shape.opacity)
        dash = [each * self.zoom for each in shape.dash]
        cap = shape.round and not shape.dash and not shape.closed
        for part in _dashes(placed, dash) if dash else [placed]:
            self.draw.polygon(_band(part, half, cap=cap), fill=fill)

    @_shape.register
    def _(self, shape: Area) -> None:
        loops = [[self._at(each) for each in loop] for loop in shape.loops]
        if len(loops) == 1:
            self.draw.polygon(loops[0], fill=_ink(shape.fill, shape.opacity))
            return
        mask = Image.new("1", self.image.size)
        for loop in loops:
            one = Image.new("1", self.image.size)
            ImageDraw.Draw(one).polygon(loop, fill=1)
            mask = ImageChops.logical_xor(mask, one)
        opacity = round(shape.opacity * 255)
        self.image.paste(shape.fill, mask=mask.convert("L").point([0] * 255 + [opacity]))

    @_shape.register
    def _(self, shape: Box) -> None:
        half = shape.width / 2 if shape.line else 0.0
        corners = self._rect(shape.rect.grown(0.0 if shape.dash else half))
        sides = corners[2] - corners[0], corners[3] - corners[1]
        radius = min((shape.radius + half) * self.zoom, sides[0] / 2, sides[1] / 2)
        ink = _ink(shape.fill, shape.opacity)
        line = shape.line if not shape.dash else ""
        width = max(1, round(shape.width * self.zoom)) if line else 0
        if min(sides) < _SMALLEST:
            self.draw.rectangle(corners, fill=line or ink)
        elif radius < 1:
            self.draw.rectangle(corners, fill=ink, outline=line or None, width=width)
        else:
            self.draw.rounded_rectangle(
                corners, radius, fill=ink, outline=line or None, width=width
            )
        if shape.line and shape.dash:
            edge = _edge(shape.rect, shape.radius)
            self._shape(Stroke(edge, shape.line, shape.width, dash=shape.dash, closed=True))

    @_shape.register
    def _(self, shape: Dot) -> None:
        x, y = self._at(shape.at)
        radius = shape.radius * self.zoom
        if shape.line:
            rim = radius + shape.width * self.zoom / 2
            self.draw.ellipse((x - rim, y - rim, x + rim, y + rim), fill=shape.line)
            radius -= shape.width * self.zoom / 2
        self.draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=shape.fill)

    @_shape.register
    def _(self, shape: Words) -> None:
        size = shape.size * self.zoom
        if size < 1:
            return
        font = axes.font(size)
        text = "".join(_SIGNS.get(each, each) for each in shape.text)
        # The font is of one weight; a line around the letters makes them heavier.
        heavy = size * 0.016 if shape.bold else 0.0
        anchor = {"middle": "ms", "start": "ls", "end": "rs"}[shape.anchor]
        plain = "".join(_MADE.get(each, each) for each in text)
        at = self._at(shape.at)
        self.draw.text(at, plain, shape.color, font, anchor, stroke_width=heavy)
        share = {"middle": 0.5, "start": 0.0, "end": 1.0}[shape.anchor]
        left = at[0] - font.getlength(plain) * share
        for index, sign in enumerate(text):
            if sign in _MADE:
                start, end = (left + font.getlength(plain[:count]) for count in (index, index + 1))
                self._mend(sign, (start, end, at[1]), size, shape)

    def _mend(
        self, sign: str, place: tuple[float, float, float], size: float, shape: Words
    ) -> None:
        """Make a sign of the one that it resembles: a longer stem, or a line beneath it."""
        start, end, base = place
        thick = size * (0.12 if shape.bold else 0.09)
        if sign in "µμ":
            x = start + size * 0.06
            stem = (x, base - size * 0.3, x + thick, base + size * 0.2)
        else:
            x, y = start + size * 0.04, base + size * 0.02
            stem = (x, y, end - size * 0.04, y + thick * 0.7)
        self.draw.rectangle(stem, fill=shape.color)


def unwritten(text: str) -> bool:
    """Say whether a text has signs that Pillow's built-in font lacks."""
    known = axes.font(20)
    missing = bytes(known.getmask("\uffff"))
    signs = set(text) - set(_SIGNS) - set(_MADE) - {" "}
    return any(bytes(known.getmask(each)) == missing for each in signs)


def _ink(color: str, opacity: float) -> tuple[int, int, int, int]:
    return *rgb(color), round(255 * opacity)


def _parabola(points: Sequence[Point]) -> list[Point]:
    (ax, ay), (cx, cy), (bx, by) = points
    shares = [step / _PIECES for step in range(_PIECES + 1)]
    return [
        (
            (1 - t) ** 2 * ax + 2 * (1 - t) * t * cx + t * t * bx,
            (1 - t) ** 2 * ay + 2 * (1 - t) * t * cy + t * t * by,
        )
        for t in shares
    ]


def _band(points: Sequence[Point], half: float, *, cap: bool) -> list[Point]:
    """Return the outline of a line of twice `half`, one polygon, so that it is of one opacity."""
    normals = []
    for (x, y), (u, v) in itertools.pairwise(points):
        length = math.hypot(u - x, v - y) or 1.0
        normals.append((-(v - y) / length, (u - x) / length))
    closed = len(points) > 3 and math.dist(points[0], points[-1]) < 1e-6
    first, last = (normals[-1], normals[0]) if closed else (normals[0], normals[-1])
    left, right = [], []
    for (x, y), one, two in zip(points, [first, *normals], [*normals, last], strict=True):
        a, b = one[0] + two[0], one[1] + two[1]
        # Along a bend the band keeps its width; at a sharp corner it is cut off.
        scale = half / max(0.5, (a * a + b * b) / 2)
        left.append((x + a * scale, y + b * scale))
        right.append((x - a * scale, y - b * scale))
    if not cap:
        return [*left, *reversed(right)]
    return [
        *left,
        *_half_circle(points[-1], normals[-1], half),
        *reversed(right),
        *_half_circle(points[0], (-normals[0][0], -normals[0][1]), half),
    ]


def _half_circle(at: Point, normal: Point, half: float) -> list[Point]:
    start = math.atan2(normal[1], normal[0])
    angles = [start - math.pi * step / _CAP for step in range(1, _CAP)]
    return [(at[0] + half * math.cos(each), at[1] + half * math.sin(each)) for each in angles]


def _dashes(points: Sequence[Point], dash: Sequence[float]) -> list[list[Point]]:
    """Cut a line into its dashes."""
    length = sum(math.dist(p, q) for p, q in itertools.pairwise(points))
    if length / sum(dash) > _MOST_DASHES:
        return [list(points)]
    parts: list[list[Point]] = [[points[0]]]
    turn, left = 0, dash[0]
    for p, q in itertools.pairwise(points):
        at, far = p, math.dist(p, q)
        while far > left:
            share = left / far
            at = at[0] + (q[0] - at[0]) * share, at[1] + (q[1] - at[1]) * share
            far -= left
            if turn % 2 == 0:
                parts[-1].append(at)
            else:
                parts.append([at])
            turn += 1
            left = dash[turn % len(dash)]
        left -= far
        if turn % 2 == 0:
            parts[-1].append(q)
    return [part for part in parts if len(part) > 1]


def _edge(rect: Rect, radius: float) -> tuple[Point, ...]:
    """Return the border of a rectangle with round corners as points."""
    middles = (
        (rect.x2 - radius, rect.y1 + radius, -0.5),
        (rect.x2 - radius, rect.y2 - radius, 0.0),
        (rect.x1 + radius, rect.y2 - radius, 0.5),
        (rect.x1 + radius, rect.y1 + radius, 1.0),
    )
    return tuple(
        (
            x + radius * math.cos((turn + i / 12) * math.pi),
            y + radius * math.sin((turn + i / 12) * math.pi),
        )
        for x, y, turn in middles
        for i in range(7)
    )
