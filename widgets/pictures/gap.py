"""The gap plot as SVG, for where nothing runs."""

from __future__ import annotations

from collections.abc import Sequence

from widgets import text
from widgets.pictures.colors import LIGHT
from widgets.pictures.shapes import Ground, Picture, Point, Rect, Shape, Stroke, Words
from widgets.pictures.svg import svg
from widgets.shown.course import Row

_FRAME = Rect(-86.0, -34.0, 650.0, 186.0)
_PLOT = Rect(0.0, 0.0, 620.0, 150.0)


def gap_svg(rows: Sequence[Row], *, seconds: float) -> str | None:
    """Draw best makespan and bound over seconds as steps; None before there is a value."""
    values = [value for row in rows for value in row[1:] if value is not None]
    if not values:
        return None
    top, low = max(values), min(values)
    span = (top - low) or top
    end = max(seconds, 1e-3)

    def at(when: float, value: float) -> Point:
        up = (value - low + 0.1 * span) / (1.2 * span)
        return _PLOT.x2 * when / end, _PLOT.y2 * (1 - up)

    ground = ((_PLOT.x1, _PLOT.y1), (_PLOT.x1, _PLOT.y2), (_PLOT.x2, _PLOT.y2))
    shapes: list[Shape] = [Stroke(ground, LIGHT.box_line, 1.0, round=False)]
    for column, color in ((1, LIGHT.accent), (2, LIGHT.cut)):
        steps = [(row[0], row[column]) for row in rows]
        points = _steps([(when, value) for when, value in steps if value is not None], end)
        if points:
            line = tuple(at(*point) for point in points)
            shapes.append(Stroke(line, color, 2.0, dash=(6.0, 4.0) if column == 2 else ()))
    for value in sorted({low, top}):
        x, y = at(0.0, value)
        shapes.append(Words((x - 8, y + 4), text.duration(value), 11.0, LIGHT.dim, anchor="end"))
    shapes.append(Words((_PLOT.x2, 170.0), text.seconds(end), 11.0, LIGHT.dim, anchor="end"))
    told = gap_words(rows)
    shapes.append(Words((0.0, -14.0), told, 13.0, LIGHT.text, bold=True, anchor="start"))
    return svg(Picture(_FRAME, 1.0, Ground(LIGHT.bg), tuple(shapes), "Gap over time", told))


def gap_words(rows: Sequence[Row]) -> str:
    """Say what is known last: ``best 15 µs, bound 10 µs, gap 50 %``."""
    best, bound = rows[-1][1:] if rows else (None, None)
    if best is None or bound is None:
        return f"best {text.duration(best)}, bound {text.duration(bound)}"
    gap = text.share(max(0.0, best / bound - 1))
    return f"best {text.duration(best)}, bound {text.duration(bound)}, gap {gap}"


def _steps(points: list[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    """Keep each value until the next one comes, the last one until the end."""
    steps: list[tuple[float, float]] = []
    for when, value in points:
        if steps:
            steps.append((when, steps[-1][1]))
        steps.append((when, value))
    return [*steps, (end, steps[-1][1])] if steps else []
