"""The argument of a bound as SVG where its cluster is not at hand: what leaves what, or a way."""

from __future__ import annotations

from ccl.bound import Bound, Cut, Path
from widgets import text
from widgets.pictures.colors import LIGHT
from widgets.pictures.shapes import Area, Box, Ground, Picture, Point, Rect, Shape, Stroke, Words
from widgets.pictures.svg import svg
from widgets.words.nouns import bound_proof

_BOX = (220.0, 26.0)
"""Width of a side of a cut, and height of a line in it."""
_APART = 190.0
_SIDE = 16.0
_LINES = 8
"""Names on one side; others are counted."""


def bound_svg(bound: Bound) -> str | None:
    """Draw the witness of a bound; None where it has none."""
    if isinstance(bound.witness, Cut):
        return _framed(bound, _cut(bound.witness))
    if isinstance(bound.witness, Path):
        return _framed(bound, _way(bound.witness))
    return None


def _cut(cut: Cut) -> list[Shape]:
    """Draw the devices inside on the left, where their links lead to on the right."""
    beyond = list(dict.fromkeys(dst for _, dst in cut.links))
    sides = [("inside", list(cut.inside)), ("where its links lead", beyond)]
    lines = max(1, *(min(len(names), _LINES + 1) for _, names in sides))
    high = (lines + 1) * _BOX[1]
    shapes: list[Shape] = []
    for i, (title, names) in enumerate(sides):
        left, own = i * (_BOX[0] + _APART), (min(len(names), _LINES + 1) + 1) * _BOX[1]
        rect = Rect(left, (high - own) / 2, left + _BOX[0], (high + own) / 2)
        shapes += _side(title, names, rect, cut=i == 0)
    start, end = (_BOX[0] + 8, high / 2), (_BOX[0] + _APART - 8, high / 2)
    shapes += _arrow(start, end, LIGHT.cut, width=5.0)
    middle = _BOX[0] + _APART / 2
    count = f"{len(cut.links)} link{'' if len(cut.links) == 1 else 's'}"
    shapes += [
        Words((middle, high / 2 - 14), text.bandwidth(cut.bandwidth), 15.0, LIGHT.text, bold=True),
        Words((middle, high / 2 + 24), count, 12.0, LIGHT.dim),
    ]
    return shapes


def _side(title: str, names: list[str], rect: Rect, *, cut: bool) -> list[Shape]:
    shown = names if len(names) <= _LINES + 1 else names[:_LINES]
    told = [*shown, *([f"and {len(names) - _LINES} more"] if len(shown) < len(names) else [])]
    middle = rect.middle[0]
    line, dash = (LIGHT.cut, (7.0, 6.0)) if cut else (LIGHT.box_line, ())
    shapes: list[Shape] = [Box(rect, LIGHT.surface, 13.0, line, 1.8, dash=dash)]
    shapes.append(Words((middle, rect.y1 + 18), title, 11.0, LIGHT.dim))
    for i, name in enumerate(told):
        wide = _BOX[0] - 24 if len(name) * 7.2 > _BOX[0] - 24 else 0.0
        at = (middle, rect.y1 + 18 + (i + 1) * _BOX[1] - 5)
        shapes.append(Words(at, name, 13.0, LIGHT.text, bold=True, wide=wide))
    return shapes


def _way(path: Path) -> list[Shape]:
    """Draw the devices of a way from left to right."""
    names = list(path.devices)
    if len(names) > _LINES:
        names = [*names[: _LINES // 2], "…", *names[-_LINES // 2 + 1 :]]
    shapes: list[Shape] = []
    step = 132.0
    for i, name in enumerate(names):
        rect = Rect(i * step, 0.0, i * step + 96, 44.0)
        wide = 84.0 if len(name) * 7 > 84 else 0.0
        shapes.append(Box(rect, LIGHT.surface, 9.0, LIGHT.gpu, 1.6))
        shapes.append(Words((rect.middle[0], 27), name, 13.0, LIGHT.text, bold=True, wide=wide))
        if i:
            shapes += _arrow((rect.x1 - 32, 22), (rect.x1 - 5, 22), LIGHT.link, width=2.2)
    return shapes


def _arrow(start: Point, end: Point, color: str, *, width: float) -> list[Shape]:
    """Draw a line with a head, from left to right."""
    (x1, y), (x2, _) = start, end
    size = 5 + width * 1.4
    head = ((x2, y), (x2 - size, y - size * 0.6), (x2 - size, y + size * 0.6))
    return [Stroke(((x1, y), (x2 - size, y)), color, width, round=False), Area((head,), color)]


def _framed(bound: Bound, shapes: list[Shape]) -> str:
    boxes = [each.rect for each in shapes if isinstance(each, Box)]
    right, low = max(each.x2 for each in boxes), max(each.y2 for each in boxes)
    frame = Rect(-_SIDE, -_SIDE, right + _SIDE, low + 44)
    kind = "no plan that keeps chunks whole" if bound.whole_chunks else "no plan"
    title = f"{kind} takes less than {text.duration(bound.makespan)}"
    words = Words((0.0, low + 28), title, 14.0, LIGHT.text, bold=True, anchor="start")
    about = bound_proof(bound)
    return svg(Picture(frame, 1.0, Ground(LIGHT.bg), (*shapes, words), title, about))
