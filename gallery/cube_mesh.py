"""Servers whose V100 are joined by a hybrid cube mesh; figures are GB/s in one direction."""

from __future__ import annotations

from ccl.topology import Device, Link, Topology, device
from gallery.build import Wire, check, count_of, make_gpus, topology
from gallery.declared import interchange, moved
from gallery.entry import Entry, Figure

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
    devices: list[Device] = []
    links: list[Link] = []
    for host in range(hosts):
        devices += make_gpus(8, host=f"h{host}", first=8 * host)
        links += _cube_mesh(8 * host, alpha, planned=False)
    links += _one_way_ports(devices, hosts, network_alpha, copies=copies)
    boxes = ([f"g{8 * host + i}" for i in range(8)] for host in range(hosts))
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
)
