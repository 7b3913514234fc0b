"""What must cross a set of devices, whatever the plan: the demand that all cut bounds count.

Let S be a set of devices. A chunk must leave S when

* it is not reduced, all its holders are in S and a destination is outside: each of its bytes
  then enters the outside at least once, however it is split, copied or stored afterwards;
* it is reduced, a holder is in S and a destination is outside: the destination needs a sum with
  a contribution from inside at every byte of the chunk, so at least one value for each byte
  leaves S, however contributions are added on the way.

Copying switches and reducing switches change how often a byte crosses, never whether. The sum of
the sizes of all chunks that must leave is the demand of S.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ccl.collective import Collective

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Demand:
    """Chunks summed by their ends.

    Parameters
    ----------
    traffic
        (ranks, ranks): bytes of chunks with one holder and one destination that are not reduced.
    sizes
        (groups,): bytes of all chunks of a group, which have the same ends.
    holders, destinations
        (groups, ranks): who holds and who needs them.
    reduced
        (groups,): whether contributions are added up.
    """

    traffic: Floats
    sizes: Floats
    holders: Mask
    destinations: Mask
    reduced: Mask

    @cached_property
    def holding(self) -> Mask:
        """(ranks,): who holds anything."""
        return np.asarray(self.holders.any(axis=0) | (self.traffic > 0).any(axis=1))

    @cached_property
    def needing(self) -> Mask:
        """(ranks,): who needs anything."""
        return np.asarray(self.destinations.any(axis=0) | (self.traffic > 0).any(axis=0))

    def leaving(self, inside: Mask) -> Floats:
        """Return the bytes that must leave each of several sets.

        Parameters
        ----------
        inside
            (sets, ranks): which GPUs are in each set.

        Returns
        -------
        ndarray
            (sets,): bytes.
        """
        within = inside.astype(np.float64)
        pairs = np.einsum("ki,ki->k", within @ self.traffic, 1.0 - within)
        if not len(self.sizes):
            return np.asarray(pairs)
        # Numbers of ranks are exact in half the bytes, and counted in half the time.
        some = within.astype(np.float32)
        held = some @ self.holders.T.astype(np.float32)
        starts = np.where(self.reduced, held > 0, held == self.holders.sum(axis=1))
        ends = (1.0 - some) @ self.destinations.T.astype(np.float32) > 0
        return np.asarray(pairs + (starts & ends) @ self.sizes)

    def into(self) -> Floats:
        """Return (sinks, ranks): bytes not reduced that a sink needs and only that rank holds."""
        alone = self.sizes * (~self.reduced & (self.holders.sum(axis=1) == 1))
        return self._apart(
            self.traffic.T + (self.destinations * alone[:, None]).T @ self.holders.astype(float)
        )

    def out_of(self) -> Floats:
        """Return (sources, ranks): bytes only that rank needs, and not without the source."""
        alone = self.sizes * (self.destinations.sum(axis=1) == 1)
        held = self.holders & (self.reduced | (self.holders.sum(axis=1) == 1))[:, None]
        return self._apart(
            self.traffic + (held * alone[:, None]).T @ self.destinations.astype(float)
        )

    def _apart(self, weights: Floats) -> Floats:
        """Leave out what a rank has for itself."""
        return np.where(np.eye(len(weights), dtype=bool), 0.0, weights)


def demand_of(collective: Collective) -> Demand:
    """Sum the chunks of a collective by their ends."""
    ranks = collective.ranks
    traffic = np.zeros((ranks, ranks))
    groups: dict[tuple[tuple[int, ...], tuple[int, ...], bool], float] = defaultdict(float)
    for chunk in collective.chunks:
        if len(chunk.holders) == len(chunk.destinations) == 1 and not chunk.reduced:
            if chunk.holders != chunk.destinations:
                traffic[chunk.holders[0], chunk.destinations[0]] += chunk.size
        else:
            groups[chunk.holders, chunk.destinations, chunk.reduced] += chunk.size
    return Demand(
        traffic=traffic,
        sizes=np.array(list(groups.values()), dtype=float),
        holders=_masks([holders for holders, _, _ in groups], ranks),
        destinations=_masks([destinations for _, destinations, _ in groups], ranks),
        reduced=np.array([reduced for _, _, reduced in groups], dtype=bool),
    )


def _masks(sets: list[tuple[int, ...]], ranks: int) -> Mask:
    masks = np.zeros((len(sets), ranks), dtype=bool)
    for row, members in enumerate(sets):
        masks[row, list(members)] = True
    return masks
