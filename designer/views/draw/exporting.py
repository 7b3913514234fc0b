"""Every format that is written: which are there, the options of one, what it does not keep.

The content that is written, the dialog of all formats, and the drawing as Python on the clipboard.
"""

import base64
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, html, no_update

from ccl import text
from ccl.errors import CclError
from ccl.options import option_fields
from ccl.serialization.documents import Document, Kind
from designer.session import result_of, topology_of
from designer.shell import ids, request, ui
from designer.shell.request import callback, problem_of, read_request, same_question
from designer.views.draw.files import document_of, file_name
from designer.views.solve.forms import changed, option_rows
from interchange.formats.format import Writer, Written
from interchange.formats.own import python_code
from interchange.formats.own.fragment import Solving
from interchange.formats.own.python_code import PythonOptions
from widgets.pages import writers

Json = Mapping[str, Any]

GROUPS = {
    "runtimes": "Runtimes",
    "simulators": "Simulators and viewers",
    "synthesizers": "Synthesizers",
    "machines": "Machines",
    "graphs": "Graphs",
    "widgets": "Pictures and pages",
    "own": "Ours",
}
"""Groups of the list in order, by the room in which a writer lies."""

NEEDED = {
    "problem": "needs something to solve",
    "plan": "needs a schedule",
    "result": "needs a schedule",
}
"""What a format needs that may not be there."""


def group_of(writer: Writer) -> str:
    """Return the group that a writer belongs to, which follows from where its module lies."""
    rooms = writer.make.__module__.split(".")
    return next((title for room, title in GROUPS.items() if room in rooms), GROUPS["own"])


def content_of(drawing: Json, request: Json | None, result: Json | None) -> Document:
    """Return all that is on the page as a document.

    Parameters
    ----------
    drawing, request
        What is drawn and asked; what cannot be solved is a topology alone.
    result
        The schedule as JSON if it is of this drawing, else None.

    Raises
    ------
    CclError
        If the drawing is no topology.
    """
    if result is not None:
        return document_of(drawing, result_of(result))
    topology = topology_of(drawing["topology"])
    try:
        problem = problem_of(drawing["topology"], read_request(request))
    except CclError:  # the page says what is wrong with the request
        return document_of(drawing, topology)
    return document_of(drawing, problem)


def solving_of(request: Json | None) -> Solving | None:
    """Return how the header asks for a solve, None while a number in it is wrong."""
    try:
        read = read_request(request)
    except CclError:  # the page says what is wrong with the request
        return None
    return Solving(
        formulation=read.formulation,
        options=dict(read.options),
        time_limit=read.time_limit,
        gap=read.gap,
    )


def enough(drawing: Json, request: Json | None, *, result: bool, fresh: bool) -> dict[str, str]:
    """Return the kind of document that can be made, and why it is no more than that.

    Parameters
    ----------
    drawing, request
        As for `content_of`.
    result, fresh
        Whether there is a schedule, and whether it is of this drawing and question.
    """
    if result and fresh:
        return {"kind": "result", "why": ""}
    why = "the schedule is out of date" if result else "solve first"
    try:
        return {"kind": content_of(drawing, request, None).kind, "why": why}
    except CclError as error:
        return {"kind": "topology", "why": str(error)}


def refused(writer: Writer, there: Mapping[str, str]) -> str:
    """Say why a format cannot be written with what is there; empty if it can."""
    kind: Kind = there["kind"]  # type: ignore[assignment]
    if writer in writers.fitting(kind):
        return ""
    reason = NEEDED[writer.needs]
    return f"{reason}; {there['why']}" if writer.needs != "problem" else reason


def listed(words: str | None, there: Mapping[str, str]) -> list[tuple[str, list[Any]]]:
    """Return the writers that fit a search, as (group, [(writer, why not)])."""
    wanted = (words or "").lower().split()
    found: dict[str, list[Any]] = {title: [] for title in GROUPS.values()}
    for each in writers.writers():
        group = group_of(each)
        about = f"{each.name} {each.title} {each.ending} {group}".lower()
        if all(word in about for word in wanted):
            found[group].append((each, refused(each, there)))
    return [(title, rows) for title, rows in found.items() if rows]


