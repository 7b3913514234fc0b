"""Networks in two respects: a dot each, those that none is better than in both on a line.

What no network with the same ports is below is a line that no dot can cross.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import plotly.graph_objects as go

from ccl import text
from widgets.charts.comparison import LOOKS, SYMBOLS, Look, dress, log_axis, log_ticks, settle
from widgets.charts.labels import Box, Label, Place, place_labels

PLOT = (340.0, 250.0)
"""Pixels of a small plot, in which no two names may meet."""


@dataclass(frozen=True, slots=True)
class Respect:
    """What an axis shows; less is better.

    Parameters
    ----------
    title
        Beside the axis, with what it is counted in.
    write
        Writes a value with its unit.
    """

    title: str
    write: Callable[[float], str]


def _dollars(value: float) -> str:
    if value >= 1e6:
        return f"${text.digits(value / 1e6)} M"
    return f"${value:,.0f}"


def _watts(value: float) -> str:
    return f"{text.digits(value / 1e3)} kW"


def _plain(value: float) -> str:
    return f"{value:,.0f}"


RESPECTS: Mapping[str, Respect] = {
    "mix": Respect("Time of the mix", text.duration),
    "all-to-all": Respect("All-to-all per GB", text.duration),
    "all-gather": Respect("All-gather per GB", text.duration),
    "all-reduce": Respect("All-reduce per GB", text.duration),
    "latency": Respect("Latency, farthest GPU", text.duration),
    "hops": Respect("Cables on the way, mean", text.digits),
    "cables": Respect("Cables", _plain),
    "switches": Respect("Switches", _plain),
    "dollars": Respect("Cost of the network", _dollars),
    "watts": Respect("Power of the network", _watts),
    "metres": Respect("Length of cables", lambda value: f"{value:,.0f} m"),
}
"""By its name in `formulations.proposals.AXES`."""


@dataclass(frozen=True, slots=True)
class Dot:
    """A network as it is drawn.

    Parameters
    ----------
    key, name, family
        What it is.
    place
        Its values in both respects.
    best
        Whether none is better in both.
    chosen
        Whether it is looked at.
    """

    key: str
    name: str
    family: str
    place: tuple[float, float]
    best: bool
    chosen: bool = False


def proposals_figure(
    dots: Sequence[Dot],
    *,
    axes: tuple[str, str],
    bounds: tuple[float | None, float | None] = (None, None),
    scheme: str | None = "light",
    height: int | None = None,
    size: Place | None = None,
) -> go.Figure:
    """Draw networks in two respects.

    Parameters
    ----------
    dots
        The networks.
    axes
        Names of `RESPECTS`, across and up.
    bounds
        What no network is below, in each; None where nothing is proved.
    scheme
        ``light``, ``dark`` or ``auto``; dark before a page has said.
    height
        In pixels; None fills what it is put into.
    size
        Pixels between the axes, for names; None is a small plot.
    """
    look = LOOKS[scheme or "dark"]
    figure = go.Figure()
    _best(figure, dots, look)
    families = list(dict.fromkeys(each.family for each in dots))
    spots = labels(dots, bounds, size or PLOT)
    for number, family in enumerate(families):
        several = [each for each in dots if each.family == family]
        _family(figure, several, number, look=look, axes=axes, spots=spots)
    if bounds != (None, None):
        words, line = "no network can be below", {"color": look.bound, "width": 1.5}
        figure.add_scatter(x=[None], y=[None], mode="lines", name=words, line=line)
    legend = {"font": {"size": 11}, "orientation": "h", "y": -0.16, "yanchor": "top", "x": 0}
    dress(figure, look, height, legend=legend, margin={"l": 8, "r": 14, "t": 14, "b": 8})
    settle(figure, look, gridcolor=look.line, automargin=True)
    for across, (name, bound) in enumerate(zip(reversed(axes), reversed(bounds), strict=True)):
        values = [each.place[1 - across] for each in dots]
        if values:
            _axis(figure, name, values, bound=bound, across=bool(across))
        if bound is not None:
            line = figure.add_vline if across else figure.add_hline
            line(bound, line={"color": look.bound, "width": 1.5})
    return figure


def _best(figure: go.Figure, dots: Sequence[Dot], look: Look) -> None:
    """Join those that none is better than, in steps."""
    best = sorted(each.place for each in dots if each.best)
    figure.add_scatter(
        x=[x for x, _ in best],
        y=[y for _, y in best],
        mode="lines",
        line={"color": look.soft, "width": 1.5, "shape": "hv", "dash": "dot"},
        hoverinfo="skip",
        showlegend=False,
    )


def _family(
    figure: go.Figure,
    dots: Sequence[Dot],
    number: int,
    *,
    look: Look,
    axes: tuple[str, str],
    spots: Mapping[str, Label],
) -> None:
    """Add the marks of a family, with names where there is room for them."""
    tone = look.lines[number % len(look.lines)]
    beside = [spots.get(each.key, Label("", "top right")) for each in dots]
    font = {"size": 10.5, "color": look.soft}
    figure.add_scatter(
        x=[each.place[0] for each in dots],
        y=[each.place[1] for each in dots],
        name=dots[0].family,
        legendgroup=dots[0].family,
        mode="markers+text",
        text=["" if each.end else each.text for each in beside],
        textposition=[each.spot for each in beside],
        textfont=font,
        cliponaxis=False,
        marker={
            "symbol": SYMBOLS[(number + number // len(look.lines)) % len(SYMBOLS)],
            "size": [15 if each.chosen else 11 if each.best else 8 for each in dots],
            "color": tone,
            "opacity": [1.0 if each.best or each.chosen else 0.55 for each in dots],
            "line": {"width": [2 if each.chosen else 0 for each in dots], "color": look.text},
        },
        customdata=[each.key for each in dots],
        hovertext=[_hover(each, axes) for each in dots],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    for dot, label in zip(dots, beside, strict=True):
        if label.end:
            _leader(figure, dot, label, font=font)


def _leader(figure: go.Figure, dot: Dot, label: Label, *, font: Mapping[str, Any]) -> None:
    """Add a name that stands away from its mark, and a line to it; it goes with its family."""
    figure.add_scatter(
        x=[dot.place[0], *(label.end or ())[:1]],
        y=[dot.place[1], *(label.end or ())[1:]],
        mode="lines+text",
        text=["", label.text],
        textposition=label.spot,
        textfont=font,
        line={"color": font["color"], "width": 0.8},
        legendgroup=dot.family,
        showlegend=False,
        hoverinfo="skip",
        cliponaxis=False,
    )


def labels(
    dots: Sequence[Dot], bounds: tuple[float | None, float | None], size: Place = PLOT
) -> dict[str, Label]:
    """Return where the names of the best and of the chosen stand, by key, the chosen one first.

    Ends of leaders are values in both respects; what has no name, hovering tells.
    """
    scales = [_scale([each.place[i] for each in dots], bounds[i], size[i]) for i in (0, 1)]
    marks = {
        each.key: (scales[0].pixel(each.place[0]), scales[1].pixel(each.place[1])) for each in dots
    }
    lines: list[Box] = []
    for i, bound in enumerate(bounds):
        if bound is not None:
            at = scales[i].pixel(bound)
            lines.append((0.0, size[0], at, at) if i else (at, at, 0.0, size[1]))
    named = sorted((d for d in dots if d.best or d.chosen), key=lambda each: not each.chosen)
    names = {each.key: each.name for each in named}
    curve = _steps(sorted(marks[each.key] for each in dots if each.best))
    return {
        key: each
        if each.end is None
        else replace(each, end=(scales[0].value(each.end[0]), scales[1].value(each.end[1])))
        for key, each in place_labels(names, marks, size=size, lines=lines, curve=curve).items()
    }


def _steps(best: Sequence[Place]) -> list[Box]:
    """Return the flat boxes of the line that joins the best, as `_best` draws it."""
    flat = [(x, right, y, y) for (x, y), (right, _) in itertools.pairwise(best)]
    upright = [(right, right, low, y) for (_, y), (right, low) in itertools.pairwise(best)]
    return flat + upright


@dataclass(frozen=True, slots=True)
class _Scale:
    """From values to pixels and back, as `_axis` draws it."""

    begin: float
    end: float
    length: float
    log: bool

    def pixel(self, value: float) -> float:
        share = (math.log(value) if self.log else value) - self.begin
        return share / (self.end - self.begin) * self.length

    def value(self, pixel: float) -> float:
        found = self.begin + pixel / self.length * (self.end - self.begin)
        return math.exp(found) if self.log else found


def _scale(values: Sequence[float], bound: float | None, length: float) -> _Scale:
    spread = [*values, *([] if bound is None else [bound])]
    low, high = min(spread, default=0.0), max(spread, default=1.0)
    if low <= 0:
        return _Scale(0.0, high or 1.0, length, log=False)
    return _Scale(math.log(low / 1.08), math.log(high * 1.08), length, log=True)


def _hover(dot: Dot, axes: tuple[str, str]) -> str:
    lines = [f"<b>{dot.name}</b>"]
    for axis, value in zip(axes, dot.place, strict=True):
        lines.append(f"{RESPECTS[axis].title}: {RESPECTS[axis].write(value)}")
    if dot.best:
        lines.append("no other is better in both")
    return "<br>".join(lines)


def _axis(
    figure: go.Figure, name: str, values: Sequence[float], *, bound: float | None, across: bool
) -> None:
    """Write an axis, logarithmic where nothing is 0, as far as the bound."""
    respect = RESPECTS[name]
    spread = [*values, *([] if bound is None else [bound])]
    low, high = min(spread), max(spread)
    update = figure.update_xaxes if across else figure.update_yaxes
    title = {"text": respect.title, "standoff": 6, "font": {"size": 11.5}}
    if low > 0:
        ends = low / 1.08, high * 1.08
        update(**log_axis(ends, log_ticks(*ends), respect.write), title=title)
    else:
        update(rangemode="tozero", title=title)
