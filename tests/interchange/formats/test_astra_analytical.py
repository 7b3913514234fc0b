"""Networks of ASTRA-sim's analytical backend."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ccl.errors import FormatError, ProblemError
from ccl.serialization.documents import document
from ccl.topology import Device, Link, SharedLimit, Topology, device, duplex
from interchange.formats.catalogue import reader, readers, writer
from interchange.formats.format import Imported, NoOptions, Request, Written
from tests.interchange.formats.strategies import clusters

SAMPLE = Path(__file__).parent / "samples" / "astra_three_dimensions.yml"
ONE = "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n"


def read(text: str | bytes) -> Imported:
    content = text if isinstance(text, bytes) else text.encode()
    return reader("astra-sim").read(content, Request(name="n.yml"))


def write(topology: Topology) -> Written:
    return writer("astra-sim").write(document(topology), NoOptions())


def test_a_product_of_three_dimensions():
    """12 GPUs: 6 rings of 2, 4 meshes of 3 and 6 switches of 2.

    GPU 0 is beside GPU 1, meshed with 2 and 4 (stride 2), and on a switch with 6 (stride 6).
    One-way links: 6 rings x 2, 4 meshes x 6, 6 switches x 4.
    """
    found = read(SAMPLE.read_bytes())
    topology = found.document.topology
    out = {link.dst: (link.bandwidth, link.alpha) for link in topology.links_out["g0"]}

    assert len(topology.ranks) == 12
    assert len(topology.devices) == 12 + 6
    assert len(topology.links) == 12 + 24 + 24
    assert out == {"g1": (150, 0.04), "g2": (75, 0.2505), "g4": (75, 0.2505), "s0": (12.5, 1.0)}
    assert {link.dst for link in topology.links_out["s0"]} == {"g0", "g6"}
    assert [each.host for each in topology.devices[:4]] == ["h0", "h0", "h1", "h1"]
    assert "a ring of 2 GPUs is one link each way" in found.report.assumed
    assert found.report.left_out == ("1 key of no known meaning: 'note'",)


def test_one_dimension_has_no_hosts_and_a_word_is_as_good_as_a_list():
    """An H100 board as ASTRA-sim was validated with it: 400 GB/s and 936.25 ns a link."""
    text = "topology: Switch\nnpus_count: 8\nbandwidth: 400.0\nlatency: 936.25\n"
    topology = read(text).document.topology

    assert topology.hosts == ()
    assert set(topology.links) == {
        link
        for rank in range(8)
        for link in duplex(f"g{rank}", "s0", bandwidth=400.0, alpha=0.93625)
    }


def test_only_this_reader_recognises_it():
    for content in (SAMPLE.read_bytes(), ONE.encode()):
        assert [each.name for each in readers() if each.recognises(content)] == ["astra-sim"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: &x [ 1 ]\nb: *x", "line 2: it has the alias \\*x"),
        ("topology: [ Ring", "line 1: it is not YAML"),
        ('topology: "\\UFFFFFFFF"', "it is not YAML"),
        ("%YAML " + "1" * 5000 + ".1\n--- a", "it is not YAML"),
        ("topology: \x00", "it is not YAML"),
        (b"topology: \xff", "it is not UTF-8 text"),
        ("[" * 100_000, "line 1: it is a mapping of lists"),
        ("topology: { a: b }", "line 1: it is a mapping of lists"),
        (ONE.replace("Ring", "Mesh2D"), "line 1: topology of dimension 1 is 'Mesh2D'; there are R"),
        (ONE.replace("4", "1"), "line 2: npus_count of dimension 1 is '1'; give a whole number"),
        (ONE.replace("4", "9" * 5000), "line 2: npus_count of dimension 1 is"),
        (ONE.replace("4", "4, 2"), "line 2: npus_count has 2 values and topology 1"),
        (ONE.replace("50 ", "0 "), "line 3: bandwidth of dimension 1 is 0 GB/s"),
        (ONE.replace("50 ", ".nan "), "line 3: bandwidth of dimension 1 is '.nan', which is no"),
        (ONE.replace("50 ", "1e999 "), "line 3: bandwidth of dimension 1 is inf GB/s"),
        (ONE.replace("500", "-1"), "line 4: latency of dimension 1 is -1 ns"),
        (ONE + "npus_count: [ 4 ]", "line 5: 'npus_count' comes a second time"),
        (ONE.replace("latency", "late"), "it has no latency"),
        (ONE.replace("[ Ring ]", "[]"), "line 1: topology has 0 dimensions"),
        (
            ONE.replace("Ring", "FullyConnected").replace("[ 4 ]", "[ 99999 ]"),
            "line 2: it has 99,999 devices and 9,999,700,002 links; at most 100,000 and 400,000",
        ),
    ],
)
def test_what_is_wrong_is_told(text, sentence):
    with pytest.raises(FormatError, match=sentence) as refused:
        read(text)
    assert str(refused.value).startswith("n.yml: ")


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_after_a_beginning_are_read_or_refused(more):
    told = "n.yml: "
    try:
        read(ONE.encode() + more)
    except (FormatError, ProblemError) as error:
        told = str(error)
    assert told.startswith("n.yml: ")


@st.composite
def networks(draw: st.DrawFn) -> str:
    """Texts of up to three dimensions and 60 GPUs."""
    many = draw(st.integers(1, 3))
    blocks = [draw(st.sampled_from(["Ring", "FullyConnected", "Switch"])) for _ in range(many)]
    counts = [draw(st.integers(2, (60, 7, 4)[many - 1])) for _ in range(many)]
    speeds = [draw(st.floats(1e-3, 1e5)) for _ in range(many)]
    delays = [draw(st.floats(0.0, 1e7)) for _ in range(many)]
    rows = {"topology": blocks, "npus_count": counts, "bandwidth": speeds, "latency": delays}
    return "".join(f"{key}: {row}\n".replace("'", "") for key, row in rows.items())


@settings(deadline=None)
@given(networks())
@example("topology: [Ring]\nnpus_count: [2]\nbandwidth: [1.0]\nlatency: [1e-300]\n")
def test_a_product_that_is_written_is_the_same_when_it_is_read(text):
    topology = read(text).document.topology
    written = write(topology)

    assert written.lost == ()
    again = read(written.content).document.topology
    assert (again.devices, set(again.links)) == (topology.devices, set(topology.links))


@settings(max_examples=50, deadline=None)
@given(clusters())
def test_a_cluster_is_refused_or_its_links_come_back(topology):
    """What is written has the same links between the same ranks."""
    try:
        written = write(topology)
    except FormatError:
        return
    again = read(written.content).document.topology
    ranks = {link: _between(topology, link) for link in topology.links}
    assert sorted(ranks.values()) == sorted(_between(again, link) for link in again.links)


def _between(topology: Topology, link: Link) -> tuple[int, int, float, float]:
    rank = topology.rank
    return rank.get(link.src, -1), rank.get(link.dst, -1), link.bandwidth, link.alpha


def test_a_torus_numbered_by_its_last_axis_is_a_product():
    """Rank 4 a + b at (a, b): the last axis changes fastest, so it is the first dimension."""
    names = [f"g{rank}" for rank in range(12)]
    links: list[Link] = []
    for a in range(3):
        for b in range(4):
            links += duplex(names[4 * a + b], names[4 * a + (b + 1) % 4], bandwidth=40.0)
            links += duplex(names[4 * a + b], names[4 * (a + 1) % 12 + b], bandwidth=20.0)
    gpus = tuple(device("gpu", name) for name in names)
    written = write(Topology("torus", gpus, tuple(links)))

    assert b"topology: [ Ring, Ring ]\nnpus_count: [ 4, 3 ]\nbandwidth: [ 40.0, 20.0 ]" in (
        written.content
    )


def gpus(count: int) -> tuple[Device, ...]:
    return tuple(device("gpu", f"g{rank}") for rank in range(count))


@pytest.mark.parametrize(
    ("topology", "sentence"),
    [
        (Topology("t", gpus(2), (Link("g0", "g1", 1.0),)), "g0->g1 has no equal way back"),
        (
            Topology("t", gpus(2), (Link("g0", "g1", 1.0), Link("g1", "g0", 2.0))),
            "g0->g1 has no equal way back",
        ),
        (Topology("t", gpus(1), ()), "t has 1 GPU; a product has 2 or more"),
        (Topology("t", gpus(3), duplex("g0", "g1", bandwidth=1.0)), "t is no product of rings"),
        (
            Topology("t", (*gpus(2), device("nic", "n")), duplex("g0", "n", bandwidth=1.0)),
            "n is a nic",
        ),
        (
            Topology(
                "t",
                (*gpus(2), device("switch", "s"), device("switch", "r")),
                duplex("s", "r", bandwidth=1.0),
            ),
            "s->r joins two devices that are no GPUs",
        ),
    ],
)
def test_what_is_no_product_is_refused_with_the_reason(topology, sentence):
    with pytest.raises(FormatError, match=sentence):
        write(topology)


def test_what_is_lost_is_told():
    topology = read(ONE).document.topology
    devices = (replace(topology.devices[0], name="first", host="h", buffer_bytes=1e9),)
    links = [replace(link, medium="NVLink") for link in topology.links]
    named = [
        replace(link, src=link.src.replace("g0", "first"), dst=link.dst.replace("g0", "first"))
        for link in links
    ]
    limit = SharedLimit("bus", (named[0].ends,), 5.0)
    other = Topology("mine", (*devices, *topology.devices[1:]), tuple(named), (limit,))

    assert [each.partition(":")[0] for each in write(other).lost] == [
        "its name, mine",
        "names and order of devices",
        "hosts",
        "limits of buffers, and what switches copy or reduce",
        "what links are made of and how many parallel ones they stand for",
        "1 shared limit",
    ]
