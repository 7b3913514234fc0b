"""A first plan in milliseconds: chunks are routed one destination after the other.

Each demand takes the way that arrives first through what is still free on the grid, from any
device that holds the chunk by then; what it passes becomes a holder. That is Dijkstra's algorithm
on the grid of epochs with reservations. The order of demands is by distance, then by chance;
the best of several orders wins. Models use it as a warm start and as the first horizon known to
be enough: it proves nothing.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ccl.schedule import Send
from formulations.demand import Demand
from formulations.hops import Hops, ways

ORDERS = 24
"""Orders of demands that are tried at most."""


@dataclass(frozen=True, slots=True)
class _Way:
    """A move between storing devices: which links are held from when on, and until arrival."""

    route: tuple[str, ...]
    links: tuple[int, ...]
    offsets: tuple[int, ...]
    occupancy: tuple[int, ...]
    src: int
    dst: int
    delay: int
    through: bool


class Reservations:
    """What is still free on each link and under each shared limit, epoch by epoch."""

    def __init__(self, hops: Hops) -> None:
        topology, grid = hops.topology, hops.grid
        self.room = hops.room
        self.taken = np.zeros((len(topology.links), 64), dtype=int)
        index = topology.link_index
        self.limits: list[list[int]] = [[] for _ in topology.links]
        for number, limit in enumerate(topology.limits):
            for ends in limit.links:
                self.limits[index[ends]].append(number)
        tau, size = grid.epoch_duration, grid.chunk_size
        # Chunks per epoch under each limit; a chunk that takes several epochs counts in parts.
        self.share = np.array([1e3 * each.bandwidth * tau / size for each in topology.limits])
        self.load = np.zeros((len(topology.limits), 64))

    def first(self, way: _Way, epoch: int) -> int:
        """Return the first epoch from `epoch` on at which the way is free."""
        while not self._free(way, epoch):
            epoch += 1
        return epoch

    def _free(self, way: _Way, epoch: int) -> bool:
        self._reach(epoch + way.delay)
        for link, offset, many in zip(way.links, way.offsets, way.occupancy, strict=True):
            begin, end = epoch + offset, epoch + offset + many
            if self.taken[link, begin:end].max() >= self.room[link]:
                return False
            for limit in self.limits[link]:
                if self.load[limit, begin:end].max() + 1 / many > self.share[limit] + 1e-9:
                    return False
        return True

    def take(self, way: _Way, epoch: int) -> None:
        """Reserve the way from `epoch` on."""
        for link, offset, many in zip(way.links, way.offsets, way.occupancy, strict=True):
            begin, end = epoch + offset, epoch + offset + many
            self.taken[link, begin:end] += 1
            for limit in self.limits[link]:
                self.load[limit, begin:end] += 1 / many

    def _reach(self, epoch: int) -> None:
        """Make the tables long enough."""
        while epoch + 1 >= self.taken.shape[1]:
            self.taken = np.hstack([self.taken, np.zeros_like(self.taken)])
            self.load = np.hstack([self.load, np.zeros_like(self.load)])


def moves(hops: Hops, *, through: bool) -> list[_Way]:
    """List the moves between storing devices; `through` says that hops are hyper-edges."""
    position = hops.topology.index
    if through:
        return [
            _Way(
                route,
                links,
                (0,) * len(links),
                (int(hops.occupancy[i]),) * len(links),
                position[route[0]],
                position[route[-1]],
                int(hops.delay[i]),
                through=True,
            )
            for i, (route, links) in enumerate(zip(hops.routes, hops.links, strict=True))
        ]
    listed = []
    index, grid = hops.topology.link_index, hops.grid
    for route in ways(hops.topology):
        links = tuple(index[pair] for pair in zip(route, route[1:], strict=False))
        delays = [int(grid.delay[link]) for link in links]
        offsets = tuple(accumulate(delays[:-1], initial=0))
        many = tuple(int(grid.occupancy[link]) for link in links)
        ends = position[route[0]], position[route[-1]]
        listed.append(_Way(route, links, offsets, many, *ends, sum(delays), through=False))
    return listed


def greedy(
    hops: Hops, demand: Demand, *, through: bool = False, seed: int = 0, patience: float = 1.0
) -> list[Send]:
    """Return the sends of the best plan found, on the grid of `hops`.

    Parameters
    ----------
    hops
        Links or hyper-edges on a grid.
    demand
        Who has and wants what; every wanted chunk can be reached.
    through
        Whether the hops are hyper-edges.
    seed
        Seed of the chance in the order of demands.
    patience
        Seconds after which no further order is tried.
    """
    out: list[list[_Way]] = [[] for _ in hops.topology.devices]
    for way in moves(hops, through=through):
        out[way.src].append(way)
    pairs = np.argwhere(demand.wants)
    distance = demand.earliest(hops.distance)
    far = distance[pairs[:, 0], pairs[:, 1]]
    chance = np.random.default_rng(seed)
    begin, best, horizon = time.perf_counter(), [], np.inf
    for attempt in range(ORDERS):
        noise = chance.random(len(pairs)) * (1 + attempt % 3)
        sends, end = _route(hops, demand, out, pairs[np.argsort(noise - far)])
        if end < horizon:
            best, horizon = sends, end
        if time.perf_counter() - begin > patience:
            break
    return best


def _route(
    hops: Hops, demand: Demand, out: list[list[_Way]], pairs: np.ndarray
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
            sends.extend(_sends(way, epoch, chunk))
        last = max(last, held[device])
    return sends, last


def _quickest(
    free: Reservations, out: list[list[_Way]], held: dict[int, int], goal: int
) -> list[tuple[_Way, int]]:
    """Dijkstra from all holders to `goal` by arrival epoch; the ways in order, with epochs."""
    queue = [(epoch, device) for device, epoch in held.items()]
    heapq.heapify(queue)
    best = dict(held)
    came: dict[int, tuple[_Way, int]] = {}
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
    path = []
    while goal in came:
        path.append(came[goal])
        goal = came[goal][0].src
    return path[::-1]


def _sends(way: _Way, epoch: int, chunk: int) -> list[Send]:
    if way.through:
        return [Send(epoch, chunk, way.route[0], way.route[-1], via=way.route[1:-1])]
    return [
        Send(epoch + offset, chunk, src, dst)
        for src, dst, offset in zip(way.route, way.route[1:], way.offsets, strict=False)
    ]
