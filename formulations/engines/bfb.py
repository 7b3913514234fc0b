"""Breadth-first broadcasts: a linear program for each step, and the trees that its shares are.

The linear programs (`steps_of`) are those of Zhao et al. (BFB, arXiv 2202.03356): from whom each
rank has which part of each shard. The distance of two ranks is how many links lie between them at
least. The ranks at one distance t from a source have its shard in one step, in parts, over the last
hops of shortest paths. With x[v, m], the part of the shard of v that takes path m into rank u(m),
and z[g], the µs of a group of rows that share no part with others:

    minimise    sum over g of z[g]
    sum over m into u of x[v, m] = 1                                       each v, u at distance t
    sum over v, m over row i of bytes[v] x[v, m] / rate[i] <= z[g(i)]      each link and limit i

Rows are links and shared limits that bind. Where paths are links, the rows into a rank are a group
and this is the paper's program of that rank and step; paths over switches share ports, and groups
are as large as these make them. The step takes the largest z and the latency of its longest path.

The trees (`trees_of`) are of a broadcast in parts: every point of a shard takes one path into each
rank. The parts of a shard that a rank has from its neighbours are laid on the line from 0 to 1 one
after the other. A point x of the shard takes into each rank the path in whose interval x lies; as
every neighbour that sends has the whole shard one step before, these paths are a tree. Between two
ends of intervals it is the same tree, so the intervals of all ranks cut the shard into its trees.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, shortest_path

from ccl.errors import Infeasible
from ccl.plans import Tree
from ccl.result import ModelSize
from ccl.topology import binding_limits
from formulations.core.refusals import numbers
from formulations.engines.epoch_grid.relay_paths import no_path
from formulations.engines.interval_overlay import CLOSE, exact_parts, refined
from formulations.engines.list_scheduling.timed import Transfers
from formulations.solvers import cp
from formulations.solvers.cvxpy_highs import Backend

Parts = dict[tuple[int, int], list[tuple[int, Fraction]]]
"""For a source and a rank, the transfers into the rank and what part of the shard takes each."""


@dataclass(frozen=True)
class Steps:
    """The steps of all broadcasts.

    Parameters
    ----------
    parts
        Who has what from whom; the parts of a shard add up to 1.
    distance
        Links from rank to rank, shape (ranks, ranks).
    latencies, transmissions
        µs of the longest path and of the busiest row of each step.
    size
        Size of the largest program, None where nothing was to be chosen.
    """

    parts: Parts
    distance: np.ndarray
    latencies: tuple[float, ...]
    transmissions: tuple[float, ...]
    size: ModelSize | None

    @property
    def makespan(self) -> float:
        """µs of all steps one after the other."""
        return sum(self.latencies) + sum(self.transmissions)


def steps_of(
    transfers: Transfers,
    nbytes: dict[int, float],
    *,
    backend: Backend,
    stop: Callable[[int], float | None],
) -> Steps:
    """Solve the program of every step.

    Parameters
    ----------
    transfers
        Paths between ranks.
    nbytes
        Bytes of each source, by its rank.
    backend
        The solver.
    stop
        Called with the number of each step; returns the seconds left or None, and may raise.

    Raises
    ------
    Infeasible
        If no paths lead to a rank.
    SolveError
        If the solver finds nothing, or not in time.
    """
    ranks = _Ranks(transfers)
    sources = np.array(sorted(nbytes))
    amount = np.array([nbytes[source] for source in sources.tolist()])
    far = ranks.distance[sources]
    if not np.isfinite(far).all():
        raise Infeasible(
            no_path(transfers.topology.ranks[int(np.argwhere(~np.isfinite(far))[0][1])])
        )
    parts: Parts = {}
    latencies, transmissions, size = [], [], None
    last = far[:, ranks.src] + ranks.links == far[:, ranks.dst]
    for step, distance in enumerate(np.unique(far[far > 0]).tolist(), 1):
        source, transfer = np.nonzero(last & (far[:, ranks.dst] == distance))
        left = stop(step)
        program = _Step(
            transfers, source * len(transfers.topology.ranks) + ranks.dst[transfer], transfer
        )
        found = program.solve(amount[source], backend=backend, time_limit=left)
        for pair, taken in found.items():
            v, u = divmod(pair, len(transfers.topology.ranks))
            parts[int(sources[v]), u] = taken
        used = sorted({path for taken in found.values() for path, _ in taken})
        latencies.append(float(transfers.latency[used].max()))
        transmissions.append(program.makespan)
        if program.size is not None and (size is None or program.size.variables > size.variables):
            size = program.size
    return Steps(parts, ranks.distance, tuple(latencies), tuple(transmissions), size)


class _Ranks:
    """Transfers between ranks, and how many links lie between any two."""

    def __init__(self, transfers: Transfers) -> None:
        topology = transfers.topology
        rank = np.full(len(topology.devices), -1)
        rank[[topology.index[name] for name in topology.ranks]] = np.arange(len(topology.ranks))
        self.src, self.dst = rank[transfers.src], rank[transfers.dst]
        self.links = np.diff(transfers.first)
        near = np.full((len(topology.ranks), len(topology.ranks)), np.inf)
        np.minimum.at(near, (self.src, self.dst), self.links)
        self.distance = np.asarray(shortest_path(near))


class _Step:
    """The program of one step; entries are pairs of a source and a rank, each with a transfer."""

    def __init__(self, transfers: Transfers, pair: np.ndarray, transfer: np.ndarray) -> None:
        self.transfers, self.transfer = transfers, transfer
        self.pairs, self.pair = np.unique(pair, return_inverse=True)
        self.makespan = 0.0
        self.size: ModelSize | None = None
        self.crossed, self.rates = _rows(transfers)

    def solve(
        self, nbytes: np.ndarray, *, backend: Backend, time_limit: float | None
    ) -> dict[int, list[tuple[int, Fraction]]]:
        """Return the transfers of each pair with their parts; `nbytes` are those of the entries."""
        many = len(self.transfer)
        into: Any = sparse.csr_array((np.ones(many), (self.pair, np.arange(many))))
        loads: Any = self.crossed[:, self.transfer] @ sparse.diags_array(nbytes)
        loads = sparse.csr_array(sparse.diags_array(1e-3 / self.rates) @ loads)
        part = np.ones(many)
        if many > len(self.pairs):
            part = self._solved(into, loads, backend, time_limit)
        self.makespan = float((loads @ part).max())
        taken: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
        for place in np.flatnonzero(part > CLOSE).tolist():
            pair = int(self.pairs[self.pair[place]])
            taken[pair].append((int(self.transfer[place]), float(part[place])))
        exact = {pair: exact_parts([part for _, part in parts]) for pair, parts in taken.items()}
        return {
            pair: [(transfer, part) for (transfer, _), part in zip(taken[pair], parts, strict=True)]
            for pair, parts in exact.items()
        }

    def _solved(
        self, into: Any, loads: Any, backend: Backend, time_limit: float | None
    ) -> np.ndarray:
        used = np.flatnonzero(np.diff(loads.indptr))
        loads = loads[used]
        unit = float(loads.max())
        rows = sparse.vstack([into, loads])
        _, label = connected_components(sparse.csr_array(rows @ rows.T), directed=False)
        group = label[into.shape[0] :]
        groups, which = np.unique(group, return_inverse=True)
        of_group: Any = sparse.csr_array((np.ones(len(used)), (np.arange(len(used)), which)))
        x = cp.Variable(len(self.transfer), nonneg=True)
        z = cp.Variable(len(groups), nonneg=True)
        model = cp.Problem(
            cp.Minimize(np.ones(len(groups)) @ z),
            [into @ x == 1, (loads / unit) @ x <= of_group @ z],
        )
        self.size = backend.solve(model, time_limit=time_limit, method="simplex").size
        return np.asarray(np.clip(np.asarray(x.value), 0.0, 1.0))


def _rows(transfers: Transfers) -> tuple[Any, np.ndarray]:
    """Return how often each transfer crosses each link and limit, and their GB/s."""
    topology = transfers.topology
    ones = np.ones(len(transfers.link))
    shape = (len(topology.links), len(transfers))
    links: Any = sparse.csr_array((ones, (transfers.link, transfers.of_link)), shape=shape)
    rows, rates = [links], [each.bandwidth for each in topology.links]
    for limit in binding_limits(topology):
        rows.append(sparse.csr_array(links[numbers(topology, limit)].sum(axis=0)[None, :]))
        rates.append(limit.bandwidth)
    return sparse.csr_array(sparse.vstack(rows)), np.array(rates)


def trees_of(transfers: Transfers, steps: Steps) -> tuple[Tree, ...]:
    """Return the trees of all sources; the weights of each add up to 1."""
    sources = sorted({source for source, _ in steps.parts})
    return tuple(tree for source in sources for tree in _of_root(transfers, steps, source))


def _of_root(transfers: Transfers, steps: Steps, source: int) -> list[Tree]:
    ranks = [
        int(rank)
        for rank in np.argsort(steps.distance[source], kind="stable")
        if (source, int(rank)) in steps.parts
    ]
    taken = refined([steps.parts[source, rank] for rank in ranks])
    return [
        Tree(source, tuple(transfers.routes[transfer] for transfer in paths), weight)
        for paths, weight in taken.items()
    ]
