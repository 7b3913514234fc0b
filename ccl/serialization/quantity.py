"""Quantities as people type them: ``400 Gb/s``, ``64KiB``, ``0.7 µs``, ``1e3``.

A unit that may mean two things is refused: ``gb/s`` are gigabits to some and gigabytes to others.
The page reads them with the same rules (`widgets/static/quantity.js`), so that it can say while
something is typed what it is understood as; `tests/golden/quantities.json` holds the two together.

Of sizes, ``1GB`` is 10^9 bytes and ``1GiB`` is 2^30 bytes.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ccl.errors import FormatError

DECIMAL = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}

_NUMBER = re.compile(r"[+-]?(\d[\d_]*\.?\d*|\.\d+)(e[+-]?\d{1,4})?", re.IGNORECASE | re.ASCII)
_LONGEST = 40
"""Characters of what was typed that an error repeats."""
MOST_COUNTED = 1e9
"""What a count is at most where nothing less is said, so that no number of 300 digits is made."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What can be typed into a field.

    Parameters
    ----------
    base
        Unit of the value, and of a number without one; empty where there are no units.
    units
        How much of a common measure each unit is.
    article, like
        For errors: ``a bandwidth``, and how one is written.
    whole
        Whether it counts something.
    """

    base: str
    units: Mapping[str, float]
    article: str
    like: str
    whole: bool = False


_BYTES = {name.lower(): nbytes for name, nbytes in (DECIMAL | BINARY).items()}
_RATES = {
    **{f"{name}/s": float(nbytes) for name, nbytes in (DECIMAL | BINARY).items()},
    **{f"{name[:-1]}b/s": nbytes / 8 for name, nbytes in (DECIMAL | BINARY).items()},
}
_TIMES = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}

SIZE = Kind("B", _BYTES, "a number of bytes", "1MB, 64KiB or 4096")
BANDWIDTH = Kind("GB/s", _RATES, "a bandwidth", "50 GB/s or 400 Gb/s")
LATENCY = Kind("µs", _TIMES, "a time", "0.7 µs or 500 ns")
DURATION = Kind("s", _TIMES, "a time", "30 s or 2 min")
PERCENT = Kind("%", {"%": 1.0}, "a percentage", "5 %")
NUMBER = Kind("", {}, "a number", "2.5 or 1e3")
COUNT = Kind("", {}, "a whole number", "8 or 1e3", whole=True)

KINDS: Mapping[str, Kind] = {
    "size": SIZE,
    "bandwidth": BANDWIDTH,
    "latency": LATENCY,
    "duration": DURATION,
    "percent": PERCENT,
    "number": NUMBER,
    "count": COUNT,
}
"""The kinds by the names that fields have for them."""


def kind_of(unit: str, *, whole: bool = False) -> Kind:
    """Return the kind of what is given in a unit: ``µs``, ``s``, ``%``, ``bytes`` or another."""
    if unit in {"bytes", "B"}:
        return SIZE
    named = {each.base: each for each in KINDS.values() if each.base}
    return named.get(unit, COUNT if whole else NUMBER)


def parse_quantity(
    given: object,
    kind: Kind,
    *,
    what: str,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
) -> float:
    """Return the value of what was typed, in the unit of its kind.

    Parameters
    ----------
    given
        A text, or the number itself.
    kind
        What it is to be.
    what
        Its name, with which an error begins.
    least, above, most
        Within which it must be, both ends included but `above`; None where there is no end.

    Raises
    ------
    FormatError
        If it is not a quantity, has a unit of something else, or is out of range.
    """
    text = str(given).strip() if given is not None else ""
    number, unit = _split(text, kind, what)
    value = number if unit is None else _in_base(number, _factor(text, unit, kind, what), kind)
    said = f"{what} {_quoted(text)}"
    if kind.whole and math.isfinite(value) and value != int(value):
        raise FormatError(f"{said} is not {kind.article}; write it like {kind.like}")
    most = MOST_COUNTED if kind.whole and most is None else most
    _check(value, said, kind.base, least=least, above=above, most=most)
    return int(value) if kind.whole else value


def _split(text: str, kind: Kind, what: str) -> tuple[float, str | None]:
    """Return the number and the unit, None where it has neither."""
    if not text:
        raise FormatError(f"{what} is empty; write it like {kind.like}")
    found = _NUMBER.match(text)
    rest = text[found.end() :].strip() if found else ""
    # A letter or a per cent sign begins a unit; anything else belongs to a malformed number.
    if found is None or (rest and not (rest[0].isalpha() or rest[0] == "%")):
        raise FormatError(
            f"{what} {_quoted(text)} is not {kind.article}; write it like {kind.like}"
        )
    return float(found[0].replace("_", "")), rest or None


def _factor(text: str, unit: str, kind: Kind, what: str) -> float:
    said = f"{what} {_quoted(text)}"
    if not kind.units:
        raise FormatError(f"{said} is not {kind.article}; write it like {kind.like}")
    if kind is SIZE:
        return _bytes_of(said, unit)
    if kind is BANDWIDTH:
        return _rate_of(said, unit)
    factor = kind.units.get(unit.replace("µ", "u").replace("μ", "u"))
    if factor is None:
        names = ", ".join(each.replace("us", "µs") for each in kind.units)
        raise FormatError(f"{said} has the unit {_quoted(unit)}; write {names}")
    return factor


def _bytes_of(said: str, unit: str) -> float:
    """Bytes of a unit; prefixes alone and bits mean different things to different people."""
    nbytes = _BYTES.get(unit.lower())
    if nbytes is None or (unit.endswith("b") and unit[0].isupper()):
        prefix = unit[0].upper()
        hint = f"{prefix}B or {prefix}iB" if prefix in "KMGT" else ", ".join([*DECIMAL, *BINARY])
        raise FormatError(f"{said} has the unit {_quoted(unit)}; units are bytes: write {hint}")
    return nbytes


def _rate_of(said: str, unit: str) -> float:
    """Bytes per second of a unit, in which a small b is a bit and a large B a byte."""
    found = re.fullmatch(r"(?P<prefix>[kKMGT]?)(?P<two>i?)(?P<what>B|b|bit)(/s|ps)", unit)
    name = (
        f"{found['prefix'].upper()}{found['two']}{found['what'][0]}/s" if found is not None else ""
    )
    if name in _RATES:
        return _RATES[name]
    prefix = unit[0].upper() if unit[0].upper() in "KMGT" else "G"
    raise FormatError(
        f"{said} has the unit {_quoted(unit)}; write {prefix}B/s for bytes "
        f"or {prefix}b/s for bits per second"
    )


def _in_base(number: float, factor: float, kind: Kind) -> float:
    base = 1.0 if kind is SIZE else kind.units[kind.base.replace("µ", "u")]
    return number if factor == base else number * factor / base


def _check(
    value: float,
    said: str,
    base: str,
    *,
    least: float | None,
    above: float | None,
    most: float | None,
) -> None:
    unit = f" {'bytes' if base == 'B' else base}" if base else ""
    if math.isinf(value):
        msg = f"{said} is not finite; give a smaller number"
    elif above is not None and value <= above:
        msg = f"{said} is too small; give more than {above:.12g}{unit}"
    elif least is not None and value < least:
        msg = f"{said} is too small; give {least:.12g}{unit} or more"
    elif most is not None and value > most:
        msg = f"{said} is too large; give {most:.12g}{unit} or less"
    else:
        return
    raise FormatError(msg)


def _quoted(text: str) -> str:
    return f"'{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}'"


_DIGITS = 6


def parse_size(text: str) -> float:
    """Return the bytes that a text such as ``1GB``, ``1.5 MB``, ``64KiB`` or ``4096`` means.

    Raises
    ------
    FormatError
        If it is not a positive number with a unit of bytes or none.
    """
    return parse_quantity(text, SIZE, what="size", above=0)


def format_size(nbytes: float) -> str:
    """Return `nbytes` as the shortest of what `parse_size` reads, to six digits: ``1 MB``.

    A round binary size keeps its binary unit: 65536 is ``64 KiB``.
    """
    exact = [
        text
        for text in (_written(nbytes, DECIMAL), _written(nbytes, BINARY))
        if math.isclose(parse_size(text), nbytes, rel_tol=1e-12)
    ]
    return min(exact, key=_length, default=_written(nbytes, DECIMAL))


def _length(text: str) -> int:
    return len(text.partition(" ")[0])


def _written(nbytes: float, units: dict[str, int]) -> str:
    fitting = [name for name, unit in units.items() if nbytes >= unit] or [next(iter(units))]
    return f"{nbytes / units[fitting[-1]]:.{_DIGITS}g} {fitting[-1]}"
