"""How busy links are over time, in a notebook; a click looks at a link in a player."""

from __future__ import annotations

from typing import Any

import ipywidgets
import plotly.graph_objects as go

from ccl.result import Result
from ccl.schedule import Schedule
from widgets import text
from widgets.charts.load import MOST_ROWS, ROWS, link_load, link_load_figure
from widgets.notebook.player import SchedulePlayer
from widgets.notebook.still import beside
from widgets.pictures.load import load_svg
from widgets.shown.classes import counted
from widgets.shown.scene import STEPS


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
        what = f"{used} of {counted(all_links, 'link')} used"
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
        return beside(bundle, told=self._words, drawn=lambda: load_svg(self.load, rows=self._rows))
