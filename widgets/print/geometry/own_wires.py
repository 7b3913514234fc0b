"""Which part of its wire a link has for itself.

Links of a bus share wires: of some that are to be marked, each is marked from one of its ends to
where the first link joins that is not marked, since what lies beyond is everybody's. What the
canvas computes (`widgets/js/src/own_wires.js`).
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from widgets.print.geometry.buses import Ends
from widgets.print.geometry.stage import Line
from widgets.print.sheet import Point

_TOGETHER = 0.5
"""Units that two wires have in common at least where they run together and do not only cross."""

Corners = tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class OwnWire:
    """A line that is marked as far as its wire is its own.

    Parameters
    ----------
    corners
        From the end at which it is marked, both ends among them.
    own
        Units from there to where others join.
    drawn
        Units from there to where what is marked of another begins, which is drawn once.
    """

    corners: Corners
    own: float
    drawn: float

    @property
    def length(self) -> float:
        """Units of all of it."""
        return sum(math.dist(*leg) for leg in itertools.pairwise(self.corners))

    @property
    def rest(self) -> Corners:
        """What of it is everybody's, from its other end; nothing of one that is all its own."""
        left = self.length - self.own
        return first_units(self.corners[::-1], left) if left > _TOGETHER else ()

    def has(self, corner: Point) -> bool:
        """Say whether a corner of it lies on the part that is its own, and does not end it."""
        far = 0.0
        for p, q in itertools.pairwise(self.corners):
            if math.dist(p, corner) < _TOGETHER:
                return far < self.own - _TOGETHER
            far += math.dist(p, q)
        return False


def own_wires(lines: Iterable[Line], marked: Mapping[Ends, bool]) -> dict[Ends, OwnWire]:
    """Return what lines have for themselves, by their ends; of those alone that run along buses.

    Parameters
    ----------
    lines
        All that are drawn.
    marked
        Ends of those to be marked, and whether from their second end.
    """
    others, found = _Wires(), []
    along = [each for each in lines if each.curve.along_bus] if marked else []
    for line in along:
        if line.ends not in marked:
            others.add(line.curve.corners)
    for line in along:
        if line.ends in marked:
            corners = line.curve.corners
            way = corners[::-1] if marked[line.ends] else corners
            found.append((min(line.curve.length, others.joins(way)), line.ends, way))
    # What marked ones share is drawn once, or the dashes of one would fill the gaps of another.
    wires, drawn = {}, _Wires()
    for own, ends, way in sorted(found, key=lambda each: -each[0]):
        free = min(own, drawn.joins(way))
        drawn.add(first_units(way, free))
        wires[ends] = OwnWire(way, own, free)
    return wires


def first_units(corners: Sequence[Point], units: float) -> Corners:
    """Return the beginning of a way that is so long; nothing of no length."""
    kept = [corners[0]]
    for (px, py), (qx, qy) in itertools.pairwise(corners):
        if units <= 0:
            break
        length = math.dist((px, py), (qx, qy))
        share = min(1.0, units / (length or 1.0))
        kept.append((px + share * (qx - px), py + share * (qy - py)))
        units -= length
    return tuple(kept) if len(kept) > 1 else ()


Lane = tuple[str, int]


class _Wires:
    """Straight pieces of wires, across and down, by where they run."""

    def __init__(self) -> None:
        self._runs: dict[Lane, list[tuple[float, float]]] = defaultdict(list)

    def add(self, way: Sequence[Point]) -> None:
        """Take the pieces of a way."""
        for p, q in itertools.pairwise(way):
            lane, start, end = _run(p, q)
            if lane is not None:
                self._runs[lane].append((min(start, end), max(start, end)))

    def joins(self, way: Sequence[Point]) -> float:
        """Return the units along a way to where it first runs together with one of these."""
        before = 0.0
        for p, q in itertools.pairwise(way):
            lane, start, end = _run(p, q)
            nearest = math.inf
            for low, high in self._runs.get(lane, ()) if lane is not None else ():
                first, last = (
                    (low - start, high - start) if start < end else (start - high, start - low)
                )
                if min(abs(end - start), last) - max(0.0, first) > _TOGETHER:
                    nearest = min(nearest, max(0.0, first))
            if nearest < math.inf:
                return before + nearest
            before += math.dist(p, q)
        return math.inf


def _run(p: Point, q: Point) -> tuple[Lane | None, float, float]:
    """Return the line on which a piece lies, and from where to where; of a slanted one none."""
    (px, py), (qx, qy) = p, q
    if abs(py - qy) < _TOGETHER:
        return ("across", math.floor(py + 0.5)), px, qx
    if abs(px - qx) < _TOGETHER:
        return ("down", math.floor(px + 0.5)), py, qy
    return None, 0.0, 0.0
