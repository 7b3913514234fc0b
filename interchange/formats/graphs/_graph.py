"""A graph of any tool as a topology: what is common to node-link JSON and GraphML.

Which attribute is the bandwidth, which devices are GPUs and whether edges go both ways is decided
here and in the modules beside it, and said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ccl.errors import FormatError, ProblemError
from ccl.serialization.documents import Document, document
from ccl.topology import SharedLimit, Topology
from interchange.formats.format import Asked, Imported, Question, Report
from interchange.formats.graphs._devices import Attributes, devices_of
from interchange.formats.graphs._edges import Edges, links_of
from interchange.formats.graphs._values import many

SETTINGS = {
    "bandwidth": "GB/s, one way, of edges that say none",
    "directed": "yes if every edge is one way, no if each is both",
    "weight": "bandwidth if the weight of an edge is its GB/s, ignored if it is something else",
}

LONGEST = 1000
"""Signs of an error; a name in it may be as long as the file."""


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


@contextmanager
def errors_named(asked: Asked) -> Iterator[None]:
    """Begin the errors of a reader with the name of its file, and cut those with endless names."""
    try:
        yield
    except Question as question:
        msg = f"{asked.name}: {question}"
        raise Question(msg, key=question.key, choices=question.choices) from None
    except (FormatError, ProblemError) as error:
        told = str(error)
        cut = (
            told if len(told) <= LONGEST else f"{told[: LONGEST // 2]} ... {told[-LONGEST // 2 :]}"
        )
        msg = f"{asked.name}: {cut}"
        raise type(error)(msg) from None


def imported(graph: Graph, asked: Asked, *more: Report) -> Imported:
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
    both, why = _goes_both_ways(graph, edges, asked)
    devices, places, of_devices = devices_of(graph.names, graph.devices)
    links, of_links = links_of(edges, asked, both=both)
    topology = Topology(graph.name or "Imported", devices, links, graph.limits)
    joined = len(links) - len(topology.links)
    if joined:
        why += (f"{many(joined, 'parallel link')} to others; their bandwidths add up",)
    left_out = (f"{many(loops, 'edge')} from a device to itself",) if loops else ()
    report = Report((_counted(topology),), why, left_out)
    for each in (of_devices, of_links, *more):
        report = report.joined(each)
    return Imported(document(topology, positions=places), report)


def lost_of(content: Document) -> tuple[str, ...]:
    """Say what a document holds beside its topology and its drawing."""
    return (
        *(["the collective and its windows"] if content.problem is not None else []),
        *(["the plan"] if content.plan is not None else []),
        *(["the bounds of the result and how it was found"] if content.result is not None else []),
    )


def limits_to_json(limits: Sequence[SharedLimit]) -> list[dict[str, Any]]:
    """Return shared limits as the attribute ``limits`` of a graph keeps them."""
    return [
        {"name": each.name, "links": list(map(list, each.links)), "bandwidth": each.bandwidth}
        for each in limits
    ]


def _goes_both_ways(graph: Graph, edges: Edges, asked: Asked) -> tuple[bool, tuple[str, ...]]:
    """Say whether every edge is two links, and why."""
    answer = asked.settings.get("directed")
    if answer not in (None, "yes", "no"):
        msg = f"the setting directed is {answer!r}; choose yes or no"
        raise FormatError(msg)
    if answer is not None or graph.directed:
        return answer == "no", ()
    said = "the graph is undirected" if graph.directed is False else "the file names no direction"
    pairs = set(zip(edges.src, edges.dst, strict=True))
    twins = [] if graph.multigraph else [pair for pair in pairs if pair[::-1] in pairs]
    if twins:
        src, dst = min(twins)
        msg = f"{said}, and both {src}->{dst} and {dst}->{src} are there; is each edge one way?"
        choices = {"yes": "each edge is one way", "no": "each edge is both ways; the two add up"}
        raise Question(msg, key="directed", choices=choices)
    told = f"{said}: {many(len(edges.src), 'edge')} both ways, with the bandwidth each way"
    return True, (told,) if pairs else ()


def _counted(topology: Topology) -> str:
    counts = [
        (len(topology.ranks), "GPU"),
        (len(topology.devices) - len(topology.ranks), "other device"),
        (len(topology.links), "link"),
        (len(topology.limits), "shared limit"),
    ]
    return ", ".join(
        many(count, word) for count, word in counts if count or word in ("GPU", "link")
    )
