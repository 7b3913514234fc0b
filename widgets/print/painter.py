"""Sheets drawn by matplotlib: as SVG, as PDF and as pixels.

Figures and canvases are made here by name; `pyplot` is not loaded and no setting of the user's
changes a picture. Settings are global in matplotlib, so that one sheet is drawn at a time.

The SVG of matplotlib has four changes, so that it can stand in a page: what an element
shows is its title (on its way through matplotlib it is a link), nothing is drawn by its address,
styles are attributes, which no policy of a page refuses, and names are in the font of the page.
Runs of alike shapes are one collection, which is ten times as fast as an artist for each.
"""

import io
import itertools
import math
import re
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, singledispatch
from typing import Any, Literal, NamedTuple
from xml.sax.saxutils import escape

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import BoxStyle, PathPatch
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Affine2D, Transform
from PIL import Image

from widgets.print.sheet import (
    Area,
    Box,
    Dot,
    Picture,
    Rect,
    Shape,
    Stroke,
    Words,
    font_file,
    one_line,
)

PER_INCH = 96
"""Pixels of an inch, as in CSS, so that a picture is as wide in print as it says."""
POINTS = 72 / PER_INCH
"""Points of a pixel."""
FONTS = "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"

_PITCH = 22.0
"""Pixels from dot to dot on the ground."""
_DOT = 1.1
"""Radius of one in pixels."""
_SMALLEST = 1.0
"""Pixels of letters; smaller ones are not drawn."""
_ANCHORS: Mapping[str, Literal["center", "left", "right"]] = {
    "middle": "center",
    "start": "left",
    "end": "right",
}
_CLEAR = (0.0, 0.0, 0.0, 0.0)
_BOX = (Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY)
_SETTINGS: dict[Any, Any] = {
    "lines.scale_dashes": False,
    "path.simplify": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "text.hinting": "no_hinting",
}
_LOCK = threading.RLock()


@dataclass(frozen=True, kw_only=True)
class Plot:
    """Axes on a sheet.

    Parameters
    ----------
    drawn
        The figure, a point of which is a point of the print.
    title, about
        What it shows, in a few words and in a sentence.
    ground
        Colour beneath all.
    """

    drawn: Figure = field(repr=False)
    title: str
    about: str
    ground: str

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        width, height = (round(side * PER_INCH) for side in self.drawn.get_size_inches())
        return width, height


Sheet = Picture | Plot
"""What can be printed."""


@cache
def _defaults() -> dict[Any, Any]:
    """Return matplotlib's own settings, whatever a file of the user's says."""
    known = matplotlib.rcParamsDefault
    return {name: known[name] for name in known if not name.startswith("backend")}


@contextmanager
def printing(salt: str = "") -> Iterator[None]:
    """Draw with the settings of the house; `salt` tells the elements of one SVG from another's."""
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of signs that the font lacks; whoever writes counts them
        with matplotlib.rc_context({**_defaults(), **_SETTINGS, "svg.hashsalt": salt}):
            yield


def _figure(sheet: Sheet, *, in_units: bool = False) -> Figure:
    """Return a sheet as a figure of its size in print, or of a point for each drawing unit."""
    if isinstance(sheet, Plot):
        return sheet.drawn
    picture = sheet
    point = 1.0 if in_units else picture.zoom * POINTS
    width, height = (side * point / 72 for side in (picture.frame.width, picture.frame.height))
    figure = Figure((width, height), facecolor=picture.ground)
    with printing():
        if picture.dots:
            figure.add_artist(_dots(picture, figure, point=point))
        for each in artists(picture.shapes, picture, figure, point=point):
            figure.add_artist(each)
    return figure


def _place(picture: Picture, figure: Figure, *, point: float) -> Transform:
    """Return the way from drawing units to the figure, whose origin is below."""
    frame = picture.frame
    units = Affine2D().translate(-frame.x1, -frame.y2).scale(point / 72, -point / 72)
    return units + figure.dpi_scale_trans


def artists(
    shapes: Iterable[Shape], picture: Picture, figure: Figure, *, point: float
) -> Iterator[Artist]:
    """Yield what draws shapes of a picture on its figure, `point` points per drawing unit."""
    where = _place(picture, figure, point=point)
    least = _SMALLEST / picture.zoom
    for kind, run in itertools.groupby(shapes, key=_kind):
        if kind is not Words:
            yield _collection(list(_outlines(run)), where, point=point, rounded=kind)
            continue
        for each in run:
            if isinstance(each, Words) and each.size >= least:
                yield _text(each, where, point=point)


class _Outline(NamedTuple):
    """A path with its colours."""

    path: Path
    fill: tuple[float, ...]
    line: tuple[float, ...]
    width: float
    dash: tuple[float, ...]
    title: str = ""


def _kind(shape: Shape) -> Any:
    """Return what shapes of one collection share: whether the ends of lines are round."""
    if isinstance(shape, Words):
        return Words
    return isinstance(shape, Stroke) and shape.round and not shape.dash


