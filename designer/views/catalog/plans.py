"""Plans of a catalog as tables: all of a cluster, and the best of each range of sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dash import html

from ccl import text
from ccl.result import Status
from ccl.serialization.quantity import format_size
from designer.shell.markup import attributes
from designer.shell.presets import COLLECTIVE_LABELS, ROOTED

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Entry, TunerRange, TunerTable

MOST_ROWS = 200
"""Plans that are listed; ``topoloom catalog list`` lists all."""

PLANS = ("Collective", "Size", "Method", "Makespan", "algbw", "Gap", "Solved in", "Kept", "For")
RANGES = ("From", "To", "Method", "Makespan", "algbw", "Above the bound", "Solved for")


def plans(entries: Sequence[Entry], name: str) -> html.Div:
    """Return the plans of a cluster, each opened by a press.

    Parameters
    ----------
    entries
        The plans.
    name
        Of the cluster as it is drawn; others are told.
    """
    shown = _table("Stored plans", PLANS, [_plan(each, name) for each in entries[:MOST_ROWS]])
    more = len(entries) - MOST_ROWS
    left = f"{text.count(more, 'more plan')}; topoloom catalog list lists all"
    return html.Div([shown, html.Div(left, className="ds-note") if more > 0 else None])


def ranges(table: TunerTable) -> html.Div:
    """Return which plan is the fastest from where to where: a bar of sizes, and a table."""
    rows = [_range(each) for each in table.ranges]
    note = text.listing([text.sentence(each) for each in table.left_out[:2]])
    return html.Div(
        [
            _bar(table.ranges),
            _table("Best plan of each range of sizes", RANGES, rows),
            html.Div(note, className="ds-note") if note else None,
        ]
    )


def method(entry: Entry) -> str:
    """Say who found a plan."""
    other = entry.found_by and entry.found_by != entry.formulation
    return f"{entry.formulation}: {entry.found_by}" if other else entry.formulation


def _bar(found: Sequence[TunerRange]) -> html.Div:
    """Return the ranges as parts of a bar, as wide as on a logarithmic axis."""
    parts = [
        html.Div(
            [
                html.Span(each.algorithm, className="ds-sto-who"),
                html.Span(format_size(each.begin), className="ds-sto-mark"),
                html.Span(format_size(each.end), className="ds-sto-mark ds-sto-last")
                if each is found[-1]
                else None,
            ],
            className="ds-sto-part",
            style={"flexGrow": round(math.log(each.end / each.begin), 3)},
            title=f"{each.algorithm}, {format_size(each.begin)} to {format_size(each.end)}",
        )
        for each in found
    ]
    return html.Div(parts, className="ds-sto-bar", **attributes(aria_hidden="true"))


def _table(caption: str, heads: Sequence[str], rows: list[Any]) -> html.Table:
    return html.Table(
        [
            html.Caption(caption, className="ds-unseen"),
            html.Thead(html.Tr([html.Th(each, scope="col") for each in heads])),
            html.Tbody(rows),
        ],
        className="ds-sto-table",
    )


def _plan(entry: Entry, name: str) -> html.Tr:
    kind = COLLECTIVE_LABELS.get(entry.kind, entry.kind)
    root = f" from {entry.root}" if entry.kind in ROOTED and entry.root else ""
    chunks = f", {entry.chunks} chunks" if entry.chunks > 1 else ""
    status = text.share(entry.gap) if entry.status is Status.FEASIBLE else entry.verdict
    cells = (
        text.size(entry.size),
        method(entry),
        text.duration(entry.makespan),
        text.bandwidth(entry.algbw),
        status,
        text.seconds(entry.solve_time),
        entry.kept[:10],
        "" if entry.cluster == name else entry.cluster,
    )
    return _row(entry, f"{kind}{root}{chunks}", cells, place="plans")


def _range(each: TunerRange) -> html.Tr:
    above = [time / least - 1 for time, least in zip(each.makespans, each.bounds, strict=True)]
    cells = (
        format_size(each.end),
        each.algorithm,
        _both([text.duration(time) for time in each.makespans]),
        _both([text.bandwidth(rate) for rate in each.algbws]),
        _both([text.share(share) for share in above]),
        text.size(each.entry.size),
    )
    return _row(each.entry, format_size(each.begin), cells, place=str(each.begin))


def _row(entry: Entry, head: str, cells: Sequence[str], *, place: str) -> html.Tr:
    press = html.Button(
        head,
        id={"catalog-open": entry.number, "from": place},
        type="button",
        title=f"Open plan {entry.number}: {method(entry)} for {text.size(entry.size)}",
    )
    told = [html.Td(each, title=each if len(each) > 20 else None) for each in cells]
    return html.Tr([html.Th(press, scope="row"), *told])


def _both(words: Sequence[str]) -> str:
    return " to ".join(dict.fromkeys(words))
