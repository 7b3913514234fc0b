"""Racks on a floor: who stands where, and how long cables become.

Racks stand in rows; a cable between two racks goes up, along and across at right angles, and down:
its length is |dx| + |dy| and a slack. Boxes with GPUs fill racks of their own in the order of the
drawing, switches racks of theirs in the middle of what they join; then boxes change places while
that makes cables cheaper.

Where there are no switches, the drawing is also folded: rows of a grid in the order 0, n - 1, 1,
n - 2, ... and columns likewise, for every grid of as many boxes. So no cable of a torus goes back
the whole length of a row, which makes none of them dearer and the longest short.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from ccl.cabling import Cabling
from ccl.errors import ProblemError
from ccl.topology import Topology

_MOST_SHAPES = 80
"""Grids that are tried; 1,024 boxes have 66."""

_HEAT = 0.1
"""How much dearer an exchange may make cables at first, in deviations of what a cable costs."""

Objective = Literal["metres", "dollars"]


@dataclass(frozen=True, kw_only=True)
class Floor:
    """How racks stand, and what is put into them.

    Parameters
    ----------
    rack_gpus, rack_switches
        Most GPUs and switches in a rack: 32 GPUs of 1.3 kW are 41 kW.
    row_racks
        Racks in a row.
    rack_width, row_pitch
        Metres from a rack to the next, and from a row to the next with its aisle.
    inside, slack
        Metres of a cable inside a rack, and of one between racks beside the distance of these.
    objective
        What the places of boxes are chosen for: ``metres`` or ``dollars`` of cables.
    tries
        Exchanges of two boxes that are tried for each box.
    seed
        Of their order.
    """

    rack_gpus: int = 32
    rack_switches: int = 8
    row_racks: int = 16
    rack_width: float = 0.6
    row_pitch: float = 2.4
    inside: float = 2.0
    slack: float = 3.0
    objective: Objective = "metres"
    tries: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            least = 0 if each.name in ("tries", "seed") else 1 if isinstance(value, int) else 1e-3
            if not isinstance(value, str) and not least <= value < math.inf:
                raise ProblemError(f"floor: {each.name} is {value:g}; give {least:g} or more")
        if self.objective not in ("metres", "dollars"):
            raise ProblemError(f"floor: objective is {self.objective!r}; give metres or dollars")

    def lengths(self, racks: int) -> np.ndarray:
        """Return the metres of a cable between any two of so many racks."""
        row, place = np.divmod(np.arange(racks), self.row_racks)
        x, y = place * self.rack_width, row * self.row_pitch
        apart = np.abs(x[:, None] - x) + np.abs(y[:, None] - y) + self.slack
        np.fill_diagonal(apart, self.inside)
        return np.asarray(apart)


@dataclass(frozen=True)
class Placement:
    """Where boxes stand.

    Parameters
    ----------
    racks
        Rack of each box, by its name; racks are counted along the rows.
    lengths
        Metres of a cable between two racks.
    """

    racks: dict[str, int]
    lengths: np.ndarray

    def length(self, first: str, second: str) -> float:
        """Return the metres of a cable between two boxes."""
        return float(self.lengths[self.racks[first], self.racks[second]])


def place(
    topology: Topology,
    cabling: Cabling,
    floor: Floor,
    *,
    cost: Callable[[float], float] = lambda length: length,
) -> Placement:
    """Put boxes into racks so that cables cost little.

    Parameters
    ----------
    topology
        The cluster, which says how many GPUs each box has.
    cabling
        Its boxes and cables.
    floor
        What racks hold and how they stand.
    cost
        What a cable of so many metres costs; by default its metres.
    """
    rank = topology.rank
    gpus = {box: sum(name in rank for name in names) for box, names in cabling.boxes.items()}
    joined = _joined(cabling)
    boxes = [box for box in cabling.boxes if box not in cabling.switches]
    found = [
        _arranged(order, gpus, joined, cabling=cabling, floor=floor)
        for order in _orders(boxes, direct=not cabling.switches)
    ]
    lengths = floor.lengths(max(max(each.values(), default=0) for each in found) + 1)
    costs = _costs(lengths, cost)
    ends = [(each.first.box, each.second.box) for each in cabling.cables]
    racks = min(found, key=lambda each: _merit(each, ends, costs))
    alike = [sorted(group) for group in _alike(cabling, gpus).values()]
    return Placement(_exchanged(racks, joined, costs, alike=alike, floor=floor), lengths)


Joined = Mapping[str, Mapping[str, int]]
"""Cables between each box and any other."""


def _joined(cabling: Cabling) -> dict[str, Counter[str]]:
    joined: dict[str, Counter[str]] = {box: Counter() for box in cabling.boxes}
    for each in cabling.cables:
        if each.first.box != each.second.box:
            joined[each.first.box][each.second.box] += 1
            joined[each.second.box][each.first.box] += 1
    return joined


def _costs(lengths: np.ndarray, cost: Callable[[float], float]) -> list[list[float]]:
    """Return what a cable between any two racks costs, as lists, which a search reads fastest."""
    kinds, place = np.unique(lengths, return_inverse=True)
    prices = np.array([cost(float(each)) for each in kinds])
    priced: list[list[float]] = prices[place].reshape(lengths.shape).tolist()
    return priced


def _merit(
    racks: Mapping[str, int], ends: Sequence[tuple[str, str]], costs: list[list[float]]
) -> tuple[float, float]:
    """Return what all cables cost, and the dearest."""
    each = [costs[racks[first]][racks[second]] for first, second in ends]
    return round(math.fsum(each), 6), max(each, default=0.0)


def _orders(boxes: Sequence[str], *, direct: bool) -> Iterator[list[str]]:
    """Yield the order of the drawing and, where there are no switches, grids of it folded.

    What is drawn row by row is a grid of as many rows and columns as divide the number of boxes.
    """
    yield list(boxes)
    count = len(boxes)
    shapes = [
        (first, second, count // first // second)
        for first in range(1, count + 1)
        if direct and count % first == 0
        for second in range(1, count // first + 1)
        if count // first % second == 0 and (second > 1 or first == 1)
    ]
    for shape in shapes[:_MOST_SHAPES]:
        grid = np.arange(count).reshape(shape)[np.ix_(*map(_folded, shape))]
        yield [boxes[i] for i in grid.ravel().tolist()]


def _folded(side: int) -> list[int]:
    """Return 0, side - 1, 1, side - 2, ...: neighbours of a ring are at most two places apart."""
    return [i // 2 if i % 2 == 0 else side - 1 - i // 2 for i in range(side)]


def _arranged(
    order: Sequence[str], gpus: Mapping[str, int], joined: Joined, *, cabling: Cabling, floor: Floor
) -> dict[str, int]:
    """Fill racks with boxes in this order, and put racks of switches between them."""
    middle: dict[str, float] = {}
    rack, free = -1, 0
    for box in order:
        if free < max(gpus[box], 1):
            rack, free = rack + 1, floor.rack_gpus
        middle[box] = float(rack)
        free -= max(gpus[box], 1)
    tiers = _tiers(cabling, joined, middle)
    shelves: dict[tuple[float, int], list[str]] = {}
    for tier in tiers:
        by_place = sorted(tier, key=lambda box: middle[box])
        for first in range(0, len(by_place), floor.rack_switches):
            shelf = by_place[first : first + floor.rack_switches]
            mean = sum(middle[box] for box in shelf) / len(shelf)
            shelves[mean, len(shelves)] = shelf
    for box in order:
        shelves.setdefault((middle[box], -1), []).append(box)
    return {box: number for number, key in enumerate(sorted(shelves)) for box in shelves[key]}


def _tiers(cabling: Cabling, joined: Joined, middle: dict[str, float]) -> list[list[str]]:
    """Return switches by how far they are from GPUs, and note the middle of what each joins."""
    waiting = [box for box in cabling.boxes if box in cabling.switches]
    tiers = []
    while waiting:
        tier = [box for box in waiting if any(each in middle for each in joined[box])] or waiting
        found = {}
        for box in tier:
            known = [middle[each] for each in joined[box] if each in middle]
            found[box] = sum(known) / len(known) if known else 0.0
        middle |= found
        tiers.append(tier)
        waiting = [box for box in waiting if box not in found]
    return tiers


def _alike(cabling: Cabling, gpus: Mapping[str, int]) -> dict[tuple[bool, int], list[str]]:
    """Return boxes that may take each other's place: switches, and hosts of equally many GPUs."""
    groups: dict[tuple[bool, int], list[str]] = defaultdict(list)
    for box in cabling.boxes:
        groups[box in cabling.switches, gpus[box]].append(box)
    return groups


