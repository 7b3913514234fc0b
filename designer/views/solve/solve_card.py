"""The card of a solve: how far it is, the gap plot, and the way to end it."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import html

from ccl import text
from designer.jobs.solving import State
from designer.shell import ids
from designer.shell.markup import attributes, icon
from widgets import GapChart
from widgets.shown.course import course

QUEUED = "begins by itself when another one ends"

STORED = "from the catalog"
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


def running(state: State, *, limit: Any) -> list[Any]:
    """Say how long a solve has run, what it has found and what it does.

    Parameters
    ----------
    state
        Where it stands.
    limit
        Its time limit in s, or None.
    """
    found = text.count(state.found, "schedule")
    if not state.running and state.message.startswith(STORED):
        return [
            _line(icon("check"), STORED.capitalize(), state.seconds),
            html.Div(text.sentence(state.message[len(STORED) + 2 :]), className="ds-note"),
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
