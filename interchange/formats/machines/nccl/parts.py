"""What an NCCL system XML stands for: parts in trees, bonds beside these, and their bandwidths.

Source of the meaning: NVIDIA/nccl, src/graph/topo.cc, which builds its graph in the same order:
CPUs with what is below them, then NVLinks, then NVLink-C2C, then links between PCIe switches.

Bandwidths are those that NCCL and RCCL plan with, and those of data sheets, GB/s one way. Sources:
NVIDIA/nccl, src/graph/topo.h and topo.cc, for NVLink, PCIe and CPUs; ROCm/rccl, src/graph/topo.h,
for xGMI; data sheets of the GPUs, halved since these add both directions; the PCI Express base
specifications for gigatransfers and line codes.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Literal

from ccl.errors import FormatError
from interchange.formats.machines._pcie_tree import NVLINK
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


Role = Literal["gpu", "nvswitch", "cpu", "pcie", "nic"]
"""What a part is; with a number it is the name of the device."""

MOST_CPUS = 32
"""Of a host; each is joined with each."""

MOST_PARTS = 60_000
"""Of a file; the hosts of `hosts` come on top."""

MOST_PARALLEL = 4096
MOST_SPEED = 100_000_000
"""Mb/s of a NIC."""

NVSWITCH, NVSWITCH_CPU = "0x068000", "0x068001"
FABRIC = "fffffff:"
"""How the address of an NVSwitch begins that a machine does not show."""

Place = tuple[int, int | str]
"""A host and a PCI address in it."""


_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)


def without_comments(content: bytes) -> bytes:
    """Return XML without comments, on the same lines.

    What RCCL and NCCL read has comments of many hyphens, which XML does not allow.
    """
    return _COMMENT.sub(lambda found: b"\n" * found[0].count(b"\n"), content)


@dataclass(slots=True)
class Part:
    """A device to be; `above` is the number of the part that it hangs on over `wire`, or -1."""

    role: Role
    host: int
    above: int = -1
    wire: Wire | None = None
    order: tuple[int, int] = (0, 0)
    speed: float = 0.0
    latency: float = 0.0
    medium: str = ""
    cpu: Cpu | None = None


@dataclass(frozen=True, slots=True)
class Bond:
    """A link beside the tree, one way, by the numbers of the parts."""

    src: int
    dst: int
    wire: Wire


@dataclass
class Parts:
    """What a file says; `seen` counts what a report mentions."""

    listed: list[Part] = field(default_factory=list)
    bonds: list[Bond] = field(default_factory=list)
    hosts: dict[str, int] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)

    def add(self, part: Part) -> int:
        """Add a part and return its number."""
        if len(self.listed) >= MOST_PARTS:
            raise FormatError(f"it has more than {MOST_PARTS:,} devices; that is too many")
        self.listed.append(part)
        return len(self.listed) - 1

    def join(self, first: int, second: int, wire: Wire) -> None:
        """Add a bond each way."""
        self.bonds += [Bond(first, second, wire), Bond(second, first, wire)]


def read_parts(root: Element, *, planned: bool, merged: bool) -> Parts:
    """Return the parts of a <system>.

    Raises
    ------
    FormatError
        If a figure is none, or there is too much.
    """
    reading = _Reading(root, planned=planned, merged=merged)
    for cpu in root.each("cpu"):
        reading.cpu(cpu)
    reading.links()
    return reading.parts


class _Reading:
    def __init__(self, root: Element, *, planned: bool, merged: bool) -> None:
        self.parts = Parts()
        self.planned = planned
        self.merged = merged
        self.ranked = self.gpus = self.nets = self.numbered = False
        self._look(root)
        self.cards: list[tuple[int, Element, Place]] = []
        self.crossings: list[tuple[int, Element]] = []
        self.places: dict[Place, int] = {}
        self.bridges: dict[Place, int] = {}
        self.ports: dict[tuple[int, str, str], int] = {}
        self.switches: dict[Place, int] = {}
        self.host = 0

    def _look(self, root: Element) -> None:
        """Say whether the file names GPUs, ranks, nets and their numbers, or leaves them open."""
        open_ones = [root]
        while open_ones:
            element = open_ones.pop()
            open_ones += element.children
            if element.tag == "gpu":
                self.gpus = True
                self.ranked |= "rank" in element.attributes
            elif element.tag == "net":
                self.nets = True
                self.numbered |= "dev" in element.attributes

    def cpu(self, element: Element) -> None:
        """Take a CPU and everything below it."""
        key = element.attributes.get("host_hash", "")
        self.host = self.parts.hosts.setdefault(key, len(self.parts.hosts))
        self.parts.seen[f"cpus {self.host}"] += 1
        if self.parts.seen[f"cpus {self.host}"] > MOST_CPUS:
            raise FormatError(
                f"line {element.line}: a host has more than {MOST_CPUS} CPUs; that is too many"
            )
        number = self.parts.add(Part("cpu", self.host, cpu=cpu_kind(element)))
        for child in element.each("pci"):
            self._pci(child, number)
        for nic in element.each("nic"):
            for net in filter(self._takes, nic.each("net")):
                self._nic(net, number, Wire(LOCAL, "local"), "network")

    def _pci(self, element: Element, above: int) -> None:
        wire = self._pcie(element)
        kind = element.attributes.get("class", "").lower()
        gpus = list(filter(self._takes, element.each("gpu")))
        nics = (element, *element.each("nic"))
        nets = [net for nic in nics for net in nic.each("net") if self._takes(net)]
        below = list(element.each("pci"))
        network = "InfiniBand" if kind.startswith("0x0207") else "network"
        place = (self.host, _address(element.attributes.get("busid", "")))
        if len(gpus) + len(nets) == 1 and not below:
            for gpu in gpus:
                self.places[place] = self._gpu(gpu, above, wire)
                self.cards.append((self.places[place], gpu, place))
            for net in nets:
                self._nic(net, above, wire, network)
        elif gpus or nets or not self._leaf(element, above, wire, kind):
            number = self.parts.add(Part("pcie", self.host, above, wire))
            self.places[place] = self.bridges[place] = number
            self.cards += [(number, gpu, place) for gpu in gpus[:1]]
            for gpu in gpus:
                self._gpu(gpu, number, Wire(LOCAL, "local"))
            for net in nets:
                self._nic(net, number, Wire(LOCAL, "local"), network)
            for child in below:
                self._pci(child, number)
            self.crossings += [(number, each) for each in element.each("pcilink")]

    def _leaf(self, element: Element, above: int, wire: Wire, kind: str) -> bool:
        """Say whether a device without GPU and NIC is no bridge, and take it if it stands for one.

        Files for cloud machines name only addresses and classes, which NCCL completes as it starts.
        """
        if kind.startswith(("0x03", "0x12")):
            if self.gpus:
                self.parts.seen["unused GPUs"] += not element.children
                return True
            self.parts.seen["implied GPUs"] += 1
            place = (self.host, _address(element.attributes.get("busid", "")))
            self.places[place] = self._gpu(Element("gpu", {}, [], element.line), above, wire)
            return True
        if kind.startswith("0x02"):
            if self.nets:
                self.parts.seen["unused NICs"] += not element.children
                return True
            self.parts.seen["implied NICs"] += 1
            medium = "InfiniBand" if kind.startswith("0x0207") else "network"
            order = (0, len(self.parts.listed))
            part = Part("nic", self.host, above, wire, order, wire.bandwidth, medium=medium)
            self.parts.add(part)
            return True
        return kind.startswith(NVSWITCH)

    def _takes(self, element: Element) -> bool:
        """Say whether NCCL takes a GPU or a port: only those with a rank, with a number."""
        if element.tag == "gpu":
            taken = not self.ranked or "rank" in element.attributes
            self.parts.seen["unused GPUs"] += not taken
            return taken
        said = element.attributes.get("net", "1").strip() != "0"
        taken = said and (not self.numbered or "dev" in element.attributes)
        self.parts.seen["unused NICs"] += not taken
        return taken

    def _gpu(self, element: Element, above: int, wire: Wire) -> int:
        order = element.integer("rank", -1), element.integer("dev", -1)
        return self.parts.add(Part("gpu", self.host, above, wire, order))

    def _nic(self, element: Element, above: int, wire: Wire, medium: str) -> None:
        number = element.integer("dev", len(self.ports))
        speed = element.integer("speed", 0)
        if speed > MOST_SPEED:
            raise FormatError(
                f"line {element.line}: <{element.tag}> has a speed of {speed:,} Mb/s; give up to "
                f"{MOST_SPEED:,} Mb/s"
            )
        self.parts.seen["NICs of unknown speed"] += speed <= 0
        rate = speed / 8000 if speed > 0 else UNSAID_NIC
        if wire.bandwidth > rate:
            wire = Wire(rate, wire.medium)
        key = (self.host, str(number), element.attributes.get("name", ""))
        if key in self.ports:  # a NIC of no PCI address is listed below every CPU
            self.parts.join(above, self.ports[key], wire)
            return
        latency = min(max(element.number("latency", 0.0), 0.0), 1e6)
        part = Part("nic", self.host, above, wire, (number, number), rate, latency, medium)
        self.ports[key] = self.parts.add(part)

    def _pcie(self, element: Element) -> Wire:
        """Return the link of a PCI device to what is above it."""
        width = element.integer("link_width", 0) or 16  # what is not known is 0 in /sys
        if not 0 < width <= MOST_LANES:
            raise FormatError(
                f"line {element.line}: <{element.tag}> has {width:,} PCIe lanes; give 1 to "
                f"{MOST_LANES}, or 0 for unknown"
            )
        speed = pcie_generation(element.attributes.get("link_speed", ""))
        self.parts.seen["PCI devices of unknown speed"] += speed is None
        return (speed or UNSAID_PCIE).wire(width, planned=self.planned)

    def links(self) -> None:
        """Take NVLinks, xGMI, C2C and links between PCIe switches."""
        for number, gpu, place in sorted(self.cards, key=lambda card: card[1].integer("rank", -1)):
            for link in gpu.each("nvlink", "xgmi"):
                self._between(number, link, gpu, place[0])
            for link in gpu.each("c2c"):
                self._c2c(number, link)
        for number, link in self.crossings:
            place = (self.parts.listed[number].host, _address(link.text("target", "")))
            target = self.bridges.get(place)
            if target is not None and target != number:
                wire = Wire(LOCAL, "local")
                self.parts.bonds.append(Bond(number, target, wire))

    def _between(self, number: int, link: Element, gpu: Element, host: int) -> None:
        count = _parallel(link)
        if not count:
            return
        wire = self._figure(link, gpu)
        address = link.text("target", "")
        target = self.places.get((host, _address(address)))
        kind = link.attributes.get("tclass", "").lower()
        if kind.startswith(("0x03", "0x12")) or (not kind and target is not None):
            if target is None or target == number:
                self.parts.seen["links to GPUs that are not there"] += count
                return
            self.parts.bonds.append(Bond(number, target, wire.times(count)))
        elif kind.startswith(NVSWITCH_CPU):
            self.parts.join(number, self._cpu_of(number), wire.times(count))
        else:
            self.parts.join(number, self._switch(host, address), wire.times(count))

    def _figure(self, link: Element, gpu: Element) -> Wire:
        gcn = gpu.attributes.get("gcn", "")
        if link.tag == "xgmi" or gcn:
            return xgmi(gcn).wire(planned=self.planned)
        if "sm" not in gpu.attributes:
            self.parts.seen["GPUs of unknown architecture"] += 1
        return nvlink(gpu.integer("sm", DEFAULT_SM)).wire(planned=self.planned)

    def _switch(self, host: int, address: str) -> int:
        """Return the NVSwitch at an address; of a fabric's there is one for all hosts."""
        single = len(self.parts.hosts) == 1
        hidden = self.merged or address.lower().startswith(FABRIC)
        place: Place = (0 if single else -1, "") if hidden else (host, _address(address))
        if place not in self.switches:
            self.switches[place] = self.parts.add(Part("nvswitch", place[0]))
        return self.switches[place]

    def _cpu_of(self, number: int) -> int:
        while self.parts.listed[number].role != "cpu":
            number = self.parts.listed[number].above
        return number

    def _c2c(self, number: int, link: Element) -> None:
        rate = link.integer("bw", 0) * _parallel(link) / 1000  # MB/s of each
        if not 0 < rate <= LOCAL:
            raise FormatError(
                f"line {link.line}: <c2c> carries {rate:g} GB/s; give bw in MB/s and count so "
                f"that it is above 0 and up to {LOCAL:g} GB/s"
            )
        wire = Wire(rate, "NVLink-C2C", _parallel(link))
        self.parts.join(number, self._cpu_of(number), wire)


def _parallel(link: Element) -> int:
    count = link.integer("count", 1)
    if not 0 <= count <= MOST_PARALLEL:
        raise FormatError(
            f"line {link.line}: <{link.tag}> stands for {count:,} links; give 0 to {MOST_PARALLEL}"
        )
    return count


def _address(text: str) -> int | str:
    """Return a PCI address as one number, as NCCL compares them, or as it stands."""
    digits = text.replace(":", "").replace(".", "").strip()
    try:
        return int(digits, 16) if len(digits) <= 16 else text
    except ValueError:
        return text
