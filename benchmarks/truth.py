"""Is what is told true? Random problems, every formulation, every bound: nothing may contradict.

Of each problem (`benchmarks.random_problems`) all bounds and all verified plans are collected; then

* no bound is above a plan that it speaks of: one of whole chunks above a schedule of whole chunks,
  any other above any plan, one on the steady state above the steady state of a forest or a flow;
* nothing called optimal is beaten by another plan of the kind of which it is said;
* no formulation that takes a problem ends with a plan that breaks a rule, or with a bug;
* no replay lets a link or a limit carry more than its bandwidth, or a switch send out what has not
  come.

All of this is looked at without the code that verifies: bytes are counted link by link. Nothing is
taken from a replay but when each transfer begins, when its last byte has entered the link, its
bytes, and which transfers are copies of the same bytes. Where one takes longer than its bytes at
the bandwidth of the link it may have sent them at any time in between, so only what cannot be
otherwise is told.

What takes long is asked of every so many problems only.
"""

from __future__ import annotations

import json
import logging
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from multiprocessing import get_context
from operator import attrgetter
from random import Random
from typing import Annotated, Literal, NoReturn

import numpy as np
import typer
from rich.table import Table

from benchmarks.measuring import show, table
from benchmarks.random_problems import random_problem
from ccl.bound import Bound
from ccl.errors import SolveError
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.topoloom import problem_to_json
from ccl.timeline import Timeline, Transfer
from ccl.topology import Device
from formulations.bounds import lower_bounds
from formulations.core.registry import Formulation, available
from formulations.solving.api import solved

TOLERANCE = 1e-6
"""Shares that may be rounding."""

LIMIT = 0.3
"""Seconds for one formulation on one problem."""

ENDLESS = 10
"""Seconds of this process after which a formulation, whatever its limit, is not awaited."""

EVERY = {
    "auto": 16,
    "bfb": 2,
    "blink-switch": 2,
    "certified-flow": 2,
    "cp-sat": 64,
    "dantzig-wolfe": 16,
    "mirrored-dantzig-wolfe": 8,
    "multi-ring": 2,
    "orbit-lp": 2,
    "orbit-trees": 2,
    "ring": 2,
    "sccl": 16,
    "taccl": 8,
    "tacos": 4,
    "te-ccl-astar": 32,
    "te-ccl-lp": 16,
    "te-ccl-milp": 32,
    "thesis-fluid": 8,
    "thesis-steps": 16,
}
"""What takes long is asked about one of so many problems, drawn by chance."""

BATCH = 10
"""Problems that a worker is given at once."""

Kind = Literal["false bound", "false optimum", "own refusal", "impossible replay", "bug logged"]
KINDS: tuple[Kind, ...] = (
    "false bound",
    "false optimum",
    "own refusal",
    "impossible replay",
    "bug logged",
)


@dataclass(frozen=True)
class Violation:
    """Something that is told and is not so."""

    seed: int
    kind: Kind
    words: str


@dataclass
class Seen:
    """What was found of some problems."""

    problems: int = 0
    plans: int = 0
    bounds: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    asked: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)

    def add(self, other: Seen) -> None:
        """Count what was found of others."""
        self.problems += other.problems
        self.plans += other.plans
        self.bounds += other.bounds
        self.statuses += other.statuses
        self.asked += other.asked
        for name, seconds in other.seconds.items():
            self.seconds[name] += seconds
        self.violations += other.violations


@dataclass(frozen=True)
class Answer:
    """A result, and whether it is a plan of whole chunks of the very problem."""

    name: str
    result: Result
    whole: bool

    @property
    def steady(self) -> float | None:
        """µs of the steady state, where there is one."""
        return self.result.steady_makespan


