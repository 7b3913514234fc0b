"""Chains of stages: exchange within groups, then between them; or add up, exchange and spread.

Words say which stages (`formulations.engines.closed_forms.words`). Vectors are cut into pieces,
which follow one another.

Decisions: all words over all grids of up to four dimensions are tried, the best of them with their
dimensions in all orders. Switches only forward, even if they could add or copy. A sum takes any
path: all members of a group have it, and the next stage takes it from the nearest
(`formulations.engines.list_scheduling.chains`). Paths are found for few pieces, which are then cut
further, so that words are compared as they are when their pieces follow one another. Words that
take least by their formulas, with the longest path of each stage and the widest links into a GPU
that join its groups, come by turns with those of the fewest messages; the best are tried with more
pieces of either kind. Of hundreds of ranks few words can be tried, host by host, in the order of
their formulas.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from math import inf, prod
from typing import TYPE_CHECKING

import numpy as np

from ccl import text
from ccl.problem import Problem
from ccl.result import Result, Stop
from formulations.core.preparing import clock
from formulations.core.refusals import no_limits
from formulations.core.registry import Formulation, NoOptions
from formulations.core.run import Run
from formulations.engines.closed_forms.steps import refuses as refuses_any
from formulations.engines.closed_forms.words import MOST_STAGES, Word, products, words_over
from formulations.engines.reverse_time import adding, forwarding

if TYPE_CHECKING:
    from formulations.engines.list_scheduling.chains import Chain, Ordered

FEW, MOST, LARGE = 1_500, 12_000, 160_000
"""Sends of plans that are compared, above which there are too many to cut further, and of any."""

RANKS = 1_700
"""Of more the paths between them are too many to be listed."""

MESSAGE = 2.2e-4
"""Seconds that a message takes where there are many, verification and replay included."""

SLOW = 0.5
"""Seconds of a word from which on those of more messages are foreseen by it."""

PASSES = 1
"""Of list scheduling for each stage."""

SECONDS = 10.0
"""For everything where no limit was set."""

COMPARING = 0.5
"""Share of the time left that comparing words takes at most."""

BEST = 3
"""So many words are tried in other orders, and in more pieces."""

GAIN = 0.003
"""Share of the makespan that more pieces must gain."""


def refuses(problem: Problem) -> str | None:
    """Refuse shared limits, and too many messages."""
    reason = refuses_any(problem) or no_limits(problem)
    if reason is not None:
        return reason
    ranks = len(problem.topology.ranks)
    if ranks > RANKS:
        return f"{ranks:,} GPUs have too many paths among them, and {RANKS:,} are the most"
    messages = _least_messages(ranks) * (_fixed(problem) or 1)
    if messages > LARGE:
        return f"{ranks} GPUs would send {messages:,} messages, and {LARGE:,} are the most"
    return None


def _least_messages(ranks: int) -> int:
    """Return the fewest messages of exchanges, of thousands of ranks as if all sides were equal."""
    alike = ranks * MOST_STAGES * (ranks ** (1 / MOST_STAGES) - 1)
    if alike > LARGE:
        return int(alike)
    every = (sides for many in range(1, MOST_STAGES + 1) for sides in products(ranks, many))
    return ranks * min((sum(sides) - len(sides) for sides in every), default=0)


def _fixed(problem: Problem) -> int | None:
    """Return into how many pieces vectors have to be cut, or None."""
    collective = problem.collective
    return len(collective.chunks) if collective.whole or not collective.alike else None


class Distances:
    """How far ranks are apart, and how fast they can be reached.

    Parameters
    ----------
    problem
        Where they are.
    """

    def __init__(self, problem: Problem) -> None:
        from scipy.sparse import csr_array  # noqa: PLC0415  menus need no graphs
        from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

        from formulations.bounds.cuts import Network  # noqa: PLC0415  menus need no bounds
        from formulations.bounds.paths import QuickestPaths  # noqa: PLC0415

        network = Network(problem)
        ends, bandwidth, places = network.ends.T, network.bandwidth, network.gpus
        shape = (len(problem.topology.devices),) * 2
        self.far = QuickestPaths(network, 0.0).arrivals[:, places]
        among = csr_array((1e3 * bandwidth, tuple(ends)), shape=shape)
        self._direct = among[places][:, places].toarray()
        self._joined: list[tuple[np.ndarray, float]] = []
        faster = inf
        for pace in np.unique(bandwidth)[::-1].tolist():
            wide, own = bandwidth >= pace, (bandwidth >= pace) & (bandwidth < faster)
            some = csr_array((bandwidth[wide], tuple(ends[:, wide])), shape=shape)
            _, parts = connected_components(some, connection="strong")
            rate = np.bincount(ends[1][own], bandwidth[own], minlength=shape[0])[places].max()
            if rate:
                self._joined.append((parts[places], 1e3 * float(rate)))
                faster = pace

    def stage(self, rows: Sequence[np.ndarray], nbytes: float) -> float:
        """Return the µs of the longest path within rows, and of so many bytes into every rank.

        Parameters
        ----------
        rows
            Ranks, for pieces that share the bytes evenly.
        nbytes
            They count on the links between the ranks of a row, different ones for each piece, or
            else on the widest links into a rank that join the row.
        """
        hops, own, shared = 0.0, 0.0, 0.0
        for each in rows:
            hops = max(hops, float(self.far[each[:, :, None], each[:, None, :]].max()))
            direct = float(self._direct[each[:, :, None], each[:, None, :]].sum(axis=1).min())
            if direct:
                own = max(own, nbytes / len(rows) / direct)
                continue
            able = (
                rate for parts, rate in self._joined if (parts[each] == parts[each[:, :1]]).all()
            )
            shared += nbytes / len(rows) / next(able, self._joined[-1][1])
        return hops + max(own, shared)


def estimate(word: Word, size: float, distances: Distances) -> float:
    """Return the µs that the formulas of its stages come to for a vector of so many bytes."""
    found, share, again = 0.0, size, 2 if word.letters.endswith("s") else 1
    last = len(word.letters) - 1
    for stage, letter in enumerate(word.letters[: len(word.axes[0])]):
        side = word.grid.shape[word.axes[0][stage]]
        rows = [word.rows(axes[stage]) for axes in word.axes]
        if letter == "h":
            share /= side
            found += again * distances.stage(rows, (side - 1) * share)
        elif stage == last and share < size:
            # Owners send to everyone.
            found += distances.stage([word.grid.reshape(1, -1)], side * size - share)
        else:
            found += distances.stage(rows, (side - 1) * share)
    return found


def chains_of(word: Word) -> tuple[Chain, ...]:
    """Return what pieces go through by turns."""
    from formulations.engines.list_scheduling.chains import Chain  # noqa: PLC0415  it loads numba

    found = []
    for axes in word.axes:
        levels = []
        for stages in range(1, len(axes) + 1):
            members = prod(word.grid.shape[axis] for axis in axes[:stages])
            rows = word.grid.transpose(*axes[stages:], *axes[:stages]).reshape(-1, members)
            levels.append(tuple(map(frozenset, rows.tolist())))
        found.append(Chain(word.letters, tuple(levels), tuple(map(word.rows, axes))))
    return tuple(found)


def run(run: Run, options: NoOptions) -> Result:
    """Try all words, the best in other orders, and then in more pieces."""
    search = Search(run)
    search.all()
    if not search.leading:  # the time is too short for so many messages
        return run.finish(Stop.TIME_LIMIT)
    run.note(str(search.leading[0][-1]))
    if run.enough:
        return run.finish(run.reached)
    return run.finish(Stop.TIME_LIMIT if search.over else Stop.PASSES)


class Search:
    """Words that were tried, and the best of them."""

    def __init__(self, run: Run) -> None:
        from formulations.engines.list_scheduling.chains import Network  # noqa: PLC0415  it loads numba

        self._run = run
        self._end = clock() + (SECONDS if run.left is None else run.left)
        self._until = self._end
        self._last = 0.0, 1
        self._fixed = _fixed(run.problem)
        topology = forwarding(adding(run.problem)).topology
        self._large = len(topology.ranks) * (len(topology.ranks) - 1) > MOST
        self._network = Network(topology, most=PASSES, over=lambda: self.over)
        self._tried: dict[Word, tuple[float, int]] = {}
        self._best: tuple[Ordered, int] | None = None
        self._offered: Ordered | None = None
        self._refined = set[Word]()

    @property
    def over(self) -> bool:
        """Whether to stop."""
        return self._run.enough or self._run.expired or clock() > self._until

    def all(self) -> None:
        """Try all words, then what the best lead to."""
        self._compare(words_over(self._run.problem.topology, arrange=not self._large))
        if self._large:
            return
        words = [each for *_, each in self.leading]
        self._refine_all()
        self._compare(other for each in words for other in each.others())
        self._refine_all()

    @cached_property
    def _distances(self) -> Distances:
        return Distances(self._run.problem)

    def _promising(self, every: Iterable[Word]) -> list[Word]:
        """Return what is not too large: by turns the shortest and the best by its formulas."""
        pieces, left = self._fixed, self._end - clock()
        most = min(LARGE, left / MESSAGE) if self._large else LARGE
        size, distances = self._run.problem.collective.size, self._distances
        able = [each for each in every if (pieces or each.pieces) * each.messages <= most]
        best = sorted(able, key=lambda each: estimate(each, size, distances))
        if self._large:
            return best
        shortest = sorted(able, key=lambda each: each.pieces * each.messages)
        return list(dict.fromkeys(chain.from_iterable(zip(shortest, best, strict=True))))

    def _compare(self, every: Iterable[Word]) -> None:
        """Try words with few pieces."""
        self._until = clock() + COMPARING * (self._end - clock())
        for each in self._promising(every):
            self._attempt(each, each.pieces, sends=FEW)
        self._until = self._end
        self._offer()

    @property
    def leading(self) -> list[tuple[float, int, Word]]:
        """The best so far: µs, pieces with paths of their own, and the word."""
        found = [(*best, each) for each, best in self._tried.items()]
        return sorted(found, key=lambda each: each[:2])[:BEST]

    def _refine_all(self) -> None:
        """Try the best in more pieces, each once, unless the question fixes them."""
        for makespan, pieces, each in [] if self._fixed else self.leading:
            if each not in self._refined:
                self._refined.add(each)
                self._refine(each, pieces, makespan)
                self._offer()

    def _refine(self, each: Word, pieces: int, makespan: float) -> None:
        """Give twice as many pieces paths of their own, then cut them, as long as it gains."""
        sends = FEW
        while (found := self._attempt(each, 2 * pieces, sends=sends)) < makespan * (1 - GAIN):
            pieces, makespan = 2 * pieces, found
        while (found := self._attempt(each, pieces, sends=2 * sends)) < makespan * (1 - GAIN):
            sends, makespan = 2 * sends, found

    def _attempt(self, each: Word, pieces: int, *, sends: int) -> float:
        """Return µs of a word, infinite if it is not tried for want of time or for its size.

        Parameters
        ----------
        each
            The word.
        pieces
            With paths of their own, unless the question has them.
        sends
            About as many there are when pieces are cut further.
        """
        from formulations.engines.list_scheduling.chains import Stages  # noqa: PLC0415  it loads numba

        run, first = self._run, not self._tried
        pieces = self._fixed or pieces
        messages, begin = pieces * each.messages, clock()
        most = LARGE if self._large else MOST
        if not first and (max(sends, messages) > most or self._too_long(messages)):
            return inf
        run.report(f"{each.letters} with {text.count(pieces, 'path')} for each sum")
        chunks = run.problem.cut_into(pieces).collective.chunks
        sizes = np.array([chunk.size for chunk in chunks], dtype=float)
        stages = Stages(self._network, chains_of(each), sizes)
        copies = 1 if self._fixed else max(1, sends // len(stages))
        found = stages.ordered(copies=copies, goal=run.proof.makespan)
        self._last = clock() - begin, messages
        tried = found.makespan, pieces
        self._tried[each] = min(tried, self._tried.get(each, tried))
        if self._best is None or found.makespan < self._best[0].makespan:
            self._best = found, pieces * copies
        if first:
            self._offer()
        return found.makespan

    def _too_long(self, messages: int) -> bool:
        """Return whether so many messages would take longer than is left, judged by the last."""
        seconds, before = self._last
        power = 1 if self._large else 2
        soon = seconds < SLOW or clock() + seconds * (messages / before) ** power < self._until
        return self.over or not soon

    def _offer(self) -> None:
        """Offer the best, once, if nothing better was offered."""
        if self._best is None or self._best[0] is self._offered:
            return
        (found, pieces), run = self._best, self._run
        self._offered = found
        if run.best is None or found.makespan < run.best.makespan:
            plan = found.schedule(run.problem.cut_into(pieces))
            run.offer(replace(plan, chunks=pieces))


FORMULATION = Formulation(
    name="chains",
    title="Chains of stages",
    reference="Thakur, Rabenseifner, Gropp, IJHPCA 2005 (words); dimensions by turns are our own",
    collectives=frozenset({"all-reduce"}),
    refuses=refuses,
    run=run,
    whole_chunks=lambda problem: problem.collective.whole,
    searched_by="own search",
)
