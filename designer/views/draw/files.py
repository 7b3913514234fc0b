"""Opening, saving and exporting: documents in, files out.

Saving, exporting, and keeping the result for the next visit.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, no_update
from msgspec import ValidationError, convert, to_builtins

from ccl.errors import CclError, FormatError
from ccl.layout import layout
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.documents import Document, document, document_text, parse_document
from ccl.serialization.quantity import format_size
from ccl.serialization.topoloom import problem_to_json, result_from_json, result_to_json
from ccl.serialization.wire import Annotation
from ccl.topology import Topology
from designer.server.reading import Apart
from designer.server.sessions import visitor
from designer.session import result_of, topology_of
from designer.shell import ids, request, ui
from designer.shell.request import callback, plan, problem_of, read_request
from designer.views.solve import assess
from interchange.formats.own.tables import transfers_csv
from widgets.pages.writers import standalone_html
from widgets.view_model.scene import drawing

Json = Mapping[str, Any]


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


def open_file(name: str, content: bytes) -> Opened:
    """Read a topology, a problem or a result as it was saved here.

    Raises
    ------
    CclError
        If it is not a document of this kind; the message begins with the file's name.
    """
    found = parse_document(content, name=name)
    drawn = drawing_in(found)
    if found.problem is None:
        return Opened(drawn)
    result = found.result
    return Opened(
        drawn,
        settings_of(found.problem),
        result,
        None if result is None else result_to_json(result),
    )


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


def _download(content: str, drawing: dict[str, Any], ending: str) -> dict[str, Any]:
    return {"content": content, "filename": file_name(drawing["topology"], ending)}
