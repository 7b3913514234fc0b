"""Ways from rank to rank over a topology: links, and devices that pass on or store between."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from ccl.errors import FormatError
from ccl.topology import Link, Topology, device

BANDWIDTH = 25.0
"""GB/s, one way, of a link between two ranks about which nothing is known."""


Pair = tuple[int, int]
"""Where a message leaves and arrives."""

_SAME = 1e-9
"""Shares of a time by which ways that are equally quick may differ."""


@dataclass(frozen=True)
class Routes:
    """Ways of pairs of ranks.

    Parameters
    ----------
    legs
        For each pair the places where a way begins, stops and ends, two by two. Places are ranks,
        and other devices that store by their place among the devices after all ranks.
    links
        The links of each leg.
    """

    legs: dict[Pair, tuple[Pair, ...]]
    links: dict[Pair, tuple[Link, ...]]


def routes_of(topology: Topology, pairs: Iterable[Pair], nbytes: float) -> Routes:
    """Return the quickest way of `nbytes` bytes for each pair of ranks, the direct link if any.

    Where devices that only pass on do not join two ranks, a way may stop at memories and whatever
    else stores, but GPUs. Of ways that are equally quick, a pair takes one over devices that the
    fewest others take.

    Raises
    ------
    FormatError
        If there is none.
    """
    ranks = topology.ranks
    trees: dict[tuple[int, bool], dict[str, list[str]]] = {}
    taken: Counter[str] = Counter()
    found = Routes({}, {})
    for src, dst in sorted(set(pairs)):
        way: list[str] | None = None
        if (ranks[src], ranks[dst]) in topology.link_index:
            way = [ranks[src], ranks[dst]]
        for stops in (False, True):
            if way is None:
                if (src, stops) not in trees:
                    trees[src, stops] = _tree(topology, ranks[src], nbytes, stops=stops)
                way = _back(trees[src, stops], ranks[src], ranks[dst], taken=taken)
        if way is None:
            msg = (
                f"{topology} has no way from rank {src} ({ranks[src]}) to rank {dst} "
                f"({ranks[dst]}) but over other GPUs, and the program sends there; add links, or "
                "read it for another cluster or a mesh"
            )
            raise FormatError(msg)
        taken.update(way[1:-1])
        _laid(found, (src, dst), topology, way)
    return found


def _laid(found: Routes, pair: Pair, topology: Topology, way: list[str]) -> None:
    """Add a way, in legs from one device that stores to the next."""
    many = len(topology.ranks)
    stops = [turn for turn, name in enumerate(way) if topology.device(name).stores]
    legs = []
    for begin, end in pairwise(stops):
        ends = [topology.rank.get(way[at], many + topology.index[way[at]]) for at in (begin, end)]
        legs.append((ends[0], ends[1]))
        links = tuple(topology.link(*each) for each in pairwise(way[begin : end + 1]))
        found.links.setdefault(legs[-1], links)
    found.legs[pair] = tuple(legs)


def mesh(name: str, ranks: int, pairs: Iterable[Pair]) -> Topology:
    """Return a cluster with a link for each pair of ranks, of `BANDWIDTH` and no latency."""
    devices = tuple(device("gpu", f"gpu{rank}") for rank in range(ranks))
    links = tuple(Link(f"gpu{src}", f"gpu{dst}", BANDWIDTH) for src, dst in sorted(set(pairs)))
    return Topology(name, devices, links)


def _tree(topology: Topology, start: str, nbytes: float, *, stops: bool) -> dict[str, list[str]]:
    """Return from where each device is reached the quickest, over no other GPU.

    What stores is on the way only where it may stop there.
    """
    times = {start: 0.0}
    before: dict[str, list[str]] = {start: []}
    queue = [(0.0, start)]
    done: set[str] = set()
    while queue:
        time, here = heapq.heappop(queue)
        if here in done:
            continue
        done.add(here)
        passed = topology.device(here)
        if here != start and passed.stores and not (stops and passed.kind != "gpu"):
            continue
        for link in topology.links_out[here]:
            there = time + link.transfer_time(nbytes)
            known = times.get(link.dst)
            if known is None or there < known * (1 - _SAME):
                times[link.dst], before[link.dst] = there, [here]
                heapq.heappush(queue, (there, link.dst))
            elif there <= known * (1 + _SAME) and link.dst not in done:
                before[link.dst].append(here)
    return before


def _back(
    before: dict[str, list[str]], start: str, end: str, *, taken: Counter[str]
) -> list[str] | None:
    """Return the devices from `start` to `end`, of equal ways over those that are taken least."""
    if end not in before:
        return None
    way = [end]
    while way[-1] != start:
        way.append(min(before[way[-1]], key=taken.__getitem__))
    return way[::-1]
