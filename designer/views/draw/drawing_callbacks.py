"""The drawing itself: restoring and keeping it, its name, what is added to it."""

from __future__ import annotations

from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State

from designer.shell import commands, ids
from designer.shell.presets import link_type


def register(app: Dash) -> None:
    """Wire the drawing; what must be quick runs in the page (assets/designer.js)."""
    _document(app)
    for name, pressed in (
        ("add", Input({"device": ALL}, "n_clicks")),
        ("shortcuts", Input(ids.SHORTCUTS_OPEN, "n_clicks")),
    ):
        app.clientside_callback(
            ClientsideFunction("topoloom", name),
            commands.output(),
            pressed,
            prevent_initial_call=True,
        )
    app.clientside_callback(
        ClientsideFunction("topoloom", "picture"),
        Input({"picture": ALL}, "n_clicks"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("topoloom", "view"),
        Output("stage", "data-view"),
        Input(ids.VIEW, "value"),
    )

    @app.callback(Output(ids.CANVAS, "link_preset"), Input(ids.LINK_TYPE, "value"))
    def on_link_type(key: str) -> dict[str, Any]:
        return link_type(key).preset()


def _document(app: Dash) -> None:
    """Wire what is restored when the page opens, kept while it is edited, and renamed."""
    app.clientside_callback(
        ClientsideFunction("topoloom", "restore"),
        Output(ids.CANVAS, "drawing", allow_duplicate=True),
        commands.notes(),
        Input(ids.HOME, "data"),
        prevent_initial_call="initial_duplicate",
    )
    app.clientside_callback(
        ClientsideFunction("topoloom", "keep"),
        Output(ids.NAME, "value"),
        Output(ids.COUNTS, "children"),
        Input(ids.CANVAS, "drawing"),
        State(ids.HOME, "data"),
    )
    app.clientside_callback(
        ClientsideFunction("topoloom", "rename"),
        commands.output(),
        Input(ids.NAME, "value"),
        State(ids.CANVAS, "drawing"),
        prevent_initial_call=True,
    )