class Examination:
    """One problem, all that is told about it."""

    def __init__(self, seed: int, problem: Problem) -> None:
        self.seed = seed
        self.problem = problem
        self.seen = Seen(problems=1)
        self.answers: list[Answer] = []
        self._bounds: dict[bool, tuple[Bound, ...]] = {}
        self._told: dict[Bound, str] = {}

    def run(self, formulations: Iterable[Formulation], *, limit: float) -> Seen:
        """Ask, and compare what is told."""
        with self._watched("lower_bounds"):
            for whole in (False, True):
                self._note("lower_bounds", self._proved(quick=False, whole_chunks=whole))
        for each in formulations:
            with self._watched(each.name):
                if each.why_not(self.problem) is None:
                    self._ask(each, limit=limit)
        self._judge_bounds()
        self._judge_optima()
        self.seen.plans, self.seen.bounds = len(self.answers), len(self._told)
        return self.seen

    @contextmanager
    def _watched(self, name: str) -> Iterator[None]:
        """Take the time, and note whatever is raised but that no plan was found."""
        begin = time.perf_counter()
        try:
            with _ending(ENDLESS):
                yield
        except SolveError:
            pass
        except Exception as error:  # noqa: BLE001  whatever else comes out is what is sought
            self._found("own refusal", f"{name}: {type(error).__name__}: {error}")
        self.seen.seconds[name] += time.perf_counter() - begin

    def _found(self, kind: Kind, words: str) -> None:
        self.seen.violations.append(Violation(self.seed, kind, words))

    def _proved(self, *, quick: bool, whole_chunks: bool) -> tuple[Bound, ...]:
        """Return the bounds with which a solve begins, found once."""
        del quick  # those that take a solver hold as well, and are better looked at often
        if whole_chunks not in self._bounds:
            self._bounds[whole_chunks] = lower_bounds(self.problem, whole_chunks=whole_chunks)
        return self._bounds[whole_chunks]

    def _note(self, name: str, bounds: Iterable[Bound]) -> None:
        for each in bounds:
            self._told.setdefault(each, name)

    def _ask(self, chosen: Formulation, *, limit: float) -> None:
        self.seen.asked[chosen.name] += 1
        found = solved(
            self.problem, chosen, chosen.options(), bounds=self._proved, time_limit=limit
        )
        whole = (
            isinstance(found.plan, Schedule)
            and all(send.fraction == 1 for send in found.plan.sends)
            and found.problem.collective.chunks == self.problem.collective.chunks
        )
        self.answers.append(Answer(chosen.name, found, whole))
        self.seen.statuses[found.status.value] += 1
        self._note(chosen.name, self._of_all(found))
        for words in faults(found.problem, found.timeline):
            self._found("impossible replay", f"{chosen.name}: {words}")

    def _of_all(self, found: Result) -> list[Bound]:
        """Return the bounds of a result that speak of the very problem, cut as it is."""
        same = found.problem.collective.chunks == self.problem.collective.chunks
        return [each for each in found.bounds if same or not each.whole_chunks]

    def _judge_bounds(self) -> None:
        for bound, name in self._told.items():
            for each in self.answers:
                if bound.whole_chunks and not each.whole:
                    continue
                if _less(each.result.makespan, bound.makespan):
                    self._false(name, bound, f"{each.name} takes {each.result.makespan!r}")
                    break
                if bound.steady and each.steady is not None and _less(each.steady, bound.makespan):
                    self._false(name, bound, f"the steady state of {each.name} {each.steady!r}")
                    break

    def _false(self, name: str, bound: Bound, beaten: str) -> None:
        of = "of whole chunks " if bound.whole_chunks else ""
        words = f"{bound.kind} bound {of}of {name}, {bound.makespan!r} µs, where {beaten} µs"
        self._found("false bound", f"{words} ({bound.reference})")

    def _judge_optima(self) -> None:
        for each in self.answers:
            status = each.result.status.value
            whole = "whole chunks" in status
            rivals = [one for one in self.answers if one.whole or not whole]
            if "throughput" in status:
                times = [(one.steady, one.name) for one in rivals if one.steady is not None]
                own = each.steady
            elif status.startswith("optimal") and (each.whole or not whole):
                times = [(one.result.makespan, one.name) for one in rivals]
                own = each.result.makespan
            else:
                continue
            best, name = min(times)
            # A proof may be off by rounding as well as what it is compared with.
            if own is not None and _less(best, own, share=3 * TOLERANCE):
                words = f"{each.name} takes {own!r} µs, {status!r}, and {name} {best!r} µs"
                self._found("false optimum", words)


