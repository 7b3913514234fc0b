"""``nvidia-smi topo -m`` becomes a topology of one host. GB/s one way, µs."""

from itertools import combinations
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gallery
from ccl.collective import all_gather
from ccl.errors import FormatError, ProblemError
from ccl.problem import Problem
from formulations import solve
from interchange.formats.catalogue import reader, readers
from interchange.formats.format import Question, Request

SAMPLES = Path(__file__).parent / "samples"
SWITCH = (SAMPLES / "nvidia_smi_switch.txt").read_bytes()
PCIE = (SAMPLES / "nvidia_smi_pcie.txt").read_bytes()
MB = 1e6


def read(content, **said):
    return reader("nvidia-smi").read(content, Request(name="box.txt", settings=said))


def topology(content, **said):
    return read(content, **said).document.topology


def printed(names, cells, *, tab="\t", after=None):
    """Print a matrix; `cells` by pair, the other way round too unless it is there."""
    rows = [tab.join(["", *names, "CPU Affinity", "NUMA Affinity"])]
    for a in names:
        row = [" X " if a == b else cells.get((a, b)) or cells[b, a] for b in names]
        rows.append(tab.join([a, *row, *((after or {}).get(a, ("", "")))]))
    return ("\n".join(rows) + "\n").encode()


def every(count, cell):
    names = [f"GPU{i}" for i in range(count)]
    return printed(names, dict.fromkeys(combinations(names, 2), cell))


def wires(made):
    return {link.ends: (link.bandwidth, link.count) for link in made.links}


def ways(made):
    return nx.DiGraph([link.ends for link in made.links])


def test_the_hybrid_cube_mesh_is_that_of_the_gallery():
    """DGX-1V: every NVLink 2 is 25 GB/s in the data sheet and 20 in NCCL's plans."""
    for bandwidths, planned in (("spec", False), ("planned", True)):
        mesh = gallery.nvidia.dgx_1v(planned=planned)
        cells = {
            (link.src.upper().replace("G", "GPU"), link.dst.upper().replace("G", "GPU")): (
                f"NV{link.count}"
            )
            for link in mesh.links
        }
        names = [f"GPU{i}" for i in range(8)]
        cells = dict.fromkeys(combinations(names, 2), "SYS") | cells
        made = topology(printed(names, cells), bandwidths=bandwidths)

        assert {ends: link[0] for ends, link in wires(made).items()} == {
            (f"gpu{link.src[1:]}", f"gpu{link.dst[1:]}"): link.bandwidth for link in mesh.links
        }
        assert {link.medium for link in made.links} == {"NVLink 2"}


@pytest.mark.parametrize(("width", "generation", "each"), [(6, 2, 25), (12, 3, 25), (18, 4, 25)])
def test_equally_many_to_every_peer_is_asked_and_a_switch_carries_them_in_all(
    width, generation, each
):
    """8 GPUs with NV# to all 7 others: a star has # links per GPU, a mesh 7 times as many."""
    content = every(8, f"NV{width}")
    with pytest.raises(Question, match=f"in a mesh {7 * width}; no GPU has more than 18") as asked:
        read(content)
    assert (asked.value.key, set(asked.value.choices)) == ("nvlink", {"switch", "mesh"})

    star, mesh = topology(content, nvlink="switch"), topology(content, nvlink="mesh")

    assert wires(star) == {
        ends: (width * each, width)
        for i in range(8)
        for ends in ((f"gpu{i}", "nvswitch0"), ("nvswitch0", f"gpu{i}"))
    }
    assert {link.medium for link in star.links} == {f"NVLink {generation}"}
    assert len(mesh.links) == 56
    with pytest.raises(FormatError, match=r"^box\.txt: .*nvlink is 'both'.*switch, mesh"):
        read(content, nvlink="both")


def test_an_imported_switch_solves_like_the_one_of_the_gallery():
    """12 links of 25 GB/s: 7/8 of 8 MB into every GPU at 300 GB/s, twice 0.35 µs on the way."""
    made = topology(every(8, "NV12"), nvlink="switch")
    result = solve(Problem(made, all_gather(8, 8 * MB)), "list")

    assert result.bound is not None
    assert result.makespan == pytest.approx(7 * MB / 300e3 + 0.7)


def test_a_matrix_that_is_not_symmetric_asks_for_its_direction():
    """GPU0 to GPU1 has 2 links, back 1: 50 and 25 GB/s if rows are sources, else the reverse."""
    content = printed(["GPU0", "GPU1"], {("GPU0", "GPU1"): "NV2", ("GPU1", "GPU0"): "NV1"})
    with pytest.raises(Question, match="gpu0 to gpu1 has 2 NVLinks and back 1") as asked:
        read(content)
    rows, columns = (wires(topology(content, direction=said)) for said in asked.value.choices)

    assert rows == {("gpu0", "gpu1"): (50, 2), ("gpu1", "gpu0"): (25, 1)}
    assert columns == {("gpu0", "gpu1"): (25, 1), ("gpu1", "gpu0"): (50, 2)}


