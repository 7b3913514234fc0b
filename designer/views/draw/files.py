"""Documents of the page: a drawing kept, saved and exported, and all drawings in one file.

Browsers keep drawings (assets/documents.js), and the server checks what goes into a file and what
comes out of one: each is a document as *Save* writes it, versions and plans left out.
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dash_mantine_components as dmc
import msgspec
from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update
from msgspec import ValidationError, convert, to_builtins

from ccl import text
from ccl.errors import CclError, FormatError
from ccl.layout import layout
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.documents import (
    Document,
    document,
    document_from_json,
    document_text,
    document_to_json,
)
from ccl.serialization.quantity import format_size
from ccl.serialization.text import decode_json, laid_out
from ccl.serialization.topoloom import problem_to_json, result_from_json, topology_from_json
from ccl.serialization.wire import Annotation
from ccl.topology import Topology
from designer.server.guard import MOST_UPLOAD
from designer.server.reading import Apart
from designer.server.sessions import visitor
from designer.session import result_of, topology_of
from designer.shell import ids, request, ui
from designer.shell.request import callback, plan, problem_of, read_request
from designer.views.solve import assess
from designer.views.solve.header import NEEDING
from interchange.formats.own.tables import transfers_csv
from widgets.pages.writers import standalone_html
from widgets.view_model.scene import drawing

Json = Mapping[str, Any]

DRAWINGS_FORMAT = "topoloom-drawings/1"
MOST_DRAWINGS = 500
"""Drawings of a file."""
DRAWINGS_FILE = "drawings.json"
NO_RESULT = "there is no schedule to export; solve first"


@dataclass(frozen=True, slots=True)
class Opened:
    """What a file holds.

    Parameters
    ----------
    drawing
        For the canvas; None leaves what is there.
    settings
        Of the header, as far as the file brings them, by name.
    result, document
        The result and its JSON, if it holds one.
    """

    drawing: dict[str, Any] | None
    settings: dict[str, Any] = field(default_factory=dict)
    result: Result | None = None
    document: dict[str, Any] | None = None


class _Drawings(msgspec.Struct):
    """What a file of all drawings holds."""

    format: Any = None
    drawings: list[Any] = msgspec.field(default_factory=list)


def drawing_of(
    topology: Topology, positions: Json | None = None, notes: Sequence[Annotation] = ()
) -> dict[str, Any]:
    """Return a drawing with its notes and frames; devices without a position are laid out."""
    drawn = drawing(topology, {**layout(topology), **(positions or {})})
    return {**drawn, "annotations": to_builtins(list(notes))} if notes else drawn


def drawing_in(found: Document) -> dict[str, Any]:
    """Return the drawing that a document holds."""
    return drawing_of(found.topology, found.positions, found.annotations)


def notes_of(drawn: Json) -> tuple[Annotation, ...]:
    """Return the notes and frames of a drawing.

    Raises
    ------
    FormatError
        If they are none.
    """
    try:
        return convert(drawn.get("annotations") or (), tuple[Annotation, ...])
    except ValidationError as error:
        raise FormatError(f"the notes of the drawing: {error}") from None


def document_of(drawn: Json, content: Topology | Problem | Result) -> Document:
    """Return the document of something with its drawing."""
    return document(content, positions=drawn.get("positions"), annotations=notes_of(drawn))


def save_drawing(drawn: Json) -> str:
    """Return the document of a drawing, with its positions.

    Raises
    ------
    CclError
        If the drawing is not a topology.
    """
    topology = topology_of(drawn["topology"])
    return document_text(document_of(drawn, topology))


def export_json(drawn: Json, request: Json | None, result: Result | None) -> str:
    """Return the result as a document, or the problem where there is no result yet.

    Raises
    ------
    CclError
        If there is neither.
    """
    content = result or problem_of(drawn["topology"], read_request(request))
    return document_text(document_of(drawn, content))


def export_csv(result: Result) -> str:
    """Return one row per crossing of a link, times in µs."""
    return transfers_csv(result.timeline)


def drawings_text(drawn: Sequence[Json]) -> str:
    """Return drawings as the text of a file.

    Raises
    ------
    CclError
        If one of them is not a topology; the message begins with its name.
    """
    made = []
    for each in drawn:
        try:
            found = document_of(each, topology_of(each["topology"]))
        except CclError as error:
            raise FormatError(f"{each['topology'].get('name')}: {error}") from None
        made.append(document_to_json(found))
    return laid_out({"format": DRAWINGS_FORMAT, "drawings": made}) + "\n"


def drawings_in(name: str, content: bytes) -> list[dict[str, Any]]:
    """Return the drawings that a file holds.

    Raises
    ------
    CclError
        If it is no such file; the message begins with its name and the number of a wrong drawing.
    """
    try:
        found = decode_json(content, _Drawings)
    except FormatError as error:
        raise FormatError(f"{name}: {error}") from None
    if found.format != DRAWINGS_FORMAT:
        told = "names no format" if found.format is None else f"is of format {found.format!r}"
        raise FormatError(
            f'{name} {told}; "Save all" writes "format": "{DRAWINGS_FORMAT}", and a file of one '
            "drawing is opened by the folder at the top of the page"
        )
    many = len(found.drawings)
    if not 1 <= many <= MOST_DRAWINGS:
        raise FormatError(
            f"{name} has {text.count(many, 'drawing')}; from 1 to {MOST_DRAWINGS} are opened"
        )
    return [
        _drawing(f"{name}, drawing {i} of {many}", each) for i, each in enumerate(found.drawings, 1)
    ]


def _drawing(place: str, value: Any) -> dict[str, Any]:
    try:
        return drawing_in(document_from_json(value))
    except CclError as error:
        raise FormatError(f"{place}: {error}") from None


def file_name(topology: Json, ending: str) -> str:
    """Return a name for a download, made of the topology's."""
    stem = re.sub(r"[^\w.-]+", "-", str(topology.get("name") or "")).strip("-.").lower()
    return f"{stem or 'topology'}.{ending}"


