"""Given moves, one after the other, each as early as what is free lets it: constructed plans."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ccl.schedule import Schedule, Send
from formulations.engines.epoch_grid.arcs import Hops
from formulations.engines.epoch_grid.demand import Demand
from formulations.engines.epoch_grid.epochs import ROUNDING
from formulations.engines.epoch_grid.plans import schedule
from formulations.engines.epoch_grid.reserve import Reservations, Way, hop_by_hop


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


def onto(plan: Schedule, hops: Hops, demand: Demand) -> Schedule | None:
    """Return a plan on another grid: the same ways in the same order, each as early as it can.

    A plan that is on the grid already is kept. None where the hops are hyper-edges and it is not.
    """
    tau = hops.grid.epoch_duration
    routes = set(hops.routes)
    same = abs(plan.epoch_duration - tau) <= ROUNDING * tau
    if same and all((send.src, *send.via, send.dst) in routes for send in plan.sends):
        return plan
    if any(len(route) > 2 for route in routes):
        return None
    return place(_moves(plan, hops), hops, demand)


def _moves(plan: Schedule, hops: Hops) -> list[tuple[int, tuple[str, ...]]]:
    """Return the chunks and ways of a plan from one device that stores to the next, in order.

    Copies that part at a switch become ways of their own from where they come.
    """
    grid = replace(hops.grid, epoch_duration=plan.epoch_duration)
    index, delay = hops.topology.index, grid.delay
    arrived: defaultdict[tuple[int, str, int], list[_Part]] = defaultdict(list)
    found: list[tuple[int, int, tuple[str, ...]]] = []
    for number, send in enumerate(sorted(plan.sends, key=lambda send: send.epoch)):
        way: _Part = (number, (send.src,))
        if not hops.stores[index[send.src]]:
            here = arrived[send.chunk, send.src, send.epoch]
            way = here[0] if hops.copies[index[send.src]] else here.pop(0)
        way = way[0], (*way[1], *send.via, send.dst)
        if hops.stores[index[send.dst]]:
            found.append((way[0], send.chunk, way[1]))
        else:
            took = int(delay[hops.topology.link_index[send.src, send.dst]])
            arrived[send.chunk, send.dst, send.epoch + took].append(way)
    return [(chunk, route) for _, chunk, route in sorted(found)]


_Part = tuple[int, tuple[str, ...]]
"""Place of the first send of a way, and the devices so far."""


def _stages(hops: Hops, route: tuple[str, ...]) -> Iterable[Way]:
    """Cut a route at the devices that store."""
    begin = 0
    for i, name in enumerate(route):
        if i > begin and hops.stores[hops.topology.index[name]]:
            yield hop_by_hop(hops, route[begin : i + 1])
            begin = i
