"""Given moves, one after the other, each as early as what is free lets it: constructed plans."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ccl.schedule import Schedule, Send
from formulations.demand import Demand
from formulations.hops import Hops
from formulations.plans import schedule
from formulations.reserve import Reservations, Way, hop_by_hop


def place(moves: Iterable[tuple[int, tuple[str, ...]]], hops: Hops, demand: Demand) -> Schedule:
    """Return the schedule of moves (chunk, device names along its way), in that order.

    A move begins at the last device of its way that has the chunk by then; a device that stores
    keeps a copy of what passes.
    """
    free = Reservations(hops)
    names = [each.name for each in hops.topology.devices]
    there: list[dict[str, int]] = [
        {names[device]: 0 for device in np.flatnonzero(held)} for held in demand.has.T
    ]
    sends: list[Send] = []
    for chunk, route in moves:
        held = there[chunk]
        start = max(i for i, name in enumerate(route) if name in held)
        for way in _stages(hops, route[start:]):
            epoch = free.first(way, held[way.route[0]])
            free.take(way, epoch)
            held[way.route[-1]] = epoch + way.delay
            sends.extend(way.sends(epoch, chunk))
    return schedule(sends, hops, demand)


def _stages(hops: Hops, route: tuple[str, ...]) -> Iterable[Way]:
    """Cut a route at the devices that store."""
    begin = 0
    for i, name in enumerate(route):
        if i > begin and hops.stores[hops.topology.index[name]]:
            yield hop_by_hop(hops, route[begin : i + 1])
            begin = i