def _outlines(shapes: Iterable[Shape]) -> Iterator[_Outline]:
    """Yield the outlines of shapes in their order; plain boxes of one colour in a row are one."""
    for fill, run in itertools.groupby(shapes, key=_plain):
        if not fill:
            yield from map(_outline, run)
            continue
        sides = np.array([each.rect for each in run if isinstance(each, Box)])
        corners = sides[:, [0, 1, 2, 1, 2, 3, 0, 3, 0, 1]].reshape(-1, 2)
        codes = np.tile(np.array(_BOX, dtype=Path.code_type), len(sides))
        yield _Outline(Path(corners, codes), to_rgba(fill), _CLEAR, 0.0, ())


def _plain(shape: Shape) -> str:
    """Return the colour of a box without a border, round corners and a title; of others nothing."""
    if not isinstance(shape, Box) or shape.line or shape.radius or shape.title:
        return ""
    return shape.fill if shape.opacity >= 1 else ""


def _collection(
    outlines: Sequence[_Outline], where: Transform, *, point: float, rounded: bool
) -> Artist:
    """Draw outlines in their order, each with its own colours."""
    return PathCollection(
        [each.path for each in outlines],
        facecolors=np.array([each.fill for each in outlines]),
        edgecolors=np.array([each.line for each in outlines]),
        capstyle="round" if rounded else "butt",
        linewidths=[each.width * point for each in outlines],
        linestyles=[(0, [part * point for part in each.dash] or None) for each in outlines],
        # One more than there are: of a single outline matplotlib would make a marker.
        urls=[one_line(each.title) or None for each in outlines] + [None],
        transform=where,
    )


@singledispatch
def _outline(shape: Any) -> _Outline:
    raise TypeError(shape)


@_outline.register
def _(shape: Stroke) -> _Outline:
    points = [*shape.points, shape.points[0]] if shape.closed else list(shape.points)
    if not shape.curved:
        points = [
            each for each, _ in itertools.groupby(points)
        ]  # where a bus turns a corner stands twice
    codes = [Path.CURVE3 if shape.curved else Path.LINETO] * len(points)
    codes[0] = Path.MOVETO
    if shape.closed:
        codes[-1] = Path.CLOSEPOLY
    ink = to_rgba(shape.color, shape.opacity)
    return _Outline(Path(points, codes), _CLEAR, ink, shape.width, shape.dash, shape.title)


@_outline.register
def _(shape: Area) -> _Outline:
    loops = [Path([*loop, loop[0]], closed=True) for loop in shape.loops if loop]
    path = Path.make_compound_path(*loops)
    return _Outline(path, to_rgba(shape.fill, shape.opacity), _CLEAR, 0.0, ())


@_outline.register
def _(shape: Box) -> _Outline:
    line = to_rgba(shape.line) if shape.line else _CLEAR
    fill = to_rgba(shape.fill, shape.opacity)
    path = _rounded(shape.rect, shape.radius)
    return _Outline(path, fill, line, shape.width, shape.dash, shape.title)


@_outline.register
def _(shape: Dot) -> _Outline:
    line = to_rgba(shape.line) if shape.line else _CLEAR
    return _Outline(Path.circle(shape.at, shape.radius), to_rgba(shape.fill), line, shape.width, ())


def _rounded(rect: Rect, radius: float) -> Path:
    x1, y1, x2, y2 = rect
    radius = min(radius, rect.width / 2, rect.height / 2)
    if radius <= 0:
        return Path([(x1, y1), (x2, y1), (x2, y2), (x1, y2), (x1, y1)], closed=True)
    corners = BoxStyle.Round(pad=0, rounding_size=radius)
    return corners(x1, y1, rect.width, rect.height, 1.0)


def _text(shape: Words, where: Transform, *, point: float) -> Artist:
    weight = 500 if shape.bold else 400  # which DejaVu Sans does not distinguish
    return Text(
        *shape.at,
        one_line(shape.text),
        color=shape.color,
        horizontalalignment=_ANCHORS[shape.anchor],
        verticalalignment="baseline",
        fontproperties=FontProperties(fname=font_file(), size=shape.size * point, weight=weight),
        parse_math=False,
        transform=where,
    )


def _dots(picture: Picture, figure: Figure, *, point: float) -> Artist:
    """Draw the grid of dots: rows of dashes of no length with round ends."""
    frame, pitch = picture.frame, _PITCH / picture.zoom
    left = (math.floor(frame.x1 / pitch) + 0.5) * pitch
    rows = range(math.ceil(frame.y1 / pitch - 0.5), math.floor(frame.y2 / pitch + 0.5))
    ends = [((left, (row + 0.5) * pitch), (frame.x2, (row + 0.5) * pitch)) for row in rows]
    return PathPatch(
        Path.make_compound_path(*map(Path, ends)),
        facecolor="none",
        edgecolor=picture.dots,
        linewidth=2 * _DOT / picture.zoom * point,
        linestyle=(0, (0.001 * pitch * point, 0.999 * pitch * point)),
        capstyle="round",
        snap=False,
        transform=_place(picture, figure, point=point),
    )


