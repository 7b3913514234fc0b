"""A graph of any tool as a topology: what is common to node-link JSON and GraphML.

Which attribute is the bandwidth, which the latency, and in which unit, which devices are GPUs and
whether edges go both ways is decided here and in the modules beside it, and said: `devices_of`
finds kinds, hosts, abilities and places of devices, `links_of` what is said of links.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from operator import eq, ne
from typing import Any, cast

from ccl import text
from ccl.errors import FormatError
from ccl.serialization.documents import Document, document
from ccl.topology import KINDS as REAL_KINDS
from ccl.topology import Device, DeviceKind, Link, SharedLimit, Topology, device, many_links
from interchange.formats.fields import answer, choice, short, some
from interchange.formats.format import Imported, Question, Report, Request
from interchange.formats.graphs import _values as naming

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
    kinds, hosts = _called(keys, naming.KINDS), _called(keys, naming.HOSTS)[:1]
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
        left_out.append(f"the places of {text.count(wrong, 'device')}, which are not two numbers")
    assumed = [
        f"{text.count(count, _SPELT.get(kind, kind))} {how}"
        for (kind, how), count in sorted(guessed.items())
    ]
    return tuple(made), places, Report(tuple(taken), tuple(assumed), tuple(left_out))


def means_something(key: str) -> bool:
    """Say whether an attribute of a device is kept."""
    return key.lower() in (*naming.KINDS, *naming.HOSTS) or key in _KEPT


def listed(words: Sequence[str]) -> str:
    """Return some words for a sentence, the first eight."""
    return some([short(word) for word in words], most=8)


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
        word = naming.text_of(value)
        if word in REAL_KINDS:
            return word, ""
        found = naming.kind_named(word)
        if found is not None:
            return found, f"by the attribute {key!r}"
        if key == "kind":
            return word, ""  # refused where the device is made
    found = naming.kind_named(name)
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
        host=None if host is None else naming.text_of(host),
        stores=naming.truth_of(attributes, "stores", what=what),
        copies=naming.truth_of(attributes, "copies", what=what),
        reduces=naming.truth_of(attributes, "reduces", what=what),
        buffer_bytes=None
        if room is None
        else naming.number_of(room, where=f"{what} has the buffer", unit="bytes"),
    )


def _places(names: Sequence[str], attributes: Sequence[Attributes]) -> tuple[Places, int]:
    """Return where devices are drawn, and for how many that is written in no form known here."""
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


Column = Sequence[Any]

_THEIR_OWN = ("id", "key")
"""What graphs give their edges to distinguish them."""

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
        raise FormatError(
            f"edges have {len(known):,} attributes such as {listed(known[:2])}; leave one of them"
        )
    columns = {name: [row.get(name, defaults.get(name)) for row in rows] for name in known}
    unknown = [name for name in names if name not in columns and name not in _THEIR_OWN]
    return Edges(*ends, columns, unknown)


def _means_something(name: str) -> bool:
    measured = naming.bandwidth_named(name) or naming.latency_named(name)
    return measured is not None or name.lower() in (*naming.MEDIA, "count", "weight")


def links_of(edges: Edges, request: Request, *, both: bool) -> tuple[tuple[Link, ...], Report]:
    """Make the links.

    Parameters
    ----------
    edges
        None of them enters the device it leaves.
    request
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
    rate = _bandwidth(columns, request)
    late = _measured(columns, naming.latency_named)
    media, counts = _edge_named(columns, naming.MEDIA), _edge_named(columns, ("count",))
    bandwidth = _numbers(edges, rate, unit="GB/s", default=_default(request))
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
    report = Report((), tuple(_assumed(columns, rate, late, request=request)), left_out)
    return links, report


def _assumed(
    columns: Mapping[str, Column], rate: naming.Measure, late: naming.Measure, *, request: Request
) -> Iterator[str]:
    """Yield what is to be said of bandwidths and latencies."""
    missing = list(columns.get(rate.name, ())).count(None)
    default = _default(request)
    if default is not None and (missing or not rate.name):
        which = text.count(missing, "edge") if missing else "all edges"
        yield f"the bandwidth of {which} is what was set, {default:g} GB/s one way"
    if rate.name and rate.name != "bandwidth":
        unit = f"which is in {rate.unit}" if rate.unit else "in GB/s one way"
        yield f"the attribute {rate.name!r} of edges is the bandwidth, {unit}"
    if late.name and late.name != "alpha":
        unit = f"which is in {late.unit}" if late.unit else "in µs"
        yield f"the attribute {late.name!r} of edges is the latency alpha, {unit}"
    silent = list(columns.get(late.name, ())).count(None)
    if silent or not late.name:
        which = text.count(silent, "edge") if silent else "all edges"
        yield f"{which} without a latency: alpha is 0 µs"


def _bandwidth(columns: Mapping[str, Column], request: Request) -> naming.Measure:
    """Find the attribute that is the bandwidth; its name is empty if there is none."""
    found = _measured(columns, naming.bandwidth_named)
    if found.name or "weight" not in columns or _empty(columns["weight"]):
        return found
    if "weight" not in request.settings and "bandwidth" in request.settings:
        return found
    doubt = "edges have a weight and no bandwidth; is the weight their bandwidth in GB/s?"
    word = answer(request, "weight", choices=_WEIGHT, doubt=doubt)
    return naming.Measure("weight") if word == "bandwidth" else found


