"""All-reduce along trees: in two halves whose pieces are matched, joint, and undirected.

* In two halves every rank has its share of the sums, as after a reduce-scatter.
* Joint are an in-tree and an out-tree that meet at a root; how much each root has is free, which
  counts where some GPUs are nearer to the network than others.
* Undirected trees have no root (`formulations.engines.tree_columns.patterns`).
* In stages sums are exchanged, added up at owners and spread: words over grids of ranks
  (`formulations.engines.closed_forms.words`), whose pieces take dimensions and owners by turns. All
  pieces take one word, of a few that are the quickest; or weights choose among words and trees,
  where links that wait for the second stage of some pieces have time for others in one. Orders
  seldom keep what weights promise of words, so pieces are changed one by one later.

A switch that adds and copies takes what every GPU but the root sends, and only the root receives;
then it takes what the root sends, and all others receive. So a root that sends one sum while it
receives the next fills all links, and roots that take turns do not: where one such switch joins all
GPUs joint trees are sought without regard to symmetry first, with weights by chance, which have few
roots. Sums and copies in a switch are two crossings, one after the other: where latency counts they
take longer than messages among all GPUs. So plans in which switches only forward take turns, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, pairwise, product
from math import inf

import numpy as np

from ccl.problem import Problem
from ccl.symmetry import Symmetry
from ccl.topology import Topology, binding_limits
from formulations.core.preparing import clock
from formulations.engines.closed_forms.words import Word, words_over
from formulations.engines.list_scheduling.timed import transfers_of
from formulations.engines.reverse_time import adding, forwarding, halves
from formulations.engines.tree_columns.cuts import (
    FAR,
    Kind,
    Limits,
    Plans,
    able_at_once,
    by_turns,
    modelled,
    most_crossings,
)
from formulations.engines.tree_columns.directed import (
    LATENT,
    POOL_SHARE,
    Directed,
    enriched,
    paired,
)
from formulations.engines.tree_columns.heads_tails import STYLES, Cut, HeadsAndTails, Near, Style
from formulations.engines.tree_columns.patterns import (
    Edge,
    Pattern,
    Staged,
    Undirected,
    directed,
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

WORDS, TRIED, WORDS_SHARE = 200, 12, 0.05
"""Patterns of words among which the best are sought, words that are put into order for it, and the
share of the time for either."""

HOPEFUL = 1.6
"""How often longer than a known plan the latency of a word and its bytes take together at most."""

FEW_PIECES = 4
"""Pieces of a rank by which words are compared."""

MOST_RANKS = 64
"""GPUs up to which there are words."""

PAIRS = 600
"""Pairs of an in-tree and an out-tree that are tried, chosen by chance where there are more."""

Attempt = Callable[[int], float]
"""Offers a plan of about so many pieces per rank; returns its µs."""


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
    def _found(self) -> tuple[Task, list[Pattern]]:
        return self._made()

    @property
    def task(self) -> Task:
        """What the trees are sought for."""
        return self._found[0]

    @cached_property
    def trees(self) -> list[Pattern]:
        """What pieces do along them."""
        return able_at_once(self.task.problem.topology, self._found[1])

    def attempt(self, count: int, *, style: Style) -> float:
        """Offer a plan of about so many pieces per rank; return its µs."""
        order, ranks = self.task.symmetry.ranks.shape
        crossings, most = 2 * (ranks - 1) * self._chunks, most_crossings(order)
        parts = self._parts(count)
        if not self.trees or (parts > 1 and parts * crossings > most):
            return inf
        least = self.limits.run.proof.makespan
        weighted = self._plans.weighted(parts, partial(self._model, self.trees), least=least)
        most = max(parts, most // crossings)
        near = Near(*weighted, style, self._chunks // order, parts, most)
        return self._plans.offered(near, self.task.symmetry, self._pieces)

    def _parts(self, count: int) -> int:
        """Return into how many parts to cut chunks for about so many pieces per rank.

        A tree of a representative carries pieces of all ranks, so pieces are as many by rank.
        """
        ranks = len(self.task.problem.topology.ranks)
        return max(1, count * ranks // self._chunks)

    @property
    def _chunks(self) -> int:
        return len(self.limits.run.problem.collective.chunks)

    @property
    def _nbytes(self) -> np.ndarray:
        """Bytes that trees of a representative carry, shape (1,)."""
        return np.array([self.limits.run.problem.collective.size / self.task.symmetry.order])

    def _model(self, patterns: Sequence[Pattern], parts: int) -> HeadsAndTails:
        pieces = parts * self._chunks // self.task.symmetry.order
        nbytes, limits = self._nbytes, self.limits
        return modelled(self.task, patterns, nbytes=nbytes, pieces=pieces, limits=limits)

    def _pieces(self, cut: Cut, group: Symmetry | None) -> Pieces:
        order = self.task.symmetry.order

        def numbers(_demand: int, pieces: np.ndarray) -> np.ndarray:
            return np.asarray(pieces[:, None] * order + np.arange(order))

        nbytes = self._nbytes / (cut.parts * self._chunks // order)
        return Pieces(self.task, cut.model, nbytes=nbytes, numbers=numbers, group=group)


class InStages(Whole):
    """Words and the trees of another family: all of them by weights, or one word by turns."""

    def __init__(self, others: Whole, limits: Limits) -> None:
        super().__init__(lambda: (others.task, [*chain(*self._able), *others.trees]), limits)
        self._others = others
        self._models: dict[int, HeadsAndTails] = {}

    def along(self, count: int) -> float:
        """Offer a plan of about so many pieces per rank along the quickest word; return its µs."""
        if not self.words:
            return inf
        parts, symmetry = self._parts(count), self._others.task.symmetry
        crossings = len(self.words[0][0].routes) * parts * self._chunks
        if parts > 1 and crossings > most_crossings(symmetry.order):
            return inf
        cut = self._cut(self._pooled(parts), range(len(self.words[0])), parts)
        least = self.limits.run.proof.makespan
        return self._plans.ordered(cut, symmetry, self._pieces, promised=least)

    def _pooled(self, parts: int) -> HeadsAndTails:
        """Return the quickest words and trees as one pool, for chunks in so many parts."""
        if parts not in self._models:
            pool = [*chain(*self.words), *self._others.trees]
            self._models[parts] = self._model(pool, parts)
        return self._models[parts]

    def _cut(self, model: HeadsAndTails, turns: range, parts: int) -> Cut:
        """Return pieces that take patterns by turns."""
        pieces = parts * self._chunks // self.task.symmetry.order
        many = np.zeros(len(model.patterns), dtype=np.int64)
        np.add.at(many, turns.start + np.arange(pieces) % len(turns), 1)
        return Cut(model, parts, many, 1.0)

    @cached_property
    def words(self) -> list[list[Pattern]]:
        """What pieces do by turns along each of a few words, the quickest first.

        None that is far behind another plan, but for the quickest.
        """
        every, limits, parts = self._able, self.limits, self._parts(FEW_PIECES)
        if not every:
            return []
        model = self._model([*chain(*every)], parts)
        spans = [range(*pair) for pair in pairwise(np.cumsum([0, *map(len, every)]).tolist())]
        load = model.load[model.late == model.late.min()]
        alone = np.array([model.alone[span].max() for span in spans])
        busy = np.array([load[:, span].mean(axis=1).max() for span in spans])
        order = np.argsort(alone + busy, kind="stable").tolist()
        able = [place for place in order if not limits.beaten((alone + busy)[place] / HOPEFUL)]
        found: list[tuple[float, int]] = []
        until = clock() + WORDS_SHARE * limits.left
        for place in able[:TRIED]:
            if found and (limits.reached() or clock() > until):
                break
            cut = self._cut(model, spans[place], parts)
            pieces = self._pieces(cut, images_apart(self.task.symmetry, cut.used))
            jobs = pieces.jobs(*cut.pieces)
            plan = jobs.best(model.routes.transfers, goal=0.0, over=limits.reached)
            found.append((float(plan[1].max()), place))
        order = enumerate(sorted(found))  # in more pieces the first may be quicker than it is here
        near = (place for rank, (time, place) in order if not (rank and limits.beaten(time / FAR)))
        return [every[place] for place in near]

    @cached_property
    def _able(self) -> list[list[Pattern]]:
        """What pieces do along words, the shortest first, while there is time."""
        topology, symmetry = self._others.task.problem.topology, self._others.task.symmetry
        size = self.limits.run.problem.collective.chunk_size / FEW_PIECES
        staged = Staged(topology, transfers_of(topology), nbytes=size)
        alike = len(np.unique(symmetry.ranks[:, 0])) == len(topology.ranks)
        found: list[list[Pattern]] = []
        many, until = 0, clock() + WORDS_SHARE * self.limits.left
        for word in sorted(_exchanging(topology), key=lambda each: each.messages):
            patterns = staged.patterns(word, 1 if alike else word.owners)
            if patterns:
                found.append(patterns)
                many += len(patterns)
            if many >= WORDS or clock() > until:
                break
        return found


def _exchanging(topology: Topology) -> Iterator[Word]:
    """Yield words of which a stage exchanges, and all have the sum at the end."""
    for word in words_over(topology):
        if "x" in word.letters and ("h" in word.letters) == word.letters.endswith("s"):
            yield word
            yield from word.others()


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
    forwards
        Whether switches only forward, though they could add or copy.
    """

    def __init__(self, limits: Limits, *, seed: int, forwards: bool = False) -> None:
        self.limits, self.seed = limits, seed
        self._known: dict[object, float] = {}
        # Memory would hold sums apart, so trees do not pass it.
        problem = adding(limits.run.problem)
        self.problem = forwarding(problem) if forwards else problem
        self.halves = self._halved(symmetric=True)

    def _halved(self, *, symmetric: bool) -> list[Directed]:
        topology, limits = self.problem.topology, self.limits
        sums, then = halves(self.problem.collective)
        assert sums is not None
        assert then is not None
        first = Directed(Problem(topology, sums.collective), limits, symmetric=symmetric)
        others = [each for each in topology.devices if each.name not in topology.rank]
        if not any(each.copies or each.reduces for each in others):  # partners are for both halves
            first = first.fixed()
        second = Problem(topology, then.collective)
        return [first, Directed(second, limits, symmetric=symmetric, pairs=first.pairs)]

    def offer(self, counts: Sequence[int]) -> None:
        """Offer plans of about so many pieces per root, of all kinds by turns."""
        half = self.halves[0]
        able, ways = half.able(counts), self._ways()
        kinds = [
            Kind(family, attempts[turn], [*able])
            for turn in range(len(STYLES))
            for family, attempts in enumerate(ways)
            if turn < len(attempts)
        ]
        by_turns(kinds, half.first(able), self.limits)

    def _ways(self) -> list[list[Attempt]]:
        """Return what offers plans, of each family in the order of its turns."""
        limits, seed, topology = self.limits, self.seed, self.problem.topology
        made: list[Callable[[], Sequence[Directed]]] = []
        # Of the two crossings of an edge one names some ranks and one the others.
        if len(topology.ranks) ** 2 * len(self.problem.collective.chunks) <= TERMS:
            made.append(lambda: self.halves)
        if 1 < self.halves[0].task.symmetry.order <= len(topology.ranks) <= ALONE:
            made.append(partial(self._halved, symmetric=False))
        undirected = [Whole(partial(rootless, each, limits, seed=seed), limits) for each in made]
        attempts: list[Callable[..., float]] = [each.attempt for each in undirected]
        attempts.insert(1 if self._latent else 0, self._matched)
        pairs = partial(joint, self.problem, limits, seed=seed, between=self.halves[0].pairs)
        attempts.append(Whole(pairs, limits).attempt)
        ways: list[list[Attempt]] = [
            [partial(each, style=style) for style in STYLES] for each in attempts
        ]
        if undirected and self._latent and self._staged:
            staged = InStages(undirected[0], limits)
            ways.append([staged.along])
            ways.append([partial(staged.attempt, style=style) for style in STYLES])
        if _one_switch(topology):
            few = Whole(partial(pairs, symmetric=False), limits).attempt
            ways.insert(0, [partial(few, style=each) for each in (*STYLES[1:], STYLES[0])])
        if forwarding(self.problem) != self.problem:
            ways += AllReduce(limits, seed=seed, forwards=True)._ways()
        return ways

    @property
    def _staged(self) -> bool:
        """Whether there are words: of few GPUs, where neither switches nor limits do more."""
        topology = self.problem.topology
        able = (each.stores or not (each.copies or each.reduces) for each in topology.devices)
        return len(topology.ranks) <= MOST_RANKS and all(able) and not binding_limits(topology)

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
