"""Attributes of graphs: their values, as JSON or XML give them, and what they mean.

Values are numbers, texts and truths. Meanings are found whatever people call them: kinds of
devices, GB/s, µs.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ccl.errors import FormatError
from ccl.topology import DeviceKind
from interchange.formats.fields import short

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
        If it is malformed.
    """
    try:
        # Python, and nobody else, reads 1_000 as a number.
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            return float(value.replace("_", "x") if isinstance(value, str) else value)
    except (ValueError, OverflowError):
        pass
    raise FormatError(f"{where} {short(value)}; give a number in {unit}")


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
        raise FormatError(f"{what} has {name} {short(value)}; give true or false")
    return found


BANDWIDTHS = ("bandwidth", "capacity", "bw", "throughput", "speed", "rate")
"""Stems of names of bandwidths, the best first."""
LATENCIES = ("alpha", "latency", "lat", "delay")
"""Stems of names of latencies, the best first."""
HOSTS = ("host", "hostname", "server", "machine", "chassis")
KINDS = ("kind", "type", "typ", "device_type", "devicetype", "role", "category", "class")
"""Names of kinds of devices, the best first."""
MEDIA = ("medium", "link_type", "linktype", "interconnect", "technology")

LONGEST = 40
"""Signs of a name that is looked into; matching a longer one would take time in their square."""

_SCALES = {"": (1, 10**9), "k": (1, 10**6), "m": (1, 1000), "g": (1, 1), "t": (1000, 1)}
_SECONDS = {
    **dict.fromkeys(("us", "µs", "usec"), (1, 1)),
    "ns": (1, 1000),
    "ms": (1000, 1),
    **dict.fromkeys(("s", "sec"), (10**6, 1)),
}
_RATE = re.compile(r"([kKMGTmgt]?)(B|b|bits?|[Bb]ytes?)(?:ps|/s|_s|_per_s|)")


@dataclass(frozen=True)
class Measure:
    """What an attribute measures.

    Parameters
    ----------
    name
        Of the attribute.
    rank
        Place of its stem in the list above; the smaller is the better.
    times, per
        Its values, multiplied by the one and divided by the other, are GB/s or µs.
    unit
        As its name says, or empty.
    """

    name: str
    rank: int = 0
    times: int = 1
    per: int = 1
    unit: str = ""


def bandwidth_named(name: str) -> Measure | None:
    """Say what a name such as ``capacity_GBps`` measures; None if it is no bandwidth."""
    stem, unit = _split(name, BANDWIDTHS)
    if stem is None or not unit:
        return None if stem is None else Measure(name, stem)
    found = _RATE.fullmatch(unit)
    if found is None:
        return None
    times, per = _SCALES[found[1].lower()]
    bits = found[2] in ("b", "bit", "bits")
    return Measure(name, stem, times, per * 8 if bits else per, unit)


def latency_named(name: str) -> Measure | None:
    """Say what a name such as ``latency_ns`` measures; None if it is no latency."""
    stem, unit = _split(name, LATENCIES)
    if stem is None or (unit and unit.lower() not in _SECONDS):
        return None
    times, per = _SECONDS[unit.lower()] if unit else (1, 1)
    return Measure(name, stem, times, per, unit)


def _split(name: str, stems: tuple[str, ...]) -> tuple[int | None, str]:
    """Return the place of the stem of a name, and the unit behind it."""
    if len(name) > LONGEST:
        return None, ""
    pattern = rf"(?:link|edge)?[ _-]?({'|'.join(stems)})(?:[ _.\-/(\[]*([A-Za-zµ/_]+)[)\]]?)?"
    found = re.fullmatch(pattern, name, re.IGNORECASE)
    if found is None:
        return None, ""
    return stems.index(found[1].lower()), found[2] or ""


_KIND_WORDS: dict[DeviceKind, tuple[str, str]] = {
    "nic": ("nics?|hca|mlx|hfi|cx|bluefield|ports?|netdev", "mlx5"),
    "gpu": ("gpus?|gcd|npu|tpu|xpu|accelerator|compute", "gpu"),
    "memory": ("mem|memory|hbm|hostmem", "dram"),
    "switch": (
        "s?sw|ib|spines?|leaf|leaves|tor|cores?|agg|fabric|router|hub|rails?|edge|plx|pcie?|bridge|cpu",
        "switch",
    ),
}
"""Words that stand alone, and what may stand inside a word."""

_KINDS = {
    kind: re.compile(rf"(?:^|[^a-z])(?:{alone})(?![a-z])|{inside}")
    for kind, (alone, inside) in _KIND_WORDS.items()
}


def kind_named(word: str) -> DeviceKind | None:
    """Say of which kind a device is whose type or name is a word; None if it does not tell.

    A CPU is a switch here: what passes it is not kept in it.
    """
    low = word[:LONGEST].lower()
    return next((kind for kind, pattern in _KINDS.items() if pattern.search(low)), None)
