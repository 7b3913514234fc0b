"""The time-free linear program of a fluid optimum, written down plainly, and what bytes cost in it.

Sets: capacity rows i, a link or a shared limit, with bandwidth b[i]; the sides of the problem
(`formulations.engines.fluid_lp.multicast`) with their edges e, groups g and usage w[e, g].
Variable: R, the time.

    minimise    R
    subject to  the rows of each side
                sum over sides, g and e in i of w[e, g] <= R b[i]

which is the thesis' LP (4.2) without its axis of time, or with it where `steps` limits the hops:
there usage is added up over all steps (4.1). Then, with R held at its least, the weighted data

    minimise    sum over sides, g and e of cost[e] w[e, g].

Sums (reduce, reduce-scatter) are groups of the reversed cluster, where what adds copies: the
thesis' time reversal, section 3.2, with V_r in the place of V_c. Duplicates are made on the
reversal; the reversal of a graph with duplicates would let switches copy. A sum for everybody
(all-reduce) is added up at the ranks and spread from there: the share x[o] that rank o adds up is
a variable and both halves meet in the capacity rows, the last program of section 4.2 in its static
form, with sum over o of x[o] = 1. Any number of collectives at once are simply more groups.

With `copies` = ``exact`` R is the optimum where every device that copies is a destination (then
usage decomposes into trees, by Edmonds' theorem); a memory that copies makes it a bound, and then
``subsets`` is exact, for few destinations (`formulations.engines.fluid_lp.multicast`). ``free``
(3.10), ``relaxed`` (3.13) and ``counted`` (3.14) are bounds: free <= relaxed <= counted, relaxed <=
exact.

It is the check of the faster engines, and solves what is small: an all-gather of 16 GPUs, an
all-to-all of a hundred.

Costs are the secondary objective of the thesis (sections 2.4 and 3.1; `link_costs`). Among plans of
the best rate the one that sends the least weighted data is wanted: the sum over links of bytes
times cost. Costs belong to a question, not to a cluster, so they are arrays in the order of the
links of a topology, and each has a name.

``gpus``
    What GPUs upload and download: 1 for each end of a link that is a GPU. The thesis writes
    c = 1 "for edges incident to a GPU" and counts data "uploaded to" and downloaded "from GPUs";
    a link between two GPUs is both, so it costs 2, as it would with a switch in the middle.
``ports``
    The same, and 1 for each host that a link leaves or enters. The objectives in tables 6.3 to 6.8
    of the thesis count this much, by inference: with ``gpus`` alone, an all-to-all of 2 nodes
    "using only NVLink" would cost 704 and not 960, which is 112 pairs in a host at 2, 16 along a
    rail at 4, 112 across rails at 6. A link from a GPU to a rail stands for the path GPU, PCIe
    switch, port, rail there, of which the first and the last part cost 1.
``links``
    Every link costs 1: bytes times hops.
``none``
    Nothing costs anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Literal, get_args

import numpy as np

from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.result import ModelSize
from ccl.topology import Topology
from formulations.core.refusals import host_numbers
from formulations.engines.fluid_lp.multicast import Amounts, Copies, Side, labelled, spread, stream
from formulations.engines.reverse_time import adding
from formulations.engines.steady_state import (
    Demands,
    FluidGraph,
    Group,
    demands_of,
    graph_of,
    in_steps,
    refusal,
    without_copies,
)
from formulations.solvers import cp
from formulations.solvers.cvxpy_highs import Backend

CostKind = Literal["gpus", "ports", "links", "none"]
"""The costs that have a name."""

COST_KINDS: tuple[CostKind, ...] = get_args(CostKind)

COST_ROW = {
    "label": "Of the best, least",
    "help": "gpus: what GPUs upload and download; ports: and what hosts do; "
    "links: bytes times hops; none: any",
}
"""The row of a form that selects one of them."""


def default_costs(topology: Topology) -> np.ndarray:
    """Return the cost of a byte on each link when nothing else is said: that of GPUs' ends.

    Returns
    -------
    np.ndarray
        Shape (links,), in the order of the links; no unit.
    """
    return link_costs(topology, "gpus")


def link_costs(topology: Topology, kind: CostKind) -> np.ndarray:
    """Return the cost of a byte on each link.

    Returns
    -------
    np.ndarray
        Shape (links,), in the order of the links; no unit.

    Raises
    ------
    ProblemError
        If there are no costs of that name.
    """
    if kind not in COST_KINDS:
        raise ProblemError(f"there are no costs called {kind!r}; there are {', '.join(COST_KINDS)}")
    gpu = np.array([each.kind == "gpu" for each in topology.devices], dtype=float)
    host = host_numbers(topology)
    src, dst = topology.ends
    if kind in ("links", "none"):
        return np.full(len(src), float(kind == "links"))
    ends = gpu[src] + gpu[dst]
    if kind == "gpus":
        return np.asarray(ends)
    crossed = (host[src] != host[dst]) * ((host[src] >= 0) * 1.0 + (host[dst] >= 0))
    return np.asarray(ends + crossed)


SLACK = 1e-9
"""Share by which R may exceed its least while the weighted data is minimised."""

NOTHING = 1e-8
"""Share of the largest group below which what a free root adds up is rounding."""

MICRO = 1e-3
"""µs that a byte takes at 1 GB/s."""

MANY = 5_000
"""Columns from which interior points are faster on streams; on trees they never are."""


@dataclass(frozen=True, eq=False)
class Part:
    """What a side came to, in bytes.

    Parameters
    ----------
    graph
        The graph it is on; of sums, a graph of the reversed cluster.
    groups
        Its groups; of streams one for each root, with all its destinations.
    reduces
        Whether its groups are added up.
    w
        Bytes of each group on each edge, shape (edges, groups).
    f
        The same by commodity, shape (edges, commodities); None for streams.
    owner, goal
        Group and destination of each commodity, shape (commodities,); with ``subsets`` the
        destinations as bits, in the order of the group's others.
    split
        With ``subsets``, bytes that each copying vertex splits, shape (copying vertices, splits).
    """

    graph: FluidGraph
    groups: tuple[Group, ...]
    reduces: bool
    w: np.ndarray
    f: np.ndarray | None
    owner: np.ndarray
    goal: np.ndarray
    split: np.ndarray | None

    @property
    def held(self) -> list[int]:
        """Numbers of the groups that have data; of free roots, some add up nothing."""
        return [k for k, each in enumerate(self.groups) if each.nbytes > NOTHING * self.most]

    @property
    def most(self) -> float:
        """Bytes of the largest group."""
        return max(each.nbytes for each in self.groups)

    @property
    def labelled(self) -> bool:
        """Whether its commodities are labels, so that trees come out of it."""
        return self.f is not None and self.f.shape[1] == sum(
            2 ** len(each.others) - 1 for each in self.groups
        )


@dataclass(frozen=True, eq=False)
class FluidSolution:
    """An optimal solution of the plain program.

    Parameters
    ----------
    makespan
        R in µs for the problem's size.
    cost
        Weighted data in bytes.
    usage
        Bytes on each capacity row: links in their order, then shared limits, shape (rows,).
    duals
        How much of the bottleneck each capacity row is, shape (rows,); they add up to 1. Where
        the optimum is not degenerate, the throughput grows by this many per cent for each per cent
        of the row's bandwidth.
    parts
        What each side carries.
    shares
        Bytes that each rank adds up of a sum for everybody, shape (ranks,); None without one.
    size
        Of the compiled model.
    """

    makespan: float
    cost: float
    usage: np.ndarray
    duals: np.ndarray
    parts: tuple[Part, ...]
    shares: np.ndarray | None
    size: ModelSize


def plain_refusal(problem: Problem) -> str | None:
    """Describe what no side can hold, or None."""
    if problem.windows:
        return "links have less bandwidth for a time, and a steady state knows no time"
    for each in problem.topology.devices:
        if each.kind == "gpu" and problem.collective.reduces and not each.reduces:
            return f"{each.name} cannot reduce, and here every GPU adds up what it receives"
        if each.kind == "gpu" and not each.copies:
            return f"{each.name} stores and cannot copy, and here every GPU copies"
    return refusal(problem)


def solve_plain(
    problem: Problem,
    *,
    copies: Copies = "exact",
    steps: int | None = None,
    costs: np.ndarray | None = None,
    joined: bool = False,
    backend: Backend | None = None,
    time_limit: float | None = None,
) -> FluidSolution:
    """Return the least time and, at that time, the least weighted data.

    Parameters
    ----------
    problem
        Any number of collectives.
    copies
        What holds back devices that may not copy.
    steps
        Most hops that any data takes, or None for any number.
    costs
        Cost of a byte on each link, in their order; `default_costs` if None.
    joined
        Whether what is added up keeps away from what stores and cannot add, where contributions
        would lie side by side: so that in-trees can say it.
    backend
        The solver.
    time_limit
        Seconds for each of the two solves.

    Raises
    ------
    ProblemError
        If no fluid model can take the problem.
    Infeasible
        If some data cannot reach its destination in so many steps.
    LimitReached
        If the time limit came first.
    """
    reason = plain_refusal(problem)
    if reason is not None:
        raise ProblemError(f"the plain program cannot take {problem.collective.kind}: {reason}")
    per_link = default_costs(problem.topology) if costs is None else np.asarray(costs, float)
    model = Model(problem, copies=copies, steps=steps, costs=per_link, joined=joined)
    return model.solve(backend or Backend(), time_limit)


class Model:
    """The program, compiled once for both objectives.

    Parameters
    ----------
    problem
        What `plain_refusal` takes.
    copies, steps, joined
        As in `solve_plain`.
    costs
        Cost of a byte on each link, shape (links,).
    graphs
        The graphs of the cluster and of its reversal on which groups are copied, where not those
        that `copies` implies; without steps.

    Raises
    ------
    ProblemError
        If nothing has to be sent, or there are too many labels.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        copies: Copies,
        steps: int | None,
        costs: np.ndarray,
        joined: bool = False,
        graphs: tuple[FluidGraph, FluidGraph] | None = None,
    ) -> None:
        self._groups = _Groups(demands_of(problem), len(problem.topology.ranks))
        if not self._groups.unit:
            raise ProblemError(
                f"{problem.collective.kind} moves nothing: all holders are destinations already"
            )
        bare = self.graphs(problem, joined=joined)
        if graphs is None and copies == "exact":
            graphs = without_copies(bare[0]), without_copies(bare[1])
        self._sides = self._groups.sides(bare, graphs or bare, copies=copies, steps=steps)
        self._rates = bare[0].rates
        self._time = cp.Variable(nonneg=True)
        sides = [each for each, _ in self._sides]
        self._load = _added([cp.Constant(each.graph.rows) @ each.total for each in sides])
        self._fits: cp.Constraint = self._load <= self._rates * self._time
        self._cost = _added([cp.Constant(each.graph.costs(costs)) @ each.total for each in sides])
        self._costs = costs
        self._most = cp.Parameter(nonneg=True)
        self._weights = cp.Parameter(nonneg=True), cp.Parameter(nonneg=True)
        self._program = cp.Problem(
            cp.Minimize(self._weights[0] * self._time + self._weights[1] * self._cost),
            [
                self._fits,
                self._time <= self._most,
                *self._groups.rules,
                *(rule for each in sides for rule in each.rules),
            ],
        )

    @staticmethod
    def graphs(problem: Problem, *, joined: bool) -> tuple[FluidGraph, FluidGraph]:
        """Return the graphs of a cluster and of its reversal, without duplicates."""
        apart = joined and problem.collective.reduces
        sums = adding(problem).topology if apart else problem.topology
        return graph_of(problem.topology), graph_of(sums.reversed())

    def solve(self, backend: Backend, time_limit: float | None = None) -> FluidSolution:
        """Minimise the time, then the cost.

        Raises
        ------
        Infeasible
            If there is no solution.
        LimitReached
            If the time limit came first.
        """
        streams = all(each.f is None for each, _ in self._sides)
        columns = sum(int(each.w.size) for each, _ in self._sides)
        method = "ipm" if streams and columns > MANY else "choose"
        time, cost = self._weights
        time.value, cost.value = 1.0, 0.0
        self._most.value = 2 * self._groups.most / min(self._rates)
        size = backend.solve(self._program, time_limit=time_limit, method=method).size
        least = _value(self._time).item()
        duals = np.maximum(np.asarray(self._fits.dual_value, dtype=float), 0.0) * self._rates
        if self._costs.any():
            time.value, cost.value = 0.0, 1.0
            self._most.value = least * (1 + SLACK)
            backend.solve(self._program, time_limit=time_limit, method=method)
        unit, shares = self._groups.unit, self._groups.shares
        return FluidSolution(
            makespan=least * unit * MICRO,
            cost=unit * sum(_cost(side, self._costs) for side, _ in self._sides),
            usage=np.asarray(self._load.value) * unit,
            duals=duals,
            parts=tuple(self._part(side, reduces=reduces) for side, reduces in self._sides),
            shares=None if shares is None else _value(shares) * unit,
            size=size,
        )

    def _part(self, side: Side, *, reduces: bool) -> Part:
        """Read what a side carries; groups of free roots have what their roots add up."""
        unit, groups, shares = self._groups.unit, side.groups, self._groups.shares
        if shares is not None and groups[0] in self._groups.free:
            held = _value(shares) * unit
            groups = tuple(replace(each, nbytes=float(held[each.root])) for each in groups)
        return Part(
            side.graph,
            groups,
            reduces,
            _value(side.w) * unit,
            None if side.f is None else _value(side.f) * unit,
            side.owner,
            side.goal,
            None if side.split is None else _value(side.split) * unit,
        )


