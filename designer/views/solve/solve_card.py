"""The card of a solve: how far it is, the gap plot, and the way to end it.

Solving: start, watch, cancel. The solves themselves live in `designer.jobs`.
"""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, html, no_update

from ccl import text
from ccl.errors import CclError
from designer.jobs import Jobs, JobState
from designer.server.sessions import key_of, sealed, visitor
from designer.shell import ids
from designer.shell import request as commands
from designer.shell.markup import attributes, icon, note
from designer.shell.request import problem_of, read_request
from designer.views.solve import assess
from designer.views.solve.assess import fault
from widgets import GapChart
from widgets.view_model.gap import course

QUEUED = "begins by itself when another one ends"

FROM_CATALOG = "from the catalog"
"""What the last message of a solve begins with that was not solved anew."""


def solve_card() -> html.Div:
    """Return the card of a solve: how far it is, the gap plot, and the way to end it."""
    return html.Div(
        [
            html.Div(id=ids.PROGRESS),
            GapChart(id=ids.GAP_PLOT, course=course((), seconds=0.0, running=False)),
            html.Div(
                [
                    dmc.Button(
                        "Accept",
                        id=ids.ACCEPT,
                        leftSection=icon("check"),
                        size="compact-sm",
                        variant="light",
                    ),
                    html.Small("stop and keep it", className="ds-note"),
                ],
                className="ds-accept",
            ),
        ],
        className="ds-card ds-chart",
        style={"marginBottom": 8},
    )


def starting() -> list[Any]:
    """Say that a solve was asked for."""
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
            _line(icon("check"), FROM_CATALOG.capitalize(), state.seconds),
            html.Div(text.sentence(state.message[len(FROM_CATALOG) + 2 :]), className="ds-note"),
        ]
    if not state.running:
        words = f"Stopped with {found}" if state.cancelled else f"Finished with {found}"
        return [_line(icon("check"), words, state.seconds)]
    if state.waiting:
        words = f"Waiting, {text.ordinal(state.waiting)} in line"
        why = state.message.partition("; ")[2] or QUEUED
        return _running(words, why, seconds=state.seconds, share=0.0)
    words = f"Incumbent {state.found}, still solving" if state.found else "No schedule yet, solving"
    share = state.seconds / float(limit) if limit else None
    return _running(words, state.message, seconds=state.seconds, share=share)


def _running(words: str, doing: str, *, seconds: float, share: float | None) -> list[Any]:
    whole = 100.0 if share is None else min(100.0, 100 * share)
    return [
        _line(dmc.Loader(size=12), words, seconds),
        html.Div(doing, title=doing, className="ds-doing"),
        dmc.Progress(
            value=whole,
            size=3,
            animated=True,
            transitionDuration=250,
            **attributes(aria_label="Share of the time limit"),
        ),
    ]


def _line(mark: Any, words: str, seconds: float) -> html.Div:
    return html.Div(
        [mark, html.Span(words, role="status"), html.B(text.seconds(seconds))],
        className="ds-running",
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
    )
    _start(app, jobs)
    _cancel(app, jobs)
    _watch(app, jobs)
    _clear(app, jobs)


def _start(app: Dash, jobs: Jobs) -> None:
    @app.callback(
        Output(ids.JOB, "data"),
        commands.notes(),
        Output(ids.CUT, "data", allow_duplicate=True),
        Output(ids.GAP_PLOT, "course", allow_duplicate=True),
        Output(ids.PROGRESS, "children", allow_duplicate=True),
        Output(ids.FAULT, "children", allow_duplicate=True),
        Input(ids.SOLVE, "n_clicks"),
        State(ids.CANVAS, "drawing"),
        State(ids.REQUEST, "data"),
        State(ids.JOB, "data"),
        running=[(Output(ids.SOLVE, "loading"), True, False)],
        prevent_initial_call=True,
    )
    def on_solve(
        _clicks: int, drawing: dict[str, Any], asked: dict[str, Any], job: dict[str, Any] | None
    ) -> tuple[Any, ...]:
        nothing = (no_update,) * 6
        if jobs.running(key_of(job)):
            return nothing
        try:
            request = read_request(asked)
            problem = problem_of(drawing["topology"], request)
            key = jobs.start(problem, request, question=asked, owner=visitor())
        except CclError as error:
            return (None, note(str(error), title="Cannot solve"), *nothing[2:])
        nothing_yet = course((), seconds=0.0, running=True)
        return (
            {"key": sealed(key), "found": 0},
            no_update,
            "auto",
            nothing_yet,
            starting(),
            None,
        )


