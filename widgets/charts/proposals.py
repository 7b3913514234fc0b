"""Networks in two respects: a dot each, those that none is better than in both on a line.

What no network with the same ports is below is a line that no dot can cross.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from ccl import text
from widgets.charts.comparison import LOOKS, SYMBOLS, Look, dress, log_axis, log_ticks, settle


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
    """
    look = LOOKS[scheme or "dark"]
    figure = go.Figure()
    _best(figure, dots, look)
    families = list(dict.fromkeys(each.family for each in dots))
    spots = labels(dots, bounds)
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
    spots: Mapping[str, str],
) -> None:
    """Add the marks of a family, with names where there is room for them."""
    tone = look.lines[number % len(look.lines)]
    figure.add_scatter(
        x=[each.place[0] for each in dots],
        y=[each.place[1] for each in dots],
        name=dots[0].family,
        mode="markers+text",
        text=[each.name if each.key in spots else "" for each in dots],
        textposition=[spots.get(each.key, "top right") for each in dots],
        textfont={"size": 10.5, "color": look.soft},
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


PLOT = (340.0, 250.0)
"""Pixels of a small plot, in which no two names may meet."""
LETTER, LINE, MARK = 5.8, 13.0, 6.0
"""Pixels of a letter, of a line of text, and from the middle of a mark to its edge."""

Box = tuple[float, float, float, float]
"""Left, right, bottom and top, in pixels."""


def labels(dots: Sequence[Dot], bounds: tuple[float | None, float | None]) -> dict[str, str]:
    """Return where the names of the best and of the chosen stand beside their marks, by key.

    They lie towards the middle, off the front, if they meet no name, mark or bound there, else
    elsewhere around the mark; a name without room is left out, since hovering tells it.
    """
    scales = [_scale([each.place[i] for each in dots], bounds[i], PLOT[i]) for i in (0, 1)]
    at = {each.key: (scales[0](each.place[0]), scales[1](each.place[1])) for each in dots}
    marks = {key: (x - MARK, x + MARK, y - MARK, y + MARK) for key, (x, y) in at.items()}
    taken: list[Box] = []
    for i, bound in enumerate(bounds):
        if bound is not None:
            place = scales[i](bound)
            taken.append((0.0, PLOT[0], place, place) if i else (place, place, 0.0, PLOT[1]))
    spots: dict[str, str] = {}
    places = [each.place[0] for each in dots]
    middle = (min(places, default=0.0) + max(places, default=0.0)) / 2
    for dot in sorted(dots, key=lambda each: not each.chosen):
        if not (dot.best or dot.chosen):
            continue
        tries = ["bottom left", "top left", "bottom right", "top right"]
        for spot in tries if dot.place[0] > middle else tries[::-1]:
            box = _box(at[dot.key], spot, LETTER * len(dot.name))
            others = [marks[key] for key in marks if key != dot.key]
            inside = box[0] >= 0 and box[1] <= PLOT[0]
            if inside and not any(_meet(box, each) for each in (*taken, *others)):
                spots[dot.key] = spot
                taken.append(box)
                break
    return spots


def _scale(values: Sequence[float], bound: float | None, length: float) -> Callable[[float], float]:
    """Return what turns a value into pixels, as `_axis` draws it."""
    spread = [*values, *([] if bound is None else [bound])]
    low, high = min(spread, default=0.0), max(spread, default=1.0)
    if low <= 0:
        return lambda value: value / (high or 1.0) * length
    begin, end = math.log(low / 1.08), math.log(high * 1.08)
    return lambda value: (math.log(value) - begin) / (end - begin) * length


def _box(at: tuple[float, float], spot: str, width: float) -> Box:
    """Return what a name beside a mark covers."""
    (x, y), (upright, side) = at, spot.split()
    left = x + MARK if side == "right" else x - MARK - width
    bottom = y + MARK if upright == "top" else y - MARK - LINE
    return left, left + width, bottom, bottom + LINE


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


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
