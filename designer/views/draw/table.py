"""The cluster as tables that can be sorted and edited; also the way for a screen reader.

The table view: sorting, paging and editing in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dash_mantine_components as dmc
from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, html, no_update

from ccl import text
from ccl.errors import CclError
from designer.shell import ids, request, ui
from designer.shell.request import callback
from designer.views.draw import spreadsheet
from designer.views.draw.spreadsheet import COLUMNS, Column, Filter, What, key_of, sort_key
from widgets import QuantityField

PAGE = 25
"""Rows on a page: every cell is a field, and thousands of fields make a page slow."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sorting:
    """How one of the two tables is shown."""

    key: str = ""
    down: bool = False
    page: int = 1

    def clicked(self, key: str) -> Sorting:
        """Sort by this column, or the other way round if it is sorted so already."""
        return Sorting(key, self.key == key and not self.down, 1)


def ordered(rows: Sequence[Json], sorting: Sorting) -> list[Json]:
    """Return the rows of all pages in their order."""
    key = "bandwidth" if sorting.key == "gigabits" else sorting.key
    if not key:
        return list(rows)
    return sorted(rows, key=lambda row: sort_key(row.get(key)), reverse=sorting.down)


def rows_of(rows: Sequence[Json], sorting: Sorting) -> list[Json]:
    """Return the rows of the page that is shown."""
    begin = (page_of(len(rows), sorting) - 1) * PAGE
    return ordered(rows, sorting)[begin : begin + PAGE]


def page_of(count: int, sorting: Sorting) -> int:
    """Return the number of the page, within those there are."""
    return min(max(1, sorting.page), pages(count))


