"""A drawing as shapes: frames of hosts, links, devices, the cut, and at a time what moves.

What the canvas shows (`widgets/js/src/style.js`) in the same order from the ground up. What stands
still and what moves are apart, so that a film paints the former once.

Lines above and below a picture of a plan: what it is, whose chunks have which colour, when.

The argument of a bound as SVG where its cluster is not at hand: what leaves what, or a way.

The heat map of links as SVG, for where no figure runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ccl import text
from ccl.bound import Bound, Cut, Path
from ccl.topology import Device
from widgets.charts.load import HEATS, ROWS
from widgets.pictures import axes
from widgets.pictures.axes import (
    Area,
    Box,
    Curve,
    Ground,
    Picture,
    Point,
    Rect,
    Shape,
    Stroke,
    Words,
    around,
)
from widgets.pictures.cutting import Region
from widgets.pictures.playback import Moment, Playback, cells, tokens
from widgets.pictures.stage import Group, Line, Stage
from widgets.pictures.svg import LIGHT, Look, between, svg
from widgets.words import bound_proof

HEADING = 50.0
"""Pixels above the drawing."""
CAPTION = 54.0
"""Pixels below it."""

_RAMP = (96.0, 8.0)
_PIECES = 24
_CAPTION_NARROW = 430.0
"""Pixels of a picture that has no room for the legend."""


def caption(moment: Moment, look: Look, *, frame: Rect, zoom: float) -> Iterator[Shape]:
    """Draw the lines of a moment; sizes are in pixels of the picture."""
    pixel = 1 / zoom
    left, right = frame.x1 + 16 * pixel, frame.x2 - 16 * pixel
    title = axes.shortened(moment.playback.title, 13 * pixel, frame.width - 32 * pixel, bold=True)
    yield Words(
        (left, frame.y1 + 25 * pixel), title, 13 * pixel, look.text, bold=True, anchor="start"
    )
    base = frame.y2 - 20 * pixel
    told = when(moment)
    yield Words((right, base), told, 12 * pixel, look.text, bold=True, anchor="end")
    share = min(1.0, moment.time / moment.playback.makespan) if moment.playback.makespan else 1.0
    top, bottom = frame.y2 - 9 * pixel, frame.y2 - 5 * pixel
    yield Box(Rect(left, top, right, bottom), look.track, 2 * pixel)
    done = left + (right - left) * share
    if done - left > 4 * pixel:
        yield Box(Rect(left, top, done, bottom), look.accent, 2 * pixel)
    room = frame.width * zoom - axes.width(told, 12, bold=True)
    if room > _CAPTION_NARROW:
        yield from _legend(moment.playback, look, left, base, pixel=pixel)


def when(moment: Moment) -> str:
    """Say which epoch it is and how much time has gone by."""
    playback = moment.playback
    done = moment.time >= playback.makespan * (1 - 1e-9)
    epoch = playback.epochs if done else playback.epoch_at(moment.time) + 1
    clock = text.moment(moment.time, playback.makespan)
    return f"Epoch {epoch} / {playback.epochs} · {clock}"


def _legend(
    playback: Playback, look: Look, x: float, base: float, *, pixel: float
) -> Iterator[Shape]:
    size = 11 * pixel
    names = [_name(playback, playback.origins[end]) for end in (0, -1)]
    for word, color in (("Chunk origin", look.dim), (names[0], look.text)):
        yield Words((x, base), word, size, color, anchor="start")
        x += axes.width(word, size) + 8 * pixel
    width, height = _RAMP[0] * pixel, _RAMP[1] * pixel
    ramp = _ramp(playback.colors)
    for index, color in enumerate(ramp):
        start, end = x + width * index / len(ramp), x + width * (index + 1) / len(ramp)
        yield Box(Rect(start, base - height, end, base), color)
    x += width + 8 * pixel
    if len(playback.origins) > 1:
        yield Words((x, base), names[1], size, look.text, anchor="start")


def _name(playback: Playback, origin: int) -> str:
    return axes.shortened(playback.names[origin], 11, 80)


def _ramp(colors: list[str]) -> list[str]:
    """Return the colours of the legend: each one of few, a smooth row of many."""
    if len(colors) <= _PIECES // 3:
        return colors
    steps = [index * (len(colors) - 1) / (_PIECES - 1) for index in range(_PIECES)]
    return [
        between(colors[int(at)], colors[min(len(colors) - 1, int(at) + 1)], at - int(at))
        for at in steps
    ]


_SIDE = 30.0
"""Pixels around the drawing."""
_CLOSE = 8.0
"""Pixels around it in print."""
_NEAREST = 1.6
"""Zoom at most of a picture of the usual width: a small drawing is not blown up."""
_USUAL = 1280.0
_TALLEST = 1.1
"""Height of a picture at most, over its width."""
_NARROW = 800.0
"""Pixels of a picture below which the cut's label is smaller."""
_TALLEST_PAGE = 3.0
"""The same in print."""
_FAR = (0.72, 0.5)
"""Zooms below which names are written larger, so that they can be read from afar."""
_LEAST = 4.5
"""Pixels of letters that are worth writing."""
_FINEST = 0.4
"""Pixels of a line at least."""
_RADIUS = {"gpu": 9.0, "switch": 17.0, "memory": 9.0, "nic": 5.0}
_TIGHT = 0.8
"""Share of the room above which a name is fitted, since a screen's font may be wider."""
_BOTH = 2
"""Links of a line that is no bundle."""
_ROOM = {"gpu": 70.0, "switch": 108.0, "memory": 84.0, "nic": 64.0}
"""Width of a name at most."""


