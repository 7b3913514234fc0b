"""The form of a formulation's options, made from their dataclass.

The sketch on the page: its row among the options, and the card over the canvas.

The bar at the top: what is solved, how, and what can be done with it.
"""

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from ccl import text
from ccl.options import OptionField
from ccl.serialization.quantity import KINDS, kind_of
from ccl.serialization.sketches import INCLINATIONS
from designer.server.guard import MOST_UPLOAD
from designer.shell import ids, ui
from designer.shell.request import DEFAULT_FORMULATION, Json
from designer.views.solve import sketch
from formulations import formulation, option_fields
from widgets import QuantityField

MOST_BYTES = 4_000_000
"""Bytes of a file with a sketch."""

HINT = "Click a link to switch it off or on, a GPU to make it a relay of its host."
KEYS = (("Tab", "GPUs"), ("Arrows", "links"), ("Enter", "picks"), ("Esc", "ends"))
PREFERENCES = {"all": "any", "uc-min": "few (uc-min)", "uc-max": "many (uc-max)"}


def sketch_row(option: OptionField, value: sketch.Plain) -> html.Div:
    """Return the row of the form: what is in use, and how to change it."""
    return ui.div(
        "ds-sketch-row",
        ui.div("mantine-InputWrapper-label ds-sketch-label", option.label),
        html.P(option.help, className="ds-note") if option.help else None,
        ui.div("ds-sketch-words", words(value), id={"sketch-words": option.name}, role="status"),
        ui.div(
            "ds-row",
            _button("Draw", "draw", "form", variant="light"),
            dcc.Upload(
                dmc.Button("Read file", size="compact-sm", variant="default"),
                id={"sketch-file": option.name},
                max_size=MOST_BYTES,
            ),
            _button("Clear", "clear", "form"),
        ),
    )


def words(value: sketch.Plain) -> str:
    """Say in a sentence what is in use."""
    return text.sentence(sketch.described(value))


def card(value: sketch.Plain, drawing: sketch.Plain) -> list[Any]:
    """Return the card over the canvas: a line, or all of it while the sketch is drawn.

    Parameters
    ----------
    value
        The user's own sketch, or None.
    drawing
        The derived sketch with which drawing began, None while it is not drawn.
    """
    told = sketch.described(value)
    said = html.Span(told, title=told, className="ds-sketch-words", role="status")
    if drawing is None:
        return [_title(), said, _button("Draw", "draw", "card")]
    keys = [html.Span([html.Kbd(key), does]) for key, does in KEYS]
    return [
        ui.div(
            "ds-sketch-head",
            _title(),
            said,
            _button("Clear", "clear", "card", disabled=value is None),
            _button("Done", "done", "card", variant="light"),
        ),
        ui.div(
            "ds-sketch-body",
            html.P([html.Span(HINT), html.Span(keys, className="ds-sketch-keys")]),
            *_fields(drawing if value is None else value),
        ),
    ]


def _title() -> html.Strong:
    return html.Strong([ui.icon("links"), "Sketch"])


def _fields(value: sketch.Plain) -> list[Any]:
    now = value or {}
    return [
        ui.select(
            {"sketch-field": "switches"},
            {each: PREFERENCES[each] for each in INCLINATIONS},
            label="Pairs at switches",
            value=now.get("switches", "all"),
        ),
        html.Div(
            dmc.TextInput(
                id={"sketch-field": "offsets"},
                label="Symmetry of ranks",
                value=sketch.offsets_text(now.get("offsets", ())),
                placeholder="1 in 8, 8 in 16",
                debounce=True,
                size="xs",
            ),
            title="1 in 8: by 1 in every block of 8 consecutive ranks",
        ),
    ]


def _button(words: str, does: str, place: str, **props: Any) -> dmc.Button:
    usual = {"size": "compact-sm" if place == "form" else "compact-xs", "variant": "default"}
    return ui.button(words, {"sketch-act": does, "in": place}, **{**usual, **props})


def option_form(name: str, values: Mapping[str, Any]) -> list[Any]:
    """Return a row for each option of the formulation called `name`."""
    found = formulation(name)
    return [
        dmc.Text(found.title, fw=620, size="sm", mb="sm"),
        option_rows(found.options, values, of=name),
    ]


