"""Diagrams of boxes and bars: what proves a bound, how busy links are, what they are worth.

An atlas of regimes is one as well: collective by size, who is the best, and its gain. Colours are
those of `widgets.charts.atlas`; every cell names its method, so that no colour stands alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ccl import text
from ccl.bound import Bound, Cut, Path, Prices
from ccl.serialization.quantity import format_size
from widgets.charts.atlas import colours, gain_words
from widgets.charts.comparison import LOOKS, Look
from widgets.charts.load import HEATS, ROWS
from widgets.print.sheet import (
    Area,
    Box,
    Picture,
    Point,
    Rect,
    Shape,
    Stroke,
    Words,
    around,
    fitted,
    shortened,
    width,
)
from widgets.print.style import LIGHT, PIXELS_PER_INCH, POINTS_PER_INCH, Style, between
from widgets.view_model.classes import TITLE, heat
from widgets.words import bound_claim, bound_proof

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Atlas, Cell

_BOX = (220.0, 26.0)
"""Width of a side of a cut, and height of a line in it."""
_APART = 190.0
_LINES = 8
"""Names on one side; others are counted."""


def bound_svg(bound: Bound) -> str | None:
    """Draw the witness of a bound; None where it has none."""
    if isinstance(bound.witness, Cut):
        shapes = _cut(bound.witness)
    elif isinstance(bound.witness, Path):
        shapes = _path(bound.witness)
    else:
        return None
    frame = around([each.rect for each in shapes if isinstance(each, Box)])
    title, at = bound_claim(bound), (0.0, frame.y2 + 28)
    shapes.append(Words(at, title, 14.0, LIGHT.text, bold=True, anchor="start"))
    right = max(frame.x2, width(title, 14.0))
    frame = Rect(-16.0, -16.0, right + 16.0, frame.y2 + 44)
    return _svg(Picture(frame, 1.0, LIGHT.bg, tuple(shapes), title, bound_proof(bound)))


def _svg(picture: Picture) -> str:
    from widgets.print.painter import svg  # noqa: PLC0415 - it loads matplotlib

    return svg(picture)


def _cut(cut: Cut) -> list[Shape]:
    """Draw the devices inside on the left, where their links lead to on the right."""
    beyond = list(dict.fromkeys(dst for _, dst in cut.links))
    sides = [("inside", list(cut.inside)), ("where its links lead", beyond)]
    lines = max(1, *(min(len(names), _LINES + 1) for _, names in sides))
    high = (lines + 1) * _BOX[1]
    shapes: list[Shape] = []
    for i, (title, names) in enumerate(sides):
        left, own = i * (_BOX[0] + _APART), (min(len(names), _LINES + 1) + 1) * _BOX[1]
        rect = Rect(left, (high - own) / 2, left + _BOX[0], (high + own) / 2)
        shapes += _side(title, names, rect, cut=i == 0)
    start, end = (_BOX[0] + 8, high / 2), (_BOX[0] + _APART - 8, high / 2)
    shapes += _arrow(start, end, LIGHT.cut, thick=5.0)
    middle = _BOX[0] + _APART / 2
    shapes += [
        Words((middle, high / 2 - 14), text.bandwidth(cut.bandwidth), 15.0, LIGHT.text, bold=True),
        Words((middle, high / 2 + 24), text.count(len(cut.links), "link"), 12.0, LIGHT.dim),
    ]
    return shapes


def _side(title: str, names: list[str], rect: Rect, *, cut: bool) -> list[Shape]:
    shown = names if len(names) <= _LINES + 1 else names[:_LINES]
    told = [*shown, *([f"and {len(names) - _LINES} more"] if len(shown) < len(names) else [])]
    middle = rect.middle[0]
    line, dash = (LIGHT.cut, (7.0, 6.0)) if cut else (LIGHT.box_line, ())
    shapes: list[Shape] = [Box(rect, LIGHT.surface, 13.0, line, 1.8, dash=dash)]
    shapes.append(Words((middle, rect.y1 + 18), title, 11.0, LIGHT.dim))
    for i, name in enumerate(told):
        at = (middle, rect.y1 + 18 + (i + 1) * _BOX[1] - 5)
        short = shortened(name, 13.0, rect.width - 24)
        shapes.append(Words(at, short, 13.0, LIGHT.text, bold=True))
    return shapes


def _path(path: Path) -> list[Shape]:
    """Draw the devices of a path from left to right."""
    names = list(path.devices)
    if len(names) > _LINES:
        names = [*names[: _LINES // 2], "…", *names[-_LINES // 2 + 1 :]]
    shapes: list[Shape] = []
    for i, name in enumerate(names):
        rect = Rect(i * 132.0, 0.0, i * 132.0 + 96, 44.0)
        shapes.append(Box(rect, LIGHT.surface, 9.0, LIGHT.gpu, 1.6))
        short = shortened(name, 13.0, 84.0)
        shapes.append(Words((rect.middle[0], 27), short, 13.0, LIGHT.text, bold=True))
        if i:
            shapes += _arrow((rect.x1 - 32, 22), (rect.x1 - 5, 22), LIGHT.link, thick=2.2)
    return shapes


def _arrow(start: Point, end: Point, color: str, *, thick: float) -> list[Shape]:
    """Draw a line with a head, from left to right."""
    (x1, y), (x2, _) = start, end
    size = 5 + thick * 1.4
    head = ((x2, y), (x2 - size, y - size * 0.6), (x2 - size, y + size * 0.6))
    return [Stroke(((x1, y), (x2 - size, y)), color, thick, round=False), Area((head,), color)]


_NAME = 190.0
"""Width of a name at most."""
_LOAD = (930.0, 15.0)
"""Where a row of the heat map ends, and its height."""
_PRICE = (560.0, 17.0)
"""Length of the longest bar, and height of its row."""
_DEAREST = 24
"""Links whose prices are drawn, the dearest first."""


def _column(names: list[str]) -> float:
    """Return where the names of rows end."""
    return min(_NAME, max(width(each, 10.0) for each in names))


def _name(name: str, left: float, base: float) -> Words:
    return Words((left, base), shortened(name, 10.0, left), 10.0, LIGHT.text, anchor="end")


def load_svg(load: dict[str, Any], *, rows: int = ROWS) -> str | None:
    """Draw what `widgets.charts.load.link_load` returns, the busiest links; None without any."""
    names, busy = load["links"][:rows], load["busy"][:rows]
    if not names:
        return None
    left, (right, high) = _column(names), _LOAD
    shapes: list[Shape] = []
    for i, (name, row) in enumerate(zip(names, busy, strict=True)):
        shapes.append(_name(name, left, (i + 0.7) * high))
        shapes += _row(name, row, Rect(left + 8, i * high + 1, right, (i + 1) * high - 1))
    end = len(names) * high + 12
    for column in sorted({0, len(busy[0]) // 2, len(busy[0])}):
        x = left + 8 + (right - left - 8) * column / len(busy[0])
        shapes.append(Words((x, end), text.duration(column * load["step"]), 10.0, LIGHT.dim))
    frame = Rect(-12.0, -12.0, right + 24.0, end + 12.0)
    about = f"{len(names)} links over time, the busiest first; darkest is always busy"
    return _svg(Picture(frame, 1.0, LIGHT.bg, tuple(shapes), "Link load", about))


def _row(name: str, row: list[float], place: Rect) -> Iterator[Shape]:
    """Draw one link; columns of one colour that follow one another are one box."""
    heats, column = HEATS["light"], 0
    for share, alike in groupby(row):
        ends = column, column + len(list(alike))
        x1, x2 = (place.x1 + place.width * each / len(row) for each in ends)
        half = (heats.empty, heats.middle) if share <= 0.5 else (heats.middle, heats.full)
        color = between(*half, share * 2 - (share > 0.5))
        told = f"{name}, busy {text.share(share)}"
        yield Box(Rect(x1, place.y1, x2, place.y2), color, title=told)
        column = ends[1]


def price_svg(prices: Prices) -> str | None:
    """Draw the prices of the dearest links as bars; None where no link has one."""
    dearest = prices.dearest[:_DEAREST]
    if not dearest:
        return None
    names = ["→".join(ends) for ends in dearest]
    left, (longest, high) = _column(names), _PRICE
    most, heats = prices.links[dearest[0]], HEATS["light"]
    shapes: list[Shape] = []
    for i, (name, ends) in enumerate(zip(names, dearest, strict=True)):
        y, price = i * high, prices.links[ends]
        bar = Rect(left + 8, y + 2, left + 8 + longest * price / most, y + high - 2)
        colour = between(heats.middle, heats.full, heat(price, most))
        shapes.append(_name(name, left, y + 12.5))
        shapes.append(Box(bar, colour, title=f"{name}: {price:.4g} {TITLE}"))
        at = (bar.x2 + 6, y + 12.5)
        shapes.append(Words(at, f"{price:.3g}", 10.0, LIGHT.dim, anchor="start"))
    end = len(names) * high + 14
    more = len(prices.dearest) - len(names)
    note = TITLE + (f", and {more} more links" if more else "")
    shapes.append(Words((left + 8, end), note, 10.0, LIGHT.dim, anchor="start"))
    frame = Rect(-12.0, -12.0, left + longest + 84.0, end + 24.0)
    about = f"{note}, the dearest first: {prices.model}"
    return _svg(Picture(frame, 1.0, LIGHT.bg, tuple(shapes), "Prices of links", about))


_SIZE = 11.5
"""Pixels of letters of a chart on a screen."""
_POINTS = 8.0
"""Points of letters in print."""
_PAPER_CHART = replace(
    LOOKS["light"], ink="#000000", text="#000000", soft="#333333", line="#d6d6d6", ground="#ffffff"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ink:
    """How words and lines of a chart are drawn; `paper` has thin lines.

    Parameters
    ----------
    look
        Its colours.
    size
        Of letters, pixels.
    paper
        Whether it is for print.
    """

    look: Look
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


def ink_of(style: Style, font: float | None) -> Ink:
    """Return how words and lines of a style are drawn; `font` in pixels, or None."""
    paper = style == "paper"
    look = _PAPER_CHART if paper else LOOKS[style]
    size = font or (_POINTS / POINTS_PER_INCH * PIXELS_PER_INCH if paper else _SIZE)
    return Ink(look=look, size=size, paper=paper)


_HIGH = 3.6
"""Height of a row of the atlas over the size of letters."""
_TINT = 0.34
"""How much of its colour a cell has; words on it must be read."""


def atlas_picture(
    atlas: Atlas, *, style: Style = "light", wide: float = 760.0, font: float | None = None
) -> Picture:
    """Draw collectives over sizes, each cell in the colour of the best method with its gain.

    Parameters
    ----------
    atlas
        What was found.
    style
        ``light``, ``dark`` or ``paper``.
    wide
        In pixels.
    font
        Size of letters in pixels; by default 11.5, in print 8 points.
    """
    ink = ink_of(style, font)
    tints = colours(atlas, "light" if style == "paper" else style)
    left = max(width(each.capitalize(), ink.size) for each in atlas.kinds) + 1.2 * ink.size
    top, high = 2.2 * ink.size, _HIGH * ink.size
    across = (wide - left - 0.5 * ink.size) / len(atlas.sizes)
    shapes: list[Shape] = []
    for row, kind in enumerate(atlas.kinds):
        middle = top + (row + 0.5) * high
        at = (left - 0.7 * ink.size, middle + 0.35 * ink.size)
        shapes.append(Words(at, kind.capitalize(), ink.size, ink.look.text, anchor="end"))
        for column, size in enumerate(atlas.sizes):
            x, y = left + column * across, top + row * high
            rect = Rect(x, y, x + across, y + high).grown(-1.0)
            shapes += _cell(atlas.cell(kind, size), rect, tints, ink=ink)
    below = top + len(atlas.kinds) * high
    for column, size in enumerate(atlas.sizes):
        at = (left + (column + 0.5) * across, below + 1.5 * ink.size)
        shapes.append(Words(at, format_size(size), ink.size, ink.look.soft))
    legend = "the fastest method, and how many times as fast as a ring it is"
    shapes.append(Words((0.0, ink.size), legend, ink.size, ink.look.soft, anchor="start"))
    told = ((left + wide) / 2, below + 3.1 * ink.size)
    shapes.append(Words(told, "size of the whole buffer", ink.size, ink.look.text))
    frame = Rect(0.0, 0.0, wide, below + 3.9 * ink.size)
    title = f"Regimes of {atlas.topology}"
    return Picture(frame, 1.0, ink.look.ground, tuple(shapes), title, legend)


def _cell(cell: Cell, rect: Rect, tints: dict[str, str], *, ink: Ink) -> Iterator[Shape]:
    """Draw who is the best, and its gain below; an empty cell where nobody has a plan."""
    if cell.method is None:
        yield Box(rect, ink.look.line, radius=3.0, opacity=0.5)
        return
    told = (
        f"{cell.kind.capitalize()} of {format_size(cell.size)}: {cell.method}, {gain_words(cell)}"
    )
    yield Box(rect, tints[cell.method], radius=3.0, opacity=_TINT, title=told)
    x, y = rect.middle
    gain = "" if cell.gain is None else f"{cell.gain:.3g}×"
    lift = 0.35 if not gain else -0.25
    name, size = fitted(cell.method, ink.size, rect.width - 0.6 * ink.size)
    yield Words((x, y + lift * ink.size), name, size, ink.look.text)
    if gain:
        yield Words((x, y + 1.05 * ink.size), gain, ink.size, ink.look.text, bold=True)
