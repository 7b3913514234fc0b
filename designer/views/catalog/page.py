"""The Catalog view: the best plan of each size, the best method of each collective, all plans.

Plans of a catalog as tables: all of a cluster, and the best of each range of sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import dash_mantine_components as dmc
from dash import dcc, html

from ccl import text
from ccl.result import Status
from ccl.serialization.quantity import format_size
from designer.shell import ids
from designer.shell.markup import COLLECTIVE_LABELS, CONFIG, ROOTED, Extra, attributes, icon
from designer.views.catalog.catalog_view import Look, Table

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Entry, TunerRange, TunerTable

NAME = "catalog"
"""Its name in the choice of views."""

NONE = (
    "Solve it, or compare methods: every plan that is found here is kept, and answers at once on "
    "each cluster of the same shape, whatever its devices are called."
)
ATLAS_NOTE = "The fastest stored plan of each, and how many times as fast as the best stored ring."
SIZES = "at each size from 1 KB to 1 GB, whatever size it was solved for"


def view() -> Extra:
    """Return the view."""
    return Extra(NAME, "Catalog", _pane(), _stores())


def _stores() -> list[Any]:
    return [
        dcc.Store(id=ids.CATALOG_CLUSTER),
        dcc.Store(id=ids.CATALOG_TOKEN),
        dcc.Store(id=ids.CATALOG_VISIBLE),
        dcc.Interval(id=ids.CATALOG_TICK, interval=400, disabled=True),
    ]


def _pane() -> html.Div:
    return html.Div(
        [
            html.Div(id=ids.CATALOG_STATUS, role="status", className="ds-sto-status"),
            html.Div(id=ids.CATALOG_NONE, className="ds-sto-none"),
            html.Div(
                [_tuner(), _atlas(), _card("Stored plans", html.Div(id=ids.CATALOG_PLANS))],
                id=ids.CATALOG_FOUND,
                className="ds-sto-found",
                hidden=True,
            ),
        ],
        id="catalog-pane",
        className="ds-pane ds-sto",
        tabIndex=0,
        role="region",
        **attributes(aria_label="Catalog"),
    )


def _tuner() -> html.Section:
    choice = dmc.Select(
        id=ids.CATALOG_KIND,
        data=[],
        value=None,
        allowDeselect=False,
        size="xs",
        w=136,
        **attributes(aria_label="Collective of the table"),
    )
    exports = html.Div(
        [_small("CSV", ids.CATALOG_CSV), _small("JSON", ids.CATALOG_JSON)], className="ds-row"
    )
    return _card("Best plan for each size", html.Div(id=ids.CATALOG_TUNED), choice, exports)


def _atlas() -> html.Section:
    graph = dcc.Graph(id=ids.CATALOG_ATLAS, config=CONFIG, responsive=False)
    return _card(
        "Best method for each collective",
        html.Div(
            [
                html.Div(id=ids.CATALOG_DOING, className="ds-note"),
                html.Div(graph, id=ids.CATALOG_ATLAS_BOX, hidden=True),
            ]
        ),
    )


def _card(title: str, content: Any, *controls: Any) -> html.Section:
    return html.Section(
        [html.Div([html.H2(title), *controls], className="ds-sto-head"), content],
        className="ds-sto-card",
        **attributes(aria_label=title),
    )


def _small(words: str, key: str) -> dmc.Button:
    return dmc.Button(
        words,
        id=key,
        leftSection=icon("download"),
        size="compact-xs",
        variant="subtle",
        color="gray",
        disabled=True,
        **attributes(aria_label=f"Export the table as {words}"),
    )


def status(look: Look, *, held: int, path: str) -> list[Any]:
    """Say how many plans of a cluster there are, and of all.

    Parameters
    ----------
    look
        What there is of the cluster.
    held
        How many plans the catalog holds.
    path
        Where it lies.
    """
    others = {each.cluster for each in look.entries} - {look.topology.name}
    kept = f", some kept for {text.listing(sorted(others)[:3])}" if others else ""
    return [
        html.B(f"{text.count(len(look.entries), 'plan')} of {look.topology.name}"),
        html.Span(f"{kept}; {held:,} in {path}", title=path),
    ]


def nothing(look: Look) -> list[Any]:
    """Say that a cluster has no plan, and what to do about it."""
    return [icon("memory"), html.B(f"No plan of {look.topology.name} yet"), html.Span(NONE)]


def choices(look: Look) -> list[dict[str, str]]:
    """Return the collectives of a cluster that have plans."""
    return [{"value": each, "label": COLLECTIVE_LABELS[each]} for each in look.kinds]


def doing(table: Table, plans: int) -> html.Div:
    """Say what is made, how far it is, and for how long already.

    Parameters
    ----------
    table
        What is made.
    plans
        How many plans are replayed.
    """
    words = f"Replaying {text.count(plans, 'plan')} {SIZES}; {text.seconds(table.seconds)} so far"
    return html.Div(
        [
            html.Div(words, className="ds-note"),
            dmc.Progress(
                value=100 * table.done / max(1, table.steps),
                size=3,
                **attributes(aria_label="Plans replayed"),
            ),
        ],
        className="ds-sto-doing",
    )


def untuned(table: TunerTable) -> html.Div:
    """Say that no stored plan answers what the table is asked for."""
    root = f" from rank {table.root}" if table.root else ""
    return html.Div(
        f"No stored plan of {COLLECTIVE_LABELS[table.kind]}{root} can be replayed at other sizes. "
        "Compare methods at several sizes, and their plans are in the table.",
        className="ds-note",
    )


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
