"""System topologies of NCCL and RCCL, which ``NCCL_TOPO_DUMP_FILE`` and ``NCCL_TOPO_FILE`` name.

A file describes one machine: CPUs with their PCIe trees, GPUs and NICs as leaves, NVLinks as lists
of targets of each GPU. A CPU and a PCIe bridge become switches, a bridge with one thing below it
part of that link. Of a NIC's PCIe link and its port the slower one is drawn; the port itself is
drawn where a network joins several hosts. NCCL takes all NVSwitches of a machine as one; here each
PCI address is one, unless told to merge them.

Source of the format: NVIDIA/nccl, src/graph/xml.cc and topo.cc; ROCm/rccl for ``version="2"``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Literal

from ccl.errors import FormatError
from ccl.serialization.documents import document
from ccl.text import count
from ccl.topology import Declared, Device, DeviceKind, Interchange, Link, Topology, device, duplex
from interchange.formats.fields import choice, select_sentences, whole
from interchange.formats.format import Imported, Reader, Report, Request
from interchange.formats.machines._pcie_tree import DIRECT_ALPHA, HOP_ALPHA
from interchange.formats.machines.nccl import parts as nccl
from interchange.formats.xml import begins_with, parse_xml

Network = Literal["flat", "rails"]

NETWORK_ALPHA = 1.3
"""µs of a link in the network; assumed, as in the gallery."""

MOST_GPUS = 16_384
MOST_DEVICES = 200_000
MOST_LINKS = 1_000_000
MOST_CPU_LINKS = 100_000
"""Between the CPUs of a file."""

FOUND = 5000
"""Devices below which all symmetries are looked for, of which those of hosts are only a part."""

_KINDS: dict[nccl.Role, DeviceKind] = {
    "gpu": "gpu",
    "nvswitch": "switch",
    "cpu": "switch",
    "pcie": "switch",
    "nic": "nic",
}
_ROLES: tuple[nccl.Role, ...] = ("gpu", "nvswitch", "cpu", "pcie", "nic")


def build(parts: nccl.Parts, *, copies: int, network: Network) -> Builder:
    """Make the cluster of `copies` times the hosts of a file.

    Raises
    ------
    FormatError
        If it has no GPU, becomes too large, or its hosts cannot be joined.
    ProblemError
        If what it says is no topology.
    """
    builder = Builder(parts, copies)
    builder.check()
    devices, links = builder.devices(), builder.links()
    if copies * len(parts.hosts) > 1:
        more_devices, more_links = builder.network(network)
        devices, links = [*devices, *more_devices], [*links, *more_links]
    gpus = builder.found["gpu"] * copies
    title = f"NCCL system of {gpus} GPU{'s' * (gpus > 1)}"
    builder.topology = Topology(title, tuple(devices), tuple(links), declared=builder.declared())
    return builder


class Builder:
    """Makes a cluster: names of one host's parts carry over to the copies, whose numbers go on.

    Attributes
    ----------
    topology
        The cluster, once it is built.
    found
        How many devices of each role the file has that are kept.
    chains
        Bridges that became part of a link.
    idle
        CPUs that had nothing below them.
    cpu_wires
        Links between CPUs.
    copies
        How often the file was taken.
    """

    topology: Topology

    def __init__(self, parts: nccl.Parts, copies: int) -> None:
        self.listed = [replace(part) for part in parts.listed]
        self.bonds = list(parts.bonds)
        self.hosts = len(parts.hosts)
        self.copies = copies
        self.alive = self._alive()
        self.chains = self._collapse()
        cpus = [i for i, part in enumerate(self.listed) if part.role == "cpu"]
        self.idle = sum(not self.alive[i] for i in cpus)
        self.cpu_wires = self._join_cpus([i for i in cpus if self.alive[i]])
        self.numbers = self._numbers()
        self.found = {role: len(self.numbers[role]) for role in _ROLES}
        self.bases: dict[int, tuple[nccl.Role, int]] = {
            part: (role, place) for role in _ROLES for place, part in enumerate(self.numbers[role])
        }

    def check(self) -> None:
        """Refuse what would be too much before it is made."""
        gpus, devices = len(self.numbers["gpu"]), len(self.bases)
        if not gpus:
            raise FormatError(
                "it has no GPU; each is a <gpu> with a rank inside a <pci> below a <cpu>, or a "
                "<pci> of class 0x03"
            )
        links = len(self.bonds) + 2 * devices
        for what, one, most in (
            ("GPUs", gpus, MOST_GPUS),
            ("devices", devices, MOST_DEVICES),
            ("links", links, MOST_LINKS),
        ):
            if one * self.copies > most:
                raise FormatError(
                    f"{self.copies:,} times {one:,} {what} are too many; {most:,} are the most"
                )

    def _alive(self) -> list[bool]:
        """Say of each part whether a GPU, NIC or link hangs on it."""
        alive = [part.role in ("gpu", "nic", "nvswitch") for part in self.listed]
        for bond in self.bonds:
            alive[bond.src] = alive[bond.dst] = True
        for number in range(len(self.listed) - 1, -1, -1):  # what is above comes before
            if alive[number] and self.listed[number].above >= 0:
                alive[self.listed[number].above] = True
        return alive

    def _collapse(self) -> int:
        """Make a link of each bridge with one thing below, and return how many there were."""
        bound = {end for bond in self.bonds for end in (bond.src, bond.dst)}
        many: Counter[int] = Counter()
        last: dict[int, int] = {}
        for number, part in enumerate(self.listed):
            if self.alive[number] and part.above >= 0:
                many[part.above] += 1
                last[part.above] = number
        chains = 0
        for number in range(len(self.listed) - 1, -1, -1):
            part = self.listed[number]
            if part.role != "pcie" or many[number] != 1 or number in bound:
                continue
            child = self.listed[last[number]]
            child.above, child.wire = part.above, _narrower(child.wire, part.wire)
            if many[part.above] == 1:
                last[part.above] = last[number]
            self.alive[number] = False
            chains += 1
        return chains

    def _join_cpus(self, cpus: list[int]) -> tuple[nccl.Wire, ...]:
        wires: dict[nccl.Wire, None] = {}
        by_host: dict[int, list[int]] = {}
        for number in cpus:
            by_host.setdefault(self.listed[number].host, []).append(number)
        if sum(len(many) ** 2 for many in by_host.values()) > MOST_CPU_LINKS:
            raise FormatError(
                f"its CPUs have more than {MOST_CPU_LINKS:,} links among them; that is too many"
            )
        for first, second in ((a, b) for many in by_host.values() for a in many for b in many):
            cpu = self.listed[first].cpu
            if first != second and cpu is not None:
                wires[cpu.wire] = None
                self.bonds.append(nccl.Bond(first, second, cpu.wire))
        return tuple(wires)

    def _numbers(self) -> dict[nccl.Role, list[int]]:
        """Return the parts of each role in the order of their names."""
        found: dict[nccl.Role, list[int]] = {role: [] for role in _ROLES}
        for number, part in enumerate(self.listed):
            if self.alive[number]:
                found[part.role].append(number)
        found["gpu"].sort(key=lambda number: self.listed[number].order)
        found["nic"].sort(key=lambda number: (self.listed[number].host, self.listed[number].order))
        return found

    def name(self, number: int, copy: int) -> str:
        """Return what a part is called in a copy."""
        role, place = self.bases[number]
        return f"{role}{place + copy * len(self.numbers[role])}"

    def host(self, part: nccl.Part, copy: int) -> str | None:
        """Return the host of a part in a copy; a fabric of several hosts has none."""
        return None if part.host < 0 else f"h{part.host + copy * self.hosts}"

    def devices(self) -> list[Device]:
        """Return all devices, the GPUs of a copy first."""
        return [
            device(_KINDS[role], self.name(number, copy), host=self.host(self.listed[number], copy))
            for copy in range(self.copies)
            for role in _ROLES
            for number in self.numbers[role]
        ]

    def links(self) -> list[Link]:
        """Return all links inside of hosts, in the order of their devices."""
        place = {number: i for i, number in enumerate(self.bases)}
        ends = sorted(self._ends(), key=lambda end: (place[end[0]], place[end[1]]))
        return [
            Link(
                self.name(src, copy),
                self.name(dst, copy),
                wire.bandwidth,
                self._alpha(src, dst),
                wire.medium,
                wire.count,
            )
            for copy in range(self.copies)
            for src, dst, wire in ends
        ]

    def _ends(self) -> Iterator[tuple[int, int, nccl.Wire]]:
        bound = {(bond.src, bond.dst) for bond in self.bonds}
        for bond in self.bonds:
            yield bond.src, bond.dst, bond.wire
        for number, part in enumerate(self.listed):
            if not self.alive[number] or part.above < 0 or part.wire is None:
                continue
            for src, dst in ((part.above, number), (number, part.above)):
                if (src, dst) not in bound:  # NVLink to the CPU is faster than PCIe beside it
                    yield src, dst, part.wire

    def _alpha(self, src: int, dst: int) -> float:
        both = self.listed[src].role == self.listed[dst].role == "gpu"
        return DIRECT_ALPHA if both else HOP_ALPHA

    @cached_property
    def one_way(self) -> int:
        """How many links between GPUs only one end names."""
        ends = {(bond.src, bond.dst) for bond in self.bonds}
        gpus = set(self.numbers["gpu"])
        return sum((b, a) not in ends for a, b in ends if a in gpus and b in gpus)

    def network(self, fabric: Network) -> tuple[list[Device], list[Link]]:
        """Return the switches that join the NICs of all hosts, and their links."""
        if not self.numbers["nic"]:
            if self.copies > 1:
                raise FormatError(
                    f"it has no NIC, so that nothing joins {self.copies} hosts; leave the setting "
                    "hosts out"
                )
            return [], []
        rails: list[list[tuple[str, nccl.Part]]] = [[]]
        places: Counter[int] = Counter()
        for number in self.numbers["nic"]:
            part = self.listed[number]
            rail = places[part.host] if fabric == "rails" else 0
            places[part.host] += 1
            rails += [[] for _ in range(rail + 1 - len(rails))]
            rails[rail] += [(self.name(number, copy), part) for copy in range(self.copies)]
        names = ["fabric"] if fabric == "flat" else [f"rail{i}" for i in range(len(rails))]
        links = [
            link
            for name, nics_of in zip(names, rails, strict=True)
            for nic, part in nics_of
            for link in duplex(
                nic,
                name,
                bandwidth=part.speed,
                alpha=part.latency or NETWORK_ALPHA,
                medium=part.medium,
            )
        ]
        if len(names) > 1:
            for name, nics_of in zip(names, rails, strict=True):
                speed = sum(part.speed for _, part in nics_of)
                links += duplex(
                    name, "spine", bandwidth=speed, alpha=NETWORK_ALPHA, medium="network"
                )
            names.append("spine")
        return [device("switch", name) for name in names], links

    def declared(self) -> tuple[Declared, ...]:
        """Declare that the copies may be permuted, where it takes too long to find more."""
        if self.copies == 1 or self.copies * len(self.bases) < FOUND:
            return ()
        blocks = (
            tuple(self.name(number, copy) for number in sorted(self.bases))
            for copy in range(self.copies)
        )
        return (Interchange(tuple(blocks)),)


def _narrower(first: nccl.Wire | None, second: nccl.Wire | None) -> nccl.Wire | None:
    if first is None or second is None:
        return first or second
    return first if first.bandwidth <= second.bandwidth else second


MOST_ELEMENTS = 200_000

_GPU_MEDIA = {each.medium for each in (*nccl.NVLINKS, *nccl.XGMIS)}

SETTINGS = {
    "bandwidths": (
        "planned: what NCCL and RCCL plan with (usual); spec: what data sheets say, one way"
    ),
    "switches": "each: every NVSwitch is a device (usual); merged: one for all, as NCCL has it",
    "hosts": "how many hosts like this one there are; 1 is usual",
    "network": "flat: all NICs at one switch (usual); rails: the k-th NICs at switch k, a spine",
}


def recognises(content: bytes) -> bool:
    """Say whether XML begins with a <system>."""
    return begins_with(content, "system")


def read(content: bytes, request: Request) -> Imported:
    """Read a system topology.

    Raises
    ------
    FormatError
        If it is not XML of this form, a figure is none, or it is too large.
    ProblemError
        If it is no topology.
    """
    planned = choice(request, "bandwidths", ("planned", "spec"), "planned")
    switches = choice(request, "switches", ("each", "merged"), "each")
    network = choice(request, "network", ("flat", "rails"), "flat")
    hosts = whole(request, "hosts", 1, most=MOST_GPUS)
    root = parse_xml(nccl.without_comments(content), most_elements=MOST_ELEMENTS)
    if root.tag != "system":
        raise FormatError(
            f"line {root.line}: it begins with <{root.tag}>; a system topology with <system>"
        )
    parts = nccl.read_parts(root, planned=planned == "planned", merged=switches == "merged")
    built = build(parts, copies=hosts, network="rails" if network == "rails" else "flat")
    assumed = _assumed(parts, built, bandwidths=planned, merged=switches == "merged")
    report = Report(tuple(_taken(parts, built)), tuple(assumed), tuple(_left_out(parts, built)))
    return Imported(document(built.topology), report)


def _taken(parts: nccl.Parts, built: Builder) -> list[str]:
    found = built.found
    words = select_sentences(
        (True, count(found["gpu"], "GPU")),
        (True, count(found["cpu"], "CPU")),
        (found["pcie"], count(found["pcie"], "PCIe switch")),
        (found["nvswitch"], count(found["nvswitch"], "NVSwitch")),
        (found["nic"], count(found["nic"], "NIC")),
    )
    taken = [f"{', '.join(words)} in {count(len(parts.hosts), 'host')}"]
    links: Counter[str] = Counter()
    for bond in parts.bonds:
        links[bond.wire.medium] += bond.wire.count
    said = [f"{number} of {medium}" for medium, number in links.items() if medium != "local"]
    if said:
        taken.append(f"one-way links beside PCIe: {', '.join(said)}")
    bare = _bare(built)
    if bare:
        told = f"{count(len(bare), 'GPU')} without NVLink beside others that have it"
        taken.append(f"{told}: {', '.join(bare[:8])}")
    speeds = sorted({part.speed * 8 for part in parts.listed if part.role == "nic"})
    if speeds:
        taken.append(f"NICs of {', '.join(f'{speed:g}' for speed in speeds[:4])} Gb/s")
    return taken


def _bare(built: Builder) -> list[str]:
    """Return the GPUs without any link beside PCIe, where others have some: mostly broken ones."""
    cluster = built.topology
    fast = {end for link in cluster.links if link.medium in _GPU_MEDIA for end in link.ends}
    return [name for name in cluster.ranks if name not in fast] if fast else []


_RATES = {
    "planned": ("as NCCL plans", "spec for data sheets"),
    "spec": ("as data sheets say", "planned for NCCL's"),
}
"""By setting: what bandwidths are, and what the other setting gives."""


def _assumed(parts: nccl.Parts, built: Builder, *, bandwidths: str, merged: bool) -> list[str]:
    seen = parts.seen
    by, other = _RATES[bandwidths]
    told = [f"GB/s one way, {by} (bandwidths={other}): {', '.join(_rates(built))}"]
    if built.cpu_wires:
        words = (f"{wire.medium} {wire.bandwidth:g}" for wire in built.cpu_wires)
        told.append(f"GB/s between CPUs, each way, as NCCL plans: {', '.join(words)}")
    told.append(
        f"latencies: {DIRECT_ALPHA} µs between two GPUs, {HOP_ALPHA} µs to or from a switch or "
        f"NIC, {NETWORK_ALPHA} µs in the network"
    )
    if built.found["nvswitch"] > 1 and not merged:
        told.append("each NVSwitch is a switch of its own, which NCCL merges (switches=merged)")
    if built.copies > 1:
        told.append(f"{built.copies:,} hosts are like this one")
    if built.copies * len(parts.hosts) > 1 and built.found["nic"]:
        rails = "rail0" in built.topology.index
        how = "a switch for each place, and a spine" if rails else "one switch (network=rails)"
        told.append(f"the NICs of all hosts are joined by {how}")
    unsaid = (
        ("implied GPUs", "GPU", "of which only the PCI class is said"),
        ("implied NICs", "NIC", "of which only the PCI class is said, as fast as their PCIe"),
        (
            "NICs of unknown speed",
            "NIC",
            f"without a speed: {nccl.UNSAID_NIC * 8:g} Gb/s as NCCL takes",
        ),
        ("PCI devices of unknown speed", "PCI device", "without a speed: 8 GT/s as NCCL takes"),
        ("GPUs of unknown architecture", "list", "of NVLinks without sm: as of sm 80"),
    )
    told += [f"{count(seen[key], what)} {said}" for key, what, said in unsaid if seen[key]]
    if any(part.wire and part.wire.bandwidth == nccl.LOCAL for part in parts.listed):
        told.append(
            f"GPUs of one card are joined at {nccl.LOCAL:g} GB/s, by which NCCL means no limit"
        )
    if built.found["gpu"] > 1 and not any(bond.wire.medium in _GPU_MEDIA for bond in parts.bonds):
        told.append("no NVLinks, which NCCL looks for on the machine when a file has none")
    if built.one_way:
        told.append(f"{count(built.one_way, 'link')} that one GPU alone names go one way")
    return told


def _rates(built: Builder) -> list[str]:
    """Return media with the bandwidth of a single link, but those of CPUs and NICs."""
    kinds = built.topology.device
    between = {wire.medium for wire in built.cpu_wires} | {"local"}
    rates = {
        f"{link.medium} {link.bandwidth / link.count:.4g}": None
        for link in built.topology.links[: len(built.topology.links) // built.copies]
        if link.medium not in between and "nic" not in (kinds(link.src).kind, kinds(link.dst).kind)
    }
    return sorted(rates)[:8]


def _left_out(parts: nccl.Parts, built: Builder) -> list[str]:
    seen = parts.seen
    rows = (
        (built.chains, "PCIe bridge", "with one thing below, now one link"),
        (built.idle, "CPU", "with neither GPU nor NIC"),
        (seen["unused GPUs"], "GPU", "without rank"),
        (seen["unused NICs"], "NIC", "that NCCL does not use"),
        (seen["links to GPUs that are not there"], "link", "to GPUs that are not in the file"),
    )
    first = f"PCI addresses and identifiers, affinity of {count(built.found['cpu'], 'CPU')}"
    return [first, *(f"{count(many, what)} {words}" for many, what, words in rows if many)]


READER = Reader("nccl", "NCCL or RCCL topology", ("xml",), recognises, read, SETTINGS)
