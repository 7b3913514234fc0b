"""Sizes, tables, traces and graphs."""

from __future__ import annotations

import csv
import json
import math

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ccl.errors import FormatError, ProblemError
from ccl.serialization.documents import document, document_text
from ccl.serialization.quantity import format_size, parse_size
from interchange.formats.format import Request
from interchange.formats.graphs.node_link import READER, is_node_link, node_link_text
from interchange.formats.own.tables import transfers_csv
from tests.ccl.documents import solved, topologies


def parse_node_link(text, name="graph"):
    """Read the content of a file called `name`."""
    return READER.read(text.encode(errors="surrogatepass"), Request(name=name)).document


quick = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("1GB", 1e9),
        ("1GiB", 2**30),
        ("25KB", 25_000),
        ("1.5 MB", 1.5e6),
        ("4096", 4096),
        (" 64 kib ", 65_536),
        ("1e6", 1e6),
        ("2tb", 2e12),
        ("100B", 100),
    ],
)
def test_a_size_is_read(text, nbytes):
    assert parse_size(text) == nbytes


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty; write it like 1MB"),
        ("much", "is not a number of bytes"),
        ("1.2.3MB", "is not a number of bytes"),
        ("nan", "is not a number of bytes"),
        ("0", "is too small; give more than 0 bytes"),
        ("-1MB", "is too small; give more than 0 bytes"),
        ("1e999", "is not finite"),
        ("1G", "has the unit 'G'; units are bytes: write GB or GiB"),
        ("1Gb", "has the unit 'Gb'; units are bytes: write GB or GiB"),
        ("3 furlongs", "has the unit 'furlongs'; units are bytes: write B, KB,"),
    ],
)
def test_a_size_that_may_mean_two_things_is_refused(text, sentence):
    with pytest.raises(FormatError, match=sentence):
        parse_size(text)


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(1e6, "1 MB"), (2**30, "1 GiB"), (65_536, "64 KiB"), (62_500, "62.5 KB"), (1, "1 B")],
)
def test_a_size_is_written_as_short_as_it_can_be(nbytes, text):
    assert format_size(nbytes) == text


@given(st.floats(min_value=1.0, max_value=1e15))
def test_a_written_size_is_the_same_to_six_digits(nbytes):
    assert math.isclose(parse_size(format_size(nbytes)), nbytes, rel_tol=1e-5)


def test_the_table_has_a_row_per_transfer():
    """Three rounds of a ring of 4 at 20 µs: chunk 0 crosses g0->g1 first, from 0 to 20 µs."""
    result = solved().result
    assert result is not None
    rows = list(csv.DictReader(transfers_csv(result.timeline).splitlines()))

    assert len(rows) == 12
    assert rows[0] == {
        "chunk": "0",
        "src": "g0",
        "dst": "g1",
        "start_us": "0",
        "sent_us": "20",
        "end_us": "20",
        "bytes": "1000000",
        "epoch": "0",
    }


@quick
@given(topologies())
def test_a_graph_that_is_written_is_read_again(topology):
    names = [each.name for each in topology.devices]
    made = document(topology, positions={names[0]: (1.0, -2.0)})
    text = node_link_text(made)

    assert is_node_link(text)
    assert parse_node_link(text) == made


@quick
@given(topologies())
def test_networkx_reads_what_is_written(topology):
    graph = nx.node_link_graph(json.loads(node_link_text(document(topology))), edges="edges")

    assert graph.is_directed()
    assert list(graph.nodes) == [each.name for each in topology.devices]
    assert {(src, dst): graph.edges[src, dst]["bandwidth"] for src, dst in graph.edges} == {
        link.ends: link.bandwidth for link in topology.links
    }


@pytest.mark.parametrize("word", ["edges", "links"])
def test_what_networkx_writes_is_read_whatever_it_calls_its_edges(word):
    """An undirected cycle has links both ways; numbers become names."""
    graph = nx.cycle_graph(4)
    nx.set_edge_attributes(graph, dict.fromkeys(graph.edges, 25), "bandwidth")
    read = parse_node_link(json.dumps(nx.node_link_data(graph, edges=word))).topology

    assert read.ranks == ("0", "1", "2", "3")
    assert len(read.links) == 8
    assert {("0", "3"), ("3", "0")} < {link.ends for link in read.links}
    assert {link.bandwidth for link in read.links} == {25.0}


def test_parallel_edges_add_up():
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    graph.add_edge("a", "b", bandwidth=25)
    graph.add_edge("a", "b", bandwidth=25)
    link = parse_node_link(json.dumps(nx.node_link_data(graph, edges="edges"))).topology.links[0]

    assert (link.bandwidth, link.count) == (50.0, 2)


@pytest.mark.parametrize(
    ("text", "error", "sentence"),
    [
        ('{"nodes": []}', FormatError, "g.json: the graph has no list of edges"),
        (
            '{"nodes": [{"id": 1}, {"id": 2}], "edges": [{"source": 1, "target": 2}]}',
            FormatError,
            "edge 1->2 has no bandwidth; give one in GB/s",
        ),
        ('{"nodes": [{"id": [1]}], "edges": []}', FormatError, r"at nodes\[0\].id: expected"),
        ('{"nodes": [{"id": 1, "kind": "x"}], "edges": []}', ProblemError, "is of kind 'x'; kinds"),
        (
            '{"nodes": [{"id": 1}], "edges": [{"source": 1, "target": 2, "bandwidth": 1}]}',
            ProblemError,
            "names 2, which is not a device",
        ),
    ],
)
def test_a_graph_that_is_no_topology_is_refused(text, error, sentence):
    with pytest.raises(error, match=sentence) as refused:
        parse_node_link(text, name="g.json")

    assert str(refused.value).startswith("g.json: ")


@pytest.mark.parametrize("text", ["", "[]", "{}", document_text(solved())])
def test_what_is_no_graph_is_left_to_others(text):
    assert not is_node_link(text)
