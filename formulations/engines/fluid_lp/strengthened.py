"""Relaxations made stronger until what they say can be done (thesis, section 3.1).

A relaxation, (3.13) or (3.14), is solved. Its usage is checked group by group against the graph of
all duplicates (`formulations.engines.fluid_lp.realise`). Where a group's usage falls short, the
switches at the links that lack something have cheated: they become duplicates, and the relaxation
is solved again. When no group falls short the relaxation's optimum is that of the duplicates. If a
device copies that is no destination of a group, that group is checked with labels too
(`formulations.engines.fluid_lp.subsets`): flows that cannot be combined may have been, and the next
round says of all data for whom they are. The thesis would split single vertices by subsets of
destinations there; all of them are split here, which ends the loop at once. Every round ends with
at least one more switch that is duplicates, so there are at most as many as switches, and two.

What is proved: the makespan and the weighted data are optimal together, and the parts can be done.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccl.errors import ProblemError
from ccl.problem import Problem
from formulations.engines.fluid_lp.costs import default_costs
from formulations.engines.fluid_lp.multicast import Copies
from formulations.engines.fluid_lp.plain import FluidSolution, Model, Part, plain_refusal
from formulations.engines.fluid_lp.realise import Check, check
from formulations.engines.steady_state.graph import FluidGraph, without_copies
from formulations.solvers.cvxpy_highs import Backend


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
        msg = f"relaxations cannot take {problem.collective.kind}: {reason}"
        raise ProblemError(msg)
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

    def _graph(self, way: int) -> FluidGraph:
        return without_copies(self._bare[way], only=self._split[way])

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
            way = int(each.part.reduces)
            bare = self._bare[way]
            lacking = np.flatnonzero(each.short > 0.1 * each.short.max())
            ends = np.unique(np.concatenate([bare.src[lacking], bare.dst[lacking]]))
            fresh = ends[~bare.copies[ends] & ~self._split[way][ends]]
            # A detour may lack something far from the switch that copies.
            chosen = fresh if len(fresh) else np.flatnonzero(~bare.copies & ~self._split[way])
            self._split[way][chosen] = True
            names.update(dict.fromkeys(bare.topology.devices[v].name for v in chosen.tolist()))
        return list(names)

    def _combined(self, found: FluidSolution) -> str:
        """Say which usage cannot be done though switches do not copy, or return an empty text."""
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
