"""Fixed partners: whom a GPU may reach over switches where other links join the GPUs of a host.

A switch between hosts lets every GPU send to every other, but what one sends holds its own link and
that of the receiver at once, so a good order is one of matchings, and a list scheduler that may
choose among all pairs finds a bad one, with gaps on the busiest links. If every GPU has but one
partner in each other host, both of their links are busy together or not at all, and what is left is
an order for each link alone. Data for others goes on inside the hosts.

Islands are GPUs that links without a switch join. Partners come from a group that leaves no GPU in
its place: for each other island of one GPU an element that takes it there, which pairs all GPUs.
Trees are sought for whatever such pairs, and without, as hosts may have too little bandwidth.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from formulations.engines.kernels.arborescence import FAR
from formulations.engines.list_scheduling.timed import Transfers
from formulations.engines.tree_columns.task import Task


def partners(task: Task) -> np.ndarray | None:
    """Return between which ranks data may cross switches, both ways, shape (ranks, ranks).

    None where all GPUs are of one island or each is alone, where no element takes all to other
    islands, where such pairs do not join all, or where other devices copy.
    """
    side, ranks = task.sides[0], task.symmetry.ranks
    many = ranks.shape[1]
    if len(task.symmetry.ranks) == 1 or len(side.vertices) > many:
        return None
    here, there, _ = side.adjacency.direct
    joined = sparse.csr_array((np.ones(len(here)), (here, there)), shape=(many, many))
    islands, island = connected_components(joined, directed=False)
    if not 1 < islands < many:
        return None
    pairs = np.zeros((many, many), dtype=bool)
    chosen = {int(island[row[0]]): row for row in ranks[::-1] if (island[row] != island).all()}
    for row in chosen.values():
        pairs[np.arange(many), row] = True
    pairs |= pairs.T
    reached = side.priced(np.ones(len(side.topology.links))).costs.T < FAR
    able = joined + sparse.csr_array(pairs & reached)
    return pairs if connected_components(able, connection="strong")[0] == 1 else None


def paired(transfers: Transfers, pairs: np.ndarray | None) -> Transfers:
    """Return the transfers that cross no switch or join one of the pairs; all without pairs."""
    if pairs is None:
        return transfers
    topology = transfers.topology
    rank = np.array([topology.rank.get(each.name, -1) for each in topology.devices])
    alone = np.diff(transfers.first) == 1
    return transfers.chosen(np.flatnonzero(alone | pairs[rank[transfers.src], rank[transfers.dst]]))
