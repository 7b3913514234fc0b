"""Solves and studies that run while pages are used, in a fair queue, found again after a reload.

Solves and comparisons (`designer.views.compare.running`) are jobs by key, each followed by a
thread, none forgotten. What nobody asks about any more is ended; what has ended can be looked at
for a while.

Each solve is a child process (`formulations.start`) with a thread here that reads its reports
into a `Watch`; the page asks for the whole state a few times a second. So nothing is lost between
two questions, a cancel keeps the best plan found, a reload finds its solve again, and a solve
whose page is gone is ended.

So many jobs run at once, others wait in a line with a bound, fair between those who ask: whoever
has fewest running is next, of those who was served longest ago, of those who came first. So one
who asks for ten solves lets those of others pass between.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import psutil

from ccl.errors import CclError, ProblemError
from ccl.problem import Problem
from ccl.result import Result
from ccl.text import count, ordinal
from formulations import memory_each
from widgets.view_model.gap import Point, thinned

if TYPE_CHECKING:
    from designer.shell.request import Request

MOST_AT_ONCE = 4
"""Solves at once unless more are requested: with each more, all of them may take less memory."""

MOST_WAITING = 50
"""Solves that wait for their turn."""

SHARE = 4
"""One who asks may have a quarter of those that wait."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)  # Linux alone has it
    return len(allowed(0)) if allowed is not None else psutil.cpu_count() or 1


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What all pages of one server together may take of its machine.

    Parameters
    ----------
    at_once
        Solves that run at once, and as many comparisons; None is one each core, up to
        `MOST_AT_ONCE`.
    waiting
        How many may wait for their turn.
    memory
        Bytes that each solve may take; None is an equal part for each of what the machine gives
        to solves (`formulations.jobs.child`).
    """

    at_once: int | None = None
    waiting: int = MOST_WAITING
    memory: float | None = None

    @property
    def solves(self) -> int:
        """How many solves run at once."""
        return min(cores(), MOST_AT_ONCE) if self.at_once is None else self.at_once

    @property
    def comparisons(self) -> int:
        """How many comparisons run at once: each takes many times as long as a solve."""
        return max(1, self.solves // 2)

    def memory_each(self) -> float:
        """Return the bytes that a solve which begins now may take."""
        if self.memory is not None:
            return self.memory
        return memory_each(self.solves + self.comparisons)


class Line:
    """Keys that run, and keys that wait, each with its owner; not safe for threads by itself.

    Parameters
    ----------
    what
        What they are, such as ``solve``.
    most
        How many run at once.
    waiting
        How many wait.
    """

    def __init__(self, what: str, *, most: int, waiting: int) -> None:
        self._what, self._most, self._bound = what, most, waiting
        self._running: dict[str, str] = {}
        self._waiting: dict[str, str] = {}
        self._served: dict[str, int] = {}
        self._turns = 0

    def join(self, key: str, owner: str) -> None:
        """Let a key wait for its turn.

        Raises
        ------
        ProblemError
            If as many wait as may.
        """
        free = self._most - len(self._running)
        own = list(self._waiting.values()).count(owner)
        what = count(self._bound, self._what)
        if len(self._waiting) >= self._bound + free:
            raise ProblemError(
                f"{what} wait already, which is as many as may; try again in a while"
            )
        if own >= max(1, self._bound // SHARE) + free:
            raise ProblemError(
                f"{count(own, self._what)} of yours {'waits' if own == 1 else 'wait'} already; "
                "cancel one, or try again when one has begun"
            )
        self._waiting[key] = owner

    def called(self) -> list[str]:
        """Return the keys whose turn it is now; they run until they leave."""
        turn = self._order()[: max(0, self._most - len(self._running))]
        for key in turn:
            self._running[key] = owner = self._waiting.pop(key)
            self._turns += 1
            self._served[owner] = self._turns
        return turn

    def leave(self, key: str) -> None:
        """Forget a key that has ended, or waits no more."""
        self._running.pop(key, None)
        self._waiting.pop(key, None)
        here = {*self._running.values(), *self._waiting.values()}
        self._served = {owner: turn for owner, turn in self._served.items() if owner in here}

    def place(self, key: str) -> int:
        """Return 1 for who is next, and 0 for who does not wait."""
        return self._order().index(key) + 1 if key in self._waiting else 0

    def _order(self) -> list[str]:
        before = Counter(self._running.values())
        turns = []
        for arrived, (key, owner) in enumerate(self._waiting.items()):
            turns.append((before[owner], self._served.get(owner, 0), arrived, key))
            before[owner] += 1
        return [key for *_, key in sorted(turns)]


ABANDONED = 150.0
"""Seconds without a question after which nobody waits; a hidden tab asks once a minute."""


@dataclass
class Watched(ABC):
    """A job with what it has said so far.

    Parameters
    ----------
    starts
        Begins it.
    question
        Kept beside it for the page.
    """

    starts: Callable[[], Any]
    question: Any
    job: Any = None
    begin: float = field(default_factory=time.monotonic)
    end: float | None = None
    cancelled: bool = False
    requested: float = field(default_factory=time.monotonic)
    outcome: Future[None] = field(default_factory=Future)

    def go(self) -> None:
        """Begin; it is its turn."""
        self.job = self.starts()
        self.begin = time.monotonic()

    def follow(self) -> None:
        """Read what it says until it ends; run by a thread of its own."""
        try:
            self.read()
        finally:
            self.end = time.monotonic()

    def read(self) -> None:
        """Keep all that it says."""
        for said in self.job:
            self.take(said)

    @abstractmethod
    def take(self, said: Any) -> None:
        """Keep what it says."""

    def stop(self) -> None:
        """End it now, whether it has begun or not; what there is stays."""
        self.cancelled = True
        if self.job is None:
            self.end = time.monotonic()
        else:
            self.job.cancel()

    @property
    def seconds(self) -> float:
        """Since it began, until it ended."""
        return (self.end or time.monotonic()) - self.begin

    def ask(self) -> bool:
        """Note that somebody asks; return whether it goes on, or raise what has ended it."""
        self.requested = time.monotonic()
        done = self.outcome.done()
        if done and not self.cancelled:
            self.outcome.result()
        return not done


W = TypeVar("W", bound=Watched)


class JobRegistry(Generic[W]):
    """The jobs of all pages of one application, by key.

    Parameters
    ----------
    start
        Starts a job.
    limits
        How many run and wait, and the memory that each may take.
    abandoned
        Seconds without a question after which a job is ended.
    """

    what: ClassVar[str]
    """What the jobs are, such as ``solve``."""

    stored: ClassVar[int | None] = None
    """Finished ones of all pages that can still be looked at; None drops what nobody asks about."""

    def __init__(
        self,
        start: Callable[..., Any],
        limits: Limits | None = None,
        *,
        abandoned: float = ABANDONED,
    ) -> None:
        self.limits = limits or Limits()
        self._start = start
        self._abandoned = abandoned
        self._watches: dict[str, W] = {}
        self._line = Line(self.what, most=self.most, waiting=self.limits.waiting)
        # A job that ends at once lets the next one begin while this one's is being begun.
        self._lock = threading.RLock()
        self._pool = ThreadPoolExecutor(self.most + 1, thread_name_prefix=type(self).__name__)
        self._closed = threading.Event()
        self._sweeper: Future[None] | None = None

    @property
    def most(self) -> int:
        """How many may run at once."""
        return self.limits.comparisons

    def _add(self, watch: W, owner: str) -> str:
        """Begin a job, or let it wait for its turn, and return its key.

        Raises
        ------
        CclError
            If as many wait as may, or it cannot begin.
        """
        key = uuid.uuid4().hex
        with self._lock:
            self._line.join(key, owner)
            self._watches[key] = watch
            failed = self._call()
            if key in failed:
                del self._watches[key]
                raise failed[key]
            self._sweep_from_now_on()
        return key

    def _adopt(self, watch: W) -> str:
        """Take in a job that has ended already, and return its key."""
        key = uuid.uuid4().hex
        with self._lock:
            self._watches[key] = watch
            self._sweep_from_now_on()
        return key

    def _sweep_from_now_on(self) -> None:
        if self._sweeper is None:
            self._sweeper = self._pool.submit(self._sweep)

    def _call(self) -> dict[str, CclError]:
        """Begin those whose turn it is, and return why some cannot: the next has their place."""
        failed = {}
        while not self._closed.is_set() and (turn := self._line.called()):
            for key in turn:
                watch = self._watches[key]
                try:
                    watch.go()
                except CclError as error:
                    failed[key] = error
                    watch.outcome.set_exception(error)
                    self._line.leave(key)
                else:
                    watch.outcome = self._pool.submit(watch.follow)
                    watch.outcome.add_done_callback(partial(self._ended, key))
        return failed

    def _ended(self, key: str, _outcome: Future[None]) -> None:
        with self._lock:
            self._line.leave(key)
            self._call()

    def _place(self, key: str) -> int:
        """Return how many turns a job waits for; 0 when it has begun."""
        with self._lock:
            return self._line.place(key)

    def running(self, key: str | None) -> bool:
        """Whether a job with this key goes on or waits for its turn."""
        watch = self._watches.get(key or "")
        return watch is not None and not watch.outcome.done()

    def cancel(self, key: str | None) -> None:
        """End a job now; what it has found stays until it is requested."""
        with self._lock:
            watch = self._watches.get(key or "")
            if watch is None or watch.outcome.done():
                return
            if self._line.place(key or ""):
                self._line.leave(key or "")
                watch.outcome.cancel()
        watch.stop()

    def sweep(self) -> None:
        """End what nobody asks about; drop it, or the oldest of what has ended."""
        now = time.monotonic()
        ended = []
        for key, watch in list(self._watches.items()):
            if watch.outcome.done() and self.stored is not None:
                ended.append((watch.requested, key))
            elif now - watch.requested > self._abandoned:
                self.cancel(key)
                if self.stored is None:
                    self._drop(key)
        for _, key in sorted(ended)[: -(self.stored or 1)]:
            self._drop(key)

    def _drop(self, key: str) -> None:
        with self._lock:
            self._watches.pop(key, None)

    def close(self) -> None:
        """End every job; called once, when the server stops."""
        self._closed.set()
        for key in list(self._watches):
            self.cancel(key)
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _sweep(self) -> None:
        while not self._closed.wait(min(5.0, self._abandoned)):
            self.sweep()


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
class JobState:
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
        How many plans were better than all before, which distinguishes news from old.
    best
        The final result, or the best one so far.
    cancelled
        Whether the user ended it.
    waiting
        Its place in line, 1 for who is next; 0 when it has begun.
    """

    running: bool
    seconds: float
    points: tuple[Point, ...]
    clock: float
    message: str
    found: int
    best: Result | None
    cancelled: bool
    waiting: int = 0


