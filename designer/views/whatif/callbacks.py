"""The What-if view: sliders in, figures and the cut out; into the drawing when asked.

The page keeps one question under way and the last one that waits (`assets/whatif.js`); what was
overtaken all the same is not answered.
"""

from __future__ import annotations

from typing import Any

from dash import (
    ALL,
    MATCH,
    ClientsideFunction,
    Dash,
    Input,
    Output,
    State,
    ctx,
    no_update,
    set_props,
)

from ccl.errors import CclError
from ccl.serialization.quantity import parse_size
from ccl.serialization.topoloom import topology_from_json
from designer.server.sessions import visitor
from designer.shell import commands, ids
from designer.shell.notes import note
from designer.views.solve.live import Newest
from designer.views.whatif import answering, figures
from designer.views.whatif import limit_callbacks as whatif_limits
from designer.views.whatif import study_callbacks as whatif_studies
from designer.views.whatif.form import form, key
from designer.views.whatif.knobs import knobs_of
from designer.views.whatif.running import Studies

VIEW = "whatif"


def register(app: Dash, studies: Studies) -> None:
    """Wire the What-if view."""
    _sliders(app)
    _today(app)
    _answer(app)
    _picture(app)
    _apply(app)
    whatif_limits.register(app)
    whatif_studies.register(app, studies)


