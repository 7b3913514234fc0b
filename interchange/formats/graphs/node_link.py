"""Topologies as node-link JSON, the format of networkx.

``networkx.node_link_graph(data, edges="edges")`` reads what is written here, and what
``node_link_data(graph, edges=...)`` gives is read here, whatever it calls its edges: an undirected
graph means links both ways, parallel edges add up. An edge needs a bandwidth in GB/s, called
``bandwidth`` or as others call it; everything else has a default. Drawing positions are ``pos``,
y down.
"""

import json
from collections.abc import Sequence
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec import Raw, Struct, field

from ccl.errors import FormatError
from ccl.serialization import wire
from ccl.serialization.documents import Document
from ccl.serialization.text import Integer, decode_json, laid_out
from ccl.serialization.topoloom import json_of, limits_of, limits_to_json, shaped
from ccl.topology import no_collection
from interchange.formats.fields import head_of, short
from interchange.formats.format import Imported, Reader, Report, Request, Writer, Written, one_file
from interchange.formats.graphs import _graph as common
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


class _Graph(Struct, Generic[Row]):
    """The document; networkx before 3.6 calls the edges ``links`` unless told otherwise."""

    nodes: list[Json]
    edges: list[Row] | None = None
    links: list[Row] | None = None
    directed: bool | None = None
    multigraph: bool = False
    graph: Json = field(default_factory=dict)


class _Head(Struct):
    """What tells node-link JSON from a document of our own."""

    nodes: Raw = Raw()
    format: Any = None


def read(content: bytes, request: Request) -> Imported:
    """Read a graph."""
    with no_collection():
        return _imported(_decoded(content), request)


def recognises(content: bytes) -> bool:
    """Say whether it is JSON that has nodes and edges and is no document of our own."""
    has_edges = b'"edges"' in content or b'"links"' in content
    return has_edges and b'"nodes"' in content and is_node_link(content)


def write(content: Document) -> Written:
    """Write the topology and where it is drawn."""
    return one_file(node_link_text(content), ending="json", lost=common.lost_of(content))


def node_link_text(content: Document) -> str:
    """Return the topology of a document, and its drawing, as the text of a file."""
    topology, places = content.topology, content.positions
    nodes = []
    for each in topology.devices:
        drawn = {"pos": list(places[each.name])} if each.name in places else {}
        node = json_of(each)
        node = {"id": node.pop("name")} | node | drawn
        nodes.append(json.dumps(node, ensure_ascii=False, allow_nan=False))
    edges = (_Edge(*json_of(each).values()) for each in topology.links)
    about = laid_out({"name": topology.name, "limits": limits_to_json(topology.limits)}, " ")
    lines = ",\n  ".join(nodes), ",\n  ".join(msgspec.json.encode(each).decode() for each in edges)
    return (
        f'{{\n "directed": true,\n "multigraph": false,\n "graph": {about},\n'
        f' "nodes": [\n  {lines[0]}\n ],\n "edges": [\n  {lines[1]}\n ]\n}}\n'
    )


def is_node_link(content: bytes | str) -> bool:
    """Say whether JSON text has nodes and is no document of our own."""
    head = head_of(content, _Head)
    return head is not None and bool(bytes(head.nodes)) and head.format is None


def _decoded(content: bytes) -> _Graph[Any]:
    try:
        return cast(_Graph[Any], decode_json(content, _Graph[_Edge]))
    except FormatError:
        return cast(_Graph[Any], decode_json(content, _Graph[Json]))


def _imported(graph: _Graph[Any], request: Request) -> Imported:
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
    left_out = (f"the attributes of the graph {common.listed(unknown)}",) if unknown else ()
    name = about.get("name")
    return common.imported(
        common.Graph(
            name="" if name is None else text_of(name),
            directed=graph.directed,
            multigraph=graph.multigraph,
            names=names,
            devices=devices,
            edges=edges,
            limits=limits_of(shaped(about.get("limits", []), list[wire.LimitJson], "limits")),
        ),
        request,
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


def _edges(graph: _Graph[Any], ids: Sequence[Any]) -> tuple[common.Edges, Report]:
    table = {text_of(each): text_of(each) for each in ids}
    rows = graph.links if graph.edges is None else graph.edges
    if rows is None:
        raise FormatError(
            "the graph has no list of edges; write it with node_link_data(graph, edges='edges')"
        )
    if rows and not isinstance(rows[0], _Edge):
        return _other_edges(rows, ids, table)
    columns: dict[str, common.Column] = {
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
    return common.Edges(src, dst, columns), Report()


def _other_edges(
    rows: list[Json], ids: Sequence[Any], table: dict[str, str]
) -> tuple[common.Edges, Report]:
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
    return common.edges_of((named[0], named[1]), rows, {}), Report(assumed=told)


def _numbered(ids: Sequence[Any], ends: tuple[list[Any], list[Any]]) -> bool:
    """Say whether edges name nodes by their places, as D3 does and networkx 1 did."""
    texts = all(isinstance(each, str) and not each.isdecimal() for each in ids)
    return texts and all(
        type(place) is int and 0 <= place < len(ids) for those in ends for place in those
    )


READER = Reader(
    "node-link", "Node-link JSON (networkx)", ("json",), recognises, read, common.SETTINGS
)

WRITER = Writer("node-link", "Node-link JSON (networkx)", "json", "topology", write)
