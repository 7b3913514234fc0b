"""Comparing: run, watch, stop, open a row, play two. The work is done in `compare`.

A comparison as a file: everything as JSON, the table as CSV, a page, the plot for print.
"""

import json
from collections.abc import Sequence
from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, no_update

from ccl import text
from ccl.errors import CclError
from ccl.layout import layout
from ccl.serialization.documents import Positions
from ccl.serialization.quantity import format_size
from ccl.serialization.text import csv_text
from ccl.serialization.topoloom import result_to_json, topology_to_json
from designer.server.sessions import key_of, sealed, visitor
from designer.shell import ids, ui
from designer.shell import request as commands
from designer.shell.request import Json, callback, method_title, plan
from designer.views.compare import page
from designer.views.compare.running import (
    Comparisons,
    Standing,
    changed_since,
    read_question,
    sizes_words,
)
from designer.views.compare.table import table
from designer.views.draw import files
from designer.views.solve import assess
from formulations import available
from formulations.analyses.comparison import Comparison, comparison_to_json
from widgets.charts.comparison import Quantity, comparison_figure
from widgets.pages.comparison import comparison_html
from widgets.view_model.gap import course
from widgets.view_model.scene import MOST_PLAYERS, choices, films, first_pair, row_of

COLUMN = 120.0
"""Width of the plot in mm."""
WIDTH = COLUMN / 25.4 * 96
"""The same in pixels, of which an inch has 96."""


def export(
    kind: str, comparison: Comparison, *, quantity: Quantity | None, positions: Positions | None
) -> str:
    """Return a file of a kind: ``html``, ``svg``, ``json`` or ``csv``.

    Parameters
    ----------
    kind, comparison
        Which, and of what.
    quantity
        What the plot shows.
    positions
        Where devices are drawn.
    """
    if kind == "html":
        return export_page(comparison, positions)
    if kind == "svg":
        return export_plot(comparison, quantity)
    return {"json": export_json, "csv": export_csv}[kind](comparison)


def export_json(comparison: Comparison) -> str:
    """Return the whole comparison with every plan; `comparison_from_json` reads it."""
    return json.dumps(comparison_to_json(comparison), separators=(",", ":"))


def export_csv(comparison: Comparison) -> str:
    """Return a row per method and size: bytes, µs, GB/s and s; what is not there is empty."""
    rows = comparison.table()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return csv_text([columns, *([row.get(key, "") for key in columns] for row in rows)])


def export_page(comparison: Comparison, positions: Positions | None) -> str:
    """Return a page that shows it from disk; devices lie where they are drawn, if they are."""
    topology = comparison.problem.topology
    places = {**layout(topology), **(positions or {})}
    kept = {name: place for name, place in places.items() if name in topology.index}
    return comparison_html(comparison, kept)


def export_plot(comparison: Comparison, quantity: Quantity | None) -> str:
    """Return the plot for a paper, a column wide."""
    from widgets.print.painter import svg  # noqa: PLC0415 - it loads matplotlib
    from widgets.print.plots import comparison_picture  # noqa: PLC0415 - it loads matplotlib

    plot = comparison_picture(comparison, quantity=quantity or "time", style="paper", width=WIDTH)
    return svg(plot, column=COLUMN)


def entitle(figure: Any, comparison: Comparison) -> None:
    """Call the methods of a plot as they are called on the page."""
    longest_first = sorted(map(str, comparison.methods), key=len, reverse=True)
    titles = {name: method_title(name) for name in longest_first}

    def said(words: str) -> str:
        for name, title in titles.items():
            words = words.replace(f"<b>{name}</b>", f"<b>{title}</b>")
            words = words.replace(f"overtakes {name}", f"overtakes {title}")
        return words

    for trace in figure.data:
        trace.name = titles.get(trace.name, trace.name)
        if trace.text is not None:
            trace.text = [said(each) for each in trace.text]
    for each in figure.layout.annotations:
        each.text = said(each.text)


GONE = "this comparison is not there any more; compare again"


