"""Methods over sizes as Plotly figures: makespans above a bound, alone or over it, or algbw below.

Identity is Okabe-Ito without vermillion, which is kept for bounds; every method has its own marker
as well, so that no colour stands alone. What others published of a compared question is a star in
the colour of the words at its own size, without a line: it is no row of the comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from zlib import crc32

import plotly.graph_objects as go

from ccl import text
from ccl.serialization.quantity import format_size
from formulations.analyses.comparison import Comparison, Crossover, Row
from gallery.published import Published, published

STARS = ("star", "star-triangle-up", "hexagram", "star-square")
"""Marks, one for each method."""


def _published(figure: go.Figure, printed: Mapping[Published, float], *, color: str) -> None:
    """Draw what others published of the same cluster, collective and sizes, with its source."""
    for number, name in enumerate(dict.fromkeys(each.method for each in printed)):
        theirs = {each: value for each, value in printed.items() if each.method == name}
        figure.add_scatter(
            x=[each.size for each in theirs],
            y=list(theirs.values()),
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


Quantity = Literal["time", "ratio", "algbw"]

FONT = '"Inter Variable", Inter, system-ui, -apple-system, "Segoe UI", sans-serif'
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "pentagon", "x")
AIR = 0.06
"""Share of an axis that is left empty at its ends."""
MOST_NAMED = 4
"""Crossovers with their names; more would lie over one another."""
ENOUGH = 4
"""Ticks on an axis at least, where round values allow."""
LINE = 0.062
"""Height of a line of such a name, as a share of the plot."""

_DIGITS = ((1,), (1, 2, 5), (1, 1.2, 1.5, 2, 3, 5, 7))


@dataclass(frozen=True, slots=True)
class Look:
    """The colours of one scheme; `lines` are the methods' in order, `ink` is on `ground`.

    A `veil` is behind words in the plot.
    """

    ink: str
    text: str
    soft: str
    line: str
    ground: str
    veil: str
    bound: str
    shade: str
    lines: tuple[str, ...]


_SCHEMES = ("light", "dark", "auto")
"""The last where nobody says what is behind it: to be read on either."""

_COLOURS: Mapping[str, tuple[Any, Any, Any]] = {
    "ink": ("#1b2733", "#dfe7ef", "#1b2733"),
    "text": ("#1b2733", "#dfe7ef", "#77879a"),
    "soft": ("#55657a", "#93a2b3", "#77879a"),
    "line": ("#dfe6ee", "#2b3746", "rgba(119, 135, 154, 0.25)"),
    "ground": ("#ffffff", "#161e28", "#f6f8fb"),
    "veil": ("rgba(246, 248, 251, 0.8)", "rgba(22, 30, 40, 0.8)", "rgba(0, 0, 0, 0)"),
    "bound": ("#c2500a", "#ff7a4d", "#d9652b"),
    "shade": ("rgba(194, 80, 10, 0.09)", "rgba(255, 122, 77, 0.13)", "rgba(217, 101, 43, 0.11)"),
    "lines": (
        ("#1b7fc0", "#b87400", "#00805c", "#b0488a", "#857800", "#5a3fc0", "#46535f", "#8a5a2b"),
        ("#56b4e9", "#e69f00", "#00b583", "#cc79a7", "#f0e442", "#9a8cf0", "#d3dae3", "#b98d66"),
        ("#3a94d0", "#cb8400", "#009a71", "#bd6695", "#9c8f1c", "#7a68d8", "#8794a3", "#a0744a"),
    ),
}  # fmt: skip
LOOKS: Mapping[str, Look] = {
    scheme: Look(**dict(zip(_COLOURS, look, strict=True)))
    for scheme, look in zip(_SCHEMES, zip(*_COLOURS.values(), strict=True), strict=True)
}


MOST_LOOKS = len(LOOKS["light"].lines)
"""Methods that have a colour of their own."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How one method is drawn."""

    color: str
    symbol: str
    dash: str