@dataclass
class Watch(Watched):
    """One solve with what it has said so far."""

    points: list[Point] = field(default_factory=list)
    heard: float = field(default_factory=time.monotonic)
    message: str = "starting"
    found: int = 0
    best: Result | None = None

    def take(self, said: Report) -> None:
        """Keep a report."""
        self.heard = time.monotonic()
        self.points.append((round(said.seconds, 3), said.incumbent, said.bound))
        self.message = said.message or self.message
        if said.result is not None:
            self.best, self.found = said.result, self.found + 1

    def read(self) -> None:
        """Keep all reports and the final result, if there is one although it was cancelled."""
        super().read()
        if self.cancelled and self.job.best is None:
            return
        final: Result = self.job.result()
        if self.best is None or final.plan != self.best.plan:
            self.found += 1
        self.best = final
        last = self._clock(done=False) if self.cancelled else final.solve_time
        self.points.append((round(last, 3), final.makespan, final.bound.makespan))

    def stop(self) -> None:
        """End the solve now; its best plan so far stays."""
        self.message = "cancelled"
        super().stop()

    def state(self, place: int) -> JobState:
        """Return where it stands, its place in line included; raise what the solve raised.

        Raises
        ------
        CclError
            If the solve ended without a plan.
        """
        running = self.ask()
        waiting = f"waiting, {ordinal(place)} in line"
        return JobState(
            running=running,
            seconds=self.seconds,
            points=thinned(self.points),
            clock=self._clock(done=not running),
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


class Jobs(JobRegistry[Watch]):
    """The solves of all pages of one application, by key; `start` is as `formulations.start`."""

    what = "solve"

    @property
    def most(self) -> int:
        """How many may run at once."""
        return self.limits.solves

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

        def begin() -> Any:
            return self._start(
                problem,
                request.formulation,
                options=dict(request.options),
                time_limit=request.time_limit,
                gap=request.gap,
                memory=self.limits.memory_each(),
            )

        return self._add(Watch(begin, question), owner)

    def state(self, key: str) -> JobState | None:
        """Return where a solve stands, or None if there is none with this key.

        The end can be requested again, since an answer may get lost on its way to the page.

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
