"""Solve job: a child process that speaks JSON lines and dies with its parent.

The parent writes one line, the request, and keeps the pipe open: when it closes, because the
parent closed it or is gone, the child ends at once, whatever its solver is doing. The child
writes one line for every news; a line with a result carries the plan and its replay, so that
cancelling loses nothing, nor does a solver that takes too much memory or does not stop and is
ended. Lines are objects with an ``event``: ``progress``, ``result`` or ``error``.

`Sender` and `Receiver` carry results between processes of ours, with their plans and replays,
neither of them made again. A child verifies and replays every plan that it finds. Its parent reads
what it writes into a pipe that nobody else has, so it does neither a second time; what comes from a
disk, a network or a catalog is read by `ccl.serialization.topoloom`, which does both. What the
other side has already is left out: the requested problem, cut further or not, and the plan and the
replay of the result before, where only what is said of them has changed.

`Aside` is a method that is tried in a process of its own, on another core, while others go on here.
"""

import base64
import contextlib
import pickle
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from math import inf
from typing import Any

from ccl.errors import CclError, LimitReached, SolveError
from ccl.options import plain
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import Result, Stop
from ccl.serialization.topoloom import plan_to_json, problem_to_json
from ccl.topology import no_collection
from formulations.core.front import Front
from formulations.core.run import Progress, Run
from formulations.jobs.child import Child, Watch, checked, error_in, patience

_NAMES = tuple(each.name for each in fields(Result))
_LARGE = ("plan", "timeline")


class Sender:
    """Makes text of results.

    Parameters
    ----------
    problem
        The problem that the other side has.
    """

    def __init__(self, problem: Problem) -> None:
        self._requested = problem
        self._last: Result | None = None

    def text(self, result: Result) -> str:
        """Return a result as text, for a `Receiver` that had all before it."""
        values = self._values(result)
        values["simpler"] = [self._values(each) for each in result.simpler]
        for name in _LARGE:
            if self._last is not None and getattr(self._last, name) is values[name]:
                del values[name]
        self._last = result
        with no_collection():
            return base64.b64encode(pickle.dumps(values, pickle.HIGHEST_PROTOCOL)).decode("ascii")

    def _values(self, result: Result) -> dict[str, Any]:
        values = {name: getattr(result, name) for name in _NAMES}
        return values | {"problem": self._problem(result.problem)}

    def _problem(self, problem: Problem) -> int | Problem:
        """Return into how many chunks the problem is cut, or a problem that is another."""
        chunks = len(problem.collective.chunks)
        return chunks if problem == self._requested.cut_into(chunks) else problem


class Receiver:
    """Makes results of text that a process of ours has written; never to be used of other text.

    Parameters
    ----------
    problem
        The requested problem.
    """

    def __init__(self, problem: Problem) -> None:
        self._requested = problem
        self._last: Result | None = None

    def result(self, text: str) -> Result:
        """Return the result that a `Sender` has written."""
        with no_collection():
            values = pickle.loads(base64.b64decode(text))
        simpler = [Result(**self._whole(each)) for each in values["simpler"]]
        values = self._whole(values) | {"simpler": tuple(simpler)}
        if self._last is None:
            self._last = Result(**values)
        else:
            self._last = replace(self._last, **values)
        return self._last

    def _whole(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a result with its problem, where they say how it is cut."""
        problem = values["problem"]
        if isinstance(problem, int):
            problem = self._requested.cut_into(problem)
        return values | {"problem": problem}


PROCESS = "the solver's process"


class Job(ABC):
    """A solve that somebody else runs, with what it has come to so far."""

    def __init__(self) -> None:
        self.best: Result | None = None
        """The best result so far, preserved when the job is cancelled."""
        self._final: Result | None = None
        self._error: CclError | None = None
        self._front = Front()

    def with_simpler(self, better: Result) -> Result:
        """Return a better plan with those before it that have fewer sends."""
        self._front.add(better)
        return replace(better, simpler=self._front.simpler(better))

    @abstractmethod
    def __iter__(self) -> Iterator[Progress]:
        """Yield its news, until it is over."""

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


class SolveJob(Job):
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
        super().__init__()
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

    def report(self, known: float) -> None:
        """Say that there is a plan of so many µs elsewhere, so that none is made that is slower."""
        self._child.ask({"known": known})

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
                self.best = self.with_simpler(result)
            return progress_in(event, result)
        if event["event"] == "result":
            self.best = self._final = self._results.result(event["result"])
        else:
            self._error = error_in(event)
        return None


def progress_in(event: Mapping[str, Any], result: Result | None) -> Progress:
    """Return the progress of an event whose result has been read."""
    return Progress(event["seconds"], event["incumbent"], event["bound"], event["message"], result)


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
        raise SolveError("the solve was cancelled before the first schedule was found")
    return replace(best, stop=Stop.CANCELLED)


PAUSE = 0.2
"""Seconds between two looks at what there is."""

SOONER, SHARE = 0.5, 0.1
"""Seconds by which it ends before the limit, so that what it verifies at the end still comes, and
the share of the time that they are at most."""


class Aside:
    """A solve of the same problem in a child process; its better plans come by `news`.

    Parameters
    ----------
    run
        Whose problem, limits and solver it has.
    options
        Of the portfolio: which methods it tries.
    """

    def __init__(self, run: Run, options: Mapping[str, Any]) -> None:
        left = run.left
        self._spare = 0.0 if left is None else min(SOONER, SHARE * left)
        self._found: queue.SimpleQueue[Result] = queue.SimpleQueue()
        self._job = SolveJob(
            run.problem,
            run.formulation,
            options=options,
            time_limit=None if left is None else left - self._spare,
            gap=run.gap,
            solver=run.solver,
        )
        self._known = inf
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def report(self, known: float) -> None:
        """Say of how many µs the best plan is, where that is less than before."""
        if known < self._known:
            self._known = known
            self._job.report(known)

    def _follow(self) -> None:
        """Pass on what is found; a method that finds nothing here is no error of the others."""
        with contextlib.suppress(CclError):
            for news in self._job:
                if news.result is not None:
                    self._found.put(news.result)
            self._found.put(self._job.result())

    def news(self) -> Iterator[Result]:
        """Yield what has been found since the last time."""
        with contextlib.suppress(queue.Empty):
            while True:
                yield self._found.get_nowait()

    @property
    def ended(self) -> bool:
        """Whether it has come to its end and all that it has found was heard of."""
        return not self._thread.is_alive() and self._found.empty()

    def wait(self) -> bool:
        """Wait a little; return whether it still goes on or has news."""
        self._thread.join(PAUSE)
        return not self.ended

    def close(self, *, soon: bool) -> None:
        """End it, or let it end for as long as it had less; news may come until then."""
        if not soon:
            self._thread.join(self._spare)
        self._job.cancel()
        self._thread.join(PAUSE)
