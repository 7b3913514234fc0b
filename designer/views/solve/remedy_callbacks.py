"""Buttons that put right what keeps a solve from its end: an option, the chunks, the method."""

from __future__ import annotations

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx

from designer.shell import ids
from designer.shell.request import Json, callback


def register(app: Dash) -> None:
    """Wire the remedies."""

    @callback(
        app,
        output={
            "options": Output(ids.OPTIONS, "data", allow_duplicate=True),
            "chunks": Output(ids.CHUNKS, "value", allow_duplicate=True),
            "formulation": Output(ids.FORMULATION, "value"),
            "remedy": Output(ids.REMEDY, "data"),
        },
        inputs={"clicks": Input({"remedy": ALL, "value": ALL}, "n_clicks")},
        state={"options": State(ids.OPTIONS, "data"), "count": State(ids.REMEDY, "data")},
        prevent_initial_call=True,
    )
    def on_remedy(clicks: list[int | None], options: Json | None, count: int | None) -> Json:
        if not any(clicks) or not ctx.triggered_id:
            return {}
        what, value = ctx.triggered_id["remedy"], ctx.triggered_id["value"]
        changed = (count or 0) + 1
        if what == "chunks":
            return {"chunks": value, "remedy": changed}
        if what == "formulation":
            return {"formulation": value, "remedy": changed}
        name, _, option = what.partition(".")
        kept = options or {}
        return {"options": {**kept, name: {**kept.get(name, {}), option: value}}, "remedy": changed}

    app.clientside_callback(
        ClientsideFunction("topoloom", "solveAgain"),
        Output(ids.FAULT, "children", allow_duplicate=True),
        Input(ids.REMEDY, "data"),
        State(ids.FAULT, "children"),
        prevent_initial_call=True,
    )
