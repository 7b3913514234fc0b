"""Trees of ForestColl: exact weights, the cluster they grow on, and what comes back."""

import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccl.collective import all_gather, all_reduce, broadcast, make_collective, reduce_scatter
from ccl.errors import FormatError, ProblemError
from ccl.plans import Forest, Tree
from ccl.problem import Problem
from ccl.serialization.documents import Document, document
from ccl.topology import Topology, device, duplex
from ccl.tree_embedding import steady_makespan
from ccl.verify import verify
from formulations import solve
from gallery.nvidia import dgx_a100
from gallery.toys import random_graph
from interchange.formats.format import Imported, NoOptions, Request
from interchange.formats.synthesizers.forestcoll import READER, WRITER
from tests.ccl.clusters import mesh, ring, ring_all_gather, star

RING = """<?xml version="1.0"?>
<Algo nchunkspernode="1">
  <tree root="a" index="0" nchunks="1" height="2">
    <send src="a" dst="b" path="a,b"/>
    <send src="b" dst="c" path="b,c"/>
  </tree>
  <tree root="b" index="0" nchunks="1" height="2">
    <send src="b" dst="c" path="b,c"/>
    <send src="c" dst="a" path="c,a"/>
  </tree>
  <tree root="c" index="0" nchunks="1" height="2">
    <send src="c" dst="a" path="c,a"/>
    <send src="a" dst="b" path="a,b"/>
  </tree>
</Algo>
"""
PAIR = """<Algo nchunkspernode="3">
  <tree root="(0, 'GPU', 0)" index="0" nchunks="1">
    <send src="(0, 'GPU', 0)" dst="(1, 'GPU', 0)" path="(0, 'GPU', 0),(-1, 'IB', 0),(1, 'GPU', 0)"/>
  </tree>
  <tree root="(0, 'GPU', 0)" index="1" nchunks="2">
    <send src="(0, 'GPU', 0)" dst="(1, 'GPU', 0)"/>
  </tree>
  <tree root="(1, 'GPU', 0)" index="0" nchunks="3">
    <send src="(1, 'GPU', 0)" dst="(0, 'GPU', 0)" path="(1, 'GPU', 0),(-1, 'IB', 0),(0, 'GPU', 0)"/>
  </tree>
</Algo>
"""


def read(text: str | bytes, topology: Topology | None = None, **settings: str) -> Imported:
    content = text if isinstance(text, bytes) else text.encode()
    assert READER.recognises(content)
    return READER.read(content, Request(name="f.xml", topology=topology, settings=settings))


def written(content: Document) -> bytes:
    return WRITER.write(content, NoOptions()).content


def forest_of(found: Imported) -> Forest:
    assert isinstance(found.document.plan, Forest)
    return found.document.plan


def rate(found: Imported) -> float:
    """Return the algbw of the steady state in GB/s."""
    problem = found.document.problem
    assert problem is not None
    time = float(steady_makespan(problem, forest_of(found)))
    return problem.collective.size * 1e-3 / time


def test_a_cluster_is_made_of_the_edges_and_all_of_it_is_busy():
    """Each link of the ring carries two of three shards: 50 GB/s are 75 GB/s of algbw."""
    found = read(RING)
    topology = found.document.topology
    assert topology.ranks == ("a", "b", "c")
    assert {each.ends: each.bandwidth for each in topology.links} == {
        ("a", "b"): 50.0,
        ("b", "c"): 50.0,
        ("c", "a"): 50.0,
    }
    assert rate(found) == pytest.approx(75.0)
    assert any("in proportion to their load" in each for each in found.report.assumed)
    assert rate(read(RING, bandwidth="10")) == pytest.approx(15.0)


def test_weights_are_exact_and_bandwidths_follow_the_load():
    """Two thirds of a shard go straight and one over the switch; the way back has all of it."""
    found = read(PAIR)
    assert [(each.root, each.weight) for each in forest_of(found).trees] == [
        (0, Fraction(1, 3)),
        (0, Fraction(2, 3)),
        (1, Fraction(1)),
    ]
    first, second, hub = "(0, 'GPU', 0)", "(1, 'GPU', 0)", "(-1, 'IB', 0)"
    topology = found.document.topology
    assert topology.device(hub).kind == "switch"
    assert (topology.device(second).host, topology.device(hub).host) == ("h1", None)
    assert topology.link(second, hub).bandwidth == 50.0
    assert topology.link(first, second).bandwidth == pytest.approx(100 / 3)
    assert topology.link(first, hub).bandwidth == pytest.approx(50 / 3)


