"""Programs of the thesis that no formulation solves: figures of its text, and of its toys.

All-reduce as the thesis tries it first (section 4.2) are toys, to compare two halves with:
`usage_bound` is its first relaxation. Sets: pairs (o, d) of ranks, edges e. Variables, all >= 0:
f[e, o, d], w[e], R.

    minimise    R
    subject to  f[., o, d] is a flow of the size from o to d
                w[e] >= f[e, o, d]
                sum over e in i of w[e] <= 1000 R b[i]          each capacity row i

All contributions on an edge count once, as if they were always added up and never copied: a bound,
and a weak one, as the thesis says. (It writes w[e, o] in the rows of capacity, and means w[e].)

`steps_cost` is program (4.4), whole data in T steps of s µs, subsets of ranks enumerated. Sets:
edges e of the network over time, non-empty subsets S of ranks. Variables: w[e, S], binary, whether
the sum of exactly the contributions of S crosses e.

    minimise    sum over e and S of cost[e] size w[e, S]
    subject to  w[e, S] <= sum over e' into v and S' within S with o in S' of w[e', S']
                                        e out of v = (v, t > 0) that adds; each S, o in S   (4.3)
                w[e, S] <= sum over e' into v of w[e', S]   e out of v that copies and cannot add
                sum of w[., S] out of v = sum of w[., S] into v            v can do neither
                sum over S, and e out of v, of w[e, S] <= 1     v adds and cannot copy; v along the
                path w[e, S] = 0 for e out of (v, 0), but for S = {v}
                sum over e into (d, T) and S with o in S of w[e, S] = 1           each o, d
                sum over S, and e in i, of size w[e, S] <= 1000 s b[i]            each i and step

It is no exact program either: (4.3) requires that every contribution of S comes, and two sums that
both contain it may be added, which is right for a maximum and wrong for a sum. For fractions it
says nothing, which is why the thesis turns to two halves (`formulations.engines.fluid_lp.plain`).

Decisions. Throughout the thesis delta+ is what enters and delta- what leaves, as (3.2) and (3.3)
have it; read backwards (4.3) would require that what comes had been sent. "w[e, {o}] = 1 for
e out of o" would make every GPU send over each of its links at once; here only {o} may leave, and
need not. The row "into = out" stands there for all that cannot add, so no memory could copy; here
for what can neither. The flows f of (4.4) are left out: in a network over time (4.3) and the rows
at (d, T) lead back to every origin. One w for a device that adds and cannot copy is said here, and
nowhere there.

`fluid_steps` is LP (3.10)[s, T], the steps of `formulations.engines.fluid_lp.stepwise` for a fluid:
w is free, and data is groups.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from scipy import sparse

from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.topology import Topology
from formulations.engines.fluid_lp.multicast import product, spread
from formulations.engines.fluid_lp.plain import default_costs
from formulations.engines.fluid_lp.stepwise import PER_MICRO, in_each_step
from formulations.engines.steady_state import (
    FluidGraph,
    demands_of,
    graph_of,
    in_steps,
    without_copies,
)
from formulations.solvers import cp
from formulations.solvers.cvxpy_highs import Backend

FEW = 4
"""Most ranks of which all subsets are listed."""


def usage_bound(topology: Topology, size: float, *, backend: Backend | None = None) -> float:
    """Return what the first relaxation says of an all-reduce, in µs.

    Parameters
    ----------
    topology
        Where it runs.
    size
        Bytes of the vector.
    backend
        The solver.
    """
    graph = graph_of(topology)
    pairs = np.array(list(permutations(range(len(topology.ranks)), 2)))
    ends = np.zeros((graph.vertices, len(pairs)))
    ends[graph.goals[pairs[:, 1]], np.arange(len(pairs))] += 1.0
    ends[graph.origins[pairs[:, 0]], np.arange(len(pairs))] -= 1.0
    f = cp.Variable((graph.edges, len(pairs)), nonneg=True)
    w = cp.Variable((graph.edges, 1), nonneg=True)
    time = cp.Variable(nonneg=True)
    rules = [
        product(graph.incidence, f) == ends,
        f <= w @ np.ones((1, len(pairs))),
        product(graph.rows, w) @ np.ones(1) <= graph.rates * time,
    ]
    found = (backend or Backend()).solve(cp.Problem(cp.Minimize(time), rules))
    return found.objective * size / PER_MICRO


def steps_cost(
    topology: Topology,
    size: float,
    *,
    steps: int,
    duration: float,
    costs: np.ndarray | None = None,
    backend: Backend | None = None,
) -> float:
    """Return the least weighted data of a whole all-reduce in so many steps, by (4.4).

    Parameters
    ----------
    topology
        Where it runs; few GPUs.
    size
        Bytes of the vector, which is never split.
    steps
        T.
    duration
        s in µs; latencies are not counted.
    costs
        Cost of a byte on each link; `default_costs` if None.
    backend
        The solver.

    Raises
    ------
    ProblemError
        If there are too many GPUs.
    Infeasible
        If so many steps are too few.
    """
    ranks = len(topology.ranks)
    if ranks > FEW:
        raise ProblemError(
            f"{topology} has {ranks} GPUs, whose subsets are listed here; up to {FEW} are few"
        )
    graph = in_steps(graph_of(topology), steps)
    subsets = 2**ranks - 1
    w = cp.Variable((graph.edges, subsets), boolean=True)
    per_link = default_costs(topology) if costs is None else costs
    most = np.tile(graph.rates, steps) * duration * PER_MICRO / size
    rules = [
        *_at_vertices(graph, w, ranks),
        *_at_ends(graph, w, ranks),
        product(in_each_step(graph), w) @ np.ones(subsets) <= most + 1e-9,
    ]
    cost = graph.costs(per_link) @ w @ np.ones(subsets)
    found = (backend or Backend()).solve(cp.Problem(cp.Minimize(cost), rules))
    return found.objective * size


def _at_vertices(graph: FluidGraph, w: cp.Variable, ranks: int) -> list[cp.Constraint]:
    """Return what may leave each vertex after the first step, given what came."""
    devices = graph.topology.devices
    adds = np.array([each.reduces for each in devices])[graph.device]
    late = graph.step > 0
    into, out = _ends(graph, graph.dst), _ends(graph, graph.src)
    # For each edge what came to the vertex that it leaves, (edges, edges).
    before = out.T @ into
    rules: list[cp.Constraint] = []
    leaves = late[graph.src]
    for rank in range(ranks):
        within, without = _within(ranks, rank)
        chosen = np.flatnonzero(leaves & adds[graph.src])
        came = product(before[chosen], w) @ within
        rules.append(w[chosen] @ without <= came @ without)
    chosen = np.flatnonzero(leaves & ~adds[graph.src] & graph.copies[graph.src])
    if len(chosen):
        rules.append(w[chosen] <= product(before[chosen], w))
    plain = np.flatnonzero(late & ~adds & ~graph.copies & (graph.step < graph.steps))
    if len(plain):
        rules.append(product(into[plain], w) == product(out[plain], w))
    single = np.flatnonzero(late & adds & ~graph.copies)
    if len(single):
        rules.append(product(out[single], w) @ np.ones(w.shape[1]) <= 1)
    return rules


def _at_ends(graph: FluidGraph, w: cp.Variable, ranks: int) -> list[cp.Constraint]:
    """Return what leaves at the start and what is there at the end."""
    first = np.flatnonzero(graph.step[graph.src] == 0)
    allowed = np.zeros((len(first), w.shape[1]))
    for rank in range(ranks):
        allowed[graph.src[first] == graph.origins[rank], (1 << rank) - 1] = 1.0
    masks = np.arange(1, 2**ranks)
    holds = (masks[:, None] >> np.arange(ranks) & 1).astype(float)
    arrived = product(_ends(graph, graph.dst)[graph.goals], w)
    return [w[first] <= allowed, arrived @ holds == 1]


def _within(ranks: int, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which subsets lie within which and have a rank, and which have it, as matrices."""
    masks = np.arange(1, 2**ranks)
    has = (masks >> rank & 1).astype(bool)
    inside = (masks[:, None] & ~masks[None, :]) == 0
    return (inside & has[:, None]).astype(float), np.diag(has.astype(float))[:, has]


