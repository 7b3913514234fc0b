"""Random small clusters and plans for the tests of formats, one strategy for all of them.

`clusters` draws topologies, `drawings` topology documents with positions, `planned` documents with
a schedule that is valid, `forested` ones with a forest, `solved` results, `documents` whatever a
writer needs. What they draw is odd on purpose: names with quotes, commas and signs of XML, one-way
links, shared limits, hosts left out.
"""

from __future__ import annotations

import random
import string
from fractions import Fraction

from hypothesis import strategies as st

from ccl.bound import Bound
from ccl.collective import CollectiveKind, make_collective
from ccl.plans import Forest, Tree
from ccl.problem import Problem
from ccl.result import Stop, conclude
from ccl.serialization.documents import Document, Kind, document
from ccl.topology import DeviceKind, Link, SharedLimit, Topology, device
from interchange.formats.own.fragment import Solving
from tests.ccl.planner import Planner, spread

MB = 1e6
SCHEDULED: tuple[CollectiveKind, ...] = (
    "all-gather",
    "reduce-scatter",
    "all-reduce",
    "all-to-all",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
)
ODD_NAMES = (
    'two "quotes"',
    "it's",
    "a, b; c",
    "<x> & y",
    "]]>",
    "back\\slash",
    "line\nbreak\ttab",
    " spaces ",
    "äöü→∅",
    "名前",
    "0",
    "-1",
    "true",
    "NaN",
    "#hash",
    "{brace}",
)

PLAIN = st.integers(0, 99).map(lambda number: f"d{number}")
TYPED = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), min_size=1, max_size=6)
NAMES = PLAIN | st.sampled_from(ODD_NAMES) | TYPED.filter(str.strip)
"""Of devices, hosts, limits and media: any text without control signs, at times a line break."""

BANDWIDTHS = st.sampled_from([5.5, 10.0, 12.5, 25.0, 50.0, 300.0]) | st.floats(0.1, 1e3)
ALPHAS = st.sampled_from([0.0, 0.5, 0.7, 30.0]) | st.floats(1e-3, 100.0)
"""µs; times of a schedule that are a billion times longer than others count as nothing."""
PLACES = st.floats(-1e6, 1e6)


@st.composite
def clusters(draw: st.DrawFn, *, names: st.SearchStrategy[str] = NAMES) -> Topology:
    """A one-way ring of 2 to 5 GPUs, so that all reach all, with anything else hung on it."""
    called = draw(st.lists(names, min_size=2, max_size=8, unique=True))
    count = draw(st.integers(2, min(5, len(called))))
    hosts = st.none() | st.sampled_from(draw(st.lists(names, min_size=1, max_size=3)))
    kinds: list[DeviceKind] = ["gpu"] * count
    kinds += [draw(st.sampled_from(("switch", "memory", "nic"))) for _ in called[count:]]
    devices = []
    for kind, name in draw(st.permutations(list(zip(kinds, called, strict=True)))):
        usual = draw(st.booleans())
        devices.append(
            device(
                kind,
                name,
                host=draw(hosts),
                stores=None if usual or kind == "gpu" else draw(st.booleans()),
                copies=None if usual else draw(st.booleans()),
                reduces=None if usual else draw(st.booleans()),
                buffer_bytes=draw(st.none() | st.floats(1.0, 1e12)) if not usual else None,
            )
        )
    links = draw(_links(called, count, names=names))
    return Topology(draw(names), tuple(devices), links, draw(_limits(links, names=names)))


@st.composite
def _links(
    draw: st.DrawFn, called: list[str], count: int, *, names: st.SearchStrategy[str]
) -> tuple[Link, ...]:
    """Join the first `count` in a ring, and any others one way or both."""
    ends = [(called[r], called[(r + 1) % count]) for r in range(count)]
    pairs = st.tuples(st.sampled_from(called), st.sampled_from(called), st.booleans())
    for src, dst, both in draw(st.lists(pairs, max_size=8)):
        if src != dst:
            ends += [(src, dst), (dst, src)][: 1 + both]
    kinds = st.builds(
        lambda bandwidth, alpha, medium, many: (bandwidth, alpha, medium, many),
        *(BANDWIDTHS, ALPHAS, st.just("") | st.just("NVLink 3") | names, st.integers(1, 8)),
    )
    some = draw(st.lists(kinds, min_size=1, max_size=3))
    return tuple(Link(*each, *draw(st.sampled_from(some))) for each in dict.fromkeys(ends))


@st.composite
def _limits(
    draw: st.DrawFn, links: tuple[Link, ...], *, names: st.SearchStrategy[str]
) -> tuple[SharedLimit, ...]:
    ends = st.lists(st.sampled_from([each.ends for each in links]), min_size=1, unique=True)
    called = draw(st.lists(names, max_size=2, unique=True))
    return tuple(SharedLimit(name, tuple(draw(ends)), draw(BANDWIDTHS)) for name in called)


@st.composite
def drawings(draw: st.DrawFn, *, names: st.SearchStrategy[str] = NAMES) -> Document:
    """A topology document, of which some devices have a place."""
    topology = draw(clusters(names=names))
    return document(topology, positions=draw(_positions(topology)))


def _positions(topology: Topology) -> st.SearchStrategy[dict[str, tuple[float, float]]]:
    called = [each.name for each in topology.devices]
    return st.dictionaries(st.sampled_from(called), st.tuples(PLACES, PLACES))


