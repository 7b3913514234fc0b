"""Execution traces, read by a decoder of the wire format that knows nothing of the writer.

Wire format: a varint holds seven bits a byte, the lowest first; a field begins with the varint of
8 x number + kind, kind 0 is a varint, 2 a length with as many bytes. Field numbers are those of
mlcommons/chakra, schema/protobuf/et_def.proto.
"""

import json
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

import pytest
from hypothesis import given, settings

from ccl.collective import Collective, all_gather, all_to_all, custom
from ccl.errors import FormatError
from ccl.plans import Flow, Rate, Schedule, Send
from ccl.problem import Problem
from ccl.serialization.documents import Document, document
from ccl.simulate import simulate
from interchange.formats.catalogue import reader, writer
from interchange.formats.format import Request, Written
from interchange.formats.simulators.chakra import MOST_MESSAGES, Options
from tests.ccl.clusters import (
    line,
    line_all_gather,
    mesh,
    ring,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
    star,
    star_all_gather,
)
from tests.ccl.documents import solved
from tests.ccl.test_forest import sums_at_one, symmetric
from tests.interchange.formats.strategies import planned

SEND, RECEIVE, COLLECTIVE = 5, 6, 7


def varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def fields(content: bytes) -> list[tuple[int, int | bytes]]:
    """Return the fields of a message; anything but a varint or bytes would be a surprise."""
    found: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(content):
        key, at = varint(content, at)
        value: int | bytes
        value, at = varint(content, at)
        if key % 8 == 2:
            value, at = content[at : at + value], at + value
        else:
            assert key % 8 == 0
        found.append((key // 8, value))
    assert at == len(content)
    return found


def packed(value: int | bytes) -> list[int]:
    """Return repeated numbers, which proto3 packs into bytes."""
    if isinstance(value, int):
        return [value]
    numbers, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        numbers.append(number)
    return numbers


@dataclass
class Node:
    id: int = 0
    name: str = ""
    type: int = 0
    deps: list[int] = field(default_factory=list)
    attributes: dict[str, int | str] = field(default_factory=dict)

    @property
    def chunk(self) -> int:
        return int(self.name.split()[2])

    def number(self, name: str) -> int:
        return int(self.attributes[name])


NUMBERS = {7: "int32", 9: "int64", 27: "bool"}


def attribute(content: bytes) -> tuple[str, int | str]:
    (first, name), (kind, value) = fields(content)
    assert first == 1
    assert isinstance(name, bytes)
    if isinstance(value, bytes):
        assert kind == 29
        return name.decode(), value.decode()
    wanted = {"is_cpu_op": 27, "comm_size": 9, "comm_type": 9}.get(name.decode(), 7)
    assert kind == wanted  # what feeders look for: bool_val, int64_val, int32_val
    return name.decode(), value


def node(content: bytes) -> Node:
    made = Node()
    for number, value in fields(content):
        if isinstance(value, int):
            made.id, made.type = (value, made.type) if number == 1 else (made.id, value)
            assert number in (1, 3)
        elif number == 2:
            made.name = value.decode()
        elif number == 10:
            name, told = attribute(value)
            made.attributes[name] = told
        else:
            assert number == 5  # data_deps
            made.deps += packed(value)
    return made


def trace(content: bytes) -> tuple[dict[str, str], list[Node]]:
    """Return what the first message says, and the nodes."""
    messages, at = [], 0
    while at < len(content):
        length, at = varint(content, at)
        messages.append(content[at : at + length])
        at += length
    assert at == len(content)
    head = dict[str, str]()
    for number, value in fields(messages[0]):
        assert isinstance(value, bytes)
        if number == 1:
            head["version"] = value.decode()
        else:
            name, told = attribute(value)
            head[name] = str(told)
    return head, [node(each) for each in messages[1:]]


def traces(written: Written, ranks: int) -> list[list[Node]]:
    return [trace(written.files[f"plan.{rank}.et"])[1] for rank in range(ranks)]


def write(content: Document, **options: int) -> Written:
    return writer("chakra").write(content, Options(**options))


def check(problem: Problem, nodes: list[list[Node]], *, parts: int = 1) -> list[Node]:
    """Do what the traces say, and compare it with the collective; return the sends.

    Nodes that wait for nothing left are done, whichever come first, until all are. What a message
    carries is what its sender holds by the receipts that it waits for, and by nothing else. Each
    copy of a chunk in parts must reach all destinations, and every contribution must be in it once.
    """
    every = [each for trace in nodes for each in trace]
    assert len({each.id for each in every}) == len(every)
    sends = {each.number("comm_tag"): each for each in every if each.type == SEND}
    receives = {each.number("comm_tag"): each for each in every if each.type == RECEIVE}
    assert len(sends) + len(receives) == len(every)
    assert sends.keys() == receives.keys()
    for rank, own in enumerate(nodes):
        for each in own:
            end = "comm_src" if each.type == SEND else "comm_dst"
            assert each.number(end) == rank
    for tag, each in sends.items():
        other = receives[tag]
        for name in ("comm_src", "comm_dst", "comm_size", "is_cpu_op"):
            assert each.attributes[name] == other.attributes[name]
        assert (each.chunk, each.number("is_cpu_op"), other.deps) == (other.chunk, 0, [])
    contents = run(problem.collective, nodes, sends)
    arrived(problem.collective, sends, contents, parts=parts)
    return list(sends.values())


def run(
    collective: Collective, nodes: list[list[Node]], sends: dict[int, Node]
) -> dict[int, frozenset[int]]:
    """Return for each tag the contributions that its message carries."""
    contents: dict[int, frozenset[int]] = {}
    waiting = {each.id: rank for rank, own in enumerate(nodes) for each in own}
    local = [{each.id: each for each in own} for own in nodes]
    moved = True
    while moved:
        moved = False
        for number, rank in list(waiting.items()):
            each = local[rank][number]
            assert all(dep in local[rank] for dep in each.deps)
            tag = each.number("comm_tag")
            if any(dep in waiting for dep in each.deps):
                continue
            if each.type == RECEIVE and tag not in contents:
                continue
            if each.type == SEND:
                chunk = collective.chunks[each.chunk]
                held = [frozenset({rank})] if rank in chunk.holders else []
                for dep in each.deps:
                    came = local[rank][dep]
                    assert (came.type, came.chunk) == (RECEIVE, each.chunk)
                    held.append(contents[came.number("comm_tag")])
                assert held  # it has what it sends
                contents[tag] = frozenset().union(*held)
                if chunk.reduced:  # what is part of another sum is replaced by it
                    sums = [own for own in held if not any(own < other for other in held)]
                    assert sum(map(len, sums)) == len(contents[tag])  # nothing is in it twice
            del waiting[number]
            moved = True
    assert not waiting
    return contents


def arrived(
    collective: Collective,
    sends: dict[int, Node],
    contents: dict[int, frozenset[int]],
    *,
    parts: int,
) -> None:
    """Refuse a destination that has not all bytes of a chunk, or not all contributions."""
    for number, chunk in enumerate(collective.chunks):
        for rank in chunk.destinations:
            own = frozenset({rank}) if rank in chunk.holders else frozenset()
            if own and not chunk.reduced:
                continue
            came = [
                (contents[tag], each.number("comm_size"))
                for tag, each in sends.items()
                if each.chunk == number and each.number("comm_dst") == rank
            ]
            if not chunk.reduced:
                assert sum(size for _, size in came) >= chunk.size - len(came) / 2
            elif parts == 1:
                assert own.union(*(each for each, _ in came)) == frozenset(chunk.holders)


@settings(max_examples=60, deadline=None)
@given(planned())
def test_traces_of_random_plans_move_what_the_collective_wants(content):
    assert content.problem is not None
    ranks = len(content.problem.topology.ranks)

    check(content.problem, traces(write(content), ranks))


@pytest.mark.parametrize("made", [ring_all_gather, ring_reduce_scatter, ring_all_reduce])
def test_traces_of_rings(made):
    """A ring of 5 does 4 rounds of 5 messages, an all-reduce 8."""
    problem, plan = made(ring(5))
    sends = check(problem, traces(write(document(problem, plan=plan)), 5))

    assert len(sends) == (40 if made is ring_all_reduce else 20)
    assert {each.number("comm_size") for each in sends} == {1_000_000}
    first = [each for each in sends if not each.deps]
    assert len(first) == 5


def test_a_round_of_a_ring_waits_for_the_one_before():
    """In an all-gather GPU r sends chunk r at once, and each other when it has come."""
    problem, plan = ring_all_gather(ring(4))
    own = traces(write(document(problem, plan=plan)), 4)[1]
    receipts = {each.id: each.chunk for each in own if each.type == RECEIVE}
    waits = {each.chunk: [receipts[dep] for dep in each.deps] for each in own if each.type == SEND}

    assert waits == {1: [], 0: [0], 3: [3]}


def test_a_switch_is_passed_and_its_copies_are_messages():
    """4 GPUs send up once each; the switch makes 3 copies of each."""
    problem, plan = star_all_gather(star(4, copies=True))
    written = write(document(problem, plan=plan))
    sends = check(problem, traces(written, 4))

    assert len(sends) == 12
    assert {each.number("comm_src") for each in sends} == {0, 1, 2, 3}
    assert "copies and sums made in switches: each copy is a message of its own" in written.lost


def test_the_head_names_the_version_and_what_it_is():
    head, _ = trace(write(solved()).files["plan.0.et"])

    assert head == {"version": "0.0.4", "topology": "ring", "collective": "all-gather"}


def test_a_rank_without_messages_has_a_trace():
    chunk = all_gather(2, 2e6).chunks[0]
    problem = Problem(mesh(3), custom(3, [chunk]))
    written = write(document(problem, plan=Schedule((Send(0, 0, "g0", "g1"),), 1e3, 1)))

    assert [len(each) for each in traces(written, 3)] == [1, 1, 0]
    assert "system.json" not in written.files


def test_a_forest_is_cut_into_parts_as_in_its_replay():
    """The all-reduce at one root: up 3 edges and down 3, as often as there are parts."""
    problem, forest = sums_at_one(4)
    content = document(problem, plan=forest)
    sends = check(problem, traces(write(content, parts=3), 4), parts=3)
    ways = len(check(problem, traces(write(content, parts=1), 4)))

    assert len(sends) == 3 * ways
    assert sum(each.number("comm_size") for each in sends) == pytest.approx(
        2 * 3 * problem.collective.size, rel=1e-5
    )


def test_images_of_a_symmetric_forest_are_written_out():
    """Each of 16 roots reaches 15 others along the image of one tree."""
    problem, forest = symmetric("torus:shape=4x4")
    written = write(document(problem, plan=forest), parts=1)
    sends = check(problem, traces(written, 16))

    assert len(sends) == 16 * 15
    assert {each.number("comm_src") for each in sends} == set(range(16))
    assert b"topology: [ Ring, Ring ]" in written.files["network.yml"]


def test_a_flow_takes_its_paths():
    """Of the chunk from g0 to g2 of a mesh of 3, a quarter goes by g1."""
    problem = Problem(
        mesh(3), custom(3, [replace(all_gather(2, 2e6).chunks[0], destinations=(2,))])
    )
    rates = (Rate(0, "g0", "g2", 0.75), Rate(0, "g0", "g1", 0.25), Rate(0, "g1", "g2", 0.25))
    sends = check(problem, traces(write(document(problem, plan=Flow(rates)), parts=2), 3), parts=2)
    told = sorted(
        (each.number("comm_src"), each.number("comm_dst"), each.number("comm_size"))
        for each in sends
    )

    assert told == sorted(2 * [(0, 1, 125_000), (0, 2, 375_000), (1, 2, 125_000)])


def test_a_fraction_of_a_byte_is_rounded_and_told():
    """3 shards of 100 bytes are 33 1/3 each; 6 messages of a mesh."""
    problem = Problem(mesh(3), all_to_all(3, 100.0))
    sends = tuple(
        Send(0, number, f"g{chunk.holders[0]}", f"g{chunk.destinations[0]}")
        for number, chunk in enumerate(problem.collective.chunks)
    )
    written = write(document(problem, plan=Schedule(sends, 1.0, 1)))

    assert {each.number("comm_size") for own in traces(written, 3) for each in own} == {33}
    assert "fractions of a byte: 6 messages of a rounded size" in written.lost


def test_the_network_and_a_workload_are_beside_it():
    """A mesh is a product; all-gather is collective 2 and its size the whole buffer."""
    problem = Problem(mesh(3), all_gather(3, 3e6))
    sends = tuple(
        Send(0, number, f"g{number}", f"g{other}")
        for number in range(3)
        for other in range(3)
        if other != number
    )
    files = write(document(problem, plan=Schedule(sends, 20.0, 1))).files
    _, (only,) = trace(files["workload.2.et"])

    assert json.loads(files["system.json"])["all-gather-implementation-custom"] == ["plan"]
    assert (only.type, only.attributes) == (
        COLLECTIVE,
        {"is_cpu_op": 0, "comm_type": 2, "comm_size": 3_000_000},
    )
    network = reader("astra-sim").read(files["network.yml"], Request()).document.topology
    assert set(network.links) == set(problem.topology.links)


def test_what_is_no_product_comes_with_the_network_for_ns3():
    files = write(solved()).files

    assert files["network.txt"].startswith(b"4 0 4\n\n0 1 400Gbps 0ms 0\n")
    assert json.loads(files["logical.json"]) == {"logical-dims": ["4"]}


def test_too_many_messages_are_refused():
    problem, forest = sums_at_one(4)
    content = document(problem, plan=forest)
    many = len(check(problem, traces(write(content, parts=1), 4)))

    with pytest.raises(FormatError, match="messages; at most 500,000 are written"):
        write(content, parts=MOST_MESSAGES // many + 1)


def simulated(problem: Problem, nodes: list[list[Node]]) -> float:
    """Return the µs that the traces take where each link serves one message at a time.

    Of the messages that wait for a link the lowest node goes first; links join GPUs directly.
    """
    ranks, waits = problem.topology.ranks, {n.id: set(n.deps) for own in nodes for n in own}
    free: dict[tuple[int, int], float] = {}
    arrivals: list[tuple[float, int, int]] = []  # time, tag, rank
    ready = sorted((n.id, rank) for rank, own in enumerate(nodes) for n in own if n.type == SEND)
    by_id = {n.id: n for own in nodes for n in own}
    receipts = {n.number("comm_tag"): n.id for n in by_id.values() if n.type == RECEIVE}
    now = end = 0.0
    while ready or arrivals:
        for number, rank in list(ready):
            each = by_id[number]
            ends = rank, each.number("comm_dst")
            if not waits[number] and free.get(ends, 0.0) <= now + 1e-9:
                link = problem.topology.link(*(ranks[place] for place in ends))
                free[ends] = now + each.number("comm_size") * link.beta
                heappush(arrivals, (free[ends] + link.alpha, each.number("comm_tag"), ends[1]))
                ready.remove((number, rank))
        later = [time for time in free.values() if time > now + 1e-9]
        now = min([*later, *(time for time, _, _ in arrivals[:1])])
        while arrivals and arrivals[0][0] <= now + 1e-9:
            end, tag, rank = heappop(arrivals)
            for each in nodes[rank]:
                waits[each.id].discard(receipts[tag])
    return end


@pytest.mark.parametrize("alpha", [0.0, 3.0, 50.0])
@pytest.mark.parametrize(
    ("made", "topology"),
    [
        (ring_all_gather, ring(6, alpha=1.0)),
        (ring_reduce_scatter, ring(5, alpha=1.0)),
        (ring_all_reduce, ring(5, alpha=1.0)),
        (line_all_gather, line(5, alpha=1.0)),
    ],
)
def test_traces_take_as_long_as_the_replay(made, topology, alpha):
    """A send waits for what it needs and for its link, in the trace as in the replay."""
    links = tuple(replace(link, alpha=alpha) for link in topology.links)
    slow = replace(topology, links=links)
    problem, plan = made(slow, epoch_duration=20.0 + alpha)
    nodes = traces(write(document(problem, plan=plan)), len(slow.ranks))

    assert simulated(problem, nodes) == pytest.approx(simulate(problem, plan).makespan)


def test_parts_of_a_forest_take_about_as_long_as_the_replay():
    """Up to GPU 0 of a mesh of 4 and down again, in 8 parts."""
    problem, forest = sums_at_one(4)
    nodes = traces(write(document(problem, plan=forest), parts=8), 4)
    replayed = simulate(problem, forest, chunks=8).makespan

    assert simulated(problem, nodes) == pytest.approx(replayed, rel=0.05)
