"""Exact search of any collective, side by side as `list_scheduling.search` takes it apart.

Each side is planned for representatives under each symmetry first, then without. List scheduling
gives the plan to begin with. What is proved for a quotient holds for symmetric plans only and is
no bound; what is proved of the whole side is one where its model has every plan: where every path
is one link and nothing else comes before or after. Over switches a plan may let a chunk wait,
which transfers do not; there a second model, whose solutions may
(`formulations.engines.cp_sat.worker`), proves the bound.

`close_gap` gives a task to a child process of constraint programming, which reports what it finds.
The child dies with its parent: it ends when the pipe that its request came through is
closed, whoever closes it, and it is killed when nobody listens any more or when it does not keep
its time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np

from ccl.bound import Bound
from ccl.errors import SolveError
from ccl.result import PROOF_TOLERANCE, ModelSize, Stop
from ccl.topology import Topology, binding_limits
from formulations.core.registry import formulation
from formulations.core.run import Run
from formulations.engines.cp_sat.instance import Instance, make_instance
from formulations.engines.epoch_grid.relay_paths import LONGEST_PATH
from formulations.engines.list_scheduling.multistart import Quotient, Task, passes
from formulations.engines.list_scheduling.search import After, Finder, Side
from formulations.engines.list_scheduling.timed import TimedTransfers, Transfers
from formulations.jobs.child import Child

GRACE = 3.0
"""Seconds that the child may take longer than it was given, to start and to end."""


class TerminationCondition(Enum):
    """Why the search ended."""

    PROVED = "no plan of the model is shorter"
    LIMIT = "the time limit is reached"


@dataclass(frozen=True)
class News:
    """A report of the search.

    Parameters
    ----------
    bound
        µs that no plan of the model is below.
    plan, makespan
        A better plan in µs, or None.
    ending
        Why it ended, or None while it goes on.
    size
        Of the model, or None before it is built.
    """

    bound: float
    plan: TimedTransfers | None = None
    makespan: float | None = None
    ending: TerminationCondition | None = None
    size: ModelSize | None = None


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long and how wide to search.

    Parameters
    ----------
    seconds
        For building and searching.
    workers
        Threads of the solver; with one the same request has the same answer.
    seed
        Of its random numbers.
    """

    seconds: float
    workers: int = 1
    seed: int = 0


def close_gap(
    task: Task,
    *,
    upper: float,
    lower: float = 0.0,
    hint: TimedTransfers | None = None,
    effort: Effort,
    waits: bool = False,
) -> Iterator[News]:
    """Search for plans of a task and prove that there are no shorter ones.

    Closing the iterator ends the search at once.

    Parameters
    ----------
    task
        What has to be done; shared limits are not looked at.
    upper
        µs within which plans must end.
    lower
        µs that no plan is below.
    hint
        A plan of the task to begin with.
    effort
        How long to search.
    waits
        Whether chunks may wait in devices that cannot store: for a bound, without plans.

    Raises
    ------
    SolveError
        If the task is too large for the model, or the solver's process died.
    """
    instance = make_instance(task, upper=upper)
    request = {**instance.request(lower=lower, hint=hint), "waits": waits, **asdict(effort)}
    with TimedChild(request, seconds=effort.seconds) as child:
        yield from _reported(instance, child, lower)


def _reported(instance: Instance, child: TimedChild, lower: float) -> Iterator[News]:
    """Turn the child's lines into news in µs."""
    best, ending, size = lower, None, None
    for line in child:
        plan = None
        if line["event"] == "size":
            size = ModelSize(line["variables"], line["constraints"], line["nonzeros"])
        elif line["event"] == "solution":
            plan = instance.plan(line["pairs"], line["starts"])
        elif line["event"] == "end":
            over = line["status"] == "limit"
            ending = TerminationCondition.LIMIT if over else TerminationCondition.PROVED
        ticks = instance.upper if line.get("status") == "infeasible" else line.get("bound", 0)
        bound = max(best, instance.ticks.proved(ticks, waits=instance.waits))
        if plan is not None:
            yield News(bound, *plan, size=size)
        elif ending is not None or bound > best or line["event"] == "size":
            yield News(bound, ending=ending, size=size)
        best = bound
    if ending is None and not child.late:
        raise SolveError(child.why())
    if ending is None:
        yield News(best, ending=TerminationCondition.LIMIT, size=size)


