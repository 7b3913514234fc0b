"""``rocm-smi --showtopo`` becomes a topology of one host. GB/s one way, µs."""

import json
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gallery
from ccl.collective import all_gather
from ccl.errors import FormatError, ProblemError
from ccl.problem import Problem
from formulations import solve
from interchange.formats.catalogue import reader, readers
from interchange.formats.format import Request

RING = (Path(__file__).parent / "samples/rocm_smi_ring.txt").read_bytes()
MB = 1e6


def read(content, **said):
    return reader("rocm-smi").read(content, Request(name="box.txt", settings=said))


def topology(content, **said):
    return read(content, **said).document.topology


def as_json(count, kind, *, weight=None, hops=None, numa=None):
    """Write what the tool does with --json: each pair once, values as text."""
    system = {}
    for i, j in combinations(range(count), 2):
        for what, told in (("Weight", weight), ("Hops", hops), ("Link type", kind)):
            if told is not None:
                system[f"(Topology) {what} between DRM devices {i} and {j}"] = str(told(i, j))
    cards = {
        f"card{i}": {"(Topology) Numa Node": str(numa[i]), "(Topology) Numa Affinity": "0"}
        for i in range(count)
        if numa
    }
    return json.dumps({"system": system, **cards}).encode()


def pairs(made, medium):
    return {link.ends for link in made.links if link.medium == medium}


def test_a_full_mesh_of_eight_is_that_of_the_gallery():
    """MI300X: 28 pairs of 64 GB/s each way; the host is not needed."""
    found = read(as_json(8, lambda _i, _j: "XGMI", weight=lambda _i, _j: 15))
    mesh = gallery.amd.mi300x()

    assert {
        (f"g{link.src[3:]}", f"g{link.dst[3:]}", link.bandwidth, link.alpha)
        for link in found.document.topology.links
    } == {(link.src, link.dst, link.bandwidth, link.alpha) for link in mesh.links}
    assert any("pcie_tree=true" in each for each in found.report.left_out)


def test_a_pair_of_twice_the_weight_has_no_link_of_its_own():
    """A ring of 4: every pair says one hop, opposite ones weigh 30, two links of 15."""
    found = read(RING)
    made = found.document.topology

    assert {link.ends for link in made.links} == {
        (f"gpu{i}", f"gpu{j}") for i in range(4) for j in range(4) if (i - j) % 4 in {1, 3}
    }
    assert {link.bandwidth for link in made.links} == {50.0}
    assert any(each.startswith("2 XGMI pairs of weight 30") for each in found.report.assumed)
    assert len(topology(RING, xgmi="all").links) == 12
    assert {link.bandwidth for link in topology(RING, bandwidth="36").links} == {36.0}
    result = solve(Problem(made, all_gather(4, 4 * MB)), "list")
    assert result.makespan >= 3 * MB / 100e3


def test_text_and_json_of_one_machine_are_read_alike():
    told = as_json(
        4,
        lambda _i, _j: "XGMI",
        weight=lambda i, j: 30 if (i - j) % 4 == 2 else 15,
        hops=lambda _i, _j: 1,
        numa=[0, 0, 1, 1],
    )

    assert topology(told) == topology(RING)
    assert topology(told, pcie_tree="true") == topology(RING, pcie_tree="true")


def test_two_hives_reach_each_other_over_the_host():
    """GPUs 0-1 and 2-3 on XGMI, the rest PCIE: each GPU hangs on its socket, these are joined."""
    made = topology(
        as_json(
            4,
            lambda i, j: "XGMI" if i // 2 == j // 2 else "PCIE",
            hops=lambda i, j: 1 if i // 2 == j // 2 else 3,
            numa=[0, 0, 1, 1],
        ),
        sockets="18",
    )

    assert pairs(made, "Infinity Fabric") == {
        ends for i in (0, 2) for ends in ((f"gpu{i}", f"gpu{i + 1}"), (f"gpu{i + 1}", f"gpu{i}"))
    }
    assert {("gpu0", "numa0"), ("gpu1", "numa0"), ("gpu2", "numa1")} <= pairs(made, "PCIe 4")
    assert made.link("numa0", "numa1").bandwidth == 18
    assert solve(Problem(made, all_gather(4, 4 * MB)), "list").bound is not None


