"""Opening "About": the mathematics at once, the sizes when they are counted."""

from __future__ import annotations

from typing import Any

from dash import Dash, Input, Output, State, no_update

from designer.shell import ids
from designer.views.solve import about


def register(app: Dash) -> None:
    """Wire the dialog."""

    @app.callback(
        Output(ids.MATHEMATICS, "opened"),
        Output(ids.ABOUT_HEAD, "children"),
        Output(ids.MATHEMATICS_TEXT, "children"),
        Output(ids.ABOUT_SIZE, "children"),
        Output(ids.ABOUT_ASKED, "data"),
        Input(ids.MATHEMATICS_OPEN, "n_clicks"),
        State(ids.FORMULATION, "value"),
        prevent_initial_call=True,
    )
    def on_open(clicks: int, name: str | None) -> tuple[Any, ...]:
        if not name:
            return (no_update,) * 5
        asked = {"name": name, "n": clicks}
        return True, about.about(name), about.mathematics(name), about.counting(), asked

    # After the dialog is there, so that nobody waits for a large model to be counted.
    @app.callback(
        Output(ids.ABOUT_SIZE, "children", allow_duplicate=True),
        Input(ids.ABOUT_ASKED, "data"),
        State(ids.PROBLEM, "data"),
        prevent_initial_call=True,
    )
    def on_asked(asked: dict[str, Any], problem: dict[str, Any] | None) -> Any:
        return about.sized(asked["name"], problem)
