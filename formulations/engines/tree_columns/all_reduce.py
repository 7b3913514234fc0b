"""All-reduce along trees: in two halves whose pieces are matched, joint, and undirected.

* In two halves every rank has its share of the sums, as after a reduce-scatter.
* Joint are an in-tree and an out-tree that meet at a root; how much each root has is free, which
  counts where some GPUs are nearer to the network than others.
* Undirected trees have no root (`formulations.engines.tree_columns.patterns`).

A switch that adds and copies takes what every GPU but the root sends, and only the root receives;
then it takes what the root sends, and all others receive. So a root that sends one sum while it
receives the next fills all links, and roots that take turns do not: where one such switch joins all
GPUs joint trees are sought without regard to symmetry first, with weights by chance, which have few
roots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import product
from math import inf

import numpy as np

from ccl.problem import Problem
from ccl.symmetry import Symmetry
from ccl.topology import Topology
from formulations.core.preparing import clock
from formulations.engines.list_scheduling.timed import transfers_of
from formulations.engines.reverse_time import adding, halves
from formulations.engines.tree_columns.cuts import (
    Kind,
    Limits,
    Plans,
    able_at_once,
    by_turns,
    modelled,
    most_crossings,
)
from formulations.engines.tree_columns.directed import LATENT, POOL_SHARE, Directed, paired
from formulations.engines.tree_columns.heads_tails import STYLES, Cut, HeadsAndTails, Near, Style
from formulations.engines.tree_columns.patterns import (
    Edge,
    Pattern,
    Undirected,
    directed,
    enriched,
    met,
)
from formulations.engines.tree_columns.pieces import Pieces, images_apart, joined
from formulations.engines.tree_columns.routes import Routes
from formulations.engines.tree_columns.search import Search
from formulations.engines.tree_columns.task import Task, task_of

ALONE = 12
"""GPUs up to which trees are also sought without regard to symmetry."""

RANDOM = 600
"""Random trees that are tried, fewer where many paths join GPUs."""

RANDOM_PIECES = 4
"""Pieces of a shard by which random trees measure paths."""

RANDOM_WORK = 300_000
"""Paths that growing random trees looks at."""

TERMS = 20_000_000
"""Ranks named by all crossings together above which undirected trees are left to others."""

PAIRS = 600
"""Pairs of an in-tree and an out-tree that are tried, chosen by chance where there are more."""

Attempt = Callable[..., float]
"""Offers a plan of about so many pieces per rank, in a style; returns its µs."""


class Whole:
    """Trees of which each may carry any part of the vector, with their images under a group.

    Parameters
    ----------
    made
        Returns what the trees are sought for, with the group, and what pieces do along them.
    limits
        When to stop.
    """

    def __init__(self, made: Callable[[], tuple[Task, list[Pattern]]], limits: Limits) -> None:
        self._made, self.limits, self._plans = made, limits, Plans(limits)

    @cached_property
    def trees(self) -> tuple[Task, list[Pattern]]:
        """What they are sought for, and the trees."""
        task, patterns = self._made()
        return task, able_at_once(task.problem.topology, patterns)

    def attempt(self, count: int, *, style: Style) -> float:
        """Offer a plan of about so many pieces per rank; return its µs."""
        task, patterns = self.trees
        base, (order, ranks) = self._chunks, task.symmetry.ranks.shape
        crossings = 2 * (ranks - 1) * base
        # A tree of a representative carries pieces of all ranks, so pieces are as many by rank.
        parts = max(1, count * ranks // base)
        most = most_crossings(order)
        if not patterns or (parts > 1 and parts * crossings > most):
            return inf
        least = self.limits.run.proof.makespan
        weighted = self._plans.weighted(parts, self._weighted, least=least)
        most = max(parts, most // crossings)
        near = Near(*weighted, style, base // order, parts, most)
        return self._plans.offered(near, task.symmetry, self._pieces)

    @property
    def _chunks(self) -> int:
        return len(self.limits.run.problem.collective.chunks)

    @property
    def _nbytes(self) -> np.ndarray:
        """Bytes that trees of a representative carry, shape (1,)."""
        order = self.trees[0].symmetry.order
        return np.array([self.limits.run.problem.collective.size / order])

    def _weighted(self, parts: int) -> HeadsAndTails:
        task, patterns = self.trees
        pieces = parts * self._chunks // task.symmetry.order
        return modelled(task, patterns, nbytes=self._nbytes, pieces=pieces, limits=self.limits)

    def _pieces(self, cut: Cut, group: Symmetry | None) -> Pieces:
        task = self.trees[0]
        order = task.symmetry.order

        def numbers(_demand: int, pieces: np.ndarray) -> np.ndarray:
            return np.asarray(pieces[:, None] * order + np.arange(order))

        nbytes = self._nbytes / (cut.parts * self._chunks // order)
        return Pieces(task, cut.model, nbytes=nbytes, numbers=numbers, group=group)


def rootless(
    halves: Callable[[], Sequence[Directed]], limits: Limits, *, seed: int
) -> tuple[Task, list[Pattern]]:
    """Return undirected trees: those of both halves without their roots, and random ones."""
    both = halves()
    topology = both[0].problem.topology
    trees = Undirected(topology)
    found: dict[tuple[Edge, ...], None] = {}
    for half in both:
        for demand, column in zip(half.pool.demands, half.pool.columns, strict=True):
            edges = trees.edges_of(half.task, demand, column)
            if edges is not None:
                found[edges] = None
    transfers = paired(transfers_of(topology), both[0].pairs)
    many = min(RANDOM, RANDOM_WORK // len(transfers))
    size = limits.run.problem.collective.chunk_size / RANDOM_PIECES
    for edges in trees.random(transfers, many=many, nbytes=size, seed=seed):
        found[edges] = None
    return both[0].task, [trees.pattern(edges) for edges in found]


def joint(
    problem: Problem,
    limits: Limits,
    *,
    seed: int,
    symmetric: bool = True,
    between: np.ndarray | None = None,
) -> tuple[Task, list[Pattern]]:
    """Return pairs of an in-tree and an out-tree of the same root, of the best rate and near it."""
    task = task_of(problem, symmetric=symmetric, pairs=between)
    deadline = clock() + POOL_SHARE * limits.left
    search = Search(task, limits.run.backend, deadline=deadline)
    enriched(search.run(), search)
    of_demand: list[list[Pattern]] = [[] for _ in task.demands]
    for demand, column in zip(search.pool.demands, search.pool.columns, strict=True):
        of_demand[demand].append(directed(task, demand, column))
    pairs = [
        pair
        for number, each in enumerate(task.demands)
        if each.partner is not None and task.sides[each.side].reduces
        for pair in product(of_demand[number], of_demand[each.partner])
    ]
    if len(pairs) > PAIRS:
        chosen = np.random.default_rng(seed).choice(len(pairs), PAIRS, replace=False)
        pairs = [pairs[place] for place in sorted(chosen.tolist())]
    return task, [met(*pair) for pair in pairs]


def _one_switch(topology: Topology) -> bool:
    """Return whether one switch that adds and copies is linked with every GPU, both ways."""
    known = topology.link_index.keys()
    return any(
        all({(each.name, gpu), (gpu, each.name)} <= known for gpu in topology.ranks)
        for each in topology.devices
        if each.reduces and each.copies and not each.stores
    )


class AllReduce:
    """All-reduce in all of these manners.

    Parameters
    ----------
    limits
        When to stop.
    seed
        Of random trees.
    """

    def __init__(self, limits: Limits, *, seed: int) -> None:
        self.limits, self.seed = limits, seed
        self._known: dict[object, float] = {}
        # Memory would hold sums apart, so trees do not pass it.
        self.problem = adding(limits.run.problem)
        self.halves = self._halved(symmetric=True)

    def _halved(self, *, symmetric: bool) -> list[Directed]:
        topology, limits = self.problem.topology, self.limits
        sums, then = halves(self.problem.collective)
        assert sums is not None
        assert then is not None
        first = Directed(Problem(topology, sums.collective), limits, symmetric=symmetric).fixed()
        second = Problem(topology, then.collective)
        return [first, Directed(second, limits, symmetric=symmetric, pairs=first.pairs)]

    def offer(self, counts: Sequence[int]) -> None:
        """Offer plans of about so many pieces per root, of all kinds by turns."""
        half = self.halves[0]
        able, ways = half.able(counts), self._ways()
        kinds = [
            Kind(family, partial(attempt, style=styles[turn]), [*able])
            for turn in range(len(STYLES))
            for family, (attempt, styles) in enumerate(ways)
        ]
        by_turns(kinds, half.first(able), self.limits)

    def _ways(self) -> list[tuple[Attempt, Sequence[Style]]]:
        """Return what offers plans, each with styles in the order in which it takes them."""
        limits, seed, topology = self.limits, self.seed, self.problem.topology
        made: list[Callable[[], Sequence[Directed]]] = []
        # Of the two crossings of an edge one names some ranks and one the others.
        if len(topology.ranks) ** 2 * len(self.problem.collective.chunks) <= TERMS:
            made.append(lambda: self.halves)
        if 1 < self.halves[0].task.symmetry.order <= len(topology.ranks) <= ALONE:
            made.append(partial(self._halved, symmetric=False))
        attempts: list[Attempt] = [
            Whole(partial(rootless, each, limits, seed=seed), limits).attempt for each in made
        ]
        attempts.insert(1 if self._latent else 0, self._matched)
        pairs = partial(joint, self.problem, limits, seed=seed, between=self.halves[0].pairs)
        attempts.append(Whole(pairs, limits).attempt)
        ways: list[tuple[Attempt, Sequence[Style]]] = [(each, STYLES) for each in attempts]
        if _one_switch(topology):
            few = Whole(partial(pairs, symmetric=False), limits).attempt
            ways.insert(0, (few, (*STYLES[1:], STYLES[0])))
        return ways

    @cached_property
    def _latent(self) -> bool:
        """Whether latency counts as much as bandwidth does."""
        longest = max(float(each.weighted(1).alone.min()) for each in self.halves)
        return longest > LATENT * sum(each.bound for each in self.halves)

    def _matched(self, count: int, *, style: Style) -> float:
        near = [each.near(count, style=style) for each in self.halves]
        sums, then = near
        if sums is None or then is None:
            return inf
        pairs = [(one, then.cut(one.parts)) for one in sums.options()]
        pair = min(pairs, key=lambda each: each[0].excess + each[1].excess)
        key = pair[0].key, pair[1].key
        if key in self._known:
            return self._known[key]
        routes, plans, jobs = Routes(self.problem.topology), [], []
        group = self._moving(pair)
        for half, cut in zip(self.halves, pair, strict=True):
            own = half.pieces(cut, group).jobs(*cut.pieces)
            if self.limits.too_many(own):
                return inf
            best = own.best(cut.model.routes.transfers, goal=half.bound, over=self.limits.reached)
            plans.append(best)
            jobs.append(replace(own, route=routes.taken_from(cut.model.routes)[own.route]))
        pieces = pair[0].parts * self.halves[0].per_root
        both, first = joined(jobs[0], jobs[1], (plans[0], plans[1]), pieces=pieces)
        if self.limits.too_many(both):
            self._known[key] = inf
            return inf
        goal = self.limits.run.proof.makespan
        passes = both.passes(routes.transfers)
        plan = passes.improved(first, goal=goal, over=self.limits.reached)
        relayed = not all(each.stores for each in self.problem.topology.devices)
        self._known[key] = self.limits.offer(both, pair[0], plan, routes=routes, overtaking=relayed)
        return self._known[key]

    def _moving(self, pair: Sequence[Cut]) -> Symmetry | None:
        """Return the group whose images meet in neither half, where both have the same."""
        one, two = (half.task.symmetry for half in self.halves)
        if not np.array_equal(one.devices, two.devices):
            return None
        return images_apart(one, [each for cut in pair for each in cut.used])
