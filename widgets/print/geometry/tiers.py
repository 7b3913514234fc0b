"""Tiers of a cluster: its pods, and the classes of its links, by how far from the GPUs they are.

They are found as on the canvas (`widgets/js/src/{pods,link_classes}.js`). Pods, and racks, are
hosts, or GPUs with their switches, that belong together above hosts: by the names of hosts, such as
``rack1/host3``, or by what is in one piece without the switches that are farthest from the GPUs.
A large drawing has a frame for each pod, and a colour for each kind of links.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from ccl.topology import Device, Topology
from widgets.print.sheet import Rect, around

_FEWEST_PODS = 2
_FEWEST_HOSTS = 2
_FEWEST_GPUS = 4
"""Of each pod; GPUs where there are no hosts."""
_PADDING = 9.0
_SEPARATED = re.compile(r"^(.+)[/.:_-][^/.:_-]+$")

LARGE = 64
"""Devices from which on links have colours."""
_MOST_CLASSES = 6

Pods = Mapping[str, Sequence[Device]]


def pods_of(topology: Topology) -> Pods:
    """Return the devices of each pod by its title, none where nothing is found."""
    for found in (_named(topology), _pieces(topology)):
        if found and len(found) >= _FEWEST_PODS and all(map(_enough, found.values())):
            return found
    return {}


def pod_frames(
    topology: Topology, boxes: Mapping[str, Rect], hosts: Mapping[str, Rect]
) -> list[tuple[str, Rect]]:
    """Return the frame of each pod, none where they overlap or something of them is folded.

    Parameters
    ----------
    topology
        What is drawn.
    boxes
        Of the devices that are shown.
    hosts
        Around hosts, with their names.
    """
    found = []
    for title, members in pods_of(topology).items():
        if any(each.name not in boxes for each in members):
            return []
        inside = [boxes[each.name] for each in members]
        inside += [hosts[each.host] for each in members if each.host is not None]
        found.append((title, around(inside).grown(_PADDING)))
    clash = any(a.meets(b) for (_, a), (_, b) in combinations(found, 2))
    return [] if clash else found


def _enough(members: Iterable[Device]) -> bool:
    members = list(members)
    hosts = {each.host for each in members if each.host is not None}
    gpus = sum(each.kind == "gpu" for each in members)
    return len(hosts) >= _FEWEST_HOSTS or (not hosts and gpus >= _FEWEST_GPUS)


def _named(topology: Topology) -> dict[str, list[Device]]:
    """Return hosts by what stands before the last separator of their names."""
    pods: dict[str, list[Device]] = {}
    for each in topology.devices:
        if each.host is None:
            continue
        parts = _SEPARATED.match(each.host)
        if parts is None:
            return {}
        pods.setdefault(parts[1], []).append(each)
    return pods


def _pieces(topology: Topology) -> dict[str, list[Device]]:
    """Return what is in one piece without the switches that are farthest from the GPUs."""
    near = _neighbours(topology)
    levels = _levels(topology, near)
    loose = {each.name for each in topology.devices if each.host is None and each.kind != "gpu"}
    top = max((levels.get(name, 0) for name in loose), default=0)
    names = [each.name for each in topology.devices]
    kept = {name for name in names if name not in loose or levels.get(name, 0) != top}
    found = []
    for each in topology.devices:
        if each.name in kept:
            inside = _reached(each.name, near, kept)
            found.append([device for device in topology.devices if device.name in inside])
    return {f"pod {i}": members for i, members in enumerate(found)}


def _reached(name: str, near: Mapping[str, Sequence[str]], kept: set[str]) -> set[str]:
    """Return what is in one piece with a device, and take it out of what is kept."""
    kept.discard(name)
    piece = [name]
    for each in piece:
        fresh = [other for other in dict.fromkeys(near[each]) if other in kept]
        kept.difference_update(fresh)
        piece += fresh
    return set(piece)


def link_classes(topology: Topology, *, least: int = LARGE) -> Mapping[tuple[str, str], str]:
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


def _tiers(topology: Topology) -> dict[tuple[str, str], int]:
    """Return -1 of a link inside a host, else how far from the GPUs it reaches."""
    levels = _levels(topology, _neighbours(topology))
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


def _neighbours(topology: Topology) -> dict[str, list[str]]:
    near: dict[str, list[str]] = {each.name: [] for each in topology.devices}
    for link in topology.links:
        near[link.src].append(link.dst)
        near[link.dst].append(link.src)
    return near


def _levels(topology: Topology, near: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return how many links each device is from the nearest GPU."""
    levels = {each.name: 0 for each in topology.devices if each.kind == "gpu"}
    order = list(levels)
    for name in order:
        for other in near[name]:
            if other not in levels:
                levels[other] = levels[name] + 1
                order.append(other)
    return levels
