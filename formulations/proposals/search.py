"""Search for networks: closed families, lattices, products, annealing, and swaps by prices.

Each step costs more than the one before it, so that a front is there within a second and grows:

1. closed families with every split (`formulations.proposals.families`);
2. lattices, the least distances first, until distances prove that no other is faster than the best;
3. products and copies of small networks;
4. annealed random networks (`formulations.proposals.rewiring`), all the time on the other cores:
   the fastest, and where cables have prices the one of the least time times dollars;
5. swaps by prices, where the best all-to-all is longer than distances say, so that these do not
   suffice.

Everything that is shown has been scored exactly (`formulations.proposals.scores`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from time import perf_counter

import numpy as np

from ccl import text
from ccl.bound import moore_mean
from ccl.errors import ProblemError, SolveError
from ccl.topology import Topology
from formulations.bounds.concurrent_flow import LARGEST
from formulations.proposals.families import Draft, closed, expansions, fits, host_of, lattices
from formulations.proposals.front import Candidate, Front, Prices
from formulations.proposals.parallel_annealing import Annealers, annealers
from formulations.proposals.request import Request
from formulations.proposals.rewiring import Pairs, network_of, possible, rewire
from formulations.proposals.scores import Score, all_to_all_rate, score

SHARES = {"closed": 0.5, "lattices": 0.6, "products": 0.7}
"""Of the time, when each step ends at the latest."""

TURN = 0.5
"""Seconds of annealing between two looks at the others."""

BETTER = 5e-3
"""Share by which distances must be shorter for a network to be scored before the end."""

LATTICES = 24
"""Lattices that are scored at most."""

PACE = 10_000
"""Amounts of a flow without symmetry that a second is enough for."""

LOOSE = 1e-3
"""Share by which all-to-all is above what distances prove where prices are worth a try."""

SAME = 1e-9
"""Share by which figures differ by rounding alone."""

REWIRED, CHEAPER = "rewired", "rewired, cheaper cables"
"""Families of annealed networks: the fastest, and the one of the least time times dollars."""


def propose(request: Request, *, prices: Prices | None = None) -> Iterator[Front]:
    """Yield what has been found, again and again, until the time is up.

    Whoever closes the iterator ends the search and its processes.

    Parameters
    ----------
    request
        What is wanted.
    prices
        What can be bought; by default no network has a bill.

    Raises
    ------
    ProblemError
        If the host is none of the gallery or does not divide the GPUs.
    """
    search = _Search(request, prices)
    with ExitStack() as stack:
        pool = None
        if search.anneals:
            many = {"seed": request.seed, "cores": request.cores}
            found = annealers(request.gpus, request.ports, **many, costs=search.costs)
            pool = stack.enter_context(found)
        yield from search.run(pool)


class _Search:
    """What is known while it runs."""

    def __init__(self, request: Request, prices: Prices | None) -> None:
        self.request = request
        self.per_host = host_of(request).gpus
        self._prices = prices
        self._began = perf_counter()
        self._found: list[Candidate] = []
        self._left_out = 0
        direct = request.host is None and not request.radix
        amounts = request.gpus**2 * request.ports
        irregular = direct and possible(request.gpus, request.ports)
        self.anneals = irregular and amounts <= LARGEST
        self._not_tried = too_many(request) if irregular and not self.anneals else ""
        self.costs = None
        if self.anneals and prices is not None:
            self.costs = prices.between(request.gpus, request.bandwidth)
        self._reserve = min(1 + amounts / PACE, request.seconds / 2)

    @property
    def seconds(self) -> float:
        """Since it began."""
        return perf_counter() - self._began

    def run(self, pool: Annealers | None) -> Iterator[Front]:
        """Yield fronts to the end."""
        for stage, drafts in (
            ("closed", closed(self.request)),
            ("lattices", self._lattices()),
            ("products", expansions(self.request)),
        ):
            for draft in drafts:
                if self._found and self.seconds > SHARES[stage] * self.request.seconds:
                    break
                if self._add(draft):
                    yield self._front(stage)
        if pool is not None:
            yield from self._annealed(pool)
        yield self._front("done", done=True)

    def _front(self, stage: str, *, done: bool = False) -> Front:
        return Front(
            request=self.request,
            candidates=tuple(sorted(self._found, key=lambda each: each.time)),
            stage=stage,
            seconds=self.seconds,
            per_host=self.per_host,
            left_out=self._left_out,
            not_tried=self._not_tried,
            done=done,
        )

    def _add(self, draft: Draft) -> bool:
        """Make and score a draft; return whether it is a network that was not there."""
        try:
            topology = draft.make()
            if not fits(topology, self.request):
                return False
        except ProblemError:  # there is none of such a size
            return False
        return self._scored(topology, draft.family, one_way=draft.one_way)

    def _scored(self, topology: Topology, family: str, *, one_way: bool = False) -> bool:
        left = max(self.request.seconds - self.seconds, 0.5)
        try:
            found = score(topology, self.request.kinds, seconds=left)
        except (ProblemError, SolveError):
            self._left_out += 1
            return False
        if any(_alike(each.score, found) for each in self._found):
            return False
        self._found.append(
            Candidate(
                topology=topology,
                family=family,
                score=found,
                time=found.mixed(self.request.mix),
                one_way=one_way,
                bill=None if self._prices is None else self._prices.bill(topology),
            )
        )
        return True

    def _lattices(self) -> Iterator[Draft]:
        """Yield each lattice whose all-to-all is faster than that of those before it."""
        best = 0.0
        wide = self.request.ports * self.request.bandwidth
        for draft in lattices(self.request)[:LATTICES]:
            # Each GPU's shard goes as far as distances say, over the links of one GPU.
            most = self.request.gpus**2 * wide / draft.total
            if most <= best or self.seconds > SHARES["lattices"] * self.request.seconds:
                return
            algbw = all_to_all_rate(draft.make(), seconds=1.0).algbw
            if algbw > best:
                best = algbw
                yield draft

    def _annealed(self, pool: Annealers) -> Iterator[Front]:
        """Anneal until what is left of the time is needed for the last score."""
        request = self.request
        scored, best, pairs = math.inf, *pool.best()
        # No network with two-way links has shorter distances than these.
        mean = moore_mean(request.gpus, request.ports, duplex=True)
        least = request.gpus * (request.gpus - 1) * mean
        last = 1 if pool.cheap is None else 2  # networks that are scored at the end
        while best > least * (1 + 1e-9) or pool.cheap is not None:
            if self.seconds >= request.seconds - min(last * self._reserve, request.seconds / 2):
                break
            pool.advance(TURN)
            best, pairs = pool.best()
            left = request.seconds - self.seconds
            if best < scored * (1 - BETTER) and left > 3 * self._reserve:
                if self._replace(REWIRED, pairs):
                    yield self._front("rewiring")
                scored = best
        pool.close()  # the last scores have the machine for themselves
        best, pairs = pool.best()
        if pool.cheap is not None and self._replace(CHEAPER, pool.cheap):
            yield self._front("rewiring")
        if best < scored and self._replace(REWIRED, pairs):
            yield self._front("rewiring")
        yield from self._by_prices(best)

    def _replace(self, family: str, pairs: Pairs) -> bool:
        """Score an annealed network in place of the one before it."""
        name = f"Rewired {self.request.gpus} of degree {self.request.ports}"
        name += family.removeprefix(REWIRED)
        began = self.seconds
        before = [each for each in self._found if each.family == family]
        self._found = [each for each in self._found if each.family != family]
        made = self._scored(self._network(pairs, name), family)
        self._reserve = min(1.5 * (self.seconds - began), self.request.seconds / 2)
        if not made:
            self._found += before
        return made

    def _network(self, pairs: Pairs, name: str) -> Topology:
        request = self.request
        return network_of(
            pairs, gpus=request.gpus, name=name, bandwidth=request.bandwidth, alpha=request.alpha
        )

    def _by_prices(self, total: float) -> Iterator[Front]:
        """Exchange links by prices where distances do not say how fast a network is."""
        request = self.request
        mine = next((each for each in self._found if each.family == REWIRED), None)
        if mine is not None and "all-to-all" in mine.score.rates:
            most = request.gpus**2 * request.ports * request.bandwidth / total
            if mine.score.rates["all-to-all"].most <= most / (1 + LOOSE):
                yield from self._exchanged(mine, None)
        cheap = next((each for each in self._found if each.family == CHEAPER), None)
        if cheap is not None and "all-to-all" in cheap.score.rates:
            yield from self._exchanged(cheap, self.costs)

    def _exchanged(self, mine: Candidate, costs: np.ndarray | None) -> Iterator[Front]:
        """Put what an exchange of links makes better in place of a network, while there is time."""
        left = self.request.seconds - self.seconds
        if left <= 0:
            return
        for found in rewire(mine.topology, seconds=left, seed=self.request.seed, costs=costs):
            if found.solved and self._scored(found.topology, mine.family):
                self._found.remove(mine)
                mine = self._found[-1]
                yield self._front("prices")


def too_many(request: Request) -> str:
    """Say that a network without symmetry would be too large for exact rates."""
    ports = text.count(request.ports, "port")
    most = max(n for n in range(request.gpus) if n**2 * request.ports <= LARGEST)
    return (
        f"networks rewired by chance: without symmetry {request.gpus:,} GPUs with {ports} are too "
        f"many for exact rates, {most:,} GPUs are the most; the best of families, lattices and "
        "products stand instead"
    )


def _alike(one: Score, other: Score) -> bool:
    """Return whether all figures are equal, as those of one network that two rules make."""
    figures = []
    for each in (one, other):
        rates = (rate.algbw for rate in each.rates.values())
        figures.append((each.alpha, each.hops, each.cables, each.switches, *rates))
    return all(math.isclose(a, b, rel_tol=SAME) for a, b in zip(*figures, strict=True))
