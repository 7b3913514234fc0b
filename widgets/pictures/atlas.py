"""An atlas of regimes painted without a browser: collective by size, who is the best, and its gain.

Colours are those of `widgets.charts.atlas`; every cell names its method, so that no colour stands
alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ccl.serialization.quantity import format_size
from widgets.charts.atlas import colours, gain_words
from widgets.pictures import axes
from widgets.pictures.axes import Ink
from widgets.pictures.charts import ink_of
from widgets.pictures.lettering import shortened, width
from widgets.pictures.options import Style
from widgets.pictures.shapes import Box, Ground, Picture, Rect, Shape, Words

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Atlas, Cell

_HIGH = 3.6
"""Height of a row over the size of letters."""

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
    left = axes.widest(atlas.kinds, ink.size) + 1.2 * ink.size
    top, high = 2.2 * ink.size, _HIGH * ink.size
    across = (wide - left - 0.5 * ink.size) / len(atlas.sizes)
    shapes: list[Shape] = []
    for row, kind in enumerate(atlas.kinds):
        middle = top + (row + 0.5) * high
        at = (left - 0.7 * ink.size, middle + 0.35 * ink.size)
        shapes.append(Words(at, kind, ink.size, ink.text, anchor="end"))
        for column, size in enumerate(atlas.sizes):
            x, y = left + column * across, top + row * high
            rect = Rect(x, y, x + across, y + high).grown(-1.0)
            shapes += _cell(atlas.cell(kind, size), rect, tints, ink=ink)
    below = top + len(atlas.kinds) * high
    for column, size in enumerate(atlas.sizes):
        at = (left + (column + 0.5) * across, below + 1.5 * ink.size)
        shapes.append(Words(at, format_size(size), ink.size, ink.soft))
    legend = "the fastest method, and how many times as fast as a ring it is"
    shapes.append(Words((0.0, ink.size), legend, ink.size, ink.soft, anchor="start"))
    told = ((left + wide) / 2, below + 3.1 * ink.size)
    shapes.append(Words(told, "size of the whole buffer", ink.size, ink.text))
    frame = Rect(0.0, 0.0, wide, below + 3.9 * ink.size)
    title = f"Regimes of {atlas.topology}"
    return Picture(frame, 1.0, Ground(ink.ground), tuple(shapes), title, legend)


def _cell(cell: Cell, rect: Rect, tints: dict[str, str], *, ink: Ink) -> Iterator[Shape]:
    """Draw who is the best, and its gain below; an empty cell where nobody has a plan."""
    if cell.method is None:
        yield Box(rect, ink.line, radius=3.0, opacity=0.5)
        return
    told = f"{cell.kind} of {format_size(cell.size)}: {cell.method}, {gain_words(cell)}"
    yield Box(rect, tints[cell.method], radius=3.0, opacity=_TINT, title=told)
    x, y = rect.middle
    gain = "" if cell.gain is None else f"{cell.gain:.3g}×"
    lift = 0.35 if not gain else -0.25
    name = cell.method
    room = rect.width - 0.6 * ink.size
    size = ink.size * max(0.75, min(1.0, room / width(name, ink.size)))
    yield Words((x, y + lift * ink.size), shortened(name, size, room), size, ink.text)
    if gain:
        yield Words((x, y + 1.05 * ink.size), gain, ink.size, ink.text, bold=True)
