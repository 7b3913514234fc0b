"""Solves of many servers on the workers of a Dask scheduler.

A server submits each solve as one task and hears its news through a queue of the scheduler. Dask
knows what else this takes: which tasks wait, who still wants one (a server that is gone wants
nothing, and the solver ends), and whose worker is gone (the task comes to another). A worker solves
in a child process, as every solve is, with the same limits of memory.

Plans come back as JSON, and are verified and replayed by the server as any file is. Tasks
themselves are pickled, as all of Dask's are: whoever reaches a scheduler may run what he likes on
its workers.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from distributed import Client, Queue, Worker
from distributed.core import Status
from distributed.worker import get_worker

from ccl.errors import CclError, SolveError
from ccl.options import plain
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization import topoloom
from formulations.campaigns.sweeps.pool import connected
from formulations.core.run import Progress
from formulations.jobs.child import error_event, error_in, memory_each, progress_event
from formulations.jobs.solve_job import Job, SolveJob
from formulations.solving.api import start

LOOK = 0.4
"""Seconds between two looks for news, and between two looks whether a solve is still wanted."""

PAUSE = 0.25
"""Seconds between two news that bring no better plan."""

PATIENCE = 60.0
"""Seconds for which a scheduler may be gone before a solve is given up."""

EQUAL = 1e-9
"""Makespans within this share are the same."""

MEMORY = "TOPOLOOM_MEMORY"
"""Environment variable of a worker: bytes that each solve may take."""

AGAIN = "its worker is gone; it starts again on another"
NOBODY = "waiting; no worker is there yet"
BUSY = "waiting for a worker"
UNREACHED = "the scheduler does not answer; trying again"


class Remote:
    """Where a server sends its solves.

    Parameters
    ----------
    scheduler
        Address such as ``tcp://host:8786``.

    Raises
    ------
    ProblemError
        If it is no such address.
    SolveError
        If no scheduler is there.
    """

    def __init__(self, scheduler: str) -> None:
        self.scheduler = scheduler
        self.client: Client = connected(scheduler)

    def start(
        self,
        problem: Problem,
        formulation: str,
        *,
        options: Mapping[str, Any],
        time_limit: float | None = None,
        gap: float | None = None,
        memory: float | None = None,
    ) -> RemoteJob:
        """Send a solve to the workers; as for `formulations.start`.

        Parameters
        ----------
        problem, formulation, options, time_limit, gap
            What to solve, and how.
        memory
            Is the workers' own to say.
        """
        del memory
        request = {
            "problem": topoloom.problem_to_json(problem),
            "formulation": formulation,
            "options": plain(options),
            "time_limit": time_limit,
            "gap": gap,
        }
        return RemoteJob(self.client, request)

    def close(self) -> None:
        """Leave the scheduler, which ends what was sent."""
        self.client.close()


class RemoteJob(Job):
    """A solve that was sent; iterate over it for its news.

    Parameters
    ----------
    client
        Of the scheduler.
    request
        What is sent.
    """

    def __init__(self, client: Client, request: Mapping[str, Any]) -> None:
        super().__init__()
        self._client, self._request = client, dict(request)
        self._cancelled = threading.Event()
        self._said = ""
        self._begun = 0
        self._before = self._clock = 0.0
        self._sent = 0
        self._send()

    def _send(self) -> None:
        """Give the task to the scheduler, for the first time or where it was forgotten."""
        self._sent += 1
        self._key = f"topoloom-{uuid.uuid4().hex}"
        self._news = Queue(self._key, client=self._client)
        self._task = self._client.submit(
            solve_remotely, self._key, self._request, key=self._key, pure=False
        )

    def __iter__(self) -> Iterator[Progress]:
        """Yield news until the solve ends or is cancelled."""
        reached = time.monotonic()
        while not (self._final or self._error or self._cancelled.is_set()):
            try:
                over = self._task.status in {"error", "cancelled", "lost"}
                events = self._events(wait=not over)
                for event in events:
                    yield from self._take(event)
                if over and not events:
                    self._lost()
                elif not events:
                    yield from self._waiting()
                reached = time.monotonic()
            except OSError:
                if time.monotonic() - reached > PATIENCE:
                    msg = f"the scheduler has not answered for {PATIENCE:g} s"
                    self._error = SolveError(msg)
                else:
                    yield from self._say(UNREACHED)
                    self._cancelled.wait(LOOK)
            except CclError as error:
                self._error = error
        self._drop()

    def cancel(self) -> None:
        """Stop at once; the worker ends the solver, and the best result so far stays."""
        self._cancelled.set()

    def _drop(self) -> None:
        """Want the task no more: the scheduler forgets it, and its worker ends the solver."""
        with contextlib.suppress(OSError):
            self._task.cancel()
            self._news.close()

    def _events(self, *, wait: bool) -> list[dict[str, Any]]:
        """Return the worker's reports since the last look; wait a little for them."""
        try:
            first = self._news.get(timeout=LOOK if wait else 0.01)
            rest = self._news.get(batch=True) if self._news.qsize() else ()
        except TimeoutError:
            return []
        return [json.loads(each) for each in (first, *rest)]

    def _take(self, event: Mapping[str, Any]) -> Iterator[Progress]:
        if event["event"] == "begin":
            self._before, self._begun = self._clock, self._begun + 1
            if self._begun > 1:
                yield from self._say(AGAIN)
        elif event["event"] == "progress":
            yield self._progress(event)
        elif event["event"] == "result":
            self._end(topoloom.result_from_json(event["result"]))
        else:
            self._error = error_in(event)

    def _progress(self, event: Mapping[str, Any]) -> Progress:
        """Return the worker's reports; what another had found before is not forgotten."""
        better = None if event["result"] is None else topoloom.result_from_json(event["result"])
        if better is not None and self._worse(better):
            better = None
        if better is not None:
            self.best = self.with_simpler(better)
        incumbent = event["incumbent"] if self.best is None else self.best.makespan
        self._said, self._clock = event["message"], self._before + event["seconds"]
        return Progress(self._clock, incumbent, event["bound"], self._said, better)

    def _end(self, final: Result) -> None:
        """Take the last result, or a better one that a worker had found which is gone."""
        if self.best is not None and self._worse(final):
            log = (*final.log, "a worker that is gone had found this plan, which is better")
            final = replace(self.best, stop=final.stop, log=log)
        self._final = self.best = self.with_simpler(final)

    def _worse(self, result: Result) -> bool:
        return self.best is not None and result.makespan > self.best.makespan * (1 + EQUAL)

    def _lost(self) -> None:
        """Send it again where a scheduler has forgotten it; else say what has become of it.

        Raises
        ------
        SolveError
            If workers end whenever they have it, or it is forgotten again.
        """
        if self._task.status == "error":
            why = str(self._task.exception()).splitlines()[0]
            raise SolveError(f"the solve was given up, as the workers that had it ended: {why}")
        if self._sent > 1:
            raise SolveError("the solve was lost twice with its scheduler, and is given up")
        self._send()

    def _waiting(self) -> Iterator[Progress]:
        """Explain why nothing has begun."""
        if not self._begun:
            yield from self._say(BUSY if self._client.nthreads() else NOBODY)

    def _say(self, words: str) -> Iterator[Progress]:
        """Yield words about the sending once, the best so far beside them."""
        if words != self._said:
            self._said = words
            best = None if self.best is None else self.best.makespan
            yield Progress(self._clock, best, None, words, None)


