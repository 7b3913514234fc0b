"""Whole numbers of files are bounded: Python reads thousands of digits, which no float holds."""

import importlib
import json
import pkgutil
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect

import interchange.formats
from ccl.errors import FormatError
from interchange.formats.runtimes.mscclpp import one_sided_from_json

CHECKED_BY_HAND = {"PlanFile.min_message_size", "PlanFile.max_message_size"}
"""They go to 2^64 - 1, for which msgspec has no bound."""


def shapes() -> list[type[msgspec.Struct]]:
    """Return the shapes of all formats."""
    for each in pkgutil.walk_packages(interchange.formats.__path__, "interchange.formats."):
        if not each.name.endswith("__main__"):
            importlib.import_module(each.name)
    found, waiting = [], [*msgspec.Struct.__subclasses__()]
    while waiting:
        one = waiting.pop()
        waiting += one.__subclasses__()
        found += [one] if one.__module__.startswith(("ccl.", "interchange.")) else []
    return found


def inside(kind: Any) -> Iterator[Any]:
    """Yield a type and all of which it is made, other shapes left out."""
    yield kind
    if isinstance(kind, inspect.StructType):
        return
    for name in ("item_type", "key_type", "value_type"):
        if hasattr(kind, name):
            yield from inside(getattr(kind, name))
    for name in ("item_types", "types"):
        for each in getattr(kind, name, ()):
            yield from inside(each)


def test_every_whole_number_of_every_format_is_bounded():
    without = {
        f"{shape.__name__}.{field.name}"
        for shape in shapes()
        for field in inspect.type_info(shape).fields
        for each in inside(field.type)
        if isinstance(each, inspect.IntType) and None in (each.ge, each.le)
    }
    assert without == CHECKED_BY_HAND


@pytest.mark.parametrize("key", ["min_message_size", "max_message_size"])
def test_messages_of_more_bytes_than_are_counted_are_refused(key):
    plan = {"name": "x", "collective": "allgather", "protocol": "LL", "inplace": False, "gpus": []}
    content = json.dumps({**plan, key: 10**30}).encode()
    with pytest.raises(FormatError, match=r"^x: its messages have more than 18,446,744,073,709,"):
        one_sided_from_json(content, "x")
