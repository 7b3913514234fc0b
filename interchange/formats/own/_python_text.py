"""Expressions of Python as text, laid out as formatters do: one line, or one line for each part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import ccl

WIDTH = 88
"""Signs in a line; what the usual formatters take where nothing else is said."""
INDENT = "    "


@dataclass(frozen=True)
class Group:
    """Parts between brackets.

    Parameters
    ----------
    begin, end
        With the brackets: ``Link(`` and ``)``.
    parts
        What stands before a part, such as ``alpha=``, and the part.
    tall
        Whether each part has a line of its own even if all fit into one.
    """

    begin: str
    parts: tuple[tuple[str, Expression], ...]
    end: str
    tall: bool = False


Expression = str | Group


def call(name: str, *values: Any, **named: Any) -> Group:
    """Return a call with values, which are written as `literal` does."""
    parts = [("", literal(each)) for each in values]
    parts += [(f"{key}=", literal(each)) for key, each in named.items()]
    return Group(f"{name}(", tuple(parts), ")")


def tall(values: Iterable[Any]) -> Group:
    """Return a list with a line for each value."""
    return Group("[", tuple(("", literal(each)) for each in values), "]", tall=True)


@dataclass(frozen=True)
class Code:
    """An expression that is written as it is."""

    text: str


def literal(value: Any) -> Expression:
    """Return the expression that makes a value again: texts, numbers, tuples, lists and dicts."""
    if isinstance(value, Group):
        return value
    if isinstance(value, Code):
        return value.text
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Mapping):
        parts = tuple((f"{one_line(literal(key))}: ", literal(each)) for key, each in value.items())
        return Group("{", parts, "}")
    if isinstance(value, (tuple, list)):
        begin, end = "()" if isinstance(value, tuple) else "[]"
        return Group(begin, tuple(("", literal(each)) for each in value), end)
    if value is None or isinstance(value, bool):
        return repr(value)
    # Numbers of numpy are written as those of Python that they are equal to.
    if isinstance(value, Integral):
        return repr(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    msg = f"{type(value).__name__} has no literal"
    raise TypeError(msg)


def quoted(text: str) -> str:
    """Return a text in quotes, double ones unless it has such itself."""
    found = repr(text)
    if found[0] == "'" and '"' not in found:
        return f'"{found[1:-1]}"'
    return found


def one_line(expression: Expression) -> str:
    """Return an expression in one line."""
    if isinstance(expression, str):
        return expression
    parts = [before + one_line(part) for before, part in expression.parts]
    comma = "," if expression.begin == "(" and len(parts) == 1 else ""
    return f"{expression.begin}{', '.join(parts)}{comma}{expression.end}"


def lines(expression: Expression, *, before: str = "", after: str = "", indent: str = "") -> str:
    """Return an expression with what stands around it, in as many lines as it needs."""
    line = f"{indent}{before}{one_line(expression)}{after}"
    if isinstance(expression, str) or not expression.parts:
        return line
    if len(line) <= WIDTH and not _tall(expression):
        return line
    rows = [
        lines(part, before=head, after=",", indent=indent + INDENT)
        for head, part in expression.parts
    ]
    return "\n".join(
        [f"{indent}{before}{expression.begin}", *rows, f"{indent}{expression.end}{after}"]
    )


def _tall(expression: Expression) -> bool:
    return isinstance(expression, Group) and (
        expression.tall or any(_tall(part) for _, part in expression.parts)
    )


class Script:
    """Lines with the imports that they need."""

    def __init__(self) -> None:
        self.imports: dict[str, set[str]] = {}
        self.lines: list[str] = []

    def uses(self, module: str, *names: str) -> None:
        self.imports.setdefault(module, set()).update(names)

    def add(self, *text: str) -> None:
        self.lines += text

    def text(self) -> str:
        """Return everything."""
        own = sorted(module for module in self.imports if module != "fractions")
        standard = [self._import("fractions"), ""] if "fractions" in self.imports else []
        told = f'"""A cluster written by Topoloom {ccl.__version__}; run it to make it again."""'
        head = [told, "", *standard, *map(self._import, own), ""]
        return "\n".join([*head, *self.lines]) + "\n"

    def _import(self, module: str) -> str:
        names = sorted(self.imports[module], key=lambda name: (name[0].islower(), name))
        line = f"from {module} import {', '.join(names)}"
        if len(line) <= WIDTH:
            return line
        return "\n".join([f"from {module} import (", *(f"{INDENT}{name}," for name in names), ")"])
