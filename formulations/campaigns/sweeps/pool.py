"""Who solves the tasks of a sweep: child processes, of workers in this process or of Dask's.

`Pool` holds child processes, one for each thread of a worker, which solves task after task. Loading
solvers takes as long as many a task, so a process stays. One that takes too long or too much memory
is ended, and costs its own task alone; one that dies otherwise is replaced, and its task tried
again.

`solvers` gives workers in this process, or those of a Dask scheduler that is there. Each local
worker is a thread that waits for its child process, so that nothing is pickled, nothing starts
twice and nothing listens on any port: workers and scheduler speak within this process, and the
pages that Dask would serve are left out.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import msgspec
from distributed import Client, Scheduler, SpecCluster, Worker
from distributed.diagnostics.plugin import WorkerPlugin
from distributed.worker import get_worker

from ccl import __version__
from ccl.errors import ProblemError, SolveError
from ccl.result import Stop
from formulations.campaigns.sweeps.rows import RESULT, Values, unsolved
from formulations.campaigns.sweeps.tasks import Task
from formulations.jobs.child import Child, Watch, memory_each, patience
from formulations.jobs.solve_job import PROCESS

NAME = "topoloom-sweep"
"""Of the plugin: sweeps that share workers share their processes."""

MODULE = "formulations.campaigns.sweeps"


START = 120.0
"""Seconds for loading solvers and making the problem; a machine may have much else to do."""


def solve_task(task: Task) -> Values:
    """Solve a task on the worker that runs this; its values report what a solver does.

    Raises
    ------
    SolveError
        If the worker is being closed.
    """
    pool = get_worker().plugins[NAME]
    assert isinstance(pool, Pool)
    return pool.solve(task)


class Pool(WorkerPlugin):
    """The child processes of one worker; Dask sets it up and takes it down with the worker.

    Parameters
    ----------
    beside
        How many workers share the machine, and so its memory.
    """

    idempotent = True
    """Where another sweep has brought it to the workers, its processes are as good."""

    def __init__(self, beside: int = 1) -> None:
        self.beside = beside

    def setup(self, worker: Worker) -> None:
        """Begin, on the worker, without processes."""
        self.who = str(worker.name)
        self.memory = memory_each(self.beside * worker.state.nthreads)
        self.closed = False
        self._idle: list[_Process] = []
        self._busy: set[_Process] = set()
        self._lock = threading.Lock()

    def teardown(self, worker: Worker) -> None:
        """End all processes."""
        with self._lock:
            self.closed = True
            for each in self._busy:
                each.child.kill()
            for each in self._idle:
                each.end()
            self._idle = []

    def solve(self, task: Task) -> Values:
        """Solve a task, in another process again while its process dies."""
        begin, attempts = time.perf_counter(), 0
        while True:
            process = self._taken(task.memory or self.memory)
            fresh = process.fresh
            tried = process.ask(task)
            self._given_back(process)
            if not (fresh or tried.counts or self.closed):
                continue  # what it lacked, it may have lost to the tasks before
            attempts += 1
            if tried.done or self.closed or attempts > task.retries:
                break
        values = unsolved(task, "", version=__version__) | tried.outcome(task, attempts)
        wall = time.perf_counter() - begin
        return values | {"worker": self.who, "attempts": attempts, "wall": wall}

    def _taken(self, memory: float) -> _Process:
        with self._lock:
            if self.closed:
                raise SolveError(f"worker {self.who} is being closed; start the same sweep again")
            for each in [each for each in self._idle if each.memory == memory]:
                self._idle.remove(each)
                if each.child.running:
                    self._busy.add(each)
                    return each
                each.end()
            made = _Process(memory)
            self._busy.add(made)
            return made

    def _given_back(self, process: _Process) -> None:
        with self._lock:
            self._busy.discard(process)
            if process.child.running and not self.closed:
                self._idle.append(process)
            else:
                process.end()


class _Process:
    """A child process that solves one task at a time."""

    def __init__(self, memory: float) -> None:
        self.memory = memory
        self.child = Child(MODULE, memory=memory)
        self.fresh = True
        self._answers = iter(self.child)

    def ask(self, task: Task) -> _Tried:
        """Wait for the row of a task, or for what ends the process before."""
        self.fresh = False
        tried = _Tried(memory=self.memory)
        watch = self._watched(tried, START)
        self.child.ask(msgspec.to_builtins(task))
        for event in self._answers:
            tried.take(event)
            if event["event"] == "begin":
                watch.cancel()
                watch = self._watched(tried, patience(task.time_limit))
            if tried.final is not None:
                break
        else:
            tried.starved, tried.words = self.child.starved, self.child.last_words(PROCESS)
        watch.cancel()
        return tried

    def _watched(self, tried: _Tried, seconds: float | None) -> Watch:
        """Return what ends the process after some seconds, unless it is cancelled before."""

        def overrun() -> None:
            tried.late = True
            self.child.kill()

        return Watch(seconds, overrun)

    def end(self) -> None:
        """End the process and give back its pipes."""
        with contextlib.suppress(ProcessLookupError):
            self.child.kill()
        self.child.close()


class _Tried:
    """What came of asking a process once."""

    def __init__(self, *, memory: float) -> None:
        self.memory = memory
        self.begun = self.late = self.starved = False
        self.fingerprint = self.words = ""
        self.best: Values | None = None
        self.final: Values | None = None

    @property
    def counts(self) -> bool:
        """Whether what happened is the task's doing, whatever the process did before."""
        return self.final is not None or self.late or (self.begun and not self.starved)

    @property
    def done(self) -> bool:
        """Whether trying again would be the same."""
        return self.final is not None or self.late or self.starved

    def take(self, event: dict[str, Any]) -> None:
        """Take an answer of the process."""
        if event["event"] == "begin":
            self.begun, self.fingerprint = True, event["fingerprint"]
            return
        values: Values = event["values"]
        if RESULT in values:
            values[RESULT] = b64decode(values[RESULT])
        if event["event"] == "row":
            self.final = values
        else:
            self.best = values

    def outcome(self, task: Task, attempts: int) -> Values:
        """Return what a row says of it: the last plan, the best one of who was ended, or why."""
        values: Values = {"fingerprint": self.fingerprint}
        if self.final is not None:
            return values | self.final
        if self.best is not None and (self.late or self.starved):
            stop = Stop.TIME_LIMIT if self.late else Stop.MEMORY
            return values | self.best | {"stop": stop.name}
        return values | {"why_not": self._why_not(task, attempts)}

    def _why_not(self, task: Task, attempts: int) -> str:
        if self.late and not self.begun:
            return f"{PROCESS} was ended, as it had not begun to solve after {START:g} s"
        if self.late:
            return (
                f"{PROCESS} was ended after {patience(task.time_limit):g} s without a plan, as it "
                f"did not stop at the limit of {task.time_limit:g} s"
            )
        if self.starved:
            return (
                f"{PROCESS} was ended without a plan, as it needed more memory than the "
                f"{self.memory / 1e9:.3g} GB it may have; raise memory_limit or run fewer workers"
            )
        tries = f" ({attempts} attempts)" if attempts > 1 else ""
        return f"{self.words}{tries}"


