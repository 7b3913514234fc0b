"""The Catalog view: what is held of the cluster, tables that take a while, a plan on the canvas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, no_update

from ccl import text
from ccl.errors import CclError, ProblemError
from ccl.topology import Topology
from designer.server.reading import Apart
from designer.server.sessions import topology_of, visitor
from designer.shell import ids, request
from designer.shell.markup import note
from designer.shell.request import callback
from designer.views.catalog import page
from designer.views.catalog.catalog_view import CatalogView, made
from designer.views.catalog.page import plans, ranges
from designer.views.draw import import_card
from designer.views.draw.files import file_name
from widgets.charts.atlas import atlas_figure

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


def register(app: Dash, holdings: CatalogView, apart: Apart) -> None:
    """Wire the Catalog view."""
    _turn(app)
    _look(app, holdings)
    _wait(app, holdings)
    _open(app, holdings, apart)
    _export(app, holdings)


def _turn(app: Dash) -> None:
    """Wire what needs no server: when it is looked at, and that a solve is watched elsewhere."""
    # A solve that has ended may have been kept; its result itself is not looked at.
    app.clientside_callback(
        "(view, drawing) => view === 'catalog' ? drawing.topology "
        ": window.dash_clientside.no_update",
        Output(ids.CATALOG_CLUSTER, "data"),
        Input(ids.VIEW, "value"),
        Input(ids.CANVAS, "drawing"),
        Input(ids.RESULT, "data"),
    )
    app.clientside_callback(
        "(job, view) => job && view === 'catalog' ? 'canvas' : window.dash_clientside.no_update",
        Output(ids.VIEW, "value", allow_duplicate=True),
        Input(ids.JOB, "data"),
        State(ids.VIEW, "value"),
        prevent_initial_call=True,
    )


def _look(app: Dash, holdings: CatalogView) -> None:
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
        prevent_initial_call=True,
    )
    def on_cluster(topology: Any, chosen: str | None, asked: str | None) -> Json:
        try:
            look = holdings.look(topology_of(topology))
            held = holdings.catalog.count()
        except CclError as error:
            return {**NO_PLANS, "status": text.sentence(str(error))}
        told = page.status(look, held=held, path=holdings.catalog.path.name)
        if not look.entries:
            return {**NO_PLANS, "status": told, "none": page.nothing(look)}
        wanted = [each for each in (chosen, asked) if each in look.kinds] + [*look.kinds, None]
        return {
            "status": told,
            "none": None,
            "found_hidden": False,
            "plans": plans(look.entries, look.topology.name),
            "kind": page.choices(look),
            "kind_value": wanted[0],
            "token": look.token,
        }


def _wait(app: Dash, holdings: CatalogView) -> None:
    app.clientside_callback(
        # Every question that differs is asked until its tables are there.
        "(token, kind, root, scheme) => [null, !token]",
        Output(ids.CATALOG_VISIBLE, "data"),
        Output(ids.CATALOG_TICK, "disabled"),
        Input(ids.CATALOG_TOKEN, "data"),
        Input(ids.CATALOG_KIND, "value"),
        Input(ids.ROOT, "value"),
        Input(ids.SCHEME_NOW, "data"),
    )

    @callback(
        app,
        output={
            "tuned": Output(ids.CATALOG_TUNED, "children"),
            "csv_disabled": Output(ids.CATALOG_CSV, "disabled"),
            "json_disabled": Output(ids.CATALOG_JSON, "disabled"),
            "atlas_figure": Output(ids.CATALOG_ATLAS, "figure"),
            "atlas_box_hidden": Output(ids.CATALOG_ATLAS_BOX, "hidden"),
            "doing": Output(ids.CATALOG_DOING, "children"),
            "tick_disabled": Output(ids.CATALOG_TICK, "disabled", allow_duplicate=True),
        },
        inputs={"tick_n_intervals": Input(ids.CATALOG_TICK, "n_intervals")},
        state={
            "token": State(ids.CATALOG_TOKEN, "data"),
            "kind": State(ids.CATALOG_KIND, "value"),
            "root": State(ids.ROOT, "value"),
            "scheme": State(ids.SCHEME_NOW, "data"),
            "view": State(ids.VIEW, "value"),
        },
        prevent_initial_call=True,
    )
    def on_tick(
        token: str | None, kind: str | None, root: Any, scheme: str | None, view: str, **_: Any
    ) -> Json:
        if not token or view != page.NAME:
            return {"tick_disabled": True}
        if kind is None:
            return NO_TABLE
        try:
            return _standing(holdings, token, kind, root=int(root or 0), scheme=scheme)
        except CclError as error:
            return {**NO_TABLE, "tuned": text.sentence(str(error))}


def _standing(
    holdings: CatalogView, token: str, kind: str, *, root: int, scheme: str | None
) -> Json:
    """Return what is there of both tables, how far the others are, and whether both are there."""
    look = holdings.known(token)
    alike = sum(each.kind == kind for each in look.entries)
    tuning, drawing = holdings.tuned(token, kind, root), holdings.atlas(token)
    table, atlas = made(tuning), made(drawing)
    if table is None:
        told = page.doing(tuning, alike)
    else:
        told = ranges(table) if table.ranges else page.untuned(table)
    none = table is None or not table.ranges
    tuned = {"tuned": told, "csv_disabled": none, "json_disabled": none}
    if atlas is None:
        others = page.doing(drawing, len(look.entries))
        return {**NO_TABLE, **tuned, "doing": others, "tick_disabled": False}
    return {
        **tuned,
        "atlas_figure": atlas_figure(atlas, scheme=scheme),
        "atlas_box_hidden": False,
        "doing": page.ATLAS_NOTE,
        "tick_disabled": table is not None,
    }


def _open(app: Dash, holdings: CatalogView, apart: Apart) -> None:
    @callback(
        app,
        output=import_card.outputs(),
        inputs={"clicks": Input({"catalog-open": ALL, "from": ALL}, "n_clicks")},
        state={"token": State(ids.CATALOG_TOKEN, "data"), "job": State(ids.JOB, "data")},
        prevent_initial_call=True,
    )
    def on_open(clicks: list[int | None], token: str | None, job: Any) -> Json:
        if not (any(clicks) and ctx.triggered_id and token):
            return {}
        if job:
            return {"notes": note(import_card.BUSY)}
        number = ctx.triggered_id["catalog-open"]
        return _apart(apart, holdings, token, number=number)


def _apart(apart: Apart, holdings: CatalogView, token: str, *, number: int) -> Json:
    """Return the same as `plan_opened`, from a process of its own."""
    try:
        drawn = holdings.known(token).topology
        found: Json = apart.call(
            f"plan {number}", plan_in, holdings.catalog.path, drawn, number, session=visitor()
        )
    except CclError as error:
        return import_card.refused(str(error))
    return found


def plan_in(path: Path, drawn: Topology, number: int) -> Json:
    """Return what changes on the page when a plan of the catalog in a file is opened."""
    from formulations.campaigns.catalog import Catalog  # noqa: PLC0415  it loads a database library

    holdings = CatalogView(Catalog(path))
    try:
        return plan_opened(holdings, holdings.look(drawn).token, number)
    finally:
        holdings.close()


def plan_opened(holdings: CatalogView, token: str, number: int) -> Json:
    """Return what changes on the page when a stored plan is opened on the canvas."""
    try:
        result = holdings.result(token, number)
        drawn = holdings.known(token).topology
    except CclError as error:
        return import_card.refused(str(error))
    return import_card.opened(result, redrawn=result.problem.topology != drawn)


def _export(app: Dash, holdings: CatalogView) -> None:
    @app.callback(
        Output(ids.DOWNLOAD, "data", allow_duplicate=True),
        request.notes(),
        Input(ids.CATALOG_CSV, "n_clicks"),
        Input(ids.CATALOG_JSON, "n_clicks"),
        State(ids.CATALOG_TOKEN, "data"),
        State(ids.CATALOG_KIND, "value"),
        State(ids.ROOT, "value"),
        prevent_initial_call=True,
    )
    def on_export(
        csv: int | None, as_json: int | None, token: str, kind: str, root: Any
    ) -> tuple[Any, Any]:
        if not (csv or as_json):
            return no_update, no_update
        try:
            ending = "csv" if ctx.triggered_id == ids.CATALOG_CSV else "json"
            return exported(holdings, token, kind, root=int(root or 0), ending=ending), no_update
        except CclError as error:
            return no_update, note(str(error), title="Cannot export")


def exported(holdings: CatalogView, token: str, kind: str, *, root: int, ending: str) -> Json:
    """Return the table of a collective as a download.

    Parameters
    ----------
    holdings, token, kind, root
        Whose table.
    ending
        ``csv`` or ``json``.

    Raises
    ------
    CclError
        If there is none.
    """
    table = made(holdings.tuned(token, kind, root))
    if table is None:
        msg = "the table is not there yet; export it when it is shown"
        raise ProblemError(msg)
    content = table.to_csv() if ending == "csv" else f"{json.dumps(table.to_json(), indent=1)}\n"
    name = {"name": f"{table.topology}-{kind}-tuner"}
    return {"content": content, "filename": file_name(name, ending)}
