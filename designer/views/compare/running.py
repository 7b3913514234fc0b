"""Comparisons that run while the page is used: started, watched, stopped, found again.

As with solves (`designer.jobs`), each has a thread here that reads its news, so a reload
finds its comparison again, and one whose page is gone is ended. What was found is kept for a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from ccl.errors import CclError
from designer.jobs import ABANDONED, Limits, Watches
from designer.views.compare.asked import Asked
from formulations.analyses.comparison import Comparison, News

MOST_KEPT = 8
"""Finished ones of all pages that can still be looked at."""


class Job(Protocol):
    """A running comparison; `formulations.start_comparison` makes one."""

    def __iter__(self) -> Iterator[News]:
        """Read the news as they come."""

    def comparison(self) -> Comparison:
        """Return what there is so far."""

    def cancel(self) -> None:
        """End it now; what there is stays."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a comparison stands.

    Parameters
    ----------
    asked
        What is compared.
    comparison
        What there is so far.
    running, cancelled
        Whether it goes on, and whether the user ended it.
    turn
        Grows with every row and with every solve that begins, so that news can be told from old.
    now
        The last news, None before the first.
    seconds
        Since it began.
    fault
        Why it ended before its time, or empty.
    waiting
        Its place in line, 1 for who is next; 0 when it has begun.
    """

    asked: Asked
    comparison: Comparison
    running: bool
    cancelled: bool
    turn: int
    now: News | None
    seconds: float
    fault: str = ""
    waiting: int = 0


@dataclass
class _Watch:
    """One comparison with what it has said so far."""

    starts: Callable[[], Job]
    asked: Asked
    job: Job | None = None
    begin: float = field(default_factory=time.monotonic)
    end: float | None = None
    turn: int = 0
    now: News | None = None
    cancelled: bool = False
    seen: float = field(default_factory=time.monotonic)
    outcome: Future[None] = field(default_factory=Future)

    def go(self) -> None:
        """Begin it; it is its turn."""
        self.job = self.starts()
        self.begin = time.monotonic()

    def follow(self) -> None:
        """Read the news until it ends; run by a thread of its own."""
        assert self.job is not None
        try:
            for news in self.job:
                self.now = news
                self.turn += news.progress is None
        finally:
            self.end = time.monotonic()
            self.turn += 1

    def stop(self) -> None:
        """End the comparison now; its rows stay."""
        self.cancelled = True
        if self.job is None:
            self.end = time.monotonic()
            self.turn += 1
        else:
            self.job.cancel()

    def standing(self, place: int) -> Standing:
        """Return where it stands, its place in line told."""
        self.seen = time.monotonic()
        done, fault = self.outcome.done(), ""
        try:
            if done and not self.cancelled:
                self.outcome.result()
        except CclError as error:
            fault = str(error)
        return Standing(
            asked=self.asked,
            comparison=self._so_far(),
            running=not done,
            cancelled=self.cancelled,
            turn=self.turn,
            now=self.now,
            seconds=(self.end or time.monotonic()) - self.begin,
            fault=fault,
            waiting=place,
        )

    def _so_far(self) -> Comparison:
        if self.job is None:
            return Comparison(self.asked.problem, self.asked.methods, (), (), ())
        return self.job.comparison()


class Comparisons(Watches[_Watch]):
    """The comparisons of all pages of one application, by key.

    Parameters
    ----------
    start
        Starts one as `formulations.start_comparison` does.
    limits
        How many run and wait, and the memory that each may take.
    abandoned
        Seconds without a question after which a running one is ended.
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
            "comparison",
            most=self.limits.comparisons,
            waiting=self.limits.waiting,
            abandoned=abandoned,
        )
        self._start = start

    def start(self, asked: Asked, *, owner: str = "") -> str:
        """Begin a comparison, or let it wait for its turn, and return its key.

        Parameters
        ----------
        asked
            What is compared.
        owner
            Who asks; turns are shared fairly among those who do.

        Raises
        ------
        ProblemError
            If as many wait as may, or nothing is to be compared.
        """

        def begin() -> Job:
            return self._start(
                asked.problem,
                asked.methods,
                sizes=asked.sizes,
                time_limit=asked.seconds,
                memory=self.limits.memory_each(),
            )

        return self._add(_Watch(begin, asked), owner)

    def standing(self, key: str | None) -> Standing | None:
        """Return where a comparison stands, or None if there is none with this key.

        One that a bug has ended raises it once and is forgotten.
        """
        watch = self._watches.get(key or "")
        try:
            return None if watch is None else watch.standing(self._place(key or ""))
        except Exception:
            self._watches.pop(key or "", None)
            raise

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
            for _, key in sorted(ended)[:-MOST_KEPT]:
                self._watches.pop(key, None)
