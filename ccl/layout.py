"""Default layout of a drawing that nobody has arranged yet.

Positions are centres in pixels, y down. They are not part of a topology: equal topologies may be
drawn differently, and what a user has dragged stays where it is.

Grids, tori and hypercubes are drawn as such, one-way graphs from left to right, clusters of hosts
as blocks around their switches, everything else as circles or as tiers of switches above GPUs.

Shapes that `ccl.layout` is put together from; positions are centres in pixels, y down.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
        here = self.gpus[0]
        while left:
            order.append(here)
            del left[here]
            ahead = [name for name in self.near[here] if name in left]
            number = {name: i for i, name in enumerate(left)}
            if ahead:
                here = min(ahead, key=lambda n: (-self.near[here][n], number[n]))
            elif left:
                here = next(iter(left))
        return order

    def levels(self, ground: Iterable[str]) -> dict[str, int]:
        """Return the number of links from the ground to each device, 1 where there is no path."""
        found = dict.fromkeys(ground, 0)
        queue = deque(found)
        while queue:
            name = queue.popleft()
            for other in self.near[name]:
                if other not in found:
                    found[other] = found[name] + 1
                    queue.append(other)
        return {name: found.get(name, 1) for name in self.names}


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


def _ground(graph: Graph, levels: Mapping[str, int], below: set[str]) -> Places:
    """Draw the GPUs, those under the same switches as a small grid."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in graph.gpus:
        parents = (other for other in graph.near[name] if levels[other] == 1)
        groups.setdefault(tuple(each for each in parents if each not in below), []).append(name)
    narrow = len(graph.gpus) > 16
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


__all__ = ["SIZES", "layout"]

_GAP = 56.0
"""Pixels between the boxes of hosts; their frames take 22 of it on either side."""

_CIRCLE = 100
"""More GPUs than this are not drawn as a circle."""

_ASPECT = 1.6
"""Width over height that a drawing aims at."""


def layout(topology: Topology) -> dict[str, tuple[float, float]]:
    """Return the position of every device.

    Returns
    -------
    dict
        Device name to (x, y) in pixels; the drawing begins at (0, 0).
    """
    if not topology.devices:
        return {}
    graph = Graph.of(topology)
    hosts = {each.name: each.host for each in topology.devices}
    places = _shape(graph, wide=bool(topology.hosts))
    if places is None and topology.hosts:
        places = _cluster(graph, hosts)
    if places is None:
        places = _block(graph)
    left, top, _, _ = box(places, graph.kind)
    return {
        each.name: (
            float(round(places[each.name][0] - left)),
            float(round(places[each.name][1] - top)),
        )
        for each in topology.devices
    }


def _shape(graph: Graph, *, wide: bool) -> Places | None:
    """Return a line, grid, torus, hypercube or one-way graph as such, None for all else."""
    if len(graph.gpus) < len(graph.names):
        return None
    if graph.one_way:
        return _columns(graph)
    found = _lattice(graph)
    if found is None:
        return None
    shape, wrap = found
    if len(shape) == 1:
        return grid(graph.gpus, columns=12, pitch=(128.0, 130.0), snake=True)
    if wide:
        return _drawn(graph.gpus, shape, pitch=(150.0, 140.0), framed=True)
    pitch = (164.0, 136.0) if wrap else (124.0, 106.0)
    return _drawn(graph.gpus, shape, pitch=pitch, bow=wrap)


def _lattice(graph: Graph) -> tuple[tuple[int, ...], bool] | None:
    """Return the sides of the lattice that the GPUs are, in order, and whether it is closed."""
    number = {name: i for i, name in enumerate(graph.gpus)}
    have = {(number[a], number[b]) for a in graph.names for b in graph.near[a]}
    for shape in _shapes(len(graph.gpus)):
        for wrap in (False, True) if len(shape) > 1 else (False,):
            expected = {pair for each in _steps(shape, wrap=wrap) for pair in (each, each[::-1])}
            if have == expected:
                return shape, wrap
    return None