@dataclass(frozen=True)
class View:
    """A stage seen on a picture.

    Parameters
    ----------
    stage
        Where everything stands.
    look
        Colours.
    width
        Of the picture, pixels.
    region
        The cut that is shown, or None.
    filled
        Whether devices show what they hold.
    captioned
        Whether there is room for the time and the origins of chunks.
    font
        Size of names in pixels; None is as on the canvas.
    """

    stage: Stage
    look: Look
    width: float = _USUAL
    region: Region | None = None
    filled: bool = False
    captioned: bool = False
    font: float | None = None

    @cached_property
    def _content(self) -> Rect:
        frame = self.stage.content
        if self.region is not None and self.region.frame is not None:
            frame = around([frame, self.region.frame.grown(3.0)])
        return frame

    @cached_property
    def _above(self) -> float:
        return HEADING if self.captioned else self._beside

    @cached_property
    def _below(self) -> float:
        return CAPTION if self.captioned else self._beside

    @property
    def _beside(self) -> float:
        return _CLOSE if self.look.paper else _SIDE

    @cached_property
    def zoom(self) -> float:
        """Pixels of a drawing unit."""
        content = self._content
        zoom = (self.width - 2 * self._beside) / content.width
        nearest, tallest = (math.inf, _TALLEST_PAGE) if self.look.paper else (_NEAREST, _TALLEST)
        high = max(60.0, self.width * tallest - self._above - self._below)
        return min(zoom, nearest * max(1.0, self.width / _USUAL), high / content.height)

    @cached_property
    def spot(self) -> Rect | None:
        """Where the label of the cut stands."""
        if self.region is None:
            return None
        return self.region.spot(self._seen, zoom=self.zoom, size=self._label)

    @property
    def _seen(self) -> Rect:
        """What is in view, without the lines above and below and a narrow border."""
        aside = _CLOSE / 2
        top, bottom = (HEADING * 0.7, CAPTION * 0.7) if self.captioned else (aside, aside)
        frame, pixel = self.frame, 1 / self.zoom
        return Rect(
            frame.x1 + aside * pixel,
            frame.y1 + top * pixel,
            frame.x2 - aside * pixel,
            frame.y2 - bottom * pixel,
        )

    @property
    def _label(self) -> float:
        """Pixels of the letters of the cut's label."""
        return self.font or (12.5 if self.width > _NARROW else 11.0)

    @cached_property
    def frame(self) -> Rect:
        """What is seen, in drawing units: as wide as asked for, as high as needed."""
        content = self._content
        half = max(self.width / 2 / self.zoom, content.width / 2)
        x = content.middle[0]
        top, bottom = self._above / self.zoom, self._below / self.zoom
        return Rect(x - half, content.y1 - top, x + half, content.y2 + bottom)

    @cached_property
    def far(self) -> int:
        """How far away it is seen: 0 near, 2 farthest."""
        return sum(self.zoom < each for each in _FAR)

    def picture(self, moment: Moment | None = None) -> Picture:
        """Return the picture, of a plan at a moment if one is given."""
        shapes = [*self.still(), *(self.moving(moment) if moment else ()), *self.over()]
        topology = self.stage.topology
        about = f"{len(topology.ranks)} GPUs, {len(topology.links)} links, one way each"
        if moment is not None:
            about += f"; {moment.playback.title} at {moment.time:.4g} µs"
        if self.region is not None:
            about += f"; {self.region.cut['label']}"
        return self.framed(tuple(shapes), about=about)

    def framed(self, shapes: tuple[Shape, ...], *, about: str = "") -> Picture:
        """Return shapes as a picture of this view."""
        ground = Ground(self.look.bg, self.look.dot, pixel=1 / self.zoom)
        name = axes.one_line(self.stage.topology.name)
        return Picture(self.frame, self.zoom, ground, shapes, name, about)

    def still(self) -> Iterator[Shape]:
        """Draw what stands still, without the label of the cut."""
        if self.region is not None:
            yield from self.region.ground(self.look, zoom=self.zoom)
        for host, rect in self.stage.hosts.items():
            yield from self._host(host, rect)
        crossing = []
        for line in self.stage.lines:
            if self.region is not None and self.region.crosses(line):
                crossing.append(line)
            else:
                yield from self._line(line)
        for line in crossing:
            yield from self._line(line, cut=True)
        for group in self.stage.groups:
            yield from self._group(group)
        for each in self.stage.devices:
            yield from self._device(each)
        if self.region is not None:
            yield from self.region.border(self.look, zoom=self.zoom)

    def moving(self, moment: Moment) -> Iterator[Shape]:
        """Draw what a plan has at a time, with the time."""
        yield from cells(self.stage, moment, self.look, zoom=self.zoom)
        yield from tokens(self.stage, moment, self.look, zoom=self.zoom)
        if self.captioned:
            yield from caption(moment, self.look, frame=self.frame, zoom=self.zoom)

    def over(self) -> Iterator[Shape]:
        """Draw what nothing may hide."""
        if self.region is not None and self.spot is not None:
            yield from self.region.label(self.look, self.spot, size=self._label / self.zoom)

    def _host(self, host: str, rect: Rect) -> Iterator[Shape]:
        look = self.look
        dash = (5.0, 4.0) if look.paper else ()
        width, opacity = (0.8, 1.0) if look.paper else (1.2, 0.72)
        yield Box(rect, look.box, 18.0, look.box_line, self._fine(width), opacity, dash, host)
        size = self._size((12.0, 15.0, 19.0))
        if size * self.zoom < _LEAST:
            return
        x, y = rect.middle[0], rect.y1 - 5 - size * 0.22
        text = axes.shortened(host, size, max(rect.width, 60.0), bold=True)
        yield Words((x, y), text, size, look.dim, bold=True)

    def _size(self, sizes: tuple[float, float, float]) -> float:
        """Size of a font in drawing units: as asked for, else the larger the farther away."""
        return sizes[self.far] if self.font is None else self.font / self.zoom

    def _fine(self, width: float) -> float:
        """Width of a line that can be seen however far away it is."""
        return max(width, _FINEST / self.zoom)

    def _line(self, line: Line, *, cut: bool = False) -> Iterator[Shape]:
        look, faint = self.look, self.stage.faint
        width = self._fine(line.width * (0.45 if look.paper else 1.0))
        color = look.cut if cut else look.link
        opacity = 0.34 if faint else 0.46 if len(line.carries) > _BOTH else 0.62
        opacity = 1.0 if cut or look.paper else opacity
        points, tip = line.curve.points, None
        if line.one_way:
            points, tip = _arrow(line.curve, 7.0 + width * 1.4)
        dash = ((5.0, 3.0) if look.paper else (9.0, 5.0)) if cut else ()
        yield Stroke(
            points,
            color,
            width,
            opacity,
            dash=dash,
            curved=line.curve.c is not None,
            round=not cut,
            title=line.title,
        )
        if tip is not None:
            yield Area((tip,), color, opacity)

    def _group(self, group: Group) -> Iterator[Shape]:
        look, box = self.look, self.stage.boxes[group.key]
        line, width = look.device(group.kind), self._fine(0.9 if look.paper else 1.6)
        if not look.paper:
            # A second sheet behind it says that there is more inside.
            behind = Rect(box.x1 + 4, box.y1 - 4, box.x2 + 4, box.y2 - 4)
            yield Box(behind, look.surface, 13.0, between(look.bg, line, 0.42), width)
        dash: tuple[float, ...] = ()
        if self.region is not None and group.key in self.region.split:
            line, width, dash = look.cut, self._fine(2.4), (7.0, 5.0)
        title = f"{group.title}, {group.counts}"
        yield Box(box, look.surface, 13.0, line, width, dash=dash, title=title)
        size = self._size((12.5, 15.0, 16.5))
        if size * self.zoom < _LEAST:
            return
        x, y = box.middle
        for row, line in enumerate((group.title, group.counts)):
            short = axes.shortened(line, size, box.width - 10, bold=True)
            base = y + (row - 0.5) * 1.35 * size + 0.36 * size
            color, wide = look.dim if row else look.text, axes.width(short, size, bold=True)
            yield Words((x, base), short, size, color, bold=not look.paper, wide=wide)

    def _device(self, device: Device) -> Iterator[Shape]:
        look, kind, box = self.look, device.kind, self.stage.boxes[device.name]
        width = self._fine(0.9 if look.paper else 1.6)
        fill = look.raised if kind == "switch" else look.surface
        title = f"{device.name}, {kind}"
        radius = _RADIUS[kind] * (0.5 if look.paper and kind != "switch" else 1.0)
        yield Box(box, fill, radius, look.device(kind), width, title=title)
        small = kind == "nic" or (kind == "memory" and self._holds(device))
        size = self._size((10.0 if small else 11.0, 14.0, 18.0))
        if size * self.zoom < _LEAST:
            return
        text = axes.shortened(short_name(device), size, _ROOM[kind], bold=True)
        middle = box.middle[1]
        if self._holds(device):
            # The lower part of the box is for what it holds.
            middle = box.y1 + (15.0 if small else (17.0, 19.0, 23.0)[self.far]) - 0.6 * size
        at = (box.middle[0], middle + size * 0.36)
        wide = axes.width(text, size, bold=True)
        fitted = wide if wide > _TIGHT * _ROOM[kind] else 0.0
        yield Words(at, text, size, look.text, bold=not look.paper, wide=fitted)

    def _holds(self, device: Device) -> bool:
        return self.filled and device.stores


