"""Constraint programming asked from here: a child process is told a task and tells what it finds.

The child dies with the one who asks: it ends when the pipe that its request came through is
closed, whoever closes it, and it is killed when nobody listens any more or when it does not keep
its time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ccl.errors import SolveError
from ccl.result import ModelSize
from formulations.engines.cp_sat.instance import Puzzle, make_puzzle
from formulations.engines.list_scheduling.multistart import Task
from formulations.engines.list_scheduling.timed import TimedMoves
from formulations.jobs.child import Child

GRACE = 3.0
"""Seconds that the child may take longer than it was given, to start and to end."""


class Ending(Enum):
    """Why the search ended."""

    PROVED = "no plan of the model is shorter"
    LIMIT = "the time limit is reached"


@dataclass(frozen=True)
class News:
    """What the search tells.

    Parameters
    ----------
    bound
        µs that no plan of the model is below.
    plan, makespan
        A better plan in µs, or None.
    ending
        Why it ended, or None while it goes on.
    size
        Of the model, or None before it is built.
    """

    bound: float
    plan: TimedMoves | None = None
    makespan: float | None = None
    ending: Ending | None = None
    size: ModelSize | None = None


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long and how wide to search.

    Parameters
    ----------
    seconds
        For building and searching.
    workers
        Threads of the solver; with one the same request has the same answer.
    seed
        Of its random numbers.
    """

    seconds: float
    workers: int = 1
    seed: int = 0


def close_gap(
    task: Task,
    *,
    upper: float,
    lower: float = 0.0,
    hint: TimedMoves | None = None,
    effort: Effort,
    waits: bool = False,
) -> Iterator[News]:
    """Search for plans of a task and prove that there are no shorter ones.

    Closing the iterator ends the search at once.

    Parameters
    ----------
    task
        What has to be done; shared limits are not looked at.
    upper
        µs within which plans must end.
    lower
        µs that no plan is below.
    hint
        A plan of the task to begin with.
    effort
        How long to search.
    waits
        Whether chunks may wait in devices that cannot store: for a bound, without plans.

    Raises
    ------
    SolveError
        If the task is too large for the model, or the solver's process died.
    """
    puzzle = make_puzzle(task, upper=upper)
    request = {
        **puzzle.request(lower=lower, hint=hint),
        "waits": waits,
        "seconds": effort.seconds,
        "workers": effort.workers,
        "seed": effort.seed,
    }
    with TimedChild(request, seconds=effort.seconds) as child:
        yield from _told(puzzle, child, lower)


def _told(puzzle: Puzzle, child: TimedChild, lower: float) -> Iterator[News]:
    """Turn the child's lines into news in µs."""
    best, ending, size = lower, None, None
    for line in child:
        plan = None
        if line["event"] == "size":
            size = ModelSize(line["variables"], line["constraints"], line["nonzeros"])
        elif line["event"] == "solution":
            plan = puzzle.plan(line["pairs"], line["starts"])
        elif line["event"] == "end":
            ending = Ending.LIMIT if line["status"] == "limit" else Ending.PROVED
        ticks = puzzle.upper if line.get("status") == "infeasible" else line.get("bound", 0)
        bound = max(best, puzzle.ticks.proved(ticks, waits=puzzle.waits))
        if plan is not None:
            yield News(bound, *plan, size=size)
        elif ending is not None or bound > best or line["event"] == "size":
            yield News(bound, ending=ending, size=size)
        best = bound
    if ending is None and not child.late:
        raise SolveError(child.why())
    if ending is None:
        yield News(best, ending=Ending.LIMIT, size=size)


class TimedChild(Child):
    """A process that is killed when it does not keep its time.

    Parameters
    ----------
    request, seconds
        What it is asked first, and the time it has for it; else ask it by `answer`.
    worker
        What it runs.
    """

    def __init__(
        self,
        request: Mapping[str, Any] | None = None,
        *,
        seconds: float = 0.0,
        worker: str = "formulations.engines.cp_sat.worker",
    ) -> None:
        super().__init__(worker)
        self.late = False
        """Whether it was killed because it did not keep its time."""
        self._timer: threading.Timer | None = None
        if request is not None:
            self._ask_within(request, seconds)

    def _ask_within(self, request: Mapping[str, Any], seconds: float) -> None:
        self._timer = threading.Timer(seconds + GRACE, self._stop)
        self._timer.daemon = True
        self._timer.start()
        self.ask(request)

    def answer(self, request: Mapping[str, Any], *, seconds: float) -> dict[str, Any] | None:
        """Return the one line that answers a request, or None if it ended without."""
        self._ask_within(request, seconds)
        line = next(iter(self), None)
        self._untimed()
        return line

    def _stop(self) -> None:
        self.late = True
        self.kill()

    def _untimed(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def __enter__(self) -> TimedChild:
        return self

    def __exit__(self, *_: object) -> None:
        self._untimed()
        self.kill()
        self.close()

    def why(self) -> str:
        """Say why it ended without an answer."""
        return self.last_words("the process of the constraint solver")
