"""Servers with AMD GPUs; per link figures are GB/s in one direction."""

from ccl.topology import Device, Link, Topology, device
from gallery.build import Fabric, Wire, check, clique, count_of, gpu_hosts, network, star, topology
from gallery.declared import hosts_and_places, interchange, moved
from gallery.entry import Entry, Figure

_QUADRUPLE = ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11), (12, 13), (14, 15))
_DOUBLE = ((0, 4), (3, 7), (8, 12), (11, 15))
_SINGLE = (
    *((0, 8), (1, 5), (1, 9), (1, 10), (2, 6), (2, 9), (2, 10), (3, 11)),
    *((4, 6), (5, 6), (5, 7), (9, 13), (10, 14), (12, 14), (13, 14), (13, 15)),
)
"""Pairs of MI250 dies that four, two and one Infinity Fabric links join."""


def mi250(
    *,
    hosts: int = 1,
    network_bandwidth: float = 16.0,
    alpha: float = 0.7,
    network_alpha: float = 1.3,
    copies: bool = False,
) -> Topology:
    """Eight packages of two dies each; every die reaches one InfiniBand switch."""
    check("hosts of MI250", hosts, least=1, most=512)
    devices, links, boxes = _mi250_boxes(hosts, alpha)
    port = Wire(bandwidth=network_bandwidth, alpha=network_alpha, medium="InfiniBand")
    joined = network(boxes, port, fabric="flat", copies=copies)
    declared = [interchange(boxes, *(moved(boxes[0], _turned(16, bits)) for bits in (3, 8)))]
    return topology(count_of(hosts, "MI250"), devices, links, joined, declared=declared)


def amd_te_ccl(
    *, hosts: int = 2, alpha: float = 0.6, network_alpha: float = 0.75, copies: bool = False
) -> Topology:
    """MI250 boxes whose dies share a small switch two by two, all of these on one large one."""
    check("hosts of the AMD cluster of TE-CCL", hosts, least=1, most=512)
    devices, links, boxes = _mi250_boxes(hosts, alpha)
    port = Wire(bandwidth=25.0, alpha=network_alpha, medium="network")
    smalls: list[str] = []
    for host, names in enumerate(boxes):
        for i in range(8):
            small = device("switch", f"s{8 * host + i}", host=f"h{host}", copies=copies)
            devices.append(small)
            smalls.append(small.name)
            links += star(small.name, names[2 * i : 2 * i + 2], port)
    devices.append(device("switch", "fabric", copies=copies))
    links += star("fabric", smalls, port)
    hosts_with_smalls = [
        [*names, *smalls[8 * host : 8 * host + 8]] for host, names in enumerate(boxes)
    ]
    inner = (
        moved(hosts_with_smalls[0], [*_turned(16, bits), *(16 + i for i in _turned(8, bits >> 1))])
        for bits in (3, 8)
    )
    declared = [interchange(hosts_with_smalls, *inner)]
    return topology(f"{count_of(hosts, 'MI250')} (TE-CCL)", devices, links, declared=declared)


def mi300x(
    *,
    hosts: int = 1,
    fabric: Fabric = "rail",
    alpha: float = 0.7,
    network_alpha: float = 1.3,
    achieved: bool = False,
) -> Topology:
    """Eight MI300X, each joined with every other; one 50 GB/s port per GPU."""
    check("hosts of HGX MI300X", hosts, least=1, most=2048)
    wire = Wire(bandwidth=48.0 if achieved else 64.0, alpha=alpha, medium="Infinity Fabric")
    port = Wire(bandwidth=50.0, alpha=network_alpha, medium="400 Gb/s network")
    devices, boxes = gpu_hosts(hosts, 8)
    links = [link for names in boxes for link in clique(names, wire)]
    joined = network(boxes, port, fabric=fabric)
    declared = hosts_and_places(boxes, boxes, fabric=fabric)
    return topology(count_of(hosts, "HGX MI300X"), devices, links, joined, declared=declared)


def _turned(count: int, bits: int) -> list[int]:
    """Return numbers with some of their binary digits turned over."""
    return [i ^ bits for i in range(count)]


def _mi250_boxes(hosts: int, alpha: float) -> tuple[list[Device], list[Link], list[list[str]]]:
    wire = Wire(bandwidth=50.0, alpha=alpha, medium="Infinity Fabric")
    devices, boxes = gpu_hosts(hosts, 16)
    links: list[Link] = []
    for names in boxes:
        for pairs, width in ((_QUADRUPLE, 4), (_DOUBLE, 2), (_SINGLE, 1)):
            for a, b in pairs:
                links += wire.times(width).join(names[a], names[b])
    return devices, links, boxes


_FABRIC_LINK = Figure("each Infinity Fabric link", "50 GB/s one way", "spec")

ENTRIES = (
    Entry(
        "mi250",
        "MI250",
        "AMD",
        "Sixteen dies in eight packages; four links join the dies of a package, one or two join "
        "packages; every die reaches one switch.",
        "ForestColl, arXiv 2402.06787, section 4.5, for structure and network; "
        "rocm.docs.amd.com, MI250",
        figures=(
            _FABRIC_LINK,
            Figure("network share of a die", "16 GB/s one way", "assumed"),
            Figure("latency of fabric and network links", "0.7 and 1.3 µs", "assumed"),
        ),
        make=mi250,
    ),
    Entry(
        "amd-te-ccl",
        "AMD cluster of TE-CCL",
        "Papers",
        "MI250 boxes whose dies share a small switch two by two; one large switch joins these.",
        "TE-CCL, figure 15, doi.org/10.1145/3651890.3672249",
        figures=(
            _FABRIC_LINK,
            Figure("each switch link", "25 GB/s one way", "assumed"),
            Figure("latency of fabric and switch links", "0.6 and 0.75 µs", "assumed"),
        ),
        make=amd_te_ccl,
    ),
    Entry(
        "mi300x",
        "HGX MI300X",
        "AMD",
        "Eight MI300X, each joined with every other; one network port per GPU.",
        "rocm.blogs.amd.com/software-tools-optimization/mi300x-rccl-xgmi",
        figures=(
            Figure("each Infinity Fabric link", "64 GB/s one way", "spec"),
            Figure("each Infinity Fabric link, achieved=true", "48 GB/s one way", "measured"),
            Figure("network port of a GPU", "400 Gb/s, 50 GB/s one way", "spec"),
            Figure("latency of fabric and network links", "0.7 and 1.3 µs", "assumed"),
        ),
        make=mi300x,
    ),
)
