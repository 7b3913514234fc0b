"""The heat map of links as SVG, for where no figure runs."""

from __future__ import annotations

from typing import Any

from widgets import text
from widgets.charts.load import HEATS, ROWS
from widgets.pictures.colors import LIGHT, between
from widgets.pictures.shapes import Box, Ground, Picture, Rect, Shape, Words
from widgets.pictures.svg import svg

_NAME = 190.0
"""Width of a name at most."""
_LETTER = 6.2
"""Width of a letter, about."""
_WIDTH = 930.0
_ROW = 15.0
_SIDE = 12.0


def load_svg(load: dict[str, Any], *, rows: int = ROWS) -> str | None:
    """Draw what `widgets.charts.load.link_load` returns, the busiest links; None without any."""
    names, busy = load["links"][:rows], load["busy"][:rows]
    if not names:
        return None
    left = min(_NAME, max(map(len, names)) * _LETTER)
    shapes: list[Shape] = []
    for i, (name, row) in enumerate(zip(names, busy, strict=True)):
        y = i * _ROW
        wide = left if len(name) * _LETTER > left else 0.0
        at = (left, y + _ROW - 4.5)
        shapes.append(Words(at, name, 10.0, LIGHT.text, anchor="end", wide=wide))
        shapes += _row(name, row, Rect(left + 8, y + 1, _WIDTH, y + _ROW - 1))
    end = len(names) * _ROW + 12
    for column in sorted({0, len(busy[0]) // 2, len(busy[0])}):
        x = left + 8 + (_WIDTH - left - 8) * column / len(busy[0])
        shapes.append(Words((x, end), text.duration(column * load["step"]), 10.0, LIGHT.dim))
    frame = Rect(-_SIDE, -_SIDE, _WIDTH + 2 * _SIDE, end + _SIDE)
    about = f"{len(names)} links over time, the busiest first; darkest is always busy"
    return svg(Picture(frame, 1.0, Ground(LIGHT.bg), tuple(shapes), "Link load", about))


def _row(name: str, row: list[float], place: Rect) -> list[Shape]:
    """Draw one link; columns of one colour that follow one another are one box."""
    width = place.width / len(row)
    boxes: list[Shape] = []
    start = 0
    for column in range(1, len(row) + 1):
        if column < len(row) and row[column] == row[start]:
            continue
        left, right = (place.x1 + width * each for each in (start, column))
        told = f"{name}, busy {text.share(row[start])}"
        boxes.append(Box(Rect(left, place.y1, right, place.y2), _color(row[start]), title=told))
        start = column
    return boxes


def _color(share: float) -> str:
    heat = HEATS["light"]
    if share <= 0.5:
        return between(heat.empty, heat.middle, share * 2)
    return between(heat.middle, heat.full, share * 2 - 1)
