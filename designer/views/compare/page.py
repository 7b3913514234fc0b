"""The Compare view: what to compare at the left, the table and the plot, or two players, right."""

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from ccl import text
from designer.shell import ids, ui
from designer.shell.request import method_title
from designer.views.compare.running import (
    USUAL_SECONDS,
    USUAL_SIZES,
    Standing,
    is_construction,
    usual_methods,
)
from designer.views.solve.forms import PERSISTED
from formulations import DEFAULT, Formulation, available
from formulations.analyses.comparison import Comparison, News
from widgets import QuantityField, SchedulePair
from widgets.words import fastest_words

EMPTY = (
    "Tick methods, give sizes, and run: every plan is verified, replayed and set against one bound."
)


EXPORTS = (
    ("html", "code", "Web page", "plot, table and two players, from disk"),
    ("svg", "image", "Plot as SVG", "in the style of papers, as shown"),
    ("json", "file", "Comparison as JSON", "every plan; can be read again"),
    ("csv", "table", "Table as CSV", "one row per method and size"),
)
"""(kind, icon, title, note) of each file."""


def stores() -> list[Any]:
    """Return what the page keeps of a comparison; a reload finds it again by its key."""
    return [
        dcc.Store(id=ids.COMPARE_JOB, storage_type="session"),
        dcc.Store(id=ids.COMPARE_SEEN),
        dcc.Store(id=ids.COMPARE_OPENED, data=""),
        dcc.Store(id=ids.COMPARE_PICKED, data=[]),
        dcc.Store(id=ids.COMPARE_BEAT),
        dcc.Store(id=ids.COMPARE_BUSY, data=False),
        dcc.Interval(id=ids.COMPARE_TICK, interval=300, disabled=True),
    ]


def pane() -> html.Div:
    """Return the whole view."""
    return ui.div("ds-pane ds-cmp", _form(), _found(), id=ids.COMPARE_PANE, data_show="table")


def _form() -> html.Div:
    return ui.div(
        "ds-cmp-form",
        ui.div(
            "ds-cmp-methods",
            ui.heading(
                "Methods",
                html.Div([ui.quiet("All", ids.COMPARE_ALL), ui.quiet("None", ids.COMPARE_NONE)]),
            ),
            dmc.CheckboxGroup(
                id=ids.COMPARE_METHODS,
                value=usual_methods(),
                children=method_rows({}),
                inputWrapperOrder=["label", "error", "input"],  # above a list that scrolls
                **PERSISTED,
                **ui.attributes(aria_label="Methods to compare"),
            ),
        ),
        ui.div("ds-cmp-ask", _sizes(), _seconds(), _buttons()),
        role="group",
        aria_label="What to compare",
    )


def method_rows(refusals: Mapping[str, str]) -> list[Any]:
    """Return the check boxes; those that refuse are grey and say why.

    Parameters
    ----------
    refusals
        Why each would not take the problem, by name.
    """
    found = available()
    groups: tuple[tuple[str, list[Formulation]], ...] = (
        ("", [each for each in found if each.name == DEFAULT]),
        ("Constructions", [each for each in found if is_construction(each)]),
        ("Models", [each for each in found if not is_construction(each) and each.name != DEFAULT]),
    )
    rows: list[Any] = []
    for name, members in groups:
        if name:
            rows.append(ui.div("ds-cmp-group", name))
        rows += [_method(each, refusals.get(each.name)) for each in members]
    return rows


def _method(each: Formulation, refused: str | None) -> dmc.Checkbox:
    # What refuses is never ticked, and is again as it was once it takes the problem: the group
    # keeps the ticks by their values.
    return dmc.Checkbox(
        value=each.name if refused is None else f"{each.name}: unavailable",
        label=html.Span(each.title, title=f"{each.title}\nOn the command line: {each.name}"),
        description=html.Span(f"Unavailable: {refused}", title=refused) if refused else None,
        disabled=refused is not None,
        size="xs",
        className="ds-cmp-method",
    )


def _sizes() -> Any:
    return dmc.TextInput(
        id=ids.COMPARE_SIZES,
        label="Sizes",
        value=USUAL_SIZES,
        description=" ",
        placeholder="16KB, 1MB",
        inputWrapperOrder=["label", "input", "description", "error"],
        size="xs",
        spellCheck=False,
        **PERSISTED,
    )


def _seconds() -> Any:
    return QuantityField(
        id=ids.COMPARE_SECONDS,
        kind="duration",
        what="the time limit",
        label="Seconds per solve",
        value=USUAL_SECONDS,
        above=0,
        **PERSISTED,
    )


def _buttons() -> html.Div:
    return html.Div(
        [
            ui.button("Compare", ids.COMPARE_RUN, "play", size="sm", fullWidth=True),
            ui.button(
                "Stop",
                ids.COMPARE_STOP,
                "stop",
                size="sm",
                variant="default",
                fullWidth=True,
                style={"display": "none"},
            ),
        ],
        title="Stop keeps the rows that are there",
    )


