"""Who has and who wants which chunk, as arrays for the models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccl.problem import Problem


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
        return _nearest(distance.T, self.has)

    def tail(self, distance: np.ndarray) -> np.ndarray:
        """Fewest epochs from a device to the nearest that wants the chunk; 0 at one itself."""
        return _nearest(distance, self.wants)


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


def _nearest(distance: np.ndarray, marked: np.ndarray) -> np.ndarray:
    """Smallest entry of each row of `distance` over the devices marked, per chunk."""
    nearest = np.full(marked.shape, np.inf)
    for chunk in range(marked.shape[1]):
        columns = distance[:, marked[:, chunk]]
        if columns.size:
            nearest[:, chunk] = columns.min(axis=1)
    return nearest
