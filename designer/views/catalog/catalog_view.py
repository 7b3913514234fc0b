"""What a catalog holds of the clusters that pages show, and tables that take a while to make.

The tables replay every plan at many sizes. One thread makes them, one after the other, so that
pages are answered meanwhile; what nobody asks for any more is given up.

Solves that a catalog answers, or that run and are kept there; comparisons whose rows are kept.

What starts a solve or a comparison is wrapped, and all that a catalog does happens in the thread
that follows it. A catalog that fails costs nothing but itself: the solve goes on without it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ccl.collective import COLLECTIVES, CollectiveKind, make_collective
from ccl.errors import CclError, ProblemError, SolveError
from ccl.problem import Problem
from ccl.result import Result, Stop
from ccl.serialization.topoloom import topology_to_json
from ccl.topology import Topology
from designer.jobs import Job, Report
from designer.shell import ui
from designer.views.compare.running import Job as Comparing
from formulations import Progress
from formulations.analyses.comparison import Comparison, News

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Atlas, Catalog, Entry, TunerTable

MOST_LOOKS = 24
"""Clusters whose plans and tables are at hand; those that were looked at longest ago are not."""

GIVEN_UP = 10.0
"""Seconds after which a table that nobody asks for is not made."""

GONE = "the catalog has changed or the server has begun anew; open the view again"


class GivenUp(Exception):
    """Nobody waits for a table any more."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a catalog holds of one cluster.

    Parameters
    ----------
    token
        Of this cluster with these plans; another one when either changes.
    topology
        The cluster as it is drawn.
    entries
        Its plans, and those of isomorphic clusters.
    """

    token: str
    topology: Topology
    entries: tuple[Entry, ...]

    @property
    def kinds(self) -> tuple[CollectiveKind, ...]:
        """Collectives with plans, those without a name left out."""
        there = {each.kind for each in self.entries}
        return tuple(kind for kind in COLLECTIVES if kind in there and kind != "custom")

    @property
    def methods(self) -> tuple[str, ...]:
        """Who found the plans."""
        return tuple(sorted({each.found_by or each.formulation for each in self.entries}))


@dataclass
class Table:
    """A table that is made or there.

    Parameters
    ----------
    steps
        How many there are.
    """

    steps: int
    done: int = 0
    begin: float = field(default_factory=time.monotonic)
    requested: float = field(default_factory=time.monotonic)
    future: Future[Any] = field(default_factory=Future)

    @property
    def ready(self) -> bool:
        """Whether it is there, or will not be."""
        return self.future.done()

    @property
    def seconds(self) -> float:
        """Since it was requested."""
        return time.monotonic() - self.begin


class CatalogView:
    """What a catalog holds, by cluster.

    Parameters
    ----------
    catalog
        It.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._looks: OrderedDict[str, Look] = OrderedDict()
        self._tables: dict[tuple[str, ...], Table] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="Holdings")
        self._closed = False

    def look(self, topology: Topology) -> Look:
        """List the plans of a cluster; errors as `Catalog.entries`."""
        entries = self.catalog.entries(topology)
        what = [topology_to_json(topology), [(e.number, e.makespan, e.kept) for e in entries]]
        token = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]
        with self._lock:
            self._looks[token] = look = Look(token, topology, entries)
            self._looks.move_to_end(token)
            while len(self._looks) > MOST_LOOKS:
                gone, _ = self._looks.popitem(last=False)
                self._tables = {k: v for k, v in self._tables.items() if k[0] != gone}
        return look

    def known(self, token: str) -> Look:
        """Return what was looked at.

        Raises
        ------
        ProblemError
            If it is not at hand any more.
        """
        look = self._looks.get(token)
        if look is None:
            raise ProblemError(GONE)
        return look

    def tuned(self, token: str, kind: str, root: int) -> Table:
        """Return the best plan of each range of sizes, made or in the making.

        Parameters
        ----------
        token
            Of a look.
        kind
            Of the collective.
        root
            Rank of its root, where it has one.
        """
        look, named = self.known(token), cast(CollectiveKind, kind)
        ranks = len(look.topology.ranks)
        root = root if kind in ui.ROOTED and root < ranks else 0

        def make(step: Callable[[object], None]) -> TunerTable:
            from formulations.campaigns.catalog import tuned  # noqa: PLC0415  until it is requested

            collective = make_collective(named, ranks, 1e6, root=root)
            return tuned(self.catalog, look.topology, collective, progress=step)

        return self._table((token, "tuned", kind, str(root)), make, steps=31)

    def atlas(self, token: str) -> Table:
        """Return the best method of each collective and size, made or in the making."""
        look = self.known(token)

        def make(step: Callable[[object], None]) -> Atlas:
            from formulations.campaigns.catalog import regimes  # noqa: PLC0415  it loads a database library

            return regimes(self.catalog, look.topology, look.kinds, progress=step)

        return self._table((token, "atlas"), make, steps=len(look.kinds))

    def result(self, token: str, number: int) -> Result:
        """Return a plan of the cluster in the names of its drawing, verified and replayed.

        One of a custom collective, or with windows, is returned on the cluster it was kept for.

        Raises
        ------
        ProblemError
            If there is none of this number, or it does not verify any more.
        """
        look = self.known(token)
        entry = next((each for each in look.entries if each.number == number), None)
        found = None if entry is None else self.catalog.load(entry, self._problem(look, entry))
        if found is None:
            raise ProblemError(f"the catalog has no plan {number} of this cluster that verifies")
        return found

    def close(self) -> None:
        """Give up what is made; called once, when the server stops."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _problem(self, look: Look, entry: Entry) -> Problem | None:
        """Return what an entry answers on the cluster as it is drawn, None where none is found."""
        if entry.kind == "custom":
            return None
        ranks = len(look.topology.ranks)
        others = [rank for rank in range(ranks) if rank != entry.root]
        for root in (entry.root, *others) if entry.kind in ui.ROOTED else (0,):
            chunks = entry.chunks if entry.whole else 1
            made = make_collective(entry.kind, ranks, entry.size, chunks=chunks, root=root)
            problem = Problem(look.topology, made)
            if any(each.number == entry.number for each in self.catalog.family(problem)):
                return problem
        return None

    def _table(
        self, key: tuple[str, ...], make: Callable[[Callable[[object], None]], Any], *, steps: int
    ) -> Table:
        with self._lock:
            table = self._tables.get(key)
            if table is None or (table.ready and isinstance(_error(table.future), GivenUp)):
                table = self._tables[key] = Table(steps)
                table.future = self._pool.submit(self._made, table, make)
        table.requested = time.monotonic()
        return table

    def _made(self, table: Table, make: Callable[[Callable[[object], None]], Any]) -> Any:
        def step(_what: object) -> None:
            table.done += 1
            if self._closed or time.monotonic() - table.requested > GIVEN_UP:
                raise GivenUp

        step(None)
        table.done = 0
        return make(step)


def made(table: Table) -> Any:
    """Return a table that is there, or None; raise why it is not.

    Raises
    ------
    CclError
        If it cannot be made.
    """
    if not table.ready:
        return None
    error = _error(table.future)
    if error is not None and not isinstance(error, GivenUp):
        raise error
    return None if error is not None else table.future.result()


def _error(future: Future[Any]) -> BaseException | None:
    return None if future.cancelled() else future.exception()


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
        return CatalogJob(catalog, start, problem, formulation, how=how)

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
        return CatalogComparison(catalog, start(*what, **how), how.get("time_limit"))

    return begin


class CatalogJob:
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
            raise SolveError("the solve was cancelled before the first schedule was found")
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


class CatalogComparison:
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
        """Yield the news, each row kept before it is reported."""
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
