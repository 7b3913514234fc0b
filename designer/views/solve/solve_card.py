"""The card of a solve: how far it is, the gap plot, and the way to end it.

Solving: start, watch, cancel. The solves themselves live in `designer.jobs`.
"""

from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, html, no_update

from ccl import text
from ccl.errors import CclError
from designer.jobs import Jobs, JobState
from designer.server.sessions import key_of, sealed, visitor
from designer.shell import ids, ui
from designer.shell import request as commands
from designer.shell.request import Json, callback, plan, problem_of, read_request
from designer.views.solve import assess
from designer.views.solve.assess import fault
from designer.views.solve.front import front_of
from widgets import GapChart
from widgets.view_model.gap import course

QUEUED = "begins by itself when another one ends"

FROM_CATALOG = "from the catalog"
"""What the last message of a solve begins with that was not solved anew."""


def solve_card() -> html.Div:
    """Return the card of a solve: how far it is, the gap plot, and the way to end it."""
    return ui.div(
        "ds-card ds-chart",
        html.Div(id=ids.PROGRESS),
        GapChart(id=ids.GAP_PLOT, course=course((), seconds=0.0, running=False)),
        ui.div(
            "ds-accept",
            ui.button("Accept", ids.ACCEPT, "check", size="compact-sm", variant="light"),
            html.Small("stop and keep it", className="ds-note"),
        ),
        style={"marginBottom": 8},
    )


def starting() -> list[Any]:
    """Say that a solve was requested."""
    return _running("Starting", "", seconds=0.0, share=None)


def running(state: JobState, *, limit: Any) -> list[Any]:
    """Say how long a solve has run, what it has found and what it does.

    Parameters
    ----------
    state
        Where it stands.
    limit
        Its time limit in s, or None.
    """
    found = text.count(state.found, "schedule")
    if not state.running and state.message.startswith(FROM_CATALOG):
        return [
            _line(ui.icon("check"), FROM_CATALOG.capitalize(), state.seconds),
            ui.div("ds-note", text.sentence(state.message[len(FROM_CATALOG) + 2 :])),
        ]
    if not state.running:
        words = f"Stopped with {found}" if state.cancelled else f"Finished with {found}"
        return [_line(ui.icon("check"), words, state.seconds)]
    if state.waiting:
        words = f"Waiting, {text.ordinal(state.waiting)} in line"
        why = state.message.partition("; ")[2] or QUEUED
        return _running(words, why, seconds=state.seconds, share=0.0)
    words = f"Plan {state.found}, still solving" if state.found else "No schedule yet, solving"
    share = state.seconds / float(limit) if limit else None
    return _running(words, state.message, seconds=state.seconds, share=share)


def _running(words: str, doing: str, *, seconds: float, share: float | None) -> list[Any]:
    whole = 100.0 if share is None else min(100.0, 100 * share)
    return [
        _line(dmc.Loader(size=12), words, seconds),
        ui.div("ds-doing", doing, title=doing),
        dmc.Progress(
            value=whole,
            size=3,
            animated=True,
            transitionDuration=250,
            **ui.attributes(aria_label="Share of the time limit"),
        ),
    ]


def _line(mark: Any, words: str, seconds: float) -> html.Div:
    return ui.div(
        "ds-running", mark, html.Span(words, role="status"), html.B(text.seconds(seconds))
    )


GONE = "the server has begun anew and this solve is gone; the drawing and the last plan are kept"


def register(app: Dash, jobs: Jobs) -> None:
    """Wire the solve."""
    app.clientside_callback(
        ClientsideFunction("topoloom", "running"),
        Output(ids.SOLVE, "style"),
        Output(ids.CANCEL, "style"),
        Output(ids.CANCEL, "children"),
        Output(ids.ACCEPT, "children"),
        Output(ids.TICK, "disabled"),
        Output(ids.PLAN_BOX, "hidden"),
        Output(ids.SOLVE_BOX, "hidden"),
        Output(ids.SOLVE_BOX, "className"),
        Input(ids.JOB, "data"),
        Input(ids.GAP_PLOT, "course"),
        prevent_initial_call=False,
    )
    _start(app, jobs)
    commands.stops(app, lambda job: jobs.cancel(key_of(job)), ids.JOB, ids.CANCEL, ids.ACCEPT)
    _watch(app, jobs)
    _clear(app, jobs)


def _start(app: Dash, jobs: Jobs) -> None:
    @callback(
        app,
        output={
            "job": Output(ids.JOB, "data"),
            **commands.changes("notes", "cut", "course", "fault"),
            "progress": Output(ids.PROGRESS, "children", allow_duplicate=True),
        },
        inputs={"clicks": Input(ids.SOLVE, "n_clicks")},
        state=commands.states("drawing", "request", "job"),
        running=[(Output(ids.SOLVE, "loading"), True, False)],
    )
    def on_solve(drawing: Json, request: Json, job: Json | None, **_: Any) -> Json:
        if jobs.running(key_of(job)):
            return {}
        try:
            read = read_request(request)
            problem = problem_of(drawing["topology"], read)
            key = jobs.start(problem, read, question=request, owner=visitor())
        except CclError as error:
            return {"job": None, "notes": ui.note(str(error), title="Cannot solve")}
        nothing_yet = course((), seconds=0.0, running=True)
        return {
            "job": {"key": sealed(key), "found": 0},
            "cut": "auto",
            "course": nothing_yet,
            "progress": starting(),
            "fault": None,
        }


def _clear(app: Dash, jobs: Jobs) -> None:
    @callback(
        app,
        output={**commands.changes("job", "fault"), **plan()},
        inputs={"other": Input(ids.OTHER, "data")},
        state={"job": State(ids.JOB, "data")},
    )
    def on_other(job: Json | None, **_: Any) -> Json:
        """Take away the plan of the cluster before, and end the solve that looks for one."""
        if job:
            jobs.cancel(key_of(job))
        return dict.fromkeys(("job", "fault", *plan()))


def _watch(app: Dash, jobs: Jobs) -> None:
    commands.beats(app, ids.TICK, busy=ids.BUSY, beat=ids.BEAT)

    @callback(
        app,
        output={
            "progress": Output(ids.PROGRESS, "children"),
            "fault": Output(ids.FAULT, "children"),
            **commands.changes("job", "notes", "front"),
            **plan(),
        },
        inputs={"beat": Input(ids.BEAT, "data")},
        state=commands.states("job", "summary"),
        running=[(Output(ids.BUSY, "data"), True, False)],
    )
    def on_beat(job: Json | None, summary: Json | None, **_: Any) -> Json:
        if not job:
            return {}
        key = key_of(job) or ""
        question = jobs.question(key)
        try:
            state = jobs.state(key)
        except CclError as error:
            asked = read_request(question)
            return {"fault": fault(error, asked.formulation), "job": None}
        if state is None:
            return {"job": None, "notes": ui.note(GONE, title="The solve is gone")}
        answer = assess.answer(
            state, question, seen=job["found"] if summary else 0, series=job["key"]
        )
        return {
            "progress": running(state, limit=(question or {}).get("time_limit")),
            "course": course(state.points, seconds=state.clock, running=state.running),
            "job": answer.job(job["key"]) if answer.news or not state.running else no_update,
            "scene": answer.scene or no_update,
            "summary": answer.summary or no_update,
            "load": answer.load or no_update,
            "result": answer.document or no_update,
            "front": front_of(state.best) if state.best and answer.document else no_update,
            "notes": ui.note(answer.remark, "plain") if answer.remark else no_update,
        }
