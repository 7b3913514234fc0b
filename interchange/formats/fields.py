"""Fields of files, and settings of readers: numbers, rates and words that are what they should be.

Numbers of files are exact decimals, so that what is written is read back bit by bit.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from ccl.errors import FormatError
from ccl.serialization.quantity import parse_size
from ccl.serialization.text import decode_json
from ccl.text import count
from ccl.topology import ABILITIES, Device, Link, Topology, device
from interchange.formats.format import Question, Request

Shape = TypeVar("Shape")

_LONGEST = 60
"""Characters of a number; more digits than a double has are no use."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?")
_RATE = re.compile(
    r"(?P<number>[\d.eE+-]*[\d.])(?P<prefix>[kKMGT]?)(?P<two>i?)(?P<unit>bps|b/s|Bps|B/s)"
)
_DELAY = re.compile(r"(?P<number>[\d.eE+-]*[\d.])(?P<unit>s|ms|us|µs|ns|ps|fs)")
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
_EXPONENTS = {"s": 6, "ms": 3, "us": 0, "µs": 0, "ns": -3, "ps": -6, "fs": -9}

MOST_BANDWIDTH = 1e6
"""GB/s that a setting may say of a link."""


def choice(request: Request, key: str, among: Iterable[str], usual: str = "") -> str:
    """Return a setting that is one of some words, or what is usual.

    Raises
    ------
    FormatError
        If it is not one of them.
    """
    word = request.settings.get(key, "").strip() or usual
    if word and word not in among:
        raise FormatError(f"the setting {key} is {short(word)}; it may be {', '.join(among)}")
    return word


def answer(request: Request, key: str, *, choices: Mapping[str, str], doubt: str) -> str:
    """Return the setting called `key`, or ask for it; errors as `choice`.

    Raises
    ------
    Question
        If it is not said, with what is in `doubt`.
    """
    word = choice(request, key, choices)
    if not word:
        raise Question(doubt, key=key, choices=choices)
    return word


def yes(request: Request, key: str) -> bool:
    """Say whether the setting called `key` is true; errors as `choice`."""
    return choice(request, key, ("true", "false")) == "true"


def number(
    request: Request, key: str, usual: float, *, most: float, unit: str = "", zero: bool = False
) -> float:
    """Return a setting that is a positive number, or what is usual; `zero` where 0 is one as well.

    Raises
    ------
    FormatError
        If it is no number above 0 and at most `most`.
    """
    word = request.settings.get(key, "").strip()
    if not word:
        return usual
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not (0 < value <= most or (zero and value == 0)):
        wanted = f"{unit or 'a number'} {'from 0' if zero else 'above 0'} up to {most:,.15g}"
        raise FormatError(f"the setting {key} is {short(word)}; give {wanted}")
    return value


def bandwidth(request: Request, key: str, *, usual: float) -> float:
    """Return a setting in GB/s, or what is usual; errors as `number`."""
    return number(request, key, usual, most=MOST_BANDWIDTH, unit="GB/s")


def whole(request: Request, key: str, usual: int, *, most: int) -> int:
    """Return a setting that is a whole number from 1 on, or what is usual; errors as `counted`."""
    word = request.settings.get(key, "").strip()
    return counted(word, f"the setting {key}", least=1, most=most) if word else usual


def nbytes(request: Request, key: str, usual: float) -> float:
    """Return a setting that is a size such as ``1MB``, in bytes, or what is usual.

    Raises
    ------
    FormatError
        If it is no size.
    """
    word = request.settings.get(key)
    if word is None:
        return usual
    size = parse_size(word)
    if not 1 <= size <= 1e18:
        raise FormatError(f"the setting {key} is {short(word)}; give 1 byte to 10^18 bytes")
    return size


def decimal(word: str, what: str) -> Decimal:
    """Return a finite number; errors begin with `what` it is.

    Raises
    ------
    FormatError
        If it is malformed.
    """
    if len(word) > _LONGEST or _NUMBER.fullmatch(word) is None:
        raise FormatError(f"{what} is {short(word)}, which is no number; write it like 12.5")
    return Decimal(word)


def counted(word: str, what: str, *, least: int, most: int) -> int:
    """Return a whole number from `least` to `most`; errors as `decimal`."""
    if re.fullmatch(r"\d{1,18}", word) is None or not least <= int(word) <= most:
        raise FormatError(
            f"{what} is {short(word)}; give a whole number from {least:,} to {most:,}"
        )
    return int(word)


