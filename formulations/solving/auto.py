"""Automatic: try what can win on this problem, keep the fastest plan, stop at a proof.

1. Lower bounds that hold for every plan. What meets one is optimal, and nothing else is tried.
2. List scheduling in continuous time with one chunk per shard gives a good plan at once.
3. Trees, along which shards travel in parts (`orbit-trees`, `forestcoll` and others) or in pieces
   (`pieces`), come closest to the bound where bandwidth counts more than latency. On clusters that
   are not small they are searched on another core meanwhile, where `pieces` are the last and go on
   up to the limit; the first of them alone and before everything else where that takes little
   time. On small ones all are searched here; for an all-reduce `pieces` only for moments, as they
   have the other core as well. For an all-reduce, whose two halves can overlap, `pieces` come
   first, or after `orbit-trees` where there are many GPUs. The search ends with a plan of the
   best rate that is within 0.3 % of the bound.
4. List scheduling again with shards cut into 2, 4, 8, ... chunks, as long as that helps. Where
   nothing is copied or added up, balanced paths come before it, with whole and with cut shards.
5. Known constructions: direct sends, rings, trees, doubling and the like. Where latency counts,
   after the shallowest trees (`bfb`), before others. On the largest problems few: `chains` for an
   all-reduce, direct sends and a ring where all is far off, balanced paths where GPUs pass on.
6. Random matching of links and chunks, for a few seconds.
7. List scheduling once more if its share of the time ended too early.
8. TACCL, a linear program of amounts, constraint programming, and an integer program over epochs
   and its rounds, where they could find a better plan; the integer program on the other core up
   to the limit, if that has nothing else to do.

Every better plan is shown as soon as it is found. If the number of chunks is fixed, all plans keep
these chunks whole, and a bound on such plans counts as a proof. Otherwise a plan may cut the data
more finely than requested, and only bounds on all plans count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial

from ccl.collective import COLLECTIVES
from ccl.problem import Problem
from ccl.result import PROOF_TOLERANCE, Result, Stop
from formulations.core.preparing import interpreted, interpreting, ready
from formulations.core.registry import Formulation, formulation
from formulations.core.run import Run
from formulations.solving.first_plan import first_plan
from formulations.solving.portfolio import (
    AMOUNTS,
    EFFORT,
    EXACT,
    LISTS,
    PIECES,
    SMALL,
    WORTH,
    Options,
    Portfolio,
)

PATHS = "balanced-paths"
"""What is tried with shards cut more and more finely, as lists are, where nothing is copied."""

CONSTRUCTIONS = (
    *("recursive-doubling", "halving-doubling", "direct", "ring", "bidirectional-ring"),
    *("multi-ring", "tree", "double-binary-tree", "hierarchical", "torus", "swing", "bruck"),
    *("pat", "pairwise"),
)
"""What is built without a search, after what sends all at once or in few stages."""

TREES = (
    *("orbit-trees", "pieces", "forestcoll", "blink-switch"),
    *("blink", "bfb", "mirrored-dantzig-wolfe", "thesis-fluid", "certified-flow"),
)
"""What sends shards in parts along trees, and pairs along flows."""

CHAINS, SHALLOW, ONE_SHOT, ALONE = "chains", "bfb", "one-shot", 0.89
"""Tried only where latency counts; its first trees; what comes first where little else does."""

SUMS = {PIECES: 1.6, CHAINS: 1.3}
"""There they have one in so many parts of what is left here."""

LONGEST = {PIECES: (8.0, 0.45), ONE_SHOT: (2.0, 0.1), CHAINS: (6.0, 0.1), SHALLOW: (2.0, 0.2)}
"""Seconds for what would go on for long with ever less gain, or a share of the limit if longer."""

EPOCHS = "te-ccl-milp"
"""Whose integer program gains for long."""

BRIEF = 2.0
"""Seconds here of what is tried on another core as well."""

LEAST = 0.5
"""Seconds below which what solves linear programs would not keep to them."""

CHANCE, CHANCE_SECONDS = "tacos", 3.0
"""Seconds that a method of chance may take; the others come to their end by themselves."""

BEHIND = 1.2
"""How far above others list scheduling's plan of whole chunks is where chance is tried first, and
above the bound what is found of the largest problems is where others are tried."""

CUTS = (2, 4, 8, 16, 32, 64)
"""Chunks per shard that list scheduling tries, as long as each gains `WORTH`."""

CUT_SECONDS = 4.0
"""Seconds of each: what passes gain later, finer chunks gain sooner."""

LATENT = 0.25
"""Share of the bound that latency takes where few steps count most, twice as much of many pairs."""

DIRECT, RING, LONG, TREE = "direct", "ring", 3.0, "double-binary-tree"
"""On the largest: if switches join all; if latencies around are few bounds; if sums have none."""

SENDS = 60_000
"""Pairs of a chunk and a rank up to which shards are cut further."""

LONE, MODEST = 50, 500
"""Pairs up to which trees of sums take less time than another process takes to begin, and the
first of others."""


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


class Search(Portfolio):
    """The order in which methods are tried on a problem."""

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
        turns.insert(after + 1 if self._trees_soon else len(turns), self._trees_late)
        last = [self._list_on, self._exactly]
        for turn in (*turns, *(last[::-1] if self._able(AMOUNTS) else last)):
            turn()
        self._wait()

    def _largest(self) -> None:
        """Try stages where latency counts, paths or a list, beside others; more if far off."""
        staged = self._sums and self.run.latency > LATENT
        if staged:
            self._try(CHAINS, seconds=self._share(2 - self.run.latency))
            self._prove_more()  # a list may take all the time
        self._try(PATHS if self._relayed else LISTS)
        topology = self.run.problem.topology
        around = len(topology.ranks) * min(each.alpha for each in topology.links)
        names = [DIRECT] if self._joined else []
        for name in [*names, RING] if around < LONG * self.run.proof.makespan else names:
            if not self._within(BEHIND):
                self._try(name)
        if self._sums and self.run.best is None:
            self._try(TREE)
        if not staged:
            self._prove_more()
        self._wait()
        if self.run.best is None:
            self._try(LISTS)

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
        small = self._aside is None and self._pairs <= SMALL
        order = self._trees_in_order if small else TREES[:1]
        names = [name for name in order if name not in self._beside]
        if small and self._sums and self.run.left is not None and not self._within():
            self._try_aside((PIECES,))
        for place, name in enumerate(names):
            most = SUMS.get(name, 3.0) if self._sums else min(3, len(names) - place + 1)
            seconds = self._longest(name, most)
            # What goes on aside may be at its end here before it has begun there.
            self._try(name, seconds=BRIEF if name in self._beside else seconds)

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
        """Whether another core is for pieces up to the limit: they gain for long."""
        return not self._large and self._able(PIECES)

    @property
    def _trees_soon(self) -> bool:
        """Whether the other trees come before finer lists: of few sums they seldom win."""
        return not self._sums or self._pairs > MODEST

    def _trees_late(self) -> None:
        """Try the other trees here where pieces are aside."""
        # On fewer all have been tried here before.
        if self._aside is not None and self._pieces_aside and self._pairs > LONE:
            for name in TREES[1:]:
                if name not in self._beside and (self._share(3) or LEAST) >= LEAST:
                    self._try(name, seconds=self._share(3))

    def _trees_aside(self, names: tuple[str, ...]) -> None:
        if self.run.left is not None and not self._large and EFFORT[self.options.effort]:
            names = (*names, AMOUNTS)  # up to the limit; without one, exact methods have `EFFORT`
        if PIECES in names and self._pieces_aside:  # those of many sums take long to begin
            order = TREES if self._sums and self._pairs > MODEST else names
            names = order[: order.index(PIECES) + 1]
        self._try_aside(names)

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
        if self.run.left is not None and not self._hopeless(formulation(EPOCHS)):
            self._try_aside((EPOCHS,))  # up to the limit
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
