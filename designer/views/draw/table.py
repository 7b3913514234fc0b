"""The cluster as tables that can be sorted and edited; also the way for a screen reader.

The table view: sorting, paging and editing in place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dash_mantine_components as dmc
from dash import ALL, Dash, Input, Output, State, ctx, html, no_update

from ccl import text
from ccl.errors import CclError
from designer.shell import ids, request, ui
from designer.shell.request import callback
from designer.views.draw import edits
from widgets import QuantityField

PAGE = 25
"""Rows on a page: every cell is a field, and thousands of fields make a page slow."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the key in the JSON, its heading, and how it is edited."""

    key: str
    label: str
    kind: str


DEVICE_COLUMNS = (
    Column("name", "Name", "text"),
    Column("kind", "Kind", "kind"),
    Column("host", "Host", "text"),
    Column("stores", "Stores", "flag"),
    Column("copies", "Copies", "flag"),
    Column("reduces", "Reduces", "flag"),
)
LINK_COLUMNS = (
    Column("src", "From", "plain"),
    Column("dst", "To", "plain"),
    Column("bandwidth", "Bandwidth", "number"),
    Column("gigabits", "Gb/s", "plain"),
    Column("alpha", "Alpha", "number"),
    Column("count", "Count", "number"),
    Column("medium", "Medium", "text"),
)


@dataclass(frozen=True, slots=True)
class Sorting:
    """How one of the two tables is shown."""

    key: str = ""
    down: bool = False
    page: int = 1

    def clicked(self, key: str) -> Sorting:
        """Sort by this column, or the other way round if it is sorted so already."""
        return Sorting(key, self.key == key and not self.down, 1)


def rows_of(rows: Sequence[Json], sorting: Sorting) -> list[Json]:
    """Return the rows of the page that is shown."""
    ordered = list(rows)
    if sorting.key:
        key = "bandwidth" if sorting.key == "gigabits" else sorting.key
        ordered.sort(key=lambda row: _rank(row.get(key)), reverse=sorting.down)
    begin = (page_of(len(ordered), sorting) - 1) * PAGE
    return ordered[begin : begin + PAGE]


def page_of(count: int, sorting: Sorting) -> int:
    """Return the number of the page, within those there are."""
    return min(max(1, sorting.page), pages(count))


