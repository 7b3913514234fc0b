"""Every format that is written: the list, the options of one, what it does not keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import html

from ccl import text
from designer.shell import ids
from designer.shell.markup import attributes, icon
from designer.views.draw import exporting
from designer.views.solve.forms import option_rows
from designer.views.solve.results import banner
from interchange.formats.format import Writer


def dialog() -> dmc.Modal:
    """Return the dialog, closed."""
    return dmc.Modal(
        html.Div([_formats(), _format()], className="ds-exp"),
        id=ids.EXPORT_DIALOG,
        title="Export",
        size=820,
        keepMounted=True,
        classNames={"title": "ds-modal-title"},
        closeButtonProps={"aria-label": "Close"},
    )


def _formats() -> html.Div:
    search = dmc.TextInput(
        id=ids.EXPORT_SEARCH,
        placeholder="Search formats",
        leftSection=icon("search"),
        size="sm",
        spellCheck=False,
        **attributes(aria_label="Search formats", data_autofocus=True),
    )
    return html.Div(
        [search, html.Div(id=ids.EXPORT_LIST, className="ds-exp-list")], className="ds-exp-left"
    )


def _format() -> html.Div:
    go = dmc.Button(
        "Download",
        id=ids.EXPORT_GO,
        leftSection=icon("download"),
        disabled=True,
        fullWidth=True,
    )
    return html.Div(
        [
            html.Div(chosen(None), id=ids.EXPORT_FORM, className="ds-exp-form"),
            html.Div(id=ids.EXPORT_DONE, className="ds-exp-done", role="status"),
            go,
        ],
        className="ds-exp-right",
    )


def format_list(words: str | None, there: Mapping[str, str], *, chosen: str | None) -> list[Any]:
    """Return the formats that fit a search, grouped; those that cannot be written are grey."""
    groups = exporting.listed(words, there)
    if not groups:
        return [html.P(f"No format is called {words}.", className="ds-quiet")]
    return [
        html.Section(
            [html.H3(title), *(_entry(each, why, on=each.name == chosen) for each, why in rows)],
            **attributes(aria_label=title),
        )
        for title, rows in groups
    ]


def _entry(writer: Writer, why: str, *, on: bool) -> html.Button:
    return html.Button(
        [
            html.Span(writer.title),
            html.Code(f".{writer.ending}"),
            html.Small(text.sentence(why)[:-1]) if why else None,
        ],
        id={"export-format": writer.name},
        type="button",
        disabled=bool(why),
        className="ds-exp-entry",
        **attributes(aria_pressed=str(on).lower()),
    )


def chosen(writer: Writer | None) -> list[Any]:
    """Return the options of a format, or what to do first."""
    if writer is None:
        return [
            html.P(
                "Choose a format. What it can be told appears here.",
                className="ds-quiet",
            )
        ]
    return [
        html.H3(writer.title),
        option_rows(writer.options, {}, of=writer.name, key="export-option"),
    ]


def done(name: str, lost: Sequence[str]) -> Any:
    """Say what was saved, and what the format does not keep."""
    if not lost:
        return banner("check", "good", f"{name} is saved.")
    return html.Div(
        [
            banner("check", "good", f"{name} is saved."),
            html.H3("Not kept"),
            html.Ul([html.Li(text.sentence(each)) for each in lost]),
        ],
        className="ds-exp-lost",
        tabIndex=0,
    )


def failed(sentence: str) -> Any:
    """Say why it cannot be written."""
    return banner("warning", "bad", text.sentence(sentence))
