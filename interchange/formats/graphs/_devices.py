"""Devices of a graph: their kinds, hosts, abilities and places."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ccl.topology import KINDS as REAL_KINDS
from ccl.topology import Device, DeviceKind, device
from interchange.formats.format import Report
from interchange.formats.graphs._values import many, number_of, text_of, truth_of
from interchange.formats.graphs._words import HOSTS, KINDS, kind_named

Attributes = Mapping[str, Any]
Places = dict[str, tuple[float, float]]

_SPELT = {"gpu": "GPU", "nic": "NIC"}
_KEPT = ("stores", "copies", "reduces", "buffer_bytes", "pos", "x", "y")


def devices_of(
    names: Sequence[str], attributes: Sequence[Attributes]
) -> tuple[tuple[Device, ...], Places, Report]:
    """Make the devices and their places.

    Raises
    ------
    FormatError, ProblemError
        If an attribute makes no sense.
    """
    keys = dict.fromkeys(key for each in attributes for key in each)
    kinds, hosts = _called(keys, KINDS), _called(keys, HOSTS)[:1]
    guessed: Counter[tuple[str, str]] = Counter()
    made = []
    for name, each in zip(names, attributes, strict=True):
        kind, how = _kind(name, each, kinds)
        if how:
            guessed[kind, how] += 1
        made.append(_device(name, kind, each, hosts=hosts))
    places, wrong = _places(names, attributes)
    taken = [f"the attribute {key!r} names the hosts" for key in hosts if key != "host"]
    unknown = [key for key in keys if key not in {*kinds, *hosts, *_KEPT}]
    left_out = [f"the attributes of devices {listed(unknown)}"] if unknown else []
    if wrong:
        left_out.append(f"the places of {many(wrong, 'device')}, which are not two numbers")
    assumed = [
        f"{many(count, _SPELT.get(kind, kind))} {how}"
        for (kind, how), count in sorted(guessed.items())
    ]
    return tuple(made), places, Report(tuple(taken), tuple(assumed), tuple(left_out))


def means_something(key: str) -> bool:
    """Say whether an attribute of a device is kept."""
    return key.lower() in (*KINDS, *HOSTS) or key in _KEPT


def listed(words: Sequence[str]) -> str:
    """Return some words for a sentence, the first eight."""
    more = f" and {len(words) - 8:,} more" if len(words) > 8 else ""
    cut = (word if len(word) <= 40 else word[:37] + "..." for word in words[:8])
    return ", ".join(map(repr, cut)) + more


def _called(keys: Iterable[str], known: Sequence[str]) -> list[str]:
    """Return the keys that are called as one of `known`, in the order of that."""
    lower = {key.lower(): key for key in keys}
    return [lower[word] for word in known if word in lower]


def _kind(name: str, attributes: Attributes, keys: Sequence[str]) -> tuple[str, str]:
    """Return the kind of a device, and how it was guessed, empty if it is said."""
    for key in keys:
        value = attributes.get(key)
        if value is None:
            continue
        word = text_of(value)
        if word in REAL_KINDS:
            return word, ""
        found = kind_named(word)
        if found is not None:
            return found, f"by the attribute {key!r}"
        if key == "kind":
            return word, ""  # refused where the device is made
    found = kind_named(name)
    if found is None:
        return "gpu", "because nothing says otherwise"
    return found, "by name"


def _device(name: str, kind: str, attributes: Attributes, *, hosts: Sequence[str]) -> Device:
    what = f"device {name}"
    host = attributes.get(hosts[0]) if hosts else None
    room = attributes.get("buffer_bytes")
    return device(
        cast(DeviceKind, kind),  # checked there
        name,
        host=None if host is None else text_of(host),
        stores=truth_of(attributes, "stores", what=what),
        copies=truth_of(attributes, "copies", what=what),
        reduces=truth_of(attributes, "reduces", what=what),
        buffer_bytes=None
        if room is None
        else number_of(room, where=f"{what} has the buffer", unit="bytes"),
    )


def _places(names: Sequence[str], attributes: Sequence[Attributes]) -> tuple[Places, int]:
    """Return where devices are drawn, and for how many that is told in a way not known here."""
    found: Places = {}
    wrong = 0
    for name, each in zip(names, attributes, strict=True):
        told = each.get("pos", (each.get("x"), each.get("y")))
        if isinstance(told, Mapping):
            told = told.get("x"), told.get("y")
        if told is None or told == (None, None):
            continue
        place = _place(told)
        if place is None:
            wrong += 1
        else:
            found[name] = place
    return found, wrong


def _place(told: Any) -> tuple[float, float] | None:
    try:
        x, y = float(told[0]), float(told[1])
    except (TypeError, ValueError, LookupError, OverflowError):
        return None
    return (x, y) if math.isfinite(x) and math.isfinite(y) else None