def settings_of(writer: Writer, rows: list[Mapping[str, Any]]) -> dict[str, str]:
    """Return what was changed in a form, as typed.

    Parameters
    ----------
    writer
        Whose form it is.
    rows
        Its fields as Dash gives them: ``{id, value}``.
    """
    given = {
        row["id"].get("export-option") or row["id"]["export-option-flag"]: row.get("value")
        for row in rows
        if row["id"]["of"] == writer.name
    }
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in changed(given, option_fields(writer.options)).items()
    }


def download(written: Written, drawing: Json, writer: Writer) -> dict[str, Any]:
    """Return what the browser saves: the file, or several as one archive."""
    many = len(written.files) > 1
    content = writers.zipped(written) if many else written.content
    name = next(iter(written.files))
    ending = f"{writer.name}.zip" if many else name.partition(".")[2] or writer.ending
    return {
        "content": base64.b64encode(content).decode(),
        "filename": file_name(drawing["topology"], ending),
        "base64": True,
    }


def dialog() -> dmc.Modal:
    """Return the dialog, closed."""
    return ui.modal(ids.EXPORT_DIALOG, "Export", 820, ui.div("ds-exp", _formats(), _format()))


def _formats() -> html.Div:
    search = dmc.TextInput(
        id=ids.EXPORT_SEARCH,
        placeholder="Search formats",
        leftSection=ui.icon("search"),
        size="sm",
        spellCheck=False,
        **ui.attributes(aria_label="Search formats", data_autofocus=True),
    )
    return ui.div("ds-exp-left", search, html.Div(id=ids.EXPORT_LIST, className="ds-exp-list"))


def _format() -> html.Div:
    go = ui.button("Download", ids.EXPORT_GO, "download", disabled=True, fullWidth=True)
    return ui.div(
        "ds-exp-right",
        ui.div("ds-exp-form", chosen(None), id=ids.EXPORT_FORM),
        html.Div(id=ids.EXPORT_DONE, className="ds-exp-done", role="status"),
        go,
    )


def format_list(words: str | None, there: Mapping[str, str], *, chosen: str | None) -> list[Any]:
    """Return the formats that fit a search, grouped; those that cannot be written are grey."""
    groups = listed(words, there)
    if not groups:
        return [html.P(f"No format is called {words}.", className="ds-quiet")]
    return [
        ui.section(
            title,
            html.H3(title),
            *(_entry(each, why, on=each.name == chosen) for each, why in rows),
        )
        for title, rows in groups
    ]


def _entry(writer: Writer, why: str, *, on: bool) -> html.Button:
    return ui.press(
        [
            html.Span(writer.title),
            html.Code(f".{writer.ending}"),
            html.Small(text.sentence(why)[:-1]) if why else None,
        ],
        {"export-format": writer.name},
        "ds-exp-entry",
        disabled=bool(why),
        aria_pressed=on,
    )


def slide(writer: Writer, there: Json | None, time: float | None) -> Json:
    """Return the settings of a picture of the moment shown, with its legend, if there is a plan."""
    names = {each.name for each in option_fields(writer.options)}
    if not {"time", "legend"} <= names or not there or there["kind"] != "result":
        return {}
    return {"time": math.floor(1000 * (time or 0.0)) / 1000, "legend": True}


def chosen(writer: Writer | None, values: Json | None = None) -> list[Any]:
    """Return the options of a format, some of which may be set, or what to do first."""
    if writer is None:
        return [html.P("Choose a format; its settings appear here.", className="ds-quiet")]
    return [
        html.H3(writer.title),
        option_rows(writer.options, values or {}, of=writer.name, key="export-option"),
    ]


def done(name: str, lost: Sequence[str]) -> Any:
    """Say what was saved, and what the format does not keep."""
    if not lost:
        return ui.banner("check", "good", f"{name} is saved.")
    return ui.div(
        "ds-exp-lost",
        ui.banner("check", "good", f"{name} is saved."),
        html.H3("Not kept"),
        html.Ul([html.Li(text.sentence(each)) for each in lost]),
        tabIndex=0,
    )


def failed(sentence: str) -> Any:
    """Say why it cannot be written."""
    return ui.banner("warning", "bad", text.sentence(sentence))


PAGE = request.states("drawing", "request", "result", "stale", "summary")
"""What is there to be written."""


def register(app: Dash) -> None:
    """Wire the dialog."""
    _list(app)
    _write(app)
    _copy(app)