def rate(word: str, what: str) -> float:
    """Return GB/s of a rate such as ``200Gbps``; bits and bytes, thousands and 1,024s.

    Units are those of ns-3's DataRate: a small b is a bit, a large B a byte.

    Raises
    ------
    FormatError
        If it is malformed, or not positive.
    """
    found = _RATE.fullmatch(word)
    if found is None:
        raise FormatError(
            f"{what} is {short(word)}, which is no rate; write it like 200Gbps or 25GBps"
        )
    base = 1024 if found["two"] else 1000
    bits = decimal(found["number"], what) * base ** _POWERS[found["prefix"]]
    if found["unit"].startswith("B"):
        bits *= 8
    value = float((bits / 8).scaleb(-9))
    if not 0 < value < float("inf"):
        raise FormatError(f"{what} is {short(word)}; give a positive rate, like 200Gbps")
    return value


def delay(word: str, what: str) -> float:
    """Return µs of a delay such as ``0.0005ms``.

    Raises
    ------
    FormatError
        If it is malformed, or negative.
    """
    found = _DELAY.fullmatch(word)
    if found is None:
        raise FormatError(
            f"{what} is {short(word)}, which is no delay; write it like 0.0005ms or 500ns"
        )
    value = float(decimal(found["number"], what).scaleb(_EXPONENTS[found["unit"]]))
    if not 0 <= value < float("inf"):
        raise FormatError(f"{what} is {short(word)}; give zero or more, like 500ns")
    return value


def digits(value: float, *, times: int = 1, shift: int = 0) -> str:
    """Return a number, `times` and shifted by a power of ten, with all its digits."""
    exact = (Decimal(repr(float(value))) * times).scaleb(shift).normalize()
    return f"{exact:f}" if abs(exact.adjusted()) < 20 else str(exact)


def short(value: Any) -> str:
    """Return a value for a sentence, not too long."""
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:37] + "...")
    try:
        word = repr(value)
    except ValueError:  # a whole number of more digits than Python writes
        return "a number of thousands of digits"
    return word if len(word) <= 40 else word[:37] + "..."


def some(what: Sequence[object], *, most: int = 4) -> str:
    """Name the first of many for a sentence."""
    more = f" and {len(what) - most:,} more" if len(what) > most else ""
    return ", ".join(map(str, what[:most])) + more


def select_sentences(*rows: tuple[object, str]) -> list[str]:
    """Return the sentences of those rows whose condition holds."""
    return [sentence for condition, sentence in rows if condition]


def head_of(content: bytes | str, shape: type[Shape]) -> Shape | None:
    """Return what JSON text has of a shape, None if it is not of it."""
    try:
        found: Shape = decode_json(content, shape)
    except FormatError:
        return None
    return found


def text_in(content: bytes, *, most: int) -> str:
    """Return the text of a network.

    Raises
    ------
    FormatError
        If it has more than `most` bytes, or is not UTF-8.
    """
    if len(content) > most:
        raise FormatError(f"it has {len(content):,} bytes; a network is read up to {most:,} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FormatError("it is not UTF-8 text; save it as UTF-8") from None


def lost_details(topology: Topology) -> list[str]:
    """Say what a network loses that is written with bandwidths and latencies alone."""
    able = [each != device(each.kind, each.name, host=each.host) for each in topology.devices]
    made = [link.medium or link.count > 1 for link in topology.links]
    return select_sentences(
        (any(able), "limits of buffers, and what switches copy or reduce"),
        (any(made), "what links are made of and how many parallel ones they stand for"),
        (topology.limits, count(len(topology.limits), "shared limit")),
    )


def device_fields(each: Device) -> dict[str, Any]:
    """Return what is to be said of a device beside its kind: abilities only unlike its kind's."""
    able = {"stores": each.stores, "copies": each.copies, "reduces": each.reduces}
    usual = zip(able.items(), ABILITIES[each.kind], strict=True)
    found: dict[str, Any] = {} if each.host is None else {"host": each.host}
    found |= {name: value for (name, value), default in usual if value != default}
    return found if each.buffer_bytes is None else found | {"buffer_bytes": each.buffer_bytes}


def link_fields(link: Link) -> dict[str, Any]:
    """Return what is to be said of a link beside its ends."""
    found: dict[str, Any] = {"bandwidth": link.bandwidth, "alpha": link.alpha}
    if link.medium:
        found["medium"] = link.medium
    return found if link.count == 1 else found | {"count": link.count}
