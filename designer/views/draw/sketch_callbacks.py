"""The sketch: drawn on the canvas, read from a file, kept, and made to fit what is drawn."""

from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, no_update

from ccl.errors import CclError
from ccl.serialization.sketches import Sketch, read_sketch, sketch_to_json
from designer.server.reading import Apart
from designer.server.sessions import visitor
from designer.session import topology_of
from designer.shell import ids, request, ui
from designer.shell.request import callback
from designer.views.draw.files import check_size, decoded
from designer.views.solve import forms, sketch

Json = dict[str, Any]


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
    @callback(
        app,
        output={
            "canvas_sketch": Output(ids.CANVAS, "sketch"),
            "sketch_card_children": Output(ids.SKETCH_CARD, "children"),
            "sketch_card_hidden": Output(ids.SKETCH_CARD, "hidden"),
            "sketch_card_data_drawing": Output(ids.SKETCH_CARD, "data-drawing"),
        },
        inputs={
            "sketches": Input(ids.SKETCH, "data"),
            "drawing": Input(ids.SKETCHING, "data"),
            "name": Input(ids.FORMULATION, "value"),
        },
        prevent_initial_call=False,
    )
    def on_sketch(sketches: Json | None, drawing: Json | None, name: str) -> Json:
        if sketch.sketch_option(name) is None:
            return {
                "canvas_sketch": None,
                "sketch_card_children": [],
                "sketch_card_hidden": True,
                "sketch_card_data_drawing": "false",
            }
        value = sketch.stored_sketch(sketches, name)
        base = drawing["base"] if drawing else None
        return {
            "canvas_sketch": sketch.sketch_marks(value, drawing=drawing is not None),
            "sketch_card_children": forms.card(value, base),
            "sketch_card_hidden": False,
            "sketch_card_data_drawing": "false" if drawing is None else "true",
        }

    # Apart: options that are shown anew bring rows for these words, but the card stays as it is.
    @callback(
        app,
        output={"sketch_words": Output({"sketch-words": ALL}, "children")},
        inputs={"sketches": Input(ids.SKETCH, "data")},
        state={"name": State(ids.FORMULATION, "value")},
        prevent_initial_call=False,
    )
    def on_words(sketches: Json | None, name: str) -> Json:
        value = sketch.stored_sketch(sketches, name)
        return {"sketch_words": [forms.words(value)] * len(ctx.outputs_list[0])}

    app.clientside_callback(
        ClientsideFunction("topoloom", "sketching"), Input(ids.SKETCHING, "data")
    )


def _drawn(app: Dash) -> None:
    """Wire the buttons, and what ends drawing.

    The page itself hears a button: one that is pressed while the page still loads is drawn anew
    with the card, and a question that the server has not answered by then would be dropped.
    """
    app.clientside_callback(
        ClientsideFunction("topoloom", "sketchAct"),
        Output(ids.SKETCH_ACT, "data"),
        Input({"sketch-act": ALL, "in": ALL}, "n_clicks"),
    )

    @callback(
        app,
        output={
            "sketching": Output(ids.SKETCHING, "data"),
            "sketches": _sketches(),
            "options_drawer_opened": Output(ids.OPTIONS_DRAWER, "opened", allow_duplicate=True),
            "view": Output(ids.VIEW, "value", allow_duplicate=True),
        },
        inputs={"act": Input(ids.SKETCH_ACT, "data")},
        state={
            **request.states("sketches", "drawing", "picked"),
            "name": State(ids.FORMULATION, "value"),
            "asked": State(ids.REQUEST, "data"),
        },
    )
    def on_act(
        *, act: Json | None, sketches: Any, name: Any, drawing: Any, asked: Any, picked: Any
    ) -> Json:
        if not act:
            return {}
        does = act["does"]
        if does == "draw":
            heard = (picked or {}).get("n", 0)
            begun = {"base": sketch.begun(drawing, asked), "heard": heard, "fresh": True}
            return {"sketching": begun, "options_drawer_opened": False, "view": "canvas"}
        if does == "clear":
            return {"sketches": sketch.keep(sketches, name, None)}
        return {"sketching": None}

    @app.callback(
        Output(ids.SKETCHING, "data", allow_duplicate=True),
        Input(ids.FORMULATION, "value"),
        Input(ids.SOLVE, "n_clicks"),
    )
    def on_other(_name: str, _clicks: int | None) -> None:
        return None

    @app.callback(
        _sketches(),
        Input(ids.OPTIONS_RESET, "n_clicks"),
        State(ids.SKETCH, "data"),
        State(ids.FORMULATION, "value"),
    )
    def on_reset(_clicks: int, sketches: Json | None, name: str) -> Any:
        return sketch.keep(sketches, name, None)


