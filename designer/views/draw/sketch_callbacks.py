"""The sketch: drawn on the canvas, read from a file, kept, and made to fit what is drawn."""

from __future__ import annotations

from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, no_update

from ccl.errors import CclError
from ccl.serialization.sketches import Sketch, read_sketch, sketch_to_json
from designer.server.reading import Apart
from designer.server.sessions import topology_of, visitor
from designer.shell import ids, request
from designer.shell.markup import note
from designer.views.draw.importing import check_size, decoded
from designer.views.solve import forms, sketch

Json = dict[str, Any]
NOTHING = (no_update, no_update)


def register(app: Dash, apart: Apart) -> None:
    """Wire the sketch."""
    _shown(app)
    _drawn(app)
    _picked(app)
    _typed(app)
    _read(app, apart)
    _fitted(app)


def _sketches() -> Output:
    return Output(ids.SKETCH, "data", allow_duplicate=True)


def _shown(app: Dash) -> None:
    @app.callback(
        Output(ids.CANVAS, "sketch"),
        Output(ids.SKETCH_CARD, "children"),
        Output(ids.SKETCH_CARD, "hidden"),
        Output(ids.SKETCH_CARD, "data-drawing"),
        Output({"sketch-words": ALL}, "children"),
        Input(ids.SKETCH, "data"),
        Input(ids.SKETCHING, "data"),
        Input(ids.FORMULATION, "value"),
    )
    def on_sketch(sketches: Json | None, drawing: Json | None, name: str) -> tuple[Any, ...]:
        rows = len(ctx.outputs_list[-1])
        if sketch.sketch_option(name) is None:
            return None, [], True, "false", [no_update] * rows
        value = sketch.stored_sketch(sketches, name)
        base = drawing["base"] if drawing else None
        return (
            sketch.sketch_marks(value, drawing=drawing is not None),
            forms.card(value, base),
            False,
            "false" if drawing is None else "true",
            [forms.words(value)] * rows,
        )

    app.clientside_callback(
        ClientsideFunction("topoloom", "sketching"),
        Input(ids.SKETCHING, "data"),
        prevent_initial_call=True,
    )


def _drawn(app: Dash) -> None:
    """Wire the buttons, and what ends drawing."""

    @app.callback(
        Output(ids.SKETCHING, "data"),
        _sketches(),
        Output(ids.OPTIONS_DRAWER, "opened", allow_duplicate=True),
        Output(ids.VIEW, "value", allow_duplicate=True),
        Input({"sketch-act": ALL, "in": ALL}, "n_clicks"),
        State(ids.SKETCH, "data"),
        State(ids.FORMULATION, "value"),
        State(ids.CANVAS, "drawing"),
        State(ids.REQUEST, "data"),
        State(ids.CANVAS, "picked"),
        prevent_initial_call=True,
    )
    def on_act(clicks: list[int | None], *given: Any) -> tuple[Any, ...]:
        sketches, name, drawing, asked, picked = given
        if not ctx.triggered_id or not ctx.triggered[0]["value"] or not any(clicks):
            return (no_update,) * 4
        does = ctx.triggered_id["sketch-act"]
        if does == "draw":
            heard = (picked or {}).get("n", 0)
            begun = {"base": sketch.begun(drawing, asked), "heard": heard, "fresh": True}
            return begun, no_update, False, "canvas"
        if does == "clear":
            return no_update, sketch.keep(sketches, name, None), no_update, no_update
        return None, no_update, no_update, no_update

    @app.callback(
        Output(ids.SKETCHING, "data", allow_duplicate=True),
        Input(ids.FORMULATION, "value"),
        Input(ids.SOLVE, "n_clicks"),
        prevent_initial_call=True,
    )
    def on_other(_name: str, _clicks: int | None) -> None:
        return None

    @app.callback(
        _sketches(),
        Input(ids.OPTIONS_RESET, "n_clicks"),
        State(ids.SKETCH, "data"),
        State(ids.FORMULATION, "value"),
        prevent_initial_call=True,
    )
    def on_reset(_clicks: int, sketches: Json | None, name: str) -> Any:
        return sketch.keep(sketches, name, None)