def settings_of(problem: Problem) -> dict[str, Any]:
    """Return the header's settings for a problem.

    A collective that the header cannot ask for is kept whole, under ``custom``.
    """
    told = problem_to_json(problem)["collective"]
    size = format_size(problem.collective.size)
    if isinstance(told["chunks"], int):
        return {
            "collective": told["kind"],
            "size": size,
            "chunks": told["chunks"] if problem.collective.whole else "",
            "root": told.get("root", 0),
        }
    return {"collective": "custom", "size": size, "chunks": "", "root": 0, "custom": told}


def decoded(contents: str) -> bytes:
    """Return the bytes of a data URL.

    Raises
    ------
    FormatError
        If it is malformed.
    """
    try:
        return base64.b64decode(contents.partition(",")[2])
    except binascii.Error:
        raise FormatError("the browser sent what is no file; try again") from None


def check_size(name: str, nbytes: int) -> None:
    """Refuse a file that is larger than a page may send.

    Raises
    ------
    FormatError
        If it is.
    """
    if nbytes > MOST_UPLOAD:
        has, most = f"{nbytes / 1e6:,.0f}", MOST_UPLOAD // 10**6
        raise FormatError(f"{name} has {has} MB; at most {most} MB are read here")


def dialog() -> dmc.Modal:
    """Return the list of documents, which assets/drawings.js fills from what the browser keeps."""
    return ui.modal(
        ids.DRAWINGS,
        "Drawings",
        940,
        html.Div(id=ids.DRAWINGS_LIST, className="ds-docs"),
        dcc.Store(id=ids.DRAWINGS_REQUEST),
        dcc.Store(id=ids.DRAWINGS_ANSWER),
    )


def register(app: Dash, apart: Apart) -> None:
    """Wire the drawing and its files; what must be quick runs in the page (assets/designer.js)."""
    _document(app)
    _keep(app, apart)
    _save(app)
    _export(app)
    _all_drawings(app, apart)


def _document(app: Dash) -> None:
    """Wire the drawing: restored when the page opens, kept while edited, named, laid out anew."""
    app.clientside_callback(
        ClientsideFunction("topoloom", "restore"),
        Output(ids.CANVAS, "drawing", allow_duplicate=True),
        request.notes(),
        Input(ids.HOME, "data"),
        prevent_initial_call="initial_duplicate",
    )
    app.clientside_callback(
        ClientsideFunction("topoloom", "keep"),
        Output(ids.NAME, "value"),
        Output(ids.COUNTS, "children"),
        Input(ids.CANVAS, "drawing"),
        State(ids.HOME, "data"),
        prevent_initial_call=False,
    )
    app.clientside_callback(
        ClientsideFunction("topoloom", "rename"),
        request.output(),
        Input(ids.NAME, "value"),
        State(ids.CANVAS, "drawing"),
    )

    @app.callback(request.output(), Input(ids.CANVAS, "request"), State(ids.CANVAS, "drawing"))
    def on_request(asked: Any, drawing: Any) -> Any:
        """Lay the drawing out anew when the canvas asks for it."""
        if (asked or {}).get("name") != "layout":
            return no_update
        places = layout(topology_from_json(drawing["topology"]))
        return request.numbered({"name": "move", "args": {"to": places}})


