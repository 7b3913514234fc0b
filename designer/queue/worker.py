"""Running a worker until it is stopped."""

from __future__ import annotations

import logging
import os
import socket
import threading
import warnings
from collections.abc import Mapping
from typing import Any

from celery.exceptions import Reject, SecurityWarning
from celery.signals import worker_shutting_down

from designer.queue.broker import GONE, connect
from designer.queue.tasks import make_app
from designer.queue.working import Bench, Leaving
from formulations import memory_each


def run_worker(url: str, *, solves: int, memory: float | None = None, gone: float = GONE) -> None:
    """Take solves from the Redis at `url` until the process is told to end.

    A solve that is running then goes back to the queue.

    Parameters
    ----------
    url
        Of the Redis.
    solves
        How many at once.
    memory
        Bytes that each may take; None is an equal part of what the machine gives.
    gone
        Seconds without a beat after which this worker is taken to be gone.

    Raises
    ------
    ProblemError
        If no Redis answers there.
    """
    bench = Bench(connect(url), memory_each(solves) if memory is None else memory, gone)
    name = f"{socket.gethostname()}-{os.getpid()}"

    def work(key: str, request: Mapping[str, Any]) -> None:
        try:
            bench.work(key, request)
        except Leaving:
            raise Reject(requeue=True) from None

    def leave(**_: Any) -> None:
        bench.leaving.set()

    worker_shutting_down.connect(leave, weak=False)
    # Celery warns of root as it could unpickle what others wrote, which it is told never to do.
    warnings.simplefilter("ignore", SecurityWarning)
    # It also warns of every solve that is given back; what fails is told as an error.
    logging.getLogger("celery.app.trace").setLevel(logging.ERROR)
    registered = threading.Thread(target=bench.register, args=(name, solves), daemon=True)
    registered.start()
    try:
        make_app(url, work).Worker(
            pool="threads",
            concurrency=solves,
            hostname=f"topoloom@{name}",
            loglevel="WARNING",
            quiet=True,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
        ).start()
    finally:
        bench.leaving.set()
        registered.join(timeout=2 * gone)
