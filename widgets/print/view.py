"""A drawing as shapes: frames of hosts, links, devices, the cut, and at a time what moves.

What the canvas shows (`widgets/js/src/style.js`) in the same order from the ground up. What stands
still and what moves are apart, so that a film paints the former once.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ccl.topology import Device
from widgets.print.cutting import Region
from widgets.print.geometry.folding import Group
from widgets.print.geometry.names import Names, short_name
from widgets.print.geometry.own_wires import OwnWire, first_units
from widgets.print.geometry.routes import Curve
from widgets.print.geometry.stage import Line, Stage
from widgets.print.geometry.tiers import link_classes
from widgets.print.legend import CAPTION, HEADING, ROW, Entry, caption
from widgets.print.legend import drawn as legend_shapes
from widgets.print.playback import Moment, cells, tokens
from widgets.print.sheet import (
    Area,
    Box,
    Dot,
    Picture,
    Point,
    Rect,
    Shape,
    Stroke,
    Words,
    around,
    fitted,
    one_line,
    shortened,
)
from widgets.print.sheet import width as letters
from widgets.print.style import Look, between

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
_FINEST = 0.4
"""Pixels of a line at least."""
_RADIUS = {"gpu": 9.0, "switch": 17.0, "memory": 9.0, "nic": 5.0}
_ENDING = (14.0, 4.0, 5.0, 4.0, 3.0, 9.0)
"""Dashes and gaps of a piece of a line that is cut short: it ends in dots."""
_BOTH = 2
"""Links of a line that is no bundle."""
_KINDS = 22.0
"""Pixels of the row that says what the colours of links mean."""
_SHORT, _STUB = 16.0, 8.0
"""Pixels of a cut's own wire below which it is heavy, as no dash would be seen of it, and units of
it that are drawn at least."""
_HEAVIER = 2.0
"""By how many pixels it is."""
_JOINT = (3.4, 1.45)
"""Radius in pixels of the dot that ends it, or over half its width."""
_ROOM = {"gpu": 70.0, "switch": 116.0, "memory": 84.0, "nic": 64.0}
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
    legend
        Rows of the legend below all.
    """

    stage: Stage
    look: Look
    width: float = _USUAL
    region: Region | None = None
    filled: bool = False
    captioned: bool = False
    font: float | None = None
    legend: tuple[tuple[Entry, ...], ...] = ()

    @cached_property
    def _content(self) -> Rect:
        frame = self.stage.content
        if self.region is not None and self.region.frame is not None:
            frame = around([frame, self.region.frame.grown(3.0)])
        return frame

    @cached_property
    def _classes(self) -> Mapping[tuple[str, str], str]:
        return link_classes(self.stage.topology)

    @cached_property
    def _class_colors(self) -> dict[str, str]:
        return dict(zip(dict.fromkeys(self._classes.values()), self.look.links, strict=False))

    def _class_of(self, line: Line) -> str | None:
        """Class of a line, if all that it carries is of one."""
        found = {self._classes.get(ends) for ends in line.carries}
        return found.pop() if len(found) == 1 else None

    @cached_property
    def _above(self) -> float:
        return HEADING if self.captioned else self._beside

    @cached_property
    def _below(self) -> float:
        return (CAPTION if self.captioned else self._beside) + self._listed

    @property
    def _listed(self) -> float:
        """Pixels of the legend."""
        return ROW * len(self.legend) + 6.0 if self.legend else 0.0

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
        """What is in view, without the lines above and below, the legend and a narrow border."""
        aside = _CLOSE / 2
        listed = _KINDS if self._class_colors else aside
        top, bottom = (HEADING * 0.7, CAPTION * 0.7) if self.captioned else (aside, listed)
        bottom += self._listed
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
        """What is seen, in drawing units: as wide as requested, as high as needed."""
        content = self._content
        half = max(self.width / 2 / self.zoom, content.width / 2)
        x = content.middle[0]
        top, bottom = self._above / self.zoom, self._below / self.zoom
        return Rect(x - half, content.y1 - top, x + half, content.y2 + bottom)

    @cached_property
    def _names(self) -> Names:
        return Names(self.stage, self.zoom, self.font)

    @cached_property
    def _wires(self) -> Mapping[tuple[str, str], OwnWire]:
        """What lines of the cut that share wires have for themselves."""
        return {} if self.region is None else self.region.wires

    def picture(self, moment: Moment | None = None) -> Picture:
        """Return the picture, of a plan at a moment if one is given."""
        listed = legend_shapes(self.legend, self.look, self.frame, zoom=self.zoom)
        shapes = [*self.still(), *(self.moving(moment) if moment else ()), *self.over(), *listed]
        topology = self.stage.topology
        about = f"{len(topology.ranks)} GPUs, {len(topology.links)} links, one way each"
        if moment is not None:
            about += f"; {moment.playback.title} at {moment.time:.4g} µs"
        if self.region is not None:
            about += f"; {self.region.cut['label']}"
        return self.framed(tuple(shapes), about=about)

    def framed(self, shapes: tuple[Shape, ...], *, about: str = "") -> Picture:
        """Return shapes as a picture of this view."""
        look, name = self.look, one_line(self.stage.topology.name)
        return Picture(self.frame, self.zoom, look.bg, shapes, name, about, dots=look.dot)

    def still(self) -> Iterator[Shape]:
        """Draw what stands still, without the label of the cut."""
        if self.region is not None:
            yield from self.region.ground(self.look, zoom=self.zoom)
        yield from self._frames()
        crossing = []
        for line in self.stage.lines:
            if line.ends in self._wires:
                yield from self._shared(line, self._wires[line.ends])
            elif self.region is not None and self.region.crosses(line):
                crossing.append(line)
            else:
                yield from self._line(line)
        for line in crossing:
            yield from self._line(line, cut=True)
        for group in self.stage.groups:
            yield from self._group(group)
        for each in self.stage.devices:
            yield from self._device(each)
        yield from self._own_wires()
        if self.region is not None:
            yield from self.region.border(self.look, zoom=self.zoom)
        if not self.captioned:
            yield from self._legend()

    def _legend(self) -> Iterator[Shape]:
        """Say what the colours of links mean, at the lower left."""
        pixel = 1 / self.zoom
        x, y = self.frame.x1 + 12 * pixel, self.frame.y2 - 9 * pixel
        for name, color in self._class_colors.items():
            middle = y - 4 * pixel
            yield Stroke(((x, middle), (x + 18 * pixel, middle)), color, 3.5 * pixel, 1.0)
            x += 24 * pixel
            yield Words((x, y), name, 11 * pixel, self.look.text, anchor="start")
            x += letters(name, 11 * pixel) + 18 * pixel

    def moving(self, moment: Moment) -> Iterator[Shape]:
        """Draw what a plan has at a time, with the time."""
        yield from cells(self.stage, moment, self.look, zoom=self.zoom)
        yield from tokens(self.stage, moment, self.look, zoom=self.zoom)
        if self.captioned:
            lifted = self.frame.y2 - self._listed / self.zoom
            frame = Rect(self.frame.x1, self.frame.y1, self.frame.x2, lifted)
            yield from caption(moment, self.look, frame=frame, zoom=self.zoom, ramp=not self.legend)

    def over(self) -> Iterator[Shape]:
        """Draw what nothing may hide."""
        if self.region is not None and self.spot is not None:
            yield from self.region.label(self.look, self.spot, size=self._label / self.zoom)

    def _frames(self) -> Iterator[Shape]:
        """Draw the frames of pods, and on these of hosts."""
        for title, rect in self.stage.pods:
            yield from self._pod(title, rect)
        for host, rect in self.stage.hosts.items():
            yield from self._host(host, rect)

    def _pod(self, title: str, rect: Rect) -> Iterator[Shape]:
        """Draw a frame, with its name above it, or below it in the lower half."""
        yield self._framed(rect, title)
        size = self._names.pods
        if not self._names.readable(size):
            return
        below = rect.y1 > around([each for _, each in self.stage.pods]).middle[1]
        at = (rect.x1 + 8, rect.y2 + size + 3 if below else rect.y1 - 7)
        words = shortened(title, size, max(rect.width, 60.0))
        yield Words(at, words, size, self.look.dim, bold=True, anchor="start")

    def _framed(self, rect: Rect, title: str) -> Box:
        look = self.look
        dash = (5.0, 4.0) if look.paper else ()
        width, opacity = (0.8, 1.0) if look.paper else (1.2, 0.72)
        return Box(rect, look.box, 18.0, look.box_line, self._fine(width), opacity, dash, title)

    def _host(self, host: str, rect: Rect) -> Iterator[Shape]:
        look = self.look
        yield self._framed(rect, host)
        size = self._names.hosts
        if not self._names.readable(size):
            return
        x, y = rect.middle[0], rect.y1 - 7
        text = shortened(host, size, max(rect.width, 60.0))
        yield Words((x, y), text, size, look.dim, bold=True)

    def _fine(self, width: float) -> float:
        """Width of a line that can be seen however far away it is."""
        return max(width, _FINEST / self.zoom)

    def _line(self, line: Line, *, cut: bool = False) -> Iterator[Shape]:
        look, width = self.look, self._wide(line)
        color, opacity = (look.cut, 1.0) if cut else self._ink(line)
        points, tip = line.curve.points, None
        if line.one_way:
            points, tip = _arrow(line.curve, 7.0 + width * 1.4)
        dash = self._dash if cut else ()
        stubs = line.curve.stubs
        # Of a line that is shorter than its arrow the arrow alone is left.
        for each in stubs or filter(None, (points,)):
            yield Stroke(
                each,
                color,
                width,
                opacity,
                dash=_ENDING if stubs else dash,
                curved=line.curve.c is not None,
                round=not cut and not stubs,
                title=line.title,
            )
        for dot in line.dots:
            yield Dot(dot, _dot(width), color)
        if tip is not None:
            yield Area((tip,), color, opacity)

    def _wide(self, line: Line) -> float:
        """Width of a line as it is drawn."""
        return self._fine(line.width * (0.45 if self.look.paper else 1.0))

    @property
    def _dash(self) -> tuple[float, float]:
        """Of the links of the cut."""
        return (5.0, 3.0) if self.look.paper else (9.0, 5.0)

    def _ink(self, line: Line) -> tuple[str, float]:
        """Colour and opacity of a line that is not in the cut."""
        tint = self._class_colors.get(self._class_of(line) or "")
        opacity = 0.34 if self.stage.faint else 0.46 if len(line.carries) > _BOTH else 0.62
        return tint or self.look.link, 1.0 if self.look.paper else 0.8 if tint else opacity

    def _shared(self, line: Line, wire: OwnWire) -> Iterator[Shape]:
        """Draw what a line of the cut shares with others: it looks like theirs."""
        (color, opacity), width = self._ink(line), self._wide(line)
        if wire.rest:
            yield Stroke(wire.rest, color, width, opacity, title=line.title)
        for dot in line.dots:
            if not wire.has(dot):
                yield Dot(dot, _dot(width), color)
        if line.one_way:
            own = not wire.rest or wire.corners[0] == line.curve.b
            ink = (self.look.cut, 1.0) if own else (color, opacity)
            yield Area((_arrow(line.curve, 7.0 + width * 1.4)[1],), *ink)

    def _own_wires(self) -> Iterator[Shape]:
        """Draw what lines of the cut have for themselves, above all, with the dots on it."""
        wired = [each for each in self.stage.lines if each.ends in self._wires]
        for line in wired:
            yield from self._own_wire(line, self._wires[line.ends])
        for line in wired:
            for dot in line.dots:
                if self._wires[line.ends].has(dot):
                    yield Dot(dot, _dot(self._wide(line)), self.look.cut)

    def _own_wire(self, line: Line, wire: OwnWire) -> Iterator[Shape]:
        """Draw it dashed; where it is very short heavy, with a dot where others join."""
        width, color = self._wide(line), self.look.cut
        short = bool(wire.rest) and wire.own * self.zoom < _SHORT
        if short:
            width += (_HEAVIER / 2 if self.look.paper else _HEAVIER) / self.zoom
        way = first_units(wire.corners, max(wire.drawn, _STUB if short else 0.0))
        if not way:
            return
        dash = () if short else self._dash
        yield Stroke(way, color, width, dash=dash, round=False, title=line.title)
        if short:
            pixels, wider = _JOINT
            yield Dot(way[-1], max(pixels / self.zoom, wider * width / 2), color)

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
        size = self._names.group(group)
        if not self._names.readable(size):
            return
        x, y = box.middle
        for row, line in enumerate((group.title, group.counts)):
            short, fits = fitted(line, size, box.width - 10)
            base = y + (row - 0.5) * 1.35 * size + 0.36 * fits
            color = look.dim if row else look.text
            yield Words((x, base), short, fits, color, bold=not look.paper)

    def _device(self, device: Device) -> Iterator[Shape]:
        look, kind, box = self.look, device.kind, self.stage.boxes[device.name]
        width = self._fine(0.9 if look.paper else 1.6)
        fill = look.raised if kind == "switch" else look.surface
        title = f"{device.name}, {kind}"
        radius = _RADIUS[kind] * (0.5 if look.paper and kind != "switch" else 1.0)
        # One that is less than a pixel is a speck.
        seen = box.grown(max(0.0, 0.5 / self.zoom - box.height / 2))
        yield Box(seen, fill, radius, look.device(kind), width, title=title)
        names, holds = self._names, self._holds(device)
        size = names.device(device, filled=holds)
        if not names.readable(size):
            return
        text, fits = fitted(short_name(device), size, _ROOM[kind])
        middle = box.middle[1]
        if holds:
            # The lower part of the box is for what it holds.
            middle = box.y1 + names.base(device) - 0.6 * size
        at = (box.middle[0], middle + fits * 0.36)
        yield Words(at, text, fits, look.text, bold=not look.paper)

    def _holds(self, device: Device) -> bool:
        return self.filled and device.stores


def _dot(width: float) -> float:
    """Return the radius of the dot where wires of a width join."""
    return max(4.2, width / 2 + 1.5)


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
    if curve.along_bus:
        return first_units(curve.corners, share * curve.length), (tip, *wings)
    (ax, ay), c = curve.a, curve.c
    middle = () if c is None else ((ax + (c[0] - ax) * share, ay + (c[1] - ay) * share),)
    return (curve.a, *middle, start), (tip, *wings)
