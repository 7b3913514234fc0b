"""Where everything of a drawing stands: boxes of devices, frames of hosts, ways of links.

Sizes and bends are the canvas's (`widgets/js/src/{model,elements,stage}.js`); a link with its
opposite is one line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ccl.layout import layout
from ccl.topology import Link, Topology
from widgets.pictures.curves import Curve, bend_around, covered, curve_between
from widgets.pictures.shapes import Rect, around

Ends = tuple[str, str]

SIZES = {"gpu": (78.0, 60.0), "switch": (124.0, 34.0), "memory": (92.0, 46.0), "nic": (70.0, 34.0)}
"""Width and height of the box of each kind of device."""

HOST_PADDING = 20.0
HOST_NAME = 22.0
"""Room for the name above the frame of a host."""

_MANY_LINKS = 800
"""Lines above which they are drawn thinner and fainter."""
_MOST_BENT = 900
"""Lines above which they are not led around devices: nobody can follow that many anyway."""
_MOST_COVERED = 1200
"""Devices and lines above which chunks are shown even where their line is beneath a device."""
_FARTHEST = 1e7
"""Places beyond this cannot be told apart on a picture."""


@dataclass(frozen=True, slots=True)
class Line:
    """What is drawn between two devices.

    Parameters
    ----------
    forth, back
        The link from a to b, and its opposite or None.
    curve
        From a to b.
    width
        In drawing units.
    covered
        Which parts lie beneath devices that it crosses; empty if none does.
    """

    forth: Link
    back: Link | None
    curve: Curve
    width: float
    covered: tuple[bool, ...] = ()

    @property
    def lane(self) -> float:
        """How far beside its middle chunks travel."""
        return self.width / 2 + 3.2

    @property
    def title(self) -> str:
        """What it is, for people."""
        link, sign = self.forth, "→" if self.back is None else "↔"
        medium = f", {link.medium}" if link.medium else ""
        return f"{link.src} {sign} {link.dst}, {link.bandwidth:.4g} GB/s{medium}"


@dataclass(frozen=True)
class Stage:
    """A topology with places for all that is drawn of it.

    Parameters
    ----------
    topology
        What is drawn.
    boxes
        Of the devices by name.
    lines
        One for each pair of devices that links join.
    """

    topology: Topology
    boxes: Mapping[str, Rect]
    lines: tuple[Line, ...]

    @classmethod
    def of(cls, topology: Topology, places: Mapping[str, tuple[float, float]]) -> Stage:
        """Place everything; devices that have no place get one."""
        missing = any(each.name not in places for each in topology.devices)
        known = {**(layout(topology) if missing else {}), **places}
        boxes = {}
        for each in topology.devices:
            (x, y), (width, height) = known[each.name], SIZES[each.kind]
            x, y = (max(-_FARTHEST, min(_FARTHEST, value)) for value in (x, y))
            boxes[each.name] = Rect(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        return cls(topology, boxes, _lines(topology, boxes))

    @cached_property
    def hosts(self) -> dict[str, Rect]:
        """Frames of the hosts by name."""
        inside: dict[str, list[Rect]] = {}
        for each in self.topology.devices:
            if each.host is not None:
                inside.setdefault(each.host, []).append(self.boxes[each.name])
        return {host: around(rects).grown(HOST_PADDING) for host, rects in inside.items()}

    @cached_property
    def lanes(self) -> dict[Ends, tuple[Line, bool]]:
        """Line of each link by its ends, and whether it goes from the line's a to its b."""
        found = {}
        for line in self.lines:
            found[line.forth.ends] = (line, True)
            if line.back is not None:
                found[line.back.ends] = (line, False)
        return found

    @cached_property
    def faint(self) -> bool:
        """Whether there are so many lines that each is fainter."""
        return len(self.lines) > _MANY_LINKS

    @cached_property
    def content(self) -> Rect:
        """What is around all that is drawn, names of hosts included."""
        rects = list(self.boxes.values())
        rects += [Rect(r.x1, r.y1 - HOST_NAME, r.x2, r.y2) for r in self.hosts.values()]
        for line in self.lines:
            if line.curve.c is not None:
                x, y = line.curve.at(0.5)
                rects.append(Rect(x, y, x, y))
        return around(rects) if rects else Rect(0.0, 0.0, 240.0, 120.0)


def _lines(topology: Topology, boxes: Mapping[str, Rect]) -> tuple[Line, ...]:
    pairs: dict[Ends, list[Link]] = {}
    for link in topology.links:
        pairs.setdefault(link.ends if link.ends[::-1] not in pairs else link.ends[::-1], []).append(
            link
        )
    rects = np.array(list(boxes.values())) if boxes else np.zeros((0, 4))
    place = {name: row for row, name in enumerate(boxes)}
    lines = []
    for (a, b), links in pairs.items():
        bend = 0.0
        if len(pairs) <= _MOST_BENT:
            others = np.delete(rects, [place[a], place[b]], axis=0)
            bend = bend_around(boxes[a].middle, boxes[b].middle, others)
        curve = curve_between(boxes[a], boxes[b], bend)
        back = links[1] if len(links) > 1 else None
        width = _width(links) * (0.45 if len(pairs) > _MANY_LINKS else 1.0)
        lines.append(Line(links[0], back, curve, width))
    if len(pairs) + len(boxes) > _MOST_COVERED:
        return tuple(lines)
    return tuple(replace(line, covered=_covered(line, boxes)) for line in lines)


def _width(links: list[Link]) -> float:
    """Width of a line in drawing units: it grows by one each time the bandwidth doubles."""
    bandwidth = max(each.bandwidth for each in links)
    return min(7.0, 1.3 + math.log2(1 + bandwidth / 20))


def _covered(line: Line, boxes: Mapping[str, Rect]) -> tuple[bool, ...]:
    points = line.curve.points
    reach = around([Rect(x, y, x, y) for x, y in points]).grown(1.0)
    ends = line.forth.ends
    crossed = [box for name, box in boxes.items() if name not in ends and box.meets(reach)]
    return covered(line.curve, crossed) if crossed else ()
