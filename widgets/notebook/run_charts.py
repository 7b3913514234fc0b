"""Charts of a run in a notebook, over time.

* `LinkLoad`: how busy links are; a click looks at a link in a player.
* `GapPlot`: how near the best plan so far is to what is proved.
"""

from __future__ import annotations

from typing import Any, cast

import anywidget
import ipywidgets
import plotly.graph_objects as go
import traitlets

from ccl import text
from ccl.plans import Schedule
from ccl.result import Result
from formulations import Progress
from widgets import STATIC
from widgets.charts.load import MOST_ROWS, ROWS, link_load, link_load_figure
from widgets.notebook.canvas import SchedulePlayer
from widgets.notebook.still import beside
from widgets.print.diagrams import load_svg
from widgets.view_model.gap import Course, Point, course, gap_words, known, thinned
from widgets.view_model.scene import STEPS


class LinkLoad(ipywidgets.VBox):  # type: ignore[misc]  # it has no types
    """A heat map of the links of a plan: time to the right, the busiest link first.

    Parameters
    ----------
    result
        Whose links.
    player
        What looks at a link when its row is clicked, or nothing.
    rows
        Links at most; others are counted in the words above.
    theme
        ``auto``, ``light`` or ``dark``.
    """

    def __init__(
        self,
        result: Result,
        player: SchedulePlayer | None = None,
        *,
        rows: int = ROWS,
        theme: str = "auto",
    ) -> None:
        self.result, self.player = result, player
        plan, makespan = result.plan, result.makespan
        step = plan.epoch_duration if isinstance(plan, Schedule) else makespan / STEPS
        self.load = link_load(result.timeline, step)
        """The numbers, as `widgets.charts.load.link_load` has them."""
        self._rows = min(rows, MOST_ROWS)
        self.about = ipywidgets.Label(self._about())
        """What is shown."""
        parts: list[Any] = [self.about]
        self.figure: go.FigureWidget | None = None
        """The heat map; None where no link is used."""
        if self.load["links"]:
            self.figure = go.FigureWidget(link_load_figure(self.load, theme, rows=self._rows))
            self.figure.data[0].on_click(self._clicked)
            parts.append(self.figure)
        super().__init__(parts)

    def _about(self) -> str:
        used, all_links = len(self.load["links"]), len(self.result.problem.topology.links)
        shown = min(used, self._rows)
        what = f"{used} of {text.count(all_links, 'link')} used"
        if shown < used:
            what += f", the {shown} busiest shown"
        return f"{what}, {text.duration(self.load['step'])} a column, darkest is always busy"

    def busy(self) -> dict[tuple[str, str], float]:
        """Return the share of the makespan during which each used link sends, busiest first."""
        columns, step, makespan = self.load["busy"], self.load["step"], self.result.makespan
        return {
            (src, dst): min(1.0, sum(row) * step / makespan)
            for (src, dst), row in zip(self.load["ends"], columns, strict=True)
        }

    def _clicked(self, _trace: Any, points: Any, _state: Any) -> None:
        if self.player is not None and points.ys:
            place = self.load["links"].index(points.ys[0])
            self.player.look_at(link=self.load["ends"][place])

    def _words(self) -> str:
        rows = list(self.busy().items())[:ROWS]
        told = [f"{src} → {dst}  {text.share(share)}" for (src, dst), share in rows]
        return "\n".join([self._about(), *told])

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Put a picture and the busiest links in words beside it."""
        bundle = super()._repr_mimebundle_(**options)
        return beside(
            bundle, description=self._words, drawn=lambda: load_svg(self.load, rows=self._rows)
        )


class GapPlot(anywidget.AnyWidget):
    """Best makespan and bound of a solve over time, with the gap between them.

    Give `hear` to `formulations.solve` as its ``progress``, or each news of a `SolveJob`; `end`
    takes the result.
    """

    _esm = STATIC / "gap_plot.js"

    course = traitlets.Dict(dict(course((), seconds=0.0, running=False))).tag(sync=True)
    """What is drawn; see `widgets.view_model.gap.course`."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[Point, ...] = ()

    def clear(self) -> None:
        """Forget the last solve."""
        self._rows = ()
        self.course = dict(course((), seconds=0.0, running=False))

    def hear(self, news: Progress) -> None:
        """Draw one piece of news."""
        self._add((news.seconds, news.incumbent, news.bound), running=True)

    def end(self, result: Result) -> None:
        """Draw how it ended."""
        self._add((result.solve_time, result.makespan, result.bound.makespan), running=False)

    def _add(self, row: Point, *, running: bool) -> None:
        # The last row of a pause gives way to the next, so that a long solve stays small.
        self._rows = thinned((*self._rows, row))
        self.course = dict(course(self._rows, seconds=row[0], running=running))

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Put a picture and the last figures beside it."""
        return beside(
            super()._repr_mimebundle_(**options),
            description=lambda: gap_words(self._rows),
            drawn=self._picture,
        )

    def _picture(self) -> str | None:
        """Return an SVG of the plot, None before there is a value."""
        from widgets.print.painter import svg  # noqa: PLC0415 - it loads matplotlib
        from widgets.print.plots import course_picture  # noqa: PLC0415 - it loads matplotlib

        shown = cast("Course", self.course)
        return svg(course_picture(shown)) if known(shown) else None
