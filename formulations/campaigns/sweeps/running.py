"""A sweep from beginning to end: what is left to solve goes out, rows come in and are stored.

>>> import formulations
>>> found = formulations.sweep(
...     {
...         "clusters": "dgx-a100:hosts=[2,4]",
...         "collectives": ["all-gather", "all-to-all"],
...         "sizes": "1MB..1GB x32",
...     },
...     into="night.sweep",
... )  # doctest: +SKIP
>>> found.rows[0].busbw, found.result(found.rows[0].task)  # doctest: +SKIP
"""

from __future__ import annotations

import queue
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ccl import __version__
from ccl.errors import SolveError
from formulations.campaigns.sweeps.rows import Row, Values, row_of, unsolved
from formulations.campaigns.sweeps.spec import Spec, read_spec
from formulations.campaigns.sweeps.store import FLUSH, Keeper, keeping, open_result, read_rows
from formulations.campaigns.sweeps.tasks import Task, tasks_of

if TYPE_CHECKING:
    from distributed import Client, Future

    from ccl.result import Result

AHEAD = 2
"""Tasks for each thread that workers know of: the one being solved and the next."""

LOOK = 0.2
"""Seconds after which it is seen at the latest that a sweep is to stop."""

COUNT = 2.0
"""Seconds between two counts of the workers: of a cluster they come and go."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a sweep stands.

    Parameters
    ----------
    done, total
        Rows that are there, and tasks.
    stored
        Of the rows those that were there when it was started.
    planless
        Of the rows those without a plan.
    seconds
        Since it was started.
    row
        The newest row; None at the start.
    """

    done: int
    total: int
    stored: int
    planless: int
    seconds: float
    row: Row | None = None

    @property
    def rate(self) -> float:
        """Tasks a second, on average since it was started."""
        return (self.done - self.stored) / self.seconds if self.seconds > 0 else 0.0

    @property
    def left(self) -> float | None:
        """Seconds that it still takes if it goes on so; None while nothing is known."""
        return (self.total - self.done) / self.rate if self.rate else None


@dataclass(frozen=True)
class Sweep:
    """A sweep that has ended or was stopped.

    Parameters
    ----------
    folder
        Where its rows are.
    tasks
        How many there are.
    rows
        Those that are there, in the order of the tasks.
    """

    folder: Path
    tasks: int
    rows: tuple[Row, ...]

    @property
    def complete(self) -> bool:
        """Whether every task has its row."""
        return len(self.rows) == self.tasks

    def result(self, task: str) -> Result:
        """Return the result of a task, verified again; errors as `open_result`."""
        return open_result(self.folder, task)


def sweep(
    spec: str | Path | Mapping[str, Any] | Spec,
    scheduler: str | None = None,
    *,
    into: str | Path | None = None,
    workers: int | None = None,
    again: bool = False,
    progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
) -> Sweep:
    """Solve every task of a sweep that has no row in the folder yet.

    Rows are safe within a second, whatever ends it; the same call goes on where it was. What a
    formulation refuses and what fails is a row that says why.

    Parameters
    ----------
    spec
        The request: the path of a YAML file, its content as a mapping, or a `Spec`.
    scheduler
        Address of a Dask scheduler, such as ``tcp://host:8786``; by default workers of this
        machine.
    into
        The folder; by default beside the file, ``night.sweep`` for ``night.yaml``, and for other
        specs a new one among the system's temporary files.
    workers
        How many of this machine, by default one for each core.
    again
        Whether tasks whose rows have no plan are tried again.
    progress
        Called with every row, and once at the start.
    stop
        When it is set, by another thread, the sweep ends soon; what is being solved is left.

    Raises
    ------
    FormatError
        If the spec is malformed, or the folder cannot be written or is being written.
    ProblemError
        If a cluster, a collective, a formulation or an option does not exist.
    SolveError
        If there is no scheduler at the address, or it has gone.
    """
    specified = read_spec(spec)
    tasks = tasks_of(specified)
    folder = folder_of(spec) if into is None else Path(into)
    ended = threading.Event() if stop is None else stop
    with keeping(folder) as keeper:
        keeper.begin(specified, (each.key for each in tasks), version=__version__)
        there = {key: why for key, why in keeper.there().items() if not (again and why)}
        waiting = [each for each in tasks if each.key not in there]
        reporter = _Reporter(keeper, [there.get(each.key) for each in tasks], progress)
        _solve(waiting, reporter, scheduler, workers=workers, stop=ended)
        keeper.flush(now=True)
        if not ended.is_set():
            keeper.compact()
        rows = read_rows(folder)
    return Sweep(folder, len(tasks), rows)


