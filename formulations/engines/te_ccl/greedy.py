"""A first plan in milliseconds: chunks are routed one destination after the other.

Each demand takes the way that arrives first through what is still free on the grid, from any
device that holds the chunk by then; what it passes becomes a holder. That is Dijkstra's algorithm
on the grid of epochs with reservations. The order of demands is by distance, in turns, then by
chance; the best of several orders wins. Models use it as a first plan and for a horizon known to
be enough: it proves nothing.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator

import numpy as np

from ccl.errors import Infeasible
from ccl.schedule import Send
from formulations.engines.epoch_grid.arcs import Hops, no_way, ways
from formulations.engines.epoch_grid.demand import Demand
from formulations.engines.epoch_grid.reserve import Reservations, Way, hop_by_hop, hyper_edge

ORDERS = 24
"""Orders of demands that are tried at most."""


def greedy(
    hops: Hops,
    demand: Demand,
    *,
    through: bool = False,
    seed: int = 0,
    patience: float = 1.0,
    urgency: np.ndarray | None = None,
) -> list[Send]:
    """Return the sends of the best plan found, on the grid of `hops`.

    Parameters
    ----------
    hops
        Links or hyper-edges on a grid.
    demand
        Who has and wants what.
    through
        Whether the hops are hyper-edges.
    seed
        Seed of the chance in the order of demands.
    patience
        Seconds after which no further order is tried.
    urgency
        A number for each chunk, shape (chunks,): those with a larger one are all routed before
        the others, in every order.

    Raises
    ------
    Infeasible
        If the hops lead no way to a device that wants a chunk.
    """
    out: list[list[Way]] = [[] for _ in hops.topology.devices]
    for way in _ways(hops, through=through):
        out[way.src].append(way)
    pairs = np.argwhere(demand.wants)
    begin, best, horizon = time.perf_counter(), [], np.inf
    for order in _orders(hops, demand, pairs, np.random.default_rng(seed)):
        turn = pairs[order]
        if urgency is not None:
            turn = turn[np.argsort(-urgency[turn[:, 1]], kind="stable")]
        sends, end = _route(hops, demand, out, turn)
        if end < horizon:
            best, horizon = sends, end
        if time.perf_counter() - begin > patience:
            break
    return best


def _orders(
    hops: Hops, demand: Demand, pairs: np.ndarray, chance: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield orders of the demands: the farthest first, then in turns, then by chance.

    In turns, a holder's first destination is the device after it, and so on around, so that no
    two holders begin with the same one; over a switch nothing is faster.
    """
    device, chunk = pairs.T
    far = demand.earliest(hops.distance)[device, chunk]
    yield np.argsort(-far, kind="stable")
    holder = demand.has.argmax(axis=0)[chunk]
    yield np.argsort((device - holder) % len(demand.has), kind="stable")
    for attempt in range(ORDERS - 2):
        yield np.argsort(chance.random(len(pairs)) * (1 + attempt % 3) - far)


def _ways(hops: Hops, *, through: bool) -> list[Way]:
    if through:
        return [hyper_edge(hops, number) for number in range(len(hops.routes))]
    return [hop_by_hop(hops, route) for route in ways(hops.topology)]


def _route(
    hops: Hops, demand: Demand, out: list[list[Way]], pairs: np.ndarray
) -> tuple[list[Send], float]:
    """Route the demands in the order given; return the sends and the last arrival."""
    free = Reservations(hops)
    there: list[dict[int, int]] = [
        dict.fromkeys(np.flatnonzero(held).tolist(), 0) for held in demand.has.T
    ]
    sends: list[Send] = []
    last = 0
    for device, chunk in pairs.tolist():
        held = there[chunk]
        if device in held:
            last = max(last, held[device])
            continue
        for way, epoch in _quickest(free, out, held, device):
            free.take(way, epoch)
            held[way.dst] = epoch + way.delay
            sends.extend(way.sends(epoch, chunk))
        last = max(last, held[device])
    return sends, last


def _quickest(
    free: Reservations, out: list[list[Way]], held: dict[int, int], goal: int
) -> list[tuple[Way, int]]:
    """Dijkstra from all holders to `goal` by arrival epoch; the ways in order, with epochs.

    Raises
    ------
    Infeasible
        If no way leads there.
    """
    queue = [(epoch, device) for device, epoch in held.items()]
    heapq.heapify(queue)
    best = dict(held)
    came: dict[int, tuple[Way, int]] = {}
    while queue:
        epoch, device = heapq.heappop(queue)
        if device == goal:
            break
        if epoch > best[device]:
            continue
        for way in out[device]:
            if best.get(way.dst, 1 << 60) <= epoch + way.delay:
                continue
            start = free.first(way, epoch)
            if start + way.delay < best.get(way.dst, 1 << 60):
                best[way.dst] = start + way.delay
                came[way.dst] = way, start
                heapq.heappush(queue, (start + way.delay, way.dst))
    if goal not in came:
        raise Infeasible(no_way(free.hops.topology.devices[goal].name))
    path = []
    while goal in came:
        path.append(came[goal])
        goal = came[goal][0].src
    return path[::-1]