def _shapes(count: int) -> Iterator[tuple[int, ...]]:
    """Yield the sides that a line, grid, torus or hypercube of `count` devices can have."""
    if count >= 2:
        yield (count,)
    for first in range(2, count // 2 + 1):
        if count % first == 0:
            rest = count // first
            yield (first, rest)
            for second in range(2, rest // 2 + 1):
                if rest % second == 0:
                    yield (first, second, rest // second)
    bits = count.bit_length() - 1
    if bits > 3 and count == 1 << bits:
        yield (2,) * bits


def _steps(shape: tuple[int, ...], *, wrap: bool) -> Iterator[tuple[int, int]]:
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    for number, place in enumerate(itertools.product(*map(range, shape))):
        for axis, side in enumerate(shape):
            if place[axis] + 1 < side:
                yield number, number + strides[axis]
            elif wrap and side > 2:
                yield number, number - (side - 1) * strides[axis]


def _drawn(
    names: Sequence[str],
    shape: tuple[int, ...],
    *,
    pitch: tuple[float, float],
    bow: bool = False,
    framed: bool = False,
) -> Places:
    """Draw two sides as rows and columns; the others shift whole layers, a cube as one.

    In a bowed drawing inner rows and columns stand aside, so that the links which close them
    pass beside their devices and not behind. Layers do not overlap where hosts are framed.
    """
    x, y = pitch
    vectors = [(0.0, y), (x, 0.0)]
    if shape[-3:] == (2, 2, 2) and not framed:
        vectors = [(0.0, 2 * y), (2.4 * x, 0.0)]
        vectors.insert(0, (1.2 * x, -y))
    layers = shape[: len(shape) - len(vectors)]
    width, height = _extent(shape[-len(vectors) :], vectors)
    across = True
    for side in reversed(layers):
        # Layers step a little aside, so that links between them do not run along their rows.
        aside = (width + 1.3 * x, 0.4 * y) if across else (0.4 * x, height + 1.3 * y)
        vectors.insert(0, aside)
        width, height = (
            (width * side + 1.3 * x * (side - 1), height)
            if across
            else (width, height * side + 1.3 * y * (side - 1))
        )
        across = width < _ASPECT * height
    places: Places = {}
    for name, place in zip(names, itertools.product(*map(range, shape)), strict=True):
        pairs = list(zip(place, vectors, strict=True))
        row, column = place[-2:]
        right = 0.5 * x if bow and 0 < row < shape[-2] - 1 else 0.0
        up = 0.5 * y if bow and 0 < column < shape[-1] - 1 else 0.0
        places[name] = (
            sum(k * v[0] for k, v in pairs) + right,
            sum(k * v[1] for k, v in pairs) - up,
        )
    return places


def _extent(shape: tuple[int, ...], vectors: list[tuple[float, float]]) -> tuple[float, float]:
    width = sum((side - 1) * abs(v[0]) for side, v in zip(shape, vectors, strict=True))
    height = sum((side - 1) * abs(v[1]) for side, v in zip(shape, vectors, strict=True))
    return width, height


def _columns(graph: Graph) -> Places | None:
    """Draw an acyclic graph from left to right, None if it has a cycle."""
    depth = dict.fromkeys(graph.names, 0)
    for turn in range(len(graph.names) + 1):
        deeper = {dst: depth[src] + 1 for src, dst in graph.ends if depth[dst] < depth[src] + 1}
        if not deeper:
            break
        if turn == len(graph.names):
            return None
        depth.update(deeper)
    places: Places = {}
    for column, level in enumerate(sorted(set(depth.values()))):
        members = [name for name in graph.names if depth[name] == level]
        for i, name in enumerate(members):
            places[name] = (190.0 * column, 110.0 * (i - (len(members) - 1) / 2))
    return places


def _block(graph: Graph) -> Places:
    """Draw devices that belong together: a circle, hubs with GPUs around them, or tiers."""
    gpus, hubs = graph.gpus, graph.hubs
    others = [name for name in graph.names if name not in graph.is_gpu]
    joined = any(other in graph.is_gpu for name in gpus for other in graph.near[name])
    if not gpus:
        return spread(others, graph, width=1200.0)
    if len(hubs) == len(others):
        if not others and not joined:
            return grid(gpus, columns=math.ceil(math.sqrt(len(gpus))), pitch=(92.0, 80.0))
        if len(hubs) == 1 and 5 <= len(gpus) <= 8 and not joined:
            return _cup(gpus, hubs[0])
        if not others and len(gpus) > _CIRCLE:
            columns = math.ceil(math.sqrt(_ASPECT * len(gpus)))
            return grid(graph.walk(), columns=columns, pitch=(110.0, 96.0), snake=True)
        return circle(graph.walk(), hubs, graph)
    if joined and all(any(other in graph.is_gpu for other in graph.near[name]) for name in others):
        return satellites(graph)
    return tiers(graph)


def _cup(gpus: Sequence[str], hub: str) -> Places:
    """Draw up to eight GPUs in the shape of a cup around a switch, open to what is above."""
    spots = {
        5: ((-190, 30), (-150, 150), (0, 190), (150, 150), (190, 30)),
        6: ((-190, 0), (-190, 105), (-62, 165), (62, 165), (190, 105), (190, 0)),
        7: ((-190, 0), (-190, 100), (-120, 195), (0, 195), (120, 195), (190, 100), (190, 0)),
        8: (
            *((-190, 0), (-190, 100), (-165, 200), (-55, 235)),
            *((55, 235), (165, 200), (190, 100), (190, 0)),
        ),
    }[len(gpus)]
    places = {name: (float(x), float(y)) for name, (x, y) in zip(gpus, spots, strict=True)}
    return {**places, hub: (0.0, 60.0)}


def _cluster(graph: Graph, hosts: dict[str, str | None]) -> Places:
    """Draw each host as a block, and the switches that join hosts between or above them."""
    members: dict[str, list[str]] = {}
    loose: list[str] = []
    for name in graph.names:
        host = hosts[name]
        if host is not None:
            members.setdefault(host, []).append(name)
        elif name in graph.is_gpu:
            members[f"\0{name}"] = [name]
        else:
            loose.append(name)
    blocks = [_block(graph.within(names)) for names in members.values()]
    if not loose and 3 <= len(blocks) <= 12 and _all_meet(graph, list(members.values())):
        return _wheel(blocks, graph)
    levels = graph.levels([name for each in members.values() for name in each])
    depth = max((levels[name] for name in loose), default=0)
    middle = depth == 1 and len(blocks) > 2
    rows = _rows(blocks, graph, even=middle)
    width = max(sum(_size(each, graph)[0] + _GAP for each in row) for row in rows)
    strips = [
        spread([name for name in loose if levels[name] == level], graph, width=width)
        for level in range(depth, 0, -1)
    ]
    if not middle:
        return _stacked([*([each] for each in strips), *rows], graph)
    half = len(rows) // 2
    # Blocks open upwards; those above the switches are turned over to open to them.
    upper = [[{k: (x, -y) for k, (x, y) in each.items()} for each in row] for row in rows[:half]]
    return _stacked([*upper, *([each] for each in strips), *rows[half:]], graph)


def _all_meet(graph: Graph, members: list[list[str]]) -> bool:
    """Return whether links join every two of the hosts."""
    home = {name: i for i, names in enumerate(members) for name in names}
    pairs = {(home[a], home[b]) for a in graph.names for b in graph.near[a] if home[a] != home[b]}
    return len(pairs) == len(members) * (len(members) - 1)


def _wheel(blocks: list[Places], graph: Graph) -> Places:
    """Draw blocks in a circle."""
    reach = max(math.hypot(*_size(each, graph)) for each in blocks) + _GAP
    radius = reach / (2 * math.sin(math.pi / len(blocks)))
    places: Places = {}
    for i, block in enumerate(blocks):
        angle = 2 * math.pi * i / len(blocks) - math.pi / 2
        places |= moved(block, graph.kind, (radius * math.cos(angle), radius * math.sin(angle)))
    return places


def _rows(blocks: list[Places], graph: Graph, *, even: bool) -> list[list[Places]]:
    """Break blocks into rows whose drawing comes nearest to the shape aimed at."""
    sizes = [_size(each, graph) for each in blocks]
    wide = max(width for width, _ in sizes) + _GAP
    high = max(height for _, height in sizes) + _GAP

    def fit(rows: int) -> tuple[float, int]:
        columns = math.ceil(len(blocks) / rows)
        # The switches between or above take about a block's height at most.
        ratio = columns * wide / (rows * high + (200.0 if even else 0.0))
        return abs(math.log(ratio / _ASPECT)), rows

    counts = [rows for rows in range(1, len(blocks) + 1) if not even or rows % 2 == 0]
    best = min(counts, key=fit)
    columns = math.ceil(len(blocks) / best)
    return [blocks[i : i + columns] for i in range(0, len(blocks), columns)]


def _stacked(rows: list[list[Places]], graph: Graph) -> Places:
    """Draw rows of blocks one under the other, each centred."""
    places: Places = {}
    top = 0.0
    for row in rows:
        sizes = [_size(each, graph) for each in row]
        left = -(sum(width for width, _ in sizes) + _GAP * (len(row) - 1)) / 2
        height = max(high for _, high in sizes)
        for block, (width, _) in zip(row, sizes, strict=True):
            places |= moved(block, graph.kind, (left + width / 2, top + height / 2))
            left += width + _GAP
        top += height + 1.4 * _GAP
    return places


def _size(places: Places, graph: Graph) -> tuple[float, float]:
    left, top, right, bottom = box(places, graph.kind)
    return right - left, bottom - top