@contextmanager
def _ending(seconds: int) -> Iterator[None]:
    """Interrupt what has not come to an end, in a main thread."""

    def stop(_signal: int, _frame: object) -> NoReturn:
        raise TimeoutError(f"no end within {seconds} s of computing")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _less(first: float, second: float, *, share: float = TOLERANCE) -> bool:
    return first < second * (1 - share)


class _Bugs(logging.Handler):
    """What the program itself notes as a bug of its own."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first line."""
        self.heard.append(record.getMessage().partition("\n")[0])


def chosen_for(seed: int, names: Sequence[str] = ()) -> list[Formulation]:
    """Return the formulations that are asked about the problem of a number."""
    if names:
        return [each for each in available() if each.name in names]
    return [
        each
        for each in available()
        if Random(f"{seed} {each.name}").random() * EVERY.get(each.name, 1) < 1
    ]


def examined(seed: int, *, names: Sequence[str] = (), limit: float = LIMIT) -> Seen:
    """Return what is found of the problem of a number.

    Parameters
    ----------
    seed
        The number.
    names
        Formulations to ask; by default all, the slow ones in turns.
    limit
        Seconds that each may take.
    """
    bugs = _Bugs()
    logger = logging.getLogger("topoloom")
    logger.addHandler(bugs)
    try:
        examination = Examination(seed, random_problem(seed))
        seen = examination.run(chosen_for(seed, names), limit=limit)
    finally:
        logger.removeHandler(bugs)
    seen.violations += [Violation(seed, "bug logged", words) for words in bugs.heard]
    return seen


def _batch(seeds: Sequence[int], *, names: Sequence[str], limit: float, until: float) -> Seen:
    seen = Seen()
    for seed in seeds:
        if time.time() > until:
            break
        seen.add(examined(seed, names=names, limit=limit))
    return seen


def _seen(
    seeds: range, *, seconds: float, workers: int, names: Sequence[str], limit: float
) -> Iterator[Seen]:
    """Yield what workers find, until the time is over."""
    until = time.time() + seconds if seconds else float("inf")
    work = partial(_batch, names=names, limit=limit, until=until)
    batches = (seeds[i : i + BATCH] for i in range(0, len(seeds), BATCH))
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        running: set[Future[Seen]] = set()
        while True:
            while len(running) <= workers and time.time() < until:
                batch = next(batches, None)
                if batch is None:
                    break
                running.add(pool.submit(work, batch))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (each.result() for each in done)


def reproduction(seed: int) -> str:
    """Return the problem of a number as JSON in one line."""
    return json.dumps(problem_to_json(random_problem(seed)), separators=(",", ":"))


def main(  # noqa: PLR0917  the options of a command
    problems: Annotated[int, typer.Option(help="How many.")] = 20_000,
    seed: Annotated[int, typer.Option(help="Number of the first.")] = 0,
    seconds: Annotated[float, typer.Option(help="When to stop; 0 for never.")] = 0.0,
    workers: Annotated[int, typer.Option(help="Processes.")] = 2,
    only: Annotated[str, typer.Option(help="Formulations to ask, by commas.")] = "",
    limit: Annotated[float, typer.Option(help="Seconds for each formulation.")] = LIMIT,
) -> None:
    """Ask every formulation about random problems; print what is not true, and counts."""
    total = Seen()
    names = [each for each in only.split(",") if each]
    seeds = range(seed, seed + problems)
    begin = time.monotonic()
    for each in _seen(seeds, seconds=seconds, workers=workers, names=names, limit=limit):
        total.add(each)
        for number, found in groupby(each.violations, attrgetter("seed")):
            for one in found:
                print(f"{one.kind}, seed {number}: {one.words}")
            print(f"  {reproduction(number)}", flush=True)
    show([_table(total)])
    counts = Counter(each.kind for each in total.violations)
    told = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS)
    print(
        f"{total.problems:,} problems, {total.plans:,} plans, {total.bounds:,} bounds "
        f"in {time.monotonic() - begin:.0f} s: {told}"
    )
    raise typer.Exit(bool(total.violations))


