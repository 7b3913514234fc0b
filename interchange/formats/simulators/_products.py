"""Products of rings, full meshes and switches: made from their dimensions, and recognised.

A GPU has a place in each dimension, and the place in the first one changes fastest with the rank.
GPUs that differ in one dimension alone are joined as that dimension says: in a ring both ways,
each with each, or all with a switch of their own.

Source: astra-sim/astra-network-analytical, congestion_aware/multi-dim-topology and
basic-topology. A ring of two is one link each way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeVar, get_args

from ccl.errors import FormatError
from ccl.topology import Device, Link, Topology, device, duplex

Block = Literal["Ring", "FullyConnected", "Switch"]
BLOCKS: tuple[Block, ...] = get_args(Block)

_Member = TypeVar("_Member")


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension: how many GPUs are joined how, GB/s one way and µs of a link."""

    block: Block
    count: int
    bandwidth: float
    alpha: float


def sizes(dimensions: Sequence[Dimension]) -> tuple[int, int]:
    """Return how many devices and one-way links a product has."""
    gpus = math.prod(each.count for each in dimensions)
    devices, links = gpus, 0
    for each in dimensions:
        if each.block == "Switch":
            devices += gpus // each.count
            links += 2 * gpus
        elif each.block == "Ring":
            links += gpus * (1 if each.count == 2 else 2)
        else:
            links += gpus * (each.count - 1)
    return devices, links


def product(dimensions: Sequence[Dimension]) -> Topology:
    """Make GPUs g0, g1, ... and switches s0, s1, ...; hosts are those of the first dimension.

    A product of one dimension has no hosts, since nothing tells one machine from another.
    """
    gpus = math.prod(each.count for each in dimensions)
    inner = dimensions[0].count
    hosted = len(dimensions) > 1
    devices: list[Device] = [
        device("gpu", f"g{rank}", host=f"h{rank // inner}" if hosted else None)
        for rank in range(gpus)
    ]
    links: list[Link] = []
    stride, switches = 1, 0
    for place, each in enumerate(dimensions):
        for members in _groups(gpus, stride=stride, count=each.count):
            names = [f"g{rank}" for rank in members]
            if each.block == "Switch":
                host = f"h{members[0] // inner}" if hosted and not place else None
                devices.append(device("switch", f"s{switches}", host=host))
                pairs = [(name, f"s{switches}") for name in names]
                switches += 1
            else:
                pairs = list(_pairs(each.block, names))
            for first, second in pairs:
                links += duplex(first, second, bandwidth=each.bandwidth, alpha=each.alpha)
        stride *= each.count
    title = " × ".join(f"{_called(each)} {each.count}" for each in dimensions)
    return Topology(title, tuple(devices), tuple(links))


def _called(each: Dimension) -> Block:
    """Return what a dimension is, where a mesh of two or three is a ring."""
    return "Ring" if each.block == "FullyConnected" and each.count <= 3 else each.block


def dimensions_of(topology: Topology) -> tuple[Dimension, ...]:
    """Return the dimensions of a product, recognised by the ranks of its GPUs.

    Raises
    ------
    FormatError
        If it is none, saying what is in the way.
    """
    edges = _edges(topology)
    if len(topology.ranks) < 2:
        msg = f"{topology} has {len(topology.ranks)} GPU; a product has 2 or more"
        raise FormatError(msg)
    for found in _candidates(edges, len(topology.ranks)):
        made = _expected(found, len(topology.ranks))
        if made == edges:
            return found
    msg = (
        f"{topology} is no product of rings, full meshes and switches in the order of its ranks; "
        "write it for ns-3"
    )
    raise FormatError(msg)


_Wire = tuple[float, float]
"""GB/s and µs of a link."""

_Edges = dict[frozenset[int], "tuple[str, _Wire]"]
"""By the ranks that it joins: what a switch, or a link, joins them with."""


