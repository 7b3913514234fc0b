"""What others published of a compared question, on the plot of the comparison.

A star in the colour of the words at its own size, without a line: it is no row of the comparison.
"""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go

from ccl.serialization.quantity import format_size
from formulations.analyses.comparison import Comparison
from gallery.published import Published, published
from widgets import text

STARS = ("star", "star-triangle-up", "hexagram", "star-square")
"""Marks, one for each method."""

Value = Callable[[float, float, float], float]
"""What is drawn of a size in bytes, a makespan and a bound in µs."""


def printed_values(comparison: Comparison, value: Value) -> list[float]:
    """Return what is published of the compared sizes, as the plot has it upwards."""
    return [_value(comparison, each, value) for each in _printed(comparison)]


def add_published(figure: go.Figure, comparison: Comparison, *, color: str, value: Value) -> None:
    """Draw what others published of the same cluster, collective and sizes, with its source."""
    printed = _printed(comparison)
    for number, name in enumerate(dict.fromkeys(each.method for each in printed)):
        theirs = [each for each in printed if each.method == name]
        figure.add_scatter(
            x=[each.size for each in theirs],
            y=[_value(comparison, each, value) for each in theirs],
            name=f"{name}, published",
            mode="markers",
            marker={
                "symbol": f"{STARS[number % len(STARS)]}-open",
                "size": 11,
                "color": color,
                "line": {"width": 1.4},
            },
            text=[
                f"<b>{name}</b> at {format_size(each.size)}, published<br>"
                f"{text.duration(each.makespan)} as printed, not a replay<br>{each.source}"
                for each in theirs
            ],
            hovertemplate="%{text}<extra></extra>",
        )


def _printed(comparison: Comparison) -> tuple[Published, ...]:
    return published(comparison.problem, comparison.sizes)


def _value(comparison: Comparison, each: Published, value: Value) -> float:
    return value(each.size, each.makespan, comparison.bound(each.size).makespan)
