"""Lines over one axis, in the look of the house: formulas beside simulations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import plotly.graph_objects as go

from ccl import text
from widgets.charts.comparison import FONT, LOOKS, SYMBOLS, Look, log_ticks

Line = tuple[Sequence[float], Sequence[float]]

FEW = 9
"""Most values over an axis that are all written below it."""


def curves(
    lines: Mapping[str, Line],
    *,
    x: str,
    y: str,
    formulas: Mapping[str, Line] | None = None,
    log: bool | Literal["x"] = True,
    scheme: str = "auto",
    height: int = 340,
) -> go.FigureWidget:
    """Draw what was simulated as points on lines, and formulas as dashes.

    Parameters
    ----------
    lines
        Values over an axis by name.
    x, y
        What the axes are, with units; where `x` says bytes, they are written as ``1 KB`` and so on.
    formulas
        The same; a formula named like a line has its colour.
    log
        Whether both axes are logarithmic; ``x`` where only that one is.
    scheme
        ``auto``, ``light`` or ``dark``.
    height
        In pixels.
    """
    look = LOOKS[scheme]
    figure = go.Figure()
    names = list(dict.fromkeys([*lines, *(formulas or {})]))
    for i, name in enumerate(names):
        color = look.lines[i % len(look.lines)]
        if name in lines:
            across, up = lines[name]
            figure.add_scatter(
                x=list(across), y=list(up), name=name, mode="lines+markers",
                line={"color": color, "width": 2},
                marker={"symbol": SYMBOLS[i % len(SYMBOLS)], "size": 8},
            )  # fmt: skip
        if name in (formulas or {}):
            across, up = (formulas or {})[name]
            figure.add_scatter(
                x=list(across), y=list(up), mode="lines",
                name=f"{name}, formula" if name in lines else name,
                line={"color": color, "width": 1.5, "dash": "dash"},
            )  # fmt: skip
    figure.update_layout(**_layout(look, x=x, y=y, height=height))
    drawn = [*lines.values(), *(formulas or {}).values()]
    if log:
        figure.update_xaxes(**_across(drawn, sizes="byte" in x))
    if log is True:
        figure.update_yaxes(**_up(drawn))
    # Whole from the start: what is added later comes in messages of its own, after empty axes.
    return go.FigureWidget(figure)


def _layout(look: Look, *, x: str, y: str, height: int) -> dict[str, Any]:
    axis = {"gridcolor": look.line, "zeroline": False, "linecolor": look.line}
    return {
        "height": height,
        "margin": {"l": 60, "r": 10, "t": 10, "b": 50},
        "font": {"family": FONT, "size": 12, "color": look.text},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "modebar": {"orientation": "v"},  # or it lies on the legend
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": {**axis, "title": x},
        "yaxis": {**axis, "title": y},
    }


def _across(lines: Sequence[Line], *, sizes: bool) -> dict[str, Any]:
    """Write every value of x where there are few, or round ones."""
    values = sorted({value for line in lines for value in line[0] if value > 0})
    shown = values if len(values) <= FEW else log_ticks(values[0], values[-1])
    write = text.size if sizes else text.digits
    return {"type": "log", "tickvals": shown, "ticktext": [write(each) for each in shown]}


def _up(lines: Sequence[Line]) -> dict[str, Any]:
    """Write round values of y."""
    values = [value for line in lines for value in line[1] if value > 0]
    shown = log_ticks(min(values) * 0.9, max(values) * 1.1) if values else []
    return {"type": "log", "tickvals": shown, "ticktext": [text.digits(each) for each in shown]}