def register(app: Dash, comparisons: Comparisons) -> None:
    """Wire the Compare view."""
    _ask(app)
    _run(app, comparisons)
    _watch(app, comparisons)
    _rows(app, comparisons)
    _stale(app, comparisons)
    _open(app, comparisons)
    _pick(app)
    _beside(app, comparisons)
    _export(app, comparisons)


def _ask(app: Dash) -> None:
    @app.callback(Output(ids.COMPARE_METHODS, "children"), Input(ids.FORMULATION, "data"))
    def on_choices(choices: list[Json]) -> Any:
        return page.method_rows(
            {each["value"]: each["note"] for each in choices if each["disabled"]}
        )

    app.clientside_callback(
        "(methods) => methods?.length ? null : window.dash_clientside.no_update",
        Output(ids.COMPARE_METHODS, "error", allow_duplicate=True),
        Input(ids.COMPARE_METHODS, "value"),
    )

    @app.callback(
        Output(ids.COMPARE_METHODS, "value"),
        Input(ids.COMPARE_ALL, "n_clicks"),
        Input(ids.COMPARE_NONE, "n_clicks"),
    )
    def on_all(_all: int | None, _none: int | None) -> list[str]:
        return [each.name for each in available()] if ctx.triggered_id == ids.COMPARE_ALL else []

    @app.callback(
        Output(ids.COMPARE_SIZES, "description"),
        Output(ids.COMPARE_SIZES, "error"),
        Input(ids.COMPARE_SIZES, "value"),
        prevent_initial_call=False,
    )
    def on_sizes(words: str | None) -> tuple[str, str | None]:
        meant, wrong = sizes_words(words or "")
        return meant, wrong or None


def _run(app: Dash, comparisons: Comparisons) -> None:
    @callback(
        app,
        output={
            "job": Output(ids.COMPARE_JOB, "data"),
            "seen": Output(ids.COMPARE_SEEN, "data"),
            "opened": Output(ids.COMPARE_OPENED, "data"),
            "methods_error": Output(ids.COMPARE_METHODS, "error"),
            "notes": commands.notes(),
        },
        inputs={"clicks": Input(ids.COMPARE_RUN, "n_clicks")},
        state={
            **commands.states("drawing", "request", "options", "sketches"),
            "methods": State(ids.COMPARE_METHODS, "value"),
            "sizes": State(ids.COMPARE_SIZES, "value"),
            "seconds": State(ids.COMPARE_SECONDS, "value"),
        },
        running=[(Output(ids.COMPARE_RUN, "loading"), True, False)],
    )
    def on_run(
        *,
        drawing: Any,
        request: Any,
        methods: Any,
        sizes: Any,
        seconds: Any,
        options: Any,
        sketches: Any,
        **_: Any,
    ) -> Json:
        try:
            question = read_question(
                drawing["topology"],
                request,
                methods=methods or (),
                sizes=sizes or "",
                seconds=seconds,
                options=_set(options, sketches),
            )
            key = comparisons.start(question.taken(), owner=visitor())
        except CclError as error:
            if not methods:
                return {"methods_error": text.sentence(str(error))}
            return {"notes": ui.note(str(error), title="Cannot compare")}
        return {"job": {"key": sealed(key)}, "seen": None, "opened": "", "methods_error": None}

    commands.stops(
        app, lambda job: comparisons.cancel(key_of(job)), ids.COMPARE_JOB, ids.COMPARE_STOP
    )


def _set(options: dict[str, Json] | None, sketches: dict[str, Json] | None) -> dict[str, Json]:
    """Return what the user has set of each formulation, its sketch among it."""
    given, drawn = options or {}, sketches or {}
    return {name: {**given.get(name, {}), **drawn.get(name, {})} for name in {**given, **drawn}}


