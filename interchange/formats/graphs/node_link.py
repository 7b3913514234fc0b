"""Topologies as node-link JSON, the format of networkx.

``networkx.node_link_graph(data, edges="edges")`` reads what is written here, and what
``node_link_data(graph, edges=...)`` gives is read here, whatever it calls its edges: an undirected
graph means links both ways, parallel edges add up. An edge needs a bandwidth in GB/s, called
``bandwidth`` or as others call it; everything else has a default. Drawing positions are ``pos``,
y down.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Raw, Struct, field

from ccl.errors import FormatError
from ccl.serialization import wire
from ccl.serialization.conditions import Document
from ccl.serialization.text import Integer, decode_json, laid_out
from ccl.serialization.topoloom import shaped
from ccl.topology import Device, SharedLimit, no_collection
from interchange.formats.fields import short
from interchange.formats.format import Imported, Reader, Report, Request, Writer, Written, one_file
from interchange.formats.graphs._graph import (
    SETTINGS,
    Column,
    Edges,
    Graph,
    edges_of,
    imported,
    limits_to_json,
    listed,
    lost_of,
)
from interchange.formats.graphs._values import text_of

Json = dict[str, Any]
Row = TypeVar("Row")


class _Edge(Struct, forbid_unknown_fields=True, gc=False):
    """An edge as it is written here; millions of them are read at once."""

    source: str
    target: str
    bandwidth: float
    alpha: float = 0.0
    medium: str = ""
    count: Integer = 1


class _Graph(Struct):
    """The document; networkx before 3.6 calls the edges ``links`` unless told otherwise."""

    nodes: list[Json]
    edges: list[_Edge] | None = None
    links: list[_Edge] | None = None
    directed: bool | None = None
    multigraph: bool = False
    graph: Json = field(default_factory=dict)


class _OtherGraph(Struct):
    """The same with edges that have other attributes than ours."""

    nodes: list[Json]
    edges: list[Json] | None = None
    links: list[Json] | None = None
    directed: bool | None = None
    multigraph: bool = False
    graph: Json = field(default_factory=dict)


class _Head(Struct):
    """What tells node-link JSON from a document of our own."""

    nodes: Raw = Raw()
    format: Any = None


def read(content: bytes, asked: Request) -> Imported:
    """Read a graph."""
    with no_collection():
        return _imported(_decoded(content), asked)


def recognises(content: bytes) -> bool:
    """Say whether it is JSON that has nodes and edges and is no document of our own."""
    has_edges = b'"edges"' in content or b'"links"' in content
    return has_edges and b'"nodes"' in content and is_node_link(content)


def write(content: Document) -> Written:
    """Write the topology and where it is drawn."""
    return one_file(node_link_text(content), ending="json", lost=lost_of(content))


def node_link_text(content: Document) -> str:
    """Return the topology of a document, and its drawing, as the text of a file."""
    topology, places = content.topology, content.positions
    nodes = []
    for each in topology.devices:
        drawn = {"pos": list(places[each.name])} if each.name in places else {}
        nodes.append(json.dumps(_node(each) | drawn, ensure_ascii=False, allow_nan=False))
    edges = (
        _Edge(each.src, each.dst, each.bandwidth, each.alpha, each.medium, each.count)
        for each in topology.links
    )
    about = laid_out({"name": topology.name, "limits": limits_to_json(topology.limits)}, " ")
    lines = ",\n  ".join(nodes), ",\n  ".join(msgspec.json.encode(each).decode() for each in edges)
    return (
        f'{{\n "directed": true,\n "multigraph": false,\n "graph": {about},\n'
        f' "nodes": [\n  {lines[0]}\n ],\n "edges": [\n  {lines[1]}\n ]\n}}\n'
    )


def _node(each: Device) -> Json:
    return {
        "id": each.name,
        "kind": each.kind,
        "host": each.host,
        "stores": each.stores,
        "copies": each.copies,
        "reduces": each.reduces,
        "buffer_bytes": each.buffer_bytes,
    }


def is_node_link(content: bytes | str) -> bool:
    """Say whether JSON text has nodes and is no document of our own."""
    try:
        head = decode_json(content, _Head)
    except FormatError:
        return False
    return bool(bytes(head.nodes)) and head.format is None


def _decoded(content: bytes) -> _Graph | _OtherGraph:
    try:
        return cast(_Graph, decode_json(content, _Graph))
    except FormatError:
        return cast(_OtherGraph, decode_json(content, _OtherGraph))


def _imported(graph: _Graph | _OtherGraph, asked: Request) -> Imported:
    key = "id" if not graph.nodes or any("id" in each for each in graph.nodes) else "name"
    ids = _ids(graph.nodes, key)
    names = list(map(text_of, ids))
    hosts = [] if any("host" in each for each in graph.nodes) else _hosts(ids)
    more = Report(
        () if key == "id" else ("devices are called by the attribute 'name' of nodes",),
        ("the first part of a name numbers its host",) if hosts else (),
    )
    devices = [
        {name: value for name, value in each.items() if name != key} | hosted
        for each, hosted in zip(graph.nodes, hosts or [{}] * len(ids), strict=True)
    ]
    edges, told = _edges(graph, ids)
    about = graph.graph
    unknown = [key for key in about if key not in ("name", "limits")]
    left_out = (f"the attributes of the graph {listed(unknown)}",) if unknown else ()
    name = about.get("name")
    return imported(
        Graph(
            name="" if name is None else text_of(name),
            directed=graph.directed,
            multigraph=graph.multigraph,
            names=names,
            devices=devices,
            edges=edges,
            limits=_limits(about.get("limits", [])),
        ),
        asked,
        more,
        told,
        Report(left_out=left_out),
    )


def _ids(nodes: Sequence[Json], key: str) -> list[Any]:
    """Return what identifies each node: its id, or its name where no node has an id."""
    ids = []
    for number, each in enumerate(nodes):
        found = each.get(key)
        parts = found if isinstance(found, list) and len(found) > 1 else [found]
        if not all(isinstance(part, (str, int, float)) for part in parts):
            got = "none" if found is None else short(found)
            raise FormatError(f"at nodes[{number}].{key}: expected a text or a number, got {got}")
        ids.append(found)
    return ids


def _hosts(ids: Sequence[Any]) -> list[Json]:
    """Return the host of each device where all ids are (host, what, number), else nothing.

    So does ForestColl build its clusters, with a negative number for what is in no host.
    """
    for each in ids:
        if not (isinstance(each, list) and [type(part) for part in each] == [int, str, int]):
            return []
    return [{"host": f"host{each[0]}"} if each[0] >= 0 else {} for each in ids]


def _edges(graph: _Graph | _OtherGraph, ids: Sequence[Any]) -> tuple[Edges, Report]:
    table = {text_of(each): text_of(each) for each in ids}
    if isinstance(graph, _OtherGraph):
        return _other_edges(_listed(graph.edges, graph.links), ids, table)
    rows = _listed(graph.edges, graph.links)
    columns: dict[str, Column] = {
        "bandwidth": [each.bandwidth for each in rows],
        "medium": [each.medium for each in rows],
        "count": [each.count for each in rows],
    }
    latencies = [each.alpha for each in rows]
    if any(latencies):  # else nothing is said of them
        columns["alpha"] = latencies
    # The names of the devices themselves, so that each is kept once.
    src = [table.get(each.source, each.source) for each in rows]
    dst = [table.get(each.target, each.target) for each in rows]
    return Edges(src, dst, columns), Report()


def _listed(edges: list[Row] | None, links: list[Row] | None) -> list[Row]:
    found = links if edges is None else edges
    if found is None:
        raise FormatError(
            "the graph has no list of edges; write it with node_link_data(graph, edges='edges')"
        )
    return found


def _other_edges(
    rows: list[Json], ids: Sequence[Any], table: dict[str, str]
) -> tuple[Edges, Report]:
    """Read edges that have other attributes than ours."""
    ends: tuple[list[Any], list[Any]] = ([], [])
    for number, row in enumerate(rows):
        for key, those in zip(("source", "target"), ends, strict=True):
            if not isinstance(row.get(key), (str, int, float, list)):
                raise FormatError(f"at edges[{number}].{key}: expected the id of a node")
            those.append(row.pop(key))
    numbered = _numbered(ids, ends)
    if numbered:
        ends = ([ids[place] for place in ends[0]], [ids[place] for place in ends[1]])
    named = tuple([table.get(text, text) for text in map(text_of, those)] for those in ends)
    told = ("the ends of edges are places in the list of nodes, from 0",) if numbered else ()
    return edges_of((named[0], named[1]), rows, {}), Report(assumed=told)


def _numbered(ids: Sequence[Any], ends: tuple[list[Any], list[Any]]) -> bool:
    """Say whether edges name nodes by their places, as D3 does and networkx 1 did."""
    texts = all(isinstance(each, str) and not each.isdecimal() for each in ids)
    return texts and all(
        type(place) is int and 0 <= place < len(ids) for those in ends for place in those
    )


def _limits(value: Any) -> tuple[SharedLimit, ...]:
    found = shaped(value, list[wire.LimitJson], "limits")
    return tuple(SharedLimit(each.name, tuple(each.links), each.bandwidth) for each in found)


READER = Reader("node-link", "Node-link JSON (networkx)", ("json",), recognises, read, SETTINGS)

WRITER = Writer("node-link", "Node-link JSON (networkx)", "json", "topology", write)
