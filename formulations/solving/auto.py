"""Automatic: try what can win on this problem, keep the fastest plan, stop at a proof.

1. Lower bounds that hold for every plan. What meets one is optimal, and nothing else is tried.
2. List scheduling in continuous time with one chunk per shard gives a good plan at once.
3. Trees, along which shards travel in parts (`orbit-trees`, `forestcoll` and others) or in pieces
   (`pieces`), come closest to the bound where bandwidth counts more than latency. On clusters that
   are not small they are searched on another core meanwhile; the first of them alone and before
   everything else where that takes little time. For an all-reduce, whose two halves can overlap,
   `pieces` come first, or after `orbit-trees` where there are many GPUs. The search ends with a
   plan of the best rate that is within 0.3 % of the bound.
4. List scheduling again with shards cut into 2, 4, 8, ... chunks, as long as that helps. Where
   nothing is copied or added up, balanced paths come before it, with whole and with cut shards.
5. Known constructions: direct sends, rings, trees, doubling and the like. Where latency counts,
   after the shallowest trees (`bfb`), before others. On the largest problems few: `chains` for an
   all-reduce, direct sends and a ring where all is far off, balanced paths where GPUs pass on.
6. Random matching of links and chunks, for a few seconds.
7. List scheduling once more if its share of the time ended too early.
8. TACCL, a linear program of amounts, constraint programming, and an integer program over epochs
   and its rounds, where they could find a better plan.

Every better plan is shown as soon as it is found. If the number of chunks is fixed, all plans keep
these chunks whole, and a bound on such plans counts as a proof. Otherwise a plan may cut the data
more finely than requested, and only bounds on all plans count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

from ccl.bound import Bound
from ccl.collective import COLLECTIVES
from ccl.errors import SolveError
from ccl.options import option
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import PROOF_TOLERANCE, Plan, Result, Status, Stop
from formulations.core.preparing import interpreted, interpreting, ready
from formulations.core.registry import Formulation, formulation
from formulations.core.run import Progress, Run
from formulations.jobs.solve_job import Aside
from formulations.solving.first_plan import TINY, first_plan, pairs_of

EFFORT = {"quick": 0.0, "normal": 10.0, "thorough": 60.0}
"""Seconds that each exact method may take."""

LISTS, PATHS = "list", "balanced-paths"
"""What is tried with shards cut more and more finely; the second where nothing is copied."""

CONSTRUCTIONS = (
    *("recursive-doubling", "halving-doubling", "direct", "ring", "bidirectional-ring"),
    *("multi-ring", "tree", "double-binary-tree", "hierarchical", "torus", "swing", "bruck"),
    *("pat", "pairwise"),
)
"""What is built without a search, after what sends all at once or in few stages."""

TREES = (
    *("orbit-trees", "pieces", "forestcoll", "blink-switch"),
    *("blink", "bfb", "mirrored-dantzig-wolfe", "thesis-fluid"),
)
"""What sends shards in parts along trees."""

PIECES = "pieces"
"""Of these, the best where sums are added up and spread, whose halves it lets overlap."""

CHAINS, SHALLOW, ONE_SHOT, ALONE = "chains", "bfb", "one-shot", 0.89
"""Tried only where latency counts; its first trees; what comes first where little else does."""

SUMS = {PIECES: 1.6, CHAINS: 1.3}
"""There they have one in so many parts of what is left here."""

LONGEST = {PIECES: (8.0, 0.45), ONE_SHOT: (2.0, 0.1), CHAINS: (6.0, 0.1), SHALLOW: (2.0, 0.2)}
"""Seconds for what would go on for long with ever less gain, or a share of the limit if longer."""

SLIGHT, LEAST = 1.002, 0.5
"""Times the bound up to which more pieces are not worth their time, and the seconds below which
what solves linear programs would not keep to them."""

CHANCE, CHANCE_SECONDS = "tacos", 3.0
"""Seconds that a method of chance may take; the others come to their end by themselves."""

AMOUNTS = "te-ccl-lp"
EXACT = ("taccl", AMOUNTS, "cp-sat", "te-ccl-milp", "te-ccl-astar")
"""What needs a solver; the second takes what is neither copied nor added up."""

FEW = {"thesis-fluid": 5_000, "taccl": 500}
"""What is tried up to `SMALL` pairs, up to so many where amounts in epochs will do."""

BEHIND = 1.2
"""How far above others list scheduling's plan of whole chunks is where chance is tried first, and
above the bound what is found of the largest problems is where others are tried."""

CUTS = (2, 4, 8, 16, 32, 64)
"""Chunks per shard that list scheduling tries, as long as each gains `WORTH`."""

WORTH, CUT_SECONDS = 0.003, 4.0
"""What each gains at least, and its seconds: what passes gain later, finer chunks gain sooner."""

PROOF_SECONDS = 3.0
"""Seconds for bounds by a large linear program, and for those by cuts in time."""

LATENT = 0.25
"""Share of the bound that latency takes where few steps count most, twice as much of many pairs."""

DIRECT, RING, LONG, TREE = "direct", "ring", 3.0, "double-binary-tree"
"""On the largest: if switches join all; if latencies around are few bounds; if sums have none."""

SENDS = 60_000
"""Pairs of a chunk and a rank up to which shards are cut further."""

LONE, SMALL, MODEST, MANY = 50, 200, 500, 20_000
"""Pairs up to which trees take less time than another process takes to begin: of sums, all or the
first of others; above the last only list scheduling and trees are tried."""

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


def refuses(problem: Problem) -> str | None:
    """Refuse what every method refuses, with the reason of the first."""
    names = (LISTS, PATHS, ONE_SHOT, CHAINS, *CONSTRUCTIONS, CHANCE, *EXACT, *TREES)
    reasons = (formulation(name).why_not(problem) for name in names)
    first = next(reasons)
    return None if first is None or None in reasons else first


def run(run: Run, options: Options) -> Result:
    """Try one method after the other.

    Raises
    ------
    Infeasible
        If no method finds a plan.
    LimitReached
        If the time limit came before the first plan.
    """
    if not options.methods:
        first_plan(run)
    if run.problem.windows:
        from formulations.solving.windows import without_windows  # noqa: PLC0415  it replays

        without_windows(FORMULATION, run, options, rest=1)
    search = Search(run, options)
    try:
        with interpreted(search.tiny):
            search.all()
    finally:
        search.end()
    if run.best is None and search.failed and not run.expired:
        raise search.failed[0]
    if run.enough or run.late:
        return run.finish(run.reached if run.enough else Stop.TIME_LIMIT)
    # A method that was cut off or only built a plan says nothing of the others.
    partial = search.stop in (Stop.CONSTRUCTED, Stop.TIME_LIMIT)
    return run.finish(Stop.EFFORT if partial else search.stop)


class Search:
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

    def all(self) -> None:
        """Try everything that can win, until a proof or the limit."""
        if self.options.methods:
            names = self.options.methods.replace(" ", "").split(",")
            for name in names:
                # On the largest problems the first plan has to do, or one in pieces.
                if not self._large or self.run.best is None or name == PIECES:
                    self._try(name, seconds=self._part(name, names))
            return
        if self._pairs > (LONE if self._sums else MODEST if ready() else SMALL):
            self._trees_aside(self._trees_in_order)
        if self._large:
            self._largest()
            return
        self._begin()
        soon, listed = self._soon, partial(self._try, LISTS, seconds=self._share(4))
        matched = partial(self._try, CHANCE, seconds=CHANCE_SECONDS)
        turns: list[Callable[[], None]] = [self._trees, self._cut_finer, matched]
        turns.insert(0 if soon else 2, self._construct)
        if soon and self._sums and self._pairs > MODEST:
            turns.insert(1, listed)
        else:
            listed()
        own, best = self._plans.get(1), self.run.best
        if own is not None and best is not None and own.makespan > BEHIND * best.makespan:
            turns.insert(int(soon), turns.pop())  # finer chunks will not help list scheduling
        if interpreting() and not ready():
            # As it is written, what cuts finer would take longer than compiling it.
            turns.remove(self._cut_finer)
            turns += [self._wait, self._cut_finer]
        turns.insert(0 if soon else 1, self._prove_more)
        first = self.run.latency > LATENT and SHALLOW not in self._beside
        few = [partial(self._try, SHALLOW, seconds=LONGEST[SHALLOW][0])] if first else []
        turns[int(soon) : int(soon)] = few
        after = max(2, turns.index(self._trees) + 1)
        turns.insert(after, self._trees_left)
        turns.insert(after if self._pairs > MODEST else len(turns), self._trees_late)
        last = [self._list_on, self._exactly]
        for turn in (*turns, *(last[::-1] if self._able(AMOUNTS) else last)):
            turn()
        self._wait()

    def _largest(self) -> None:
        """Try stages where latency counts, paths or a list, beside others; more if far off."""
        if self._sums and self.run.latency > LATENT:
            self._try(CHAINS, seconds=self._share(2 - self.run.latency))
        self._try(PATHS if self._relayed else LISTS)
        topology = self.run.problem.topology
        around = len(topology.ranks) * min(each.alpha for each in topology.links)
        names = [DIRECT] if self._joined else []
        for name in [*names, RING] if around < LONG * self.run.proof.makespan else names:
            if not self._within(BEHIND):
                self._try(name)
        if self._sums and self.run.best is None:
            self._try(TREE)
        self._prove_more()
        self._wait()
        if self.run.best is None:
            self._try(LISTS)

    def end(self) -> None:
        """Stop what still goes on elsewhere, and keep the notes on the best."""
        if self._aside is not None:
            self._aside.close()
        (plan, told), best = self._told, self.run.best
        told = told if best is None or best.plan is plan else best.log
        self.run.log[:] = [*self._remarks, *told]

    @cached_property
    def _joined(self) -> bool:
        """Whether every two GPUs are joined by a link or over switches."""
        from formulations.engines.closed_forms.routing import reachability  # noqa: PLC0415  numpy

        return reachability(self.run.problem.topology).complete

    @cached_property
    def _soon(self) -> bool:
        """Whether few steps count so much that what needs no search comes first."""
        return self.run.latency > (LATENT if self._pairs <= MODEST else 2 * LATENT)

    @property
    def _relayed(self) -> bool:
        """Whether GPUs pass on what is neither copied nor added up."""
        return self._able(PATHS) and not self._joined

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

    def _begin(self) -> None:
        """Build a plan, so that there is one at once."""
        for name in ("recursive-doubling" if self.run.latency > LATENT else RING, DIRECT):
            if self.run.best is None:
                self._try(name)
                self._built.append(name)
        self._try(PATHS, seconds=self._share(2))

    def _construct(self) -> None:
        """Build what needs no search."""
        lone = [ONE_SHOT, CHAINS] if self.run.latency > ALONE else [CHAINS, ONE_SHOT]
        for name in (*lone, *CONSTRUCTIONS):
            if name not in self._built and (name != CHAINS or self.run.latency > LATENT):
                self._try(name, seconds=self._longest(name, SUMS.get(name, 2)))

    def _longest(self, name: str, many: float) -> float | None:
        """Return the seconds of a method that is the next of so many."""
        share = self._share(many)
        if name not in LONGEST:
            return share
        seconds, part = LONGEST[name]
        return seconds if share is None else min(share, max(seconds, part * share * many))

    def _trees(self) -> None:
        """Try trees here, where they take less time than another process takes to begin."""
        names = self._trees_in_order if self._aside is None and self._pairs <= SMALL else TREES[:1]
        for place, name in enumerate(each for each in names if each not in self._beside):
            most = SUMS.get(name, 3.0) if self._sums else min(3, len(names) - place + 1)
            self._try(name, seconds=self._longest(name, most))

    def _part(self, name: str, names: Sequence[str]) -> float | None:
        """Return the seconds of one of several methods, None where it has all that are left."""
        # On the largest problems no other follows where there is a plan.
        over = self._large and name == PIECES and self.run.best is not None
        if (over or name == names[-1]) and self.run.left is not None:
            return None
        return self._longest(name, 1 if name == names[-1] else 2)

    @property
    def _trees_in_order(self) -> tuple[str, ...]:
        """What sends along trees: where latency counts pieces of sums first, or the shallowest."""
        if self._large and self._relayed:  # elsewhere, since it cannot be cut off
            from ccl.symmetry import symmetry_of  # noqa: PLC0415  menus need no groups

            return (LISTS,) if symmetry_of(self.run.problem.topology).order > 1 else ()
        few = self.run.latency > LATENT and not self._large
        first = (PIECES,) if self._sums else (TREES[0], SHALLOW)
        return (*first, *(each for each in TREES if each not in first)) if few else TREES

    @property
    def _sums(self) -> bool:
        """Whether it is an all-reduce, of which pieces have the best plans, given the time."""
        return self.run.problem.collective.kind == "all-reduce"

    def _trees_left(self) -> None:
        """Try the other trees aside where the first was not enough, and amounts in epochs."""
        if self._pairs > LONE:
            self._trees_aside(self._trees_in_order[1:] if self._pairs > SMALL else ())

    @property
    def _pieces_aside(self) -> bool:
        """Whether another core is for pieces, the best of the trees for sums."""
        return self._sums and not self._large and self._able(PIECES)

    def _trees_late(self) -> None:
        """Try the other trees here where pieces are aside."""
        if self._aside is not None and self._pieces_aside:
            for name in TREES[1:]:
                if name not in self._beside and (self._share(3) or LEAST) >= LEAST:
                    self._try(name, seconds=self._share(3))

    def _able(self, name: str) -> bool:
        return self._takes(formulation(name), self.run.problem)

    def _trees_aside(self, names: tuple[str, ...]) -> None:
        if self.run.left is not None and not self._large and EFFORT[self.options.effort]:
            names = (*names, AMOUNTS)  # up to the limit; without one, exact methods have `EFFORT`
        if self._pieces_aside:  # of many pairs they come late
            names = TREES[:2] if self._pairs > MODEST else (PIECES,)
        able = [name for name in names if self._able(name)]
        if able and self._aside is None and not self._done and not self.run.late:
            options = {"methods": ",".join(able), "seed": self.options.seed}
            self._aside, self._beside = Aside(self.run, options), able

    def _cut_finer(self) -> None:
        """Cut shards into more and more chunks, as long as that gains."""
        for name in (PATHS, LISTS) if self._able(PATHS) else (LISTS,):
            least = min((each.makespan for each in self._plans.values()), default=math.inf)
            before = least if self._able(AMOUNTS) else math.inf
            for parts in () if self.run.whole else CUTS:
                if parts * self._pairs > SENDS or self._done:
                    return
                with interpreted(False):
                    seconds = min(self._share(3) or math.inf, CUT_SECONDS)
                    self._try(name, parts=parts, seconds=seconds)
                found = self._plans.get(parts)
                if found is None or found.makespan > before * (1 - WORTH):
                    break
                before = found.makespan

    def _list_on(self) -> None:
        """Let list scheduling make all its passes, where its share of the time did not suffice."""
        for parts in self._cut_off[:]:
            self._try(LISTS, parts=parts, seconds=self._share(2))

    def _exactly(self) -> None:
        """Let solvers try, each leaving time to the next, where bounds leave room for a plan."""
        seconds = EFFORT[self.options.effort] * (3 if self._in_two() else 1)
        if not seconds:
            return
        names = [name for name in EXACT if name not in self._beside and self._able(name)]
        for name in names:
            if self._done:
                return
            part = seconds if name == names[-1] else min(seconds, self._share(1.5) or math.inf)
            if not self._hopeless(formulation(name)):
                self._try(name, seconds=part)

    def _hopeless(self, chosen: Formulation) -> bool:
        """Return whether no plan of this method's kind can be better than the best."""
        best, problem = self.run.best, self.run.problem
        if best is None or not chosen.keeps_chunks(problem):
            return False
        least = max(each.makespan for each in self._bounds(problem, whole=True))
        return best.makespan <= least * (1 + PROOF_TOLERANCE)

    def _in_two(self) -> bool:
        """Test if sums are added up, then spread: a search for each half and one for both."""
        from formulations.engines.reverse_time import halves  # noqa: PLC0415  menus need no bounds

        collective = self.run.problem.collective
        return collective.reduces and None not in halves(collective)

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
        over = run.enough or run.late or self._near
        if over or not EFFORT[self.options.effort]:
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


FORMULATION = Formulation(
    name="auto",
    title="Automatic",
    reference="Tries several methods and keeps the best plan; each has its own sources",
    collectives=frozenset(COLLECTIVES),
    options=Options,
    refuses=refuses,
    run=run,
    model="several",
    windows=True,
    quick=True,
    whole_chunks=lambda problem: problem.collective.whole,
    mathematics=__doc__ or "",
)
