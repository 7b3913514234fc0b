"""A drawing as shapes: frames of hosts, links, devices, the cut, and at a time what moves.

What the canvas shows (`widgets/js/src/style.js`) in the same order from the ground up. What stands
still and what moves are apart, so that a film paints the former once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ccl.topology import Device
from widgets.pictures import lettering
from widgets.pictures.caption import CAPTION, HEADING, caption
from widgets.pictures.colors import Look, between
from widgets.pictures.curves import Curve
from widgets.pictures.cutting import Region
from widgets.pictures.folding import Group
from widgets.pictures.moving import Moment, cells, tokens
from widgets.pictures.shapes import (
    Area,
    Box,
    Ground,
    Picture,
    Point,
    Rect,
    Shape,
    Stroke,
    Words,
    around,
)
from widgets.pictures.stage import Line, Stage

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
        name = lettering.one_line(self.stage.topology.name)
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
        text = lettering.shortened(host, size, max(rect.width, 60.0), bold=True)
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
        for row, text in enumerate((group.title, group.counts)):
            short = lettering.shortened(text, size, box.width - 10, bold=True)
            base = y + (row - 0.5) * 1.35 * size + 0.36 * size
            color, wide = look.dim if row else look.text, lettering.width(short, size, bold=True)
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
        text = lettering.shortened(short_name(device), size, _ROOM[kind], bold=True)
        middle = box.middle[1]
        if self._holds(device):
            # The lower part of the box is for what it holds.
            middle = box.y1 + (15.0 if small else (17.0, 19.0, 23.0)[self.far]) - 0.6 * size
        at = (box.middle[0], middle + size * 0.36)
        wide = lettering.width(text, size, bold=True)
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
