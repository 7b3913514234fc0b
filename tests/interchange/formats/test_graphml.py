"""GraphML of networkx, yEd, Gephi and ours."""

import io
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gallery
from ccl.errors import FormatError, ProblemError
from ccl.serialization.documents import document
from ccl.topology import Link, Topology, device
from interchange.formats.catalogue import reader, readers, writer
from interchange.formats.format import NoOptions, Question, Request
from tests.interchange.formats.strategies import drawings

SAMPLES = Path(__file__).parent / "samples"
READ, WRITE = reader("graphml").read, writer("graphml").write
quick = settings(max_examples=30, deadline=None)


def read(content, **settings):
    data = content if isinstance(content, bytes) else content.encode()
    return READ(data, Request(name="g.graphml", settings=settings))


def graphml(inside, *, keys="", default="directed"):
    return f'<graphml>{keys}<graph edgedefault="{default}">{inside}</graph></graphml>'


def links(found):
    return {each.ends: (each.bandwidth, each.alpha) for each in found.document.topology.links}


def test_networkx_files_are_read():
    """700 ns are 0.7 µs; the third edge has no latency; a role is a kind."""
    found = read((SAMPLES / "networkx.graphml").read_bytes())

    assert found.document.topology.name == "two and a switch"
    assert links(found) == {("0", "2"): (300.0, 0.7), ("2", "1"): (300.0, 0.7), ("1", "0"): (50, 0)}
    assert [each.kind for each in found.document.topology.devices] == ["gpu", "gpu", "switch"]
    assert "1 edge without a latency: alpha is 0 µs" in found.report.assumed


def test_yed_groups_are_hosts_and_labels_are_names():
    """The middle of a box is its corner and half its size; a default is 25 GB/s."""
    found = read((SAMPLES / "yed.graphml").read_bytes())
    document = found.document

    assert [(each.name, each.kind, each.host) for each in document.topology.devices] == [
        ("GPU 0", "gpu", "server A"),
        ("GPU 1", "gpu", "server A"),
        ("Switch", "switch", None),
    ]
    assert document.positions == {
        "GPU 0": (30.0, 35.0),
        "GPU 1": (130.0, 35.0),
        "Switch": (80.0, 135.0),
    }
    assert links(found) == {
        ("GPU 0", "Switch"): (50.0, 0.0),
        ("Switch", "GPU 1"): (25.0, 0.0),
        ("GPU 0", "GPU 1"): (25.0, 0.0),
        ("GPU 1", "GPU 0"): (25.0, 0.0),
    }
    assert "1 undirected edge both ways" in found.report.assumed
    assert found.report.left_out == ("1 hyperedge",)


def test_gephi_files_have_weights_which_are_asked_for():
    content = (SAMPLES / "gephi.graphml").read_bytes()
    with pytest.raises(Question, match=r"^g\.graphml: edges have a weight"):
        read(content)
    found = read(content, weight="bandwidth")

    assert links(found) == {("gpu0", "gpu1"): (25.0, 0.0), ("gpu1", "gpu0"): (25.0, 0.0)}
    assert found.document.positions["gpu0"] == (-1.5, 4.0)


@quick
@given(drawings())
def test_what_is_written_is_read_again(content):
    written = WRITE(content, NoOptions())
    found = read(written.content)

    assert written.lost == ()
    assert found.document == content
    assert found.report.left_out == ()
    assert [each.name for each in readers() if each.recognises(written.content)] == ["graphml"]


@quick
@given(drawings())
def test_networkx_reads_what_is_written(content):
    graph = nx.read_graphml(io.BytesIO(WRITE(content, NoOptions()).content))
    name = {node: data.get("label", node) for node, data in graph.nodes(data=True)}
    ends = {(name[src], name[dst]): data for src, dst, data in graph.edges(data=True)}

    assert graph.is_directed()
    assert list(name.values()) == [each.name for each in content.topology.devices]
    assert {pair: data["bandwidth"] for pair, data in ends.items()} == {
        each.ends: each.bandwidth for each in content.topology.links
    }


