"""Sweeps as a view: which rows at the left, the plot and the table right.

Only sweeps whose folders were named when the server was started are there; the page knows them by
their names alone. Rows are read again when a file of the folder has changed, so that a sweep that
still runs, here or elsewhere, fills the view.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import dash_mantine_components as dmc
from dash import ALL, Dash, Input, Output, State, ctx, dcc, html, no_update

from ccl import text
from ccl.errors import CclError, FormatError, ProblemError
from ccl.result import Result
from ccl.serialization.quantity import format_size
from designer.shell import ids, ui
from designer.shell.request import Json, callback, method_title
from designer.views.draw import import_card
from formulations.campaigns.sweeps.rows import Row
from formulations.campaigns.sweeps.store import is_sweep, open_result, read_request, read_rows
from widgets.charts.atlas import MOST_LINES, lines_of, sweep_figure

Stamp = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of one sweep.

    Parameters
    ----------
    name
        Of the sweep.
    tasks
        How many rows there will be.
    rows
        Those that are there, in the order of the tasks.
    stamp
        Another one whenever a file has changed.
    """

    name: str
    tasks: int
    rows: tuple[Row, ...]
    stamp: str


class Shelf:
    """Folders of sweeps by name.

    Parameters
    ----------
    folders
        Of sweeps, or folders that hold such folders.

    Raises
    ------
    FormatError
        If one is neither.
    """

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        self._folders: dict[str, Path] = {}
        for folder in folders:
            for each in _sweeps_in(folder):
                self._folders[_free(each.stem, self._folders)] = each
        self._read: dict[str, tuple[Stamp, Found]] = {}
        self._lock = threading.Lock()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sweeps."""
        return tuple(self._folders)

    def found(self, name: str) -> Found:
        """Return the rows of a sweep as they are now.

        Raises
        ------
        ProblemError
            If there is no sweep of this name.
        FormatError
            If its files are not those of a sweep.
        """
        folder = self._folder(name)
        with self._lock:
            stamp = _stamp(folder)
            kept = self._read.get(name)
            if kept is None or kept[0] != stamp:
                tasks = len(read_request(folder).tasks)
                found = Found(name, tasks, read_rows(folder), str(hash(stamp)))
                kept = self._read[name] = (stamp, found)
        return kept[1]

    def result(self, name: str, task: str) -> Result:
        """Return the result of a task, verified again; errors as `open_result`."""
        return open_result(self._folder(name), task)

    def _folder(self, name: str) -> Path:
        if name not in self._folders:
            raise ProblemError(
                f"there is no sweep {name!r}; there are {', '.join(self._folders) or 'none'}"
            )
        return self._folders[name]


def _sweeps_in(folder: Path) -> list[Path]:
    if is_sweep(folder):
        return [folder]
    found = sorted(each for each in folder.glob("*/") if is_sweep(each))
    if not found:
        raise FormatError(
            f"{folder} is not the folder of a sweep and holds none; topoloom sweep makes one"
        )
    return found


def _free(name: str, taken: dict[str, Path]) -> str:
    """Return a name that no other sweep has."""
    wanted, number = name, 1
    while wanted in taken:
        number += 1
        wanted = f"{name} {number}"
    return wanted


def _stamp(folder: Path) -> Stamp:
    """Return what changes with the files: their names and times."""
    found = []
    for each in sorted(folder.glob("*.*")):
        try:
            found.append((each.name, each.stat().st_mtime_ns))
        except FileNotFoundError:  # it has become part of another meanwhile
            continue
    return tuple(found)


VISIBLE = ("best", "plans", "all", "none")
"""What may be shown: the best plan for each question, all plans, all rows, rows without a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the user has chosen; what is empty leaves everything.

    Parameters
    ----------
    clusters, collectives, formulations
        Names of which a row has one.
    words
        Words that a row's names, options or reasons contain, each of them.
    visible
        One of `VISIBLE`.
    by
        Column by which the rows are sorted; empty for the order of the tasks.
    down
        Whether the largest comes first.
    """

    clusters: tuple[str, ...] = ()
    collectives: tuple[str, ...] = ()
    formulations: tuple[str, ...] = ()
    words: str = ""
    visible: str = "best"
    by: str = ""
    down: bool = False


SORTABLE = tuple(each.name for each in fields(Row))


def read_choice(data: Mapping[str, Any] | None) -> Choice:
    """Make a choice of what the page keeps; what it does not know is left out."""
    given = data or {}
    visible, by = given.get("visible"), given.get("by")
    return Choice(
        clusters=tuple(map(str, given.get("clusters") or ())),
        collectives=tuple(map(str, given.get("collectives") or ())),
        formulations=tuple(map(str, given.get("formulations") or ())),
        words=str(given.get("words") or ""),
        visible=visible if visible in VISIBLE else "best",
        by=by if by in SORTABLE else "",
        down=bool(given.get("down")),
    )


def chosen(rows: Iterable[Row], choice: Choice) -> list[Row]:
    """Return the rows that a choice leaves, in its order; rows without a value come last."""
    words = choice.words.lower().split()
    found = [row for row in rows if _matches(row, choice) and all(w in _text(row) for w in words)]
    if choice.visible == "best":
        found = best(found)
    elif choice.visible != "all":
        found = [row for row in found if bool(row.why_not) is (choice.visible == "none")]
    if not choice.by:
        return found
    known = [row for row in found if getattr(row, choice.by) is not None]
    known.sort(key=lambda row: getattr(row, choice.by), reverse=choice.down)
    return known + [row for row in found if getattr(row, choice.by) is None]


def best(rows: Iterable[Row]) -> list[Row]:
    """Return of each question (cluster, collective, size, root) the fastest plan that was found."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        if row.makespan is None:
            continue
        key = (row.cluster, row.gpus, row.hosts, row.collective, row.size, row.root)
        other = found.get(key)
        if other is None or other.makespan is None or row.makespan < other.makespan:
            found[key] = row
    return list(found.values())