def _keep(app: Dash, apart: Apart) -> None:
    app.clientside_callback(
        ClientsideFunction("topoloom", "keepResult"),
        Input(ids.RESULT, "data"),
        State(ids.SUMMARY, "data"),
        State(ids.GAP_PLOT, "course"),
        State(ids.CANVAS, "drawing"),
        State(ids.HOME, "data"),
    )

    @callback(
        app,
        output={**plan()},
        inputs={"kept": Input(ids.PERSISTED, "data")},
        state={"job": State(ids.JOB, "data")},
    )
    def on_kept(kept: dict[str, Any] | None, job: dict[str, Any] | None) -> dict[str, Any]:
        if not kept or job:  # a solve that runs shows its own
            return {}
        try:
            shown = apart.call(
                "the result", reopened, kept["result"], kept["asked"], session=visitor()
            )
        except CclError:  # of another version
            return {}
        course = kept["course"]
        if not course or "even" not in course:  # of another version
            course = no_update
        return {
            "scene": shown["scene"],
            "summary": shown["summary"],
            "load": shown["load"],
            "result": kept["result"],
            "course": course,
        }


def reopened(result: Any, request: Any) -> dict[str, Any]:
    """Return what the page shows of a result that its browser has kept, verified again."""
    return assess.views_of(result_from_json(result), request)


def _save(app: Dash) -> None:
    @app.callback(
        Output(ids.DOWNLOAD, "data"),
        request.notes(),
        Input(ids.SAVE, "n_clicks"),
        State(ids.CANVAS, "drawing"),
    )
    def on_save(_clicks: int, drawing: dict[str, Any]) -> tuple[Any, Any]:
        try:
            content = save_drawing(drawing)
        except CclError as error:
            return no_update, ui.note(str(error), title="Cannot save")
        return _download(content, drawing, "topology.json"), no_update


def _export(app: Dash) -> None:
    @callback(
        app,
        output=request.changes("download", "command", "notes"),
        inputs={"clicks": Input({"export": ALL}, "n_clicks")},
        state={
            **request.states("drawing", "scene", "cuts", "result", "scheme"),
            "asked": State(ids.REQUEST, "data"),
        },
    )
    def on_export(
        *,
        clicks: list[int | None],
        drawing: Any,
        scene: Any,
        cuts: Any,
        asked: Any,
        result: Any,
        scheme: Any,
    ) -> dict[str, Any]:
        if not any(clicks) or not ctx.triggered_id:
            return {}
        kind = ctx.triggered_id["export"]
        try:
            if kind == "json":
                found = None if result is None else result_of(result)
                content = export_json(drawing, asked, found)
                return {"download": _download(content, drawing, "json")}
            if kind == "html":
                page = standalone_html(drawing, scene, cuts or (), theme=scheme or "auto")
                return {"download": _download(page, drawing, "html")}
            if kind == "csv":
                if result is None:
                    return {"notes": ui.note(NO_RESULT)}
                content = export_csv(result_of(result))
                return {"download": _download(content, drawing, "csv")}
        except CclError as error:
            return {"notes": ui.note(str(error), title="Cannot export")}
        if scene is None:
            return {"notes": ui.note(NO_RESULT)}
        command = {"name": f"export_{kind}", "args": {}}
        return {"command": request.numbered(command)}

    app.clientside_callback(
        ClientsideFunction("topoloom", "picture"), Input({"picture": ALL}, "n_clicks")
    )
    # What needs a schedule is grey without one; transfers are known when the solve is over.
    app.clientside_callback(
        "(scene, result) => [!scene, !scene, !result]",
        *(Output({"export": each}, "disabled") for each in NEEDING),
        *request.inputs("scene", "result").values(),
        prevent_initial_call=False,
    )


def _all_drawings(app: Dash, apart: Apart) -> None:
    """Wire the file of all drawings."""

    @callback(
        app,
        output={
            "answer": Output(ids.DRAWINGS_ANSWER, "data"),
            "download": Output(ids.DOWNLOAD, "data", allow_duplicate=True),
        },
        inputs={"asked": Input(ids.DRAWINGS_REQUEST, "data")},
    )
    def on_drawings(asked: Json | None) -> Json:
        if not asked:
            return {}
        name = str(asked.get("name", DRAWINGS_FILE))
        try:
            if "drawings" in asked:
                content = drawings_text(asked["drawings"])
                many = text.count(len(asked["drawings"]), "drawing")
                said = f"Saved {many} in {DRAWINGS_FILE}."
                return {
                    "answer": {"said": said},
                    "download": {"content": content, "filename": DRAWINGS_FILE},
                }
            sent = decoded(asked["contents"])
            check_size(name, len(sent))
            found = apart.call(name, drawings_in, name, sent, nbytes=len(sent), session=visitor())
        except CclError as error:
            return {"answer": {"said": text.sentence(str(error))}}
        return {"answer": {"drawings": found}}

    app.clientside_callback(
        ClientsideFunction("drawings", "answered"), Input(ids.DRAWINGS_ANSWER, "data")
    )


def _download(content: str, drawing: dict[str, Any], ending: str) -> dict[str, Any]:
    return {"content": content, "filename": file_name(drawing["topology"], ending)}
