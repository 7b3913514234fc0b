"""Topologies of TACCL: what its times mean, and which side of its matrices is the destination."""

import json
import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccl.errors import FormatError, ProblemError
from ccl.topology import Link
from gallery.nvidia import dgx_2_te_ccl, ndv2
from interchange.formats.format import Imported, Question, Request
from interchange.formats.synthesizers.taccl import READER

NDV2 = {
    "name": "NDv2_1MB",
    "gpus_per_node": 8,
    "nics_per_node": 1,
    "alpha": 0.3,
    "node_betas_list": [23, 46],
    "node_invbws_list": [23, 46],
    "remote_alpha": 2.6,
    "remote_beta": 105,
    "remote_invbw": 107,
}
DGX2 = NDV2 | {
    "name": "DGX2_1MB",
    "gpus_per_node": 16,
    "nics_per_node": 8,
    "node_betas_list": [8],
    "node_invbws_list": [8],
}
CHAIN = {
    "name": "chain",
    "gpus_per_node": 3,
    "alpha": 1.0,
    "links": [[0, 0, 0], [1, 0, 0], [0, 2, 0]],
    "betas": [[0, 0, 0], [20, 0, 0], [0, 40, 0]],
}
"""By destination and source: GPU 0 to 1 over one link, 1 to 2 over two."""


def read(value: dict[str, Any], **settings: str) -> Imported:
    content = json.dumps(value).encode()
    assert READER.recognises(content)
    return READER.read(content, Request(name="t.json", settings=settings))


def test_an_ndv2_has_the_links_of_the_gallery_at_1_mb_over_beta():
    """1 MB in 23 µs is 43.48 GB/s for two NVLinks and in 46 µs half of it; a port 1 MB in 105."""
    found = read(NDV2).document.topology
    drawn = ndv2(hosts=2)
    inside = {each.ends: each for each in found.links if each.medium == "NVLink 2"}
    expected = {each.ends: each for each in drawn.links if each.medium == "NVLink 2"}
    assert {ends: each.count for ends, each in inside.items()} == {
        ends: each.count for ends, each in expected.items()
    }
    for ends, each in inside.items():
        beta = {50.0: 23.0, 25.0: 46.0}[expected[ends].bandwidth]
        assert each.bandwidth == pytest.approx(1000 / beta)
        assert each.alpha == 0.3
    assert found.ranks == drawn.ranks
    assert [found.device(name).host for name in found.ranks] == [
        drawn.device(name).host for name in drawn.ranks
    ]
    way = ("g3", "nic0", "network", "nic1", "g12")
    links = [found.link(*ends) for ends in pairwise(way)]
    assert {each.bandwidth for each in links} == {1000 / 105}
    assert sum(each.alpha for each in links) == pytest.approx(2.6)


def test_a_dgx_2_has_the_switch_of_te_ccls_and_eight_shared_ports():
    """1 MB in 8 µs is 125 GB/s, TE-CCL's figure; 16 GPUs by twos at 8 ports."""
    found = read(DGX2).document.topology
    drawn = dgx_2_te_ccl()
    names = {"nvswitch0": "switch0", "nvswitch1": "switch1"}
    for link in drawn.links:
        if "nvswitch" in link.src or "nvswitch" in link.dst:
            ends = names.get(link.src, link.src), names.get(link.dst, link.dst)
            assert found.link(*ends).bandwidth == link.bandwidth == 125.0
    assert found.link("g0", "switch0").alpha + found.link("switch0", "g1").alpha == 0.3
    ports = [
        [dst for src, dst in found.link_index if src == gpu and "nic" in dst] for gpu in found.ranks
    ]
    assert ports == [[f"nic{i // 2}"] for i in range(32)]


def test_the_number_of_hosts_is_said_or_reported():
    assert len(read(NDV2, hosts="4").document.topology.ranks) == 32
    one = read(NDV2, hosts="1")
    assert one.document.topology.hosts == ("h0",)
    assert any("1 port of the host" in each for each in one.report.left_out)
    assert any(each.startswith("2 hosts") for each in read(NDV2).report.assumed)


def test_beta_is_for_the_size_of_the_name_or_that_of_the_setting():
    """32 KB in 8 µs is 4 GB/s, and half of the size half of it."""
    small = DGX2 | {"name": "DGX2_32KB"}
    assert read(small).document.topology.link("g0", "switch0").bandwidth == 4.0
    half = read(small, chunk_size="16KB")
    assert half.document.topology.link("g0", "switch0").bandwidth == 2.0
    assert not any("chunk" in each for each in half.report.assumed)
    silent = read(DGX2 | {"name": "mine"})
    assert any("chunks of 1 MB" in each for each in silent.report.assumed)