def values(rows: Sequence[Row], column: str) -> list[str]:
    """Return the different values of a column of names, in the order in which they come."""
    return list(dict.fromkeys(getattr(row, column) for row in rows))


def _matches(row: Row, choice: Choice) -> bool:
    return all(
        not wanted or value in wanted
        for value, wanted in (
            (row.cluster, choice.clusters),
            (row.collective, choice.collectives),
            (row.formulation, choice.formulations),
        )
    )


def _text(row: Row) -> str:
    names = (row.cluster, row.collective, row.formulation, row.found_by, _method(row))
    parts = (*names, row.options, row.status, row.why_not, row.bottleneck)
    return " ".join(filter(None, parts)).lower()


MOST_ROWS = 200
"""Rows that are shown; who looks for others filters."""


def _method(row: Row) -> str:
    return method_title(row.formulation, row.found_by)


def _told(value: float | None, words: Callable[[float], str]) -> str:
    return "" if value is None else words(value)


COLUMNS: tuple[tuple[str, str, Callable[[Row], str]], ...] = (
    ("cluster", "Cluster", lambda row: row.cluster),
    ("collective", "Collective", lambda row: row.collective.capitalize()),
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
    cells = [_row(row) for row in rows[:MOST_ROWS]]
    shown = ui.table("Rows of the sweep", "ds-swp-table", heads, cells)
    more = len(rows) - MOST_ROWS
    left = ui.div("ds-note", f"{text.count(more, 'more row')}; filter to see them")
    return html.Div([shown, left if more > 0 else None])


def _head(name: str, words: str, choice: Choice) -> html.Th:
    way = ("descending" if choice.down else "ascending") if choice.by == name else "none"
    return ui.sorter(words, {"sweep-sort": name}, way)


def _row(row: Row) -> html.Tr:
    words = [told(row) for _, _, told in COLUMNS]
    if row.why_not:
        why = html.Td(text.sentence(row.why_not), colSpan=len(words) - 4, title=row.why_not)
        return html.Tr(
            [html.Th(words[0], scope="row"), *map(html.Td, words[1:4]), why],
            className="ds-swp-none",
        )
    opened = ui.press(
        words[0],
        {"sweep-open": row.task},
        title=f"{row.cluster}, {row.collective} of {words[2]}: open on the canvas",
    )
    cells = [html.Td(each, title=each if len(each) > 24 else None) for each in words[1:]]
    return html.Tr([html.Th(opened, scope="row"), *cells])


def register(app: Dash, shelf: Shelf) -> None:
    """Wire the Sweeps view."""
    _choose(app, shelf)
    _arrange(app)
    _look(app, shelf)
    _open(app, shelf)
    app.clientside_callback(
        "(view) => view !== 'sweeps'",
        Output(ids.SWEEP_TICK, "disabled"),
        Input(ids.VIEW, "value"),
        prevent_initial_call=False,
    )


def _choose(app: Dash, shelf: Shelf) -> None:
    @callback(
        app,
        output={
            "names": Output({"sweep-names": ALL}, "data"),
            "names_value": Output({"sweep-names": ALL}, "value"),
            "stamp": Output(ids.SWEEP_STAMP, "data"),
            "status": Output(ids.SWEEP_STATUS, "children"),
        },
        inputs={
            "name": Input(ids.SWEEP_NAME, "value"),
            "tick_n_intervals": Input(ids.SWEEP_TICK, "n_intervals"),
            "view": Input(ids.VIEW, "value"),
        },
        state={"stamp": State(ids.SWEEP_STAMP, "data")},
        prevent_initial_call=False,
    )
    def on_sweep(name: str, view: str, stamp: Any, **_: Any) -> Json:
        nothing: list[Any] = [no_update] * len(FIELDS)
        same = {"names": nothing, "names_value": nothing}
        if view != NAME:
            return same
        try:
            found = shelf.found(name)
        except CclError as error:
            return {**same, "status": text.sentence(str(error))}
        if stamp == [name, found.stamp]:
            return same
        names = [_entries(found.rows, field.removesuffix("s")) for field in FIELDS]
        known = bool(stamp) and stamp[0] == name
        fresh: list[Any] = nothing if known else [[] for _ in FIELDS]
        return {
            "names": names,
            "names_value": fresh,
            "stamp": [name, found.stamp],
            "status": status(found),
        }


def _entries(rows: Sequence[Row], field: str) -> list[dict[str, str]]:
    """Return the names to choose from, as they are called on the page."""
    names: dict[str, Callable[[str], str]] = {
        "formulation": method_title,
        "collective": str.capitalize,
    }
    called = names.get(field, str)
    return [{"value": each, "label": called(each)} for each in values(rows, field)]


def _arrange(app: Dash) -> None:
    """Wire what needs no server: by what rows are sorted, and the choice as a whole."""
    app.clientside_callback(
        """(presses, now) => {
            const asked = window.dash_clientside.callback_context.triggered_id;
            if (!asked || !presses.some(Boolean)) return window.dash_clientside.no_update;
            const by = asked["sweep-sort"];
            return { by, down: now?.by === by ? !now.down : ["busbw", "size"].includes(by) };
        }""",
        Output(ids.SWEEP_SORT, "data"),
        Input({"sweep-sort": ALL}, "n_clicks"),
        State(ids.SWEEP_SORT, "data"),
    )
    app.clientside_callback(
        """(names, visible, words, sort) => {
            const [clusters, collectives, formulations] = names;
            return { clusters, collectives, formulations, visible, words, ...sort };
        }""",
        Output(ids.SWEEP_CHOICE, "data"),
        Input({"sweep-names": ALL}, "value"),
        Input(ids.SWEEP_VISIBLE, "value"),
        Input(ids.SWEEP_WORDS, "value"),
        Input(ids.SWEEP_SORT, "data"),
        prevent_initial_call=False,
    )


def _look(app: Dash, shelf: Shelf) -> None:
    @callback(
        app,
        output={
            "table": Output(ids.SWEEP_TABLE, "children"),
            "plot_figure": ui.figure(ids.SWEEP_PLOT),
            "note": Output(ids.SWEEP_NOTE, "children"),
        },
        inputs={
            "choice": Input(ids.SWEEP_CHOICE, "data"),
            "stamp": Input(ids.SWEEP_STAMP, "data"),
            "quantity": Input(ids.SWEEP_QUANTITY, "value"),
            "over": Input(ids.SWEEP_OVER, "value"),
            "scheme": Input(ids.SCHEME_NOW, "data"),
        },
    )
    def on_choice(choice: Any, stamp: Any, quantity: Any, over: Any, scheme: str | None) -> Json:
        if not stamp:
            return {}
        asked = read_choice(choice)
        try:
            rows = chosen(shelf.found(stamp[0]).rows, asked)
        except CclError as error:
            return {"note": text.sentence(str(error))}
        lines = lines_of(rows, over=over, quantity=quantity)
        figure = sweep_figure(lines, over=over, quantity=quantity, scheme=scheme)
        more = len(lines) - MOST_LINES
        note_ = f"The first {MOST_LINES} of {len(lines)} lines; filter to see others."
        return {
            "table": table(rows, asked),
            "plot_figure": figure,
            "note": note_ if more > 0 else None,
        }


def _open(app: Dash, shelf: Shelf) -> None:
    @callback(
        app,
        output=import_card.outputs(),
        inputs={"clicks": Input({"sweep-open": ALL}, "n_clicks")},
        state={"stamp": State(ids.SWEEP_STAMP, "data"), "job": State(ids.JOB, "data")},
    )
    def on_open(clicks: list[int | None], stamp: Any, job: Any) -> Json:
        if not (any(clicks) and ctx.triggered_id and stamp):
            return {}
        if job:
            return {"notes": ui.note(import_card.BUSY)}
        return opened(shelf, stamp[0], ctx.triggered_id["sweep-open"])


def opened(shelf: Shelf, name: str, task: str) -> Json:
    """Return what changes on the page when the row of a task is opened on the canvas."""
    try:
        result = shelf.result(name, task)
    except CclError as error:
        return import_card.refused(str(error))
    return import_card.opened(result)


NAME = "sweeps"
"""Its name in the choice of views."""

FIELDS = ("clusters", "collectives", "formulations")
"""What is chosen of names."""


def view(names: Sequence[str]) -> ui.Extra:
    """Return the view for the sweeps of these names."""
    return ui.Extra(NAME, "Sweeps", _pane(names), _stores())


def _stores() -> list[Any]:
    return [
        dcc.Store(id=ids.SWEEP_CHOICE, data={}),
        dcc.Store(id=ids.SWEEP_STAMP),
        dcc.Store(id=ids.SWEEP_SORT, data={}),
        dcc.Interval(id=ids.SWEEP_TICK, interval=2000, disabled=True),
    ]


def _pane(names: Sequence[str]) -> html.Div:
    return ui.div("ds-pane ds-cmp ds-swp", _form(names), _found(), id="sweeps-pane")


def _form(names: Sequence[str]) -> html.Div:
    return ui.div(
        "ds-cmp-form ds-swp-form",
        ui.heading("Sweep"),
        _which(names),
        html.Div(id=ids.SWEEP_STATUS, role="status", className="ds-note"),
        _shown(),
        *(_names(field) for field in FIELDS),
        _words(),
        role="group",
        aria_label="Which rows of the sweep",
    )


def _which(names: Sequence[str]) -> Any:
    return ui.select(ids.SWEEP_NAME, list(names), value=names[0], aria_label="Which sweep")


def _shown() -> Any:
    return ui.segments(
        ids.SWEEP_VISIBLE,
        "Which rows",
        {"best": "Best", "plans": "Plans", "none": "None", "all": "All"},
        fullWidth=True,
    )


def _words() -> Any:
    return dmc.TextInput(
        id=ids.SWEEP_WORDS,
        label="Words",
        placeholder="optimal rail",
        description="Rows that have all of them, in any column",
        size="xs",
        debounce=300,
        spellCheck=False,
    )


def _names(field: str) -> Any:
    return dmc.MultiSelect(
        id={"sweep-names": field},
        label={"clusters": "Clusters", "collectives": "Collectives", "formulations": "Methods"}[
            field
        ],
        placeholder="all",
        data=[],
        value=[],
        size="xs",
        searchable=True,
        clearable=True,
    )


def _found() -> html.Div:
    return ui.div(
        "ds-cmp-right",
        ui.div(
            "ds-swp-head",
            _segments(ids.SWEEP_QUANTITY, "Left", ("busbw", "makespan", "gap")),
            _segments(ids.SWEEP_OVER, "Below", ("size", "gpus", "hosts")),
        ),
        ui.div(
            "ds-card ds-swp-plot",
            html.Div(id=ids.SWEEP_NOTE, className="ds-note"),
            ui.graph(ids.SWEEP_PLOT, style={"height": "100%"}, className="ds-cmp-graph"),
        ),
        html.Div(
            id=ids.SWEEP_TABLE,
            className="ds-cmp-rows",
            tabIndex=0,
            role="region",
            **ui.attributes(aria_label="Rows of the sweep"),
        ),
    )


def _segments(key: str, words: str, values: Sequence[str]) -> Any:
    names = {"gpus": "GPUs", "gap": "Gap", "makespan": "Makespan", "size": "Size", "hosts": "Hosts"}
    return ui.segments(
        key,
        f"{words} in the plot",
        {each: names.get(each, each) for each in values},
        value=values[0],
    )


def status(found: Found) -> Any:
    """Say how far a sweep is, and how many of its rows have no plan."""
    rows, none = len(found.rows), sum(bool(row.why_not) for row in found.rows)
    words = (
        text.count(rows, "row")
        if rows == found.tasks
        else f"{rows:,} of {text.count(found.tasks, 'row')}: it runs or was stopped"
    )
    return [
        ui.icon("check" if rows == found.tasks else "clock"),
        f" {words}, {none} without a plan",
    ]
