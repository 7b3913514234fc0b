"""Node-link JSON of networkx, D3 and ours."""

import json
import time
from itertools import permutations
from pathlib import Path

import msgspec
import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gallery
from ccl.errors import FormatError, ProblemError
from ccl.serialization.documents import document
from ccl.topology import Link
from interchange.formats.catalogue import reader, readers, writer
from interchange.formats.format import NoOptions, Question, Request
from tests.interchange.formats.strategies import planned

SAMPLES = Path(__file__).parent / "samples"
READ, WRITE = reader("node-link").read, writer("node-link").write


def read(value, **settings):
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return READ(content, Request(name="g.json", settings=settings))


def graph(*edges, names=("a", "b", "c"), **more):
    """Return a graph of GPUs, one way unless told otherwise."""
    rows = [{"source": src, "target": dst, **rest} for src, dst, rest in edges]
    nodes = [{"id": name} for name in names]
    return {"directed": True, "multigraph": False, "nodes": nodes, "edges": rows} | more


def links(found):
    return {each.ends: (each.bandwidth, each.alpha) for each in found.document.topology.links}


def test_tuples_of_forestcoll_become_names_with_hosts_and_kinds():
    """As it adds them: (host, what, number), -1 for what is in no host; capacity is in GB/s."""
    found = read((SAMPLES / "node_link_tuples.json").read_bytes())
    topology = found.document.topology

    assert topology.ranks == ("0/GPU/0", "0/GPU/1", "1/GPU/0")
    assert [each.kind for each in topology.devices if each.kind != "gpu"] == [
        "switch",
        "nic",
        "switch",
        "nic",
    ]
    assert topology.device("0/NVSwitch/0").host == "host0"
    assert topology.device("-1/IB/0").host is None
    assert topology.link("0/GPU/0", "0/NVSwitch/0").bandwidth == 300
    assert "3 GPUs by name" in found.report.assumed
    assert "the attribute 'capacity' of edges is the bandwidth, in GB/s one way" in (
        found.report.assumed
    )


def test_places_in_the_list_name_the_ends_and_gigabits_are_divided_by_8():
    """200 and 400 Gb/s are 25 and 50 GB/s; without a word on direction edges go both ways."""
    found = read((SAMPLES / "node_link_places.json").read_bytes())

    assert links(found) == {
        ("gpu-a", "tor"): (25.0, 1.5),
        ("gpu-b", "tor"): (50.0, 1.5),
        ("tor", "gpu-a"): (25.0, 1.5),
        ("tor", "gpu-b"): (50.0, 1.5),
    }
    assert found.document.positions == {"gpu-a": (10.0, 20.0), "gpu-b": (30.0, 20.0)}
    assert found.document.topology.hosts == ("1",)
    assert found.report.left_out == (
        "the attributes of devices 'color'",
        "the attributes of edges 'value'",
    )


@pytest.mark.parametrize(
    ("name", "value", "bandwidth"),
    [
        ("bandwidth", 25, 25.0),
        ("capacity", 25, 25.0),
        ("bw", "25", 25.0),
        ("Bandwidth (GB/s)", 25, 25.0),
        ("capacity_GBps", 25, 25.0),
        ("bandwidth_gbps", 200, 25.0),
        ("linkSpeed_MBps", 25_000, 25.0),
        ("throughput_Tbps", 0.2, 25.0),
        ("bandwidth_kB/s", 25e6, 25.0),
        ("speed_kbps", 200e6, 25.0),
        ("rate_bytes/s", 25e9, 25.0),
    ],
)
def test_the_unit_in_a_name_counts(name, value, bandwidth):
    assert links(read(graph(("a", "b", {name: value})))) == {("a", "b"): (bandwidth, 0.0)}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", 0.7),
        ("latency", 0.7),
        ("latency_us", 0.7),
        ("Delay_ns", 700),
        ("lat [ms]", 7e-4),
        ("delay_s", 7e-7),
    ],
)
def test_latencies_are_read_in_their_units(name, value):
    found = links(read(graph(("a", "b", {"bandwidth": 1, name: value}))))

    assert found["a", "b"] == pytest.approx((1.0, 0.7))


def test_the_better_name_is_the_bandwidth_and_the_other_is_left_out():
    found = read(graph(("a", "b", {"capacity": 3, "bandwidth": 25})))

    assert links(found) == {("a", "b"): (25.0, 0.0)}
    assert found.report.left_out == ("the attributes of edges 'capacity'",)


def test_a_weight_is_asked_for():
    weighted = graph(("a", "b", {"weight": 25}))
    with pytest.raises(Question, match=r"^g\.json: edges have a weight") as asked:
        read(weighted)

    assert asked.value.key == "weight"
    assert links(read(weighted, weight="bandwidth")) == {("a", "b"): (25.0, 0.0)}
    assert links(read(weighted, weight="ignored", bandwidth="50")) == {("a", "b"): (50.0, 0.0)}
    assert links(read(weighted, bandwidth="50")) == {("a", "b"): (50.0, 0.0)}
    with pytest.raises(FormatError, match="edge a->b has no bandwidth"):
        read(weighted, weight="ignored")
    with pytest.raises(FormatError, match="may be bandwidth, ignored"):
        read(weighted, weight="x")


