"""The panel of the selection: forms for devices, links and hosts, and the shared limits.

The inspector: showing the selection and turning its fields into commands.
"""

from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import ALL, Dash, Input, Output, State, ctx, html, set_props

from ccl import text
from ccl.errors import CclError
from designer.shell import ids, request, ui
from designer.shell.request import callback
from designer.views.draw import edits
from designer.views.draw.edits import ABILITIES, Ends, Json, selected_links
from widgets import QuantityField

MEANINGS = {
    "stores": "keeps what it received",
    "copies": "sends out more than once what came in once",
    "reduces": "adds contributions together",
}

ALIGNMENTS = (
    ("middle", "In a row"),
    ("centre", "In a column"),
    ("left", "Left edges"),
    ("right", "Right edges"),
    ("top", "Top edges"),
    ("bottom", "Bottom edges"),
    ("distribute_x", "Evenly across"),
    ("distribute_y", "Evenly down"),
)


def inspector(selection: Json | None, topology: Json) -> Any:
    """Return the form for what is selected, or the shared limits where nothing is."""
    chosen = selection or {}
    names = set(chosen.get("devices") or [])
    devices = [each for each in topology["devices"] if each["name"] in names]
    links = selected_links(topology, selection)
    there = {each["host"] for each in topology["devices"] if each.get("host")}
    hosts = [each for each in chosen.get("hosts") or [] if each in there]
    if hosts and not links:
        return _card(_host(hosts, topology))
    if (devices or hosts) and links:
        return _card(_mixed(devices, hosts, links, topology))
    if devices:
        return _card(_device(devices[0]) if len(devices) == 1 else _devices(devices))
    if links:
        return html.Div([_card(_links(topology, links)), _limits(topology, links)])
    return html.Div(
        [
            html.P(
                "Select devices, links or a host to edit them. Hold Shift to take several.",
                className="ds-card ds-quiet",
            ),
            _limits(topology, []),
        ]
    )


def _card(children: list[Any]) -> html.Div:
    return ui.div("ds-card ds-form", children)


def _title(picture: str, words: str, kind: str = "") -> html.Div:
    return ui.div(
        f"ds-form-title ds-{kind}" if kind else "ds-form-title",
        ui.icon(picture),
        html.Span(words, title=words),
    )


def _device(device: Json) -> list[Any]:
    return [
        _title(device["kind"], device["name"], device["kind"]),
        ui.div(
            "ds-pair",
            dmc.TextInput(id={"device-edit": "name"}, label="Name", value=device["name"], **_FIELD),
            ui.select(
                {"device-edit": "kind"},
                {each.kind: each.label for each in ui.DEVICE_TYPES},
                label="Kind",
                value=device["kind"],
            ),
        ),
        ui.div("ds-pair", _host_field(device.get("host")), _buffer_field(device)),
        _abilities([device]),
        _actions(),
    ]


def _buffer_field(device: Json) -> QuantityField:
    return QuantityField(
        id={"device-edit": "buffer"},
        kind="size",
        what="buffer",
        above=0,
        label="Buffer",
        value=_buffer(device.get("buffer_bytes")),
        placeholder="no limit",
        optional=True,
        hold=True,
        verbatim=True,
        subject=device["name"],
    )


def _devices(devices: Sequence[Json]) -> list[Any]:
    hosts = {each.get("host") for each in devices}
    return [
        _title("gpu", text.count(len(devices), "device")),
        ui.div("ds-note", text.listing([each["name"] for each in devices], 6)),
        ui.div(
            "ds-pair",
            _host_field(hosts.pop() if len(hosts) == 1 else "", "several"),
            _align_field(),
        ),
        _abilities(devices),
        _actions(),
    ]


def _align_field() -> dmc.Select:
    return dmc.Select(
        id={"act-value": "align"},
        label="Align",
        placeholder="choose",
        data=[{"value": value, "label": label} for value, label in ALIGNMENTS],
        size="xs",
    )


def _host_field(host: str | None, placeholder: str = "none") -> Any:
    return dmc.TextInput(
        id={"device-edit": "host"},
        label="Host",
        value=host or "",
        placeholder=placeholder,
        **_FIELD,
    )


def _abilities(devices: Sequence[Json]) -> html.Div:
    boxes = []
    for each in ABILITIES:
        values = {bool(device.get(each)) for device in devices}
        boxes.append(
            dmc.Checkbox(
                id={"device-flag": each},
                label=each,
                checked=values == {True},
                indeterminate=len(values) > 1,
                disabled=each == "stores" and any(d["kind"] == "gpu" for d in devices),
                size="xs",
                wrapperProps={"title": MEANINGS[each]},
            )
        )
    return ui.div("ds-abilities", boxes)


