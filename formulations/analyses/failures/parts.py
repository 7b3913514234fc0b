"""What can fail: links, devices and hosts, one of each class that symmetries exchange.

Symmetries keep the cluster, the collective and which device lies in which host: each host becomes
one more device, linked with what it holds. Links are exchanged only for those of the same medium
and number of parallel links.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from ccl.declared_symmetry import Declared, Interchange
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.topology import Link, Topology, device
from formulations.engines.orbit_lp.group import acting
from formulations.engines.orbit_lp.loads import loads_of

PartKind = Literal["link", "gpu", "nic", "memory", "switch", "host"]
PARTS: tuple[PartKind, ...] = get_args(PartKind)
"""All that can fail, in the order in which it is told."""

_NOUNS = {each: each.upper() if each in ("gpu", "nic") else each for each in PARTS}

Ends = tuple[str, str]


@dataclass(frozen=True)
class Part:
    """Things of one class, of which one stands for all.

    Parameters
    ----------
    kind
        One of `PARTS`.
    names
        Of the one that stands for them: a device, a host, or the two ends of a link.
    alike
        How many there are, parallel links counted one by one.
    members
        All of them by their names; parallel links are one here.
    parallel
        Of a link, how many lie side by side, itself included; else 1.
    what
        Of a link, medium and bandwidth of all that lie side by side.
    """

    kind: PartKind
    names: tuple[str, ...]
    alike: int
    members: tuple[tuple[str, ...], ...]
    parallel: int = 1
    what: str = ""

    @property
    def noun(self) -> str:
        """What one of them is, without a name: ``GPU``, ``1 of 3 links``."""
        return f"1 of {self.parallel} links" if self.parallel > 1 else _NOUNS[self.kind]

    @property
    def words(self) -> str:
        """Name it: ``switch s``, ``a GPU, such as g0``."""
        name = " – ".join(self.names)
        kind = _NOUNS[self.kind]
        if self.kind == "link":
            side = f"one of {self.parallel} parallel links" if self.parallel > 1 else "a link"
            kind = f"{side} ({self.what})" if self.what else side
            return f"{kind}, such as {name}" if self.alike > self.parallel else f"{kind}, {name}"
        return f"a {kind}, such as {name}" if self.alike > 1 else f"{kind} {name}"


def parts_of(
    problem: Problem,
    kinds: Collection[str] = PARTS,
    *,
    both: bool = True,
    latencies: bool = False,
) -> tuple[Part, ...]:
    """Return one part of each class, in the order of `PARTS` and of the drawing.

    Parameters
    ----------
    problem
        A cluster and what runs on it.
    kinds
        Which kinds of parts; a kind that the cluster does not have gives none.
    both
        Whether the two directions of a link are one part.
    latencies
        Whether links whose latencies differ are of different classes; a steady state hides them.

    Raises
    ------
    ProblemError
        If a kind is unknown, or fluid models cannot say the problem.
    """
    for each in kinds:
        if each not in PARTS:
            msg = f"{each!r} is nothing that fails; choose from {', '.join(PARTS)}"
            raise ProblemError(msg)
    orbits = _orbits(problem, latencies=latencies)
    found: list[Part] = []
    for kind in PARTS:
        if kind in kinds:
            rows = (
                _links(problem.topology, orbits[1], both=both)
                if kind == "link"
                else (_devices(problem.topology, orbits[0], kind))
            )
            found += rows
    return tuple(found)


def _orbits(problem: Problem, *, latencies: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the orbit of each device, then of each host, and of each link."""
    topology = problem.topology
    larger = with_hosts(topology)
    sorts: dict[tuple[object, ...], int] = {}
    cost = [
        sorts.setdefault((each.medium, each.count, each.alpha if latencies else 0.0), len(sorts))
        for each in topology.links
    ]
    # What joins a host with what it holds is none of the cluster's own links.
    cost += [len(sorts)] * (len(larger.links) - len(cost))
    found = acting(larger, loads_of(problem), costs=np.array(cost, dtype=float))
    many = len(topology.devices) + len(topology.hosts)
    return found.group.orbits()[:many], found.group.link_orbits()[: len(topology.links)]


def with_hosts(topology: Topology) -> Topology:
    """Return the cluster with a device for each host, last, and links to what it holds."""
    if not topology.hosts:
        return topology
    name = {host: f"host {host} of the drawing" for host in topology.hosts}
    joins = tuple(
        Link(each.name, name[each.host], 1.0) for each in topology.devices if each.host is not None
    )
    return replace(
        topology,
        devices=(*topology.devices, *(device("switch", each) for each in name.values())),
        links=(*topology.links, *joins),
        declared=tuple(_declared(each, _held(topology, name)) for each in topology.declared),
    )


def _held(topology: Topology, name: dict[str, str]) -> dict[str, frozenset[str]]:
    held: defaultdict[str, set[str]] = defaultdict(set)
    for each in topology.devices:
        if each.host is not None:
            held[name[each.host]].add(each.name)
    return {host: frozenset(devices) for host, devices in held.items()}


def _declared(declared: Declared, held: dict[str, frozenset[str]]) -> Declared:
    """Return an interchange whose blocks have the hosts that they hold, each after the others."""
    if not isinstance(declared, Interchange):
        return declared
    host = {each: name for name, devices in held.items() for each in devices}
    blocks = []
    for block in declared.blocks:
        inside = set(block)
        seen = dict.fromkeys(host[each] for each in block if each in host)
        blocks.append((*block, *(each for each in seen if held[each] <= inside)))
    if len(set(map(len, blocks))) > 1:
        return declared
    inner = tuple(_declared(each, held) for each in declared.inner)
    return Interchange(tuple(blocks), inner)


def _devices(topology: Topology, orbit: np.ndarray, kind: PartKind) -> Iterator[Part]:
    """Yield one part of each orbit of devices of a kind, or of hosts."""
    if kind == "host":
        named = dict(enumerate(topology.hosts, start=len(topology.devices)))
    else:
        named = {i: each.name for i, each in enumerate(topology.devices) if each.kind == kind}
    classes: defaultdict[int, list[tuple[str, ...]]] = defaultdict(list)
    for place, name in named.items():
        classes[int(orbit[place])].append((name,))
    for members in classes.values():
        yield Part(kind, members[0], len(members), tuple(members))


def _links(topology: Topology, orbit: np.ndarray, *, both: bool) -> Iterator[Part]:
    """Yield one part of each orbit of links; the two directions are one part if asked."""
    place = topology.link_index
    classes: defaultdict[tuple[int, ...], list[Ends]] = defaultdict(list)
    for i, link in enumerate(topology.links):
        back = place.get((link.dst, link.src)) if both else None
        if back is None:
            classes[(int(orbit[i]),)].append(link.ends)
        elif i < back:
            classes[tuple(sorted((int(orbit[i]), int(orbit[back]))))].append(link.ends)
    for members in classes.values():
        link = topology.link(*members[0])
        what = f"{link.medium} at {link.bandwidth:g} GB/s" if link.medium else ""
        yield Part(
            "link",
            members[0],
            link.count * len(members),
            tuple(members),
            parallel=link.count,
            what=what or f"{link.bandwidth:g} GB/s",
        )
