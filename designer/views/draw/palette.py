"""The palette at the left: devices and link types to draw with, and ready clusters to open."""

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import (
    ALL,
    ClientsideFunction,
    Dash,
    Input,
    Output,
    State,
    ctx,
    html,
    no_update,
    set_props,
)

from ccl import text
from ccl.errors import CclError
from ccl.topology import Topology
from designer.shell import ids, request, ui
from designer.shell.request import Json, callback
from designer.views.draw import wizard
from designer.views.draw.edits import command
from designer.views.draw.files import drawing_of
from designer.views.draw.thumbnails import counted, thumbnail
from gallery import Entry, Parameter, catalog, entry, open_cluster
from widgets import QuantityField


def palette() -> dmc.AppShellNavbar:
    """Return the panel; the list of clusters is filled by a callback."""
    return dmc.AppShellNavbar(
        className="ds-side ds-left",
        children=[
            ui.card("Devices", ui.div("ds-tiles", [_device(each) for each in ui.DEVICE_TYPES])),
            ui.card("Link type", _palette_links()),
            _gallery(),
            dmc.UnstyledButton(
                [dmc.Kbd("?", size="xs"), "Keyboard shortcuts"],
                id=ids.SHORTCUTS_OPEN,
                className="ds-help",
            ),
        ],
    )


def _device(device: ui.DeviceType) -> html.Button:
    return ui.press(
        [ui.icon(device.kind), html.Span(device.label), html.Kbd(device.key)],
        {"device": device.kind},
        f"ds-tile ds-{device.kind}",
        draggable="true",
        title=f"{device.label}: {device.note}. Drag it onto the canvas, or click; with Shift it is "
        "linked to all that is selected.",
        data_topology=device.kind,
    )


def _palette_links() -> dmc.RadioGroup:
    return dmc.RadioGroup(
        ui.div("ds-links", [_link(each) for each in ui.LINK_TYPES]),
        id=ids.LINK_TYPE,
        value=ui.DEFAULT_LINK,
        persistence=True,
        persistence_type="local",
        **ui.attributes(aria_label="Type of the next link"),
    )


def _link(link: ui.LinkType) -> dmc.RadioCard:
    return dmc.RadioCard(
        [
            html.I(style={"height": f"{link.width:.1f}px"}, **ui.attributes(aria_hidden="true")),
            html.Span(link.label),
            html.Small(f"{link.bandwidth:g} GB/s"),
        ],
        value=link.key,
        className="ds-link",
        withBorder=False,
        attributes={
            "root": {
                "title": f"{link.label}: {link.bandwidth:g} GB/s ({link.bandwidth * 8:,.0f} Gb/s)"
                f" each way, alpha {link.alpha:g} µs; {link.note}"
            }
        },
    )


def _gallery() -> Any:
    return ui.section(
        "Gallery",
        ui.folding("Gallery", ui.quiet("New", ids.NEW)),
        ui.button(
            f"{wizard.TITLE} …",
            ids.WIZARD_BUTTON,
            "host",
            attributes={"root": {"title": "Build a cluster by numbers, with ports checked (D)"}},
            size="xs",
            variant="default",
            fullWidth=True,
            mb=8,
        ),
        dmc.TextInput(
            id=ids.GALLERY_SEARCH,
            placeholder="Search clusters",
            leftSection=ui.icon("search"),
            size="xs",
            debounce=200,
            **ui.attributes(aria_label="Search clusters"),
        ),
        html.Div(id=ids.GALLERY_LIST, className="ds-gallery"),
    )


def dialog() -> dmc.Modal:
    """Return the dialog of a cluster, closed."""
    return ui.modal(
        ids.GALLERY_DIALOG,
        "Open a cluster",
        460,
        html.Div(id=ids.GALLERY_FORM),
        dmc.Group(ui.button("Open", ids.GALLERY_OPEN), justify="flex-end", mt="lg"),
    )


