"""Buttons that put right what keeps a solve from its end: an option, the chunks, the method."""

from __future__ import annotations

from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, no_update

from designer.shell import ids


def register(app: Dash) -> None:
    """Wire the remedies."""

    @app.callback(
        Output(ids.OPTIONS, "data", allow_duplicate=True),
        Output(ids.CHUNKS, "value", allow_duplicate=True),
        Output(ids.FORMULATION, "value"),
        Output(ids.REMEDY, "data"),
        Input({"remedy": ALL, "value": ALL}, "n_clicks"),
        State(ids.OPTIONS, "data"),
        State(ids.REMEDY, "data"),
        prevent_initial_call=True,
    )
    def on_remedy(
        clicks: list[int | None], options: dict[str, Any] | None, count: int | None
    ) -> tuple[Any, ...]:
        if not any(clicks) or not ctx.triggered_id:
            return (no_update,) * 4
        what, value = ctx.triggered_id["remedy"], ctx.triggered_id["value"]
        changed = (count or 0) + 1
        if what == "chunks":
            return no_update, value, no_update, changed
        if what == "formulation":
            return no_update, no_update, value, changed
        name, _, option = what.partition(".")
        kept = options or {}
        return {**kept, name: {**kept.get(name, {}), option: value}}, no_update, no_update, changed

    app.clientside_callback(
        ClientsideFunction("topoloom", "solveAgain"),
        Output(ids.FAULT, "children", allow_duplicate=True),
        Input(ids.REMEDY, "data"),
        State(ids.FAULT, "children"),
        prevent_initial_call=True,
    )
