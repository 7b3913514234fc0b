"""Strengthened relaxations, until their solutions can be carried out (thesis, section 3.1).

A relaxation, (3.13) or (3.14), is solved. Its usage is checked group by group against the graph of
all duplicates (`formulations.engines.fluid_lp.strengthened`). Where a group's usage falls short,
the switches at the links that lack something have cheated: they become duplicates, and the
relaxation is solved again. When no group falls short the relaxation's optimum is that of the
duplicates. If a device copies that is no destination of a group, that group is checked with labels
too (`formulations.engines.fluid_lp.multicast`): flows that cannot be combined may have been, and
the next round says of all data for whom they are. The thesis would split single vertices by subsets
of destinations there; all of them are split here, which ends the loop at once. Every round ends
with at least one more switch that is duplicates, so there are at most as many as switches, and two.

What is proved: the makespan and the weighted data are optimal together, and the parts can be done.

Whether what a relaxation says of a group's usage can carry the group, and where it cannot.

Thesis, section 3.1, "finding provably optimal algorithms": a relaxation's usage w is checked
against what the data needs. For a group with usage w[l] of each link l,

    minimise    sum over l of x[l]
    subject to  the rows of an exact side of the group (duplicates, or labels)
                usage of l by the side <= w[l] + x[l],   x >= 0

is zero if w carries the group. Else the links with x > 0 are where the relaxation cheated. Groups
are checked one by one, since w is split among them.

All-reduce as the thesis tries it first (section 4.2): toys, to compare two halves with.

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
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from scipy import sparse

from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.topology import Topology
from formulations.engines.fluid_lp.multicast import Copies, labelled, product, spread
from formulations.engines.fluid_lp.plain import (
    FluidSolution,
    Model,
    Part,
    default_costs,
    plain_refusal,
)
from formulations.engines.fluid_lp.stepwise import PER_MICRO, in_each_step
from formulations.engines.steady_state import FluidGraph, graph_of, in_steps, without_copies
from formulations.solvers import cp
from formulations.solvers.cvxpy_highs import Backend

SHORT = 1e-5
"""Share of a group by which usage may be short: the solver's rounding."""


@dataclass(frozen=True, eq=False)
class Check:
    """What came of a check.

    Parameters
    ----------
    short
        Bytes that each link would have to carry more, shape (links,).
    part
        The group as an exact side has it, in bytes.
    holds
        Whether the usage carries the group.
    """

    short: np.ndarray
    part: Part
    holds: bool


def usage_of(part: Part, number: int) -> np.ndarray:
    """Return the bytes of a group on each link, all steps and duplicates together."""
    links = len(part.graph.topology.links)
    return np.asarray(part.graph.rows[:links] @ part.w[:, number])


def check(
    part: Part,
    number: int,
    graph: FluidGraph,
    *,
    labels: bool,
    backend: Backend,
    time_limit: float | None = None,
) -> Check:
    """Check the usage of a group with labels, or with duplicates.

    Parameters
    ----------
    part
        Of a solved program.
    number
        Which of its groups.
    graph
        Of the same cluster: with labels the bare one, else that of duplicates.
    labels
        Whether data is labelled by its destinations.
    backend
        The solver.
    time_limit
        Seconds for it.

    Raises
    ------
    ProblemError
        If there are too many labels.
    LimitReached
        If the solver gave up.
    """
    group, usage = part.groups[number], usage_of(part, number)
    amounts, links = np.ones(1), len(usage)
    side = (
        labelled(graph, [group], amounts)
        if labels
        else spread(graph, [group], amounts, copies="exact")
    )
    short = cp.Variable(links, nonneg=True)
    loads = cp.Constant(graph.rows[:links]) @ side.total
    fits = loads <= usage / group.nbytes + short
    program = cp.Problem(cp.Minimize(np.ones(links) @ short), [fits, *side.rules])
    backend.solve(program, time_limit=time_limit)
    lacks = np.asarray(short.value, dtype=float)

    def values(variable: cp.Variable | None) -> np.ndarray | None:
        return None if variable is None else np.asarray(variable.value, dtype=float) * group.nbytes

    carried, flows, split = values(side.w), values(side.f), values(side.split)
    assert carried is not None
    found = Part(graph, (group,), part.reduces, carried, flows, side.owner, side.goal, split)
    return Check(lacks * group.nbytes, found, bool(lacks.max(initial=0.0) <= SHORT))


@dataclass(frozen=True, eq=False)
class Strengthened:
    """Where the rounds have led.

    Parameters
    ----------
    solution
        Of the last round.
    checks
        What its parts came to: for each part that copies, a check of each of its groups.
    proved
        Whether the solution is known to be optimal and to be possible.
    log
        A sentence for each round.
    """

    solution: FluidSolution
    checks: tuple[tuple[Check, ...], ...]
    proved: bool
    log: tuple[str, ...]


