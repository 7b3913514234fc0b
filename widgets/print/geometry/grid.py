"""Grid of folded hosts: hosts that would be a strip across the picture move into rows of its shape.

What the canvas does (`widgets/js/src/block_grid.js`) of a drawing that nobody has moved: hosts,
planes of a torus or pods are the cells, switches stand above, below or between two halves of them.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cmp_to_key

from ccl.topology import Device, Topology
from widgets.print.geometry.folding import PADDING, SLOT, Axes, Block, Group, compacted
from widgets.print.geometry.tiers import pods_of
from widgets.print.sheet import Point, Rect, around

_FEWEST_BLOCKS = 6
_GAP = (16.0, 34.0)
_WIDE_GAP = (56.0, 64.0)
"""Room between hosts, and between pods or planes."""
_SWITCHES = 150.0
_WIDE = 1.3
"""How much wider than high the grid is."""
_WORTH = 1.25
"""How much larger a grid has to make boxes."""

Boxes = Mapping[str, Rect]
Item = tuple[str, ...]
"""Names of the devices that move as a whole: a host's, or one."""
Moves = dict[Item, Point]
Cell = tuple[int, int]


@dataclass(slots=True)
class _Unit:
    """Items in one cell, those that move aside in it, and what it takes of the drawing."""

    items: list[Item]
    hull: Rect
    aside: dict[Item, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Part:
    """Units with switches above or below, and switches among them; tiers from the top."""

    tiers: tuple[list[_Unit] | list[Item], ...]
    units: list[_Unit]
    inner: list[Item]
    hull: Rect


@dataclass(frozen=True, slots=True)
class _Plan:
    parts: list[_Part]
    columns: int
    gap: Point
    snake: bool


def gridded(
    topology: Topology, boxes: Boxes, groups: Sequence[Group]
) -> tuple[Boxes, tuple[list[Block], list[Block]]]:
    """Return where devices stand before folding, and what keeps its length; or all as it was.

    Parameters
    ----------
    topology
        What is drawn.
    boxes
        Of all devices, unfolded.
    groups
        What is folded: all that can be.
    """
    none: tuple[list[Block], list[Block]] = ([], [])
    if sum(each.host is not None for each in groups) < _FEWEST_BLOCKS:
        return boxes, none
    sets, whole = _sets(topology)
    placed = {name for items in sets for item in items for name in item}
    loose = [(each.name,) for each in topology.devices if each.name not in placed]
    hosted = {each.name for each in topology.devices if each.host is not None}
    every = [*itertools.chain.from_iterable(sets), *loose]
    homes = {item: _home(item, boxes, hosted=item[0] in hosted) for item in every}
    plan = _Grid(topology, boxes, groups, homes).plan(sets, loose, whole=whole)
    if plan is None:
        return boxes, none
    moves, rooms = _Placing(plan, homes).place(loose)
    moved = dict(boxes)
    for item, (dx, dy) in moves.items():
        for name in item:
            moved[name] = _by(boxes[name], dx, dy)
    return moved, rooms


def _sets(topology: Topology) -> tuple[list[list[Item]], bool]:
    """Return the items of each pod, or each host by itself, and whether there are pods."""
    pods = pods_of(topology)
    hosted = [each for each in topology.devices if each.host is not None]
    inside = {each.name for members in pods.values() for each in members}
    if pods and all(each.name in inside for each in hosted):
        sets = [_items(members) for members in pods.values()]
        return sets, any(len(items) > 1 for items in sets)
    return [[item] for item in _items(hosted)], False


def _items(devices: Sequence[Device]) -> list[Item]:
    found: dict[tuple[bool, str], list[str]] = {}
    for each in devices:
        key = (False, each.name) if each.host is None else (True, each.host)
        found.setdefault(key, []).append(each.name)
    return [tuple(names) for names in found.values()]


def _home(item: Item, boxes: Boxes, *, hosted: bool) -> Rect:
    hull = around([boxes[name] for name in item])
    return hull.grown(PADDING) if hosted else hull


def _by(r: Rect, dx: float, dy: float) -> Rect:
    return Rect(r.x1 + dx, r.y1 + dy, r.x2 + dx, r.y2 + dy)


def _round(value: float) -> int:
    """Round as JavaScript does."""
    return math.floor(value + 0.5)


def _cell(i: int, columns: int, *, snake: bool) -> Cell:
    """Return column and row; every other row is read backwards where `snake`."""
    row, column = divmod(i, columns)
    return (columns - 1 - column if snake and row % 2 else column), row


@dataclass(frozen=True, slots=True)
class _Grid:
    """Which grid suits a drawing.

    Parameters
    ----------
    homes
        Boxes of the items.
    """

    topology: Topology
    boxes: Boxes
    groups: Sequence[Group]
    homes: Mapping[Item, Rect]

    def plan(self, given: list[list[Item]], loose: Sequence[Item], *, whole: bool) -> _Plan | None:
        """Return the grid; None where hosts are better left where they are."""
        linked = self._between(given)
        sets = given if whole else self._bays(given) if linked else self._in_lines(given)
        units = [_Unit(items, self._hull(items)) for items in sets]
        parts = self._parts(units, loose)
        if parts is None or len(units) < 2:
            return None
        counts = [len(tier) for part in parts for tier in part.tiers if tier is not part.inner]
        gap = _WIDE_GAP if any(len(items) > 1 for items in sets) else _GAP
        folded = self._folded(units)
        slant = self._most_aside(units) if linked and not whole else 0.0
        cell = (folded.cell[0] + gap[0] + slant, folded.cell[1] + gap[1] + folded.hang)
        switches = max(_SWITCHES, folded.rest) if loose else 0.0

        def worth(columns: int) -> float:
            rows = sum(math.ceil(count / columns) for count in counts)
            full = sum(counts) / (rows * columns)
            scale = min(_WIDE / (columns * cell[0]), 1 / (rows * cell[1] + switches))
            return float(scale * full**2)

        columns = max(range(1, max(counts) + 1), key=worth)
        if worth(columns) < _WORTH * min(_WIDE / folded.strip[0], 1 / folded.strip[1]):
            return None
        between = linked if whole else self._between(sets)
        snake = len(parts) == 1 and _length(between, columns, snake=True) < _length(
            between, columns, snake=False
        )
        for unit in units if snake else ():
            self._step_aside(unit)
        return _Plan(parts, columns, (gap[0], gap[1] + folded.hang), snake)

    def _hull(self, items: Sequence[Item]) -> Rect:
        return around([self.homes[item] for item in items])

    def _between(self, sets: Sequence[Sequence[Item]]) -> Counter[tuple[int, int]]:
        """Return how many links lead from one set to another, by their numbers."""
        at = {name: i for i, items in enumerate(sets) for item in items for name in item}
        ends = ((at.get(each.src), at.get(each.dst)) for each in self.topology.links)
        return Counter((i, j) for i, j in ends if i is not None and j is not None and i != j)

    def _in_lines(self, units: list[list[Item]]) -> list[list[Item]]:
        """Return units in the order in which a text is read."""
        at = {items[0]: self._hull(items).middle for items in units}

        def compare(a: list[Item], b: list[Item]) -> float:
            (ax, ay), (bx, by) = at[a[0]], at[b[0]]
            return _round(ay - by) or ax - bx

        return sorted(units, key=cmp_to_key(compare))  # type: ignore[arg-type]

    def _columns(self, items: Sequence[Item]) -> list[tuple[list[Item], float]]:
        """Return items above one another, with their left sides, from the left to the right."""
        found: list[tuple[list[Item], float]] = []
        right = -math.inf
        for item in sorted(items, key=lambda each: self.homes[each].x1):
            home = self.homes[item]
            if right <= home.x1:
                found.append(([], home.x1))
                right = home.x2
            found[-1][0].append(item)
            right = max(right, home.x2)
        return found

    def _bays(self, units: Sequence[Sequence[Item]]) -> list[list[Item]]:
        """Return hosts by bays: columns whose heights repeat, such as planes of a torus."""
        columns = [items for items, _ in self._columns([item for items in units for item in items])]
        heights = [sorted(_round(self.homes[each].middle[1]) for each in c) for c in columns]
        many = len(columns)
        period = next(
            p
            for p in range(1, many + 1)
            if many % p == 0 and all(heights[i] == heights[i % p] for i in range(many))
        )
        width = 1 if period == many else period
        starts = range(0, many - many % width, width)
        return [[each for c in columns[i : i + width] for each in c] for i in starts]

    def _most_aside(self, units: Sequence[_Unit]) -> float:
        columns = self._columns(units[0].items)
        return SLOT[0] / 2 if any(len(items) > 1 for items, _ in columns) else 0.0

    def _step_aside(self, unit: _Unit) -> None:
        """Let every other host of a column move aside by half a column."""
        columns = self._columns(unit.items)
        width = columns[1][1] - columns[0][1] if len(columns) > 1 else unit.hull.width
        for items, _ in columns:
            down = sorted(items, key=lambda each: self.homes[each].y1)
            unit.aside.update((item, width / 2 if i % 2 else 0.0) for i, item in enumerate(down))
        if any(unit.aside.values()):
            unit.hull = unit.hull._replace(x2=unit.hull.x2 + width / 2)

    def _parts(self, units: Sequence[_Unit], loose: Sequence[Item]) -> list[_Part] | None:
        """Return units above, between and below switches; None where these stand among rows."""
        sets: dict[int, list[_Unit]] = defaultdict(list)
        for unit in units:
            y = unit.hull.middle[1]
            sets[sum(self.homes[each].middle[1] < y for each in loose)].append(unit)
        parts = []
        for part in sets.values():
            hull = around([unit.hull for unit in part])
            middle = hull.middle[1]
            row = all(unit.hull.y1 < middle < unit.hull.y2 for unit in part)
            level = hull._replace(x1=-math.inf, x2=math.inf) if row else hull
            inner = [item for item in loose if level.meets(self.homes[item])]
            if inner and not row:
                return None
            outer = [self.homes[item].middle[1] < middle for item in loose if item not in inner]
            parts.append(_Part(_tiers(part, inner, outer), part, inner, hull))
        return sorted(parts, key=lambda part: part.hull.y1)

    def _folded(self, units: Sequence[_Unit]) -> _Folded:
        """Return what units take where all is folded and nothing else is done."""
        within = {each.name for group in self.groups for each in group.members}
        shown = [each for each in self.topology.devices if each.name not in within]
        found = compacted(self.boxes, self.groups, shown)
        down = Axes.of(self.boxes, self.groups, shown).down
        first = {g.key: g.members[0].name for g in self.groups}
        unit_at = {name: i for i, unit in enumerate(units) for it in unit.items for name in it}
        inside: dict[int, list[Rect]] = defaultdict(list)
        for key, box in found.items():
            if (i := unit_at.get(first.get(key, key))) is not None:
                inside[i].append(box)
        hulls = {i: around(rects) for i, rects in inside.items()}
        hang = max((hull.y2 - down.at(units[i].hull.y2) for i, hull in hulls.items()), default=0.0)
        strip = around(list(found.values()))
        return _Folded(
            cell=(
                max(SLOT[0], *(hull.width for hull in hulls.values())),
                max(SLOT[1], *(hull.height for hull in hulls.values())),
            ),
            hang=max(0.0, hang),
            strip=(strip.width, strip.height),
            rest=strip.height - around(list(hulls.values())).height,
        )


@dataclass(frozen=True, slots=True)
class _Folded:
    """The largest unit, how far switches hang below one, all, and its height without units."""

    cell: Point
    hang: float
    strip: Point
    rest: float


def _length(between: Mapping[tuple[int, int], int], columns: int, *, snake: bool) -> int:
    """Return how many cells all links pass."""
    length = 0
    for (i, j), many in between.items():
        (a, b), (c, d) = _cell(i, columns, snake=snake), _cell(j, columns, snake=snake)
        length += many * (abs(a - c) + abs(b - d))
    return length


def _tiers(
    units: list[_Unit], inner: list[Item], above: Sequence[bool]
) -> tuple[list[_Unit] | list[Item], ...]:
    """Return units and the switches among them; these come to others above or below."""
    if not inner:
        return (units,)
    if above:
        return (inner, units) if True in above else (units, inner)
    half = math.ceil(len(units) / 2)
    return units[:half], inner, units[half:]


class _Placing:
    """Places in a grid.

    Parameters
    ----------
    plan
        The grid.
    homes
        Boxes of the items.
    """

    def __init__(self, plan: _Plan, homes: Mapping[Item, Rect]) -> None:
        self.plan, self.homes = plan, homes
        hulls = [unit.hull for part in plan.parts for unit in part.units]
        self.cell = (
            max(SLOT[0], *(hull.width for hull in hulls)),
            max(SLOT[1], *(hull.height for hull in hulls)),
        )
        self.pitch = (self.cell[0] + plan.gap[0], self.cell[1] + plan.gap[1])
        self.squeeze = self._squeeze()
        self.moves: Moves = {}
        self.rooms: tuple[list[Block], list[Block]] = ([], [])

    def _squeeze(self) -> Callable[[float], float]:
        """Return how far switches move to the middle as the blocks have."""
        hull = around([part.hull for part in self.plan.parts])
        middle, share = hull.middle[0], min(1.0, self.plan.columns * self.pitch[0] / hull.width)
        return lambda x: (x - middle) * share + middle - x

    def place(self, loose: Sequence[Item]) -> tuple[Moves, tuple[list[Block], list[Block]]]:
        """Return how far each item moves, and what keeps its length along each axis."""
        down, gap = 0.0, self.plan.gap[1]
        grew: list[tuple[float, float]] = []
        for part in self.plan.parts:
            top = part.hull.y1 + down
            for tier in part.tiers:
                if tier is part.inner:
                    top = self._switches(part.inner, top) + gap
                else:
                    units = [each for each in tier if isinstance(each, _Unit)]
                    top = self._rows(units, top, part.hull.middle[0])
            grew.append((part.hull.y2, max(0.0, top - gap - part.hull.y2 - down)))
            down += grew[-1][1]
        for item in loose:
            if item not in self.moves:
                x, y = self.homes[item].middle
                self.moves[item] = self.squeeze(x), sum(by for at, by in grew if at <= y)
        return self.moves, self.rooms

    def _switches(self, items: Sequence[Item], top: float) -> float:
        """Place switches between rows of blocks; return where they end."""
        hull = around([self.homes[item] for item in items])
        for item in items:
            self.moves[item] = self.squeeze(self.homes[item].middle[0]), top - hull.y1
        return top + hull.height

    def _rows(self, units: Sequence[_Unit], top: float, middle: float) -> float:
        """Place units in rows; return where they end, with the gap below."""
        columns, gap = self.plan.columns, self.plan.gap
        left = middle - (min(columns, len(units)) * self.pitch[0] - gap[0]) / 2
        for i, unit in enumerate(units):
            column, row = _cell(i, columns, snake=self.plan.snake)
            corner = (left + column * self.pitch[0], top + row * self.pitch[1])
            x, y = unit.hull.middle
            dx, dy = corner[0] + self.cell[0] / 2 - x, corner[1] + self.cell[1] / 2 - y
            for item in unit.items:
                self.moves[item] = dx + unit.aside.get(item, 0.0), dy
            for axis, rooms in enumerate(self.rooms):
                end = corner[axis] + self.cell[axis]
                rooms += [(end, end + gap[axis], gap[axis]), (corner[axis], end, SLOT[axis])]
        return top + math.ceil(len(units) / columns) * self.pitch[1]
