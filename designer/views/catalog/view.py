"""The Catalog view: what is held of the cluster, tables that take a while, a plan on the canvas."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dash_mantine_components as dmc
from dash import ALL, Dash, Input, Output, State, ctx, dcc, html, no_update

from ccl import text
from ccl.errors import CclError, ProblemError
from ccl.result import Status
from ccl.serialization.quantity import format_size
from ccl.topology import Topology
from designer.server.reading import Apart
from designer.server.sessions import visitor
from designer.session import topology_of
from designer.shell import ids, request, ui
from designer.shell.request import callback, method_title
from designer.studies import Studies
from designer.views.catalog import studies
from designer.views.catalog.catalog_view import CatalogView, Look, Table, made
from designer.views.draw import import_card
from designer.views.draw.files import file_name
from widgets.charts.atlas import atlas_figure
from widgets.charts.comparison import LOOKS, MOST_LOOKS, method_places

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Entry, TunerRange, TunerTable

NAME = "catalog"
"""Its name in the choice of views."""

NONE = (
    "Solve it, or compare methods: every plan that is found here is kept, and answers at once on "
    "each cluster of the same shape, whatever its devices are called."
)
ATLAS_NOTE = "The fastest stored plan of each, and how many times as fast as the best stored ring."
SIZES = "at each size from 1 KB to 1 GB, whatever size it was solved for"


def view() -> ui.Extra:
    """Return the view."""
    return ui.Extra(NAME, "Catalog", _pane(), _stores())


def _stores() -> list[Any]:
    return [
        dcc.Store(id=ids.CATALOG_CLUSTER),
        dcc.Store(id=ids.CATALOG_TOKEN),
        dcc.Store(id=ids.CATALOG_VISIBLE),
        dcc.Interval(id=ids.CATALOG_TICK, interval=400, disabled=True),
    ]


def _pane() -> html.Div:
    return ui.div(
        "ds-pane ds-sto",
        html.Div(id=ids.CATALOG_STATUS, role="status", className="ds-sto-status"),
        html.Div(id=ids.CATALOG_NONE, className="ds-sto-none"),
        ui.div(
            "ds-sto-found",
            _tuner(),
            _atlas(),
            _card("Stored plans", html.Div(id=ids.CATALOG_PLANS)),
            id=ids.CATALOG_FOUND,
            hidden=True,
        ),
        studies.card(),
        id="catalog-pane",
        tabIndex=0,
        role="region",
        aria_label="Catalog",
    )


def _tuner() -> html.Section:
    choice = ui.select(
        ids.CATALOG_KIND, [], value=None, w=136, aria_label="Collective of the table"
    )
    exports = ui.div("ds-row", _small("CSV", ids.CATALOG_CSV), _small("JSON", ids.CATALOG_JSON))
    return _card("Best plan for each size", html.Div(id=ids.CATALOG_TUNED), choice, exports)


def _atlas() -> html.Section:
    graph = ui.graph(ids.CATALOG_ATLAS)
    return _card(
        "Best method for each collective",
        html.Div(
            [
                html.Div(id=ids.CATALOG_DOING, className="ds-note"),
                html.Div(graph, id=ids.CATALOG_ATLAS_BOX, hidden=True),
            ]
        ),
    )


def _card(title: str, content: Any, *controls: Any) -> html.Section:
    return ui.section(
        title, ui.div("ds-sto-head", html.H2(title), *controls), content, className="ds-sto-card"
    )


def _small(words: str, key: str) -> dmc.Button:
    about = f"Export the table as {words}"
    return ui.quiet(words, key, "download", disabled=True, aria_label=about)


def status(look: Look, *, held: int, path: str) -> list[Any]:
    """Say how many plans of a cluster there are, and of all.

    Parameters
    ----------
    look
        What there is of the cluster.
    held
        How many plans the catalog holds.
    path
        Where it lies.
    """
    others = {each.cluster for each in look.entries} - {look.topology.name}
    kept = f", some kept for {text.listing(sorted(others)[:3])}" if others else ""
    return [
        html.B(f"{text.count(len(look.entries), 'plan')} of {look.topology.name}"),
        html.Span(f"{kept}; {held:,} in {path}", title=path),
    ]


def nothing(look: Look) -> list[Any]:
    """Say that a cluster has no plan, and what to do about it."""
    return [ui.icon("memory"), html.B(f"No plan of {look.topology.name} yet"), html.Span(NONE)]


def choices(look: Look) -> list[dict[str, str]]:
    """Return the collectives of a cluster that have plans."""
    return [{"value": each, "label": ui.COLLECTIVE_LABELS[each]} for each in look.kinds]


def doing(table: Table, plans: int) -> html.Div:
    """Say what is made, how far it is, and for how long already.

    Parameters
    ----------
    table
        What is made.
    plans
        How many plans are replayed.
    """
    words = f"Replaying {text.count(plans, 'plan')} {SIZES}; {text.seconds(table.seconds)} so far"
    return ui.div(
        "ds-sto-doing",
        ui.div("ds-note", words),
        dmc.Progress(
            value=100 * table.done / max(1, table.steps),
            size=3,
            **ui.attributes(aria_label="Plans replayed"),
        ),
    )


def untuned(table: TunerTable) -> html.Div:
    """Say that no stored plan answers the request of the table."""
    root = f" from rank {table.root}" if table.root else ""
    return ui.div(
        "ds-note",
        f"No stored plan of {table.kind}{root} can be replayed at other "
        "sizes. Compare methods at several sizes, and their plans are in the table.",
    )


MOST_ROWS = 200
"""Plans that are listed; ``topoloom catalog list`` lists all."""

PLANS = ("Collective", "Size", "Method", "Makespan", "algbw", "Gap", "Solved in", "Kept", "For")
RANGES = ("From", "To", "Method", "Makespan", "algbw", "Above the bound", "Solved for")


def plans(entries: Sequence[Entry], name: str) -> html.Div:
    """Return the plans of a cluster, each opened by a press.

    Parameters
    ----------
    entries
        The plans.
    name
        Of the cluster as it is drawn; others are named.
    """
    shown = ui.table(
        "Stored plans", "ds-sto-table", PLANS, [_plan(each, name) for each in entries[:MOST_ROWS]]
    )
    more = len(entries) - MOST_ROWS
    left = f"{text.count(more, 'more plan')}; topoloom catalog list lists all"
    return html.Div([shown, ui.div("ds-note", left) if more > 0 else None])


def ranges(table: TunerTable, among: Sequence[str] = ()) -> html.Div:
    """Return which plan is the fastest from where to where: a bar of sizes, and a table.

    Parameters
    ----------
    table
        The ranges.
    among
        Methods that are shown beside it, whose colours are others.
    """
    rows = [_range(each) for each in table.ranges]
    note = text.listing([text.sentence(each) for each in table.left_out[:2]])
    return html.Div(
        [
            _bar(table.ranges, among),
            ui.table("Best plan of each range of sizes", "ds-sto-table", RANGES, rows),
            ui.div("ds-note", note) if note else None,
        ]
    )


def method(entry: Entry) -> str:
    """Say who found a plan."""
    return method_title(entry.formulation, entry.found_by)


def _bar(found: Sequence[TunerRange], among: Sequence[str]) -> html.Div:
    """Return the ranges as parts of a bar, as wide as on a logarithmic axis."""
    places = method_places({*among, *(each.algorithm for each in found)})
    light, dark = LOOKS["light"].lines, LOOKS["dark"].lines
    tones = {
        name: f"light-dark({light[i % MOST_LOOKS]}, {dark[i % MOST_LOOKS]})"
        for name, i in places.items()
    }
    parts = [
        ui.div(
            "ds-sto-part",
            html.Span(each.algorithm, className="ds-sto-who"),
            html.Span(text.size(each.begin), className="ds-sto-mark"),
            html.Span(text.size(each.end), className="ds-sto-mark ds-sto-last")
            if each is found[-1]
            else None,
            style={
                "flexGrow": round(math.log(each.end / each.begin), 3),
                "--tone": tones[each.algorithm],
            },
            title=f"{each.algorithm}, {format_size(each.begin)} to {format_size(each.end)}",
        )
        for each in found
    ]
    return ui.div("ds-sto-bar", parts, aria_hidden="true")


def _plan(entry: Entry, name: str) -> html.Tr:
    kind = ui.COLLECTIVE_LABELS.get(entry.kind, entry.kind)
    root = f" from {entry.root}" if entry.kind in ui.ROOTED and entry.root else ""
    chunks = f", {entry.chunks} chunks" if entry.chunks > 1 else ""
    status = text.share(entry.gap) if entry.status is Status.FEASIBLE else entry.verdict
    cells = (
        text.size(entry.size),
        method(entry),
        text.duration(entry.makespan),
        text.bandwidth(entry.algbw),
        status,
        text.seconds(entry.solve_time),
        entry.kept[:10],
        "" if entry.cluster == name else entry.cluster,
    )
    return _row(entry, f"{kind}{root}{chunks}", cells, place="plans")


def _range(each: TunerRange) -> html.Tr:
    above = [time / least - 1 for time, least in zip(each.makespans, each.bounds, strict=True)]
    cells = (
        text.size(each.end),
        each.algorithm,
        _both([text.duration(time) for time in each.makespans]),
        _both([text.bandwidth(rate) for rate in each.algbws]),
        _both([text.share(share) for share in above]),
        text.size(each.entry.size),
    )
    return _row(each.entry, text.size(each.begin), cells, place=str(each.begin))


def _row(entry: Entry, head: str, cells: Sequence[str], *, place: str) -> html.Tr:
    opens = ui.press(
        head,
        {"catalog-open": entry.number, "from": place},
        title=f"Open plan {entry.number}: {method(entry)} for {text.size(entry.size)}",
    )
    told = [html.Td(each, title=each if len(each) > 20 else None) for each in cells]
    return html.Tr([html.Th(opens, scope="row"), *told])


def _both(words: Sequence[str]) -> str:
    return " to ".join(dict.fromkeys(words))


Json = dict[str, Any]

NO_PLANS: Json = {
    **dict.fromkeys(("none", "plans", "kind_value", "token")), "found_hidden": True, "kind": [],
}  # fmt: skip
"""Of a cluster of which the catalog holds nothing."""

NO_TABLE: Json = {
    **dict.fromkeys(("tuned", "doing")),
    **dict.fromkeys(("csv_disabled", "json_disabled", "atlas_box_hidden", "tick_disabled"), True),
}
"""Of a collective of which it holds nothing."""


def register(app: Dash, catalog_view: CatalogView, apart: Apart, searches: Studies) -> None:
    """Wire the Catalog view; `searches` are those of pages, among which stored ones are opened."""
    studies.register(app, catalog_view.catalog, searches)
    _turn(app)
    _look(app, catalog_view)
    _wait(app, catalog_view)
    _open(app, catalog_view, apart)
    _export(app, catalog_view)


def _turn(app: Dash) -> None:
    """Wire what needs no server: when it is looked at."""
    # A solve that has ended may have been kept; its result itself is not looked at.
    app.clientside_callback(
        "(view, drawing) => view === 'catalog' ? drawing.topology "
        ": window.dash_clientside.no_update",
        Output(ids.CATALOG_CLUSTER, "data"),
        Input(ids.VIEW, "value"),
        Input(ids.CANVAS, "drawing"),
        Input(ids.RESULT, "data"),
        prevent_initial_call=False,
    )


def _look(app: Dash, catalog_view: CatalogView) -> None:
    @callback(
        app,
        output={
            "status": Output(ids.CATALOG_STATUS, "children"),
            "none": Output(ids.CATALOG_NONE, "children"),
            "found_hidden": Output(ids.CATALOG_FOUND, "hidden"),
            "plans": Output(ids.CATALOG_PLANS, "children"),
            "kind": Output(ids.CATALOG_KIND, "data"),
            "kind_value": Output(ids.CATALOG_KIND, "value"),
            "token": Output(ids.CATALOG_TOKEN, "data"),
        },
        inputs={"topology": Input(ids.CATALOG_CLUSTER, "data")},
        state={"chosen": State(ids.CATALOG_KIND, "value"), "asked": State(ids.COLLECTIVE, "value")},
    )
    def on_cluster(topology: Any, chosen: str | None, asked: str | None) -> Json:
        try:
            look = catalog_view.look(topology_of(topology))
            held = catalog_view.catalog.count()
        except CclError as error:
            return {**NO_PLANS, "status": text.sentence(str(error))}
        told = status(look, held=held, path=catalog_view.catalog.path.name)
        if not look.entries:
            return {**NO_PLANS, "status": told, "none": nothing(look)}
        wanted = [each for each in (chosen, asked) if each in look.kinds] + [*look.kinds, None]
        return {
            "status": told,
            "none": None,
            "found_hidden": False,
            "plans": plans(look.entries, look.topology.name),
            "kind": choices(look),
            "kind_value": wanted[0],
            "token": look.token,
        }


def _wait(app: Dash, catalog_view: CatalogView) -> None:
    app.clientside_callback(
        # Every question that differs is repeated until its tables are there.
        "(token, kind, root, scheme) => [null, !token]",
        Output(ids.CATALOG_VISIBLE, "data"),
        Output(ids.CATALOG_TICK, "disabled"),
        Input(ids.CATALOG_TOKEN, "data"),
        Input(ids.CATALOG_KIND, "value"),
        Input(ids.ROOT, "value"),
        Input(ids.SCHEME_NOW, "data"),
        prevent_initial_call=False,
    )

    @callback(
        app,
        output={
            "tuned": Output(ids.CATALOG_TUNED, "children"),
            "csv_disabled": Output(ids.CATALOG_CSV, "disabled"),
            "json_disabled": Output(ids.CATALOG_JSON, "disabled"),
            "atlas_figure": ui.figure(ids.CATALOG_ATLAS),
            "atlas_box_hidden": Output(ids.CATALOG_ATLAS_BOX, "hidden"),
            "doing": Output(ids.CATALOG_DOING, "children"),
            "tick_disabled": Output(ids.CATALOG_TICK, "disabled", allow_duplicate=True),
        },
        inputs={"tick_n_intervals": Input(ids.CATALOG_TICK, "n_intervals")},
        state={
            "token": State(ids.CATALOG_TOKEN, "data"),
            "kind": State(ids.CATALOG_KIND, "value"),
            "root": State(ids.ROOT, "value"),
            **request.states("scheme", "view"),
        },
    )
    def on_tick(
        token: str | None, kind: str | None, root: Any, scheme: str | None, view: str, **_: Any
    ) -> Json:
        if not token or view != NAME:
            return {"tick_disabled": True}
        if kind is None:
            return NO_TABLE
        try:
            return _standing(catalog_view, token, kind, root=int(root or 0), scheme=scheme)
        except CclError as error:
            return {**NO_TABLE, "tuned": text.sentence(str(error))}


def _standing(
    catalog_view: CatalogView, token: str, kind: str, *, root: int, scheme: str | None
) -> Json:
    """Return what is there of both tables, how far the others are, and whether both are there."""
    look = catalog_view.known(token)
    alike = sum(each.kind == kind for each in look.entries)
    tuning, drawing = catalog_view.tuned(token, kind, root), catalog_view.atlas(token)
    table, atlas = made(tuning), made(drawing)
    if table is None:
        told = doing(tuning, alike)
    else:
        told = ranges(table, look.methods) if table.ranges else untuned(table)
    none = table is None or not table.ranges
    tuned = {"tuned": told, "csv_disabled": none, "json_disabled": none}
    if atlas is None:
        others = doing(drawing, len(look.entries))
        return {**NO_TABLE, **tuned, "doing": others, "tick_disabled": False}
    return {
        **tuned,
        "atlas_figure": atlas_figure(atlas, scheme=scheme, among=look.methods),
        "atlas_box_hidden": False,
        "doing": ATLAS_NOTE,
        "tick_disabled": table is not None,
    }


def _open(app: Dash, catalog_view: CatalogView, apart: Apart) -> None:
    @callback(
        app,
        output=import_card.outputs(),
        inputs={"clicks": Input({"catalog-open": ALL, "from": ALL}, "n_clicks")},
        state={"token": State(ids.CATALOG_TOKEN, "data"), "job": State(ids.JOB, "data")},
    )
    def on_open(clicks: list[int | None], token: str | None, job: Any) -> Json:
        if not (any(clicks) and ctx.triggered_id and token):
            return {}
        if job:
            return {"notes": ui.note(import_card.BUSY)}
        number = ctx.triggered_id["catalog-open"]
        return _apart(apart, catalog_view, token, number=number)


def _apart(apart: Apart, catalog_view: CatalogView, token: str, *, number: int) -> Json:
    """Return the same as `plan_opened`, from a process of its own."""
    try:
        drawn = catalog_view.known(token).topology
        found: Json = apart.call(
            f"plan {number}", plan_in, catalog_view.catalog.path, drawn, number, session=visitor()
        )
    except CclError as error:
        return import_card.refused(str(error))
    return found


def plan_in(path: Path, drawn: Topology, number: int) -> Json:
    """Return what changes on the page when a plan of the catalog in a file is opened."""
    from formulations.campaigns.catalog import Catalog  # noqa: PLC0415  it loads a database library

    catalog_view = CatalogView(Catalog(path))
    try:
        return plan_opened(catalog_view, catalog_view.look(drawn).token, number)
    finally:
        catalog_view.close()


def plan_opened(catalog_view: CatalogView, token: str, number: int) -> Json:
    """Return what changes on the page when a stored plan is opened on the canvas."""
    try:
        result = catalog_view.result(token, number)
        drawn = catalog_view.known(token).topology
    except CclError as error:
        return import_card.refused(str(error))
    return import_card.opened(result, redrawn=result.problem.topology != drawn)


def _export(app: Dash, catalog_view: CatalogView) -> None:
    @app.callback(
        Output(ids.DOWNLOAD, "data", allow_duplicate=True),
        request.notes(),
        Input(ids.CATALOG_CSV, "n_clicks"),
        Input(ids.CATALOG_JSON, "n_clicks"),
        State(ids.CATALOG_TOKEN, "data"),
        State(ids.CATALOG_KIND, "value"),
        State(ids.ROOT, "value"),
    )
    def on_export(
        csv: int | None, as_json: int | None, token: str, kind: str, root: Any
    ) -> tuple[Any, Any]:
        if not (csv or as_json):
            return no_update, no_update
        try:
            ending = "csv" if ctx.triggered_id == ids.CATALOG_CSV else "json"
            return exported(
                catalog_view, token, kind, root=int(root or 0), ending=ending
            ), no_update
        except CclError as error:
            return no_update, ui.note(str(error), title="Cannot export")


def exported(catalog_view: CatalogView, token: str, kind: str, *, root: int, ending: str) -> Json:
    """Return the table of a collective as a download.

    Parameters
    ----------
    catalog_view, token, kind, root
        Whose table.
    ending
        ``csv`` or ``json``.

    Raises
    ------
    CclError
        If there is none.
    """
    table = made(catalog_view.tuned(token, kind, root))
    if table is None:
        raise ProblemError("the table is not there yet; export it when it is shown")
    content = table.to_csv() if ending == "csv" else f"{json.dumps(table.to_json(), indent=1)}\n"
    name = {"name": f"{table.topology}-{kind}-tuner"}
    return {"content": content, "filename": file_name(name, ending)}
