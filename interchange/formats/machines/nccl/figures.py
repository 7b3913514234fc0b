"""Bandwidths that NCCL and RCCL plan with, and those of data sheets, GB/s one way.

Sources: NVIDIA/nccl, src/graph/topo.h and topo.cc, for NVLink, PCIe and CPUs; ROCm/rccl,
src/graph/topo.h, for xGMI; data sheets of the GPUs, halved since these add both directions; the
PCI Express base specifications for gigatransfers and line codes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from interchange.formats.machines._figures import NVLINK
from interchange.formats.xml import Element

LOCAL = 5000.0
"""GB/s of what is inside one chip or card, by which NCCL means without limit."""

UNSAID_NIC = 1.25
"""GB/s of a NIC whose speed is not said or negative: NCCL takes 10 Gb/s."""

DEFAULT_SM = 80
"""Compute capability of a GPU that says none; NCCL plans its NVLinks alike."""


@dataclass(frozen=True, slots=True)
class Wire:
    """A link without its ends: GB/s one way of all `count` together, medium."""

    bandwidth: float
    medium: str
    count: int = 1

    def times(self, count: int) -> Wire:
        """Return `count` of them as one."""
        bandwidth = round(self.bandwidth * count, 9)  # 18 × 40.1 is 721.8
        return replace(self, bandwidth=bandwidth, count=self.count * count)


@dataclass(frozen=True, slots=True)
class Generation:
    """Links between GPUs: for which GPUs, medium, GB/s planned by the library and of the spec.

    `key` is the least compute capability for NVLink, the beginning of the GCN name for xGMI.
    """

    key: str
    medium: str
    planned: float
    spec: float

    def wire(self, *, planned: bool) -> Wire:
        """Return one such link."""
        return Wire(self.planned if planned else self.spec, self.medium)


NVLINKS = (
    Generation("107", "NVLink 6", 31.2, 50.0),
    Generation("100", "NVLink 5", **NVLINK["5"]),
    Generation("90", "NVLink 4", **NVLINK["4"]),
    Generation("80", "NVLink 3", **NVLINK["3"]),
    Generation("70", "NVLink 2", **NVLINK["2"]),
    Generation("60", "NVLink 1", **NVLINK["1"]),
    Generation("86", "NVLink 3", **NVLINK["3-bridge"]),
)

XGMIS = (
    Generation("gfx94", "Infinity Fabric", 48.0, 64.0),
    Generation("gfx95", "Infinity Fabric", 48.0, 76.8),
    Generation("gfx90a", "Infinity Fabric", 36.0, 50.0),
    Generation("gfx908", "Infinity Fabric", 24.0, 46.0),
    Generation("gfx906", "Infinity Fabric", 24.0, 50.0),
)

_GCN_NUMBERS = {"910": "gfx90a", "908": "gfx908", "906": "gfx906"}
"""RCCL before 5.7 writes the GCN as a number, and 910 for an MI200."""


def nvlink(sm: int) -> Generation:
    """Return the NVLink of a compute capability; 86 is the only one that is not rounded down."""
    if sm == 86:
        return NVLINKS[-1]
    older = next(each for each in NVLINKS if int(each.key) == DEFAULT_SM)
    return next((each for each in NVLINKS[:-1] if sm >= int(each.key)), older)


def xgmi(gcn: str) -> Generation:
    """Return the xGMI link of a GCN name; what is unknown is as the oldest, as RCCL has it."""
    name = _GCN_NUMBERS.get(gcn, gcn.lower())
    return next((each for each in XGMIS if name.startswith(each.key)), XGMIS[-1])


@dataclass(frozen=True, slots=True)
class PcieGeneration:
    """A generation of PCIe, and GB/s of one lane planned and of the spec."""

    transfers: float
    number: int
    planned: float
    spec: float

    def wire(self, width: int, *, planned: bool) -> Wire:
        """Return a link of some lanes."""
        return Wire((self.planned if planned else self.spec) * width, f"PCIe {self.number}")


PCIES = (
    PcieGeneration(2.5, 1, 15 / 80, 2.5 / 8 * 8 / 10),
    PcieGeneration(5.0, 2, 30 / 80, 5.0 / 8 * 8 / 10),
    PcieGeneration(8.0, 3, 60 / 80, 8.0 / 8 * 128 / 130),
    PcieGeneration(16.0, 4, 120 / 80, 16.0 / 8 * 128 / 130),
    PcieGeneration(32.0, 5, 240 / 80, 32.0 / 8 * 128 / 130),
    PcieGeneration(64.0, 6, 480 / 80, 64.0 / 8 * 242 / 256),
)
UNSAID_PCIE = PCIES[2]
"""NCCL takes 8 GT/s where it does not know the speed."""

MOST_LANES = 64

_TRANSFERS = re.compile(r"\s*(\d{1,3}(?:\.\d{1,3})?) ?GT/s")


def pcie_generation(speed: str) -> PcieGeneration | None:
    """Return the generation of a ``link_speed`` such as ``16.0 GT/s PCIe``, None if unknown."""
    found = _TRANSFERS.match(speed)
    if found is None:
        return None
    return next((each for each in PCIES if each.transfers == float(found[1])), None)


@dataclass(frozen=True, slots=True)
class Cpu:
    """A kind of CPU: how it reaches the others of its host, and how NCCL's XML says it is one."""

    wire: Wire
    arch: str
    vendor: str = ""
    family: int = 0
    model: int = 0


