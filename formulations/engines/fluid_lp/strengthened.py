"""Strengthened relaxations, until their solutions can be carried out (thesis, section 3.1).

A relaxation, (3.13) or (3.14), is solved (`strengthened`). Its usage is checked group by group
against the graph of all duplicates (`check`). Where a group's usage falls short, the switches at
the links that lack something have cheated: they become duplicates, and the relaxation is solved
again. When no group falls short the relaxation's optimum is that of the duplicates. If a device
copies that is no destination of a group, that group is checked with labels too
(`formulations.engines.fluid_lp.multicast.labelled`): flows that cannot be combined may have been,
and the next round says of all data for whom they are. The thesis would split single vertices by
subsets of destinations there; all of them are split here, which ends the loop at once. Every round
ends with at least one more switch that is duplicates, so there are at most as many as switches, and
two.

What is proved: the makespan and the weighted data are optimal together, and the parts can be done.

The check is that of section 3.1, "finding provably optimal algorithms": whether a relaxation's
usage w can carry what the data needs, and where it cannot. For a group with usage w[l] of each link
l,

    minimise    sum over l of x[l]
    subject to  the rows of an exact side of the group (duplicates, or labels)
                usage of l by the side <= w[l] + x[l],   x >= 0

is zero if w carries the group. Else the links with x > 0 are where the relaxation cheated. Groups
are checked one by one, since w is split among them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccl.errors import ProblemError
from ccl.problem import Problem
from formulations.engines.fluid_lp.multicast import Copies, labelled, spread
from formulations.engines.fluid_lp.plain import (
    FluidSolution,
    Model,
    Part,
    default_costs,
    plain_refusal,
)
from formulations.engines.steady_state import FluidGraph, without_copies
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
    proved
        Whether the solution is known to be optimal and to be possible.
    log
        A sentence for each round.
    """

    solution: FluidSolution
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


@dataclass(eq=False)
class _Loop:
    problem: Problem
    relaxation: Copies
    costs: np.ndarray
    joined: bool
    backend: Backend

    def __post_init__(self) -> None:
        self._bare = Model.graphs(self.problem, joined=self.joined)
        self._full = without_copies(self._bare[0]), without_copies(self._bare[1])
        self._split = [np.zeros(each.vertices, dtype=bool) for each in self._bare]
        self._log: list[str] = []

    def run(self) -> Strengthened:
        while True:
            found = self._solved(self.relaxation, labels=False)
            checks = tuple(self._checks(part) for part in found.parts if part.f is not None)
            cheats = self._cheats(checks)
            if not cheats:
                break
            self._log.append(f"{self._said(found)}; {', '.join(cheats)} copied and are duplicated")
        combined = self._combined(found)
        if not combined:
            self._log.append(f"{self._said(found)}; all usage is possible: proved")
            return Strengthened(found, proved=True, log=tuple(self._log))
        self._log.append(f"{self._said(found)}; {combined}")
        try:
            found = self._solved("subsets", labels=True)
        except ProblemError as error:
            self._log.append(f"{error}, so that this is a bound")
            return Strengthened(found, proved=False, log=tuple(self._log))
        self._log.append(f"{self._said(found)} with labels: proved")
        return Strengthened(found, proved=True, log=tuple(self._log))

    def _solved(self, copies: Copies, *, labels: bool) -> FluidSolution:
        graphs = None if labels else (self._graph(0), self._graph(1))
        model = Model(
            self.problem,
            copies=copies,
            steps=None,
            costs=self.costs,
            joined=self.joined,
            graphs=graphs,
        )
        return model.solve(self.backend)

    def _graph(self, direction: int) -> FluidGraph:
        return without_copies(self._bare[direction], only=self._split[direction])

    def _said(self, found: FluidSolution) -> str:
        return (
            f"round {len(self._log) + 1}: {found.makespan:.6g} µs, {found.cost:.6g} weighted bytes"
        )

    def _checks(self, part: Part) -> tuple[Check, ...]:
        full = self._full[part.reduces]
        return tuple(check(part, k, full, labels=False, backend=self.backend) for k in part.held)

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
                    holds = check(part, number, bare, labels=True, backend=self.backend).holds
                except ProblemError as error:
                    return f"{name} copies and wants no data; {error}"
                if not holds:
                    return f"{name} copies and combined what cannot be"
        return ""