def short_name(device: Device) -> str:
    """Return the name without the host's, which stands above the frame."""
    host = device.host
    if not host or not device.name.startswith(host):
        return device.name
    return device.name[len(host) :].lstrip(" \t/.:_-") or device.name


def _arrow(curve: Curve, size: float) -> tuple[tuple[Point, ...], tuple[Point, ...]]:
    """Return the points of a way that ends where its head begins, and those of the head."""
    share = max(0.0, 1 - size * 0.9 / curve.length)
    start, tip = curve.at(share), curve.at(1.0)
    angle = math.atan2(tip[1] - start[1], tip[0] - start[0])
    cos, sin = math.cos(angle), math.sin(angle)
    back, half = size, size * 0.45
    wings = tuple(
        (tip[0] - back * cos - side * sin, tip[1] - back * sin + side * cos)
        for side in (half, -half)
    )
    (ax, ay), c = curve.a, curve.c
    middle = () if c is None else ((ax + (c[0] - ax) * share, ay + (c[1] - ay) * share),)
    return (curve.a, *middle, start), (tip, *wings)


_BOX = (220.0, 26.0)
"""Width of a side of a cut, and height of a line in it."""
_APART = 190.0
_BOUND_SIDE = 16.0
_LINES = 8
"""Names on one side; others are counted."""


