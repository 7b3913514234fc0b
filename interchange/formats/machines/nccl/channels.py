"""Channels that NCCL planned, as ``NCCL_GRAPH_DUMP_FILE`` writes them, drawn above a cluster.

A file has a graph for each way of working: rings, trees, CollNet chains, NVLS. A ring names its
GPUs in order, and the network ports where it enters and leaves; without ports it is closed. A tree
names the GPUs of a chain, of which the first has the port upwards; downwards it is the second in a
split tree (NVIDIA/nccl, src/graph/search.cc). Of NVLS only the GPU that leads a channel is named.
GPUs and ports are named by the number that they have on their host, GPUs at times also by rank.

What a channel joins is drawn along the shortest way over the cluster: fewest links, then fastest,
through GPUs only as a last resort.
"""

import itertools
from collections import Counter

from ccl.errors import FormatError
from ccl.serialization.documents import document
from ccl.text import count
from ccl.topology import Topology
from interchange.formats.fields import choice
from interchange.formats.format import Imported, Overlay, Reader, Report, Request
from interchange.formats.machines.nccl.parts import without_comments
from interchange.formats.xml import Element, begins_with, parse_xml

Route = tuple[str, ...]


class Routes:
    """Finds paths, each once."""

    def __init__(self, topology: Topology) -> None:
        import networkx  # noqa: PLC0415  heavy, and only who draws channels needs it

        self.topology = topology
        self.graph: networkx.DiGraph[str] = networkx.DiGraph()
        self.graph.add_nodes_from(topology.index)
        # All betas together are less than a link, so that fewest links come first.
        slowest = 1e-9 + sum(link.beta for link in topology.links)
        self.graph.add_weighted_edges_from(
            (*link.ends, 1 + link.beta / slowest) for link in topology.links
        )
        self.known: dict[tuple[str, str], Route | None] = {}

    def between(self, src: str, dst: str) -> Route | None:
        """Return the devices from `src` to `dst`, None if nothing leads there."""
        if (src, dst) not in self.known:
            self.known[src, dst] = self._shortest(src, dst, "switch", "memory") or self._shortest(
                src, dst, "switch", "memory", "nic", "gpu"
            )
        return self.known[src, dst]

    def along(self, names: list[str]) -> Route | None:
        """Return the devices over several in order, None if a part has no way."""
        found = names[:1]
        for src, dst in itertools.pairwise(names):
            way = self.between(src, dst)
            if way is None:
                return None
            found += way[1:]
        return tuple(found)

    def _shortest(self, src: str, dst: str, *through: str) -> Route | None:
        """Return the shortest way through devices of some kinds: of fewest links, the fastest."""
        import networkx  # noqa: PLC0415  heavy, and only who draws channels needs it

        device, ends = self.topology.device, (src, dst)
        kept = networkx.subgraph_view(
            self.graph, filter_node=lambda name: name in ends or device(name).kind in through
        )
        try:
            return tuple(networkx.shortest_path(kept, src, dst, weight="weight"))
        except networkx.NetworkXNoPath:
            return None


MOST_ELEMENTS = 200_000

KINDS = {0: "ring", 1: "tree", 2: "collnet-chain", 3: "nvls", 4: "collnet-direct"}
_PATTERNS = {
    1: "a balanced tree",
    2: "a split tree",
    3: "a tree",
    4: "a ring",
    5: "NVLS",
    6: "CollNet direct",
}
_RING, _SPLIT, _NVLS, _DIRECT = 4, 2, 5, 6
_TYPES = {
    "LOC": "the GPU itself",
    "NVL": "NVLink",
    "NVB": "NVLink through another GPU",
    "C2C": "NVLink-C2C",
    "PIX": "one PCIe switch",
    "PXB": "several PCIe switches",
    "P2C": "PCIe and NVLink-C2C",
    "PXN": "NVLink and the port of another GPU",
    "PHB": "the host bridge of a CPU",
    "SYS": "the link between CPUs",
    "NET": "the network",
    "DIS": "nothing",
}
SETTINGS = {
    "graph": f"which of {', '.join(KINDS.values())} is drawn; all is usual",
    "host": "name of the host that the file is of; the first is usual",
}
_SYSTEM = 56
"""Bits of a number below those that say which host of an NVLink network is meant."""


def recognises(content: bytes) -> bool:
    """Say whether XML begins with <graphs>."""
    return begins_with(content, "graphs")


def read(content: bytes, request: Request) -> Imported:
    """Read channels over the topology that is open.

    Raises
    ------
    FormatError
        If no topology is open, it is not XML of this form, or it names a GPU that is not there.
    """
    wanted = choice(request, "graph", (*KINDS.values(), "all"), "all")
    if request.topology is None:
        raise FormatError(
            "it holds channels over a cluster and no cluster; open the cluster "
            "first, such as from NCCL's topology file"
        )
    root = parse_xml(without_comments(content), most_elements=MOST_ELEMENTS)
    if root.tag != "graphs":
        raise FormatError(
            f"line {root.line}: it begins with <{root.tag}>; a file of channels with <graphs>"
        )
    reading = _Reading(request.topology, request.settings.get("host", "").strip())
    graphs = [each for each in root.each("graph") if wanted in ("all", _kind(each))]
    if not graphs:
        raise FormatError(f"it has no <graph>{'' if wanted == 'all' else f' of {wanted}'}")
    for graph in graphs:
        reading.graph(graph)
    return Imported(document(request.topology), reading.report(), overlay=reading.overlay())


def _kind(graph: Element) -> str:
    number = graph.integer("id", -1)
    return KINDS.get(number, f"graph {number}")


