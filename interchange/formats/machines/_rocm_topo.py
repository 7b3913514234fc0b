"""The tables that ``rocm-smi --showtopo`` prints, as text or as JSON.

The text has a banner for each table, then a header of GPUs and a row for each. The JSON names pairs
in its keys, each pair once, and has all values as text.

Source of the shape: ROCm/rocm_smi_lib, python_smi_tools/rocm_smi.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ccl.errors import FormatError
from ccl.serialization.text import decode_json

MOST_GPUS = 256

Pair = tuple[int, int]

_BANNER = re.compile(r"\s*={3,}\s*(\S.*?)\s*={3,}\s*")
_GPU = re.compile(r"GPU\s?\[?(\d{1,4})\]?")
_NUMA = re.compile(r"\s*GPU\s?\[?(\d{1,4})\]?\s*:\s*\(Topology\) Numa Node:\s*(\d{1,4})\s*")
_PAIR = re.compile(r"\(topology\) (.+) between drm devices (\d{1,4}) and (\d{1,4})")
_CARD = re.compile(r"card(\d{1,4})")

_TABLES = {"weight": "weights", "hops": "hops", "link type": "kinds"}
"""The attribute of `Tables` for what comes before ``between``."""


@dataclass
class Tables:
    """What is told of GPUs and of pairs of them, each pair both ways where it is.

    Parameters
    ----------
    gpus
        Their numbers.
    weights, hops
        Of pairs, as text.
    kinds
        ``XGMI`` or ``PCIE`` by pair.
    numas
        NUMA domains by GPU.
    """

    gpus: set[int] = field(default_factory=set)
    weights: dict[Pair, str] = field(default_factory=dict)
    hops: dict[Pair, str] = field(default_factory=dict)
    kinds: dict[Pair, str] = field(default_factory=dict)
    numas: dict[int, int] = field(default_factory=dict)


def is_text(content: bytes) -> bool:
    """Say whether a text has one of the tables."""
    head = content[:65536].lower()
    return b"weight between two gpus" in head or b"link type between two gpus" in head


def is_json(content: bytes) -> bool:
    """Say whether JSON text names pairs of devices as the tool does."""
    head = content[:65536].lower()
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and (
        b'"(topology) ' in head and b" between drm devices " in head
    )


def tables_of(content: bytes) -> Tables:
    """Read the tables of a text or of JSON.

    Raises
    ------
    FormatError
        If there is none of link types, or a row is not as its header says, with its line.
    """
    tables = _of_json(content) if is_json(content) else _of_text(content)
    if not tables.kinds and len(tables.gpus) != 1:
        msg = "it does not tell the link types between GPUs; give what rocm-smi --showtopo prints"
        raise FormatError(msg)
    if len(tables.gpus) > MOST_GPUS:
        msg = f"it has {len(tables.gpus):,} GPUs; they are read up to {MOST_GPUS:,}"
        raise FormatError(msg)
    return tables


def _of_json(content: bytes) -> Tables:
    told = decode_json(content, dict[str, dict[str, str | float | bool | None]])
    tables = Tables()
    for owner, values in told.items():
        card = _CARD.fullmatch(owner.lower())
        if card:
            tables.gpus.add(int(card[1]))
        for key, value in values.items():
            pair = _PAIR.fullmatch(key.lower())
            if pair:
                _note(tables, pair[1], (int(pair[2]), int(pair[3])), str(value))
            elif card and key.lower() == "(topology) numa node" and str(value).isdecimal():
                tables.numas[int(card[1])] = int(str(value)[:4])
    return tables


def _note(tables: Tables, what: str, pair: Pair, value: str) -> None:
    """Keep what JSON says of a pair, for both ways unless the other is told too."""
    if what in _TABLES and pair[0] != pair[1]:
        tables.gpus.update(pair)
        table = getattr(tables, _TABLES[what])
        table[pair] = value
        table.setdefault(pair[::-1], value)


def _of_text(content: bytes) -> Tables:
    tables = Tables()
    table: dict[Pair, str] | None = None
    columns: list[int] = []
    for at, line in enumerate(content.decode(errors="replace").split("\n"), 1):
        banner = _BANNER.fullmatch(line)
        numa = _NUMA.fullmatch(line)
        words = line.split()
        if banner:
            what = banner[1].lower().partition(" between two gpus")[0]
            table = getattr(tables, _TABLES[what]) if what in _TABLES else None
            columns = []
        elif numa:
            tables.gpus.add(int(numa[1]))
            tables.numas[int(numa[1])] = int(numa[2])
        elif table is not None and words and all(map(_GPU.fullmatch, words)):
            columns = _numbers(words, at)
            tables.gpus.update(columns)
        elif table is not None and words and _GPU.fullmatch(words[0]):
            _row(table, columns, words, at)
    return tables


def _numbers(words: Sequence[str], line: int) -> list[int]:
    numbers = [int(found[1]) for found in map(_GPU.fullmatch, words) if found]
    if len(set(numbers)) < len(numbers) or len(numbers) > MOST_GPUS:
        msg = f"line {line}: it names a GPU twice, or more than {MOST_GPUS:,}; name each once"
        raise FormatError(msg)
    return numbers


def _row(table: dict[Pair, str], columns: Sequence[int], words: Sequence[str], line: int) -> None:
    found = _GPU.fullmatch(words[0])
    row = int(found[1]) if found else -1
    if len(words) != len(columns) + 1 or row not in columns:
        msg = (
            f"line {line}: the row of {words[0]} has {len(words) - 1} cells and its header "
            f"{len(columns)} columns; give a row for each column and a cell for each GPU"
        )
        raise FormatError(msg)
    table.update(
        ((row, column), word)
        for column, word in zip(columns, words[1:], strict=True)
        if column != row
    )
