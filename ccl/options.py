"""Options of a formulation or a format: one dataclass drives the form, the flags and the checks."""

import dataclasses
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal

from ccl.errors import FormatError, ProblemError
from ccl.serialization.quantity import kind_of, parse_quantity
from ccl.serialization.sketches import Sketch, sketch_from_json, sketch_to_json


def option(
    default: Any,
    label: str,
    words: str = "",
    *,
    unit: str = "",
    min: float | None = None,
    max: float | None = None,
) -> Any:
    """Declare a field of an options dataclass.

    Parameters
    ----------
    default
        Value when nothing is said; None means that the formulation decides.
    label, words, unit
        For people: its name, a sentence on it, and what a number is counted in.
    min, max
        Smallest and largest value, or None.
    """
    row = {"label": label, "help": words, "unit": unit, "min": min, "max": max}
    return dataclasses.field(default=default, metadata=row)


OptionKind = Literal["int", "float", "bool", "choice", "text", "sketch"]


@dataclass(frozen=True, kw_only=True)
class OptionField:
    """One row of the form.

    Parameters
    ----------
    name
        Of the field; with hyphens it is the flag.
    label, unit, help
        For people; the unit is empty where it has none.
    kind
        What is typed.
    default
        Value when nothing is said; None means that the formulation decides.
    minimum, maximum
        Smallest and largest value, or None.
    choices
        Of a choice, the values.
    """

    name: str
    label: str
    unit: str
    help: str
    kind: OptionKind
    default: Any
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]

    @property
    def optional(self) -> bool:
        """Whether it may be left empty."""
        return self.default is None


def option_fields(options: type) -> tuple[OptionField, ...]:
    """Describe each field of an options dataclass.

    They are declared by `option`; types are int, float, bool, str, a Literal of strings, a Sketch,
    or one of these or None.
    """
    hints = typing.get_type_hints(options)
    rows = []
    for each in dataclasses.fields(options):
        kind, choices = _kind(hints[each.name])
        meta = each.metadata
        rows.append(
            OptionField(
                name=each.name,
                label=meta["label"],
                unit=meta.get("unit", ""),
                help=meta.get("help", ""),
                kind=kind,
                default=each.default,
                minimum=meta.get("min"),
                maximum=meta.get("max"),
                choices=choices,
            )
        )
    return tuple(rows)


def make_options(options: type, values: Mapping[str, Any]) -> Any:
    """Make the options from plain values, checked against the form.

    A sketch may be one, or the plain form of `ccl.serialization.sketches`.

    Raises
    ------
    ProblemError
        If a name is unknown or a value out of range.
    FormatError
        If a sketch is malformed.
    """
    rows = {row.name: row for row in option_fields(options)}
    taken = {}
    for name, value in values.items():
        if name not in rows:
            raise ProblemError(f"option {name!r} is unknown; there are {', '.join(rows) or 'none'}")
        if value is not None:
            taken[name] = _checked(rows[name], value)
    return options(**taken)


def typed(options: type, given: Mapping[str, str]) -> Any:
    """Make the options from what was typed, such as ``{"instances": "2"}``; `-` is as good as `_`.

    Raises
    ------
    ProblemError
        If a name is unknown or a value is not of its kind.
    """
    rows = {row.name: row for row in option_fields(options)}
    values: dict[str, Any] = {}
    for key, word in given.items():
        name = key.strip().replace("-", "_")
        row = rows.get(name)
        values[name] = _TRUTH.get(word.lower(), word) if row and row.kind == "bool" else word
    return make_options(options, values)


_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of options as JSON knows them, for files and pipes."""
    return {
        name: sketch_to_json(value) if isinstance(value, Sketch) else value
        for name, value in values.items()
    }


def _kind(hint: Any) -> tuple[OptionKind, tuple[str, ...]]:
    if typing.get_origin(hint) in (typing.Union, UnionType):
        hint = next(each for each in typing.get_args(hint) if each is not type(None))
    if typing.get_origin(hint) is Literal:
        return "choice", typing.get_args(hint)
    kinds: dict[type, OptionKind] = {
        int: "int",
        float: "float",
        bool: "bool",
        str: "text",
        Sketch: "sketch",
    }
    return kinds[hint], ()


def _checked(row: OptionField, value: Any) -> Any:
    if row.kind == "sketch":
        return _sketch(row, value)
    what = f"option {row.name} is {value!r}"
    if row.kind == "choice":
        if value not in row.choices:
            raise ProblemError(f"{what}; choose one of {', '.join(row.choices)}")
        return value
    if row.kind == "bool":
        if not isinstance(value, bool):
            raise ProblemError(f"{what}; give true or false")
        return value
    if row.kind == "text":
        return str(value)
    return _number(row, value, what)


def _sketch(row: OptionField, value: Any) -> Sketch:
    if isinstance(value, Sketch):
        return value
    if not isinstance(value, Mapping):
        raise ProblemError(f"option {row.name} is {value!r}; give a sketch or its plain form")
    return sketch_from_json(dict(value))


def _number(row: OptionField, value: Any, what: str) -> float:
    unit = f" {row.unit}" if row.unit else ""
    try:
        kind = kind_of(row.unit)
        number = parse_quantity(value, kind, what="") if isinstance(value, str) else float(value)
    except (FormatError, TypeError, ValueError):
        raise ProblemError(f"{what}; give a number{unit and ' in' + unit}") from None
    if not math.isfinite(number):
        raise ProblemError(f"{what}; give a finite number")
    if row.kind == "int" and number != int(number):
        raise ProblemError(f"{what}; give a whole number")
    low, high = row.minimum, row.maximum
    if (low is not None and not number >= low) or (high is not None and not number <= high):
        limits = [f"at least {low}{unit}"] * (low is not None)
        limits += [f"at most {high}{unit}"] * (high is not None)
        raise ProblemError(f"{what}; give {' and '.join(limits)}")
    return int(number) if row.kind == "int" else number