def _cancel(app: Dash, jobs: Jobs) -> None:
    @app.callback(
        Output(ids.CANCEL, "n_clicks"),
        Input(ids.CANCEL, "n_clicks"),
        Input(ids.ACCEPT, "n_clicks"),
        State(ids.JOB, "data"),
        prevent_initial_call=True,
    )
    def on_cancel(cancel: int | None, accept: int | None, job: dict[str, Any] | None) -> Any:
        if (cancel or accept) and job:
            jobs.cancel(key_of(job))
        return no_update


def _clear(app: Dash, jobs: Jobs) -> None:
    @app.callback(
        Output(ids.JOB, "data", allow_duplicate=True),
        Output(ids.CANVAS, "scene", allow_duplicate=True),
        Output(ids.SUMMARY, "data", allow_duplicate=True),
        Output(ids.LOAD_DATA, "data", allow_duplicate=True),
        Output(ids.RESULT, "data", allow_duplicate=True),
        Output(ids.GAP_PLOT, "course", allow_duplicate=True),
        Output(ids.FAULT, "children", allow_duplicate=True),
        Input(ids.OTHER, "data"),
        State(ids.JOB, "data"),
        prevent_initial_call=True,
    )
    def on_other(_n: int, job: dict[str, Any] | None) -> tuple[Any, ...]:
        """Take away the plan of the cluster before, and end the solve that looks for one."""
        if job:
            jobs.cancel(key_of(job))
        return (None,) * 7


def _watch(app: Dash, jobs: Jobs) -> None:
    # Dash does not answer a question that the next one overtakes, so they wait for one another.
    app.clientside_callback(
        "(n, busy) => busy ? window.dash_clientside.no_update : n",
        Output(ids.BEAT, "data"),
        Input(ids.TICK, "n_intervals"),
        State(ids.BUSY, "data"),
    )

    @app.callback(
        Output(ids.PROGRESS, "children"),
        Output(ids.GAP_PLOT, "course"),
        Output(ids.FAULT, "children"),
        Output(ids.JOB, "data", allow_duplicate=True),
        Output(ids.CANVAS, "scene"),
        Output(ids.SUMMARY, "data"),
        Output(ids.LOAD_DATA, "data"),
        Output(ids.RESULT, "data"),
        commands.notes(),
        Input(ids.BEAT, "data"),
        State(ids.JOB, "data"),
        State(ids.SUMMARY, "data"),
        running=[(Output(ids.BUSY, "data"), True, False)],
        prevent_initial_call=True,
    )
    def on_beat(
        _n: int, job: dict[str, Any] | None, summary: dict[str, Any] | None
    ) -> tuple[Any, ...]:
        nothing = (no_update,) * 9
        if not job:
            return nothing
        key = key_of(job) or ""
        question = jobs.question(key)
        try:
            state = jobs.state(key)
        except CclError as error:
            asked = read_request(question)
            return (*nothing[:2], fault(error, asked.formulation), None, *nothing[4:])
        if state is None:
            return (*nothing[:3], None, *nothing[4:8], note(GONE, title="The solve is gone"))
        answer = assess.answer(
            state, question, seen=job["found"] if summary else 0, series=job["key"]
        )
        return (
            running(state, limit=(question or {}).get("time_limit")),
            course(state.points, seconds=state.clock, running=state.running),
            no_update,
            answer.job(job["key"]) if answer.news or not state.running else no_update,
            answer.scene or no_update,
            answer.summary or no_update,
            answer.load or no_update,
            answer.document or no_update,
            note(answer.remark, "plain") if answer.remark else no_update,
        )
