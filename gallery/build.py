"""Building blocks of the gallery: numbered GPUs, stars, networks between hosts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from ccl.errors import ProblemError
from ccl.topology import Declared, Device, Link, Topology, device, duplex

GPU_LIMIT = 16_384
"""Most GPUs of a shape."""

HOST_LIMIT = 16_384
"""Most hosts of a cluster on rails: 131,072 GPUs are a few seconds' work to make."""

Fabric = Literal["rail", "rail-only", "flat"]
"""``rail``: one leaf switch per GPU place and a spine above; ``rail-only``: the leaves alone;
``flat``: one switch for everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """A kind of link: GB/s one way, µs, medium, number of parallel links."""

    bandwidth: float
    alpha: float
    medium: str
    count: int = 1

    def join(self, first: str, second: str) -> tuple[Link, Link]:
        """Return two opposite links of this kind."""
        return duplex(
            first,
            second,
            bandwidth=self.bandwidth,
            alpha=self.alpha,
            medium=self.medium,
            count=self.count,
        )

    def times(self, count: int) -> Wire:
        """Return `count` parallel links of this kind as one."""
        return replace(self, bandwidth=self.bandwidth * count, count=self.count * count)


def check(what: str, value: int, *, least: int, most: int = GPU_LIMIT) -> None:
    """Refuse a number out of range.

    Raises
    ------
    ProblemError
        If it is below `least` or above `most`.
    """
    if not least <= value <= most:
        raise ProblemError(f"{what} must be from {least:,} to {most:,}, got {value:,}")


def make_gpus(count: int, *, host: str | None = None, first: int = 0) -> list[Device]:
    """Make GPUs called g0, g1, ... from number `first` on."""
    return [device("gpu", f"g{first + i}", host=host) for i in range(count)]


def star(hub: str, leaves: Iterable[str], wire: Wire) -> list[Link]:
    """Join every leaf with the hub."""
    return [link for leaf in leaves for link in wire.join(hub, leaf)]


def gpu_hosts(hosts: int, gpus: int) -> tuple[list[Device], list[list[str]]]:
    """Make the GPUs of hosts; return them, and the names of each host's."""
    boxes = [make_gpus(gpus, host=f"h{host}", first=gpus * host) for host in range(hosts)]
    return list(chain(*boxes)), [[each.name for each in box] for box in boxes]


def switched_hosts(
    hosts: int, gpus: int, wire: Wire, *, switch: str
) -> tuple[list[Device], list[Link], list[list[str]]]:
    """Make hosts with a switch each; return devices, links, and the names of each host's GPUs."""
    devices: list[Device] = []
    links: list[Link] = []
    boxes: list[list[str]] = []
    for host in range(hosts):
        members = make_gpus(gpus, host=f"h{host}", first=gpus * host)
        boxes.append([each.name for each in members])
        devices += [*members, device("switch", f"{switch}{host}", host=f"h{host}")]
        links += star(f"{switch}{host}", boxes[-1], wire)
    return devices, links, boxes


def clique(names: Sequence[str], wire: Wire) -> list[Link]:
    """Join every two devices."""
    return [
        link
        for i, first in enumerate(names)
        for second in names[i + 1 :]
        for link in wire.join(first, second)
    ]


def network(
    ports: Sequence[Sequence[str]], wire: Wire, *, fabric: Fabric, copies: bool = False
) -> tuple[list[Device], list[Link]]:
    """Join hosts, given the devices of each that have a port, with plain or copying switches.

    A spine carries all that its leaves take in, so that it is never what limits.
    """
    if len(ports) < 2:
        return [], []
    if fabric == "flat":
        hub = device("switch", "fabric", copies=copies)
        return [hub], star(hub.name, [name for host in ports for name in host], wire)
    leaves = [device("switch", f"rail{i}", copies=copies) for i in range(len(ports[0]))]
    links = [
        link
        for place, leaf in enumerate(leaves)
        for link in star(leaf.name, [host[place] for host in ports], wire)
    ]
    if fabric == "rail" and len(leaves) > 1:
        spine = device("switch", "spine", copies=copies)
        links += star(spine.name, [leaf.name for leaf in leaves], wire.times(len(ports)))
        return [*leaves, spine], links
    return leaves, links


def topology(
    name: str,
    devices: Iterable[Device],
    links: Iterable[Link],
    joined: tuple[Sequence[Device], Sequence[Link]] = ((), ()),
    *,
    declared: Iterable[Declared] = (),
) -> Topology:
    """Make a topology of hosts and of the `network` that joins them."""
    everything = (*devices, *joined[0]), (*links, *joined[1])
    return Topology(name, *everything, declared=tuple(declared))


def count_of(hosts: int, what: str) -> str:
    """Return ``2 × NDv2``, or ``NDv2`` for one."""
    return what if hosts == 1 else f"{hosts} × {what}"
