"""Hops over links that have less bandwidth at times: how long a send takes depends on its epoch.

Over such a link a send takes the fewest epochs, from those that it needs at full bandwidth on, of
which each can carry an equal part of the chunk (`ccl.schedule`). Each number of epochs that occurs
makes a hop of its own, open in the epochs for which it is the right one; where a link lets nothing
through for ever, none is. In every epoch the parts of all sends must fit into the link's share:

    sum over c, hops e of link l of f[k', e, c] / occupancy[e] over the epochs k' whose sends are
    still on the link in epoch k <= share[k, l] * bandwidth[l] * tau / chunk
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from formulations.engines.epoch_grid.arcs import Hops
from formulations.engines.epoch_grid.epochs import ROUNDING, EpochGrid

LONGEST = 20_000
"""Most epochs until the last window has ended that are looked at, and most of one send."""


def settled(grid: EpochGrid) -> int:
    """Return the first epoch from which on no window takes bandwidth any more."""
    last = max((window.end for window in grid.windows), default=0.0)
    return math.ceil(last / grid.epoch_duration - ROUNDING)


def slowed(hops: Hops) -> Hops:
    """Return the hops over links, those under windows once for every time that they take."""
    grid = hops.grid
    if not grid.windows:
        return hops
    many = settled(grid) + 1
    shares = grid.shares(many + int(grid.occupancy.max()))
    under = {grid.topology.link_index[ends] for each in grid.windows for ends in each.links}
    number: list[int] = []
    occupancy: list[int] = []
    opened: list[np.ndarray] = []
    for hop, (link, *_) in enumerate(hops.links):
        took = np.full(many, int(hops.occupancy[hop]))
        if link in under:
            took = np.array([_epochs(grid, shares[:, link], k, link=link) for k in range(many)])
        for epochs in sorted(set(took.tolist()) - {0}):
            number.append(hop)
            occupancy.append(epochs)
            opened.append(took == epochs)
    kept = np.array(number)
    taken = np.array(occupancy)
    return replace(
        hops,
        routes=tuple(hops.routes[hop] for hop in number),
        src=hops.src[kept],
        dst=hops.dst[kept],
        delay=hops.delay[kept] + taken - hops.occupancy[kept],
        occupancy=taken,
        begin=hops.begin[kept],
        uses=hops.uses[:, kept],
        opened=np.array(opened).T,
    )


def _epochs(grid: EpochGrid, share: np.ndarray, epoch: int, *, link: int) -> int:
    """Count the epochs that a send from `epoch` on takes; 0 where it never gets through."""
    tau, least = grid.epoch_duration, int(grid.occupancy[link])
    room = tau / (grid.chunk_size * grid.topology.links[link].beta) * (1 + ROUNDING)
    slowest, count = 1.0, 0
    while True:
        # After the last window the share is 1, so a part that never grows has settled.
        slowest = min(slowest, float(share[epoch + count]) if epoch + count < len(share) else 1.0)
        count += 1
        if slowest <= 0.0 or count > LONGEST:
            return 0
        if count >= least and count * slowest * room >= 1.0:
            return count
