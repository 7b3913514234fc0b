"""Clusters that papers on optimal rates evaluate, with the figures that they leave out inferred."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from ccl.topology import Topology
from gallery.build import Wire, check, count_of, network, switched_hosts, topology
from gallery.declared import hosts_and_places
from gallery.entry import Entry, Figure
from gallery.nvidia import dgx_a100
from gallery.servers import pcie_server

Used = Literal["nvlink-only", "no-nvlink", "all"]
"""The three scenarios of the thesis, section 6.1."""


def thesis_dgx_a100(*, hosts: int = 2, used: Used = "nvlink-only", alpha: float = 0.0) -> Topology:
    """DGX A100 on rails as the thesis evaluates it, in the three scenarios of its section 6.1.

    The thesis refers to drawings of the server and prints no bandwidths. What is here was
    inferred from its tables 6.3 to 6.8, mainly from the cells of 1 and 2 nodes, so that those are
    a fit, and larger clusters and the secondary objectives the test of it:

    * ``nvlink-only``: GPU to NVSwitch 300 GB/s (7 shards of 1/300 s/GB: 0.0233), GPU to rail 25
      (15 shards of 1/325: 0.0462);
    * ``no-nvlink``: two GPUs and two network ports on each of four PCIe switches; GPU to PCIe
      switch 32 (7/32, which the thesis prints as 0.0219 for 0.219, and 15/32: 0.469), PCIe switch
      to the one memory of the host 32 (all-to-all in a node: 12 shards out of the two GPUs of a
      PCIe switch, 0.375), to a port 25, port to rail 25. The memory keeps and copies but does not
      add, and has no limit besides its links;
    * ``all``: both, so that a GPU has 332 in (7/332: 0.0211).

    Rails are not joined with one another. Bandwidths are one way; there are no latencies.
    """
    if used == "nvlink-only":
        made = dgx_a100(hosts=hosts, fabric="rail-only", alpha=alpha, network_alpha=alpha)
    else:
        made = pcie_server(
            hosts=hosts,
            nvlink=used == "all",
            memory_bandwidth=0.0,
            alpha=alpha,
            network_alpha=alpha,
        )
    return replace(made, name=f"{count_of(hosts, 'DGX A100')} (thesis, {used})")


def forestcoll_12(
    *,
    hosts: int = 2,
    gpus: int = 4,
    bandwidth: float = 10.0,
    network_bandwidth: float = 1.0,
    alpha: float = 0.0,
) -> Topology:
    """Boxes with a fast switch each, and a slow one that joins all GPUs and limits."""
    check("boxes of ForestColl's figure 12", hosts, least=1, most=2048)
    check("gpus of a box", gpus, least=1, most=256)
    inner = Wire(bandwidth=bandwidth, alpha=alpha, medium="")
    port = Wire(bandwidth=network_bandwidth, alpha=alpha, medium="network")
    devices, links, boxes = switched_hosts(hosts, gpus, inner, switch="local")
    joined = network(boxes, port, fabric="flat")
    whole = [[*names, f"local{host}"] for host, names in enumerate(boxes)]
    return topology(
        f"ForestColl, figure 12, {hosts} × {gpus}",
        [*devices, *joined[0]],
        [*links, *joined[1]],
        declared=hosts_and_places(whole, boxes, fabric="flat"),
    )


ENTRIES = (
    Entry(
        "thesis-dgx-a100",
        "DGX A100 of the thesis",
        "Papers",
        "DGX A100 on rails that are not joined, with its NVLinks, with PCIe and host memory, or "
        "with both.",
        "Dissertation on linear programming for collectives (sources in the README), section 6.1; "
        "bandwidths inferred from its tables 6.3 to 6.8",
        figures=(
            Figure("a GPU into its NVSwitch", "300 GB/s one way", "assumed"),
            Figure("PCIe, to GPUs and to memory", "32 GB/s one way", "assumed"),
            Figure("network port, on both sides", "25 GB/s one way", "assumed"),
            Figure("latency of each link", "0 µs", "assumed"),
        ),
        make=thesis_dgx_a100,
    ),
    Entry(
        "forestcoll-12",
        "ForestColl, figure 12",
        "Papers",
        "Boxes of four GPUs with a fast switch each, and a slow switch that joins all GPUs.",
        "ForestColl, arXiv 2402.06787, figure 12, where the fast links have ten times the "
        "bandwidth b of the slow ones",
        figures=(
            Figure("a GPU into the switch of its box", "10 GB/s one way", "assumed"),
            Figure("a GPU into the switch between boxes", "1 GB/s one way", "assumed"),
        ),
        make=forestcoll_12,
    ),
)
