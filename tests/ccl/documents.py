"""Random topologies, problems, plans and results, for tests of what is written and read."""

from __future__ import annotations

from fractions import Fraction
from typing import get_args

from hypothesis import strategies as st

from ccl.bound import Bound, BoundKind, Cut, Path
from ccl.collective import Chunk, Collective, all_gather, custom, make_collective
from ccl.plans import Flow, Forest, Rate, Schedule, Send, Tree
from ccl.problem import Problem, Window
from ccl.result import ModelSize, Plan, Result, Stop, conclude
from ccl.serialization.documents import Document, document
from ccl.serialization.wire import Annotation
from ccl.simulate import simulate
from ccl.topology import Link, SharedLimit, Topology, device
from tests.ccl.clusters import ring, ring_all_gather

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(str.strip)
AMOUNTS = st.floats(min_value=1e-6, max_value=1e12)
SHARES = st.floats(min_value=1e-6, max_value=1.0)
PLACES = st.floats(allow_nan=False, allow_infinity=False)
SIDES = st.floats(0, 1e6)
NAMED = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all", "broadcast", "gather")


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """A ring of GPUs, so that all reach all, with anything else hung on it."""
    names = draw(st.lists(NAMES, min_size=2, max_size=6, unique=True))
    count = draw(st.integers(2, len(names)))
    kinds = ["gpu"] * count + [
        draw(st.sampled_from(["switch", "memory", "nic"])) for _ in names[count:]
    ]
    devices = tuple(
        device(
            kind,
            name,
            host=draw(st.none() | NAMES),
            copies=draw(st.booleans()),
            reduces=draw(st.booleans()),
            buffer_bytes=draw(st.none() | AMOUNTS),
        )
        for kind, name in zip(kinds, names, strict=True)
    )
    ends = [(names[r], names[(r + 1) % count]) for r in range(count)]
    more = st.tuples(st.sampled_from(names), st.sampled_from(names)).filter(lambda e: e[0] != e[1])
    ends = list(dict.fromkeys(ends + draw(st.lists(more, max_size=6))))
    links = tuple(
        Link(src, dst, draw(AMOUNTS), draw(AMOUNTS), draw(st.just("") | NAMES), draw(COUNTS))
        for src, dst in ends
    )
    covered = draw(st.lists(st.sampled_from(ends), max_size=3, unique=True))
    limits = (SharedLimit(draw(NAMES), tuple(covered), draw(AMOUNTS)),) if covered else ()
    return Topology(draw(NAMES), devices, links, limits)


COUNTS = st.integers(1, 8)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Any collective by name, or any demand."""
    topology = draw(topologies())
    ends = st.sampled_from([link.ends for link in topology.links])
    links = st.lists(ends, min_size=1, unique=True).map(tuple)
    share = st.floats(min_value=0.0, max_value=1.0)
    times = st.builds(
        lambda links, begin, length, share: Window(links, begin, begin + length, share),
        *(links, st.floats(0.0, 1e6), st.floats(1.0, 1e6), share),
    )
    windows = tuple(draw(st.lists(times, max_size=2)))
    return Problem(topology, draw(collectives(len(topology.ranks))), windows)


@st.composite
def collectives(draw: st.DrawFn, ranks: int) -> Collective:
    """One of those that a name makes, or some chunks."""
    if draw(st.booleans()):
        kind, root = draw(st.sampled_from(NAMED)), draw(st.integers(0, ranks - 1))
        return make_collective(kind, ranks, draw(AMOUNTS), chunks=draw(COUNTS), root=root)
    some = st.lists(st.integers(0, ranks - 1), min_size=1, unique=True).map(tuple)
    chunks = st.builds(
        Chunk, AMOUNTS, some, some, st.booleans(), st.just(1.0) | AMOUNTS, st.just("") | NAMES
    )
    return custom(ranks, draw(st.lists(chunks, min_size=1, max_size=4)))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any plan at all; whether it answers a problem is another question."""
    route = st.lists(NAMES, min_size=2, max_size=4).map(tuple)
    weight = st.fractions(min_value=Fraction(1, 1000), max_value=1)
    whole = st.integers(0, 30)
    sends = st.builds(
        lambda epoch, chunk, way, share: Send(epoch, chunk, way[0], way[-1], way[1:-1], share),
        *(whole, whole, route, SHARES),
    )
    schedules = st.builds(Schedule, st.lists(sends, max_size=5).map(tuple), AMOUNTS, st.just(31))
    trees = st.builds(Tree, whole, st.lists(route, max_size=3).map(tuple), weight)
    listed = st.lists(trees, max_size=3).map(tuple)
    forests = st.builds(Forest, listed, st.booleans(), listed)
    rates = st.builds(Rate, whole, NAMES, NAMES, SHARES)
    flows = st.builds(Flow, st.lists(rates, max_size=5).map(tuple))
    return draw(st.one_of(schedules, forests, flows))