def test_hops_tell_the_sockets_where_numa_is_not_told():
    """2 hops are over one socket, 3 over two: GPUs 0 and 1, GPU 2 alone."""
    made = topology(as_json(3, lambda _i, _j: "PCIE", hops=lambda _i, j: 3 if j == 2 else 2))

    assert pairs(made, "socket link") == {("numa0", "numa1"), ("numa1", "numa0")}
    assert {ends for ends in pairs(made, "PCIe 4") if ends[0].startswith("gpu")} == {
        ("gpu0", "numa0"),
        ("gpu1", "numa0"),
        ("gpu2", "numa1"),
    }


def test_a_pair_whose_weight_is_not_told_is_linked_and_so_are_those_of_the_least():
    """Of three pairs one weighs 15, one link, one 30, two; no number of the third is not 0."""
    made = topology(
        as_json(
            3,
            lambda _i, _j: "XGMI",
            weight=lambda i, j: "N/A" if (i, j) == (0, 2) else 15 + 15 * (i == 1),
        )
    )

    assert {link.ends for link in made.links} == {
        (f"gpu{i}", f"gpu{j}") for i, j in ((0, 1), (1, 0), (0, 2), (2, 0))
    }


def test_several_hops_of_xgmi_are_no_link():
    made = topology(
        as_json(3, lambda _i, _j: "XGMI", hops=lambda i, j: 2 if (i, j) == (0, 2) else 1)
    )

    assert ("gpu0", "gpu2") not in {link.ends for link in made.links}
    assert len(made.links) == 4


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (b"GPU2   30", b"GPU2   ", "line 8: the row of GPU2 has 3 cells and its header 4 columns"),
        (b"GPU3   15", b"GPU7   15", "line 9: the row of GPU7"),
        (b"GPU0         GPU1 ", b"GPU1         GPU1 ", "line 5: it names a GPU twice"),
        (b"Link Type", b"Colour", "it does not tell the link types"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(old, new, told):
    assert old in RING
    with pytest.raises(FormatError) as error:
        read(RING.replace(old, new, 1))
    assert str(error.value).startswith(f"box.txt: {told}")


@pytest.mark.parametrize(
    ("said", "told"),
    [({"xgmi": "some"}, "may be nearest, all"), ({"bandwidth": "0"}, "GB/s above 0")],
)
def test_a_setting_that_is_unknown_is_told(said, told):
    with pytest.raises(FormatError, match=told):
        read(RING, **said)


def test_more_gpus_than_any_host_has_are_refused():
    system = {f"(Topology) Link type between DRM devices 0 and {i}": "XGMI" for i in range(1, 1500)}
    with pytest.raises(FormatError, match="1,500 GPUs; they are read up to 256"):
        read(json.dumps({"system": system}).encode())


@pytest.mark.parametrize("content", [RING, as_json(2, lambda _i, _j: "XGMI")])
def test_it_is_recognised_by_its_own_reader_alone(content):
    assert [each.name for each in readers() if each.recognises(content)] == ["rocm-smi"]


def refusal(content):
    """Return what is said against tables; any other error is a bug."""
    try:
        read(content)
    except (FormatError, ProblemError) as error:
        return str(error)
    return "read"


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_whatever_is_done_to_tables_is_read_or_refused_in_words(data):
    told = as_json(3, lambda _i, _j: "PCIE", weight=lambda _i, _j: 40, numa=[0, 1, 0])
    content = bytearray(data.draw(st.sampled_from([RING, told])))
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(content) - 1))
        put = data.draw(st.sampled_from([b" ", b"\n", b"X", b"9", b"GPU1", b"\xff", b"null", b"="]))
        content[at : at + data.draw(st.integers(0, 6))] = put
    assert refusal(bytes(content)).startswith(("box.txt", "read"))
