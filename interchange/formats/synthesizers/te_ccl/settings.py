"""What a reader of TE-CCL's schedules can be told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ccl.errors import FormatError
from interchange.formats.synthesizers.te_ccl.clusters import CLUSTERS, Named, out_of_range

SETTINGS = {
    "cluster": f"the cluster that it is about: {', '.join(CLUSTERS)}, with its number of chassis "
    "or its side as in NDv2:2, or flows for the links that it uses",
    "chassis": "number of chassis, where the cluster does not say it; 1 unless given",
    "side_length": "GPUs along a side of a Mesh, 4 unless given",
    "alpha": "latencies in seconds of links and of links of switches, where the cluster leaves "
    "them open: 7e-7,1.3e-6",
    "chunk_size": "GB of a chunk, where the bandwidth of the file does not tell",
    "lenient": "true plays a file that breaks a rule in its order, each send when it can go",
}

FIXED = ("DGX2", "NDv2")
"""Clusters whose latencies TE-CCL fixes."""


@dataclass(frozen=True)
class Settings:
    """What was typed.

    Parameters
    ----------
    named
        The cluster of TE-CCL, or None.
    flows
        Whether the cluster is to be made of the flows.
    chunk_size
        Bytes, or None.
    lenient
        Whether broken rules are only told.
    told
        What of the cluster is assumed.
    """

    named: Named | None
    flows: bool
    chunk_size: float | None
    lenient: bool
    told: tuple[str, ...] = ()


def settings_of(typed: Mapping[str, str]) -> Settings:
    """Read the settings.

    Raises
    ------
    FormatError
        If one is not what it should be.
    """
    text = typed.get("cluster", "").strip()
    flows = text.lower() == "flows"
    named = _named(text, typed) if text and not flows else None
    told: tuple[str, ...] = ()
    if named is not None and named.name not in FIXED and not typed.get("alpha", "").strip():
        told = ("no link has a latency; set alpha if TE-CCL was given one",)
    size = None
    if typed.get("chunk_size"):
        size = _real(typed["chunk_size"], "chunk_size", "GB") * 1e9
    lenient = typed.get("lenient", "").strip().lower() in ("true", "yes", "1")
    return Settings(named, flows, size, lenient, told)


def _named(text: str, typed: Mapping[str, str]) -> Named:
    name, _, count = text.partition(":")
    key = "side_length" if name.strip().lower() == "mesh" else "chassis"
    numbers = {**typed, key: count} if count else typed
    link, switch = _alphas(typed.get("alpha", ""))
    named = Named(
        name={each.lower(): each for each in CLUSTERS}.get(name.strip().lower(), name.strip()),
        chassis=_whole(numbers, "chassis", 1),
        side=_whole(numbers, "side_length", 4),
        alpha=(link, switch),
        copies=False,
    )
    wrong = out_of_range(named)
    if wrong is not None:
        raise FormatError(wrong)
    return named


def _alphas(text: str) -> tuple[float, float]:
    if not text.strip():
        return 0.0, 0.0
    parts = text.strip(" []()").split(",")
    if len(parts) > 2:
        msg = f"setting alpha is {text[:40]!r}; give seconds of links and of links of switches"
        raise FormatError(msg)
    seconds = [_real(part, "alpha", "seconds", least=0.0) for part in parts]
    values = [float(f"{1e6 * each:.15g}") for each in seconds]
    return values[0], values[-1]


def _real(text: str, name: str, unit: str, *, least: float = 1e-15) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value < 1e9:
        msg = f"setting {name} is {text[:40]!r}; give a number of {unit}"
        raise FormatError(msg)
    return value


def _whole(typed: Mapping[str, str], name: str, usual: int) -> int:
    text = typed.get(name, "").strip()
    if not text:
        return usual
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        msg = f"setting {name} is {text[:40]!r}; give a whole number"
        raise FormatError(msg)
    return int(text)
