"""On which cluster trees of ForestColl grow: the open one, or one made of the trees alone.

The names of a file are those of the program that wrote it. Where the open cluster has them all,
they are the same devices. Where it has as many GPUs, these are taken in their order, and every
switch is the one that the devices around it are linked with. Else the edges of the trees are the
links, each as fast as its load, so that all of them are busy all the time.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import pairwise

from ccl.topology import Link, Topology, device
from interchange.formats.synthesizers.forestcoll.file import FileForest, natural

_BOX = re.compile(r"\((\d+), '[^']*', \d+\)")
"""A device of ForestColl's own clusters; the first number is the box, -1 between boxes."""

Ends = tuple[str, str]


def matched(
    forest: FileForest, topology: Topology, *, ways: tuple[bool, ...]
) -> dict[str, str] | str:
    """Return which device each name of the file is, or in words why there is none.

    Parameters
    ----------
    forest
        The trees.
    topology
        What they may grow on.
    ways
        As of `derived`; in each of them all edges must be links.
    """
    edges = _edges(forest, ways)
    names = {name for edge in edges for name in edge} | set(forest.roots)
    gpus = forest.ends
    if names <= topology.index.keys() and set(gpus) == set(topology.ranks):
        known = {name: name for name in names}
        return _linked(edges, known, topology) or known
    if len(gpus) != len(topology.ranks):
        return f"it has {len(topology.ranks)} GPUs and the trees join {len(gpus)}"
    if set(gpus) == set(topology.ranks):
        known = {name: name for name in gpus}
    else:
        known = dict(zip(gpus, topology.ranks, strict=True))
    lost = _match_switches(edges, known, topology)
    if lost is not None:
        return f"no device of it has the links of {lost}"
    return _linked(edges, known, topology) or known


def _match_switches(edges: Iterable[Ends], known: dict[str, str], topology: Topology) -> str | None:
    """Add the switches to `known`, those first of which most neighbours are; name one left over."""
    before: defaultdict[str, set[str]] = defaultdict(set)
    after: defaultdict[str, set[str]] = defaultdict(set)
    for src, dst in edges:
        after[src].add(dst)
        before[dst].add(src)
    taken = set(known.values())
    left = {*before, *after} - known.keys()
    near = {name: sum(each in known for each in before[name] | after[name]) for name in left}
    heap = [(-near[name], name) for name in left]
    heapq.heapify(heap)
    while heap:
        many, name = heapq.heappop(heap)
        if name in known or -many < near[name]:
            continue  # it has been pushed again since, with more neighbours that are known
        free = _around(before[name], after[name], known, topology) - taken
        if not free:
            return name
        known[name] = min(free, key=topology.index.__getitem__)
        taken.add(known[name])
        for other in (before[name] | after[name]) - known.keys():
            near[other] += 1
            heapq.heappush(heap, (-near[other], other))
    return None


def _around(
    before: set[str], after: set[str], known: Mapping[str, str], topology: Topology
) -> set[str]:
    """Return the devices that are linked with all neighbours that are known."""
    fitting = [
        *({link.dst for link in topology.links_out[known[each]]} for each in before & known.keys()),
        *({link.src for link in topology.links_in[known[each]]} for each in after & known.keys()),
    ]
    return set.intersection(*fitting) if fitting else set()


def _linked(edges: Iterable[Ends], known: Mapping[str, str], topology: Topology) -> str:
    """Say which edge is no link, or nothing."""
    for src, dst in edges:
        if (known[src], known[dst]) not in topology.link_index:
            return f"it has no link {known[src]}->{known[dst]}, which the trees take"
    return ""


def _edges(forest: FileForest, ways: tuple[bool, ...]) -> list[Ends]:
    """Return each link that the trees take once."""
    down = dict.fromkeys(
        edge for tree in forest.trees for route in tree.routes for edge in pairwise(route)
    )
    return list(dict.fromkeys(edge[::-1] if up else edge for up in ways for edge in down))


def derived(forest: FileForest, bandwidth: float, *, ways: tuple[bool, ...]) -> Topology:
    """Return the cluster whose links are the edges of the trees.

    Parameters
    ----------
    forest
        The trees.
    bandwidth
        GB/s of the link that carries most; others have theirs in proportion.
    ways
        For each way in which the trees are gone whether it is up (True) to the root or down.
    """
    loads: defaultdict[Ends, Fraction] = defaultdict(Fraction)
    for tree in forest.trees:
        weight = forest.weight(tree)
        for edge in (edge for route in tree.routes for edge in pairwise(route)):
            for up in ways:
                loads[edge[::-1] if up else edge] += weight
    gpus = set(forest.ends)
    names = sorted({name for edge in loads for name in edge} | gpus, key=natural)
    devices = tuple(
        device("gpu" if name in gpus else "switch", name, host=_host(name))
        for name in sorted(names, key=lambda name: name not in gpus)
    )
    most = max(loads.values(), default=Fraction(1))
    links = tuple(
        Link(*edge, float(bandwidth * load / most)) for edge, load in sorted(loads.items())
    )
    return Topology(f"ForestColl, {len(gpus)} GPUs", devices, links)


def _host(name: str) -> str | None:
    found = _BOX.fullmatch(name)
    return f"h{found[1]}" if found else None
