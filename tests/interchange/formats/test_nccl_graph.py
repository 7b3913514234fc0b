"""Channels of NCCL are drawn over the cluster that is open."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccl.errors import FormatError, ProblemError
from ccl.topology import Topology, device, duplex
from gallery import open_cluster
from interchange.formats.format import Imported, Request
from interchange.formats.machines.nccl import system
from interchange.formats.machines.nccl.channels import READER, recognises

SAMPLES = Path(__file__).parent / "samples"
CHANNELS = (SAMPLES / "nccl_channels.xml").read_bytes()


def machine(name: str = "nccl_cube", **told: str) -> Topology:
    content = (SAMPLES / f"{name}.xml").read_bytes()
    return system.READER.read(content, Request(settings=told)).document.topology


def channels(content: bytes | str, over: Topology | None, **told: str) -> Imported:
    data = content if isinstance(content, bytes) else content.encode()
    return READER.read(data, Request(name="x.xml", topology=over, settings=told))


def paths(found: Imported) -> dict[str, tuple[str, ...]]:
    assert found.overlay is not None
    return dict(zip(found.overlay.labels, found.overlay.paths, strict=True))


def graph(inside: str, kind: int = 0, pattern: int | str = 4) -> str:
    return (
        f'<graphs version="1"><graph id="{kind}" pattern="{pattern}"><channel>{inside}</channel>'
        "</graph></graphs>"
    )


def test_files_of_channels_are_recognised_and_no_others():
    assert recognises(CHANNELS)
    assert not recognises(b"<graph/>")


def test_a_cluster_must_be_open():
    with pytest.raises(FormatError, match=r"^x\.xml: .* open the cluster first"):
        channels(CHANNELS, None)


def test_a_ring_without_ports_is_closed():
    """All four hops of 0, 3, 2, 1, 0 are NVLinks."""
    found = paths(channels(CHANNELS, machine()))

    assert found["ring 1"] == ("gpu0", "gpu3", "gpu2", "gpu1", "gpu0")


def test_a_ring_with_ports_enters_and_leaves_by_them():
    """Port 0 and GPU 0 share the PCIe switch; from GPU 3 the way to port 0x1 is over the CPUs."""
    way = paths(channels(CHANNELS, machine()))["ring 0"]

    assert way[:4] == ("nic0", "pcie1", "pcie0", "gpu0")
    assert way[4:7] == ("gpu1", "gpu2", "gpu3")
    assert way[7:] == ("pcie2", "cpu1", "cpu0", "pcie0", "pcie1", "nic1")


def test_the_second_gpu_of_a_split_tree_leads_downwards():
    """NVIDIA/nccl, src/graph/search.cc: a split tree is back at the port after its second GPU."""
    found = paths(channels(CHANNELS, machine()))

    assert found["tree 0"] == ("nic0", "pcie1", "pcie0", "gpu1", "gpu0", "gpu3", "gpu2")
    assert found["tree 0, downwards"] == ("gpu0", "pcie0", "pcie1", "nic0")


def test_the_report_says_speeds_types_and_patterns_in_words():
    found = channels(CHANNELS, machine())

    ring, tree, nvls = found.report.taken
    assert ring == (
        "ring: 2 channels as a ring, 20 GB/s inside a host over NVLink, 12 GB/s between hosts over "
        "one PCIe switch"
    )
    assert "tree: 1 channel as a split tree" in tree
    assert "several PCIe switches" in tree
    assert "nvls: 0 channels as NVLS" in nvls
    assert found.overlay is not None
    assert found.overlay.title == "NCCL: ring 2 × 20 GB/s, tree 1 × 10 GB/s"
    assert found.document.topology == machine()


def test_one_graph_can_be_chosen():
    assert set(paths(channels(CHANNELS, machine(), graph="tree"))) == {
        "tree 0",
        "tree 0, downwards",
    }
    assert channels(CHANNELS, machine(), graph="nvls").overlay is None
    with pytest.raises(FormatError, match=r"^x\.xml: it has no <graph> of collnet-chain"):
        channels(CHANNELS, machine(), graph="collnet-chain")


def test_between_gpus_of_a_switch_the_way_is_over_the_fastest():
    """Four NVSwitches and no PCIe are one hop away; the first of those with 5 NVLinks is taken."""
    found = paths(channels(graph('<gpu dev="0"/><gpu dev="1"/>'), machine("nccl_hopper")))

    assert found["ring 0"] == ("gpu0", "nvswitch0", "gpu1", "nvswitch0", "gpu0")


def test_nvls_leads_from_its_gpu_to_the_nvswitches():
    found = channels(graph('<gpu dev="1"/>', 3, 5), machine("nccl_hopper"))

    assert found.overlay is not None
    assert found.overlay.paths == tuple(("gpu1", f"nvswitch{i}") for i in range(4))


def test_numbers_are_of_the_host_that_is_named_or_of_the_rank():
    """GPU 1 of the second host is the fourth; a number's top byte counts hosts; a rank is exact."""
    cluster = machine("nccl_hopper", hosts="3")
    pair = '<gpu dev="0"/><gpu dev="1"/>'

    assert paths(channels(graph(pair), cluster, host="h1"))["ring 0"][::2][:2] == ("gpu2", "gpu3")
    byte = graph(f'<gpu dev="{2 << 56:#x}"/><gpu dev="{(2 << 56) + 1:#x}"/>')
    assert paths(channels(byte, cluster))["ring 0"][::2][:2] == ("gpu4", "gpu5")
    ranked = graph('<gpu dev="0" rank="5"/><gpu dev="1" rank="4"/>')
    assert paths(channels(ranked, cluster))["ring 0"][::2][:2] == ("gpu5", "gpu4")


