"""Studies that take longer than a slider's move: losses, stragglers, budgets.

As with solves (`designer.jobs`) each runs in a process that is ended when it is stopped
or its page is gone, and tells what it finds as soon as it is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from ccl.errors import SolveError
from designer.jobs import ABANDONED, JobRegistry, Limits
from formulations import Child

MODULE = "designer.views.whatif.worker"
PROCESS = "the study's process"
MOST_STORED = 12
"""Finished ones of all pages that can still be looked at."""

Json = dict[str, Any]


class Job(Protocol):
    """A running study."""

    def __iter__(self) -> Iterator[Json]:
        """Read what it finds as it comes."""

    def cancel(self) -> None:
        """End it now."""


class StudyJob:
    """A study in a child process; iterate over it for what it finds.

    Parameters
    ----------
    request
        As `designer.views.whatif.worker.study` takes it.
    memory
        Bytes that it may take, or None.
    """

    def __init__(self, request: Mapping[str, Any], memory: float | None = None) -> None:
        self._child = Child(MODULE, memory)
        self._child.ask(request)
        self._cancelled = False

    def __iter__(self) -> Iterator[Json]:
        """Yield what it finds.

        Raises
        ------
        SolveError
            If its process ends in the middle.
        """
        done = False
        try:
            for event in self._child:
                done = "done" in event
                yield event
            if not (done or self._cancelled):
                raise SolveError(self._child.last_words(PROCESS))
        finally:
            self._child.kill()
            self._child.close()

    def cancel(self) -> None:
        """End it now; what there is stays."""
        self._cancelled = True
        self._child.kill()


@dataclass(frozen=True, slots=True)
class Found:
    """What a study has found so far.

    Parameters
    ----------
    events
        As `designer.views.whatif.worker.study` tells them.
    question
        What was asked, as the page keeps it.
    running, cancelled
        Whether it goes on, and whether the user ended it.
    waiting
        Its place in line; 0 when it has begun.
    seconds
        Since it began.
    """

    events: tuple[Json, ...]
    question: Any
    running: bool
    cancelled: bool
    waiting: int
    seconds: float

    def last(self, name: str) -> Any:
        """Return what was told last under a name, or None."""
        return next((each[name] for each in reversed(self.events) if name in each), None)

    @property
    def rows(self) -> list[Json]:
        """All rows so far, those that cost most first."""
        rows = [each["row"] for each in self.events if "row" in each]
        return sorted(rows, key=lambda r: (not r["ends"], -len(r["cut_off"]), -r["lost"]))


@dataclass
class _Watch:
    """One study with what it has said so far."""

    starts: Callable[[], Job]
    question: Any
    job: Job | None = None
    events: list[Json] = field(default_factory=list)
    begin: float = field(default_factory=time.monotonic)
    end: float | None = None
    cancelled: bool = False
    seen: float = field(default_factory=time.monotonic)
    outcome: Future[None] = field(default_factory=Future)

    def go(self) -> None:
        """Begin it; it is its turn."""
        self.job = self.starts()
        self.begin = time.monotonic()

    def follow(self) -> None:
        """Read what it finds until it ends; run by a thread of its own."""
        assert self.job is not None
        try:
            self.events.extend(self.job)
        finally:
            self.end = time.monotonic()

    def stop(self) -> None:
        """End it now; what there is stays."""
        self.cancelled = True
        self.end = time.monotonic()
        if self.job is not None:
            self.job.cancel()


class Studies(JobRegistry[_Watch]):
    """The studies of all pages of one application, by key.

    Parameters
    ----------
    start
        Makes a job of a request, with the bytes that it may take.
    limits
        How many run and wait, and the memory that each may take.
    abandoned
        Seconds without a question after which one is ended.
    """

    def __init__(
        self,
        start: Callable[[Mapping[str, Any], float | None], Job] = StudyJob,
        limits: Limits | None = None,
        *,
        abandoned: float = ABANDONED,
    ) -> None:
        self.limits = limits or Limits()
        super().__init__(
            "study", most=self.limits.comparisons, waiting=self.limits.waiting, abandoned=abandoned
        )
        self._start = start

    def start(self, request: Mapping[str, Any], *, question: Any, owner: str = "") -> str:
        """Begin a study, or let it wait for its turn, and return its key.

        Parameters
        ----------
        request
            As `designer.views.whatif.worker.study` takes it.
        question
            Kept beside it for the page.
        owner
            Who asks.

        Raises
        ------
        ProblemError
            If as many wait as may.
        """

        def begin() -> Job:
            return self._start(request, self.limits.memory_each())

        return self._add(_Watch(begin, question), owner)

    def found(self, key: str | None) -> Found | None:
        """Return what a study has found so far, or None if there is none with this key.

        Raises
        ------
        CclError
            If its process ended in the middle.
        """
        watch = self._watches.get(key or "")
        if watch is None:
            return None
        watch.seen = time.monotonic()
        done = watch.outcome.done()
        if done and not watch.cancelled:
            try:
                watch.outcome.result()
            except Exception:
                self._watches.pop(key or "", None)
                raise
        return Found(
            tuple(watch.events),
            watch.question,
            running=not done,
            cancelled=watch.cancelled,
            waiting=self._place(key or ""),
            seconds=(watch.end or time.monotonic()) - watch.begin,
        )

    def sweep(self) -> None:
        """End what runs and nobody asks about, and forget the oldest of what has ended."""
        now = time.monotonic()
        ended = []
        for key, watch in list(self._watches.items()):
            if watch.outcome.done():
                ended.append((watch.seen, key))
            elif now - watch.seen > self._abandoned:
                self.cancel(key)
        with self._lock:
            for _, key in sorted(ended)[:-MOST_STORED]:
                self._watches.pop(key, None)
