"""Small clusters of the thesis and of its counterexamples, for the tests of fluid models."""

import numpy as np

from ccl.collective import make_collective
from ccl.problem import Problem
from ccl.topology import Device, Link, SharedLimit, Topology, device, duplex


def ask(topology: Topology, kind: str, *, gigabytes: float = 1.0) -> Problem:
    """Ask for a collective in which every rank contributes so much, to each other in all-to-all."""
    ranks = len(topology.ranks)
    whole = kind in ("broadcast", "reduce", "all-reduce")
    size = gigabytes * 1e9 * (1 if whole else ranks)
    return Problem(topology, make_collective(kind, ranks, size))


def rails(hosts: int, *, gpus: int = 8, up: float = 25.0, down: float = 25.0) -> Topology:
    """DGX A100 with NVLink alone: GPUs at 300 GB/s to a switch, at 25 to a rail."""
    devices: list[Device] = []
    links: list[Link] = []
    for host in range(hosts):
        names = [f"g{host}.{i}" for i in range(gpus)]
        devices += [device("gpu", name, host=f"h{host}") for name in names]
        devices.append(device("switch", f"nvswitch{host}", host=f"h{host}"))
        for place, name in enumerate(names):
            links += duplex(name, f"nvswitch{host}", bandwidth=300.0)
            if hosts > 1:
                links += [Link(name, f"rail{place}", up), Link(f"rail{place}", name, down)]
    if hosts > 1:
        devices += [device("switch", f"rail{i}") for i in range(gpus)]
    return Topology(f"{hosts} hosts on rails", tuple(devices), tuple(links))


def pcie(hosts: int, *, nvlink: bool) -> Topology:
    """DGX A100 with PCIe: 4 switches of 2 GPUs and 2 ports, a memory that copies, and rails.

    GPU, memory and switch at 32 GB/s, port and rail at 25; with NVLink also 300 to its switch.
    """
    devices: list[Device] = []
    links: list[Link] = []
    for host in range(hosts):
        where = f"h{host}"
        devices.append(device("memory", f"m{host}", host=where))
        devices += [device("switch", f"nvswitch{host}", host=where)] if nvlink else []
        for i in range(4):
            devices.append(device("switch", f"p{host}.{i}", host=where))
            links += duplex(f"p{host}.{i}", f"m{host}", bandwidth=32.0)
        for i in range(8):
            switch, gpu, port = f"p{host}.{i // 2}", f"g{host}.{i}", f"n{host}.{i}"
            devices.append(device("gpu", gpu, host=where))
            links += duplex(gpu, switch, bandwidth=32.0)
            links += duplex(gpu, f"nvswitch{host}", bandwidth=300.0) if nvlink else ()
            if hosts > 1:
                devices.append(device("nic", port, host=where))
                links += duplex(switch, port, bandwidth=25.0)
                links += duplex(port, f"rail{i}", bandwidth=25.0)
    if hosts > 1:
        devices += [device("switch", f"rail{i}") for i in range(8)]
    return Topology(f"{hosts} hosts on PCIe", tuple(devices), tuple(links))


def pcie_costs(topology: Topology) -> np.ndarray:
    """Cost 1 on links of GPUs and on links between a port and its rail."""
    kind = {each.name: each.kind for each in topology.devices}
    ends = [{kind[each.src], kind[each.dst]} for each in topology.links]
    rail = [any(end.startswith("rail") for end in each.ends) for each in topology.links]
    return np.array([float("gpu" in kinds or out) for kinds, out in zip(ends, rail, strict=True)])


def star(*bandwidths: float) -> Topology:
    """GPUs around a plain switch, each with a bandwidth of its own."""
    gpus = [device("gpu", f"g{i}") for i in range(len(bandwidths))]
    links = [
        link for i, each in enumerate(bandwidths) for link in duplex(f"g{i}", "s", bandwidth=each)
    ]
    return Topology("star", (*gpus, device("switch", "s")), tuple(links))


def boxes(count: int) -> Topology:
    """Boxes of 4 GPUs: a switch at 10 GB/s in each, one at 1 GB/s between all (ForestColl, 12)."""
    devices = [device("switch", "global")]
    links: list[Link] = []
    for box in range(count):
        devices.append(device("switch", f"s{box}"))
        for i in range(4):
            devices.append(device("gpu", f"g{box}.{i}"))
            links += duplex(f"g{box}.{i}", f"s{box}", bandwidth=10.0)
            links += duplex(f"g{box}.{i}", "global", bandwidth=1.0)
    return Topology(f"{count} boxes", tuple(devices), tuple(links))


def chords(gpus: int) -> Topology:
    """A ring at 10 GB/s with every other pair joined at 1 GB/s."""
    links = [
        Link(f"g{i}", f"g{j}", 10.0 if (i - j) % gpus in (1, gpus - 1) else 1.0)
        for i in range(gpus)
        for j in range(gpus)
        if i != j
    ]
    return Topology(
        "ring with chords", tuple(device("gpu", f"g{i}") for i in range(gpus)), tuple(links)
    )


def around(
    hub: Device, gpus: int, *, bandwidth: float = 1.0, limit: float | None = None
) -> Topology:
    """GPUs around a hub, all whose links share a limit if there is one (thesis, figure 2.3a)."""
    names = [f"g{i + 1}" for i in range(gpus)]
    links = tuple(link for name in names for link in duplex(name, hub.name, bandwidth=bandwidth))
    limits = (SharedLimit("hub", tuple(each.ends for each in links), limit),) if limit else ()
    return Topology(
        f"around a {hub.kind}", (*(device("gpu", n) for n in names), hub), links, limits
    )


def butterfly() -> Topology:
    """The network of coding theory: a root, two who want its data, four memories between, at 1."""
    ways = ("sa", "sb", "ac", "bc", "cd", "at", "dt", "bu", "du")
    devices = [device("gpu", name) for name in "stu"] + [device("memory", name) for name in "abcd"]
    return Topology("butterfly", tuple(devices), tuple(Link(way[0], way[1], 1.0) for way in ways))


def small_pcie(hosts: int) -> Topology:
    """Hosts of 2 GPUs with memory, PCIe and NVLink switches, and a port on a rail for each GPU."""
    devices: list[Device] = []
    links: list[Link] = []
    for host in range(hosts):
        memory, nvlink, bridge = f"m{host}", f"v{host}", f"p{host}"
        devices += [device("memory", memory), device("switch", nvlink), device("switch", bridge)]
        links += duplex(bridge, memory, bandwidth=32.0)
        for i in range(2):
            gpu, port = f"g{host}.{i}", f"n{host}.{i}"
            devices += [device("gpu", gpu), device("nic", port)]
            links += duplex(gpu, bridge, bandwidth=32.0)
            links += duplex(gpu, nvlink, bandwidth=300.0)
            links += duplex(bridge, port, bandwidth=25.0)
            links += duplex(port, f"rail{i}", bandwidth=25.0)
    devices += [device("switch", f"rail{i}") for i in range(2)]
    return Topology(f"{hosts} small hosts", tuple(devices), tuple(links))