def pdf(sheet: Sheet) -> bytes:
    """Return a sheet as the content of a PDF file, the same bytes each time."""
    content = io.BytesIO()
    told = {"Title": sheet.title, "Subject": sheet.about, "CreationDate": None}
    with printing():
        canvas: Any = FigureCanvasPdf(_figure(sheet))
        canvas.print_pdf(content, metadata=told)
    return content.getvalue()


def image(sheet: Sheet, *, scale: float = 1.0) -> Image.Image:
    """Paint a sheet, `scale` pixels where it asks for one."""
    with printing():
        return _pixels(_drawn(sheet, scale=scale))


def _drawn(sheet: Sheet, *, scale: float) -> Any:
    figure = _figure(sheet)
    figure.set_dpi(PER_INCH * scale)
    # A hair more, or a side of 639.9999 pixels would be one of 639.
    width, height = (side / PER_INCH + 1e-6 for side in sheet.size)
    figure.set_size_inches(width, height)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas


def _pixels(canvas: Any) -> Image.Image:
    painted = Image.frombytes("RGBA", canvas.get_width_height(), bytes(canvas.buffer_rgba()))
    return painted.convert("RGB")


class Frames:
    """Frames of a film on one ground, which is painted once.

    Parameters
    ----------
    ground
        What stands still.
    """

    def __init__(self, ground: Picture) -> None:
        self._picture = ground
        with printing():
            self._canvas = _drawn(ground, scale=1.0)
            self._ground = self._canvas.copy_from_bbox(self._canvas.figure.bbox)

    def paint(self, shapes: Iterable[Shape]) -> Image.Image:
        """Paint a frame: the ground with shapes on it."""
        canvas, figure = self._canvas, self._canvas.figure
        point = self._picture.zoom * POINTS
        with printing():
            canvas.restore_region(self._ground)
            for each in artists(shapes, self._picture, figure, point=point):
                each.set_figure(figure)
                figure.draw_artist(each)
            return _pixels(canvas)


_NOTHING = dict.fromkeys(("Creator", "Date", "Format", "Type"))
"""Metadata of an SVG that would differ by day or by version."""
_DEFINED = re.compile(r'<defs>\s*<path id="(\w+)" d="([^"]*)"[^>]*/>\s*</defs>')
_USED = re.compile(r'<use xlink:href="#(\w+)" x="([^"]*)" y="([^"]*)" style="([^"]*)"/>')
_TAG = re.compile(r"<[^>]+>")
_LINK = re.compile(r"""<a xlink:href=("|')(.*?)\1 target="_blank">""")
_STYLE = re.compile(r' style="([^"]*)"')
_UNTURNED = re.compile(r' transform="rotate\(-?0 [^"]*"')
_NAMED = re.compile(r'<g id="[^"]*"')
_NUMBER = re.compile(r"\d+\.\d+")
_BREAK = re.compile(r"\s*\n")


def svg(sheet: Sheet, *, column: float | None = None) -> str:
    """Return a sheet as the text of an SVG; in print it is `column` mm wide, where it is given."""
    content = io.StringIO()
    with printing(f"{sheet.title} {sheet.about} {sheet.ground}"):
        figure = _figure(sheet, in_units=True)
        figure.patch.set_visible(False)
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(content, metadata=_NOTHING)
    wide, high = (side * 72 for side in figure.get_size_inches())
    width, height = map(str, sheet.size)
    if column is not None:
        width, height = f"{column:g}mm", f"{column * high / wide:.3f}mm"
    whole = content.getvalue()
    body = whole[whole.index("</defs>") + len("</defs>") : whole.rindex("</svg>")]
    drawn = dict(_DEFINED.findall(body))
    body = _USED.sub(lambda used: _marker(used, drawn), _DEFINED.sub("", body))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" '
        f'height="{height}" viewBox="0 0 {wide:.3f} {high:.3f}" stroke-linejoin="round" '
        f'font-family="{FONTS}">\n'
        f"<title>{escape(one_line(sheet.title))}</title>\n"
        f"<desc>{escape(one_line(sheet.about))}</desc>\n"
        f'<rect width="100%" height="100%" fill="{sheet.ground}"/>'
        f"{_TAG.sub(_tag, body)}</svg>\n"
    )


def _marker(found: re.Match[str], drawn: Mapping[str, str]) -> str:
    """Return a marker where it is used, without an address."""
    name, x, y, style = found.groups()
    return f'<path transform="translate({x} {y})" d="{drawn[name]}" style="{style}"/>'


def _tag(found: re.Match[str]) -> str:
    """Return a tag as it can stand in a page."""
    tag = found[0]
    if tag == "</a>":
        return "</g>"
    if link := _LINK.fullmatch(tag):
        return f"<g><title>{link[2]}</title>"
    tag = _STYLE.sub(_attributes, _UNTURNED.sub("", _NAMED.sub("<g", tag)))
    return _BREAK.sub("", _NUMBER.sub(_rounded_off, tag))


def _rounded_off(found: re.Match[str]) -> str:
    """Return a number with two decimals at most; no picture shows more."""
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")


def _attributes(found: re.Match[str]) -> str:
    pairs = (each.partition(": ") for each in found[1].split("; "))
    return "".join(f' {name}="{value}"' for name, _, value in pairs if name != "font-family")