def _watch(app: Dash, comparisons: Comparisons) -> None:
    app.clientside_callback(
        ClientsideFunction("topoloom", "comparing"),
        Output(ids.COMPARE_RUN, "style"),
        Output(ids.COMPARE_STOP, "style"),
        Output(ids.COMPARE_TICK, "disabled"),
        Output(ids.COMPARE_BESIDE, "disabled"),
        Output(ids.COMPARE_DIFFERENCE, "disabled"),
        Output(ids.COMPARE_EXPORT, "disabled"),
        Input(ids.COMPARE_JOB, "data"),
        Input(ids.COMPARE_SEEN, "data"),
        prevent_initial_call=False,
    )
    commands.beats(app, ids.COMPARE_TICK, busy=ids.COMPARE_BUSY, beat=ids.COMPARE_BEAT)

    @callback(
        app,
        output={
            "status": Output(ids.COMPARE_STATUS, "children"),
            "seen": Output(ids.COMPARE_SEEN, "data", allow_duplicate=True),
            "job": Output(ids.COMPARE_JOB, "data", allow_duplicate=True),
            "notes": commands.notes(),
        },
        inputs={"beat": Input(ids.COMPARE_BEAT, "data")},
        state={"job": State(ids.COMPARE_JOB, "data"), "seen": State(ids.COMPARE_SEEN, "data")},
        running=[(Output(ids.COMPARE_BUSY, "data"), True, False)],
    )
    def on_beat(job: Json | None, seen: Json | None, **_: Any) -> Json:
        if not job:
            return {}
        standing = _standing(comparisons, job)
        if standing is None:  # the server has begun anew
            return {"status": page.status(None), "seen": None, "job": None}
        now = {
            "key": job["key"],
            "turn": standing.turn,
            "running": standing.running,
            "plans": sum(row.result is not None for row in standing.comparison.rows),
        }
        return {"status": page.status(standing), "seen": no_update if now == seen else now}


def _rows(app: Dash, comparisons: Comparisons) -> None:
    @app.callback(
        Output(ids.COMPARE_TABLE, "children"),
        Input(ids.COMPARE_SEEN, "data"),
        Input(ids.COMPARE_OPENED, "data"),
        State(ids.COMPARE_JOB, "data"),
        State(ids.COMPARE_PICKED, "data"),
    )
    def on_seen(_seen: Any, opened: str, job: Json | None, picked: list[str] | None) -> Any:
        standing = _standing(comparisons, job)
        if standing is None:
            return page.empty()
        return table(standing, opened=opened or "", picked=picked or ())

    app.clientside_callback(
        ClientsideFunction("topoloom", "unfolded"),
        Input(ids.COMPARE_TABLE, "children"),
        State(ids.COMPARE_OPENED, "data"),
    )

    @callback(
        app,
        output={
            "plot_figure": ui.figure(ids.COMPARE_PLOT),
            "note": Output(ids.COMPARE_NOTE, "children"),
            "plot_box_hidden": Output(ids.COMPARE_PLOT_BOX, "hidden"),
        },
        inputs={
            "seen": Input(ids.COMPARE_SEEN, "data"),
            "quantity": Input(ids.COMPARE_QUANTITY, "value"),
            "scheme": Input(ids.SCHEME_NOW, "data"),
        },
        state={"job": State(ids.COMPARE_JOB, "data")},
    )
    def on_plot(quantity: Any, scheme: str | None, job: Any, **_: Any) -> Json:
        standing = _standing(comparisons, job)
        if standing is None or not any(row.result for row in standing.comparison.rows):
            return {"plot_box_hidden": True}
        comparison = standing.comparison
        figure = comparison_figure(comparison, quantity=quantity, scheme=scheme, height=None)
        entitle(figure, comparison)
        return {"plot_figure": figure, "note": page.notes(comparison), "plot_box_hidden": False}

    @app.callback(
        Output(ids.COMPARE_OPENED, "data", allow_duplicate=True),
        Input({"compare-more": ALL}, "n_clicks"),
        State(ids.COMPARE_OPENED, "data"),
    )
    def on_more(clicks: list[int | None], opened: str) -> Any:
        if not any(clicks) or not ctx.triggered_id:
            return no_update
        key = ctx.triggered_id["compare-more"]
        return "" if key == opened else key