def _links(topology: Json, links: Sequence[Ends]) -> list[Any]:
    by_ends = {(each["src"], each["dst"]): each for each in topology["links"]}
    chosen = [by_ends[ends] for ends in links]
    first = chosen[0]
    paired = [ends[::-1] in by_ends for ends in links]
    arrow = "↔" if all(paired) else "→"
    name = f"{first['src']} {arrow} {first['dst']}"
    rate = first["bandwidth"]
    return [
        _title("link", name if len(chosen) == 1 else text.count(len(chosen), "link")),
        ui.div(
            "ds-pair", _number("bandwidth", "Bandwidth", chosen), _number("alpha", "Alpha", chosen)
        ),
        ui.div("ds-pair", _number("count", "Parallel links", chosen), _medium(chosen)),
        ui.div(
            "ds-note",
            f"{text.gigabits(rate)} each way" if all(paired) else f"{text.gigabits(rate)} one way",
        )
        if _same(chosen, "bandwidth") is not None
        else None,
        _directions(paired),
        _actions(copy=False),
    ]


def _medium(links: Sequence[Json]) -> Any:
    return dmc.Autocomplete(
        id={"link-edit": "medium"},
        label="Medium",
        value=_same(links, "medium") or "",
        data=[each.medium for each in ui.LINK_TYPES],
        placeholder="unknown",
        debounce=True,
        size="xs",
    )


def _directions(paired: Sequence[bool]) -> html.Div:
    """Return the switches for links of which some have an opposite one."""
    both = dmc.Switch(
        id={"link-flag": "duplex"}, label="Both directions", checked=all(paired), size="xs"
    )
    alike = dmc.Switch(
        id={"link-option": "both"}, label="Apply to both directions", checked=True, size="xs"
    )
    return ui.div("ds-row", both, alike if any(paired) else None)


def _number(field: str, label: str, links: Sequence[Json]) -> Any:
    value = _same(links, field)
    subject = " ".join(f"{each['src']}->{each['dst']}" for each in links)
    return QuantityField(
        id={"link-edit": field},
        label=label,
        value="" if value is None else value,
        placeholder="several",
        optional=True,
        hold=True,
        subject=subject,
        **ui.LINK_QUANTITIES[field],
    )


def _host(hosts: Sequence[str], topology: Json) -> list[Any]:
    inside = [each for each in topology["devices"] if each.get("host") in set(hosts)]
    rows: list[Any] = [
        _title("host", hosts[0] if len(hosts) == 1 else text.count(len(hosts), "host")),
        ui.div("ds-note", text.count(len(inside), "device")),
    ]
    if len(hosts) == 1:
        rows += [
            dmc.TextInput(id={"host-edit": "name"}, label="Name", value=hosts[0], **_FIELD),
            dmc.Divider(label="Repeat", labelPosition="left"),
            ui.div(
                "ds-pair",
                QuantityField(
                    id={"repeat": "count"},
                    kind="count",
                    what="the number of hosts",
                    label="Hosts in all",
                    value=2,
                    least=2,
                    most=ui.MOST_HOSTS,
                ),
                ui.select(
                    {"repeat": "join"},
                    {"switch": "one switch", "rails": "rails", "none": "not connected"},
                    label="Connected by",
                    value="switch",
                ),
            ),
            ui.div("ds-note", "Connected with the link type chosen at the left."),
            ui.button("Repeat host", {"act": "repeat"}, "repeat", size="xs"),
        ]
    return [*rows, _actions()]


def _mixed(
    devices: Sequence[Json], hosts: Sequence[str], links: Sequence[Ends], topology: Json
) -> list[Any]:
    """Return what fits the parts: align and host of the devices, bandwidth of the links."""
    by_ends = {(each["src"], each["dst"]): each for each in topology["links"]}
    chosen = [by_ends[ends] for ends in links]
    counts = [
        text.count(count, what)
        for count, what in ((len(hosts), "host"), (len(devices), "device"), (len(links), "link"))
        if count
    ]
    of = {each.get("host") for each in devices}
    host = [_host_field(of.pop() if len(of) == 1 else "", "several")] if devices else []
    return [
        _title("links", ", ".join(counts)),
        ui.div("ds-pair", *host, _align_field()),
        ui.div(
            "ds-pair", _number("bandwidth", "Bandwidth", chosen), _number("alpha", "Alpha", chosen)
        ),
        _actions(),
    ]


def _limits(topology: Json, links: Sequence[Ends]) -> Any:
    limits = topology.get("limits", [])
    if not limits and not links:
        return None
    rows: list[Any] = [_title("limit", "Shared limits")] if limits else []
    rows += [_limit(each) for each in limits]
    if links:
        rows.append(_new_limit(len(links)))
    return ui.div("ds-card ds-form", rows, style={"marginTop": 8})


def _new_limit(count: int) -> html.Details:
    """Return the form, folded, that lets the selected links share a limit."""
    pair = ui.div(
        "ds-pair",
        dmc.TextInput(id={"limit-new": "name"}, label="Name", placeholder="PCIe root", size="xs"),
        QuantityField(
            id={"limit-new": "bandwidth"},
            label="Combined bandwidth",
            value="",
            optional=True,
            **ui.LINK_QUANTITIES["bandwidth"],
        ),
    )
    what = text.count(count, "selected link")
    add = ui.button("Add", {"act": "limit"}, "plus", variant="default", size="xs")
    return ui.fold(
        f"Limit what {what} carry together" if count > 1 else f"Limit what the {what[2:]} carries",
        ui.div("ds-form", pair, add),
    )


