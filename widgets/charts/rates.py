"""Best rates and costs of bandwidth as Plotly figures: lines with kinks, and where we are.

`rates_figure` draws the best rate over the bandwidth of kinds of links. `front_figure` draws cost
against speed: what nothing cheaper is as fast as, with the request marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from ccl import text
from formulations.analyses.sensitivity.changes import RateCurve
from widgets.charts.comparison import LOOKS, SYMBOLS, Look, dress, log_axis, log_ticks, settle

SAMPLES = 64
"""Places of each line: straight pieces bend where the axis is logarithmic."""


@dataclass(frozen=True, slots=True)
class Line:
    """A curve as it is drawn.

    Parameters
    ----------
    words
        What the links are.
    mark
        Number of its colour and its marker.
    factors, rates
        Places along it: times today's bandwidth, and GB/s.
    breaks
        The kinks among them, without the ends.
    here
        Where the slider stands.
    """

    words: str
    mark: int
    factors: tuple[float, ...]
    rates: tuple[float, ...]
    breaks: tuple[tuple[float, float], ...]
    here: tuple[float, float]


def line_of(curve: RateCurve, words: str, *, mark: int, factor: float) -> Line:
    """Return a curve as it is drawn.

    Parameters
    ----------
    curve, words
        What `formulations.rate_curve` found, and of which links.
    mark
        Number of its colour.
    factor
        Where the slider stands, in times of today: what the curve counts from.
    """
    low, high = float(curve.pieces[0].start), float(curve.pieces[-1].end)
    kinks = [(float(x), float(y)) for x, y in curve.breaks[1:-1]]
    even = (low * (high / low) ** (i / SAMPLES) for i in range(SAMPLES + 1))
    places = sorted({*even, *(x for x, _ in kinks)})
    return Line(
        words,
        mark,
        tuple(each * factor for each in places),
        # Rounding may leave the range at its ends, which pieces do not mind.
        tuple(float(curve.piece(each).at(each)) for each in places),
        tuple((x * factor, y) for x, y in kinks),
        (factor, float(curve.at(1))),
    )


def rates_figure(lines: Sequence[Line], *, scheme: str | None = "light") -> go.Figure:
    """Draw the best algbw over bandwidth, both axes logarithmic.

    Parameters
    ----------
    lines
        What is drawn.
    scheme
        ``light``, ``dark`` or ``auto``; dark before a page has said.
    """
    look = LOOKS[scheme or "dark"]
    figure = go.Figure()
    for each in lines:
        _line(figure, each, look)
    _dress(figure, look)
    if lines:
        _axes(figure, lines)
    return figure


def color(mark: int, scheme: str | None) -> str:
    """Return the colour of a line."""
    own = LOOKS[scheme or "dark"].lines
    return own[mark % len(own)]


def _line(figure: go.Figure, line: Line, look: Look) -> None:
    tone = look.lines[line.mark % len(look.lines)]
    symbol = SYMBOLS[line.mark % len(SYMBOLS)]
    figure.add_scatter(
        x=line.factors,
        y=line.rates,
        name=line.words,
        mode="lines",
        line={"color": tone, "width": 2},
        text=[_hover(line.words, *each) for each in zip(line.factors, line.rates, strict=True)],
        hovertemplate="%{text}<extra></extra>",
    )
    figure.add_scatter(
        x=[x for x, _ in line.breaks],
        y=[y for _, y in line.breaks],
        name="kink",
        mode="markers",
        marker={"symbol": "circle-open", "size": 9, "color": tone, "line": {"width": 2}},
        text=[
            f"{_hover(line.words, *each)}<br>from here on another cut decides"
            for each in line.breaks
        ],
        hovertemplate="%{text}<extra></extra>",
    )
    figure.add_scatter(
        x=[line.here[0]],
        y=[line.here[1]],
        name="now",
        mode="markers",
        marker={
            "symbol": symbol,
            "size": 13,
            "color": tone,
            "line": {"width": 2, "color": look.ground},
        },
        text=[f"{_hover(line.words, *line.here)}<br>here the slider stands"],
        hovertemplate="%{text}<extra></extra>",
    )


def _hover(words: str, factor: float, rate: float) -> str:
    return f"<b>{words}</b><br>{text.digits(factor)} × today: {text.bandwidth(rate)}"


def _axes(figure: go.Figure, lines: Sequence[Line]) -> None:
    across = [x for each in lines for x in (each.factors[0], each.factors[-1])]
    up = [y for each in lines for y in (*each.rates, each.here[1])]
    low, high = min(up) / 1.12, max(up) * 1.12
    shown = [x for x in (0.125, 0.25, 0.5, 1, 2, 4, 8) if min(across) <= x <= max(across)]
    names = {0.125: "⅛", 0.25: "¼", 0.5: "½", 1: "today"}
    ends = min(across) / 10**0.04, max(across) * 10**0.04
    figure.update_xaxes(**log_axis(ends, shown, lambda x: names.get(x, f"{x:g}×")))
    figure.update_yaxes(**log_axis((low, high), log_ticks(low, high), text.bandwidth))


def _dress(figure: go.Figure, look: Look) -> None:
    """Give a small figure without a legend the look of the house; it fills what it is put into."""
    dress(figure, look, None, showlegend=False, margin={"l": 8, "r": 10, "t": 8, "b": 28})
    settle(figure, look, gridcolor=look.line, automargin=True)


def front_figure(
    points: Sequence[Sequence[float]],
    *,
    kind: str,
    chosen: tuple[float, float],
    unit: str = "",
    scheme: str | None = "light",
) -> go.Figure:
    """Draw how fast the cheapest upgrades are.

    Parameters
    ----------
    points
        Cost and factor over today's rate of each, the first is today's cluster.
    kind
        ``breaks`` where the front is straight between the points, else it goes in steps.
    chosen
        Cost and factor of the requested upgrade.
    unit
        Of costs.
    scheme
        ``light``, ``dark`` or ``auto``; dark before a page has said.
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
        text=[_front_hover(cost, factor, unit) for cost, factor in points],
    )
    edge = {"width": 2, "color": look.ground}
    figure.add_scatter(
        x=[chosen[0]],
        y=[chosen[1]],
        mode="markers",
        name="requested",
        marker={"symbol": "diamond", "size": 14, "color": tone, "line": edge},
        text=[f"{_front_hover(*chosen, unit)}<br>requested"],
    )
    figure.update_traces(hovertemplate="%{text}<extra></extra>")
    _dress(figure, look)
    title = {"text": f"cost {unit}".strip(), "standoff": 4, "font": {"size": 11}}
    figure.update_xaxes(rangemode="tozero", title=title)
    figure.update_yaxes(ticksuffix="×")
    return figure


def _front_hover(cost: float, factor: float, unit: str) -> str:
    return f"<b>{text.digits(factor)}×</b> of now<br>costs {text.digits(cost)} {unit}".rstrip()
