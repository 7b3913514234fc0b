"""What a row of a comparison has to say for itself: the formula beside the replay, how it ended."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import html

from ccl import text
from ccl.bound import Bound
from ccl.closed_form import ClosedForm
from ccl.result import Result
from designer.shell.markup import icon
from formulations.analyses.comparison import Comparison, Row
from widgets.shown.scene import key_of
from widgets.words.comparison import BOUND_LABELS


def detail(comparison: Comparison, row: Row) -> html.Div:
    """Return the details of a row that has a result."""
    result = row.result
    assert result is not None
    key = key_of(row)
    buttons = [
        dmc.Button(
            "Open on the canvas",
            id={"compare-open": key, "from": "detail"},
            leftSection=icon("eye"),
            size="compact-sm",
            variant="light",
        ),
        dmc.Button(
            "Play beside another",
            id={"compare-beside": key},
            leftSection=icon("film"),
            size="compact-sm",
            variant="default",
        ),
    ]
    return html.Div(
        [
            html.Div(_formula(result.closed_form, result.makespan), className="ds-cmp-formula"),
            html.Div([*_facts(comparison, row, result), html.Div(buttons, className="ds-row")]),
        ],
        className="ds-cmp-both",
    )


def _formula(form: ClosedForm | None, makespan: float) -> list[Any]:
    """Show the published formula, what becomes of it step by step, and the replay."""
    if form is None:
        return [
            html.H3("Formula and simulation"),
            html.P(f"No formula is published for this plan. The replay takes {_us(makespan)}."),
        ]
    rows = (
        ("the formula", form.makespan),
        ("every message alone on its way", form.alone),
        ("step after step, all of a step together", form.in_steps),
        ("the replay", makespan),
    )
    most = max(value for _, value in rows)
    bars = [
        part
        for i, (words, value) in enumerate(rows)
        for part in (
            html.Dt(words),
            html.Dd(
                [
                    html.Span(
                        html.I(style={"width": f"{value / most:.1%}"}),
                        className="ds-track",
                        style={"--tone": "var(--ds-accent)" if i == len(rows) - 1 else None},
                    ),
                    html.B(_us(value)),
                ]
            ),
        )
    ]
    return [
        html.H3(["Formula and simulation", html.Code(form.expression)]),
        html.Dl(bars),
        html.P(text.sentence(form.why(makespan))),
        html.P(
            f"{text.count(form.steps, 'step')}; α = {text.duration(form.alpha)} and 1/β = "
            f"{text.bandwidth(1e-3 / form.beta)}, the slowest of the ways that they use.",
            className="ds-note",
        ),
    ]


def _facts(comparison: Comparison, row: Row, result: Result) -> list[Any]:
    stop = str(result.stop)
    found = result.found_by and result.found_by != result.formulation
    lines: list[Any] = [f"{stop[:1].upper()}{stop[1:]}."]
    if found:
        lines.append(f"The plan is by {result.found_by}.")
    bound, whole = comparison.bound(row.size), result.whole_bound
    lines.append(f"Bound for every plan: {_kind(bound)}, {_us(bound.makespan)}.")
    if whole is not None and result.whole_gap is not None:
        size = text.size(result.problem.collective.chunk_size)
        lines.append(
            f"For plans that keep chunks of {size} whole: {_kind(whole)}, {_us(whole.makespan)}, "
            f"so that it is {_share(result.whole_gap)} above that."
        )
    if result.size is not None:
        model = result.size
        lines.append(
            f"The model has {model.variables:,} variables and {model.constraints:,} constraints."
        )
    lines += [text.sentence(each) for each in result.log]
    return [html.H3("How it was found"), html.Ul([html.Li(each) for each in lines])]


def _kind(bound: Bound) -> str:
    label = BOUND_LABELS[bound.kind]
    return f"{label[0].lower()}{label[1:]}"


def _share(gap: float) -> str:
    """Keep the number and its sign in one line."""
    return text.share(gap).replace(" ", "\u00a0")


def _us(makespan: float) -> str:
    return text.duration(makespan)
