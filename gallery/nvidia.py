"""Servers with NVIDIA GPUs; per link and per GPU figures are GB/s in one direction."""

from dataclasses import dataclass, replace

from ccl.topology import Declared, Device, Link, Topology, device
from gallery.build import (
    HOST_LIMIT,
    Fabric,
    Wire,
    check,
    count_of,
    gpu_hosts,
    make_gpus,
    network,
    star,
    topology,
)
from gallery.declared import each_alone, hosts_and_places, interchange, moved
from gallery.entry import Entry, Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    """A host whose GPUs are joined by NVSwitches alone; GB/s of one NVLink, µs."""

    title: str
    gpus: int
    planes: tuple[int, ...]
    spec: float
    plan: float
    medium: str
    network: Wire

    def wire(self, alpha: float, *, planned: bool) -> Wire:
        rate = self.plan if planned else self.spec
        return Wire(bandwidth=rate, alpha=alpha, medium=self.medium)


_A100 = _Server(
    title="DGX A100",
    gpus=8,
    planes=(2,) * 6,
    spec=25.0,
    plan=20.0,
    medium="NVLink 3",
    network=Wire(bandwidth=25.0, alpha=1.3, medium="InfiniBand HDR"),
)
_H100 = _Server(
    title="DGX H100",
    gpus=8,
    planes=(5, 5, 4, 4),
    spec=25.0,
    plan=20.6,
    medium="NVLink 4",
    network=Wire(bandwidth=50.0, alpha=1.3, medium="InfiniBand NDR"),
)


