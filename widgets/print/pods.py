"""Frames of racks and pods: hosts, or GPUs with their switches, that belong together above hosts.

They are found as on the canvas (`widgets/js/src/pods.js`): by the names of hosts, such as
``rack1/host3``, or by what is in one piece without the switches that are farthest from the GPUs.
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

Pods = Mapping[str, Sequence[Device]]


def pods_of(topology: Topology) -> Pods:
    """Return the devices of each pod by its title, none where nothing is found."""
    for found in (_named(topology), _pieces(topology)):
        if found and len(found) >= _FEWEST_PODS and all(map(_enough, found.values())):
            return found
    return {}


def frames(
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


def _reached(name: str, near: Mapping[str, Sequence[str]], kept: set[str]) -> set[str]:
    """Return what is in one piece with a device, and take it out of what is kept."""
    kept.discard(name)
    piece = [name]
    for each in piece:
        fresh = [other for other in dict.fromkeys(near[each]) if other in kept]
        kept.difference_update(fresh)
        piece += fresh
    return set(piece)