class _Groups:
    """The groups of a problem as sides, in units of the largest."""

    def __init__(self, demands: Demands, ranks: int) -> None:
        self._demands = demands
        groups = (*demands.spreads, *demands.sums)
        self.unit = max([each.nbytes for each in groups] + [demands.free])
        every = range(ranks)
        self.free = [Group(o, tuple(d for d in every if d != o), demands.free) for o in every]
        self.free = self.free if demands.free else []
        self.shares = cp.Variable(ranks, nonneg=True) if self.free else None
        self.rules: list[cp.Constraint] = []
        if self.shares is not None:
            self.rules.append(np.ones(ranks) @ self.shares == demands.free / self.unit)

    @property
    def most(self) -> float:
        """What no link has to carry more of."""
        every = (*self._demands.spreads, *self._demands.sums, *self.free, *self.free)
        return sum(each.nbytes * len(each.others) for each in every) / self.unit

    def sides(
        self,
        plain: tuple[FluidGraph, FluidGraph],
        copying: tuple[FluidGraph, FluidGraph],
        *,
        copies: Copies,
        steps: int | None,
    ) -> list[tuple[Side, bool]]:
        """Return the sides on a cluster and on its reversal, and whether they reduce."""
        sides: list[tuple[Side, bool]] = []
        for reduces, groups in enumerate((self._demands.spreads, self._demands.sums)):
            # With labels all data has trees, but where nothing at all is copied or added.
            trees = copies == "subsets" and not self._demands.only_pairs
            several = [each for each in groups if trees or len(each.others) > 1]
            pairs = [each for each in groups if each not in several]
            graph = in_steps(copying[reduces], steps)
            if several:
                amounts = np.array([each.nbytes for each in several]) / self.unit
                sides.append((_spread(graph, several, amounts, copies=copies), bool(reduces)))
            if pairs:
                sides.append(
                    (stream(in_steps(plain[reduces], steps), pairs, self.unit), bool(reduces))
                )
            if self.shares is not None:
                side = _spread(graph, self.free, self.shares, copies=copies)
                sides.append((side, bool(reduces)))
        return sides


def _value(variable: cp.Variable) -> np.ndarray:
    return np.asarray(variable.value, dtype=float)


def _cost(side: Side, costs: np.ndarray) -> float:
    """Return what the solution of a side costs, in its unit."""
    return float(_value(side.w).sum(axis=1) @ side.graph.costs(costs))


def _spread(
    graph: FluidGraph, groups: Sequence[Group], amounts: Amounts, *, copies: Copies
) -> Side:
    if copies == "subsets":
        return labelled(graph, groups, amounts)
    return spread(graph, groups, amounts, copies=copies)


def _added(terms: list[cp.Expression]) -> cp.Expression:
    return reduce(add, terms)