def bound_svg(bound: Bound) -> str | None:
    """Draw the witness of a bound; None where it has none."""
    if isinstance(bound.witness, Cut):
        return _framed(bound, _cut(bound.witness))
    if isinstance(bound.witness, Path):
        return _framed(bound, _way(bound.witness))
    return None


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
    shapes += _bound_arrow(start, end, LIGHT.cut, width=5.0)
    middle = _BOX[0] + _APART / 2
    count = f"{len(cut.links)} link{'' if len(cut.links) == 1 else 's'}"
    shapes += [
        Words((middle, high / 2 - 14), text.bandwidth(cut.bandwidth), 15.0, LIGHT.text, bold=True),
        Words((middle, high / 2 + 24), count, 12.0, LIGHT.dim),
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
        wide = _BOX[0] - 24 if len(name) * 7.2 > _BOX[0] - 24 else 0.0
        at = (middle, rect.y1 + 18 + (i + 1) * _BOX[1] - 5)
        shapes.append(Words(at, name, 13.0, LIGHT.text, bold=True, wide=wide))
    return shapes


def _way(path: Path) -> list[Shape]:
    """Draw the devices of a way from left to right."""
    names = list(path.devices)
    if len(names) > _LINES:
        names = [*names[: _LINES // 2], "…", *names[-_LINES // 2 + 1 :]]
    shapes: list[Shape] = []
    step = 132.0
    for i, name in enumerate(names):
        rect = Rect(i * step, 0.0, i * step + 96, 44.0)
        wide = 84.0 if len(name) * 7 > 84 else 0.0
        shapes.append(Box(rect, LIGHT.surface, 9.0, LIGHT.gpu, 1.6))
        shapes.append(Words((rect.middle[0], 27), name, 13.0, LIGHT.text, bold=True, wide=wide))
        if i:
            shapes += _bound_arrow((rect.x1 - 32, 22), (rect.x1 - 5, 22), LIGHT.link, width=2.2)
    return shapes


def _bound_arrow(start: Point, end: Point, color: str, *, width: float) -> list[Shape]:
    """Draw a line with a head, from left to right."""
    (x1, y), (x2, _) = start, end
    size = 5 + width * 1.4
    head = ((x2, y), (x2 - size, y - size * 0.6), (x2 - size, y + size * 0.6))
    return [Stroke(((x1, y), (x2 - size, y)), color, width, round=False), Area((head,), color)]


def _framed(bound: Bound, shapes: list[Shape]) -> str:
    boxes = [each.rect for each in shapes if isinstance(each, Box)]
    right, low = max(each.x2 for each in boxes), max(each.y2 for each in boxes)
    frame = Rect(-_BOUND_SIDE, -_BOUND_SIDE, right + _BOUND_SIDE, low + 44)
    kind = "no plan that keeps chunks whole" if bound.whole_chunks else "no plan"
    title = f"{kind} takes less than {text.duration(bound.makespan)}"
    words = Words((0.0, low + 28), title, 14.0, LIGHT.text, bold=True, anchor="start")
    about = bound_proof(bound)
    return svg(Picture(frame, 1.0, Ground(LIGHT.bg), (*shapes, words), title, about))


_NAME = 190.0
"""Width of a name at most."""
_LETTER = 6.2
"""Width of a letter, about."""
_WIDTH = 930.0
_ROW = 15.0
_LOAD_SIDE = 12.0


def load_svg(load: dict[str, Any], *, rows: int = ROWS) -> str | None:
    """Draw what `widgets.charts.load.link_load` returns, the busiest links; None without any."""
    names, busy = load["links"][:rows], load["busy"][:rows]
    if not names:
        return None
    left = min(_NAME, max(map(len, names)) * _LETTER)
    shapes: list[Shape] = []
    for i, (name, row) in enumerate(zip(names, busy, strict=True)):
        y = i * _ROW
        wide = left if len(name) * _LETTER > left else 0.0
        at = (left, y + _ROW - 4.5)
        shapes.append(Words(at, name, 10.0, LIGHT.text, anchor="end", wide=wide))
        shapes += _row(name, row, Rect(left + 8, y + 1, _WIDTH, y + _ROW - 1))
    end = len(names) * _ROW + 12
    for column in sorted({0, len(busy[0]) // 2, len(busy[0])}):
        x = left + 8 + (_WIDTH - left - 8) * column / len(busy[0])
        shapes.append(Words((x, end), text.duration(column * load["step"]), 10.0, LIGHT.dim))
    frame = Rect(-_LOAD_SIDE, -_LOAD_SIDE, _WIDTH + 2 * _LOAD_SIDE, end + _LOAD_SIDE)
    about = f"{len(names)} links over time, the busiest first; darkest is always busy"
    return svg(Picture(frame, 1.0, Ground(LIGHT.bg), tuple(shapes), "Link load", about))


def _row(name: str, row: list[float], place: Rect) -> list[Shape]:
    """Draw one link; columns of one colour that follow one another are one box."""
    width = place.width / len(row)
    boxes: list[Shape] = []
    start = 0
    for column in range(1, len(row) + 1):
        if column < len(row) and row[column] == row[start]:
            continue
        left, right = (place.x1 + width * each for each in (start, column))
        told = f"{name}, busy {text.share(row[start])}"
        boxes.append(Box(Rect(left, place.y1, right, place.y2), _color(row[start]), title=told))
        start = column
    return boxes


def _color(share: float) -> str:
    heat = HEATS["light"]
    if share <= 0.5:
        return between(heat.empty, heat.middle, share * 2)
    return between(heat.middle, heat.full, share * 2 - 1)
