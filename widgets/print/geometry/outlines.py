"""The outline around some boxes that leaves others out, as on the canvas (`js/src/region.js`).

A raster is filled around the members, carved around the others, and its border is walked and
smoothed.
"""

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from widgets.print.sheet import Point, Rect, around

Loop = tuple[Point, ...]
Edge = tuple[int, int]

_CELL = 10.0
_MOST_CELLS = 1_000_000
"""Cells of the raster; larger drawings have larger cells."""
_MARGIN = 24.0
_CLOSE_MARGIN = 11.0
_CORRIDOR = 14.0
_CARVE = 8.0
_SHORTEST = 8
"""Points of a loop that is no more than a speck."""


def outline(inside: Sequence[Rect], outside: Sequence[Rect]) -> tuple[Loop, ...]:
    """Return closed outlines, more than one only where the members lie apart."""
    if not inside:
        return ()
    alone = len(inside) == 1
    box = around(list(inside)).grown(_CLOSE_MARGIN if alone else _MARGIN)
    if not any(each.grown(0 if alone else _CARVE).meets(box) for each in outside):
        return (_corners(box, 16.0 if alone else 26.0),)
    raster = _Raster(box)
    for each in inside:
        raster.fill(each.grown(_MARGIN - 4), value=True)
    for p, q in _spanning_tree([each.middle for each in inside]):
        raster.line(p, q)
    for each in outside:
        raster.fill(each.grown(_CARVE), value=False)
    for each in inside:
        raster.fill(each.grown(_CARVE), value=True)
    return tuple(_smooth(_smooth(loop)) for loop in raster.outlines())


def _corners(box: Rect, radius: float) -> Loop:
    middles = (
        (box.x2 - radius, box.y1 + radius, -0.5),
        (box.x2 - radius, box.y2 - radius, 0.0),
        (box.x1 + radius, box.y2 - radius, 0.5),
        (box.x1 + radius, box.y1 + radius, 1.0),
    )
    return tuple(
        (
            x + radius * math.cos((turn + step / 12) * math.pi),
            y + radius * math.sin((turn + step / 12) * math.pi),
        )
        for x, y, turn in middles
        for step in range(7)
    )


def _spanning_tree(points: list[Point]) -> list[tuple[Point, Point]]:
    """Return the shortest lines that join all points (Prim)."""
    nearest = dict.fromkeys(range(1, len(points)), points[0])
    far = {each: math.dist(points[each], points[0]) for each in nearest}
    lines = []
    while far:
        best = min(far, key=far.__getitem__)
        del far[best]
        lines.append((points[best], nearest[best]))
        for each, known in far.items():
            length = math.dist(points[each], points[best])
            if length < known:
                far[each], nearest[each] = length, points[best]
    return lines


class _Raster:
    """Cells that are in or out, with two rows of empty ones around them."""

    def __init__(self, box: Rect) -> None:
        self.cell = max(_CELL, math.sqrt(box.width * box.height / _MOST_CELLS))
        self.x, self.y = box.x1 - 2 * self.cell, box.y1 - 2 * self.cell
        width = math.ceil((box.x2 - self.x) / self.cell) + 2
        height = math.ceil((box.y2 - self.y) / self.cell) + 2
        self.cells = np.zeros((height, width), dtype=bool)

    def fill(self, box: Rect, *, value: bool) -> None:
        """Set the cells whose middle lies in a box."""
        height, width = self.cells.shape
        left = max(1, math.ceil((box.x1 - self.x) / self.cell - 0.5))
        right = min(width - 2, math.floor((box.x2 - self.x) / self.cell - 0.5))
        top = max(1, math.ceil((box.y1 - self.y) / self.cell - 0.5))
        bottom = min(height - 2, math.floor((box.y2 - self.y) / self.cell - 0.5))
        # A box beside the raster ends before it begins, which a slice would count from the far end.
        if right >= left and bottom >= top:
            self.cells[top : bottom + 1, left : right + 1] = value

    def line(self, p: Point, q: Point) -> None:
        """Fill a corridor from point to point."""
        steps = max(1, math.ceil(math.dist(p, q) / self.cell))
        for step in range(steps + 1):
            x = p[0] + (q[0] - p[0]) * step / steps
            y = p[1] + (q[1] - p[1]) * step / steps
            self.fill(Rect(x, y, x, y).grown(max(_CORRIDOR, self.cell)), value=True)

    def outlines(self) -> list[Loop]:
        """Walk every border with the filled cells on the right."""
        ways: dict[Edge, list[Edge]] = defaultdict(list)
        inner = self.cells[1:-1, 1:-1]
        sides = (
            (self.cells[:-2, 1:-1], (0, 0), (1, 0)),
            (self.cells[1:-1, 2:], (1, 0), (1, 1)),
            (self.cells[2:, 1:-1], (1, 1), (0, 1)),
            (self.cells[1:-1, :-2], (0, 1), (0, 0)),
        )
        edges = [
            (int(row) + 1, int(column) + 1, side)
            for side, (beside, _, _) in enumerate(sides)
            for row, column in np.argwhere(inner & ~beside)
        ]
        # Cell by cell, as the canvas walks: where two cells touch at a corner it matters.
        for row, column, side in sorted(edges):
            _, (i, j), (k, m) = sides[side]
            ways[column + i, row + j].append((column + k, row + m))
        loops = []
        for start in list(ways):
            while ways[start]:
                loops.append(self._walk(ways, start))
        return [loop for loop in loops if len(loop) > _SHORTEST]

    def _walk(self, ways: dict[Edge, list[Edge]], start: Edge) -> Loop:
        points, at = [], start
        while True:
            at = ways[at].pop()
            points.append((self.x + at[0] * self.cell, self.y + at[1] * self.cell))
            if at == start:
                return tuple(points[::2])


def _smooth(points: Loop) -> Loop:
    """Cut every corner (Chaikin)."""
    following = (*points[1:], points[0])
    return tuple(
        (px * near + qx * (1 - near), py * near + qy * (1 - near))
        for (px, py), (qx, qy) in zip(points, following, strict=True)
        for near in (0.75, 0.25)
    )
