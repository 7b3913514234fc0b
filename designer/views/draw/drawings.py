"""Every drawing of a browser in one file, and back.

Browsers keep drawings (assets/documents.js), and the server checks what goes into a file and what
comes out of one: each is a document as *Save* writes it, versions and plans left out.
"""

from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
import msgspec
from dash import ClientsideFunction, Dash, Input, Output, dcc, html

from ccl import text
from ccl.errors import CclError, FormatError
from ccl.serialization.documents import document_from_json, document_to_json
from ccl.serialization.text import decode_json, laid_out
from designer.server.reading import Apart
from designer.server.sessions import visitor
from designer.session import topology_of
from designer.shell import ids, ui
from designer.shell.request import Json, callback
from designer.views.draw.files import document_of, drawing_in
from designer.views.draw.importing import check_size, decoded

FORMAT = "topoloom-drawings/1"
MOST = 500
"""Drawings of a file."""
FILE = "drawings.json"


class _Drawings(msgspec.Struct):
    """What a file holds."""

    format: Any = None
    drawings: list[Any] = msgspec.field(default_factory=list)


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


def text_of(drawn: Sequence[Json]) -> str:
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
    return laid_out({"format": FORMAT, "drawings": made}) + "\n"


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
    if found.format != FORMAT:
        told = "names no format" if found.format is None else f"is of format {found.format!r}"
        raise FormatError(
            f'{name} {told}; "Save all" writes "format": "{FORMAT}", and a file of one drawing '
            "is opened by the folder at the top of the page"
        )
    many = len(found.drawings)
    if not 1 <= many <= MOST:
        raise FormatError(f"{name} has {text.count(many, 'drawing')}; from 1 to {MOST} are opened")
    return [
        _drawing(f"{name}, drawing {i} of {many}", each) for i, each in enumerate(found.drawings, 1)
    ]


def _drawing(place: str, value: Any) -> dict[str, Any]:
    try:
        return drawing_in(document_from_json(value))
    except CclError as error:
        raise FormatError(f"{place}: {error}") from None


def register(app: Dash, apart: Apart) -> None:
    """Wire the file of all drawings."""

    @callback(
        app,
        output={
            "answer": Output(ids.DRAWINGS_ANSWER, "data"),
            "download": Output(ids.DOWNLOAD, "data", allow_duplicate=True),
        },
        inputs={"request": Input(ids.DRAWINGS_REQUEST, "data")},
    )
    def on_request(request: Json | None) -> Json:
        if not request:
            return {}
        name = str(request.get("name", FILE))
        try:
            if "drawings" in request:
                content = text_of(request["drawings"])
                many = text.count(len(request["drawings"]), "drawing")
                said = f"Saved {many} in {FILE}."
                return {
                    "answer": {"said": said},
                    "download": {"content": content, "filename": FILE},
                }
            sent = decoded(request["contents"])
            check_size(name, len(sent))
            found = apart.call(name, drawings_in, name, sent, nbytes=len(sent), session=visitor())
        except CclError as error:
            return {"answer": {"said": text.sentence(str(error))}}
        return {"answer": {"drawings": found}}

    app.clientside_callback(
        ClientsideFunction("drawings", "answered"), Input(ids.DRAWINGS_ANSWER, "data")
    )
