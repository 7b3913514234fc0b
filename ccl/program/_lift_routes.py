"""Ways from rank to rank over a topology: links and devices that pass on and keep nothing."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from ccl.errors import FormatError
from ccl.topology import Link, Topology, device

BANDWIDTH = 25.0
"""GB/s, one way, of a link between two ranks about which nothing is known."""


_SAME = 1e-9
"""Shares of a time by which ways that are equally quick may differ."""


def routes_of(
    topology: Topology, pairs: Iterable[tuple[int, int]], nbytes: float
) -> dict[tuple[int, int], tuple[Link, ...]]:
    """Return the quickest way of `nbytes` bytes for each pair of ranks, the direct link if any.

    Of ways that are equally quick, a pair takes one over devices that the fewest others take.

    Raises
    ------
    FormatError
        If there is none.
    """
    ranks = topology.ranks
    found: dict[tuple[int, int], tuple[Link, ...]] = {}
    trees: dict[int, dict[str, list[str]]] = {}
    taken: Counter[str] = Counter()
    for src, dst in sorted(set(pairs)):
        direct = topology.link_index.get((ranks[src], ranks[dst]))
        if direct is not None:
            found[src, dst] = (topology.links[direct],)
            continue
        if src not in trees:
            trees[src] = _tree(topology, ranks[src], nbytes)
        way = _back(trees[src], ranks[src], ranks[dst], taken=taken)
        if way is None:
            msg = (
                f"{topology} has no way from rank {src} ({ranks[src]}) to rank {dst} "
                f"({ranks[dst]}) through devices that only pass on, and the program sends there; "
                "add links, or read it for another cluster or a mesh"
            )
            raise FormatError(msg)
        taken.update(way[1:-1])
        found[src, dst] = tuple(topology.link(*ends) for ends in pairwise(way))
    return found


def mesh(name: str, ranks: int, pairs: Iterable[tuple[int, int]]) -> Topology:
    """Return a cluster with a link for each pair of ranks, of `BANDWIDTH` and no latency."""
    devices = tuple(device("gpu", f"gpu{rank}") for rank in range(ranks))
    links = tuple(Link(f"gpu{src}", f"gpu{dst}", BANDWIDTH) for src, dst in sorted(set(pairs)))
    return Topology(name, devices, links)


def _tree(topology: Topology, start: str, nbytes: float) -> dict[str, list[str]]:
    """Return from where each device is reached the quickest, over what stores nothing."""
    times = {start: 0.0}
    before: dict[str, list[str]] = {start: []}
    queue = [(0.0, start)]
    done: set[str] = set()
    while queue:
        time, here = heapq.heappop(queue)
        if here in done:
            continue
        done.add(here)
        if here != start and topology.device(here).stores:
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
