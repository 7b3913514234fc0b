"""Topologies as GraphML, which networkx, yEd, Gephi and many others read and write.

GraphML knows scalars only: devices have ``kind``, ``host``, ``stores``, ``copies``, ``reduces``,
``buffer_bytes`` and their place ``x``, ``y`` (y down); edges have ``bandwidth`` in GB/s one way,
``alpha`` in µs, ``medium`` and ``count``. Shared limits have no place in it: they are an attribute
of the graph, ``limits``, a text of JSON, which other tools pass on without knowing it. Where a name
is more than letters, digits and ``._:-``, ids are numbers and names are ``label``.

What is read: keys by their ``attr.name``, with defaults; edges both ways unless ``edgedefault`` or
the edge says that it is directed; nodes inside a node as devices of a host; labels and places that
yEd draws. Ports and hyperedges are left out.

Source: the GraphML primer, graphml.graphdrawing.org.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ccl import text
from ccl.errors import FormatError
from ccl.serialization import wire
from ccl.serialization.documents import Document
from ccl.serialization.text import decode_json, laid_out
from ccl.serialization.topoloom import limits_of, limits_to_json
from ccl.topology import SharedLimit, no_collection
from interchange.formats.fields import device_fields, link_fields
from interchange.formats.format import Imported, Reader, Report, Request, Writer, Written, one_file
from interchange.formats.graphs import _graph as common
from interchange.formats.xml import Element, begins_with, parse_xml, xml_text

_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
_TOKEN = re.compile(r"[A-Za-z0-9._:-]+")
_KEYS = {
    "graph": {"name": "string", "limits": "string"},
    "node": {
        "label": "string",
        "kind": "string",
        "host": "string",
        "stores": "boolean",
        "copies": "boolean",
        "reduces": "boolean",
        "buffer_bytes": "double",
        "x": "double",
        "y": "double",
    },
    "edge": {"bandwidth": "double", "alpha": "double", "medium": "string", "count": "int"},
}
"""Type of each attribute that is written, by what has it."""


def recognises(content: bytes) -> bool:
    """Say whether the first element is <graphml>."""
    return begins_with(content, "graphml")


def read(content: bytes, request: Request) -> Imported:
    """Read a graph."""
    with no_collection():
        return _imported(parse_xml(content), request)


def write(content: Document) -> Written:
    """Write the topology and where it is drawn."""
    return one_file(xml_text(_element(content)), ending="graphml", lost=common.lost_of(content))


# Reading


class _Keys:
    """The attributes that a file declares."""

    def __init__(self, root: Element) -> None:
        self.names: dict[str, str] = {}
        self.defaults: dict[str, dict[str, str]] = {"node": {}, "edge": {}}
        for each in _inside(root, "key"):
            name = each.attributes.get("attr.name")
            if name is None:  # of yEd, for what it draws
                continue
            self.names[each.text("id")] = name
            for default in _inside(each, "default"):
                for what, those in self.defaults.items():
                    if each.text("for", "all") in (what, "all"):
                        those[name] = default.content

    def data(self, element: Element) -> dict[str, Any]:
        """Return the attributes of an element, and what yEd draws of it."""
        found: dict[str, Any] = {}
        for each in _inside(element, "data"):
            key = each.text("key")
            if not each.children:
                found[self.names.get(key, key)] = each.content
            elif _local(element.tag) == "node":
                found |= _drawn(each)
        return found


def _imported(root: Element, request: Request) -> Imported:
    if _local(root.tag) != "graphml":
        raise FormatError(
            f"line {root.line}: it begins with <{_local(root.tag)}>; GraphML begins with <graphml>"
        )
    graphs = list(_inside(root, "graph"))
    if not graphs:
        raise FormatError(f"line {root.line}: <graphml> has no <graph>; add one")
    keys = _Keys(root)
    first = graphs[0]
    nodes = list(_nodes(first, keys, None))
    ids = [each.text("id") for each, _, _ in nodes]
    rows = [row for _, row, _ in nodes]
    names, of_names = _named(ids, rows)
    defaults = keys.defaults["node"].items()
    usual = {key.lower(): value for key, value in defaults if common.means_something(key)}
    devices = [
        {**usual, **({} if host is None else {"host": host}), **row}
        for row, (_, _, host) in zip(rows, nodes, strict=True)
    ]
    directed, edges, of_edges = _edges(first, keys, dict(zip(ids, names, strict=True)))
    about = keys.data(first)
    graph = common.Graph(
        name=about.pop("name", first.attributes.get("id", "")),
        directed=directed,
        multigraph=False,
        names=names,
        devices=devices,
        edges=edges,
        limits=_limits(about.pop("limits", "[]")),
    )
    left_out = [f"the attributes of the graph {common.listed(list(about))}"] if about else []
    if len(graphs) > 1:
        left_out.append(f"{text.count(len(graphs) - 1, 'more graph')}; the first is read")
    return common.imported(graph, request, of_names, of_edges, Report(left_out=tuple(left_out)))


def _nodes(
    graph: Element, keys: _Keys, host: str | None
) -> Iterator[tuple[Element, dict[str, Any], str | None]]:
    """Yield each node that holds no others, with its attributes and the host around it."""
    for each in _inside(graph, "node"):
        inner = list(_inside(each, "graph"))
        data = keys.data(each)
        if not inner:
            yield each, data, host
        for those in inner:
            yield from _nodes(those, keys, str(data.get("label", each.text("id"))))


def _named(ids: list[str], rows: list[dict[str, Any]]) -> tuple[list[str], Report]:
    """Return the labels where every node has one of its own, else the ids."""
    for key in ("label", "Label", "name"):
        labels = [row.get(key) for row in rows]
        if rows and all(labels) and len(set(labels)) == len(labels):
            for row in rows:
                del row[key]
            told = f"devices are called by the attribute {key!r} of nodes"
            return [str(each) for each in labels], Report(taken=(told,))
    return ids, Report()


def _edges(
    graph: Element, keys: _Keys, names: Mapping[str, str]
) -> tuple[bool, common.Edges, Report]:
    """Return whether edges are one way, and the edges; those that are not lie there twice."""
    usual = graph.text("edgedefault", "undirected")
    found = list(_everywhere(graph, "edge"))
    one_way = [each.text("directed", str(usual == "directed")).lower() == "true" for each in found]
    src, dst, rows = [], [], []
    mixed = len(set(one_way)) > 1
    for each, alone in zip(found, one_way, strict=True):
        ends = [names.get(end, end) for end in (each.text("source"), each.text("target"))]
        row = keys.data(each)
        for first, second in (ends, ends[::-1])[: 1 + (mixed and not alone)]:
            src.append(first)
            dst.append(second)
            rows.append(row)
    edges = common.edges_of((src, dst), rows, keys.defaults["edge"])
    told = [f"{text.count(one_way.count(False), 'undirected edge')} both ways"] if mixed else []
    hyper = sum(1 for _ in _everywhere(graph, "hyperedge"))
    left_out = [text.count(hyper, "hyperedge")] if hyper else []
    directed = mixed or all(one_way)
    return directed, edges, Report(assumed=tuple(told), left_out=tuple(left_out))


def _limits(text: str) -> tuple[SharedLimit, ...]:
    try:
        found = decode_json(text, list[wire.LimitJson])
    except FormatError as error:
        raise FormatError(f"the attribute 'limits' of the graph, {error}") from None
    return limits_of(found)


def _drawn(data: Element) -> dict[str, Any]:
    """Return label and middle of a node as yEd draws it."""
    found: dict[str, Any] = {}
    for each in _everywhere(data, "NodeLabel"):
        if each.content.strip():
            found.setdefault("label", each.content.strip())
    for each in _everywhere(data, "Geometry"):
        found["x"] = each.number("x", 0.0) + each.number("width", 0.0) / 2
        found["y"] = each.number("y", 0.0) + each.number("height", 0.0) / 2
    return found


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _inside(element: Element, tag: str) -> Iterator[Element]:
    return (each for each in element.children if _local(each.tag) == tag)


def _everywhere(element: Element, tag: str) -> Iterator[Element]:
    for each in element.children:
        if _local(each.tag) == tag:
            yield each
        yield from _everywhere(each, tag)


# Writing


def _element(content: Document) -> Element:
    topology = content.topology
    names = [each.name for each in topology.devices]
    plain = all(_TOKEN.fullmatch(name) for name in names)
    ids = {name: name if plain else f"n{number}" for number, name in enumerate(names)}
    about = {"name": topology.name, "limits": laid_out(limits_to_json(topology.limits))}
    graph = Element(
        "graph",
        {"edgedefault": "directed"},
        _data("graph", about if topology.limits else {"name": topology.name}),
    )
    for each in topology.devices:
        label = {} if plain else {"label": each.name}
        data = label | {"kind": each.kind} | device_fields(each) | _place(content, each.name)
        graph.children.append(Element("node", {"id": ids[each.name]}, _data("node", data)))
    for link in topology.links:
        ends = {"source": ids[link.src], "target": ids[link.dst]}
        graph.children.append(Element("edge", ends, _data("edge", link_fields(link))))
    keys = [
        Element("key", {"id": f"{what}-{name}", "for": what, "attr.name": name, "attr.type": kind})
        for what, those in _KEYS.items()
        for name, kind in those.items()
    ]
    return Element("graphml", {"xmlns": _NAMESPACE}, [*keys, graph])


def _data(what: str, values: Mapping[str, Any]) -> list[Element]:
    return [
        Element("data", {"key": f"{what}-{name}"}, content=_text(value))
        for name, value in values.items()
    ]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _place(content: Document, name: str) -> dict[str, float]:
    if name not in content.positions:
        return {}
    x, y = content.positions[name]
    return {"x": x, "y": y}


READER = Reader("graphml", "GraphML", ("graphml", "xml"), recognises, read, common.SETTINGS)

WRITER = Writer("graphml", "GraphML", "graphml", "topology", write)
