"""Networks of ASTRA-sim's ns-3 backend and of SimAI."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccl.errors import FormatError, ProblemError
from ccl.serialization.documents import document
from ccl.topology import Link, Topology, device, duplex
from interchange.formats.catalogue import reader, readers, writer
from interchange.formats.format import Imported, NoOptions, Request, Written
from tests.interchange.formats.strategies import clusters

SAMPLES = Path(__file__).parent / "samples"
LEAVES = (SAMPLES / "astra_ns3_two_leaves.txt").read_bytes()
SIMAI = (SAMPLES / "simai_two_servers.topo").read_bytes()
PAIR = "2 0 1\n\n0 1 100Gbps 1us 0\n"


def read(text: str | bytes) -> Imported:
    content = text if isinstance(text, bytes) else text.encode()
    return reader("astra-ns3").read(content, Request(name="n.txt"))


def write(topology: Topology) -> Written:
    return writer("astra-ns3").write(document(topology), NoOptions())


def test_two_leaves_and_a_spine():
    """200 Gbps are 25 GB/s, as 25GBps and 200000Mbps are; 0.001 ms, 1 us and 1000 ns are 1 µs."""
    found = read(LEAVES)
    topology = found.document.topology

    assert topology.ranks == ("g0", "g1", "g2", "g3")
    assert set(topology.links) == {
        link
        for gpu, leaf in (("g0", "s0"), ("g1", "s0"), ("g2", "s1"), ("g3", "s1"))
        for link in duplex(gpu, leaf, bandwidth=25.0, alpha=1.0)
    } | {link for leaf in ("s0", "s1") for link in duplex(leaf, "s2", bandwidth=50.0, alpha=2.5)}
    assert found.report.left_out == ("error rates of 1 link",)


def test_simai_says_which_gpus_share_a_server():
    """2 servers of 2 GPUs; NVSwitches are in them; two links of 100 GB/s add up."""
    found = read(SIMAI)
    topology = found.document.topology
    hosts = {each.name: each.host for each in topology.devices}

    inside = {"g0": "h0", "g1": "h0", "g2": "h1", "g3": "h1", "nv0": "h0", "nv1": "h1"}
    assert hosts == inside | {"s0": None, "s1": None}
    assert topology.link("g0", "nv0") == Link("g0", "nv0", 200.0, 0.025, "NVLink")
    assert topology.link("g3", "s1") == Link("g3", "s1", 50.0, 0.5)
    assert topology.link("s0", "s1") == Link("s0", "s1", 200.0, 0.5, "", 2)
    assert found.report.left_out == ("the type of the GPUs, 'H800'",)
    assert "1 link beside others, added to them" in found.report.taken


def test_servers_have_the_next_gpus_whatever_numbers_devices_have():
    """Of devices 0 to 5 the NVSwitches are 0 and 3, so GPUs are 1, 2 and 4, 5: two of a server."""
    lines = ["6 2 2 0 4 H800", "0 3"]
    lines += [
        f"{gpu} {switch} 100Gbps 1us 0" for switch in (0, 3) for gpu in (switch + 1, switch + 2)
    ]
    topology = read("\n".join(lines)).document.topology

    assert topology.ranks == ("g0", "g1", "g2", "g3")
    assert [topology.device(name).host for name in topology.ranks] == ["h0", "h0", "h1", "h1"]
    assert [topology.device(name).host for name in ("nv0", "nv1")] == ["h0", "h1"]


def test_gpus_are_numbered_by_rank_where_switches_come_first():
    topology = read("3 1 2\n0\n0 2 8Gbps 1us 0\n0 1 16Gbps 1us 0\n").document.topology

    assert topology.link("s0", "g0").bandwidth == 2.0
    assert topology.link("g1", "s0").bandwidth == 1.0


def test_only_this_reader_recognises_them():
    for content in (LEAVES, SIMAI, PAIR.encode(), b"\xef\xbb\xbf" + LEAVES):
        assert [each.name for each in readers() if each.recognises(content)] == ["astra-ns3"]
    assert not reader("astra-ns3").recognises(b"1 2 3\n4 5 6\n7 8 9\n")


@pytest.mark.parametrize(
    ("word", "speed"),
    [
        ("8bps", 1e-9),
        ("8kbps", 1e-6),
        ("8Kb/s", 1e-6),
        ("1KiB/s", 1.024e-6),
        ("1Gibps", 0.134217728),
        ("1.5Tbps", 187.5),
        ("2e3Mbps", 0.25),
    ],
)
def test_units_of_rates_are_those_of_ns3(word, speed):
    """A small b is a bit, an eighth of a byte; an i counts 1,024s: 2^30 / 8 = 134,217,728."""
    links = read(PAIR.replace("100Gbps", word)).document.topology.links

    assert {link.bandwidth for link in links} == {speed}


@pytest.mark.parametrize(("word", "alpha"), [("2s", 2e6), ("3ms", 3000.0), ("4ps", 4e-6)])
def test_units_of_delays(word, alpha):
    links = read(PAIR.replace("1us", word)).document.topology.links

    assert {link.alpha for link in links} == {alpha}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "line 2: it begins with 0 words"),
        ("2 0", "line 1: it begins with 2 words"),
        (b"\xff", "it is not UTF-8 text"),
        ("1000000000 0 1", "line 1: the number of devices is '1000000000'; give a whole number"),
        ("2 3 1", "line 1: the number of switches is '3'; give a whole number from 0 to 2"),
        ("2 0 -1", "line 1: the number of links is '-1'"),
        ("2 0 1" + "0" * 5000, "line 1: the number of links is '10000"),
        ("3 2 0\n1 1", "line 2: switch 1 comes a second time"),
        ("3 1 0\n3", "line 2: the number of switch 1 is '3'; give a whole number from 0 to 2"),
        ("3 1 2\n2\n0 2 1Gbps 1us 0", "it ends before the first end of link 2; its header tells"),
        (PAIR.replace("0 1 100", "0 2 100"), "line 3: the second end of link 1 is '2'"),
        (PAIR.replace("0 1 100", "1 1 100"), "line 3: link 1 joins 1 with itself"),
        (PAIR.replace("100Gbps", "100"), "line 3: the rate of link 1 is '100', which is no rate"),
        (PAIR.replace("100Gbps", "0Gbps"), "line 3: the rate of link 1 is '0Gbps'; give a posi"),
        (PAIR.replace("100Gbps", "1e9999Tbps"), "line 3: the rate of link 1 is '1e9999Tbps'; g"),
        (PAIR.replace("100Gbps", "1e-9999bps"), "line 3: the rate of link 1 is '1e-9999bps'; g"),
        (PAIR.replace("100Gbps", "nanGbps"), "line 3: the rate of link 1 is 'nanGbps', which is"),
        (PAIR.replace("100Gbps", "..Gbps"), "line 3: the rate of link 1 is '..', which is no num"),
        (PAIR.replace("1us", "-1us"), "line 3: the delay of link 1 is '-1us'; give zero or more"),
        (PAIR.replace("1us", "1"), "line 3: the delay of link 1 is '1', which is no delay"),
    ],
)
def test_what_is_wrong_is_told(text, sentence):
    with pytest.raises(FormatError, match=sentence) as refused:
        read(text)
    assert str(refused.value).startswith("n.txt: ")


@given(
    st.binary(max_size=100)
    | st.lists(st.sampled_from(["0", "1", "1Gbps", "1us", "\n", "#", "x", "9" * 30])).map(
        lambda words: " ".join(words).encode()
    )
)
def test_any_words_after_a_header_are_read_or_refused(more):
    told = "n.txt: "
    try:
        read(b"3 1 2\n2\n0 2 1Gbps 1us 0\n" + more)
    except (FormatError, ProblemError) as error:
        told = str(error)
    assert told.startswith("n.txt: ")


def test_words_after_the_last_link_are_left_out():
    assert read(PAIR + "0 1 100Gbps 1us 0\n").report.left_out == ("words after the last link",)


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_what_is_written_is_read_with_the_slower_of_two_ways(topology):
    """By numbers, GPUs by rank first: bandwidth and alpha of both ways, or of the only one."""
    content = write(topology).files["network.txt"]
    again = read(content).document.topology
    order = [*topology.ranks, *(each.name for each in topology.devices if each.kind != "gpu")]
    names = dict(zip(order, [each.name for each in again.devices], strict=True))
    wanted = {}
    for link in topology.links:
        ways = [link, *(each for each in topology.links if each.ends == (link.dst, link.src))]
        slow = min(each.bandwidth for each in ways), max(each.alpha for each in ways)
        for ends in (link.ends, link.ends[::-1]):
            wanted[names[ends[0]], names[ends[1]]] = slow

    assert {link.ends: (link.bandwidth, link.alpha) for link in again.links} == wanted
    assert write(again).files["network.txt"] == content
    assert write(again).lost == ()


@pytest.mark.parametrize("sample", [LEAVES, PAIR.encode()])
def test_a_sample_comes_back_whole(sample):
    topology = read(sample).document.topology

    assert read(write(topology).files["network.txt"]).document.topology == topology


def test_the_logical_topology_is_one_dimension_of_all_gpus():
    files = write(read(LEAVES).document.topology).files

    assert json.loads(files["logical.json"]) == {"logical-dims": ["4"]}


def test_what_is_lost_is_told():
    """One way alone, a NIC, a host, a medium, a switch that copies."""
    devices = (
        device("gpu", "a", host="h"),
        device("gpu", "b"),
        device("nic", "n"),
        device("switch", "s", copies=True),
    )
    links = (Link("a", "b", 1.0, 0.0, "NVLink"), *duplex("a", "n", bandwidth=1.0))

    assert [each.partition(":")[0][:30] for each in write(Topology("t", devices, links)).lost] == [
        "its name, t",
        "1 link of one way, or unlike t",
        "that 1 NIC is no switch",
        "names",
        "which devices share one of the",
        "limits of buffers, and what sw",
        "what links are made of and how",
    ]
