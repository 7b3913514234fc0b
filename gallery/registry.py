"""Clusters by name: ``mi250:hosts=2`` and the list of all there are."""

import difflib
from collections.abc import Callable
from typing import Any

from ccl.errors import ProblemError
from ccl.topology import Topology
from gallery import (
    amd,
    direct_networks,
    fabrics,
    leaf_spine,
    nvidia,
    papers,
    servers,
    switched_networks,
    toys,
)
from gallery.entry import Entry, Parameter

_LISTED = (
    *toys.ENTRIES,
    *direct_networks.ENTRIES,
    *nvidia.ENTRIES,
    *amd.ENTRIES,
    *fabrics.ENTRIES,
    *leaf_spine.ENTRIES,
    *switched_networks.ENTRIES,
    *servers.ENTRIES,
    *papers.ENTRIES,
)
_FAMILIES = list(dict.fromkeys(each.family for each in _LISTED))
_ENTRIES = tuple(sorted(_LISTED, key=lambda each: _FAMILIES.index(each.family)))
_BY_NAME = {each.name: each for each in _ENTRIES}


def catalog() -> tuple[Entry, ...]:
    """Return all entries, grouped by family."""
    return _ENTRIES


def entry(name: str) -> Entry:
    """Return the entry called `name`.

    Raises
    ------
    ProblemError
        If it does not exist.
    """
    found = _BY_NAME.get(name.strip().lower())
    if found is None:
        close = difflib.get_close_matches(name.lower(), _BY_NAME, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(close)}" if close else f"there are {', '.join(_BY_NAME)}"
        raise ProblemError(f"the gallery has no cluster called {name!r}; {hint}")
    return found


def open_cluster(text: str) -> Topology:
    """Make a cluster from its name and arguments, such as ``dgx-a100:hosts=16,fabric=rail``.

    Raises
    ------
    ProblemError
        If the name or an argument is unknown, or a value is not one of its kind or range.
    """
    name, _, rest = text.partition(":")
    found = entry(name)
    arguments: dict[str, Any] = {}
    for item in filter(None, (each.strip() for each in rest.split(","))):
        key, equals, value = (part.strip() for part in item.partition("="))
        parameter = _parameter(found, key)
        if not equals:
            raise ProblemError(
                f"{found.name}: {key} has no value; write {key}={written(parameter.default)}"
            )
        if key in arguments:
            raise ProblemError(f"{found.name}: {key} is given twice; give it once")
        arguments[key] = _value(found, parameter, value)
    return found.make(**arguments)


def _parameter(found: Entry, key: str) -> Parameter:
    known = {each.name: each for each in found.parameters}
    if key not in known:
        close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}" if close else f"it takes {', '.join(known) or 'none'}"
        raise ProblemError(f"{found.name} takes no argument {key!r}; {hint}")
    return known[key]


def _value(found: Entry, parameter: Parameter, text: str) -> Any:
    """Read a value of the kind that the parameter has."""
    readers: dict[str, Callable[[str], Any]] = {
        "int": int,
        "float": float,
        "bool": lambda word: _TRUTH[word.lower()],
        "choice": lambda word: parameter.choices[parameter.choices.index(word)],
        "shape": lambda word: tuple(int(side) for side in word.lower().split("x")),
    }
    try:
        return readers[parameter.kind](text)
    except (ValueError, KeyError):
        wanted = {
            "int": "a whole number",
            "float": "a number",
            "bool": "true or false",
            "choice": " or ".join(parameter.choices),
            "shape": "whole numbers joined by x",
        }[parameter.kind]
        raise ProblemError(
            f"{found.name}: {parameter.name}={text} is not {wanted}, "
            f"such as {parameter.name}={written(parameter.default)}"
        ) from None


_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def written(value: Any) -> str:
    """Return a value as it is written in the name of a cluster."""
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
