"""Ready clusters: the list, the dialog, and a fresh drawing."""

from __future__ import annotations

from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, no_update

from ccl.errors import CclError
from designer.shell import commands, ids
from designer.shell.notes import note
from designer.views.draw.clusters import cluster_form, cluster_list, opened
from designer.views.draw.files import drawing_of

EMPTY: dict[str, Any] = {
    "topology": {"name": "untitled", "devices": [], "links": [], "limits": []},
    "positions": {},
}


def register(app: Dash) -> None:
    """Wire the gallery."""

    @app.callback(Output(ids.GALLERY_LIST, "children"), Input(ids.GALLERY_SEARCH, "value"))
    def on_search(words: str | None) -> Any:
        return cluster_list(words)

    @app.callback(
        Output(ids.GALLERY_DIALOG, "opened"),
        Output(ids.GALLERY_FORM, "children"),
        Output(ids.GALLERY_OPEN, "name"),
        Input({"cluster": ALL}, "n_clicks"),
        prevent_initial_call=True,
    )
    def on_cluster(clicks: list[int | None]) -> tuple[Any, Any, Any]:
        if not any(clicks) or not ctx.triggered_id:
            return no_update, no_update, no_update
        name = ctx.triggered_id["cluster"]
        return True, cluster_form(name), name

    @app.callback(
        Output(ids.CANVAS, "drawing", allow_duplicate=True),
        commands.output(),
        Output(ids.GALLERY_DIALOG, "opened", allow_duplicate=True),
        commands.other(),
        commands.notes(),
        Input(ids.GALLERY_OPEN, "n_clicks"),
        State(ids.GALLERY_OPEN, "name"),
        State({"parameter": ALL}, "value"),
        State({"parameter": ALL}, "checked"),
        prevent_initial_call=True,
    )
    def on_open(_clicks: int, name: str, _values: list[Any], _flags: list[Any]) -> tuple[Any, ...]:
        rows = [row for group in ctx.states_list[1:] for row in group]
        given = {row["id"]["parameter"]: row["value"] for row in rows if "value" in row}
        try:
            drawing = drawing_of(opened(name, given))
        except CclError as error:
            return (*(no_update,) * 4, note(str(error)))
        return drawing, commands.fit(), False, commands.now(), no_update

    @app.callback(
        Output(ids.CANVAS, "drawing", allow_duplicate=True),
        commands.other(),
        commands.notes(),
        Input(ids.NEW, "n_clicks"),
        State(ids.CANVAS, "drawing"),
        prevent_initial_call=True,
    )
    def on_new(_clicks: int, drawing: dict[str, Any]) -> tuple[Any, ...]:
        before = drawing["topology"]
        if not before["devices"]:
            return EMPTY, commands.now(), no_update
        told = f"Ctrl+Z brings {before['name']} back, after a reload as well"
        return EMPTY, commands.now(), note(told, "plain", title="A new drawing")
