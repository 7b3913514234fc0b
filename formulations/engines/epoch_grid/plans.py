"""Schedules from the sends of a model, and what is still free on the grid of epochs.

`demand` says as arrays for the models who has and who wants which chunk. `pruned` takes away the
sends that nobody needs, `schedule` puts the rest in order. `Reservations` hold what is still free
of links and limits, of which a transfer (`Route`) takes its share.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np

from ccl.errors import ProblemError
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from formulations.engines.epoch_grid.arcs import Arcs
from formulations.engines.epoch_grid.epochs import ROUNDING


@dataclass(frozen=True)
class Demand:
    """Start and end of a problem without reductions.

    Parameters
    ----------
    has, wants
        Whether a device holds a chunk at the start and must hold it at the end although it does
        not yet, both shape (devices, chunks).
    """

    has: np.ndarray
    wants: np.ndarray

    def earliest(self, distance: np.ndarray) -> np.ndarray:
        """Fewest epochs until a chunk can be at a device, shape (devices, chunks)."""
        return nearest(distance, np.where(self.has, 0.0, np.inf))

    def tail(self, distance: np.ndarray) -> np.ndarray:
        """Fewest epochs from a device to the nearest that wants the chunk; 0 at one itself."""
        return nearest(distance.T, np.where(self.wants, 0.0, np.inf))

    def holder(self, distance: np.ndarray, device: int, chunk: int) -> int:
        """Return the device that has a chunk and is nearest to another."""
        holders = np.flatnonzero(self.has[:, chunk])
        return int(holders[distance[holders, device].argmin()])


def demand(problem: Problem) -> Demand:
    """Read the arrays off a problem whose chunks are not reduced."""
    topology, chunks = problem.topology, problem.collective.chunks
    place = [topology.index[name] for name in topology.ranks]
    has = np.zeros((len(topology.devices), len(chunks)), dtype=bool)
    wants = np.zeros_like(has)
    for number, chunk in enumerate(chunks):
        has[[place[rank] for rank in chunk.holders], number] = True
        wants[[place[rank] for rank in chunk.destinations], number] = True
    return Demand(has, wants & ~has)


def without_copies(problem: Problem) -> Problem:
    """Return the problem in which every destination is sent a chunk of its own.

    Nothing is gained there by copying along the path: it is the demand of TE-CCL's linear program,
    section 4.1, and of its comparison of plans with and without copies, figure 9.

    Raises
    ------
    ProblemError
        If chunks are reduced, or nothing has to be sent.
    """
    collective = problem.collective
    if collective.reduces:
        raise ProblemError(
            f"{collective.kind} adds up along paths, which is copying read backwards; allow "
            "copies along the path"
        )
    chunks = tuple(
        replace(chunk, destinations=(rank,))
        for chunk in collective.chunks
        for rank in chunk.destinations
        if rank not in chunk.holders
    )
    return replace(problem, collective=replace(collective, chunks=chunks))


def nearest(distance: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return when each chunk can be at each device, from when it is where; (devices, chunks)."""
    found = np.full(there.shape, np.inf)
    for chunk in range(there.shape[1]):
        have = np.flatnonzero(np.isfinite(there[:, chunk]))
        found[:, chunk] = (distance[have] + there[have, chunk, None]).min(axis=0, initial=np.inf)
    return found


def pruned(sends: Iterable[Send], hops: Arcs, demand: Demand) -> list[Send]:
    """Keep only what brings a chunk to a device that wants it, going back from each.

    This is the search from the destinations of TE-CCL, section 3.1. A device that stores keeps
    the earliest arrival of each chunk. At a device that cannot store, what leaves in an epoch is
    matched with what came in for it: one arrival serves all copies where it copies, and one of
    them where it does not.
    """
    index = hops.topology.index
    took = duration_of(hops)
    listed = sorted(sends)
    # Sends by number: two may be equal, where a switch that cannot copy is sent a chunk twice.
    arrivals: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for number, send in enumerate(listed):
        arrived = send.epoch + took(send)
        arrivals[index[send.dst], send.chunk].append((arrived, number))
    kept: set[int] = set()
    done = set()
    stack = [(int(device), int(chunk), -1) for device, chunk in np.argwhere(demand.wants)]
    while stack:
        device, chunk, epoch = stack.pop()
        if demand.has[device, chunk] or (device, chunk, epoch) in done:
            continue
        came = arrivals[device, chunk]
        if hops.stores[device]:
            done.add((device, chunk, -1))
            number = min(came)[1]
        else:
            number = next(each for when, each in came if when == epoch)
            if hops.copies[device]:
                done.add((device, chunk, epoch))
            else:
                came.remove((epoch, number))
        kept.add(number)
        source = index[listed[number].src]
        stack.append((source, chunk, -1 if hops.stores[source] else listed[number].epoch))
    return [listed[number] for number in sorted(kept)]


