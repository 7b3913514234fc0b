"""Where everything of a drawing stands: boxes of devices, frames of hosts, curves of links.

Sizes and bends are the canvas's (`widgets/js/src/{model,elements,stage}.js`); a link with its
opposite is one line.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ccl.layout import layout
from ccl.topology import Device, Link, Topology
from widgets.print.geometry.buses import Ends
from widgets.print.geometry.folding import MOST_DEVICES, Group, compacted, groups_of
from widgets.print.geometry.grid import gridded
from widgets.print.geometry.routes import Curve, covered, curve_between, routes_of
from widgets.print.geometry.tiers import pod_frames
from widgets.print.sheet import Point, Rect, around

SIZES = {"gpu": (78.0, 60.0), "switch": (124.0, 34.0), "memory": (92.0, 46.0), "nic": (70.0, 34.0)}
"""Width and height of the box of each kind of device."""

HOST_PADDING = 20.0
HOST_NAME = 22.0
"""Room for the name above the frame of a host."""

MOST_LINES = 20_000
"""Lines that are drawn; of more there would be one black spot."""
_MANY_LINKS = 800
"""Lines above which they are drawn thinner and fainter."""
_MOST_COVERED = 1200
"""Devices and lines above which chunks are shown even where their line is beneath a device."""
_FARTHEST = 1e7
"""Places beyond this cannot be distinguished on a picture."""


@dataclass(frozen=True, slots=True)
class Line:
    """What is drawn between two boxes, a and b.

    Parameters
    ----------
    ends
        Name of the device, or key of the group, that a is, and b.
    curve
        From a to b.
    width
        In drawing units.
    carries
        Ends of its links, and whether each goes from a to b.
    title
        What it is, for people.
    covered
        Which parts lie beneath devices that it crosses; empty if none does.
    dots
        Where it joins other lines of a bus; each dot is with one of them.
    """

    ends: Ends
    curve: Curve
    width: float
    carries: Mapping[Ends, bool]
    title: str
    covered: tuple[bool, ...] = ()
    dots: tuple[Point, ...] = ()

    @property
    def one_way(self) -> bool:
        """Whether none of its links goes back."""
        return all(self.carries.values())

    @property
    def lane(self) -> float:
        """How far beside its middle chunks travel."""
        return self.width / 2 + 3.2


@dataclass(frozen=True)
class Stage:
    """A topology with places for all that is drawn of it.

    Parameters
    ----------
    topology
        What is drawn.
    boxes
        Of the devices that are shown by name, and of the groups by key.
    lines
        One for each pair of these that links join.
    groups
        What is folded.
    left_out
        How many lines are too many to be drawn.
    """

    topology: Topology
    boxes: Mapping[str, Rect]
    lines: tuple[Line, ...]
    groups: tuple[Group, ...] = ()
    left_out: int = 0

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
        groups = groups_of(topology) if len(topology.devices) > MOST_DEVICES else ()
        if groups:
            inside = {each.name for group in groups for each in group.members}
            shown = [each for each in topology.devices if each.name not in inside]
            moved, rooms = gridded(topology, boxes, groups)
            boxes = compacted(moved, groups, shown, rooms)
        home = {each.name: group.key for group in groups for each in group.members}
        pairs = _pairs(topology, home)
        if len(pairs) > MOST_LINES:
            return cls(topology, boxes, (), groups, len(pairs))
        switches = [each.name for each in topology.devices if each.kind == "switch"]
        switches += [g.key for g in groups if all(each.kind == "switch" for each in g.members)]
        return cls(topology, boxes, _lines(pairs, boxes, home, switches), groups)

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """Those that are shown one by one."""
        return tuple(each for each in self.topology.devices if each.name in self.boxes)

    @cached_property
    def hosts(self) -> dict[str, Rect]:
        """Frames of the hosts by name."""
        inside: dict[str, list[Rect]] = {}
        for each in self.devices:
            if each.host is not None:
                inside.setdefault(each.host, []).append(self.boxes[each.name])
        return {host: around(rects).grown(HOST_PADDING) for host, rects in inside.items()}

    @cached_property
    def pods(self) -> list[tuple[str, Rect]]:
        """Titles and frames of racks and pods; none of a drawing that is folded."""
        named = {host: Rect(r.x1, r.y1 - HOST_NAME, r.x2, r.y2) for host, r in self.hosts.items()}
        return [] if self.groups else pod_frames(self.topology, self.boxes, named)

    @cached_property
    def lanes(self) -> dict[Ends, tuple[Line, bool]]:
        """Line of each link by its ends, and whether it goes from the line's a to its b."""
        return {ends: (line, forth) for line in self.lines for ends, forth in line.carries.items()}

    @cached_property
    def faint(self) -> bool:
        """Whether there are so many lines that each is fainter."""
        return len(self.lines) > _MANY_LINKS

    @cached_property
    def content(self) -> Rect:
        """What is around all that is drawn, names of hosts included."""
        rects = list(self.boxes.values())
        rects += [Rect(r.x1, r.y1 - HOST_NAME, r.x2, r.y2) for r in self.hosts.values()]
        rects += [Rect(r.x1, r.y1 - HOST_NAME, r.x2, r.y2 + HOST_NAME) for _, r in self.pods]
        for line in self.lines:
            points = line.curve.points if line.curve.legs else (line.curve.at(0.5),)
            rects += [Rect(x, y, x, y) for x, y in points if line.curve.c or line.curve.legs]
        return around(rects) if rects else Rect(0.0, 0.0, 240.0, 120.0)


