"""Where a cut is, in words: by whole hosts where it is made of them, from its smaller side."""

from __future__ import annotations

from ccl.bound import Cut
from ccl.topology import Topology


def across(cut: Cut, topology: Topology) -> tuple[str, list[str]]:
    """Return ``into`` or ``out of``, and the names of what is on that side of a cut."""
    within = set(cut.inside)
    beyond = {each.name for each in topology.devices} - within
    if len(beyond) == 1 or len(beyond) < len(within):
        return "into", _hosts_first(topology, beyond)
    return "out of", _hosts_first(topology, within)


def _hosts_first(topology: Topology, names: set[str]) -> list[str]:
    """Name devices in the order of the topology, a host instead where all of it is among them."""
    hosts = {each.name: each.host for each in topology.devices}
    broken = {host for name, host in hosts.items() if name not in names} | {None}
    whole = {str(hosts[name]): None for name in hosts if hosts[name] not in broken}
    return [*whole, *(name for name in hosts if name in names and hosts[name] in broken)]
