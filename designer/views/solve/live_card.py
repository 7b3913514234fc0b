"""The cards of what follows the drawing: the optimum with its proof, link prices, classes.

What follows the drawing: the optimum at once, classes and link prices when they are found.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

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
from ccl.symmetry import automorphisms
from designer.server.sessions import visitor
from designer.session import topology_of
from designer.shell import ids, ui
from designer.views.solve import live, results
from designer.views.solve.live import price_words

Json = Mapping[str, Any]

MOST_CUTS = 4
"""Cuts that are named; the rest are counted."""

MOST_DIGITS = 15
"""Characters of a fraction that people still read."""

DEAREST = 3
"""How many kinds of links are listed before one asks for more."""

LAYERS = {
    "gpus": "GPUs",
    "links": "Links",
    "prices": "±1 %",
    "duals": "µs per GB/s",
    "tree": "Show on canvas",
    "paths": "Show on canvas",
}
"""What a button that draws over the cluster says, by what it draws."""


def sections() -> list[Any]:
    """Return the sections of the right side that are there before a solve."""
    return [
        ui.section(
            "Optimum",
            ui.folding(
                "Optimum",
                html.Small("best possible bandwidth, latency ignored", className="ds-note"),
            ),
            html.Div(optimum_card(None, None), id=ids.OPTIMUM_CARD, role="status"),
            html.Div(id=ids.PRICES_CARD),
            ui.div(
                "ds-note ds-under ds-late", "Computing link duals …", id=ids.DUALS_WAIT, hidden=True
            ),
            html.Div(id=ids.DUALS_NOTE),
            className="ds-live",
        )
    ]


def alike_section() -> html.Section:
    """Return the section that tells which devices can change places."""
    return ui.section(
        "Symmetry",
        ui.folding("Symmetry", ui.div("ds-row", layer("gpus"), layer("links"))),
        html.Div(alike_card(None), id=ids.ALIKE_CARD),
    )


def layer(what: str) -> html.Button:
    """Return the button that draws something over the cluster, or takes it away again."""
    return ui.press(
        [ui.icon("eye"), LAYERS[what]], {"layer": what}, "ds-layer", aria_pressed="false"
    )


def optimum_card(found: Json | None, chosen: str | int | None) -> Any:
    """Show the best rate and what proves it.

    Parameters
    ----------
    found
        As `designer.views.solve.live.optimum_summary` returns it.
    chosen
        Which cut is on the canvas: ``cut0`` is the first.
    """
    if found is None:
        return html.P("The best rate appears while you draw.", className="ds-card ds-quiet")
    if found.get("trouble"):
        return html.P(found["trouble"], className="ds-card ds-quiet")
    cuts = found["cuts"]
    per = f"per {text.size(found['size'])}, bandwidth alone"
    rows = [_cut(each, number=i, pressed=chosen == f"cut{i}") for i, each in enumerate(cuts)]
    more = len(cuts) - MOST_CUTS
    return ui.div(
        "ds-card ds-bounds",
        ui.div(
            "ds-figures",
            _figure(text.bandwidth(found["algbw"]), "upper limit of algbw"),
            _figure(text.duration(found["makespan"]), per),
        ),
        _proof(found),
        *rows[:MOST_CUTS],
        *([ui.div("ds-note ds-more", f"and {more} more")] if more > 0 else []),
    )


def _proof(found: Json) -> html.Div:
    """Say what proves the rate, exactly where it is known so, and whether a plan has it."""
    ties = len(found["cuts"])
    said: list[Any] = ["Proof: ", html.B(found["proved_by"]), "."]
    if found["fraction"] and "/" in found["fraction"] and len(found["fraction"]) <= MOST_DIGITS:
        said = ["Exactly ", html.B(f"{found['fraction']} GB/s"), ". ", *said]
    if not found["reached"]:
        said.append(" No plan is faster; whether one is as fast is open.")
    if ties > 1:
        said.append(f" {ties} cuts tie:")
    return ui.div("ds-note ds-proof", said)


def _figure(value: str, label: str) -> html.Div:
    return html.Div([html.B(value), html.Span(label)])


def _cut(cut: Json, *, number: int, pressed: bool) -> html.Button:
    return ui.press(
        [html.Span(cut["where"]), html.Small(text.count(len(cut["links"]), "link"))],
        {"best-cut": number},
        "ds-bound ds-cut",
        title="Show on the canvas",
        aria_pressed=pressed,
    )


def prices_card(found: Json | None) -> Any:
    """Say what 1 % of bandwidth of each kind of links is worth."""
    if not found or not (found.get("rows") or found.get("hint")):
        return None
    if found.get("hint"):
        return ui.div("ds-note ds-under", found["hint"])
    rows = found["rows"]
    felt = [row for row in rows if "neither" not in price_words(row)]
    idle = len(rows) - len(felt)
    items = [html.Li(price_words(row)) for row in felt]
    if idle:
        kinds = text.count(idle, "kind of link", "kinds of links")
        items.append(html.Li(f"{kinds}: neither more nor less changes anything"))
    return ui.div(
        "ds-card ds-facts ds-prices",
        ui.div(
            "ds-subhead ds-two",
            html.Span("Bandwidth sensitivity"),
            ui.div("ds-row", layer("prices"), layer("duals")),
        ),
        html.Ul(items[:DEAREST]),
        ui.fold(f"{len(items) - DEAREST} more", html.Ul(items[DEAREST:]))
        if len(items) > DEAREST
        else None,
    )


def duals_note(summary: Json) -> html.Div:
    """Say what the prices on the drawing are of."""
    return ui.div("ds-note ds-under", summary["words"], role="status")


def alike_card(found: Json | None) -> Any:
    """Say in words which GPUs and links can change places."""
    if not found:
        return html.P("Nothing is drawn yet.", className="ds-card ds-quiet")
    gpus, links = found["gpus"], found["links"]
    if not gpus["rows"]:
        told: Any = html.P("No two GPUs can change places.", className="ds-quiet")
    elif len(gpus["rows"]) == 1 and not gpus["lone"]:
        told = html.P(
            [html.B("All GPUs can change places: "), gpus["rows"][0][1]], className="ds-quiet"
        )
    else:
        told = _classes(gpus["rows"])
    lone = text.count(gpus["lone"], "GPU") if gpus["rows"] and gpus["lone"] else ""
    return ui.div(
        "ds-card ds-alike",
        told,
        html.P(f"{lone} like no other.", className="ds-quiet") if lone else None,
        ui.fold(
            text.count(len(links["rows"]), "kind of link", "kinds of links"),
            _classes(links["rows"]),
        )
        if links["rows"]
        else None,
    )


def _classes(rows: Sequence[Sequence[str]]) -> html.Ul:
    return html.Ul([html.Li([html.I(badge), html.Span(words)]) for badge, words in rows])


PRICING = "Computing bandwidth sensitivity …"


def register(app: Dash) -> None:
    """Wire the cards."""
    app.clientside_callback(
        ClientsideFunction("topoloom", "live"),
        Output(ids.LIVE, "data"),
        Input(ids.CANVAS, "drawing"),
        Input(ids.REQUEST, "data"),
        prevent_initial_call=False,
    )
    newest = live.Newest()
    _optimum(app, newest)
    _alike(app)
    _prices(app, newest)
    _duals(app)
    _layers(app)


def _optimum(app: Dash, newest: live.Newest) -> None:
    # Nothing that has these answers among its inputs may wait for them, so they are no outputs.
    @app.callback(Input(ids.LIVE, "data"), State(ids.CUT, "data"))
    def on_live(asked: dict[str, Any] | None, choice: str | int | None) -> None:
        if not asked:
            return
        newer = newest.ask(asked, visitor=visitor())
        problem = live.problem_requested(asked)
        found = {"trouble": problem} if isinstance(problem, str) else live.optimum_summary(problem)
        if newer():
            set_props(ids.OPTIMUM, {"data": {**found, "n": asked["n"]}})
            set_props(ids.OPTIMUM_CARD, {"children": _card(found, choice)})
            # What was priced is of another drawing; the cut need not wait for the bounds.
            set_props(ids.PRICES, {"data": None})
            set_props(ids.PRICES_CARD, {"children": prices_card({"hint": PRICING})})
            cut = results.rate_cut(found, choice)
            if cut is not None:
                set_props(ids.CANVAS, {"cuts": [cut]})

    app.clientside_callback(ClientsideFunction("topoloom", "settled"), Input(ids.OPTIMUM, "data"))

    @app.callback(
        Output(ids.OPTIMUM_CARD, "children"), Input(ids.CUT, "data"), State(ids.OPTIMUM, "data")
    )
    def on_choice(choice: str | int | None, found: dict[str, Any] | None) -> Any:
        return _card(found, choice)

    @app.callback(
        Output(ids.CUT, "data", allow_duplicate=True),
        Input({"best-cut": ALL}, "n_clicks"),
        State(ids.CUT, "data"),
    )
    def on_cut(clicks: list[int | None], choice: str | int | None) -> Any:
        if not any(clicks) or not ctx.triggered_id:
            return no_update
        wanted = f"cut{ctx.triggered_id['best-cut']}"
        shown = "cut0" if choice == "auto" else choice
        return None if shown == wanted else wanted


def _card(found: dict[str, Any] | None, choice: str | int | None) -> Any:
    return optimum_card(found, "cut0" if choice == "auto" else choice)


def _alike(app: Dash) -> None:
    @app.callback(Input(ids.PROBLEM, "data"))
    def on_drawing(asked: dict[str, Any] | None) -> None:
        found = None
        if asked and asked["topology"]["devices"]:
            with suppress(CclError):  # the assessment says what is wrong
                found = live.symmetry_summary(topology_of(asked["topology"]))
        set_props(ids.ALIKE, {"data": found})
        set_props(ids.ALIKE_CARD, {"children": alike_card(found)})


def _prices(app: Dash, newest: live.Newest) -> None:
    # After the optimum, so that it never waits; each answer is dropped when it was overtaken.
    @app.callback(Input(ids.OPTIMUM, "data"), State(ids.LIVE, "data"))
    def on_prices(found: dict[str, Any] | None, asked: dict[str, Any] | None) -> None:
        if not found or not asked or found["n"] != asked["n"]:
            return
        told, newest_still = None, newest.ask(asked, visitor=visitor())
        problem = None if found.get("trouble") else live.problem_requested(asked)
        if problem is not None and not isinstance(problem, str):
            group = automorphisms(problem.topology)
            told = live.prices_summary(problem, group, newest_still)
        if newest_still():
            set_props(ids.PRICES, {"data": told})
            set_props(ids.PRICES_CARD, {"children": prices_card(told)})


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
    )
    def on_layer(
        layer: str, found: dict[str, Any] | None, asked: dict[str, Any] | None, known: Any
    ) -> Any:
        number = (found or {}).get("n")
        kept = known if known and known["n"] == number else None
        if layer != "duals" or not found or not asked or number != asked["n"]:
            return no_update if kept else None, None
        if kept:
            return no_update, duals_note(kept)
        problem = None if found.get("trouble") else live.problem_requested(asked)
        if problem is None or isinstance(problem, str):
            return None, None
        told = live.duals_summary(problem)
        return {**told, "n": number}, duals_note(told)


def _layers(app: Dash) -> None:
    """Wire the buttons of what is drawn over the cluster: one at a time."""
    app.clientside_callback(
        ClientsideFunction("topoloom", "layer"),
        Output(ids.LAYER, "data"),
        Input({"layer": ALL}, "n_clicks"),
        State(ids.LAYER, "data"),
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
        Input(ids.PATHS_MARKS, "data"),
        Input({"layer": ALL}, "id"),
        prevent_initial_call=False,
    )
