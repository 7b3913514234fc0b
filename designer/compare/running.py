"""Comparisons that run while the page is used: started, watched, stopped, found again.

As with solves (`designer.solves.solving`), each has a thread here that reads its news, so a reload
finds its comparison again, and one whose page is gone is ended. What was found is kept for a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from ccl.errors import CclError
from designer.compare.asked import Asked
from designer.solves.watches import ABANDONED, Watches
from formulations.comparison import Comparison, News

MOST_RUNNING = 2
"""Comparisons at once; each takes a core or more."""
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
    """

    asked: Asked
    comparison: Comparison
    running: bool
    cancelled: bool
    turn: int
    now: News | None
    seconds: float
    fault: str = ""


@dataclass
class _Watch:
    """One comparison with what it has said so far."""

    job: Job
    asked: Asked
    begin: float = field(default_factory=time.monotonic)
    end: float | None = None
    turn: int = 0
    now: News | None = None
    cancelled: bool = False
    seen: float = field(default_factory=time.monotonic)
    outcome: Future[None] = field(default_factory=Future)

    def follow(self) -> None:
        """Read the news until it ends; run by a thread of its own."""
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
        self.job.cancel()

    def standing(self) -> Standing:
        """Return where it stands."""
        self.seen = time.monotonic()
        done, fault = self.outcome.done(), ""
        try:
            if done and not self.cancelled:
                self.outcome.result()
        except CclError as error:
            fault = str(error)
        return Standing(
            asked=self.asked,
            comparison=self.job.comparison(),
            running=not done,
            cancelled=self.cancelled,
            turn=self.turn,
            now=self.now,
            seconds=(self.end or time.monotonic()) - self.begin,
            fault=fault,
        )


class Comparisons(Watches[_Watch]):
    """The comparisons of all pages of one application, by key.

    Parameters
    ----------
    start
        Starts one as `formulations.start_comparison` does.
    abandoned
        Seconds without a question after which a running one is ended.
    """

    def __init__(self, start: Callable[..., Job], *, abandoned: float = ABANDONED) -> None:
        crowded = f"{MOST_RUNNING} comparisons are running already; stop one or wait for it"
        super().__init__(most=MOST_RUNNING, crowded=crowded, abandoned=abandoned)
        self._start = start

    def start(self, asked: Asked) -> str:
        """Begin a comparison and return its key.

        Raises
        ------
        ProblemError
            If as many run as are allowed, or nothing is to be compared.
        """

        def begin() -> _Watch:
            job = self._start(
                asked.problem, asked.methods, sizes=asked.sizes, time_limit=asked.seconds
            )
            return _Watch(job, asked)

        return self._add(begin)

    def standing(self, key: str | None) -> Standing | None:
        """Return where a comparison stands, or None if there is none with this key.

        One that a bug has ended raises it once and is forgotten.
        """
        watch = self._watches.get(key or "")
        try:
            return None if watch is None else watch.standing()
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