def schedule(sends: Sequence[Send], hops: Arcs, demand: Demand) -> Schedule:
    """Make a schedule of pruned sends: within an epoch, those with the longest path to go first."""
    to_go = farthest(sends, hops)
    took = duration_of(hops)
    needed = pruned(sends, hops, demand)
    ordered = sorted(needed, key=lambda send: (send.epoch, -to_go[send], send.chunk, send))
    last = max(send.epoch + took(send) for send in ordered)
    return Schedule(tuple(ordered), hops.grid.epoch_duration, last)


def sends_at(hops: Arcs, epoch: np.ndarray, *, hop: np.ndarray, chunk: np.ndarray) -> list[Send]:
    """Return a send for each epoch, hop and chunk of three arrays of one shape."""
    cells = zip(epoch.tolist(), hop.tolist(), chunk.tolist(), strict=True)
    routes = [(hops.routes[each], at, number) for at, each, number in cells]
    return [Send(at, number, path[0], path[-1], via=path[1:-1]) for path, at, number in routes]


def farthest(sends: Sequence[Send], hops: Arcs) -> dict[Send, float]:
    """Return µs that still lie before each send's chunk on its longest path onwards in the plan."""
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


def duration_of(hops: Arcs) -> Callable[[Send], int]:
    """Return what says how many epochs after its own a send is there."""
    if hops.opened is None:
        took = delays(hops)
        return lambda send: took[send.src, *send.via, send.dst]
    numbers: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, route in enumerate(hops.routes):
        numbers[route].append(number)
    opened = hops.opened

    def during(send: Send) -> int:
        row = opened[min(send.epoch, len(opened) - 1)]
        return int(next(hops.delay[hop] for hop in numbers[send.src, send.dst] if row[hop]))

    return during


def delays(hops: Arcs) -> dict[tuple[str, ...], int]:
    """Return the epochs of each hop by its route."""
    return {route: int(hops.delay[i]) for i, route in enumerate(hops.routes)}


_LENGTH = 64
"""Epochs of the tables at first."""


@dataclass(frozen=True, slots=True)
class Route:
    """A transfer between storing devices: which links are held from when on, and until arrival.

    Parameters
    ----------
    route
        Device names.
    links
        Positions of its links.
    starts
        Epochs after the first in which each hop is sent.
    held, carried
        For each link, the epochs after the first in which it is held, and over which shared
        limits count its bytes.
    src, dst
        Positions of the devices at its ends.
    delay
        Epochs until the chunk can be sent on.
    through
        Whether it is one hyper-edge rather than hop after hop.
    """

    route: tuple[str, ...]
    links: tuple[int, ...]
    starts: tuple[int, ...]
    held: tuple[range, ...]
    carried: tuple[range, ...]
    src: int
    dst: int
    delay: int
    through: bool

    def sends(self, epoch: int, chunk: int) -> list[Send]:
        """Return the sends of `chunk` that leaves in `epoch`."""
        if self.through:
            return [Send(epoch, chunk, self.route[0], self.route[-1], via=self.route[1:-1])]
        return [
            Send(epoch + start, chunk, src, dst)
            for (src, dst), start in zip(pairwise(self.route), self.starts, strict=True)
        ]


