"""Methods that are tried on one problem share its time, its plans and bounds, and another core.

Each has the problem with what is known so far and a part of the time that is left. What it finds
and proves is kept: the fastest plan of all, and of those that keep chunks whole the fastest for
each number of chunks per shard. One process more may try methods on another core meanwhile; what
it finds is heard whenever a method here reports. Bounds hold for all methods, so the first plan
that meets one ends everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from ccl.bound import Bound
from ccl.errors import SolveError
from ccl.options import option
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import Plan, Result, Status, Stop
from formulations.core.registry import Formulation, formulation
from formulations.core.run import Progress, Run
from formulations.jobs.solve_job import Aside
from formulations.solving.first_plan import TINY, pairs_of

EFFORT = {"quick": 0.0, "normal": 10.0, "thorough": 60.0}
"""Seconds that each exact method may take."""

LISTS, PIECES = "list", "pieces"
"""What is tried with shards cut more and more finely; the best of trees where sums are added up
and spread, whose halves it lets overlap."""

AMOUNTS = "te-ccl-lp"
EXACT = ("taccl", AMOUNTS, "cp-sat", "te-ccl-milp", "te-ccl-astar")
"""What needs a solver; the second takes what is neither copied nor added up."""

FEW = {"thesis-fluid": 5_000, "taccl": 500}
"""What is tried up to `SMALL` pairs, up to so many where amounts in epochs will do."""

SMALL, MANY = 200, 20_000
"""Pairs of a chunk and a rank up to which trees take less time than another process takes to
begin, and above which only list scheduling and trees are tried."""

SLIGHT, WORTH = 1.002, 0.003
"""Times the bound up to which more pieces are not worth their time, and what a search or a finer
cut gains at least, as a share of the makespan."""

PROOF_SECONDS = 3.0
"""Seconds for bounds by a large linear program, and for those by cuts in time."""

ENDED = (Stop.CONSTRUCTED, Stop.RATE, Stop.PASSES, Stop.PROVED, Stop.SEARCHED, Stop.MODEL_OPTIMAL)
"""Why methods stop that came to their own end."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The form of the portfolio."""

    effort: Literal["quick", "normal", "thorough"] = option(
        "normal",
        "Effort",
        "How long exact methods may try where the bound is not met: not at all, up to "
        "10 s or up to 60 s each, the one that has a core of its own up to the time limit",
    )
    seed: int = option(0, "Seed", "Of the random numbers", min=0)
    methods: str = option(
        "",
        "Methods",
        "Names of the methods to try, in this order, joined by commas; by default "
        "those that can win on the problem",
    )


