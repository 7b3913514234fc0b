"""Trees of a broadcast in parts: every point of a shard takes one way into each rank.

The parts of a shard that a rank has from its neighbours are laid on the line from 0 to 1 one after
the other. A point x of the shard takes into each rank the way in whose stretch x lies; as every
neighbour that sends has the whole shard one step before, these ways are a tree. Between two ends
of stretches it is the same tree, so the stretches of all ranks cut the shard into its trees.
"""

from __future__ import annotations

import numpy as np

from ccl.forest import Tree
from formulations.engines.bfb.program import Steps
from formulations.engines.interval_overlay import refined
from formulations.engines.list_scheduling.routes import Moves


def trees_of(moves: Moves, steps: Steps) -> tuple[Tree, ...]:
    """Return the trees of all sources; the weights of each add up to 1."""
    sources = sorted({source for source, _ in steps.parts})
    return tuple(tree for source in sources for tree in _of_root(moves, steps, source))


def _of_root(moves: Moves, steps: Steps, source: int) -> list[Tree]:
    ranks = [
        int(rank)
        for rank in np.argsort(steps.distance[source], kind="stable")
        if (source, int(rank)) in steps.parts
    ]
    taken = refined([steps.parts[source, rank] for rank in ranks])
    return [
        Tree(source, tuple(moves.routes[move] for move in ways), weight)
        for ways, weight in taken.items()
    ]
