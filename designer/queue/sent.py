"""A solve as the server sees it: sent to a worker, followed, cancelled, sent again if need be."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from celery.exceptions import OperationalError
from redis.exceptions import RedisError

import ccl.errors
from ccl.errors import CclError, ProblemError, SolveError
from ccl.options import plain
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.topoloom import problem_to_json, result_from_json
from ccl.text import count, ordinal
from designer.jobs import MOST_WAITING, Jobs, Limits
from designer.queue.broker import (
    ASKED,
    KEPT,
    WAITING,
    WORKERS,
    Names,
    QueueGone,
    connect,
    reaching,
)
from designer.queue.tasks import NAME, QUEUE, make_app
from designer.views.catalog.catalog_view import answering
from formulations import Progress, ended

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Catalog

LOOK = 0.4
"""Seconds between two looks for news."""

LOST = 3.0
"""Seconds for which a solve is in nobody's hands before it is sent again."""

PATIENCE = 60.0
"""Seconds for which Redis may be gone before a solve is given up."""

SENT = 32
"""Solves of one server that lie in Redis at once; others wait in the server, in fair turns."""

FORGOTTEN = 86400.0
"""Seconds after which a solve waits no more whose server and message are gone."""

EQUAL = 1e-9
"""Makespans within this share are the same."""

NOBODY = "; no worker is there yet"
AGAIN = "its worker is gone; it starts again on another"


