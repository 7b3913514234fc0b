"""Ways over the cluster: which is drawn, and when they go."""

from __future__ import annotations

from typing import Any

from dash import Dash, Input, Output, State, no_update

from designer.shell import ids
from designer.views.solve import ways_card

Json = dict[str, Any]


def register(app: Dash) -> None:
    """Wire the card of the ways."""

    @app.callback(
        Output(ids.WAYS_BOX, "hidden"),
        Output(ids.WAYS_TITLE, "children"),
        Output(ids.WAYS_CHOICE, "data"),
        Output(ids.WAYS_CHOICE, "value"),
        Output(ids.LAYER, "data", allow_duplicate=True),
        Input(ids.WAYS, "data"),
        State(ids.LAYER, "data"),
        prevent_initial_call="initial_duplicate",
    )
    def on_ways(ways: Json | None, layer: str) -> tuple[Any, ...]:
        if not ways:
            return True, "", [], ways_card.ALL, "" if layer == "ways" else no_update
        return False, ways["title"], ways_card.choices(ways), ways_card.ALL, no_update

    @app.callback(
        Output(ids.WAYS_MARKS, "data"),
        Output(ids.WAYS_FACTS, "children"),
        Input(ids.WAYS, "data"),
        Input(ids.WAYS_CHOICE, "value"),
    )
    def on_choice(ways: Json | None, choice: str | None) -> tuple[Any, str]:
        return ways_card.shown(ways, choice) if ways else (None, "")

    @app.callback(
        Output(ids.WAYS, "data", allow_duplicate=True),
        Input(ids.WAYS_CLOSE, "n_clicks"),
        prevent_initial_call=True,
    )
    def on_close(_clicks: int) -> None:
        return None

    @app.callback(
        Output(ids.WAYS, "data", allow_duplicate=True),
        Input(ids.PROBLEM, "data"),
        State(ids.WAYS, "data"),
        prevent_initial_call=True,
    )
    def on_drawing(asked: Json | None, ways: Json | None) -> Any:
        if not ways or not asked or ways_card.fits(ways, asked["topology"]):
            return no_update
        return None
