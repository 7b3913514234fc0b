"""Saving, exporting, and keeping the result for the next visit."""

from __future__ import annotations

from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, no_update

from ccl.errors import CclError
from ccl.serialization.topoloom import result_from_json
from designer.server.reading import Apart
from designer.server.sessions import visitor
from designer.shell import commands, ids
from designer.shell.notes import note
from designer.views.draw import files
from designer.views.solve import answers
from widgets.pages.writers import standalone_html

NO_RESULT = "there is no schedule to export; solve first"


def register(app: Dash, apart: Apart) -> None:
    """Wire the files."""
    _keep(app, apart)
    _save(app)
    _export(app)


def _keep(app: Dash, apart: Apart) -> None:
    app.clientside_callback(
        ClientsideFunction("topoloom", "keepResult"),
        Input(ids.RESULT, "data"),
        State(ids.SUMMARY, "data"),
        State(ids.GAP_PLOT, "course"),
        State(ids.HOME, "data"),
        prevent_initial_call=True,
    )

    @app.callback(
        Output(ids.CANVAS, "scene", allow_duplicate=True),
        Output(ids.SUMMARY, "data", allow_duplicate=True),
        Output(ids.LOAD_DATA, "data", allow_duplicate=True),
        Output(ids.RESULT, "data", allow_duplicate=True),
        Output(ids.GAP_PLOT, "course", allow_duplicate=True),
        Input(ids.KEPT, "data"),
        State(ids.JOB, "data"),
        prevent_initial_call=True,
    )
    def on_kept(kept: dict[str, Any] | None, job: dict[str, Any] | None) -> tuple[Any, ...]:
        if not kept or job:  # a solve that runs shows its own
            return (no_update,) * 5
        try:
            shown = apart.call(
                "the result", shown_again, kept["result"], kept["asked"], session=visitor()
            )
        except CclError:  # of another version
            return (no_update,) * 5
        course = kept["course"] or no_update
        return shown["scene"], shown["summary"], shown["load"], kept["result"], course


def shown_again(result: Any, asked: Any) -> dict[str, Any]:
    """Return what the page shows of a result that its browser has kept, verified again."""
    return answers.shown(result_from_json(result), asked)


def _save(app: Dash) -> None:
    @app.callback(
        Output(ids.DOWNLOAD, "data"),
        commands.notes(),
        Input(ids.SAVE, "n_clicks"),
        State(ids.CANVAS, "drawing"),
        prevent_initial_call=True,
    )
    def on_save(_clicks: int, drawing: dict[str, Any]) -> tuple[Any, Any]:
        try:
            content = files.save_drawing(drawing)
        except CclError as error:
            return no_update, note(str(error), title="Cannot save")
        return _download(content, drawing, "topology.json"), no_update


def _export(app: Dash) -> None:
    @app.callback(
        Output(ids.DOWNLOAD, "data", allow_duplicate=True),
        commands.output(),
        commands.notes(),
        Input({"export": ALL}, "n_clicks"),
        State(ids.CANVAS, "drawing"),
        State(ids.CANVAS, "scene"),
        State(ids.CANVAS, "cuts"),
        State(ids.REQUEST, "data"),
        State(ids.RESULT, "data"),
        State(ids.SCHEME_NOW, "data"),
        prevent_initial_call=True,
    )
    def on_export(clicks: list[int | None], *given: Any) -> tuple[Any, Any, Any]:
        if not any(clicks) or not ctx.triggered_id:
            return no_update, no_update, no_update
        kind = ctx.triggered_id["export"]
        drawing, scene, cuts, asked, result, scheme = given
        try:
            if kind == "json":
                found = None if result is None else result_from_json(result)
                content = files.export_json(drawing, asked, found)
                return _download(content, drawing, "json"), no_update, no_update
            if kind == "html":
                page = standalone_html(drawing, scene, cuts or (), theme=scheme or "auto")
                return _download(page, drawing, "html"), no_update, no_update
            if kind == "csv":
                if result is None:
                    return no_update, no_update, note(NO_RESULT)
                content = files.export_csv(result_from_json(result))
                return _download(content, drawing, "csv"), no_update, no_update
        except CclError as error:
            return no_update, no_update, note(str(error), title="Cannot export")
        if scene is None:
            return no_update, no_update, note(NO_RESULT)
        command = {"name": f"export_{kind}", "args": {}}
        return no_update, commands.numbered(command), no_update


def _download(content: str, drawing: dict[str, Any], ending: str) -> dict[str, Any]:
    return {"content": content, "filename": files.file_name(drawing["topology"], ending)}
