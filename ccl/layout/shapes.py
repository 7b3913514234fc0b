"""Shapes that drawings are put together from; positions are centres in pixels, y down."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ccl.topology import DeviceKind, Topology

Places = dict[str, tuple[float, float]]

SIZES: dict[DeviceKind, tuple[float, float]] = {
    "gpu": (78.0, 60.0),
    "switch": (128.0, 34.0),
    "memory": (104.0, 50.0),
    "nic": (84.0, 40.0),
}
"""Width and height at most of a device's box."""

_CHORD = 104.0
"""Pixels between neighbours on a circle: more than the diagonal of a GPU's box."""

_TIER = 128.0
"""Pixels from tier to tier."""


@dataclass(frozen=True)
class Graph:
    """Devices with their neighbours, whatever the direction of the links.

    Parameters
    ----------
    kind
        Kind of each device.
    near
        Neighbours of each device with the GB/s that join them.
    ends
        One-way links, within the devices.
    """

    kind: Mapping[str, DeviceKind]
    near: Mapping[str, Mapping[str, float]]
    ends: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, topology: Topology) -> Graph:
        """Take the devices and links of a topology."""
        near: dict[str, dict[str, float]] = {each.name: {} for each in topology.devices}
        for link in topology.links:
            for a, b in (link.ends, link.ends[::-1]):
                near[a][b] = max(near[a].get(b, 0.0), link.bandwidth)
        kind = {each.name: each.kind for each in topology.devices}
        return cls(kind, near, tuple(each.ends for each in topology.links))

    def within(self, names: Sequence[str]) -> Graph:
        """Return the part of the graph on some devices."""
        kept = set(names)
        return Graph(
            {name: self.kind[name] for name in names},
            {name: {b: rate for b, rate in self.near[name].items() if b in kept} for name in names},
            (),
        )

    def gpus_at(self, name: str) -> list[str]:
        """Return the GPUs that a device is joined with."""
        return [other for other in self.near[name] if other in self.is_gpu]

    def pieces(self) -> list[list[str]]:
        """Return the devices of each connected piece, in order."""
        found: list[list[str]] = []
        seen: set[str] = set()
        number = {name: i for i, name in enumerate(self.names)}
        for name in self.names:
            if name not in seen:
                found.append(sorted(self._reached(name), key=number.__getitem__))
                seen.update(found[-1])
        return found

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All devices."""
        return tuple(self.kind)

    @cached_property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs."""
        return tuple(name for name, kind in self.kind.items() if kind == "gpu")

    @cached_property
    def is_gpu(self) -> frozenset[str]:
        """The GPUs as a set."""
        return frozenset(self.gpus)

    @cached_property
    def hubs(self) -> tuple[str, ...]:
        """Devices other than GPUs that are joined with every GPU."""
        return tuple(
            name
            for name in self.names
            if name not in self.is_gpu and self.gpus and self.is_gpu <= self.near[name].keys()
        )

    @cached_property
    def one_way(self) -> bool:
        """Whether there are links and none has one in the opposite direction."""
        ends = set(self.ends)
        return bool(ends) and not any((dst, src) in ends for src, dst in ends)

    def walk(self) -> list[str]:
        """Return the GPUs so that strong links join those that follow one another."""
        order, left = [], dict.fromkeys(self.gpus)
        number = {name: i for i, name in enumerate(self.gpus)}
        here = self.gpus[0]
        while left:
            order.append(here)
            del left[here]
            ahead = [name for name in self.near[here] if name in left]
            if ahead:
                here = min(ahead, key=lambda n: (-self.near[here][n], number[n]))
            elif left:
                here = next(iter(left))
        return order

    def levels(self, ground: Iterable[str]) -> dict[str, int]:
        """Return the number of links from the ground to each device, 1 where there is no path."""
        found = self._reached(*ground)
        return {name: found.get(name, 1) for name in self.names}

    def _reached(self, *ground: str) -> dict[str, int]:
        found = dict.fromkeys(ground, 0)
        queue = deque(found)
        while queue:
            name = queue.popleft()
            for other in self.near[name]:
                if other not in found:
                    found[other] = found[name] + 1
                    queue.append(other)
        return found