def test_a_terminal_underlines_and_adapters_hang_where_they_are():
    """GPUs 0 and 1 are behind one switch with NIC0, GPU 2 with NIC1; GPU 3 on their socket."""
    found = read(SWITCH, nvlink="switch")
    made = found.document.topology
    way = ways(made.__class__(made.name, made.devices, tuple(_not_nvlink(made))))

    assert set(way.successors("mlx5_0")) == {"pcie0"}
    assert set(way.successors("pcie0")) == {"gpu0", "gpu1", "mlx5_0", "numa0"}
    assert set(way.successors("pcie1")) == {"gpu2", "mlx5_1", "numa1"}
    assert set(way.successors("numa1")) == {"gpu3", "pcie1", "numa0"}
    assert made.link("gpu0", "nvswitch0").bandwidth == 300
    assert made.link("gpu0", "pcie0").medium == "PCIe 4"
    assert found.report.taken[0] == "4 GPUs and 2 network adapters of one host"
    assert "the CPU affinity of 4 GPUs" in found.report.left_out
    assert set(made.hosts) == {"h0"}
    assert None not in {each.host for each in made.devices}


def _not_nvlink(made):
    return [link for link in made.links if not link.medium.startswith("NVLink")]


def test_without_nvlinks_the_path_classes_are_a_tree():
    """PIX in PXB in PHB on one socket, NODE on the other; SOC is what SYS was called."""
    made = topology(PCIE, pcie="3")
    way = ways(made)

    assert set(way.successors("pcie1")) == {"gpu0", "gpu1", "pcie0"}
    assert set(way.successors("pcie0")) == {"pcie1", "gpu2", "numa0"}
    assert set(way.successors("numa0")) == {"pcie0", "mlx4_0", "numa1"}
    assert set(way.successors("numa1")) == {"gpu3", "gpu4", "numa0"}
    assert made.link("gpu0", "pcie1").bandwidth == 15.75
    assert made.link("numa0", "numa1").bandwidth == 10
    assert solve(Problem(made, all_gather(5, 5 * MB)), "list").bound is not None