def _fresh(page: Json) -> bool:
    return not page["stale"] and same_question(page["summary"], page["request"])


def _list(app: Dash) -> None:
    @callback(
        app,
        output={
            "opened": Output(ids.EXPORT_DIALOG, "opened"),
            "there": Output(ids.EXPORT_ENOUGH, "data"),
            "search": Output(ids.EXPORT_SEARCH, "value"),
            "chosen": Output(ids.EXPORT_CHOSEN, "data"),
        },
        inputs={"clicks": Input(ids.EXPORT_OPEN, "n_clicks")},
        state={**PAGE, "chosen": State(ids.EXPORT_CHOSEN, "data")},
    )
    def on_open(clicks: int, chosen: str | None, **page: Any) -> Json:
        if not clicks:
            return {}
        there = enough(
            page["drawing"], page["request"], result=page["result"] is not None, fresh=_fresh(page)
        )
        if chosen and refused(writers.writer(chosen), there):
            chosen = None
        return {"opened": True, "there": there, "search": "", "chosen": chosen}

    @app.callback(
        Output(ids.EXPORT_LIST, "children"),
        Input(ids.EXPORT_SEARCH, "value"),
        Input(ids.EXPORT_ENOUGH, "data"),
        Input(ids.EXPORT_CHOSEN, "data"),
    )
    def on_search(words: str | None, there: Json | None, chosen: str | None) -> Any:
        return format_list(words, there, chosen=chosen) if there else no_update

    @app.callback(
        Output(ids.EXPORT_CHOSEN, "data", allow_duplicate=True),
        Input({"export-format": ALL}, "n_clicks"),
    )
    def on_format(_clicks: list[int | None]) -> Any:
        if len(ctx.triggered) != 1 or not ctx.triggered[0]["value"]:
            return no_update  # the list was drawn anew
        return ctx.triggered_id["export-format"]

    @callback(
        app,
        output={
            "form": Output(ids.EXPORT_FORM, "children"),
            "done": Output(ids.EXPORT_DONE, "children"),
            "go_disabled": Output(ids.EXPORT_GO, "disabled"),
        },
        inputs={
            "name": Input(ids.EXPORT_CHOSEN, "data"),
            "there": Input(ids.EXPORT_ENOUGH, "data"),
        },
        state={"time": State(ids.CANVAS, "time")},
    )
    def on_chosen(name: str | None, there: Json | None, time: float | None) -> Json:
        writer = writers.writer(name) if name else None
        values = slide(writer, there, time) if writer else {}
        return {"form": chosen(writer, values), "done": None, "go_disabled": writer is None}


def _write(app: Dash) -> None:
    @callback(
        app,
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
    )
    def on_write(clicks: int, name: str | None, **page: Any) -> Json:
        if not clicks or not name:
            return {}
        writer = writers.writer(name)
        states = ctx.args_grouping
        rows = [*states["values"], *states["flags"]]
        result = page["result"] if _fresh(page) else None
        try:
            content = content_of(page["drawing"], page["request"], result)
            settings = settings_of(writer, rows)
            written = writers.write(content, name, settings)
        except CclError as error:
            return {"done": failed(str(error))}
        saved = download(written, page["drawing"], writer)
        return {"download": saved, "done": done(saved["filename"], written.lost)}


def _copy(app: Dash) -> None:
    @callback(
        app,
        output={"copy": Output(ids.COPY, "data"), "notes": request.notes()},
        inputs={"clicks": Input(ids.COPY_PYTHON, "n_clicks")},
        state=PAGE,
    )
    def on_copy(clicks: int, **page: Any) -> Json:
        if not clicks:
            return {}
        result = page["result"] if _fresh(page) else None
        try:
            content = content_of(page["drawing"], page["request"], result)
            solving = solving_of(page["request"])
            written = python_code.write(content, PythonOptions(), solving=solving)
        except CclError as error:
            return {"notes": ui.note(str(error), title="Cannot copy")}
        copy = {
            "text": written.content.decode(),
            "filename": file_name(page["drawing"]["topology"], "py"),
            "what": f"Python code of the {content.kind}",
            "lost": "; ".join(written.lost),
            "n": time.time_ns() // 1000,
        }
        return {"copy": copy}

    app.clientside_callback(ClientsideFunction("exchange", "copied"), Input(ids.COPY, "data"))
