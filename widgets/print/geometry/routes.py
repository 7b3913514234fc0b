"""How links run on a drawing: straight, bent around devices, along a bus, or cut short.

What the canvas computes (`widgets/js/src/geometry.js` and `elements.js`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal

import numpy as np

from widgets.print.geometry.buses import CLEARANCE, Ends, buses_of, clamped
from widgets.print.sheet import Point, Rect

Route = float | tuple[Point, ...] | Literal["stubs"]
"""How a link runs: how far it bends to the side; along the corners of a bus; or as a short piece at
its ends."""

_MOST_BENT = 900
"""Lines above which they are not led around devices: nobody can follow that many anyway."""


def routes_of(
    pairs: Sequence[Ends], boxes: Mapping[str, Rect], switches: Iterable[str]
) -> tuple[dict[Ends, Route], dict[Ends, list[Point]]]:
    """Return how the line between each pair of boxes runs, and dots where wires of buses join.

    Parameters
    ----------
    pairs
        Boxes by name, joined by a line each.
    boxes
        All that are shown.
    switches
        Those among them that are switches.
    """
    routes: dict[Ends, Route] = dict.fromkeys(pairs, 0.0)
    stubs = _closing(pairs, boxes)
    buses = buses_of(pairs, boxes, switches)
    if len(pairs) <= _MOST_BENT:
        for a, b in pairs:
            if (a, b) not in stubs and (a, b) not in buses.routes:
                others = _rects(boxes, {a, b})
                routes[a, b] = bend_around(boxes[a].middle, boxes[b].middle, others)
    return routes | buses.routes | dict.fromkeys(stubs, "stubs"), buses.dots


_BENDS = (0, 60, -60, 95, -95, 140, -140, 200, -200, 280, -280)
_MOST_SAMPLES = 400
"""Points of a way that are looked at."""
_REACH = 150.0
"""How far beside a link boxes may stand in the way of its bends."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The visible part of a link: straight, a parabola with control point `c`, or legs."""

    a: Point
    b: Point
    c: Point | None
    length: float
    legs: tuple[tuple[Point, Point], ...] = ()

    def at(self, share: float, side: float = 0.0) -> Point:
        """Return the point so far on the way from a to b, `side` to the right of it."""
        if self.legs:
            left = share * self.length
            for a, b in self.legs[:-1]:
                if left < (length := math.dist(a, b)):
                    return Curve(a, b, None, length).at(left / length, side)
                left -= length
            a, b = self.legs[-1]
            length = math.dist(a, b) or 1.0
            return Curve(a, b, None, length).at(left / length, side)
        (ax, ay), (bx, by) = self.a, self.b
        if self.c is None:
            x, y, dx, dy = ax + (bx - ax) * share, ay + (by - ay) * share, bx - ax, by - ay
        else:
            cx, cy = self.c
            left = 1 - share
            x = left * left * ax + 2 * left * share * cx + share * share * bx
            y = left * left * ay + 2 * left * share * cy + share * share * by
            dx = left * (cx - ax) + share * (bx - cx)
            dy = left * (cy - ay) + share * (by - cy)
        length = math.hypot(dx, dy) or 1.0
        return x - dy / length * side, y + dx / length * side

    @property
    def stubs(self) -> tuple[tuple[Point, Point], ...]:
        """The two pieces that are left of one that is cut short, each from its device outwards."""
        if len(self.legs) != 2 or self.legs[0][1] == self.legs[1][0]:
            return ()
        (a, out), (into, b) = self.legs
        return (a, out), (b, into)

    @property
    def along_bus(self) -> bool:
        """Whether it runs along the corners of a bus."""
        return bool(self.legs) and not self.stubs

    @property
    def corners(self) -> tuple[Point, ...]:
        """Of one that runs along a bus, its ends among them."""
        return (self.a, *(end for _, end in self.legs))

    @property
    def points(self) -> tuple[Point, ...]:
        """Of its stroke."""
        if self.legs:
            return tuple(point for leg in self.legs for point in leg)
        return (self.a, self.b) if self.c is None else (self.a, self.c, self.b)


STUB = 30.0
"""Length of the pieces that are left of a link that closes a row."""


def curve_between(start: Rect, end: Rect, bend: Route = 0.0) -> Curve:
    """Return the way from box to box."""
    p, q = start.middle, end.middle
    if bend == "stubs":
        return _stubs(start, end)
    if isinstance(bend, tuple):
        way = [clamped(start, bend[0]), *bend, clamped(end, bend[-1])]
        legs = tuple(itertools.pairwise(way))
        return Curve(way[0], way[-1], None, sum(math.dist(*leg) for leg in legs) or 1.0, legs)
    c = control(p, q, bend) if bend else None
    a, b = _border(start, c or q), _border(end, c or p)
    length = math.dist(a, b)
    if c is not None:
        length = (length + math.dist(c, a) + math.dist(b, c)) / 2
    return Curve(a, b, c, length or 1.0)


