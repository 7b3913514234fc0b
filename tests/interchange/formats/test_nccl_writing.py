"""Hosts are written as NCCL wants them, and what cannot be said is told. GB/s one way, µs."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ccl.errors import FormatError
from ccl.options import typed
from ccl.serialization.documents import document
from ccl.topology import Link, SharedLimit, Topology, device, duplex
from gallery import open_cluster
from interchange.formats.format import Request, Written
from interchange.formats.machines.nccl.system import READER
from interchange.formats.machines.nccl.writing import WRITER
from interchange.formats.xml import Element, parse_xml, xml_text
from tests.interchange.formats.strategies import clusters

SAMPLES = Path(__file__).parent / "samples"
ADDRESSES = "PCI addresses are invented; put in those of the machine before NCCL loads the file"


def topology(content: bytes, **told: str) -> Topology:
    return READER.read(content, Request(name="x.xml", settings=told)).document.topology


def written(cluster: Topology, **options: str) -> Written:
    return WRITER.write(document(cluster), typed(WRITER.options, options))


def elements(cluster: Topology, tag: str, **options: str) -> list[dict[str, str]]:
    root = parse_xml(written(cluster, **options).content)
    return [each.attributes for each in root.everywhere(tag)]


@pytest.mark.parametrize("bandwidths", ["planned", "spec"])
@pytest.mark.parametrize("name", ["nccl_cube", "nccl_hopper", "nccl_virtual", "rccl_pair"])
def test_what_was_read_is_written_and_read_the_same(name, bandwidths):
    """The third CPU of the Hopper host, which holds nothing, is not part of the cluster."""
    cluster = topology((SAMPLES / f"{name}.xml").read_bytes(), bandwidths=bandwidths)

    made = written(cluster)

    assert topology(made.content, bandwidths=bandwidths) == cluster
    assert made.lost[0] == ADDRESSES
    assert len(made.lost) == 1 + (bandwidths == "spec")


CPUS = (
    {"arch": "x86_64", "vendor": "GenuineIntel", "familyid": "6", "modelid": "85"},
    {"arch": "x86_64", "vendor": "AuthenticAMD", "familyid": "25", "modelid": "1"},
    {"arch": "arm64"},
    {"arch": "ppc64"},
)


class Machine:
    """A random machine: trees of bridges with GPUs, ports and cards."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.gpus: dict[str, Element] = {}
        self.devices = self.ports = 0

    def pci(self, depth: int, *, shapes: tuple[str, ...] = ()) -> Element:
        """Return a bridge or what hangs on one."""
        self.devices += 1
        made = Element("pci", {"busid": f"0000:{self.devices:02x}:00.0", "class": "0x060400"})
        speeds = st.sampled_from(["8 GT/s", "16.0 GT/s PCIe", "32.0 GT/s PCIe"])
        made.attributes["link_speed"] = self.draw(speeds)
        made.attributes["link_width"] = str(self.draw(st.sampled_from([4, 8, 16])))
        usual = ("gpu", "gpu", "nic", "card") + ("bridge", "bridge") * (depth < 3)
        shape = self.draw(st.sampled_from(shapes or usual))
        if shape == "gpu":
            rank = str(len(self.gpus))
            gpu = Element("gpu", {"dev": rank, "rank": rank, "sm": "80"})
            self.gpus[made.attributes["busid"]] = gpu
            made.children.append(gpu)
        elif shape == "bridge":
            made.children += [self.pci(depth + 1) for _ in range(self.draw(st.integers(0, 3)))]
        else:
            made.children += [self.nic() for _ in range(2 if shape == "card" else 1)]
        return made

    def nic(self) -> Element:
        """Return a port."""
        said = {"name": f"n{self.ports}", "dev": str(self.ports)}
        said["speed"] = str(self.draw(st.sampled_from([10_000, 100_000, 400_000, 100])))
        self.ports += 1
        return Element("nic", {}, [Element("net", said)])