def strengthened(
    problem: Problem,
    *,
    relaxation: Copies = "relaxed",
    costs: np.ndarray | None = None,
    joined: bool = False,
    backend: Backend | None = None,
) -> Strengthened:
    """Solve a relaxation again and again, stronger each time, until its solution can be done.

    Parameters
    ----------
    problem, costs, joined
        As for `formulations.engines.fluid_lp.plain.solve_plain`.
    relaxation
        ``relaxed`` (3.13) or ``counted`` (3.14); ``free`` (3.10) works too and takes more rounds.
    backend
        The solver.

    Raises
    ------
    ProblemError
        If no fluid model can take the problem.
    LimitReached
        If the solver gave up.
    """
    reason = plain_refusal(problem)
    if reason is not None:
        raise ProblemError(f"relaxations cannot take {problem.collective.kind}: {reason}")
    per_link = default_costs(problem.topology) if costs is None else costs
    loop = _Loop(problem, relaxation, per_link, joined=joined, backend=backend or Backend())
    return loop.run()


class _Loop:
    def __init__(
        self,
        problem: Problem,
        relaxation: Copies,
        costs: np.ndarray,
        *,
        joined: bool,
        backend: Backend,
    ) -> None:
        self._problem, self._relaxation, self._costs = problem, relaxation, costs
        self._joined, self._backend = joined, backend
        bare = Model.graphs(problem, joined=joined)
        self._bare = bare
        self._full = without_copies(bare[0]), without_copies(bare[1])
        self._split = [np.zeros(each.vertices, dtype=bool) for each in bare]
        self._log: list[str] = []

    def run(self) -> Strengthened:
        while True:
            found = self._solved(self._relaxation, labels=False)
            checks = tuple(self._checks(part) for part in found.parts if part.f is not None)
            cheats = self._cheats(checks)
            if not cheats:
                break
            self._log.append(f"{self._said(found)}; {', '.join(cheats)} copied and are duplicated")
        combined = self._combined(found)
        if not combined:
            self._log.append(f"{self._said(found)}; all usage is possible: proved")
            return Strengthened(found, checks, proved=True, log=tuple(self._log))
        self._log.append(f"{self._said(found)}; {combined}")
        try:
            found = self._solved("subsets", labels=True)
        except ProblemError as error:
            self._log.append(f"{error}, so that this is a bound")
            return Strengthened(found, checks, proved=False, log=tuple(self._log))
        self._log.append(f"{self._said(found)} with labels: proved")
        return Strengthened(found, (), proved=True, log=tuple(self._log))

    def _solved(self, copies: Copies, *, labels: bool) -> FluidSolution:
        graphs = None if labels else (self._graph(0), self._graph(1))
        model = Model(
            self._problem,
            copies=copies,
            steps=None,
            costs=self._costs,
            joined=self._joined,
            graphs=graphs,
        )
        return model.solve(self._backend)

    def _graph(self, direction: int) -> FluidGraph:
        return without_copies(self._bare[direction], only=self._split[direction])

    def _said(self, found: FluidSolution) -> str:
        return (
            f"round {len(self._log) + 1}: {found.makespan:.6g} µs, {found.cost:.6g} weighted bytes"
        )

    def _checks(self, part: Part) -> tuple[Check, ...]:
        full = self._full[part.reduces]
        return tuple(check(part, k, full, labels=False, backend=self._backend) for k in part.held)

    def _cheats(self, checks: tuple[tuple[Check, ...], ...]) -> list[str]:
        """Duplicate the switches at links that lack something, and return their names."""
        names: dict[str, None] = {}
        for each in (single for group in checks for single in group if not single.holds):
            direction = int(each.part.reduces)
            bare = self._bare[direction]
            lacking = np.flatnonzero(each.short > 0.1 * each.short.max())
            ends = np.unique(np.concatenate([bare.src[lacking], bare.dst[lacking]]))
            fresh = ends[~bare.copies[ends] & ~self._split[direction][ends]]
            # A detour may lack something far from the switch that copies.
            chosen = fresh if len(fresh) else np.flatnonzero(~bare.copies & ~self._split[direction])
            self._split[direction][chosen] = True
            names.update(dict.fromkeys(bare.topology.devices[v].name for v in chosen.tolist()))
        return list(names)

    def _combined(self, found: FluidSolution) -> str:
        """Name the usage impossible though switches do not copy, or return an empty text."""
        for part in found.parts:
            if part.f is None:
                continue
            bare = self._bare[part.reduces]
            for number in part.held:
                group = part.groups[number]
                wants = {int(bare.origins[group.root]), *bare.goals[list(group.others)].tolist()}
                others = [v for v in np.flatnonzero(bare.copies).tolist() if v not in wants]
                if not others:
                    continue
                name = bare.topology.devices[others[0]].name
                try:
                    holds = check(part, number, bare, labels=True, backend=self._backend).holds
                except ProblemError as error:
                    return f"{name} copies and wants no data; {error}"
                if not holds:
                    return f"{name} copies and combined what cannot be"
        return ""


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