def _ends(graph: FluidGraph, vertices: np.ndarray) -> sparse.csr_array:
    """Return which edges have which of their ends where, shape (vertices, edges)."""
    numbers = np.arange(graph.edges)
    place = vertices, numbers
    return sparse.csr_array((np.ones(graph.edges), place), shape=(graph.vertices, graph.edges))


def fluid_steps(
    problem: Problem,
    steps: int,
    duration: float,
    *,
    costs: np.ndarray | None = None,
    backend: Backend | None = None,
) -> float:
    """Return the least weighted data of a fluid in so many steps: LP (3.10)[s, T].

    Parameters
    ----------
    problem
        Without sums, all data with a single holder.
    steps
        T.
    duration
        s in µs; latencies are not counted.
    costs
        Cost of a byte on each link; `default_costs` if None.
    backend
        The solver.

    Raises
    ------
    Infeasible
        If not all can arrive.
    """
    per_link = default_costs(problem.topology) if costs is None else costs
    graph = in_steps(without_copies(graph_of(problem.topology)), steps)
    groups = demands_of(problem).spreads
    unit = max(each.nbytes for each in groups)
    amounts = np.array([each.nbytes for each in groups]) / unit
    side = spread(graph, groups, amounts, copies="relaxed")
    most = np.tile(graph.rates, steps) * duration * PER_MICRO / unit
    fits = product(in_each_step(graph), side.total) <= most
    cost = cp.Constant(graph.costs(per_link)) @ side.total
    found = (backend or Backend()).solve(cp.Problem(cp.Minimize(cost), [fits, *side.rules]))
    return found.objective * unit
