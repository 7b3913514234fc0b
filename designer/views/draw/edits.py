"""Edits made beside the canvas, as commands that the canvas carries out and can undo.

Each function takes the JSON of a topology and says what to do; the values are checked here by
making the very nouns, so that a wrong one is refused in the words of `ccl`.

The panel at the left: devices and link types to draw with, and ready clusters.

The drawing itself: restoring and keeping it, its name, what is added to it.

What opens above the page: options, mathematics, a cluster's parameters.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import ALL, ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update

from ccl import topology as nouns
from ccl.errors import ProblemError
from ccl.layout import layout
from ccl.serialization.quantity import COUNT, KINDS, parse_quantity, parse_size
from ccl.serialization.topoloom import topology_from_json
from ccl.topology import Device, Link, SharedLimit
from designer.shell import ids, request, ui
from designer.views.draw import drawings, exporting, import_card, wizard

Json = Mapping[str, Any]
Ends = tuple[str, str]

ABILITIES = ("stores", "copies", "reduces")


def command(name: str, /, **args: Any) -> dict[str, Any]:
    """Return a command without its number, which the page gives it."""
    return {"name": name, "args": args}


def edit_device(topology: Json, names: Sequence[str], field: str, value: Any) -> Any:
    """Change one field of devices; None if that changes nothing.

    Raises
    ------
    CclError
        If the value is not one that the field takes.
    """
    chosen = [each for each in topology["devices"] if each["name"] in set(names)]
    if not chosen:
        return None
    if field == "name":
        return _rename(topology, names[0], str(value or "").strip())
    if field == "buffer":
        field, value = "buffer_bytes", buffer_bytes(value)
    elif field == "host":
        value = str(value).strip() or None if value else None
    if all(each.get(field) == value for each in chosen):
        return None
    values = {field: value}
    if field == "kind":
        values |= dict.fromkeys(ABILITIES)
    for each in chosen:
        Device(**_whole_device({**each, **_with_usual(values)}))
    return command("edit_devices", devices=list(names), values=_with_usual(values))


def edit_link(topology: Json, links: Sequence[Ends], field: str, *, value: Any, both: bool) -> Any:
    """Change one field of links, and of their opposites if `both`; None if nothing changes.

    Raises
    ------
    CclError
        If the value is not one that the field takes.
    """
    chosen = _links(topology, links, both=both)
    if not chosen or (value in {None, ""} and field != "medium"):
        return None
    if field == "duplex":
        values = {"duplex": bool(value)}
        return command("edit_links", links=[list(each) for each in links], values=values)
    value = str(value or "") if field == "medium" else _number(field, value, chosen[0])
    if all(each.get(field) == value for each in chosen):
        return None
    for each in chosen:
        Link(**{**each, field: value})
    return command(
        "edit_links", links=[list(each) for each in links], values={field: value}, both=both
    )


def with_limit(topology: Json, name: str, bandwidth: Any, *, links: Sequence[Ends]) -> Any:
    """Add a shared limit over links.

    Raises
    ------
    CclError
        If the name is taken or the bandwidth not positive.
    """
    limits = list(topology.get("limits", []))
    if not links:
        raise ProblemError("select the links that share the limit first")
    name = name.strip() or _free_name("limit", {each["name"] for each in limits})
    if name in {each["name"] for each in limits}:
        raise ProblemError(f"there is a limit called {name} already; choose another name")
    made = SharedLimit(name, tuple(dict.fromkeys(links)), _number("bandwidth", bandwidth, None))
    added = {
        "name": made.name,
        "links": [list(each) for each in made.links],
        "bandwidth": made.bandwidth,
    }
    return command("edit_limits", limits=[*limits, added])


def edit_limit(topology: Json, name: str, bandwidth: Any) -> Any:
    """Change the bandwidth of a shared limit; None if nothing changes.

    Raises
    ------
    FormatError
        If it is not positive.
    """
    limits = topology.get("limits", [])
    value = _number("bandwidth", bandwidth, None)
    if all(each["bandwidth"] == value for each in limits if each["name"] == name):
        return None
    changed = [{**each, "bandwidth": value} if each["name"] == name else each for each in limits]
    for each in changed:
        SharedLimit(each["name"], tuple((a, b) for a, b in each["links"]), each["bandwidth"])
    return command("edit_limits", limits=changed)


def without_limit(topology: Json, name: str) -> dict[str, Any]:
    """Remove a shared limit."""
    return command(
        "edit_limits", limits=[each for each in topology["limits"] if each["name"] != name]
    )


def buffer_bytes(value: Any) -> float | None:
    """Read a buffer's size as typed; empty means no limit.

    Raises
    ------
    FormatError
        If it is not a size.
    """
    text = str(value or "").strip()
    return parse_size(text) if text else None


def from_form(
    topology: Json, selection: Json | None, *, kind: str, field: str, value: Any, both: bool
) -> Any:
    """Return the command for a field of the inspector that was changed; None if for nothing.

    Parameters
    ----------
    topology, selection
        As they are.
    kind
        Of the field's id: ``device-edit``, ``link-flag`` ...
    field
        What is edited.
    value
        What it was set to.
    both
        Whether opposite links change alike.

    Raises
    ------
    CclError
        If the value is not one that the field takes.
    """
    chosen = selection or {}
    if kind in {"device-edit", "device-flag"}:
        return edit_device(topology, chosen.get("devices") or [], field, value)
    if kind in {"link-edit", "link-flag"}:
        links = selected_links(topology, selection)
        return edit_link(topology, links, field, value=value, both=both)
    if kind == "limit-edit":
        return edit_limit(topology, field, value)
    if kind == "host-edit":
        return _rename_host(chosen, str(value or "").strip())
    return command("align", how=value) if value else None


def from_button(topology: Json, selection: Json | None, *, name: str, form: Json) -> Any:
    """Return the command for a button of the inspector.

    Raises
    ------
    CclError
        If the form beside the button is not filled in right.
    """
    hosts = (selection or {}).get("hosts") or []
    if name == "repeat":
        hosts_in_all = parse_quantity(
            form.get("count"), COUNT, what="the number of hosts", least=2, most=ui.MOST_HOSTS
        )
        times = int(hosts_in_all) - 1
        join = None if form.get("join") == "none" else form.get("join")
        return command("repeat_host", host=hosts[0], times=times, join=join)
    if name == "limit":
        links = _both_ways(topology, selected_links(topology, selection))
        label = str(form.get("name") or "")
        return with_limit(topology, label, form.get("bandwidth"), links=links)
    if name == "drop-limit":
        return without_limit(topology, form["limit"])
    return command(name)


def selected_links(topology: Json, selection: Json | None) -> list[Ends]:
    """Return the selected links that exist, one of each pair of opposites."""
    there = {(each["src"], each["dst"]) for each in topology["links"]}
    found: list[Ends] = []
    for src, dst in (selection or {}).get("links") or []:
        if (src, dst) in there and (dst, src) not in found and (src, dst) not in found:
            found.append((src, dst))
    return found


def _links(topology: Json, links: Sequence[Ends], *, both: bool) -> list[dict[str, Any]]:
    wanted = {ends for a, b in links for ends in (((a, b), (b, a)) if both else ((a, b),))}
    return [each for each in topology["links"] if (each["src"], each["dst"]) in wanted]


def _both_ways(topology: Json, links: Sequence[Ends]) -> list[Ends]:
    """Return the links and, where there are any, their opposites."""
    return [(each["src"], each["dst"]) for each in _links(topology, links, both=True)]


def _rename_host(selection: Json, name: str) -> Any:
    host = selection["hosts"][0]
    if not name:
        raise ProblemError(f"host {host} needs a name that is not empty")
    return None if name == host else command("rename_host", host=host, name=name)


def _rename(topology: Json, old: str, new: str) -> Any:
    if new == old:
        return None
    if not new:
        raise ProblemError(f"device {old} needs a name that is not empty")
    if any(each["name"] == new for each in topology["devices"]):
        raise ProblemError(f"there is a device called {new} already; choose another name")
    return command("rename_device", device=old, name=new)


def _with_usual(values: dict[str, Any]) -> dict[str, Any]:
    """Give a device that changes its kind the abilities of the new one."""
    if "kind" not in values:
        return values
    return {**values, **dict(zip(ABILITIES, nouns.ABILITIES[values["kind"]], strict=True))}


def _whole_device(device: dict[str, Any]) -> dict[str, Any]:
    return {"host": None, "buffer_bytes": None, **device}


def _number(field: str, value: Any, link: Json | None) -> float:
    told = ui.LINK_QUANTITIES[field]
    what = told["what"] if link is None else f"{told['what']} of {link['src']}->{link['dst']}"
    limits = {each: told[each] for each in ("least", "above") if each in told}
    return parse_quantity(value, KINDS[told["kind"]], what=what, **limits)


def _free_name(stem: str, taken: set[str]) -> str:
    number = 0
    while f"{stem}{number}" in taken:
        number += 1
    return f"{stem}{number}"


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


def register(app: Dash) -> None:
    """Wire the drawing; what must be quick runs in the page (assets/designer.js)."""
    _document(app)
    for name, pressed in (
        ("add", Input({"device": ALL}, "n_clicks")),
        ("shortcuts", Input(ids.SHORTCUTS_OPEN, "n_clicks")),
    ):
        app.clientside_callback(ClientsideFunction("topoloom", name), request.output(), pressed)
    app.clientside_callback(
        ClientsideFunction("topoloom", "picture"), Input({"picture": ALL}, "n_clicks")
    )
    app.clientside_callback(
        ClientsideFunction("views", "open"),
        Output("stage", "data-view"),
        Input(ids.VIEW, "value"),
        State(ids.VIEW, "data"),
        prevent_initial_call=False,
    )

    @app.callback(
        Output(ids.CANVAS, "link_preset"), Input(ids.LINK_TYPE, "value"), prevent_initial_call=False
    )
    def on_link_type(key: str) -> dict[str, Any]:
        return ui.link_type(key).preset()

    @app.callback(request.output(), Input(ids.LINK_TYPE, "value"), State(ids.CANVAS, "selection"))
    def on_type_of_selected(key: str, selection: Any) -> Any:
        """Give the links that are selected the type, too."""
        if not (selection or {}).get("links"):
            return no_update
        return request.numbered(command("edit_links", values=ui.link_type(key).preset()))

    @app.callback(request.output(), Input(ids.CANVAS, "request"), State(ids.CANVAS, "drawing"))
    def on_request(asked: Any, drawing: Any) -> Any:
        """Lay the drawing out anew when the canvas asks for it."""
        if (asked or {}).get("name") != "layout":
            return no_update
        places = layout(topology_from_json(drawing["topology"]))
        return request.numbered(command("move", to=places))


def _document(app: Dash) -> None:
    """Wire what is restored when the page opens, kept while it is edited, and renamed."""
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


def dialogs() -> list[Any]:
    """Return every dialog, closed."""
    return [
        _options(),
        _mathematics(),
        _dialogs_gallery(),
        drawings.dialog(),
        import_card.dialog(),
        exporting.dialog(),
        wizard.dialog(),
    ]


def _options() -> dmc.Drawer:
    return dmc.Drawer(
        [
            html.Div(id=ids.OPTIONS_FORM),
            ui.button(
                "Reset to defaults", ids.OPTIONS_RESET, variant="default", mt="lg", fullWidth=True
            ),
        ],
        id=ids.OPTIONS_DRAWER,
        title="Options",
        position="right",
        size=380,
        keepMounted=True,
        classNames={"title": "ds-modal-title"},
        closeButtonProps={"aria-label": "Close"},
    )


def _mathematics() -> dmc.Modal:
    return ui.modal(
        ids.MATHEMATICS,
        "About this formulation",
        900,
        html.Div(id=ids.ABOUT_HEAD),
        html.Div(id=ids.ABOUT_SIZE),
        html.Div(id=ids.MATHEMATICS_TEXT, tabIndex=0),
        dcc.Store(id=ids.ABOUT_REQUEST),
        keepMounted=False,
    )


def _dialogs_gallery() -> dmc.Modal:
    return ui.modal(
        ids.GALLERY_DIALOG,
        "Open a cluster",
        460,
        html.Div(id=ids.GALLERY_FORM),
        dmc.Group(ui.button("Open", ids.GALLERY_OPEN), justify="flex-end", mt="lg"),
    )
