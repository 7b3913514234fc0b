"""The wizard: hosts, NICs, leaves and spines by numbers, with a picture of what they make.

What does not fit is said beside its field; the result is a drawing like any other, opened instead
of the one that is there or added beside it, as one step that can be undone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, html

from ccl import text
from ccl.errors import CclError
from ccl.layout import layout
from ccl.serialization.quantity import KINDS, parse_quantity
from designer.shell import ids, request, ui
from designer.shell.request import Json, callback
from designer.views.draw.files import drawing_of
from designer.views.draw.thumbnails import counted, picture, tiers
from gallery.build import Wire
from gallery.leaf_spine import Fabric, Plan, build, find_faults, size_fabric
from widgets import QuantityField

TITLE = "Hosts, leaves, spines"
"""Of the dialog and of the button that opens it."""
MOST_DRAWN = 64
"""Devices up to which the preview draws each; of more it shows the tiers."""

COUNTS: dict[str, tuple[str, Any]] = {
    "hosts": ("Hosts", 4),
    "gpus": ("GPUs in each", 4),
    "nics": ("NICs in each host", 4),
    "leaf_radix": ("Radix of a leaf", 32),
    "leaves": ("Leaves", None),
    "spine_radix": ("Radix of a spine", 32),
    "oversubscription": ("Oversubscription", 1),
}
"""Of each field for a number its label and what it begins with."""
NOTES = {"leaves": "empty: as few as fit", "oversubscription": "into a leaf over to the spines"}
WIRES = {
    "inner": ("Links inside", "nvlink4"),
    "bus": ("GPU to NIC", "pcie5"),
    "port": ("NIC to leaf", "ndr"),
    "uplink": ("Leaf to spine", "ndr"),
}
"""Of each choice of a link type its label and what it begins with."""
CHOICES: dict[str, tuple[str, dict[str, str]]] = {
    "joined": ("Joined by", {"switch": "A switch", "mesh": "Full mesh", "ring": "Ring"}),
    "rails": ("NICs go to", {"rails": "A leaf per rail", "leaf": "One leaf per host"}),
}
GROUPS = (
    ("Hosts", ("hosts", "gpus", "joined", "inner")),
    ("NICs", ("nics", "rails", "bus", "port")),
    ("Leaves and spines", ("leaf_radix", "leaves", "spine_radix", "oversubscription", "uplink")),
)


def field_id(name: str) -> str:
    """Return the id of a field."""
    return f"{ids.WIZARD}-{name}"


def dialog() -> dmc.Modal:
    """Return the dialog, closed."""
    groups = [
        html.Fieldset([html.Legend(title), *map(_field, names)], className="ds-wizard-group")
        for title, names in GROUPS
    ]
    return ui.modal(
        ids.WIZARD,
        TITLE,
        1000,
        ui.div(
            "ds-wizard",
            ui.div("ds-wizard-form", *groups),
            ui.section(
                "Preview",
                html.Div(id=ids.WIZARD_PREVIEW),
                dmc.Group(
                    [
                        ui.button("Add beside the drawing", ids.WIZARD_ADD, variant="default"),
                        ui.button("Open as a new drawing", ids.WIZARD_OPEN),
                    ],
                    justify="flex-end",
                    mt="md",
                ),
                className="ds-wizard-preview",
            ),
        ),
    )


def _field(name: str) -> Any:
    """Return the field for a number, a link type or a choice."""
    key = field_id(name)
    if name in COUNTS:
        label, value = COUNTS[name]
        return QuantityField(
            id=key,
            label=label,
            what=label.lower(),
            value=value,
            kind="number" if name == "oversubscription" else "count",
            optional=name == "leaves",
            placeholder=NOTES.get(name, ""),
            title=NOTES.get(name, ""),
            debounce=250,
            size="xs",
        )
    label, choices, value = _choice(name)
    return ui.select(key, choices, label=label, value=value, size="xs")


def _choice(name: str) -> tuple[str, dict[str, str], str]:
    if name in WIRES:
        label, value = WIRES[name]
        types = {each.key: f"{each.label} · {each.bandwidth:g} GB/s" for each in ui.LINK_TYPES}
        return label, types, value
    label, choices = CHOICES[name]
    return label, choices, next(iter(choices))


def read_plan(values: Mapping[str, Any]) -> Plan | None:
    """Return what the fields say, None where one of them says what it refuses.

    Parameters
    ----------
    values
        Of each field by its name.
    """
    numbers: dict[str, Any] = {}
    for name, (label, _) in COUNTS.items():
        kind = KINDS["number" if name == "oversubscription" else "count"]
        given = values.get(name)
        if name == "leaves" and given in {None, ""}:
            given = 0
        try:
            numbers[name] = parse_quantity(given, kind, what=label.lower())
        except CclError:
            return None
    wires: dict[str, Any] = {
        name: _wire(values.get(name) or usual) for name, (_, usual) in WIRES.items()
    }
    rails = values.get("rails") != "leaf"
    return Plan(**numbers, **wires, rails=rails, joined=values.get("joined") or "switch")


def _wire(key: str) -> Wire:
    return Wire(**ui.link_type(key).preset())


def title_of(plan: Plan) -> str:
    """Return what the drawing is called."""
    return f"{plan.hosts} × {text.count(plan.gpus, 'GPU')}, leaf and spine"


def preview(plan: Plan) -> list[Any]:
    """Return the picture of a plan that fits, and what it takes."""
    fabric, made = size_fabric(plan), build(plan, title_of(plan))
    gpus, *rest = counted(made).split(" · ")
    words = " · ".join((gpus, text.count(plan.hosts * plan.nics, "NIC"), *rest))
    rows = [html.Div([html.Dt(what), html.Dd(value)]) for what, value in facts(plan, fabric)]
    return [
        picture(made, layout(made))
        if len(made.devices) <= MOST_DRAWN
        else tiers(plan, fabric, made, words),
        html.P(words, className="ds-wizard-counts", role="status"),
        html.Dl(rows, className="ds-wizard-facts"),
    ]


def facts(plan: Plan, fabric: Fabric) -> list[tuple[str, str]]:
    """Return what a fabric takes, as pairs of what it is and its value."""
    leaves = f"{fabric.leaves}, {fabric.leaf_ports} of {plan.leaf_radix} ports used"
    if not fabric.spines:
        return [
            ("Leaves", leaves),
            ("Spines", "none above a single leaf"),
            ("Bisection", f"{text.digits(fabric.bisection)} GB/s"),
        ]
    one = ", drawn as one" if fabric.parallel > 1 else ""
    return [
        ("Leaves", leaves),
        ("Spines", f"{fabric.spines}, {fabric.spine_ports} of {plan.spine_radix} ports used"),
        ("Leaf to spine", f"{text.count(fabric.parallel, 'link')} from each to each{one}"),
        ("Oversubscription", f"{text.digits(fabric.oversubscription)} : 1{_room(plan, fabric)}"),
        ("Bisection", f"{text.digits(fabric.bisection)} GB/s one way between halves of the hosts"),
    ]


def _room(plan: Plan, fabric: Fabric) -> str:
    """Say by how much whole links do better than what is allowed, if they do."""
    most = text.digits(plan.oversubscription)
    better = text.digits(fabric.oversubscription) != most
    return f", as links are whole; at most {most} : 1" if better else ""


FIELDS = tuple(name for _, names in GROUPS for name in names)


def register(app: Dash) -> None:
    """Wire the dialog."""
    app.clientside_callback(
        "(clicks) => (clicks ? true : window.dash_clientside.no_update)",
        Output(ids.WIZARD, "opened"),
        Input(ids.WIZARD_BUTTON, "n_clicks"),
    )

    @callback(
        app,
        output={
            "preview": Output(ids.WIZARD_PREVIEW, "children"),
            **{name: Output(field_id(name), "trouble") for name in COUNTS},
            "add": Output(ids.WIZARD_ADD, "disabled"),
            "open": Output(ids.WIZARD_OPEN, "disabled"),
        },
        inputs={
            "opened": Input(ids.WIZARD, "opened"),
            "values": [Input(field_id(name), "value") for name in FIELDS],
        },
    )
    def on_field(*, opened: bool, values: Sequence[Any]) -> Json:
        if not opened:
            return {}
        plan = read_plan(dict(zip(FIELDS, values, strict=True)))
        faults = {} if plan is None else find_faults(plan)
        said = {name: faults.get(name) for name in COUNTS}
        if plan is None or faults:
            words = "The picture follows once the fields that are marked fit."
            shown: Any = html.P(words, className="ds-quiet ds-wizard-picture")
            return {"preview": shown, **said, "add": True, "open": True}
        return {"preview": preview(plan), **said, "add": False, "open": False}

    @callback(
        app,
        output={
            **request.changes("drawing", "command", "other", "notes"),
            "opened": Output(ids.WIZARD, "opened", allow_duplicate=True),
        },
        inputs={
            "open": Input(ids.WIZARD_OPEN, "n_clicks"),
            "add": Input(ids.WIZARD_ADD, "n_clicks"),
        },
        state={"values": [State(field_id(name), "value") for name in FIELDS]},
    )
    def on_made(values: Sequence[Any], **_: Any) -> Json:
        plan = read_plan(dict(zip(FIELDS, values, strict=True)))
        if plan is None:
            return {}
        try:
            drawing = drawing_of(build(plan, title_of(plan)))
        except CclError as error:
            return {"notes": ui.note(str(error))}
        if ctx.triggered_id == ids.WIZARD_ADD:
            command = {"name": "insert", "args": {"drawing": drawing}}
            return {"command": request.numbered(command), "opened": False}
        return {
            "drawing": request.as_document(drawing),
            "command": request.fit(),
            "other": request.now(),
            "opened": False,
        }
