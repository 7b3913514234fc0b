"""The inspector: showing the selection and turning its fields into commands."""

from __future__ import annotations

from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, no_update

from ccl.errors import CclError
from designer.shell import commands, ids
from designer.shell.notes import note
from designer.views.draw import edits
from designer.views.draw.inspector import inspector


def register(app: Dash) -> None:
    """Wire the inspector."""

    @app.callback(
        Output(ids.INSPECTOR, "children"),
        Input(ids.CANVAS, "selection"),
        Input(ids.CANVAS, "drawing"),
    )
    def on_selection(selection: dict[str, Any] | None, drawing: dict[str, Any]) -> Any:
        return inspector(selection, drawing["topology"])

    _fields(app)
    _buttons(app)


def _fields(app: Dash) -> None:
    @app.callback(
        commands.output(),
        commands.notes(),
        Output(ids.INSPECTOR, "children", allow_duplicate=True),
        Input({"device-edit": ALL}, "value"),
        Input({"device-flag": ALL}, "checked"),
        Input({"link-edit": ALL}, "value"),
        Input({"link-flag": ALL}, "checked"),
        Input({"host-edit": ALL}, "value"),
        Input({"limit-edit": ALL}, "value"),
        Input({"act-value": ALL}, "value"),
        State({"link-option": ALL}, "checked"),
        State(ids.CANVAS, "selection"),
        State(ids.CANVAS, "drawing"),
        prevent_initial_call=True,
    )
    def on_field(*given: Any) -> tuple[Any, Any, Any]:
        both, selection, drawing = given[-3:]
        if len(ctx.triggered) != 1 or not isinstance(ctx.triggered_id, dict):
            return no_update, no_update, no_update  # the form itself was drawn anew
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
            # The form is drawn anew, so that it shows what is true, not what was refused.
            return no_update, note(str(error)), inspector(selection, drawing["topology"])
        return (commands.numbered(command) if command else no_update), no_update, no_update


def _buttons(app: Dash) -> None:
    @app.callback(
        commands.output(),
        commands.notes(),
        Input({"act": ALL}, "n_clicks"),
        Input({"limit-drop": ALL}, "n_clicks"),
        State({"repeat": ALL}, "value"),
        State({"limit-new": ALL}, "value"),
        State(ids.CANVAS, "selection"),
        State(ids.CANVAS, "drawing"),
        State(ids.CANVAS, "link_preset"),
        prevent_initial_call=True,
    )
    def on_button(*given: Any) -> tuple[Any, Any]:
        selection, drawing, preset = given[-3:]
        if not ctx.triggered or not ctx.triggered[0]["value"]:
            return no_update, no_update
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
            return no_update, note(str(error))
        return (commands.numbered(command) if command else no_update), no_update
