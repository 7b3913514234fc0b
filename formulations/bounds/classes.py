"""Which devices and cuts look alike, so that on a large cluster one of each is enough.

Devices are coloured by what they are and what they hold and need, then again and again by the
colours at the other ends of their links, until no more colours appear. Cuts with the same
colours inside and on their links most likely prove the same. Where they do not, a bound that was
left out is not proved; none that is proved is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from formulations.bounds.cuts import Network
from formulations.bounds.demand import Mask

_ROUNDS = 12
"""Colours travel at most so many links."""


@dataclass(frozen=True)
class Classes:
    """Colours of devices and links of a network."""

    network: Network

    @cached_property
    def devices(self) -> np.ndarray:
        """(devices,): colours, numbered from 0."""
        colours = self._first
        for _ in range(_ROUNDS):
            ends = colours[self.network.ends]
            refined = [colours]
            for here, there in ((0, 1), (1, 0)):
                seen = np.zeros(len(colours), dtype=np.uint64)
                marks = _marks(self._kinds, ends[:, there])
                np.add.at(seen, self.network.ends[:, here], marks)
                refined.append(seen)
            found = _numbered(np.array(refined, dtype=np.uint64).T)
            if found.max() == colours.max():
                break
            colours = found
        return colours

    @cached_property
    def links(self) -> np.ndarray:
        """(links,): marks of the links, equal for links of the same colour."""
        src, dst = self.devices[self.network.ends].T
        return _marks(_numbered(np.array([self._kinds, src]).T), dst)

    def of(self, inside: Mask) -> tuple[int, int]:
        """Return the class of a set of devices."""
        crossing = self.links[self.network.crossing(inside)]
        within = _marks(self.devices[inside], np.zeros(int(inside.sum()), dtype=np.int64))
        return int(within.sum()), int(crossing.sum())

    @cached_property
    def _first(self) -> np.ndarray:
        """What a device is, and what a GPU holds and needs."""
        topology, demand = self.network.problem.topology, self.network.demand
        abilities = [
            (each.kind == "gpu", each.stores, each.copies, each.reduces)
            for each in topology.devices
        ]
        roles = np.zeros((len(abilities), 2))
        gpus = self.network.gpus
        held = np.append(demand.sizes @ demand.holders, 0.0)[: len(gpus)]
        needed = np.append(demand.sizes @ demand.destinations, 0.0)[: len(gpus)]
        roles[gpus, 0] = demand.traffic.sum(axis=1) + held
        roles[gpus, 1] = demand.traffic.sum(axis=0) + needed
        return _numbered(np.hstack([np.array(abilities, dtype=float), roles]))

    @cached_property
    def _kinds(self) -> np.ndarray:
        """(links,): what a link is."""
        return _numbered(np.array([self.network.bandwidth, self.network.alpha]).T)


def _numbered(rows: np.ndarray) -> np.ndarray:
    """Return a number for each row, the same for equal rows."""
    found = np.unique(rows, axis=0, return_inverse=True)[1]
    return np.asarray(found).reshape(-1).astype(np.int64)


def _marks(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return a mark for each pair of small numbers, whose sums tell sets of pairs apart."""
    mixed = (first.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed += second.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
