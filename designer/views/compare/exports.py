"""A comparison as a file: everything as JSON, the table as CSV, a page, the plot for print."""

from __future__ import annotations

import json

from ccl.layout import layout
from ccl.serialization.documents import Positions
from ccl.serialization.text import csv_text
from formulations.analyses.comparison import Comparison, comparison_to_json
from widgets.charts.comparison import Quantity
from widgets.pages.comparison import comparison_html
from widgets.pictures.atlas import comparison_picture
from widgets.pictures.svg import svg

COLUMN = 120.0
"""Width of the plot in mm."""
WIDTH = COLUMN / 25.4 * 96
"""The same in pixels, of which an inch has 96."""


def export(
    kind: str, comparison: Comparison, *, quantity: Quantity | None, positions: Positions | None
) -> str:
    """Return a file of a kind: ``html``, ``svg``, ``json`` or ``csv``.

    Parameters
    ----------
    kind, comparison
        Which, and of what.
    quantity
        What the plot shows.
    positions
        Where devices are drawn.
    """
    if kind == "html":
        return export_page(comparison, positions)
    if kind == "svg":
        return export_plot(comparison, quantity)
    return {"json": export_json, "csv": export_csv}[kind](comparison)


def export_json(comparison: Comparison) -> str:
    """Return the whole comparison with every plan; `comparison_from_json` reads it."""
    return json.dumps(comparison_to_json(comparison), separators=(",", ":"))


def export_csv(comparison: Comparison) -> str:
    """Return a row per method and size: bytes, µs, GB/s and s; what is not there is empty."""
    rows = comparison.table()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return csv_text([columns, *([row.get(key, "") for key in columns] for row in rows)])


def export_page(comparison: Comparison, positions: Positions | None) -> str:
    """Return a page that shows it from disk; devices lie where they are drawn, if they are."""
    topology = comparison.problem.topology
    places = {**layout(topology), **(positions or {})}
    kept = {name: place for name, place in places.items() if name in topology.index}
    return comparison_html(comparison, kept)


def export_plot(comparison: Comparison, quantity: Quantity | None) -> str:
    """Return the plot for a paper, a column wide."""
    picture = comparison_picture(
        comparison, quantity=quantity or "time", style="paper", width=WIDTH
    )
    return svg(picture, column=COLUMN)