def test_trees_grow_on_the_open_cluster_when_it_has_their_names():
    """On a ring of 20 GB/s the trees make 30 GB/s; links and names are those of the cluster."""
    names = {"a": "g0", "b": "g1", "c": "g2"}
    text = RING
    for name, other in names.items():
        text = text.replace(f'"{name}"', f'"{other}"')
        text = text.replace(f'="{name},', f'="{other},').replace(f',{name}"', f',{other}"')
    topology = ring(3, bandwidth=20.0)
    found = read(text, topology, size="3MB")
    assert found.document.topology is topology
    assert found.document.problem == Problem(topology, all_gather(3, 3e6))
    assert rate(found) == pytest.approx(30.0)
    assert not any("order" in each for each in found.report.assumed)


def test_other_names_are_taken_in_order_and_switches_by_their_links():
    """Of GPUs 9 and 10 the former is g0; the switch between them is s."""
    text = (
        '<Algo><tree root="10" nchunks="1"><send src="10" dst="9" path="10,hub,9"/></tree>'
        '<tree root="9" nchunks="1"><send src="9" dst="10" path="9,hub,10"/></tree></Algo>'
    )
    topology = star(2)
    found = read(text, topology)
    assert forest_of(found).trees == (
        Tree(1, (("g1", "s", "g0"),), Fraction(1)),
        Tree(0, (("g0", "s", "g1"),), Fraction(1)),
    )
    assert any("9 is g0, 10 is g1" in each for each in found.report.assumed)


def test_the_names_of_forestcoll_fit_the_rails_of_a_dgx_a100():
    """Written with our names, renamed as its program would, the same trees of k = 13 come back."""
    topology = dgx_a100(hosts=2)
    result = solve(Problem(topology, all_gather(16, 1e9)), "forestcoll")
    assert isinstance(result.plan, Forest)
    text = written(document(result)).decode()
    assert 'nchunkspernode="13"' in text
    renamed = {
        name: f"({rank // 8}, 'GPU', {rank % 8})" for rank, name in enumerate(topology.ranks)
    }
    switches = [each.name for each in topology.devices if each.kind != "gpu"]
    renamed |= {name: f"(-1, 'IB', {number})" for number, name in enumerate(switches)}
    for name in sorted(renamed, key=len, reverse=True):
        for before in '",':
            for after in '",':
                text = text.replace(f"{before}{name}{after}", f"{before}{renamed[name]}{after}")
    found = read(text, topology, size="1GB")
    assert forest_of(found) == result.plan.unfolded(topology)
    assert rate(found) == pytest.approx(346.6667)


def test_a_cluster_that_does_not_fit_is_left_alone_or_refused():
    topology = mesh(4)
    found = read(RING, topology)
    assert found.document.topology.ranks == ("a", "b", "c")
    assert any("mesh is not theirs: it has 4 GPUs" in each for each in found.report.assumed)
    with pytest.raises(FormatError, match=r"^f\.xml: the trees do not fit mesh: it has 4 GPUs"):
        read(RING, topology, cluster="open")
    with pytest.raises(FormatError, match="no cluster is open"):
        read(RING, cluster="open")
    backwards = Topology("back", ring(3).devices, ring(3).reversed().links)
    assert any("no link g0->g1" in each for each in read(RING, backwards).report.assumed)


@pytest.mark.parametrize("kind", ["reduce-scatter", "all-reduce"])
def test_sums_go_up_the_same_trees(kind):
    """Up the ring's trees is against its links: an open one-way ring has to be the other way."""
    found = read(RING, collective=kind)
    problem, forest = found.document.problem, forest_of(found)
    assert problem is not None
    assert problem.collective.kind == kind
    assert forest.reduces
    assert forest.trees[0].routes == (("c", "b"), ("b", "a"))
    assert bool(forest.spread) == (kind == "all-reduce")
    many = {"reduce-scatter": 3, "all-reduce": 6}[kind]
    assert len(found.document.topology.links) == many
    if kind == "reduce-scatter":
        assert read(RING, ring(3).reversed(), collective=kind).document.topology.name == "ring"