def _default(request: Request) -> float | None:
    """Return the GB/s of edges that say none, if it was set."""
    word = request.settings.get("bandwidth")
    if word is None:
        return None
    value = naming.number_of(word, where="the setting bandwidth is", unit="GB/s")
    if not 0 < value < float("inf"):
        raise FormatError(f"the setting bandwidth is {word!r}; give a positive number in GB/s")
    return value


def _measured(
    columns: Mapping[str, Column], named: Callable[[str], naming.Measure | None]
) -> naming.Measure:
    """Find the best attribute of this measure that any edge has."""
    measures = (named(name) for name, each in columns.items() if not _empty(each))
    found = [each for each in measures if each is not None]
    return min(found, key=lambda each: each.rank, default=naming.Measure(""))


def _edge_named(columns: Mapping[str, Column], known: Sequence[str]) -> str:
    """Return the attribute that is called as one of `known`, or nothing."""
    lower = {name.lower(): name for name in columns}
    return next((lower[word] for word in known if word in lower), "")


def _numbers(
    edges: Edges, measure: naming.Measure, *, unit: str, default: float | None
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
            values.append(
                naming.number_of(each, where=where, unit=unit) * measure.times / measure.per
            )
        elif default is not None:
            values.append(default)
        else:
            raise FormatError(f"edge {src}->{dst} has no {name or 'bandwidth'}; give one in {unit}")
    return values


def _counts(edges: Edges, column: Column) -> Sequence[int]:
    """Return how many parallel links each edge stands for, 1 where it does not say."""
    if set(map(type, column)) <= {int}:
        return column
    values = []
    for src, dst, each in zip(edges.src, edges.dst, column, strict=True):
        where = f"edge {src}->{dst} has the count"
        value = 1.0 if each is None else naming.number_of(each, where=where, unit="whole links")
        if not value.is_integer():
            raise FormatError(f"{where} {each!r}; give a whole number")
        values.append(int(value))
    return values


def _words(column: Column) -> Sequence[str]:
    if set(map(type, column)) <= {str}:
        return column
    return ["" if each is None else naming.text_of(each) for each in column]


def _empty(column: Column) -> bool:
    return all(each is None for each in column)


SETTINGS = {
    "bandwidth": "GB/s, one way, of edges that say none",
    "directed": "yes if every edge is one way, no if each is both",
    "weight": "bandwidth if the weight of an edge is its GB/s, ignored if it is something else",
}


@dataclass(frozen=True)
class Graph:
    """What a file says.

    Parameters
    ----------
    name
        Of the graph, or empty.
    directed
        Whether edges are one way; None if the file does not say.
    multigraph
        Whether there may be several edges with the same ends.
    names
        Of the devices, in order.
    devices
        Attributes of each device.
    edges
        With their attributes.
    limits
        Shared limits.
    """

    name: str
    directed: bool | None
    multigraph: bool
    names: Sequence[str]
    devices: Sequence[Attributes]
    edges: Edges
    limits: tuple[SharedLimit, ...] = ()


def imported(graph: Graph, request: Request, *more: Report) -> Imported:
    """Make a topology of a graph, with a report after which come others.

    Raises
    ------
    Question
        If edges are weighted and nothing else, or may be one way or both.
    FormatError, ProblemError
        If it means nothing; the sentences do not name the file.
    """
    edges = graph.edges.without_loops()
    loops = len(graph.edges.src) - len(edges.src)
    both, why = _goes_both_ways(graph, edges, request)
    devices, places, of_devices = devices_of(graph.names, graph.devices)
    links, of_links = links_of(edges, request, both=both)
    topology = Topology(graph.name or "Imported", devices, links, graph.limits)
    joined = len(links) - len(topology.links)
    if joined:
        why += (f"{text.count(joined, 'parallel link')} to others; their bandwidths add up",)
    left_out = (f"{text.count(loops, 'edge')} from a device to itself",) if loops else ()
    report = Report((_counted(topology),), why, left_out)
    for each in (of_devices, of_links, *more):
        report = report.joined(each)
    return Imported(document(topology, positions=places), report)


def lost_of(content: Document) -> tuple[str, ...]:
    """Say what a document holds beside its topology and its drawing."""
    held = (
        (content.problem, "the collective and its windows"),
        (content.plan, "the plan"),
        (content.result, "the bounds of the result and how it was found"),
    )
    return tuple(sentence for part, sentence in held if part is not None)


def _goes_both_ways(graph: Graph, edges: Edges, request: Request) -> tuple[bool, tuple[str, ...]]:
    """Say whether every edge is two links, and why."""
    word = choice(request, "directed", ("yes", "no"))
    if word or graph.directed:
        return word == "no", ()
    said = "the graph is undirected" if graph.directed is False else "the file names no direction"
    pairs = set(zip(edges.src, edges.dst, strict=True))
    twins = [] if graph.multigraph else [pair for pair in pairs if pair[::-1] in pairs]
    if twins:
        src, dst = min(twins)
        msg = f"{said}, and both {src}->{dst} and {dst}->{src} are there; is each edge one way?"
        choices = {"yes": "each edge is one way", "no": "each edge is both ways; the two add up"}
        raise Question(msg, key="directed", choices=choices)
    told = f"{said}: {text.count(len(edges.src), 'edge')} both ways, with the bandwidth each way"
    return True, (told,) if pairs else ()


def _counted(topology: Topology) -> str:
    counts = [
        (len(topology.ranks), "GPU"),
        (len(topology.devices) - len(topology.ranks), "other device"),
        (len(topology.links), "link"),
        (len(topology.limits), "shared limit"),
    ]
    return ", ".join(
        text.count(count, word) for count, word in counts if count or word in ("GPU", "link")
    )
