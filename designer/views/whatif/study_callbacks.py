"""Losses, stragglers and budgets of the cluster as the sliders stand: run, draw, open, buy.

A row of what may fail or lag can be opened: its cluster is made again from the row.
"""

from collections.abc import Mapping
from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, html, no_update

from ccl import text
from ccl.errors import CclError, ProblemError
from ccl.problem import Problem
from ccl.serialization.quantity import BANDWIDTH, NUMBER, parse_quantity
from ccl.serialization.topoloom import problem_to_json, topology_from_json
from ccl.topology import Topology
from designer.server.sessions import key_of, sealed, visitor
from designer.session import topology_of
from designer.shell import ids, ui
from designer.shell import request as commands
from designer.shell.request import callback
from designer.studies import Found, Studies
from designer.views.whatif import answering, study_cards
from designer.views.whatif.answering import requested
from designer.views.whatif.knobs import knobs_of
from designer.views.whatif.page import TODAY
from designer.views.whatif.study_cards import STUDIES, part
from formulations.analyses.failures.nouns import Part
from formulations.analyses.failures.study import slowed, without
from widgets.charts.rates import front_figure


def degraded(
    topology: Topology, row: Mapping[str, Any], *, alpha: float | None = None, beta: float = 1.0
) -> Topology:
    """Return a cluster without what a row says, or with it slow.

    Parameters
    ----------
    topology
        With everything in place.
    row
        As `designer.views.whatif.worker` tells it.
    alpha, beta
        Factors of latency and of time per byte, where it lags; without them it is lost.

    Raises
    ------
    ProblemError
        If the cluster has no such part.
    """
    names = tuple(row["names"])
    members = tuple(tuple(each) for each in row["members"])
    part = Part(row["kind"], names, row["alike"], members, parallel=row["parallel"])
    if alpha is None:
        return without(topology, part)
    return slowed(topology, part, alpha=alpha, beta=beta)


GONE = "this study is not there any more; run it again"
DOING = "looks for the cheapest"

Json = dict[str, Any]


def register(app: Dash, studies: Studies) -> None:
    """Wire the cards of studies."""
    _start(app, studies)
    for study in STUDIES:
        _watch(app, studies, study)
    for study in ("failures", "stragglers"):
        _losses(app, studies, study)
    _pick(app, studies)
    _budget(app, studies)
    app.clientside_callback(
        "(value) => value",
        Output(ids.WHATIF_RIGHT, "data-tab"),
        Input(ids.WHATIF_TAB, "value"),
        prevent_initial_call=False,
    )
    app.clientside_callback(
        ClientsideFunction("topoloom", "unmark"),
        Input(ids.WHATIF_TARGET, "value"),
        Input(ids.WHATIF_COLLECTIVES, "value"),
    )
    for slider in (ids.WHATIF_LAG_ALPHA, ids.WHATIF_LAG_BETA):
        app.clientside_callback(
            "(value) => `${value}×`",
            Output(f"{slider}-words", "children"),
            Input(slider, "value"),
            prevent_initial_call=False,
        )


def _start(app: Dash, studies: Studies) -> None:
    stands = {"question": State(ids.WHATIF_REQUEST, "data"), **TODAY}
    settings: dict[str, Json] = {
        "failures": {},
        "stragglers": {
            "alpha": State(ids.WHATIF_LAG_ALPHA, "value"),
            "beta": State(ids.WHATIF_LAG_BETA, "value"),
        },
        "budget": {
            "links": State({"whatif-cost": ALL}, "value"),
            "devices": State({"whatif-device": ALL}, "value"),
            "target": State(ids.WHATIF_TARGET, "value"),
            "collectives": State(ids.WHATIF_COLLECTIVES, "value"),
        },
    }

    faults = {
        "target": Output(ids.WHATIF_TARGET, "trouble"),
        "collectives": Output(ids.WHATIF_COLLECTIVES, "error"),
    }

    for kind, own in settings.items():

        @callback(
            app,
            output={
                "job": Output(part(kind, "job"), "data"),
                "status": Output(part(kind, "status"), "children", allow_duplicate=True),
                **(faults if kind == "budget" else {}),
            },
            inputs={"clicks": Input(part(kind, "run"), "n_clicks")},
            state={**stands, **own},
        )
        def on_run(study: str = kind, own: Json = own, **given: Any) -> Json:
            asks = {name: given[name] for name in own}
            for what in ("links", "devices") if study == "budget" else ():  # costs by name
                rows = ctx.args_grouping[what]
                asks[what] = {next(iter(row["id"].values())): row.get("value") for row in rows}
            return _begun(studies, study, {name: given[name] for name in stands}, asks)