def test_edges_without_a_bandwidth_get_the_one_that_is_set_and_it_is_said():
    found = read(graph(("a", "b", {"bandwidth": 5}), ("b", "a", {})), bandwidth="12.5")

    assert links(found) == {("a", "b"): (5.0, 0.0), ("b", "a"): (12.5, 0.0)}
    assert "the bandwidth of 1 edge is what was set, 12.5 GB/s one way" in found.report.assumed


@pytest.mark.parametrize("word", ["x", "0", "-1", "nan", "inf", "1_0", ""])
def test_a_bandwidth_that_is_set_must_be_one(word):
    with pytest.raises(FormatError, match="the setting bandwidth is"):
        read(graph(("a", "b", {})), bandwidth=word)


@pytest.mark.parametrize("said", [{"directed": False}, {}])
def test_edges_there_and_back_that_are_not_one_way_are_asked_for(said):
    """Taken both ways, each pair would have twice the bandwidth."""
    twins = graph(("a", "b", {"bandwidth": 5}), ("b", "a", {"bandwidth": 5})) | said
    if not said:
        del twins["directed"]
    with pytest.raises(Question, match="both a->b and b->a are there") as asked:
        read(twins)

    assert asked.value.key == "directed"
    assert set(links(read(twins, directed="yes")).values()) == {(5.0, 0.0)}
    assert set(links(read(twins, directed="no")).values()) == {(10.0, 0.0)}


def test_a_multigraph_may_have_edges_there_and_back():
    made: nx.MultiGraph[str] = nx.MultiGraph()
    made.add_edge("a", "b", bandwidth=25)
    made.add_edge("b", "a", bandwidth=25)
    found = read(nx.node_link_data(made, edges="links"))

    assert links(found) == {("a", "b"): (50.0, 0.0), ("b", "a"): (50.0, 0.0)}
    assert "2 parallel links to others; their bandwidths add up" in found.report.assumed


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({"kind": "nic"}, "nic"),
        ({"type": "GPU"}, "gpu"),
        ({"type": "NVSwitch"}, "switch"),
        ({"role": "leaf"}, "switch"),
        ({"device_type": "DRAM"}, "memory"),
        ({"type": "H100"}, "gpu"),
        ({"kind": "switch", "type": "gpu"}, "switch"),
    ],
)
def test_kinds_are_read_from_words(attributes, kind):
    found = read({"directed": True, "nodes": [{"id": "x", **attributes}], "edges": []})

    assert found.document.topology.devices[0].kind == kind
    assert bool(found.report.assumed[:-1]) is (attributes.get("kind") != kind)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gpu0", "gpu"),
        ("h0.gpu1", "gpu"),
        ("nvswitch3", "switch"),
        ("sw0", "switch"),
        ("spine", "switch"),
        ("mlx5_0", "nic"),
        ("nic1", "nic"),
        ("mem0", "memory"),
        ("cpu0", "switch"),
        ("17", "gpu"),
        ("picture", "gpu"),
    ],
)
def test_kinds_are_guessed_from_names_and_that_is_said(name, kind):
    found = read({"directed": True, "nodes": [{"id": name}], "edges": []})

    assert found.document.topology.devices[0].kind == kind
    assert found.report.assumed[0].startswith("1 ")


