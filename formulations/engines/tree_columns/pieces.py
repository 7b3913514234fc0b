"""Jobs: the pieces of all ranks as crossings, in the best order on the links.

Pieces of representatives are copied to the images of their roots. What comes first hardly matters,
since passes forwards and backwards (`formulations.engines.list_scheduling.reordering`) put it into
a better order; four rules begin, and the best of them go on.

All-reduce by two halves takes the order in which the sums of a root are done as the order in which
it spreads them: the piece that is done first is the one that is needed first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.symmetry import Symmetry
from formulations.engines.list_scheduling.reordering import Pass, Passes
from formulations.engines.list_scheduling.timed import Transfers, in_epochs
from formulations.engines.tree_columns.heads_tails import HeadsAndTails
from formulations.engines.tree_columns.patterns import Pattern
from formulations.engines.tree_columns.routes import Links, Routes
from formulations.engines.tree_columns.task import Task

GOING_ON = 2
"""How many of the first orders are improved."""

PAIR = 0.04
"""Share of what verifying a send takes that a pair takes, of which one waits for the other."""


@dataclass(frozen=True, eq=False)
class Jobs:
    """Crossings of pieces; n of them, each with its images under a group, m in all.

    The group leaves no link in its place, so that images never meet: they cross at the same time.

    Parameters
    ----------
    route
        Number of the path of each, shape (n,).
    chunk
        Number of the piece of each image, shape (n, m).
    nbytes
        Of each, shape (n,).
    before, after
        Pairs of which the second waits for the first, each shape (pairs,).
    tail
        µs that each and what has to follow it take at least, shape (n,).
    turn
        Place of its piece among those of its tree, from 0 to 1, shape (n,).
    terms
        Ranks whose contributions each carries, or None where none is named.
    group
        The images, or None where each is only itself.
    """

    route: np.ndarray
    chunk: np.ndarray
    nbytes: np.ndarray
    before: np.ndarray
    after: np.ndarray
    tail: np.ndarray
    turn: np.ndarray
    terms: tuple[frozenset[int], ...] | None = None
    group: Symmetry | None = None

    def __len__(self) -> int:
        return len(self.route)

    @property
    def first(self) -> np.ndarray:
        """Whether each waits for none, shape (n,)."""
        return np.asarray(np.bincount(self.after, minlength=len(self)) == 0)

    @property
    def last(self) -> np.ndarray:
        """Whether none waits for each, shape (n,)."""
        return np.asarray(np.bincount(self.before, minlength=len(self)) == 0)

    @property
    def images(self) -> int:
        """How many each stands for, itself included."""
        return 1 if self.group is None else self.group.order

    @property
    def work(self) -> int:
        """Sends, and pairs of which one waits for the other."""
        return (len(self) + len(self.before)) * self.images

    @property
    def effort(self) -> float:
        """Sends, and pairs as the share of one that they are when verifying takes long."""
        return (len(self) + PAIR * len(self.before)) * self.images

    def passes(self, transfers: Transfers) -> Passes:
        """Return passes over them, on one link of each orbit."""
        if self.group is not None:
            transfers = replace(transfers, link=self.group.links.min(axis=0)[transfers.link])
        return Passes(transfers, self.route, self.nbytes, self.before, self.after)

    def best(self, transfers: Transfers, *, goal: float, over: Callable[[], bool]) -> Pass:
        """Return starts and arrivals in the best order that is found."""
        passes, tie = self.passes(transfers), np.arange(len(self)) * 1e-9
        scale = float(self.tail.max(initial=0.0))
        rules = (
            -self.tail + tie,
            self.turn * scale + tie,
            self.turn * scale - self.tail + tie,
            4 * self.turn * scale - self.tail + tie,
        )
        begun: list[Pass] = []
        for rule in rules:
            begun.append(passes.forward(rule))
            if over():
                break
        begun.sort(key=_last)
        found = [passes.improved(each, goal=goal, over=over) for each in begun[:GOING_ON]]
        return min(found, key=_last)

    def every(self, routes: Routes) -> Jobs:
        """Return all images as crossings of their own, those of an image one after the other."""
        if self.group is None:
            return self
        images, many = routes.images(self.group.links), self.images
        ahead = len(self) * np.arange(many)[:, None]
        return Jobs(
            route=images[:, self.route].ravel(),
            chunk=self.chunk.T.reshape(-1, 1),
            nbytes=np.tile(self.nbytes, many),
            before=(self.before + ahead).ravel(),
            after=(self.after + ahead).ravel(),
            tail=np.tile(self.tail, many),
            turn=np.tile(self.turn, many),
            terms=_moved(self.terms, self.group.ranks) or None,
        )

    def schedule(
        self, problem: Problem, routes: Routes, start: np.ndarray, *, cut: bool
    ) -> Schedule:
        """Return the schedule in this order, of a problem whose chunks are these pieces.

        Unless they are those of the question it says into how many it cuts.
        """
        every, begin = self.every(routes), np.tile(start, self.images)
        paths = routes.paths
        timed, of = paths.sent(every.route, every.chunk[:, 0], begin, every.nbytes)
        waits = paths.waits(every.route, every.before, every.after)
        terms = None if every.terms is None else [every.terms[place] for place in of.tolist()]
        plan = in_epochs(problem, paths.alone, timed, waits=waits, terms=terms)
        return replace(plan, chunks=len(problem.collective.chunks)) if cut else plan


def _last(each: Pass) -> float:
    return float(each[1].max(initial=0.0))


def images_apart(symmetry: Symmetry, patterns: Iterable[Pattern]) -> Symmetry | None:
    """Return the part of a group under which images of patterns meet on no link, or None."""
    if symmetry.order == 1:
        return None
    routes = {links for each in patterns for links in each.routes}
    group = symmetry.moving(np.array(sorted({link for links in routes for link in links})))
    apart = group.order > 1 and len(routes_apart(symmetry, group, routes)) == len(routes)
    return group if apart else None


def routes_apart(symmetry: Symmetry, group: Symmetry, routes: Iterable[Links]) -> set[Links]:
    """Return those whose images under a part of a group meet on no link, nor images of these."""
    orbit, first = group.links.min(axis=0), symmetry.cosets(group)[:, 0]
    stays = (group.links[1:] == group.links[0]).any(axis=0)
    found = set[Links]()
    for many, those in groupby(sorted(routes, key=len), key=len):
        alike = list(those)
        images = symmetry.links[first][:, np.array(alike)]
        bad = stays[images].any(axis=(0, 2))
        if many > 1:
            # A route that crosses a link and an image of it would meet its own image there.
            bad |= (np.diff(np.sort(orbit[images], axis=-1), axis=-1) == 0).any(axis=(0, 2))
        found.update(alike[place] for place in np.flatnonzero(~bad).tolist())
    return found


class Part(NamedTuple):
    """What one piece and its images do along a pattern; c crossings of each, m images in all.

    Parameters
    ----------
    route
        Number of the path of each crossing, shape (m * c,), one image after the other.
    before, after
        Pairs of which the second waits for the first, each shape (pairs,).
    head, tail
        µs before each can begin, and that it and what has to follow it take, each shape (m * c,).
    """

    route: np.ndarray
    before: np.ndarray
    after: np.ndarray
    head: np.ndarray
    tail: np.ndarray


class Pieces:
    """Pieces of all roots, those of which others are images under the group, along any patterns.

    Parameters
    ----------
    task
        With the group of which representatives have images.
    model
        With the pool, and where its paths have numbers.
    nbytes
        Of a piece of each demand, shape (demands,).
    numbers
        Says, of a demand, the pieces of a representative: the chunk of each image, which is shape
        (pieces, images).
    group
        What `images_apart` has found for the patterns.
    """

    def __init__(
        self,
        task: Task,
        model: HeadsAndTails,
        *,
        nbytes: np.ndarray,
        numbers: Callable[[int, np.ndarray], np.ndarray],
        group: Symmetry | None,
    ) -> None:
        self.model, self.group, self.whole = model, group, task.symmetry
        self._nbytes, self._numbers = nbytes, numbers
        order = self.whole.order
        self._cosets = np.arange(order)[:, None] if group is None else self.whole.cosets(group)
        self._first = self._cosets[:, 0]
        moved = self.whole.links[self._first] if len(self._first) > 1 else None
        self._images = model.routes.images(moved)
        self._parts = WeakKeyDictionary[Pattern, Part]()
        self._terms = WeakKeyDictionary[Pattern, tuple[frozenset[int], ...]]()

    def part(self, pattern: Pattern) -> Part:
        """Return what a piece along a pattern does, whose paths have numbers."""
        if pattern not in self._parts:
            self._parts[pattern] = self._made(pattern)
        return self._parts[pattern]

    def _made(self, pattern: Pattern) -> Part:
        routes, images = self.model.routes, self._images
        own, order = np.array([routes.number(each) for each in pattern.routes]), len(images)
        delays = routes.transfers.delay(self._nbytes[pattern.demand])[own]
        head, tail = pattern.heads(delays.tolist())
        offset = len(own) * np.arange(order)[:, None]
        return Part(
            images[:, own].ravel(),
            (pattern.before + offset).ravel(),
            (pattern.after + offset).ravel(),
            np.tile(head, order),
            np.tile(delays + tail, order),
        )

    def terms(self, patterns: Sequence[Pattern]) -> tuple[frozenset[int], ...] | None:
        """Return the ranks whose contributions each crossing of pieces carries, if any is named."""
        ranks = self.whole.ranks[self._first]
        for each in patterns:
            if each not in self._terms:
                self._terms[each] = _moved(each.terms, ranks)
        return tuple(chain.from_iterable(self._terms[each] for each in patterns)) or None

    def named(self, patterns: Sequence[Pattern], turns: np.ndarray) -> Jobs:
        """Return the same as `jobs`, with names of ranks where patterns have some."""
        return replace(self.jobs(patterns, turns), terms=self.terms(patterns))

    def begins(self, patterns: Sequence[Pattern]) -> np.ndarray:
        """Return where the crossings of each piece begin, and how many all are."""
        return np.cumsum([0, *(len(self.part(each).route) for each in patterns)])

    def jobs(self, patterns: Sequence[Pattern], turns: np.ndarray) -> Jobs:
        """Return the crossings of pieces, given those of a demand one after the other.

        They name no ranks (`terms`), of which there may be millions.

        Parameters
        ----------
        patterns
            Of each piece.
        turns
            Of each, `Jobs.turn`, shape (pieces,).
        """
        parts, sizes = [self.part(each) for each in patterns], np.diff(self.begins(patterns))
        demand = np.array([each.demand for each in patterns])
        many = np.bincount(demand, minlength=len(self._nbytes))
        rows = [self._numbers(place, np.arange(each)) for place, each in enumerate(many.tolist())]
        chunks = np.concatenate(rows)[:, self._cosets]
        # One row of each image of a piece, then one of each of its crossings.
        lengths = np.repeat(sizes // chunks.shape[1], chunks.shape[1])
        offset = np.cumsum(sizes) - sizes
        waits = np.repeat(offset, [len(each.before) for each in parts])
        return Jobs(
            route=np.concatenate([each.route for each in parts]),
            chunk=np.repeat(chunks.reshape(-1, chunks.shape[2]), lengths, axis=0),
            nbytes=np.repeat(self._nbytes[demand], sizes),
            before=np.concatenate([each.before for each in parts]) + waits,
            after=np.concatenate([each.after for each in parts]) + waits,
            tail=np.concatenate([each.tail for each in parts]),
            turn=np.repeat(turns, sizes),
            group=self.group,
        )


def _moved(
    terms: Sequence[frozenset[int]] | None, images: np.ndarray
) -> tuple[frozenset[int], ...]:
    """Return the images of terms, where there are any; those of ranks are shape (images, ranks)."""
    if terms is None:
        return ()
    return tuple(frozenset(image[list(each)].tolist()) for image in images for each in terms)


def joined(one: Jobs, two: Jobs, plans: tuple[Pass, Pass], *, pieces: int) -> tuple[Jobs, Pass]:
    """Return sums and what spreads them as one, and a first order of it: one after the other.

    Parameters
    ----------
    one, two
        Reduce-scatter and all-gather, cut alike.
    plans
        The best order of each.
    pieces
        Of a shard; they have numbers side by side.
    """
    many = int(max(one.chunk.max(), two.chunk.max())) + 1
    done, begun = np.zeros(many), np.full(many, np.inf)
    np.maximum.at(done, one.chunk, plans[0][1][:, None])
    np.minimum.at(begun, two.chunk, plans[1][0][:, None])
    shard, sums = np.arange(many) // pieces, np.empty(many, dtype=np.int64)
    sums[np.lexsort((begun, shard))] = np.lexsort((done, shard))
    two = replace(two, chunk=sums[two.chunk])
    last, first = np.flatnonzero(one.last), np.flatnonzero(two.first)
    # Every last crossing of a sum is before every first one of what spreads it.
    own, then = one.chunk[last, 0], two.chunk[first, 0]
    order = np.argsort(own, kind="stable")
    begin, end = (np.searchsorted(own[order], then, side=side) for side in ("left", "right"))
    after = np.repeat(first, end - begin) + len(one)
    offset = np.arange(len(after)) - np.repeat(np.cumsum(end - begin) - (end - begin), end - begin)
    before = last[order[np.repeat(begin, end - begin) + offset]]
    pairs = zip(_columns(one), _columns(two), strict=True)
    route, chunk, nbytes, tail, turn = map(np.concatenate, pairs)
    both = Jobs(
        *(route, chunk, nbytes),
        np.concatenate([one.before, two.before + len(one), before]),
        np.concatenate([one.after, two.after + len(one), after]),
        *(tail, turn),
        group=one.group,
    )
    stop = _last(plans[0])
    starts, ends = (np.concatenate([plans[0][k], plans[1][k] + stop]) for k in range(2))
    return both, (starts, ends)


def _columns(jobs: Jobs) -> tuple[np.ndarray, ...]:
    return jobs.route, jobs.chunk, jobs.nbytes, jobs.tail, jobs.turn
