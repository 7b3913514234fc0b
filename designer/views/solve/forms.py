"""The form of a formulation's options, made from their dataclass.

The sketch on the page: its row among the options, and the card over the canvas.
"""

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from ccl import text
from ccl.options import OptionField
from ccl.serialization.quantity import KINDS, kind_of
from ccl.serialization.sketches import INCLINATIONS
from designer.shell import ids, ui
from designer.shell.request import Json
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


def drawer() -> dmc.Drawer:
    """Return what opens on "Options", closed."""
    return dmc.Drawer(
        [
            html.Div(id=ids.OPTIONS_FORM),
            ui.button(
                "Reset to defaults", ids.OPTIONS_RESET, variant="default", mt="lg", fullWidth=True
            ),
        ],
        id=ids.OPTIONS_DRAWER,
        title="Options",
        position="right",
        size=380,
        keepMounted=True,
        classNames={"title": "ds-modal-title"},
        closeButtonProps={"aria-label": "Close"},
    )


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
