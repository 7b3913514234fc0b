"""Fluid amounts on a grid of epochs: the commodities that flow, their paths and shares of chunks.

There is one commodity for each rank at which something starts, and `Commodities` say who reads how
much of it. Under a group of automorphisms that leaves the demand as it is, one source of each orbit
is enough: what is sent from the others are images of what is sent from it. Nothing is lost by that,
because the average of all images of a solution is a solution, takes as many epochs and is its own
image.

`paths` takes amounts apart. Every amount that is read somewhere is followed back, hop by hop and
wait by wait, to its source; each such walk takes as much as its thinnest part carries, so that at
least one part is used up, and there are no more walks than parts. Walks of one source and
destination then fill the chunks of that pair one after the other, in the order of their arrivals.
"""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from ccl.plans import Send
from ccl.problem import Problem
from ccl.symmetry import symmetry_of
from formulations.engines.epoch_grid.arcs import Arcs


@dataclass(frozen=True)
class Commodities:
    """Commodities as arrays; amounts are in units of a chunk size.

    Parameters
    ----------
    sources
        Position of the device at which each starts, shape (n,).
    goal, source, amount, priority
        Of each demand the position of the device that reads, the number of the commodity, how
        much it reads, and the priority of these chunks, each shape (demands,).
    stored
        What stays at each device from the start, shape (devices,).
    devices, links
        Images of devices and links under each element of the group, the identity first, shapes
        (order, devices) and (order, links).
    """

    sources: np.ndarray
    goal: np.ndarray
    source: np.ndarray
    amount: np.ndarray
    priority: np.ndarray
    stored: np.ndarray
    devices: np.ndarray
    links: np.ndarray

    @property
    def order(self) -> int:
        """Elements of the group: sources that each commodity stands for."""
        return len(self.devices)

    def supply(self) -> np.ndarray:
        """Return what starts at each source, shape (n,)."""
        return np.bincount(self.source, self.amount, minlength=len(self.sources))


def commodities(problem: Problem, unit: float, *, symmetric: bool) -> Commodities:
    """Read the commodities off a problem whose chunks go from one rank to one.

    Parameters
    ----------
    problem
        The problem.
    unit
        Bytes that count as 1.
    symmetric
        Whether only one source of each orbit remains.
    """
    topology = problem.topology
    place = [topology.index[name] for name in topology.ranks]
    stored = np.zeros(len(topology.devices))
    total: dict[tuple[int, int, float], float] = defaultdict(float)
    for chunk in problem.collective.chunks:
        src, dst = place[chunk.holders[0]], place[chunk.destinations[0]]
        if src == dst:
            stored[src] += chunk.size / unit
        else:
            total[src, dst, chunk.priority] += chunk.size / unit
    start, end = (np.array([key[i] for key in total], dtype=int) for i in range(2))
    priority = np.array([key[2] for key in total])
    amount = np.array(list(total.values()))
    devices, links = np.arange(len(topology.devices))[None], np.arange(len(topology.links))[None]
    # A window takes bandwidth from one link and not from its images.
    if symmetric and not problem.windows:
        group = symmetry_of(topology)
        alike = _alike(group.devices, stored, (start, end, priority, amount))
        devices, links = group.devices[alike], group.links[alike]
    one = devices.min(axis=0)[start] == start
    sources, number = np.unique(start[one], return_inverse=True)
    return Commodities(
        sources, end[one], number, amount[one], priority[one], stored, devices, links
    )


