"""Shuffled clusters: isomorphic ones for whatever has to be found again under other names."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from ccl.topology import Topology

_Thing = TypeVar("_Thing")


def shuffled(topology: Topology, *, seed: int) -> Topology:
    """Return the same cluster with other names in another order: what an isomorphic one looks like.

    Parameters
    ----------
    topology
        The cluster.
    seed
        Of the order of devices, links, limits and what these cover.
    """
    chance = random.Random(seed)

    def mixed(things: Iterable[_Thing]) -> tuple[_Thing, ...]:
        listed = list(things)
        return tuple(chance.sample(listed, len(listed)))

    names = [each.name for each in topology.devices]
    new = dict(zip(mixed(names), (f"d{i}" for i in range(len(names))), strict=True))
    host = {name: f"box{i}" for i, name in enumerate(reversed(topology.hosts))}
    return Topology(
        f"{topology.name}, shuffled",
        mixed(
            replace(each, name=new[each.name], host=host.get(each.host or ""))
            for each in topology.devices
        ),
        mixed(replace(each, src=new[each.src], dst=new[each.dst]) for each in topology.links),
        mixed(
            replace(
                each,
                name=f"limit {i}",
                links=mixed((new[src], new[dst]) for src, dst in each.links),
            )
            for i, each in enumerate(topology.limits)
        ),
    )
