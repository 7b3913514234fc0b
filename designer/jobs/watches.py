"""What runs for pages while they are used: by key, each followed by a thread, none forgotten.

Solves (`designer.jobs.solving`) and comparisons (`designer.views.compare.running`) are such jobs.
So many run at once, others wait for their turn (`designer.jobs.watches`). What nobody asks about
any more is ended; what has ended can be looked at for a while.

Who runs, and who waits in which order: a line with a bound, fair between those who ask.

Whoever has fewest running is next, of those who was served longest ago, of those who came first.
So one who asks for ten solves lets those of others pass between.
"""

from __future__ import annotations

import os
import threading
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

import psutil

from ccl.errors import CclError, ProblemError
from ccl.text import count
from formulations import memory_each

MOST_AT_ONCE = 4
"""Solves at once unless more are asked for: with each more, all of them may take less memory."""

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
        to solves (`formulations.jobs.resource_limits`).
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
            msg = f"{what} wait already, which is as many as may; try again in a while"
            raise ProblemError(msg)
        if own >= max(1, self._bound // SHARE) + free:
            msg = (
                f"{count(own, self._what)} of yours {'waits' if own == 1 else 'wait'} already; "
                "cancel one, or try again when one has begun"
            )
            raise ProblemError(msg)
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


class Watched(Protocol):
    """A job with what it has said so far."""

    outcome: Future[None]

    def go(self) -> None:
        """Begin; it is its turn."""

    def follow(self) -> None:
        """Read what it says until it ends; run by a thread of its own."""

    def stop(self) -> None:
        """End it now, whether it has begun or not; what there is stays."""


W = TypeVar("W", bound=Watched)


class Watches(ABC, Generic[W]):
    """The jobs of all pages of one application, by key.

    Parameters
    ----------
    what
        What they are, such as ``solve``.
    most
        How many may run at once.
    waiting
        How many may wait for their turn.
    abandoned
        Seconds without a question after which a job is ended.
    """

    def __init__(self, what: str, *, most: int, waiting: int, abandoned: float) -> None:
        self._abandoned = abandoned
        self._watches: dict[str, W] = {}
        self._line = Line(what, most=most, waiting=waiting)
        # A job that ends at once lets the next one begin while this one's is being begun.
        self._lock = threading.RLock()
        self._pool = ThreadPoolExecutor(most + 1, thread_name_prefix=type(self).__name__)
        self._closed = threading.Event()
        self._sweeper: Future[None] | None = None

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
            if self._sweeper is None:
                self._sweeper = self._pool.submit(self._sweep)
        return key

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
        """End a job now; what it has found stays until it is asked for."""
        with self._lock:
            watch = self._watches.get(key or "")
            if watch is None or watch.outcome.done():
                return
            if self._line.place(key or ""):
                self._line.leave(key or "")
                watch.outcome.cancel()
        watch.stop()

    @abstractmethod
    def sweep(self) -> None:
        """End and drop what nobody asks about."""

    def close(self) -> None:
        """End every job; called once, when the server stops."""
        self._closed.set()
        for key in list(self._watches):
            self.cancel(key)
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _sweep(self) -> None:
        while not self._closed.wait(min(5.0, self._abandoned)):
            self.sweep()