def _stubs(start: Rect, end: Rect) -> Curve:
    p, q = start.middle, end.middle
    length = math.dist(p, q) or 1.0
    dx, dy = (p[0] - q[0]) / length, (p[1] - q[1]) / length
    a = _border(start, (p[0] + 1e4 * dx, p[1] + 1e4 * dy))
    b = _border(end, (q[0] - 1e4 * dx, q[1] - 1e4 * dy))
    out, into = (a[0] + STUB * dx, a[1] + STUB * dy), (b[0] - STUB * dx, b[1] - STUB * dy)
    return Curve(a, b, None, 2 * STUB, ((a, out), (into, b)))


def control(p: Point, q: Point, bend: float) -> Point:
    """Return the control point of a way that deviates by `bend` to the side."""
    length = math.dist(p, q) or 1.0
    (px, py), (qx, qy) = p, q
    return (px + qx) / 2 - (qy - py) / length * bend, (py + qy) / 2 + (qx - px) / length * bend


def _border(box: Rect, to: Point) -> Point:
    """Return where the way from the middle of a box to a point leaves it."""
    (mx, my), (x, y) = box.middle, to
    dx, dy = x - mx, y - my
    share = min(
        box.width / 2 / abs(dx) if dx else math.inf,
        box.height / 2 / abs(dy) if dy else math.inf,
        1.0,
    )
    return mx + dx * share, my + dy * share


def bend_around(p: Point, q: Point, boxes: np.ndarray) -> float:
    """Return how far a link has to bend to cross no box, or the fewest.

    Parameters
    ----------
    p, q
        Middles of its ends.
    boxes
        The others, shape (boxes, 4): left, top, right, bottom.
    """
    length = math.dist(p, q)
    near = _near(p, q, boxes)
    if not len(near):
        return 0.0
    best, fewest = 0.0, math.inf
    for bend in _BENDS:
        if abs(bend) > length * 0.7:
            break
        hits = _crossings(p, q, bend, boxes=near)
        if hits < fewest:
            best, fewest = float(bend), hits
        if not hits:
            break
    return best


def _near(p: Point, q: Point, boxes: np.ndarray) -> np.ndarray:
    grown = boxes + np.array([-CLEARANCE, -CLEARANCE, CLEARANCE, CLEARANCE])
    (left, right), (top, bottom) = sorted((p[0], q[0])), sorted((p[1], q[1]))
    kept: np.ndarray = grown[
        (grown[:, 0] < right + _REACH)
        & (grown[:, 2] > left - _REACH)
        & (grown[:, 1] < bottom + _REACH)
        & (grown[:, 3] > top - _REACH)
    ]
    return kept


def _crossings(p: Point, q: Point, bend: float, *, boxes: np.ndarray) -> int:
    samples = min(_MOST_SAMPLES, max(8, math.ceil(math.dist(p, q) / 12)))
    share = np.arange(1, samples)[:, None] / samples
    middle = np.array(control(p, q, bend))
    left = 1 - share
    at = left * left * np.array(p) + 2 * left * share * middle + share * share * np.array(q)
    x, y = at[:, :1], at[:, 1:]
    inside = (x >= boxes[:, 0]) & (x <= boxes[:, 2]) & (y >= boxes[:, 1]) & (y <= boxes[:, 3])
    return int(inside.any(axis=0).sum())


def covered(curve: Curve, boxes: Sequence[Rect], *, parts: int = 48) -> tuple[bool, ...]:
    """Say of each part of a way whether it lies beneath one of some boxes; empty if none does."""
    middles = [curve.at((part + 0.5) / parts) for part in range(parts)]
    found = tuple(
        any(box.x1 <= x <= box.x2 and box.y1 <= y <= box.y2 for box in boxes) for x, y in middles
    )
    return found if any(found) else ()


_FEWEST_STUBS = 12
"""Lines that close rows from which on they are cut short: of fewer each can be followed."""
_MOST_GAPS = 32
"""Gaps of a row at most."""


def _closing(pairs: Iterable[Ends], boxes: Mapping[str, Rect]) -> set[Ends]:
    """Return the lines that close a row.

    Between their ends stand, evenly and in one line, others that are joined each with the next.
    """
    at = {_spot(box.middle): name for name, box in boxes.items()}
    joined = {pair for a, b in pairs for pair in ((a, b), (b, a))}

    def closes(a: str, b: str) -> bool:
        (px, py), (qx, qy) = boxes[a].middle, boxes[b].middle
        for gaps in range(2, _MOST_GAPS + 1):
            last = a
            for i in range(1, gaps + 1):
                name = at.get(_spot((px + i / gaps * (qx - px), py + i / gaps * (qy - py))), "")
                # Where the first is joined with others of the row too, it is no ring but a mesh.
                if (last, name) not in joined or (1 < i < gaps and (a, name) in joined):
                    break
                last = name
            else:
                return True
        return False

    found = {ends for ends in pairs if closes(*ends)}
    return found if len(found) >= _FEWEST_STUBS else set()


def _spot(middle: Point) -> tuple[int, int]:
    """Return the pixel of a point."""
    return math.floor(middle[0] + 0.5), math.floor(middle[1] + 0.5)


def _rects(boxes: Mapping[str, Rect], without: Set[str]) -> np.ndarray:
    """Return all boxes but some, shape (boxes, 4)."""
    return np.array([box for name, box in boxes.items() if name not in without]).reshape(-1, 4)
