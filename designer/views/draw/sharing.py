"""Content of the page that a link carries, and what a link changes on the page.

Links: what is on the page into the fragment of one, and one that was opened onto the page.
"""

import time
from dataclasses import dataclass, field
from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, no_update

from ccl import text
from ccl.errors import CclError
from ccl.options import make_options
from designer.server.reading import Apart
from designer.server.sessions import visitor
from designer.shell import ids, ui
from designer.shell import request as commands
from designer.shell.request import callback
from designer.views.draw import exporting, files, import_card
from designer.views.draw.files import Opened, drawing_in, settings_of
from designer.views.solve import sketch
from designer.views.solve.forms import option_form
from formulations import formulation
from interchange.formats.own.fragment import NAME, Share, Solving, TooLarge, fragment_of, share_of

Json = dict[str, Any]


def fragment(drawing: Json, request: Json | None) -> str:
    """Return what is drawn and asked as the fragment of a link.

    Raises
    ------
    TooLarge
        If no link holds it.
    CclError
        If the drawing is no topology.
    """
    return fragment_of(
        Share(exporting.content_of(drawing, request, None), exporting.solving_of(request))
    )


@dataclass(frozen=True, kw_only=True)
class Linked:
    """What a link changes.

    Parameters
    ----------
    opened
        The drawing, and the part of the header that the problem says.
    formulation
        Its name, or None where the link says none.
    options, sketches
        Of the formulation: what stands in its form, and what is drawn.
    limits
        Time limit in s and gap in per cent as their fields hold them.
    left_out
        What the page cannot show, in sentences.
    """

    opened: Opened
    formulation: str | None = None
    options: Json = field(default_factory=dict)
    sketches: Json = field(default_factory=dict)
    limits: Json = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def linked(text: str) -> Linked:
    """Read the fragment of a link.

    Raises
    ------
    CclError
        If it was changed on its way, or what it holds means nothing.
    """
    share = share_of(text)
    found = share.document
    settings: Json = {}
    left_out: list[str] = []
    if found.problem is not None:
        settings = settings_of(found.problem)
        if found.problem.windows:
            left_out.append("times in which links have less bandwidth, which Python asks for")
    opened = Opened(drawing_in(found), settings)
    if share.solving is None:
        return Linked(opened=opened, left_out=tuple(left_out))
    try:
        make_options(formulation(share.solving.formulation).options, share.solving.options)
    except CclError as error:  # of another version of Topoloom
        left_out.append(f"how it is solved: {error}")
        return Linked(opened=opened, left_out=tuple(left_out))
    return _solved(opened, share.solving, tuple(left_out))


def _solved(opened: Opened, solving: Solving, left_out: tuple[str, ...]) -> Linked:
    """Take apart what stands in the form and what is drawn as a sketch."""
    options = {name: value for name, value in solving.options.items() if value is not None}
    drawn = options.pop(sketch.sketch_option(solving.formulation) or "", None)
    gap = solving.gap
    return Linked(
        opened=opened,
        formulation=solving.formulation,
        options=options,
        sketches=sketch.keep({}, solving.formulation, drawn),
        limits={
            "time_limit": "" if solving.time_limit is None else solving.time_limit,
            "gap": "" if gap is None else float(f"{gap * 100:.12g}"),
        },
        left_out=left_out,
    )


OUTPUTS = {
    **import_card.outputs(),
    **commands.changes("other", "options", "sketches"),
    "form": Output(ids.OPTIONS_FORM, "children", allow_duplicate=True),
    "time_limit": Output(ids.TIME_LIMIT, "value", allow_duplicate=True),
    "gap": Output(ids.GAP, "value", allow_duplicate=True),
    "refused": Output(ids.LINK_REFUSED, "data"),
}
"""What a link can change, by a short name."""


def register(app: Dash, apart: Apart) -> None:
    """Wire links."""
    _copy(app)
    _open(app, apart)


def _copy(app: Dash) -> None:
    @callback(
        app,
        output={"copy": Output(ids.LINK_COPY, "data"), "notes": commands.notes()},
        inputs={"clicks": Input(ids.COPY_LINK, "n_clicks")},
        state=commands.states("drawing", "request", "result"),
    )
    def on_copy(clicks: int, drawing: Json, request: Json | None, result: Json | None) -> Json:
        if not clicks:
            return {}
        try:
            made = fragment(drawing, request)
        except TooLarge as error:
            return {"notes": _as_file(str(error))}
        except CclError as error:
            return {"notes": ui.note(str(error), title="No link")}
        lost = "the schedule, which is solved again" if result is not None else ""
        number = time.time_ns() // 1000
        return {"copy": {"fragment": made, "lost": lost, "n": number}}

    app.clientside_callback(ClientsideFunction("share", "copied"), Input(ids.LINK_COPY, "data"))

    @app.callback(
        Output(ids.DOWNLOAD, "data", allow_duplicate=True),
        Input(ids.LINK_FILE, "data"),
        State(ids.CANVAS, "drawing"),
        State(ids.REQUEST, "data"),
    )
    def on_file(clicked: int | None, drawing: Json, asked: Json | None) -> Any:
        if not clicked:
            return no_update
        try:
            content = files.export_json(drawing, asked, None)
        except CclError:  # the request cannot be solved, but what is drawn can be kept
            content = files.save_drawing(drawing)
        name = files.file_name(drawing["topology"], "json")
        return {"content": content, "filename": name}


def _as_file(sentence: str) -> list[Json]:
    """Say that no link holds it, with a button for the file that does."""
    # A notification draws one component, nothing nested in it and without callbacks: the words are
    # the title, and the page itself hears the button.
    shown = ui.note(sentence, title=text.sentence(sentence))[0]
    save = dmc.Button(
        "Save the file", className="ds-share-file", size="compact-sm", variant="default", mt=6
    )
    return [{**shown, "message": save}]


def _open(app: Dash, apart: Apart) -> None:
    app.clientside_callback(
        ClientsideFunction("share", "opened"),
        Output(ids.LINKED, "data"),
        Input(ids.HOME, "data"),
        prevent_initial_call=False,
    )

    app.clientside_callback(
        ClientsideFunction("share", "refused"),
        Input(ids.LINK_REFUSED, "data"),
        State(ids.HOME, "data"),
    )

    @callback(
        app,
        output=OUTPUTS,
        inputs={"link": Input(ids.LINKED, "data")},
        state=commands.states("options", "sketches"),
    )
    def on_link(link: Json | None, options: Json | None, sketches: Json | None) -> Json:
        return _apart(apart, link["fragment"], options, sketches) if link else {}


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
        found = linked(fragment)
    except CclError as error:
        return _refused(fragment, error)
    changes = import_card.opened_changes(found.opened)
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
    return {**changes, "notes": ui.note(f"{opened}; {told}", "plain", title="Opened from a link")}


def _refused(fragment: str, error: CclError) -> Json:
    told = str(error).removeprefix(f"{NAME}: ")
    return {"refused": fragment, "notes": ui.note(told, title="Cannot open the link")}
