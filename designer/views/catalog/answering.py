"""Solves that a catalog answers, or that run and are kept there; comparisons whose rows are kept.

What starts a solve or a comparison is wrapped, and all that a catalog does happens in the thread
that follows it. A catalog that fails costs nothing but itself: the solve goes on without it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ccl.errors import CclError, SolveError
from ccl.problem import Problem
from ccl.result import Result, Stop
from designer.jobs import Job, Report
from designer.views.compare.running import Job as Comparing
from formulations import Progress
from formulations.analyses.comparison import Comparison, News

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Catalog

log = logging.getLogger(__name__)


def answering(start: Callable[..., Job], catalog: Catalog | None) -> Callable[..., Job]:
    """Return what starts a solve as `start` does, unless the catalog answers it.

    Parameters
    ----------
    start
        Starts a solve as `formulations.start` does.
    catalog
        Where plans are looked up and kept; None returns `start`.
    """
    if catalog is None:
        return start

    def begin(problem: Problem, formulation: str, **how: Any) -> Job:
        return StoredJob(catalog, start, problem, formulation, how=how)

    return begin


def keeping(start: Callable[..., Comparing], catalog: Catalog | None) -> Callable[..., Comparing]:
    """Return what starts a comparison as `start` does, and keeps its rows as they come.

    Parameters
    ----------
    start
        Starts a comparison as `formulations.start_comparison` does.
    catalog
        Where plans are kept; None returns `start`.
    """
    if catalog is None:
        return start

    def begin(*what: Any, **how: Any) -> Comparing:
        return StoredComparing(catalog, start(*what, **how), how.get("time_limit"))

    return begin


class StoredJob:
    """A solve that the catalog answers where solving again could not better it.

    Parameters
    ----------
    catalog
        Where plans are looked up and kept.
    start
        Starts the solve where it must be solved.
    problem, formulation
        What to solve, and how.
    how
        Options and limits by name, as `start` takes them.
    """

    def __init__(
        self,
        catalog: Catalog,
        start: Callable[..., Job],
        problem: Problem,
        formulation: str,
        *,
        how: Mapping[str, Any],
    ) -> None:
        self._catalog = catalog
        self._start = partial(start, problem, formulation, **how)
        self._problem, self._formulation, self._how = problem, formulation, how
        self._found: Result | None = None
        self._job: Job | None = None
        self._cancelled = False
        self._lock = threading.Lock()

    @property
    def best(self) -> Result | None:
        """The stored plan, or the best so far."""
        return self._found if self._job is None else self._job.best

    @property
    def place(self) -> int:
        """Its place in the line of a queue; 0 where it has begun or there is none."""
        return int(getattr(self._job, "place", 0))

    def __iter__(self) -> Iterator[Report]:
        """Yield the stored plan, or the reports of the solve.

        Raises
        ------
        CclError
            If it must be solved and cannot begin.
        """
        self._found = self._looked_up()
        if self._found is not None:
            found = self._found
            yield Progress(
                found.solve_time, found.makespan, found.bound.makespan, found.log[-1], found
            )
            return
        with self._lock:
            if self._cancelled:
                return
            self._job = self._start()
        yield from self._job

    def result(self) -> Result:
        """Return the stored plan, or wait for the end of the solve and keep what it has found.

        Raises
        ------
        CclError
            If it was solved and ended without a plan.
        """
        if self._found is not None:
            return self._found
        if self._job is None:
            msg = "the solve was cancelled before the first schedule was found"
            raise SolveError(msg)
        return _kept(self._catalog, self._job.result(), self._how.get("time_limit"))

    def cancel(self) -> None:
        """End it now; the best plan so far stays."""
        with self._lock:
            self._cancelled = True
            if self._job is not None:
                self._job.cancel()

    def _looked_up(self) -> Result | None:
        try:
            found = self._catalog.find(
                self._problem,
                self._formulation,
                options=self._how.get("options"),
                time_limit=self._how.get("time_limit"),
                gap=self._how.get("gap"),
                enough=True,
            )
        except CclError as error:
            log.warning("the catalog is not asked: %s", error)
            return None
        if found is None:
            return None
        return replace(found, log=(*found.log[:-1], f"{found.log[-1]}; verified again just now"))


class StoredComparing:
    """A comparison whose rows a catalog keeps.

    Parameters
    ----------
    catalog
        Where they are kept.
    job
        The comparison.
    time_limit
        Seconds that each of its solves is given, or None.
    """

    def __init__(self, catalog: Catalog, job: Comparing, time_limit: float | None) -> None:
        self._catalog = catalog
        self._job = job
        self._time_limit = time_limit

    def __iter__(self) -> Iterator[News]:
        """Yield the news, each row kept before it is told."""
        for news in self._job:
            if news.row is not None and news.row.result is not None:
                _kept(self._catalog, news.row.result, self._time_limit)
            yield news

    def comparison(self) -> Comparison:
        """Return what there is so far."""
        return self._job.comparison()

    def cancel(self) -> None:
        """End it now; what there is stays."""
        self._job.cancel()


def _kept(catalog: Catalog, result: Result, time_limit: float | None) -> Result:
    """Keep a result; return it, with a sentence in its log where that failed."""
    # Whoever cancels a solve has not given it the seconds that it might have had.
    given = None if result.stop is Stop.CANCELLED else time_limit
    try:
        catalog.keep(result, time_limit=given)
    except CclError as error:
        log.warning("a plan is not kept: %s", error)
        return replace(result, log=(*result.log, f"not kept in the catalog: {error}"))
    return result
