"""Lines over one axis, in the look of the house: formulas beside simulations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from widgets.comparison_charts import FONT, LOOKS, SYMBOLS, Look

Line = tuple[Sequence[float], Sequence[float]]


def curves(
    lines: Mapping[str, Line],
    *,
    x: str,
    y: str,
    formulas: Mapping[str, Line] | None = None,
    log: bool = True,
    scheme: str = "auto",
    height: int = 340,
) -> go.FigureWidget:
    """Draw what was simulated as points on lines, and formulas as dashes.

    Parameters
    ----------
    lines
        Values over an axis by name.
    x, y
        What the axes are, with units.
    formulas
        The same; a formula named like a line has its colour.
    log
        Whether both axes are logarithmic.
    scheme
        ``auto``, ``light`` or ``dark``.
    height
        In pixels.
    """
    look = LOOKS[scheme]
    figure = go.FigureWidget()
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
                x=list(across), y=list(up), name=f"{name}, formula", mode="lines",
                line={"color": color, "width": 1.5, "dash": "dash"},
            )  # fmt: skip
    figure.update_layout(**_layout(look, x=x, y=y, kind="log" if log else "linear", height=height))
    return figure


def _layout(look: Look, *, x: str, y: str, kind: str, height: int) -> dict[str, Any]:
    axis = {"type": kind, "gridcolor": look.line, "zeroline": False, "linecolor": look.line}
    return {
        "height": height,
        "margin": {"l": 60, "r": 10, "t": 10, "b": 50},
        "font": {"family": FONT, "size": 12, "color": look.text},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": {**axis, "title": x, "exponentformat": "SI"},
        "yaxis": {**axis, "title": y, "exponentformat": "SI"},
    }
