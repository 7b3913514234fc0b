"""What is still free on the grid of epochs, and how a move takes its share of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from ccl.schedule import Send
from formulations.hops import Hops


@dataclass(frozen=True, slots=True)
class Way:
    """A move between storing devices: which links are held from when on, and until arrival.

    Parameters
    ----------
    route
        Device names.
    links
        Positions of its links.
    offsets, occupancy
        Epochs after the first in which each link is entered, and for which it is held.
    src, dst
        Positions of the devices at its ends.
    delay
        Epochs until the chunk can be sent on.
    through
        Whether it is one hyper-edge rather than hop after hop.
    """

    route: tuple[str, ...]
    links: tuple[int, ...]
    offsets: tuple[int, ...]
    occupancy: tuple[int, ...]
    src: int
    dst: int
    delay: int
    through: bool

    def sends(self, epoch: int, chunk: int) -> list[Send]:
        """Return the sends of `chunk` that leaves in `epoch`."""
        if self.through:
            return [Send(epoch, chunk, self.route[0], self.route[-1], via=self.route[1:-1])]
        return [
            Send(epoch + offset, chunk, src, dst)
            for src, dst, offset in zip(self.route, self.route[1:], self.offsets, strict=False)
        ]


def hop_by_hop(hops: Hops, route: tuple[str, ...]) -> Way:
    """Return the move along `route`, stopping at no device that cannot store."""
    grid, topology = hops.grid, hops.topology
    links = tuple(topology.link_index[pair] for pair in pairwise(route))
    delays = [int(grid.delay[link]) for link in links]
    return Way(
        route,
        links,
        tuple(accumulate(delays[:-1], initial=0)),
        tuple(int(grid.occupancy[link]) for link in links),
        topology.index[route[0]],
        topology.index[route[-1]],
        sum(delays),
        through=False,
    )


def hyper_edge(hops: Hops, number: int) -> Way:
    """Return the move over the hyper-edge called `number`."""
    route, links = hops.routes[number], hops.links[number]
    return Way(
        route,
        links,
        (0,) * len(links),
        (int(hops.occupancy[number]),) * len(links),
        int(hops.src[number]),
        int(hops.dst[number]),
        int(hops.delay[number]),
        through=True,
    )


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

    def first(self, way: Way, epoch: int) -> int:
        """Return the first epoch from `epoch` on at which the way is free."""
        while not self._free(way, epoch):
            epoch += 1
        return epoch

    def _free(self, way: Way, epoch: int) -> bool:
        self._reach(epoch + way.delay)
        for link, offset, many in zip(way.links, way.offsets, way.occupancy, strict=True):
            begin, end = epoch + offset, epoch + offset + many
            if self.taken[link, begin:end].max() >= self.room[link]:
                return False
            for limit in self.limits[link]:
                if self.load[limit, begin:end].max() + 1 / many > self.share[limit] + 1e-9:
                    return False
        return True

    def take(self, way: Way, epoch: int) -> None:
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
