"""Balanced paths: every chunk takes one short path, such that no link has much more than others.

For an all-to-all on networks whose GPUs pass data on: a torus, a random network, any drawing. What
each source sends goes down a tree of cheapest paths, where a link costs the more the fuller it is:
exp(20 (t / T - 1)) times what a byte takes on it, where the link has t µs to send and the fullest
has T. Small groups of each source choose by turns. Then those that cross a link that is nearly as
full as the fullest take their load back and choose again, in rounds, of which the best counts.
Latency has its part in what a path costs, as large as the share of the longest path in the time
that the first round comes to.

The order on the links is found afterwards: what has the longest way to go is sent first, and passes
backwards and forwards put that into a better order (`formulations.engines.list_scheduling
.reordering`), as long as there is time to verify and replay the plan.

Decision: chunks are not cut; the price of a full link is that of a smooth maximum of the loads, as
in `formulations.engines.tree_columns.search`, but paths are never shared out in parts, so that no
program has to be solved: 512 GPUs of 6 links each choose paths for their 261,632 chunks in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ccl.errors import Infeasible, LimitReached
from ccl.problem import Problem
from ccl.result import Result, Stop
from formulations.core.preparing import clock
from formulations.core.refusals import no_limits, only_pairs
from formulations.core.registry import Formulation, NoOptions
from formulations.core.run import Run
from formulations.engines.epoch_grid.relay_paths import no_path

if TYPE_CHECKING:
    from scipy import sparse

    from formulations.engines.list_scheduling.timed import Transfers

SMOOTH, SHARP = 6.0, 20.0
"""How much dearer the fullest link is than an empty one, as an exponent: at first, and later."""

ROUNDS, PATIENCE, GAIN, FULL = 30, 4, 0.002, 0.05
"""How often chunks choose at most, how often without a gain, what share of the time is one, and how
near to the fullest a link is whose chunks choose again."""

GROUPS, WORK = 2_000, 2e7
"""Groups of chunks that choose, and these times transfers, unless there are more sources."""

MOST = 2_000_000
"""Sends of a plan at most."""

EACH, ORDER = 1.5e-5, 1.6
"""Seconds that a send takes to be placed, verified and replayed, about, and times these that are
left for it and for some passes."""


def refuses(problem: Problem) -> str | None:
    """Leave copies, sums, limited buffers and shared limits to other formulations."""
    reason = only_pairs(problem) or no_limits(problem)
    if reason is None and len(problem.collective.chunks) > MOST:
        many = len(problem.collective.chunks)
        reason = f"it would send {many:,} chunks, and {MOST:,} are the most"
    return reason


def run(run: Run, options: NoOptions) -> Result:
    """Choose paths, then an order, and offer the plan."""
    from formulations.engines.list_scheduling.reordering import Passes  # noqa: PLC0415  it loads numba
    from formulations.engines.list_scheduling.timed import TimedTransfers, in_epochs, transfers_of  # noqa: PLC0415  it loads numba

    problem = run.problem
    transfers = transfers_of(problem.topology, fewer=True)
    paths, left = Paths(problem, transfers), run.left or 0.0
    for round_, time in enumerate(paths.rounds(), 1):
        run.report(f"round {round_}: {time:.6g} µs on the fullest link")
        rest = max(left / 2, ORDER * EACH * paths.many)  # for the order
        if run.enough or run.remaining < rest:
            break
    transfer, chunk, remaining, waits = paths.sends()
    if len(transfer) > MOST:
        raise LimitReached(f"{len(transfer):,} sends are too many: {MOST:,} are the most")
    passes = Passes(transfers, transfer, paths.sizes[chunk], *waits)
    began = clock()
    first = passes.forward(-remaining)
    pass_, rest = clock() - began, EACH * len(transfer)

    def over() -> bool:
        return run.enough or (run.left is not None and run.left < 2 * pass_ + rest)

    start, _ = passes.improved(first, goal=run.proof.makespan, over=over)
    timed = TimedTransfers(transfer, chunk, start, np.arange(len(transfer)))
    run.offer(in_epochs(problem, transfers, timed, waits=waits))
    return run.finish(run.reached if run.enough else Stop.PASSES)


class Paths:
    """A path for each chunk.

    Parameters
    ----------
    problem
        Whose chunks have one holder and one destination each.
    transfers
        What can be sent.
    """

    def __init__(self, problem: Problem, transfers: Transfers) -> None:
        from scipy import sparse  # noqa: PLC0415  menus need no graphs

        self._transfers, self._devices = transfers, len(problem.topology.devices)
        places = np.array([problem.topology.index[name] for name in problem.topology.ranks])
        chunks = problem.collective.chunks
        self.sizes = np.array([each.size for each in chunks], dtype=float)
        self._moved = np.array([n for n, each in enumerate(chunks) if not each.in_place], dtype=int)
        self._src = places[[min(chunks[n].holders) for n in self._moved.tolist()]]
        self._dst = places[[min(chunks[n].destinations) for n in self._moved.tolist()]]
        self._bytes = self.sizes[self._moved]
        shape = len(problem.topology.links), len(transfers)
        self._busy: sparse.csr_array = sparse.csr_array(
            (transfers.beta, (transfers.link, transfers.of_link)), shape=shape
        )
        self._most = min(GROUPS, int(WORK / len(transfers)))
        self._delay = transfers.delay(float(self._bytes.mean()))
        self._pair = transfers.src * self._devices + transfers.dst
        self._order = np.argsort(self._pair, kind="stable")
        pairs, self._first = np.unique(self._pair[self._order], return_index=True)
        self._ends = pairs // self._devices, pairs % self._devices
        # The tree that each chunk goes down: the transfer into each device, -1 where none leads.
        self._into: list[np.ndarray] = []
        self._tree = self._best = np.full(len(self._moved), -1)
        self.many = 0  # sends, once all have chosen

    def rounds(self) -> Iterator[float]:
        """Let chunks choose, at first all, then those on full links; yield the least µs so far."""
        loads, latency, best = np.zeros(self._busy.shape[0]), 0.5, np.inf
        going, stalled = np.arange(len(self._moved)), 0
        for round_ in range(ROUNDS):
            for group in self._groups(going):
                loads = loads - self._loads(group)
                self._choose(group, loads, latency, sharpness=SHARP if round_ else SMOOTH)
                loads = loads + self._loads(group)
            time = float(loads.max())
            if round_ == 0:
                latency = self._longest / (self._longest + time)
            stalled = 0 if time < best * (1 - GAIN) else stalled + 1
            if time < best:
                best, self._best = time, self._tree.copy()
            yield best
            if stalled == PATIENCE:
                break
            going = self._crossing(loads > (1 - FULL) * time)

    def _groups(self, going: np.ndarray) -> list[np.ndarray]:
        """Return the chunks that choose together: some of each source, which take turns."""
        apart = (self._dst - self._src)[going] % self._devices
        order = going[np.lexsort((apart, self._src[going]))]
        # Those to the same destination go into different groups where there are as many.
        place = np.arange(len(order)) - np.searchsorted(self._src[order], self._src[order])
        sources, of = np.unique(self._src[order], return_inverse=True)
        group = place % max(1, self._most // len(sources)) * len(sources) + of
        by_group = np.argsort(group, kind="stable")
        cuts = np.flatnonzero(np.diff(group[by_group])) + 1
        return np.split(order[by_group], cuts)

    def _followed(self, going: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield chunks that are still on their way back to their sources, and their transfers."""
        trees, of = np.unique(self._tree[going], return_inverse=True)
        into, at = np.array([self._into[tree] for tree in trees.tolist()]), self._dst[going]
        rows = np.arange(len(going))
        while len(rows):
            number = into[of[rows], at[rows]]
            yield going[rows], number
            at[rows] = self._transfers.src[number]
            rows = rows[at[rows] != self._src[going[rows]]]

    def _loads(self, group: np.ndarray) -> np.ndarray:
        """Return the µs that links take for some chunks, none where they have no paths yet."""
        flow = np.zeros(len(self._transfers))
        if self._tree[group[0]] >= 0:
            for chunks, number in self._followed(group):
                flow += np.bincount(number, self._bytes[chunks], minlength=len(flow))
        return np.asarray(self._busy @ flow)

    def _crossing(self, full: np.ndarray) -> np.ndarray:
        """Return the chunks that cross some of the links."""
        found = np.zeros(len(self._moved), dtype=bool)
        crosses, self.many = self._busy.T @ full > 0, 0
        for chunks, number in self._followed(np.arange(len(found))):
            found[chunks[crosses[number]]] = True
            self.many += len(chunks)
        return np.flatnonzero(found)

    def _choose(
        self, group: np.ndarray, loads: np.ndarray, latency: float, *, sharpness: float
    ) -> None:
        """Give chunks of one source the cheapest paths where links are so full already, in µs."""
        from scipy.sparse.csgraph import dijkstra  # noqa: PLC0415  menus need no graphs

        most = loads.max()
        full = np.exp(sharpness * (loads / most - 1)) if most else np.ones(len(loads))
        dear = self._busy.T @ full
        costs = (1 - latency) * dear / dear.max() + latency * self._delay / self._delay.mean()
        graph, numbers = self._graph(costs)
        _, before = dijkstra(graph, indices=self._src[group[0]], return_predecessors=True)
        src, dst = self._ends
        led = before[dst] == src
        into = np.full(self._devices, -1, dtype=np.int32)
        into[dst[led]] = numbers[led]
        ends = self._dst[group]
        if (into[ends] < 0).any():
            lost = int(ends[into[ends] < 0][0])
            raise Infeasible(no_path(self._transfers.topology.devices[lost].name))
        self._tree[group] = len(self._into)
        self._into.append(into)

    @property
    def _longest(self) -> float:
        """µs of the longest of the quickest paths."""
        from scipy.sparse.csgraph import dijkstra  # noqa: PLC0415  menus need no graphs

        sources, of = np.unique(self._src, return_inverse=True)
        found = dijkstra(self._graph(self._delay)[0], indices=sources)
        return float(found[of, self._dst].max())

    def _graph(self, costs: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
        """Return the cheapest transfer between each two devices: its cost, and its number."""
        from scipy import sparse  # noqa: PLC0415  menus need no graphs

        order = self._order
        if len(self._first) < len(order):
            order = np.lexsort((costs, self._pair))
        numbers = order[self._first]
        cost = np.maximum(costs[numbers], np.finfo(float).tiny)
        return sparse.csr_array((cost, self._ends), shape=(self._devices, self._devices)), numbers

    def sends(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """Return the transfers of all chunks along the best paths so far.

        Their numbers, chunks, and µs until the chunk is there if nothing waits, each shape (n,);
        and pairs of which the second waits for the first.
        """
        transfers, moved, self._tree = self._transfers, self._moved, self._best
        remaining = np.zeros(len(moved))
        every: list[tuple[np.ndarray, ...]] = []
        for chunks, number in self._followed(np.arange(len(moved))):
            remaining[chunks] += transfers.latency[number]
            remaining[chunks] += self._bytes[chunks] * transfers.slowest[number]
            every.append((number, chunks, remaining[chunks]))
        number, place, left = (np.concatenate(each) for each in zip(*every, strict=True))
        order = np.lexsort((-left, place))
        # Searches are compiled for these numbers, and would be once more for shorter ones.
        number, place, left = number[order].astype(np.int64), place[order], left[order]
        next_ = np.flatnonzero(place[1:] == place[:-1])
        return number, moved[place], left, (next_, next_ + 1)


FORMULATION = Formulation(
    name="balanced-paths",
    title="Balanced paths",
    reference="our own; the order by Li and Willis, EJOR 56, 1992",
    collectives=frozenset({"all-to-all", "gather", "scatter", "custom"}),
    refuses=refuses,
    run=run,
    searched_by="own search",
)