class _Reading:
    def __init__(self, topology: Topology, host: str) -> None:
        self.ways = Routes(topology)
        self.topology = topology
        hosts: list[str | None] = [*topology.hosts] or [None]
        if host and host not in hosts:
            raise FormatError(
                f"the cluster has no host {host}; there are {', '.join(topology.hosts[:8])}"
            )
        self.hosts = hosts[hosts.index(host) :] if host else hosts
        self.gpus: dict[str | None, list[str]] = {each: [] for each in hosts}
        self.nics: dict[str | None, list[str]] = {each: [] for each in hosts}
        for each in topology.devices:
            place = each.host if topology.hosts else None
            if each.kind in ("gpu", "nic") and place in self.gpus:
                (self.gpus if each.kind == "gpu" else self.nics)[place].append(each.name)
        self.found: list[tuple[str, Route]] = []
        self.told: list[str] = []
        self.titles: list[str] = []
        self.lost: Counter[tuple[str, str]] = Counter()

    def graph(self, graph: Element) -> None:
        """Take the channels of a graph."""
        kind, pattern = _kind(graph), graph.integer("pattern", _RING)
        channels = list(graph.each("channel"))
        inside, between = graph.number("speedintra", 0.0), graph.number("speedinter", 0.0)
        kinds = [graph.attributes.get(name, "") for name in ("typeintra", "typeinter")]
        over = [f" over {_TYPES.get(each, each[:20])}" if each else "" for each in kinds]
        shape = _PATTERNS.get(pattern, "something new")
        self.told.append(
            f"{kind}: {count(len(channels), 'channel')} as {shape}, {inside:g} GB/s inside a "
            f"host{over[0]}, {between:g} GB/s between hosts{over[1]}"
        )
        if channels:
            self.titles.append(f"{kind} {len(channels)} × {inside:g} GB/s")
        for number, channel in enumerate(channels):
            self._channel(channel, f"{kind} {number}", pattern)

    def _channel(self, channel: Element, label: str, pattern: int) -> None:
        gpus = [self._gpu(each) for each in channel.each("gpu")]
        nets = [self._nic(each) for each in channel.each("net")]
        named = bool(nets)
        up = [nets[0]] if nets and nets[0] is not None else []
        down = [nets[-1]] if nets and nets[-1] is not None else []
        if not gpus:
            self.lost["channel", "without a GPU"] += 1
        elif pattern == _RING:
            self._way(label, [*up, *gpus, *(down if named else gpus[:1] if gpus[1:] else [])])
        elif pattern == _NVLS:
            self._way(label, [*up, gpus[0]])
            for switch in self._nvswitches(gpus[0]):
                self._way(label, [gpus[0], switch])
        elif pattern == _DIRECT:
            self._way(label, [*up, gpus[0]])
            for other in gpus[1:]:
                self._way(label, [gpus[0], other])
        else:
            self._way(label, [*up, *gpus])
            last = gpus[1] if pattern == _SPLIT and gpus[1:] else gpus[0]
            self._way(f"{label}, downwards", [last, *down])

    def _way(self, label: str, names: list[str]) -> None:
        """Keep a way over some devices if it has any link."""
        if len(names) < 2:
            return
        way = self.ways.along(names)
        if way is None:
            self.lost["way", "that no links of the cluster lead"] += 1
        elif len(way) > 1:
            self.found.append((label, way))

    def _gpu(self, element: Element) -> str:
        ranks = self.topology.ranks
        rank = element.integer("rank", -1)  # newer NCCL says it
        if 0 <= rank < len(ranks):
            return ranks[rank]
        host, number = self._place(element)
        gpus = self.gpus[host]
        if number >= len(gpus):
            raise FormatError(
                f'line {element.line}: <gpu dev="{number}"> is not on '
                f"{host or self.topology.name}, which has {count(len(gpus), 'GPU')} from 0 on"
            )
        return gpus[number]

    def _nic(self, element: Element) -> str | None:
        """Return a NIC; clusters may be drawn without."""
        host, number = self._place(element)
        nics = self.nics[host]
        if number >= len(nics):
            self.lost["network port", "that the cluster does not have"] += 1
            return None
        return nics[number]

    def _place(self, element: Element) -> tuple[str | None, int]:
        number = element.integer("dev")
        system = number >> _SYSTEM
        if not 0 <= system < len(self.hosts):
            raise FormatError(
                f"line {element.line}: <{element.tag}> is on host {system} from "
                f"{self.hosts[0] or self.topology.name} on, and there are {len(self.hosts)}"
            )
        return self.hosts[system], number & ((1 << _SYSTEM) - 1)

    def _nvswitches(self, gpu: str) -> list[str]:
        switches = [
            link
            for link in self.topology.links_out[gpu]
            if self.topology.device(link.dst).kind == "switch"
            and not link.medium.startswith(("PCIe", "NVLink-C2C"))
        ]
        if not switches:
            self.lost["NVLS channel", "of a GPU without an NVSwitch"] += 1
        return [link.dst for link in switches]

    def overlay(self) -> Overlay | None:
        """Return what is drawn, None if nothing is."""
        if not self.found:
            return None
        ways = tuple(way for _, way in self.found)
        labels = tuple(label for label, _ in self.found)
        return Overlay(f"NCCL: {', '.join(self.titles[:6])}", ways, labels)

    def report(self) -> Report:
        """Say what there was."""
        host = self.hosts[0] or self.topology.name
        assumed = [
            f"dev k is the k-th GPU or port of {host} as drawn, unless a rank is said",
            "between two GPUs the path of fewest links, of these the fastest, through switches",
        ]
        left = [f"{count(many, what)} {which}" for (what, which), many in self.lost.items()]
        return Report(tuple(self.told[:10]), tuple(assumed), tuple(left))


READER = Reader("nccl-graph", "NCCL channels (rings, trees)", ("xml",), recognises, read, SETTINGS)
