"""Proposing: begin, watch, stop, look at a network, open it on the canvas, take the study along."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, no_update

from ccl import text
from ccl.errors import CclError
from ccl.serialization.text import csv_text
from designer.server.sessions import key_of, visitor
from designer.shell import ids, ui
from designer.shell import request as commands
from designer.shell.request import Json, callback
from designer.studies import Studies
from designer.views.propose import page
from designer.views.propose.page import field_id, use_id
from designer.views.propose.running import FIELDS, USES, Standing, field_of, read_question, standing
from designer.views.propose.stored import found_again, held, prices_of, remember
from widgets.charts.proposals import RESPECTS, Dot, proposals_figure

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Catalog

LOOKED = {
    "seen": Input(ids.PROPOSE_SEEN, "data"),
    "up": Input(ids.PROPOSE_UP, "value"),
    "across": Input(ids.PROPOSE_ACROSS, "value"),
    "chosen": Input(ids.PROPOSE_CHOSEN, "data"),
    "prices": Input({"propose-price": ALL}, "value"),
}
"""What plot and cards follow."""

USUAL = {kind: (size, times) for kind, (_, size, times) in USES.items()}
"""The mix that the fields begin with; what a mix says wrongly is said when a search begins."""

JOB = {"job": State(ids.PROPOSE_JOB, "data")}

GONE = "this search is not there any more; propose again"


def register(app: Dash, studies: Studies, catalog: Catalog | None = None) -> None:
    """Wire the view; searches are found again in the catalog where there is one."""
    _run(app, studies, catalog)
    _check(app)
    _watch(app, studies, catalog)
    _show_plot(app, studies)
    _show_cards(app, studies)
    _show_prices(app, studies, catalog)
    if catalog is not None:
        _remember(app, studies, catalog)
    _open(app, studies)
    _export(app, studies)


def _run(app: Dash, studies: Studies, catalog: Catalog | None) -> None:
    wrong = {name: Output(field_id(name), "trouble") for name in FIELDS}

    @callback(
        app,
        output={
            "job": Output(ids.PROPOSE_JOB, "data"),
            "seen": Output(ids.PROPOSE_SEEN, "data"),
            "chosen": Output(ids.PROPOSE_CHOSEN, "data"),
            "host": Output(ids.PROPOSE_HOST_WRONG, "children"),
            "wrong": Output(ids.PROPOSE_WRONG, "children"),
            **wrong,
        },
        inputs={"clicks": Input(ids.PROPOSE_RUN, "n_clicks")},
        state={
            "values": {name: State(field_id(name), "value") for name in FIELDS},
            "sizes": {kind: State(use_id(kind, "size"), "value") for kind in USES},
            "times": {kind: State(use_id(kind, "times"), "value") for kind in USES},
            "host": State(ids.PROPOSE_HOST, "value"),
            "one_way": State(ids.PROPOSE_ONE_WAY, "checked"),
        },
        running=[(Output(ids.PROPOSE_RUN, "loading"), True, False)],
    )
    def on_run(
        *, values: Json, sizes: Json, times: Json, host: str, one_way: bool, **_: Any
    ) -> Json:
        mix = {kind: (sizes[kind], times[kind]) for kind in USES}
        try:
            asked = read_question(values, host=host, one_way=bool(one_way), mix=mix)
            key = studies.start(asked, question=asked, owner=visitor())
        except CclError as error:
            return _beside(error)
        return {**_beside(), "job": held(key, asked, catalog), "seen": None, "chosen": ""}

    commands.stops(app, lambda job: studies.cancel(key_of(job)), ids.PROPOSE_JOB, ids.PROPOSE_STOP)


def _check(app: Dash) -> None:
    @callback(
        app,
        output={
            "host": Output(ids.PROPOSE_HOST_WRONG, "children", allow_duplicate=True),
            **{n: Output(field_id(n), "trouble", allow_duplicate=True) for n in FIELDS},
        },
        inputs={
            "values": {name: Input(field_id(name), "value") for name in FIELDS},
            "host": Input(ids.PROPOSE_HOST, "value"),
        },
    )
    def on_change(*, values: Json, host: str) -> Json:
        try:
            read_question(values, host=host, one_way=False, mix=USUAL)
        except CclError as error:
            found = _beside(error)
        else:
            found = _beside()
        return {name: said for name, said in found.items() if name != "wrong"}


def _beside(error: CclError | None = None) -> Json:
    """Return what stands beside each field: a sentence at the one that an error is about."""
    clear: Json = {"host": None, "wrong": None, **dict.fromkeys(FIELDS)}
    if error is None:
        return clear
    sentence, field = str(error).removeprefix("propose: "), field_of(error)
    if field in FIELDS:
        return {**clear, field: sentence}
    return {**clear, ("host" if field == "host" else "wrong"): text.sentence(sentence)}


def _watch(app: Dash, studies: Studies, catalog: Catalog | None) -> None:
    app.clientside_callback(
        ClientsideFunction("topoloom", "proposing"),
        Output(ids.PROPOSE_RUN, "style"),
        Output(ids.PROPOSE_STOP, "style"),
        Output(ids.PROPOSE_TICK, "disabled"),
        Output(ids.PROPOSE_EXPORT, "disabled"),
        Input(ids.PROPOSE_JOB, "data"),
        Input(ids.PROPOSE_SEEN, "data"),
        prevent_initial_call=False,
    )
    commands.beats(app, ids.PROPOSE_TICK, busy=ids.PROPOSE_BUSY, beat=ids.PROPOSE_BEAT)

    @callback(
        app,
        output={
            "status": Output(ids.PROPOSE_STATUS, "children"),
            "seen": Output(ids.PROPOSE_SEEN, "data", allow_duplicate=True),
            "job": Output(ids.PROPOSE_JOB, "data", allow_duplicate=True),
        },
        inputs={"beat": Input(ids.PROPOSE_BEAT, "data")},
        state={"job": State(ids.PROPOSE_JOB, "data"), "seen": State(ids.PROPOSE_SEEN, "data")},
        running=[(Output(ids.PROPOSE_BUSY, "data"), True, False)],
    )
    def on_beat(job: Json | None, seen: Json | None, **_: Any) -> Json:
        if not job:
            return {}
        try:
            stands = standing(studies, key_of(job))
        except CclError as error:
            told = ui.banner("warning", "bad", text.sentence(str(error)))
            return {"status": told, "seen": None, "job": None}
        if stands is None:  # the server has begun anew
            again = found_again(studies, catalog, job)
            return {"status": page.status(None), "seen": None, "job": again}
        now = {"key": job["key"], "order": list(stands.networks), "running": stands.found.running}
        return {"status": page.status(stands), "seen": no_update if now == seen else now}


def _show_plot(app: Dash, studies: Studies) -> None:
    @callback(
        app,
        output={
            "figure": ui.figure(ids.PROPOSE_PLOT),
            "found": Output(ids.PROPOSE_FOUND, "data-empty"),
        },
        inputs={
            **LOOKED,
            "scheme": Input(ids.SCHEME_NOW, "data"),
            "size": Input(ids.PROPOSE_SIZE, "data"),
        },
        state=JOB,
    )
    def on_plot(
        *,
        job: Json | None,
        up: str,
        across: str,
        chosen: str,
        scheme: str | None,
        size: list[float] | None,
        **_: Any,
    ) -> Json:
        stands = _standing(studies, job, _prices())
        if stands is None or not stands.networks:
            return {"found": "true"}
        bounds = stands.front["bounds"]
        figure = proposals_figure(
            dots_of(stands, (across, up), chosen),
            axes=(across, up),
            bounds=(bounds.get(across), bounds.get(up)),
            scheme=scheme,
            size=(size[0], size[1]) if size else None,
        )
        return {"figure": figure, "found": "false"}

    app.clientside_callback(
        ClientsideFunction("topoloom", "measured"), Input(ids.PROPOSE_SEEN, "data")
    )


def _show_cards(app: Dash, studies: Studies) -> None:
    @callback(
        app,
        output={
            "cards": Output(ids.PROPOSE_CARDS, "children"),
            "beside": Output(ids.PROPOSE_BESIDE, "children"),
        },
        inputs={**LOOKED, "ticks": Input({"propose-pick": ALL}, "checked")},
        state=JOB,
    )
    def on_cards(*, job: Json | None, up: str, across: str, chosen: str, **_: Any) -> Json:
        stands = _standing(studies, job, _prices())
        if stands is None:
            return {"cards": page.UNRANKED, "beside": None}
        boxes = ctx.args_grouping["ticks"]
        ticked = [each["id"]["propose-pick"] for each in boxes if each.get("value")]
        best = stands.best(across, up)
        return {
            "cards": page.cards(stands, best=best, ticked=ticked, chosen=chosen or ""),
            "beside": [page.sizes(stands), page.beside(stands, ticked)],
        }

    app.clientside_callback(
        "(click) => click?.points?.[0]?.customdata ?? window.dash_clientside.no_update",
        Output(ids.PROPOSE_CHOSEN, "data", allow_duplicate=True),
        Input(ids.PROPOSE_PLOT, "clickData"),
    )
    app.clientside_callback(
        ClientsideFunction("topoloom", "paired"), Input({"propose-pick": ALL}, "checked")
    )
    app.clientside_callback(
        ClientsideFunction("topoloom", "proposed"),
        Input(ids.PROPOSE_CARDS, "children"),
        State(ids.PROPOSE_CHOSEN, "data"),
    )


def _show_prices(app: Dash, studies: Studies, catalog: Catalog | None) -> None:
    @callback(
        app,
        output={
            "prices": Output(ids.PROPOSE_PRICES, "children"),
            "parts": Output(ids.PROPOSE_PARTS, "data"),
        },
        inputs={"seen": Input(ids.PROPOSE_SEEN, "data")},
        state={
            **JOB,
            "parts": State(ids.PROPOSE_PARTS, "data"),
            "prices": State({"propose-price": ALL}, "value"),
        },
    )
    def on_parts(*, job: Json | None, parts: list[str], **_: Any) -> Json:
        stands = _standing(studies, job)
        found = {} if stands is None else stands.parts
        if stands is None or sorted(found) == parts or not found:
            return {}
        own = {**prices_of(catalog, stands), **_prices()}
        return {"prices": page.prices(found, own), "parts": sorted(found)}


def _remember(app: Dash, studies: Studies, catalog: Catalog) -> None:
    @app.callback(
        inputs={name: LOOKED[name] for name in ("seen", "up", "across", "prices")}, state=JOB
    )
    def on_look(*, job: Json | None, up: str, across: str, **_: Any) -> None:
        stands, prices = _standing(studies, job), _prices()
        # Fields of prices follow once networks are there; without them nothing was typed.
        if stands is not None and prices and not stands.found.running:
            remember(catalog, stands, axes=(up, across), prices=prices)


def dots_of(stands: Standing, axes: tuple[str, str], chosen: str) -> list[Dot]:
    """Return the networks whose values in both respects are known, as dots."""
    best = stands.best(*axes)
    return [
        Dot(
            key,
            each["name"],
            each["family"],
            (each["values"][axes[0]], each["values"][axes[1]]),
            key in best,
            key == chosen,
        )
        for key, each in stands.networks.items()
        if None not in {each["values"].get(axis) for axis in axes}
    ]


def _open(app: Dash, studies: Studies) -> None:
    @callback(
        app,
        output={
            **commands.changes("drawing", "command", "other", "notes"),
            "view": Output(ids.VIEW, "value", allow_duplicate=True),
        },
        inputs={"clicks": Input({"propose-open": ALL}, "n_clicks")},
        state={"job": State(ids.PROPOSE_JOB, "data")},
    )
    def on_open(clicks: list[int | None], job: Json | None) -> Json:
        if not any(clicks) or not ctx.triggered_id:
            return {}
        stands = _standing(studies, job)
        each = stands and stands.networks.get(ctx.triggered_id["propose-open"])
        if not each:
            return {"notes": ui.note(GONE)}
        return {
            "drawing": commands.as_document(each["drawing"]),
            "command": commands.fit(),
            "other": commands.now(),
            "view": "canvas",
        }


def _export(app: Dash, studies: Studies) -> None:
    @app.callback(
        Output(ids.DOWNLOAD, "data", allow_duplicate=True),
        commands.notes(),
        Input({"propose-export": ALL}, "n_clicks"),
        State(ids.PROPOSE_JOB, "data"),
    )
    def on_export(clicks: list[int | None], job: Json | None) -> Any:
        if not any(clicks) or not ctx.triggered_id:
            return no_update, no_update
        stands = _standing(studies, job)
        if stands is None:
            return no_update, ui.note(GONE)
        kind = ctx.triggered_id["propose-export"]
        content = study_json(stands) if kind == "json" else study_csv(stands)
        return {"content": content, "filename": f"proposed-networks.{kind}"}, no_update


def study_csv(stands: Standing) -> str:
    """Return a row for each network, the best at the mix first."""
    why = stands.front.get("why", {})
    rows = [
        [each["name"], each["family"], *(each["values"][k] for k in RESPECTS), why.get(key, "")]
        for key, each in stands.networks.items()
    ]
    return csv_text([["network", "family", *RESPECTS, "why"], *rows])


def study_json(stands: Standing) -> str:
    """Return everything, the drawings included."""
    told = {
        "wanted": stands.found.question,
        "bounds": stands.front.get("bounds", {}),
        "networks": [
            {**each, "why": stands.front.get("why", {}).get(key, "")}
            for key, each in stands.networks.items()
        ],
    }
    return json.dumps(told, indent=1)


def _prices() -> dict[str, float]:
    """Return the prices that are typed, by the names of the parts."""
    return {
        row["id"]["propose-price"]: row["value"]
        for row in ctx.args_grouping["prices"]
        if isinstance(row.get("value"), int | float)
    }


def _standing(
    studies: Studies, job: Json | None, prices: dict[str, float] | None = None
) -> Standing | None:
    """Return where a search stands, at the prices that are typed."""
    try:
        found = standing(studies, key_of(job))
    except CclError:
        return None
    return None if found is None else found.priced(prices or {})
