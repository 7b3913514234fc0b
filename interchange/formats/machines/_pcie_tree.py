"""A PCIe tree from how far apart devices are, two by two, with bandwidths that no dump says.

Devices that are near each other share a switch; what joins nothing is not drawn. The levels are the
path classes of ``nvidia-smi topo -m`` and of NCCL (NVIDIA/nccl, src/graph/topo.h).

Bandwidths are GB/s one way, latencies µs. Sources: data sheets of NVLink (half of the figure for
both directions, per link); the rate of a PCIe lane with its encoding, times 16; NVIDIA/nccl,
src/graph/topo.h, for what NCCL plans with, NVLink by the architecture that brought it, and links
between sockets by the CPUs of a PCIe generation's time. Latencies are those of the gallery.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

from ccl.topology import Device, Link, device, duplex
from interchange.formats.fields import bandwidth, choice
from interchange.formats.format import Request

Name = TypeVar("Name", int, str)

NVLINK = {
    "1": {"spec": 20.0, "planned": 18.0},
    "2": {"spec": 25.0, "planned": 20.0},
    "3": {"spec": 25.0, "planned": 20.0},
    "3-bridge": {"spec": 14.0625, "planned": 12.0},
    "4": {"spec": 25.0, "planned": 20.6},
    "5": {"spec": 50.0, "planned": 40.1},
}
"""Of one link, by generation; workstation GPUs of generation 3 have a slower one, on a bridge."""

MOST_NVLINKS = {"1": 4, "2": 6, "3": 12, "3-bridge": 4, "4": 18, "5": 18}
"""Of one GPU, by generation."""

PCIE = {"3": 15.75, "4": 31.5, "5": 63.0, "6": 121.0}
"""Of 16 lanes, by generation."""

PCIE_OF_NVLINK = {"1": "3", "2": "3", "3": "4", "3-bridge": "4", "4": "5", "5": "5"}
"""The generation of PCIe that GPUs with an NVLink generation have."""

SOCKETS = {"3": 10.0, "4": 16.0, "5": 22.0, "6": 40.0}
"""Between two sockets or NUMA domains, by the generation of PCIe of their time."""

MEMORY = 204.8
"""Of the memory of a NUMA domain, read and written together: eight channels of DDR4-3200."""

DIRECT_ALPHA = 0.7
"""Of a link from GPU to GPU."""

HOP_ALPHA = 0.35
"""Of a link to or from a switch."""


LEVELS = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""One PCIe switch, several, a host bridge, a NUMA domain, the links between these."""

_PHB, _NODE, _SYS = LEVELS.index("PHB"), LEVELS.index("NODE"), LEVELS.index("SYS")

Apart = Mapping[tuple[str, str], int]
"""Level (its position in `LEVELS`) at which two devices meet."""


@dataclass(frozen=True)
class Branch:
    """What meets at a level: names of devices and branches of lower levels."""

    level: int
    parts: tuple[Branch | str, ...]

    def leaves(self) -> list[str]:
        """Return the names of all devices below."""
        found: list[str] = []
        for each in self.parts:
            found += [each] if isinstance(each, str) else each.leaves()
        return found


@dataclass(frozen=True, kw_only=True)
class Widths:
    """Generation of PCIe, and GB/s of one of its links and between two sockets."""

    generation: str
    sockets: float

    @property
    def pcie(self) -> float:
        """GB/s of a PCIe link."""
        return PCIE[self.generation]

    @property
    def medium(self) -> str:
        """What a PCIe link is called."""
        return f"PCIe {self.generation}"

    @property
    def lanes(self) -> str:
        """What is assumed of PCIe links, in words."""
        return f"16 lanes of generation {self.generation}, {self.pcie:g} GB/s one way"


def widths_of(request: Request, usual: str) -> Widths:
    """Return what the settings ``pcie`` and ``sockets`` say; `usual` is a generation of PCIe."""
    generation = choice(request, "pcie", PCIE, usual)
    sockets = bandwidth(request, "sockets", usual=SOCKETS[generation])
    return Widths(generation=generation, sockets=sockets)


@dataclass
class Tree:
    """Switches and links that were laid, and how many switches of each sort."""

    devices: list[Device] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


