"""An atlas of regimes painted without a browser: collective by size, who is the best, and its gain.

Colours are those of `widgets.charts.atlas`; every cell names its method, so that no colour stands
alone.

Charts painted without a browser: methods over sizes, and how close a solve came over time.

Colours and markers are those of `widgets.charts.comparison`, so that a page, a notebook and a paper
show one thing; in print lines are thin and letters black.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ccl import text
from ccl.serialization.quantity import format_size
from formulations.analyses.comparison import Comparison
from widgets.charts.atlas import colours, gain_words
from widgets.charts.comparison import (
    LOOKS,
    MOST_NAMED,
    UNITS,
    VALUES,
    Look,
    Mark,
    Quantity,
    log_ticks,
    marks,
    span,
)
from widgets.pictures import axes
from widgets.pictures.axes import (
    DASHES,
    Area,
    Axis,
    Box,
    Dot,
    Entry,
    Ground,
    Ink,
    Picture,
    Point,
    Rect,
    Shape,
    Stroke,
    Words,
    shortened,
    width,
)
from widgets.pictures.axes import width as letters
from widgets.pictures.raster import Style

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Atlas, Cell

UPWARDS: Mapping[Quantity, str] = {
    "time": "makespan",
    "ratio": "makespan / bound",
    "algbw": "algbw",
}
"""What stands above the axis."""

SIZE = 11.5
"""Pixels of letters on a screen."""
POINTS = 8.0
"""Points of letters in print."""

_PAPER = replace(
    LOOKS["light"], ink="#000000", text="#000000", soft="#333333", line="#d6d6d6", ground="#ffffff"
)
_SHADE = 0.1
_PLOT_HIGH = 0.5
"""Height of a plot over its width."""


def look_of(style: Style) -> Look:
    """Return the colours of a style."""
    return _PAPER if style == "paper" else LOOKS[style]


def ink_of(style: Style, font: float | None) -> Ink:
    """Return how words and lines of a style are drawn; `font` in pixels, or None."""
    look = look_of(style)
    paper = style == "paper"
    size = font or (POINTS * 96 / 72 if paper else SIZE)
    return Ink(
        text=look.text, soft=look.soft, line=look.line, ground=look.ground, size=size, paper=paper
    )


@dataclass(frozen=True)
class _Plot:
    """A comparison on its axes."""

    comparison: Comparison
    quantity: Quantity
    look: Look
    ink: Ink
    box: Rect
    x: Axis
    y: Axis

    def at(self, size: float, makespan: float) -> Point:
        """Return where a plan of a size in bytes that takes µs is."""
        bound = self.comparison.bound(size).makespan
        return self.x.at(size), self.y.at(VALUES[self.quantity](size, makespan, bound))


def comparison_picture(
    comparison: Comparison,
    *,
    quantity: Quantity = "time",
    style: Style = "light",
    width: float = 720.0,
    font: float | None = None,
) -> Picture:
    """Draw methods over sizes, both axes logarithmic.

    Parameters
    ----------
    comparison
        What was found.
    quantity
        ``time``, ``ratio`` (makespan over bound) or ``algbw``.
    style
        ``light``, ``dark`` or ``paper``.
    width
        In pixels.
    font
        Size of letters in pixels; by default 11.5, in print 8 points.
    """
    ink, look = ink_of(style, font), look_of(style)
    plot = _plot(comparison, quantity, look=look, ink=ink, width=width)
    styles = marks(comparison, "light" if style == "paper" else style)
    named = {name: mark for name, mark in styles.items() if _found(comparison, name)}
    entries = [Entry(name, mark.color, mark.symbol, mark.dash) for name, mark in named.items()]
    entries.append(Entry("bound", look.bound, dash="dash"))
    told = axes.legend(
        entries, plot.box.y2 + 4.0 * ink.size, left=plot.box.x1, right=width - 4, ink=ink
    )
    shapes = [
        *_ground(plot),
        *_bound(plot),
        *_crossovers(plot),
        *(each for name, mark in named.items() for each in _line(plot, name, mark)),
        *told.shapes,
    ]
    problem = comparison.problem
    title = f"{problem.collective.kind} on {problem.topology.name}"
    about = f"{UPWARDS[quantity]} of {len(named)} method{'s' * (len(named) != 1)} over sizes"
    frame = Rect(0.0, 0.0, width, told.below + 4)
    return Picture(frame, 1.0, Ground(ink.ground), tuple(shapes), title, about)


def _found(comparison: Comparison, name: str) -> bool:
    rows = (comparison.row(name, size) for size in comparison.sizes)
    return any(row is not None and row.result for row in rows)


def _plot(
    comparison: Comparison, quantity: Quantity, *, look: Look, ink: Ink, width: float
) -> _Plot:
    value = VALUES[quantity]
    least = {size: comparison.bound(size).makespan for size in comparison.sizes}
    known = [
        value(row.size, row.result.makespan, least[row.size])
        for row in comparison.rows
        if row.result
    ]
    low, high = span([*known, *(value(size, us, us) for size, us in least.items())])
    ticks = log_ticks(low, high)
    left = axes.widest(map(UNITS[quantity], ticks), ink.size) + 1.2 * ink.size
    top = 2.2 * ink.size
    right = width - axes.widest([format_size(comparison.sizes[-1])], ink.size) / 2 - 2
    box = Rect(left, top, right, top + _PLOT_HIGH * width)
    first, last = span(list(comparison.sizes))
    x, y = Axis(first, last, box.x1, box.x2), Axis(low, high, box.y2, box.y1)
    return _Plot(comparison, quantity, look, ink, box, x, y)


def _ground(plot: _Plot) -> Iterator[Shape]:
    ink, box = plot.ink, plot.box
    ticks = log_ticks(plot.y.low, plot.y.high)
    yield from axes.upright(plot.y, ticks, UNITS[plot.quantity], plot=box, ink=ink)
    yield from axes.across(plot.x, plot.comparison.sizes, format_size, plot=box, ink=ink)
    yield axes.frame(box, ink)
    yield Words((0.0, ink.size), UPWARDS[plot.quantity], ink.size, ink.text, anchor="start")
    below = (box.middle[0], box.y2 + 3.1 * ink.size)
    yield Words(below, "size of the whole buffer", ink.size, ink.text)


def _bound(plot: _Plot) -> Iterator[Shape]:
    """Draw the bound, and shade the side on which no plan can be."""
    sizes = plot.comparison.sizes
    points = [plot.at(size, plot.comparison.bound(size).makespan) for size in sizes]
    if len(points) == 1:
        points = [(plot.box.x1, points[0][1]), (plot.box.x2, points[0][1])]
    edge = plot.box.y1 if plot.quantity == "algbw" else plot.box.y2
    corners = (*points, (points[-1][0], edge), (points[0][0], edge))
    yield Area((corners,), plot.look.bound, opacity=_SHADE)
    dash = DASHES["dash"]
    yield Stroke(tuple(points), plot.look.bound, plot.ink.thick, dash=dash, title="bound")


def _line(plot: _Plot, name: str, mark: Mark) -> Iterator[Shape]:
    """Draw a method; a size without a plan breaks its line."""
    rows = [plot.comparison.row(name, size) for size in plot.comparison.sizes]
    pieces: list[list[Point]] = [[]]
    for row in rows:
        if row is None or row.result is None:
            pieces.append([])
        else:
            pieces[-1].append(plot.at(row.size, row.result.makespan))
    for points in pieces:
        if len(points) > 1:
            dash = DASHES[mark.dash]
            yield Stroke(tuple(points), mark.color, plot.ink.thick, dash=dash, title=name)
        for each in points:
            yield axes.marker(mark.symbol, each, plot.ink.radius, mark.color)


def _crossovers(plot: _Plot) -> Iterator[Shape]:
    """Mark where another method becomes the fastest, and name the first few at the top."""
    ink, box = plot.ink, plot.box
    for i, each in enumerate(plot.comparison.crossovers()[:MOST_NAMED]):
        x = plot.x.at(each.size)
        ends = ((x, box.y1), (x, box.y2))
        yield Stroke(ends, ink.soft, ink.thin, dash=DASHES["dot"], round=False)
        if plot.quantity == "time":
            at = (x, plot.y.at(each.makespan))
            yield Dot(at, 1.9 * ink.radius, ink.ground, line=ink.text, width=ink.thin * 1.5)
        told = f"{each.after} from {text.size(each.size)}"
        right = x + 4 + letters(told, ink.size) < box.x2
        at = (x + (4 if right else -4), box.y1 + (1 + 1.4 * i) * ink.size)
        yield Words(at, told, ink.size, ink.text, anchor="start" if right else "end")


def course_picture(
    course: Mapping[str, Any],
    *,
    style: Style = "light",
    width: float = 560.0,
    font: float | None = None,
) -> Picture:
    """Draw how close a solve came over time, of what `widgets.view_model.scene.course` returns.

    Parameters
    ----------
    course
        Best makespan and bound over seconds.
    style, width, font
        As for `comparison_picture`.
    """
    ink, look = ink_of(style, font), look_of(style)
    points: Sequence[Sequence[float | None]] = course["points"]
    known = [value for row in points for value in row[1:] if value]
    low, high = span(known) if known else (1.0, 10.0)
    ticks = log_ticks(low, high)
    left = axes.widest(map(text.duration, ticks), ink.size) + 1.2 * ink.size
    top = 2.2 * ink.size
    box = Rect(left, top, width - 2 * ink.size, top + _PLOT_HIGH * width)
    seconds = max(course["seconds"], 1e-3)
    x, y = Axis(0.0, seconds, box.x1, box.x2, log=False), Axis(low, high, box.y2, box.y1)
    names = ("best makespan", "lower bound")
    entries = [Entry(names[0], look.lines[0]), Entry(names[1], look.bound, dash="dash")]
    told = axes.legend(entries, box.y2 + 4.0 * ink.size, left=box.x1, right=width - 4, ink=ink)
    shapes: list[Shape] = [
        *axes.upright(y, ticks, text.duration, plot=box, ink=ink),
        *axes.across(x, _even(seconds), text.seconds, plot=box, ink=ink),
        axes.frame(box, ink),
        Words((0.0, ink.size), "makespan", ink.size, ink.text, anchor="start"),
        Words((box.middle[0], box.y2 + 3.1 * ink.size), "solved for", ink.size, ink.text),
        *told.shapes,
    ]
    for i, entry in enumerate(entries):
        steps = list(_steps(points, i + 1, until=seconds))
        at = tuple((x.at(time), y.at(value)) for time, value in steps)
        if len(at) > 1:
            dash = DASHES[entry.dash]
            shapes.append(Stroke(at, entry.color, ink.thick, dash=dash, title=entry.name))
    frame = Rect(0.0, 0.0, width, told.below + 4)
    about = "best makespan and lower bound while it was solved"
    return Picture(frame, 1.0, Ground(ink.ground), tuple(shapes), "Gap", about)


def _steps(
    points: Sequence[Sequence[float | None]], column: int, *, until: float
) -> Iterator[tuple[float, float]]:
    """Yield the corners of a line that holds each value until the next."""
    last: float | None = None
    for row in points:
        time, value = row[0] or 0.0, row[column]
        if value is None:
            continue
        if last is not None and value != last:
            yield time, last
        yield time, value
        last = value
    if last is not None:
        yield until, last


def _even(high: float) -> list[float]:
    """Return round values from zero on, six at most."""
    power = 10.0 ** math.floor(math.log10(high / 5))
    apart = next(each * power for each in (1, 2, 5, 10) if high <= 5 * each * power * (1 + 1e-9))
    return [apart * i for i in range(int(high / apart + 1e-9) + 1)]


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
