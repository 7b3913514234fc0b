"""Point-feature labels: names beside marks, or at the end of a leader where there is no room.

All is in pixels of a small plot. A name belongs to a point that it touches, a mark or the end of a
leader, so names that do not meet in a small plot do not meet in a larger one, whose points are
farther apart.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

LETTER, LEADING, MARK = 5.8, 13.0, 6.0
"""Pixels of a letter, of a line of text, and from the middle of a mark to its edge."""

REACHES = (18.0, 24.0, 30.0, 36.0, 42.0, 50.0, 60.0, 72.0, 86.0, 104.0, 130.0)
"""Pixels that a leader is long."""
DIRECTIONS = 16
"""Of leaders, all around."""
ORDERS = 8
"""In which names are tried at most, each with another name first, until all have room."""
WRAPPED = 14
"""Letters from which on a name may stand in two lines."""

Place = tuple[float, float]
"""Across and up."""
Line = tuple[Place, Place]
"""Its ends."""
Box = tuple[float, float, float, float]
"""Left, right, bottom and top."""


@dataclass(frozen=True, slots=True)
class Label:
    """A name in the plot.

    Parameters
    ----------
    text
        In one or two lines.
    spot
        Where it stands beside its point, as Plotly says it.
    end
        The end of the leader at which it stands; None beside the mark itself.
    """

    text: str
    spot: str
    end: Place | None = None


def place_labels(
    names: Mapping[str, str],
    marks: Mapping[str, Place],
    *,
    size: Place,
    lines: Sequence[Box] = (),
    curve: Sequence[Box] = (),
) -> dict[str, Label]:
    """Return where names stand that meet no other name, no mark, no line and no edge.

    They lie towards the middle of the marks, else elsewhere around their mark, in two lines if one
    is too long, else at the end of the shortest leader; what has no room even so is left out.

    Parameters
    ----------
    names
        By the keys of their marks, the most important first.
    marks
        The middles of all marks.
    size
        Width and height of the plot.
    lines
        What no name and no leader may cross.
    curve
        What no name crosses as long as there is room elsewhere.
    """
    best: dict[str, Label] = {}
    for first in list(names)[:ORDERS]:
        order = {first: names[first], **names}
        found = _placed(
            order, marks, page=_Page(size, _blocks(marks), lines, [*lines], []), curve=curve
        )
        if len(found) > len(best):
            best = found
        if len(best) == len(names):
            break
    return best


def _blocks(marks: Mapping[str, Place]) -> dict[str, Box]:
    return {key: (x - MARK, x + MARK, y - MARK, y + MARK) for key, (x, y) in marks.items()}


def _placed(
    names: Mapping[str, str], marks: Mapping[str, Place], *, page: _Page, curve: Sequence[Box]
) -> dict[str, Label]:
    """Return the places of names, each the first that is free after those before it."""
    spread = [x for x, _ in marks.values()]
    middle = (min(spread, default=0.0) + max(spread, default=0.0)) / 2
    found: dict[str, Label] = {}
    for avoided, choices in itertools.product((curve, ()), (_beside, _led)):
        for key, name in names.items():
            if key in found:
                continue
            labels = choices(name, marks[key], inwards=marks[key][0] > middle)
            taken = (each for each in labels if page.take(key, each, marks[key], avoided=avoided))
            label = next(taken, None)
            if label is not None:
                found[key] = label
    return found


@dataclass(frozen=True, slots=True)
class _Page:
    """What is taken already."""

    size: Place
    marks: Mapping[str, Box]
    lines: Sequence[Box]
    boxes: list[Box]
    leaders: list[Line]

    def take(self, key: str, label: Label, mark: Place, *, avoided: Sequence[Box]) -> bool:
        """Take the room of a label if it is free."""
        box = _box(label.end or mark, label)
        others = [each for name, each in self.marks.items() if name != key or label.end]
        if not self._has(box, label.end) or self._beyond(box, mark):
            return False
        if any(_meet(box, each) for each in (*self.boxes, *others, *avoided)):
            return False
        if any(_crosses(each, box) for each in self.leaders):
            return False
        if label.end is not None:
            leader = (mark, label.end)
            if not self._passes(leader, key):
                return False
            self.leaders.append(leader)
        self.boxes.append(box)
        return True

    def _has(self, box: Box, end: Place | None) -> bool:
        """Whether a box is in the plot, and its leader; a name beside its mark may reach above."""
        left, right, bottom, top = box
        if end is not None:
            right, top = max(right, end[0]), max(top, end[1])
            left, bottom = min(left, end[0]), min(bottom, end[1])
        inside = left >= 0 and right <= self.size[0] and bottom >= 0
        return inside and (end is None or top <= self.size[1])

    def _beyond(self, box: Box, mark: Place) -> bool:
        """Whether a line is between a name and its mark."""
        middle = ((box[0] + box[1]) / 2, (box[2] + box[3]) / 2)
        return any(_crosses((mark, middle), line) for line in self.lines)

    def _passes(self, leader: Line, key: str) -> bool:
        """Whether a leader runs through no name, no other mark and no other leader."""
        strange = [each for name, each in self.marks.items() if name != key]
        if any(_crosses(leader, each) for each in (*self.boxes, *strange)):
            return False
        return not any(_cross(leader, each) for each in self.leaders)


def _beside(name: str, _mark: Place, *, inwards: bool) -> Iterator[Label]:
    """Yield the labels around a mark, those towards the middle first."""
    spots = ["bottom left", "top left", "bottom right", "top right"]
    for words, spot in itertools.product(_wraps(name), spots if inwards else spots[::-1]):
        yield Label(words, spot)


def _led(name: str, mark: Place, *, inwards: bool) -> Iterator[Label]:
    """Yield the labels at the ends of leaders, the shortest and those straight up first."""
    turns = sorted(range(DIRECTIONS), key=lambda each: min(each, DIRECTIONS - each))
    for reach, turn in itertools.product(REACHES, turns):
        angle = 2 * math.pi * turn / DIRECTIONS * (-1 if inwards else 1)
        across, up = math.sin(angle), math.cos(angle)
        end = (mark[0] + reach * across, mark[1] + reach * up)
        leftwards = across < -0.1 or (inwards and across < 0.1)
        sides = ("left", "right") if leftwards else ("right", "left")
        spots = [f"{'top' if up > 0 else 'bottom'} {side}" for side in ("center", *sides)]
        if abs(up) < 0.5:
            spots = [f"middle {sides[0]}"]
        for words, spot in itertools.product(_wraps(name)[::-1], spots):
            yield Label(words, spot, end)


def _wraps(name: str) -> list[str]:
    """Return a name in one line, and a long one in two: after a comma, else about as long."""
    words = name.split(" ")
    if len(name) < WRAPPED or len(words) < 2:
        return [name]
    halves = [(" ".join(words[:i]), " ".join(words[i:])) for i in range(1, len(words))]
    two = min(halves, key=lambda each: (not each[0].endswith(","), max(map(len, each))))
    return [name, "<br>".join(two)]


def _box(at: Place, label: Label) -> Box:
    """Return what a label covers."""
    lines = label.text.split("<br>")
    width, height = LETTER * max(map(len, lines)), LEADING * len(lines)
    (x, y), (upright, side) = at, label.spot.split()
    gap = 2.0 if label.end else MARK
    left = {"right": x + gap, "left": x - gap - width, "center": x - width / 2}[side]
    bottom = {"top": y + gap, "bottom": y - gap - height, "middle": y - height / 2}[upright]
    return left, left + width, bottom, bottom + height


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


def _crosses(line: Line, box: Box) -> bool:
    """Whether a line runs through a box (Liang and Barsky)."""
    (x, y), (to_x, to_y) = line
    enter, leave = 0.0, 1.0
    for step, room in (
        (x - to_x, x - box[0]),
        (to_x - x, box[1] - x),
        (y - to_y, y - box[2]),
        (to_y - y, box[3] - y),
    ):
        if step == 0 and room < 0:
            return False
        if step < 0:
            enter = max(enter, room / step)
        elif step > 0:
            leave = min(leave, room / step)
    return enter <= leave


def _cross(one: Line, other: Line) -> bool:
    """Whether two lines cross."""

    def left(line: Line, at: Place) -> bool:
        (x, y), (to_x, to_y) = line
        return (to_x - x) * (at[1] - y) > (to_y - y) * (at[0] - x)

    apart = left(one, other[0]) != left(one, other[1])
    return apart and left(other, one[0]) != left(other, one[1])
