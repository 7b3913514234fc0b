"""Who solves: workers in this process, or those of a Dask scheduler that is there.

Each local worker is a thread that waits for its child process, so that nothing is pickled, nothing
starts twice and nothing listens on any port: workers and scheduler speak within this process, and
the pages that Dask would serve are left out.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed import Client, Scheduler, SpecCluster, Worker

from ccl.errors import ProblemError, SolveError
from formulations.campaigns.sweeps.pool import NAME, Pool

PATIENCE = 30.0
"""Seconds to wait for a scheduler and its first worker."""


class _Pageless:
    """What serves no pages, on whatever address it is told."""

    def start_http_server(self, *_given: Any, **_named: Any) -> None:
        """Do nothing."""


class _Scheduler(_Pageless, Scheduler):
    pass


class _Worker(_Pageless, Worker):
    """A worker that does not look a hundred times a second at what its waiting thread does."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        for name in ("profile", "profile-cycle"):
            self.periodic_callbacks.pop(name, None)


def cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


@contextmanager
def solvers(scheduler: str | None, workers: int | None) -> Iterator[Client]:
    """Give a client whose workers can solve tasks; local ones end with the block.

    Parameters
    ----------
    scheduler
        Address such as ``tcp://host:8786``, or None for workers of this machine.
    workers
        How many of these; by default one for each core.

    Raises
    ------
    ProblemError
        If a number of workers is given that makes no sense.
    SolveError
        If there is no scheduler at the address, or it has no workers.
    """
    if scheduler is not None and workers is not None:
        msg = f"the scheduler {scheduler} has its own workers; leave out the number of them"
        raise ProblemError(msg)
    if workers is not None and workers < 1:
        msg = f"the number of workers is {workers}; give 1 or more"
        raise ProblemError(msg)
    if scheduler is None:
        with _local(workers or cores()) as client:
            yield client
    else:
        with _remote(scheduler) as client:
            yield client


@contextmanager
def _local(workers: int) -> Iterator[Client]:
    with tempfile.TemporaryDirectory(prefix="topoloom-sweep-") as folder:
        usual: dict[str, Any] = {"protocol": "inproc://", "dashboard": False}
        options = usual | {"nthreads": 1, "memory_limit": 0, "local_directory": folder}
        cluster = SpecCluster(
            scheduler={"cls": _Scheduler, "options": usual},
            workers={each: {"cls": _Worker, "options": options} for each in range(workers)},
            silence_logs=logging.CRITICAL,
        )
        with cluster, Client(cluster, set_as_default=False) as client:
            client.register_plugin(Pool(workers), name=NAME)
            yield client


@contextmanager
def _remote(scheduler: str) -> Iterator[Client]:
    try:
        client = Client(scheduler, timeout=PATIENCE, set_as_default=False)
    except (TimeoutError, OSError, ValueError) as error:
        msg = f"there is no Dask scheduler at {scheduler}: {str(error).splitlines()[0]}"
        raise SolveError(msg) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            msg = f"the scheduler at {scheduler} has no workers; start some"
            raise SolveError(msg) from None
        client.register_plugin(Pool(), name=NAME)
        yield client
