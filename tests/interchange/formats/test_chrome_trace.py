"""Traces for Perfetto and chrome://tracing, by the rules of the Trace Event Format."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings

from ccl.collective import Chunk, all_gather, custom
from ccl.errors import FormatError
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.serialization.documents import Document, document
from ccl.simulate import simulate
from ccl.timeline import Timeline, Transfer
from ccl.topology import Topology, device, duplex
from interchange.formats.catalogue import writer
from interchange.formats.simulators.chrome_trace import MOST_WITH_ARROWS, Options, chrome_trace
from tests.ccl.clusters import (
    line,
    line_all_gather,
    mesh,
    ring,
    ring_all_gather,
    ring_all_reduce,
    star,
)
from tests.ccl.documents import solved
from tests.ccl.test_forest import sums_at_one, symmetric
from tests.interchange.formats.strategies import planned

Event = dict[str, Any]


def events(text: str, kinds: str) -> list[Event]:
    return [each for each in json.loads(text)["traceEvents"] if each["ph"] in kinds]


def threads(text: str) -> dict[tuple[int, int], list[Event]]:
    found: defaultdict[tuple[int, int], list[Event]] = defaultdict(list)
    for each in events(text, "X"):
        found[each["pid"], each["tid"]].append(each)
    return found


def ns(us: float) -> int:
    return round(us * 1000)


def check(text: str) -> dict[int, list[Event]]:
    """Refuse what viewers would show wrong; return the slices along each arrow.

    Slices of a thread do not overlap. Each flow begins once, ends once, goes on in between, in the
    order of time and of the file, and each of its events lies at the beginning of the one slice of
    its thread that is open then and stands before it in the file. All that has a place is named.
    """
    listed = json.loads(text)["traceEvents"]
    open_slices: dict[tuple[int, int], Event] = {}
    flows: defaultdict[int, list[tuple[str, Event]]] = defaultdict(list)
    last = 0.0
    named = set()
    for each in listed:
        place = each["pid"], each.get("tid")
        if each["ph"] == "M":
            if each["name"] == "thread_name":
                named.add(place)
        elif each["ph"] == "X":
            before = open_slices.get(place)
            if before is not None:
                assert ns(before["ts"]) + ns(before["dur"]) <= ns(each["ts"])
            assert place in named
            open_slices[place] = each
            assert last <= each["ts"]
            last = each["ts"]
        elif each["ph"] in "stf":
            under = open_slices[place]
            assert each["ts"] == under["ts"]
            assert under["dur"] > 0
            assert each["name"] == under["name"]
            assert each.get("bp") == (None if each["ph"] == "s" else "e")
            flows[each["id"]].append((each["ph"], under))
        else:
            assert each["ph"] == "C"
    for way in flows.values():
        kinds = "".join(kind for kind, _ in way)
        assert kinds == "s" + "t" * (len(way) - 2) + "f"
        for (_, one), (_, two) in pairwise(way):
            assert one["args"]["dst"] == process(listed, two)
            assert one["ts"] <= two["ts"]
    return {number: [under for _, under in way] for number, way in flows.items()}


def process(listed: list[Event], event: Event) -> str:
    return next(
        each["args"]["name"]
        for each in listed
        if each["name"] == "process_name" and each["pid"] == event["pid"]
    )


def ways(text: str) -> list[list[tuple[str, str]]]:
    """Return the ends of the links along each arrow."""
    listed = json.loads(text)["traceEvents"]
    return [
        [(process(listed, each), each["args"]["dst"]) for each in way]
        for way in check(text).values()
    ]


def counters(text: str, name: str) -> Iterator[tuple[float, float]]:
    for each in events(text, "C"):
        if each["name"] == name:
            (value,) = each["args"].values()
            yield each["ts"], value


def test_slices_of_a_thread_never_overlap():
    """With a latency of 50 µs, chunks sent every 20 µs are under way together."""
    problem, _ = line_all_gather(line(5, alpha=50.0))
    sends = tuple(
        Send(chunk * 30 + abs(g - chunk) * 10, chunk, f"g{g}", f"g{g + step}")
        for chunk in range(5)
        for step in (1, -1)
        for g in range(chunk, 4 if step == 1 else 0, step)
    )
    problem = Problem(problem.topology, all_gather(5, 5e6))
    text = chrome_trace(problem, simulate(problem, Schedule(sends, 4.0, 200)))
    check(text)

    assert sum(map(len, threads(text).values())) == len(sends)
    assert len(threads(text)) > len(problem.topology.links)


def test_a_link_with_two_crossings_under_way_has_two_threads():
    """Two chunks follow each other at once over 100 µs of latency."""
    problem = Problem(ring(2, alpha=100.0), all_gather(2, 4e6, chunks=2))
    sends = tuple(Send(0, chunk, f"g{chunk // 2}", f"g{1 - chunk // 2}") for chunk in range(4))
    text = chrome_trace(problem, simulate(problem, Schedule(sends, 200.0, 1)))
    names = [
        (each["pid"], each["args"]["name"])
        for each in events(text, "M")
        if each["name"] == "thread_name"
    ]

    assert names == [(0, "g0 → g1"), (0, "g0 → g1 (2)"), (1, "g1 → g0"), (1, "g1 → g0 (2)")]


def test_the_trace_says_when_and_where_in_us():
    full = solved()
    assert full.problem is not None
    assert full.result is not None
    trace = json.loads(chrome_trace(full.problem, full.result.timeline))
    first = next(event for event in trace["traceEvents"] if event["ph"] == "X")
    processes = {
        event["pid"]: event["args"]["name"]
        for event in trace["traceEvents"]
        if event["name"] == "process_name"
    }

    assert processes == {0: "g0", 1: "g1", 2: "g2", 3: "g3", 4: "All links"}
    assert (first["ts"], first["dur"], first["pid"]) == (0.0, 20.0, 0)
    assert first["args"] == {"dst": "g1", "bytes": 1e6, "sent_us": 20.0, "epoch": 0}
    assert trace["otherData"]["makespan_us"] == pytest.approx(60.0)


def test_an_arrow_follows_each_chunk_round_a_ring():
    """Chunk c of 5 crosses the 4 links from GPU c on, one arrow all the way."""
    problem, plan = ring_all_gather(ring(5))
    text = chrome_trace(problem, simulate(problem, plan))

    assert sorted(ways(text)) == sorted(
        [(f"g{(c + k) % 5}", f"g{(c + k + 1) % 5}") for k in range(4)] for c in range(5)
    )


def test_an_arrow_follows_each_sum_and_what_becomes_of_it():
    """An all-reduce takes each chunk round a ring of 4 twice but for 2 links: 6 links."""
    problem, plan = ring_all_reduce(ring(4))
    text = chrome_trace(problem, simulate(problem, plan))

    assert sorted(map(len, ways(text))) == [6] * 4


def test_arrows_part_where_a_chunk_is_copied():
    """g0 to g1, and from there to g2, g3: one arrow goes on, another begins at the first slice."""
    chunk = Chunk(1e6, (0,), (1, 2, 3))
    problem = Problem(mesh(4), custom(4, [chunk]))
    sends = (Send(0, 0, "g0", "g1"), Send(1, 0, "g1", "g2"), Send(1, 0, "g1", "g3"))
    text = chrome_trace(problem, simulate(problem, Schedule(sends, 20.0, 2)))

    assert sorted(ways(text)) == [[("g0", "g1"), ("g1", "g2")], [("g0", "g1"), ("g1", "g3")]]


def test_arrows_go_through_a_switch_that_copies_at_once():
    """One transmission of g0 through the switch to three others, cut through after 1 µs."""
    chunk = Chunk(1e6, (0,), (1, 2, 3))
    problem = Problem(star(4, alpha=1.0, copies=True), custom(4, [chunk]))
    sends = tuple(Send(0, 0, "g0", f"g{rank}", ("s",)) for rank in (1, 2, 3))
    text = chrome_trace(problem, simulate(problem, Schedule(sends, 30.0, 1)))

    assert len(events(text, "X")) == 4
    assert sorted(ways(text)) == [[("g0", "s"), ("s", f"g{rank}")] for rank in (1, 2, 3)]


def test_arrows_of_parts_end_where_they_must():
    """Up to GPU 0 of 4 and down again, in parts: as many arrows as down-going parts at least."""
    problem, forest = sums_at_one(4)
    timeline = simulate(problem, forest, chunks=4)
    found = check(chrome_trace(problem, timeline))
    reached = {id_ for way in found.values() for id_ in map(id, way)}

    assert len(reached) == len(timeline.transfers)


@settings(max_examples=60, deadline=None)
@given(planned())
def test_traces_of_random_plans_keep_the_rules(content):
    """Each transfer that is no first one of its chunk is where an arrow goes on or ends."""
    assert content.problem is not None
    assert content.plan is not None
    timeline = simulate(content.problem, content.plan)
    text = chrome_trace(content.problem, timeline)
    found = check(text)
    heads = {id(each) for way in found.values() for each in way[1:]}
    ranks = content.problem.topology.ranks
    chunks = content.problem.collective.chunks
    shown = [each for each in timeline.transfers if ns(each.end) > ns(each.start)]
    origins = [
        each
        for each in shown
        if each.src in {ranks[holder] for holder in chunks[each.chunk].holders}
    ]

    assert len(heads) >= len(shown) - len(origins) or len(shown) < len(timeline.transfers)


def test_the_share_of_busy_links_is_counted():
    """On a ring of 4 all links send for three rounds of 20 µs; then none."""
    problem, plan = ring_all_gather(ring(4))
    curve = list(counters(chrome_trace(problem, simulate(problem, plan)), "links busy"))

    assert curve[0] == (0.0, 1.0)
    assert curve[-1] == (60.0, 0.0)
    assert {value for _, value in curve[:-1]} == {1.0}


def test_a_symmetric_plan_is_counted_on_all_links():
    """On a torus all 16 roots send alike: the share is that of the whole cluster, at most 1."""
    problem, forest = symmetric("torus:shape=4x4")
    timeline = simulate(problem, forest, chunks=2)
    text = chrome_trace(problem, timeline)
    curve = list(counters(text, "links busy"))
    area = sum(value * (then - now) for (now, value), (then, _) in pairwise(curve))
    busy = sum(timeline.link_busy.values()) / len(problem.topology.links)

    check(text)
    assert area == pytest.approx(busy, rel=1e-4)
    assert max(value for _, value in curve) <= 1


def limited() -> Document:
    """g0 sends two chunks of 1 MB to g1, which passes each on and keeps none."""
    gpus = [device("gpu", f"g{rank}") for rank in range(3)]
    gpus[1] = replace(gpus[1], buffer_bytes=1e6)
    links = (*duplex("g0", "g1", bandwidth=50.0), *duplex("g1", "g2", bandwidth=50.0))
    problem = Problem(Topology("line", tuple(gpus), links), custom(3, [Chunk(1e6, (0,), (2,))] * 2))
    sends = tuple(Send(2 * c + k, c, f"g{k}", f"g{k + 1}") for c in range(2) for k in range(2))
    return document(problem, plan=Schedule(sends, 20.0, 4))


def test_the_bytes_in_a_limited_buffer_are_counted():
    """A chunk comes after 20 µs and leaves at once; the next comes at 60 µs. 0 in between."""
    text = writer("chrome-trace").write(limited(), Options()).content.decode()

    assert list(counters(text, "buffer")) == [(20.0, 0.0), (60.0, 0.0)]


def test_what_waits_in_a_limited_buffer_is_counted():
    """The first chunk waits for an epoch: 1 MB from 20 to 40 µs."""
    content = limited()
    assert content.problem is not None
    timeline = Timeline(
        (
            Transfer(0, "g0", "g1", 0.0, 20.0, 20.0, 1e6),
            Transfer(0, "g1", "g2", 40.0, 60.0, 60.0, 1e6),
        ),
        60.0,
    )

    assert list(counters(chrome_trace(content.problem, timeline), "buffer")) == [
        (20.0, 1e6),
        (40.0, 0.0),
    ]


def test_arrows_and_counters_may_be_left_out():
    problem, plan = ring_all_gather(ring(4))
    timeline = simulate(problem, plan)
    plain = chrome_trace(problem, timeline, Options(arrows=False, counters=False))

    assert {each["ph"] for each in json.loads(plain)["traceEvents"]} == {"M", "X"}


def test_a_large_plan_stays_readable():
    """640 chunks cross 63 links each of a line of 64: 40,320 transfers, 600 bytes for each.

    Of each GPU's 10 chunks two arrows go out, but one of those at the ends, and one of their
    neighbours', whose way to the end is one link: 10 x (2 x 64 - 2 - 2).
    """
    problem = Problem(line(64), all_gather(64, 64e6, chunks=10))
    ends = [
        (chunk, f"g{g}", f"g{g + step}")
        for chunk in range(640)
        for step in (1, -1)
        for g in range(chunk // 10, 63 if step == 1 else 0, step)
    ]
    transfers = tuple(
        Transfer(*each, 20.0 * place, 20.0 * place + 20, 20.0 * place + 20, 1e5)
        for place, each in enumerate(ends)
    )
    # Each crossing but the first of a direction takes on what the one before it brought.
    after = tuple(
        () if src == f"g{chunk // 10}" else (place - 1,)
        for place, (chunk, src, _) in enumerate(ends)
    )
    text = chrome_trace(problem, Timeline(transfers, 20.0 * len(ends), after=after))
    kinds = Counter(each["ph"] for each in json.loads(text)["traceEvents"])

    assert len(ends) == kinds["X"] == 40_320 < MOST_WITH_ARROWS
    assert len(text) < 600 * len(ends)
    assert kinds["C"] <= 2000
    assert kinds["s"] == kinds["f"] == 1240


def test_what_has_no_plan_is_refused():
    with pytest.raises(FormatError, match="has no plan"):
        writer("chrome-trace").write(document(ring(3)), Options())
