"""What stands before a solve: when it is good enough, how large its model is, what shrinks it.

The header's settings, the options, what can be said at once, and the buttons that put right what
keeps a solve from its end: an option, the chunks, the method.
"""

from typing import Any

import dash_mantine_components as dmc
from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, html, no_update

from ccl import text
from ccl.errors import CclError
from designer.session import topology_of
from designer.shell import ids, ui
from designer.shell.request import DEFAULT_TIME_LIMIT, Json, callback, changes, read_request
from designer.views.solve.assess import (
    Remedy,
    Sizing,
    assess,
    can_solve,
    field_at_fault,
    formulation_choices,
    sizing,
)
from designer.views.solve.forms import PERSISTED, changed, option_form
from formulations import formulation, option_fields
from widgets import QuantityField


def plan_card() -> html.Div:
    """Return the card; the size fills in when it is known."""
    return ui.div(
        "ds-card ds-plan",
        ui.div(
            "ds-enough",
            html.Label("Stop when within", htmlFor=ids.GAP),
            QuantityField(
                id=ids.GAP,
                kind="percent",
                what="the gap",
                least=0,
                value="",
                optional=True,
                placeholder="0 %",
                ariaLabel="Stop when within this gap of the bound, in %",
                className="ds-floating",
                style={"width": 74},
                **PERSISTED,
            ),
            html.Span("of the bound"),
        ),
        html.Div(id=ids.SIZING),
    )


def sizing_summary(sizing: Sizing | None) -> Any:
    """Show the size of the model with its warning and remedies; nothing where there is none."""
    if sizing is None:
        return None
    size = sizing.size
    rows = (
        ("variables", f"{size.variables:,}"),
        ("constraints", f"{size.constraints:,}"),
        ("nonzeros", f"{size.nonzeros:,}"),
        ("memory, about", text.size(size.memory)),
    )
    return ui.fold(
        ["Model: ", html.B(variables(size.variables)), f" · {text.size(size.memory)}"],
        html.Dl(
            [part for name, value in rows for part in (html.Dt(name), html.Dd(value))],
            className="ds-size",
        ),
        *_warning(sizing),
        look="ds-fold ds-sizing",
        open=bool(sizing.warning),
    )


def _warning(sizing: Sizing) -> list[Any]:
    if not sizing.warning:
        return []
    smaller = [ui.div("ds-note", "Smaller with")] if sizing.remedies else []
    buttons = [_remedy(each) for each in sizing.remedies]
    return [
        ui.div("ds-banner ds-bad", ui.icon("warning"), html.Span(sizing.warning)),
        *smaller,
        ui.div("ds-remedies", buttons),
    ]


def _remedy(remedy: Remedy) -> dmc.Button:
    small = "no model" if remedy.variables is None else variables(remedy.variables)
    return ui.button(
        [remedy.label, html.Small(small)],
        {"remedy": remedy.what, "value": remedy.value},
        size="compact-sm",
        variant="default",
        justify="space-between",
        fullWidth=True,
    )


def chip(sizing: Sizing | None) -> tuple[Any, str, str]:
    """Return content, class and title of the size beside the Solve button."""
    if sizing is None:
        return None, "ds-chip", ""
    size = sizing.size
    content = [
        ui.icon("warning") if sizing.warning else None,
        html.Div([html.B(f"{short(size.variables)} vars"), html.Small(text.size(size.memory))]),
    ]
    title = (
        f"The model would have {size.variables:,} variables, {size.constraints:,} constraints "
        f"and {size.nonzeros:,} nonzeros and take about {text.size(size.memory)}. {sizing.warning}"
    )
    return content, "ds-chip ds-bad" if sizing.warning else "ds-chip", title.strip()


def variables(number: int) -> str:
    """Write ``5.81 K variables``, ``1 variable``."""
    return f"{short(number)} variable{'' if number == 1 else 's'}"


def short(number: float) -> str:
    """Write a count with three digits, such as ``812``, ``5.81 K`` or ``378 M``."""
    return text.scale_unit(number, ("", "K", "M", "G")).rstrip()


def register(app: Dash) -> None:
    """Wire the question."""
    app.clientside_callback(
        ClientsideFunction("topoloom", "request"),
        Output(ids.REQUEST, "data"),
        Output(ids.ROOT_BOX, "hidden"),
        Input(ids.COLLECTIVE, "value"),
        Input(ids.SIZE, "value"),
        Input(ids.CHUNKS, "value"),
        Input(ids.ROOT, "value"),
        Input(ids.FORMULATION, "value"),
        Input(ids.OPTIONS, "data"),
        Input(ids.TIME_LIMIT, "value"),
        Input(ids.GAP, "value"),
        Input(ids.CUSTOM, "data"),
        Input(ids.SKETCH, "data"),
        prevent_initial_call=False,
    )
    app.clientside_callback(
        ClientsideFunction("topoloom", "ask"),
        Output(ids.PROBLEM, "data"),
        Input(ids.CANVAS, "drawing"),
        Input(ids.REQUEST, "data"),
        prevent_initial_call=False,
    )
    app.clientside_callback(
        "(clicks) => Boolean(clicks)",
        Output(ids.OPTIONS_DRAWER, "opened"),
        Input(ids.OPTIONS_OPEN, "n_clicks"),
    )
    _assessment(app)
    _sizing(app)
    _options(app)
    _remedies(app)