def test_loops_are_left_out():
    found = read(graph(("a", "a", {"bandwidth": 1}), ("a", "b", {"bandwidth": 1})))

    assert list(links(found)) == [("a", "b")]
    assert found.report.left_out == ("1 edge from a device to itself",)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (graph(("a", "b", {"bandwidth": "fast"})), "edge a->b has the bandwidth 'fast'; give a"),
        (graph(("a", "b", {"bandwidth": [1]})), "give a number in GB/s"),
        (graph(("a", "b", {"bandwidth": True})), "give a number in GB/s"),
        (graph(("a", "b", {"bandwidth": 10**400})), "edge a->b"),
        (graph(("a", "b", {"bandwidth": -1})), "needs a positive bandwidth, got -1"),
        (graph(("a", "b", {"bandwidth": 1, "alpha": -1})), "an alpha of zero or more"),
        (graph(("a", "b", {"bandwidth": 1, "count": 1.5})), "give a whole number"),
        (graph(("a", "b", {"bandwidth": 1, "count": 0})), "stands for 0 links"),
        (graph(("a", "z", {"bandwidth": 1})), "names z, which is not a device"),
        (graph(("a", 3, {"bandwidth": 1})), "names 3, which is not a device"),
        (graph(("a", None, {"bandwidth": 1})), r"at edges\[0\].target: expected the id"),
        (graph(names=("a", "a")), "two devices are called a"),
        (graph(names=(1, "1")), "two devices are called 1"),
        (graph(nodes=[{"id": "a", "stores": "x"}]), "device a has stores 'x'; give true or false"),
        (graph(nodes=[{"id": "a", "buffer_bytes": "x"}]), "device a has the buffer 'x'"),
        (graph(nodes=[{"id": {}}]), r"at nodes\[0\].id: expected a text or a number"),
        (graph(nodes=[{"id": "a"}, {}]), r"at nodes\[1\].id: .* got none"),
        (graph(nodes=[3]), "nodes"),
        (graph(edges=[3]), "edges"),
        (graph(graph={"limits": [{"name": "l"}]}), "limits"),
        (graph(names=(" ",)), "empty name"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(value, sentence):
    with pytest.raises((FormatError, ProblemError), match=sentence) as refused:
        read(value)

    assert str(refused.value).startswith("g.json: ")


def test_an_endless_name_does_not_make_an_endless_error():
    with pytest.raises(ProblemError) as refused:
        read(graph(("a", "z" * 10**6, {"bandwidth": 1})))

    assert len(str(refused.value)) < 1_100
    assert str(refused.value).startswith("g.json: link a->zzz")


@pytest.mark.parametrize("name", ["bandwidth", "latency"])
def test_an_endless_name_of_an_attribute_takes_no_time(name):
    """A pattern over a million underscores would try every split of them in two."""
    start = time.process_time()
    found = read(graph(("a", "b", {"bandwidth": 1, f"{name}{'_' * 10**6}!": 1})))

    assert time.process_time() - start < 1.0
    assert len(found.report.left_out[0]) < 100


def test_many_names_of_one_thing_are_refused_before_columns_are_made():
    names = [f"bandwidth{' ' * count}GBps" for count in range(20)]

    with pytest.raises(FormatError, match="20 attributes such as"):
        read(graph(("a", "b", dict.fromkeys(names, 1.0))))


@given(planned())
@settings(max_examples=20, deadline=None)
def test_what_is_lost_of_a_plan_is_said(content):
    assert WRITE(content, NoOptions()).lost == ("the collective and its windows", "the plan")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
KEYS = ("bandwidth", "capacity", "weight", "alpha", "latency_ns", "count", "medium", "kind", "type")
ROWS = st.dictionaries(st.sampled_from([*KEYS, "host", "pos", "x", "y", "stores", "label"]), JSON)
ENDS = st.sampled_from(["a", "b", 0, 1, [0, "GPU", 1]]) | JSON


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_any_json_of_this_shape_is_read_or_refused(data):
    nodes = st.builds(lambda end, row: {"id": end, **row}, ENDS, ROWS)
    edges = st.builds(lambda s, t, row: {"source": s, "target": t, **row}, ENDS, ENDS, ROWS)
    value = {
        "nodes": data.draw(st.lists(nodes, max_size=3) | JSON),
        data.draw(st.sampled_from(["links", "edges"])): data.draw(st.lists(edges, max_size=3)),
        "directed": data.draw(st.booleans() | JSON),
        "graph": data.draw(st.just({}) | JSON),
    }
    wrong = ""
    try:
        read(value)
    except (FormatError, ProblemError) as error:
        wrong = str(error)

    assert wrong.startswith("g.json: ") or wrong == ""


@pytest.mark.parametrize("name", ["dgx-a100", "dgx-1v", "torus"])
def test_clusters_of_the_gallery_are_read_as_they_are(name):
    topology = gallery.open_cluster(name)
    written = WRITE(document(topology), NoOptions()).content

    assert [each.name for each in readers() if each.recognises(written)] == ["node-link"]
    assert read(written).document.topology == topology


def test_a_thousand_gpus_on_rails_are_read_in_a_part_of_two_seconds():
    topology = gallery.open_cluster("dgx-a100:hosts=128,fabric=rail")
    written = WRITE(document(topology), NoOptions()).content
    start = time.process_time()
    found = read(written)
    took = time.process_time() - start

    assert len(topology.ranks) == 1024
    assert found.document.topology == topology
    assert took < 1.0


@pytest.mark.parametrize("name", ["capacity", "bandwidth"])
def test_links_of_a_mesh_are_all_there(name):
    """64 GPUs have 64 * 63 ordered pairs, whichever of the two ways of reading is taken."""
    pairs = list(permutations(range(64), 2))
    rows = [{"source": str(a), "target": str(b), name: 1.0 + a} for a, b in pairs]
    value = {"directed": True, "nodes": [{"id": str(a)} for a in range(64)], "edges": rows}
    topology = read(msgspec.json.encode(value)).document.topology
    wanted = tuple(Link(str(a), str(b), 1.0 + a) for a, b in pairs)

    assert topology.links == wanted
