"""Sweeps as Plotly figures: an atlas of regimes, and a quantity over size, GPUs or hosts.

An atlas is collective by size, with the best method by colour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import plotly.graph_objects as go

from ccl import text
from ccl.serialization.quantity import format_size
from formulations.campaigns.sweeps.rows import Row
from widgets.charts.comparison import (
    FONT,
    LOOKS,
    SYMBOLS,
    Look,
    dress,
    log_axis,
    log_ticks,
    method_places,
    span,
)

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Atlas, Cell

ROW = 54
"""Pixels of a row."""

_ROUND = 66
"""Pixels above and below all rows."""


_LONG = 12
"""Letters above which a name takes several lines."""


def colours(
    atlas: Atlas, scheme: str | None = "light", *, among: Iterable[str] = ()
) -> dict[str, str]:
    """Return the colour of each method that is the best somewhere; they begin anew after the last.

    Parameters
    ----------
    atlas
        What was found.
    scheme
        ``light``, ``dark``, or ``auto`` for what can be read on either; dark before a page has
        said.
    among
        Methods that are shown beside it, whose colours are others.
    """
    lines, places = LOOKS[scheme or "dark"].lines, method_places({*atlas.methods, *among})
    return {name: lines[places[name] % len(lines)] for name in atlas.methods}


def gain_words(cell: Cell) -> str:
    """Say what a cell takes and what that gains on a ring."""
    takes = text.duration(cell.makespan)
    if cell.gain is None:
        return f"{takes}, no ring to compare with"
    return f"{takes}, {cell.gain:.3g} times as fast as a ring"


def atlas_figure(
    atlas: Atlas, *, scheme: str | None = "light", among: Iterable[str] = ()
) -> go.Figure:
    """Draw collectives over sizes, each cell in the colour of the best method with its gain.

    Parameters
    ----------
    atlas
        What was found.
    scheme
        As for `colours`.
    among
        As for `colours`.
    """
    look, tints = LOOKS[scheme or "dark"], colours(atlas, scheme, among=among)
    sizes, kinds = list(map(format_size, atlas.sizes)), [each.capitalize() for each in atlas.kinds]
    rows = [[atlas.cell(kind, size) for size in atlas.sizes] for kind in atlas.kinds]
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
    dress(figure, look, ROW * len(kinds) + _ROUND)
    figure.update_xaxes(
        type="category",
        fixedrange=True,
        showgrid=False,
        title={"text": "size of the whole buffer", "standoff": 6, "font": {"size": 11}},
    )
    figure.update_yaxes(
        type="category", fixedrange=True, showgrid=False, autorange="reversed", automargin=True
    )
    return figure


def _place(cell: Cell, atlas: Atlas) -> int | None:
    return None if cell.method is None else atlas.methods.index(cell.method)


def _words(cell: Cell) -> str:
    if cell.method is None:
        return ""
    name = cell.method if len(cell.method) <= _LONG else cell.method.replace("-", "-<br>")
    return name if cell.gain is None else f"{name}<br><b>{cell.gain:.3g}×</b>"


def _hover(cell: Cell) -> str:
    where = f"{cell.kind.capitalize()} of {format_size(cell.size)}"
    if cell.method is None:
        return f"{where}<br>no plan"
    return f"<b>{cell.method}</b>, {where}<br>{gain_words(cell)}"


def _steps(tints: list[str]) -> list[tuple[float, str]]:
    """Return a scale of as many colours, each in a step of its own."""
    many = max(1, len(tints))
    shown = tints or ["#888888"]
    return [(place, tint) for i, tint in enumerate(shown) for place in (i / many, (i + 1) / many)]


Over = Literal["size", "gpus", "hosts"]
Quantity = Literal["busbw", "algbw", "makespan", "gap"]

MOST_LINES = 8
"""Lines in one figure: there are as many colours."""

TITLES: Mapping[str, str] = {
    "size": "size",
    "gpus": "GPUs",
    "hosts": "hosts",
    "busbw": "busbw",
    "algbw": "algbw",
    "makespan": "makespan",
    "gap": "above the lower bound",
}
"""What axes are called."""

UNITS: Mapping[str, Callable[[float], str]] = {
    "size": format_size,
    "gpus": lambda value: f"{value:g}",
    "hosts": lambda value: f"{value:g}",
    "busbw": text.bandwidth,
    "algbw": text.bandwidth,
    "makespan": text.duration,
    "gap": text.share,
}
"""How a value is written."""


def lines_of(rows: Sequence[Row], *, over: Over, quantity: Quantity) -> dict[str, list[Row]]:
    """Return the rows that are drawn, by the name of their line, each line from left to right.

    A line is a collective on a cluster, with its size where GPUs or hosts are below; what all lines
    share is left out of their names. Of several rows at one place the fastest is taken.
    """
    drawn = [
        row for row in rows if getattr(row, over) is not None and getattr(row, quantity) is not None
    ]
    parts = [[_family(row, over), row.collective, _other(row, over)] for row in drawn]
    differ = [len({each[place] for each in parts}) > 1 for place in range(3)]
    found: dict[str, dict[float, Row]] = {}
    for row, names in zip(drawn, parts, strict=True):
        told = [name for name, tell in zip(names, differ, strict=True) if tell] or names[:2]
        line = found.setdefault(", ".join(filter(None, told)), {})
        place = float(getattr(row, over))
        if place not in line or (row.makespan or 0) < (line[place].makespan or 0):
            line[place] = row
    return {name: [line[place] for place in sorted(line)] for name, line in found.items()}


def sweep_figure(
    lines: Mapping[str, Sequence[Row]],
    *,
    over: Over,
    quantity: Quantity,
    scheme: str | None = "light",
) -> go.Figure:
    """Draw the first lines of a sweep, both axes logarithmic, the gap's alone is not.

    Parameters
    ----------
    lines
        As `lines_of` returns them; those after `MOST_LINES` are left out.
    over, quantity
        What is below, and what is at the left.
    scheme
        ``light``, ``dark`` or ``auto``; dark before a page has said.
    """
    look = LOOKS[scheme or "dark"]
    figure = go.Figure()
    shown = dict(list(lines.items())[:MOST_LINES])
    for number, (name, rows) in enumerate(shown.items()):
        _line(figure, name, rows, number=number, over=over, quantity=quantity, look=look)
    dress(
        figure,
        look,
        None,
        margin={"l": 64, "r": 16, "t": 8, "b": 44},
        font={"family": FONT, "size": 12, "color": look.text},
        hoverlabel={"bgcolor": look.ground, "font": {"color": look.ink, "family": FONT}},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "font": {"size": 11}},
        dragmode="zoom",
        uirevision="sweep",
    )
    rows = [row for line in shown.values() for row in line]
    if rows:
        _axis(figure.update_xaxes, [float(getattr(row, over)) for row in rows], over, look=look)
        _axis(
            figure.update_yaxes,
            [float(getattr(row, quantity)) for row in rows],
            quantity,
            look=look,
        )
    return figure


def _family(row: Row, over: Over) -> str:
    """Return what a cluster is called where its number of GPUs or hosts is below."""
    name, _, arguments = row.cluster.partition(":")
    if over == "size":
        return row.cluster
    kept = [each for each in arguments.split(",") if not each.startswith(("hosts=", "gpus="))]
    return ":".join(filter(None, (name, ",".join(kept))))


def _other(row: Row, over: Over) -> str:
    return "" if over == "size" else format_size(row.size)


def _line(
    figure: go.Figure,
    name: str,
    rows: Sequence[Row],
    *,
    number: int,
    over: Over,
    quantity: Quantity,
    look: Look,
) -> None:
    tone, symbol = look.lines[number % len(look.lines)], SYMBOLS[number % len(SYMBOLS)]
    figure.add_scatter(
        x=[getattr(row, over) for row in rows],
        y=[getattr(row, quantity) for row in rows],
        customdata=[row.task for row in rows],
        name=name,
        mode="lines+markers",
        line={"color": tone, "width": 2},
        marker={"symbol": symbol, "size": 8, "color": tone, "line": {"width": 0}},
        text=[_sweep_hover(row) for row in rows],
        hovertemplate="%{text}<extra></extra>",
    )


def _sweep_hover(row: Row) -> str:
    assert row.makespan is not None
    return (
        f"<b>{row.cluster}</b><br>{row.collective.capitalize()} of {format_size(row.size)} by "
        f"{row.found_by or row.formulation}<br>{text.duration(row.makespan)}, "
        f"busbw {text.bandwidth(row.busbw or 0)}<br>{row.bottleneck or ''}"
    )


def _axis(update: Any, values: list[float], what: str, *, look: Look) -> None:
    common = {
        "title": {"text": TITLES[what], "font": {"size": 12, "color": look.soft}},
        "gridcolor": look.line,
        "zeroline": False,
        "tickfont": {"size": 11, "color": look.soft},
    }
    if what == "gap" or min(values) <= 0:
        update(tickformat=".0%", rangemode="tozero", **common)
        return
    low, high = span(values)
    ticks = sorted(set(values)) if what in ("gpus", "hosts") else log_ticks(low, high)
    update(**log_axis((low, high), ticks, UNITS[what]), **common)
