"""Where everything of a drawing stands: boxes of devices, frames of hosts, curves of links.

Sizes and bends are the canvas's (`widgets/js/src/{model,elements,stage}.js`); a link with its
opposite is one line.

Large drawings are folded as on the canvas (`widgets/js/src/folding.js`).

A folded host is one box, switches that serve the same hosts are one too, and the room that this
frees is closed: each axis is mapped by its own rising function, so what is left of or above
something stays so.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ccl.layout import layout
from ccl.text import count
from ccl.topology import Device, DeviceKind, Link, Topology
from widgets.print import pods
from widgets.print.buses import Ends
from widgets.print.routes import Curve, covered, curve_between, routes_of
from widgets.print.sheet import Point, Rect, around

MOST_DEVICES = 300
"""Devices above which hosts are folded."""
GROUP = (164.0, 58.0)
"""Width and height of a folded group."""
_SLOT = (200.0, 88.0)
"""Room that a folded host keeps."""
_FEWEST_ALIKE = 3
_MOST_GAP = 64.0
"""Room between two blocks that is left as it was."""
_APART = 28.0
"""Room between two switches of a row."""
_PADDING = 20.0

_NAMES: dict[DeviceKind, str] = {"gpu": "GPU", "switch": "switch", "memory": "memory", "nic": "NIC"}


@dataclass(frozen=True, slots=True)
class Group:
    """Devices that are drawn as one box.

    Parameters
    ----------
    key
        Name of the box, which no device has.
    title
        The host's name, or those of the first and the last of switches alike.
    host
        The host, or None.
    members
        At least two.
    """

    key: str
    title: str
    host: str | None
    members: tuple[Device, ...]

    @property
    def counts(self) -> str:
        """What it has, such as ``8 GPUs · 1 switch``."""
        many = Counter(each.kind for each in self.members)
        return " · ".join(count(many[kind], name) for kind, name in _NAMES.items() if many[kind])

    @property
    def kind(self) -> DeviceKind:
        """Kind whose colour it has."""
        return "gpu" if any(each.kind == "gpu" for each in self.members) else self.members[0].kind


def groups_of(topology: Topology) -> tuple[Group, ...]:
    """Return what can be folded of a topology: nothing of one that has no hosts."""
    hosts: dict[str, list[Device]] = {}
    for each in topology.devices:
        if each.host is not None:
            hosts.setdefault(each.host, []).append(each)
    groups = [
        Group(f"\x02{host}", host, host, tuple(members))
        for host, members in hosts.items()
        if len(members) > 1
    ]
    return (*groups, *_alike(topology)) if groups else ()


def _alike(topology: Topology) -> Iterable[Group]:
    """Switches outside hosts whose links lead to the same hosts and switches."""
    home = {
        each.name: each.name if each.host is None else f"\x02{each.host}"
        for each in topology.devices
    }
    loose = [each for each in topology.devices if each.host is None and each.kind != "gpu"]
    near: dict[str, list[tuple[bool, str, float]]] = {each.name: [] for each in loose}
    for link in topology.links:
        if link.src in near:
            near[link.src].append((True, home[link.dst], link.bandwidth))
        if link.dst in near:
            near[link.dst].append((False, home[link.src], link.bandwidth))
    sets: dict[tuple[object, ...], list[Device]] = {}
    for each in loose:
        sets.setdefault((each.kind, *sorted(near[each.name])), []).append(each)
    for members in sets.values():
        if len(members) >= _FEWEST_ALIKE:
            title = f"{members[0].name} … {members[-1].name}"
            yield Group(f"\x03{members[0].name}", title, None, tuple(members))


class _Axis:
    """A rising piecewise linear function that shortens where nothing needs the length."""

    def __init__(self, blocks: Iterable[tuple[float, float, float]]) -> None:
        """Take where blocks lie, from and to, and the length that each needs."""
        alike = sorted(set(blocks))
        self.stops = sorted({stop for start, end, _ in alike for stop in (start, end)})
        self.images = self.stops[:1]
        starts, ends, needs = np.array(alike, dtype=float).reshape(-1, 3).T
        shares = np.minimum(1.0, needs / np.maximum(ends - starts, 1e-9))
        for start, end in itertools.pairwise(self.stops):
            over = shares[(starts <= start) & (ends >= end)]
            length = end - start
            length = length * float(over.max()) if len(over) else min(length, _MOST_GAP)
            self.images.append(self.images[-1] + length)

    def at(self, value: float) -> float:
        """Map along the polygon; beyond its ends by shifting."""
        if not self.stops or value <= self.stops[0]:
            return value
        if value >= self.stops[-1]:
            return value - self.stops[-1] + self.images[-1]
        return float(np.interp(value, self.stops, self.images))


def compacted(
    boxes: Mapping[str, Rect], groups: Sequence[Group], devices: Sequence[Device]
) -> dict[str, Rect]:
    """Return where the groups and the devices that are shown stand.

    Parameters
    ----------
    boxes
        Of all devices, unfolded.
    groups
        What is folded.
    devices
        Those that are not.
    """
    whole = {g.key: around([boxes[each.name] for each in g.members]) for g in groups}
    folded = [whole[g.key].grown(_PADDING) for g in groups if g.host is not None]
    inside: dict[str, list[Rect]] = defaultdict(list)
    for each in devices:
        if each.host is not None:
            inside[each.host].append(boxes[each.name])
    opened = [around(rects).grown(_PADDING) for rects in inside.values()]
    single = [boxes[each.name] for each in devices if each.host is None]
    rows = [_box(whole[g.key].middle, GROUP) for g in groups if g.host is None]
    inf = float("inf")
    across = _Axis([(r.x1, r.x2, _SLOT[0]) for r in folded] + [(r.x1, r.x2, inf) for r in opened])
    # Rows of switches need their height; their width they get by standing apart.
    down = _Axis(
        [(r.y1, r.y2, _SLOT[1]) for r in folded]
        + [(r.y1, r.y2, inf) for r in (*opened, *single, *rows)]
    )
    found = {}
    for g in groups:
        r = whole[g.key].grown(_PADDING if g.host is not None else 0.0)
        middle = (across.at(r.x1) + across.at(r.x2)) / 2, (down.at(r.y1) + down.at(r.y2)) / 2
        found[g.key] = _box(middle, GROUP)
    _clear(found, groups)
    for each in devices:
        box = boxes[each.name]
        x, y = box.middle
        found[each.name] = _box((across.at(x), down.at(y)), (box.width, box.height))
    return _spread(found, {each.name: boxes[each.name] for each in devices if each.host is None})


def _clear(found: dict[str, Rect], groups: Sequence[Group]) -> None:
    """Let switches that are one box stand below the hosts that they would cover."""
    blocks = [found[g.key] for g in groups if g.host is not None]
    for g in groups:
        hit = [block.y2 for block in blocks if g.host is None and block.meets(found[g.key])]
        if hit:
            found[g.key] = _box((found[g.key].middle[0], max(hit) + _SLOT[1]), GROUP)


def _box(middle: Point, size: tuple[float, float]) -> Rect:
    (x, y), (width, height) = middle, size
    return Rect(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def _spread(found: dict[str, Rect], loose: Mapping[str, Rect]) -> dict[str, Rect]:
    """Let the switches of a row that has become too short stand apart."""
    rows: dict[float, list[str]] = defaultdict(list)
    for name, box in loose.items():
        rows[box.middle[1]].append(name)
    for row in rows.values():
        row.sort(key=lambda name: loose[name].middle[0])
        need = {name: found[name].width + _APART for name in row}
        if all(
            found[b].middle[0] - found[a].middle[0] >= (need[a] + need[b]) / 2 - 1
            for a, b in itertools.pairwise(row)
        ):
            continue
        left = sum(found[name].middle[0] for name in row) / len(row) - sum(need.values()) / 2
        for name in row:
            box = found[name]
            found[name] = _box((left + need[name] / 2, box.middle[1]), (box.width, box.height))
            left += need[name]
    return found


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
            boxes = compacted(boxes, groups, shown)
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
        return [] if self.groups else pods.frames(self.topology, self.boxes, named)

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