def pages(count: int) -> int:
    """Return how many pages `count` rows take."""
    return max(1, -(-count // PAGE))


TITLES: dict[What, str] = {"device": "Devices", "link": "Directed links"}


def tables(
    topology: Json, devices: Sorting, links: Sorting, only: Filter | None = None
) -> list[Any]:
    """Return both tables, or the one that the filter is about."""
    chosen = only or Filter()
    sortings: dict[What, Sorting] = {"device": devices, "link": links}
    return [
        _table(what, chosen.rows(what, topology), len(topology[f"{what}s"]), sorting=sorting)
        for what, sorting in sortings.items()
        if chosen.shows(what)
    ]


def _table(what: What, rows: Sequence[Json], of: int, *, sorting: Sorting) -> html.Section:
    columns, title = COLUMNS[what], TITLES[what]
    heads = [_all(what), *(_head(what, each, sorting) for each in columns)]
    body = [_row(what, row) for row in rows_of(rows, sorting)]
    total = pages(len(rows))
    counted = text.count(len(rows), what)
    return html.Section(
        [
            ui.div(
                "ds-table-title",
                html.H2(title),
                html.Span(
                    counted if len(rows) == of else f"{counted} of {of:,}", className="ds-note"
                ),
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


def _all(what: What) -> html.Th:
    """Return the head of the column of marks, which chooses every row that the filter shows."""
    words = f"Select all {TITLES[what].lower()} that are shown"
    return html.Th(ui.press("", {"table-all": what}, "ds-pick", title=words, aria_label=words))


def _row(what: What, row: Json) -> html.Tr:
    key = key_of(what, row)
    pick = html.Button(
        type="button",
        className="ds-pick",
        role="checkbox",
        **ui.attributes(aria_checked=False, aria_label=f"Select {', '.join(key.split(chr(10)))}"),
    )
    cells = [_cell(what, row, column) for column in COLUMNS[what]]
    return html.Tr([html.Td(pick), *cells], **ui.attributes(data_of=what, data_row=key))


def _head(what: What, column: Column, sorting: Sorting) -> html.Th:
    mine = sorting.key == column.key
    order = ("descending" if sorting.down else "ascending") if mine else "none"
    return ui.sorter(
        column.label,
        {"table-sort": what, "key": column.key},
        order,
        title=f"Sort by {column.label.lower()}",
    )


def _cell(what: What, row: Json, column: Column) -> html.Td:
    if column.key == "gigabits":
        return html.Td(text.digits(row["bandwidth"] * 8), className="ds-number")
    if column.kind == "plain":
        return html.Td(row.get(column.key))
    control = _control(what, row, column)
    look = "ds-number" if column.kind == "number" else ""
    return html.Td(control, className=look, **ui.attributes(data_key=column.key))


def _control(what: What, row: Json, column: Column) -> Any:
    """Return the field in which a cell is edited."""
    name = row["name"] if what == "device" else f"{row['src']} to {row['dst']}"
    key = key_of(what, row)
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


def toolbar() -> html.Div:
    """Return what stands above the tables: the filter, and what is done to the chosen rows."""
    return ui.div(
        "ds-table-bar",
        dmc.TextInput(
            id=ids.TABLE_FILTER,
            placeholder="Filter rows",
            leftSection=ui.icon("search"),
            size="xs",
            debounce=200,
            **ui.attributes(aria_label="Filter rows"),
        ),
        ui.select(
            ids.TABLE_KIND,
            [],
            value=None,
            placeholder="All kinds",
            clearable=True,
            allowDeselect=True,
            aria_label="Kind of devices or links",
        ),
        html.Span(id=ids.TABLE_CHOSEN, className="ds-note", role="status"),
        *(
            ui.quiet(words, f"table-{act}", data_sheet=act, attributes={"root": {"title": title}})
            for act, words, title in ACTS
        ),
    )


ACTS = (
    ("fill", "Fill down", "The first selected row's cell of this column for the others (Ctrl+D)"),
    ("copy", "Copy", "The selected rows, or all that are shown, for a spreadsheet (Ctrl+C)"),
    ("paste", "Paste", "Cells of a spreadsheet, from the cell on that had the focus last (Ctrl+V)"),
    ("clear", "Select none", "Esc"),
    ("undo", "Undo", "Ctrl+Z"),
    ("redo", "Redo", "Ctrl+Shift+Z"),
)
"""What is done to rows: its name, its words, and what it does; assets/table.js has the keys."""

VIEW = {
    "sorting": (ids.SORTING, "data"),
    "words": (ids.TABLE_FILTER, "value"),
    "kind": (ids.TABLE_KIND, "value"),
}
"""What says which rows are shown, and in which order."""


def register(app: Dash) -> None:
    """Wire the table."""

    @app.callback(
        Output(ids.TABLE, "children"),
        Output(ids.TABLE_KIND, "data"),
        Input(ids.CANVAS, "drawing"),
        Input(ids.VIEW, "value"),
        *(Input(*each) for each in VIEW.values()),
        prevent_initial_call=False,
    )
    def on_table(
        drawing: dict[str, Any], view: str, sorting: dict[str, Any], words: str, kind: str
    ) -> Any:
        if view != "table":
            return no_update, no_update
        shown = {"sorting": sorting, "words": words, "kind": kind}
        return _shown(drawing["topology"], shown), spreadsheet.kinds_of(drawing["topology"])

    app.clientside_callback(
        ClientsideFunction("sheet", "mark"), Output(ids.TABLE_CHOSEN, "children"),
        Input(ids.ROWS, "data"),
    )  # fmt: skip
    _sorting(app)
    _cells(app)
    _acts(app)


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
        state={
            "drawing": State(ids.CANVAS, "drawing"),
            "chosen": State(ids.ROWS, "data"),
            **{name: State(*each) for name, each in VIEW.items()},
        },
    )
    def on_cell(drawing: Any, chosen: Any, **given: Any) -> dict[str, Any]:
        asked, topology = ctx.triggered_id, drawing["topology"]
        if len(ctx.triggered) != 1 or asked is None:
            return {}
        what: What = "link" if asked["table"] == "link" else "device"
        keys = _meant(topology, what, asked["row"], chosen=chosen, column=asked["key"])
        changes = [(key, asked["key"], ctx.triggered[0]["value"]) for key in keys]
        try:
            command = spreadsheet.edit_cells(topology, what, changes)
        except CclError as error:
            # Drawn anew, so that the cell shows what is true, not what was refused.
            return {"notes": ui.note(str(error)), "table": _shown(topology, given)}
        return {"command": request.numbered(command)} if command else {}


def _meant(topology: Json, what: What, key: str, *, chosen: Json | None, column: str) -> list[str]:
    """Return the rows that an edit of one is about: all that are chosen, if it is one of them."""
    keys = (chosen or {}).get(what) or []
    if key not in keys or (what, column) == ("device", "name"):
        return [key]
    there = {key_of(what, row) for row in topology[f"{what}s"]}
    return [each for each in keys if each in there]


def _acts(app: Dash) -> None:
    """Wire what is done to many rows at once."""

    @callback(
        app,
        output={
            **request.changes("command", "notes"),
            "copied": Output(ids.COPY, "data", allow_duplicate=True),
        },
        inputs={"act": Input(ids.TABLE_ACT, "data")},
        state={
            "drawing": State(ids.CANVAS, "drawing"),
            "chosen": State(ids.ROWS, "data"),
            **{name: State(*each) for name, each in VIEW.items()},
        },
    )
    def on_act(act: Any, drawing: Any, chosen: Any, **given: Any) -> dict[str, Any]:
        if not act:
            return {}
        topology, what = drawing["topology"], act["table"]
        picked = (chosen or {}).get(what) or []
        rows = ordered(filter_of(given).rows(what, topology), Sorting(**given["sorting"][what]))
        try:
            if act["act"] == "copy":
                return {"copied": _copied(what, rows, picked)}
            at = (act["row"], act["key"])
            if act["act"] == "paste":
                changes = spreadsheet.paste_cells(what, rows, at, act["text"])
            else:
                changes = spreadsheet.fill_down(what, rows, at, picked, typed=act["text"])
            command = spreadsheet.edit_cells(topology, what, changes)
        except CclError as error:
            return {"notes": ui.note(str(error))}
        return {"command": request.numbered(command)} if command else {}

    @app.callback(
        Output(ids.ROWS, "data"),
        Input({"table-all": ALL}, "n_clicks"),
        State(ids.CANVAS, "drawing"),
        State(ids.ROWS, "data"),
        *(State(*each) for each in VIEW.values()),
    )
    def on_all(clicks: list[int | None], drawing: Any, chosen: Any, *given: Any) -> Any:
        if not any(clicks) or not ctx.triggered_id or not ctx.triggered[0]["value"]:
            return no_update
        what = ctx.triggered_id["table-all"]
        shown = filter_of(dict(zip(VIEW, given, strict=True)))
        keys = [key_of(what, row) for row in shown.rows(what, drawing["topology"])]
        before = (chosen or {}).get(what) or []
        return {**(chosen or {}), what: [] if set(keys) <= set(before) else keys}


def _copied(what: What, rows: Sequence[Json], picked: Sequence[str]) -> dict[str, Any]:
    """Return what goes to the clipboard: the chosen rows, or all that are shown."""
    chosen = [row for row in rows if key_of(what, row) in set(picked)] or rows
    words = f"{text.count(len(chosen), 'row').capitalize()} of {TITLES[what].lower()}"
    content = spreadsheet.write_tsv(what, chosen)
    return {"text": content, "what": words, "lost": "", "filename": f"{what}s.tsv"}


def filter_of(given: Json) -> Filter:
    """Return the filter that the page has."""
    return Filter(given.get("words") or "", given.get("kind") or "")


def _shown(topology: dict[str, Any], given: Json) -> list[Any]:
    sorting = given["sorting"]
    devices, links = Sorting(**sorting["device"]), Sorting(**sorting["link"])
    return tables(topology, devices, links, filter_of(given))