def _alike(devices: np.ndarray, stored: np.ndarray, demand: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return which elements leave the demand as it is; they are a group too."""
    src, dst, priority, amount = demand

    def ordered(image: np.ndarray) -> np.ndarray:
        table = np.stack([image[src], image[dst], priority, amount])
        return np.asarray(table[:, np.lexsort(table[:3])])

    before = ordered(np.arange(len(stored)))
    return np.array(
        [
            bool((stored[image] == stored).all())
            and np.allclose(ordered(image), before, rtol=1e-12)
            for image in devices
        ]
    )


DUST = 1e-7
"""Amounts below this share of a chunk are rounding errors of the solver."""


@dataclass(frozen=True)
class Amounts:
    """A solution in chunks, sources numbered.

    Parameters
    ----------
    sent
        Shape (K, links, sources).
    held
        Held back into the next epoch, shape (K, devices, sources).
    read
        Shape (K + 1, devices, sources).
    """

    sent: np.ndarray
    held: np.ndarray
    read: np.ndarray


@dataclass(frozen=True, slots=True)
class Walk:
    """An amount in flight.

    Parameters
    ----------
    source, goal
        Positions of the devices.
    amount
        Chunks.
    steps
        (epoch, hop) of each hop, in order.
    arrival
        Epoch at the beginning of which it has arrived.
    """

    source: int
    goal: int
    amount: float
    steps: tuple[tuple[int, int], ...]
    arrival: int


class _Source:
    """What is left of one source's amounts while walks are taken out."""

    def __init__(self, amounts: Amounts, hops: Arcs, number: int, home: int) -> None:
        self.hops, self.home = hops, home
        self.held: dict[tuple[int, int], float] = {
            (int(k), int(v)): float(amounts.held[k, v, number])
            for k, v in np.argwhere(amounts.held[:, :, number] > DUST / 10)
        }
        self.arriving: dict[tuple[int, int], dict[tuple[int, int], float]] = defaultdict(dict)
        for k, e in np.argwhere(amounts.sent[:, :, number] > DUST / 10):
            there = int(k + hops.delay[e]), int(hops.dst[e])
            self.arriving[there][int(k), int(e)] = float(amounts.sent[k, e, number])

    def walk(self, epoch: int, device: int, amount: float) -> tuple[float, list[tuple[int, int]]]:
        """Take a walk that ends at `device` at the beginning of `epoch`, of at most `amount`."""
        steps: list[tuple[int, int]] = []
        waits: list[tuple[int, int]] = []
        while device != self.home:
            coming = self.arriving[epoch, device]
            step = max(coming, key=lambda each: coming[each], default=None)
            wait = self.held.get((epoch - 1, device), 0.0)
            if step is not None and coming[step] >= wait:
                amount = min(amount, coming[step])
                steps.append(step)
                epoch, device = step[0], int(self.hops.src[step[1]])
            elif wait > 0:
                amount = min(amount, wait)
                waits.append((epoch - 1, device))
                epoch -= 1
            else:
                return 0.0, []
        self._take(steps, waits, amount)
        return amount, steps[::-1]

    def _take(
        self, steps: list[tuple[int, int]], waits: list[tuple[int, int]], amount: float
    ) -> None:
        for epoch, hop in steps:
            there = epoch + int(self.hops.delay[hop]), int(self.hops.dst[hop])
            self.arriving[there][epoch, hop] -= amount
            if self.arriving[there][epoch, hop] <= DUST / 10:
                del self.arriving[there][epoch, hop]
        for wait in waits:
            self.held[wait] -= amount
            if self.held[wait] <= DUST / 10:
                del self.held[wait]


def paths(amounts: Amounts, hops: Arcs, flows: Commodities) -> list[Walk]:
    """Decompose the amounts of every source into walks, and those that are their images.

    Parameters
    ----------
    amounts
        The solution.
    hops
        Its grid.
    flows
        What the numbers of sources mean.
    """
    found = []
    for number, home in enumerate(flows.sources.tolist()):
        left = _Source(amounts, hops, number, home)
        for epoch, device in np.argwhere(amounts.read[:, :, number] > DUST / 10).tolist():
            wanted = float(amounts.read[epoch, device, number])
            while wanted > DUST / 10:
                amount, steps = left.walk(epoch, device, wanted)
                if not steps:
                    break
                last = steps[-1][0] + int(hops.delay[steps[-1][1]])
                found.append(Walk(home, device, amount, tuple(steps), last))
                wanted -= amount
    groups = zip(flows.devices.tolist(), flows.links.tolist(), strict=True)
    return [_image(walk, *images) for images in groups for walk in found]


def _image(walk: Walk, devices: list[int], links: list[int]) -> Walk:
    """Return a walk whose devices and links have changed places."""
    steps = tuple((epoch, links[hop]) for epoch, hop in walk.steps)
    source, goal = devices[walk.source], devices[walk.goal]
    return replace(walk, source=source, goal=goal, steps=steps)


def sends_of(walks: list[Walk], hops: Arcs, problem: Problem) -> tuple[tuple[Send, ...], int]:
    """Turn walks into sends of fractions of chunks; return them with the horizon.

    Of the chunks of one pair those with the higher priority arrive first. Within an epoch and a
    link those with the longest path to go come first.
    """
    by_pair: dict[tuple[int, int], list[Walk]] = defaultdict(list)
    for walk in walks:
        by_pair[walk.source, walk.goal].append(walk)
    topology, unit = problem.topology, hops.grid.chunk_size
    place = [topology.index[name] for name in topology.ranks]
    waiting: dict[tuple[int, int], list[tuple[int, float]]] = defaultdict(list)
    for number, chunk in enumerate(problem.collective.chunks):
        pair = place[chunk.holders[0]], place[chunk.destinations[0]]
        if pair[0] != pair[1]:
            waiting[pair].append((number, chunk.size / unit))
    fractions: dict[tuple[int, int, int], float] = defaultdict(float)
    to_go: dict[tuple[int, int, int], float] = defaultdict(float)
    priority = [chunk.priority for chunk in problem.collective.chunks]
    for pair, chunks in waiting.items():
        chunks.sort(key=lambda each: -priority[each[0]])
        for number, walk, fraction in _filled(chunks, sorted(by_pair[pair], key=_arrival)):
            remaining = 0.0
            for epoch, hop in reversed(walk.steps):
                remaining += float(hops.grid.hold[hop] + hops.grid.alpha[hop])
                fractions[epoch, hop, number] += fraction
                to_go[epoch, hop, number] = max(to_go[epoch, hop, number], remaining)
    ordered = sorted(fractions, key=lambda key: (key[0], -to_go[key], key[2], key[1]))
    horizon = max(epoch + int(hops.delay[hop]) for epoch, hop, _ in ordered)
    sends = []
    for epoch, hop, number in ordered:
        src, dst = hops.routes[hop]
        fraction = min(1.0, fractions[epoch, hop, number])
        sends.append(Send(epoch, number, src, dst, fraction=fraction))
    return tuple(sends), horizon


def _arrival(walk: Walk) -> tuple[int, tuple[tuple[int, int], ...]]:
    return walk.arrival, walk.steps


def _filled(chunks: list[tuple[int, float]], walks: list[Walk]) -> list[tuple[int, Walk, float]]:
    """Deal walks to chunks so that the fractions of each chunk add up to one."""
    scale = sum(size for _, size in chunks) / sum(walk.amount for walk in walks)
    dealt: list[tuple[int, Walk, float]] = []
    queue = [(walk, walk.amount * scale) for walk in reversed(walks)]
    for number, size in chunks:
        wanted, parts = size, []
        while wanted > DUST * size and queue:
            walk, amount = queue.pop()
            part = min(amount, wanted)
            if amount - part > DUST * size:
                queue.append((walk, amount - part))
            parts.append((number, walk, part))
            wanted -= part
        whole = sum(part for *_, part in parts)
        dealt += [(number, walk, part / whole) for number, walk, part in parts]
    return dealt
