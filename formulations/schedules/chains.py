"""Chains of stages: exchange within groups, then between them; or add up, exchange and spread.

With groups of k1, k2, ... ranks whose product is p, one letter a stage:

    x   exchange   every member of a group gets the sums of all others       α + (k-1) mβ
    h   add up     each owns a share of the vector, and adds it up           α + (k-1)/k mβ
    s   spread     owners send the sums to everyone

Behind an h only the share m/k of the vector goes on. So x is one-shot, xx its exchange of hosts and
then of their likes, x with k = 2 throughout recursive doubling, hs a reduce-scatter and an
all-gather, hxs what a hierarchical all-reduce does; hx lets owners send what they have added up to
everyone at once, which saves a step of latency. Few letters are for small sizes and h and s for
large ones. (Thakur, Rabenseifner, Gropp, IJHPCA 2005, have such words for hypercubes.)

Vectors are cut into pieces, which follow one another. Where stages are along the dimensions of a
grid, pieces take the dimensions by turns, each beginning with another one: then all links of a
torus or a hypercube are in use in all stages.

Decisions: the ranks make a grid, host by host or, where they can be so arranged, such that the rows
of all dimensions are joined. All words over all grids of up to four dimensions are tried, the best
of them with their dimensions in all orders. A sum takes any path: all members of a group have it,
and the next stage takes it from the nearest (`formulations.engines.list_scheduling.chains`). Paths
are found for few pieces, which are then cut further, so that words are compared as they are when
their pieces follow one another. The best are tried with more pieces of either kind. Of hundreds of
ranks few words can be tried, host by host: those first that take least by the formulas above, with
the longest path of each stage and the widest links into a GPU that join its groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from math import inf, prod
from typing import TYPE_CHECKING

import numpy as np

from ccl import text
from ccl.problem import Problem
from ccl.result import Result, Stop
from ccl.topology import Topology
from formulations.core.preparing import clock
from formulations.core.refusals import no_limits
from formulations.core.registry import Formulation, NoOptions
from formulations.core.run import Run
from formulations.engines.closed_forms.hosts import arranged, by_host
from formulations.engines.closed_forms.steps import refuses as refuses_any
from formulations.engines.reverse_time import adding

if TYPE_CHECKING:
    from formulations.engines.list_scheduling.chains import Chain, Ordered

MOST_STAGES = 4
"""Dimensions of a grid."""

FEW, MOST, LARGE = 1_500, 12_000, 160_000
"""Sends of plans that are compared, above which there are too many to cut further, and of any."""

RANKS = 1_700
"""Of more the paths between them are too many to be listed."""

MESSAGE = 2.2e-4
"""Seconds that a message takes where there are many, verification and replay included."""

SLOW = 0.5
"""Seconds of a candidate from which on those of more messages are foreseen by it."""

PASSES = 1
"""Of list scheduling for each stage."""

SECONDS = 10.0
"""For everything where no limit was set."""

COMPARING = 0.5
"""Share of the time left that comparing candidates takes at most."""

BEST = 3
"""So many words are tried in other orders, and in more pieces."""

GAIN = 0.003
"""Share of the makespan that more pieces must gain."""


def refuses(problem: Problem) -> str | None:
    """Refuse switches that add or copy, shared limits, and too many messages."""
    reason = refuses_any(problem) or no_limits(problem)
    if reason is not None:
        return reason
    for each in problem.topology.devices:
        if (each.reduces or each.copies) and not each.stores:
            return f"{each.name} adds or copies on the way, and here that is for GPUs"
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
    every = (sides for many in range(1, MOST_STAGES + 1) for sides in _products(ranks, many))
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


@dataclass(frozen=True, eq=False)
class Candidate:
    """A word over a grid of ranks.

    Parameters
    ----------
    word
        A letter for each stage.
    grid
        Ranks, an axis for each dimension.
    axes
        Dimensions of the stages, for each of the pieces that take them by turns.
    """

    word: str
    grid: np.ndarray
    axes: tuple[tuple[int, ...], ...]

    @property
    def pieces(self) -> int:
        """The fewest of which all members of a group own as many."""
        sides: tuple[int, ...] = self.grid.shape
        return len(self.axes) * prod(sides[axis] for axis in self.axes[0][: self.word.count("h")])

    @property
    def messages(self) -> int:
        """Messages of each piece, those that pass them on not counted."""
        found, active = 0, self.grid.size
        last = len(self.word) - 1
        for stage, (letter, axis) in enumerate(zip(self.word, self.axes[0], strict=False)):
            side = self.grid.shape[axis]
            if letter == "h":
                found, active = found + active - active // side, active // side
            else:
                found += (self.grid.size if stage == last else active) * side - active
        return found + (self.grid.size - active if self.word.endswith("s") else 0)

    def estimate(self, size: float, distances: Distances) -> float:
        """Return the µs that the formulas of its stages come to for a vector of so many bytes."""
        found, share, again = 0.0, size, 2 if self.word.endswith("s") else 1
        last = len(self.word) - 1
        for stage, letter in enumerate(self.word[: len(self.axes[0])]):
            side = self.grid.shape[self.axes[0][stage]]
            rows = [self.rows(axes[stage]) for axes in self.axes]
            if letter == "h":
                share /= side
                found += again * distances.stage(rows, (side - 1) * share)
            elif stage == last and share < size:
                # Owners send to everyone.
                found += distances.stage([self.grid.reshape(1, -1)], side * size - share)
            else:
                found += distances.stage(rows, (side - 1) * share)
        return found

    @cached_property
    def chains(self) -> tuple[Chain, ...]:
        """What pieces go through by turns."""
        from formulations.engines.list_scheduling.chains import Chain  # noqa: PLC0415  it loads numba

        found = []
        for axes in self.axes:
            levels = []
            for stages in range(1, len(axes) + 1):
                members = prod(self.grid.shape[axis] for axis in axes[:stages])
                rows = self.grid.transpose(*axes[stages:], *axes[:stages]).reshape(-1, members)
                levels.append(tuple(map(frozenset, rows.tolist())))
            found.append(Chain(self.word, tuple(levels), tuple(map(self.rows, axes))))
        return tuple(found)

    def rows(self, axis: int) -> np.ndarray:
        """Return the rows of ranks along a dimension, shape (rows, ranks of a row)."""
        return np.moveaxis(self.grid, axis, -1).reshape(-1, self.grid.shape[axis])

    def __str__(self) -> str:
        """Say what groups do, one stage after the other."""
        does = {"h": "add up", "x": "exchange"}
        stages = zip(self.word, self.axes[0], strict=False)
        said = [f"groups of {self.grid.shape[axis]} {does[each]}" for each, axis in stages]
        said += ["owners spread the sums"] * self.word.endswith("s")
        return ", then ".join(said) + "; pieces take the dimensions by turns" * (len(self.axes) > 1)

    def others(self) -> Iterator[Candidate]:
        """Yield the same with the dimensions in other orders, where all pieces have one order."""
        if len(self.axes) == 1:
            for axes in permutations(self.axes[0]):
                if axes != self.axes[0]:
                    yield replace(self, axes=(axes,))


def candidates(topology: Topology, *, arrange: bool = True) -> Iterator[Candidate]:
    """Yield words over grids; and over those whose rows are joined, if so asked."""
    for stages in range(1, MOST_STAGES + 1):
        for sides in _products(len(topology.ranks), stages):
            for grid in _grids(topology, sides, arrange=arrange):
                axes = tuple(range(stages))[::-1]
                turned = tuple(axes[turn:] + axes[:turn] for turn in range(stages))
                for word in _words(stages):
                    yield Candidate(word, grid, (axes,))
                    if stages > 1 and ("h" not in word or len({*sides}) == 1):
                        yield Candidate(word, grid, turned)


def _shortest(every: Iterable[Candidate]) -> list[Candidate]:
    """Return what takes least time to try first."""
    return sorted(every, key=lambda each: each.pieces * each.messages)


def _words(stages: int) -> Iterator[str]:
    for adding_up in range(stages + 1):
        word = "h" * adding_up + "x" * (stages - adding_up)
        if adding_up < stages:
            yield word
        if adding_up:
            yield word + "s"


def _products(p: int, many: int) -> Iterator[tuple[int, ...]]:
    """Yield the products of so many numbers of 2 or more that are p, in all orders."""
    if many == 1 and p > 1:
        yield (p,)
    for side in range(2, p // 2 + 1) if many > 1 else ():
        if p % side == 0:
            yield from ((side, *rest) for rest in _products(p // side, many - 1))


def _grids(topology: Topology, sides: tuple[int, ...], *, arrange: bool) -> Iterator[np.ndarray]:
    """Yield the ranks in grids: host by host, and such that rows are joined."""
    order = np.concatenate(by_host(topology))
    yield order.reshape(sides)
    if not arrange:
        return
    places = np.arange(len(order)).reshape(sides)
    rows = (np.moveaxis(places, axis, -1).reshape(-1, side) for axis, side in enumerate(sides))
    pairs = [pair for each in rows for row in each.tolist() for pair in permutations(row, 2)]
    other = arranged(topology, pairs)
    if other is not None and (other != order).any():
        yield other.reshape(sides)


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
    """Candidates that were tried, and the best of them."""

    def __init__(self, run: Run) -> None:
        from formulations.engines.list_scheduling.chains import Network  # noqa: PLC0415  it loads numba

        self._run = run
        self._end = clock() + (SECONDS if run.left is None else run.left)
        self._until = self._end
        self._last = 0.0, 1
        self._fixed = _fixed(run.problem)
        topology = adding(run.problem).topology
        self._large = len(topology.ranks) * (len(topology.ranks) - 1) > MOST
        self._network = Network(topology, most=PASSES, over=lambda: self.over)
        self._tried: dict[Candidate, tuple[float, int]] = {}
        self._best: tuple[Ordered, int] | None = None
        self._offered: Ordered | None = None
        self._refined = set[Candidate]()

    @property
    def over(self) -> bool:
        """Whether to stop."""
        return self._run.enough or self._run.expired or clock() > self._until

    def all(self) -> None:
        """Try all candidates, then what the best lead to."""
        every = candidates(self._run.problem.topology, arrange=not self._large)
        if self._large:
            self._compare(self._promising(every))
            self._offer()
            return
        self._compare(_shortest(every))
        words = [each for *_, each in self.leading]
        self._refine_all()
        self._compare(_shortest(other for each in words for other in each.others()))
        self._refine_all()

    def _promising(self, every: Iterable[Candidate]) -> list[Candidate]:
        """Return what is not too large, the best by its formulas first."""
        pieces, left = self._fixed, self._end - clock()
        most = min(LARGE, left / MESSAGE)
        distances = Distances(self._run.problem)
        size = self._run.problem.collective.size
        able = [each for each in every if (pieces or each.pieces) * each.messages <= most]
        return sorted(able, key=lambda each: each.estimate(size, distances))

    def _compare(self, every: Iterable[Candidate]) -> None:
        """Try candidates with few pieces."""
        self._until = clock() + COMPARING * (self._end - clock())
        for each in every:
            self._attempt(each, each.pieces, sends=FEW)
        self._until = self._end

    @property
    def leading(self) -> list[tuple[float, int, Candidate]]:
        """The best so far: µs, pieces with paths of their own, and the candidate."""
        found = [(*best, each) for each, best in self._tried.items()]
        return sorted(found, key=lambda each: each[:2])[:BEST]

    def _refine_all(self) -> None:
        """Try the best in more pieces, each once, unless the question fixes them."""
        for makespan, pieces, each in [] if self._fixed else self.leading:
            if each not in self._refined:
                self._refined.add(each)
                self._refine(each, pieces, makespan)
        self._offer()

    def _refine(self, each: Candidate, pieces: int, makespan: float) -> None:
        """Give twice as many pieces paths of their own, then cut them, as long as it gains."""
        sends = FEW
        while (found := self._attempt(each, 2 * pieces, sends=sends)) < makespan * (1 - GAIN):
            pieces, makespan = 2 * pieces, found
        while (found := self._attempt(each, pieces, sends=2 * sends)) < makespan * (1 - GAIN):
            sends, makespan = 2 * sends, found

    def _attempt(self, each: Candidate, pieces: int, *, sends: int) -> float:
        """Return µs of a candidate, infinite if it is not tried for want of time or for its size.

        Parameters
        ----------
        each
            The candidate.
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
        run.report(f"{each.word} with {text.count(pieces, 'path')} for each sum")
        chunks = run.problem.cut_into(pieces).collective.chunks
        sizes = np.array([chunk.size for chunk in chunks], dtype=float)
        stages = Stages(self._network, each.chains, sizes)
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
