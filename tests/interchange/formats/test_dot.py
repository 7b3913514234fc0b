r"""Drawings for Graphviz.

What is written is taken apart again by the rules of the language: in quotes, ``\"`` is a quote; in
a label, ``\\`` is a backslash, ``\n`` a line break and ``&amp;`` an ampersand.
"""

import re

import pytest
from hypothesis import given, settings

from ccl.serialization.documents import document
from ccl.topology import Link, SharedLimit, Topology, device, duplex
from interchange.formats.catalogue import writer
from interchange.formats.format import NoOptions
from interchange.formats.graphs.dot import dot_text
from tests.interchange.formats.strategies import drawings, planned

WRITE = writer("dot").write
TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([A-Za-z0-9_]+)|(->|[{}\[\];=,])|\s+', re.DOTALL)


def tokens(text):
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        assert match is not None, text[at : at + 40]
        at = match.end()
        if match[1] is not None:
            found.append(("id", match[1]))
        elif match[2] or match[3]:
            found.append(("id" if match[2] else "sign", match[2] or match[3]))
    return found


def shown(label):
    signs = {"\\\\": "\\", '\\"': '"', "\\n": "\n", "&amp;": "&"}
    return re.sub(r'\\\\|\\"|\\n|&amp;', lambda match: signs[match[0]], label)


def statements(text):
    """Return label and attributes of each node, ends and attributes of each edge, and labels."""
    nodes, edges, labels = {}, [], []
    row: list[tuple[str, str]] = []
    for kind, word in tokens(text):
        if kind == "sign" and word in "{}":
            row = []
        elif (kind, word) == ("sign", ";"):
            row, done = [], row
            split = done.index(("sign", "[")) if ("sign", "[") in done else len(done)
            head = [each for _, each in done[:split]]
            body = [each for sort, each in done[split:] if sort == "id"]
            attributes = dict(zip(body[::2], body[1::2], strict=True))
            if "->" in head:
                edges.append((head[0], head[2], attributes))
            elif "shape" in attributes:
                nodes[head[0]] = attributes
            elif head[:2] == ["label", "="]:
                labels.append(shown(head[2]))
        else:
            row.append((kind, word))
    return nodes, edges, labels


@given(drawings())
@settings(max_examples=40, deadline=None)
def test_every_device_host_and_link_is_drawn_once(content):
    topology = content.topology
    nodes, edges, labels = statements(dot_text(content))
    name = {key: shown(each["label"]) for key, each in nodes.items()}
    drawn = [(name[src], name[dst], each) for src, dst, each in edges]
    both = [(dst, src, each) for src, dst, each in drawn if each.get("dir") == "both"]
    shapes = {"gpu": "box", "switch": "hexagon", "memory": "cylinder", "nic": "ellipse"}

    assert sorted(name.values()) == sorted(each.name for each in topology.devices)
    assert labels == [topology.name, *topology.hosts]
    assert sorted((src, dst) for src, dst, _ in drawn + both) == sorted(
        each.ends for each in topology.links
    )
    for src, dst, each in drawn + both:
        assert each["label"] == f"{topology.link(src, dst).bandwidth:.6g} GB/s"
    for key, each in nodes.items():
        assert each["shape"] == shapes[topology.device(name[key]).kind]
        assert ("pos" in each) is (name[key] in content.positions)


def test_places_are_inches_with_y_up():
    """72 units to the right and 36 down are 1 inch and half an inch below."""
    topology = Topology("t", (device("gpu", "a"), device("gpu", "b")), (Link("a", "b", 1.0),))
    text = dot_text(document(topology, positions={"a": (72.0, 36.0), "b": (0.0, 0.0)}))

    assert 'pos="1,-0.5!"' in text
    assert "layout=neato" in text
    assert "layout" not in dot_text(document(topology, positions={"a": (72.0, 36.0)}))


def test_plain_names_stay_what_devices_are_called():
    topology = Topology(
        "t", (device("gpu", "a"), device("gpu", "node")), duplex("a", "node", bandwidth=25.0)
    )

    assert '"a" -> "node" [label="25 GB/s", dir=both' in dot_text(document(topology))


@pytest.mark.parametrize("name", ['a"]; evil [label="', "a\\", "\\N", "&lt;", "</TABLE>", "#x\n"])
def test_no_name_gets_out_of_its_quotes(name):
    topology = Topology("t", (device("gpu", name), device("gpu", "b")), (Link("b", name, 1.0),))
    nodes, edges, _ = statements(dot_text(document(topology)))

    assert {shown(each["label"]) for each in nodes.values()} == {name, "b"}
    assert len(edges) == 1


def test_what_is_lost_is_said():
    devices = (device("gpu", "a"), device("switch", "b", copies=True))
    links = (Link("a", "b", 1.0),)
    topology = Topology("t", devices, links, (SharedLimit("l", (("a", "b"),), 1.0),))

    assert WRITE(document(topology), NoOptions()).lost == (
        "1 shared limit",
        "what 1 device can do unlike others of its kind",
    )


@given(planned())
@settings(max_examples=10, deadline=None)
def test_a_plan_is_lost_and_that_is_said(content):
    assert WRITE(content, NoOptions()).lost[-1] == "the plan"