def pages(count: int) -> int:
    """Return how many pages `count` rows take."""
    return max(1, -(-count // PAGE))


def tables(topology: Json, devices: Sorting, links: Sorting) -> list[Any]:
    """Return both tables."""
    return [
        _table("device", "Devices", DEVICE_COLUMNS, rows=topology["devices"], sorting=devices),
        _table("link", "Directed links", LINK_COLUMNS, rows=topology["links"], sorting=links),
    ]


def _table(
    what: str, title: str, columns: tuple[Column, ...], *, rows: Sequence[Json], sorting: Sorting
) -> html.Section:
    heads = [_head(what, each, sorting) for each in columns]
    body = [
        html.Tr([_cell(what, row, column) for column in columns]) for row in rows_of(rows, sorting)
    ]
    total = pages(len(rows))
    return html.Section(
        [
            ui.div(
                "ds-table-title",
                html.H2(title),
                html.Span(text.count(len(rows), what), className="ds-note"),
                dmc.Pagination(
                    id={"table-page": what},
                    total=total,
                    value=page_of(len(rows), sorting),
                    size="xs",
                    withEdges=total > 7,
                    style={"display": "none"} if total == 1 else {},
                ),
            ),
            ui.table(title, "ds-table", heads, body),
        ]
    )


def _head(what: str, column: Column, sorting: Sorting) -> html.Th:
    mine = sorting.key == column.key
    order = ("descending" if sorting.down else "ascending") if mine else "none"
    return ui.sorter(
        column.label,
        {"table-sort": what, "key": column.key},
        order,
        title=f"Sort by {column.label.lower()}",
    )


def _cell(what: str, row: Json, column: Column) -> html.Td:
    if column.key == "gigabits":
        return html.Td(text.digits(row["bandwidth"] * 8), className="ds-number")
    if column.kind == "plain":
        return html.Td(row.get(column.key))
    control = _control(what, row, column)
    return html.Td(control, className="ds-number" if column.kind == "number" else "")


def _control(what: str, row: Json, column: Column) -> Any:
    """Return the field in which a cell is edited."""
    name = row["name"] if what == "device" else f"{row['src']} to {row['dst']}"
    key = row["name"] if what == "device" else f"{row['src']}\n{row['dst']}"
    cell = {"table": what, "row": key, "key": column.key}
    value = row.get(column.key)
    common = {"size": "xs", "aria-label": f"{column.label} of {name}"}
    if column.kind == "flag":
        fixed = column.key == "stores" and row["kind"] == "gpu"
        marked = {**cell, "table": f"{what}-flag"}
        return dmc.Checkbox(id=marked, checked=bool(value), disabled=fixed, **common)
    common["variant"] = "unstyled"
    if column.kind == "kind":
        kinds = [{"value": each.kind, "label": each.label} for each in ui.DEVICE_TYPES]
        return ui.select(cell, kinds, value=value, **common)
    if column.kind == "number":
        words = f"{column.label} of {name}"
        return QuantityField(
            id=cell,
            value=value,
            hold=True,
            subject=key,
            ariaLabel=words,
            className="ds-cell ds-floating",
            **ui.LINK_QUANTITIES[column.key],
        )
    return dmc.TextInput(id=cell, value=value or "", debounce=True, **common)


def _rank(value: Any) -> tuple[int, float, str]:
    """Order numbers, then texts, then nothing."""
    if isinstance(value, int | float):
        return 0, float(value), ""
    return (2, 0.0, "") if value is None else (1, 0.0, _natural(str(value)))


def _natural(name: str) -> str:
    """Order gpu2 before gpu10."""
    return re.sub(r"\d+", lambda digits: digits[0].zfill(9), name)


def register(app: Dash) -> None:
    """Wire the table."""

    @app.callback(
        Output(ids.TABLE, "children"),
        Input(ids.CANVAS, "drawing"),
        Input(ids.VIEW, "value"),
        Input(ids.SORTING, "data"),
        prevent_initial_call=False,
    )
    def on_table(drawing: dict[str, Any], view: str, sorting: dict[str, Any]) -> Any:
        if view != "table":
            return no_update
        return _shown(drawing["topology"], sorting)

    _sorting(app)
    _cells(app)


def _sorting(app: Dash) -> None:
    @app.callback(
        Output(ids.SORTING, "data"),
        Input({"table-sort": ALL, "key": ALL}, "n_clicks"),
        Input({"table-page": ALL}, "value"),
        State(ids.SORTING, "data"),
    )
    def on_sort(clicks: list[int | None], _pages: list[int], sorting: dict[str, Any]) -> Any:
        asked = ctx.triggered_id
        if len(ctx.triggered) != 1 or asked is None:
            return no_update
        if "table-page" in asked:
            what, page = asked["table-page"], ctx.triggered[0]["value"]
            now = {**sorting, what: {**sorting[what], "page": page}}
            return no_update if now == sorting else now
        if not any(clicks):
            return no_update
        what = asked["table-sort"]
        clicked = Sorting(**sorting[what]).clicked(asked["key"])
        return {**sorting, what: {"key": clicked.key, "down": clicked.down, "page": 1}}


def _cells(app: Dash) -> None:
    @callback(
        app,
        output={
            **request.changes("command", "notes"),
            "table": Output(ids.TABLE, "children", allow_duplicate=True),
        },
        inputs={
            "devices": Input({"table": "device", "row": ALL, "key": ALL}, "value"),
            "flags": Input({"table": "device-flag", "row": ALL, "key": ALL}, "checked"),
            "links": Input({"table": "link", "row": ALL, "key": ALL}, "value"),
        },
        state={"drawing": State(ids.CANVAS, "drawing"), "sorting": State(ids.SORTING, "data")},
    )
    def on_cell(drawing: Any, sorting: dict[str, Any], **_: Any) -> dict[str, Any]:
        asked, topology = ctx.triggered_id, drawing["topology"]
        if len(ctx.triggered) != 1 or asked is None:
            return {}
        value = ctx.triggered[0]["value"]
        try:
            if asked["table"] == "link":
                src, dst = asked["row"].split("\n")
                command = edits.edit_link(
                    topology, [(src, dst)], asked["key"], value=value, both=False
                )
            else:
                command = edits.edit_device(topology, [asked["row"]], asked["key"], value)
        except CclError as error:
            # Drawn anew, so that the cell shows what is true, not what was refused.
            return {"notes": ui.note(str(error)), "table": _shown(topology, sorting)}
        return {"command": request.numbered(command)} if command else {}


def _shown(topology: dict[str, Any], sorting: dict[str, Any]) -> list[Any]:
    return tables(topology, Sorting(**sorting["device"]), Sorting(**sorting["link"]))
