"""The rows of a sweep as a table: sorted by a press on a head, opened by a press on a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dash import html

from ccl import text
from ccl.serialization.quantity import format_size
from designer.shell.markup import attributes
from designer.views.sweeps.choosing import Choice
from formulations.campaigns.sweeps.rows import Row

MOST_ROWS = 200
"""Rows that are shown; who looks for others filters."""


def _method(row: Row) -> str:
    found = row.found_by if row.found_by and row.found_by != row.formulation else ""
    return f"{row.formulation}: {found}" if found else row.formulation


def _told(value: float | None, words: Callable[[float], str]) -> str:
    return "" if value is None else words(value)


COLUMNS: tuple[tuple[str, str, Callable[[Row], str]], ...] = (
    ("cluster", "Cluster", lambda row: row.cluster),
    ("collective", "Collective", lambda row: row.collective),
    ("size", "Size", lambda row: format_size(row.size)),
    ("formulation", "Method", _method),
    ("makespan", "Makespan", lambda row: _told(row.makespan, text.duration)),
    ("busbw", "busbw", lambda row: _told(row.busbw, text.bandwidth)),
    ("gap", "Gap", lambda row: _told(row.gap, text.share)),
    ("bottleneck", "Bottleneck", lambda row: row.bottleneck or ""),
    ("solve_time", "Solved in", lambda row: _told(row.solve_time, text.seconds)),
)
"""Column, head and words of each cell."""


def table(rows: Sequence[Row], choice: Choice) -> html.Div:
    """Return the first rows of a choice, with a line on those that are left out."""
    heads = [_head(name, words, choice) for name, words, _ in COLUMNS]
    shown = html.Table(
        [
            html.Caption("Rows of the sweep", className="ds-unseen"),
            html.Thead(html.Tr(heads)),
            html.Tbody([_row(row) for row in rows[:MOST_ROWS]]),
        ],
        className="ds-swp-table",
    )
    more = len(rows) - MOST_ROWS
    left = html.Div(f"{text.count(more, 'more row')}; filter to see them", className="ds-note")
    return html.Div([shown, left if more > 0 else None])


def _head(name: str, words: str, choice: Choice) -> html.Th:
    way = ("descending" if choice.down else "ascending") if choice.by == name else "none"
    arrow = {"none": "", "ascending": " ↑", "descending": " ↓"}[way]
    press = html.Button(f"{words}{arrow}", id={"sweep-sort": name}, type="button")
    return html.Th(press, scope="col", **attributes(aria_sort=way))


def _row(row: Row) -> html.Tr:
    words = [told(row) for _, _, told in COLUMNS]
    if row.why_not:
        why = html.Td(text.sentence(row.why_not), colSpan=len(words) - 4, title=row.why_not)
        return html.Tr(
            [html.Th(words[0], scope="row"), *map(html.Td, words[1:4]), why],
            className="ds-swp-none",
        )
    opened = html.Button(
        words[0],
        id={"sweep-open": row.task},
        type="button",
        title=f"{row.cluster}, {row.collective} of {words[2]}: open on the canvas",
    )
    cells = [html.Td(each, title=each if len(each) > 24 else None) for each in words[1:]]
    return html.Tr([html.Th(opened, scope="row"), *cells])