def _assessment(app: Dash) -> None:
    @app.callback(
        Output(ids.ASSESSMENT, "data"), Output(ids.FORMULATION, "data"), Input(ids.PROBLEM, "data")
    )
    def on_ask(asked: Json | None) -> tuple[Any, Any]:
        if not asked:
            return no_update, no_update
        found = assess(asked["topology"], asked["request"])
        try:
            trouble = can_solve(found, read_request(asked["request"]))
        except CclError as error:
            trouble = str(error)
        empty = not asked["topology"]["devices"]
        known = {
            "empty": empty,
            "trouble": None if empty else trouble,
            "begun": found.begun,
            "field": "" if empty else field_at_fault(asked["topology"], asked["request"]),
            "bounds": list(found.bounds),
            "hint": "" if empty else found.hint,
        }
        return known, formulation_choices(found.refusals)

    app.clientside_callback(
        ClientsideFunction("topoloom", "atFault"),
        *(Output(each, "trouble") for each in (ids.SIZE, ids.CHUNKS, ids.ROOT)),
        Input(ids.ASSESSMENT, "data"),
    )


def _sizing(app: Dash) -> None:
    # Apart from the assessment, so that bounds do not wait for a large model to be counted.
    @callback(
        app,
        output={
            "sizing": Output(ids.SIZING, "children"),
            "chip": Output(ids.CHIP, "children"),
            "look": Output(ids.CHIP, "className"),
            "title": Output(ids.CHIP, "title"),
        },
        inputs={"asked": Input(ids.PROBLEM, "data")},
    )
    def on_size(asked: Json | None) -> Json:
        if not asked:
            return {}
        try:
            topology = topology_of(asked["topology"])
            found = sizing(topology, read_request(asked["request"]))
        except CclError:
            found = None  # the assessment says what is wrong
        content, look, title = chip(found)
        return {"sizing": sizing_summary(found), "chip": content, "look": look, "title": title}


def _options(app: Dash) -> None:
    @app.callback(
        Output(ids.OPTIONS_FORM, "children"),
        Input(ids.FORMULATION, "value"),
        Input(ids.OPTIONS_RESET, "n_clicks"),
        Input(ids.REMEDY, "data"),
        State(ids.OPTIONS, "data"),
        State(ids.SKETCH, "data"),
        prevent_initial_call=False,
    )
    def on_formulation(
        name: str, _reset: int | None, _remedy: int | None, kept: Json | None, sketches: Json | None
    ) -> Any:
        if ctx.triggered_id == ids.OPTIONS_RESET:
            return option_form(name, {})
        return option_form(name, {**(kept or {}).get(name, {}), **(sketches or {}).get(name, {})})

    @app.callback(
        Output(ids.OPTIONS, "data"),
        Output(ids.OPTIONS_OPEN, "variant"),
        Input({"option": ALL, "of": ALL}, "value"),
        Input({"option-flag": ALL, "of": ALL}, "checked"),
        State(ids.OPTIONS, "data"),
        State(ids.FORMULATION, "value"),
    )
    def on_option(
        _values: list[Any], _flags: list[Any], kept: Json | None, name: str
    ) -> tuple[Any, str]:
        rows = [row for group in ctx.inputs_list for row in group]
        given = {
            row["id"].get("option") or row["id"]["option-flag"]: row.get("value")
            for row in rows
            if row["id"]["of"] == name
        }
        values = changed(given, option_fields(formulation(name).options))
        now = {**(kept or {}), name: values}
        return (no_update if now == kept else now), ("light" if values else "default")

    @app.callback(
        Output(ids.TIME_LIMIT, "value"),
        Output(ids.GAP, "value"),
        Input(ids.OPTIONS_RESET, "n_clicks"),
    )
    def on_reset(_clicks: int) -> tuple[float, str]:
        return DEFAULT_TIME_LIMIT, ""


def _remedies(app: Dash) -> None:
    """Wire the remedies."""

    @callback(
        app,
        output={
            **changes("options", "chunks"),
            "formulation": Output(ids.FORMULATION, "value"),
            "remedy": Output(ids.REMEDY, "data"),
        },
        inputs={"clicks": Input({"remedy": ALL, "value": ALL}, "n_clicks")},
        state={"options": State(ids.OPTIONS, "data"), "count": State(ids.REMEDY, "data")},
    )
    def on_remedy(clicks: list[int | None], options: Json | None, count: int | None) -> Json:
        if not any(clicks) or not ctx.triggered_id:
            return {}
        what, value = ctx.triggered_id["remedy"], ctx.triggered_id["value"]
        changed = (count or 0) + 1
        if what == "chunks":
            return {"chunks": value, "remedy": changed}
        if what == "formulation":
            return {"formulation": value, "remedy": changed}
        name, _, option = what.partition(".")
        kept = options or {}
        return {"options": {**kept, name: {**kept.get(name, {}), option: value}}, "remedy": changed}

    app.clientside_callback(
        ClientsideFunction("topoloom", "solveAgain"),
        Output(ids.FAULT, "children", allow_duplicate=True),
        Input(ids.REMEDY, "data"),
        State(ids.FAULT, "children"),
    )