def _exchanged(
    racks: Mapping[str, int],
    joined: Joined,
    costs: list[list[float]],
    *,
    alike: list[list[str]],
    floor: Floor,
) -> dict[str, int]:
    """Let boxes that are alike change places, at first also where that makes cables dearer."""
    placed = dict(racks)
    groups = [group for group in alike if len({racks[box] for box in group}) > 1]
    group_of = {box: group for group in groups for box in group}
    boxes = list(group_of)
    chance = random.Random(floor.seed)
    tries = floor.tries * len(boxes)
    heat = _HEAT * float(np.std(costs))
    saved = 0.0
    for step in range(tries):
        first = chance.choice(boxes)
        second = chance.choice(group_of[first])
        if placed[first] == placed[second]:
            continue
        more = _change(first, second, placed, joined=joined, costs=costs)
        warm = heat * (1 - step / tries)
        if more <= 0 or (warm > 0 and chance.random() < math.exp(-more / warm)):
            placed[first], placed[second] = placed[second], placed[first]
            saved -= more
    return placed if saved > 1e-6 else dict(racks)


def _change(
    first: str, second: str, placed: Mapping[str, int], *, joined: Joined, costs: list[list[float]]
) -> float:
    """Return by how much cables become dearer if two boxes change places."""
    old, new = costs[placed[first]], costs[placed[second]]
    more = 0.0
    for box, count in joined[first].items():
        if box != second:
            more += count * (new[placed[box]] - old[placed[box]])
    for box, count in joined[second].items():
        if box != first:
            more += count * (old[placed[box]] - new[placed[box]])
    return more