def _begun(studies: Studies, study: str, stands: Json, asks: Json) -> Json:
    """Begin a study of the cluster as the sliders stand; return its key, or why there is none.

    What is refused is said beside the field that it is about, else beside the button.
    """
    question, drawing, request, before = stands.values()
    if not question or not before or not drawing:
        return {"status": _refused("open a cluster with two GPUs first")}
    values, field = question["values"], "status"
    try:
        found = answering.standing(drawing, request, before, values)
        wanted = {**(request or {}), "size": values.get("size") or before["size"]}
        chosen = asks.pop("collectives", None)
        field = "collectives" if chosen else "status"
        names = chosen or [wanted.get("collective")]
        problems = [_problem(found, {**wanted, "collective": each}) for each in names]
        if study == "budget":
            field = "target"
            target = _target(asks["target"])
            field = "status"
            links, devices = _costs(asks.pop("links")), _costs(asks.pop("devices"))
            costs = study_cards.costs_of(found.knobs, found.topology, links=links, devices=devices)
            asks = {"costs": costs, "target": target}
        told = {"study": study, "problems": [problem_to_json(each) for each in problems], **asks}
        kept = {"values": values, "drawing": drawing, "before": before, "asks": asks}
        key = studies.start(told, question=kept, owner=visitor())
    except CclError as error:
        sentence = str(error)
        if field == "status":
            return {"status": _refused(sentence)}
        return {"status": None, field: text.sentence(sentence)}
    job = {"key": sealed(key), "signature": before["signature"], "values": values}
    return {"job": job, **({"target": None, "collectives": None} if study == "budget" else {})}


def _refused(sentence: str) -> html.Div:
    return ui.banner("warning", "bad", text.sentence(sentence))


def _costs(given: Json) -> dict[str, float | None]:
    """Read what things cost; what has no cost is not for sale."""
    return {
        name: None
        if cost in {None, ""}
        else parse_quantity(cost, NUMBER, what=f"cost of {name}", least=0)
        for name, cost in given.items()
    }


def _problem(stands: answering.Standing, request: Json) -> Problem:
    made = requested(stands.topology, request)
    if isinstance(made, str):
        raise ProblemError(made)
    return made


def _target(words: str | None) -> str | float:
    """Read what is to be reached: ``1.5x`` is a factor, a number is GB/s."""
    given = (words or "").strip().lower().replace("×", "x")
    if given.endswith("x"):
        return given
    return parse_quantity(words, BANDWIDTH, what="what is to be reached", above=0)


def _watch(app: Dash, studies: Studies, study: str) -> None:
    tick, busy, beat = (part(study, each) for each in ("tick", "busy", "beat"))
    commands.beats(app, tick, busy=busy, beat=beat)
    commands.stops(
        app, lambda job: studies.cancel(key_of(job)), part(study, "job"), part(study, "stop")
    )
    app.clientside_callback(
        ClientsideFunction("whatif", "running"),
        Output(part(study, "run"), "style"),
        Output(part(study, "stop"), "style"),
        Output(part(study, "tick"), "disabled"),
        Input(part(study, "job"), "data"),
        Input(part(study, "seen"), "data"),
        prevent_initial_call=False,
    )

    app.clientside_callback(
        ClientsideFunction("whatif", "old"),
        Output(part(study, "old"), "hidden"),
        Input(ids.WHATIF_REQUEST, "data"),
        Input(ids.WHATIF_TODAY, "data"),
        Input(part(study, "job"), "data"),
        prevent_initial_call=False,
    )

    @app.callback(
        Output(part(study, "status"), "children"),
        Output(part(study, "seen"), "data"),
        Input(part(study, "beat"), "data"),
        State(part(study, "job"), "data"),
        State(part(study, "seen"), "data"),
        running=[(Output(part(study, "busy"), "data"), True, False)],
    )
    def on_beat(_n: Any, job: Json | None, seen: Json | None) -> Any:
        if not job:
            return no_update, no_update
        try:
            found = studies.found(key_of(job))
        except CclError as error:
            return _refused(str(error)), {"key": job["key"], "turn": -1, "running": False}
        if found is None:
            return None, {"key": job["key"], "turn": -1, "running": False}
        turn = len(found.events) + found.cancelled
        now = {"key": job["key"], "turn": turn, "running": found.running}
        return study_cards.status(found, doing=DOING), no_update if now == seen else now


def _found(studies: Studies, job: Json | None) -> Found | None:
    try:
        return studies.found(key_of(job))
    except CclError:  # its status says why it ended
        return None


def _losses(app: Dash, studies: Studies, study: str) -> None:
    @app.callback(
        Output(part(study, "found"), "children"),
        Input(part(study, "seen"), "data"),
        Input(ids.WHATIF_PICKED, "data"),
        State(part(study, "job"), "data"),
    )
    def on_seen(_seen: Any, picked: Json | None, job: Json | None) -> Any:
        row = picked["row"] if picked and picked["study"] == study else ""
        return study_cards.table(study, _found(studies, job), row)