def matching(search: str | None) -> list[Entry]:
    """Return the entries that have every word searched for, those called so before the others."""
    words = (search or "").lower().split()

    def has_all(told: str) -> bool:
        return all(word in told.lower() for word in words)

    found = [
        each
        for each in catalog()
        if has_all(f"{each.name} {each.title} {each.family} {each.summary}")
    ]
    return sorted(found, key=lambda each: not has_all(f"{each.name} {each.title}"))


def cluster_list(search: str | None) -> list[Any]:
    """Return a button for each entry that matches, family by family."""
    found = matching(search)
    if not found:
        return [html.P(f"No cluster matches “{search}”.", className="ds-quiet")]
    return [_button(each) for each in found]


def _button(found: Entry) -> html.Button:
    return ui.press(
        [
            html.I(className="ds-thumb", style={"--thumb": f'url("{thumbnail(found.name)}")'}),
            html.Span([found.title, html.Small(counted(found.make()))]),
        ],
        {"cluster": found.name},
        "ds-cluster",
        title=found.summary,
    )


def cluster_form(name: str) -> list[Any]:
    """Return what the dialog shows of an entry: its story and a row per parameter."""
    found = entry(name)
    return [
        dmc.Text(found.title, fw=640),
        dmc.Text(found.summary, size="sm", c="dimmed", mb="sm"),
        ui.div(
            "ds-parameters",
            [_field(each) for each in sorted(found.parameters, key=lambda one: one.kind == "bool")],
        ),
        _figures(found),
    ]


def _field(parameter: Parameter) -> Any:
    label = parameter.name.replace("_", " ").capitalize()
    props: Json = {
        "id": {"parameter": parameter.name},
        "label": label,
        "description": parameter.meaning,
        "size": "sm",
    }
    if parameter.kind == "bool":
        return dmc.Switch(checked=bool(parameter.default), className="ds-wide", **props)
    if parameter.kind == "choice":
        return dmc.Select(
            data=list(parameter.choices), value=parameter.default, allowDeselect=False, **props
        )
    if parameter.kind == "shape":
        return dmc.TextInput(value="x".join(str(each) for each in parameter.default), **props)
    kind = "count" if parameter.kind == "int" else "number"
    # The value follows while it is typed, so that nothing moves under a press of Open.
    return QuantityField(
        value=parameter.default, kind=kind, what=label, least=0, debounce=300, **props
    )


def _figures(found: Entry) -> Any:
    rows = [
        html.Li([f"{each.what}: ", html.B(each.value), f" ({each.standing})"])
        for each in found.figures
    ]
    return ui.div("ds-facts ds-story", html.Ul(rows), html.Div(["Source: ", found.source]))


def opened(name: str, values: Mapping[str, Any]) -> Topology:
    """Make a cluster from the values of its form.

    Raises
    ------
    ProblemError
        If a value is not one that the parameter takes.
    """
    given = ",".join(
        f"{key}={str(value).lower() if isinstance(value, bool) else value}"
        for key, value in values.items()
    )
    return open_cluster(f"{name}:{given}" if given else name)


EMPTY: Json = {
    "topology": {"name": "untitled", "devices": [], "links": [], "limits": []},
    "positions": {},
}


def refused(name: str, sentence: str) -> Json:
    """Say why a cluster cannot be made, beside the field of the parameter that it begins with."""
    words = sentence.removeprefix(f"{name}: ")
    for each in entry(name).parameters:
        if words.startswith((f"{each.name} ", f"{each.name}=")):
            own = each.kind in {"bool", "choice", "shape"}  # the others are quantities
            said = {"error": text.sentence(sentence)} if own else {"trouble": sentence}
            set_props({"parameter": each.name}, said)
            return {}
    return {"notes": ui.note(sentence)}


