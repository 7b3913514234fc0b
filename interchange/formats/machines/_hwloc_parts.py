"""What is worth drawing in an hwloc topology: packages, PCIe switches, GPUs, network adapters.

Objects are nested; caches, cores, groups and host bridges pass on what is below them. PCI classes
are those of the PCI-SIG: 02 network, 03 display, 12 processing accelerator.

Source of the shape: open-mpi/hwloc, hwloc/hwloc2.dtd, and its documentation of object types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from ccl.errors import FormatError
from interchange.formats.machines._told import MOST_BANDWIDTH
from interchange.formats.xml import Element

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
        msg = (
            f"line {element.line}: a pci_link_speed of {speed:g} GB/s is none; give 0 to "
            f"{MOST_BANDWIDTH:,.0f}"
        )
        raise FormatError(msg)
    return speed