@st.composite
def systems(draw: st.DrawFn) -> str:
    """A random system file of one machine, with NVLinks, NVSwitches and C2C."""
    root, machine = Element("system", {"version": "1"}), Machine(draw)
    kind = draw(st.sampled_from(CPUS))
    for number in range(draw(st.integers(1, 3))):
        cpu = Element("cpu", {"numaid": str(number), **kind})
        cpu.children += [machine.pci(0) for _ in range(draw(st.integers(0, 3)))]
        root.children.append(cpu)
    root.children[0].children.insert(0, machine.pci(3, shapes=("gpu",)))
    for address, gpu in machine.gpus.items():
        others = [each for each in machine.gpus if each != address and draw(st.booleans())]
        gpu.children += [_nvlink(each, "0x030200", draw) for each in others]
        switches = draw(st.lists(st.sampled_from(["f0", "f1", "f2"]), unique=True))
        gpu.children += [_nvlink(f"0000:{each}:00.0", "0x068000", draw) for each in switches]
        if draw(st.booleans()):
            gpu.children.append(Element("c2c", {"bw": "45125", "count": "4"}))
    return xml_text(root)


def _nvlink(target: str, tclass: str, draw: st.DrawFn) -> Element:
    count = str(draw(st.integers(1, 18)))
    return Element("nvlink", {"target": target, "count": count, "tclass": tclass})


@settings(max_examples=60, deadline=None)
@given(systems())
def test_random_systems_are_written_and_read_the_same(text):
    """What the reader makes of any system says all that the writer needs, but for addresses."""
    cluster = topology(text.encode())

    made = written(cluster)

    assert topology(made.content) == cluster
    assert made.lost == (ADDRESSES,)


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_of_random_clusters_all_that_is_lost_is_told(cluster):
    """More than the sentence of the addresses is told just where what is read back differs."""
    assume(any(each.kind == "gpu" and each.host in _first(cluster) for each in cluster.devices))
    made = written(cluster)
    spec = any("data sheets" in each for each in made.lost)

    back = topology(made.content, bandwidths="spec" if spec else "planned")

    assert (len(made.lost) > 1 + spec) == (back != cluster)


def _first(cluster: Topology) -> tuple[str | None, ...]:
    """Return the host that is written, or all where there is one or none."""
    return cluster.hosts[:1] if len(cluster.hosts) > 1 else (None, *cluster.hosts)


def test_an_a100_has_12_nvlinks_of_its_data_sheet_and_not_15_that_are_planned():
    """300 GB/s is 12 × 25 and also 15 × 20; the drawing says that it stands for 12."""
    made = elements(open_cluster("dgx-a100"), "nvlink")

    assert {each["count"] for each in made} == {"12"}
    assert len(made) == 8


def test_nvswitches_keep_their_5_5_4_4_links():
    made = elements(open_cluster("dgx-h100:planes=true,planned=true"), "nvlink")

    assert [each["count"] for each in made[:4]] == ["5", "5", "4", "4"]
    assert {each["tclass"] for each in made} == {"0x068000"}


def test_gpus_hang_below_a_cpu_with_what_nccl_asks_of_them():
    """NVIDIA/nccl, src/graph/topo.cc, reads these and stops where one is missing."""
    root = parse_xml(written(open_cluster("dgx-h100")).content)
    cpu = root.children[0]
    pci = cpu.children[0]

    assert root.attributes["version"] == "1"
    assert {"numaid", "arch", "vendor", "familyid", "modelid"} <= set(cpu.attributes)
    assert {"busid", "class", "link_speed", "link_width"} <= set(pci.attributes)
    assert pci.children[0].attributes == {"dev": "0", "sm": "90", "rank": "0", "gdr": "1"}