def register(app: Dash) -> None:
    """Wire the palette; what must be quick runs in the page (assets/designer.js)."""
    for name, pressed in (
        ("add", Input({"device": ALL}, "n_clicks")),
        ("shortcuts", Input(ids.SHORTCUTS_OPEN, "n_clicks")),
    ):
        app.clientside_callback(ClientsideFunction("topoloom", name), request.output(), pressed)
    _link_types(app)
    _clusters(app)
    _unmark(app)
    _open(app)


def _link_types(app: Dash) -> None:
    """Wire the type of the next link, which those that are selected get, too."""

    @app.callback(
        Output(ids.CANVAS, "link_preset"), Input(ids.LINK_TYPE, "value"), prevent_initial_call=False
    )
    def on_link_type(key: str) -> dict[str, Any]:
        return ui.link_type(key).preset()

    @app.callback(request.output(), Input(ids.LINK_TYPE, "value"), State(ids.CANVAS, "selection"))
    def on_type_of_selected(key: str, selection: Any) -> Any:
        if not (selection or {}).get("links"):
            return no_update
        return request.numbered(command("edit_links", values=ui.link_type(key).preset()))


def _clusters(app: Dash) -> None:
    """Wire the list of clusters, and the form of the one that is pressed."""

    @app.callback(
        Output(ids.GALLERY_LIST, "children"),
        Input(ids.GALLERY_SEARCH, "value"),
        prevent_initial_call=False,
    )
    def on_search(words: str | None) -> Any:
        return cluster_list(words)

    @callback(
        app,
        output={
            "gallery_dialog_opened": Output(ids.GALLERY_DIALOG, "opened"),
            "gallery_form": Output(ids.GALLERY_FORM, "children"),
            "gallery_open_name": Output(ids.GALLERY_OPEN, "name"),
        },
        inputs={"clicks": Input({"cluster": ALL}, "n_clicks")},
    )
    def on_cluster(clicks: list[int | None]) -> Json:
        if not any(clicks) or not ctx.triggered_id:
            return {}
        name = ctx.triggered_id["cluster"]
        return {
            "gallery_dialog_opened": True,
            "gallery_form": cluster_form(name),
            "gallery_open_name": name,
        }


def _unmark(app: Dash) -> None:
    """Wire a field that is changed, which says no more why it was refused."""
    app.clientside_callback(
        ClientsideFunction("topoloom", "unmark"), Input({"parameter": ALL}, "value")
    )


def _open(app: Dash) -> None:
    """Wire the clusters that are opened, and the drawing that is begun anew."""

    @callback(
        app,
        output={
            **request.changes("drawing", "command", "other", "notes"),
            "gallery_dialog_opened": Output(ids.GALLERY_DIALOG, "opened", allow_duplicate=True),
        },
        inputs={"clicks": Input(ids.GALLERY_OPEN, "n_clicks")},
        state={
            "name": State(ids.GALLERY_OPEN, "name"),
            "parameter": State({"parameter": ALL}, "value"),
            "parameter_checked": State({"parameter": ALL}, "checked"),
        },
    )
    def on_open(name: str, **_: Any) -> Json:
        rows = [row for group in ctx.states_list[1:] for row in group]
        given = {row["id"]["parameter"]: row["value"] for row in rows if "value" in row}
        try:
            drawing = drawing_of(opened(name, given))
        except CclError as error:
            return refused(name, str(error))
        return {
            "drawing": request.as_document(drawing),
            "command": request.fit(),
            "gallery_dialog_opened": False,
            "other": request.now(),
        }

    @callback(
        app,
        output=request.changes("drawing", "other", "notes"),
        inputs={"clicks": Input(ids.NEW, "n_clicks")},
        state={"drawing": State(ids.CANVAS, "drawing")},
    )
    def on_new(drawing: Json, **_: Any) -> Json:
        before = drawing["topology"]
        begun = {"drawing": request.as_document(EMPTY), "other": request.now()}
        if not before["devices"]:
            return begun
        told = (
            f"Ctrl+Z brings {before['name']} back, after a reload as well; it is kept among the"
            " drawings"
        )
        return {**begun, "notes": ui.note(told, "plain", title="A new drawing")}