def folder_of(spec: str | Path | Mapping[str, Any] | Spec) -> Path:
    """Return the folder of a sweep when no other is named: beside its file, or a new one."""
    if isinstance(spec, str | Path):
        return Path(spec).with_suffix(".sweep")
    return Path(tempfile.mkdtemp(prefix="topoloom-sweep-"))


@dataclass(eq=False)
class _Reporter:
    """A store of rows that reports how the sweep stands."""

    keeper: Keeper
    there: Sequence[str | None]
    progress: Callable[[Progress], None] | None

    def __post_init__(self) -> None:
        self._begin = time.perf_counter()
        self._done = self._stored = sum(each is not None for each in self.there)
        self._planless = sum(map(bool, self.there))
        self._report(None)

    def add(self, values: Values) -> None:
        """Take a row."""
        self.keeper.add(values)
        self.keeper.flush()
        self._done += 1
        self._planless += bool(values["why_not"])
        self._report(row_of(values))

    def _report(self, row: Row | None) -> None:
        if self.progress is not None:
            seconds, total = time.perf_counter() - self._begin, len(self.there)
            self.progress(Progress(self._done, total, self._stored, self._planless, seconds, row))


def _solve(
    tasks: list[Task],
    reporter: _Reporter,
    scheduler: str | None,
    *,
    workers: int | None,
    stop: threading.Event,
) -> None:
    """Report the rows of tasks."""
    for each in tasks:
        if each.why_not:
            reporter.add(unsolved(each, each.why_not, version=__version__))
    left = [each for each in tasks if not each.why_not]
    if not left:
        return
    # Loading Dask takes half a second, which nobody waits for whose rows are all there.
    from formulations.campaigns.sweeps.pool import solvers  # noqa: PLC0415

    with solvers(scheduler, workers) as client:
        _fed(client, left, reporter, stop)


def _fed(client: Client, tasks: list[Task], reporter: _Reporter, stop: threading.Event) -> None:
    """Give workers a few tasks more than they solve, until none is left or it is to stop.

    A scheduler's memory and its haste grow with what it knows of, so it knows of little.
    """
    from formulations.campaigns.sweeps.pool import solve_task  # noqa: PLC0415  as above

    done: queue.SimpleQueue[Future[Values]] = queue.SimpleQueue()
    waiting = deque(tasks)
    running: dict[Any, tuple[Future[Values], Task]] = {}
    limit, counted = 0, -COUNT
    while (running or waiting) and not stop.is_set():
        if time.monotonic() - counted >= COUNT:
            counted = time.monotonic()
            limit = AHEAD * sum(client.nthreads().values())
        while waiting and len(running) < limit:
            task = waiting.popleft()
            future = client.submit(solve_task, task, pure=False)
            running[future.key] = future, task
            future.add_done_callback(done.put)
        try:
            future = done.get(timeout=min(LOOK, FLUSH))
        except queue.Empty:
            reporter.keeper.flush()
            continue
        reporter.add(_values(*running.pop(future.key)))


def _values(future: Future[Values], task: Task) -> Values:
    """Return the values of a task that has ended.

    Raises
    ------
    SolveError
        If the scheduler has gone.
    """
    if future.status in ("cancelled", "lost"):
        raise SolveError(
            "the scheduler has gone; rows so far are stored, and the same sweep goes on with them"
        )
    error = future.exception()
    if error is None:
        values: Values = future.result()
        return values
    from distributed.scheduler import KilledWorker  # noqa: PLC0415  as above

    if isinstance(error, KilledWorker):
        why = f"workers ended while they solved it, the last {error.last_worker.address}"
    else:
        why = f"its worker failed: {type(error).__name__}: {error}"
    return unsolved(task, why, version=__version__)