CPUS = (
    Cpu(Wire(40.0, "UPI"), "x86_64", "GenuineIntel", 6, 0xCF),
    Cpu(Wire(22.0, "UPI"), "x86_64", "GenuineIntel", 6, 0x8F),
    Cpu(Wire(10.0, "UPI"), "x86_64", "GenuineIntel", 6, 0x55),
    Cpu(Wire(6.0, "QPI"), "x86_64", "GenuineIntel", 6, 0x4F),
    Cpu(Wire(32.0, "xGMI"), "x86_64", "AuthenticAMD", 26, 2),
    Cpu(Wire(24.0, "xGMI"), "x86_64", "AuthenticAMD", 25, 17),
    Cpu(Wire(16.0, "xGMI"), "x86_64", "AuthenticAMD", 23, 49),
    Cpu(Wire(9.0, "ZPI"), "x86_64", "CentaurHauls", 7, 0x5B),
    Cpu(Wire(6.0, "ZPI"), "x86_64", "CentaurHauls", 7, 0x3B),
    Cpu(Wire(32.0, "X-Bus"), "ppc64"),
    Cpu(Wire(6.0, "Arm CPU link"), "arm64"),
)
UNKNOWN_CPU = Cpu(Wire(LOCAL, "CPU link"), "unknown")
"""Of an architecture or vendor that NCCL does not know, it plans no limit."""

_NEWEST_INTEL = (0xAD, 0xAE, 0xAF)
"""Granite Rapids and Sierra Forest, whose numbers are below those of older ones."""

_AMD_FAMILIES = {0xBF: 26, 0xAF: 25, 26: 26, 25: 25}
"""CPUID family; older files hold base and extended family side by side."""


def cpu_kind(element: Element) -> Cpu:
    """Return what a <cpu> is.

    Raises
    ------
    FormatError
        If its family or model is no whole number.
    """
    arch, vendor = element.attributes.get("arch", ""), element.attributes.get("vendor", "")
    if arch in ("ppc64", "arm64"):
        return next(each for each in CPUS if each.arch == arch)
    if arch != "x86_64":
        return UNKNOWN_CPU
    family, model = element.integer("familyid", 0), element.integer("modelid", 0)
    vendor = "CentaurHauls" if vendor == "  Shanghai  " else vendor
    alike = [each for each in CPUS if each.vendor == vendor]
    if vendor == "AuthenticAMD":
        family = _AMD_FAMILIES.get(family, 23)
        return next(each for each in alike if each.family == family)
    model = 0xCF if model in _NEWEST_INTEL else model
    fitting = (each for each in alike if each.family == family and model >= each.model)
    return next(fitting, alike[-1] if alike else UNKNOWN_CPU)