def _picked(app: Dash) -> None:
    @app.callback(
        _sketches(),
        Output(ids.SKETCHING, "data", allow_duplicate=True),
        request.notes(),
        Input(ids.CANVAS, "picked"),
        State(ids.SKETCH, "data"),
        State(ids.SKETCHING, "data"),
        State(ids.FORMULATION, "value"),
        State(ids.CANVAS, "drawing"),
        prevent_initial_call=True,
    )
    def on_pick(picked: Json | None, *given: Any) -> tuple[Any, Any, Any]:
        sketches, begun, name, drawing = given
        if not picked or begun is None:
            return no_update, no_update, no_update
        # An answer that the next pick overtakes is lost, so each brings those before it.
        picks = [each for each in picked["picks"] if each["n"] > begun["heard"]]
        changes = [each for each in picks if not each.get("done")]
        now, refused = sketch.after(
            sketch.stored_sketch(sketches, name),
            begun["base"],
            picks=changes,
            topology=drawing["topology"],
        )
        heard = {**begun, "heard": picked["n"], "fresh": False}
        return (
            sketch.keep(sketches, name, now) if changes else no_update,
            None if len(changes) < len(picks) else heard,
            note("; ".join(refused)) if refused else no_update,
        )


def _typed(app: Dash) -> None:
    @app.callback(
        _sketches(),
        request.notes(),
        Input({"sketch-field": ALL}, "value"),
        State(ids.SKETCH, "data"),
        State(ids.SKETCHING, "data"),
        State(ids.FORMULATION, "value"),
        State(ids.CANVAS, "drawing"),
        prevent_initial_call=True,
    )
    def on_field(_values: list[Any], *given: Any) -> tuple[Any, Any]:
        sketches, begun, name, drawing = given
        if begun is None or len(ctx.triggered) != 1:
            return NOTHING  # the card itself was drawn anew
        form = {row["id"]["sketch-field"]: row.get("value") for row in ctx.inputs_list[0]}
        now = sketch.stored_sketch(sketches, name)
        try:
            changed = sketch.typed(now, begun["base"], form, drawing["topology"])
        except CclError as error:
            return no_update, note(str(error))
        if changed == now:
            return NOTHING
        return sketch.keep(sketches, name, changed), no_update


def _read(app: Dash, apart: Apart) -> None:
    @app.callback(
        _sketches(),
        Output(ids.CHUNKS, "value", allow_duplicate=True),
        request.notes(),
        Input({"sketch-file": ALL}, "contents"),
        State({"sketch-file": ALL}, "filename"),
        State(ids.SKETCH, "data"),
        State(ids.FORMULATION, "value"),
        State(ids.CANVAS, "drawing"),
        prevent_initial_call=True,
    )
    def on_file(
        contents: list[str | None], names: list[str | None], *given: Any
    ) -> tuple[Any, ...]:
        sketches, name, drawing = given
        if not any(contents):
            return no_update, no_update, no_update
        file = names[0] or "sketch"
        try:
            found, sentences = apart.call(
                file, read_drawing, file, contents[0] or "", drawing, session=visitor()
            )
        except CclError as error:
            return no_update, no_update, note(str(error), title="Cannot read")
        told = "; ".join(sentences) or sketch.described(sketch_to_json(found))
        kept = sketch.keep(sketches, name, sketch_to_json(found))
        chunks = no_update if found.chunks is None else found.chunks * found.instances
        return kept, chunks, note(told, "good", title=f"Read {file}")


def read_drawing(name: str, contents: str, drawing: Json) -> tuple[Sketch, tuple[str, ...]]:
    """Read a sketch of the cluster that is drawn, from the data URL of its file."""
    content = decoded(contents)
    check_size(name, len(content))
    return read_sketch(content, topology_of(drawing["topology"]), name=name)


def _fitted(app: Dash) -> None:
    @app.callback(
        _sketches(),
        request.notes(),
        Input(ids.PROBLEM, "data"),
        State(ids.SKETCH, "data"),
        prevent_initial_call=True,
    )
    def on_drawing(asked: Json | None, sketches: Json | None) -> tuple[Any, Any]:
        if not asked or not sketches or not asked["topology"]["devices"]:
            return NOTHING
        try:
            left, told = sketch.all_fitted(sketches, topology_of(asked["topology"]))
        except CclError:
            return NOTHING  # the assessment says what is wrong
        return (left, note(told, "plain")) if told else NOTHING
