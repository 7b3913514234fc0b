"""The logical topology: the moves between devices that store which a sketch leaves (section 3).

A move is a way from one device that stores to another; where it crosses switches it is one edge of
a switch's hyper-edge, and the physical links that it shares with other moves are its ports.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from ccl.errors import Infeasible
from ccl.sketch import Sketch
from formulations.engines.list_scheduling.routes import Moves


@dataclass(frozen=True)
class Logical:
    """Moves as arrays; n moves. Devices and links are numbered as in the topology.

    Parameters
    ----------
    moves
        All moves of the topology.
    kept
        Numbers of those that the sketch leaves, shape (n,).
    turned
        Whether every move is taken from its end to its beginning, as for sums.
    relays
        Names of the relays of each GPU that has any.
    """

    moves: Moves
    kept: np.ndarray
    turned: bool
    relays: dict[str, frozenset[str]]

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def devices(self) -> int:
        """Number of devices."""
        return len(self.moves.topology.devices)

    @cached_property
    def src(self) -> np.ndarray:
        """Device where each move begins, shape (n,)."""
        ends = self.moves.dst if self.turned else self.moves.src
        return np.asarray(ends[self.kept])

    @cached_property
    def dst(self) -> np.ndarray:
        """Device where each move ends, shape (n,)."""
        ends = self.moves.src if self.turned else self.moves.dst
        return np.asarray(ends[self.kept])

    @cached_property
    def latency(self) -> np.ndarray:
        """Sum of alphas in µs, shape (n,)."""
        return np.asarray(self.moves.latency[self.kept])

    @cached_property
    def slowest(self) -> np.ndarray:
        """µs per byte of the slowest link, shape (n,)."""
        return np.asarray(self.moves.slowest[self.kept])

    @cached_property
    def beta(self) -> sparse.csr_array:
        """µs per byte for which each move holds each link, shape (links, n)."""
        moves = self.moves
        column = np.full(len(moves), -1)
        column[self.kept] = np.arange(len(self.kept))
        used = column[moves.of_link] >= 0
        shape = (len(moves.topology.links), len(self.kept))
        place = (moves.link[used], column[moves.of_link[used]])
        return sparse.csr_array((moves.beta[used], place), shape=shape)

    @cached_property
    def host(self) -> np.ndarray:
        """Number of each device's host, -1 where it has none, shape (devices,)."""
        names = {name: number for number, name in enumerate(self.moves.topology.hosts)}
        return np.array([names.get(each.host or "", -1) for each in self.moves.topology.devices])

    @cached_property
    def away(self) -> np.ndarray:
        """Whether each move leads from a host to another, shape (n,)."""
        return leaves(self.host[self.src], self.host[self.dst])

    @cached_property
    def switched(self) -> np.ndarray:
        """Whether each move crosses devices that cannot store, shape (n,)."""
        return np.asarray(np.diff(self.moves.first)[self.kept] > 1)

    def delay(self, nbytes: float) -> np.ndarray:
        """µs that each move of `nbytes` takes, shape (n,)."""
        return np.asarray(self.latency + nbytes * self.slowest)

    def between(self, src: str, dst: str) -> np.ndarray:
        """Places of the moves that join a pair of GPUs, in the direction in which they send."""
        index = self.moves.topology.index
        near, far = (dst, src) if self.turned else (src, dst)
        return np.flatnonzero((self.src == index[near]) & (self.dst == index[far]))


def leaves(src: np.ndarray, dst: np.ndarray) -> np.ndarray:
    """Whether hosts by number differ; a device without a host is in nobody's."""
    return np.asarray((src != dst) & (src >= 0) & (dst >= 0))


def logical(moves: Moves, sketch: Sketch, *, turned: bool = False) -> Logical:
    """Return the moves that a sketch leaves.

    Raises
    ------
    Infeasible
        If it leaves none.
    """
    topology = moves.topology
    dropped = [topology.link_index[pair] for pair in sketch.without]
    bad = np.zeros(len(topology.links), dtype=bool)
    bad[dropped] = True
    keep = ~np.logical_or.reduceat(bad[moves.link], moves.first[:-1])
    if sketch.between is not None:
        joined = np.zeros((len(topology.devices),) * 2, dtype=bool)
        for src, dst in sketch.between:
            joined[topology.index[src], topology.index[dst]] = True
        names = {name: number for number, name in enumerate(topology.hosts)}
        host = np.array([names.get(each.host or "", -1) for each in topology.devices])
        away = leaves(host[moves.src], host[moves.dst])
        keep &= ~away | joined[moves.src, moves.dst]
    if not keep.any():
        msg = f"the sketch leaves no way between two GPUs of {topology}; leave out fewer links"
        raise Infeasible(msg)
    relays: dict[str, set[str]] = {}
    for gpu, relay in sketch.relays:
        relays.setdefault(gpu, set()).add(relay)
    frozen = {gpu: frozenset(each) for gpu, each in relays.items()}
    return Logical(moves, np.flatnonzero(keep), turned, frozen)
