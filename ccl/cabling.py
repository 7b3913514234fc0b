"""Cables of a cluster: which links leave a box, and the ports at which they end.

A box is what is bought and racked as one: a host with its GPUs and inner switches, a switch of the
network, or a GPU that is in no host. A host in which a switch of the network stands is no box but
a name for several, such as a group of a dragonfly.

A link between two boxes is a cable, unless its medium runs on boards or through the backplane of a
rack (NVLink, PCIe). A link inside a host is none, unless its medium is that of a network. A
topology says no more: where its media are named otherwise, this is an assumption.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ccl.topology import Link, Topology

INNER_MEDIA = ("nvlink", "nvswitch", "pcie", "infinity fabric", "xgmi", "upi", "qpi", "board")
"""How the media of boards and backplanes begin."""

NETWORK_MEDIA = ("network", "infiniband", "ethernet", "roce", "optical", "fibre", "fiber")
"""A word of these makes a medium that of a network."""


@dataclass(frozen=True, slots=True)
class End:
    """Where a cable ends.

    Parameters
    ----------
    box
        Name of what it is plugged into.
    port
        Name of the port, unique in its box: ``p3``, or ``gpu5:1`` for port 1 of the sixth GPU of a
        host, so that hosts that are alike have ports that are called alike.
    device
        Name of the device of the topology.
    """

    box: str
    port: str
    device: str


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable, both directions of a link in one.

    Parameters
    ----------
    first, second
        Its ends, in the order in which the topology has them.
    bandwidth
        GB/s, one way, of the wider direction.
    """

    first: End
    second: End
    bandwidth: float


@dataclass(frozen=True)
class Cabling:
    """Boxes and cables of a topology.

    Parameters
    ----------
    boxes
        Names of the devices in each box, in the order of the topology.
    cables
        One for each of the parallel links that a link stands for.
    switches
        Names of the boxes that are switches with cables.
    backplanes
        Number of pairs of devices in different boxes whose links are of an inner medium.
    """

    boxes: dict[str, tuple[str, ...]]
    cables: tuple[Cable, ...]
    switches: frozenset[str]
    backplanes: int


def cabling_of(topology: Topology) -> Cabling:
    """Return the boxes and cables of a topology."""
    kinds = {each.name: each.kind for each in topology.devices}
    hosts = {each.name: each.host for each in topology.devices}
    pairs = list(_pairs(topology))
    network = {
        name
        for link, _, _ in pairs
        if _is_cable(link, hosts)
        for name in link.ends
        if kinds[name] == "switch"
    }
    shared = {hosts[name] for name in network}
    boxes: dict[str, list[str]] = {}
    box_of: dict[str, str] = {}
    inside: dict[str, str] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for name, host in hosts.items():
        alone = host is None or host in shared
        box = box_of[name] = name if alone else _host_box(str(host), topology)
        boxes.setdefault(box, []).append(name)
        inside[name] = "p" if alone else f"{kinds[name]}{seen[box, kinds[name]]}:"
        seen[box, kinds[name]] += 1
    ports: Counter[str] = Counter()

    def end(name: str) -> End:
        ports[name] += 1
        return End(box_of[name], f"{inside[name]}{ports[name]}", name)

    cables = tuple(
        Cable(end(link.src), end(link.dst), bandwidth)
        for link, count, bandwidth in pairs
        if _is_cable(link, hosts)
        for _ in range(count)
    )
    backplanes = sum(
        not _is_cable(link, hosts) and box_of[link.src] != box_of[link.dst] for link, _, _ in pairs
    )
    made = {box: tuple(names) for box, names in boxes.items()}
    return Cabling(made, cables, frozenset(box_of[name] for name in network), backplanes)


def _pairs(topology: Topology) -> Iterator[tuple[Link, int, float]]:
    """Yield a link of each pair of devices, the parallel ones there are, and GB/s of each."""
    index = topology.link_index
    for place, link in enumerate(topology.links):
        back = index.get((link.dst, link.src))
        if back is not None and back < place:
            continue
        other = link if back is None else topology.links[back]
        count = max(link.count, other.count)
        yield link, count, max(link.bandwidth, other.bandwidth) / count


def _is_cable(link: Link, hosts: dict[str, str | None]) -> bool:
    medium = link.medium.casefold()
    if hosts[link.src] is not None and hosts[link.src] == hosts[link.dst]:
        return any(word in medium for word in NETWORK_MEDIA)
    return not medium.startswith(INNER_MEDIA)


def _host_box(host: str, topology: Topology) -> str:
    """Return the name of the box that is a host, apart from a device that is called the same."""
    return f"host {host}" if host in topology.index else host