class TimedChild(Child):
    """A process that is killed when it does not keep its time.

    Parameters
    ----------
    request, seconds
        Its first request, and the time it has for it; further ones go through `answer`.
    worker
        What it runs.
    """

    def __init__(
        self,
        request: Mapping[str, Any] | None = None,
        *,
        seconds: float = 0.0,
        worker: str = "formulations.engines.cp_sat.worker",
    ) -> None:
        super().__init__(worker)
        self.late = False
        """Whether it was killed because it did not keep its time."""
        self._timer: threading.Timer | None = None
        if request is not None:
            self._ask_within(request, seconds)

    def _ask_within(self, request: Mapping[str, Any], seconds: float) -> None:
        self._timer = threading.Timer(seconds + GRACE, self._stop)
        self._timer.daemon = True
        self._timer.start()
        self.ask(request)

    def answer(self, request: Mapping[str, Any], *, seconds: float) -> dict[str, Any] | None:
        """Return the one line that answers a request, or None if it ended without."""
        self._ask_within(request, seconds)
        line = next(iter(self), None)
        self._untimed()
        return line

    def _stop(self) -> None:
        self.late = True
        self.kill()

    def _untimed(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def __enter__(self) -> TimedChild:
        return self

    def __exit__(self, *_: object) -> None:
        self._untimed()
        self.kill()
        self.close()

    def why(self) -> str:
        """Explain why it ended without an answer."""
        return self.last_words("the process of the constraint solver")


@dataclass(frozen=True)
class Client(Finder):
    """A finder that searches on from what list scheduling finds.

    Parameters
    ----------
    workers
        Threads of the solver.
    until
        Seconds after the beginning of the run when it has to end.
    sides
        Sides that share the time.
    sole
        Whether a bound on the one side is a bound on the whole problem, if its model is complete.
    endings
        Why the last search of each side ended.
    requests
        What the sides so far were for.
    stops
        Whether no model is built where a plan meets the goal.
    """

    workers: int = 1
    until: float = 60.0
    sides: int = 1
    sole: bool = True
    endings: dict[str, Stop] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    stops: bool = True

    @property
    def stop(self) -> Stop:
        """Why it ended, where nothing is proved of the whole."""
        ended = set(self.endings.values())
        if Stop.TIME_LIMIT in ended or self.run.seconds >= self.until:
            return Stop.TIME_LIMIT if self.until == self.run.time_limit else Stop.EFFORT
        if Stop.TOO_LARGE in ended:
            return Stop.TOO_LARGE
        return Stop.SEARCHED if ended else Stop.PASSES

    def plans(
        self,
        side: Side,
        *,
        goal: float,
        found: Callable[[TimedTransfers], bool],
        after: After | None = None,
        final: bool = True,
    ) -> None:
        """Hand over plans, each better than those before, until one is good enough."""
        del final  # a better start than its own it could not use
        task = side.task(after=after)
        reduced = (
            list(side.reduced(after=after))
            if self.symmetry and not binding_limits(side.transfers.topology)
            else []
        )
        left = max(1, self.sides - len(self.requests))
        until = self.run.seconds + (self.until - self.run.seconds) / left
        self.requests.append(
            "to spread after it " if after else "to spread " if self.requests else "to add up "
        )
        part = self.requests[-1] if self.sides > 1 else ""
        attempt = _Attempt(self, task, goal, found, part)
        for turn, each in enumerate([*reduced, None]):
            seconds = (until - self.run.seconds) / (len(reduced) + 1 - turn)
            # The first passes are run in any case, so that there is a plan.
            if attempt.enough or (seconds <= 0 and attempt.plan is not None):
                return
            attempt.improve(each, seconds=seconds, turn=turn)


@dataclass
class _Attempt:
    """The best plan of one side so far."""

    finder: Client
    task: Task
    goal: float
    found: Callable[[TimedTransfers], bool]
    part: str
    best: float = np.inf
    plan: TimedTransfers | None = None
    enough: bool = False

    def improve(self, reduced: Quotient | None, *, seconds: float, turn: int) -> None:
        """Search on under one symmetry, or without."""
        run, finder = self.finder.run, self.finder
        begin = run.seconds
        task = self.task if reduced is None else reduced.task
        group = "without symmetry" if reduced is None else f"by a symmetry of {len(reduced.chunks)}"
        name = self.part + group
        run.report(f"list scheduling {name}")
        hint, upper = self._listed(task, turn, seconds=seconds)
        if hint is not None:
            self._take(hint, upper, reduced)
        elif reduced is None and self.plan is not None:
            hint, upper = self.plan, self.best
        proves = reduced is None and self._counts()
        left = seconds - (run.seconds - begin)
        self.enough |= self.best <= self.goal * (1 + PROOF_TOLERANCE)
        built = finder.stops or run.size is not None
        if (self.enough and built) or hint is None or left <= 0:
            return
        run.report(f"constraint programming {name}")
        direct = single_links(task.transfers)
        share = left if direct or not proves else left / 2
        effort = Effort(seconds=share, workers=finder.workers, seed=finder.seed)
        try:
            self._search(task, hint, reduced, name=name, effort=effort, proves=proves and direct)
            left = seconds - (run.seconds - begin)
            if proves and not direct and left > 0 and not run.enough:
                self._bound(task, effort=replace(effort, seconds=left))
        except SolveError as error:
            run.note(f"constraint programming {name}: {error}")
            finder.endings[self.part] = Stop.TOO_LARGE

    def _listed(
        self, task: Task, turn: int, *, seconds: float
    ) -> tuple[TimedTransfers | None, float]:
        """Return the best plan of some passes that is better than what is known."""
        run, finder = self.finder.run, self.finder
        until = run.seconds + seconds / 2
        hint, upper = None, self.best
        for plan, makespan in passes(
            task,
            seed=finder.seed + turn,
            most=finder.passes,
            goal=self.goal,
            limit=self.best,
            over=lambda: run.seconds > until,
            left=lambda: until - run.seconds,
            first=lambda: until - run.seconds if run.best else run.awaited,
        ):
            hint, upper = plan, makespan
        return hint, upper

    def _search(
        self,
        task: Task,
        hint: TimedTransfers,
        reduced: Quotient | None,
        *,
        name: str,
        effort: Effort,
        proves: bool,
    ) -> None:
        run = self.finder.run
        for news in close_gap(task, upper=self.best, lower=self.goal, hint=hint, effort=effort):
            if news.size is not None:
                run.met(news.size)
            if news.plan is not None and news.makespan is not None:
                self._take(news.plan, news.makespan, reduced)
            if proves:
                prove(run, news.bound)
            if news.ending is not None:
                self._ended(news, name)
            if self.enough or run.enough:
                self.enough = True
                return

    def _bound(self, task: Task, *, effort: Effort) -> None:
        """Prove a bound on plans that may let chunks wait in switches."""
        run = self.finder.run
        run.report("constraint programming: a bound on plans that wait in switches")
        for news in close_gap(task, upper=self.best, lower=self.goal, effort=effort, waits=True):
            prove(run, news.bound)
            if run.enough:
                self.enough = True
                return

    def _ended(self, news: News, name: str) -> None:
        proved = news.ending is TerminationCondition.PROVED
        left = "" if proved else f"; its time was over at {self.best:.6g} µs"
        self.finder.run.note(
            f"constraint programming: no plan {name} ends before {news.bound:.6g} µs{left}"
        )
        self.finder.endings[self.part] = Stop.SEARCHED if proved else Stop.TIME_LIMIT

    def _take(self, plan: TimedTransfers, makespan: float, reduced: Quotient | None) -> None:
        if makespan < self.best * (1 - 1e-9):
            self.best = makespan
            self.plan = plan if reduced is None else reduced.lifted(plan)
            self.enough = self.found(self.plan)

    def _counts(self) -> bool:
        """Return whether a bound on the whole side is one on the problem."""
        return self.finder.sole and not cut_short(self.task.transfers.topology)


def single_links(transfers: Transfers) -> bool:
    """Return whether every path is one link, so that nothing can wait on it."""
    return bool((np.diff(transfers.first) == 1).all())


def cut_short(topology: Topology) -> bool:
    """Return whether there may be paths of more links than are listed."""
    stores = {each.name: each.stores for each in topology.devices}
    waiting: list[tuple[str, ...]] = [
        link.ends for link in topology.links if stores[link.src] and not stores[link.dst]
    ]
    while waiting:
        path = waiting.pop()
        onwards = [link.dst for link in topology.links_out[path[-1]]]
        longer = [(*path, each) for each in onwards if not stores[each] and each not in path]
        if longer and len(path) >= LONGEST_PATH:
            return True
        waiting += longer
    return False


def prove(run: Run, makespan: float) -> None:
    """Add a bound to a run and to its best result."""
    if makespan <= run.bounds[0].makespan * (1 + PROOF_TOLERANCE / 10):
        return
    if not formulation(run.formulation).keeps_chunks(run.problem):
        return  # other plans of this run may split chunks
    bound = Bound(
        makespan,
        "solver",
        None,
        "constraint programming in continuous time, over all plans of whole chunks",
        whole_chunks=True,
    )
    kept = tuple(each for each in run.bounds if each.kind != "solver")
    run.bounds = (bound, *kept)
    if run.best is not None:
        run.best = replace(run.best, bounds=run.bounds)
    run.report("constraint programming: a better bound")