def _picked(app: Dash) -> None:
    @callback(
        app,
        output={
            "sketches": _sketches(),
            "sketching": Output(ids.SKETCHING, "data", allow_duplicate=True),
            "notes": request.notes(),
        },
        inputs={"picked": Input(ids.CANVAS, "picked")},
        state={
            **request.states("sketches", "drawing"),
            "begun": State(ids.SKETCHING, "data"),
            "name": State(ids.FORMULATION, "value"),
        },
    )
    def on_pick(picked: Json | None, sketches: Any, begun: Any, name: Any, drawing: Any) -> Json:
        if not picked or begun is None:
            return {}
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
        return {
            "sketches": sketch.keep(sketches, name, now) if changes else no_update,
            "sketching": None if len(changes) < len(picks) else heard,
            "notes": ui.note("; ".join(refused)) if refused else no_update,
        }


def _typed(app: Dash) -> None:
    @callback(
        app,
        output={"sketches": _sketches(), "notes": request.notes()},
        inputs={"sketch_field": Input({"sketch-field": ALL}, "value")},
        state={
            **request.states("sketches", "drawing"),
            "begun": State(ids.SKETCHING, "data"),
            "name": State(ids.FORMULATION, "value"),
        },
    )
    def on_field(sketches: Any, begun: Any, name: Any, drawing: Any, **_: Any) -> Json:
        if begun is None or len(ctx.triggered) != 1:
            return {}  # the card itself was drawn anew
        form = {row["id"]["sketch-field"]: row.get("value") for row in ctx.inputs_list[0]}
        now = sketch.stored_sketch(sketches, name)
        try:
            changed = sketch.typed(now, begun["base"], form, drawing["topology"])
        except CclError as error:
            return {"notes": ui.note(str(error))}
        if changed == now:
            return {}
        return {"sketches": sketch.keep(sketches, name, changed)}


def _read(app: Dash, apart: Apart) -> None:
    @callback(
        app,
        output={"sketches": _sketches(), **request.changes("chunks", "notes")},
        inputs={"contents": Input({"sketch-file": ALL}, "contents")},
        state={
            "names": State({"sketch-file": ALL}, "filename"),
            **request.states("sketches", "drawing"),
            "name": State(ids.FORMULATION, "value"),
        },
    )
    def on_file(
        contents: list[str | None], names: list[str | None], sketches: Any, name: Any, drawing: Any
    ) -> Json:
        if not any(contents):
            return {}
        file = names[0] or "sketch"
        try:
            found, sentences = apart.call(
                file, read_drawing, file, contents[0] or "", drawing, session=visitor()
            )
        except CclError as error:
            return {"notes": ui.note(str(error), title="Cannot read")}
        told = "; ".join(sentences) or sketch.described(sketch_to_json(found))
        kept = sketch.keep(sketches, name, sketch_to_json(found))
        chunks = no_update if found.chunks is None else found.chunks * found.instances
        return {
            "sketches": kept,
            "chunks": chunks,
            "notes": ui.note(told, "good", title=f"Read {file}"),
        }


def read_drawing(name: str, contents: str, drawing: Json) -> tuple[Sketch, tuple[str, ...]]:
    """Read a sketch of the cluster that is drawn, from the data URL of its file."""
    content = decoded(contents)
    check_size(name, len(content))
    return read_sketch(content, topology_of(drawing["topology"]), name=name)


def _fitted(app: Dash) -> None:
    @app.callback(
        _sketches(), request.notes(), Input(ids.PROBLEM, "data"), State(ids.SKETCH, "data")
    )
    def on_drawing(asked: Json | None, sketches: Json | None) -> tuple[Any, Any]:
        if not asked or not sketches or not asked["topology"]["devices"]:
            return no_update, no_update
        try:
            left, told = sketch.all_fitted(sketches, topology_of(asked["topology"]))
        except CclError:
            return no_update, no_update  # the assessment says what is wrong
        return (left, ui.note(told, "plain")) if told else (no_update, no_update)