def option_rows(options: type, values: Mapping[str, Any], *, of: str, key: str = "option") -> Any:
    """Return a row for each option of a dataclass.

    Parameters
    ----------
    options
        The dataclass.
    values
        What they are now, by name.
    of, key
        Whose options they are and which kind of thing that is: the id of a row is ``{key: name,
        "of": of}``, of a switch ``{key-flag: name, "of": of}``.
    """
    rows = [
        _row({key: each.name, "of": of}, each, values.get(each.name))
        for each in option_fields(options)
    ]
    if not rows:
        return dmc.Text("It has no options.", size="sm", c="dimmed")
    return ui.div("ds-fields", rows)


def changed(values: Mapping[str, Any], fields: tuple[OptionField, ...]) -> Json:
    """Return the values that differ from the defaults, which is what is kept and sent."""
    usual = {each.name: each.default for each in fields}
    return {
        name: value
        for name, value in values.items()
        if name in usual and value is not None and value != "" and value != usual[name]
    }


def _row(key: dict[str, str], option: OptionField, value: Any) -> Any:
    value = option.default if value is None else value
    if option.kind == "sketch":
        return sketch_row(option, value)
    props: Json = {"id": key, "label": option.label, "description": option.help or None}
    if option.kind == "bool":
        kind = next(iter(key))
        flag = {f"{kind}-flag": option.name, "of": key["of"]}
        return dmc.Switch(checked=bool(value), **{**props, "id": flag})
    if option.kind == "choice":
        return dmc.Select(
            data=list(option.choices), value=value, allowDeselect=option.default is None, **props
        )
    if option.kind == "text":
        return dmc.TextInput(value=value or "", debounce=300, spellCheck=False, **props)
    return QuantityField(
        kind=field_kind(option),
        what=option.label.lower(),
        value="" if value is None else value,
        placeholder="automatic" if option.optional else "",
        optional=option.optional,
        least=option.minimum,
        most=option.maximum,
        size="sm",
        debounce=300,
        subject=str(key),
        **props,
    )


def field_kind(option: OptionField) -> str:
    """Return the name of the kind of quantity that an option of a number takes."""
    kind = kind_of(option.unit, whole=option.kind == "int")
    return next(name for name, each in KINDS.items() if each is kind)


PERSISTED: Json = {"persistence": True, "persistence_type": "local"}
"""Settings survive a reload as the drawing does."""

FLOATING: Json = {"className": "ds-floating", "size": "sm", **PERSISTED}
"""What the fields of the bar have in common: there is no room below them."""

EXPORTS: tuple[tuple[str, str, str, str], ...] = (
    ("json", "file", "Result as JSON", "with plan and bounds; opens here"),
    ("html", "code", "Web page", "one file that plays without a server"),
    ("gif", "film", "Animation as GIF", "every epoch, loops"),
    ("webm", "film", "Video as WebM", "recorded while it plays"),
    ("csv", "table", "Transfers as CSV", "one row per crossing of a link"),
    ("png", "image", "Picture as PNG", "the canvas as it is"),
)
"""(key, icon, title, note) of the Export menu."""

SHARES: tuple[tuple[str, str, str, str], ...] = (
    (ids.COPY_LINK, "link", "Copy link", "drawing and question, in the address"),
    (ids.COPY_PYTHON, "copy", "Copy as Python", "the same as code, to paste"),
    (ids.EXPORT_OPEN, "sliders", "More formats...", "runtimes, simulators, graphs"),
)
"""(id, icon, title, note) of what stands below."""


def collective_choices(*, custom: bool) -> list[Json]:
    """Return the menu of collectives; a custom one is there once a file has brought it."""
    named: list[Json] = [
        {"value": key, "label": label} for key, label in ui.COLLECTIVE_LABELS.items()
    ]
    return [*named, {"value": "custom", "label": "From a file"}] if custom else named


def header() -> dmc.AppShellHeader:
    """Return the bar."""
    return dmc.AppShellHeader(
        className="ds-header", children=[_header_title(), _question(), _actions()]
    )


def _header_title() -> html.Div:
    return ui.div(
        "ds-title",
        ui.div("ds-logo", ui.icon("links")),
        ui.div(
            "ds-title-text",
            dmc.TextInput(
                id=ids.NAME,
                variant="unstyled",
                classNames={"input": "ds-name"},
                debounce=True,
                spellCheck=False,
                **ui.attributes(aria_label="Name of the topology"),
            ),
            html.Div(id=ids.COUNTS, className="ds-counts"),
        ),
    )


