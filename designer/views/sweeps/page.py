"""The Sweeps view: which rows at the left, the plot and the table right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from ccl import text
from designer.shell import ids
from designer.shell.markup import CONFIG, Extra, attributes, heading, icon
from designer.views.sweeps.shelf import Found

NAME = "sweeps"
"""Its name in the choice of views."""

FIELDS = ("clusters", "collectives", "formulations")
"""What is chosen of names."""


def view(names: Sequence[str]) -> Extra:
    """Return the view for the sweeps of these names."""
    return Extra(NAME, "Sweeps", _pane(names), _stores())


def _stores() -> list[Any]:
    return [
        dcc.Store(id=ids.SWEEP_CHOICE, data={}),
        dcc.Store(id=ids.SWEEP_STAMP),
        dcc.Store(id=ids.SWEEP_SORT, data={}),
        dcc.Interval(id=ids.SWEEP_TICK, interval=2000, disabled=True),
    ]


def _pane(names: Sequence[str]) -> html.Div:
    return html.Div([_form(names), _found()], id="sweeps-pane", className="ds-pane ds-cmp ds-swp")


def _form(names: Sequence[str]) -> html.Div:
    return html.Div(
        [
            heading("Sweep"),
            _which(names),
            html.Div(id=ids.SWEEP_STATUS, role="status", className="ds-note"),
            _shown(),
            *(_names(field) for field in FIELDS),
            _words(),
        ],
        className="ds-cmp-form ds-swp-form",
        role="group",
        **attributes(aria_label="Which rows of the sweep"),
    )


def _which(names: Sequence[str]) -> Any:
    return dmc.Select(
        id=ids.SWEEP_NAME,
        data=list(names),
        value=names[0],
        allowDeselect=False,
        size="xs",
        **attributes(aria_label="Which sweep"),
    )


def _shown() -> Any:
    return dmc.SegmentedControl(
        id=ids.SWEEP_VISIBLE,
        data=[
            {"value": "best", "label": "Best"},
            {"value": "plans", "label": "Plans"},
            {"value": "none", "label": "None"},
            {"value": "all", "label": "All"},
        ],
        value="best",
        size="xs",
        fullWidth=True,
        **attributes(aria_label="Which rows"),
    )


def _words() -> Any:
    return dmc.TextInput(
        id=ids.SWEEP_WORDS,
        label="Words",
        placeholder="optimal rail",
        description="Rows that have all of them, in any column",
        size="xs",
        debounce=300,
        spellCheck=False,
    )


def _names(field: str) -> Any:
    return dmc.MultiSelect(
        id={"sweep-names": field},
        label={"clusters": "Clusters", "collectives": "Collectives", "formulations": "Methods"}[
            field
        ],
        placeholder="all",
        data=[],
        value=[],
        size="xs",
        searchable=True,
        clearable=True,
    )


def _found() -> html.Div:
    return html.Div(
        [
            html.Div(
                [
                    _segments(ids.SWEEP_QUANTITY, "Left", ("busbw", "makespan", "gap")),
                    _segments(ids.SWEEP_OVER, "Below", ("size", "gpus", "hosts")),
                ],
                className="ds-swp-head",
            ),
            html.Div(
                [
                    html.Div(id=ids.SWEEP_NOTE, className="ds-note"),
                    dcc.Graph(
                        id=ids.SWEEP_PLOT,
                        config=CONFIG,
                        responsive=True,
                        style={"height": "100%"},
                        className="ds-cmp-graph",
                    ),
                ],
                className="ds-card ds-swp-plot",
            ),
            html.Div(
                id=ids.SWEEP_TABLE,
                className="ds-cmp-rows",
                tabIndex=0,
                role="region",
                **attributes(aria_label="Rows of the sweep"),
            ),
        ],
        className="ds-cmp-right",
    )


def _segments(key: str, words: str, values: Sequence[str]) -> Any:
    names = {"gpus": "GPUs", "gap": "Gap", "makespan": "Makespan", "size": "Size", "hosts": "Hosts"}
    return dmc.SegmentedControl(
        id=key,
        data=[{"value": each, "label": names.get(each, each)} for each in values],
        value=values[0],
        size="xs",
        **attributes(aria_label=f"{words} in the plot"),
    )


def status(found: Found) -> Any:
    """Say how far a sweep is, and how many of its rows have no plan."""
    rows, none = len(found.rows), sum(bool(row.why_not) for row in found.rows)
    words = (
        text.count(rows, "row")
        if rows == found.tasks
        else f"{rows:,} of {text.count(found.tasks, 'row')}: it runs or was stopped"
    )
    return [icon("check" if rows == found.tasks else "clock"), f" {words}, {none} without a plan"]
