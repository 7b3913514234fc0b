"""How a drawn host fits an NCCL system XML: what each device is there, and what hangs on what.

NCCL wants every GPU and NIC in a PCIe tree below a CPU. Where the drawing has such a tree it is
kept; where it has none, places are invented: a CPU, and a bridge for a GPU beside its NICs.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from ccl.errors import FormatError
from ccl.topology import Device, Link, Topology
from interchange.formats.machines.nccl.parts import CPUS, MOST_CPUS, UNKNOWN_CPU, Role

DEEPEST = 32
"""Bridges below one another that are kept."""

_CPU_MEDIA = {each.wire.medium for each in (*CPUS, UNKNOWN_CPU)}
_FAST = ("NVLink", "Infinity Fabric")

Spot = str | int
"""A device by name, or an invented place by number."""


@dataclass
class Shape:
    """A host as NCCL sees it.

    Parameters
    ----------
    roles
        What each device that is written is.
    cpus
        The CPUs, in order.
    below
        What hangs on a CPU or bridge.
    above
        The opposite.
    ports
        Links of a GPU straight into the network, each to be a NIC beside it, by invented place.
    """

    roles: dict[str, Role]
    cpus: list[Spot] = field(default_factory=list)
    below: dict[Spot, list[Spot]] = field(default_factory=dict)
    above: dict[Spot, Spot] = field(default_factory=dict)
    ports: dict[int, Link] = field(default_factory=dict)

    def hang(self, spot: Spot, above: Spot) -> None:
        """Hang one on another."""
        self.below.setdefault(above, []).append(spot)
        self.above[spot] = above


def host_of(topology: Topology, name: str) -> str | None:
    """Return the host to be written: the one called so, or the only one; None if there are none.

    Raises
    ------
    FormatError
        If there is none of that name, or several and none is named.
    """
    if name:
        if name in topology.hosts:
            return name
        raise FormatError(
            f"no host is called {name}; there are {', '.join(topology.hosts[:8]) or 'none'}"
        )
    return topology.hosts[0] if topology.hosts else None


def shape_of(topology: Topology, host: str | None) -> Shape:
    """Return how a host is written.

    Raises
    ------
    FormatError
        If it has no GPU, or more CPUs than are read.
    """
    shaping = _Shaping(topology, host)
    shape = shaping.shape
    if "gpu" not in shape.roles.values():
        raise FormatError(
            f"{host or topology.name} has no GPU; NCCL's topology is of a host with GPUs"
        )
    shaping.hang_trees()
    shaping.hang_gpus()
    shaping.hang_nics()
    if len(shape.cpus) > MOST_CPUS:
        raise FormatError(
            f"{host or topology.name} has {len(shape.cpus)} CPUs; at most {MOST_CPUS} are written"
        )
    return shape


def fast(link: Link) -> bool:
    """Say whether a link is drawn as NVLink or Infinity Fabric."""
    return link.medium.startswith(_FAST)


class _Shaping:
    """Hangs devices in four steps, each only what no earlier one has.

    1. What PCIe links reach from the CPUs, each where it is reached first.
    2. Bridges that no CPU reaches, at the first CPU, those with most links first, with what they
       reach.
    3. GPUs that no tree holds, with the NICs beside them that none holds either: at the CPU that
       they are linked to or the first, below a bridge of their own if there is a NIC or a port;
       and a port for each link of a GPU into the network, beside it.
    4. The other NICs, beside a GPU that they are joined to, or at the first CPU.
    """

    def __init__(self, topology: Topology, host: str | None) -> None:
        self.topology = topology
        self.touching: dict[str, list[Link]] = {each.name: [] for each in topology.devices}
        for link in topology.links:
            self.touching[link.src].append(link)
            self.touching[link.dst].append(link)
        single = len(topology.hosts) <= 1
        self.members = {each.name for each in topology.devices if single or each.host == host}
        self.shape = Shape({})
        for each in topology.devices:
            role = self._role(each)
            if role is not None:
                self.shape.roles[each.name] = role
        self.shape.cpus += [name for name, role in self.shape.roles.items() if role == "cpu"]
        self.invented = 0

    def _role(self, each: Device) -> Role | None:
        """Say what a device is, None for the network and what NCCL does not know."""
        touching = self.touching[each.name]
        gpu_near = any(self._is_gpu(self._other(link, each.name)) for link in touching)
        if each.name not in self.members:
            shared = each.host is None and each.kind == "switch" and gpu_near
            return "nvswitch" if shared and any(map(fast, touching)) else None
        if each.kind in ("gpu", "nic"):
            return "gpu" if each.kind == "gpu" else "nic"
        media = {link.medium for link in touching}
        pcie = any(medium.startswith("PCIe") for medium in media)
        if each.kind == "memory":
            return "cpu" if pcie else None
        if each.name.startswith("cpu") or media & _CPU_MEDIA:
            return "cpu"
        if pcie or each.name.startswith("pcie"):
            return "pcie"
        return "nvswitch" if gpu_near else None

    def _is_gpu(self, name: str) -> bool:
        return name in self.members and self.topology.device(name).kind == "gpu"

    @staticmethod
    def _other(link: Link, name: str) -> str:
        return link.dst if link.src == name else link.src

    def hang_trees(self) -> None:
        """Hang on the CPUs what PCIe links reach, then on invented places what none reaches."""
        self._grow([str(cpu) for cpu in self.shape.cpus])
        bridges = [name for name, role in self.shape.roles.items() if role == "pcie"]
        for name in sorted(bridges, key=lambda name: -len(self.touching[name])):
            if name not in self.shape.above:
                self.shape.hang(name, self._first_cpu())
                self._grow([name])

    def _grow(self, roots: list[str]) -> None:
        """Hang what is reached from the roots on where it was reached from."""
        waiting = deque((root, 0) for root in roots)
        while waiting:
            name, depth = waiting.popleft()
            for other in self._near(name):
                role = self.shape.roles.get(other)
                if role in ("pcie", "gpu", "nic") and other not in self.shape.above:
                    if other in roots or depth >= DEEPEST:
                        continue
                    self.shape.hang(other, name)
                    if role == "pcie":
                        waiting.append((other, depth + 1))

    def _near(self, name: str) -> Iterator[str]:
        """Yield the neighbours of a device that are not reached by NVLink, in order."""
        near = {
            self._other(link, name)
            for link in self.touching[name]
            if not fast(link) and not self._crossing(link)
        }
        yield from sorted(near, key=self.topology.index.__getitem__)

    def _crossing(self, link: Link) -> bool:
        """Say whether a link joins PCIe switches beside the tree."""
        ends = self.shape.roles.get(link.src), self.shape.roles.get(link.dst)
        return link.medium == "local" and ends == ("pcie", "pcie")

    def hang_gpus(self) -> None:
        """Give places to GPUs that no tree holds, and to ports."""
        for name, role in self.shape.roles.items():
            if role != "gpu":
                continue
            ports = list(self._ports(name))
            if name in self.shape.above:
                self._port(ports, self.shape.above[name])
                continue
            nics = [n for n in self._near(name) if self._loose_nic(n)]
            place = self._cpu_near(name)
            if ports or nics:
                place = self._new(place)
            for spot in (name, *nics):
                self.shape.hang(spot, place)
            self._port(ports, place)

    def hang_nics(self) -> None:
        """Give places to the NICs that are left."""
        for name, role in self.shape.roles.items():
            if role == "nic" and name not in self.shape.above:
                self.shape.hang(name, self._beside(name))

    def _loose_nic(self, name: str) -> bool:
        return self.shape.roles.get(name) == "nic" and name not in self.shape.above

    def _ports(self, name: str) -> Iterator[Link]:
        """Yield the links of a GPU into the network."""
        for link in self.topology.links_out[name]:
            outside = link.dst not in self.shape.roles
            if outside and not fast(link) and self.topology.device(link.dst).kind != "memory":
                yield link

    def _port(self, links: list[Link], place: Spot) -> None:
        for link in links:
            self.shape.ports[self._new(place)] = link

    def _beside(self, nic: str) -> Spot:
        """Return the place of a GPU that a NIC is joined to, or a CPU."""
        gpus = (name for name in self._near(nic) if self.shape.roles.get(name) == "gpu")
        return next((self.shape.above[gpu] for gpu in gpus), None) or self._first_cpu()

    def _cpu_near(self, name: str) -> Spot:
        for link in self.topology.links_out[name]:
            if self.shape.roles.get(link.dst) == "cpu":
                return link.dst
        return self._first_cpu()

    def _first_cpu(self) -> Spot:
        if not self.shape.cpus:
            self.invented -= 1
            self.shape.cpus.append(self.invented)
        return self.shape.cpus[0]

    def _new(self, above: Spot) -> int:
        self.invented -= 1
        self.shape.hang(self.invented, above)
        return self.invented
