"""Instances asked from here: a child process decides one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ccl.errors import SolveError
from ccl.result import ModelSize
from formulations.engines.cp_sat.client import Effort, TimedChild
from formulations.engines.list_scheduling.timed import TimedMoves
from formulations.engines.sccl.instance import Puzzle
from formulations.engines.sccl.timing import thrifty

MOST_SENDS = 300_000
"""Most sends that a model may choose among: 3 kB for each, and half a minute before the search."""


class Decided(StrEnum):
    """What is known of an instance."""

    FOUND = "found"
    IMPOSSIBLE = "impossible"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Outcome:
    """What came of an instance.

    Parameters
    ----------
    decided
        Whether there is a plan.
    why
        What proves that there is none, or keeps it undecided; empty where its time was over.
    plan
        A plan whose starts are steps, or None.
    rounds
        Those of each step of the plan.
    size
        Of the model, or None where there was none.
    """

    decided: Decided
    why: str = ""
    plan: TimedMoves | None = None
    rounds: tuple[int, ...] = ()
    size: ModelSize | None = None


@dataclass
class Solver:
    """Decides instances in a process that it starts when it is first asked; a context manager."""

    _child: TimedChild | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Solver:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._child = None

    def decide(self, puzzle: Puzzle, steps: int, rounds: int, *, effort: Effort) -> Outcome:
        """Decide whether a puzzle can be solved in so many steps and rounds.

        Raises
        ------
        SolveError
            If the process died.
        """
        if puzzle.sends(steps) > MOST_SENDS:
            why = (
                f"it would choose among {puzzle.sends(steps):,} sends, and more than "
                f"{MOST_SENDS:,} take too long; take fewer chunks"
            )
            return Outcome(Decided.UNDECIDED, why)
        told = self._asked(
            {
                **puzzle.request(steps, rounds),
                "seconds": effort.seconds,
                "workers": effort.workers,
                "seed": effort.seed,
            },
            seconds=effort.seconds,
        )
        if told is None:
            return Outcome(Decided.UNDECIDED)
        size = ModelSize(told["variables"], told["constraints"], told["sends"])
        if told["status"] != "found":
            decided = Decided(told["status"])
            why = "constraint programming has searched all" * (decided is Decided.IMPOSSIBLE)
            return Outcome(decided, why, size=size)
        plan = thrifty(puzzle.task, puzzle.plan(told["copied"], told["flowing"]))
        return Outcome(Decided.FOUND, plan=plan, rounds=tuple(told["rounds"]), size=size)

    def _asked(self, request: Mapping[str, Any], *, seconds: float) -> dict[str, Any] | None:
        """Return the answer to a request, or None if it took too long."""
        if self._child is None:
            self._child = self._stack.enter_context(
                TimedChild(worker="formulations.engines.sccl.worker")
            )
        child = self._child
        told = child.answer(request, seconds=seconds)
        if told is None:
            why = "" if child.late else child.why()
            self._stack.close()
            self._child = None
            if why:
                raise SolveError(why)
        return told
