"""Values of attributes, as JSON or XML give them: numbers, texts, truths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ccl.errors import FormatError

_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def text_of(value: Any) -> str:
    """Return a name as text; a list of names, as networkx makes of a tuple, joined by ``/``."""
    if isinstance(value, list):
        return "/".join(map(text_of, value))
    return value if isinstance(value, str) else str(value)


def number_of(value: Any, *, where: str, unit: str) -> float:
    """Return a number, which may be written as text.

    Parameters
    ----------
    value
        Of an attribute.
    where
        Of what it is, for the error: ``edge a->b has the bandwidth``.
    unit
        What is wanted.

    Raises
    ------
    FormatError
        If it is none.
    """
    try:
        # Python, and nobody else, reads 1_000 as a number.
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            return float(value.replace("_", "x") if isinstance(value, str) else value)
    except (ValueError, OverflowError):
        pass
    msg = f"{where} {shown(value)}; give a number in {unit}"
    raise FormatError(msg)


def truth_of(attributes: Mapping[str, Any], name: str, *, what: str) -> bool | None:
    """Return an attribute that is true, false or not there.

    Raises
    ------
    FormatError
        If it is something else.
    """
    value = attributes.get(name)
    if value is None or isinstance(value, bool):
        return value
    found = _TRUTHS.get(value.strip().lower()) if isinstance(value, str) else None
    if found is None:
        msg = f"{what} has {name} {shown(value)}; give true or false"
        raise FormatError(msg)
    return found


def shown(value: Any) -> str:
    """Return a value for a sentence, not too long."""
    try:
        word = repr(value)
    except ValueError:  # a whole number of more digits than Python writes
        return "a number of thousands of digits"
    return word if len(word) <= 40 else word[:37] + "..."


def many(count: int, word: str) -> str:
    """Return a count with its word: 1 edge, 2 edges, 2 switches, 2 memories."""
    if count == 1:
        return f"1 {word}"
    if word.endswith("y"):
        return f"{count:,} {word[:-1]}ies"
    return f"{count:,} {word}{'es' if word.endswith('ch') else 's'}"