class Portfolio:
    """What was tried on a problem, and the best plan for each number of chunks per shard."""

    def __init__(self, run: Run, options: Options) -> None:
        self.run = run
        self.options = options
        self.failed: list[SolveError] = []
        self.stop = Stop.PASSES
        self._plans: dict[int, Result] = {}
        self._unsplit: dict[int, list[Bound]] = {}
        self._cut_off: list[int] = []  # chunks per shard whose passes did not come to their end
        self._remarks = list(run.log)
        self._built: list[str] = []  # for a first plan
        self._told: tuple[Plan | None, tuple[str, ...]] = None, ()
        self._aside: Aside | None = None
        self._beside: list[str] = []  # what is tried there
        self._pairs = pairs_of(run.problem)
        self._large = self._pairs > MANY

    def end(self) -> None:
        """Stop what still goes on elsewhere, and keep the notes on the best."""
        if self._aside is not None:
            self._aside.close(soon=self.run.enough or not self.run.late)
            self._listen()
        (plan, told), best = self._told, self.run.best
        told = told if best is None or best.plan is plan else best.log
        self.run.log[:] = [*self._remarks, *told]

    @property
    def tiny(self) -> bool:
        """Whether searches are quick enough as they are written, while they are being compiled."""
        return self._pairs <= TINY

    @property
    def _done(self) -> bool:
        self._listen()
        # On the largest problems the first that trees find has to do.
        found = self._large and self._aside is not None and self._aside.ended
        # A limit that is over before the first plan is there leaves time for one.
        best = self.run.best
        return self.run.enough or (best is not None and (self.run.late or found or self._near))

    @property
    def _near(self) -> bool:
        """Whether no plan has a higher rate than the best, nor one worth the search in it."""
        best = self.run.best
        if self._pairs <= SMALL or self.options.methods or best is None:
            return False
        return best.status is Status.THROUGHPUT and self._within(1 + WORTH)

    def _share(self, many: float) -> float | None:
        """Return the seconds of the next of so many methods, None where there is no limit."""
        return None if self.run.left is None else self.run.left / many

    def _within(self, many: float = SLIGHT) -> bool:
        """Return whether the best takes at most so many times what is proved."""
        best = self.run.best
        return best is not None and best.makespan <= many * self.run.proof.makespan

    def _able(self, name: str) -> bool:
        return self._takes(formulation(name), self.run.problem)

    def _takes(self, chosen: Formulation, problem: Problem) -> bool:
        most = math.inf
        if chosen.name in FEW and not self.options.methods:
            most = FEW[chosen.name] if self._able(AMOUNTS) else SMALL
        whole = not self.run.whole or chosen.keeps_chunks(problem)
        return whole and self._pairs <= most and chosen.why_not(problem) is None

    def _try(self, name: str, *, parts: int = 1, seconds: float | None = None) -> None:
        """Let a method solve the problem cut into so many parts; keep what it adds."""
        run, chosen, problem = self.run, formulation(name), self.run.problem
        many = parts * len(problem.collective.chunks)
        if parts > 1:
            problem = problem.cut_into(many)
        if self._done or not self._takes(chosen, problem) or (name == PIECES and self._within()):
            return
        limit = run.time_limit
        if seconds is not None and (run.left is None or seconds < run.left):
            limit = run.seconds + seconds
        whole = chosen.keeps_chunks(problem)
        inner = replace(
            run,
            problem=problem,
            bounds=self._bounds(problem, whole=whole),
            time_limit=limit,
            progress=self._heard(name),
            whole=whole,
            method=name,
            known=run.best_known,
            best=self._plans.get(parts) if whole else None,
            log=[],
            size=None,
            closed_form=None,
            turn=run.turn if parts == 1 else partial(_counted, chunks=many),
            over=lambda: self._done,
            grace=self._grace(limit, parts=parts),
        )
        from formulations.solving.windows import answer  # noqa: PLC0415  it replays

        try:
            stop = answer(chosen, inner, chosen.options_within(self.options.seed, seconds)).stop
            # What ends a method says nothing of plans that it does not have.
            self.stop = stop if run.whole else self.stop if stop in ENDED else Stop.EFFORT
            if name == LISTS and stop is Stop.TIME_LIMIT and parts not in self._cut_off:
                self._cut_off.append(parts)
        except SolveError as error:
            self.failed.append(error)
        self._keep(name, inner, parts=parts)

    def _try_aside(self, names: Sequence[str]) -> None:
        """Let another core try what can win of these, one after the other."""
        able = [name for name in names if self._able(name)]
        if able and self._aside is None and not self._done and not self.run.late:
            options = {"methods": ",".join(able), "seed": self.options.seed}
            self._aside, self._beside = Aside(self.run, options), able

    def _grace(self, limit: float | None, *, parts: int) -> float:
        """Return until when the first plan of a method is waited for that has such a limit."""
        run, ends = self.run, math.inf if limit is None else limit
        beside = self._large and self._aside is not None and not self._aside.ended
        if run.best is None and not beside:
            return run.grace
        return ends if parts > 1 or beside else max(ends, run.seconds + (self._share(2) or 0))

    def _bounds(self, problem: Problem, *, whole: bool) -> tuple[Bound, ...]:
        """Return what holds for every plan and, asked so, for those that keep chunks whole."""
        from formulations.bounds import quick_bounds  # noqa: PLC0415  menus need no bounds

        every = [each for each in self.run.bounds if not each.whole_chunks]
        chunks = len(problem.collective.chunks)
        if whole and chunks <= MANY // 10:
            if chunks not in self._unsplit:
                proved = quick_bounds(problem, whole_chunks=True)
                self._unsplit[chunks] = [each for each in proved if each.whole_chunks]
            every += self._unsplit[chunks]
        return tuple(sorted(every, key=lambda each: -each.makespan))

    def _heard(self, name: str) -> Callable[[Progress], None]:
        """Return what takes the news of a method: its better plans, and what it does."""

        def heard(news: Progress) -> None:
            if news.result is not None:
                self.run.prove(each for each in news.result.bounds if not each.whole_chunks)
                self.run.take(news.result, by=name)
            else:
                self._listen()
                self.run.report(news.message)

        return heard

    def _keep(self, name: str, inner: Run, *, parts: int) -> None:
        """Keep what a method has found and proved."""
        run, found = self.run, inner.best
        known = self._plans.get(parts)
        if found is not None and (known is None or found.makespan < known.makespan):
            if len(found.problem.collective.chunks) == len(inner.problem.collective.chunks):
                self._plans[parts] = found
            run.take(found, by=name)
        if name in EXACT:
            self._remarks += [each for each in inner.log if each not in self._remarks]
        if found is not None and run.best is not None and run.best.plan is found.plan:
            self._told = found.plan, tuple(inner.log)
        if inner.size is not None:
            run.met(inner.size)
        run.prove(
            each for each in inner.bounds if (run.whole and parts == 1) or not each.whole_chunks
        )

    def _prove_more(self) -> None:
        """Add the bounds that need a solver."""
        from formulations.bounds import flow_bounds, timed_bounds  # noqa: PLC0415

        run = self.run
        self._listen()
        over = run.enough or run.late or self._near or not EFFORT[self.options.effort]
        if over or (self._large and run.remaining < 2 * PROOF_SECONDS):  # as the cuts may take
            return
        run.report("a bound on all demands flowing together")
        seconds = min(self._share(4) or math.inf, PROOF_SECONDS)
        more = flow_bounds(run.problem, known=run.bounds, seconds=seconds)
        run.bounds = tuple(each for each in run.bounds if not (more and each.kind == "flow"))
        run.prove(more)
        run.report("a bound on what must cross cuts in time")
        seconds = 0.0 if run.enough else min(self._share(4) or math.inf, PROOF_SECONDS)
        run.prove(timed_bounds(run.problem, known=run.bounds, seconds=seconds))

    def _listen(self) -> None:
        """Take what has been found aside so far, and say there what is known here."""
        if self._aside is None:
            return
        for found in self._aside.news():
            self.run.prove(each for each in found.bounds if not each.whole_chunks)
            self.run.take(found, by=found.found_by or found.formulation)
        if self.run.best is not None:
            self._aside.report(self.run.best.makespan)

    def _wait(self) -> None:
        """Wait for what goes on aside, until it ends, is enough or the limit comes."""
        while self._aside is not None and not (self._done or self._within()) and self._aside.wait():
            pass


def _counted(plan: Plan, *, chunks: int) -> Plan:
    """Let a schedule say into how many chunks it cuts the data."""
    return replace(plan, chunks=chunks) if isinstance(plan, Schedule) else plan
