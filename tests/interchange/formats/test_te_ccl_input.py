"""Inputs of TE-CCL: the cluster that is meant, the problem, and what becomes of the options."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccl.collective import all_gather, all_to_all, broadcast
from ccl.errors import FormatError, ProblemError
from ccl.problem import Problem
from ccl.serialization.documents import document
from gallery.amd import amd_te_ccl
from gallery.nvidia import dgx_1v, dgx_2_te_ccl, ndv2
from gallery.toys import mesh, ring
from interchange.formats.format import Request
from interchange.formats.synthesizers.te_ccl.demand import Named, as_released, cluster
from interchange.formats.synthesizers.te_ccl.input import READER, WRITER

SAMPLE = Path(__file__).parent / "samples" / "te_ccl_input_ndv2.json"
ASKED = Request(name="in.json")


def read(topology, **instance):
    value = {"TopologyParams": topology, "InstanceParams": {"collective": 1, **instance}}
    return READER.read(json.dumps(value).encode(), ASKED)


def content(topology):
    """What a cluster is, whatever the order of its devices."""
    devices = {(e.name, e.kind, e.host, e.stores, e.copies, e.reduces) for e in topology.devices}
    return devices, {(e.ends, e.bandwidth, e.alpha) for e in topology.links}


@pytest.mark.parametrize(
    ("named", "same"),
    [
        (Named(name="DGX1", alpha=(0.7, 0.0)), dgx_1v()),
        (Named(name="NDv2", copies=False), ndv2(hosts=1)),
        (Named(name="NDv2", chassis=2, copies=False), ndv2(hosts=2)),
        (Named(name="NDv2", chassis=4, copies=False), ndv2(hosts=4)),
        (Named(name="DGX2", copies=False), dgx_2_te_ccl(hosts=1)),
        (Named(name="DGX2", chassis=2, copies=False), dgx_2_te_ccl(hosts=2)),
        (Named(name="AMD", chassis=3, copies=False, alpha=(0.6, 0.75)), amd_te_ccl(hosts=3)),
        (Named(name="Mesh", side=4), mesh((4, 4), bandwidth=100, alpha=0)),
    ],
)
def test_clusters_are_those_of_the_gallery(named, same):
    assert content(cluster(named)[0]) == content(same)


@pytest.mark.parametrize(
    ("named", "counts"),
    [
        (Named(name="DGX1"), (8, 0, 32)),
        (Named(name="NDv2", chassis=2), (16, 0, 66)),
        (Named(name="NDv2", chassis=3), (24, 1, 102)),
        (Named(name="DGX2", chassis=2), (32, 2, 80)),
        (Named(name="AMD"), (16, 0, 56)),
        (Named(name="AMD", chassis=2), (32, 17, 208)),
        (Named(name="Mesh", side=4), (16, 0, 48)),
    ],
)
def test_counts_are_those_of_the_paper(named, counts):
    """A box of 8 has 32 links; three have 2 more each, to the switch and from it.

    Two DGX2 have 32 GPUs on switches both ways and 8 links to the other box each: 64 + 16. An AMD
    box has 56, and with others 8 switches with 3 links both ways each: 56 + 48. A mesh of side s
    has 2 s (s - 1) pairs: 24 for s = 4.
    """
    made, _ = cluster(named)
    gpus, switches, links = counts
    assert len(made.ranks) == gpus
    assert len(made.devices) == gpus + switches
    assert len(made.links) == links


def test_the_slips_of_the_released_code_are_known():
    """NDv2's GPU 0 is a switch; rows of a mesh wrap (2 x 3 links more at side 4); of each AMD
    chassis a GPU is a switch and a switch a GPU, so that the numbers stay."""
    assert len(as_released(Named(name="NDv2", chassis=2)).ranks) == 15
    released = as_released(Named(name="Mesh", side=4))
    assert len(released.links) == 48 + 6
    assert ("g3", "g4") in released.link_index
    amd = as_released(Named(name="AMD", chassis=2))
    assert len(amd.ranks) == 32
    assert amd.device("g15").kind == "switch"
    assert amd.device("s7").kind == "gpu"
    assert amd.link("s0", "g1").bandwidth == 50
    assert len(as_released(Named(name="DGX2")).devices) == 34


def test_a_sample_is_a_problem_with_its_options_in_words():
    """16 GPUs of 62.5 MB gather 1 GB; 2 hours are 7,200 s."""
    imported = READER.read(SAMPLE.read_bytes(), ASKED)

    problem, report = imported.document.problem, imported.report
    assert problem == Problem(cluster(Named(name="NDv2", chassis=2))[0], all_gather(16, 1e9))
    assert "te-ccl-milp with epoch=slowest, horizon=12, objective=early-arrivals" in report.taken[2]
    assert "7200 s" in report.taken[2]
    assert any("GPU 0 is a GPU" in each for each in report.assumed)
    assert any("alpha_threshold" in each for each in report.left_out)
    assert any("2 options of its program: debug" in each for each in report.left_out)
    assert any("2 options of its solver: mip_focus" in each for each in report.left_out)


def test_an_all_to_all_has_chunks_for_each_pair():
    """3 chunks of 1 KB to each of 8 GPUs, its own counted: a rank's buffer is 24 KB."""
    name = {"name": "DGX1", "chunk_size": 1e-6, "alpha": [7e-7, 0]}
    imported = read(name, collective=2, num_chunks=3, epoch_duration=5e-7)

    collective = imported.document.problem.collective
    assert collective == all_to_all(8, 24_000, chunks=3)
    assert imported.document.topology.link("g0", "g1").alpha == 0.7
    assert "te-ccl-lp with epoch_duration=0.5 µs" in imported.report.taken[2]


