"""What limits the cluster as the sliders stand, once they rest, and the curves of its classes."""

from __future__ import annotations

from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, no_update, set_props

from ccl.errors import CclError
from designer.server.sessions import visitor
from designer.shell import ids
from designer.views.solve.live import Newest
from designer.views.whatif.answering import Standing, standing
from designer.views.whatif.limits import curves, drawn_at_first, limits_told
from designer.views.whatif.limits_card import limits
from widgets.charts.rates import rates_figure


def register(app: Dash) -> None:
    """Wire the card."""
    _limits(app)
    _curves(app)
    app.clientside_callback(
        ClientsideFunction("whatif", "choose"),
        Output(ids.WHATIF_CHOSEN, "data"),
        Input({"whatif-class": ALL}, "n_clicks"),
        State({"whatif-class": ALL}, "aria-pressed"),
        prevent_initial_call=True,
    )


def _limits(app: Dash) -> None:
    newest = Newest()

    # Nothing that has the answer among its inputs may wait for it, as with the figures.
    @app.callback(
        Input(ids.WHATIF_SETTLED, "data"),
        State(ids.CANVAS, "drawing"),
        State(ids.REQUEST, "data"),
        State(ids.WHATIF_TODAY, "data"),
        prevent_initial_call=True,
    )
    def on_settled(settled: dict[str, Any] | None, *given: Any) -> None:
        newer = newest.ask(settled, visitor=visitor()) if settled else None
        stands = _stands(settled, *given)
        if newer is None or stands is None:
            return
        told = None
        if not isinstance(stands.problem, str):
            told = limits_told(stands.problem, stands.knobs)
        if newer():
            set_props(ids.WHATIF_LIMITED, {"data": told})


def _curves(app: Dash) -> None:
    @app.callback(
        Output(ids.WHATIF_LIMITS, "children"),
        Output(ids.WHATIF_PLOT, "figure"),
        Output(ids.WHATIF_PLOT_NOTE, "children"),
        Output(ids.WHATIF_PLOT_BOX, "hidden"),
        Input(ids.WHATIF_LIMITED, "data"),
        Input(ids.WHATIF_CHOSEN, "data"),
        Input(ids.SCHEME_NOW, "data"),
        State(ids.WHATIF_SETTLED, "data"),
        State(ids.CANVAS, "drawing"),
        State(ids.REQUEST, "data"),
        State(ids.WHATIF_TODAY, "data"),
        prevent_initial_call=True,
    )
    def on_limited(told: Any, chosen: list[str] | None, scheme: str | None, *given: Any) -> Any:
        stands = _stands(*given)
        if told is None or stands is None:
            return limits(None, marks={}, chosen=()), no_update, None, True
        keys = chosen if chosen is not None else drawn_at_first(told, stands)
        marks = {knob.key: i for i, knob in enumerate(stands.knobs)}
        panel = limits(told, marks=marks, chosen=keys)
        lines, why = ([], "") if told.get("trouble") else curves(stands, keys)
        figure = rates_figure(lines, scheme=scheme) if lines else no_update
        return panel, figure, why, not (lines or why)


def _stands(
    settled: dict[str, Any] | None, drawing: Any, request: Any, before: Any
) -> Standing | None:
    """Return the cluster as the sliders stand, or None where there is none to speak of."""
    if not settled or not drawing or not before:
        return None
    try:
        return standing(drawing, request, before, settled["values"])
    except CclError:  # the figures say what is wrong
        return None