def method_places(names: Iterable[str]) -> dict[str, int]:
    """Return the number of each method's look: its colour, and after the last colour another mark.

    It hangs on the name, so that a method has one colour wherever it is shown. Where two would have
    the same, the later one by name takes the next that is free.
    """
    taken: dict[int, str] = {}
    for i, name in enumerate(sorted(names)):
        begin = MOST_LOOKS * (i // MOST_LOOKS)
        turns = (begin + (crc32(name.encode()) + k) % MOST_LOOKS for k in range(MOST_LOOKS))
        taken[next(place for place in turns if place not in taken)] = name
    return {name: place for place, name in taken.items()}


def marks(comparison: Comparison, scheme: str | None = "light") -> dict[str, Mark]:
    """Return how each method is drawn, by its name; colours begin anew after the last."""
    lines = LOOKS[scheme or "dark"].lines
    places = method_places(map(str, comparison.methods))
    return {
        name: Mark(
            lines[i % MOST_LOOKS],
            SYMBOLS[(i + i // MOST_LOOKS) % len(SYMBOLS)],
            "solid" if i < MOST_LOOKS else "dot",
        )
        for name, i in ((name, places[name]) for name in map(str, comparison.methods))
    }


def comparison_figure(
    comparison: Comparison,
    *,
    quantity: Quantity = "time",
    scheme: str | None = "light",
    height: int | None = 340,
) -> go.Figure:
    """Draw methods over sizes, both axes logarithmic.

    Parameters
    ----------
    comparison
        What was found; rows without a result leave a hole in their line.
    quantity
        ``time``, the makespan; ``ratio``, makespan over bound; or ``algbw``, size over makespan in
        GB/s.
    scheme
        ``light``, ``dark``, or ``auto`` for what can be read on either; dark before a page has
        said.
    height
        In pixels; None fills what it is put into.
    """
    look = LOOKS[scheme or "dark"]
    figure = go.Figure()
    printed = {
        each: value_at(comparison, quantity, size=each.size, makespan=each.makespan)
        for each in published(comparison.problem, comparison.sizes)
    }
    limits = limits_of(comparison, quantity)
    low, high = span_of(comparison, quantity, more=printed.values())
    _bound(figure, comparison, limits, look=look, edge=high if quantity == "algbw" else low)
    styles = marks(comparison, scheme)
    for name, mark in styles.items():
        _method(figure, comparison, name, mark=mark, quantity=quantity)
    _published(figure, printed, color=look.text)
    if quantity != "algbw":
        _crossovers(figure, comparison, look=look, ratio=quantity == "ratio")
    legend = {"font": {"size": 11.5}, "itemclick": "toggle", "traceorder": "normal"}
    dress(figure, look, height, legend=legend)
    settle(figure, look)
    _size_axis(figure, comparison.sizes, look)
    axis = log_axis((low, high), log_ticks(low, high), UNITS[quantity])
    figure.update_yaxes(**axis, gridcolor=look.line, automargin=True)
    return figure


def row_words(comparison: Comparison, row: Row) -> str:
    """Say what a row has come to: times, rates, gap and status."""
    if row.result is None:
        return row.why_not
    result = row.result
    return (
        f"{text.duration(result.makespan)}, {text.share(comparison.gap(row))} above the lower "
        f"bound, {comparison.verdict(row)}, algbw {text.bandwidth(result.algbw)}, "
        f"busbw {text.bandwidth(result.busbw)}"
    )


def log_ticks(low: float, high: float) -> list[float]:
    """Return round values for a logarithmic axis: powers of ten, more between them if few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for digits in _DIGITS:
        found = [digit * 10.0**power for power in powers for digit in digits]
        found = [each for each in found if low <= each <= high]
        if len(found) >= ENOUGH:
            break
    return found


VALUES: Mapping[Quantity, Callable[[float, float, float], float]] = {
    "time": lambda _size, makespan, _bound: makespan,
    "ratio": lambda _size, makespan, bound: makespan / bound,
    "algbw": lambda size, makespan, _bound: size / makespan * 1e-3,
}
"""What is drawn of a size in bytes, a makespan and a bound in µs."""

UNITS: Mapping[Quantity, Callable[[float], str]] = {
    "time": text.duration,
    "ratio": lambda value: f"{text.digits(value)}×",
    "algbw": text.bandwidth,
}
"""How a value is written."""


def span(values: list[float]) -> tuple[float, float]:
    """Return the ends of a logarithmic axis with some air."""
    low, high = min(values), max(values)
    air = max((high / low) ** AIR, 1.08)
    return low / air, high * air


def value_at(comparison: Comparison, quantity: Quantity, *, size: float, makespan: float) -> float:
    """Return what is drawn of a makespan in µs at a size in bytes."""
    return VALUES[quantity](size, makespan, comparison.bound(size).makespan)


def value_of(comparison: Comparison, row: Row | None, quantity: Quantity) -> float | None:
    """Return what is drawn of a row; one without a plan breaks its line."""
    if row is None or row.result is None:
        return None
    return value_at(comparison, quantity, size=row.size, makespan=row.result.makespan)


def limits_of(comparison: Comparison, quantity: Quantity) -> list[float]:
    """Return what no plan can pass, of each size."""
    least = ((size, comparison.bound(size).makespan) for size in comparison.sizes)
    return [value_at(comparison, quantity, size=size, makespan=us) for size, us in least]


def span_of(
    comparison: Comparison, quantity: Quantity, *, more: Iterable[float] = ()
) -> tuple[float, float]:
    """Return the ends of the axis that has all rows, their bounds and more values."""
    known = (value_of(comparison, row, quantity) for row in comparison.rows)
    drawn = [each for each in known if each is not None]
    return span([*drawn, *limits_of(comparison, quantity), *more])


def _bound(
    figure: go.Figure, comparison: Comparison, limits: list[float], *, look: Look, edge: float
) -> None:
    """Draw the bound, and shade the side on which no plan can be."""
    common: dict[str, Any] = {"x": comparison.sizes, "mode": "lines", "hoverinfo": "skip"}
    figure.add_scatter(
        **common, y=[edge] * len(limits), line={"width": 0}, showlegend=False, name="edge"
    )
    figure.add_scatter(
        **common | {"hoverinfo": None},
        y=limits,
        name="bound",
        line={"color": look.bound, "dash": "dash", "width": 1.6},
        fill="tonexty",
        fillcolor=look.shade,
        text=[
            f"<b>bound</b> at {format_size(size)}<br>{text.duration(bound.makespan)}: "
            f"lower bound<br>{text.bandwidth(size / bound.makespan * 1e-3)} algbw at most"
            for size, bound in zip(comparison.sizes, comparison.bounds, strict=True)
        ],
        hovertemplate="%{text}<extra></extra>",
    )


def _method(
    figure: go.Figure, comparison: Comparison, name: str, *, mark: Mark, quantity: Quantity
) -> None:
    rows = [comparison.row(name, size) for size in comparison.sizes]
    values = [value_of(comparison, row, quantity) for row in rows]
    if all(value is None for value in values):
        return
    figure.add_scatter(
        x=comparison.sizes,
        y=values,
        name=name,
        mode="lines+markers",
        connectgaps=False,
        line={"color": mark.color, "width": 2, "dash": mark.dash},
        marker={"symbol": mark.symbol, "size": 8, "color": mark.color},
        text=["" if row is None else _hover(comparison, row) for row in rows],
        hovertemplate="%{text}<extra></extra>",
    )


def _hover(comparison: Comparison, row: Row) -> str:
    words = row_words(comparison, row).replace(", ", "<br>")
    return f"<b>{row.method}</b> at {format_size(row.size)}<br>{words}"


def _crossovers(figure: go.Figure, comparison: Comparison, *, look: Look, ratio: bool) -> None:
    """Mark where another method becomes the fastest, and name the first few at the top.

    Over a bound, whose lines bend, they are only named.
    """
    found = comparison.crossovers()
    for i, each in enumerate(found[:MOST_NAMED]):
        right = i % 2 == 0 or len(found) == 1
        _name(figure, each, look=look, line=i, right=right)
    if not found or ratio:
        return
    figure.add_scatter(
        x=[each.size for each in found],
        y=[each.makespan for each in found],
        mode="markers",
        name="crossover",
        showlegend=False,
        marker={"symbol": "circle-open", "size": 15, "color": look.text, "line": {"width": 1.6}},
        text=[f"<b>{each.after}</b> overtakes {each.before}" for each in found],
        customdata=[[text.size(each.size), text.duration(each.makespan)] for each in found],
        hovertemplate="%{text}<br>from %{customdata[0]} on<br>%{customdata[1]}<extra></extra>",
    )


def _name(figure: go.Figure, found: Crossover, *, look: Look, line: int, right: bool) -> None:
    """Write at the top who is the fastest from here on."""
    figure.add_shape(
        type="line",
        x0=found.size,
        x1=found.size,
        y0=0,
        y1=1,
        yref="paper",
        line={"color": look.soft, "width": 1, "dash": "dot"},
    )
    figure.add_annotation(
        x=math.log10(found.size),
        y=1 - line * LINE,
        yref="paper",
        yanchor="top",
        text=f"<b>{found.after}</b> from {text.size(found.size)}",
        xanchor="left" if right else "right",
        xshift=4 if right else -4,
        showarrow=False,
        bgcolor=look.veil,
        font={"color": look.text, "size": 11},
    )


def _size_axis(figure: go.Figure, sizes: tuple[float, ...], look: Look) -> None:
    apart = max(1, -(-len(sizes) // 9))
    shown = sizes[::apart]
    figure.update_xaxes(
        **log_axis(span(list(sizes)), shown, format_size),
        gridcolor=look.line,
        title={"text": "size of the whole buffer", "standoff": 6, "font": {"size": 11}},
    )


def log_axis(
    ends: tuple[float, float], ticks: Sequence[float], write: Callable[[float], str]
) -> dict[str, Any]:
    """Return a logarithmic axis from end to end, its ticks in words."""
    return {
        "type": "log",
        "range": [math.log10(each) for each in ends],
        "tickvals": ticks,
        "ticktext": [write(each) for each in ticks],
    }


def dress(figure: go.Figure, look: Look, height: int | None, **layout: Any) -> None:
    """Give a figure the look of the house.

    Parameters
    ----------
    figure, look
        The figure and the colours of its scheme.
    height
        In pixels; None fills what it is put into.
    **layout
        What is of its own.
    """
    usual: dict[str, Any] = {
        "template": "none",
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 12, "b": 36},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 11.5, "color": look.soft},
        "hoverlabel": {
            "font": {"family": FONT, "size": 12, "color": look.ink},
            "bgcolor": look.ground,
            "bordercolor": look.line,
        },
        "hovermode": "closest",
        "dragmode": False,
    }
    figure.update_layout(**(usual | layout))


def settle(figure: go.Figure, look: Look, **axis: Any) -> None:
    """Let the axes of a figure stay where they are."""
    usual = {"fixedrange": True, "zeroline": False, "linecolor": look.line}
    figure.update_xaxes(**(usual | axis))
    figure.update_yaxes(**(usual | axis))
