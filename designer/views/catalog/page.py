"""The Catalog view: the best plan of each size, the best method of each collective, all plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dash_mantine_components as dmc
from dash import dcc, html

from ccl import text
from designer.shell import ids
from designer.shell.charts import CONFIG
from designer.shell.markup import Extra, attributes, icon
from designer.shell.presets import COLLECTIVE_LABELS
from designer.views.catalog.holdings import Look, Table

if TYPE_CHECKING:
    from formulations.campaigns.catalog import TunerTable

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
        dcc.Store(id=ids.CATALOG_SHOWN),
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
