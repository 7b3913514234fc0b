"""The orbit linear program: its rows, root by root, as arrays, and one CVXPY model of them.

Sets: A, a group of symmetries of a problem; o, one item (a root with its data) of each orbit of A,
n[o] items long; a, the orbits of edges under A_o, the elements that fix o; d, one rank of each
orbit of A_o on those that want o's data; a', the orbits of edges under A_od.

Variables: W[o, a], share of o's data that *each* edge of a carries; F[o, d, a'], share of what is
in flight to d. Rows (`Block`), for every orbit I of A_od on vertices, with |a'| edges and |I|
vertices:

    sum over a' of |a'| / |I| ([head(a') = I] - [tail(a') = I]) F[o, d, a']
        = [d in I] - [o in I]                                                conservation
    F[o, d, a'] <= W[o, a] where a contains a'                               what is in flight
    sum over o of n[o] nbytes[o] (sum over a of edges of a in i) W[o, a] / (|i| b[i]) <= R

with i the orbits of A on capacity rows. Pairs need no F: W itself is conserved, with what each
rank gets as demand.

Edges into o and out of d are left out, and those on no path from o to d: with duplicates that is
half of them.

An optimum can be averaged over A and is then constant on orbits, so nothing is lost; with any
subgroup of A the program only grows. Orbits are orbits of edges, never pairs of orbits of ends.

The model (`OrbitProgram`) puts the blocks together:

    minimise    R
    subject to  the rows of each block
                sum over blocks of busy[i, a] W[a] <= scale[i] R       for orbits i of capacity rows
                sum over orbits of roots of n[o] x[o] = 1              where roots are free: then
                                                                       conservation has x[o] times
                                                                       its right hand side

and then, with R held at its least, the least sum of cost[a] W[a]. R counts in a unit of time in
which it is near 1; `scale` is 1 but for sensitivities to a little more bandwidth.

Sources: the thesis, LP (4.2) without its axis of time, and section 3.1 for the order of the two
objectives; averaging over a group as in Bödi, Herr and Joswig, Algorithms for highly symmetric
linear and integer programs (Mathematical Programming 137, 2013); chapter 5 of the thesis does it
for the origins, not for destinations and links.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from formulations.engines.orbit_lp.group import Acting, Load, numbered
from formulations.engines.steady_state import FluidGraph
from formulations.solvers import cp
from formulations.solvers.cvxpy_highs import Backend


@dataclass(frozen=True, eq=False)
class Route:
    """What is in flight from an item's root to one destination, or of pairs to all of them.

    Parameters
    ----------
    rank
        The destination, or -1 for all.
    acting
        The group that fixes item and destination.
    edges
        Orbit a' of each edge of the graph, -1 where none is needed.
    balance
        Conservation, shape (orbits of vertices, orbits of edges).
    demand
        Its right hand side, shape (orbits of vertices,).
    part
        Orbit a that contains each a'.
    """

    rank: int
    acting: Acting
    edges: np.ndarray
    balance: sparse.csr_array
    demand: np.ndarray
    part: np.ndarray


@dataclass(frozen=True, eq=False)
class Block:
    """The rows of one orbit of items.

    Parameters
    ----------
    load, item
        Number of the load, and of the representative in it.
    root
        Rank that has it.
    many
        n[o], how many items it stands for.
    nbytes
        Of its data, in bytes.
    free
        Orbit of the root, where roots share the data as they like, else -1.
    spreads
        Whether it has F.
    graph
        What it flows on.
    acting
        The group that fixes it.
    edges
        Orbit a of each edge of the graph, -1 where none is needed.
    count
        Edges of each a.
    paths
        One for each orbit of destinations; of pairs a single one.
    """

    load: int
    item: int
    root: int
    many: int
    nbytes: float
    free: int
    spreads: bool
    graph: FluidGraph
    acting: Acting
    edges: np.ndarray
    count: np.ndarray
    routes: tuple[Route, ...]

    @property
    def columns(self) -> int:
        """Number of its variables."""
        return len(self.count) + sum(len(each.part) for each in self.routes if self.spreads)

    def busy(self, rows: np.ndarray) -> sparse.csr_array:
        """Return us that each orbit of capacity rows is busy with one of each variable.

        Parameters
        ----------
        rows
            Orbit of each capacity row of the graph.

        Returns
        -------
        sparse.csr_array
            Shape (orbits of rows, orbits of edges).
        """
        orbits = int(rows.max()) + 1
        row, edge = self.graph.rows.nonzero()
        used = self.edges[edge] >= 0
        row, edge = row[used], edge[used]
        size = np.bincount(rows, minlength=orbits)
        rate = np.zeros(orbits)
        rate[rows] = self.graph.rates
        table = counted(rows[row], self.edges[edge], (orbits, len(self.count)))
        times = self.many * self.nbytes * 1e-3 / (size * rate)
        return sparse.csr_array(sparse.diags_array(times) @ table)

    def cost(self, per_link: np.ndarray) -> np.ndarray:
        """Return bytes times cost of one of each variable, all its images together."""
        used = self.edges >= 0
        costs = self.graph.costs(per_link)[used]
        each = np.bincount(self.edges[used], costs, minlength=len(self.count))
        return np.asarray(self.many * self.nbytes * each)


def blocks_of(number: int, load: Load, *, graph: FluidGraph, acting: Acting) -> Iterator[Block]:
    """Yield the blocks of a load.

    Parameters
    ----------
    number
        Of the load, in the group.
    load
        What flows.
    graph
        What it flows on, already reversed where the load is.
    acting
        Symmetries of the problem.
    """
    orbits = acting.items(number, load)
    _, first, many = np.unique(orbits, return_index=True, return_counts=True)
    for item, length in zip(first.tolist(), many.tolist(), strict=True):
        fixing = acting.fixing(number, load, item=item)
        vertices, edges = fixing.orbits(graph)
        origin = int(graph.origins[load.roots[item]])
        shares = load.shares(item, len(acting.gpus))
        if load.spreads:
            routes = list(_routes(origin, shares, graph=graph, fixing=fixing))
            some = np.any([each.edges >= 0 for each in routes], axis=0)
            # Images of the paths use the other edges of the same orbits.
            used = np.isin(edges, edges[some])
        else:
            kept = vertices, _renumbered(edges, graph.dst != origin)
            demand = np.zeros(graph.vertices)
            demand[graph.goals] = shares
            demand[origin] -= shares.sum()
            routes = [_route(fixing, -1, graph=graph, orbits=kept, demand=demand)]
            used = routes[0].edges >= 0
        edges = _renumbered(edges, used)
        yield Block(
            load=number,
            item=item,
            root=int(load.roots[item]),
            many=length,
            nbytes=float(load.nbytes[item]),
            free=int(acting.ranks[load.roots[item]]) if load.free else -1,
            spreads=load.spreads,
            graph=graph,
            acting=fixing,
            edges=edges,
            count=np.bincount(edges[used]),
            routes=tuple(replace(each, part=_inside(each.edges, edges)) for each in routes),
        )


def _routes(
    origin: int, shares: np.ndarray, *, graph: FluidGraph, fixing: Acting
) -> Iterator[Route]:
    """Yield one path for each orbit of destinations of an item that spreads."""
    wanting = np.flatnonzero(shares)
    _, first = np.unique(fixing.ranks[wanting], return_index=True)
    for rank in wanting[first].tolist():
        acting, goal = fixing.fixing_rank(rank), int(graph.goals[rank])
        demand = np.zeros(graph.vertices)
        demand[[goal, origin]] = 1.0, -1.0
        vertices, edges = acting.orbits(graph)
        keep = (graph.dst != origin) & (graph.src != goal)
        keep &= _reached(graph.src, graph.dst, vertices, keep=keep, start=origin)[graph.src]
        keep &= _reached(graph.dst, graph.src, vertices, keep=keep, start=goal)[graph.dst]
        yield _route(
            acting, rank, graph=graph, orbits=(vertices, _renumbered(edges, keep)), demand=demand
        )


def _route(
    acting: Acting,
    rank: int,
    *,
    graph: FluidGraph,
    orbits: tuple[np.ndarray, np.ndarray],
    demand: np.ndarray,
) -> Route:
    vertices, edges = orbits
    size = np.bincount(vertices)
    kept = np.flatnonzero(edges >= 0)
    shape = len(size), int(edges.max()) + 1
    entering = counted(vertices[graph.dst[kept]], edges[kept], shape)
    leaving = counted(vertices[graph.src[kept]], edges[kept], shape)
    return Route(
        rank=rank,
        acting=acting,
        edges=edges,
        balance=sparse.csr_array(sparse.diags_array(1 / size) @ (entering - leaving)),
        demand=np.bincount(vertices, demand) / size,
        part=np.empty(0, dtype=np.int64),
    )


def _reached(
    src: np.ndarray, dst: np.ndarray, vertices: np.ndarray, *, keep: np.ndarray, start: int
) -> np.ndarray:
    """Return which vertices can be reached over some edges from one that is alone in its orbit.

    Orbits are reached as a whole, so the search is among orbits.
    """
    many = int(vertices.max()) + 1
    pairs = np.unique(vertices[src[keep]] * many + vertices[dst[keep]])
    ones = np.ones(len(pairs), dtype=np.int8)
    joined = sparse.csr_array((ones, (pairs // many, pairs % many)), shape=(many, many))
    found = csgraph.breadth_first_order(
        joined, int(vertices[start]), directed=True, return_predecessors=False
    )
    reached = np.zeros(many, dtype=bool)
    reached[found] = True
    return np.asarray(reached[vertices])


def _renumbered(edges: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Return the orbits of edges numbered among those that remain, -1 for the others."""
    found = np.full(len(edges), -1)
    found[keep] = numbered(edges[keep])
    return found


