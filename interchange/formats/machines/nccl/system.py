"""System topologies of NCCL and RCCL, which ``NCCL_TOPO_DUMP_FILE`` and ``NCCL_TOPO_FILE`` name.

A file describes one machine: CPUs with their PCIe trees, GPUs and NICs as leaves, NVLinks as lists
of targets of each GPU. A CPU and a PCIe bridge become switches, a bridge with one thing below it
part of that link. Of a NIC's PCIe link and its port the slower one is drawn; the port itself is
drawn where a network joins several hosts. NCCL takes all NVSwitches of a machine as one; here each
PCI address is one, unless told to merge them.

Source of the format: NVIDIA/nccl, src/graph/xml.cc and topo.cc; ROCm/rccl for ``version="2"``.
"""

from __future__ import annotations

from ccl.errors import FormatError
from ccl.serialization.conditions import document
from ccl.text import count
from interchange.formats.fields import choice, whole
from interchange.formats.format import Imported, Reader, Report, Request, Writer
from interchange.formats.machines._pcie_tree import DIRECT_ALPHA, HOP_ALPHA
from interchange.formats.machines.nccl.cluster import MOST_GPUS, NETWORK_ALPHA, Built, build
from interchange.formats.machines.nccl.parts import (
    LOCAL,
    NVLINKS,
    UNSAID_NIC,
    XGMIS,
    Parts,
    Role,
    read_parts,
    without_comments,
)
from interchange.formats.machines.nccl.writing import Options, write
from interchange.formats.xml import begins_with, parse_xml

MOST_ELEMENTS = 200_000

_GPU_MEDIA = {each.medium for each in (*NVLINKS, *XGMIS)}

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


def read(content: bytes, asked: Request) -> Imported:
    """Read a system topology.

    Raises
    ------
    FormatError
        If it is not XML of this form, a figure is none, or it is too large.
    ProblemError
        If it is no topology.
    """
    planned = choice(asked, "bandwidths", ("planned", "spec"), "planned")
    switches = choice(asked, "switches", ("each", "merged"), "each")
    network = choice(asked, "network", ("flat", "rails"), "flat")
    hosts = whole(asked, "hosts", 1, most=MOST_GPUS)
    root = parse_xml(without_comments(content), most_elements=MOST_ELEMENTS)
    if root.tag != "system":
        raise FormatError(
            f"line {root.line}: it begins with <{root.tag}>; a system topology with <system>"
        )
    parts = read_parts(root, planned=planned == "planned", merged=switches == "merged")
    built = build(parts, copies=hosts, network="rails" if network == "rails" else "flat")
    report = _report(parts, built, planned=planned == "planned", merged=switches == "merged")
    return Imported(document(built.topology), report)


def _report(parts: Parts, built: Built, *, planned: bool, merged: bool) -> Report:
    return Report(
        tuple(_taken(parts, built)),
        tuple(_assumed(parts, built, planned=planned, merged=merged)),
        tuple(_left_out(parts, built)),
    )


def _taken(parts: Parts, built: Built) -> list[str]:
    found = built.found
    words = [count(found["gpu"], "GPU"), count(found["cpu"], "CPU")]
    many: tuple[tuple[Role, str, str], ...] = (
        ("pcie", "PCIe switch", "PCIe switches"),
        ("nvswitch", "NVSwitch", "NVSwitches"),
    )
    words += [count(found[role], one, more) for role, one, more in many if found[role]]
    words += [count(found["nic"], "NIC")] if found["nic"] else []
    taken = [f"{', '.join(words)} in {count(len(parts.hosts), 'host')}"]
    links: dict[str, int] = {}
    for bond in parts.bonds:
        links[bond.wire.medium] = links.get(bond.wire.medium, 0) + bond.wire.count
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


def _bare(built: Built) -> list[str]:
    """Return the GPUs without any link beside PCIe, where others have some: mostly broken ones."""
    cluster = built.topology
    fast = {end for link in cluster.links if link.medium in _GPU_MEDIA for end in link.ends}
    return [name for name in cluster.ranks if name not in fast] if fast else []


def _assumed(parts: Parts, built: Built, *, planned: bool, merged: bool) -> list[str]:
    seen = parts.seen
    by = "as NCCL plans" if planned else "as data sheets say"
    other = "spec for data sheets" if planned else "planned for NCCL's"
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
        ("NICs of unknown speed", "NIC", f"without a speed: {UNSAID_NIC * 8:g} Gb/s as NCCL takes"),
        ("PCI devices of unknown speed", "PCI device", "without a speed: 8 GT/s as NCCL takes"),
        ("GPUs of unknown architecture", "list", "of NVLinks without sm: as of sm 80"),
    )
    told += [f"{count(seen[key], what)} {said}" for key, what, said in unsaid if seen[key]]
    if any(part.wire and part.wire.bandwidth == LOCAL for part in parts.listed):
        told.append(f"GPUs of one card are joined at {LOCAL:g} GB/s, by which NCCL means no limit")
    if built.found["gpu"] > 1 and not any(bond.wire.medium in _GPU_MEDIA for bond in parts.bonds):
        told.append("no NVLinks, which NCCL looks for on the machine when a file has none")
    if built.one_way:
        told.append(f"{count(built.one_way, 'link')} that one GPU alone names go one way")
    return told


def _rates(built: Built) -> list[str]:
    """Return media with the bandwidth of a single link, but those of CPUs and NICs."""
    kinds = built.topology.device
    between = {wire.medium for wire in built.cpu_wires} | {"local"}
    rates = {
        f"{link.medium} {link.bandwidth / link.count:.4g}": None
        for link in built.topology.links[: len(built.topology.links) // built.copies]
        if link.medium not in between and "nic" not in (kinds(link.src).kind, kinds(link.dst).kind)
    }
    return sorted(rates)[:8]


def _left_out(parts: Parts, built: Built) -> list[str]:
    seen = parts.seen
    told = [f"PCI addresses and identifiers, affinity of {count(built.found['cpu'], 'CPU')}"]
    if built.chains:
        told.append(f"{count(built.chains, 'PCIe bridge')} with one thing below, now one link")
    if built.idle:
        told.append(f"{count(built.idle, 'CPU')} with neither GPU nor NIC")
    if seen["unused GPUs"]:
        told.append(f"{count(seen['unused GPUs'], 'GPU')} without rank")
    if seen["unused NICs"]:
        told.append(f"{count(seen['unused NICs'], 'NIC')} that NCCL does not use")
    if seen["links to GPUs that are not there"]:
        gone = count(seen["links to GPUs that are not there"], "link")
        told.append(f"{gone} to GPUs that are not in the file")
    return told


READER = Reader("nccl", "NCCL or RCCL topology", ("xml",), recognises, read, SETTINGS)

WRITER = Writer("nccl", "NCCL or RCCL topology", "xml", "topology", write, Options)
