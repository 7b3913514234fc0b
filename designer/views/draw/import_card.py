"""What a file holds, asked and told before it changes anything.

Opening files of any format: read, ask, show what was found, take it over or add it.

A plan that was found elsewhere, a row of a table say, put on the canvas.
"""

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import ALL, ClientsideFunction, Dash, Input, Output, State, html

from ccl import text
from ccl.errors import CclError, FormatError
from ccl.result import Result
from ccl.serialization.topoloom import result_to_json
from ccl.topology import Topology
from designer.server.reading import Apart
from designer.server.sessions import visitor
from designer.shell import ids, request, ui
from designer.shell.request import callback, plan
from designer.views.draw import importing
from designer.views.draw.files import Opened, check_size, decoded, drawing_of, settings_of
from designer.views.draw.importing import Brings, Found
from designer.views.solve import assess as answers
from designer.views.solve.header import collective_choices
from interchange.formats.format import Question, Reader, Report
from widgets.view_model.gap import course

LISTS = (
    ("taken", "Taken", "check"),
    ("assumed", "Assumed", "info"),
    ("left_out", "Left out", "close"),
)
"""(field of a report, heading, icon)."""

TAKES: dict[Brings, str] = {
    "topology": "Replace the drawing",
    "problem": "Open the problem",
    "plan": "Play the plan",
    "sketch": "Use the sketch",
    "paths": "Draw over the cluster",
}
"""What the button says that takes over what a file brings."""


def dialog() -> dmc.Modal:
    """Return the dialog, closed."""
    return ui.modal(
        ids.IMPORT_DIALOG,
        "Import",
        640,
        html.Div(id=ids.IMPORT_TROUBLE, role="alert"),
        html.Div(id=ids.IMPORT_BODY),
    )


def trouble(sentence: str) -> html.Div:
    """Return why a file cannot be read as asked."""
    return ui.banner("warning", "bad", text.sentence(sentence))


def found_card(found: Found, name: str, *, settings: Mapping[str, str], merges: bool) -> list[Any]:
    """Return what is in a file and what can be done with it.

    Parameters
    ----------
    found, name
        The file.
    settings
        With which it was read.
    merges
        Whether it can be added to what is drawn.
    """
    figures = [
        html.Div([html.B(large), html.Span(what)]) for large, what in importing.figures(found)
    ]
    take = TAKES[found.brings]
    return [
        _head(name, found.reader),
        ui.div("ds-imp-figures", figures) if figures else None,
        ui.div(
            "ds-imp-lists",
            report_lists(found.imported.report),
            tabIndex=0,
            role="group",
            aria_label="What was made of the file",
        ),
        _settings(found.reader, settings),
        _foot(
            [
                ui.button("Add to the drawing", {"import-do": "add"}, variant="default")
                if merges
                else None,
                ui.button(take, {"import-do": "take"}, data_autofocus=True),
            ]
        ),
    ]


def question_card(question: Question, name: str, *, reader: Reader) -> list[Any]:
    """Return what only the user knows, with a button for each answer."""
    words = str(question).removeprefix(f"{name}:").strip()
    answers = [
        ui.button(
            [html.Span(text.sentence(told)[:-1]), html.Code(answer)],
            {"import-answer": answer, "of": question.key},
            variant="default",
            fullWidth=True,
            className="ds-imp-answer",
            **ui.attributes(data_autofocus=True) if i == 0 else {},
        )
        for i, (answer, told) in enumerate(question.choices.items())
    ]
    return [
        _head(name, reader),
        html.P(text.sentence(words), className="ds-imp-question", id="import-question"),
        ui.div("ds-imp-answers", answers, role="group", aria_labelledby="import-question"),
        _foot([]),
    ]


def merged_card(report: Report, name: str, *, reader: Reader) -> list[Any]:
    """Return what became of a file that was added to the drawing."""
    return [
        _head(name, reader),
        ui.banner("check", "good", "Added to the drawing; Ctrl+Z takes it back."),
        ui.div("ds-imp-lists", report_lists(report)),
        ui.div("ds-imp-foot", ui.button("Done", ids.IMPORT_CLOSE, data_autofocus=True)),
    ]


def report_lists(report: Report) -> list[Any]:
    """Return a report as up to three lists."""
    return [
        html.Section(
            [
                html.H3([ui.icon(picture), title]),
                html.Ul([html.Li(text.sentence(each)) for each in getattr(report, field)]),
            ],
            className=f"ds-imp-{field.replace('_', '-')}",
        )
        for field, title, picture in LISTS
        if getattr(report, field)
    ]


def _head(name: str, reader: Reader) -> html.Div:
    return ui.div("ds-imp-head", ui.icon("file"), html.B(name, title=name), html.Span(reader.title))