def hop_by_hop(hops: Arcs, route: tuple[str, ...]) -> Route:
    """Return the transfer along `route`, stopping at no device that cannot store."""
    grid, topology = hops.grid, hops.topology
    links = tuple(topology.link_index[pair] for pair in pairwise(route))
    *starts, delay = accumulate((int(grid.delay[link]) for link in links), initial=0)
    held = tuple(
        _later(int(hops.begin[link]), int(hops.occupancy[link]), start)
        for link, start in zip(links, starts, strict=True)
    )
    return Route(
        route,
        links,
        tuple(starts),
        held,
        held,
        topology.index[route[0]],
        topology.index[route[-1]],
        delay,
        through=False,
    )


def hyper_edge(hops: Arcs, number: int) -> Route:
    """Return the transfer over the hyper-edge called `number`."""
    route, links = hops.routes[number], hops.links[number]
    held = _later(int(hops.begin[number]), int(hops.occupancy[number]), 0)
    return Route(
        route,
        links,
        (0,),
        (held,) * len(links),
        tuple(hops.carried(number)),
        int(hops.src[number]),
        int(hops.dst[number]),
        int(hops.delay[number]),
        through=True,
    )


def _later(begin: int, many: int, start: int) -> range:
    return range(start + begin, start + begin + many)


class Reservations:
    """What is still free on each link and under each shared limit, epoch by epoch."""

    def __init__(self, hops: Arcs) -> None:
        topology, grid = hops.topology, hops.grid
        self.hops = hops
        self._capacity = hops.capacity.astype(int).tolist()
        self._taken = [[0] * _LENGTH for _ in topology.links]
        # One byte an epoch, 1 when the link is full: bytes are searched quickly.
        self._full = [bytearray(_LENGTH) for _ in topology.links]
        index = topology.link_index
        self._limits: list[list[int]] = [[] for _ in topology.links]
        for number, limit in enumerate(topology.limits):
            for ends in limit.links:
                self._limits[index[ends]].append(number)
        tau, size = grid.epoch_duration, grid.chunk_size
        # Chunks per epoch under each limit; a chunk that takes several epochs counts in parts.
        self._share = [1e3 * each.bandwidth * tau / size for each in topology.limits]
        self._load = [[0.0] * _LENGTH for _ in topology.limits]

    def first(self, route: Route, epoch: int) -> int:
        """Return the first epoch from `epoch` on at which the path is free."""
        while True:
            self._reach(epoch + route.delay)
            later = self._conflict(route, epoch)
            if later is None:
                return epoch
            epoch = later

    def _conflict(self, route: Route, epoch: int) -> int | None:
        """Return an epoch before which the path cannot begin, or None if it can in `epoch`."""
        for link, held in zip(route.links, route.held, strict=True):
            last = self._full[link].rfind(1, epoch + held.start, epoch + held.stop)
            if last >= 0:
                free = self._full[link].find(0, last)
                return (len(self._full[link]) if free < 0 else free) - held.start
        loads: defaultdict[tuple[int, int], float] = defaultdict(float)
        for link, carried in zip(route.links, route.carried, strict=True):
            for limit in self._limits[link]:
                for later in carried:
                    loads[limit, epoch + later] += 1 / len(carried)
        for (limit, when), load in loads.items():
            if self._load[limit][when] + load > self._share[limit] * (1 + ROUNDING):
                return epoch + 1
        return None

    def take(self, route: Route, epoch: int) -> None:
        """Reserve the path from `epoch` on."""
        for link, held in zip(route.links, route.held, strict=True):
            taken, capacity = self._taken[link], self._capacity[link]
            for when in range(epoch + held.start, epoch + held.stop):
                taken[when] += 1
                self._full[link][when] = taken[when] >= capacity
        for link, carried in zip(route.links, route.carried, strict=True):
            for limit in self._limits[link]:
                for when in range(epoch + carried.start, epoch + carried.stop):
                    self._load[limit][when] += 1 / len(carried)

    def _reach(self, epoch: int) -> None:
        """Make the tables long enough."""
        while self._full and epoch + 1 >= len(self._full[0]):
            more = len(self._full[0])
            for link, full in enumerate(self._full):
                full.extend(bytes(more))
                self._taken[link].extend([0] * more)
            for load in self._load:
                load.extend([0.0] * more)