def _found() -> html.Div:
    return ui.div(
        "ds-cmp-right",
        ui.div(
            "ds-cmp-head", ui.div("ds-cmp-status", status(None), id=ids.COMPARE_STATUS), _actions()
        ),
        html.Div(id=ids.COMPARE_STALE, role="status"),
        ui.div(
            "ds-cmp-found",
            ui.div(
                "ds-cmp-rows",
                empty(),
                id=ids.COMPARE_TABLE,
                tabIndex=0,
                role="region",
                aria_label="Rows of the comparison",
            ),
            _plot(),
        ),
        ui.div(
            "ds-cmp-pair",
            SchedulePair(
                id=ids.COMPARE_PAIR,
                choices=[],
                chosen=[],
                films=[],
                view="players",
                theme="auto",
                height="100%",
            ),
        ),
        id=ids.COMPARE_FOUND,
    )


def _plot() -> html.Div:
    return ui.div(
        "ds-card ds-cmp-plot",
        ui.div(
            "ds-cmp-plot-head",
            html.Div(id=ids.COMPARE_NOTE, className="ds-note"),
            ui.segments(
                ids.COMPARE_QUANTITY,
                "What the plot shows",
                {"time": "Time", "ratio": "× bound", "algbw": "algbw"},
            ),
        ),
        ui.graph(ids.COMPARE_PLOT, style={"height": "100%"}, className="ds-cmp-graph"),
        id=ids.COMPARE_PLOT_BOX,
        hidden=True,
    )


def _actions() -> html.Div:
    beside = ui.button(
        "Side by side",
        ids.COMPARE_BESIDE,
        "film",
        size="compact-sm",
        variant="light",
        disabled=True,
    )
    difference = ui.button(
        "Difference", ids.COMPARE_DIFFERENCE, size="compact-sm", variant="light", disabled=True
    )
    return ui.div(
        "ds-row",
        html.Div(beside, title="Tick two to four plans of the table to watch them in step"),
        html.Div(difference, title="What differs between the two plans that are ticked first"),
        _exports(),
    )


def _exports() -> dmc.Menu:
    target = ui.button(
        "Export",
        ids.COMPARE_EXPORT,
        "download",
        variant="default",
        size="compact-sm",
        disabled=True,
    )
    return ui.menu(
        target, [ui.menu_entry({"compare-export": kind}, *told) for kind, *told in EXPORTS]
    )


def empty() -> html.Div:
    """Say what this view is for, where there is no comparison yet."""
    return ui.div(
        "ds-cmp-empty", ui.icon("table"), html.B("Compare methods over sizes"), html.Span(EMPTY)
    )


def status(standing: Standing | None) -> Any:
    """Say how far a comparison is."""
    if standing is None:
        return ui.heading("Comparison")
    done, cells = len(standing.comparison.rows), _cells(standing)
    if not standing.running:
        rows = (
            text.count(cells, "row") if done == cells else f"{done} of {text.count(cells, 'row')}"
        )
        words = "Stopped" if standing.cancelled else "Finished"
        tell = f"{words}: {rows} in {text.seconds(standing.seconds)}"
        if standing.fault:
            return [ui.banner("warning", "bad", text.sentence(standing.fault))]
        return [ui.div("ds-cmp-line", ui.icon("check"), html.Span(tell, role="status"))]
    line = ui.div(
        "ds-cmp-line",
        dmc.Loader(size=12),
        html.Span(f"{done} of {cells}", role="status"),
        html.Small(_waits(standing.waiting) or _doing(standing.now)),
    )
    return [
        line,
        dmc.Progress(
            value=100 * done / cells,
            size=3,
            animated=True,
            **ui.attributes(aria_label="Solves done"),
        ),
    ]


def _cells(standing: Standing) -> int:
    return len(standing.question.methods) * len(standing.question.sizes)


def _waits(place: int) -> str:
    return f"waiting, {text.ordinal(place)} in line" if place else ""


def _doing(news: News | None) -> str:
    if news is None:
        return "starting"
    if news.method is None:
        return f"proves the bound at {text.size(news.size)}"
    words = f"{method_title(str(news.method))} at {text.size(news.size)}"
    if news.progress is None:
        return words
    found = news.progress.incumbent
    best = "" if found is None else f", best {text.duration(found)}"
    return f"{words}, {text.seconds(news.progress.seconds)}{best}"


def notes(comparison: Comparison) -> Any:
    """Say where another method becomes the fastest, or that none does."""
    sentences = fastest_words(comparison, named=method_title)
    if not sentences:
        return None
    return html.Span(". ".join([*sentences[:2], ""]).strip(), title="\n".join(sentences))