@quick
@given(drawings())
def test_what_networkx_writes_of_it_is_the_same_cluster(content):
    """It keeps types, and texts of one line as they are; limits go through as a text."""
    graph = nx.read_graphml(io.BytesIO(WRITE(content, NoOptions()).content))
    text = io.BytesIO()
    nx.write_graphml_xml(graph, text)
    topology = read(text.getvalue()).document.topology

    assert set(topology.devices) == set(content.topology.devices)
    assert {each.ends: each for each in topology.links} == {
        each.ends: each for each in content.topology.links
    }


def test_a_name_with_a_control_sign_is_refused():
    topology = Topology("t", (device("gpu", "a\x07"), device("gpu", "b")), (Link("b", "a\x07", 1),))

    with pytest.raises(FormatError, match=r"U\+0007"):
        WRITE(document(topology), NoOptions())


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("<graphml/>", "line 1: <graphml> has no <graph>"),
        ("<gexf/>", "begins with <gexf>"),
        (graphml("<node/>"), "<node> has no id"),
        (graphml('<node id="a"/>\n<edge source="a"/>'), "line 2: <edge> has no target"),
        (graphml('<node id="a"><data>x</data></node>'), "<data> has no key"),
        (graphml('<node id="a"/><node id="a"/>'), "two devices are called a"),
        (graphml('<node id="a"/><node id="b"/><edge source="a" target="b"/>'), "no bandwidth"),
        (graphml('<data key="limits">{</data>'), "the attribute .limits. of the graph, at the top"),
        (
            graphml(
                '<node id="a"/><node id="b"/>'
                '<edge source="a" target="b"><data key="bandwidth">INF</data></edge>'
            ),
            "needs a positive bandwidth, got inf",
        ),
        (
            '<!DOCTYPE g [<!ENTITY x SYSTEM "file:///etc/hostname">]>'
            + graphml('<node id="a"><data key="host">&x;</data></node>'),
            "entities",
        ),
    ],
)
def test_what_is_wrong_is_told(content, sentence):
    with pytest.raises((FormatError, ProblemError), match=sentence) as refused:
        read(content)

    assert str(refused.value).startswith("g.graphml: ")


def test_defaults_do_not_multiply_with_nodes():
    """3,000 defaults and 3,000 nodes: kept once each, or there would be nine million."""
    keys = "".join(
        f'<key id="k{i}" for="node" attr.name="a{i}"><default>x</default></key>'
        for i in range(3_000)
    )
    nodes = "".join(f'<node id="gpu{i}"/>' for i in range(3_000))
    found = read(graphml(nodes, keys=keys))

    assert len(found.document.topology.ranks) == 3_000


TAGS = st.sampled_from(["graph", "node", "edge", "key", "data", "default", "hyperedge", "Geometry"])
WORDS = st.sampled_from(["a", "b", "k", "1", "true", "undirected", "bandwidth", "[", "NaN", ""])
NAMES = st.sampled_from(["id", "key", "for", "source", "target", "attr.name", "directed", "x"])


@st.composite
def elements(draw, depth=3):
    tag, content = draw(TAGS), draw(WORDS)
    words = draw(st.dictionaries(NAMES, WORDS, max_size=3))
    inner = draw(st.lists(elements(depth=depth - 1), max_size=3)) if depth else []
    attributes = "".join(f' {key}="{value}"' for key, value in words.items())
    return f"<{tag}{attributes}>{content}{''.join(inner)}</{tag}>"


@given(st.lists(elements(), max_size=3).map("".join), st.booleans())
@settings(max_examples=40, deadline=None)
def test_any_xml_of_this_shape_is_read_or_refused(inside, deep):
    wrong = ""
    try:
        read(graphml(inside) if deep else f"<graphml>{inside}</graphml>")
    except (FormatError, ProblemError) as error:
        wrong = str(error)

    assert wrong.startswith("g.graphml: ") or wrong == ""


@pytest.mark.parametrize("name", ["dgx-a100", "dgx-1v", "thesis-2.3"])
def test_clusters_of_the_gallery_are_read_as_they_are(name):
    topology = gallery.open_cluster(name)

    assert read(WRITE(document(topology), NoOptions()).content).document.topology == topology
