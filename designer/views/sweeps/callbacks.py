"""Sweeps: which rows are looked at, the plot and the table, a row on the canvas."""

from __future__ import annotations

from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, no_update

from ccl import text
from ccl.errors import CclError
from designer.shell import ids
from designer.shell.markup import note
from designer.views.draw import opening
from designer.views.sweeps import page
from designer.views.sweeps.shelf import Shelf
from designer.views.sweeps.table import chosen, read_choice, table, values
from widgets.charts.sweep import MOST_LINES, lines_of, sweep_figure


def register(app: Dash, shelf: Shelf) -> None:
    """Wire the Sweeps view."""
    _choose(app, shelf)
    _look(app, shelf)
    _open(app, shelf)
    app.clientside_callback(
        "(view) => view !== 'sweeps'", Output(ids.SWEEP_TICK, "disabled"), Input(ids.VIEW, "value")
    )


def _choose(app: Dash, shelf: Shelf) -> None:
    @app.callback(
        Output({"sweep-names": ALL}, "data"),
        Output({"sweep-names": ALL}, "value"),
        Output(ids.SWEEP_STAMP, "data"),
        Output(ids.SWEEP_STATUS, "children"),
        Input(ids.SWEEP_NAME, "value"),
        Input(ids.SWEEP_TICK, "n_intervals"),
        Input(ids.VIEW, "value"),
        State(ids.SWEEP_STAMP, "data"),
    )
    def on_sweep(name: str, _tick: int | None, view: str, stamp: Any) -> tuple[Any, ...]:
        nothing: list[Any] = [no_update] * len(page.FIELDS)
        if view != page.NAME:
            return nothing, nothing, no_update, no_update
        try:
            found = shelf.found(name)
        except CclError as error:
            return nothing, nothing, no_update, text.sentence(str(error))
        if stamp == [name, found.stamp]:
            return nothing, nothing, no_update, no_update
        names = [values(found.rows, field.removesuffix("s")) for field in page.FIELDS]
        known = bool(stamp) and stamp[0] == name
        fresh: list[Any] = nothing if known else [[] for _ in page.FIELDS]
        return names, fresh, [name, found.stamp], page.status(found)

    app.clientside_callback(
        """(presses, now) => {
            const asked = window.dash_clientside.callback_context.triggered_id;
            if (!asked || !presses.some(Boolean)) return window.dash_clientside.no_update;
            const by = asked["sweep-sort"];
            return { by, down: now?.by === by ? !now.down : ["busbw", "size"].includes(by) };
        }""",
        Output(ids.SWEEP_SORT, "data"),
        Input({"sweep-sort": ALL}, "n_clicks"),
        State(ids.SWEEP_SORT, "data"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        """(names, shown, words, sort) => {
            const [clusters, collectives, formulations] = names;
            return { clusters, collectives, formulations, shown, words, ...sort };
        }""",
        Output(ids.SWEEP_CHOICE, "data"),
        Input({"sweep-names": ALL}, "value"),
        Input(ids.SWEEP_SHOWN, "value"),
        Input(ids.SWEEP_WORDS, "value"),
        Input(ids.SWEEP_SORT, "data"),
    )


def _look(app: Dash, shelf: Shelf) -> None:
    @app.callback(
        Output(ids.SWEEP_TABLE, "children"),
        Output(ids.SWEEP_PLOT, "figure"),
        Output(ids.SWEEP_NOTE, "children"),
        Input(ids.SWEEP_CHOICE, "data"),
        Input(ids.SWEEP_STAMP, "data"),
        Input(ids.SWEEP_QUANTITY, "value"),
        Input(ids.SWEEP_OVER, "value"),
        Input(ids.SCHEME_NOW, "data"),
        prevent_initial_call=True,
    )
    def on_choice(
        choice: Any, stamp: Any, quantity: Any, over: Any, scheme: str | None
    ) -> tuple[Any, ...]:
        if not stamp:
            return no_update, no_update, no_update
        asked = read_choice(choice)
        try:
            rows = chosen(shelf.found(stamp[0]).rows, asked)
        except CclError as error:
            return no_update, no_update, text.sentence(str(error))
        lines = lines_of(rows, over=over, quantity=quantity)
        figure = sweep_figure(lines, over=over, quantity=quantity, scheme=scheme)
        more = len(lines) - MOST_LINES
        note_ = f"The first {MOST_LINES} of {len(lines)} lines; filter to see others."
        return table(rows, asked), figure, note_ if more > 0 else None


def _open(app: Dash, shelf: Shelf) -> None:
    @app.callback(
        output=opening.outputs(),
        inputs={"clicks": Input({"sweep-open": ALL}, "n_clicks")},
        state={"stamp": State(ids.SWEEP_STAMP, "data"), "job": State(ids.JOB, "data")},
        prevent_initial_call=True,
    )
    def on_open(clicks: list[int | None], stamp: Any, job: Any) -> dict[str, Any]:
        if not (any(clicks) and ctx.triggered_id and stamp):
            return opening.filled({})
        if job:
            return opening.filled({"notes": note(opening.BUSY)})
        return opening.filled(opened(shelf, stamp[0], ctx.triggered_id["sweep-open"]))


def opened(shelf: Shelf, name: str, task: str) -> dict[str, Any]:
    """Return what changes on the page when the row of a task is opened on the canvas."""
    try:
        result = shelf.result(name, task)
    except CclError as error:
        return opening.refused(str(error))
    return opening.opened(result)