def _settings(reader: Reader, settings: Mapping[str, str]) -> html.Details | None:
    """Return the form with which the file can be read again."""
    if not reader.settings:
        return None
    said = [name for name in reader.settings if settings.get(name)]
    fields = [
        dmc.TextInput(
            id={"import-setting": name},
            label=name,
            description=text.sentence(words),
            value=settings.get(name, ""),
            size="xs",
        )
        for name, words in reader.settings.items()
    ]
    again = ui.button(
        "Read again", {"import-again": "settings"}, "repeat", variant="default", size="xs"
    )
    told = f" ({text.count(len(said), 'answer')} given)" if said else ""
    return ui.fold(
        f"Read again with other settings{told}",
        ui.div("ds-imp-fields", fields),
        ui.div("ds-imp-again", again),
        look="ds-fold ds-imp-settings",
    )


def _foot(buttons: list[Any]) -> html.Div:
    return ui.div(
        "ds-imp-foot",
        ui.button("Cancel", ids.IMPORT_CLOSE, variant="subtle", color="gray"),
        *[each for each in buttons if each is not None],
    )


Json = dict[str, Any]

OUTPUTS = {
    **request.changes("drawing", "command", "sketches", "formulation", "layer", "other", "notes"),
    **plan(),
    "custom": Output(ids.CUSTOM, "data"),
    "collectives": Output(ids.COLLECTIVE, "data"),
    "collective": Output(ids.COLLECTIVE, "value"),
    "size": Output(ids.SIZE, "value"),
    "chunks": Output(ids.CHUNKS, "value"),
    "root": Output(ids.ROOT, "value"),
    "paths": Output(ids.PATHS, "data", allow_duplicate=True),
    "file": Output(ids.FILE, "data", allow_duplicate=True),
    "open": Output(ids.IMPORT_DIALOG, "opened", allow_duplicate=True),
    "body": Output(ids.IMPORT_BODY, "children"),
    "trouble": Output(ids.IMPORT_TROUBLE, "children"),
}
"""What a file can change, by a short name."""

SETTINGS = ("collective", "size", "chunks", "root")
DONE: Json = {"file": None, "open": False, "trouble": None}
"""The dialog closes and the content of the file is let go."""


def register(app: Dash, apart: Apart) -> None:
    """Wire the import; what is kept of a file while a question is open stays in the page."""
    _in_page(app)

    @callback(
        app,
        output=OUTPUTS,
        inputs={"file": Input(ids.FILE, "data")},
        state={
            **request.states("drawing", "sketches", "formulation"),
            "asking": State(ids.IMPORT_DIALOG, "opened"),
        },
    )
    def on_file(file: Json | None, **page: Any) -> Json:
        return _apart(apart, file, page) if file else {}


def _in_page(app: Dash) -> None:
    """Wire what needs no server: the steps of a file, and the end of its dialog."""
    for name, *pressed in (
        ("picked", Input(ids.UPLOAD, "contents"), State(ids.UPLOAD, "filename")),
        ("answered", Input({"import-answer": ALL, "of": ALL}, "n_clicks")),
        (
            "again",
            Input({"import-again": ALL}, "n_clicks"),
            State({"import-setting": ALL}, "value"),
            State({"import-setting": ALL}, "id"),
        ),
        ("done", Input({"import-do": ALL}, "n_clicks")),
    ):
        app.clientside_callback(
            ClientsideFunction("exchange", str(name)),
            Output(ids.FILE, "data", allow_duplicate=True),
            *pressed,
            State(ids.FILE, "data"),
        )
    app.clientside_callback(
        ClientsideFunction("exchange", "closed"), Input(ids.IMPORT_DIALOG, "opened")
    )
    app.clientside_callback(
        ClientsideFunction("exchange", "shown"), Input(ids.IMPORT_BODY, "children")
    )
    app.clientside_callback(
        # The button comes with the card, which nobody has pressed yet.
        "(clicks) => (clicks ? false : window.dash_clientside.no_update)",
        Output(ids.IMPORT_DIALOG, "opened", allow_duplicate=True),
        Input(ids.IMPORT_CLOSE, "n_clicks"),
    )


def _apart(apart: Apart, file: Json, page: Json) -> Json:
    """Return what a file changes on the page, read by a process of its own."""
    name, many = str(file["name"]), len(file["contents"]) * 3 // 4
    try:
        check_size(name, many)
        found: Json = apart.call(name, changes_of, file, nbytes=many, session=visitor(), **page)
    except CclError as error:
        fresh = file["act"] == "read" and not file["settings"]
        return _trouble(error, asking=page["asking"], fresh=fresh)
    return found


