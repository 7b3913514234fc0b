"""Trees with a root, out of it or into it: their pool, and pieces along them.

Where GPUs of several hosts are joined by switches alone they may have **fixed partners**: whom each
may reach over switches, where other links join the GPUs of a host.

A switch between hosts lets every GPU send to every other, but what one sends holds its own link and
that of the receiver at once, so a good order is one of matchings, and a list scheduler that may
choose among all pairs finds a bad one, with gaps on the busiest links. If every GPU has but one
partner in each other host, both of their links are busy together or not at all, and what is left is
an order for each link alone. Data for others goes on inside the hosts.

Trees to choose among come from column generation for the best rate; with prices on latency added,
they get less deep, and with chance in these they scatter over links that look alike.

Islands are GPUs that links without a switch join. Partners come from a group that leaves no GPU in
its place: for each other island of one GPU an element that takes it there, which pairs all GPUs.
Trees are sought for whatever such pairs, and without, as hosts may have too little bandwidth.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property, partial
from math import inf

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ccl.errors import Infeasible
from ccl.problem import Problem
from ccl.symmetry import Symmetry
from formulations.core.preparing import clock
from formulations.engines.kernels.arborescence import FAR
from formulations.engines.list_scheduling.timed import Transfers
from formulations.engines.tree_columns.cuts import (
    BEGIN,
    FIRST,
    LATENCY,
    Kind,
    Limits,
    Plans,
    able_at_once,
    by_turns,
    modelled,
    most_crossings,
)
from formulations.engines.tree_columns.heads_tails import STYLES, Cut, HeadsAndTails, Near, Style
from formulations.engines.tree_columns.patterns import Pattern, directed
from formulations.engines.tree_columns.pieces import Pieces
from formulations.engines.tree_columns.price import Prices
from formulations.engines.tree_columns.search import Optimum, Search
from formulations.engines.tree_columns.task import Task, task_of

LATENT = 0.05
"""Share of the time that data takes from which on latency counts."""

LONGER = 1.15
"""How often longer trees with fixed partners may take before their pieces are put into order."""

POOL_SHARE = 0.25
"""Of the time, for finding trees."""

DEEPER = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
"""What latency costs more, in shares of what links cost on average, at prices of the weights."""

ROUNDS = 2
"""How often trees are sought at the prices of the weights."""

SCATTERED, WORK = 300, 20_000
"""Trees of chance that are sought, with so many edges at most together."""


LATENCY_SHARES = (0.3, 1.0, 3.0, 10.0)
"""What the latency of a link costs more, in shares of what links cost on average."""

SHALLOW_SHARES = (0.1, 0.3, 1.0)
"""What a hop of depth costs, in shares of what a path costs on average."""


class Directed:
    """Trees of a collective whose data spreads from roots or is added up at them.

    Parameters
    ----------
    problem
        All-gather, broadcast and the like, or their reversals.
    limits
        When to stop.
    symmetric
        Whether roots that look alike are one.
    pairs
        Between which ranks trees may cross switches, shape (ranks, ranks); None for all.
    """

    def __init__(
        self,
        problem: Problem,
        limits: Limits,
        *,
        symmetric: bool = True,
        pairs: np.ndarray | None = None,
    ) -> None:
        self.problem, self.limits = problem, limits
        self._plans = Plans(limits)
        self._able: list[Pattern] = []
        self._seen = 0
        self.task = task_of(problem, symmetric=symmetric, pairs=pairs)
        search = Search(self.task, limits.run.backend, deadline=clock() + POOL_SHARE * limits.left)
        found = search.run()
        self.bound, self.pool = found.bound, found.pool
        enriched(found, search)
        self._deepened(search)

    def _deepened(self, search: Search) -> None:
        """Add trees that are the cheapest at what the weights pay for bandwidth."""
        alpha = self._alpha
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
    def _alpha(self) -> np.ndarray:
        return np.array([each.alpha for each in self.problem.topology.links])

    def _scattered(self) -> Directed | None:
        """Return the same with trees of chance, too, where latency counts and pairs are free."""
        if self.limits.run.latency < LATENCY or self.pairs is not None:
            return None
        prices = self.weighted(8).best(self.bound).prices
        if not prices.any():
            return None
        other = copy(self)
        other._plans, other._able, other.pool = Plans(self.limits), [*self._able], self.pool.copy()
        deadline = clock() + POOL_SHARE * self.limits.left
        search = Search(self.task, self.limits.run.backend, deadline=deadline)
        search.pool = other.pool
        many = min(SCATTERED, WORK // len(self.problem.topology.ranks))
        scattered(search, prices / prices.sum(), self._alpha, many=many)
        return other

    @property
    def patterns(self) -> list[Pattern]:
        """What pieces do along the trees of the pool.

        Raises
        ------
        Infeasible
            If shared limits let none through on all links of a path at once.
        """
        pool = self.pool
        more = range(self._seen, len(pool))
        self._seen = len(pool)
        found = [directed(self.task, pool.demands[each], pool.columns[each]) for each in more]
        self._able += able_at_once(self.problem.topology, found)
        if len({each.demand for each in self._able}) < len(self.task.demands):
            raise Infeasible("shared limits let no piece through on all links of a path at once")
        return [*self._able]

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

    def able(self, counts: Sequence[int]) -> list[int]:
        """Return the numbers of pieces that make no more crossings than there may be."""
        most = most_crossings(self.task.symmetry.order)
        return sorted({*(each for each in counts if each * self.crossings <= most), counts[0]})

    def weighted(self, pieces: int) -> HeadsAndTails:
        """Return the linear program for so many pieces of each root."""
        nbytes = self.task.nbytes
        return modelled(self.task, self.patterns, nbytes=nbytes, pieces=pieces, limits=self.limits)

    def pieces(self, cut: Cut, group: Symmetry | None) -> Pieces:
        """Return the pieces of all roots, of which those that a group moves may be one."""
        parts = cut.parts
        ranks, of_root, demands = self.task.symmetry.ranks, self.of_root, self.task.demands

        def numbers(demand: int, pieces: np.ndarray) -> np.ndarray:
            roots = ranks[:, demands[demand].root].tolist()
            base = np.array([of_root[root] for root in roots]).T
            return np.asarray(base[pieces // parts] * parts + (pieces % parts)[:, None])

        nbytes = self.task.nbytes / (self.per_root * parts)
        return Pieces(self.task, cut.model, nbytes=nbytes, numbers=numbers, group=group)

    def first(self, counts: Sequence[int]) -> int:
        """Return the number of pieces to begin with."""
        few = [each for each in counts if each <= BEGIN and each * self.crossings <= FIRST]
        return max(few, default=counts[0])

    def near(self, count: int, *, style: Style) -> Near | None:
        """Return weights for about so many pieces per root; None where there are too many."""
        parts, most = max(1, count // self.per_root), most_crossings(self.task.symmetry.order)
        if parts > 1 and parts * self.per_root * self.crossings > most:
            return None
        weighted = self._plans.weighted(parts, self._weighted, least=self.bound)
        most = max(parts, most // (self.per_root * self.crossings))
        return Near(*weighted, style, self.per_root, parts, most)

    def _weighted(self, parts: int) -> HeadsAndTails:
        return self.weighted(parts * self.per_root)

    def attempt(self, count: int, *, style: Style) -> float:
        """Offer a plan of about so many pieces per root; return its µs."""
        near = self.near(count, style=style)
        if near is None:
            return inf
        return self._plans.offered(near, self.task.symmetry, self.pieces)

    @property
    def pairs(self) -> np.ndarray | None:
        """Between which ranks trees may cross switches; None for all."""
        return self.task.sides[0].pairs

    def offer(self, counts: Sequence[int]) -> None:
        """Offer plans of about so many pieces per root."""
        able, families = self.able(counts), [self, self._scattered()]
        kinds = [
            Kind(family, partial(each.attempt, style=style), [*able])
            for style in STYLES
            for family, each in enumerate(families)
            if each is not None
        ]
        by_turns(kinds, self.first(able), self.limits)

    def fixed(self) -> Directed:
        """Return trees whose partners are fixed, if these are worth it, or itself."""
        latent = float(self.weighted(1).alone.min()) > LATENT * self.bound
        pairs = partners(self.task) if latent and not self.limits.reached() else None
        if pairs is None:
            return self
        other = Directed(self.problem, self.limits, pairs=pairs)
        return other if other._least <= LONGER * self._least else self

    @cached_property
    def _least(self) -> float:
        """µs that weights promise to pieces in whatever order."""
        return self.weighted(BEGIN).best(self.bound).time


def enriched(found: Optimum, search: Search) -> None:
    """Add trees to the pool of an optimum that are less deep, or of less latency, or both."""
    task, prices = found.task, found.prices
    alpha = np.array([each.alpha for each in task.problem.topology.links])
    even = np.ones(len(task.rows.rates))
    prices = prices if prices.any() else even
    search.pool = found.pool
    own = Prices(task, prices)
    for share in SHALLOW_SHARES:
        flatter = own.shallow(own.cheapest(), share)
        if flatter is not None:
            search.take(own, flatter)
    for each in (own, Prices(task, even)):
        flat = each.breadth()
        if flat is not None:
            search.take(each, flat)
    priced(search, prices, alpha, LATENCY_SHARES)


def priced(search: Search, prices: np.ndarray, alpha: np.ndarray, shares: Sequence[float]) -> None:
    """Add the cheapest trees where links have prices and their latency costs something too."""
    mean = _mean(search.task, prices)
    for share in shares:
        if share and not alpha.any():
            return
        extra = alpha * (share * mean / alpha.mean()) if share else None
        _taken(search, Prices(search.task, prices, extra=extra))


def scattered(search: Search, prices: np.ndarray, alpha: np.ndarray, *, many: int) -> None:
    """Add about so many trees that are cheapest where chance makes links dearer.

    Links that look alike have one price, so cheapest trees cross the same of them; in time they
    would wait for one another there. By turns links have their prices and equal ones, and a latency
    that costs a little or much. It ends where the time of the search does.

    Parameters
    ----------
    search
        With the pool.
    prices
        Of each row, not all zero.
    alpha
        µs of each link, not all zero.
    many
        Trees; of each demand there are two at least.
    """
    task, dice = search.task, np.random.default_rng(0)
    even, links = np.ones(len(prices)), len(alpha)
    for turn in range(max(1, many // (2 * len(task.demands)))):
        if search.late:
            return
        each = even if turn % 2 else prices
        share = LATENCY_SHARES[turn // 2 % len(LATENCY_SHARES)]
        latency = share * alpha / alpha.mean() * (1 + dice.random(links))
        extra = _mean(task, each) * (latency + dice.random(links))
        _taken(search, Prices(task, each, extra=extra))


def _mean(task: Task, prices: np.ndarray) -> float:
    """Return what a byte costs on a link, on average."""
    return float((task.rows.fold.T @ (prices / task.rows.speeds)).mean())


def _taken(search: Search, at: Prices) -> None:
    """Add the cheapest trees, and some that are nearly as cheap and less deep."""
    cheapest = at.cheapest()
    search.take(at, cheapest)
    flatter = at.shallow(cheapest, SHALLOW_SHARES[1])
    if flatter is not None:
        search.take(at, flatter)


def partners(task: Task) -> np.ndarray | None:
    """Return between which ranks data may cross switches, both ways, shape (ranks, ranks).

    None where all GPUs are of one island or each is alone, where no element takes all to other
    islands, where such pairs do not join all, or where other devices copy.
    """
    side, ranks = task.sides[0], task.symmetry.ranks
    many = ranks.shape[1]
    if len(task.symmetry.ranks) == 1 or len(side.vertices) > many:
        return None
    here, there, _ = side.adjacency.direct
    joined = sparse.csr_array((np.ones(len(here)), (here, there)), shape=(many, many))
    islands, island = connected_components(joined, directed=False)
    if not 1 < islands < many:
        return None
    pairs = np.zeros((many, many), dtype=bool)
    chosen = {int(island[row[0]]): row for row in ranks[::-1] if (island[row] != island).all()}
    for row in chosen.values():
        pairs[np.arange(many), row] = True
    pairs |= pairs.T
    reached = side.priced(np.ones(len(side.topology.links))).costs.T < FAR
    able = joined + sparse.csr_array(pairs & reached)
    return pairs if connected_components(able, connection="strong")[0] == 1 else None


def paired(transfers: Transfers, pairs: np.ndarray | None) -> Transfers:
    """Return the transfers that cross no switch or join one of the pairs; all without pairs."""
    if pairs is None:
        return transfers
    topology = transfers.topology
    rank = np.array([topology.rank.get(each.name, -1) for each in topology.devices])
    alone = np.diff(transfers.first) == 1
    return transfers.chosen(np.flatnonzero(alone | pairs[rank[transfers.src], rank[transfers.dst]]))
