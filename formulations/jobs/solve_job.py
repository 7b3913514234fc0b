"""A solve in a child process that speaks JSON lines and dies with its parent.

The parent writes one line, the request, and keeps the pipe open: when it closes, because the
parent closed it or is gone, the child ends at once, whatever its solver is doing. The child
writes one line for every news; a line with a result carries the plan and its replay
(`formulations.jobs.transport`), so that cancelling loses nothing, nor does a solver that takes too
much memory or does not stop and is ended. Lines are objects with an ``event``: ``progress``,
``result`` or ``error``.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import IO, Any, NoReturn

import ccl.errors
from ccl.errors import CclError, LimitReached, SolveError
from ccl.options import plain
from ccl.problem import Problem
from ccl.result import Result, Stop
from ccl.schedule import Schedule
from ccl.serialization.topoloom import (
    plan_from_json,
    plan_to_json,
    problem_from_json,
    problem_to_json,
)
from formulations.core.run import Progress
from formulations.jobs.child import Child
from formulations.jobs.resource_limits import Watch, checked, patience
from formulations.jobs.transport import Receiver, Sender

PAUSE = 0.1
"""Seconds between two lines that carry no plan."""

LEAST = 0.75
"""Share of a limit that a solver has at least, however long its process takes to begin."""

PROCESS = "the solver's process"


class SolveJob:
    """A running solve; iterate over it for its news.

    Parameters
    ----------
    problem, formulation, options, time_limit, gap, solver, begin_with
        As for `formulations.solve`.
    memory
        As for `formulations.start`.
    """

    def __init__(
        self,
        problem: Problem,
        formulation: str,
        *,
        options: Mapping[str, Any],
        time_limit: float | None = None,
        gap: float | None = None,
        solver: str = "HIGHS",
        begin_with: Schedule | None = None,
        memory: float | None = None,
    ) -> None:
        self.best: Result | None = None
        """The best result so far, kept when the job is cancelled."""
        self._final: Result | None = None
        self._error: CclError | None = None
        self.cancelled = False
        self._child = Child("formulations", memory=checked(memory))
        self._results = Receiver(problem)
        self._time_limit = time_limit
        self._late = False
        self._watch = Watch(patience(time_limit), self._overrun)
        self._child.ask(
            {
                "problem": problem_to_json(problem),
                "formulation": formulation,
                "options": plain(options),
                "time_limit": time_limit,
                "gap": gap,
                "solver": solver,
                "begin_with": None if begin_with is None else plan_to_json(begin_with),
                "asked_at": time.time(),
            }
        )

    @property
    def pid(self) -> int:
        """Number of the solver's process."""
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether the solver's process is still there."""
        return self._child.running

    def __iter__(self) -> Iterator[Progress]:
        """Yield news until the solve ends or is cancelled."""
        if self._child.closed:
            return
        for line in self._child:
            news = self._read(line)
            if news is not None:
                yield news
        self._child.wait()
        self._watch.cancel()
        if self._final is None and self._error is None and not self.cancelled:
            self._cut_short()
        self._child.close()

    def result(self) -> Result:
        """Wait for the end and return the result, the best so far if it was cancelled.

        Raises
        ------
        CclError
            As `formulations.solve` does; SolveError if before the first plan it was cancelled or
            needed too much memory, or if the solver's process died.
        """
        for _ in self:
            pass
        return ended(self._final, self._error, self.best)

    def cancel(self) -> None:
        """Stop at once; the best result so far stays. Does nothing when it has ended."""
        if self._child.running:
            self.cancelled = True
            self._watch.cancel()
            self._child.kill()

    def _overrun(self) -> None:
        """End a solver that does not stop."""
        self._late = True
        self._child.kill()

    def _cut_short(self) -> None:
        """Keep the best plan of a solve that was ended by a limit, or else say why it ended."""
        stop = Stop.MEMORY if self._child.starved else Stop.TIME_LIMIT if self._late else None
        why = self._child.last_words(PROCESS)
        if stop is Stop.TIME_LIMIT:
            why = f"{PROCESS} did not stop at its limit of {self._time_limit:g} s and was ended"
        if stop is not None and self.best is not None:
            self._final = replace(self.best, stop=stop, log=(*self.best.log, why))
        else:
            self._error = (LimitReached if stop is Stop.TIME_LIMIT else SolveError)(why)

    def _read(self, event: Mapping[str, Any]) -> Progress | None:
        if event["event"] == "progress":
            result = None if event["result"] is None else self._results.result(event["result"])
            if result is not None:
                self.best = result
            return Progress(
                event["seconds"], event["incumbent"], event["bound"], event["message"], result
            )
        if event["event"] == "result":
            self.best = self._final = self._results.result(event["result"])
        else:
            kind = getattr(ccl.errors, event["kind"], SolveError)
            self._error = kind(event["message"])
        return None