class Queue:
    """Where a server sends its solves.

    Parameters
    ----------
    url
        Of the Redis.
    waiting
        How many solves of all servers may wait for a worker.

    Raises
    ------
    ProblemError
        If no Redis answers there.
    """

    def __init__(self, url: str, *, waiting: int = MOST_WAITING) -> None:
        self.url = url
        self.redis = connect(url)
        self.app = make_app(url)
        self._waiting = waiting

    def start(
        self,
        problem: Problem,
        formulation: str,
        *,
        options: Mapping[str, Any],
        time_limit: float | None = None,
        gap: float | None = None,
        memory: float | None = None,
    ) -> QueuedJob:
        """Send a solve to the workers; as for `formulations.start`.

        Parameters
        ----------
        problem, formulation, options, time_limit, gap
            What to solve, and how.
        memory
            Is the workers' own to say.

        Raises
        ------
        ProblemError
            If as many wait as may.
        QueueGone
            If Redis does not answer.
        """
        del memory
        request = {
            "problem": problem_to_json(problem),
            "formulation": formulation,
            "options": plain(options),
            "time_limit": time_limit,
            "gap": gap,
        }
        with reaching("the solve cannot be sent"):
            waiting = self._count()
        if waiting >= self._waiting:
            msg = f"{count(self._waiting, 'solve')} wait for a worker already, which is as many "
            raise ProblemError(msg + "as may; try again in a while")
        job = QueuedJob(self, request)
        with reaching("the solve cannot be sent"):
            self.send(job.names, request)
        return job

    def send(self, names: Names, request: Mapping[str, Any]) -> None:
        """Put a solve in the queue, for the first time or again."""
        self.redis.set(names.asked, 1, ex=ASKED)
        self.redis.zadd(WAITING, {names.key: time.time()}, nx=True)
        try:
            self.app.send_task(NAME, args=[names.key, dict(request)])
        except OperationalError as error:
            self.redis.zrem(WAITING, names.key)
            raise OSError(str(error)) from None

    def _count(self) -> int:
        """Return how many solves wait.

        Where no worker is, what was cancelled lies in the queue all the same; ten of those count
        as one, lest starting and cancelling fill Redis.
        """
        with self.redis.pipeline() as batch:
            batch.zremrangebyscore(WAITING, 0, time.time() - FORGOTTEN)
            batch.zcard(WAITING)
            batch.llen(QUEUE)
            _, waiting, sent = batch.execute()
        return max(int(waiting), int(sent) // 10)

    def workers(self) -> int:
        """Return how many workers are there."""
        return sum(1 for _ in self.redis.scan_iter(f"{WORKERS}*"))


class QueuedJob:
    """A solve that was sent; iterate over it for its news.

    Parameters
    ----------
    queue
        Through which it was sent.
    request
        What was sent.
    """

    def __init__(self, queue: Queue, request: Mapping[str, Any]) -> None:
        self.names = Names(uuid.uuid4().hex)
        self.best: Result | None = None
        """The best result so far, kept when the job is cancelled."""
        self.place = 0
        """Its place in line, 0 when it has begun."""
        self._queue, self._redis = queue, queue.redis
        self._request = request
        self._final: Result | None = None
        self._error: CclError | None = None
        self._cancelled = threading.Event()
        self._last = "0"
        self._said = ""
        self._before = self._clock = 0.0
        self._held = time.monotonic()
        self._again = False

    def __iter__(self) -> Iterator[Progress]:
        """Yield news until the solve ends or is cancelled."""
        reached = time.monotonic()
        while not (self._final or self._error or self._cancelled.is_set()):
            try:
                yield from self._news()
                yield from self._watched()
                reached = time.monotonic()
            except (RedisError, OSError):
                if time.monotonic() - reached > PATIENCE:
                    msg = f"the queue's Redis has not answered for {PATIENCE:g} s"
                    self._error = QueueGone(msg)
                else:
                    yield from self._say("the queue does not answer; trying again")
                    self._cancelled.wait(LOOK)
            except CclError as error:
                self._error = error
        if self._cancelled.is_set():
            self._drop()

    def result(self) -> Result:
        """Wait for the end and return the result, the best so far if it was cancelled.

        Raises
        ------
        CclError
            As `formulations.solve` does; SolveError if it was cancelled before the first plan, if
            two workers ended while they had it, or if Redis is gone.
        """
        for _ in self:
            pass
        return ended(self._final, self._error, self.best)

    def cancel(self) -> None:
        """Stop at once; the worker ends the solver, and the best result so far stays."""
        self._cancelled.set()

    def _drop(self) -> None:
        """Tell the worker, or whoever would become it, that nobody waits any more."""
        try:
            with self._redis.pipeline() as batch:
                batch.set(self.names.cancel, 1, ex=KEPT)
                batch.delete(self.names.asked)
                batch.zrem(WAITING, self.names.key)
                batch.execute()
        except RedisError:
            return  # nobody renews what says that it is asked for: it ends all the same

    def _news(self) -> Iterator[Progress]:
        """Yield what the worker has told since the last look, or wait a little for it."""
        told = self._redis.xread({self.names.news: self._last}, count=50, block=int(1000 * LOOK))
        for number, fields in _entries(told):
            self._last = number
            event = json.loads(fields)
            self.place = 0
            if event["event"] == "begin":
                self._before = self._clock
            elif event["event"] == "progress":
                yield self._progress(event)
            elif event["event"] == "result":
                self._end()
            elif event["event"] == "error":
                kind = getattr(ccl.errors, event["kind"], SolveError)
                self._error = kind(event["message"])

    def _progress(self, event: Mapping[str, Any]) -> Progress:
        """Return what the worker told; what another had found before is not forgotten."""
        better = self._read() if event["better"] else None
        if better is not None and self._worse(better):
            better = None
        self.best = better or self.best
        incumbent = event["incumbent"] if self.best is None else self.best.makespan
        self._said, self._clock = event["message"], self._before + event["seconds"]
        return Progress(self._clock, incumbent, event["bound"], self._said, better)

    def _end(self) -> None:
        """Take the last result, or a better one that a worker had found which is gone."""
        final = self._read()
        if final is not None and self.best is not None and self._worse(final):
            log = (*final.log, "a worker that is gone had found this plan, which is better")
            final = replace(self.best, stop=final.stop, log=log)
        self._final = self.best = final

    def _worse(self, result: Result) -> bool:
        return self.best is not None and result.makespan > self.best.makespan * (1 + EQUAL)

    def _read(self) -> Result | None:
        """Return the best plan that the worker has told, verified and replayed here as well."""
        value = self._redis.get(self.names.best)
        return None if value is None else result_from_json(json.loads(value))

    def _watched(self) -> Iterator[Progress]:
        """Say that somebody waits, and send it again when it is in nobody's hands."""
        names, now = self.names, time.monotonic()
        with self._redis.pipeline() as batch:
            batch.set(names.asked, 1, ex=ASKED)
            batch.exists(names.beat)
            batch.zrank(WAITING, names.key)
            batch.exists(names.ended)
            _, beats, rank, ended = batch.execute()
        self.place = 0 if rank is None else rank + 1
        if beats or rank is not None or ended:
            self._held = now
        if self.place:
            nobody = "" if self._queue.workers() else NOBODY
            yield from self._say(f"waiting, {ordinal(self.place)} in line{nobody}")
        if now - self._held > LOST:
            self._send_again()
            yield from self._say(AGAIN)

    def _send_again(self) -> None:
        if self._again:
            msg = "the solve was lost twice with its worker, and is given up"
            raise SolveError(msg)
        self._queue.send(self.names, self._request)
        self._again, self._held = True, time.monotonic()

    def _say(self, words: str) -> Iterator[Progress]:
        """Yield words of the queue's own once, the best so far beside them."""
        if words != self._said:
            self._said = words
            best = None if self.best is None else self.best.makespan
            yield Progress(self._clock, best, None, words, None)


class QueuedJobs(Jobs):
    """The solves of all pages of one server, on workers.

    Parameters
    ----------
    queue
        Where they are sent.
    catalog
        What answers what was solved before and keeps what is solved, None without one.
    """

    def __init__(self, queue: Queue, catalog: Catalog | None = None) -> None:
        super().__init__(answering(queue.start, catalog), Limits(at_once=SENT))

    def _place(self, key: str) -> int:
        """Return its place in the server's line, or else in that of the workers."""
        here = super()._place(key)
        job = None if key not in self._watches else self._watches[key].job
        return here or int(getattr(job, "place", 0))


def _entries(told: Any) -> Iterator[tuple[str, bytes]]:
    """Yield number and event of what a stream holds, in either form that redis-py returns."""
    for _, entries in told.items() if isinstance(told, dict) else told or ():
        for entry in entries[0] if isinstance(told, dict) else entries:
            yield entry[0].decode(), entry[1][b"event"]
