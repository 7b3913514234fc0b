"""What ``lstopo --of xml`` writes, as a topology of one host: its PCIe tree with GPUs and adapters.

What is worth drawing are packages, PCIe switches, GPUs and network adapters (`Part`). Packages and
PCIe switches become switches. Objects are nested; caches, cores, groups and host bridges pass on
what is below them. PCI classes are those of the PCI-SIG: 02 network, 03 display, 12 processing
accelerator.

hwloc tells the speed that a PCIe link has at the moment, not what it is capable of. NVLinks are in
a table of the file that is left out: ``nvidia-smi topo -m`` tells them better, and
`interchange.formats.merging` joins the two.

Source of the shape: open-mpi/hwloc, hwloc/hwloc2.dtd, and its documentation of object types and
attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from ccl.errors import FormatError
from ccl.serialization.documents import document
from ccl.text import count
from ccl.topology import Device, DeviceKind, Link, SharedLimit, Topology, device, duplex
from interchange.formats.fields import MOST_BANDWIDTH, choice, yes
from interchange.formats.format import Imported, Reader, Remarks, Request
from interchange.formats.machines._pcie_tree import HOP_ALPHA, MEMORY, PCIE, widths_of
from interchange.formats.xml import Element, begins_with, parse_xml

Sort = Literal["machine", "package", "bridge", "gpu", "nic", "memory"]

_CLASS = re.compile(r"\s*([0-9a-fA-F]{4})(?:\s+\[([0-9a-fA-F]{4}):)?.*")
_NUMBERED = re.compile(r"(nvml|rsmi|cuda|ze)(\d{1,4})")
_COMPUTE = frozenset({"CUDA", "NVML", "RSMI", "LevelZero"})
_GPU_CLASSES = ("0302", "0380", "1200")
_GPU_VENDORS = frozenset({"10de", "1002"})
"""NVIDIA and AMD; a VGA controller of others serves a board's console."""

_PACKAGES = frozenset({"Package", "Socket"})


@dataclass
class Part:
    """Something that is drawn.

    Parameters
    ----------
    sort
        What it is.
    name
        Of an adapter, as the operating system has it; number of a package or a memory; PCI address
        of a GPU.
    speed
        GB/s of its link upwards, 0 where it is not told.
    rank
        Sorts GPUs as the vendor's tools number them.
    fabric
        Whether an adapter does RDMA.
    parts
        What is below it.
    """

    sort: Sort
    name: str = ""
    speed: float = 0.0
    rank: tuple[int, int] = (0, 0)
    fabric: bool = False
    parts: list[Part] = field(default_factory=list)

    def everything(self) -> Iterator[Part]:
        """Yield this part and those below it, in order."""
        yield self
        for each in self.parts:
            yield from each.everything()


@dataclass
class Found:
    """What a walk met beside parts."""

    displays: int = 0
    others: int = 0


def parts_of(machine: Element, found: Found) -> Part:
    """Return the parts of a machine.

    Raises
    ------
    FormatError
        If a link speed is none, with its line.
    """
    top = Part("machine")
    _walk(machine, top, found)
    return top


def collapsed(part: Part) -> int:
    """Take out of a tree what nothing hangs on, and bridges with one thing below; count these."""
    count = sum(collapsed(each) for each in part.parts)
    kept: list[Part] = []
    for each in part.parts:
        if each.sort == "bridge" and len(each.parts) == 1:
            only = each.parts[0]
            only.speed = min(filter(None, (only.speed, each.speed)), default=0.0)
            kept.append(only)
            count += 1
        elif each.parts or each.sort not in {"bridge", "package"}:
            kept.append(each)
    part.parts = kept
    return count


def without(part: Part, drop: set[int]) -> None:
    """Take parts out of a tree, by their identity."""
    part.parts = [each for each in part.parts if id(each) not in drop]
    for each in part.parts:
        without(each, drop)


