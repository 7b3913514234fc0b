"""A comparison in a notebook: its table, its plot, and schedules that play in step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import plotly.graph_objects as go
import traitlets

from ccl.layout import layout
from ccl.result import Result
from formulations.analyses.comparison import Comparison as Compared
from widgets import canvas_file
from widgets.charts.comparison import comparison_figure
from widgets.notebook.still import beside
from widgets.pages.saving import html, save
from widgets.view_model.scene import (
    MOST_PLAYERS,
    choices,
    drawing,
    films,
    first_pair,
    result_choices,
    result_films,
)
from widgets.words import crossover_words, table_html, table_text

Positions = Mapping[str, tuple[float, float]]
"""Middle of each device by name."""


class SchedulePlayers(anywidget.AnyWidget):
    """Two to four schedules side by side, on one time: those that are faster end and wait.

    Frames ask the kernel for nothing; choosing another schedule asks once. Results may be of
    different sizes and on different clusters. ``players.view = "difference"`` shows in one player
    what differs between the first two.

    Parameters
    ----------
    comparison
        Where the schedules are from: a comparison, or results by what they are called.
    positions
        Middle of each device by name; by default those of `ccl.layout`. Of a comparison only.
    **traits
        Those that `widgets.view_model.scene.PAIR_PROPS` explains, such as ``height="500px"``.

    Raises
    ------
    traitlets.TraitError
        If fewer than two or more than four are chosen, or one that is not there.
    """

    _esm = canvas_file()

    drawing = traitlets.Dict().tag(sync=True)
    choices: traitlets.List[dict[str, str]] = traitlets.List([]).tag(sync=True)
    chosen: traitlets.List[str] = traitlets.List([]).tag(sync=True)
    films: traitlets.List[dict[str, Any]] = traitlets.List([]).tag(sync=True)
    view = traitlets.Enum(["players", "difference"], "players").tag(sync=True)
    theme = traitlets.Enum(["auto", "light", "dark"], "auto").tag(sync=True)
    height = traitlets.Unicode("460px").tag(sync=True)

    def __init__(
        self,
        comparison: Compared | Mapping[str, Result],
        positions: Positions | None = None,
        **traits: Any,
    ) -> None:
        self._source = comparison
        if isinstance(comparison, Compared):
            topology, there = comparison.problem.topology, choices(comparison)
            first = first_pair(comparison)
        else:
            there = result_choices(comparison)
            first = list(comparison)[:MOST_PLAYERS]
            topology = next(iter(comparison.values())).problem.topology
        super().__init__(
            drawing=drawing(topology, positions or layout(topology)),
            choices=there,
            chosen=traits.pop("chosen", None) or first,
            **traits,
        )
        self._bring_films()
        self.observe(self._bring_films, "chosen")

    @traitlets.validate("chosen")
    def _known(self, proposal: Any) -> list[str]:
        keys: list[str] = list(proposal["value"])
        known = {each["key"] for each in self.choices}
        strange = [each for each in keys if each not in known]
        if strange:
            raise traitlets.TraitError(
                f"no schedule of the comparison has the key {strange[0]!r}; see `choices`"
            )
        if not 2 <= len(keys) <= MOST_PLAYERS:
            raise traitlets.TraitError(
                f"{len(keys)} schedules are chosen; 2 to {MOST_PLAYERS} are played in step"
            )
        return keys

    def _bring_films(self, _change: Any = None) -> None:
        if isinstance(self._source, Compared):
            self.films = films(self._source, self.chosen)
        else:
            self.films = result_films(self._source, self.chosen)


class Comparison(ipywidgets.VBox):  # type: ignore[misc]  # it has no types
    """Several methods at several sizes: a table, a plot, and two schedules side by side.

    A saved notebook shows the table.

    Parameters
    ----------
    comparison
        As `formulations.compare` returns it.
    positions
        Middle of each device by name; by default those of `ccl.layout`.
    theme
        ``auto``, ``light`` or ``dark``.
    height
        Of the two players, as in CSS.
    """

    def __init__(
        self,
        comparison: Compared,
        positions: Positions | None = None,
        *,
        theme: str = "auto",
        height: str = "460px",
    ) -> None:
        self.comparison = comparison
        """What is shown."""
        self.table = ipywidgets.HTML(table_html(comparison))
        """The rows in words."""
        self.quantity = ipywidgets.ToggleButtons(
            options=[("Time", "time"), ("× bound", "ratio"), ("algbw", "algbw")],
            description="Plot",
            style={"button_width": "80px", "description_width": "40px"},
        )
        """What the plot has upwards."""
        self._theme = theme
        self.plot = go.FigureWidget(self._figure())
        """The methods over sizes."""
        self.players: SchedulePlayers | None = None
        """The two schedules; None where no method has found one."""
        self.quantity.observe(self._draw, "value")
        notes = "".join(f"<div>{each}.</div>" for each in crossover_words(comparison))
        parts: list[Any] = [self.table, self.quantity, self.plot, ipywidgets.HTML(notes)]
        if choices(comparison):
            self.players = SchedulePlayers(comparison, positions, theme=theme, height=height)
            parts.append(self.players)
        super().__init__(parts)

    def save(self, path: str | Path, **options: Any) -> Path:
        """Write it as a page, a chart or JSON, by the ending; see `widgets.pages.saving.save`."""
        return save(self.comparison, path, **options)

    def html(self, **options: Any) -> str:
        """Return a page that shows it from disk; see `widgets.pages.saving.html`."""
        return html(self.comparison, **options)

    def _figure(self) -> go.Figure:
        return comparison_figure(
            self.comparison, quantity=self.quantity.value, scheme=self._theme, height=360
        )

    def _draw(self, _change: Any) -> None:
        made = self._figure()
        with self.plot.batch_update():
            self.plot.data = []
            self.plot.add_traces(made.data)
            self.plot.layout = made.layout

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Say it in text and HTML as well, for where no kernel is."""
        bundle = super()._repr_mimebundle_(**options)
        if not isinstance(bundle, dict):
            return bundle
        bundle["text/html"] = table_html(self.comparison)
        return beside(bundle, description=lambda: table_text(self.comparison), drawn=lambda: None)