def test_one_root_is_a_broadcast():
    one = RING[: RING.index("</tree>") + 7] + "</Algo>"
    found = read(one)
    assert found.document.problem is not None
    assert found.document.problem.collective == broadcast(3, 1e9, root=0)
    with pytest.raises(FormatError, match="all-gather needs trees of every GPU"):
        read(one, collective="all-gather")
    with pytest.raises(FormatError, match="broadcast needs trees of one root"):
        read(RING, collective="broadcast")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('nchunkspernode="1"', 'nchunkspernode="2"', "carry 1 chunks and nchunkspernode says 2"),
        ('nchunks="1"', 'nchunks="0"', "line 3: a tree of 0 chunks"),
        ('nchunks="1"', 'nchunks="x"', 'line 3: <tree nchunks="x"> is not a whole number'),
        ('path="a,b"', 'path="b,a"', "line 4: the path of <send> is not one from a to b"),
        ('src="a" dst="b" path="a,b"', 'src="a"', "line 4: <send> has no dst"),
        ('dst="c" path="b,c"', 'dst="a" path="b,a"', "line 5: the tree of a reaches a twice"),
        ('src="a" dst="b" path="a,b"', 'src="c" dst="b" path="c,b"', "leaves c, which it does not"),
        ('<send src="b" dst="c" path="b,c"/>', "", "a tree of a does not reach c"),
        ('root="c"', 'root="a"', "line 12: the tree of a reaches a twice"),
        ('path="a,b"', 'path="a,c,b"', "crosses c on the route"),
        ('path="a,b"', 'path="a,a,b"', "enters the device it leaves"),
    ],
)
def test_what_is_wrong_is_said_with_the_place(before, after, words):
    text = RING.replace(before, after, 1)
    with pytest.raises((FormatError, ProblemError), match=rf"^f\.xml: .*{words}"):
        READER.read(text.encode(), Request(name="f.xml"))


def test_no_send_of_a_tree_can_be_missing():
    """Each GPU is reached by one send, after which others may go on from it."""
    lines = RING.splitlines()
    for number, line in enumerate(lines):
        if "<send" in line:
            with pytest.raises(FormatError, match="does not reach"):
                read("\n".join(lines[:number] + lines[number + 1 :]))


def test_a_file_without_trees_is_refused():
    with pytest.raises(FormatError, match=r"^f\.xml: line 1: <Algo> holds no <tree>"):
        READER.read(b"<Algo><bush/></Algo>", Request(name="f.xml"))
    assert not READER.recognises(b"<Algo><bush/></Algo>")
    assert not READER.recognises(b"<algo name='x'><gpu id='0'/></algo>")


def test_a_missing_root_is_named():
    text = RING.replace(' nchunkspernode="1"', "").replace('root="c"', 'root="a"')
    text = text.replace(
        'src="c" dst="a" path="c,a"/>\n    <send src="a" dst="b"', 'src="a" dst="c"'
    )
    text = text.replace('dst="c" path="a,b"', 'dst="c" path="a,c"/><send src="c" dst="b"')
    with pytest.raises(FormatError, match="no tree of the root c"):
        read(text)


def test_what_goes_up_is_written_as_if_it_went_down():
    problem = Problem(mesh(2), reduce_scatter(2, 2e6))
    up = (Tree(0, (("g1", "g0"),), Fraction(1)), Tree(1, (("g0", "g1"),), Fraction(1)))
    made = WRITER.write(document(problem, plan=Forest(up, reduces=True)), NoOptions())
    assert b'<send src="g0" dst="g1" path="g0,g1"/>' in made.content
    assert any("plan of reduce-scatter" in each for each in made.lost)
    assert forest_of(read(made.content, mesh(2), collective="reduce-scatter")).trees == up


def test_what_is_no_forest_is_refused():
    problem, plan = ring_all_gather(ring(3))
    with pytest.raises(FormatError, match="the plan is a schedule; solve with forestcoll"):
        written(document(problem, plan=plan))
    with pytest.raises(FormatError, match="the plan is none"):
        written(document(problem))


def test_an_all_reduce_that_goes_down_other_trees_is_refused():
    """Up: all to g0 straight; down: in a line. There is one set of trees in the file."""
    problem = Problem(mesh(3), all_reduce(3, 3e6))
    up = Tree(0, (("g1", "g0"), ("g2", "g0")), Fraction(1))
    down = Tree(0, (("g0", "g1"), ("g1", "g2")), Fraction(1))
    plan = Forest((up,), reduces=True, spread=(down,))
    with pytest.raises(FormatError, match="goes down other trees"):
        written(document(problem, plan=plan))