def test_a_star_is_another_method():
    assert "te-ccl-astar" in read({"name": "DGX1"}, objective_type=4).report.taken[2]


@pytest.mark.parametrize(
    ("topology", "instance", "told"),
    [
        ({"name": "DGX3"}, {}, "'DGX3' is unknown; there are DGX1"),
        ({"name": "NDv2", "chassis": 10**6}, {}, "1 to 128 chassis"),
        ({"name": "DGX2", "chassis": 3}, {}, "1 to 2 chassis, got 3"),
        ({"name": "Mesh", "side_length": 1000}, {}, "a side of 2 to 32"),
        ({"name": "DGX1", "chunk_size": 0}, {}, "chunk_size"),
        ({"name": "DGX1", "chunk_size": "1"}, {}, "chunk_size"),
        ({"name": "DGX1"}, {"collective": 3}, "collective"),
        ({"name": "Mesh", "side_length": 32}, {"num_chunks": 1000}, "give fewer"),
        ({"chassis": 1}, {}, "name"),
    ],
)
def test_what_is_wrong_is_said(topology, instance, told):
    with pytest.raises(FormatError, match=r"^in\.json: .*" + told):
        read(topology, **instance)


@pytest.mark.parametrize(
    ("topology", "named"),
    [
        (dgx_1v(), "DGX1"),
        (ndv2(hosts=2), "NDv2"),
        (ndv2(hosts=3, copies=True), "NDv2"),
        (dgx_2_te_ccl(), "DGX2"),
        (amd_te_ccl(hosts=2), "AMD"),
        (mesh((3, 3), bandwidth=100, alpha=0.5), "Mesh"),
    ],
)
@pytest.mark.parametrize("make", [all_gather, all_to_all])
def test_what_is_written_reads_as_the_same_problem(topology, named, make):
    ranks = len(topology.ranks)
    problem = Problem(topology, make(ranks, ranks * 2 * 1e5, chunks=2))
    written = WRITER.write(document(problem), WRITER.options())
    again = READER.read(written.content, ASKED).document.problem

    assert json.loads(written.content)["TopologyParams"]["name"] == named
    assert content(again.topology) == content(topology)
    assert again.collective == problem.collective


def test_other_clusters_and_collectives_are_not_written():
    with pytest.raises(FormatError, match="none of the clusters"):
        WRITER.write(document(Problem(ring(4), all_gather(4, 1e6))), WRITER.options())
    with pytest.raises(FormatError, match="this is a broadcast"):
        WRITER.write(document(Problem(dgx_1v(), broadcast(8, 1e6))), WRITER.options())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=4), each),
    max_leaves=5,
)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(("TopologyParams", "InstanceParams", "GurobiParams")),
    st.sampled_from(("name", "chassis", "alpha", "side_length", "num_chunks", "collective", "x")),
    JSON | st.sampled_from(("Mesh", "AMD", "DGX2", 10**9, 10**30, -1, 0, 1e308)),
)
def test_whatever_stands_in_it_it_is_read_or_refused(block, key, value):
    said = json.loads(SAMPLE.read_text())
    said[block][key] = value
    told = "in.json: "
    try:
        READER.read(json.dumps(said).encode(), ASKED)
    except (FormatError, ProblemError) as error:
        told = str(error)
    assert told.startswith("in.json: ")
