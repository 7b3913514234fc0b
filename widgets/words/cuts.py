"""A cut in words, by whole hosts where it is made of them."""

from __future__ import annotations

from ccl.bound import Cut
from ccl.topology import Topology
from widgets import text


def cut_words(cut: Cut, topology: Topology) -> str:
    """Say what crosses a cut: ``200 GB/s out of h0``; the side that the canvas outlines."""
    within = set(cut.inside)
    beyond = {each.name for each in topology.devices} - within
    rate = text.bandwidth(cut.bandwidth)
    if len(beyond) == 1 or len(beyond) < len(within):
        return f"{rate} into {text.listing(_hosts_first(topology, beyond), 2)}"
    return f"{rate} out of {text.listing(_hosts_first(topology, within), 2)}"


def _hosts_first(topology: Topology, names: set[str]) -> list[str]:
    """Name devices in the order of the topology, a host instead where all of it is among them."""
    hosts = {each.name: each.host for each in topology.devices}
    broken = {host for name, host in hosts.items() if name not in names} | {None}
    whole = {str(hosts[name]): None for name in hosts if hosts[name] not in broken}
    return [*whole, *(name for name in hosts if name in names and hosts[name] in broken)]
