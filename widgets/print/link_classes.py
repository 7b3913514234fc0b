"""Classes of links in a picture, by their medium or their tier, as the canvas has them.

A large drawing has a colour for each class (`widgets/js/src/link_classes.js`).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping

from ccl.topology import Topology

LARGE = 64
"""Devices from which on links have colours."""
_MOST_CLASSES = 6
Ends = tuple[str, str]


def link_classes(topology: Topology, *, least: int = LARGE) -> Mapping[Ends, str]:
    """Return the class of each link: its medium, else its tier; none with fewer devices."""
    if len(topology.devices) < least:
        return {}
    media = {each.ends: each.medium or "Other links" for each in topology.links}
    if 1 < len(set(media.values())) <= _MOST_CLASSES:
        return media
    tiers = _tiers(topology)
    if 1 < len(set(tiers.values())) <= _MOST_CLASSES:
        ranked = sorted(tiers.items(), key=lambda each: each[1])
        hosted = -1 in tiers.values()
        return {ends: _tier_name(tier, hosted=hosted) for ends, tier in ranked}
    return {}


def _tiers(topology: Topology) -> dict[Ends, int]:
    """Return -1 of a link inside a host, else how far from the GPUs it reaches."""
    near: dict[str, list[str]] = defaultdict(list)
    for link in topology.links:
        near[link.src].append(link.dst)
        near[link.dst].append(link.src)
    levels = {each.name: 0 for each in topology.devices if each.kind == "gpu"}
    queue = deque(levels)
    while queue:
        name = queue.popleft()
        for other in near[name]:
            if other not in levels:
                levels[other] = levels[name] + 1
                queue.append(other)
    host = {each.name: each.host for each in topology.devices}

    def tier(src: str, dst: str) -> int:
        if host[src] is not None and host[src] == host[dst]:
            return -1
        return max(levels.get(src, 1), levels.get(dst, 1))

    return {each.ends: tier(*each.ends) for each in topology.links}


def _tier_name(tier: int, *, hosted: bool) -> str:
    if tier:
        return f"Tier {tier}" if tier > 0 else "Inside hosts"
    return "Between hosts" if hosted else "GPU to GPU"
