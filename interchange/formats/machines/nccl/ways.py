"""Shortest ways over a cluster: fewest links, then fastest, through GPUs only as a last resort."""

from __future__ import annotations

import heapq
import itertools

from ccl.topology import Topology

Way = tuple[str, ...]


class Ways:
    """Finds ways, each once."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.known: dict[tuple[str, str], Way | None] = {}

    def between(self, src: str, dst: str) -> Way | None:
        """Return the devices from `src` to `dst`, None if nothing leads there."""
        if (src, dst) not in self.known:
            self.known[src, dst] = self._shortest(src, dst, "switch", "memory") or self._shortest(
                src, dst, "switch", "memory", "nic", "gpu"
            )
        return self.known[src, dst]

    def along(self, names: list[str]) -> Way | None:
        """Return the devices over several in order, None if a part has no way."""
        found = names[:1]
        for src, dst in itertools.pairwise(names):
            way = self.between(src, dst)
            if way is None:
                return None
            found += way[1:]
        return tuple(found)

    def _shortest(self, src: str, dst: str, *through: str) -> Way | None:
        """Return the shortest way through devices of some kinds, by Dijkstra's method."""
        if src == dst:
            return (src,)
        before: dict[str, str] = {}
        open_ones: list[tuple[int, float, str, str]] = [(0, 0.0, src, "")]
        while open_ones:
            hops, beta, name, last = heapq.heappop(open_ones)
            if name in before:
                continue
            before[name] = last
            if name == dst:
                return _traced(before, dst)
            if name != src and self.topology.device(name).kind not in through:
                continue
            for link in self.topology.links_out[name]:
                if link.dst not in before:
                    heapq.heappush(open_ones, (hops + 1, beta + link.beta, link.dst, name))
        return None


def _traced(before: dict[str, str], dst: str) -> Way:
    way = [dst]
    while before[way[-1]]:
        way.append(before[way[-1]])
    return tuple(reversed(way))