def _pairs(topology: Topology, home: Mapping[str, str]) -> dict[Ends, list[Link]]:
    """Links by the boxes that they join, those of both ways together."""
    pairs: dict[Ends, list[Link]] = {}
    for link in topology.links:
        a, b = home.get(link.src, link.src), home.get(link.dst, link.dst)
        if a != b:
            pairs.setdefault((b, a) if (b, a) in pairs else (a, b), []).append(link)
    return pairs


def _lines(
    pairs: Mapping[Ends, list[Link]],
    boxes: Mapping[str, Rect],
    home: Mapping[str, str],
    switches: Iterable[str],
) -> tuple[Line, ...]:
    lines = []
    routes, dots = routes_of(list(pairs), boxes, switches)
    for (a, b), links in pairs.items():
        carries = {each.ends: home.get(each.src, each.src) == a for each in links}
        line = Line(
            ends=(a, b),
            curve=curve_between(boxes[a], boxes[b], routes[a, b]),
            width=_width(links, carries) * (0.45 if len(pairs) > _MANY_LINKS else 1.0),
            carries=carries,
            title=_title(links, carries),
            dots=tuple(dots.get((a, b), ())),
        )
        lines.append(line)
    if len(pairs) + len(boxes) > _MOST_COVERED:
        return tuple(lines)
    return tuple(replace(line, covered=_covered(line, boxes)) for line in lines)


def _title(links: list[Link], carries: Mapping[Ends, bool]) -> str:
    """Say what a line is, for people."""
    link, sign = links[0], "→" if all(carries.values()) else "↔"
    if len(links) > 1 + (sign == "↔"):
        return f"{len(links)} links, {_strongest(links, carries):.4g} GB/s one way"
    medium = f", {link.medium}" if link.medium else ""
    return f"{link.src} {sign} {link.dst}, {link.bandwidth:.4g} GB/s{medium}"


def _strongest(links: list[Link], carries: Mapping[Ends, bool]) -> float:
    """GB/s of the better of the two directions."""
    ways = [0.0, 0.0]
    for each in links:
        ways[carries[each.ends]] += each.bandwidth
    return max(ways)


def _width(links: list[Link], carries: Mapping[Ends, bool]) -> float:
    """Width of a line in drawing units: it grows by one each time the bandwidth doubles."""
    return min(7.0, 1.3 + math.log2(1 + _strongest(links, carries) / 20))


def _covered(line: Line, boxes: Mapping[str, Rect]) -> tuple[bool, ...]:
    reach = around([Rect(x, y, x, y) for x, y in line.curve.points]).grown(1.0)
    crossed = [box for name, box in boxes.items() if name not in line.ends and box.meets(reach)]
    return covered(line.curve, crossed) if crossed else ()
