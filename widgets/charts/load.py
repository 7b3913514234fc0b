"""How busy links are over time, and lines over one axis, as Plotly figures.

`link_load` has the numbers, `link_load_figure` their heat map. `curves` draws formulas beside
simulations, in the look of the house.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from ccl import text
from ccl.timeline import Timeline
from widgets.charts.comparison import FONT, LOOKS, SYMBOLS, Look, dress, log_ticks, settle

ROWS = 24
"""Links shown at first: the busiest ones."""
MOST_ROWS = 400
"""Links shown when all are; a page has no space for more."""
COLUMNS = 96
"""More epochs than this are drawn in equal groups; a screen has no room for them."""


@dataclass(frozen=True, slots=True)
class Heat:
    """Colours of a link that is idle, busy for half of the time, and for all of it."""

    empty: str
    middle: str
    full: str


HEATS: Mapping[str, Heat] = {
    "light": Heat("#e9eef4", "#5b9bd8", "#084a8c"),
    "dark": Heat("#1b2531", "#2f6fb0", "#8accff"),
    # Where nobody says what is behind it: to be distinguished on either.
    "auto": Heat("#c3ccd6", "#4b8ecb", "#1f4f86"),
}


def link_load(
    timeline: Timeline, epoch_duration: float, *, columns: int = COLUMNS
) -> dict[str, Any]:
    """Say how busy each used link is in each epoch.

    Parameters
    ----------
    timeline
        The replay.
    epoch_duration
        µs of one step of the player.
    columns
        At most.

    Returns
    -------
    dict
        ``links``, the names, the busiest first, and ``ends``, their ends in the same order;
        ``busy``, a row per link with the share of each column's time during which it sends;
        ``step``, µs per column; ``share``, of each link the share of the whole run;
        ``alike``, how many links are as busy as it at every moment, by symmetry, itself included.
    """
    steps = max(1, int(np.ceil(timeline.makespan / epoch_duration - 1e-9)))
    step = epoch_duration * max(1, -(-steps // columns))
    edges = np.arange(max(1, int(np.ceil(timeline.makespan / step - 1e-9))) + 1) * step
    rows: dict[tuple[str, str], np.ndarray[Any, Any]] = {}
    for each in timeline.transfers:
        row = rows.setdefault(timeline.place(each.src, each.dst), np.zeros(len(edges) - 1))
        row += np.clip(
            np.minimum(edges[1:], each.sent) - np.maximum(edges[:-1], each.start), 0, None
        )
    alike = Counter(timeline.orbits.values())
    order = sorted(rows, key=lambda ends: -float(rows[ends].sum()))
    return {
        "links": [f"{src} → {dst}" for src, dst in order],
        "ends": [list(ends) for ends in order],
        "busy": [np.round(np.minimum(rows[ends] / step, 1), 3).tolist() for ends in order],
        "step": step,
        "alike": [alike.get(ends, 1) for ends in order],
        "share": [_share(float(rows[ends].sum()), timeline.makespan) for ends in order],
    }


def _share(busy: float, makespan: float) -> float:
    return round(min(1.0, busy / makespan), 4) if makespan else 0.0


def link_load_figure(load: dict[str, Any], scheme: str | None, *, rows: int = ROWS) -> go.Figure:
    """Draw the heat map of `link_load`: links downwards, time to the right.

    Parameters
    ----------
    load
        As `link_load` returns it, of one link at least.
    scheme
        ``light``, ``dark``, or ``auto`` for what can be read on either; dark before a page has
        said.
    rows
        Links at most.
    """
    look, heat = LOOKS[scheme or "dark"], HEATS[scheme or "dark"]
    names, busy = load["links"][:rows], load["busy"][:rows]
    times = [text.duration(load["step"] * k) for k in range(len(busy[0]) + 1)]
    figure = go.Figure(
        go.Heatmap(
            z=busy,
            x=[k + 0.5 for k in range(len(busy[0]))],
            y=names,
            zmin=0,
            zmax=1,
            colorscale=[[0, heat.empty], [0.5, heat.middle], [1, heat.full]],
            showscale=False,
            xgap=2 if len(busy[0]) <= 40 else 0,
            ygap=2,
            customdata=[[f"{a} to {b}" for a, b in pairwise(times)]] * len(names),
            hovertemplate="%{y}<br>%{customdata}<br>busy %{z:.0%}<extra></extra>",
        )
    )
    dress(
        figure,
        look,
        46 + 13 * len(names),
        font={"family": FONT, "size": 10.5, "color": look.soft},
        hoverlabel={"font": {"family": FONT, "size": 12}},
        margin={"l": 4, "r": 6, "t": 4, "b": 4},
        showlegend=False,
    )
    settle(figure, look)
    figure.update_yaxes(autorange="reversed", showgrid=False, automargin=True, ticks="", dtick=1)
    figure.update_xaxes(
        showgrid=False,
        automargin=True,
        tickvals=(ticks := _ticks(len(busy[0]))),
        ticktext=[text.duration(load["step"] * k) for k in ticks],
    )
    return figure


def _ticks(columns: int) -> list[int]:
    """Return at most five column borders, evenly apart."""
    apart = max(1, -(-columns // 4))
    return list(range(0, columns + 1, apart))


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