def dgx_2(
    *,
    hosts: int = 1,
    alpha: float = 0.35,
    network_alpha: float = 1.3,
    planned: bool = False,
    copies: bool = False,
) -> Topology:
    """Sixteen V100 around NVSwitches; every two share one of eight network ports."""
    check("hosts of DGX-2", hosts, least=1, most=512)
    nvlink = Wire(bandwidth=20.0 if planned else 25.0, alpha=alpha, medium="NVLink 2")
    pcie = Wire(bandwidth=12.0 if planned else 15.75, alpha=alpha, medium="PCIe 3")
    port = Wire(bandwidth=12.5, alpha=network_alpha, medium="InfiniBand EDR")
    devices: list[Device] = []
    links: list[Link] = []
    ports: list[list[str]] = []
    boxes: list[list[str]] = []
    for host in range(hosts):
        box, names = _nvswitch_box(host, 16, nvlink.times(6), copies=copies)
        devices += box
        links += star(f"nvswitch{host}", names, nvlink.times(6))
        ports.append([f"nic{8 * host + i}" for i in range(8)])
        if hosts > 1:
            devices += [device("nic", name, host=f"h{host}") for name in ports[-1]]
            for i, name in enumerate(names):
                links += pcie.join(name, ports[-1][i // 2])
        boxes.append([each.name for each in box] + (ports[-1] if hosts > 1 else []))
    joined = network(ports, port, fabric="flat")
    pairs = ([f"nic{i}", f"g{2 * i}", f"g{2 * i + 1}"] for i in range(8))
    inner = each_alone(f"g{i}" for i in range(16))
    if hosts > 1:
        inner = interchange(pairs, each_alone(["g0", "g1"]))
    declared = [interchange(boxes, inner)]
    return topology(count_of(hosts, "DGX-2"), devices, links, joined, declared=declared)


def dgx_2_te_ccl(
    *, hosts: int = 2, alpha: float = 0.35, network_alpha: float = 2.6, copies: bool = False
) -> Topology:
    """DGX-2 as TE-CCL models it: odd GPUs write straight to even GPUs of the other box."""
    check("hosts of DGX-2 as in TE-CCL", hosts, least=1, most=2)
    nvlink = Wire(bandwidth=125.0, alpha=alpha, medium="NVLink 2")
    devices: list[Device] = []
    links: list[Link] = []
    boxes: list[list[str]] = []
    for host in range(hosts):
        box, names = _nvswitch_box(host, 16, nvlink, copies=copies)
        boxes.append([each.name for each in box])
        devices += box
        links += star(f"nvswitch{host}", names, nvlink)
    if hosts == 2:
        for i in range(1, 16, 2):
            for here, there in ((0, 16), (16, 0)):
                ends = f"g{here + i}", f"g{there + i - 1}"
                links.append(Link(*ends, 12.5, network_alpha, "InfiniBand EDR"))
    declared = [each_alone(f"g{i}" for i in range(16))]
    if hosts == 2:
        ways = (
            ([f"g{2 * i + a}", f"g{2 * i + b}"] for i in range(8)) for a, b in ((1, 16), (17, 0))
        )
        declared = [interchange(boxes), *map(interchange, ways)]
    return topology(f"{count_of(hosts, 'DGX-2')} (TE-CCL)", devices, links, declared=declared)


def taccl_c(
    *, hosts: int = 2, bandwidth: float = 125.0, network_bandwidth: float = 1000 / 107
) -> Topology:
    """DGX-2 as in TACCL's appendix C: of two GPUs on a PCIe switch one sends, the other receives.

    The appendix counts 8 and 107 µs for a chunk of 1 MB over NVLink and InfiniBand and leaves
    latencies aside. Which sender reaches which receiver is in its figure 8 only, a picture; the
    neighbours are taken, as in TE-CCL's DGX-2.
    """
    made = dgx_2_te_ccl(hosts=hosts, alpha=0.0, network_alpha=0.0)
    links = tuple(
        replace(each, bandwidth=bandwidth if "NVLink" in each.medium else network_bandwidth)
        for each in made.links
    )
    return replace(made, name=f"{count_of(hosts, 'DGX-2')} (TACCL)", links=links)


def dgx_a100(
    *,
    hosts: int = 1,
    fabric: Fabric = "rail",
    alpha: float = 0.35,
    network_alpha: float = 1.3,
    planned: bool = False,
    planes: bool = False,
    copies: bool = False,
) -> Topology:
    """Eight A100 around NVSwitches, one 25 GB/s port per GPU."""
    return _cluster(
        _A100,
        hosts,
        fabric=fabric,
        nvlink=_A100.wire(alpha, planned=planned),
        network_alpha=network_alpha,
        planes=planes,
        copies=copies,
    )


def dgx_h100(
    *,
    hosts: int = 1,
    fabric: Fabric = "rail",
    alpha: float = 0.35,
    network_alpha: float = 1.3,
    planned: bool = False,
    planes: bool = False,
    copies: bool = False,
    reduces: bool = False,
) -> Topology:
    """Eight H100 around NVSwitches, one 50 GB/s port per GPU."""
    return _cluster(
        _H100,
        hosts,
        fabric=fabric,
        nvlink=_H100.wire(alpha, planned=planned),
        network_alpha=network_alpha,
        planes=planes,
        copies=copies,
        reduces=reduces,
    )


def gb200_nvl72(
    *,
    alpha: float = 0.35,
    planned: bool = False,
    planes: bool = False,
    copies: bool = False,
    reduces: bool = False,
) -> Topology:
    """Make a rack of 18 trays with 4 GPUs each, all on one NVLink network of 18 switch chips."""
    nvlink = Wire(bandwidth=40.1 if planned else 50.0, alpha=alpha, medium="NVLink 5")
    devices = [gpu for i in range(18) for gpu in make_gpus(4, host=f"tray{i}", first=4 * i)]
    names = [each.name for each in devices]
    chips = [f"nvswitch{i}" for i in range(18)] if planes else ["nvswitch"]
    devices += [device("switch", chip, copies=copies, reduces=reduces) for chip in chips]
    wire = nvlink.times(18 // len(chips))
    links = [link for chip in chips for link in star(chip, names, wire)]
    declared = [each_alone(names), each_alone(chips)]
    return topology("GB200 NVL72", devices, links, declared=declared)


def _cluster(
    server: _Server,
    hosts: int,
    *,
    fabric: Fabric,
    nvlink: Wire,
    network_alpha: float,
    planes: bool,
    copies: bool,
    reduces: bool = False,
) -> Topology:
    check(f"hosts of {server.title}", hosts, least=1, most=HOST_LIMIT)
    port = replace(server.network, alpha=network_alpha)
    devices: list[Device] = []
    links: list[Link] = []
    ports: list[list[str]] = []
    boxes: list[list[str]] = []
    chips = server.planes if planes else (sum(server.planes),)
    for host in range(hosts):
        gpus = make_gpus(server.gpus, host=f"h{host}", first=server.gpus * host)
        ports.append([each.name for each in gpus])
        devices += gpus
        for i, width in enumerate(chips):
            name = f"nvswitch{host * len(chips) + i}"
            devices.append(device("switch", name, host=f"h{host}", copies=copies, reduces=reduces))
            links += star(name, ports[-1], nvlink.times(width))
        boxes.append([each.name for each in devices[-server.gpus - len(chips) :]])
    joined = network(ports, port, fabric=fabric)
    declared = hosts_and_places(boxes, ports, fabric=fabric, inner=_alike(chips))
    return topology(count_of(hosts, server.title), devices, links, joined, declared=declared)


def _alike(widths: tuple[int, ...]) -> list[Declared]:
    """Declare that NVSwitches of the first host with equally many links may be permuted."""
    return [
        each_alone(f"nvswitch{i}" for i, width in enumerate(widths) if width == each)
        for each in sorted(set(widths))
        if widths.count(each) > 1
    ]


def _nvswitch_box(
    host: int, gpus: int, wire: Wire, *, copies: bool
) -> tuple[list[Device], list[str]]:
    """Return the devices of a host with one switch for all of its NVSwitches, and its GPUs."""
    devices = make_gpus(gpus, host=f"h{host}", first=gpus * host)
    names = [each.name for each in devices]
    return [*devices, device("switch", f"nvswitch{host}", host=f"h{host}", copies=copies)], names


_NVSWITCH_LATENCY = Figure("latency of each NVSwitch link", "0.35 µs", "assumed")
_PORT_LATENCY = Figure("latency of each network link", "1.3 µs", "assumed")


_DOUBLE = ((0, 1), (0, 4), (1, 3), (2, 3), (2, 6), (4, 5), (5, 7), (6, 7))
_SINGLE = ((0, 2), (0, 3), (1, 2), (1, 5), (3, 7), (4, 6), (4, 7), (5, 6))
"""The hybrid cube mesh: pairs of GPUs that two NVLinks join, and those that one joins."""


def dgx_1v(*, alpha: float = 0.7, planned: bool = False) -> Topology:
    """Eight V100 in a hybrid cube mesh."""
    gpus = make_gpus(8, host="h0")
    names = [each.name for each in gpus]
    # Other GPUs of the mesh are not alike, so that these two are all.
    declared = [moved(names, [i ^ bit for i in range(8)]) for bit in (2, 4)]
    links = _cube_mesh(0, alpha, planned=planned)
    return topology("DGX-1V", gpus, links, declared=declared)


def ndv2(
    *, hosts: int = 2, alpha: float = 0.7, network_alpha: float = 1.3, copies: bool = False
) -> Topology:
    """DGX-1V boxes with one 12.5 GB/s port each, which GPU 0 writes to and GPU 1 reads from."""
    check("hosts of NDv2", hosts, least=1, most=1024)
    devices, boxes = gpu_hosts(hosts, 8)
    links = [link for i in range(hosts) for link in _cube_mesh(8 * i, alpha, planned=False)]
    links += _one_way_ports(devices, hosts, network_alpha, copies=copies)
    return topology(count_of(hosts, "NDv2"), devices, links, declared=[interchange(boxes)])


def _cube_mesh(first: int, alpha: float, *, planned: bool) -> list[Link]:
    wire = Wire(bandwidth=20.0 if planned else 25.0, alpha=alpha, medium="NVLink 2")
    links: list[Link] = []
    for pairs, width in ((_DOUBLE, 2), (_SINGLE, 1)):
        for a, b in pairs:
            links += wire.times(width).join(f"g{first + a}", f"g{first + b}")
    return links


def _one_way_ports(devices: list[Device], hosts: int, alpha: float, *, copies: bool) -> list[Link]:
    """Join NDv2 boxes: two directly, more through a switch, which joins `devices`."""
    medium = "InfiniBand EDR"
    if hosts == 1:
        return []
    if hosts == 2:
        return [Link("g0", "g9", 12.5, alpha, medium), Link("g8", "g1", 12.5, alpha, medium)]
    devices.append(device("switch", "fabric", copies=copies))
    links = []
    for first in range(0, 8 * hosts, 8):
        links.append(Link(f"g{first}", "fabric", 12.5, alpha, medium))
        links.append(Link("fabric", f"g{first + 1}", 12.5, alpha, medium))
    return links


ENTRIES = (
    Entry(
        "dgx-1v",
        "DGX-1V",
        "NVIDIA",
        "Eight V100 in a hybrid cube mesh of NVLinks; eight of the sixteen pairs have two.",
        "nvidia.com/en-us/data-center/nvlink; microsoft/msccl-tools, msccl/topologies/nvidia.py; "
        "latency as in TE-CCL, doi.org/10.1145/3651890.3672249",
        figures=(
            Figure("each NVLink 2", "25 GB/s one way", "spec"),
            Figure("each NVLink 2, planned=true", "20 GB/s one way", "planned by NCCL"),
            Figure("latency of each link", "0.7 µs", "assumed"),
        ),
        make=dgx_1v,
    ),
    Entry(
        "ndv2",
        "Azure NDv2",
        "NVIDIA",
        "DGX-1V boxes with one network port each: GPU 0 writes to it, GPU 1 reads from it; two "
        "boxes are joined directly, more through a switch.",
        "TE-CCL, figure 14, doi.org/10.1145/3651890.3672249; Azure documentation, ndv2-series",
        figures=(
            Figure("each NVLink 2", "25 GB/s one way", "spec"),
            Figure("network port of a host", "100 Gb/s, 12.5 GB/s one way", "spec"),
            Figure("latency of NVLink and network links", "0.7 and 1.3 µs", "assumed"),
        ),
        make=ndv2,
    ),
    Entry(
        "dgx-2",
        "DGX-2",
        "NVIDIA",
        "Sixteen V100 with six NVLinks each into NVSwitches, drawn as one; eight network ports, "
        "each shared by two GPUs over PCIe.",
        "developer.nvidia.com/blog/nvswitch-accelerates-nvidia-dgx2; anandtech.com/show/12581",
        figures=(
            Figure("NVLink 2 of a GPU", "6 × 25 GB/s one way", "spec"),
            Figure("each NVLink 2, planned=true", "20 GB/s one way", "planned by NCCL"),
            Figure("PCIe 3 ×16", "15.75 GB/s one way", "spec"),
            Figure("PCIe 3 ×16, planned=true", "12 GB/s one way", "planned by NCCL"),
            Figure("each network port", "100 Gb/s, 12.5 GB/s one way", "spec"),
            _NVSWITCH_LATENCY,
            _PORT_LATENCY,
        ),
        make=dgx_2,
    ),
    Entry(
        "dgx-2-te-ccl",
        "DGX-2 as in TE-CCL",
        "Papers",
        "DGX-2 with 125 GB/s per GPU; each odd GPU writes straight to the even one before it in "
        "the other box.",
        "TE-CCL, figure 13, doi.org/10.1145/3651890.3672249; microsoft/TE-CCL",
        figures=(
            Figure("a GPU into its NVSwitch", "125 GB/s one way", "assumed"),
            Figure("each link between boxes", "12.5 GB/s one way", "assumed"),
            Figure("latency of NVLink and network links", "0.35 and 2.6 µs", "assumed"),
        ),
        make=dgx_2_te_ccl,
    ),
    Entry(
        "taccl-c",
        "DGX-2 as in TACCL, appendix C",
        "Papers",
        "DGX-2 whose odd GPUs send to the other box and whose even ones receive, as fast as TACCL "
        "counts its all-gather.",
        "TACCL, arXiv 2111.04867, appendix C; the pairs of senders and receivers are inferred",
        figures=(
            Figure("a GPU into its NVSwitch", "125 GB/s one way: 8 µs for 1 MB", "measured"),
            Figure("each link between boxes", "9.35 GB/s one way: 107 µs for 1 MB", "measured"),
            Figure("latency of each link", "0 µs, left aside there", "assumed"),
        ),
        make=taccl_c,
    ),
    Entry(
        "dgx-a100",
        "DGX A100",
        "NVIDIA",
        "Eight A100 with twelve NVLinks each into six NVSwitches, drawn as one; one network port "
        "per GPU, joined by rails or one switch.",
        "NVIDIA DGX A100 data sheet",
        figures=(
            Figure("NVLink 3 of a GPU", "12 × 25 GB/s one way", "spec"),
            Figure("each NVLink 3, planned=true", "20 GB/s one way", "planned by NCCL"),
            Figure("network port of a GPU", "200 Gb/s, 25 GB/s one way", "spec"),
            _NVSWITCH_LATENCY,
            _PORT_LATENCY,
        ),
        make=dgx_a100,
    ),
    Entry(
        "dgx-h100",
        "DGX H100",
        "NVIDIA",
        "Eight H100 with 18 NVLinks each into four NVSwitches (5, 5, 4 and 4), drawn as one; one "
        "network port per GPU; NVLS switches copy and reduce.",
        "NVIDIA DGX H100 data sheet; NVIDIA/nccl-tests#256 for the links per switch",
        figures=(
            Figure("NVLink 4 of a GPU", "18 × 25 GB/s one way", "spec"),
            Figure("each NVLink 4, planned=true", "20.6 GB/s one way", "planned by NCCL"),
            Figure("network port of a GPU", "400 Gb/s, 50 GB/s one way", "spec"),
            _NVSWITCH_LATENCY,
            _PORT_LATENCY,
        ),
        make=dgx_h100,
    ),
    Entry(
        "gb200-nvl72",
        "GB200 NVL72",
        "NVIDIA",
        "A rack of 72 GPUs in 18 trays; each GPU has one NVLink to each of 18 switch chips, drawn "
        "as one; the chips can copy and reduce.",
        "NVIDIA GB200 NVL72 data sheet; docs.nvidia.com, Base Command Manager, NVLink",
        figures=(
            Figure("NVLink 5 of a GPU", "18 × 50 GB/s one way", "spec"),
            Figure("each NVLink 5, planned=true", "40.1 GB/s one way", "planned by NCCL"),
            _NVSWITCH_LATENCY,
        ),
        make=gb200_nvl72,
    ),
)