def _limit(limit: Json) -> html.Div:
    count = text.count(len(limit["links"]), "link")
    return ui.div(
        "ds-limit",
        html.Div([limit["name"], html.Small(count)]),
        QuantityField(
            id={"limit-edit": limit["name"]},
            value=limit["bandwidth"],
            hold=True,
            ariaLabel=f"Bandwidth of {limit['name']}",
            **ui.LINK_QUANTITIES["bandwidth"],
        ),
        dmc.ActionIcon(
            ui.icon("trash"),
            id={"limit-drop": limit["name"]},
            variant="subtle",
            color="gray",
            **ui.attributes(aria_label=f"Remove {limit['name']}"),
        ),
    )


def _actions(*, copy: bool = True) -> html.Div:
    buttons = [("delete", "Delete", "trash")]
    if copy:
        buttons.insert(0, ("duplicate", "Duplicate", "copy"))
    return ui.div(
        "ds-row",
        [
            ui.button(label, {"act": key}, picture, variant="default", size="compact-xs")
            for key, label, picture in buttons
        ],
    )


def _same(links: Sequence[Json], field: str) -> Any:
    """Return the value that all links have, or None if they differ."""
    values = {each.get(field) for each in links}
    return values.pop() if len(values) == 1 else None


def _buffer(nbytes: float | None) -> str:
    """Write a buffer's size without losing a byte, so that it reads back the same."""
    if nbytes is None:
        return ""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if nbytes >= unit and float(f"{nbytes / unit:.6g}") * unit == nbytes:
            return f"{nbytes / unit:.6g} {name}"
    return f"{nbytes:.15g} B"


_FIELD: Json = {"size": "xs", "debounce": True}


def register(app: Dash) -> None:
    """Wire the inspector."""

    @app.callback(
        Output(ids.INSPECTOR, "children"),
        Input(ids.CANVAS, "selection"),
        Input(ids.CANVAS, "drawing"),
        prevent_initial_call=False,
    )
    def on_selection(selection: Json | None, drawing: Json) -> Any:
        return inspector(selection, drawing["topology"])

    _fields(app)
    _buttons(app)


WRITTEN = ("name",)
"""Fields of text that say beside themselves why they are refused."""

FORMS = ("device", "link", "host", "limit")
"""What the fields are about; of devices and links there are boxes to tick as well."""


def _fields(app: Dash) -> None:
    @callback(
        app,
        output={
            **request.changes("command", "notes"),
            "inspector": Output(ids.INSPECTOR, "children", allow_duplicate=True),
        },
        inputs={
            **{name: Input({f"{name}-edit": ALL}, "value") for name in FORMS},
            **{f"{name}_flags": Input({f"{name}-flag": ALL}, "checked") for name in FORMS[:2]},
            "act": Input({"act-value": ALL}, "value"),
        },
        state={
            "both": State({"link-option": ALL}, "checked"),
            **request.states("selection", "drawing"),
        },
    )
    def on_field(both: list[bool], selection: Any, drawing: Any, **_: Any) -> Json:
        if len(ctx.triggered) != 1 or not isinstance(ctx.triggered_id, dict):
            return {}  # the form itself was drawn anew
        (kind, field), value = next(iter(ctx.triggered_id.items())), ctx.triggered[0]["value"]
        try:
            command = edits.from_form(
                drawing["topology"],
                selection,
                kind=kind,
                field=field,
                value=value,
                both=both[0] if both else False,
            )
        except CclError as error:
            if field in WRITTEN:  # what was written stays, to be put right
                set_props(ctx.triggered_id, {"error": text.sentence(str(error))})
                return {}
            # The form is drawn anew, so that it shows what is true, not what was refused.
            return {
                "notes": ui.note(str(error)),
                "inspector": inspector(selection, drawing["topology"]),
            }
        if command is None and field in WRITTEN:  # it is as it was before it was refused
            set_props(ctx.triggered_id, {"error": None})
        return {"command": request.numbered(command)} if command else {}


def _buttons(app: Dash) -> None:
    @callback(
        app,
        output=request.changes("command", "notes"),
        inputs={
            "act": Input({"act": ALL}, "n_clicks"),
            "drop": Input({"limit-drop": ALL}, "n_clicks"),
        },
        state={
            "repeat": State({"repeat": ALL}, "value"),
            "limit": State({"limit-new": ALL}, "value"),
            **request.states("selection", "drawing"),
            "preset": State(ids.CANVAS, "link_preset"),
        },
    )
    def on_button(selection: Any, drawing: Any, preset: Any, **_: Any) -> Json:
        if not ctx.triggered or not ctx.triggered[0]["value"]:
            return {}
        ((kind, name),) = ctx.triggered_id.items()
        form = {
            next(iter(row["id"].values())): row.get("value")
            for group in ctx.states_list[:2]
            for row in group
        }
        try:
            command = edits.from_button(
                drawing["topology"],
                selection,
                name=name if kind == "act" else "drop-limit",
                form={**form, "limit": name, "preset": preset},
            )
        except CclError as error:
            return {"notes": ui.note(str(error))}
        return {"command": request.numbered(command)} if command else {}
