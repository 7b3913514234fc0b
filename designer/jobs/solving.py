"""Solves that run while the page is used: started, watched, cancelled, never lost.

Each solve is a child process (`formulations.start`) with a thread here that reads its reports
into a `Watch`; the page asks for the whole state a few times a second. So nothing is lost between
two questions, a cancel keeps the best plan found, a reload finds its solve again, and a solve
whose page is gone is ended. Where others run already it waits for its turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from ccl.problem import Problem
from ccl.result import Result
from ccl.text import ordinal
from designer.jobs.watches import ABANDONED, Limits, Watches
from designer.shell.request import Request
from widgets.shown.course import Row, thinned


class Report(Protocol):
    """What a solve says from time to time; `formulations.core.run.Progress` is one."""

    @property
    def seconds(self) -> float:
        """Since it began."""

    @property
    def incumbent(self) -> float | None:
        """Best makespan in µs."""

    @property
    def bound(self) -> float | None:
        """Largest lower bound in µs."""

    @property
    def message(self) -> str:
        """What it does."""

    @property
    def result(self) -> Result | None:
        """The best result, when it is new."""


class Job(Protocol):
    """A running solve; `formulations.SolveJob` is one."""

    @property
    def best(self) -> Result | None:
        """The best result so far."""

    def __iter__(self) -> Iterator[Report]:
        """Read the reports as they come."""

    def result(self) -> Result:
        """Wait for the end."""

    def cancel(self) -> None:
        """End the process now; `best` stays."""


@dataclass(frozen=True, slots=True)
class State:
    """Where a solve stands, as a whole.

    Parameters
    ----------
    running
        Whether it goes on.
    seconds
        Since it began.
    points
        Rows of (seconds, incumbent µs, bound µs) by the solver's clock, thinned to what a chart
        can show.
    clock
        Seconds on the solver's clock, which begins when its process has started.
    message
        What it does now.
    found
        How many plans were better than all before, so that news can be told from old.
    best
        The final result, or the best one so far.
    cancelled
        Whether the user ended it.
    waiting
        Its place in line, 1 for who is next; 0 when it has begun.
    """

    running: bool
    seconds: float
    points: tuple[Row, ...]
    clock: float
    message: str
    found: int
    best: Result | None
    cancelled: bool
    waiting: int = 0


@dataclass
class Watch:
    """One solve with what it has said so far.

    Parameters
    ----------
    starts
        Begins it.
    question
        Kept beside it for the page.
    """

    starts: Callable[[], Job]
    question: Any
    job: Job | None = None
    begin: float = field(default_factory=time.monotonic)
    end: float | None = None
    points: list[Row] = field(default_factory=list)
    heard: float = field(default_factory=time.monotonic)
    message: str = "starting"
    found: int = 0
    best: Result | None = None
    cancelled: bool = False
    asked: float = field(default_factory=time.monotonic)
    outcome: Future[None] = field(default_factory=Future)

    def go(self) -> None:
        """Begin it; it is its turn."""
        self.job = self.starts()
        self.begin = self.heard = time.monotonic()

    def follow(self) -> None:
        """Read the reports until the solve ends; run by a thread of its own."""
        assert self.job is not None
        try:
            for report in self.job:
                self._take(report)
            if not self.cancelled or self.job.best is not None:
                self._end(self.job.result())
        finally:
            self.end = time.monotonic()

    def _take(self, report: Report) -> None:
        self.heard = time.monotonic()
        self.points.append((round(report.seconds, 3), report.incumbent, report.bound))
        self.message = report.message or self.message
        if report.result is not None:
            self.best, self.found = report.result, self.found + 1

    def _end(self, final: Result) -> None:
        if self.best is None or final.plan != self.best.plan:
            self.found += 1
        self.best = final
        last = self._clock(done=False) if self.cancelled else final.solve_time
        self.points.append((round(last, 3), final.makespan, final.bound.makespan))

    def stop(self) -> None:
        """End the solve now; its best plan so far stays."""
        self.cancelled = True
        self.message = "cancelled"
        if self.job is None:
            self.end = time.monotonic()
        else:
            self.job.cancel()

    def state(self, place: int) -> State:
        """Return where it stands, its place in line told; raise what the solve raised.

        Raises
        ------
        CclError
            If the solve ended without a plan.
        """
        self.asked = time.monotonic()
        done = self.outcome.done()
        if done and not self.cancelled:
            self.outcome.result()
        waiting = f"waiting, {ordinal(place)} in line"
        return State(
            running=not done,
            seconds=(self.end or time.monotonic()) - self.begin,
            points=thinned(self.points),
            clock=self._clock(done=done),
            message=waiting if place and self.job is None else self.message,
            found=self.found,
            best=self.best,
            cancelled=self.cancelled,
            waiting=place,
        )

    def _clock(self, *, done: bool) -> float:
        """Seconds on the solver's clock: the last report's, and what has passed since."""
        last = self.points[-1][0] if self.points else 0.0
        return last if done or not self.points else last + time.monotonic() - self.heard


class Jobs(Watches[Watch]):
    """The solves of all pages of one application, by key.

    Parameters
    ----------
    start
        Starts a solve as `formulations.start` does.
    limits
        How many run and wait, and the memory that each may take.
    abandoned
        Seconds without a question after which a solve is ended.
    """

    def __init__(
        self,
        start: Callable[..., Job],
        limits: Limits | None = None,
        *,
        abandoned: float = ABANDONED,
    ) -> None:
        self.limits = limits or Limits()
        super().__init__(
            "solve", most=self.limits.solves, waiting=self.limits.waiting, abandoned=abandoned
        )
        self._start = start

    def start(
        self, problem: Problem, request: Request, *, question: Any = None, owner: str = ""
    ) -> str:
        """Begin a solve, or let it wait for its turn, and return its key.

        Parameters
        ----------
        problem, request
            What to solve, and how.
        question
            Kept beside it for the page.
        owner
            Who asks; turns are shared fairly among those who do.

        Raises
        ------
        ProblemError
            If as many solves wait as may, or the options are not right.
        """

        def begin() -> Job:
            return self._start(
                problem,
                request.formulation,
                options=dict(request.options),
                time_limit=request.time_limit,
                gap=request.gap,
                memory=self.limits.memory_each(),
            )

        return self._add(Watch(begin, question), owner)

    def state(self, key: str) -> State | None:
        """Return where a solve stands, or None if there is none with this key.

        The end can be asked for again, since an answer may get lost on its way to the page.

        Raises
        ------
        CclError
            If it ended without a plan.
        """
        watch = self._watches.get(key)
        return None if watch is None else watch.state(self._place(key))

    def question(self, key: str) -> Any:
        """Return what was kept beside a solve, or None."""
        watch = self._watches.get(key)
        return None if watch is None else watch.question

    def sweep(self) -> None:
        """End and drop every solve that nobody has asked about for long."""
        now = time.monotonic()
        for key, watch in list(self._watches.items()):
            if now - watch.asked > self._abandoned:
                self.cancel(key)
                with self._lock:
                    self._watches.pop(key, None)
