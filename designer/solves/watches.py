"""What runs for pages while they are used: by key, each followed by a thread, none forgotten.

Solves (`designer.solves.solving`) and comparisons (`designer.compare.running`) are such jobs. What
nobody asks about any more is ended; what has ended can be looked at for a while.
"""

from __future__ import annotations

import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, Protocol, TypeVar

from ccl.errors import ProblemError

ABANDONED = 150.0
"""Seconds without a question after which nobody waits; a hidden tab asks once a minute."""


class Watched(Protocol):
    """A job with what it has said so far."""

    outcome: Future[None]

    def follow(self) -> None:
        """Read what it says until it ends; run by a thread of its own."""

    def stop(self) -> None:
        """End it now; what there is stays."""


W = TypeVar("W", bound=Watched)


class Watches(ABC, Generic[W]):
    """The jobs of all pages of one application, by key.

    Parameters
    ----------
    most
        How many may run at once.
    crowded
        What is said when as many run.
    abandoned
        Seconds without a question after which a job is ended.
    """

    def __init__(self, *, most: int, crowded: str, abandoned: float) -> None:
        self._most = most
        self._crowded = crowded
        self._abandoned = abandoned
        self._watches: dict[str, W] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(most + 1, thread_name_prefix=type(self).__name__)
        self._closed = threading.Event()
        self._sweeper: Future[None] | None = None

    def _add(self, begin: Callable[[], W]) -> str:
        """Begin a job and return its key.

        Raises
        ------
        ProblemError
            If as many run as are allowed, or as `begin` does.
        """
        with self._lock:
            if sum(not each.outcome.done() for each in self._watches.values()) >= self._most:
                raise ProblemError(self._crowded)
            watch = begin()
            watch.outcome = self._pool.submit(watch.follow)
            key = uuid.uuid4().hex
            self._watches[key] = watch
            if self._sweeper is None:
                self._sweeper = self._pool.submit(self._sweep)
        return key

    def running(self, key: str | None) -> bool:
        """Whether a job with this key goes on."""
        watch = self._watches.get(key or "")
        return watch is not None and not watch.outcome.done()

    def cancel(self, key: str | None) -> None:
        """End a job now; what it has found stays until it is asked for."""
        watch = self._watches.get(key or "")
        if watch is not None and not watch.outcome.done():
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
