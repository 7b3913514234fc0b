"""A solve as the worker sees it: claimed, solved in a child process, told to Redis as it goes."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from ccl.errors import CclError
from ccl.result import Result
from ccl.serialization.topoloom import problem_from_json, result_to_json
from designer.queue.broker import GONE, KEPT, TRIES, WAITING, WORKERS, Names, tell
from formulations import Progress, SolveJob, start

log = logging.getLogger(__name__)

BEAT = 0.5
"""Seconds between two beats, and between two looks whether someone has cancelled."""

PAUSE = 0.25
"""Seconds between two events that bring no better plan."""

PATIENCE = 120.0
"""Seconds for which a result is kept while Redis does not answer."""


class Leaving(Exception):
    """The worker is being stopped, and the solve goes back to the queue."""


@dataclass
class Bench:
    """What a worker solves with.

    Parameters
    ----------
    redis
        Where solves come from and go to.
    memory
        Bytes that each solve may take.
    gone
        Seconds without a beat after which others take this worker to be gone.
    leaving
        Set when the worker is being stopped.
    """

    redis: Redis
    memory: float
    gone: float = GONE
    leaving: threading.Event = field(default_factory=threading.Event)

    def work(self, key: str, request: Mapping[str, Any]) -> None:
        """Solve what was asked under a key, unless another has or somebody is no longer there.

        Raises
        ------
        Leaving
            If the worker is stopped meanwhile.
        """
        names = Names(key)
        with _claimed(self, names) as mine:
            if mine and self.redis.exists(names.asked) and not self.redis.exists(names.ended):
                self._solve(names, request)

    def register(self, name: str, solves: int) -> None:
        """Say every now and then that this worker is there, until it is stopped."""
        while True:
            try:
                self.redis.set(f"{WORKERS}{name}", solves, px=int(1000 * self.gone))
            except RedisError as error:
                log.warning("Redis does not answer: %s", error)
            if self.leaving.wait(self.gone / 4):
                break
        self.redis.delete(f"{WORKERS}{name}")

    def _solve(self, names: Names, request: Mapping[str, Any]) -> None:
        if self.redis.incr(names.tries) > TRIES:
            msg = f"the solve was given up: {TRIES} workers ended while they had it"
            self._end(names, {"event": "error", "kind": "SolveError", "message": msg})
            return
        self.redis.expire(names.tries, KEPT)
        tell(self.redis, names, {"event": "begin"})
        try:
            job = start(
                problem_from_json(request["problem"]),
                request["formulation"],
                options=request["options"],
                time_limit=request["time_limit"],
                gap=request["gap"],
                memory=self.memory,
            )
            with _beating(self, names, job):
                self._follow(names, job)
                result = job.result()
        except CclError as error:
            self._left(names)
            told = {"event": "error", "kind": type(error).__name__, "message": str(error)}
            self._end(names, told)
        else:
            self._left(names)
            self._end(names, {"event": "result"}, result)

    def _left(self, names: Names) -> None:
        """Give the solve back if it ended because this worker is being stopped."""
        if self.leaving.is_set():
            self.redis.decr(names.tries)
            self.redis.zadd(WAITING, {names.key: time.time()})
            raise Leaving

    def _follow(self, names: Names, job: SolveJob) -> None:
        """Tell what the solver says; what cannot be told now is told with the next."""
        last, untold = 0.0, None
        for news in job:
            untold = news.result or untold
            if untold is None and time.monotonic() - last < PAUSE:
                continue
            last = time.monotonic()
            try:
                tell(self.redis, names, _progress(news, untold), _plain(untold))
                untold = None
            except RedisError as error:
                log.warning("Redis does not answer: %s", error)

    def _end(self, names: Names, event: Mapping[str, Any], result: Result | None = None) -> None:
        """Tell how a solve has ended, as soon as Redis answers."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                tell(self.redis, names, event, _plain(result))
                self.redis.set(names.ended, 1, ex=KEPT)
                return
            except RedisError:
                if time.monotonic() > end:
                    raise
                time.sleep(BEAT)


def _plain(result: Result | None) -> Any:
    return None if result is None else result_to_json(result)


def _progress(news: Progress, best: Result | None) -> dict[str, Any]:
    return {
        "event": "progress",
        "seconds": news.seconds,
        "incumbent": news.incumbent,
        "bound": news.bound,
        "message": news.message,
        "better": best is not None,
    }


@contextmanager
def _claimed(bench: Bench, names: Names) -> Iterator[bool]:
    """Hold a solve for this worker, unless another that is still there holds it."""
    token = uuid.uuid4().hex
    redis, held = bench.redis, int(1000 * bench.gone)
    mine = bool(redis.set(names.beat, token, nx=True, px=held))
    redis.zrem(WAITING, names.key)
    try:
        yield mine
    finally:
        if mine:
            redis.delete(names.beat)


@contextmanager
def _beating(bench: Bench, names: Names, job: SolveJob) -> Iterator[None]:
    """Beat while a solve goes on, and end it when it is cancelled or nobody asks about it."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(BEAT):
            try:
                with bench.redis.pipeline() as batch:
                    batch.set(names.beat, "1", px=int(1000 * bench.gone))
                    batch.exists(names.cancel)
                    batch.exists(names.asked)
                    _, cancelled, asked = batch.execute()
            except RedisError as error:
                log.warning("Redis does not answer: %s", error)
                continue
            if cancelled or not asked or bench.leaving.is_set():
                job.cancel()

    thread = threading.Thread(target=beat, daemon=True, name=f"beat of {names.key}")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        job.cancel()
