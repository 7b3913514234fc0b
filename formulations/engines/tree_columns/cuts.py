"""Search for the best cut: trees once, then numbers of pieces one after the other.

Many small pieces come close to the best rate, few large ones are quick to fill and to drain the
trees; where shares of trees are twelfths, 24 pieces lose nothing and 16 do. So about each of a few
numbers the one is taken whose rounding costs least.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ccl.errors import Infeasible
from ccl.problem import Problem
from formulations.core.preparing import clock, interpreting, ready
from formulations.core.run import Run
from formulations.engines.list_scheduling.reordering import Pass
from formulations.engines.list_scheduling.timed import passable, transfers_of
from formulations.engines.reverse_time import adding, halves
from formulations.engines.tree_columns.heads_tails import HeadsAndTails, rounding
from formulations.engines.tree_columns.patterns import (
    Edge,
    Pattern,
    Routes,
    Undirected,
    directed,
    enriched,
    priced,
)
from formulations.engines.tree_columns.pieces import Jobs, jobs_of, joined
from formulations.engines.tree_columns.search import Search
from formulations.engines.tree_columns.task import Task, task_of

FEW = 8
"""Pieces of a root below which their number is taken as it is."""

AS_WRITTEN = 3_000
"""The same where searches are as they are written, while they are being compiled."""

COUNTS = (24, 8, 48, 4, 96, 2, 192, 1)
"""Pieces of a shard, about, in the order in which they are tried."""

CROSSINGS, FIRST = 60_000, 12_000
"""Of all pieces together: finer cuts are not tried, and those with fewer crossings come first."""

POOL_SHARE = 0.25
"""Of the time, for finding trees."""

DEEPER = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
"""What latency costs more, in shares of what links cost on average, at prices of the weights."""

ROUNDS = 2
"""How often trees are sought at the prices of the weights."""

RANDOM = 600
"""Random trees that are tried, fewer where many paths join GPUs."""

RANDOM_PIECES = 4
"""Pieces of a shard by which random trees measure paths."""

LATENT = 0.05
"""Share of the time that data takes from which on latency counts."""

RANDOM_WORK = 300_000
"""Paths that growing random trees looks at."""


@dataclass(frozen=True)
class Limits:
    """When to stop.

    Parameters
    ----------
    deadline
        On the clock of `formulations.core.preparing`.
    run
        Takes the plans.
    """

    deadline: float
    run: Run

    @property
    def left(self) -> float:
        """Seconds."""
        return max(0.0, self.deadline - clock())

    def reached(self) -> bool:
        """Return whether to stop: a plan is good enough, or the time is over."""
        return self.run.enough or self.run.over() or self.left == 0

    def offer(self, jobs: Jobs, cut: Cut, plan: Pass, *, routes: Routes | None = None) -> None:
        """Offer a plan to the run, unless it has a better one."""
        run, best = self.run, self.run.best
        if best is not None and float(plan[1].max()) >= best.makespan * (1 - 1e-9):
            return
        problem = run.problem.cut_into(cut.parts * len(run.problem.collective.chunks))
        transfers = (routes or cut.model.routes).transfers
        run.met(cut.model.size)
        run.offer(jobs.schedule(problem, transfers, plan[0], cut=cut.parts > 1))


def modelled(
    task: Task, patterns: Sequence[Pattern], *, nbytes: np.ndarray, pieces: int, limits: Limits
) -> HeadsAndTails:
    """Return the linear program of weights, the paths of the patterns having numbers."""
    routes = Routes(task.problem.topology)
    for each in patterns:
        for links in each.routes:
            routes.number(links)
    backend = limits.run.backend
    return HeadsAndTails(task, patterns, routes, nbytes=nbytes, pieces=pieces, backend=backend)


class Directed:
    """Trees of a collective whose data spreads from roots or is added up at them.

    Parameters
    ----------
    problem
        All-gather, broadcast and the like, or their reversals.
    limits
        When to stop.
    """

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self.problem, self.limits = problem, limits
        self.task = task_of(problem)
        search = Search(self.task, limits.run.backend, deadline=clock() + POOL_SHARE * limits.left)
        found = search.run()
        self.bound, self.pool = found.bound, found.pool
        enriched(found, search)
        self._deepened(search)

    def _deepened(self, search: Search) -> None:
        """Add trees that are the cheapest at what the weights pay for bandwidth."""
        alpha = np.array([each.alpha for each in self.problem.topology.links])
        for _ in range(ROUNDS if alpha.any() else 0):
            before = len(self.pool)
            prices = self.weighted(8).best(self.bound).prices
            if self.limits.reached() or not prices.any():
                return
            # In units in which prices of rows are µs; only what they are to each other counts.
            priced(search, prices / prices.sum(), alpha, DEEPER)
            if len(self.pool) == before:
                return

    @property
    def patterns(self) -> list[Pattern]:
        """What pieces do along the trees of the pool.

        Raises
        ------
        Infeasible
            If shared limits let none through on all links of a path at once.
        """
        found = [
            directed(self.task, demand, column)
            for demand, column in zip(self.pool.demands, self.pool.columns, strict=True)
        ]
        able = [each for each in found if self.let_through(each)]
        if len({each.demand for each in able}) < len(self.task.demands):
            raise Infeasible("shared limits let no piece through on all links of a path at once")
        return able

    def let_through(self, pattern: Pattern) -> bool:
        """Return whether shared limits let a piece cross each path of a pattern at once."""
        if not self.problem.topology.limits:
            return True
        links, fits = self.problem.topology.links, passable(self.problem.topology)
        return all(
            fits((links[path[0]].src, *(links[link].dst for link in path)))
            for path in pattern.routes
        )

    @cached_property
    def of_root(self) -> dict[int, list[int]]:
        """Numbers of the chunks of each root."""
        found: dict[int, list[int]] = {}
        for number, chunk in enumerate(self.problem.collective.chunks):
            ends = chunk.destinations if chunk.reduced else chunk.holders
            found.setdefault(ends[0], []).append(number)
        return found

    @cached_property
    def per_root(self) -> int:
        """Chunks of a root before they are cut."""
        return max(map(len, self.of_root.values()))

    @cached_property
    def crossings(self) -> int:
        """Of the pieces of all roots, if each root has one."""
        task, both = self.task, self.limits.run.problem.collective.kind == "all-reduce"
        own = sum(len(each.others) for each in task.demands) * task.symmetry.order
        return own * (2 if both else 1)

    def in_order(self, counts: Sequence[int]) -> list[int]:
        """Return numbers of pieces with those first that are quick to try."""
        return [
            *(each for each in counts if each * self.crossings <= FIRST),
            *sorted(each for each in counts if FIRST < each * self.crossings <= self.most),
        ]

    def weighted(self, pieces: int) -> HeadsAndTails:
        """Return the linear program for so many pieces of each root."""
        nbytes = self.task.nbytes
        return modelled(self.task, self.patterns, nbytes=nbytes, pieces=pieces, limits=self.limits)

    def jobs(self, cut: Cut) -> Jobs:
        """Return the pieces of all roots."""
        parts = cut.parts
        ranks, of_root, demands = self.task.symmetry.ranks, self.of_root, self.task.demands

        def numbers(demand: int, pieces: np.ndarray) -> np.ndarray:
            roots = ranks[:, demands[demand].root].tolist()
            base = np.array([of_root[root] for root in roots]).T
            return np.asarray(base[pieces // parts] * parts + (pieces % parts)[:, None])

        nbytes = self.task.nbytes / (self.per_root * parts)
        return jobs_of(self.task, cut.model, many=cut.many, nbytes=nbytes, numbers=numbers)

    def cuts(self, counts: Sequence[int]) -> Iterator[Cut]:
        """Yield the best of the cuts near each number of pieces per root."""
        known = set()
        for count in self.in_order(counts):
            near = self.near(count)
            if near is None:
                continue
            found = min(near.options(), key=lambda each: each.excess)
            if found.parts not in known:
                known.add(found.parts)
                yield found

    @property
    def most(self) -> int:
        """How many crossings there may be."""
        return AS_WRITTEN if interpreting() and not ready() else CROSSINGS

    def near(self, count: int) -> Near | None:
        """Return weights for about so many pieces per root; None where there are too many."""
        parts = max(1, count // self.per_root)
        if parts > 1 and parts * self.per_root * self.crossings > self.most:
            return None
        model = self.weighted(parts * self.per_root)
        most = max(parts, self.most // (self.per_root * self.crossings))
        return Near(model, model.best(self.bound).shares, self.per_root, parts, most)

    def offer(self, counts: Sequence[int]) -> None:
        """Offer plans of about so many pieces per root."""
        goal = self.limits.run.proof.makespan
        for cut in self.cuts(counts):
            jobs = self.jobs(cut)
            plan = jobs.best(cut.model.routes.transfers, goal=goal, over=self.limits.reached)
            self.limits.offer(jobs, cut, plan)
            if self.limits.reached():
                return


@dataclass(frozen=True, eq=False)
class Cut:
    """Whole numbers of pieces.

    Parameters
    ----------
    model
        With the patterns.
    parts
        Into which every chunk is cut.
    many
        Pieces of each pattern, shape (patterns,).
    excess
        How often longer the busiest link is busy than with the shares that it was made of.
    """

    model: HeadsAndTails
    parts: int
    many: np.ndarray
    excess: float


@dataclass(frozen=True, eq=False)
class Near:
    """Shares, and the numbers of pieces that they may be rounded to."""

    model: HeadsAndTails
    shares: np.ndarray
    per_root: int
    parts: int
    most: int

    def options(self) -> list[Cut]:
        """Return the cuts, the nearest first."""
        few = self.parts * self.per_root < FEW
        last = self.parts if few else min(2 * self.parts, self.most)
        first = self.parts if few else self.parts // 2 + 1
        tried = sorted(range(first, last + 1), key=lambda each: abs(each - self.parts))
        return [self.cut(each) for each in tried]

    def cut(self, parts: int) -> Cut:
        """Return the cut of every chunk into so many parts."""
        excess, many = rounding(self.model, self.shares, parts * self.per_root)
        return Cut(self.model, parts, many, round(excess, 6))


class AllReduce:
    """All-reduce, in two halves whose pieces are matched, and along undirected trees.

    Parameters
    ----------
    limits
        When to stop.
    seed
        Of random trees.
    """

    def __init__(self, limits: Limits, *, seed: int) -> None:
        self.limits, self.seed = limits, seed
        # Memory would hold sums apart, so trees do not pass it.
        self.problem = adding(limits.run.problem)
        topology = self.problem.topology
        self.halves = [
            Directed(Problem(topology, half.collective), limits)
            for half in halves(self.problem.collective)
            if half is not None
        ]

    def offer(self, counts: Sequence[int]) -> None:
        """Offer plans of about so many pieces per root, both kinds by turns."""
        kinds = [self._matched, self._undirected]
        for count in self.halves[0].in_order(counts):
            for kind in reversed(kinds) if self._latent else kinds:
                kind(count)
                if self.limits.reached():
                    return

    @cached_property
    def _latent(self) -> bool:
        """Whether latency counts as much as bandwidth does."""
        longest = max(float(each.weighted(1).alone.min()) for each in self.halves)
        return longest > LATENT * sum(each.bound for each in self.halves)

    @cached_property
    def _patterns(self) -> list[Pattern]:
        """Undirected trees: those of both halves without their roots, and random ones."""
        topology = self.problem.topology
        trees = Undirected(topology)
        found: dict[tuple[Edge, ...], None] = {}
        for half in self.halves:
            for demand, column in zip(half.pool.demands, half.pool.columns, strict=True):
                edges = trees.edges_of(half.task, demand, column)
                if edges is not None:
                    found[edges] = None
        transfers = transfers_of(topology)
        many = min(RANDOM, RANDOM_WORK // len(transfers))
        size = self.problem.collective.chunk_size / RANDOM_PIECES
        for edges in trees.random(transfers, many=many, nbytes=size, seed=self.seed):
            found[edges] = None
        patterns = (trees.pattern(edges) for edges in found)
        return [each for each in patterns if self.halves[0].let_through(each)]

    def _undirected(self, count: int) -> None:
        patterns, task = self._patterns, self.halves[0].task
        base, order = len(self.problem.collective.chunks), task.symmetry.order
        crossings = 2 * (len(task.symmetry.ranks[0]) - 1) * base
        # A tree of a representative carries pieces of all ranks, so pieces are as many by rank.
        parts = max(1, count // self.halves[0].per_root)
        if not patterns or (parts > 1 and parts * crossings > self.halves[0].most):
            return
        total = np.array([self.problem.collective.size / order])
        pieces = parts * base // order
        model = modelled(task, patterns, nbytes=total, pieces=pieces, limits=self.limits)
        shares = model.best(self.limits.run.proof.makespan).shares
        most = max(parts, self.halves[0].most // crossings)
        cut = min(
            Near(model, shares, base // order, parts, most).options(), key=lambda each: each.excess
        )

        def numbers(_demand: int, pieces: np.ndarray) -> np.ndarray:
            return pieces[:, None] * order + np.arange(order)

        jobs = jobs_of(
            task, model, many=cut.many, nbytes=total / (cut.parts * base // order), numbers=numbers
        )
        goal = self.limits.run.proof.makespan
        plan = jobs.best(model.routes.transfers, goal=goal, over=self.limits.reached)
        self.limits.offer(jobs, cut, plan)

    def _matched(self, count: int) -> None:
        near = [each.near(count) for each in self.halves]
        sums, spread = near
        if sums is None or spread is None:
            return
        pairs = [(one, spread.cut(one.parts)) for one in sums.options()]
        pair = min(pairs, key=lambda each: each[0].excess + each[1].excess)
        routes, plans, jobs = Routes(self.problem.topology), [], []
        for half, cut in zip(self.halves, pair, strict=True):
            own = half.jobs(cut)
            best = own.best(cut.model.routes.transfers, goal=half.bound, over=self.limits.reached)
            plans.append(best)
            jobs.append(replace(own, route=routes.taken_from(cut.model.routes)[own.route]))
        pieces = pair[0].parts * self.halves[0].per_root
        both, first = joined(jobs[0], jobs[1], (plans[0], plans[1]), pieces=pieces)
        goal = self.limits.run.proof.makespan
        passes = both.passes(routes.transfers)
        plan = passes.improved(first, goal=goal, over=self.limits.reached)
        self.limits.offer(both, pair[0], plan, routes=routes)
