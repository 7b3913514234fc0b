"""What the cards of studies have in common: run, stop, how far it is, and what it has found."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from ccl import text
from designer.shell.markup import icon
from designer.views.solve.results import banner
from designer.views.whatif.running import Found

OLD = "Out of date: the cluster or what is asked has changed. Run it again."
STUDIES = ("failures", "stragglers", "budget")


def part(study: str, name: str) -> str:
    """Return the id of a part of a study's card."""
    return f"whatif-{study}-{name}"


def stores() -> list[Any]:
    """Return what the page keeps of studies."""
    return [
        each
        for study in STUDIES
        for each in (
            dcc.Store(id=part(study, "job"), storage_type="session"),
            dcc.Store(id=part(study, "beat")),
            dcc.Store(id=part(study, "busy"), data=False),
            dcc.Store(id=part(study, "seen")),
            dcc.Interval(id=part(study, "tick"), interval=300, disabled=True),
        )
    ]


def controls(study: str, label: str) -> html.Div:
    """Return the two buttons of which one is shown, and how far it is."""
    run = dmc.Button(
        label, id=part(study, "run"), leftSection=icon("play"), size="xs", variant="default"
    )
    stop = dmc.Button(
        "Stop",
        id=part(study, "stop"),
        leftSection=icon("stop"),
        size="xs",
        variant="default",
        style={"display": "none"},
    )
    told = html.Div(id=part(study, "status"), className="ds-wif-progress", role="status")
    old = html.Div(banner("clock", "plain", OLD), id=part(study, "old"), hidden=True, role="status")
    return html.Div([run, stop, told, old], className="ds-wif-run")


def status(found: Found | None, *, doing: str) -> Any:
    """Say how far a study is.

    Parameters
    ----------
    found
        What there is so far.
    doing
        What it does, for a study that has no rows to count.
    """
    if found is None:
        return None
    error = found.last("error")
    if error:
        return banner("warning", "bad", text.sentence(error))
    of, rows = found.last("of"), len(found.rows)
    if found.waiting:
        return [dmc.Loader(size=12), html.Span(f"waits for {text.count(found.waiting, 'turn')}")]
    if found.running:
        words = f"{rows} of {of}" if of else doing
        return [dmc.Loader(size=12), html.Span(words)]
    if found.cancelled:
        return html.Span(f"stopped: {rows} of {of}" if of else "stopped")
    return [icon("check"), html.Span(f"{text.seconds(found.seconds)}")]
