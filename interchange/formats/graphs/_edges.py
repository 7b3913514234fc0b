"""Links of a graph: which attribute is the bandwidth, which the latency, and in which unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from operator import eq, ne
from typing import Any

from ccl.errors import FormatError
from ccl.many_links import many_links
from ccl.topology import Link
from interchange.formats.format import Asked, Question, Report
from interchange.formats.graphs._devices import listed
from interchange.formats.graphs._values import many, number_of, text_of
from interchange.formats.graphs._words import MEDIA, Measure, bandwidth_named, latency_named

Column = Sequence[Any]

_THEIR_OWN = ("id", "key")
"""What graphs give their edges to tell them apart."""

MOST_COLUMNS = 16
"""Attributes of edges that may be a bandwidth, a latency or the like."""

_WEIGHT = {
    "bandwidth": "the weight of an edge is its bandwidth in GB/s, one way",
    "ignored": "it is something else; set the bandwidth of all edges",
}


@dataclass(frozen=True)
class Edges:
    """Edges in columns.

    Parameters
    ----------
    src, dst
        Names of the devices that they leave and enter.
    columns
        Attributes by name that may mean something, None where an edge has none.
    unknown
        Names of the other attributes.
    """

    src: Sequence[str]
    dst: Sequence[str]
    columns: Mapping[str, Column]
    unknown: Sequence[str] = ()

    def without_loops(self) -> Edges:
        """Return those that enter another device than they leave."""
        if not any(map(eq, self.src, self.dst)):
            return self
        kept = list(map(ne, self.src, self.dst))
        columns = {name: list(compress(each, kept)) for name, each in self.columns.items()}
        src, dst = (list(compress(each, kept)) for each in (self.src, self.dst))
        return replace(self, src=src, dst=dst, columns=columns)


def edges_of(
    ends: tuple[Sequence[str], Sequence[str]],
    rows: Sequence[Mapping[str, Any]],
    defaults: Mapping[str, Any],
) -> Edges:
    """Return edges given by their attributes and what holds where one is absent.

    Raises
    ------
    FormatError
        If too many attributes may be a bandwidth or the like.
    """
    names = {**dict.fromkeys(chain.from_iterable(rows)), **dict.fromkeys(defaults)}
    known = [name for name in names if _means_something(name)]
    if len(known) > MOST_COLUMNS:
        msg = f"edges have {len(known):,} attributes such as {listed(known[:2])}; leave one of them"
        raise FormatError(msg)
    columns = {name: [row.get(name, defaults.get(name)) for row in rows] for name in known}
    unknown = [name for name in names if name not in columns and name not in _THEIR_OWN]
    return Edges(*ends, columns, unknown)


def _means_something(name: str) -> bool:
    measured = bandwidth_named(name) or latency_named(name)
    return measured is not None or name.lower() in (*MEDIA, "count", "weight")


def links_of(edges: Edges, asked: Asked, *, both: bool) -> tuple[tuple[Link, ...], Report]:
    """Make the links.

    Parameters
    ----------
    edges
        None of them enters the device it leaves.
    asked
        Its settings say what the file does not.
    both
        Whether each edge is a link back as well.

    Raises
    ------
    Question
        If edges have a weight and no bandwidth.
    FormatError, ProblemError
        If an edge has no bandwidth, or an attribute makes no sense.
    """
    columns = edges.columns
    rate = _bandwidth(columns, asked)
    late = _measured(columns, latency_named)
    media, counts = _called(columns, MEDIA), _called(columns, ("count",))
    bandwidth = _numbers(edges, rate, unit="GB/s", default=_default(asked))
    alpha = _numbers(edges, late, unit="µs", default=0.0)
    medium = _words(columns[media]) if media else [""] * len(edges.src)
    count = _counts(edges, columns[counts]) if counts else [1] * len(edges.src)
    times = 2 if both else 1
    links = many_links(
        [*edges.src, *edges.dst] if both else edges.src,
        [*edges.dst, *edges.src] if both else edges.dst,
        bandwidth=[*bandwidth] * times,
        alpha=[*alpha] * times,
        medium=[*medium] * times,
        count=[*count] * times,
    )
    known = {rate.name, late.name, media, counts}
    unknown = [*edges.unknown, *(name for name in columns if name not in known)]
    left_out = (f"the attributes of edges {listed(unknown)}",) if unknown else ()
    report = Report((), tuple(_assumed(columns, rate, late, asked=asked)), left_out)
    return links, report


def _assumed(
    columns: Mapping[str, Column], rate: Measure, late: Measure, *, asked: Asked
) -> Iterator[str]:
    """Yield what is to be said of bandwidths and latencies."""
    missing = list(columns.get(rate.name, ())).count(None)
    default = _default(asked)
    if default is not None and (missing or not rate.name):
        which = many(missing, "edge") if missing else "all edges"
        yield f"the bandwidth of {which} is what was set, {default:g} GB/s one way"
    if rate.name and rate.name != "bandwidth":
        unit = f"which is in {rate.unit}" if rate.unit else "in GB/s one way"
        yield f"the attribute {rate.name!r} of edges is the bandwidth, {unit}"
    if late.name and late.name != "alpha":
        unit = f"which is in {late.unit}" if late.unit else "in µs"
        yield f"the attribute {late.name!r} of edges is the latency alpha, {unit}"
    silent = list(columns.get(late.name, ())).count(None)
    if silent or not late.name:
        yield f"{many(silent, 'edge') if silent else 'all edges'} without a latency: alpha is 0 µs"


def _bandwidth(columns: Mapping[str, Column], asked: Asked) -> Measure:
    """Find the attribute that is the bandwidth; its name is empty if there is none."""
    found = _measured(columns, bandwidth_named)
    if found.name or "weight" not in columns or _empty(columns["weight"]):
        return found
    answer = asked.settings.get("weight")
    if answer is None and "bandwidth" in asked.settings:
        return found
    if answer is None:
        msg = "edges have a weight and no bandwidth; is the weight their bandwidth in GB/s?"
        raise Question(msg, key="weight", choices=_WEIGHT)
    if answer not in _WEIGHT:
        msg = f"the setting weight is {answer!r}; choose {' or '.join(_WEIGHT)}"
        raise FormatError(msg)
    return Measure("weight") if answer == "bandwidth" else found


def _default(asked: Asked) -> float | None:
    """Return the GB/s of edges that say none, if it was set."""
    word = asked.settings.get("bandwidth")
    if word is None:
        return None
    value = number_of(word, where="the setting bandwidth is", unit="GB/s")
    if not 0 < value < float("inf"):
        msg = f"the setting bandwidth is {word!r}; give a positive number in GB/s"
        raise FormatError(msg)
    return value


def _measured(columns: Mapping[str, Column], named: Callable[[str], Measure | None]) -> Measure:
    """Find the best attribute that measures what is asked for and that any edge has."""
    measures = (named(name) for name, each in columns.items() if not _empty(each))
    found = [each for each in measures if each is not None]
    return min(found, key=lambda each: each.rank, default=Measure(""))


def _called(columns: Mapping[str, Column], known: Sequence[str]) -> str:
    """Return the attribute that is called as one of `known`, or nothing."""
    lower = {name.lower(): name for name in columns}
    return next((lower[word] for word in known if word in lower), "")


def _numbers(
    edges: Edges, measure: Measure, *, unit: str, default: float | None
) -> Sequence[float]:
    """Return the values of a column in our unit."""
    name = measure.name
    column = edges.columns.get(name, [None] * len(edges.src))
    if measure.times == measure.per == 1 and set(map(type, column)) <= {float}:
        return column
    values = []
    for src, dst, each in zip(edges.src, edges.dst, column, strict=True):
        if each is not None:
            where = f"edge {src}->{dst} has the {name}"
            values.append(number_of(each, where=where, unit=unit) * measure.times / measure.per)
        elif default is not None:
            values.append(default)
        else:
            msg = f"edge {src}->{dst} has no {name or 'bandwidth'}; give one in {unit}"
            raise FormatError(msg)
    return values


def _counts(edges: Edges, column: Column) -> Sequence[int]:
    """Return how many parallel links each edge stands for, 1 where it does not say."""
    if set(map(type, column)) <= {int}:
        return column
    values = []
    for src, dst, each in zip(edges.src, edges.dst, column, strict=True):
        where = f"edge {src}->{dst} has the count"
        value = 1.0 if each is None else number_of(each, where=where, unit="whole links")
        if not value.is_integer():
            msg = f"{where} {each!r}; give a whole number"
            raise FormatError(msg)
        values.append(int(value))
    return values


def _words(column: Column) -> Sequence[str]:
    if set(map(type, column)) <= {str}:
        return column
    return ["" if each is None else text_of(each) for each in column]


def _empty(column: Column) -> bool:
    return all(each is None for each in column)