def test_gpus_of_one_numa_domain_meet_in_it_whatever_the_matrix_says():
    """SYS between all four, NUMA 0 and 1 with two GPUs each: two domains, not four."""
    names = [f"GPU{i}" for i in range(4)]
    after = {name: ("0-63", str(i // 2)) for i, name in enumerate(names)}
    found = read(printed(names, dict.fromkeys(combinations(names, 2), "SYS"), after=after))
    way = ways(found.document.topology)

    assert set(way.successors("numa0")) == {"gpu0", "gpu1", "numa1"}
    assert set(way.successors("numa1")) == {"gpu2", "gpu3", "numa0"}
    assert any(each.startswith("2 pairs of GPUs") for each in found.report.assumed)


def test_the_tree_is_kept_beside_nvlinks_only_where_it_is_needed():
    """Two bridged pairs reach each other over the host; a full mesh does not need it."""
    names = [f"GPU{i}" for i in range(4)]
    pairs = dict.fromkeys(combinations(names, 2), "PHB") | {
        ("GPU0", "GPU1"): "NV4",
        ("GPU2", "GPU3"): "NV4",
    }
    after = dict.fromkeys(names, ("0-15", "0"))
    bridged, full = topology(printed(names, pairs, after=after)), every(4, "NV4")

    assert [each.name for each in bridged.devices if each.kind == "switch"] == ["numa0"]
    assert bridged.link("gpu0", "gpu1").bandwidth == 4 * 14.0625
    assert [each.kind for each in topology(full, nvlink="mesh").devices] == ["gpu"] * 4
    kept = topology(full, nvlink="mesh", pcie_tree="true")
    assert {link.medium for link in kept.links} == {"NVLink 3", "PCIe 4", "socket link"}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"generation": "7"}, "generation is '7'; it may be 1, 2"),
        ({"bandwidths": "real"}, "bandwidths is 'real'; it may be spec, planned"),
        ({"pcie": "2"}, "pcie is '2'; it may be 3"),
        ({"pcie_tree": "yes"}, "pcie_tree is 'yes'; it may be true, false"),
        ({"sockets": "-1"}, "sockets is '-1'; give GB/s above 0"),
        ({"sockets": "nan"}, "sockets is 'nan'; give GB/s above 0"),
    ],
)
def test_a_setting_that_is_unknown_is_told(said, told):
    with pytest.raises(FormatError, match=told):
        read(SWITCH, nvlink="switch", **said)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("GPU1\tNV1\t X ", "GPU1\tNV1", "line 3: the row of GPU1 has 2 cells and the header 3"),
        ("GPU1\tNV1\t X \tSYS", "GPU1\tNV1\tSYS\tSYS", "line 3: GPU1 to GPU1 is 'SYS'"),
        ("GPU1\tNV1", "GPU1\tNV0", "line 3: GPU1 to GPU0 is 'NV0'"),
        ("GPU1\tNV1", "GPU1\tNV99999", "line 3: GPU1 to GPU0 is 'NV99999'"),
        ("GPU1\tNV1", "GPU1\tOK", "line 3: GPU1 to GPU0 is 'OK'"),
        ("GPU1\tNV1", "GPU0\tNV1", "line 3: GPU0 has a second row"),
        ("\nGPU2", "\n\nLegend", "the header names GPU2, which has no row"),
        ("\tGPU1\tGPU2", "\tGPU1\tGPU1", "line 1: two columns are called GPU1"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(old, new, told):
    names = ["GPU0", "GPU1", "GPU2"]
    text = printed(names, dict.fromkeys(combinations(names, 2), "SYS") | {("GPU0", "GPU1"): "NV1"})
    wrong = text.decode().replace(old, new).encode()
    assert wrong != text
    with pytest.raises(FormatError) as error:
        read(wrong)
    assert told in str(error.value)


def test_more_columns_than_any_host_has_are_refused_before_they_are_read():
    with pytest.raises(FormatError, match="it has 2,000 columns; a matrix is read up to 256"):
        read(("\t" + "\t".join(f"GPU{i}" for i in range(2000)) + "\nGPU0\t X \n").encode())


def test_copies_of_terminals_with_spaces_prompts_and_indents_are_read_alike():
    lines = PCIE.decode().splitlines()
    tabs = "\n".join(
        "\t".join(["", *line.split()] if "CPU" in line else line.split()) for line in lines[1:]
    )
    indented = "\n".join(f"    {line}" for line in ["root@box:~# nvidia-smi topo -m", *lines])

    assert topology(tabs.encode()) == topology(PCIE) == topology(indented.encode())


@pytest.mark.parametrize("content", [SWITCH, PCIE, every(2, "NV4"), every(1, "")])
def test_it_is_recognised_by_its_own_reader_alone(content):
    assert [each.name for each in readers() if each.recognises(content)] == ["nvidia-smi"]


def test_one_gpu_is_a_topology():
    assert [each.name for each in topology(every(1, "")).devices] == ["gpu0"]


LEVELS = ("PIX", "PXB", "PHB", "NODE", "SYS")


@st.composite
def trees(draw):
    """Draw for some GPUs the level at which each two meet: those of a tree, so an ultrametric."""
    count = draw(st.integers(2, 9))
    label = [draw(st.lists(st.integers(0, 1), min_size=5, max_size=5)) for _ in range(count)]
    names = [f"GPU{i}" for i in range(count)]
    cells = {}
    for i, j in combinations(range(count), 2):
        differ = [level for level in range(5) if label[i][level] != label[j][level]]
        cells[names[i], names[j]] = LEVELS[max(differ, default=0)]
    return names, cells


@settings(deadline=None, max_examples=60)
@given(trees())
def test_every_pair_meets_in_the_tree_at_its_level(drawn):
    """On the only way between two GPUs of a tree, the switches tell the level where they meet."""
    names, cells = drawn
    found = read(printed(names, cells))
    way = ways(found.document.topology)

    assert not [each for each in found.report.left_out if "further apart" in each]
    for (a, b), cell in cells.items():
        path = nx.shortest_path(way, a.lower(), b.lower())
        domains = [each for each in path if each.startswith("numa")]
        bridges = [each for each in path if each.startswith("bridge")]
        if cell == "SYS":
            assert len(domains) == 2
        elif cell in {"NODE", "PHB"}:
            assert len(domains) == 1 or (cell == "PHB" and len(bridges) == 1)
        else:
            assert not domains
            assert not bridges


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_whatever_is_done_to_a_matrix_is_read_or_refused_in_words(data):
    content = bytearray(data.draw(st.sampled_from([SWITCH, PCIE])))
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(content) - 1))
        put = data.draw(st.sampled_from([b"\t", b"\n", b"X", b"NV9", b"GPU0", b"\xff", b"9" * 30]))
        content[at : at + data.draw(st.integers(0, 6))] = put

    assert refusal(bytes(content)).startswith(("box.txt", "read"))


def refusal(content):
    """Return what is said against a matrix; any other error is a bug."""
    try:
        read(content, nvlink="switch", direction="rows")
    except (FormatError, ProblemError) as error:
        return str(error)
    return "read"
