"""How long a device may keep what it receives: for good, within a limit, or not at all.

`ccl.verify` says what a limited buffer is: a device keeps a chunk from its arrival until its last
send of it starts, and for ever where the chunk is wanted there; a chunk held from the start
counts from then on, unless it is never sent and not wanted. What leaves at a moment makes room
for what arrives then.

On the grid, with b[k, v, c] the buffer at the beginning of epoch k and ``gone[k, v, c]``, the
running sum of the evictions X of TE-CCL, appendix B (no send of c starts after the beginning of
epoch k - 1, so that gone[0] is 1 only where what is held from the start is never sent):

    gone[k-1] <= gone[k]                                              gone for good
    f[k, e, c] <= b[k, src(e), c] - gone[k, src(e), c]                sends that start sharply
    f[k, e, c] <= b[k, src(e), c] - gone[k+1, src(e), c]              other sends
    kept[k] = b[k] + what arrives inside epoch k - gone[k+1] >= 0
    sum over c of kept[k, v, c] <= buffer of v, in chunks             for k = -1 .. K-1

A send starts sharply, with its epoch, where its links have room for one chunk; of several in one
epoch only the first does, and which one that is the model does not know. Likewise what arrives
exactly at the end of an epoch counts from the next one on. So the model never lets a plan pass
that breaks a buffer, and forbids at most plans that need a certain order within an epoch.

Decision: the paper lets a chunk that was evicted come again; here each chunk comes to a device
once, as schedules demand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccl.problem import Problem
from formulations.engines.epoch_grid.epochs import ROUNDING


@dataclass(frozen=True)
class Memory:
    """Room of each device.

    Parameters
    ----------
    room
        Chunks that each device may keep, inf where it is not limited, shape (devices,).
    keeps
        Whether a device is a destination of a chunk, shape (devices, chunks).
    """

    room: np.ndarray
    keeps: np.ndarray

    @property
    def limited(self) -> np.ndarray:
        """Positions of the devices with a limited buffer."""
        return np.flatnonzero(np.isfinite(self.room))


def memory(problem: Problem) -> Memory:
    """Read the buffers off a problem whose chunks are of one size."""
    topology, chunks = problem.topology, problem.collective.chunks
    size = problem.collective.chunk_size
    room = np.array(
        [
            np.floor(each.buffer_bytes / size * (1 + ROUNDING))
            if each.stores and each.buffer_bytes is not None
            else np.inf
            for each in topology.devices
        ]
    )
    keeps = np.zeros((len(topology.devices), len(chunks)), dtype=bool)
    for number, chunk in enumerate(chunks):
        for rank in chunk.destinations:
            keeps[topology.index[topology.ranks[rank]], number] = True
    return Memory(room, keeps)


def too_small(problem: Problem) -> str | None:
    """Say which buffer cannot even take what its device must have at the end, or None."""
    found = memory(problem)
    for device in found.limited.tolist():
        each, many = problem.topology.devices[device], int(found.keeps[device].sum())
        if many > found.room[device]:
            return (
                f"{each.name} wants {many} chunks of {problem.collective.chunk_size:g} bytes and "
                f"its buffer takes {each.buffer_bytes:g}; enlarge it"
            )
    return None
