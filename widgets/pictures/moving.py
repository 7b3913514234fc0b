"""What a plan adds to a drawing at a time: cells that fill up, dots that travel along the links.

As on the canvas (`widgets/js/src/{cells,tokens}.js`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from widgets.pictures.colors import Look
from widgets.pictures.playback import Flight, Playback
from widgets.pictures.shapes import Box, Dot, Point, Rect, Shape, Stroke
from widgets.pictures.stage import Line, Stage

_MOST_CELLS = 256
_SMALLEST_CELL = 1.3
"""Pixels of a cell below which one bar says as much."""
_AREA = (60.0, 24.0)
_MANY_TOKENS = 800
"""Dots above which outlines and tails cannot be seen."""
_TALL = 50.0


@dataclass(frozen=True, slots=True)
class Moment:
    """A plan at a time.

    Parameters
    ----------
    playback
        The plan.
    time
        µs.
    """

    playback: Playback
    time: float


def cells(stage: Stage, moment: Moment, look: Look, *, zoom: float) -> Iterator[Shape]:
    """Draw what each device holds: a cell per chunk, or where they are too small one bar."""
    playback = moment.playback
    columns, rows = _grid(playback.chunks)
    small = min(_AREA[0] / columns, _AREA[1] / rows) * zoom < _SMALLEST_CELL
    draw = _bar if small or playback.chunks > _MOST_CELLS else _cells
    for name, levels in playback.levels(moment.time).items():
        box = stage.boxes.get(name)
        if box is None:
            continue  # its host is folded
        tall = box.height > _TALL
        x, width = box.middle[0] - _AREA[0] / 2, _AREA[0]
        height = _AREA[1] if tall else 13.0
        y = box.y2 - (_AREA[1] + 8 if tall else 20.0)
        yield from draw(Rect(x, y, x + width, y + height), levels, playback, empty=look.empty)


def _grid(count: int, width: float = _AREA[0], height: float = _AREA[1]) -> tuple[int, int]:
    """Columns and rows with large cells, near squares, and few places left empty."""
    best, size = (max(1, count), 1), 0.0
    for rows in range(1, min(count, 16) + 1):
        columns = math.ceil(count / rows)
        full = count / (columns * rows)
        found = min(width / columns, height / rows * 0.8) * full * full
        if found > size:
            best, size = (columns, rows), found
    return best


def _cells(
    area: Rect, levels: Sequence[float], playback: Playback, *, empty: str
) -> Iterator[Shape]:
    """Draw a cell per chunk; one that is there in part is filled from below."""
    columns, rows = _grid(len(levels), area.width, area.height)
    w, h = area.width / columns, area.height / rows
    gap = min(1.4, w * 0.18)
    for chunk, level in enumerate(levels):
        x, y = area.x1 + chunk % columns * w, area.y1 + chunk // columns * h
        bottom = y + h - gap
        if level < 1:
            yield Box(Rect(x, y, x + w - gap, bottom), empty)
        if level > 0:
            full = Rect(x, bottom - (h - gap) * level, x + w - gap, bottom)
            yield Box(full, playback.chunk_colors[chunk])


def _bar(area: Rect, levels: Sequence[float], playback: Playback, *, empty: str) -> Iterator[Shape]:
    """Draw one bar, a segment per origin, as long as the share of all chunks that is there."""
    sums = [0.0] * len(playback.origins)
    for chunk, level in enumerate(levels):
        sums[playback.origin_of[chunk]] += level
    top, bottom = area.y1 + 5, area.y2 - 3
    yield Box(Rect(area.x1, top, area.x2, bottom), empty)
    x = area.x1
    for origin, total in enumerate(sums):
        width = total / len(levels) * area.width
        if width > 0:
            yield Box(Rect(x, top, x + width, bottom), playback.colors[origin])
        x += width


@dataclass(frozen=True, slots=True)
class _Token:
    at: Point
    tail: Point
    radius: float
    color: str


def tokens(stage: Stage, moment: Moment, look: Look, *, zoom: float) -> Iterator[Shape]:
    """Draw the chunks that are on their way, each at its place on its side of the link."""
    if moment.time >= moment.playback.makespan:
        return
    flights = moment.playback.flights(moment.time)
    found = list(_tokens(stage, flights, moment.playback, zoom=zoom))
    if len(flights) < _MANY_TOKENS:
        for each in found:
            yield Stroke((each.tail, each.at), each.color, each.radius * 1.1, opacity=0.45)
    for each in found:
        line, width = (look.bg, 0.9) if len(flights) < _MANY_TOKENS else ("", 0.0)
        yield Dot(each.at, each.radius, each.color, line, width)


def _tokens(
    stage: Stage, flights: list[Flight], playback: Playback, *, zoom: float
) -> Iterator[_Token]:
    radius = _radius(len(flights), zoom)
    seen: dict[tuple[int, bool], int] = {}
    for flight in flights:
        ends = flight.src, flight.dst
        if ends not in stage.lanes:
            continue  # inside a folded host
        line, forth = stage.lanes[ends]
        way_of = id(line), forth
        behind = seen.get(way_of, 0)
        seen[way_of] = behind + 1
        # Those sent side by side follow one another.
        gap = min(0.25, behind * radius * 2.4 / line.curve.length)
        way = min(1.0, max(0.0, flight.way - gap))
        if _hidden(line, way if forth else 1 - way):
            continue
        tail = max(0.0, way - radius * 3.6 / line.curve.length)
        yield _Token(
            place(line, way, forth=forth),
            place(line, tail, forth=forth),
            radius * (0.55 + 0.45 * min(1.0, flight.fraction)),
            playback.chunk_colors[flight.chunk],
        )


def place(line: Line, way: float, *, forth: bool) -> Point:
    """Return where on its side of a line a chunk is that has gone so far."""
    side = line.lane if forth else -line.lane
    return line.curve.at(way if forth else 1 - way, side)


def _radius(count: int, zoom: float) -> float:
    """Smaller dots where there are many, about as large on the picture at every zoom."""
    pixels = 3.8 - 1.9 * min(1.0, max(0.0, (count - 200) / 1800))
    return max(pixels * 0.85, min(6.5, pixels / zoom))


def _hidden(line: Line, way: float) -> bool:
    """Whether a place on a line is beneath a device that the line crosses."""
    parts = line.covered
    return bool(parts) and parts[min(len(parts) - 1, int(way * len(parts)))]
