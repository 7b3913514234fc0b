"""How close a solve has come over time, as `GapPlot` draws it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ccl import text

Row = tuple[float, float | None, float | None]
"""Seconds, best makespan in µs and largest bound in µs, None before the first."""

POINTS = 400
"""Rows sent to a page; more cannot be told apart."""


def thinned(points: Iterable[Row], limit: int = POINTS) -> tuple[Row, ...]:
    """Keep the first, the last and every row at which a value changes; at most `limit`."""
    kept: list[Row] = []
    rows = list(points)
    for i, row in enumerate(rows):
        if i in {0, len(rows) - 1} or row[1:] != rows[i - 1][1:]:
            kept.append(row)
    if len(kept) > limit:
        apart = -(-len(kept) // (limit - 1))
        kept = [*kept[:-1:apart], kept[-1]]
    return tuple(kept)


def course(points: Sequence[Row], *, seconds: float, running: bool) -> dict[str, Any]:
    """Return what the plot draws.

    Parameters
    ----------
    points
        In order of time.
    seconds
        How far the solve is.
    running
        Whether it goes on.
    """
    return {
        "points": [list(row) for row in thinned(points)],
        "seconds": round(seconds, 3),
        "running": running,
    }


def gap_words(rows: Sequence[Row]) -> str:
    """Say what is known last: ``best 15 µs, bound 10 µs, gap 50 %``."""
    best, bound = rows[-1][1:] if rows else (None, None)
    if best is None or bound is None:
        return f"best {text.duration(best)}, bound {text.duration(bound)}"
    gap = text.share(max(0.0, best / bound - 1))
    return f"best {text.duration(best)}, bound {text.duration(bound)}, gap {gap}"
