"""The child process of a worker: tasks in lines of JSON, one after the other, and their rows.

For each task it answers ``begin`` with the fingerprint once everything is loaded, ``best`` with
the row of a plan that is not the last, once a second at most, so that little is lost when the
process is ended, and ``row``. It ends when the pipe that its tasks come through is closed, whatever
its solver is doing, and when nobody has asked for a while.
"""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import IO, Any, cast

import msgspec

from ccl import __version__
from ccl.collective import CollectiveKind, make_collective
from ccl.errors import CclError, ProblemError
from ccl.problem import Problem
from ccl.result import Result
from ccl.topology import Topology
from formulations.analyses.comparison.cells import warm_up
from formulations.analyses.comparison.child import PLANS
from formulations.campaigns.sweeps.clusters import digest, made
from formulations.campaigns.sweeps.rows import RESULT, Values, solved_values
from formulations.campaigns.sweeps.tasks import Task
from formulations.core.run import Progress
from formulations.solving.api import solve

IDLE = 60.0
"""Seconds without a task after which the process ends: its asker may be gone without a word."""


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Solve the tasks that `requests` names; the body of the child process."""
    waiting: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_listen, args=(requests, waiting), daemon=True).start()
    speak, warm = _Speaker(answers), set[tuple[str, str]]()
    while True:
        try:
            line = waiting.get(timeout=IDLE)
        except queue.Empty:
            return
        task = msgspec.json.decode(line, type=Task)
        try:
            _answer(task, speak, warm)
        except CclError as error:
            speak.line({"event": "row", "values": {"why_not": str(error)}})


def _listen(requests: IO[bytes], waiting: queue.Queue[bytes]) -> None:
    """Pass requests on, and end the process when nobody holds the pipe's other end any more."""
    for line in requests:
        waiting.put(line)
    os._exit(3)


def _answer(task: Task, speak: _Speaker, warm: set[tuple[str, str]]) -> None:
    topology = _topology(json.dumps(task.source), task.digest)
    collective = make_collective(
        cast(CollectiveKind, task.collective),
        len(topology.ranks),
        task.size,
        chunks=task.chunks,
        root=task.root,
    )
    problem = Problem(topology, collective)
    first = task.formulation, task.collective
    if first not in warm:
        warm.add(first)
        warm_up(task.method, collective.kind)
    speak.begin(problem.fingerprint)
    result = solve(
        problem,
        task.formulation,
        options=task.options,
        time_limit=task.time_limit,
        gap=task.gap,
        progress=speak.progress,
    )
    speak.row("row", result)


@lru_cache(maxsize=4)
def _topology(source: str, wanted: str) -> Topology:
    """Make a cluster of its source, the very one that the sweep is about."""
    topology = made(json.loads(source))
    if digest(topology) != wanted:
        msg = (
            f"{topology} is another cluster here, in Topoloom {__version__}, than where the sweep "
            "was started; install the same version on all workers"
        )
        raise ProblemError(msg)
    return topology


class _Speaker:
    """Writes lines, not too many of those with a plan that is not the last."""

    def __init__(self, answers: IO[bytes]) -> None:
        self.answers = answers
        self.told = 0.0

    def begin(self, fingerprint: str) -> None:
        """Tell that a solve begins."""
        self.told = time.monotonic()
        self.line({"event": "begin", "fingerprint": fingerprint, "version": __version__})

    def progress(self, news: Progress) -> None:
        """Tell the best plan so far."""
        if news.result is not None and time.monotonic() - self.told >= PLANS:
            self.told = time.monotonic()
            self.row("best", news.result)

    def row(self, event: str, result: Result) -> None:
        """Tell the values of a result."""
        values: Values = solved_values(result)
        values[RESULT] = b64encode(values[RESULT]).decode()
        self.line({"event": event, "values": values})

    def line(self, event: Mapping[str, Any]) -> None:
        """Write one line."""
        self.answers.write(json.dumps(event).encode() + b"\n")
        self.answers.flush()
