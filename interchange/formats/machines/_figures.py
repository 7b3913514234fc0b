"""Bandwidths that no dump of a machine says, in GB/s one way, and latencies in µs.

Sources: data sheets of NVLink (half of the figure both ways, per link); the rate of a PCIe lane
with its encoding, times 16; NVIDIA/nccl, src/graph/topo.h, for what NCCL plans with, NVLink by the
architecture that brought it, and links between sockets by the CPUs of a PCIe generation's time.
Latencies are those of the gallery.
"""

from __future__ import annotations

NVLINK = {
    "1": {"spec": 20.0, "planned": 18.0},
    "2": {"spec": 25.0, "planned": 20.0},
    "3": {"spec": 25.0, "planned": 20.0},
    "3-bridge": {"spec": 14.0625, "planned": 12.0},
    "4": {"spec": 25.0, "planned": 20.6},
    "5": {"spec": 50.0, "planned": 40.1},
}
"""Of one link, by generation; workstation GPUs of generation 3 have a slower one, on a bridge."""

MOST_NVLINKS = {"1": 4, "2": 6, "3": 12, "3-bridge": 4, "4": 18, "5": 18}
"""Of one GPU, by generation."""

PCIE = {"3": 15.75, "4": 31.5, "5": 63.0, "6": 121.0}
"""Of 16 lanes, by generation."""

PCIE_OF_NVLINK = {"1": "3", "2": "3", "3": "4", "3-bridge": "4", "4": "5", "5": "5"}
"""The generation of PCIe that GPUs with an NVLink generation have."""

SOCKETS = {"3": 10.0, "4": 16.0, "5": 22.0, "6": 40.0}
"""Between two sockets or NUMA domains, by the generation of PCIe of their time."""

MEMORY = 204.8
"""Of the memory of a NUMA domain, read and written together: eight channels of DDR4-3200."""

DIRECT_ALPHA = 0.7
"""Of a link from GPU to GPU."""

HOP_ALPHA = 0.35
"""Of a link to or from a switch."""
