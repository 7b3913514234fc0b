"""One collective without sums in steps: what is proved of it, and how an instance is decided.

First what needs no search: bounds, and list scheduling in rounds, whose plans have steps of one
round each. Then constraint programming, for plans that look the same under a symmetry of the
cluster before all others. A symmetric plan is a plan; that there is none proves nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from ccl.problem import Problem
from formulations.engines.cp_sat.client import Effort
from formulations.engines.list_scheduling.multistart import Task, passes
from formulations.engines.list_scheduling.quotient import Quotient
from formulations.engines.list_scheduling.search import PACE, WORK, Side
from formulations.engines.list_scheduling.timed import TimedMoves
from formulations.engines.sccl.asking import Decided, Outcome, Solver
from formulations.engines.sccl.instance import Puzzle
from formulations.engines.sccl.rates import Least, least_of, rooms
from formulations.engines.sccl.timing import in_rounds, in_steps, steps_of, thrifty

SYMMETRIC = 0.25
"""Share of the time that is left for an instance that each symmetry gets."""

MET = 1e-6
"""Rounds that are none."""


@dataclass(frozen=True)
class Question:
    """A side whose instances are decided.

    Parameters
    ----------
    side
        What can be sent and what has to be.
    solver
        Decides what a search decides.
    effort
        For an instance; its seconds are the most that one gets.
    most
        Passes of list scheduling for each symmetry.
    symmetry
        Whether symmetric plans are looked for.
    left
        Returns the seconds left for everything.
    searched
        What was decided by a search, in order.
    """

    side: Side
    solver: Solver
    effort: Effort
    most: int
    symmetry: bool
    left: Callable[[], float]
    searched: list[Outcome] = field(default_factory=list)

    @cached_property
    def task(self) -> Task:
        """What has to be done from the beginning."""
        return self.side.task()

    @cached_property
    def least(self) -> Least:
        """What is proved without a search."""
        return least_of(Problem(self.side.moves.topology, self.side.collective), self.task)

    @cached_property
    def _puzzles(self) -> tuple[tuple[Puzzle, Quotient | None], ...]:
        """The task for representatives under each symmetry, then as it is."""
        room = rooms(self.side.moves.topology)
        found: list[tuple[Puzzle, Quotient | None]] = []
        for each in self.side.reduced(self.task) if self.symmetry else ():
            merged = [Fraction(0)] * len(each.task.free)
            for link, resource in enumerate(each.task.resource.tolist()):
                merged[resource] = room[link]
            found.append((Puzzle(each.task, tuple(merged)), each))
        return (*found, (Puzzle(self.task, room), None))

    @cached_property
    def listed(self) -> TimedMoves | None:
        """The best plan in steps of one round each that list scheduling finds."""
        best: TimedMoves | None = None
        goal = self.least.in_order
        for turn, (puzzle, quotient) in enumerate(self._puzzles):
            # The first pass is run in any case, so that there is a plan.
            if best is not None and (self.left() <= 0 or steps_of(best) <= goal):
                break
            for plan in self._passes(puzzle, turn, goal=goal):
                if best is None or steps_of(plan) < steps_of(best):
                    best = plan if quotient is None else quotient.lifted(plan)
        return best

    def _passes(self, puzzle: Puzzle, turn: int, *, goal: int) -> list[TimedMoves]:
        task = in_rounds(puzzle.task, puzzle.room)
        steps = max(1.0, min(WORK, self.left() * PACE))
        found = passes(
            task,
            seed=self.effort.seed + turn,
            most=self.most,
            steps=steps,
            goal=goal + MET,
            over=lambda: self.left() <= 0,
        )
        return [thrifty(puzzle.task, in_steps(puzzle.task, puzzle.room, plan)) for plan, _ in found]

    def decide(self, steps: int, rounds: int, *, share: float = 1.0) -> Outcome:
        """Decide whether there is a plan in so many steps and rounds.

        Parameters
        ----------
        share
            Of the time that is left, that this instance may take.

        Raises
        ------
        Infeasible
            If no ways lead where chunks have to be.
        SolveError
            If the solver's process died.
        """
        why = self.least.refutes(steps, rounds)
        if why is not None:
            return Outcome(Decided.IMPOSSIBLE, why)
        # Steps of one round each are never fewer than that.
        listed = self.listed if steps >= self.least.in_order else None
        if listed is not None and steps_of(listed) <= steps:
            ones = (1,) * (steps - 1)
            return Outcome(Decided.FOUND, plan=listed, rounds=(*ones, rounds - len(ones)))
        return self._searched(steps, rounds, min(self.effort.seconds, share * self.left()))

    def _searched(self, steps: int, rounds: int, seconds: float) -> Outcome:
        """Search under each symmetry, then without, in so many seconds together."""
        spare, why = seconds, ""
        for puzzle, quotient in self._puzzles:
            if spare <= 0:
                break
            share = 1.0 if quotient is None else SYMMETRIC
            begin = time.perf_counter()
            last = self.solver.decide(
                puzzle, steps, rounds, effort=replace(self.effort, seconds=share * spare)
            )
            self.searched.append(last)
            if last.plan is not None and quotient is not None:
                return replace(last, plan=quotient.lifted(last.plan))
            if quotient is None and last.decided is not Decided.UNDECIDED:
                return last
            spare -= time.perf_counter() - begin
            why = last.why * (quotient is None)
        return Outcome(Decided.UNDECIDED, why or f"its {max(0.0, seconds):.3g} s were over")
