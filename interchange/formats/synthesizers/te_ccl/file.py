"""What stands in a schedule file of TE-CCL, before anything is made of it.

The numbers before its keys differ from version to version (``6-Flows`` and ``7-Flows`` are one
thing), so keys count without them. Times are seconds, here µs; epochs count from 0, numbers of
devices are rows of TE-CCL's matrix of capacities. A flow is a line::

    Chunk 0 from 4 traveled over 4->9 in epoch 0 via switches 17 -> 0
    Chunk 3 from 1 traveled over 1->4 with volume 0.25 in epoch 0 via switches 0

the second with an amount of the chunk, as its linear program gives. The way of a demand under
"Chunk paths" has the same without its first words: a list of such texts, or for amounts a list of
ways, each a list of pairs of epoch and text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ccl.errors import FormatError
from ccl.serialization.text import decode_json

MOST = 10_000_000
"""Largest number of a device, a chunk or an epoch."""

_KEY = re.compile(r"^\d+[a-z]?-")
_HOP = re.compile(
    r"(?P<src>\d{1,8}) *-> *(?P<dst>\d{1,8})"
    r"(?: with volume (?P<volume>\d[\d.eE+-]{0,30}))?"
    r" (?:in|at) epoch (?P<epoch>\d{1,8})"
    r"(?: via switch(?:es)? (?P<via>\d{1,8}(?: *(?:->|,) *\d{1,8}){0,99}))?\s*"
)
_FLOW = re.compile(
    r"\s*Chunk (?P<chunk>\d{1,8}) from (?P<source>\d{1,8}) travell?ed over " + _HOP.pattern
)
_DEMAND = re.compile(
    r"\s*Demand at (?P<at>\d{1,8}) for chunk (?P<chunk>\d{1,8}) from (?P<source>\d{1,8})"
    r"(?: met by epoch \d{1,8})?\s*"
)
_NUMBER = re.compile(r"\s*(?:GPU|Chunk)? *(\d{1,8})\s*")


@dataclass(frozen=True, slots=True)
class Hop:
    """A chunk, or an amount of it, over a link or over several through switches."""

    src: int
    dst: int
    epoch: int
    via: tuple[int, ...] = ()
    volume: float | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """Which chunk: its number among those of its source."""

    source: int
    chunk: int


@dataclass(frozen=True)
class Output:
    """A schedule file.

    Parameters
    ----------
    epoch_duration
        µs.
    epochs
        How many it says it takes, or None.
    makespan
        µs, as it says, or None.
    algbw
        GB/s, as it says, or None.
    flows
        What travels, in the order of the lines.
    demands
        Who is said to have which piece, and when in µs, or None where it does not say.
    ways
        By demand, the ways of its amounts, each from the source to the GPU; empty for whole chunks.
    chunk_size
        Bytes, where a file says so itself.
    solve_time
        s, or None.
    others
        Keys that mean nothing here.
    """

    epoch_duration: float
    epochs: int | None
    makespan: float | None
    algbw: float | None
    flows: tuple[tuple[Piece, Hop], ...]
    demands: Mapping[tuple[int, Piece], float | None]
    ways: Mapping[tuple[int, Piece], tuple[tuple[Hop, ...], ...]]
    chunk_size: float | None = None
    solve_time: float | None = None
    others: tuple[str, ...] = field(default=())

    @property
    def fluid(self) -> bool:
        """Whether it gives amounts, as the linear program does."""
        return any(hop.volume is not None for _, hop in self.flows)


def looks_like_output(content: bytes) -> bool:
    """Say whether content has the two keys that every schedule of TE-CCL has."""
    return (
        content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
        and b'-Epoch_Duration"' in content
        and b'-Flows"' in content
    )


def parse_output(content: bytes) -> Output:
    """Read a schedule file.

    Raises
    ------
    FormatError
        With the place, if it is none.
    """
    value = decode_json(content, Any)
    if not isinstance(value, dict):
        msg = "at the top: it is no object; a schedule of TE-CCL is one"
        raise FormatError(msg)
    keys = {_KEY.sub("", key): key for key in value}
    said = {name: value[key] for name, key in keys.items()}
    lines = said.get("Flows")
    if not isinstance(lines, list):
        msg = 'it has no list "7-Flows"; a schedule of TE-CCL says there what travels when'
        raise FormatError(msg)
    tau = _number(said, keys, "Epoch_Duration", least=0.0)
    if tau is None:
        msg = 'it has no "1-Epoch_Duration"; give the duration of an epoch in seconds'
        raise FormatError(msg)
    epochs = _number(said, keys, "Epochs_Required", least=0.5)
    if epochs is not None and (epochs != int(epochs) or epochs > MOST):
        msg = f"at {keys['Epochs_Required']}: {epochs:g} is no number of epochs up to {MOST:,}"
        raise FormatError(msg)
    makespan = _number(said, keys, "Collective_Finish_Time", least=0.0)
    chunk = _number(said, keys, "Chunk_Size", least=0.0)
    demands, ways = _paths(said.get("Chunk paths"))
    return Output(
        epoch_duration=tau * 1e6,
        epochs=None if epochs is None else int(epochs),
        makespan=None if makespan is None else makespan * 1e6,
        algbw=_number(said, keys, "Algo_Bandwidth", least=0.0),
        flows=tuple(_flow(line, number) for number, line in enumerate(lines)),
        demands=demands | _met(said.get("Demand_Met")),
        ways=ways,
        chunk_size=None if chunk is None else chunk * 1e9,
        solve_time=_number(said, keys, "Solver_Time", least=-1.0),
        others=tuple(key for name, key in keys.items() if name not in _KNOWN),
    )


_KNOWN = frozenset(
    (
        *("Epoch_Duration", "Expected_Epoch_Duration", "Epochs_Required", "Chunk_Size"),
        *("Collective_Finish_Time", "Algo_Bandwidth", "Demand_Met", "Flows", "Chunk paths"),
        "Solver_Time",
    )
)


def _number(
    said: Mapping[str, Any], keys: Mapping[str, str], name: str, *, least: float
) -> float | None:
    """Return a number above `least` in a reasonable range, None where nothing is said."""
    value = said.get(name)
    if value is None:
        return None
    fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not fits or not least < value < 1e15 or (value and abs(value) < 1e-15):
        shown = str(value)[:40]
        msg = f"at {keys[name]}: {shown} is no number above {max(least, 0):g} that can be"
        raise FormatError(msg)
    return float(value)


def _flow(line: Any, number: int) -> tuple[Piece, Hop]:
    found = _FLOW.fullmatch(line) if isinstance(line, str) else None
    if found is None:
        msg = (
            f"at Flows[{number}]: {str(line)[:80]!r} is no flow; one is "
            "'Chunk 0 from 1 traveled over 1->2 in epoch 0'"
        )
        raise FormatError(msg)
    piece = Piece(int(found["source"]), int(found["chunk"]))
    return piece, _hop(found, f"Flows[{number}]")


def _hop(found: re.Match[str], where: str) -> Hop:
    numbers = re.findall(r"\d+", found["via"] or "")
    volume = None
    if found["volume"] is not None:
        try:
            volume = float(found["volume"])
        except ValueError:
            volume = math.nan
        if not 0 <= volume < 1e6:
            msg = f"at {where}: the volume {found['volume']} is no share of a chunk; give up to 1"
            raise FormatError(msg)
    return Hop(
        int(found["src"]),
        int(found["dst"]),
        int(found["epoch"]),
        tuple(map(int, numbers)),
        volume,
    )


def _met(value: Any) -> dict[tuple[int, Piece], float | None]:
    """Read who has what when: GPU, GPU that it is from, chunk, seconds."""
    met: dict[tuple[int, Piece], float | None] = {}
    if value is None:
        return met
    for at, sources in _items(value, "Demand_Met"):
        for source, chunks in _items(sources, f"Demand_Met.GPU {at}"):
            place = f"Demand_Met.GPU {at}.GPU {source}"
            for chunk, time in _items(chunks, place):
                fits = isinstance(time, (int, float)) and not isinstance(time, bool)
                if not fits or not 0 <= time < 1e15:
                    msg = f"at {place}.Chunk {chunk}: {str(time)[:40]} is no time in seconds"
                    raise FormatError(msg)
                met[at, Piece(source, chunk)] = time * 1e6
    return met


def _items(value: Any, place: str) -> list[tuple[int, Any]]:
    if not isinstance(value, dict):
        msg = f"at {place}: expected an object, got {str(value)[:40]!r}"
        raise FormatError(msg)
    items = []
    for key, each in value.items():
        found = _NUMBER.fullmatch(key)
        if found is None:
            msg = f"at {place}: {key[:40]!r} is no GPU or chunk; one is 'GPU 1' or 'Chunk 0'"
            raise FormatError(msg)
        items.append((int(found[1]), each))
    return items


def _paths(
    value: Any,
) -> tuple[
    dict[tuple[int, Piece], float | None], dict[tuple[int, Piece], tuple[tuple[Hop, ...], ...]]
]:
    """Read the demands that have ways, and the ways of amounts; odd ones are no ways."""
    demands: dict[tuple[int, Piece], float | None] = {}
    ways: dict[tuple[int, Piece], tuple[tuple[Hop, ...], ...]] = {}
    if not isinstance(value, dict):
        return demands, ways
    for key, listed in value.items():
        found = _DEMAND.fullmatch(key)
        if found is None:
            msg = (
                f"at Chunk paths: {key[:60]!r} is no demand; one is "
                "'Demand at 1 for chunk 0 from 2 met by epoch 3'"
            )
            raise FormatError(msg)
        demand = int(found["at"]), Piece(int(found["source"]), int(found["chunk"]))
        demands[demand] = None
        read = [_way(each) for each in listed] if isinstance(listed, list) else []
        if read and all(read):
            ways[demand] = ways.get(demand, ()) + tuple(each for each in read if each)
    return demands, ways


def _way(value: Any) -> tuple[Hop, ...] | None:
    """Return a way of an amount, or None if it is none."""
    if not isinstance(value, list) or not value:
        return None
    hops = []
    for each in value:
        text = each[1] if isinstance(each, list) and len(each) == 2 else None
        found = _HOP.fullmatch(text) if isinstance(text, str) else None
        if found is None or found["volume"] is None:
            return None
        hops.append(_hop(found, "Chunk paths"))
    return tuple(hops)
