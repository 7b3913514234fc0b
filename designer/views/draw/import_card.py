"""What a file holds, asked and told before it changes anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import html

from ccl import text
from designer.shell import ids
from designer.shell.markup import attributes, icon
from designer.views.draw import importing
from designer.views.draw.importing import Brings, Found
from designer.views.solve.results import banner
from interchange.formats.format import Question, Reader, Report

LISTS = (
    ("taken", "Taken", "check"),
    ("assumed", "Assumed", "info"),
    ("left_out", "Left out", "close"),
)
"""(field of a report, heading, icon)."""

TAKES: dict[Brings, str] = {
    "topology": "Replace the drawing",
    "problem": "Open the problem",
    "plan": "Play the plan",
    "sketch": "Use the sketch",
    "ways": "Draw over the cluster",
}
"""What the button says that takes over what a file brings."""


def dialog() -> dmc.Modal:
    """Return the dialog, closed."""
    return dmc.Modal(
        [
            html.Div(id=ids.IMPORT_TROUBLE, role="alert"),
            html.Div(id=ids.IMPORT_BODY),
        ],
        id=ids.IMPORT_DIALOG,
        title="Import",
        size=640,
        keepMounted=True,
        classNames={"title": "ds-modal-title"},
        closeButtonProps={"aria-label": "Close"},
    )


def trouble(sentence: str) -> html.Div:
    """Return why a file cannot be read as asked."""
    return banner("warning", "bad", text.sentence(sentence))


def found_card(found: Found, name: str, *, settings: Mapping[str, str], merges: bool) -> list[Any]:
    """Return what is in a file and what can be done with it.

    Parameters
    ----------
    found, name
        The file.
    settings
        With which it was read.
    merges
        Whether it can be added to what is drawn.
    """
    figures = [
        html.Div([html.B(large), html.Span(what)]) for large, what in importing.figures(found)
    ]
    take = TAKES[found.brings]
    return [
        _head(name, found.reader),
        html.Div(figures, className="ds-imp-figures") if figures else None,
        html.Div(
            report_lists(found.imported.report),
            className="ds-imp-lists",
            tabIndex=0,
            role="group",
            **attributes(aria_label="What was made of the file"),
        ),
        _settings(found.reader, settings),
        _foot(
            [
                dmc.Button("Add to the drawing", id={"import-do": "add"}, variant="default")
                if merges
                else None,
                dmc.Button(take, id={"import-do": "take"}, **attributes(data_autofocus=True)),
            ]
        ),
    ]


def question_card(question: Question, name: str, *, reader: Reader) -> list[Any]:
    """Return what only the user knows, with a button for each answer."""
    words = str(question).removeprefix(f"{name}:").strip()
    answers = [
        dmc.Button(
            [html.Span(text.sentence(told)[:-1]), html.Code(answer)],
            id={"import-answer": answer, "of": question.key},
            variant="default",
            fullWidth=True,
            className="ds-imp-answer",
            **(attributes(data_autofocus=True) if i == 0 else {}),
        )
        for i, (answer, told) in enumerate(question.choices.items())
    ]
    return [
        _head(name, reader),
        html.P(text.sentence(words), className="ds-imp-question", id="import-question"),
        html.Div(
            answers,
            className="ds-imp-answers",
            role="group",
            **attributes(aria_labelledby="import-question"),
        ),
        _foot([]),
    ]


def merged_card(report: Report, name: str, *, reader: Reader) -> list[Any]:
    """Return what became of a file that was added to the drawing."""
    return [
        _head(name, reader),
        banner("check", "good", "Added to the drawing; Ctrl+Z takes it back."),
        html.Div(report_lists(report), className="ds-imp-lists"),
        html.Div(
            dmc.Button("Done", id=ids.IMPORT_CLOSE, **attributes(data_autofocus=True)),
            className="ds-imp-foot",
        ),
    ]


def report_lists(report: Report) -> list[Any]:
    """Return a report as up to three lists."""
    return [
        html.Section(
            [
                html.H3([icon(picture), title]),
                html.Ul([html.Li(text.sentence(each)) for each in getattr(report, field)]),
            ],
            className=f"ds-imp-{field.replace('_', '-')}",
        )
        for field, title, picture in LISTS
        if getattr(report, field)
    ]


def _head(name: str, reader: Reader) -> html.Div:
    return html.Div(
        [icon("file"), html.B(name, title=name), html.Span(reader.title)], className="ds-imp-head"
    )


def _settings(reader: Reader, settings: Mapping[str, str]) -> html.Details | None:
    """Return the form with which the file can be read again."""
    if not reader.settings:
        return None
    said = [name for name in reader.settings if settings.get(name)]
    fields = [
        dmc.TextInput(
            id={"import-setting": name},
            label=name,
            description=text.sentence(words),
            value=settings.get(name, ""),
            size="xs",
        )
        for name, words in reader.settings.items()
    ]
    again = dmc.Button(
        "Read again",
        id={"import-again": "settings"},
        variant="default",
        size="xs",
        leftSection=icon("repeat"),
    )
    told = f" ({text.count(len(said), 'answer')} given)" if said else ""
    return html.Details(
        [
            html.Summary(f"Read again with other settings{told}"),
            html.Div(fields, className="ds-imp-fields"),
            html.Div(again, className="ds-imp-again"),
        ],
        className="ds-fold ds-imp-settings",
    )


def _foot(buttons: list[Any]) -> html.Div:
    return html.Div(
        [
            dmc.Button("Cancel", id=ids.IMPORT_CLOSE, variant="subtle", color="gray"),
            *[each for each in buttons if each is not None],
        ],
        className="ds-imp-foot",
    )