def _table(total: Seen) -> Table:
    """Return how often each formulation was asked, how long it took and what it said."""
    title = "; ".join(f"{many:,} {name}" for name, many in total.statuses.items())
    made = table(title, ("formulation", "asked", "ms each"))
    for name, spent in sorted(total.seconds.items(), key=lambda each: -each[1]):
        many = total.asked[name]
        made.add_row(name, f"{many:,}", f"{spent / many * 1e3:.1f}" if many else "")
    return made


WINDOWS = 200
"""Most beginnings of windows that a shared limit is looked at from."""

BYTES = 1e3
"""Bytes in a microsecond at 1 GB/s."""

_Leaving = tuple[Transfer, int]
"""A transfer, and how often its bytes have crossed its link before."""


def faults(problem: Problem, timeline: Timeline) -> Iterator[str]:
    """Yield in words what cannot be so: bandwidths, limits, switches, and what never arrives."""
    slack = TOLERANCE * max((each.end for each in timeline.transfers), default=0.0)
    by_link = timeline.by_link()
    for ends, transfers in by_link.items():
        yield from _on_link(problem, ends, transfers, slack=slack)
    for limit in problem.topology.limits:
        rows = [
            (each, problem.topology.link(*ends).bandwidth * BYTES)
            for ends in limit.links
            for each in by_link.get(timeline.place(*ends), [])
        ]
        if _over(rows, limit.bandwidth * BYTES, slack=slack):
            yield f"limit {limit.name} is exceeded"
    if timeline.images == 1:
        yield from _at_switches(problem, timeline, slack=slack)
        yield from _missing(problem, timeline, slack=slack)


def _on_link(
    problem: Problem, ends: tuple[str, str], transfers: Sequence[Transfer], *, slack: float
) -> Iterator[str]:
    """Look at every window from the beginning of one transfer to the end of another."""
    link = problem.topology.link(*ends)
    rate = link.bandwidth * BYTES
    rows = np.array(sorted((each.start, each.sent, each.nbytes) for each in transfers))
    starts, sents, nbytes = rows.T
    if (np.diff(sents) < -slack).any() or (starts[1:] < sents[:-1] - slack).any():
        yield f"link {link} sends two things at once"
    carried = np.cumsum(nbytes)
    most = np.maximum.accumulate(rate * starts - (carried - nbytes))
    if (carried - rate * sents + most > rate * slack).any():
        yield f"link {link} carries more than {link.bandwidth:g} GB/s"
    if any(each.end < each.sent + link.alpha - slack for each in transfers):
        yield f"link {link} brings bytes in less than its {link.alpha:g} µs"


def _over(rows: Sequence[tuple[Transfer, float]], room: float, *, slack: float) -> bool:
    """Whether in some window more must have been carried than `room` bytes/µs let through."""
    if not rows:
        return False
    rows = sorted(rows, key=lambda row: row[0].sent)
    starts = np.array([each.start for each, _ in rows])
    sents = np.array([each.sent for each, _ in rows])
    nbytes = np.array([each.nbytes for each, _ in rows])
    rates = np.array([rate for _, rate in rows])
    moments = np.unique(starts)
    picked = moments[np.linspace(0, len(moments) - 1, min(len(moments), WINDOWS)).astype(int)]
    for begin in picked:
        inside = np.clip(nbytes - rates * np.clip(begin - starts, 0, None), 0, None)
        inside[sents <= begin] = 0
        if (np.cumsum(inside) > room * (np.clip(sents - begin, 0, None) + slack)).any():
            return True
    return False


