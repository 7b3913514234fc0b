"""What flows: one commodity for each rank at which something starts, and who reads how much of it.

Under a group of automorphisms that leaves the demand as it is, one source of each orbit is enough:
what is sent from the others are images of what is sent from it. Nothing is lost by that, because
the average of all images of a solution is a solution, takes as many epochs and is its own image.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from ccl.problem import Problem
from ccl.symmetry import symmetry_of


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
    kept
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
    kept: np.ndarray
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
        What is asked.
    unit
        Bytes that count as 1.
    symmetric
        Whether only one source of each orbit is kept.
    """
    topology = problem.topology
    place = [topology.index[name] for name in topology.ranks]
    kept = np.zeros(len(topology.devices))
    total: dict[tuple[int, int, float], float] = defaultdict(float)
    for chunk in problem.collective.chunks:
        src, dst = place[chunk.holders[0]], place[chunk.destinations[0]]
        if src == dst:
            kept[src] += chunk.size / unit
        else:
            total[src, dst, chunk.priority] += chunk.size / unit
    start, end = (np.array([key[i] for key in total], dtype=int) for i in range(2))
    priority = np.array([key[2] for key in total])
    amount = np.array(list(total.values()))
    devices, links = np.arange(len(topology.devices))[None], np.arange(len(topology.links))[None]
    # A window takes bandwidth from one link and not from its images.
    if symmetric and not problem.windows:
        group = symmetry_of(topology)
        alike = _alike(group.devices, kept, (start, end, priority, amount))
        devices, links = group.devices[alike], group.links[alike]
    one = devices.min(axis=0)[start] == start
    sources, number = np.unique(start[one], return_inverse=True)
    return Commodities(sources, end[one], number, amount[one], priority[one], kept, devices, links)


def _alike(devices: np.ndarray, kept: np.ndarray, demand: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return which elements leave the demand as it is; they are a group too."""
    src, dst, priority, amount = demand

    def ordered(image: np.ndarray) -> np.ndarray:
        table = np.stack([image[src], image[dst], priority, amount])
        return np.asarray(table[:, np.lexsort(table[:3])])

    before = ordered(np.arange(len(kept)))
    return np.array(
        [
            bool((kept[image] == kept).all()) and np.allclose(ordered(image), before, rtol=1e-12)
            for image in devices
        ]
    )
