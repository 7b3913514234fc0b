"""Servers whose PCIe tree and host memory are drawn, with the limits that they share."""

from ccl.topology import Declared, Device, Link, SharedLimit, Topology, device
from gallery.build import HOST_LIMIT, Wire, check, count_of, make_gpus, star
from gallery.declared import each_alone, interchange
from gallery.entry import Entry, Figure


def pcie_server(
    *,
    hosts: int = 1,
    nvlink: bool = False,
    memory_bandwidth: float = 204.8,
    alpha: float = 0.35,
    network_alpha: float = 1.3,
) -> Topology:
    """Eight GPUs on four PCIe switches with two ports each, one host memory, rails between."""
    check("hosts of PCIe servers", hosts, least=1, most=HOST_LIMIT)
    devices: list[Device] = []
    links: list[Link] = []
    limits: list[SharedLimit] = []
    boxes: list[list[str]] = []
    for host in range(hosts):
        box, inside = _server(host, alpha, nvlink=nvlink, ports=hosts > 1)
        devices += box
        links += inside
        boxes.append([each.name for each in box])
        bus = tuple(each.ends for each in inside if f"mem{host}" in each.ends)
        if memory_bandwidth:
            limits.append(SharedLimit(f"memory bus {host}", bus, memory_bandwidth))
    if hosts > 1:
        rail = Wire(bandwidth=25.0, alpha=network_alpha, medium="InfiniBand HDR")
        for i in range(8):
            devices.append(device("switch", f"rail{i}"))
            links += star(f"rail{i}", [f"nic{8 * host + i}" for host in range(hosts)], rail)
    return Topology(
        count_of(hosts, "PCIe server"),
        tuple(devices),
        tuple(links),
        tuple(limits),
        tuple(_alike(boxes)),
    )


def _alike(boxes: list[list[str]]) -> list[Declared]:
    """Declare that hosts, PCIe switches, their ports and their GPUs may be permuted."""
    hosts = range(len(boxes))
    pairs = [each_alone([f"g{2 * i}", f"g{2 * i + 1}"]) for i in range(4)]
    switches = [
        [name for host in hosts for name in (f"pcie{4 * host + i}", *_two("g", host, i))]
        for i in range(4)
    ]
    if len(boxes) == 1:
        return [interchange(boxes, *pairs), interchange(switches)]
    for i, block in enumerate(switches):
        block += [name for host in hosts for name in _two("nic", host, i)]
        block += [f"rail{2 * i}", f"rail{2 * i + 1}"]
    rails = ([f"rail{j}", *(f"nic{8 * host + j}" for host in hosts)] for j in range(2))
    return [interchange(boxes, *pairs), interchange(switches, interchange(rails))]


def _two(kind: str, host: int, switch: int) -> tuple[str, str]:
    """Return the names of the two GPUs or ports of a PCIe switch."""
    return f"{kind}{8 * host + 2 * switch}", f"{kind}{8 * host + 2 * switch + 1}"


def _server(
    host: int, alpha: float, *, nvlink: bool, ports: bool
) -> tuple[list[Device], list[Link]]:
    """Return one host: GPU 2i, 2i + 1 and port 2i, 2i + 1 are on PCIe switch i."""
    name = f"h{host}"
    pcie = Wire(bandwidth=32.0, alpha=alpha, medium="PCIe 4")
    nic = Wire(bandwidth=25.0, alpha=alpha, medium="PCIe 4")
    gpus = make_gpus(8, host=name, first=8 * host)
    memory = device("memory", f"mem{host}", host=name)
    devices = [*gpus, memory]
    links: list[Link] = []
    for i in range(4):
        switch = device("switch", f"pcie{4 * host + i}", host=name)
        devices.append(switch)
        below = [each.name for each in gpus[2 * i : 2 * i + 2]]
        links += star(switch.name, [*below, memory.name], pcie)
        for place in (8 * host + 2 * i, 8 * host + 2 * i + 1) if ports else ():
            devices.append(device("nic", f"nic{place}", host=name))
            links += nic.join(switch.name, f"nic{place}")
    if nvlink:
        inner = Wire(bandwidth=300.0, alpha=alpha, medium="NVLink 3", count=12)
        devices.append(device("switch", f"nvswitch{host}", host=name))
        links += star(f"nvswitch{host}", [each.name for each in gpus], inner)
    return devices, links


ENTRIES = (
    Entry(
        "pcie-server",
        "PCIe server with host memory",
        "Servers",
        "Two GPUs and two network ports on each of four PCIe switches, which all reach one host "
        "memory; what the memory reads and writes together is limited.",
        "Structure of the DGX A100 as modelled in the dissertation of the README's sources, "
        "chapter 6; its figures are inferred from the tables there",
        figures=(
            Figure("PCIe 4 ×16", "32 GB/s one way", "spec"),
            Figure("network port", "200 Gb/s, 25 GB/s one way", "spec"),
            Figure(
                "host memory, read and written together",
                "204.8 GB/s, eight DDR4-3200 channels",
                "assumed",
            ),
            Figure("NVLink 3 of a GPU, nvlink=true", "12 × 25 GB/s one way", "spec"),
            Figure("latency inside and between hosts", "0.35 and 1.3 µs", "assumed"),
        ),
        make=pcie_server,
    ),
)