def _edges(topology: Topology) -> _Edges:
    """Return links as pairs of ranks and switches as sets of them; refuse what is neither."""
    rank = topology.rank
    members: dict[str, set[int]] = {}
    wires: dict[str, set[_Wire]] = {}
    edges: _Edges = {}
    for link in topology.links:
        wire = link.bandwidth, link.alpha
        back = topology.link_index.get((link.dst, link.src))
        if back is None or _wire(topology.links[back]) != wire:
            msg = f"link {link} has no equal way back; the analytical network has both ways alike"
            raise FormatError(msg)
        if link.src in rank and link.dst in rank:
            edges[frozenset((rank[link.src], rank[link.dst]))] = "link", wire
        elif link.src in rank:
            members.setdefault(link.dst, set()).add(rank[link.src])
            wires.setdefault(link.dst, set()).add(wire)
        elif link.dst not in rank:
            msg = (
                f"link {link} joins two devices that are no GPUs; the analytical network has "
                "switches between GPUs alone"
            )
            raise FormatError(msg)
    for each in topology.devices:
        if each.kind == "gpu":
            continue
        if each.kind != "switch" or len(wires.get(each.name, ())) != 1:
            what = "a switch whose links differ" if each.kind == "switch" else f"a {each.kind}"
            msg = f"{each.name} is {what}; the analytical network has equal links to each switch"
            raise FormatError(msg)
        group = frozenset(members[each.name])
        if group in edges:
            msg = f"{each.name} joins GPUs that are joined already; the network has one way"
            raise FormatError(msg)
        edges[group] = "switch", next(iter(wires[each.name]))
    return edges


def _wire(link: Link) -> _Wire:
    return link.bandwidth, link.alpha


def _candidates(edges: _Edges, gpus: int) -> Iterator[tuple[Dimension, ...]]:
    """Yield products that agree with what GPU 0 is joined with."""
    own = {group: told for group, told in edges.items() if 0 in group}
    waiting: list[tuple[tuple[Dimension, ...], int, frozenset[frozenset[int]]]]
    waiting = [((), 1, frozenset())]
    while waiting:
        found, stride, used = waiting.pop()
        if stride == gpus:
            if len(used) == len(own):
                yield found
            continue
        for each in reversed(list(_next(own, stride, gpus=gpus))):
            groups = _joins(each, stride)
            if not groups & used:
                waiting.append(((*found, each), stride * each.count, used | groups))


def _next(
    own: dict[frozenset[int], tuple[str, _Wire]], stride: int, *, gpus: int
) -> Iterator[Dimension]:
    """Yield the dimensions that may come next, given what GPU 0 is joined with."""
    rest = gpus // stride
    for group, (kind, wire) in own.items():
        if kind == "switch" and stride in group and rest % len(group) == 0:
            found = Dimension("Switch", len(group), *wire)
            if _joins(found, stride) == {group}:
                yield found
    first = own.get(frozenset((0, stride)))
    if first is None or first[0] != "link":
        return
    for block in ("Ring", "FullyConnected"):
        for count in range(2 if block == "Ring" else 4, rest + 1):
            if block == "FullyConnected" and own.get(frozenset((0, (count - 1) * stride))) != first:
                break
            found = Dimension(block, count, *first[1])
            if rest % count == 0 and all(own.get(each) == first for each in _joins(found, stride)):
                yield found


def _joins(dimension: Dimension, stride: int) -> frozenset[frozenset[int]]:
    """Return what a dimension joins GPU 0 with."""
    if dimension.block == "Switch":
        return frozenset((frozenset(range(0, stride * dimension.count, stride)),))
    others: Sequence[int] = range(1, dimension.count)
    if dimension.block == "Ring":
        others = (1, dimension.count - 1)
    return frozenset(frozenset((0, stride * other)) for other in others)


def _expected(dimensions: Sequence[Dimension], gpus: int) -> _Edges:
    """Return what a product joins."""
    edges: _Edges = {}
    stride = 1
    for each in dimensions:
        wire = each.bandwidth, each.alpha
        for members in _groups(gpus, stride=stride, count=each.count):
            if each.block == "Switch":
                edges[frozenset(members)] = "switch", wire
            else:
                for pair in _pairs(each.block, members):
                    edges[frozenset(pair)] = "link", wire
        stride *= each.count
    return edges


def _groups(gpus: int, *, stride: int, count: int) -> Iterator[range]:
    """Yield the ranks that differ in one dimension alone."""
    whole = stride * count
    for base in range(0, gpus, whole):
        for first in range(base, base + stride):
            yield range(first, first + whole, stride)


def _pairs(block: Block, members: Sequence[_Member]) -> Iterator[tuple[_Member, _Member]]:
    if block == "Ring":
        yield from pairwise(members)
        if len(members) > 2:
            yield members[-1], members[0]
    else:
        for i, first in enumerate(members):
            for second in members[i + 1 :]:
                yield first, second
