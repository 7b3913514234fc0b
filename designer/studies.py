"""Studies of a view that take longer than a slider's move: losses, budgets, searches for networks.

As with solves (`designer.jobs`) each runs in a process that is ended when it is stopped
or its page is gone, and tells what it finds as soon as it is there. What the process runs is a
module of the view that answers one request (`formulations.answer_one`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ccl.errors import SolveError
from designer.jobs import JobRegistry, Limits, Watched
from formulations import Child

PROCESS = "the study's process"
MOST_STORED = 12
"""Finished ones of all pages that can still be looked at."""

Json = dict[str, Any]


class StudyJob:
    """A study in a child process; iterate over it for what it finds.

    Parameters
    ----------
    module
        What its process runs.
    request
        As that takes it.
    memory
        Bytes that it may take, or None.
    """

    def __init__(
        self, module: str, request: Mapping[str, Any], memory: float | None = None
    ) -> None:
        self._child = Child(module, memory)
        self._child.ask(request)
        self._cancelled = False

    def __iter__(self) -> Iterator[Json]:
        """Yield what it finds.

        Raises
        ------
        SolveError
            If its process ends in the middle.
        """
        done = False
        try:
            for event in self._child:
                done = "done" in event
                yield event
            if not (done or self._cancelled):
                raise SolveError(self._child.last_words(PROCESS))
        finally:
            self._child.kill()
            self._child.close()

    def cancel(self) -> None:
        """End it now; what there is stays."""
        self._cancelled = True
        self._child.kill()


@dataclass(frozen=True, slots=True)
class Found:
    """What a study has found so far.

    Parameters
    ----------
    events
        As its process reports them, the last with ``done``.
    question
        The request, as the page keeps it.
    running, cancelled
        Whether it goes on, and whether the user ended it.
    waiting
        Its place in line; 0 when it has begun.
    seconds
        Since it began.
    """

    events: tuple[Json, ...]
    question: Any
    running: bool
    cancelled: bool
    waiting: int
    seconds: float

    def last(self, name: str) -> Any:
        """Return what was reported last under a name, or None."""
        return next((each[name] for each in reversed(self.events) if name in each), None)


@dataclass
class _Watch(Watched):
    """One study with what it has said so far."""

    events: list[Json] = field(default_factory=list)

    def take(self, said: Json) -> None:
        """Keep what it has found."""
        self.events.append(said)


class Studies(JobRegistry[_Watch]):
    """The studies of one view, of all pages of one application, by key.

    `start` makes a job of a request, with the bytes that it may take.
    """

    what = "study"
    stored = MOST_STORED

    @classmethod
    def run_by(cls, module: str, limits: Limits | None = None) -> "Studies":
        """Return those that a module answers, each in a child process."""
        return cls(partial(StudyJob, module), limits)

    def start(self, request: Mapping[str, Any], *, question: Any, owner: str = "") -> str:
        """Begin a study, or let it wait for its turn, and return its key.

        Parameters
        ----------
        request
            As the process takes it.
        question
            Kept beside it for the page.
        owner
            Who asks.

        Raises
        ------
        ProblemError
            If as many wait as may.
        """
        return self._add(
            _Watch(lambda: self._start(request, self.limits.memory_each()), question), owner
        )

    def adopt(self, events: Iterable[Json], *, question: Any, seconds: float) -> str:
        """Take in a study that has ended, as if it had run here, and return its key.

        Parameters
        ----------
        events
            As its process reported them.
        question
            Kept beside it for the page.
        seconds
            That it took.
        """
        watch = _Watch(dict, question, events=list(events))
        watch.end = watch.begin + seconds
        watch.outcome.set_result(None)
        return self._adopt(watch)

    def found(self, key: str | None) -> Found | None:
        """Return what a study has found so far, or None if there is none with this key.

        Raises
        ------
        CclError
            If its process ended in the middle.
        """
        watch = self._watches.get(key or "")
        if watch is None:
            return None
        try:
            running = watch.ask()
        except Exception:
            self._drop(key or "")
            raise
        return Found(
            tuple(watch.events),
            watch.question,
            running=running,
            cancelled=watch.cancelled,
            waiting=self._place(key or ""),
            seconds=watch.seconds,
        )
