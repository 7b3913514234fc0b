"""Plots on axes, drawn by matplotlib: methods over sizes, and how close a solve came over time.

Colours and markers are those of `widgets.charts.comparison`, and the gap plot is that of
`widgets.view_model.gap`, so that a page, a notebook and a paper show one thing; in print lines are
thin and letters black.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from ccl import text
from ccl.serialization.quantity import format_size
from formulations.analyses.comparison import Comparison
from widgets.charts.comparison import (
    MOST_NAMED,
    UNITS,
    Mark,
    Quantity,
    limits_of,
    log_ticks,
    marks,
    span,
    span_of,
    value_of,
)
from widgets.print.diagrams import Ink, ink_of
from widgets.print.painter import PER_INCH, POINTS, Plot, printing
from widgets.print.sheet import Rect, font_file, one_line, shortened, width
from widgets.print.style import Style
from widgets.view_model.gap import Course, Tick

UPWARDS: Mapping[Quantity, str] = {
    "time": "makespan",
    "ratio": "makespan / bound",
    "algbw": "algbw",
}
"""What stands above the axis."""

_DASHES: Mapping[str, tuple[int, tuple[float, ...] | None]] = {
    "solid": (0, None),
    "dot": (0, (1.5 * POINTS, 3.0 * POINTS)),
    "dash": (0, (6.0 * POINTS, 4.0 * POINTS)),
}
"""Lengths of strokes and gaps, in points, by the names that Plotly has for them."""
_MARKERS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "pentagon": "p",
    "cross": "P",
    "x": "X",
    "": "",
}
"""Markers of matplotlib by the names that Plotly has for them."""
_SHADE = 0.1
_HIGH = 0.5
"""Height of a plot over its width."""
_KEY = 2.4
"""Length of a line in the legend, over the size of letters."""


class _Board:
    """Axes in the look of the house, with room for what stands around them.

    Parameters
    ----------
    ink
        How words and lines are drawn.
    wide
        Pixels of the sheet.
    names
        Of the legend.
    rows
        Values at the left side, and what they are.
    """

    def __init__(
        self, ink: Ink, wide: float, names: Sequence[str], *, rows: Sequence[Tick]
    ) -> None:
        self.ink, self.wide, self.rows, size = ink, wide, rows, ink.size
        left = max((width(word, size) for _, word in rows), default=0.0) + 1.2 * size
        self.box = Rect(left, 2.2 * size, wide - 2.4 * size, 2.2 * size + _HIGH * wide)
        room = wide - left - 4
        self.names = {name: shortened(name, size, room - (_KEY + 1) * size) for name in names}
        entry = max(width(each, size) for each in self.names.values()) + (_KEY + 2.2) * size
        self.columns = max(1, min(len(names), int(room / entry)))
        self.high = high = self.box.y2 + (4.3 + 1.4 * -(-len(names) // self.columns)) * size
        self.figure = Figure((wide / PER_INCH, high / PER_INCH), facecolor=ink.look.ground)
        box = self.box
        place = (box.x1 / wide, 1 - box.y2 / high, box.width / wide, box.height / high)
        self.axes = self.figure.add_axes(place, facecolor="none")

    def font(self) -> FontProperties:
        """Return the font of all words."""
        return FontProperties(fname=font_file(), size=self.ink.size * POINTS)

    def dress(self, columns: Sequence[Tick], *, upwards: str, across: str) -> None:
        """Draw the grid with what its lines are, and name the axes."""
        axes, look, size, thin = self.axes, self.ink.look, self.ink.size, self.ink.thin * POINTS
        for axis, ticks in ((axes.xaxis, list(self._roomy(columns))), (axes.yaxis, self.rows)):
            axis.set_major_locator(FixedLocator([value for value, _ in ticks]))
            axis.set_major_formatter(FixedFormatter([word for _, word in ticks]))
            axis.set_minor_locator(NullLocator())
            for label in axis.get_ticklabels():
                label.set(fontproperties=self.font(), color=look.soft, parse_math=False)
        axes.tick_params(length=0, pad=0.6 * size * POINTS)
        axes.grid(color=look.line, linewidth=thin)
        axes.set_axisbelow(True)
        for side, spine in axes.spines.items():
            spine.set(visible=side in ("left", "bottom"), color=look.soft, linewidth=thin)
        told: dict[str, Any] = {"fontproperties": self.font(), "color": look.text}
        axes.set_xlabel(across, labelpad=0.5 * size * POINTS, **told)
        self.figure.text(0.3 * size / self.wide, 1 - size * 1.1 / self.high, upwards, **told)

    def _roomy(self, ticks: Sequence[Tick]) -> Iterator[Tick]:
        """Yield ticks; one that would lie over the words of the last has none."""
        free = -math.inf
        for value, word in ticks:
            x, half = self.across(value), width(word, self.ink.size) / 2
            if x - half < free:
                yield value, ""
                continue
            free = x + half + 0.5 * self.ink.size
            yield value, word

    def across(self, value: float) -> float:
        """Return the pixel of a value of the lower axis."""
        (x, _) = self.axes.transData.transform((value, self.axes.get_ylim()[1]))
        return float(x) / self.figure.dpi * PER_INCH

    def line(
        self, xs: Sequence[float], ys: Sequence[float], name: str, mark: Mark, **drawn: Any
    ) -> None:
        """Draw a line of data, which the legend names."""
        ink = self.ink
        self.axes.plot(
            xs,
            ys,
            color=mark.color,
            label=self.names[name],
            linestyle=_DASHES[mark.dash],
            linewidth=ink.thick * POINTS,
            marker=_MARKERS[mark.symbol],
            markersize=2 * ink.radius * POINTS,
            markeredgewidth=0,
            solid_capstyle="round",
            url=one_line(name),
            **drawn,
        )

    def legend(self) -> None:
        """Name the lines below."""
        size = self.ink.size
        legend = self.axes.legend(
            loc="upper left",
            bbox_to_anchor=(0.0, -3.7 * size / self.box.height),
            ncols=self.columns,
            prop=self.font(),
            labelcolor=self.ink.look.text,
            frameon=False,
            borderpad=0,
            borderaxespad=0,
            handlelength=_KEY,
            handletextpad=0.6,
            columnspacing=1.6,
            labelspacing=0.4,
        )
        for each in legend.get_texts():
            each.set_parse_math(False)

    def plot(self, title: str, about: str) -> Plot:
        """Return the sheet."""
        return Plot(drawn=self.figure, title=title, about=about, ground=self.ink.look.ground)


def comparison_picture(
    comparison: Comparison,
    *,
    quantity: Quantity = "time",
    style: Style = "light",
    width: float = 720.0,
    font: float | None = None,
) -> Plot:
    """Draw methods over sizes, both axes logarithmic.

    Parameters
    ----------
    comparison
        What was found.
    quantity
        ``time``, ``ratio`` (makespan over bound) or ``algbw``.
    style
        ``light``, ``dark`` or ``paper``.
    width
        In pixels.
    font
        Size of letters in pixels; by default 11.5, in print 8 points.
    """
    drawn = {str(row.method) for row in comparison.rows if row.result}
    styles = marks(comparison, "light" if style == "paper" else style)
    named = {name: mark for name, mark in styles.items() if name in drawn}
    low, high = span_of(comparison, quantity)
    with printing():
        rows = [(each, UNITS[quantity](each)) for each in log_ticks(low, high)]
        board = _Board(ink_of(style, font), width, [*named, "bound"], rows=rows)
        ends = span(list(comparison.sizes))
        board.axes.set(xscale="log", yscale="log", xlim=ends, ylim=(low, high))
        columns = [(each, format_size(each)) for each in comparison.sizes]
        board.dress(columns, upwards=UPWARDS[quantity], across="size of the whole buffer")
        _crossovers(board, comparison, quantity)
        for name, mark in named.items():
            found = [comparison.row(name, size) for size in comparison.sizes]
            values = [row and value_of(comparison, row, quantity) for row in found]
            board.line(comparison.sizes, [each or math.nan for each in values], name, mark)
        _bound(board, comparison, quantity)
        board.legend()
    problem = comparison.problem
    title = f"{problem.collective.kind.capitalize()} on {problem.topology.name}"
    about = f"{UPWARDS[quantity]} of {text.count(len(named), 'method')} over sizes"
    return board.plot(title, about)


def _bound(board: _Board, comparison: Comparison, quantity: Quantity) -> None:
    """Draw the bound, and shade the side on which no plan can be."""
    sizes, limits, axes = list(comparison.sizes), limits_of(comparison, quantity), board.axes
    if len(sizes) == 1:
        sizes, limits = list(axes.get_xlim()), limits * 2
    edge = axes.get_ylim()[quantity == "algbw"]
    axes.fill_between(
        sizes, limits, edge, color=board.ink.look.bound, alpha=_SHADE, linewidth=0, zorder=0.9
    )
    board.line(sizes, limits, "bound", Mark(board.ink.look.bound, "", "dash"), zorder=1.9)


def _crossovers(board: _Board, comparison: Comparison, quantity: Quantity) -> None:
    """Mark where another method becomes the fastest, and name the first few at the top."""
    ink, axes = board.ink, board.axes
    for i, each in enumerate(comparison.crossovers()[:MOST_NAMED]):
        axes.axvline(
            each.size, color=ink.look.soft, linewidth=ink.thin * POINTS, linestyle=_DASHES["dot"]
        )
        if quantity == "time":
            axes.plot(
                [each.size],
                [each.makespan],
                marker="o",
                markersize=3.8 * ink.radius * POINTS,
                markerfacecolor=ink.look.ground,
                markeredgecolor=ink.look.text,
                markeredgewidth=ink.thin * 1.5 * POINTS,
            )
        told = f"{each.after} from {text.size(each.size)}"
        room = board.box.x2 - board.across(each.size) - 4
        right = width(told, ink.size) < room
        axes.annotate(
            told,
            (each.size, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=((3 if right else -3), -1.4 * (i + 0.75) * ink.size * POINTS),
            textcoords="offset points",
            horizontalalignment="left" if right else "right",
            fontproperties=board.font(),
            color=ink.look.text,
            parse_math=False,
        )


def course_picture(
    course: Course, *, style: Style = "light", width: float = 560.0, font: float | None = None
) -> Plot:
    """Draw how close a solve came over time.

    Parameters
    ----------
    course
        What `widgets.view_model.gap.course` returns.
    style, width, font
        As for `comparison_picture`.
    """
    view = course["even"]
    names = ("best makespan", "lower bound")
    with printing():
        board = _Board(ink_of(style, font), width, names, rows=view["rows"])
        axes, look = board.axes, board.ink.look
        axes.set(xlim=(view["left"], view["right"]), ylim=(view["bottom"], view["top"]))
        board.dress(view["columns"], upwards="makespan", across="solved for")
        points = [[math.nan if each is None else each for each in row] for row in course["points"]]
        points += [[course["seconds"], *row[1:]] for row in points[-1:]]
        times, bests, bounds = zip(*points, strict=True) if points else ((), (), ())
        axes.fill_between(
            times, bests, bounds, step="post", color=look.lines[0], alpha=_SHADE, linewidth=0
        )
        for name, values, mark in (
            (names[0], bests, Mark(look.lines[0], "", "solid")),
            (names[1], bounds, Mark(look.bound, "", "dash")),
        ):
            board.line(times, values, name, mark, drawstyle="steps-post")
        board.legend()
    return board.plot("Gap", "best makespan and lower bound while it was solved")
