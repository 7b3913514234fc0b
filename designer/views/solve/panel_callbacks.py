"""The panels at the right: verdict, bounds, link load."""

from __future__ import annotations

from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, no_update

from designer.shell import ids
from designer.views.solve import results
from designer.views.solve.assess import same_question
from widgets.charts.load import MOST_ROWS, ROWS, link_load_figure


def register(app: Dash) -> None:
    """Wire the panels."""
    _schedule(app)
    _bounds(app)
    _charts(app)


def _schedule(app: Dash) -> None:
    @app.callback(
        Output(ids.SCHEDULE, "children"),
        Output(ids.TROUBLE, "children"),
        Output(ids.SOLVE, "disabled"),
        Input(ids.SUMMARY, "data"),
        Input(ids.CANVAS, "stale"),
        Input(ids.REQUEST, "data"),
        Input(ids.ASSESSMENT, "data"),
        Input(ids.JOB, "data"),
    )
    def on_summary(
        summary: dict[str, Any] | None,
        stale: bool | None,
        request: dict[str, Any] | None,
        known: dict[str, Any] | None,
        job: dict[str, Any] | None,
    ) -> tuple[Any, Any, bool]:
        trouble = (known or {}).get("trouble")
        asked_else = "" if same_question(summary, request) else "what is asked"
        changed = "the drawing" if stale else asked_else
        return (
            results.schedule_panel(summary, stale=changed, solving=bool(job)),
            results.trouble(trouble),
            bool(trouble),
        )


def _bounds(app: Dash) -> None:
    @app.callback(
        Output(ids.BOUNDS, "children"),
        Output(ids.CANVAS, "cuts"),
        Input(ids.ASSESSMENT, "data"),
        Input(ids.SUMMARY, "data"),
        Input(ids.CUT, "data"),
        Input(ids.CANVAS, "stale"),
        Input(ids.OPTIMUM, "data"),
        State(ids.REQUEST, "data"),
    )
    def on_bounds(*given: Any) -> tuple[Any, list[dict[str, Any]]]:
        known, summary, choice, stale, best, request = given
        fresh = summary if not stale and same_question(summary, request) else None
        bounds = results.bounds_shown(known, fresh)
        shown = results.shown_cut(bounds, choice)
        makespan = fresh["makespan"] if fresh else None
        cuts = [] if shown is None else [results.cut_of(bounds[shown])]
        rate = results.rate_cut(best, choice)
        if rate is not None:
            cuts, shown = [rate], results.same_cut(bounds, rate)
        panel = results.bounds_panel(
            bounds, makespan=makespan, shown=shown, hint=(known or {}).get("hint", "")
        )
        return panel, cuts

    @app.callback(
        Output(ids.CUT, "data"),
        Output(ids.CANVAS, "selection", allow_duplicate=True),
        Input({"bound": ALL}, "n_clicks"),
        State({"bound": ALL}, "aria-pressed"),
        State(ids.ASSESSMENT, "data"),
        State(ids.SUMMARY, "data"),
        State(ids.CANVAS, "stale"),
        State(ids.REQUEST, "data"),
        prevent_initial_call=True,
    )
    def on_bound(clicks: list[int | None], _pressed: list[str], *given: Any) -> tuple[Any, Any]:
        if not any(clicks) or not ctx.triggered_id:
            return no_update, no_update
        number = ctx.triggered_id["bound"]
        states = {row["id"]["bound"]: row.get("value") for row in ctx.states_list[0]}
        known, summary, stale, request = given
        fresh = summary if not stale and same_question(summary, request) else None
        bounds = results.bounds_shown(known, fresh)
        path = bounds[number]["path"] if number < len(bounds) else None
        if path:
            return None, {"devices": path, "links": [], "hosts": []}
        return (None if states.get(number) == "true" else number), no_update


def _charts(app: Dash) -> None:
    @app.callback(
        Output(ids.LOAD, "figure"),
        Output(ids.LOAD, "style"),
        Output(ids.LOAD_BOX, "hidden"),
        Output(ids.LOAD_ALL, "children"),
        Output(ids.LOAD_ALL, "style"),
        Input(ids.LOAD_DATA, "data"),
        Input(ids.SCHEME_NOW, "data"),
        Input(ids.LOAD_ALL, "n_clicks"),
    )
    def on_load(
        load: dict[str, Any] | None, scheme: str | None, clicks: int | None
    ) -> tuple[Any, ...]:
        if not load or not load["links"]:
            return no_update, no_update, True, no_update, no_update
        links = len(load["links"])
        all_of_them = bool(clicks and clicks % 2)
        figure = link_load_figure(load, scheme, rows=MOST_ROWS if all_of_them else ROWS)
        label = f"First {ROWS}" if all_of_them else f"All {min(links, MOST_ROWS)}"
        height = {"height": figure.layout.height}
        return figure, height, False, label, {} if links > ROWS else {"display": "none"}