def grown(names: Sequence[str], apart: Apart, guessed: Apart) -> tuple[Branch | str, int]:
    """Return the tree of devices, and how many pairs it puts nearer than they are.

    Parameters
    ----------
    names
        Of the devices, at least one.
    apart
        Of the pairs that are known; what nothing joins meets at the top.
    guessed
        Of pairs that are not; they may well be nearer.
    """
    parts: list[Branch | str] = list(names)
    place = {name: i for i, name in enumerate(names)}
    met: set[tuple[str, str]] = set()
    wrong = 0
    for level in range(len(LEVELS)):
        told = chain(apart.items(), guessed.items())
        near = ((place[a], place[b]) for (a, b), far in told if far <= level)
        groups = components(range(len(parts)), near)
        moved = {old: new for new, group in enumerate(groups) for old in group}
        parts = [
            parts[group[0]] if len(group) == 1 else Branch(level, tuple(parts[i] for i in group))
            for group in groups
        ]
        place = {name: moved[old] for name, old in place.items()}
        together = [pair for pair in apart if pair not in met and place[pair[0]] == place[pair[1]]]
        wrong += sum(apart[pair] > level for pair in together)
        met.update(together)
    return (parts[0] if len(parts) == 1 else Branch(_SYS, tuple(parts))), wrong


def components(names: Sequence[Name], pairs: Iterable[tuple[Name, Name]]) -> list[list[Name]]:
    """Return what pairs join of some names, each group and all of them in order."""
    import networkx  # noqa: PLC0415  heavy, and only machines need it

    graph: networkx.Graph[Name] = networkx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from(pairs)
    place = {name: i for i, name in enumerate(names)}
    return [sorted(each, key=place.__getitem__) for each in networkx.connected_components(graph)]


def laid(top: Branch | str, widths: Widths, *, host: str, numa: Mapping[str, str]) -> Tree:
    """Return the switches and links of a tree.

    Parameters
    ----------
    top
        The tree.
    widths
        Bandwidths of its links.
    host
        That holds the switches.
    numa
        Number of the NUMA domain, as text, of devices where it is known.
    """
    laying = _Laying(widths, host, numa)
    laying.place(top, inside=False)
    return laying.tree


class _Laying:
    """Names the switches of a tree and links them, from the top down."""

    def __init__(self, widths: Widths, host: str, numa: Mapping[str, str]) -> None:
        self.widths = widths
        self.host = host
        self.numa = numa
        self.tree = Tree()
        self.names: set[str] = set()
        self.reserved = {f"numa{each}" for each in numa.values()}

    def place(self, part: Branch | str, *, inside: bool) -> str:
        """Lay a part and return the name of its topmost device; `inside` a NUMA domain or not."""
        if isinstance(part, str):
            return part
        if part.level == _SYS:
            return self.sockets(part)
        if part.level < _PHB:
            name = self.switch("pcie")
        elif part.level == _PHB and inside:
            name = self.switch("bridge")
        else:
            name = self.domain(part.leaves())
        for each in part.parts:
            below = self.place(each, inside=part.level == _NODE)
            # Host bridges of a NUMA domain meet on the chip, which is never what limits.
            on_chip = isinstance(each, Branch) and each.level == _PHB
            times = len(each.leaves()) if on_chip and isinstance(each, Branch) else 1
            medium = "CPU fabric" if on_chip else self.widths.medium
            self.join(below, name, self.widths.pcie * times, medium)
        return name

    def sockets(self, part: Branch) -> str:
        """Join NUMA domains: two directly, more at a switch that stands for what joins them."""
        domains = [self.ended(each) for each in part.parts]
        if len(domains) == 2:
            first, second = domains
            self.join(first, second, self.widths.sockets, "socket link")
            return first
        hub = self.switch("sockets")
        for each in domains:
            self.join(each, hub, self.widths.sockets, "socket link")
        return hub

    def ended(self, part: Branch | str) -> str:
        """Lay a part that reaches the others through a NUMA domain of its own."""
        if isinstance(part, Branch) and part.level in {_PHB, _NODE}:
            return self.place(part, inside=False)
        name = self.domain([part] if isinstance(part, str) else part.leaves())
        self.join(self.place(part, inside=True), name, self.widths.pcie, self.widths.medium)
        return name

    def domain(self, leaves: Sequence[str]) -> str:
        """Make the switch of a NUMA domain, with its number where all below agree on it."""
        said = {self.numa[each] for each in leaves if each in self.numa}
        return self.switch("numa", said.pop() if len(said) == 1 else None)

    def switch(self, sort: str, number: str | None = None) -> str:
        """Make a switch with the number given, or the first that is free."""
        count = self.tree.counts.get(sort, 0)
        self.tree.counts[sort] = count + 1
        name = f"{sort}{count if number is None else number}"
        while name in self.names or (number is None and name in self.reserved):
            count += 1
            name = f"{sort}{count}"
        self.names.add(name)
        self.tree.devices.append(device("switch", name, host=self.host))
        return name

    def join(self, first: str, second: str, bandwidth: float, medium: str) -> None:
        """Link two devices both ways."""
        self.tree.links += duplex(
            first, second, bandwidth=bandwidth, alpha=HOP_ALPHA, medium=medium
        )
