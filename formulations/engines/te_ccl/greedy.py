"""Constructed plans on a grid of epochs: greedy ones in milliseconds, and those of given transfers.

`greedy` routes chunks one destination after the other. Each demand takes the path that arrives
first through what is still free on the grid, from any device that holds the chunk by then; what it
passes becomes a holder. That is Dijkstra's algorithm on the grid of epochs with reservations. The
order of demands is by distance, in turns, then by chance; the best of several orders wins. Models
use it as a first plan and for a horizon known to be enough: it proves nothing.

`place` takes given transfers, one after the other, each as early as what is free lets it.
"""

import heapq
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from ccl.errors import Infeasible, LimitReached
from ccl.plans import Schedule, Send
from formulations.engines.epoch_grid.arcs import Arcs
from formulations.engines.epoch_grid.epochs import ROUNDING
from formulations.engines.epoch_grid.plans import (
    Demand,
    Reservations,
    Route,
    hop_by_hop,
    hyper_edge,
    schedule,
)
from formulations.engines.epoch_grid.relay_paths import no_path, relay_paths

ORDERS = 24
"""Orders of demands that are tried at most."""


def greedy(
    hops: Arcs,
    demand: Demand,
    *,
    through: bool = False,
    seed: int = 0,
    patience: float = 1.0,
    urgency: np.ndarray | None = None,
    left: Callable[[], float] = lambda: np.inf,
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
    left
        Seconds that are left for the first order.

    Raises
    ------
    Infeasible
        If no path of hops leads to a device that wants a chunk.
    LimitReached
        If they are over before that order is routed.
    """
    out: list[list[Route]] = [[] for _ in hops.topology.devices]
    for hop in _single_hops(hops, through=through):
        out[hop.src].append(hop)
    pairs = np.argwhere(demand.wants)
    begin, horizon = time.perf_counter(), np.inf
    best: list[Send] = []
    for order in _orders(hops, demand, pairs, np.random.default_rng(seed)):
        turn = pairs[order]
        if urgency is not None:
            turn = turn[np.argsort(-urgency[turn[:, 1]], kind="stable")]
        sends, end = _route(hops, demand, out, turn, left=(lambda: np.inf) if best else left)
        if end < horizon:
            best, horizon = sends, end
        if time.perf_counter() - begin > patience:
            break
    return best


def _orders(
    hops: Arcs, demand: Demand, pairs: np.ndarray, chance: np.random.Generator
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


def _single_hops(hops: Arcs, *, through: bool) -> list[Route]:
    if through:
        return [hyper_edge(hops, number) for number in range(len(hops.routes))]
    return [hop_by_hop(hops, route) for route in relay_paths(hops.topology)]


def _route(
    hops: Arcs,
    demand: Demand,
    out: list[list[Route]],
    pairs: np.ndarray,
    *,
    left: Callable[[], float],
) -> tuple[list[Send], float]:
    """Route the demands in the order given; return the sends and the last arrival.

    Raises
    ------
    LimitReached
        If no seconds are left.
    """
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
        if left() <= 0:
            raise LimitReached("a greedy schedule takes longer than there is time")
        for hop, epoch in _quickest(free, out, held, device):
            free.take(hop, epoch)
            held[hop.dst] = epoch + hop.delay
            sends.extend(hop.sends(epoch, chunk))
        last = max(last, held[device])
    return sends, last


def _quickest(
    free: Reservations, out: list[list[Route]], held: dict[int, int], goal: int
) -> list[tuple[Route, int]]:
    """Dijkstra from all holders to `goal` by arrival epoch; the paths in order, with epochs.

    Raises
    ------
    Infeasible
        If no path leads there.
    """
    queue = [(epoch, device) for device, epoch in held.items()]
    heapq.heapify(queue)
    best = dict(held)
    came: dict[int, tuple[Route, int]] = {}
    while queue:
        epoch, device = heapq.heappop(queue)
        if device == goal:
            break
        if epoch > best[device]:
            continue
        for hop in out[device]:
            if best.get(hop.dst, 1 << 60) <= epoch + hop.delay:
                continue
            start = free.first(hop, epoch)
            if start + hop.delay < best.get(hop.dst, 1 << 60):
                best[hop.dst] = start + hop.delay
                came[hop.dst] = hop, start
                heapq.heappush(queue, (start + hop.delay, hop.dst))
    if goal not in came:
        raise Infeasible(no_path(free.hops.topology.devices[goal].name))
    path = []
    while goal in came:
        path.append(came[goal])
        goal = came[goal][0].src
    return path[::-1]


def place(transfers: Iterable[tuple[int, tuple[str, ...]]], hops: Arcs, demand: Demand) -> Schedule:
    """Return the schedule of transfers (chunk, device names along its path), in that order.

    A transfer begins at the last device of its path that has the chunk by then; a device that
    stores keeps a copy of what passes.
    """
    free = Reservations(hops)
    names = [each.name for each in hops.topology.devices]
    there: list[dict[str, int]] = [
        {names[device]: 0 for device in np.flatnonzero(held)} for held in demand.has.T
    ]
    sends: list[Send] = []
    for chunk, route in transfers:
        held = there[chunk]
        start = max(i for i, name in enumerate(route) if name in held)
        for hop in _stages(hops, route[start:]):
            epoch = free.first(hop, held[hop.route[0]])
            free.take(hop, epoch)
            held[hop.route[-1]] = epoch + hop.delay
            sends.extend(hop.sends(epoch, chunk))
    return schedule(sends, hops, demand)


def onto(plan: Schedule, hops: Arcs, demand: Demand) -> Schedule | None:
    """Return a plan on another grid: the same paths in the same order, each as early as it can.

    A plan that is on the grid already stays. None where the hops are hyper-edges and it is not.
    """
    tau = hops.grid.epoch_duration
    routes = set(hops.routes)
    same = abs(plan.epoch_duration - tau) <= ROUNDING * tau
    if same and all((send.src, *send.via, send.dst) in routes for send in plan.sends):
        return plan
    if any(len(route) > 2 for route in routes):
        return None
    return place(_transfers(plan, hops), hops, demand)


def _transfers(plan: Schedule, hops: Arcs) -> list[tuple[int, tuple[str, ...]]]:
    """Return the chunks and paths of a plan from one device that stores to the next, in order.

    Copies that part at a switch become paths of their own from where they come.
    """
    grid = replace(hops.grid, epoch_duration=plan.epoch_duration)
    index, delay = hops.topology.index, grid.delay
    arrived: defaultdict[tuple[int, str, int], list[_Part]] = defaultdict(list)
    found: list[tuple[int, int, tuple[str, ...]]] = []
    for number, send in enumerate(sorted(plan.sends, key=lambda send: send.epoch)):
        part: _Part = (number, (send.src,))
        if not hops.stores[index[send.src]]:
            here = arrived[send.chunk, send.src, send.epoch]
            part = here[0] if hops.copies[index[send.src]] else here.pop(0)
        part = part[0], (*part[1], *send.via, send.dst)
        if hops.stores[index[send.dst]]:
            found.append((part[0], send.chunk, part[1]))
        else:
            took = int(delay[hops.topology.link_index[send.src, send.dst]])
            arrived[send.chunk, send.dst, send.epoch + took].append(part)
    return [(chunk, route) for _, chunk, route in sorted(found)]


_Part = tuple[int, tuple[str, ...]]
"""Place of the first send of a path, and the devices so far."""


def _stages(hops: Arcs, route: tuple[str, ...]) -> Iterable[Route]:
    """Cut a route at the devices that store."""
    begin = 0
    for i, name in enumerate(route):
        if i > begin and hops.stores[hops.topology.index[name]]:
            yield hop_by_hop(hops, route[begin : i + 1])
            begin = i