def _stale(app: Dash, comparisons: Comparisons) -> None:
    @app.callback(
        Output(ids.COMPARE_STALE, "children"),
        Output(ids.COMPARE_FOUND, "className"),
        Input(ids.PROBLEM, "data"),
        Input(ids.COMPARE_SEEN, "data"),
        State(ids.COMPARE_JOB, "data"),
    )
    def on_problem(problem: Json | None, _seen: Any, job: Any) -> tuple[Any, str]:
        standing = _standing(comparisons, job)
        if standing is None or not problem:
            return None, "ds-cmp-right"
        changed = changed_since(standing.question, problem["topology"], problem["request"])
        if not changed:
            return None, "ds-cmp-right"
        words = f"Out of date: {changed} has changed. Compare again."
        return ui.banner("clock", "plain", words), "ds-cmp-right ds-cmp-old"


def _open(app: Dash, comparisons: Comparisons) -> None:
    @callback(
        app,
        output={
            **plan(),
            **commands.changes("size", "formulation", "notes"),
            "view": Output(ids.VIEW, "value"),
        },
        inputs={"clicks": Input({"compare-open": ALL, "from": ALL}, "n_clicks")},
        state={"job": State(ids.COMPARE_JOB, "data"), "solve": State(ids.JOB, "data")},
    )
    def on_open(clicks: list[int | None], job: Any, solve: Any) -> Json:
        if not any(clicks) or not ctx.triggered_id:
            return {}
        if solve:
            return {"notes": ui.note("a solve is running and shows its own plans; stop it first")}
        standing = _standing(comparisons, job)
        row = standing and row_of(standing.comparison, ctx.triggered_id["compare-open"])
        if not standing or not row or row.result is None:
            return {"notes": ui.note(GONE)}
        result, size = row.result, format_size(row.size)
        question = {
            **standing.question.request,
            "size": size,
            "formulation": row.method.formulation,
        }
        shown = assess.views_of(result, question)
        point = (result.solve_time, result.makespan, result.bound.makespan)
        return {
            "scene": shown["scene"],
            "summary": shown["summary"],
            "load": shown["load"],
            "result": result_to_json(result),
            "course": course((point,), seconds=result.solve_time, running=False),
            "size": size,
            "formulation": row.method.formulation,
            "view": "canvas",
        }

    # Whoever solves wants to see it: the canvas and the card of the solve are in another view.
    app.clientside_callback(
        "(job, view) => job && ['compare', 'whatif', 'catalog'].includes(view) ? 'canvas' "
        ": window.dash_clientside.no_update",
        Output(ids.VIEW, "value", allow_duplicate=True),
        Input(ids.JOB, "data"),
        State(ids.VIEW, "value"),
    )


def _pick(app: Dash) -> None:
    app.clientside_callback(
        ClientsideFunction("topoloom", "picked"),
        Output(ids.COMPARE_PICKED, "data"),
        Output({"compare-pick": ALL}, "disabled"),
        Output({"compare-pick": ALL}, "checked"),
        Input({"compare-pick": ALL}, "checked"),
        State(ids.COMPARE_PICKED, "data"),
    )


