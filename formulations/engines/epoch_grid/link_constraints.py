"""What sends take of links and of shared limits, as sparse rows over any list of sends.

The sends may be variables or constants: a caller splits the columns as it likes. Source: TE-CCL
(SIGCOMM 2024), section 3.1 and appendix F, as `formulations.engines.epoch_grid.epochs` reads it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from formulations.engines.epoch_grid.arcs import Hops
from formulations.engines.epoch_grid.epochs import ROUNDING
from formulations.solvers.sparse_rows import rows


def capacity_rows(hops: Hops, epoch: np.ndarray, hop: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return what each send holds of each link in each epoch, and the room of each row.

    Parameters
    ----------
    hops
        What a send may use.
    epoch, hop
        First epoch, from 0, and hop of each send, shape (n,).

    Returns
    -------
    tuple
        A sparse 0/1 matrix of shape (rows, n) and the chunks that each row lets through, shape
        (rows,): ``matrix @ sends <= room``.
    """
    which, moment = spans(hops, epoch, hop)
    uses = sparse.csc_array(hops.uses)
    wide = np.diff(uses.indptr)[hop[which]]
    spread = np.repeat(np.arange(len(which)), wide)
    place = np.arange(len(spread)) - np.repeat(np.cumsum(wide) - wide, wide)
    link = uses.indices[uses.indptr[:-1][hop[which]][spread] + place]
    width = int(moment.max(initial=0)) + 1
    shape = (uses.shape[0] * width, len(epoch))
    return rows(link * width + moment[spread], which[spread], shape), np.repeat(hops.room, width)


def spans(hops: Hops, epoch: np.ndarray, hop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return every (send, epoch) such that the send holds its links in the epoch."""
    many = hops.occupancy[hop]
    which = np.repeat(np.arange(len(many)), many)
    first = np.repeat(np.cumsum(many) - many, many)
    return which, (epoch + hops.begin[hop])[which] + np.arange(len(which)) - first


def limit_rows(
    hops: Hops, epoch: np.ndarray, hop: np.ndarray, *, width: int | None = None
) -> list[tuple[Any, np.ndarray]]:
    """Return for each shared limit what each send takes of it in each epoch, and how much there is.

    Parameters
    ----------
    hops
        What a send may use.
    epoch, hop
        First epoch, from 0, and hop of each send, shape (n,).
    width
        Epochs that have rows; if not given, all in which a send could still be on its way.

    Returns
    -------
    list
        Per limit, a sparse matrix of shape (epochs, n) in chunks and the chunks that the limit
        lets through in each epoch, shape (epochs,): ``matrix @ sends <= most``.
    """
    topology, grid = hops.topology, hops.grid
    if width is None:
        width = int(epoch.max(initial=0)) + int(hops.delay.max(initial=0)) + 1
    found = []
    for limit in topology.limits:
        shares = _shares(hops, {topology.link_index[ends] for ends in limit.links})
        which = np.repeat(np.arange(len(epoch)), np.array([len(each) for each in shares])[hop])
        if which.size:
            later, share = np.concatenate([shares[each] for each in hop.tolist()]).T
            moment = epoch[which] + later.astype(int)
            most = 1e3 * limit.bandwidth * grid.epoch_duration / grid.chunk_size
            matrix = rows(moment, which, (width, len(epoch)), value=share)
            found.append((matrix, np.full(width, most * (1 + ROUNDING))))
    return found


def _shares(hops: Hops, under: set[int]) -> list[np.ndarray]:
    """Return (epochs after its own, share of a chunk) of each hop over links under a limit."""
    return [
        np.array(
            [
                (later, 1 / len(epochs))
                for link, epochs in zip(links, hops.carried(hop), strict=True)
                if link in under
                for later in epochs
            ]
        ).reshape(-1, 2)
        for hop, links in enumerate(hops.links)
    ]
