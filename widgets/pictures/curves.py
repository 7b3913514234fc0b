"""Ways of links between boxes, as the canvas bends them (`widgets/js/src/geometry.js`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from widgets.pictures.shapes import Point, Rect

_BENDS = (0, 60, -60, 95, -95, 140, -140, 200, -200, 280, -280)
_CLEARANCE = 5.0
_MOST_SAMPLES = 400
"""Points of a way that are looked at."""
_REACH = 150.0
"""How far beside a link boxes may stand in the way of its bends."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The visible part of a link: straight, or a parabola with control point `c`."""

    a: Point
    b: Point
    c: Point | None
    length: float

    def at(self, share: float, side: float = 0.0) -> Point:
        """Return the point so far on the way from a to b, `side` to the right of it."""
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
    def points(self) -> tuple[Point, ...]:
        """Of its stroke."""
        return (self.a, self.b) if self.c is None else (self.a, self.c, self.b)


def curve_between(start: Rect, end: Rect, bend: float = 0.0) -> Curve:
    """Return the way from box to box that deviates by `bend` to the side."""
    p, q = start.middle, end.middle
    c = control(p, q, bend) if bend else None
    a, b = _border(start, c or q), _border(end, c or p)
    length = math.dist(a, b)
    if c is not None:
        length = (length + math.dist(c, a) + math.dist(b, c)) / 2
    return Curve(a, b, c, length or 1.0)


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
    grown = boxes + np.array([-_CLEARANCE, -_CLEARANCE, _CLEARANCE, _CLEARANCE])
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