def _inside(fine: np.ndarray, coarse: np.ndarray) -> np.ndarray:
    """Return the coarse orbit of each fine one."""
    part = np.empty(int(fine.max()) + 1, dtype=np.int64)
    kept = fine >= 0
    part[fine[kept]] = coarse[kept]
    return part


def counted(row: np.ndarray, column: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    """Return how often each pair of a row and a column occurs."""
    keys, times = np.unique(row * shape[1] + column, return_counts=True)
    place = keys // shape[1], keys % shape[1]
    return sparse.csr_array((times.astype(float), place), shape=shape)


SLACK = 1e-9
"""How much longer than the least time may be taken where cost is least, relative."""

MANY = 5_000
"""Columns from which interior points are faster on pairs; on trees they never are."""

FREE = 1e12
"""More units of time than anything takes."""


class OrbitProgram:
    """The model of some blocks.

    Parameters
    ----------
    blocks
        At least one.
    rows
        Orbit of each capacity row, shape (rows,).
    unit
        µs in which R counts.
    costs
        Cost of a byte on each link, shape (links,), or None.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        rows: np.ndarray,
        unit: float,
        costs: np.ndarray | None = None,
    ) -> None:
        self.blocks, self.rows, self.unit = blocks, rows, unit
        self.busy = sparse.csr_array(sparse.hstack([each.busy(rows) for each in blocks]))
        roots = {each.free: each.many for each in blocks if each.free >= 0}
        self.roots = list(roots)
        self.least = cp.Variable(nonneg=True)
        self.usage = cp.Variable(self.busy.shape[1], nonneg=True)
        self.flow = cp.Variable(sum(_flows(each) for each in blocks), nonneg=True)
        self.share = cp.Variable(len(roots), nonneg=True)
        self.scale = cp.Parameter(
            self.busy.shape[0], nonneg=True, value=np.ones(self.busy.shape[0])
        )
        self.cap: Any = sparse.csr_array(self.busy / unit) @ self.usage <= self.scale * self.least
        self.rules = [*self._balance(), *self._covered(), self.cap]
        if roots:
            self.rules.append(np.array([*roots.values()], dtype=float) @ self.share == 1)
        goal: Any = self.least
        self._phase = [cp.Parameter(nonneg=True, value=value) for value in (1.0, 0.0, FREE)]
        self._value = 1.0
        if costs is not None:
            # One model for both objectives, so that it is compiled once.
            cost = np.concatenate([each.cost(costs) for each in blocks])
            self._value = max(float(cost.max()), 1e-300)
            goal = self._phase[0] * goal + self._phase[1] * ((cost / self._value) @ self.usage)
            self.rules.append(self.least <= self._phase[2])
        self.model = cp.Problem(cp.Minimize(goal), self.rules)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        every = self.usage.size + self.flow.size + self.share.size + 1
        return every, sum(int(each.size) for each in self.rules)

    def fastest(self, backend: Backend, time_limit: float | None = None) -> float:
        """Return the least time in µs, and leave usage, flows and prices in the model.

        Raises
        ------
        Infeasible
            If some data cannot arrive.
        LimitReached
            If the time limit, in seconds, came first.
        """
        self._set(1.0, 0.0, FREE)
        return self._solved(backend, time_limit) * self.unit

    @property
    def prices(self) -> np.ndarray:
        """Dual of each orbit of capacity rows; they add up to 1."""
        return np.asarray(np.abs(self.cap.dual_value))

    def cheapest(self, backend: Backend, time: float, *, time_limit: float | None = None) -> float:
        """Return the least cost of all that take `time` µs, in bytes times cost.

        Raises
        ------
        LimitReached
            If the time limit, in seconds, came first.
        """
        self._set(0.0, 1.0, time / self.unit * (1 + SLACK))
        return self._solved(backend, time_limit) * self._value

    def _solved(self, backend: Backend, time_limit: float | None) -> float:
        large = not self.flow.size and self.usage.size > MANY
        method = "ipm" if large else "simplex"
        return backend.solve(self.model, method=method, time_limit=time_limit).objective

    def _set(self, *values: float) -> None:
        for parameter, value in zip(self._phase, values, strict=True):
            parameter.value = value

    def values(self) -> list[tuple[np.ndarray, list[np.ndarray]]]:
        """Return W of each block, and F of each of its paths."""
        found, usage, flow = [], 0, 0
        for block in self.blocks:
            mine = np.asarray(self.usage.value)[usage : usage + len(block.count)]
            usage += len(block.count)
            flows = []
            for route in block.routes if block.spreads else ():
                flows.append(np.asarray(self.flow.value)[flow : flow + len(route.part)])
                flow += len(route.part)
            found.append((mine, flows))
        return found

    def _balance(self) -> list[Any]:
        """Conservation: of F, or of W where nothing is copied."""
        on_flow = [route.balance for each in self.blocks if each.spreads for route in each.routes]
        rules = []
        if on_flow:
            demand = self._demands([each for each in self.blocks if each.spreads])
            rules.append(sparse.csr_array(sparse.block_diag(on_flow)) @ self.flow == demand)
        if any(not each.spreads for each in self.blocks):
            empty = [
                sparse.csr_array((0, len(each.count))) if each.spreads else each.routes[0].balance
                for each in self.blocks
            ]
            dealt = [each for each in self.blocks if not each.spreads]
            demand = np.concatenate([each.routes[0].demand for each in dealt])
            rules.append(sparse.csr_array(sparse.block_diag(empty)) @ self.usage == demand)
        return rules

    def _demands(self, blocks: Sequence[Block]) -> Any:
        """Return the right hand sides of conservation of F, of free roots times their shares."""
        fixed = np.concatenate(
            [route.demand * (each.free < 0) for each in blocks for route in each.routes]
        )
        if not self.roots:
            return fixed
        parts = [
            sparse.csr_array(np.outer(route.demand, np.array(self.roots) == each.free))
            for each in blocks
            for route in each.routes
        ]
        return fixed + sparse.csr_array(sparse.vstack(parts)) @ self.share

    def _covered(self) -> list[Any]:
        """F is at most W."""
        if not self.flow.size:
            return []
        place, first = [], 0
        for block in self.blocks:
            place += [route.part + first for route in block.routes if block.spreads]
            first += len(block.count)
        column = np.concatenate(place)
        chosen = sparse.csr_array(
            (np.ones(len(column)), (np.arange(len(column)), column)),
            shape=(len(column), self.usage.size),
        )
        return [self.flow <= chosen @ self.usage]


def _flows(block: Block) -> int:
    return sum(len(each.part) for each in block.routes) if block.spreads else 0
