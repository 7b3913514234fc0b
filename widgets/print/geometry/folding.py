"""Folding: in large drawings a host is one box, and so are switches that serve the same hosts.

The room that this frees is closed: each axis is mapped by its own rising function, so what is left
of or above something stays so. What the canvas does (`widgets/js/src/folding.js`).
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ccl.text import count
from ccl.topology import Device, DeviceKind, Topology
from widgets.print.sheet import Point, Rect, around

MOST_DEVICES = 300
"""Devices above which hosts are folded."""
GROUP = (164.0, 58.0)
"""Width and height of a folded group."""
SLOT = (200.0, 88.0)
"""Room that a folded host keeps."""
_FEWEST_ALIKE = 3
_MOST_GAP = 64.0
"""Room between two blocks that is left as it was."""
_APART = 28.0
"""Room between two switches of a row."""
PADDING = 20.0
"""Room between devices and the frame of their host."""

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


Block = tuple[float, float, float]
"""From, to, and the length that it needs."""


class Axis:
    """A rising piecewise linear function that shortens where nothing needs the length."""

    def __init__(self, blocks: Iterable[Block]) -> None:
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


@dataclass(frozen=True, slots=True)
class Axes:
    """How both axes are mapped.

    Parameters
    ----------
    across
        From left to right.
    down
        From top to bottom.
    """

    across: Axis
    down: Axis

    @classmethod
    def of(
        cls,
        boxes: Mapping[str, Rect],
        groups: Sequence[Group],
        devices: Sequence[Device],
        rooms: tuple[Sequence[Block], Sequence[Block]] = ((), ()),
    ) -> Axes:
        """Return the axes; the parameters are those of `compacted`."""
        whole = {g.key: around([boxes[each.name] for each in g.members]) for g in groups}
        folded = [whole[g.key].grown(PADDING) for g in groups if g.host is not None]
        inside: dict[str, list[Rect]] = defaultdict(list)
        for each in devices:
            if each.host is not None:
                inside[each.host].append(boxes[each.name])
        opened = [around(rects).grown(PADDING) for rects in inside.values()]
        single = [boxes[each.name] for each in devices if each.host is None]
        rows = [_box(whole[g.key].middle, GROUP) for g in groups if g.host is None]
        inf = float("inf")
        blocks = [*folded, *opened]
        beside = [r for r in single if any(b.y1 < r.y2 and r.y1 < b.y2 for b in blocks)]
        # Rows of switches need their height; their width they get by standing apart, unless they
        # stand beside hosts.
        across = [(r.x1, r.x2, SLOT[0]) for r in folded]
        across += [(r.x1, r.x2, inf) for r in (*opened, *beside)]
        down = [(r.y1, r.y2, SLOT[1]) for r in folded]
        down += [(r.y1, r.y2, inf) for r in (*opened, *single, *rows)]
        return cls(Axis([*across, *rooms[0]]), Axis([*down, *rooms[1]]))


def compacted(
    boxes: Mapping[str, Rect],
    groups: Sequence[Group],
    devices: Sequence[Device],
    rooms: tuple[Sequence[Block], Sequence[Block]] = ((), ()),
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
    rooms
        What else needs its length, from left to right and from top to bottom.
    """
    axes = Axes.of(boxes, groups, devices, rooms)
    across, down = axes.across, axes.down
    whole = {g.key: around([boxes[each.name] for each in g.members]) for g in groups}
    found = {}
    for g in groups:
        r = whole[g.key].grown(PADDING if g.host is not None else 0.0)
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
            found[g.key] = _box((found[g.key].middle[0], max(hit) + SLOT[1]), GROUP)


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
