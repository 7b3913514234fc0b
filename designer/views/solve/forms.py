"""The form of a formulation's options, made from their dataclass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import html

from ccl.options import OptionField
from ccl.serialization.quantity import KINDS, kind_of
from designer.views.solve.sketch_card import sketch_row
from formulations import formulation, option_fields
from widgets import QuantityField


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
    return html.Div(rows, className="ds-fields")


def changed(values: Mapping[str, Any], fields: tuple[OptionField, ...]) -> dict[str, Any]:
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
    props: dict[str, Any] = {
        "id": key,
        "label": option.label,
        "description": option.help or None,
    }
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