def test_a_port_of_a_gpu_becomes_a_nic_beside_it():
    """50 GB/s are 400,000 Mb/s; GPU and NIC share an invented bridge."""
    cluster = open_cluster("dgx-h100:hosts=2,planned=true")
    made = written(cluster)
    root = parse_xml(made.content)

    bridge = root.children[0].children[0]
    assert [each.children[0].tag for each in bridge.children] == ["gpu", "nic"]
    assert {each.attributes["speed"] for each in root.everywhere("net")} == {"400000"}
    assert any("of other hosts" in each and "g8" in each for each in made.lost)
    assert any("invented" in each and "cpu0" in each for each in made.lost)


def test_the_host_is_chosen():
    """Only the second host has six GPUs."""
    gpus = [device("gpu", f"g{i}", host="a" if i < 2 else "b") for i in range(8)]
    links = [duplex(f"g{i}", f"g{i + 1}", bandwidth=20.0, medium="NVLink 3") for i in range(7)]
    cluster = Topology("two", tuple(gpus), tuple(link for both in links for link in both))

    assert len(elements(cluster, "gpu")) == 2
    assert len(elements(cluster, "gpu", host="b")) == 6
    with pytest.raises(FormatError, match="no host is called c; there are a, b"):
        written(cluster, host="c")


def test_a_port_into_the_network_has_its_own_speed():
    """Of two hosts one is written; its ports have 50 GB/s, their PCIe 48."""
    cluster = topology((SAMPLES / "nccl_hopper.xml").read_bytes(), hosts="2")
    back = topology(written(cluster, host="h1").content)

    assert back == topology((SAMPLES / "nccl_hopper.xml").read_bytes())
    nets = elements(cluster, "net", host="h1")
    assert [each["speed"] for each in nets] == ["400000", "400000"]


def test_a_cluster_without_gpus_is_refused():
    with pytest.raises(FormatError, match="has no GPU"):
        written(Topology("s", (device("switch", "s"),), ()))


def test_bandwidth_that_no_number_of_nvlinks_gives_is_told():
    """33 GB/s is nearest to 2 × 20."""
    pair = tuple(device("gpu", f"gpu{i}", host="h0") for i in range(2))
    links = duplex("gpu0", "gpu1", bandwidth=33.0, alpha=0.7, medium="NVLink 3", count=2)
    lost = written(Topology("p", pair, links)).lost

    assert any("gpu0->gpu1: 33 GB/s becomes 40 GB/s" in each for each in lost)


def test_limits_and_abilities_are_told():
    cluster = topology((SAMPLES / "rccl_pair.xml").read_bytes())
    limit = SharedLimit("bus", (cluster.links[0].ends,), 10.0)
    copying = tuple(
        device("switch", each.name, host="h0", copies=True) if each.name == "cpu0" else each
        for each in cluster.devices
    )

    assert "1 shared limit" in written(replace(cluster, limits=(limit,))).lost
    lost = written(replace(cluster, devices=copying)).lost
    assert "host, kind, abilities or buffer of 1 device: cpu0" in lost


def test_chains_of_many_bridges_are_cut_and_told():
    """A drawing may have any depth, and nothing recurses with it: 1,200 switches in a row."""
    names = [f"pcie{i}" for i in range(1200)]
    devices = (device("gpu", "gpu0"), *(device("switch", name) for name in names))
    ends = zip(("gpu0", *names), names, strict=False)
    links = tuple(Link(a, b, 12.0, 0.35, "PCIe 3") for a, b in ends)

    made = written(Topology("chain", devices, links))

    assert any("places are invented" in each or "links" in each for each in made.lost)


def test_files_that_nccl_would_not_read_whole_are_told():
    """A hundred GPUs with one NVLink list each are 1 + 1 + 3 × 100 elements; NCCL reads 256."""
    gpus = tuple(device("gpu", f"gpu{i}") for i in range(100))
    links = tuple(
        link for each in gpus for link in duplex(each.name, "s", bandwidth=20.0, medium="NVLink 3")
    )
    made = written(Topology("many", (*gpus, device("switch", "s")), links))

    assert "NCCL reads 256 elements of a file; this one has 302" in made.lost