def _pick(app: Dash, studies: Studies) -> None:
    jobs = {study: State(part(study, "job"), "data") for study in ("failures", "stragglers")}
    # Of another cluster it is no part.
    app.clientside_callback(
        "(asked, picked) => picked ? null : window.dash_clientside.no_update",
        Output(ids.WHATIF_PICKED, "data"),
        Input(ids.WHATIF_REQUEST, "data"),
        State(ids.WHATIF_PICKED, "data"),
    )

    @app.callback(
        Output(ids.WHATIF_PICKED, "data", allow_duplicate=True),
        inputs={"clicks": Input({"whatif-loss": ALL, "of": ALL}, "n_clicks")},
        state={
            "picked": State(ids.WHATIF_PICKED, "data"),
            "now": State(ids.WHATIF_NOW, "data"),
            **jobs,
        },
    )
    def on_pick(clicks: list[int | None], picked: Any, now: Any, **known: Any) -> Any:
        if not any(clicks) or not ctx.triggered_id or not ctx.triggered[0]["value"]:
            return no_update
        study, name = ctx.triggered_id["of"], ctx.triggered_id["whatif-loss"]
        if picked and (picked["study"], picked["row"]) == (study, name):
            return None
        row = _row(studies, known, study, name)
        drawing = (now or {}).get("drawing")
        if row is None or not drawing:
            return no_update
        hosts = {each["name"]: each["host"] for each in drawing["topology"]["devices"]}
        marks = study_cards.marks(study, row, hosts)
        return {"study": study, "row": name, "marks": marks, "cut": row["cut"]}

    @callback(
        app,
        output=commands.changes("drawing", "view", "notes"),
        inputs={"clicks": Input({"whatif-open": ALL, "of": ALL}, "n_clicks")},
        state=jobs,
    )
    def on_open(clicks: list[int | None], **known: Any) -> Json:
        if not any(clicks) or not ctx.triggered_id or not ctx.triggered[0]["value"]:
            return {}
        study, name = ctx.triggered_id["of"], ctx.triggered_id["whatif-open"]
        row, found = _row(studies, known, study, name), _found(studies, known[study])
        if row is None or found is None:
            return {"notes": ui.note(GONE)}
        kept = found.question
        try:
            stands = answering.standing(kept["drawing"], None, kept["before"], kept["values"])
            left = degraded(stands.topology, row, **kept["asks"])
        except CclError as error:
            return {"notes": ui.note(str(error))}
        said = ui.note(
            f"without {row['words']}" if study == "failures" else f"slow: {row['words']}",
            "good",
            title="Opened; Ctrl+Z brings the whole cluster back",
        )
        drawn = answering.redrawn(kept["drawing"], left)
        return {"drawing": drawn, "view": "canvas", "notes": said}


def _row(studies: Studies, jobs: Json, study: str, name: str) -> Json | None:
    found = _found(studies, jobs[study])
    rows = [] if found is None else study_cards.rows_of(found)
    return next((each for each in rows if study_cards.identity(each) == name), None)


def _budget(app: Dash, studies: Studies) -> None:
    job = State(part("budget", "job"), "data")

    @app.callback(
        Output(ids.WHATIF_COSTS, "children"),
        Input(ids.WHATIF_TODAY, "data"),
        State(ids.CANVAS, "drawing"),
    )
    def on_today(before: Json | None, drawing: Any) -> Any:
        if not before or not drawing or not drawing["topology"]["links"]:
            return None
        topology = topology_of(drawing["topology"])
        return study_cards.costs_form(knobs_of(topology), topology)

    @callback(
        app,
        output={
            "found": Output(part("budget", "found"), "children"),
            "figure": ui.figure(ids.WHATIF_FRONT),
            "hidden": Output(ids.WHATIF_FRONT_BOX, "hidden"),
        },
        inputs={
            "seen": Input(part("budget", "seen"), "data"),
            "scheme": Input(ids.SCHEME_NOW, "data"),
        },
        state={"known": job},
    )
    def on_seen(scheme: str | None, known: Json | None, **_: Any) -> Json:
        found = _found(studies, known)
        told = study_cards.bought(found)
        front = None if found is None else found.last("front")
        if found is None or front is None:
            return {"found": told, "hidden": True}
        upgrade = found.last("upgrade")
        figure = front_figure(
            front["points"],
            kind=front["kind"],
            chosen=(upgrade["cost"], upgrade["factor"]),
            scheme=scheme,
        )
        return {"found": told, "figure": figure, "hidden": False}

    @app.callback(
        Output(ids.CANVAS, "drawing", allow_duplicate=True),
        commands.notes(),
        Input({"whatif-buy": ALL}, "n_clicks"),
        job,
        State(ids.CANVAS, "drawing"),
    )
    def on_buy(clicks: list[int | None], known: Json | None, drawing: Any) -> tuple[Any, Any]:
        if not any(clicks) or not ctx.triggered[0]["value"]:
            return no_update, no_update
        found = _found(studies, known)
        upgrade = None if found is None else found.last("upgrade")
        if upgrade is None:
            return no_update, ui.note(GONE)
        topology = topology_from_json(upgrade["topology"])
        said = ui.note("the drawing has the upgrade; Ctrl+Z on the canvas takes it back", "good")
        return answering.redrawn(drawing, topology), said