def _question() -> html.Div:
    return ui.div(
        "ds-question",
        ui.select(
            ids.COLLECTIVE,
            collective_choices(custom=False),
            value="all-gather",
            w=136,
            size="sm",
            maxDropdownHeight=320,
            **PERSISTED,
            aria_label="Collective",
        ),
        _size(),
        _chunks(),
        html.Div(_root(), id=ids.ROOT_BOX, hidden=True),
        ui.select(
            ids.FORMULATION,
            [],
            className="ds-formulation",
            value=DEFAULT_FORMULATION,
            size="sm",
            maxDropdownHeight=420,
            renderOption={"function": "formulationOption"},
            comboboxProps={"width": 340, "position": "bottom-start"},
            **PERSISTED,
            aria_label="Formulation",
        ),
        _tool("sliders", ids.OPTIONS_OPEN, "Options of the formulation"),
        _solve(),
        html.Div(id=ids.CHIP, className="ds-chip"),
        role="group",
        aria_label="What to solve",
    )


def _solve() -> html.Div:
    """Return the two buttons of which one is shown; Stop keeps the best schedule."""
    return html.Div(
        [
            ui.button("Solve", ids.SOLVE, "play", size="sm", className="ds-solve"),
            ui.button(
                "Cancel",
                ids.CANCEL,
                "stop",
                size="sm",
                variant="default",
                className="ds-solve",
                style={"display": "none"},
            ),
        ],
        title="Ctrl+Enter solves; Stop keeps the best schedule",
    )


def _size() -> Any:
    return QuantityField(
        id=ids.SIZE,
        kind="size",
        what="size",
        above=0,
        value="1MB",
        verbatim=True,
        debounce=400,
        prefix="Size",
        ariaLabel="Size of the whole buffer, such as 1GB or 64 KiB",
        style={"width": 122},
        **FLOATING,
    )


def _chunks() -> Any:
    return QuantityField(
        id=ids.CHUNKS,
        kind="count",
        what="chunks per shard",
        least=1,
        value="",
        optional=True,
        debounce=400,
        prefix="Chunks",
        placeholder="Automatic",
        ariaLabel="Chunks per shard",
        title="Automatic: a plan cuts the data as it likes. A number keeps so many chunks of each "
        "shard whole",
        style={"width": 156},
        **FLOATING,
    )


def _root() -> Any:
    return QuantityField(
        id=ids.ROOT,
        kind="count",
        what="the root's rank",
        least=0,
        value=0,
        debounce=400,
        prefix="Root",
        ariaLabel="Rank of the root",
        style={"width": 84},
        **FLOATING,
    )


def _actions() -> html.Div:
    return ui.div(
        "ds-actions",
        dcc.Upload(
            _tool("open", "open-button", "Open a file, or drop it anywhere"),
            id=ids.UPLOAD,
            max_size=MOST_UPLOAD,
        ),
        _tool("save", ids.SAVE, "Save the drawing"),
        _exports(),
        dmc.ColorSchemeToggle(
            id=ids.SCHEME,
            lightIcon=ui.icon("sun"),
            darkIcon=ui.icon("moon"),
            variant="default",
            size="lg",
            className="ds-tool",
            **ui.attributes(aria_label="Switch between light and dark"),
        ),
    )


def _exports() -> dmc.Menu:
    button = dmc.Button("Export", variant="default", size="sm", leftSection=ui.icon("download"))
    entries = [
        *(
            ui.menu_entry({"picture" if key == "png" else "export": key}, *told)
            for key, *told in EXPORTS
        ),
        dmc.MenuDivider(),
        *(ui.menu_entry(key, *told) for key, *told in SHARES),
    ]
    return ui.menu(button, entries)


def _tool(picture: str, key: str, label: str) -> dmc.Tooltip:
    return dmc.Tooltip(
        dmc.ActionIcon(
            ui.icon(picture),
            id=key,
            variant="default",
            size="lg",
            className="ds-tool",
            **ui.attributes(aria_label=label),
        ),
        label=label,
        openDelay=500,
    )