@pytest.mark.parametrize(
    ("name", "words"),
    [("a,b", "'a,b' has a comma"), ("a)", "has a comma or a par"), ("a\x00", "XML cannot hold")],
)
def test_a_name_that_cannot_be_written_is_refused(name, words):
    topology = Topology(
        "odd", (device("gpu", name), device("gpu", "c")), duplex(name, "c", bandwidth=1.0)
    )
    ways = ((name, "c"), ("c", name))
    trees = tuple(Tree(root, (way,), Fraction(1)) for root, way in enumerate(ways))
    content = document(Problem(topology, all_gather(2, 2e6)), plan=Forest(trees))
    with pytest.raises(FormatError, match=words):
        written(content)


def test_an_all_reduce_whose_roots_have_unlike_shares_is_refused():
    """All goes up to g0 and down again, nothing to g1; the file has one number for every root."""
    problem = Problem(mesh(2), all_reduce(2, 2e6))
    up, down = Tree(0, (("g1", "g0"),), Fraction(1)), Tree(0, (("g0", "g1"),), Fraction(1))
    plan = Forest((up,), reduces=True, spread=(down,))
    with pytest.raises(FormatError, match="shares of different size"):
        written(document(problem, plan=plan))


def test_an_all_reduce_over_the_same_trees_comes_back():
    """Half of the data is added up at each of two GPUs and sent to the other."""
    problem = Problem(mesh(2), all_reduce(2, 1e9))
    ways = (("g1", "g0"), ("g0", "g1"))
    up = tuple(Tree(root, (ways[root],), Fraction(1, 2)) for root in range(2))
    down = tuple(Tree(root, (ways[1 - root],), Fraction(1, 2)) for root in range(2))
    content = document(problem, plan=Forest(up, reduces=True, spread=down))
    found = read(written(content), mesh(2), collective="all-reduce")
    assert found.document == content


NAMES = ("g0", "(0, 'GPU', 1)", 'two "quotes"', "<x> & y", " spaces ", "line\nbreak", "名前", "10")


@st.composite
def forests(draw: st.DrawFn) -> Document:
    """Any trees on a mesh with a switch beside it, with any weights."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=4, unique=True))
    devices = (*(device("gpu", name) for name in names), device("switch", "(-1, 'IB', 0)"))
    ends = [each.name for each in devices]
    pairs = [(a, b) for i, a in enumerate(ends) for b in ends[i + 1 :]]
    links = [link for pair in pairs for link in duplex(*pair, bandwidth=50.0)]
    topology = Topology("any", devices, tuple(links))
    rng = random.Random(draw(st.integers(0, 2**32)))
    trees = []
    for root, name in enumerate(names):
        shares = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
        for share in shares:
            reached, routes = [name], []
            for child in rng.sample([each for each in names if each != name], len(names) - 1):
                over = (ends[-1],) * rng.randint(0, 1)
                routes.append((rng.choice(reached), *over, child))
                reached.append(child)
            trees.append(Tree(root, tuple(routes), Fraction(share, sum(shares))))
    rng.shuffle(trees)
    return document(Problem(topology, all_gather(len(names), 1e9)), plan=Forest(tuple(trees)))


@settings(max_examples=60, deadline=None)
@given(forests())
@pytest.mark.slow
def test_any_trees_come_back(content):
    assert content.problem is not None
    verify(content.problem, content.plan)
    found = read(written(content), content.topology)
    assert found.document == content
    alone = read(written(content))
    assert [each.weight for each in forest_of(alone).trees] == [
        each.weight for each in content.plan.trees
    ]


@settings(max_examples=10, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(3, 5),
    st.integers(0, 2),
    st.sampled_from(["all-gather", "reduce-scatter", "broadcast"]),
)
def test_what_forestcoll_finds_comes_back(seed, gpus, switches, kind):
    topology = random_graph(gpus=gpus, switches=switches, degree=2, seed=seed)
    problem = Problem(topology, make_collective(kind, gpus, 1e9))
    result = solve(problem, "forestcoll")
    assert isinstance(result.plan, Forest)
    plan = result.plan.unfolded(topology)
    content = document(result)
    found = read(written(content), topology, collective=kind, size="1GB")
    assert found.document.problem == problem
    assert forest_of(found) == plan


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([RING, PAIR]), st.integers(0, 500), st.text(max_size=3), st.integers(0, 9))
def test_anything_is_read_or_refused_with_the_name_of_the_file(text, at, put, drop):
    told = "f.xml: "
    try:
        READER.read((text[:at] + put + text[at + drop :]).encode(), Request(name="f.xml"))
    except (FormatError, ProblemError) as error:
        told = str(error)
    assert told.startswith("f.xml: ")
