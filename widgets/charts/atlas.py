"""An atlas of regimes as a Plotly figure: collective by size, the best method by colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from ccl import text
from ccl.serialization.quantity import format_size
from widgets.charts.comparison import FONT, LOOKS, Look

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Atlas, Cell

ROW = 54
"""Pixels of a row."""

_ROUND = 66
"""Pixels above and below all rows."""


_LONG = 12
"""Letters above which a name takes several lines."""


def colours(atlas: Atlas, scheme: str | None = "light") -> dict[str, str]:
    """Return the colour of each method that is the best somewhere; they begin anew after the last.

    Parameters
    ----------
    atlas
        What was found.
    scheme
        ``light``, ``dark``, or ``auto`` for what can be read on either; dark before a page has
        said.
    """
    lines = LOOKS[scheme or "dark"].lines
    return {name: lines[i % len(lines)] for i, name in enumerate(atlas.methods)}


def gain_words(cell: Cell) -> str:
    """Say what a cell takes and what that gains on a ring."""
    takes = text.duration(cell.makespan)
    if cell.gain is None:
        return f"{takes}, no ring to compare with"
    return f"{takes}, {cell.gain:.3g} times as fast as a ring"


def atlas_figure(
    atlas: Atlas, *, scheme: str | None = "light", height: int | None = None
) -> go.Figure:
    """Draw collectives over sizes, each cell in the colour of the best method with its gain.

    Parameters
    ----------
    atlas
        What was found.
    scheme
        As for `colours`.
    height
        In pixels; None takes what the rows need.
    """
    look, tints = LOOKS[scheme or "dark"], colours(atlas, scheme)
    sizes, kinds = list(map(format_size, atlas.sizes)), list(atlas.kinds)
    rows = [[atlas.cell(kind, size) for size in atlas.sizes] for kind in kinds]
    figure = go.Figure(
        go.Heatmap(
            x=sizes,
            y=kinds,
            z=[[_place(cell, atlas) for cell in row] for row in rows],
            text=[[_words(cell) for cell in row] for row in rows],
            customdata=[[_hover(cell) for cell in row] for row in rows],
            texttemplate="%{text}",
            hovertemplate="%{customdata}<extra></extra>",
            textfont={"color": look.text, "size": 12},
            colorscale=_steps(list(tints.values())),
            zmin=-0.5,
            zmax=max(1, len(tints)) - 0.5,
            opacity=0.45,
            xgap=3,
            ygap=3,
            showscale=False,
        )
    )
    _dress(figure, look, height=height or ROW * len(kinds) + _ROUND)
    return figure


def _dress(figure: go.Figure, look: Look, *, height: int) -> None:
    """Give the figure the look of the house."""
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 8, "r": 8, "t": 12, "b": 36},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": FONT, "size": 11.5, "color": look.soft},
        hoverlabel={
            "font": {"family": FONT, "size": 12, "color": look.ink},
            "bgcolor": look.ground,
            "bordercolor": look.line,
        },
        dragmode=False,
    )
    figure.update_xaxes(
        type="category",
        fixedrange=True,
        showgrid=False,
        title={"text": "size of the whole buffer", "standoff": 6, "font": {"size": 11}},
    )
    figure.update_yaxes(
        type="category", fixedrange=True, showgrid=False, autorange="reversed", automargin=True
    )


def _place(cell: Cell, atlas: Atlas) -> int | None:
    return None if cell.method is None else atlas.methods.index(cell.method)


def _words(cell: Cell) -> str:
    if cell.method is None:
        return ""
    name = cell.method if len(cell.method) <= _LONG else cell.method.replace("-", "-<br>")
    return name if cell.gain is None else f"{name}<br><b>{cell.gain:.3g}×</b>"


def _hover(cell: Cell) -> str:
    where = f"{cell.kind} of {format_size(cell.size)}"
    if cell.method is None:
        return f"{where}<br>no plan"
    return f"<b>{cell.method}</b>, {where}<br>{gain_words(cell)}"


def _steps(tints: list[str]) -> list[tuple[float, str]]:
    """Return a scale of as many colours, each in a step of its own."""
    many = max(1, len(tints))
    shown = tints or ["#888888"]
    return [(place, tint) for i, tint in enumerate(shown) for place in (i / many, (i + 1) / many)]
