"""Cost against speed: what nothing cheaper is as fast as, with what was asked for marked."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from ccl import text
from widgets.charts.comparison import LOOKS
from widgets.charts.rates import dress


def front_figure(
    points: Sequence[Sequence[float]],
    *,
    kind: str,
    chosen: tuple[float, float],
    unit: str = "",
    scheme: str | None = "light",
    height: int | None = None,
) -> go.Figure:
    """Draw how fast the cheapest upgrades are.

    Parameters
    ----------
    points
        Cost and factor over today's rate of each, the first is today's cluster.
    kind
        ``breaks`` where the front is straight between the points, else it goes in steps.
    chosen
        Cost and factor of the upgrade that was asked for.
    unit
        Of costs.
    scheme
        ``light``, ``dark`` or ``auto``; dark before a page has said.
    height
        In pixels; None fills what it is put into.
    """
    look = LOOKS[scheme or "dark"]
    tone = look.lines[0]
    figure = go.Figure()
    figure.add_scatter(
        x=[cost for cost, _ in points],
        y=[factor for _, factor in points],
        mode="lines+markers",
        name="cheapest",
        line={"color": tone, "width": 2, "shape": "linear" if kind == "breaks" else "hv"},
        marker={"size": 7, "color": tone},
        text=[_hover(cost, factor, unit) for cost, factor in points],
    )
    edge = {"width": 2, "color": look.ground}
    figure.add_scatter(
        x=[chosen[0]],
        y=[chosen[1]],
        mode="markers",
        name="asked for",
        marker={"symbol": "diamond", "size": 14, "color": tone, "line": edge},
        text=[f"{_hover(*chosen, unit)}<br>asked for"],
    )
    figure.update_traces(hovertemplate="%{text}<extra></extra>")
    dress(figure, look, height)
    title = {"text": f"cost {unit}".strip(), "standoff": 4, "font": {"size": 11}}
    figure.update_xaxes(rangemode="tozero", title=title)
    figure.update_yaxes(ticksuffix="×")
    return figure


def _hover(cost: float, factor: float, unit: str) -> str:
    return f"<b>{text.digits(factor)}×</b> of today<br>costs {text.digits(cost)} {unit}".rstrip()
