"""What lies in Redis for each solve, and for how long.

A solve has a key. Under it lie its ``news``, a stream of events of bounded length; its ``best``
plan, the newest one alone; how many workers have tried it, whether it has ended and whether it is
to be cancelled; and two keys that expire unless they are renewed: ``asked`` by the server that
waits for it, ``beat`` by the worker that has it. So a server or a worker that is gone is noticed by
the other, and no plan stays in Redis longer than `KEPT`. All is JSON; nothing is ever unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from ccl.errors import ProblemError, SolveError

KEPT = 3600
"""Seconds after which what a solve has left in Redis is forgotten."""

NEWS = 200
"""Events of a solve that are kept; a chart of it is thinned to fewer."""

ASKED = 150
"""Seconds after which a solve that no server asks about is ended; a server asks every second."""

GONE = 10.0
"""Seconds without a beat after which a worker is taken to be gone."""

TRIES = 2
"""How many workers may try a solve that ends its worker."""

TIMEOUT = 5.0
"""Seconds within which Redis has to answer."""

WAITING = "topoloom:waiting"
"""Keys of solves that wait for a worker, by the time at which they came."""

WORKERS = "topoloom:worker:"
"""Before the name of each worker that is there."""

SCHEMES = ("redis", "rediss")


@dataclass(frozen=True, slots=True)
class Names:
    """The names under which a solve lies in Redis.

    Parameters
    ----------
    key
        Of the solve.
    """

    key: str

    def __getattr__(self, what: str) -> str:
        """Return the name of one of its parts."""
        return f"topoloom:solve:{self.key}:{what}"


class QueueGone(SolveError):
    """Redis does not answer."""


def connect(url: str) -> Redis:
    """Return a client of the Redis at `url`, once it has answered.

    Raises
    ------
    ProblemError
        If it is no such URL or does not answer.
    """
    if urlsplit(url).scheme not in SCHEMES:
        msg = f"the queue is at {place(url)!r}; give a URL such as redis://127.0.0.1:6379/0"
        raise ProblemError(msg)
    try:
        client: Redis = Redis.from_url(
            url,
            socket_timeout=TIMEOUT,
            socket_connect_timeout=TIMEOUT,
            retry=Retry(NoBackoff(), 1),
        )
        client.ping()
    except (RedisError, ValueError) as error:
        msg = f"no Redis answers at {place(url)} ({_first_line(error)}); start it or check --queue"
        raise ProblemError(msg) from None
    return client


def place(url: str) -> str:
    """Return a URL without the password that may be in it."""
    parts = urlsplit(url)
    where = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{where}{parts.path}" if where else url


@contextmanager
def reaching(what: str) -> Iterator[None]:
    """Turn what Redis raises in a block into a sentence.

    Raises
    ------
    QueueGone
        If Redis does not answer.
    """
    try:
        yield
    except (RedisError, OSError) as error:
        msg = f"{what}: the queue's Redis does not answer ({_first_line(error)})"
        raise QueueGone(msg) from None


def tell(redis: Redis, names: Names, event: Mapping[str, Any], best: Any = None) -> None:
    """Add an event to the news of a solve, and keep a plan that it brings as its best.

    Parameters
    ----------
    redis, names
        Where.
    event
        What is told, in plain values.
    best
        The plain form of a result, or None.
    """
    with redis.pipeline() as batch:
        if best is not None:
            batch.set(names.best, json.dumps(best), ex=KEPT)
        batch.xadd(names.news, {"event": json.dumps(dict(event))}, maxlen=NEWS, approximate=True)
        batch.expire(names.news, KEPT)
        batch.execute()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".").lower()
