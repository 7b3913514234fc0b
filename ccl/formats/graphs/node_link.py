"""Topologies as node-link JSON, the format of networkx.

``networkx.node_link_graph(data, edges="edges")`` reads what is written here, and what
``node_link_data(graph, edges="edges")`` gives is read here: an undirected graph means links both
ways, parallel edges add up. An edge needs a ``bandwidth`` in GB/s; everything else has a default.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from msgspec import Struct, field

from ccl.errors import FormatError, ProblemError
from ccl.formats import wire
from ccl.formats.documents import Document, document
from ccl.formats.text import decode_json, laid_out
from ccl.formats.topoloom import topology_to_json
from ccl.topology import Device, DeviceKind, Link, SharedLimit, Topology, device

Name = str | int


class _Node(Struct):
    """A device; attributes that are not known here are somebody else's."""

    id: Name
    kind: str = "gpu"
    host: str | None = None
    stores: bool | None = None
    copies: bool | None = None
    reduces: bool | None = None
    buffer_bytes: float | None = None
    pos: tuple[float, float] | None = None


class _Edge(Struct):
    """A link."""

    source: Name
    target: Name
    bandwidth: float | None = None
    alpha: float = 0.0
    medium: str = ""
    count: int = 1


class _About(Struct):
    """What holds for the whole graph."""

    name: str = "Imported"
    limits: list[wire.LimitJson] = field(default_factory=list)


class _Graph(Struct):
    """The document; networkx before 3.6 calls the edges ``links`` unless told otherwise."""

    nodes: list[_Node]
    edges: list[_Edge] | None = None
    links: list[_Edge] | None = None
    directed: bool = False
    graph: _About = field(default_factory=_About)


class _Head(Struct):
    """What tells node-link JSON from a document of our own."""

    nodes: Any = None
    format: Any = None


def node_link_text(content: Document) -> str:
    """Return the topology of a document, and its drawing, as the text of a file."""
    value = topology_to_json(content.topology)
    nodes = []
    for each in value["devices"]:
        place = content.positions.get(each["name"])
        node = {"id": each.pop("name"), **each}
        nodes.append(node if place is None else node | {"pos": list(place)})
    edges = [
        {"source": each.pop("src"), "target": each.pop("dst"), **each} for each in value["links"]
    ]
    about = {"name": value["name"], "limits": value["limits"]}
    graph = {"directed": True, "multigraph": False, "graph": about, "nodes": nodes, "edges": edges}
    return laid_out(graph) + "\n"


def is_node_link(content: bytes | str) -> bool:
    """Say whether JSON text has nodes and is no document of our own."""
    try:
        head = decode_json(content, _Head)
    except FormatError:
        return False
    return head.nodes is not None and head.format is None


def parse_node_link(content: bytes | str, *, name: str = "graph") -> Document:
    """Read a topology document from the content of a file called `name`.

    Raises
    ------
    FormatError
        If it is not JSON, not node-link, or an edge has no bandwidth.
    ProblemError
        If the graph is no topology.
    """
    try:
        return _document(decode_json(content, _Graph))
    except (FormatError, ProblemError) as error:
        msg = f"{name}: {error}"
        raise type(error)(msg) from None


def _document(graph: _Graph) -> Document:
    edges = graph.links if graph.edges is None else graph.edges
    if edges is None:
        msg = "the graph has no list of edges; write it with node_link_data(graph, edges='edges')"
        raise FormatError(msg)
    links = [_link(each) for each in edges]
    if not graph.directed:
        links += [_turned(each) for each in links]
    topology = Topology(
        name=graph.graph.name or "Imported",
        devices=tuple(_device(each) for each in graph.nodes),
        links=tuple(links),
        limits=tuple(
            SharedLimit(each.name, tuple(each.links), each.bandwidth) for each in graph.graph.limits
        ),
    )
    places = {str(each.id): each.pos for each in graph.nodes if each.pos is not None}
    return document(topology, positions=places)


def _device(node: _Node) -> Device:
    return device(
        cast(DeviceKind, node.kind),  # checked there
        str(node.id),
        host=node.host,
        stores=node.stores,
        copies=node.copies,
        reduces=node.reduces,
        buffer_bytes=node.buffer_bytes,
    )


def _link(edge: _Edge) -> Link:
    if edge.bandwidth is None:
        msg = f"edge {edge.source}->{edge.target} has no bandwidth; give one in GB/s"
        raise FormatError(msg)
    src, dst = str(edge.source), str(edge.target)
    return Link(src, dst, edge.bandwidth, edge.alpha, edge.medium, edge.count)


def _turned(link: Link) -> Link:
    return replace(link, src=link.dst, dst=link.src)
