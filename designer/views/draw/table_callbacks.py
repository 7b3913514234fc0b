"""The table view: sorting, paging and editing in place."""

from __future__ import annotations

from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, no_update

from ccl.errors import CclError
from designer.shell import commands, ids
from designer.shell.notes import note
from designer.views.draw import edits
from designer.views.draw.table import Sorting, tables


def register(app: Dash) -> None:
    """Wire the table."""

    @app.callback(
        Output(ids.TABLE, "children"),
        Input(ids.CANVAS, "drawing"),
        Input(ids.VIEW, "value"),
        Input(ids.SORTING, "data"),
    )
    def on_table(drawing: dict[str, Any], view: str, sorting: dict[str, Any]) -> Any:
        if view != "table":
            return no_update
        return _shown(drawing["topology"], sorting)

    _sorting(app)
    _cells(app)


def _sorting(app: Dash) -> None:
    @app.callback(
        Output(ids.SORTING, "data"),
        Input({"table-sort": ALL, "key": ALL}, "n_clicks"),
        Input({"table-page": ALL}, "value"),
        State(ids.SORTING, "data"),
        prevent_initial_call=True,
    )
    def on_sort(clicks: list[int | None], _pages: list[int], sorting: dict[str, Any]) -> Any:
        asked = ctx.triggered_id
        if len(ctx.triggered) != 1 or asked is None:
            return no_update
        if "table-page" in asked:
            what, page = asked["table-page"], ctx.triggered[0]["value"]
            now = {**sorting, what: {**sorting[what], "page": page}}
            return no_update if now == sorting else now
        if not any(clicks):
            return no_update
        what = asked["table-sort"]
        clicked = Sorting(**sorting[what]).clicked(asked["key"])
        return {**sorting, what: {"key": clicked.key, "down": clicked.down, "page": 1}}


def _cells(app: Dash) -> None:
    @app.callback(
        commands.output(),
        commands.notes(),
        Output(ids.TABLE, "children", allow_duplicate=True),
        Input({"table": "device", "row": ALL, "key": ALL}, "value"),
        Input({"table": "device-flag", "row": ALL, "key": ALL}, "checked"),
        Input({"table": "link", "row": ALL, "key": ALL}, "value"),
        State(ids.CANVAS, "drawing"),
        State(ids.SORTING, "data"),
        prevent_initial_call=True,
    )
    def on_cell(*given: Any) -> tuple[Any, Any, Any]:
        asked, topology, sorting = ctx.triggered_id, given[-2]["topology"], given[-1]
        if len(ctx.triggered) != 1 or asked is None:
            return no_update, no_update, no_update
        value = ctx.triggered[0]["value"]
        try:
            if asked["table"] == "link":
                src, dst = asked["row"].split("\n")
                command = edits.edit_link(
                    topology, [(src, dst)], asked["key"], value=value, both=False
                )
            else:
                command = edits.edit_device(topology, [asked["row"]], asked["key"], value)
        except CclError as error:
            # Drawn anew, so that the cell shows what is true, not what was refused.
            return no_update, note(str(error)), _shown(topology, sorting)
        return (commands.numbered(command) if command else no_update), no_update, no_update


def _shown(topology: dict[str, Any], sorting: dict[str, Any]) -> list[Any]:
    return tables(topology, Sorting(**sorting["device"]), Sorting(**sorting["link"]))