def _beside(app: Dash, comparisons: Comparisons) -> None:
    app.clientside_callback(
        ClientsideFunction("topoloom", "beside"),
        Output(ids.COMPARE_PANE, "data-show"),
        Output(ids.COMPARE_BESIDE, "children"),
        Output(ids.COMPARE_BESIDE, "aria-pressed"),
        Output(ids.COMPARE_OPENED, "data", allow_duplicate=True),
        Output(ids.COMPARE_PAIR, "view"),
        Input(ids.COMPARE_BESIDE, "n_clicks"),
        Input(ids.COMPARE_DIFFERENCE, "n_clicks"),
        Input({"compare-beside": ALL}, "n_clicks"),
        Input(ids.COMPARE_PICKED, "data"),
        State(ids.COMPARE_PANE, "data-show"),
        State(ids.COMPARE_OPENED, "data"),
    )

    @callback(
        app,
        output={
            "pair_drawing": Output(ids.COMPARE_PAIR, "drawing"),
            "pair_choices": Output(ids.COMPARE_PAIR, "choices"),
            "pair_chosen": Output(ids.COMPARE_PAIR, "chosen"),
            "pair_films": Output(ids.COMPARE_PAIR, "films"),
        },
        inputs={
            "show": Input(ids.COMPARE_PANE, "data-show"),
            "chosen": Input(ids.COMPARE_PAIR, "chosen"),
            "seen": Input(ids.COMPARE_SEEN, "data"),
        },
        state={
            "job": State(ids.COMPARE_JOB, "data"),
            "opened": State(ids.COMPARE_OPENED, "data"),
            "picked": State(ids.COMPARE_PICKED, "data"),
            "drawing": State(ids.CANVAS, "drawing"),
        },
    )
    def on_beside(
        *,
        show: str,
        chosen: list[str],
        job: Any,
        opened: Any,
        picked: list[str],
        drawing: Any,
        **_: Any,
    ) -> Json:
        standing = _standing(comparisons, job)
        if show != "pair" or standing is None:
            return {"pair_films": []}
        comparison = standing.comparison
        there = _played(comparison, chosen)
        if there and ctx.triggered_id == ids.COMPARE_SEEN:  # more to choose from, nothing to load
            return {"pair_choices": _choices(comparison)}
        if not there or ctx.triggered_id == ids.COMPARE_PANE:
            ticked = picked if _played(comparison, picked) else []
            chosen = _first(standing, opened, ticked or (chosen if there else []))
        topology = topology_to_json(comparison.problem.topology)
        drawn = {"topology": topology, "positions": drawing["positions"]}
        return {
            "pair_drawing": drawn,
            "pair_choices": _choices(comparison),
            "pair_chosen": chosen,
            "pair_films": films(comparison, chosen),
        }


def _played(comparison: Comparison, keys: Sequence[str]) -> bool:
    """Return whether all of these are there, and as many as can go in step."""
    return 2 <= len(keys) <= MOST_PLAYERS and all(row_of(comparison, key) for key in keys)


def _choices(comparison: Comparison) -> list[dict[str, str]]:
    """Return the rows to play, their methods by what they are called on the page."""
    return [{**each, "label": method_title(each["label"])} for each in choices(comparison)]


def _first(standing: Standing, opened: str, before: list[str]) -> list[str]:
    """Return those to begin with: the row whose details are shown, and another of its size."""
    comparison = standing.comparison
    row = row_of(comparison, opened)
    if row is None:
        return before or first_pair(comparison)
    others = [key for key in first_pair(comparison, row.size) if key != opened]
    return [opened, (others or [opened])[0]]


def _export(app: Dash, comparisons: Comparisons) -> None:
    @app.callback(
        Output(ids.DOWNLOAD, "data", allow_duplicate=True),
        commands.notes(),
        Input({"compare-export": ALL}, "n_clicks"),
        State(ids.COMPARE_JOB, "data"),
        State(ids.COMPARE_QUANTITY, "value"),
        State(ids.CANVAS, "drawing"),
    )
    def on_export(clicks: list[int | None], job: Any, quantity: Any, drawing: Any) -> Any:
        if not any(clicks) or not ctx.triggered_id:
            return no_update, no_update
        kind = ctx.triggered_id["compare-export"]
        standing = _standing(comparisons, job)
        if standing is None:
            return no_update, ui.note(GONE)
        comparison = standing.comparison
        places = drawing.get("positions") if drawing else None
        content = export(kind, comparison, quantity=quantity, positions=places)
        topology = {"name": comparison.problem.topology.name}
        name = files.file_name(topology, f"comparison.{kind}")
        return {"content": content, "filename": name}, no_update


def _standing(comparisons: Comparisons, job: Json | None) -> Standing | None:
    return comparisons.standing(key_of(job))
