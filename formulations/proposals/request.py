"""What a cluster is wanted for: GPUs, ports, a mix of collectives, and the time to search.

The mix is a list of collectives with sizes and how often each runs, in YAML:

    - {collective: all-to-all, size: 64MB, times: 8}
    - {collective: all-gather, size: 1GB}
    - {collective: latency, size: 8KB, times: 100}

The time of a mix is the sum of times x T(size). A collective takes its bytes over its exact rate in
the steady state, latencies hidden; `latency` is one message between the two GPUs that are farthest
apart, its latencies added up and its bytes over the slowest link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from ccl import text
from ccl.errors import FormatError, ProblemError
from ccl.serialization.quantity import parse_size
from ccl.serialization.text import describe_misfit, read_bytes, yaml_in

Kind = Literal["all-gather", "all-reduce", "all-to-all"]
"""Collectives that have a rate."""

KINDS: tuple[Kind, ...] = get_args(Kind)

MOST_GPUS, MOST_PORTS, MOST_RADIX = 4096, 64, 1024


@dataclass(frozen=True, slots=True)
class Use:
    """A collective of a mix.

    Parameters
    ----------
    collective
        A kind of collective, or ``latency``.
    size
        Bytes of the whole buffer, as nccl-tests defines it; of the message for ``latency``.
    times
        How often it runs.
    """

    collective: Kind | Literal["latency"]
    size: float
    times: float = 1.0

    def __post_init__(self) -> None:
        for what, value, unit in (("size", self.size, " bytes"), ("times", self.times, "")):
            if not 0 < value < float("inf"):
                raise ProblemError(
                    f"{self.collective} of a mix: {what} is {value:g}{unit}; give more than 0{unit}"
                )


@dataclass(frozen=True, slots=True)
class Mix:
    """Collectives with sizes and how often each runs."""

    uses: tuple[Use, ...]

    def __post_init__(self) -> None:
        if not self.uses:
            raise ProblemError("a mix is empty; name a collective, such as all-to-all of 64MB")

    def __str__(self) -> str:
        said = [
            f"{each.times:g} × {each.collective} of {text.size(each.size)}" for each in self.uses
        ]
        return text.enumerate_words(said)


USUAL_MIX = Mix((*(Use(kind, 256e6) for kind in KINDS), Use("latency", 8e3, 100.0)))
"""As much of each kind, and a hundred short messages."""


class _Use(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    collective: Literal["all-gather", "all-reduce", "all-to-all", "latency"]
    size: str | float
    times: float = 1.0


def read_mix(source: str | Path | Sequence[Any]) -> Mix:
    """Read a mix from a YAML file, or from the plain values of one.

    Raises
    ------
    FormatError
        If it cannot be read, is no YAML or not of the shape, with the place.
    ProblemError
        If it is empty or a number is not above 0.
    """
    plain = isinstance(source, str | Path)
    name = str(source) if plain else "mix"
    value = yaml_in(read_bytes(source), name=name) if isinstance(source, str | Path) else source
    try:
        given = msgspec.convert(value, list[_Use])
    except msgspec.ValidationError as error:
        raise FormatError(f"{name}, {describe_misfit(error)}") from None
    return Mix(tuple(Use(each.collective, _bytes(each.size), each.times) for each in given))


def _bytes(size: str | float) -> float:
    return parse_size(size) if isinstance(size, str) else size


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is to be proposed.

    Parameters
    ----------
    gpus
        How many.
    ports
        Network ports of each.
    bandwidth
        GB/s of each port, one way.
    alpha
        Latency of each network link in µs.
    host
        Type of host, a cluster of the gallery such as dgx-h100; None for GPUs that stand alone.
    radix
        Ports of a switch, each as fast as a GPU's; 0 for networks without switches.
    one_way
        Whether links may go one way, which takes split fibres.
    mix
        What the cluster is judged by.
    seconds
        For the search.
    seed
        Of all that is drawn by chance.
    cores
        Processes that search at once.
    """

    gpus: int
    ports: int = 4
    bandwidth: float = 50.0
    alpha: float = 0.7
    host: str | None = None
    radix: int = 0
    one_way: bool = False
    mix: Mix = field(default=USUAL_MIX)
    seconds: float = 25.0
    seed: int = 0
    cores: int = 2

    def __post_init__(self) -> None:
        counts = (
            ("gpus", self.gpus, "GPUs", 4, MOST_GPUS),
            ("ports", self.ports, "ports of a GPU", 1, MOST_PORTS),
            ("radix", self.radix, "ports of a switch", 0, MOST_RADIX),
            ("cores", self.cores, "processes", 1, 64),
        )
        for what, value, unit, least, most in counts:
            if not least <= value <= most:
                raise ProblemError(
                    f"propose: {what} is {value:,} {unit}; give {least:,} to {most:,}"
                )
        numbers = (("bandwidth", self.bandwidth, "GB/s"), ("seconds", self.seconds, "s"))
        for what, number, unit in numbers:
            if not 0 < number < float("inf"):
                raise ProblemError(f"propose: {what} is {number:g} {unit}; give more than 0 {unit}")
        if not 0 <= self.alpha < float("inf"):
            raise ProblemError(f"propose: alpha is {self.alpha:g} µs; give 0 µs or more")
        if not self.radix and (self.host is not None or self.ports == 1):
            what = "hosts" if self.host is not None else "GPUs with 1 port"
            raise ProblemError(f"propose: {what} need switches; give their radix, such as 64")

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Kinds of collectives that the mix has, all where it has latency alone."""
        found = {each.collective for each in self.mix.uses}
        return tuple(kind for kind in KINDS if kind in found) or KINDS
