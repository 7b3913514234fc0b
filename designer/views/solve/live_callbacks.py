"""What follows the drawing: the optimum at once, classes and link prices when they are found."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, no_update, set_props

from ccl.errors import CclError
from ccl.serialization.topoloom import topology_from_json
from ccl.symmetry import automorphisms
from designer.server.sessions import visitor
from designer.shell import ids
from designer.views.solve import live, live_card, results

PRICING = "What a link is worth is being found …"


def register(app: Dash) -> None:
    """Wire the cards."""
    app.clientside_callback(
        ClientsideFunction("topoloom", "live"),
        Output(ids.LIVE, "data"),
        Input(ids.CANVAS, "drawing"),
        Input(ids.REQUEST, "data"),
    )
    newest = live.Newest()
    _optimum(app, newest)
    _alike(app)
    _prices(app, newest)
    _duals(app)
    _layers(app)


def _optimum(app: Dash, newest: live.Newest) -> None:
    # Nothing that has these answers among its inputs may wait for them, so they are no outputs.
    @app.callback(Input(ids.LIVE, "data"), State(ids.CUT, "data"), prevent_initial_call=True)
    def on_live(asked: dict[str, Any] | None, choice: str | int | None) -> None:
        if not asked:
            return
        newer = newest.ask(asked, visitor=visitor())
        problem = live.problem_asked(asked)
        found = {"trouble": problem} if isinstance(problem, str) else live.optimum_told(problem)
        if newer():
            set_props(ids.OPTIMUM, {"data": {**found, "n": asked["n"]}})
            set_props(ids.OPTIMUM_CARD, {"children": _card(found, choice)})
            # What was priced is of another drawing; the cut need not wait for the bounds.
            set_props(ids.PRICES, {"data": None})
            set_props(ids.PRICES_CARD, {"children": live_card.prices_card({"hint": PRICING})})
            cut = results.rate_cut(found, choice)
            if cut is not None:
                set_props(ids.CANVAS, {"cuts": [cut]})

    app.clientside_callback(
        ClientsideFunction("topoloom", "settled"),
        Input(ids.OPTIMUM, "data"),
        prevent_initial_call=True,
    )

    @app.callback(
        Output(ids.OPTIMUM_CARD, "children"),
        Input(ids.CUT, "data"),
        State(ids.OPTIMUM, "data"),
        prevent_initial_call=True,
    )
    def on_choice(choice: str | int | None, found: dict[str, Any] | None) -> Any:
        return _card(found, choice)

    @app.callback(
        Output(ids.CUT, "data", allow_duplicate=True),
        Input({"best-cut": ALL}, "n_clicks"),
        State(ids.CUT, "data"),
        prevent_initial_call=True,
    )
    def on_cut(clicks: list[int | None], choice: str | int | None) -> Any:
        if not any(clicks) or not ctx.triggered_id:
            return no_update
        wanted = f"cut{ctx.triggered_id['best-cut']}"
        shown = "cut0" if choice == "auto" else choice
        return None if shown == wanted else wanted


def _card(found: dict[str, Any] | None, choice: str | int | None) -> Any:
    return live_card.optimum_card(found, "cut0" if choice == "auto" else choice)


def _alike(app: Dash) -> None:
    @app.callback(Input(ids.PROBLEM, "data"), prevent_initial_call=True)
    def on_drawing(asked: dict[str, Any] | None) -> None:
        found = None
        if asked and asked["topology"]["devices"]:
            with suppress(CclError):  # the assessment says what is wrong
                found = live.alike_told(topology_from_json(asked["topology"]))
        set_props(ids.ALIKE, {"data": found})
        set_props(ids.ALIKE_CARD, {"children": live_card.alike_card(found)})


def _prices(app: Dash, newest: live.Newest) -> None:
    # After the optimum, so that it never waits; each answer is dropped when it was overtaken.
    @app.callback(Input(ids.OPTIMUM, "data"), State(ids.LIVE, "data"), prevent_initial_call=True)
    def on_prices(found: dict[str, Any] | None, asked: dict[str, Any] | None) -> None:
        if not found or not asked or found["n"] != asked["n"]:
            return
        told, newest_still = None, newest.ask(asked, visitor=visitor())
        problem = None if found.get("trouble") else live.problem_asked(asked)
        if problem is not None and not isinstance(problem, str):
            group = automorphisms(problem.topology)
            told = live.prices_told(problem, group, newest_still)
        if newest_still():
            set_props(ids.PRICES, {"data": told})
            set_props(ids.PRICES_CARD, {"children": live_card.prices_card(told)})


def _duals(app: Dash) -> None:
    # Asked for by whoever wants to see them; of another drawing they are found anew.
    @app.callback(
        Output(ids.DUALS, "data"),
        Output(ids.DUALS_NOTE, "children"),
        Input(ids.LAYER, "data"),
        Input(ids.OPTIMUM, "data"),
        State(ids.LIVE, "data"),
        State(ids.DUALS, "data"),
        running=[(Output(ids.DUALS_WAIT, "hidden"), False, True)],
        prevent_initial_call=True,
    )
    def on_layer(
        layer: str, found: dict[str, Any] | None, asked: dict[str, Any] | None, known: Any
    ) -> Any:
        number = (found or {}).get("n")
        kept = known if known and known["n"] == number else None
        if layer != "duals" or not found or not asked or number != asked["n"]:
            return no_update if kept else None, None
        if kept:
            return no_update, live_card.duals_note(kept)
        problem = None if found.get("trouble") else live.problem_asked(asked)
        if problem is None or isinstance(problem, str):
            return None, None
        told = live.duals_told(problem)
        return {**told, "n": number}, live_card.duals_note(told)


def _layers(app: Dash) -> None:
    """Wire the buttons of what is drawn over the cluster: one at a time."""
    app.clientside_callback(
        ClientsideFunction("topoloom", "layer"),
        Output(ids.LAYER, "data"),
        Input({"layer": ALL}, "n_clicks"),
        State(ids.LAYER, "data"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("topoloom", "marks"),
        Output(ids.CANVAS, "marks"),
        Output({"layer": ALL}, "aria-pressed"),
        Input(ids.LAYER, "data"),
        Input(ids.ALIKE, "data"),
        Input(ids.PRICES, "data"),
        Input(ids.DUALS, "data"),
        Input(ids.TREE, "data"),
        Input(ids.WAYS_MARKS, "data"),
        Input({"layer": ALL}, "id"),
    )
