"""The gap plot in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from ccl.result import Result
from widgets import STATIC
from widgets.notebook.still import beside
from widgets.shown.course import Row, course, gap_words, thinned

if TYPE_CHECKING:
    from formulations import Progress


class GapPlot(anywidget.AnyWidget):
    """Best makespan and bound of a solve over time, with the gap between them.

    Give `hear` to `formulations.solve` as its ``progress``, or each news of a `SolveJob`; `end`
    takes the result.
    """

    _esm = STATIC / "gap_plot.js"

    course = traitlets.Dict({"points": [], "seconds": 0.0, "running": False}).tag(sync=True)
    """What is drawn; see `widgets.shown.course.course`."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[Row, ...] = ()

    def clear(self) -> None:
        """Forget the last solve."""
        self._rows = ()
        self.course = course((), seconds=0.0, running=False)

    def hear(self, news: Progress) -> None:
        """Draw one piece of news."""
        self._add((news.seconds, news.incumbent, news.bound), running=True)

    def end(self, result: Result) -> None:
        """Draw how it ended."""
        self._add((result.solve_time, result.makespan, result.bound.makespan), running=False)

    def _add(self, row: Row, *, running: bool) -> None:
        # The last row of a pause gives way to the next, so that a long solve stays small.
        self._rows = thinned((*self._rows, row))
        self.course = course(self._rows, seconds=row[0], running=running)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Put a picture and the last figures beside it."""
        return beside(
            super()._repr_mimebundle_(**options),
            told=lambda: gap_words(self._rows),
            drawn=self._picture,
        )

    def _picture(self) -> str | None:
        """Return an SVG of the plot, None before there is a value."""
        from widgets.pictures.charts import course_picture  # noqa: PLC0415 - it loads Plotly
        from widgets.pictures.svg import svg  # noqa: PLC0415

        known = any(value is not None for row in self._rows for value in row[1:])
        return svg(course_picture(self.course)) if known else None
