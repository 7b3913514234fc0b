"""Buses: many links to one switch, or to switches that serve the same devices, share wires.

A track runs beside each row (or column) of devices, over free ground, each device has a stub to it,
and a trunk joins the tracks. What the canvas computes (`widgets/js/src/buses.js`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from widgets.print.sheet import Point, Rect, around

Ends = tuple[str, str]
Boxes = Mapping[str, Rect]

CLEARANCE = 5.0
"""Room between a link and what it passes."""

_FEWEST, _BLOCKED = 4, 0.3
"""Links of a group at least, and the share of them that boxes must be in the way of."""
_MOST_OF = 0.8
"""Share of them that must find a way along the bus."""
_TANGLE = 3
"""Groups of several switches each from which on their links are a tangle."""
_STEP, _NARROW, _WIDE, _BEYOND = 18.0, 10.0, 30.0, 10.0
"""Distance of a track from its row, from the next track at least and at most, and from boxes
beyond."""
_LEAST = 5.0
"""Distance of one that has no room for these, at least."""
_MOST_TRACKS = 12
"""Tracks beside a row at most."""
_HALF = 3.0
"""Half the width that a wire needs."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Switches with the same neighbours, and their links."""

    hubs: list[str] = field(default_factory=list)
    links: list[Ends] = field(default_factory=list)


@dataclass(slots=True)
class _Row:
    level: int
    names: list[str] = field(default_factory=list)
    track: float | None = None


@dataclass(frozen=True, slots=True)
class Buses:
    """The corners of lines, from the first end to the second, and the dots where wires join."""

    routes: dict[Ends, tuple[Point, ...]]
    dots: dict[Ends, list[Point]]


def buses_of(pairs: Sequence[Ends], boxes: Boxes, switches: Iterable[str]) -> Buses:
    """Return how the lines run that share wires."""
    groups = [each for each in _groups(pairs, switches) if len(each.links) >= _FEWEST]
    tangled = sum(len(each.hubs) > 1 for each in groups) >= _TANGLE
    turned = {name: _turned(box) for name, box in boxes.items()}
    found = Buses({}, {})
    across: list[Rect] = []
    down: list[Rect] = []
    for group in groups:
        if not (tangled and len(group.hubs) > 1) and not _is_blocked(group.links, boxes):
            continue
        level = _Bus(group, boxes, along=across, across=down)
        upright = _Bus(group, turned, along=[*map(_turned, down)], across=[*map(_turned, across)])
        best = level if level.score <= upright.score else upright
        if len(best.routes) < _MOST_OF * len(group.links):
            continue
        if best is level:
            routes = best.routes
            across += best.tracks
            down += best.trunks
        else:
            routes = {k: tuple((x, y) for y, x in way) for k, way in best.routes.items()}
            down += map(_turned, best.tracks)
            across += map(_turned, best.trunks)
        found.routes.update(routes)
        for point, pair in _joints(routes, boxes).items():
            found.dots.setdefault(pair, []).append(point)
    return found


def _joints(routes: Mapping[Ends, tuple[Point, ...]], boxes: Boxes) -> dict[Point, Ends]:
    """Return the corners of a bus from which wires lead in three directions or four.

    They tell wires that join from those that cross; each has one of its lines.
    """
    corners: dict[Point, Ends] = {}
    pieces: set[Rect] = set()
    for pair, way in routes.items():
        for corner in way:
            corners.setdefault(corner, pair)
        stops = [clamped(boxes[pair[0]], way[0]), *way, clamped(boxes[pair[1]], way[-1])]
        pieces.update(around([Rect(*p, *p), Rect(*q, *q)]) for p, q in itertools.pairwise(stops))

    def count(point: Point) -> int:
        """Return in how many of the four directions wires lead from a point."""
        (x, y), flat = point, [(r.x1, r.x2) for r in pieces if r.y1 == r.y2 == point[1]]
        upright = [(r.y1, r.y2) for r in pieces if r.x1 == r.x2 == x]
        return sum(
            any(low < at <= high for low, high in ends)
            + any(low <= at < high for low, high in ends)
            for at, ends in ((x, flat), (y, upright))
        )

    return {at: pair for at, pair in corners.items() if count(at) > 2}


def _turned(box: Rect) -> Rect:
    """Return it with abscissas and ordinates exchanged."""
    return Rect(box.y1, box.x1, box.y2, box.x2)


