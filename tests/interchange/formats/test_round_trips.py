"""What a format both writes and reads comes back, or the writer says that it is lost.

Every such format is here with a sentence on what survives it and a function that checks that; a
new one that is not fails `test_every_format_that_is_written_and_read_is_here`. Whatever survives
once survives again: the second round trip changes nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ccl.cabling import cabling_of
from ccl.collective import all_gather, all_to_all
from ccl.errors import FormatError, ProblemError
from ccl.options import make_options
from ccl.plans import Forest, Schedule
from ccl.problem import Problem
from ccl.serialization.documents import Document, document
from ccl.topology import Topology
from gallery import open_cluster
from interchange.formats.catalogue import reader, readers, writer, writers
from interchange.formats.format import Request, Written
from tests.interchange.formats.strategies import documents, drawings, forested, planned

Survives = Callable[[Document, Document], bool]


@dataclass(frozen=True)
class Pair:
    """A format that is written and read.

    Parameters
    ----------
    survives
        Says whether what is said to survive does: before and after.
    content
        Documents that the format can say, where not any do.
    settings
        Answers to questions.
    again
        Part of a document that the second round trip leaves alone, where that is not all.
    """

    survives: Survives
    content: st.SearchStrategy[Document] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    again: Callable[[Document], object] = lambda content: content


def everything(before: Document, after: Document) -> bool:
    """All of it."""
    return after == before


def drawing(before: Document, after: Document) -> bool:
    """The topology and where it is drawn."""
    return (after.topology, after.positions) == (before.topology, before.positions)


def question(before: Document, after: Document) -> bool:
    """The drawing and what is asked of it."""
    return drawing(before, after) and after.problem == before.problem


def pairs_of_numbers(before: Document, after: Document) -> bool:
    """Which devices are joined, by number, GPUs first."""
    return len(after.topology.ranks) == len(before.topology.ranks) and (
        _joined(after.topology) == _joined(before.topology)
    )


def speeds(before: Document, after: Document) -> bool:
    """How many GPUs and other devices there are, and the speed of each link."""
    return _speeds(after.topology) == _speeds(before.topology)


def ranks(before: Document, after: Document) -> bool:
    """How many GPUs there are; where there is nothing else, which are joined."""
    if len(after.topology.ranks) != len(before.topology.ranks):
        return False
    alone = len(before.topology.ranks) == len(before.topology.devices)
    return not alone or _ends(after.topology) == _ends(before.topology)


def gpus_of_a_host(before: Document, after: Document) -> bool:
    """The GPUs of one host, at times with those that are said to be in none."""
    hosts = Counter(each.host for each in before.topology.devices if each.kind == "gpu")
    anywhere = hosts.pop(None, 0)
    counts = {*hosts.values(), *(each + anywhere for each in hosts.values()), anywhere}
    return len(after.topology.ranks) in counts


def trees(before: Document, after: Document) -> bool:
    """Root and weight of every tree, and whom it reaches."""
    return _trees(after) == _trees(before)


def bytes_between_gpus(before: Document, after: Document) -> bool:
    """Which part of all data goes from GPU to GPU."""
    return _shares(after) == _shares(before)


def but_for_the_name(before: Document, after: Document) -> bool:
    """The problem, but for the name of the cluster."""
    assert after.problem is not None
    topology = replace(after.topology, name=before.topology.name)
    return replace(after.problem, topology=topology) == before.problem


def boxes(before: Document, after: Document) -> bool:
    """How many GPUs each box has, and which are joined by how many cables."""
    return _boxes(after) == _boxes(before)


def _boxes(content: Document) -> tuple[dict[str, int], Counter[frozenset[str]]]:
    cabling, rank = cabling_of(content.topology), content.topology.rank
    gpus = {box: sum(name in rank for name in names) for box, names in cabling.boxes.items()}
    pairs = (frozenset((each.first.box, each.second.box)) for each in cabling.cables)
    return gpus, Counter(pair for pair in pairs if len(pair) == 2)


def _places(topology: Topology) -> dict[str, int]:
    """Number the devices, GPUs first."""
    others = [each.name for each in topology.devices if each.kind != "gpu"]
    return {name: place for place, name in enumerate([*topology.ranks, *others])}


def _joined(topology: Topology) -> set[frozenset[int]]:
    place = _places(topology)
    return {frozenset({place[link.src], place[link.dst]}) for link in topology.links}


def _ends(topology: Topology) -> set[tuple[int, int]]:
    return {(topology.rank[link.src], topology.rank[link.dst]) for link in topology.links}


def _speeds(topology: Topology) -> tuple[int, int, list[tuple[str, str]]]:
    speed = sorted((f"{each.bandwidth:.6g}", f"{each.alpha:.6g}") for each in topology.links)
    return len(topology.ranks), len(topology.devices), speed


def _trees(content: Document) -> list[tuple[object, ...]]:
    assert isinstance(content.plan, Forest)
    rank = content.topology.rank
    return sorted(
        (each.root, each.weight, [(rank[way[0]], rank[way[-1]]) for way in each.routes])
        for each in content.plan.trees
    )


def _shares(content: Document) -> dict[tuple[str, str], str]:
    assert isinstance(content.plan, Schedule)
    chunks = content.problem.collective.chunks
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    for send in content.plan.sends:
        found[send.src, send.dst] += chunks[send.chunk].size * send.fraction
    whole = sum(found.values())
    return {ends: f"{nbytes / whole:.6f}" for ends, nbytes in found.items()}


@st.composite
def named_clusters(draw: st.DrawFn) -> Document:
    topology = open_cluster(draw(st.sampled_from(["dgx-1v", "ndv2"])))
    make = draw(st.sampled_from([all_gather, all_to_all]))
    many = len(topology.ranks)
    size = draw(st.integers(1, 10**6)) * 1e3 * many
    return document(Problem(topology, make(many, size, chunks=draw(st.sampled_from([1, 2, 4])))))


PAIRS = {
    "astra-ns3": Pair(pairs_of_numbers),
    "astra-sim": Pair(speeds),
    "forestcoll": Pair(trees, forested()),
    "graphml": Pair(drawing),
    "link": Pair(question, drawings() | planned()),
    "msccl-tools": Pair(ranks, settings={"direction": "destination-major"}),
    "msccl-xml": Pair(bytes_between_gpus, again=_shares),
    "nccl": Pair(gpus_of_a_host),
    "netbox": Pair(boxes, again=_boxes),
    "node-link": Pair(drawing),
    "te-ccl-input": Pair(but_for_the_name, named_clusters()),
    "te-ccl-schedule": Pair(bytes_between_gpus, again=_shares),
    "topoloom": Pair(everything, drawings() | planned()),
}


def trip(name: str, content: Document) -> tuple[Written, Document]:
    """Write and read; the topology is known beside the file."""
    asked = Request(name="file", topology=content.topology, settings=PAIRS[name].settings)
    made = writer(name).write(content, make_options(writer(name).options, {}))
    first = next(iter(made.files.values()))
    assert reader(name).recognises(first)
    return made, reader(name).read(first, asked).document


def test_every_format_that_is_written_and_read_is_here():
    both = {each.name for each in readers()} & {each.name for each in writers()}

    assert set(PAIRS) == both


@pytest.mark.parametrize("name", sorted(PAIRS))
@pytest.mark.cover(3)
def test_what_is_written_is_read_again_or_said_to_be_lost(name):
    """A document that a format refuses is passed over, but not all of them."""
    pair = PAIRS[name]
    trips = []

    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(documents(writer(name).needs) if pair.content is None else pair.content)
    def run(content: Document) -> None:
        try:
            made, once = trip(name, content)
        except (FormatError, ProblemError):
            return
        trips.append(name)
        assert once == content or made.lost
        assert pair.survives(content, once), pair.survives.__doc__
        _, twice = trip(name, once)
        assert pair.again(twice) == pair.again(once)

    run()
    assert trips