@st.composite
def problems(draw: st.DrawFn, *, names: st.SearchStrategy[str] = NAMES) -> Problem:
    """A collective that a name makes, on a cluster of the above."""
    topology = draw(clusters(names=names))
    ranks = len(topology.ranks)
    kind = draw(st.sampled_from(SCHEDULED))
    chunks, root = draw(st.integers(1, 2)), draw(st.integers(0, ranks - 1))
    size = draw(st.sampled_from([ranks * MB, 64.0 * ranks, 1e5]))
    return Problem(topology, make_collective(kind, ranks, size, chunks=chunks, root=root))


@st.composite
def planned(draw: st.DrawFn, *, names: st.SearchStrategy[str] = NAMES) -> Document:
    """A plan document whose schedule is valid: every chunk along a random tree of its own.

    Its cluster has no limits and unlimited buffers, and only GPUs store, so that a plan exists and
    switches are crossed without a stop.
    """
    drawn = draw(problems(names=names))
    problem = Problem(_roomy(drawn.topology), drawn.collective)
    topology, collective = problem.topology, problem.collective
    slowest = min(each.bandwidth for each in topology.links)
    latest = max(each.alpha for each in topology.links)
    epoch = max(collective.chunk_size * 1e-3 / slowest, latest / 8) * (1 + 1e-9)
    rng = random.Random(draw(st.integers(0, 2**32)))
    plan = Planner(problem, epoch).plan(spread(problem, rng, through=True))
    return document(problem, plan=plan, positions=draw(_positions(topology)))


def _roomy(topology: Topology) -> Topology:
    devices = (
        device(
            each.kind,
            each.name,
            host=each.host,
            stores=each.kind == "gpu",
            copies=each.copies or each.kind == "gpu",
            reduces=each.reduces or each.kind == "gpu",
        )
        for each in topology.devices
    )
    return Topology(topology.name, tuple(devices), topology.links)


@st.composite
def forested(draw: st.DrawFn, *, names: st.SearchStrategy[str] = NAMES) -> Document:
    """A plan document whose forest is valid: an all-gather with a random tree for each root."""
    drawn = draw(clusters(names=names))
    topology = _roomy(drawn)
    ranks = len(topology.ranks)
    rng = random.Random(draw(st.integers(0, 2**32)))
    trees = tuple(
        Tree(root, _random_tree(topology, topology.ranks[root], rng), weight)
        for root in range(ranks)
        for weight in draw(st.sampled_from([(Fraction(1),), (Fraction(1, 3), Fraction(2, 3))]))
    )
    problem = Problem(topology, make_collective("all-gather", ranks, ranks * MB))
    return document(problem, plan=Forest(trees), positions=draw(_positions(topology)))


def _random_tree(topology: Topology, root: str, rng: random.Random) -> tuple[tuple[str, ...], ...]:
    """Grow a tree from a root, each time along a way that crosses no GPU."""
    inside: list[str] = [root]
    routes = []
    while len(inside) < len(topology.ranks):
        ways = [(name,) for name in inside]
        found = []
        while ways:
            way = ways.pop()
            for link in topology.links_out[way[-1]]:
                if link.dst in topology.rank and link.dst not in inside:
                    found.append((*way, link.dst))
                elif link.dst not in topology.rank and link.dst not in way:
                    ways.append((*way, link.dst))
        routes.append(rng.choice(found))
        inside.append(routes[-1][-1])
    return tuple(routes)


@st.composite
def solved(draw: st.DrawFn, *, names: st.SearchStrategy[str] = NAMES) -> Document:
    """A result document: a plan of the above, bounded by one chunk over the fastest link."""
    content = draw(planned(names=names))
    assert content.problem is not None
    assert content.plan is not None
    fastest = max(each.bandwidth for each in content.topology.links)
    least = min(each.size for each in content.problem.collective.chunks) * 1e-3 / fastest
    result = conclude(
        content.problem,
        content.plan,
        bounds=(Bound(least, "path", None, "one chunk over the fastest link"),),
        stop=Stop.CONSTRUCTED,
        formulation="by-hand",
        options={},
        solve_time=0.0,
    )
    return document(result, positions=content.positions)


def documents(
    needs: Kind = "topology", *, names: st.SearchStrategy[str] = NAMES
) -> st.SearchStrategy[Document]:
    """Documents that hold what a writer needs, and no more."""
    if needs == "topology":
        return drawings(names=names)
    if needs == "problem":
        return problems(names=names).map(document)
    return planned(names=names) if needs == "plan" else solved(names=names)


VALUES = (
    st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(-1e9, 1e9)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.just({"without": [["g0", "g1"]], "offsets": [[1, 4]], "chunks": 2})
)
"""Of options, a sketch among them."""


def solvings() -> st.SearchStrategy[Solving]:
    """How a problem may be asked to be solved; the formulation need not exist."""
    words = st.text(string.ascii_lowercase + "_", min_size=1, max_size=8)
    return st.builds(
        Solving,
        formulation=st.text(string.ascii_lowercase + "-", min_size=1, max_size=12),
        options=st.dictionaries(words, VALUES, max_size=4),
        time_limit=st.none() | st.floats(0.1, 1e6),
        gap=st.none() | st.floats(0, 1),
    )