def test_times_that_were_scaled_up_are_scaled_down_again():
    """100 times 0.3 and 8 µs are the same machine when divided by 100."""
    large = DGX2 | {
        "alpha": 30,
        "node_betas_list": [800],
        "remote_alpha": 260,
        "remote_beta": 10500,
    }
    large |= {"node_invbws_list": [830], "remote_invbw": 10760}
    assert any("scale" in each for each in read(large).report.assumed)
    found = read(large, scale="100").document.topology
    plain = read(DGX2).document.topology
    assert [each.ends for each in found.links] == [each.ends for each in plain.links]
    for one, other in zip(found.links, plain.links, strict=True):
        assert one.bandwidth == pytest.approx(other.bandwidth)
        assert one.alpha == pytest.approx(other.alpha)


def test_a_mesh_instead_of_the_switch():
    found = read(DGX2, inside="mesh", hosts="1").document.topology
    assert len(found.links) == 16 * 15
    assert {each.bandwidth for each in found.links} == {125.0}


def test_an_asymmetric_matrix_is_asked_about():
    """By destination 0 sends to 1 at 1 MB / 20 µs and 1 to 2 over two links of 1 MB / 40 µs."""
    with pytest.raises(Question, match=r"^t\.json: its matrix is not symmetric") as asked:
        read(CHAIN)
    assert asked.value.key == "direction"
    assert set(asked.value.choices) == {"destination-major", "source-major"}
    found = read(CHAIN, direction="destination-major").document.topology
    assert {each.ends: (each.bandwidth, each.count) for each in found.links} == {
        ("g0", "g1"): (50.0, 1),
        ("g1", "g2"): (50.0, 2),
    }
    other = read(CHAIN, direction="source-major").document.topology
    assert set(other.link_index) == {("g1", "g0"), ("g2", "g1")}
    with pytest.raises(FormatError, match="it may be destination-major"):
        read(CHAIN, direction="sideways")


def test_a_symmetric_matrix_is_not_asked_about():
    links = [[0, 1], [1, 0]]
    found = read(
        {"name": "x", "gpus_per_node": 2, "alpha": 5, "links": links, "invbws": [[0, 25], [25, 0]]}
    )
    assert [each.bandwidth for each in found.document.topology.links] == [50.0, 50.0]
    assert any("invbws less alpha" in each for each in found.report.assumed)


def test_a_sum_that_contradicts_alpha_and_beta_is_reported():
    """0.3 + 46 is 46.3 and rounds down to 46; 64 is neither."""
    assert not any("node_invbws" in each for each in read(NDV2).report.left_out)
    wrong = read(NDV2 | {"node_invbws_list": [23, 64]})
    (told,) = [each for each in wrong.report.left_out if "node_invbws" in each]
    assert "64" in told
    assert "46.3" in told


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gpus_per_node": 10**9}, "give 2 to 1,024"),
        ({"nics_per_node": 10**9}, "1,024 at most"),
        ({"node_betas_list": [0]}, "give a β above 0"),
        ({"node_betas_list": [1, 2, 3], "node_invbws_list": None}, "3 kinds of links"),
        ({"node_invbws_list": [1, 2, 3]}, "it has 3 values"),
        ({"remote_beta": -1}, "remote_beta"),
        ({"alpha": -1}, "α is -1"),
        ({"alpha": "x"}, "at alpha"),
        ({"node_betas_list": None, "node_invbws_list": None, "betas": []}, "no matrix links"),
    ],
)
def test_what_is_wrong_is_said_with_the_place(change, words):
    with pytest.raises(FormatError, match=rf"^t\.json: .*{words}"):
        READER.read(json.dumps(DGX2 | change).encode(), Request(name="t.json"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"links": [[0, 0], [0, 0]]}, "2 rows for 3 GPUs"),
        ({"links": [[1, 0, 0], [0, 0, 0], [0, 0, 0]]}, "linked with itself"),
        ({"betas": [[0, 0, 0]] * 3}, r"betas\[1\]\[0\]: 0 µs"),
        ({"betas": [[0, 0, 0], [20, 0], [0, 40, 0]]}, "2 values for 3"),
        ({"links": [[0, 0, 0], [10**9, 0, 0], [0, 1, 0]]}, "10,000 at most"),
    ],
)
def test_matrices_that_do_not_fit_are_refused(change, words):
    with pytest.raises(FormatError, match=words):
        read(CHAIN | change, direction="destination-major")


@pytest.mark.parametrize("key", ["hosts", "chunk_size", "scale", "inside"])
def test_a_setting_that_is_none_is_refused(key):
    with pytest.raises(FormatError, match=r"^t\.json: "):
        read(DGX2, **{key: "-3x"})


VALUES = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=9,
)
FIELDS = sorted({*DGX2, *CHAIN})


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([DGX2, CHAIN, NDV2]), st.dictionaries(st.sampled_from(FIELDS), VALUES))
def test_anything_is_read_or_refused_with_the_name_of_the_file(base, change):
    settings = {"direction": "destination-major", "hosts": "2"}
    links: tuple[Link, ...] = ()
    told = "t.json: "
    try:
        found = READER.read(
            json.dumps(base | change).encode(), Request(name="t.json", settings=settings)
        )
        links = found.document.topology.links
    except (FormatError, ProblemError) as error:
        told = str(error)
    assert told.startswith("t.json: ")
    assert all(math.isfinite(each.bandwidth) for each in links)
