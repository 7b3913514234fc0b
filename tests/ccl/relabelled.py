"""The same cluster with other names in another order."""

import random
from dataclasses import replace

from ccl.topology import Topology


def relabelled(topology: Topology, seed: int, *, name: str = "another") -> Topology:
    """Rename devices and hosts of a topology, and put all that it has in another order."""
    chance = random.Random(seed)
    numbers = list(range(len(topology.devices)))
    chance.shuffle(numbers)
    new = {each.name: f"d{number}" for each, number in zip(topology.devices, numbers, strict=True)}
    hosts = {host: f"box{i}" for i, host in enumerate(reversed(topology.hosts))}

    def mixed(things):
        return tuple(chance.sample(list(things), len(list(things))))

    return Topology(
        name,
        mixed(
            [
                replace(each, name=new[each.name], host=hosts.get(each.host or ""))
                for each in topology.devices
            ]
        ),
        mixed([replace(each, src=new[each.src], dst=new[each.dst]) for each in topology.links]),
        mixed(
            [
                replace(
                    each,
                    name=f"of {each.name}",
                    links=mixed([(new[src], new[dst]) for src, dst in each.links]),
                )
                for each in topology.limits
            ]
        ),
    )
