"""Trees of one root by multiplicative weights: the cheapest tree, again and again.

Every arc has a price, at first one over its bandwidth. In each round the cheapest tree takes as
much as its narrowest arc has, f, and the price of each of its arcs e grows by 1 + EPSILON f / c(e).
At the end all that was taken is scaled until no arc has more than it can carry. The trees come near
the best rate with the number of rounds and are never better (Garg and Koenemann, SIAM Journal on
Computing 37, 2007; Blink, section 3); what each should carry, a program says better
(`formulations.engines.blink.few`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from formulations.engines.forestcoll.network import Ints
from formulations.engines.kernels.arborescence import arborescences
from formulations.engines.kernels.relays import FAR

EPSILON = 0.1
"""How fast prices grow; slower ones come nearer to the best rate, in more rounds."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Connections between GPUs.

    Parameters
    ----------
    gpus
        How many.
    root
        Rank of the root.
    tail, head
        Ranks that each arc leaves and enters, shape (arcs,).
    row
        What each arc takes from: its own row, or one for both directions, shape (arcs,).
    capacity
        Of each row, shape (rows,).
    """

    gpus: int
    root: int
    tail: Ints
    head: Ints
    row: Ints
    capacity: np.ndarray


@dataclass(frozen=True, eq=False)
class Pool:
    """Trees of one root.

    Parameters
    ----------
    arcs
        Arcs of each tree, parents first, shape (trees, gpus - 1).
    rate
        What they carry together by their own weights, in the unit of the rows.
    """

    arcs: Ints
    rate: float


def weighted(graph: Graph, *, rounds: int, over: Callable[[], bool]) -> Pool:
    """Return the trees of as many rounds, the first in any case, and the rate they reach."""
    members, roots = np.arange(graph.gpus), np.array([graph.root])
    number = np.full((graph.gpus, graph.gpus), -1)
    number[graph.head, graph.tail] = np.arange(len(graph.tail))
    prices = 1.0 / graph.capacity
    loads = np.zeros(len(graph.capacity))
    pool: dict[bytes, Ints] = {}
    taken = 0.0
    for turn in range(rounds):
        if turn and over():
            break
        costs = np.full((graph.gpus, graph.gpus), FAR)
        costs[graph.head, graph.tail] = prices[graph.row]
        parents = arborescences(costs, members, roots)[0]
        reached = np.flatnonzero(parents >= 0)
        arcs = number[reached, parents[reached]]
        rows = graph.row[arcs]
        most = float(graph.capacity[rows].min())
        loads[rows] += most
        taken += most
        prices[rows] *= 1 + EPSILON * most / graph.capacity[rows]
        prices /= prices.max()
        pool.setdefault(np.sort(arcs).tobytes(), arcs)
    ordered = np.array([from_root(graph, arcs) for arcs in pool.values()])
    return Pool(ordered, taken / float((loads / graph.capacity).max()))


def from_root(graph: Graph, arcs: Ints) -> Ints:
    """Return the arcs of a tree, parents before children."""
    below: dict[int, list[int]] = {}
    for arc in arcs.tolist():
        below.setdefault(int(graph.tail[arc]), []).append(arc)
    front, found = [graph.root], []
    for rank in front:
        for arc in below.get(rank, []):
            found.append(arc)
            front.append(int(graph.head[arc]))
    return np.array(found, dtype=np.int64)
