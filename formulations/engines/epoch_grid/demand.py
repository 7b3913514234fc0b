"""Who has and who wants which chunk, as arrays for the models."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ccl.errors import ProblemError
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


def without_copies(problem: Problem) -> Problem:
    """Return the problem in which every destination is sent a chunk of its own.

    Nothing is gained there by copying on the way: it is the demand of TE-CCL's linear program,
    section 4.1, and of its comparison of plans with and without copies, figure 9.

    Raises
    ------
    ProblemError
        If chunks are reduced, or nothing has to move.
    """
    collective = problem.collective
    if collective.reduces:
        msg = (
            f"{collective.kind} adds up on the way, which is copying read backwards; allow copies "
            "on the way"
        )
        raise ProblemError(msg)
    chunks = tuple(
        replace(chunk, destinations=(rank,))
        for chunk in collective.chunks
        for rank in chunk.destinations
        if rank not in chunk.holders
    )
    return replace(problem, collective=replace(collective, chunks=chunks))


def _nearest(distance: np.ndarray, marked: np.ndarray) -> np.ndarray:
    """Smallest entry of each row of `distance` over the devices marked, per chunk."""
    nearest = np.full(marked.shape, np.inf)
    for chunk in range(marked.shape[1]):
        columns = distance[:, marked[:, chunk]]
        if columns.size:
            nearest[:, chunk] = columns.min(axis=1)
    return nearest
