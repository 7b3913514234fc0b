"""The dialog of all formats, and the drawing as Python on the clipboard."""

from __future__ import annotations

import time
from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, no_update

from ccl.errors import CclError
from designer.shell import commands, ids
from designer.shell.notes import note
from designer.views.draw import exchange, export_card, exporting, sharing
from designer.views.draw.files import file_name
from designer.views.solve.assess import same_question
from interchange.formats.own import python_code
from interchange.formats.own.python_code import PythonOptions

Json = dict[str, Any]

PAGE = {
    "drawing": State(ids.CANVAS, "drawing"),
    "asked": State(ids.REQUEST, "data"),
    "result": State(ids.RESULT, "data"),
    "stale": State(ids.CANVAS, "stale"),
    "summary": State(ids.SUMMARY, "data"),
}
"""What is there to be written."""


def register(app: Dash) -> None:
    """Wire the dialog."""
    _list(app)
    _write(app)
    _copy(app)


def _fresh(page: Json) -> bool:
    return not page["stale"] and same_question(page["summary"], page["asked"])


def _list(app: Dash) -> None:
    @app.callback(
        output={
            "opened": Output(ids.EXPORT_DIALOG, "opened"),
            "there": Output(ids.EXPORT_ENOUGH, "data"),
            "search": Output(ids.EXPORT_SEARCH, "value"),
            "chosen": Output(ids.EXPORT_CHOSEN, "data"),
        },
        inputs={"clicks": Input(ids.EXPORT_OPEN, "n_clicks")},
        state={**PAGE, "chosen": State(ids.EXPORT_CHOSEN, "data")},
        prevent_initial_call=True,
    )
    def on_open(clicks: int, chosen: str | None, **page: Any) -> Json:
        if not clicks:
            return dict.fromkeys(("opened", "there", "search", "chosen"), no_update)
        there = exporting.enough(
            page["drawing"], page["asked"], result=page["result"] is not None, fresh=_fresh(page)
        )
        if chosen and exporting.refused(exchange.writer(chosen), there):
            chosen = None
        return {"opened": True, "there": there, "search": "", "chosen": chosen}

    @app.callback(
        Output(ids.EXPORT_LIST, "children"),
        Input(ids.EXPORT_SEARCH, "value"),
        Input(ids.EXPORT_ENOUGH, "data"),
        Input(ids.EXPORT_CHOSEN, "data"),
        prevent_initial_call=True,
    )
    def on_search(words: str | None, there: Json | None, chosen: str | None) -> Any:
        return export_card.format_list(words, there, chosen=chosen) if there else no_update

    @app.callback(
        Output(ids.EXPORT_CHOSEN, "data", allow_duplicate=True),
        Input({"export-format": ALL}, "n_clicks"),
        prevent_initial_call=True,
    )
    def on_format(_clicks: list[int | None]) -> Any:
        if len(ctx.triggered) != 1 or not ctx.triggered[0]["value"]:
            return no_update  # the list was drawn anew
        return ctx.triggered_id["export-format"]

    @app.callback(
        Output(ids.EXPORT_FORM, "children"),
        Output(ids.EXPORT_DONE, "children"),
        Output(ids.EXPORT_GO, "disabled"),
        Input(ids.EXPORT_CHOSEN, "data"),
        prevent_initial_call=True,
    )
    def on_chosen(name: str | None) -> tuple[Any, Any, bool]:
        writer = exchange.writer(name) if name else None
        return export_card.chosen(writer), None, writer is None


def _write(app: Dash) -> None:
    @app.callback(
        output={
            "download": Output(ids.DOWNLOAD, "data", allow_duplicate=True),
            "done": Output(ids.EXPORT_DONE, "children", allow_duplicate=True),
        },
        inputs={"clicks": Input(ids.EXPORT_GO, "n_clicks")},
        state={
            **PAGE,
            "name": State(ids.EXPORT_CHOSEN, "data"),
            "values": State({"export-option": ALL, "of": ALL}, "value"),
            "flags": State({"export-option-flag": ALL, "of": ALL}, "checked"),
        },
        prevent_initial_call=True,
    )
    def on_write(clicks: int, name: str | None, **page: Any) -> Json:
        if not clicks or not name:
            return {"download": no_update, "done": no_update}
        writer = exchange.writer(name)
        states = ctx.args_grouping
        rows = [*states["values"], *states["flags"]]
        result = page["result"] if _fresh(page) else None
        try:
            content = exporting.content_of(page["drawing"], page["asked"], result)
            settings = exporting.settings_of(writer, rows)
            written = exchange.write(content, name, settings)
        except CclError as error:
            return {"download": no_update, "done": export_card.failed(str(error))}
        saved = exporting.download(written, page["drawing"], writer)
        return {"download": saved, "done": export_card.done(saved["filename"], written.lost)}


def _copy(app: Dash) -> None:
    @app.callback(
        output={"copy": Output(ids.COPY, "data"), "notes": commands.notes()},
        inputs={"clicks": Input(ids.COPY_PYTHON, "n_clicks")},
        state=PAGE,
        prevent_initial_call=True,
    )
    def on_copy(clicks: int, **page: Any) -> Json:
        if not clicks:
            return {"copy": no_update, "notes": no_update}
        result = page["result"] if _fresh(page) else None
        try:
            content = exporting.content_of(page["drawing"], page["asked"], result)
            solving = sharing.solving_of(page["asked"])
            written = python_code.write(content, PythonOptions(), solving=solving)
        except CclError as error:
            return {"copy": no_update, "notes": note(str(error), title="Cannot copy")}
        copy = {
            "text": written.content.decode(),
            "filename": file_name(page["drawing"]["topology"], "py"),
            "what": f"Python code of the {content.kind}",
            "lost": "; ".join(written.lost),
            "n": time.time_ns() // 1000,
        }
        return {"copy": copy, "notes": no_update}

    app.clientside_callback(
        ClientsideFunction("exchange", "copied"),
        Input(ids.COPY, "data"),
        prevent_initial_call=True,
    )
