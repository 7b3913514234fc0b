"""Links: what is on the page into the fragment of one, and one that was opened onto the page."""

from __future__ import annotations

import time
from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, no_update

from ccl import text
from ccl.errors import CclError
from designer.server.reading import Apart
from designer.server.sessions import visitor
from designer.shell import commands, ids
from designer.shell.markup import note
from designer.views.draw import files, sharing
from designer.views.draw import import_card as importing
from designer.views.solve.forms import option_form
from interchange.formats.own.fragment import NAME, TooLarge

Json = dict[str, Any]

OUTPUTS = {
    "drawing": Output(ids.CANVAS, "drawing", allow_duplicate=True),
    "command": commands.output(),
    "scene": Output(ids.CANVAS, "scene", allow_duplicate=True),
    "summary": Output(ids.SUMMARY, "data", allow_duplicate=True),
    "load": Output(ids.LOAD_DATA, "data", allow_duplicate=True),
    "result": Output(ids.RESULT, "data", allow_duplicate=True),
    "other": commands.other(),
    "custom": Output(ids.CUSTOM, "data", allow_duplicate=True),
    "collectives": Output(ids.COLLECTIVE, "data", allow_duplicate=True),
    "collective": Output(ids.COLLECTIVE, "value", allow_duplicate=True),
    "size": Output(ids.SIZE, "value", allow_duplicate=True),
    "chunks": Output(ids.CHUNKS, "value", allow_duplicate=True),
    "root": Output(ids.ROOT, "value", allow_duplicate=True),
    "formulation": Output(ids.FORMULATION, "value", allow_duplicate=True),
    "options": Output(ids.OPTIONS, "data", allow_duplicate=True),
    "form": Output(ids.OPTIONS_FORM, "children", allow_duplicate=True),
    "sketches": Output(ids.SKETCH, "data", allow_duplicate=True),
    "time_limit": Output(ids.TIME_LIMIT, "value", allow_duplicate=True),
    "gap": Output(ids.GAP, "value", allow_duplicate=True),
    "refused": Output(ids.LINK_REFUSED, "data"),
    "notes": commands.notes(),
}
"""What a link can change, by a short name."""


def register(app: Dash, apart: Apart) -> None:
    """Wire links."""
    _copy(app)
    _open(app, apart)


def _copy(app: Dash) -> None:
    @app.callback(
        output={"copy": Output(ids.LINK_COPY, "data"), "notes": commands.notes()},
        inputs={"clicks": Input(ids.COPY_LINK, "n_clicks")},
        state={
            "drawing": State(ids.CANVAS, "drawing"),
            "asked": State(ids.REQUEST, "data"),
            "result": State(ids.RESULT, "data"),
        },
        prevent_initial_call=True,
    )
    def on_copy(clicks: int, drawing: Json, asked: Json | None, result: Json | None) -> Json:
        nothing = {"copy": no_update, "notes": no_update}
        if not clicks:
            return nothing
        try:
            fragment = sharing.fragment(drawing, asked)
        except TooLarge as error:
            return {**nothing, "notes": _as_file(str(error))}
        except CclError as error:
            return {**nothing, "notes": note(str(error), title="No link")}
        lost = "the schedule, which is solved again" if result is not None else ""
        number = time.time_ns() // 1000
        return {**nothing, "copy": {"fragment": fragment, "lost": lost, "n": number}}

    app.clientside_callback(
        ClientsideFunction("share", "copied"),
        Input(ids.LINK_COPY, "data"),
        prevent_initial_call=True,
    )

    @app.callback(
        Output(ids.DOWNLOAD, "data", allow_duplicate=True),
        Input(ids.LINK_FILE, "data"),
        State(ids.CANVAS, "drawing"),
        State(ids.REQUEST, "data"),
        prevent_initial_call=True,
    )
    def on_file(clicked: int | None, drawing: Json, asked: Json | None) -> Any:
        if not clicked:
            return no_update
        try:
            content = files.export_json(drawing, asked, None)
        except CclError:  # what is asked cannot be solved, but what is drawn can be kept
            content = files.save_drawing(drawing)
        name = files.file_name(drawing["topology"], "json")
        return {"content": content, "filename": name}


def _as_file(sentence: str) -> list[Json]:
    """Say that no link holds it, with a button for the file that does."""
    # A notification draws one component, nothing nested in it and without callbacks: the words are
    # the title, and the page itself hears the button.
    shown = note(sentence, title=text.sentence(sentence))[0]
    save = dmc.Button(
        "Save the file", className="ds-share-file", size="compact-sm", variant="default", mt=6
    )
    return [{**shown, "message": save}]


def _open(app: Dash, apart: Apart) -> None:
    app.clientside_callback(
        ClientsideFunction("share", "opened"),
        Output(ids.LINKED, "data"),
        Input(ids.HOME, "data"),
    )

    app.clientside_callback(
        ClientsideFunction("share", "refused"),
        Input(ids.LINK_REFUSED, "data"),
        State(ids.HOME, "data"),
        prevent_initial_call=True,
    )

    @app.callback(
        output=OUTPUTS,
        inputs={"link": Input(ids.LINKED, "data")},
        state={"options": State(ids.OPTIONS, "data"), "sketches": State(ids.SKETCH, "data")},
        prevent_initial_call=True,
    )
    def on_link(link: Json | None, options: Json | None, sketches: Json | None) -> Json:
        changes = _apart(apart, link["fragment"], options, sketches) if link else {}
        return {key: changes.get(key, no_update) for key in OUTPUTS}


def _apart(apart: Apart, fragment: str, options: Json | None, sketches: Json | None) -> Json:
    """Return what a link changes on the page, read by a process of its own."""
    try:
        found: Json = apart.call(
            NAME, changes_of, fragment, options, sketches=sketches, session=visitor()
        )
    except CclError as error:
        return _refused(fragment, error)
    return found


def changes_of(fragment: str, options: Json | None, *, sketches: Json | None) -> Json:
    """Return what a link changes on the page, by the names of `OUTPUTS`.

    Parameters
    ----------
    fragment
        What stands behind ``#t=``.
    options, sketches
        What the page keeps for all formulations.
    """
    try:
        found = sharing.linked(fragment)
    except CclError as error:
        return _refused(fragment, error)
    changes = importing.shown(found.opened)
    name = found.formulation
    if name is not None:
        own = {**found.options, **found.sketches.get(name, {})}
        changes |= {
            **found.limits,
            "formulation": name,
            "options": {**(options or {}), name: found.options},
            "form": option_form(name, own),
            "sketches": {
                **{k: v for k, v in (sketches or {}).items() if k != name},
                **found.sketches,
            },
        }
    told = "what you drew before is kept under the address without the link"
    if found.left_out:
        told += f". Left out: {'; '.join(found.left_out)}"
    drawn = found.opened.drawing or {}
    opened = f"{drawn['topology']['name']} came with the link"
    return {**changes, "notes": note(f"{opened}; {told}", "plain", title="Opened from a link")}


def _refused(fragment: str, error: CclError) -> Json:
    told = str(error).removeprefix(f"{NAME}: ")
    return {"refused": fragment, "notes": note(told, title="Cannot open the link")}
