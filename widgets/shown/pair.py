"""Two rows of a comparison for the two players that run in step.

Only plain values travel: what can be chosen, which two are, and their scenes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ccl.serialization.quantity import format_size
from formulations.analyses.comparison import Comparison, Row
from widgets import text
from widgets.shown.scene import moves, scene, still

MOST_MOVES = 100_000
"""Transfers of one film above which it is not played: a page has to hold two."""


def key_of(row: Row) -> str:
    """Name a row of a comparison; `row_of` finds it again."""
    return f"{row.size!r} {row.method}"


def row_of(comparison: Comparison, key: str | None) -> Row | None:
    """Return the row with a key, None where there is none."""
    size, _, method = (key or "").partition(" ")
    try:
        return comparison.row(method, float(size))
    except ValueError:
        return None


def choices(comparison: Comparison) -> list[dict[str, str]]:
    """Return the rows that have a plan, size by size, the fastest first."""
    return [
        {
            "key": key_of(row),
            "label": str(row.method),
            "group": format_size(size),
            "fact": f"{format_size(size)} in {text.duration(row.result.makespan)}, "
            f"gap {text.share(comparison.gap(row))}",
        }
        for size in comparison.sizes
        for row in comparison.at(size)
        if row.result is not None
    ]


def first_pair(comparison: Comparison, size: float | None = None) -> list[str]:
    """Return the keys of two rows worth seeing beside one another.

    The fastest and the ring, or the two fastest where the ring is the fastest or is not there.

    Parameters
    ----------
    comparison
        Where they are from.
    size
        Bytes at which they are; by default the largest size with two plans.
    """
    sizes: Sequence[float] = comparison.sizes if size is None else (size,)
    for each in reversed(sizes):
        best = comparison.best(each)
        others = [row for row in comparison.at(each) if row.result is not None and row is not best]
        if best is not None and others:
            ring = [row for row in others if row.method.formulation == "ring"]
            return [key_of(best), key_of((ring or others)[0])]
    return [item["key"] for item in choices(comparison)[:1]] * 2


def films(comparison: Comparison, chosen: Sequence[str]) -> list[dict[str, Any]]:
    """Return the two films of the rows that are chosen.

    A row without a plan has no scene, and one with too many transfers a scene that stands still.
    """
    return [{"key": key, "scene": _scene(row_of(comparison, key))} for key in chosen]


def _scene(row: Row | None) -> dict[str, Any] | None:
    if row is None or row.result is None:
        return None
    result = row.result
    if moves(result.timeline) > MOST_MOVES:
        return still(result.problem)
    return scene(result.problem, result.plan, result.timeline)