def _at_switches(problem: Problem, timeline: Timeline, *, slack: float) -> Iterator[str]:
    """Compare what has left a device that stores nothing with what has come, chunk by chunk."""
    topology = problem.topology
    holds = {each.name for each in topology.devices if each.stores}
    came: defaultdict[tuple[str, int], list[Transfer]] = defaultdict(list)
    left: defaultdict[tuple[str, int], list[_Leaving]] = defaultdict(list)
    copies = Counter[tuple[str, str, tuple[int, ...]]]()
    for number, each in enumerate(timeline.transfers):
        if each.dst not in holds:
            came[each.dst, each.chunk].append(each)
        if each.src not in holds:
            again = 0
            if timeline.after:
                key = each.src, each.dst, timeline.after[number]
                again, copies[key] = copies[key], copies[key] + 1
            left[each.src, each.chunk].append((each, again))
    early: dict[str, int] = {}
    for place, out in left.items():
        device = topology.device(place[0])
        if _too_early(problem, device, came=came[place], left=out, slack=slack):
            early.setdefault(*place)
    for name, chunk in early.items():
        yield f"{name} sends on bytes of chunk {chunk} that have not come"


def _too_early(
    problem: Problem,
    device: Device,
    *,
    came: Sequence[Transfer],
    left: Sequence[_Leaving],
    slack: float,
) -> bool:
    leaving = [each for each, _ in left]
    links = {each: problem.topology.link(each.src, each.dst) for each in (*came, *leaving)}
    # Both amounts are straight between these moments.
    moments = np.unique(
        [
            *(each.start + links[each].alpha for each in came),
            *(_full(each, links[each].bandwidth) + links[each].alpha for each in came),
            *(each.sent - each.nbytes / (links[each].bandwidth * BYTES) for each in leaving),
            *(each.sent for each in leaving),
        ]
    )
    there = np.full(len(moments), TOLERANCE * sum(each.nbytes for each in came))
    for each in came:
        rate = links[each].bandwidth * BYTES
        passed = moments + slack - each.start - links[each].alpha
        there += np.clip(rate * passed, 0, each.nbytes)
    gone: defaultdict[object, np.ndarray] = defaultdict(lambda: np.zeros(len(moments)))
    for each, again in left:
        rate = links[each].bandwidth * BYTES
        amount = np.clip(each.nbytes - rate * (each.sent - moments), 0, None)
        gone[(each.dst, again) if device.copies else ""] += np.minimum(amount, each.nbytes)
    return any(bool((amount > there).any()) for amount in gone.values())


def _full(each: Transfer, bandwidth: float) -> float:
    """Return the first moment at which all of a transfer may have entered its link."""
    return each.start + each.nbytes / (bandwidth * BYTES)


def _missing(problem: Problem, timeline: Timeline, *, slack: float) -> Iterator[str]:
    """Name what has not come, as many bytes as it has, by the end."""
    arrived: defaultdict[tuple[int, str], float] = defaultdict(float)
    for each in timeline.transfers:
        if each.end <= timeline.makespan + slack:
            arrived[each.chunk, each.dst] += each.nbytes
    ranks = problem.topology.ranks
    for number, chunk in enumerate(problem.collective.chunks):
        for rank in chunk.destinations:
            others = set(chunk.holders) - {rank}
            needs = bool(others) if chunk.reduced else rank not in chunk.holders
            if needs and arrived[number, ranks[rank]] < chunk.size * (1 - TOLERANCE):
                yield f"chunk {number} has not come to {ranks[rank]} by {timeline.makespan:g} µs"
