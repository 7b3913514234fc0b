"""Lower bounds on the makespan; each carries its witness, so that it can be drawn and checked.

The bounds themselves are proved in `formulations.bounds`.

Where a cut is, in words: by whole hosts where it is made of them, from its smaller side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ccl.display import mime_bundle
from ccl.topology import Topology

BoundKind = Literal["path", "injection", "ejection", "cut", "stages", "group", "flow", "solver"]


@dataclass(frozen=True, slots=True)
class Cut:
    """A set of devices and what leaves it.

    Parameters
    ----------
    inside
        Names of the devices inside, sorted as in the topology.
    links
        Ends of the links that leave it.
    bandwidth
        GB/s of these together, shared limits counted.
    """

    inside: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Path:
    """A way that some data must take at least: the devices in order."""

    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """No plan is faster than this.

    Parameters
    ----------
    makespan
        µs.
    kind
        ``path``: the longest of the quickest ways; ``injection`` and ``ejection``: what one
        GPU must send or receive; ``cut``: what must leave a set of devices; ``stages``: what
        must pass two cuts one after the other, or be copied inside a set; ``group``: sums among
        all GPUs or hosts; ``flow``: the largest rate at which all demands flow together;
        ``solver``: an optimization model's own bound, for the model named in `reference`.
    witness
        The cut or path that proves it; None where no single one does (`reference` then has the
        numbers) and for a solver's.
    reference
        Where the argument comes from, in words for the user.
    whole_chunks
        Whether it holds only for plans that never split a chunk.
    steady
        Whether it holds for the steady state too (`ccl.steady`): bytes over bandwidth, in which
        no latency is counted.
    """

    makespan: float
    kind: BoundKind
    witness: Cut | Path | None
    reference: str
    whole_chunks: bool = False
    steady: bool = False

    _repr_mimebundle_ = mime_bundle


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