def changes_of(
    file: Json, *, drawing: Json | None, asking: bool, sketches: Json | None, formulation: str
) -> Json:
    """Return what a file changes on the page, by the names of `OUTPUTS`.

    Parameters
    ----------
    file
        ``{name, contents, settings, act}``; `act` is ``read``, ``take`` or ``add``.
    drawing, sketches, formulation
        What is on the page.
    asking
        Whether the dialog is open, so that errors belong there.
    """
    name, settings = str(file["name"]), file["settings"]
    now = importing.current_topology(drawing)
    content = b""
    try:
        content = decoded(file["contents"])
        found = importing.read(name, content, topology=now, settings=settings)
        if found.own or file["act"] == "take":
            return {**_taken(found, now, sketches, formulation), **DONE}
        if file["act"] == "add":
            return _added(found, drawing or {}, name)
    except Question as question:
        reader = importing.reader_of(name, content)
        told = question_card(question, name, reader=reader)
    except CclError as error:
        about = str(error).startswith(name)
        trouble = error if about else FormatError(f"{name}: {error}")
        return _trouble(trouble, asking=asking, fresh=file["act"] == "read" and not settings)
    else:
        merges = importing.mergeable(found, now)
        told = found_card(found, name, settings=settings, merges=merges)
    return {"open": True, "body": told, "trouble": None}


def _trouble(error: CclError, *, asking: bool, fresh: bool) -> Json:
    """Return the changes of a file that cannot be opened; a fresh one has no dialog yet."""
    if asking and not fresh:
        return {"trouble": trouble(str(error))}
    return {
        **(DONE if asking else {"file": None}),
        "notes": ui.note(str(error), title="Cannot open"),
    }


def _taken(found: Found, now: Topology | None, sketches: Json | None, formulation: str) -> Json:
    """Return the changes of a file that is taken over."""
    imported = found.imported
    if imported.sketch is not None:
        name, kept = importing.sketched(imported.sketch, sketches, formulation)
        own = imported.sketch
        chunks = {} if own.chunks is None else {"chunks": own.chunks * own.instances}
        return {"formulation": name, "sketches": kept, **chunks}
    if imported.overlay is not None:
        return {"paths": importing.overlays_of(imported.overlay), "layer": "paths"}
    return opened_changes(importing.opened(found, now))


def _added(found: Found, drawing: Json, name: str) -> Json:
    """Return the changes of a file that is added to the drawing."""
    grown, report = importing.merged(drawing, found.imported.document)
    card = merged_card(report, name, reader=found.reader)
    return {"drawing": grown, "command": request.fit(), "body": card, "trouble": None, "open": True}


def opened_changes(opened: Opened) -> Json:
    """Return the changes of a topology, a problem or a plan that is opened."""
    asked = opened.settings
    changes: Json = {key: asked[key] for key in SETTINGS if key in asked}
    if asked.get("custom"):
        changes |= {"custom": asked["custom"], "collectives": collective_choices(custom=True)}
    if opened.drawing is not None:
        drawn = request.as_document(opened.drawing)
        changes |= {"drawing": drawn, "command": request.fit()}
    if opened.result is None:
        nothing = dict.fromkeys(("scene", "summary", "load", "result"))
        return changes | nothing | {"other": request.now()}
    played = answers.views_of(opened.result, asked)
    return changes | played | {"result": opened.document}


OPENED = (
    "drawing", "command", "scene", "summary", "load", "result", "course", "custom", "collectives",
    "collective", "size", "chunks", "root", "formulation",
)  # fmt: skip
"""What it changes, by the names of `OUTPUTS`."""

BUSY = "a solve is running and shows its own plans; stop it first"


def outputs() -> dict[str, Output]:
    """Return what a plan that is opened changes, for a callback that others share."""
    shared = {
        key: Output(each.component_id, each.component_property, allow_duplicate=True)
        for key, each in OUTPUTS.items()
        if key in OPENED
    }
    return {**shared, **request.changes("view", "notes")}


def refused(sentence: str) -> Json:
    """Return the changes where there is nothing to open, and why."""
    return {"notes": ui.note(sentence, title="Cannot open")}


def opened(result: Result, *, redrawn: bool = True) -> Json:
    """Return what changes on the page when a result is opened on the canvas.

    Parameters
    ----------
    result
        The plan and what it answers.
    redrawn
        Whether the canvas draws its cluster anew; otherwise it is the one that is drawn.
    """
    problem = result.problem
    found = Opened(
        drawing_of(problem.topology) if redrawn else None,
        settings_of(problem),
        result,
        result_to_json(result),
    )
    point = (result.solve_time, result.makespan, result.bound.makespan)
    return {
        **opened_changes(found),
        "formulation": result.formulation,
        "course": course((point,), seconds=result.solve_time, running=False),
        "view": "canvas",
    }