@st.composite
def results(draw: st.DrawFn) -> Result:
    """A ring's all-gather with bounds of all sorts, none above the makespan."""
    bandwidth = draw(st.floats(min_value=1.0, max_value=1000.0))
    count = draw(st.integers(2, 5))
    problem, plan = ring_all_gather(
        ring(count, bandwidth=bandwidth), epoch_duration=1e3 / bandwidth * (1 + 1e-9)
    )
    names = problem.topology.ranks
    witnesses = st.sampled_from([None, Cut(names[:1], (names[:2],), bandwidth), Path(names[:2])])
    kinds = st.sampled_from(get_args(BoundKind))
    makespan = simulate(problem, plan).makespan
    times = SHARES.map(lambda share: share * makespan)
    bounds = st.builds(Bound, times, kinds, witnesses, NAMES, st.booleans(), st.booleans())
    sizes = st.builds(ModelSize, COUNTS, COUNTS, COUNTS)
    return conclude(
        problem,
        plan,
        bounds=draw(st.lists(bounds, min_size=1, max_size=3).map(tuple)),
        stop=draw(st.sampled_from(Stop)),
        formulation=draw(NAMES),
        options=draw(st.dictionaries(NAMES, st.none() | COUNTS | SHARES | st.booleans() | NAMES)),
        solve_time=draw(SHARES),
        log=draw(st.lists(NAMES, max_size=2).map(tuple)),
        size=draw(st.none() | sizes),
    )


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """A document of any kind, drawn or not."""
    content = draw(st.one_of(topologies(), problems(), results()))
    plan = draw(st.none() | plans()) if isinstance(content, Problem) else None
    topology = content if isinstance(content, Topology) else None
    if not isinstance(content, Topology):
        topology = content.topology if isinstance(content, Problem) else content.problem.topology
    assert topology is not None
    names = [each.name for each in topology.devices]
    places = st.dictionaries(st.sampled_from(names), st.tuples(PLACES, PLACES))
    notes = st.builds(
        Annotation,
        kind=st.sampled_from(["note", "frame"]),
        text=NAMES,
        x=PLACES,
        y=PLACES,
        width=SIDES,
        height=SIDES,
    )
    annotations = draw(st.lists(notes, max_size=2))
    return document(content, plan=plan, positions=draw(places), annotations=annotations)


def solved(count: int = 4) -> Document:
    """A result that is always the same: an all-gather on a one-way ring, 20 µs an epoch."""
    problem, plan = ring_all_gather(ring(count, alpha=0.0))
    assert problem.collective == all_gather(count, count * 1e6)
    bound = Bound(10.0, "cut", Cut(("g0",), (("g0", "g1"),), 50.0), "by hand")
    result = conclude(
        problem,
        plan,
        bounds=(bound,),
        stop=Stop.CONSTRUCTED,
        formulation="by-hand",
        options={},
        solve_time=0.0,
    )
    return document(result, positions={"g0": (0.0, 0.0), "g1": (100.0, 0.0)})