def _walk(element: Element, above: Part, found: Found) -> None:
    for child in element.each("object"):
        kind = child.attributes.get("type", "")
        if kind in _PACKAGES:
            part = Part("package", child.attributes.get("os_index", ""))
            above.parts.append(part)
            _walk(child, part, found)
        elif kind == "Bridge" and child.attributes.get("bridge_type", "").startswith("1-"):
            part = Part("bridge", speed=_speed(child))
            above.parts.append(part)
            _walk(child, part, found)
        elif kind == "PCIDev":
            _note_device(child, above, found)
        elif kind == "OSDev":
            if child.attributes.get("subtype") in _COMPUTE - {"NVML"}:
                above.parts.append(Part("gpu", rank=_rank([child])))
        else:
            if kind == "NUMANode":
                above.parts.append(Part("memory", child.attributes.get("os_index", "")))
            _walk(child, above, found)


def _note_device(element: Element, above: Part, found: Found) -> None:
    """Note a PCI device that is a GPU or an adapter."""
    inside = [
        each for each in element.everywhere("object") if each.attributes.get("type") == "OSDev"
    ]
    said = _CLASS.fullmatch(element.attributes.get("pci_type", ""))
    pci_class, vendor = (said[1], (said[2] or "").lower()) if said else ("", "")
    computes = any(_computes(each) for each in inside)
    if computes or pci_class in _GPU_CLASSES or (pci_class == "0300" and vendor in _GPU_VENDORS):
        address = element.attributes.get("pci_busid", "")
        above.parts.append(Part("gpu", address, _speed(element), _rank(inside)))
    elif pci_class.startswith("03"):
        found.displays += 1
    elif pci_class.startswith("02"):
        fabrics = [each for each in inside if _is_fabric(each)]
        names = [each.attributes.get("name", "").strip() for each in [*fabrics, *inside]]
        name = next(filter(None, names), "")
        rdma = bool(fabrics) or pci_class == "0207"
        above.parts.append(Part("nic", name, _speed(element), fabric=rdma))
    else:
        found.others += 1


def _is_fabric(element: Element) -> bool:
    """Say whether an operating system device is of OpenFabrics: 3 up to hwloc 2, then a bit."""
    said = element.attributes.get("osdev_type", "")
    kind = int(said) if said.isascii() and said.isdigit() and len(said) < 5 else 0
    return kind == 3 or bool(kind & 32)


def _computes(element: Element) -> bool:
    """Say whether an operating system device is one that kernels run on."""
    subtype, name = element.attributes.get("subtype", ""), element.attributes.get("name", "")
    if subtype in _COMPUTE or _NUMBERED.fullmatch(name):
        return True
    return subtype == "OpenCL" and any(
        (each.attributes.get("name"), each.attributes.get("value")) == ("OpenCLDeviceType", "GPU")
        for each in element.each("info")
    )


def _rank(inside: list[Element]) -> tuple[int, int]:
    """Return the number that the vendor's tool gives a GPU, after how much that tool is trusted.

    NVML and ROCm SMI number GPUs as nvidia-smi and rocm-smi do, CUDA by speed unless told.
    """
    order = ("nvml", "rsmi", "ze", "cuda")
    found = [_NUMBERED.fullmatch(each.attributes.get("name", "")) for each in inside]
    ranks = [(order.index(each[1]), int(each[2])) for each in found if each]
    return min(ranks, default=(len(order), 0))


def _speed(element: Element) -> float:
    speed = element.number("pci_link_speed", 0.0)
    if not 0 <= speed <= MOST_BANDWIDTH:
        raise FormatError(
            f"line {element.line}: a pci_link_speed of {speed:g} GB/s is none; give 0 to "
            f"{MOST_BANDWIDTH:,.0f}"
        )
    return speed


SPEEDS = {"file": "as the file tells", "pcie": "as the setting pcie says"}
NICS = {"rdma": "those with RDMA, if any has it", "all": "all", "none": "none"}
MOST_LEAVES = 4096
"""GPUs and adapters of a host, virtual ones too."""

IDLE = 8.0
"""GB/s below which the link of a GPU looks as if it saved power."""


def recognises(content: bytes) -> bool:
    """Say whether a text is XML with objects of hwloc in it."""
    return begins_with(content, "topology") and b"<object type=" in content[:65536]


def read(content: bytes, request: Request) -> Imported:
    """Read a topology of hwloc 1, 2 or 3.

    Raises
    ------
    FormatError
        If it is no XML of hwloc, has no GPU, or a setting is unknown.
    """
    root = parse_xml(content)
    machine = next(root.each("object"), None)
    if root.tag != "topology" or machine is None:
        raise FormatError("it is no <topology> with an <object>; give what lstopo --of xml writes")
    return _Reading(root, machine, request).imported()


