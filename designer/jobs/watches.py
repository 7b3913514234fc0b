"""What runs for pages while they are used: by key, each followed by a thread, none forgotten.

Solves (`designer.jobs.solving`) and comparisons (`designer.views.compare.running`) are such jobs.
So many run at once, others wait for their turn (`designer.jobs.line`). What nobody asks about any
more is ended; what has ended can be looked at for a while.
"""

from __future__ import annotations

import threading
import uuid
from abc import ABC, abstractmethod
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Generic, Protocol, TypeVar

from ccl.errors import CclError
from designer.jobs.line import Line

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
