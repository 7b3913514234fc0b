"""Parts with what they cost and draw: a dated file with a source for every figure.

``parts.yaml`` beside this module has the rows; a file of the user's, of the same shape, overrides
rows, or single figures of them, and adds switches and classes of cables::

    parts:
      switch-64: {dollars: {typical: 31000, high: 36000, source: our quote, date: 2026-10}}
      switch-128: null                       # not for sale
    cables:
      copper: {reach: 2}
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from ccl.errors import FormatError, ProblemError
from ccl.serialization.text import describe_misfit, read_bytes, yaml_in

_Row = TypeVar("_Row", bound=msgspec.Struct)

Unit = Literal["$ each", "$ per m", "W each"]


class Span(msgspec.Struct, frozen=True):
    """A quantity that is known within limits.

    Parameters
    ----------
    low, typical, high
        In rising order; sums of spans add each of them, as if all were low or high at once.
    """

    low: float
    typical: float
    high: float

    def __add__(self, other: Span) -> Span:
        return Span(self.low + other.low, self.typical + other.typical, self.high + other.high)

    def __mul__(self, times: float) -> Span:
        return Span(self.low * times, self.typical * times, self.high * times)

    @staticmethod
    def total(spans: Iterable[Span]) -> Span:
        """Return the sum of spans, zero of none."""
        return sum(spans, Span(0.0, 0.0, 0.0))


class Figure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A span with its unit and what it rests on.

    Parameters
    ----------
    low, typical, high
        In `unit`.
    unit
        ``$ each``, ``$ per m`` or ``W each``.
    source
        Where it comes from; ``assumed`` where nothing was found.
    date
        When that was true: year and month.
    """

    low: float
    typical: float
    high: float
    unit: Unit
    source: str
    date: str

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.typical <= self.high < math.inf:
            raise ProblemError(
                f"low, typical and high are {self.low:g}, {self.typical:g} and {self.high:g} "
                f"{self.unit}; give them from 0 on in rising order"
            )
        if not self.source.strip() or not self.date.strip():
            raise ProblemError("a figure has no source or no date; give both")

    @property
    def span(self) -> Span:
        """Its numbers alone."""
        return Span(self.low, self.typical, self.high)


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that is bought.

    Parameters
    ----------
    title
        Its name for people.
    dollars
        What it costs, of each or of a metre.
    watts
        What it draws; None for nothing.
    ports, bandwidth
        Of a switch: how many ports it has, and GB/s of each one way; 0 for all else.
    """

    title: str
    dollars: Figure
    watts: Figure | None = None
    ports: int = 0
    bandwidth: float = 0.0

    def __post_init__(self) -> None:
        if self.dollars.unit == "W each" or (self.watts and self.watts.unit != "W each"):
            raise ProblemError(
                "dollars are in $ each or $ per m and watts in W each; give them their unit"
            )
        if (self.ports > 0) != (self.bandwidth > 0) or self.ports < 0:
            raise ProblemError(
                f"a switch has {self.ports} ports of {self.bandwidth:g} GB/s; give more than 0"
            )


class CableClass(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A class of cables by reach, with the parts of one.

    Parameters
    ----------
    title
        Its name for people.
    reach
        Longest cable, in m.
    bandwidth
        GB/s that it carries, one way.
    type
        What NetBox calls it.
    cable, metre
        Parts bought for each cable and for each metre.
    at_switch, at_card
        Transceivers: one for two cables at a switch, one for each at a card.
    source, date
        What its reach rests on.
    """

    title: str
    reach: float
    bandwidth: float
    type: str
    cable: str
    source: str
    date: str
    metre: str | None = None
    at_switch: str | None = None
    at_card: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.reach < math.inf or not 0 < self.bandwidth < math.inf:
            raise ProblemError(
                f"a reach of {self.reach:g} m at {self.bandwidth:g} GB/s; give more than 0 of both"
            )