class _Reading(Remarks):
    """Makes the topology of a machine, and notes what becomes of each part."""

    def __init__(self, root: Element, machine: Element, request: Request) -> None:
        super().__init__()
        self.root = root
        self.machine = machine
        self.request = request
        self.host = _host(machine)
        self.devices: list[Device] = []
        self.links: list[Link] = []
        self.limits: list[SharedLimit] = []
        self.names: dict[int, str] = {}
        self.used: set[str] = set()
        self.numbers: dict[str, int] = {}
        self.untold = 0
        self.widths = widths_of(request, "4")
        self.speeds = choice(request, "speeds", SPEEDS, "file")

    def imported(self) -> Imported:
        """Return the topology with its report."""
        found = Found()
        top = parts_of(self.machine, found)
        self.chosen(top)
        chains = collapsed(top)
        gpus = sorted(
            (each for each in top.everything() if each.sort == "gpu"),
            key=lambda each: (*each.rank, each.name),
        )
        leaves = sum(each.sort in {"gpu", "nic"} for each in top.everything())
        if leaves > MOST_LEAVES:
            raise FormatError(
                f"it has {leaves:,} GPUs and adapters; a host is read up to {MOST_LEAVES:,}"
            )
        if not gpus:
            raise FormatError(
                "it has no GPU; write it where lstopo sees PCI devices (lstopo --whole-io --of xml)"
            )
        for i, gpu in enumerate(gpus):
            self.make(gpu, "gpu", f"gpu{i}")
        self.lay(top)
        self.describe(top, gpus, chains)
        self.described_beside(found)
        name = self.request.stem or "hwloc"
        topology = Topology(name, tuple(self.devices), tuple(self.links), tuple(self.limits))
        return Imported(document(topology), self.report())

    def chosen(self, top: Part) -> None:
        """Take out memories and adapters that are not wanted."""
        drop = {id(each) for each in top.everything() if each.sort == "memory"}
        if yes(self.request, "memory"):
            drop = set()
        elif drop:
            self.left_out.append(f"{count(len(drop), 'memory', 'memories')} (setting memory=true)")
        nics = [each for each in top.everything() if each.sort == "nic"]
        wanted = choice(self.request, "nics", NICS, "rdma")
        rdma = any(each.fabric for each in nics)
        lost = {
            id(each)
            for each in nics
            if wanted == "none" or (wanted == "rdma" and rdma and not each.fabric)
        }
        if lost:
            self.left_out.append(
                f"{count(len(lost), 'network adapter')} without RDMA (setting nics=all)"
                if wanted == "rdma"
                else count(len(lost), "network adapter")
            )
        without(top, drop | lost)

    def lay(self, top: Part) -> None:
        """Draw the packages with what hangs on them, and what joins them."""
        packages = [each for each in top.parts if each.sort == "package"]
        loose = [each for each in top.parts if each.sort != "package"]
        names = [self.place(each) for each in packages]
        if len(names) == 2 and not loose:
            self.join(names[0], names[1], self.widths.sockets, "socket link")
            return
        if len(names) == 1:
            hub = names[0]
        else:
            hub = self.make(top, "switch", "sockets0" if names else "cpu0")
            for name in names:
                self.join(name, hub, self.widths.sockets, "socket link")
        for each in loose:
            self.hang(each, hub)

    def place(self, part: Part) -> str:
        """Draw a part with what is below it; return its name."""
        if part.sort == "gpu":
            return self.names[id(part)]
        if part.sort == "nic":
            name = self.make(part, "nic", part.name or "nic0")
        elif part.sort == "memory":
            name = self.make(part, "memory", f"mem{part.name or 0}")
        else:
            sort = "cpu" if part.sort == "package" else "pcie"
            name = self.make(part, "switch", f"{sort}{part.name or 0}")
        for each in part.parts:
            self.hang(each, name)
        return name

    def hang(self, part: Part, above: str) -> None:
        """Draw a part and link it to what is above it."""
        name = self.place(part)
        if part.sort == "memory":
            ends = self.join(name, above, MEMORY, "memory bus")
            self.limits.append(SharedLimit(f"memory bus of {name}", ends, MEMORY))
            return
        speed = part.speed if self.speeds == "file" else 0.0
        self.untold += not speed
        self.join(name, above, speed or self.widths.pcie, _medium(speed, self.widths.generation))

    def make(self, part: Part, kind: DeviceKind, name: str) -> str:
        """Make the device of a part, with the first number that is free where a name is not."""
        stem = name.rstrip("0123456789") or name
        while name in self.used:
            number = self.numbers.get(stem, 0)
            self.numbers[stem] = number + 1
            name = f"{stem}{number}"
        self.used.add(name)
        self.names[id(part)] = name
        self.devices.append(device(kind, name, host=self.host))
        return name

    def join(
        self, first: str, second: str, bandwidth: float, medium: str
    ) -> tuple[tuple[str, str], ...]:
        """Link two devices both ways and return the ends of the two links."""
        pair = duplex(first, second, bandwidth=bandwidth, alpha=HOP_ALPHA, medium=medium)
        self.links += pair
        return tuple(each.ends for each in pair)

    def describe(self, top: Part, gpus: list[Part], chains: int) -> None:
        """Say what was drawn and what was assumed of it."""
        sorts = [each.sort for each in top.everything()]
        parts = {
            "GPU": len(gpus),
            "network adapter": sorts.count("nic"),
            "package": sorts.count("package"),
        }
        listed = [count(number, what) for what, number in parts.items() if number]
        bridges = sorts.count("bridge")
        listed += [count(bridges, "PCIe switch")] if bridges else []
        self.taken.append(f"{', '.join(listed)} of {self.host}")
        if chains:
            self.left_out.append(f"{count(chains, 'bridge')} with one thing below, drawn as a link")
        if self.untold:
            self.assumed.append(
                f"{count(self.untold, 'PCIe link')} without a speed have "
                f"{self.widths.lanes} (setting pcie)"
            )
        if any(link.medium == "socket link" for link in self.links):
            self.assumed.append(
                f"packages are joined at {self.widths.sockets:g} GB/s one way (setting sockets)"
            )
        if self.limits:
            self.assumed.append(f"a memory reads and writes {MEMORY:g} GB/s together")
        self.assumed.append(f"the latency of every link is {HOP_ALPHA} µs")
        slow = sum(0 < gpu.speed < IDLE for gpu in gpus)
        if slow and self.speeds == "file":
            self.assumed.append(
                f"{count(slow, 'GPU has', 'GPUs have')} the PCIe speed told, below {IDLE:g} GB/s "
                "as of idle ones (setting speeds=pcie takes the setting's)"
            )
        if len({gpu.rank[0] for gpu in gpus}) > 1 or gpus[0].rank[0] > 1:
            self.assumed.append("GPUs are numbered by CUDA, or else by PCI address")

    def described_beside(self, found: Found) -> None:
        """Say what else the file has."""
        tables = {
            each.attributes.get("name", "")
            for each in self.root.everywhere("distances2", "distances2hetero")
        }
        fabrics = sorted(each for each in tables if each.startswith(("NVLink", "XGMI")))
        if fabrics:
            self.left_out.append(
                f"the table {fabrics[0]}; merge it with what nvidia-smi topo -m or rocm-smi prints"
            )
        if found.displays:
            self.left_out.append(f"{count(found.displays, 'display adapter')} of the board")
        if found.others:
            self.left_out.append(f"{count(found.others, 'other PCI device')}")


def _host(machine: Element) -> str:
    """Return the name of the machine, or h0."""
    said = (
        each.attributes.get("value", "").strip()
        for each in machine.each("info")
        if each.attributes.get("name") == "HostName"
    )
    return next(filter(None, said), "h0")


def _medium(speed: float, generation: str) -> str:
    """Return what a link is called: the generation only where its speed comes from it."""
    fitting = (each for each, rate in PCIE.items() if abs(speed - rate) < 0.02 * rate)
    number = next(fitting, "") if speed else generation
    return f"PCIe {number}".strip()


SETTINGS = {
    "pcie": "generation of PCIe links without a speed, 3 to 6",
    "speeds": "file for the speeds told, pcie for that of the setting everywhere",
    "sockets": "GB/s one way between packages",
    "nics": "rdma for adapters with RDMA if there are any, all, or none",
    "memory": "true draws the memory of each NUMA domain",
}

READER = Reader("hwloc", "hwloc topology (lstopo XML)", ("xml",), recognises, read, SETTINGS)
