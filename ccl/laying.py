"""Trees laid over links: what the routes of a tree share, and what waits for what."""

from __future__ import annotations

from dataclasses import dataclass

from ccl.forest import Tree
from ccl.topology import Topology


@dataclass(frozen=True, slots=True)
class Laid:
    """A tree as links.

    Parameters
    ----------
    links
        Numbers of the links, one for each time that the tree crosses it.
    before
        For each the place here of the one before it, -1 at the root. Of a reduction the order
        is turned round: a link waits for all that name it as theirs.
    """

    links: tuple[int, ...]
    before: tuple[int, ...]


def lay(topology: Topology, tree: Tree, *, reduces: bool) -> Laid:
    """Lay the routes of a tree over links; routes share a link up to a switch that can copy.

    A reduction is laid from its root outwards, where switches that can reduce join routes.
    """
    links: list[tuple[str, str]] = []
    before: list[int] = []
    laid: dict[tuple[str, ...], int] = {}
    brought = {topology.ranks[tree.root]: -1}
    for route in reversed(tree.routes) if reduces else tree.routes:
        stops = route[::-1] if reduces else route
        last, first_new = brought[stops[0]], 1
        for k in range(len(stops) - 2, 0, -1):
            switch = topology.device(stops[k])
            if (switch.reduces if reduces else switch.copies) and stops[: k + 1] in laid:
                last, first_new = laid[stops[: k + 1]], k + 1
                break
        for k in range(first_new, len(stops)):
            links.append((stops[k - 1], stops[k]))
            before.append(last)
            last = laid[stops[: k + 1]] = len(links) - 1
        brought[stops[-1]] = last
    index = topology.link_index
    numbers = [index[(dst, src) if reduces else (src, dst)] for src, dst in links]
    return Laid(tuple(numbers), tuple(before))