def solve_remotely(key: str, request: Mapping[str, Any]) -> None:
    """Solve the request under a key, on the worker that runs this."""
    worker = get_worker()
    news = _News(key)
    news.put({"event": "begin"})
    try:
        job = start(
            topoloom.problem_from_json(request["problem"]),
            request["formulation"],
            options=request["options"],
            time_limit=request["time_limit"],
            gap=request["gap"],
            memory=float(os.environ.get(MEMORY, "0")) or memory_each(worker.state.nthreads),
        )
        with _wanted(worker, key, job):
            news.follow(job)
            last = {"event": "result", "result": topoloom.result_to_json(job.result())}
    except CclError as error:
        last = error_event(error)
    news.put(last)


class _News:
    """A worker's report on a solve."""

    def __init__(self, key: str) -> None:
        self._queue = Queue(key)

    def put(self, event: Mapping[str, Any]) -> None:
        """Report an event; a scheduler that is gone hears nothing, and forgets its workers."""
        with contextlib.suppress(OSError):
            self._queue.put(json.dumps(event))

    def follow(self, job: SolveJob) -> None:
        """Report what the solver says: every better plan, and how it goes a few times a second."""
        last = 0.0
        for each in job:
            if each.result is None and time.monotonic() - last < PAUSE:
                continue
            last = time.monotonic()
            result = None if each.result is None else topoloom.result_to_json(each.result)
            self.put(progress_event(each, result))


@contextlib.contextmanager
def _wanted(worker: Worker, key: str, job: SolveJob) -> Iterator[None]:
    """End a solve that nobody wants any more, or whose worker is being closed."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK):
            task = worker.state.tasks.get(key)
            wanted = task is not None and task.state == "executing"
            if not wanted or worker.status is not Status.running:
                job.cancel()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        job.cancel()
