"""Best rate of a collective on a cluster with more bandwidth, and the cuts that prove it.

Let y[g] be GB/s more on each link of the goods g, b[i] the GB/s of capacity row i today. Whatever
holds a steady state down is linear in y:

* a set of devices S whose roots have w(S) bytes for others: algbw is at most size / w(S) times
  the sum of b[i] + y[g(i)] over the links that leave S;
* prices pi[i] of rows, an optimal dual of the orbit linear program at b + y', with R' its time:
  the least that any plan pays at these prices does not depend on capacities, so algbw is at most
  size / R' times sum pi[i] (b[i] + y[g(i)]) / sum pi[i] (b[i] + y'[g(i)]);
* the same with the prices at which the cheapest trees cost R', where trees are quicker.

Each engine below says for given y the best algbw and such cuts, at least one of which is met with
equality there. So algbw as a function of y is the least of finitely many cuts, concave, and
`formulations.analyses.expansion.upgrade` needs no more than these.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from ccl.bound import Cut
from ccl.errors import LimitReached, ProblemError
from ccl.problem import Problem
from formulations.analyses.best_rate import programmable
from formulations.analyses.expansion.offers import Offers
from formulations.engines import steady_state
from formulations.engines.forestcoll.search import cut_decides, network_of, rate_of, representatives
from formulations.engines.tree_columns import task

BYTES = 1e-3
"""GB/s of a byte in a µs."""

PATIENCE = 10.0
"""Seconds after which trees that are not proved are given up."""

NEAR = 5e-8
"""Trees whose time is above their bound by a larger share are not proved."""

WHOLE = 2**60
"""Flows in whole numbers stay below this."""

FINEST = 2**40
"""Parts of the largest bandwidth in which others are counted, at most."""


@dataclass(frozen=True, eq=False)
class Found:
    """The best rate at some amounts.

    Parameters
    ----------
    algbw
        GB/s.
    slopes
        GB/s of algbw that a cut allows more for a GB/s more of each of the goods, (cuts, goods).
    offsets
        GB/s that it allows today, shape (cuts,).
    shares
        Share of the first cut that each capacity row has, shape (rows,).
    cut
        One that can be drawn, or None.
    """

    algbw: float
    slopes: np.ndarray
    offsets: np.ndarray
    shares: np.ndarray
    cut: Cut | None


class Rates(ABC):
    """The best rates of one problem.

    Parameters
    ----------
    problem
        The problem.
    offers
        What is for sale on its cluster.
    """

    effort: int
    """Engines of more effort are called later."""

    def __init__(self, problem: Problem, offers: Offers) -> None:
        self.problem, self.offers = problem, offers
        self.bandwidth = steady_state.row_bandwidths(problem.topology)
        self.rows = offers.rows
        self._known: dict[bytes, Found] = {}

    def at(self, extra: np.ndarray) -> Found:
        """Return the best rate with these GB/s more of each of the goods, shape (goods,)."""
        key = (extra + 0.0).tobytes()
        if key not in self._known:
            self._known[key] = self.ask(extra)
        return self._known[key]

    @abstractmethod
    def ask(self, extra: np.ndarray) -> Found:
        """Return what `at` does, found anew."""

    def grown(self, extra: np.ndarray) -> np.ndarray:
        """Return GB/s of each capacity row with these amounts, shape (rows,)."""
        return np.asarray(self.bandwidth + np.append(extra, 0.0)[self.rows])

    def cuts(
        self, algbw: float, weights: np.ndarray, *, extra: np.ndarray, cut: Cut | None
    ) -> Found:
        """Return what was found, from algbw allowed by each GB/s of each row.

        Parameters
        ----------
        algbw
            GB/s.
        weights
            Shape (cuts, rows).
        extra
            Where it was found.
        cut
            One that can be drawn, or None.
        """
        many = len(self.offers.goods)
        slopes = np.zeros((len(weights), many + 1))
        for number in range(-1, many):
            slopes[:, number] = weights[:, self.rows == number].sum(axis=1)
        shares = weights[0] * self.grown(extra)
        return Found(algbw, slopes[:, :many], weights @ self.bandwidth, shares / shares.sum(), cut)


class CutRates(Rates):
    """Where the worst cut decides: exact flows on bandwidths in whole numbers."""

    effort = 0

    def __init__(self, problem: Problem, offers: Offers) -> None:
        super().__init__(problem, offers)
        network = network_of(problem)
        fine = WHOLE / max(int(network.weight.sum()), 1) / max(len(network.src), 1)
        self.parts = float(2 ** int(np.log2(min(fine, FINEST))))
        self.network = network
        self.sinks = representatives(network, offers.labels)

    def ask(self, extra: np.ndarray) -> Found:
        """Return the worst cuts."""
        grown = self.grown(extra)[: len(self.network.src)]
        parts = np.maximum(np.rint(grown * (self.parts / grown.max())), 1).astype(np.int64)
        reduces = self.problem.collective.reduces
        rate = rate_of(replace(self.network, capacity=parts), sinks=self.sinks, reduces=reduces)
        network = self.network
        weights = np.zeros((len(rate.sides), len(self.bandwidth)))
        for number, side in enumerate(rate.sides):
            crossing = np.flatnonzero(side[network.src] & ~side[network.dst])
            inside = float(network.weight[side].sum()) * float(network.share)
            weights[number, crossing] = self.problem.collective.size / inside
        values = weights[:, : len(grown)] @ grown
        worst = int(values.argmin())
        # Whole numbers are a little off, so the cut is drawn with the bandwidths as they are.
        cut = replace(
            rate.cuts[worst], bandwidth=float(grown[weights[worst, : len(grown)] > 0].sum())
        )
        order = np.argsort(values)
        return self.cuts(float(values[worst]), weights[order], extra=extra, cut=cut)


class ProgramRates(Rates):
    """The orbit linear program, compiled once for all amounts."""

    effort = 1

    def __init__(self, problem: Problem, offers: Offers) -> None:
        super().__init__(problem, offers)
        # CVXPY takes most of a second to load, and a cut needs none.
        from formulations.engines.orbit_lp.lp import Copies, orbit_program  # noqa: PLC0415
        from formulations.solvers.cvxpy_highs import Backend  # noqa: PLC0415

        self.backend = Backend()
        copies: Copies = "auto" if even(problem, offers) else "exact"
        made = orbit_program(problem, classes=offers.labels, copies=copies)
        self.program = made.program
        self.first = np.unique(self.program.rows, return_index=True)[1]

    def ask(self, extra: np.ndarray) -> Found:
        """Return the rate by the program, and its prices."""
        scale = (self.grown(extra) / self.bandwidth)[self.first]
        self.program.scale.value = scale
        makespan = self.program.fastest(self.backend)
        prices = self.program.prices
        algbw = self.problem.collective.size / makespan * BYTES
        # All rows of an orbit have the price of one together.
        orbit = self.program.rows
        price = prices[orbit] / np.bincount(orbit)[orbit] / self.bandwidth
        weights = algbw * price / (price @ self.grown(extra))
        return self.cuts(algbw, weights[None, :], extra=extra, cut=None)


class TreeRates(Rates):
    """Trees and the prices that prove them, for programs that would be too large."""

    effort = 2

    def ask(self, extra: np.ndarray) -> Found:
        """Return the rate of the best trees, and their prices.

        Raises
        ------
        LimitReached
            If trees were found and not proved.
        """
        from formulations.engines.tree_columns.search import best_trees  # noqa: PLC0415

        topology = self.offers.upgraded(self.offers.rounded(extra))
        found = best_trees(Problem(topology, self.problem.collective), seconds=PATIENCE)
        algbw = self.problem.collective.size / float(found.time) * BYTES
        if float(found.time) > found.bound * (1 + NEAR):
            raise LimitReached(
                f"no best trees of {self.problem.collective.kind} on {topology} were proved in "
                f"{PATIENCE:g} s; ask about a smaller cluster or fewer kinds of links"
            )
        fold = found.task.rows.fold
        # All links of a row have its price together; there are no shared limits here.
        price = (found.prices / fold.sum(axis=1)) @ fold
        grown = self.grown(self.offers.rounded(extra))
        weights = algbw * (price / grown) / price.sum()
        return self.cuts(algbw, weights[None, :], extra=extra, cut=None)


def rates_of(problem: Problem, offers: Offers) -> Rates:
    """Return the engine for a problem.

    Raises
    ------
    ProblemError
        If fluid models cannot say it, or it is too large.
    """
    # A limit that does not bind today may bind once its links have more.
    if not problem.topology.limits and cut_decides(problem) and even(problem, offers):
        return CutRates(problem, offers)
    why = steady_state.refusal(problem)
    if why is None and programmable(problem):
        return ProgramRates(problem, offers)
    if why is None and not steady_state.demands_of(problem).only_pairs:
        why = task.refusal(problem)
        if why is None and not problem.topology.limits:
            return TreeRates(problem, offers)
    why = why or (
        "its linear program would be too large to be solved again and again; take fewer hosts"
    )
    raise ProblemError(f"no upgrade of {problem.topology} for {problem.collective.kind}: {why}")


def even(problem: Problem, offers: Offers) -> bool:
    """Return whether every relay gets as much more in as out, whatever is bought."""
    topology = problem.topology
    src, dst = topology.ends
    relay = np.array([each.kind != "gpu" for each in topology.devices], dtype=bool)
    for number in range(len(offers.goods)):
        mine = offers.of_link == number
        net = np.bincount(dst[mine], minlength=len(relay)).astype(float)
        net -= np.bincount(src[mine], minlength=len(relay))
        if (net[relay] != 0).any():
            return False
    return True