def box(places: Places, kind: Mapping[str, DeviceKind]) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of all boxes."""
    sizes = [(x, y, *SIZES[kind[name]]) for name, (x, y) in places.items()]
    return (
        min(x - width / 2 for x, _, width, _ in sizes),
        min(y - height / 2 for _, y, _, height in sizes),
        max(x + width / 2 for x, _, width, _ in sizes),
        max(y + height / 2 for _, y, _, height in sizes),
    )


def moved(places: Places, kind: Mapping[str, DeviceKind], centre: tuple[float, float]) -> Places:
    """Return the same around another centre."""
    left, top, right, bottom = box(places, kind)
    dx, dy = centre[0] - (left + right) / 2, centre[1] - (top + bottom) / 2
    return {name: (x + dx, y + dy) for name, (x, y) in places.items()}


def grid(
    names: Sequence[str], *, columns: int, pitch: tuple[float, float], snake: bool = False
) -> Places:
    """Draw rows of `columns` devices, every other one backwards in a snake."""
    places: Places = {}
    for i, name in enumerate(names):
        row, column = divmod(i, columns)
        if snake and row % 2:
            column = columns - 1 - column
        places[name] = (pitch[0] * column, pitch[1] * row)
    return places


def circle(names: Sequence[str], hubs: Sequence[str], graph: Graph) -> Places:
    """Draw devices in a circle, with hubs one above the other inside it."""
    inner = max((SIZES[graph.kind[name]][0] for name in hubs), default=0.0)
    heights = [SIZES[graph.kind[name]][1] + 24.0 for name in hubs]
    clear = math.hypot(inner, sum(heights)) / 2 + _CHORD / 2 + 24.0 if hubs else 0.0
    radius = max(_radius(len(names)), clear)
    places = _on_circle(names, radius)
    y = -sum(heights) / 2
    for name, height in zip(hubs, heights, strict=True):
        places[name] = (0.0, y + height / 2)
        y += height
    return places


def _radius(count: int) -> float:
    return _CHORD / (2 * math.sin(math.pi / count)) if count > 1 else 0.0


def _on_circle(names: Sequence[str], radius: float) -> Places:
    """Draw from the top clockwise; few devices stand flat on their lowest side."""
    turn = math.pi / len(names) if len(names) in (2, 4) else 0.0
    angles = [2 * math.pi * i / len(names) - math.pi / 2 - turn for i in range(len(names))]
    return {
        name: (radius * math.cos(angle), radius * math.sin(angle))
        for name, angle in zip(names, angles, strict=True)
    }


def satellites(graph: Graph) -> Places:
    """Draw GPUs in a circle, hubs inside and each other switch outside beside its GPUs."""
    places = circle(graph.walk(), graph.hubs, graph)
    outer = [name for name in graph.names if name not in places]
    reach = max(math.hypot(x, y) for x, y in places.values())
    radius = max(reach + 130.0, 150.0 / (2 * math.sin(math.pi / max(len(outer), 2))))

    def angle(name: str) -> float:
        spots = [places[other] for other in graph.near[name] if other in graph.is_gpu]
        x, y = sum(x for x, _ in spots), sum(y for _, y in spots)
        return math.atan2(y, x) % (2 * math.pi)

    ranked = sorted(outer, key=lambda name: (angle(name), graph.names.index(name)))
    start = angle(ranked[0])
    for i, name in enumerate(ranked):
        at = start + 2 * math.pi * i / len(ranked)
        places[name] = (radius * math.cos(at), radius * math.sin(at))
    return places


def spread(names: Sequence[str], graph: Graph, *, width: float) -> Places:
    """Draw devices in centred rows at most about `width` wide."""
    pitch = max(SIZES[graph.kind[name]][0] for name in names) + 28.0
    columns = min(len(names), max(1, int(width / pitch), math.ceil(math.sqrt(len(names)))))
    # Rows of equal length look better than a full one and a rest.
    columns = math.ceil(len(names) / math.ceil(len(names) / columns))
    places: Places = {}
    for i in range(0, len(names), columns):
        row = names[i : i + columns]
        for j, name in enumerate(row):
            places[name] = ((j - (len(row) - 1) / 2) * pitch, i / columns * 74.0)
    return places


def tiers(graph: Graph) -> Places:
    """Draw GPUs in a row under their switches, tier above tier, and hubs below them."""
    levels = graph.levels(graph.gpus)
    below = set(graph.hubs) if len(graph.hubs) < sum(each == 1 for each in levels.values()) else ()
    places = _ground(graph, levels, set(below))
    bottom = max(y for _, y in places.values())
    for level in range(1, max(levels.values()) + 1):
        row = [name for name in graph.names if levels[name] == level and name not in below]
        if row:
            places |= _above(row, graph, places, y=-_TIER * level)
    if below:
        under = spread(sorted(below, key=graph.names.index), graph, width=1200.0)
        middle = sum(places[name][0] for name in graph.gpus) / len(graph.gpus)
        places |= {name: (x + middle, y + bottom + _TIER) for name, (x, y) in under.items()}
    return places


_WIDE = 12
"""GPUs up to which those of a switch stand in a row."""


def _ground(graph: Graph, levels: Mapping[str, int], below: set[str]) -> Places:
    """Draw the GPUs, those under the same switches as a small grid."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in graph.gpus:
        parents = (other for other in graph.near[name] if levels[other] == 1)
        groups.setdefault(tuple(each for each in parents if each not in below), []).append(name)
    narrow = len(graph.gpus) > _WIDE
    places: Places = {}
    left = 0.0
    for members in groups.values():
        columns = min(len(members), 2) if narrow else len(members)
        if columns > 4:
            columns = math.ceil(math.sqrt(len(members)) * 1.5)
        width = max(columns * 92.0, 156.0)
        small = grid(members, columns=columns, pitch=(92.0, 78.0))
        shift = left + (width - (columns - 1) * 92.0) / 2
        places |= {name: (x + shift, y) for name, (x, y) in small.items()}
        left += width + 12.0
    return places


def _above(row: Sequence[str], graph: Graph, places: Places, *, y: float) -> Places:
    """Draw devices over what they are joined with, pushed apart as far as needed."""
    middle = sum(x for x, _ in places.values()) / len(places)

    def wish(name: str) -> float:
        spots = [places[other][0] for other in graph.near[name] if other in places]
        return sum(spots) / len(spots) if spots else middle

    wishes = {name: wish(name) for name in row}
    ranked = sorted(row, key=lambda name: (wishes[name], graph.names.index(name)))
    found: Places = {}
    edge = -math.inf
    for name in ranked:
        half = SIZES[graph.kind[name]][0] / 2 + 10.0
        x = max(wishes[name], edge + half)
        found[name] = (x, y)
        edge = x + half
    shift = sum(wishes[name] - found[name][0] for name in row) / len(row)
    return {name: (x + shift, y) for name, (x, _) in found.items()}