SCHEMES = ("tcp", "tls")

ANSWER = 10.0
"""Seconds to wait for a scheduler."""

PATIENCE = 30.0
"""Seconds to wait for its first worker."""


class _Pageless:
    """A server without pages, on whatever address it is given."""

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
        raise ProblemError(
            f"the scheduler {scheduler} has its own workers; leave out the number of them"
        )
    if workers is not None and workers < 1:
        raise ProblemError(f"the number of workers is {workers}; give 1 or more")
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


def connected(scheduler: str) -> Client:
    """Return a client of the Dask scheduler at an address.

    Raises
    ------
    ProblemError
        If it is no such address.
    SolveError
        If no scheduler is there.
    """
    if urlsplit(scheduler).scheme not in SCHEMES:
        raise ProblemError(
            f"the scheduler is at {scheduler!r}; give an address such as tcp://127.0.0.1:8786"
        )
    try:
        return Client(scheduler, timeout=ANSWER, set_as_default=False)
    except (TimeoutError, OSError, ValueError) as error:
        raise SolveError(
            f"there is no Dask scheduler at {scheduler}: {str(error).splitlines()[0]}"
        ) from None


@contextmanager
def _remote(scheduler: str) -> Iterator[Client]:
    with connected(scheduler) as client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise SolveError(f"the scheduler at {scheduler} has no workers; start some") from None
        client.register_plugin(Pool(), name=NAME)
        yield client