def test_a_cluster_without_ports_leaves_them_out_and_says_so():
    found = channels(graph('<net dev="0"/><gpu dev="0"/><gpu dev="1"/><net dev="1"/>'), _pair())

    assert paths(found)["ring 0"] == ("a", "b")
    assert found.report.left_out == ("2 network ports that the cluster does not have",)


def test_a_gpu_relays_only_where_nothing_else_leads():
    """GPU 0 and 7 of the hybrid cube mesh both have NVLinks to 3 and 4, 0 two of them to 4."""
    found = paths(channels(graph('<gpu dev="0"/><gpu dev="7"/>'), open_cluster("dgx-1v")))

    assert found["ring 0"] == ("g0", "g4", "g7", "g4", "g0")


def _pair() -> Topology:
    links = duplex("a", "b", bandwidth=20.0)
    return Topology("pair", (device("gpu", "a"), device("gpu", "b")), links)


def test_parts_that_no_link_joins_are_told():
    cluster = Topology("apart", (device("gpu", "a"), device("gpu", "b")), ())
    found = channels(graph('<gpu dev="0"/><gpu dev="1"/>'), cluster)

    assert found.overlay is None
    assert found.report.left_out == ("1 way that no links of the cluster lead",)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("<graphs/>", "it has no <graph>"),
        (graph('<gpu dev="4"/>'), r'line 1: <gpu dev="4"> is not on h0, which has 4 GPUs'),
        (graph('<gpu dev="-1"/>'), "line 1: <gpu> is on host -1"),
        (graph(f'<gpu dev="{1 << 56}"/>'), "line 1: <gpu> is on host 1"),
        (graph('<gpu dev="x"/>'), '<gpu dev="x"> is not a whole number'),
        (graph("<gpu/>"), "<gpu> has no dev"),
        (graph('<gpu dev="0"/>', pattern="a"), "pattern"),
        ("<graphs><graph id='0' speedintra='inf'/></graphs>", "is not a finite number"),
        ("<system/>", "it begins with <system>"),
    ],
)
def test_wrong_files_are_refused_in_a_sentence(content, told):
    with pytest.raises(FormatError, match=rf"^x\.xml: .*{told}"):
        channels(content, machine())


@pytest.mark.parametrize("told", [{"graph": "x"}, {"host": "x"}])
def test_wrong_settings_are_refused(told):
    with pytest.raises(FormatError, match=r"^x\.xml: "):
        channels(CHANNELS, machine(), **told)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_is_changed_in_a_file_is_read_or_refused(data):
    content, cluster = CHANNELS, machine()
    for _ in range(data.draw(st.integers(1, 4))):
        found = data.draw(st.sampled_from(list(re.finditer(rb'[\w.]+|[<>"/=]', content))))
        other = data.draw(st.sampled_from([b"", b"-1", b"7", b"9" * 30, b"nan", b"\xff", b"gpu"]))
        content = content[: found.start()] + other + content[found.end() :]
    try:
        made = channels(content, cluster)
    except (FormatError, ProblemError) as error:
        told = str(error)
    else:
        told = "x.xml: read"
        if made.overlay is not None:
            made.overlay.check(cluster)
    assert told.startswith("x.xml: ")