class Parts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that can be bought: parts, and classes of cables made of them."""

    parts: dict[str, Part]
    cables: dict[str, CableClass]

    def part(self, name: str) -> Part:
        """Return the part called `name`.

        Raises
        ------
        ProblemError
            If it is missing.
        """
        if name not in self.parts:
            raise ProblemError(f"the parts have no row {name!r}; {_close(name, self.parts)}")
        return self.parts[name]

    def switches(self, bandwidth: float) -> dict[str, Part]:
        """Return the switches whose ports have `bandwidth` GB/s or more.

        Raises
        ------
        ProblemError
            If there is none.
        """
        found = {
            name: part
            for name, part in self.parts.items()
            if part.ports and part.bandwidth >= bandwidth * _NEARLY
        }
        if not found:
            raise ProblemError(
                f"the parts have no switch with ports of {bandwidth:g} GB/s; "
                "add a row with ports and bandwidth"
            )
        return found

    @property
    def fastest(self) -> float:
        """GB/s of the fastest class of cables that has switches as fast."""
        ports = max((each.bandwidth for each in self.parts.values()), default=0.0)
        return min(ports, max(each.bandwidth for each in self.cables.values()))

    def cable_class(self, length: float, bandwidth: float) -> str:
        """Return the cheapest class of a cable of so many metres and GB/s.

        Raises
        ------
        ProblemError
            If none reaches as far.
        """
        fitting = [
            name
            for name, each in self.cables.items()
            if each.reach >= length and each.bandwidth >= bandwidth * _NEARLY
        ]
        if not fitting:
            most = max(each.reach for each in self.cables.values())
            raise ProblemError(
                f"no class of cables carries {bandwidth:g} GB/s over {length:,.0f} m; "
                f"the longest reaches {most:,.0f} m: place the racks closer, or add a class"
            )
        return min(fitting, key=lambda name: self.cable_dollars(name, length))

    def cable_dollars(self, name: str, length: float, *, direct: bool = False) -> float:
        """Return what a cable of a class typically costs, from a card to a switch.

        Parameters
        ----------
        name
            Of the class.
        length
            Metres.
        direct
            From a card to a card.
        """
        each = self.cables[name]
        at_card = self.part(each.at_card).dollars.typical if each.at_card else 0.0
        at_switch = self.part(each.at_switch).dollars.typical / 2 if each.at_switch else 0.0
        total = self.part(each.cable).dollars.typical
        total += self.part(each.metre).dollars.typical * length if each.metre else 0.0
        return total + at_card + (at_card if direct else at_switch)


_NEARLY = 1 - 1e-9
"""Rates closer than this are the same."""

_PACKAGED = Path(__file__).with_name("parts.yaml")


def read_parts(own: str | Path | Mapping[str, Any] | None = None) -> Parts:
    """Return the packaged parts, with the rows of the user's own instead where there are some.

    Parameters
    ----------
    own
        Path of a YAML file, or its plain values; None for the packaged parts alone.

    Raises
    ------
    FormatError
        If the file cannot be read or a row is not of the shape, with the place.
    ProblemError
        If a figure is out of range or a class is made of a part that is missing.
    """
    base = _packaged()
    if own is None:
        return _made(base, _PACKAGED.name)
    if isinstance(own, Mapping):
        return _made(_overridden(base, own, "parts"), "parts")
    content = yaml_in(read_bytes(own), name=str(own))
    return _made(_overridden(base, content, str(own)), str(own))


@cache
def _packaged() -> dict[str, Any]:
    content: dict[str, Any] = yaml_in(_PACKAGED.read_bytes(), name=_PACKAGED.name)
    return content


def _overridden(base: Mapping[str, Any], own: Any, name: str) -> dict[str, Any]:
    """Return the tables of `base` with rows and fields of `own` in their place."""
    if not isinstance(own, Mapping) or not own:
        raise FormatError(f"{name} has no tables; give parts or cables, each with rows by name")
    made = {}
    for table in own:
        if table not in base:
            raise FormatError(f"{name} has a table {table!r}; there are parts and cables")
    for table, rows in base.items():
        changes = own.get(table) or {}
        if not isinstance(changes, Mapping):
            raise FormatError(f"{name}: {table} is {changes!r}; give rows by name")
        for row, change in changes.items():
            new = row not in rows
            if new and (not isinstance(change, Mapping) or {"ports", "reach"}.isdisjoint(change)):
                raise FormatError(
                    f"{name}: {table} have no row {row!r}; {_close(str(row), rows)}; "
                    "a new row is a switch with ports, or a class of cables with a reach"
                )
        merged = {row: _merged(each, changes.get(row, {})) for row, each in rows.items()}
        merged |= {row: each for row, each in changes.items() if row not in rows}
        made[table] = {row: each for row, each in merged.items() if each is not None}
    return made


def _merged(row: Any, change: Any) -> Any:
    """Return a row with the fields of a change in their place, figures field by field."""
    if isinstance(change, date):
        return change.isoformat()  # what YAML makes of a whole date
    if not isinstance(row, Mapping) or not isinstance(change, Mapping):
        return change
    fields = {name: _merged(row[name], each) for name, each in change.items() if name in row}
    return {**row, **change, **fields}


def _made(content: Mapping[str, Any], name: str) -> Parts:
    made = Parts(
        parts={row: _row(each, Part, f"{name}: {row}") for row, each in content["parts"].items()},
        cables={
            row: _row(each, CableClass, f"{name}: {row}") for row, each in content["cables"].items()
        },
    )
    if "gpu" not in made.parts or not made.cables:
        raise ProblemError(f"{name}: the part gpu and one class of cables have to stay; give them")
    for row, each in made.cables.items():
        for part in (each.cable, each.metre, each.at_switch, each.at_card):
            if part is not None and part not in made.parts:
                raise ProblemError(
                    f"{name}: {row} is made of {part!r}, which is no row of parts; "
                    f"{_close(part, made.parts)}"
                )
    return made


def _row(value: Any, shape: type[_Row], where: str) -> _Row:
    """Return a row; errors begin with where it is."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise FormatError(f"{where}, {describe_misfit(error)}") from None
    except ProblemError as error:
        raise ProblemError(f"{where}: {error}") from None


def _close(name: str, among: Iterable[str]) -> str:
    known = list(among)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]}" if close else f"there are {', '.join(known)}"