def _groups(pairs: Sequence[Ends], switches: Iterable[str]) -> list[_Group]:
    """Return switches by what they are joined with, a link with the one farther from the ground."""
    joined: dict[str, set[str]] = {name: set() for name in switches}
    for a, b in pairs:
        for one, other in ((a, b), (b, a)):
            if one in joined:
                joined[one].add(other)
    alike: dict[frozenset[str], _Group] = {}
    home: dict[str, _Group] = {}
    for name, near in joined.items():
        home[name] = alike.setdefault(frozenset(near), _Group())
        home[name].hubs.append(name)
    levels = _levels(pairs, joined)
    for a, b in pairs:
        p, q = levels.get(a), levels.get(b)
        if p != q and p is not None and q is not None:
            home[a if p > q else b].links.append((a, b))
    return list(alike.values())


def _levels(pairs: Iterable[Ends], joined: Mapping[str, Set[str]]) -> dict[str, int]:
    """Return the number of links from what is no switch to each device."""
    levels = {name: 0 for pair in pairs for name in pair if name not in joined}
    left, level = dict(joined), 1
    while ahead := [name for name, near in left.items() if near & levels.keys()]:
        for name in ahead:
            del left[name]
        levels |= dict.fromkeys(ahead, level)
        level += 1
    return levels


def _is_blocked(links: Sequence[Ends], boxes: Boxes) -> bool:
    """Return whether boxes are in the way of many of the links."""
    names = {name: i for i, name in enumerate(boxes)}
    grown = np.array(list(boxes.values())) + np.array([-1.0, -1.0, 1.0, 1.0]) * CLEARANCE
    blocked = 0
    for a, b in links:
        hit = _met(grown, boxes[a].middle, boxes[b].middle)
        hit[[names[a], names[b]]] = False
        blocked += bool(hit.any())
    return blocked >= _BLOCKED * len(links)


def _met(boxes: np.ndarray, p: Point, q: Point) -> np.ndarray:
    """Return which boxes the straight way from p to q meets."""
    start, end = np.zeros(len(boxes)), np.ones(len(boxes))
    met = np.ones(len(boxes), dtype=bool)
    for axis in (0, 1):
        low, high, at, step = boxes[:, axis], boxes[:, axis + 2], p[axis], q[axis] - p[axis]
        if not step:
            met &= (low <= at) & (at <= high)
            continue
        ways = np.sort([(low - at) / step, (high - at) / step], axis=0)
        start, end = np.maximum(start, ways[0]), np.minimum(end, ways[1])
    found: np.ndarray = met & (start <= end)
    return found


