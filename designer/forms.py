"""The form of a formulation's options, made from their dataclass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import html

from ccl.options import OptionField
from designer.sketch_card import sketch_row
from formulations import formulation, option_fields


def option_form(name: str, values: Mapping[str, Any]) -> list[Any]:
    """Return a row for each option of the formulation called `name`."""
    found = formulation(name)
    rows = [_row(name, each, values.get(each.name)) for each in option_fields(found.options)]
    return [
        dmc.Text(found.title, fw=620, size="sm", mb="sm"),
        html.Div(rows, className="ds-fields")
        if rows
        else dmc.Text("It has no options.", size="sm", c="dimmed"),
    ]


def changed(values: Mapping[str, Any], fields: tuple[OptionField, ...]) -> dict[str, Any]:
    """Return the values that differ from the defaults, which is what is kept and sent."""
    usual = {each.name: each.default for each in fields}
    return {
        name: value
        for name, value in values.items()
        if name in usual and value is not None and value != "" and value != usual[name]
    }


def _row(name: str, option: OptionField, value: Any) -> Any:
    value = option.default if value is None else value
    if option.kind == "sketch":
        return sketch_row(option, value)
    props: dict[str, Any] = {
        "id": {"option": option.name, "of": name},
        "label": option.label,
        "description": option.help or None,
    }
    if option.kind == "bool":
        return dmc.Switch(
            checked=bool(value), **{**props, "id": {"option-flag": option.name, "of": name}}
        )
    if option.kind == "choice":
        return dmc.Select(
            data=list(option.choices), value=value, allowDeselect=option.default is None, **props
        )
    return dmc.NumberInput(
        value="" if value is None else value,
        placeholder="automatic" if option.optional else "",
        suffix=f" {option.unit}" if option.unit else "",
        allowDecimal=option.kind == "float",
        min=option.minimum,
        max=option.maximum,
        clampBehavior="none",
        debounce=300,
        **props,
    )