def _sliders(app: Dash) -> None:
    """Wire what happens in the page: sliders and numbers in step, one question at a time."""
    slide, number = (key(part, MATCH, MATCH) for part in ("slide", "number"))
    app.clientside_callback(
        ClientsideFunction("whatif", "step"),
        Output(slide, "value"),
        Output(number, "value"),
        Output(slide, "attributes"),
        Output(key("by", MATCH, MATCH), "children"),
        Input(slide, "value"),
        Input(number, "value"),
        State(slide, "min"),
        State(slide, "max"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("whatif", "size"),
        Output(ids.WHATIF_SIZE_SLIDE, "value"),
        Output(ids.WHATIF_SIZE, "value"),
        Output(ids.WHATIF_SIZE_SLIDE, "attributes"),
        Input(ids.WHATIF_SIZE_SLIDE, "value"),
        Input(ids.WHATIF_SIZE, "value"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("whatif", "ask"),
        Output(ids.WHATIF_ASKED, "data"),
        Input(key("number", ALL, ALL), "value"),
        Input(ids.WHATIF_SIZE, "value"),
        Input(ids.WHATIF_TODAY, "data"),
        prevent_initial_call=True,
    )


def _today(app: Dash) -> None:
    @app.callback(
        Output(ids.WHATIF_FORM, "children"),
        Output(ids.WHATIF_TODAY, "data"),
        Input(ids.VIEW, "value"),
        Input(ids.PROBLEM, "data"),
        Input(ids.WHATIF_RESET, "n_clicks"),
        State(ids.CANVAS, "drawing"),
        State(ids.REQUEST, "data"),
        State(ids.WHATIF_TODAY, "data"),
        prevent_initial_call=True,
    )
    def on_drawing(view: str, _asked: Any, _reset: Any, *given: Any) -> tuple[Any, Any]:
        drawing, request, known = given
        if view != VIEW or not drawing:
            return no_update, no_update
        fresh = known is None or known["signature"] != answering.signature(drawing, request)
        if not fresh and ctx.triggered_id != ids.WHATIF_RESET:
            return no_update, no_update
        try:
            now = answering.today(drawing, request) if fresh else known
            knobs = knobs_of(topology_from_json(dict(drawing["topology"])))
        except CclError as error:
            now = {"signature": "", "origin": None, "counts": {}, "size": None}
            return None, {**now, "answer": {"trouble": str(error)}}
        return form(knobs, now["counts"], size=_bytes(request), size_words=now["size"]), now


def _bytes(request: dict[str, Any] | None) -> float | None:
    """Return the bytes that the header asks for, or None where they cannot be moved."""
    if not request or request.get("collective") == "custom":
        return None
    try:
        return parse_size(str(request.get("size") or ""))
    except CclError:
        return None


def _answer(app: Dash) -> None:
    newest = Newest()

    # As with the optimum of the drawing, nothing that has the answer among its inputs may wait.
    @app.callback(
        Input(ids.WHATIF_ASKED, "data"),
        State(ids.CANVAS, "drawing"),
        State(ids.REQUEST, "data"),
        State(ids.WHATIF_TODAY, "data"),
        State(ids.WHATIF_CUT, "data"),
        prevent_initial_call=True,
    )
    def on_asked(asked: dict[str, Any] | None, *given: Any) -> None:
        drawing, request, before, cut = given
        if not asked or not before or not drawing:
            return
        newer = newest.ask(asked, visitor=visitor())
        shown = asked.get("shown")
        found = answering.answer(drawing, request, before, asked["values"], shown=shown)
        if newer():
            now = found["answer"]
            set_props(ids.WHATIF_NOW, {"data": {**found, "n": asked["n"]}})
            set_props(ids.WHATIF_FIGURES, {"children": figures.figures(before["answer"], now)})
            set_props(ids.WHATIF_CUTS, {"children": figures.cuts(now, cut, before["answer"])})


def _picture(app: Dash) -> None:
    app.clientside_callback(
        ClientsideFunction("whatif", "picture"),
        Output(ids.WHATIF_CANVAS, "drawing"),
        Output(ids.WHATIF_CANVAS, "cuts"),
        Output(ids.WHATIF_APPLY, "disabled"),
        Output(ids.WHATIF_CANVAS, "marks"),
        Input(ids.WHATIF_NOW, "data"),
        Input(ids.WHATIF_CUT, "data"),
        Input(ids.WHATIF_PICKED, "data"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("whatif", "cut"),
        Output(ids.WHATIF_CUT, "data"),
        Output({"whatif-cut": ALL}, "aria-pressed"),
        Input({"whatif-cut": ALL}, "n_clicks"),
        State(ids.WHATIF_CUT, "data"),
        prevent_initial_call=True,
    )


def _apply(app: Dash) -> None:
    @app.callback(
        Output(ids.CANVAS, "drawing", allow_duplicate=True),
        Output(ids.SIZE, "value", allow_duplicate=True),
        Output(ids.WHATIF_STATUS, "children"),
        Output(ids.WHATIF_SOLVING, "data"),
        commands.output(),
        commands.notes(),
        Input(ids.WHATIF_APPLY, "n_clicks"),
        Input(ids.WHATIF_SOLVE, "n_clicks"),
        State(ids.WHATIF_ASKED, "data"),
        State(ids.CANVAS, "drawing"),
        State(ids.WHATIF_TODAY, "data"),
        prevent_initial_call=True,
    )
    def on_apply(_apply: Any, solve: int | None, asked: Any, *given: Any) -> tuple[Any, ...]:
        drawing, before = given
        if not asked or not before or not drawing:
            return (no_update,) * 6
        values = asked["values"]
        try:
            topology = answering.standing(drawing, None, before, values).topology
        except CclError as error:
            return (*(no_update,) * 5, note(str(error)))
        made = answering.drawn(drawing, topology)
        fresh = len(made["topology"]["devices"]) != len(drawing["topology"]["devices"])
        moved = made["topology"] != drawing["topology"]
        return (
            made if moved else no_update,
            values.get("size") or no_update,
            figures.applied() if moved else None,
            solve if ctx.triggered_id == ids.WHATIF_SOLVE else no_update,
            commands.fit() if fresh else no_update,
            no_update,
        )

    # The drawing and the request follow in the page within this time.
    app.clientside_callback(
        "(n) => { if (n) setTimeout(() => document.getElementById('solve')?.click(), 150); }",
        Input(ids.WHATIF_SOLVING, "data"),
        prevent_initial_call=True,
    )

    @app.callback(
        commands.output(),
        Output(ids.WHATIF_STATUS, "children", allow_duplicate=True),
        Input({"whatif-undo": ALL}, "n_clicks"),
        prevent_initial_call=True,
    )
    def on_undo(clicks: list[int | None]) -> tuple[Any, Any]:
        if not any(clicks):
            return no_update, no_update
        return commands.numbered({"name": "undo", "args": {}}), None