def ended(final: Result | None, error: CclError | None, best: Result | None) -> Result:
    """Return what a solve has come to: its result or, where it was cancelled, the best so far.

    Raises
    ------
    CclError
        What it ended with; SolveError if it was cancelled before the first plan.
    """
    if final is not None:
        return final
    if error is not None:
        raise error
    if best is None:
        msg = "the solve was cancelled before the first schedule was found"
        raise SolveError(msg)
    return replace(best, stop=Stop.CANCELLED)


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer the one request that `requests` holds; the body of the child process."""
    request = json.loads(requests.readline())
    threading.Thread(target=until_abandoned, args=(requests,), daemon=True).start()
    problem = problem_from_json(request["problem"])
    speak = _Speaker(answers, Sender(problem))
    from formulations import solve  # noqa: PLC0415  it is this package

    try:
        begin_with = request["begin_with"]
        result = solve(
            problem,
            request["formulation"],
            options=request["options"],
            time_limit=_left(request["time_limit"], asked_at=request["asked_at"]),
            gap=request["gap"],
            solver=request["solver"],
            progress=speak.progress,
            begin_with=None if begin_with is None else _schedule(begin_with),
        )
    except CclError as error:
        speak.line({"event": "error", "kind": type(error).__name__, "message": str(error)})
    else:
        speak.line({"event": "result", "result": speak.results.text(result)})


def leave(serve: Callable[[IO[bytes], IO[bytes]], None]) -> NoReturn:
    """Serve and end the process, with the error as its last words if there was one.

    Not by returning: Python aborts, over those words, when it ends while `until_abandoned` reads.
    """
    try:
        serve(sys.stdin.buffer, own_answers())
    finally:
        failed = sys.exc_info()[0] is not None
        if failed:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(int(failed))


def own_answers() -> IO[bytes]:
    """Return the output of this process for answers alone.

    What others write there goes to its errors from now on: HiGHS prints some warnings whatever it
    is told, and a line of them among the answers would be none.
    """
    sys.stdout.flush()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _left(time_limit: float | None, *, asked_at: float) -> float | None:
    """Return what beginning this process has left of a limit: most of it on a slow machine too."""
    if time_limit is None:
        return None
    return max(LEAST * time_limit, time_limit - max(0.0, time.time() - asked_at))


def _schedule(value: Any) -> Schedule:
    plan = plan_from_json(value)
    assert isinstance(plan, Schedule)
    return plan


def until_abandoned(requests: IO[bytes]) -> None:
    """End the process when nobody holds the other end of the pipe any more."""
    requests.read()
    os._exit(3)


class _Speaker:
    """Writes lines, not too many of those that carry no plan."""

    def __init__(self, answers: IO[bytes], results: Sender) -> None:
        self.answers, self.results = answers, results
        self.last, self.said = 0.0, ""

    def progress(self, news: Progress) -> None:
        now = time.monotonic()
        stale = news.message == self.said and now - self.last < PAUSE
        if news.result is None and stale:
            return
        self.last, self.said = now, news.message
        self.line(
            {
                "event": "progress",
                "seconds": news.seconds,
                "incumbent": news.incumbent,
                "bound": news.bound,
                "message": news.message,
                "result": None if news.result is None else self.results.text(news.result),
            }
        )

    def line(self, event: Mapping[str, Any]) -> None:
        self.answers.write(json.dumps(event).encode() + b"\n")
        self.answers.flush()
