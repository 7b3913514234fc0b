"""From the sends of a model to a schedule: what nobody needs goes, the rest is put in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from ccl.problem import Problem
from ccl.schedule import Schedule, Send
from formulations.demand import Demand
from formulations.epochs import ROUNDING
from formulations.hops import Hops


def delay(problem: Problem, send: Send, epoch_duration: float) -> int:
    """Epochs after which what is sent can be sent on, as the grid of epochs counts them."""
    links = [problem.topology.link(*ends) for ends in send.hops]
    size = problem.collective.chunks[send.chunk].size * send.fraction
    time = max(link.beta for link in links) * size + sum(link.alpha for link in links)
    return max(1, int(np.ceil(time / epoch_duration - ROUNDING)))


def pruned(sends: Iterable[Send], hops: Hops, demand: Demand) -> list[Send]:
    """Keep only what brings a chunk to a device that wants it, going back from each.

    This is the search from the destinations of TE-CCL, section 3.1. A device that stores keeps
    the earliest arrival of each chunk. At a device that cannot store, what leaves in an epoch is
    matched with what came in for it: one arrival serves all copies where it copies, and one of
    them where it does not.
    """
    topology = hops.topology
    index = topology.index
    took = {route: int(hops.delay[i]) for i, route in enumerate(hops.routes)}
    arrivals: dict[tuple[int, int], list[tuple[int, Send]]] = defaultdict(list)
    for send in sends:
        arrived = send.epoch + took[send.src, *send.via, send.dst]
        arrivals[index[send.dst], send.chunk].append((arrived, send))
    for listed in arrivals.values():
        listed.sort(key=lambda item: (item[0], item[1]), reverse=True)
    kept: dict[Send, None] = {}
    done = set()
    stack = [(int(device), int(chunk), -1) for device, chunk in np.argwhere(demand.wants)]
    while stack:
        device, chunk, epoch = stack.pop()
        if demand.has[device, chunk] or (device, chunk, epoch) in done:
            continue
        listed = arrivals[device, chunk]
        if hops.stores[device]:
            done.add((device, chunk, epoch := -1))
            send = listed[-1][1]
        else:
            send = next(each for when, each in listed if when == epoch)
            if hops.copies[device]:
                done.add((device, chunk, epoch))
            else:
                listed.remove((epoch, send))
        if send in kept:
            continue
        kept[send] = None
        source = index[send.src]
        stack.append((source, chunk, -1 if hops.stores[source] else send.epoch))
    return list(kept)


def schedule(sends: Sequence[Send], hops: Hops, demand: Demand) -> Schedule:
    """Make a schedule of pruned sends: within an epoch, those with the longest way to go first."""
    to_go = farthest(sends, hops)
    took = {route: int(hops.delay[i]) for i, route in enumerate(hops.routes)}
    needed = pruned(sends, hops, demand)
    ordered = sorted(needed, key=lambda send: (send.epoch, -to_go[send], send.chunk, send))
    last = max(send.epoch + took[send.src, *send.via, send.dst] for send in ordered)
    return Schedule(tuple(ordered), hops.grid.epoch_duration, last)


def farthest(sends: Sequence[Send], hops: Hops) -> dict[Send, float]:
    """µs that still lie before each send's chunk on its longest way onwards in the plan."""
    grid = hops.grid
    time = {
        route: float(max(grid.hold[list(links)]) + sum(grid.alpha[list(links)]))
        for route, links in zip(hops.routes, hops.links, strict=True)
    }
    onwards: dict[tuple[str, int], float] = defaultdict(float)
    to_go = {}
    for send in sorted(sends, key=lambda each: -each.epoch):
        to_go[send] = time[send.src, *send.via, send.dst] + onwards[send.dst, send.chunk]
        start = send.src, send.chunk
        onwards[start] = max(onwards[start], to_go[send])
    return to_go
