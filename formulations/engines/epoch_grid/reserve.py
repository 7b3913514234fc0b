"""What is still free on the grid of epochs, and how a move takes its share of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import accumulate, pairwise

from ccl.plans import Send
from formulations.engines.epoch_grid.arcs import Hops
from formulations.engines.epoch_grid.epochs import ROUNDING

_LENGTH = 64
"""Epochs of the tables at first."""


@dataclass(frozen=True, slots=True)
class Way:
    """A move between storing devices: which links are held from when on, and until arrival.

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


def hop_by_hop(hops: Hops, route: tuple[str, ...]) -> Way:
    """Return the move along `route`, stopping at no device that cannot store."""
    grid, topology = hops.grid, hops.topology
    links = tuple(topology.link_index[pair] for pair in pairwise(route))
    *starts, delay = accumulate((int(grid.delay[link]) for link in links), initial=0)
    held = tuple(
        _later(int(hops.begin[link]), int(hops.occupancy[link]), start)
        for link, start in zip(links, starts, strict=True)
    )
    return Way(
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


def hyper_edge(hops: Hops, number: int) -> Way:
    """Return the move over the hyper-edge called `number`."""
    route, links = hops.routes[number], hops.links[number]
    held = _later(int(hops.begin[number]), int(hops.occupancy[number]), 0)
    return Way(
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

    def __init__(self, hops: Hops) -> None:
        topology, grid = hops.topology, hops.grid
        self.hops = hops
        self._room = hops.room.astype(int).tolist()
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

    def first(self, way: Way, epoch: int) -> int:
        """Return the first epoch from `epoch` on at which the way is free."""
        while True:
            self._reach(epoch + way.delay)
            later = self._conflict(way, epoch)
            if later is None:
                return epoch
            epoch = later

    def _conflict(self, way: Way, epoch: int) -> int | None:
        """Return an epoch before which the way cannot begin, or None if it can in `epoch`."""
        for link, held in zip(way.links, way.held, strict=True):
            last = self._full[link].rfind(1, epoch + held.start, epoch + held.stop)
            if last >= 0:
                free = self._full[link].find(0, last)
                return (len(self._full[link]) if free < 0 else free) - held.start
        loads: defaultdict[tuple[int, int], float] = defaultdict(float)
        for link, carried in zip(way.links, way.carried, strict=True):
            for limit in self._limits[link]:
                for later in carried:
                    loads[limit, epoch + later] += 1 / len(carried)
        for (limit, when), load in loads.items():
            if self._load[limit][when] + load > self._share[limit] * (1 + ROUNDING):
                return epoch + 1
        return None

    def take(self, way: Way, epoch: int) -> None:
        """Reserve the way from `epoch` on."""
        for link, held in zip(way.links, way.held, strict=True):
            taken, room = self._taken[link], self._room[link]
            for when in range(epoch + held.start, epoch + held.stop):
                taken[when] += 1
                self._full[link][when] = taken[when] >= room
        for link, carried in zip(way.links, way.carried, strict=True):
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
