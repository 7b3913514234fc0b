"""Topologies of TACCL: latencies and times per chunk of the links in a host and between hosts.

A file describes one host. Times are in µs for the size of chunk that it was made for, so that a
link of β µs has chunk / β bytes a µs; the setting ``chunk_size`` says the size, and where it is
silent the end of the name does (``NDv2_1MB``), or 1 MB is assumed.

How the GPUs of a host are joined is in the file only in its custom form, which has matrices by
destination and source: ``links`` counts links, ``betas`` has the β of each, ``invbws`` α + β. The
other form lists the β of each kind of link, and the program that reads it is told the shape by
name: two kinds and eight GPUs are an NDv2 (the hybrid cube mesh, the faster kind where it has two
NVLinks), one kind is a hub, as in a DGX-2; ``inside=mesh`` makes a link of every pair instead.
Across a hub a send pays α once, half on each link.

Hosts are joined by ``nics_per_node`` ports each, which their GPUs share evenly in the order of
their numbers: a port is a device, as fast as ``remote_beta`` says in each direction, joined to its
GPUs, each as fast as the port, and to one switch between all hosts, which never limits. A way
between hosts pays ``remote_alpha`` once. Which GPUs are to send is in a sketch, not here.

Reference: microsoft/taccl, INPUT_GUIDE.md, taccl/topologies and taccl/examples/topo.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from ccl.errors import FormatError
from ccl.serialization.documents import document
from ccl.serialization.size import format_size, parse_size
from ccl.serialization.text import decode_json
from ccl.topology import Device, Link, Topology, device, duplex
from interchange.formats.format import Asked, Imported, Reader, Report
from interchange.formats.synthesizers._asking import about, count, counted, nbytes, number
from interchange.formats.synthesizers.taccl.host import (
    MOST_LINKS,
    TacclFile,
    Told,
    compare,
    custom,
    listed,
)

MOST_GPUS = 1_024
"""Of a host; the file may say any number in a few bytes."""

MOST_HOSTS = 1_024
_SIZE = re.compile(r"(\d+ ?[KMG]i?B)$", re.IGNORECASE)


class _Head(Struct):
    """What tells these files from other JSON."""

    gpus_per_node: Any = None
    alpha: Any = None
    node_betas_list: Any = None
    node_invbws_list: Any = None
    betas: Any = None
    invbws: Any = None


@dataclass(frozen=True)
class _Units:
    """What the times of the file mean: bytes of a chunk, and how many times too large they are."""

    chunk: float
    scale: float

    def bandwidth(self, beta: float, place: str) -> float:
        """Return GB/s of a link that takes `beta` of the file for a chunk.

        Raises
        ------
        FormatError
            If it is out of range.
        """
        rate = self.chunk * self.scale * 1e-3 / beta if beta > 0 else math.inf
        if not 1e-9 <= rate <= 1e9:
            msg = (
                f"at {place}: β is {beta:g} µs for {format_size(self.chunk)}, a link of {rate:g} "
                "GB/s; give a β above 0, or another chunk_size"
            )
            raise FormatError(msg)
        return rate

    def latency(self, alpha: float, place: str) -> float:
        """Return the µs of an α of the file; errors as `bandwidth`."""
        if not 0 <= alpha <= 1e9:
            msg = f"at {place}: α is {alpha:g} µs; give 0 to 10^9"
            raise FormatError(msg)
        return alpha / self.scale


def recognises(content: bytes) -> bool:
    """Say whether JSON text has the GPUs and the latency of a host, and times of its links."""
    if b"gpus_per_node" not in content:
        return False
    try:
        head = decode_json(content, _Head)
    except FormatError:
        return False
    times = (head.node_betas_list, head.node_invbws_list, head.betas, head.invbws)
    return None not in (head.gpus_per_node, head.alpha) and any(each is not None for each in times)


def read(content: bytes, asked: Asked) -> Imported:
    """Read a topology."""
    with about(asked.name):
        return _read(decode_json(content, TacclFile), asked)


def _read(file: TacclFile, asked: Asked) -> Imported:
    if not 2 <= file.gpus_per_node <= MOST_GPUS:
        msg = f"at gpus_per_node: {file.gpus_per_node:,} GPUs; give 2 to {MOST_GPUS:,}"
        raise FormatError(msg)
    told = Told()
    units = _units(file, asked, told)
    hosts = _hosts(file, asked, told)
    if file.node_betas_list is None and file.node_invbws_list is None:
        joins, hub = custom(file, asked, told), None
    else:
        joins, hub = listed(file, asked, told)
    many = hosts * (len(joins) if hub is None else 2 * file.gpus_per_node)
    if many > MOST_LINKS:
        msg = f"{hosts} hosts would have {many:,} links; {MOST_LINKS:,} at most are made"
        raise FormatError(msg)
    alpha = units.latency(file.alpha, "alpha")
    devices: list[Device] = []
    links: list[Link] = []
    for host in range(hosts):
        names = [f"g{host * file.gpus_per_node + i}" for i in range(file.gpus_per_node)]
        devices += [device("gpu", name, host=f"h{host}") for name in names]
        for each in joins:
            rate = units.bandwidth(each.beta, "betas")
            ends = names[each.src], names[each.dst]
            links.append(Link(*ends, rate, alpha, each.medium, each.count))
        if hub is not None:
            switch = f"switch{host}"
            devices.append(device("switch", switch, host=f"h{host}"))
            rate = units.bandwidth(hub, "node_betas_list")
            for name in names:
                links += duplex(name, switch, bandwidth=rate, alpha=alpha / 2)
    if hosts > 1:
        _join_hosts(file, units, devices, links, hosts=hosts)
    topology = Topology(file.name or "TACCL topology", tuple(devices), tuple(links))
    return Imported(document(topology), _report(topology, told, alpha))


def _report(topology: Topology, told: Told, alpha: float) -> Report:
    slowest = min((each.bandwidth for each in topology.links), default=1.0)
    if slowest < 1:
        told.assumed.append(
            f"the slowest link has {slowest:.3g} GB/s as written; TACCL asks to scale small times "
            "up, and setting scale divides them again"
        )
    first = (
        f"{counted(len(topology.ranks), 'GPU')} in {counted(len(topology.hosts), 'host')}, "
        f"{counted(len(topology.links), 'link')}, α {alpha:g} µs in a host"
    )
    return Report((first, *told.taken), tuple(told.assumed), tuple(told.left_out))


def _units(file: TacclFile, asked: Asked, told: Told) -> _Units:
    named = _SIZE.search(file.name[-20:])
    if named and not named[1].strip("0 ")[:1].isdigit():
        named = None
    chunk = nbytes(asked, "chunk_size", parse_size(named[1]) if named else 1e6)
    if "chunk_size" not in asked.settings:
        why = f"the name {file.name[-20:]}" if named else "the usual size"
        told.assumed.append(
            f"times are for chunks of {format_size(chunk)}, after {why}; setting chunk_size is "
            "another"
        )
    return _Units(chunk, number(asked, "scale", 1.0, most=1e9))


def _hosts(file: TacclFile, asked: Asked, told: Told) -> int:
    """Return how many hosts to make: two where the file says how they are joined."""
    joined = file.nics_per_node > 0
    hosts = count(asked, "hosts", 2 if joined else 1, most=MOST_HOSTS)
    if hosts > 1 and not joined:
        msg = f"{hosts} hosts are asked for and it has no nics_per_node to join them; take 1 host"
        raise FormatError(msg)
    if file.nics_per_node > MOST_GPUS:
        msg = f"at nics_per_node: {file.nics_per_node:,} ports; give {MOST_GPUS:,} at most"
        raise FormatError(msg)
    if "hosts" not in asked.settings:
        told.assumed.append(f"{counted(hosts, 'host')}; setting hosts is another number")
    if hosts == 1 and joined:
        told.left_out.append(
            f"{counted(file.nics_per_node, 'port')} of the host, for there is no other host"
        )
        return 1
    if joined:
        alpha, beta = file.remote_alpha, file.remote_beta
        compare("remote_invbw", [file.remote_invbw], [(alpha, beta)], told)
        told.taken.append(
            f"{counted(file.nics_per_node, 'port')} of each host, α {alpha:g} µs and β {beta:g} µs "
            "in the file's units"
        )
        told.assumed.append(
            "the GPUs of a host share its ports evenly by number, reach them as fast as the ports "
            "are, and one switch joins all ports"
        )
    return hosts


def _join_hosts(
    file: TacclFile, units: _Units, devices: list[Device], links: list[Link], *, hosts: int
) -> None:
    """Add the ports of all hosts and the switch between them."""
    if file.remote_beta < 0 or file.remote_alpha < 0:
        msg = "it has nics_per_node, and no remote_alpha or remote_beta; add both, in µs"
        raise FormatError(msg)
    rate = units.bandwidth(file.remote_beta, "remote_beta")
    alpha = units.latency(file.remote_alpha, "remote_alpha")
    gpus, ports = file.gpus_per_node, file.nics_per_node
    most = max(gpus, ports)
    if hosts * 2 * (most + ports) + len(links) > MOST_LINKS:
        msg = (
            f"{hosts} hosts of {ports} ports would have more than {MOST_LINKS:,} links; take fewer"
        )
        raise FormatError(msg)
    devices.append(device("switch", "network"))
    for host in range(hosts):
        names = [f"nic{host * ports + i}" for i in range(ports)]
        devices += [device("nic", name, host=f"h{host}") for name in names]
        for i in range(most):
            gpu = f"g{host * gpus + i * gpus // most}"
            links += duplex(gpu, names[i * ports // most], bandwidth=rate)
        for name in names:
            links += duplex(name, "network", bandwidth=rate, alpha=alpha / 2)


READER = Reader(
    name="taccl-topology",
    title="TACCL topology",
    endings=("json",),
    recognises=recognises,
    read=read,
    settings={
        "chunk_size": "Size of the chunks that its times are for, such as 1MB",
        "hosts": "How many hosts to make",
        "inside": "What one β means: switch (a hub) or mesh (a link of every two GPUs)",
        "direction": "Which side of its matrices is the destination: destination-major as in "
        "TACCL, or source-major",
        "scale": "By how much its times were multiplied, which TACCL asks for where they are small",
    },
)