class _Bus:
    """The links of one group along rows: tracks, trunk, and the corners of each link."""

    def __init__(
        self, group: _Group, boxes: Boxes, *, along: Sequence[Rect], across: Sequence[Rect]
    ) -> None:
        self.hubs, self.boxes = group.hubs, boxes
        self.tracks: list[Rect] = []
        self.trunks: list[Rect] = []
        self.routes: dict[Ends, tuple[Point, ...]] = {}
        self.alone = group.hubs[0] if len(group.hubs) == 1 else None
        self.others = {name: box for name, box in boxes.items() if name != self.alone}
        self.rows = _rows(dict.fromkeys(name for pair in group.links for name in pair), boxes)
        self.trunk = self._trunk(across) if len(self.rows) > 1 else None
        if len(self.rows) < 2 or self.trunk is not None:
            middle = boxes[group.hubs[0]].middle[1]
            for row in sorted(self.rows, key=lambda row: -abs(row.level - middle)):
                self._lay(row, along)
            for pair in group.links:
                self._route(pair)
        wires = sum(r.x2 - r.x1 + r.y2 - r.y1 for r in (*self.tracks, *self.trunks))
        tracks = len({row.track for row in self.rows})
        # More links first, then fewer tracks, then less wire.
        self.score = (len(group.links) - len(self.routes)) * 1e6 + tracks * 1e3 + wires

    def _trunk(self, taken: Sequence[Rect]) -> float | None:
        """Return where the wire runs that joins the tracks: nearest to the switches."""
        top = max(self.boxes[name].y2 for name in self.rows[0].names)
        bottom = min(self.boxes[name].y1 for name in self.rows[-1].names)
        middle = sum(self.boxes[hub].middle[0] for hub in self.hubs) / len(self.hubs)
        near = [b for b in (*self.others.values(), *taken) if b.y1 < bottom and top < b.y2]
        spots = [middle, *(x for b in near for x in (b.x1 - _BEYOND, b.x2 + _BEYOND))]
        lefts, rights = (np.array([b[side] for b in near]) for side in (0, 2))
        free = [x for x in spots if ((lefts >= x + _HALF) | (rights <= x - _HALF)).all()]
        if not free:
            return None
        best = min(free, key=lambda x: abs(x - middle))
        self.trunks.append(Rect(best - _HALF, top, best + _HALF, bottom))
        return best

    @property
    def _enters(self) -> bool:
        """Whether the trunk leads straight into the only switch."""
        if self.trunk is None or self.alone is None:
            return False
        box = self.boxes[self.alone]
        return box.x1 + _HALF < self.trunk < box.x2 - _HALF

    def _lay(self, row: _Row, taken: Sequence[Rect]) -> None:
        """Find a track for a row: towards the switches, and where one is already if it can be."""
        devices = [name for name in row.names if name != self.alone]
        if not devices and self._enters:
            return
        own = around([self.boxes[name] for name in devices or row.names])
        xs = [self.boxes[name].middle[0] for name in row.names]
        xs += [] if self.trunk is None else [self.trunk]
        x1, x2 = min(xs) - _HALF, max(xs) + _HALF
        near = [box for box in self.others.values() if box.x1 < x2 and x1 < box.x2]
        free: list[float] = []
        for side in self._sides(row):
            if side > 0:
                gap = min((b.y1 - own.y2 for b in near if b.y2 > own.y2 + 0.5), default=math.inf)
            else:
                gap = min((own.y1 - b.y2 for b in near if b.y1 < own.y1 - 0.5), default=math.inf)
            spots = [own.y2 + off if side > 0 else own.y1 - off for off in _offsets(gap)]
            strips = ((y, Rect(x1, y - _HALF, x2, y + _HALF)) for y in spots)
            free += [y for y, strip in strips if not any(strip.meets(b) for b in taken)][:1]
        laid = [each.track for each in self.rows if each.track is not None]
        shared = [y for y in free if any(abs(track - y) < 1 for track in laid)]
        row.track = next(iter(shared or free), None)
        if row.track is not None:
            self.tracks.append(Rect(x1, row.track - _HALF, x2, row.track + _HALF))

    def _sides(self, row: _Row) -> tuple[int, ...]:
        """Return the sides of a row on which its track may run, 1 below and -1 above."""
        if len(self.rows) < 2:
            return 1, -1
        if row in (self.rows[0], self.rows[-1]):
            return (1,) if row is self.rows[0] else (-1,)
        return (1, -1) if self.boxes[self.hubs[0]].middle[1] >= row.level else (-1, 1)

    def _route(self, pair: Ends) -> None:
        """Find the corners of a line, unless it would run beneath a box."""
        hub, name = pair if pair[0] in self.hubs else pair[::-1]
        start, end = (next(r for r in self.rows if each in r.names) for each in (name, hub))
        here, there = (self.boxes[each].middle[0] for each in (name, hub))
        if start.track is None:
            return
        corners = [(here, start.track)]
        if start is not end and start.track != end.track:
            trunk = self.trunk or 0.0
            corners.append((trunk, start.track))
            if not self._enters:
                if end.track is None:
                    return
                corners += [(trunk, end.track), (there, end.track)]
        elif not self.boxes[hub].y1 < start.track < self.boxes[hub].y2:
            corners.append((there, start.track))
        way = list(dict.fromkeys(corners))
        if len(way) > 1 and self.boxes[hub].has(way[-1]):  # a track that meets the switch itself
            way.pop()
        if self._is_clear(way, (name, hub)):
            self.routes[pair] = tuple(way if pair[0] == name else way[::-1])

    def _is_clear(self, corners: Sequence[Point], ends: Ends) -> bool:
        """Return whether a way passes no box but those of its ends."""
        first, last = (self.boxes[name] for name in ends)
        way = [clamped(first, corners[0]), *corners, clamped(last, corners[-1])]
        strips = [
            around([Rect(*p, *p), Rect(*q, *q)]).grown(1.0) for p, q in itertools.pairwise(way)
        ]
        return not any(
            strip.meets(box)
            for name, box in self.others.items()
            if name not in ends
            for strip in strips
        )


def clamped(box: Rect, point: Point) -> Point:
    """Return the point of a box that is nearest to another."""
    return max(box.x1, min(box.x2, point[0])), max(box.y1, min(box.y2, point[1]))


def _rows(names: Iterable[str], boxes: Boxes) -> list[_Row]:
    """Return names by the ordinates of their middles, from above."""
    rows: dict[int, _Row] = {}
    for name in names:
        level = math.floor(boxes[name].middle[1] + 0.5)
        rows.setdefault(level, _Row(level)).names.append(name)
    return [rows[level] for level in sorted(rows)]


def _offsets(gap: float) -> list[float]:
    """Return the distances from a row at which a track may run before what is beyond."""
    if gap < 2 * _LEAST:
        return []
    if gap < _STEP + _BEYOND:
        return [gap / 2]
    step = max(_NARROW, min(_WIDE, gap / _MOST_TRACKS))
    most = (gap - _BEYOND - _STEP) / step
    count = _MOST_TRACKS if most >= _MOST_TRACKS else min(_MOST_TRACKS, 1 + math.floor(most))
    return [_STEP + step * i for i in range(count)]
